"""Examination of training data in one pass, before any training.

Memory: 11 to 15 bytes per pair for each of two sets of hashes (sources and pairs seen so far), 0.3 GB for ten million
pairs; and 100 bytes for each pair of the validation and test sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from heed.core.errors import DataError
from heed.text.doctor.direction import exchanged, partly_exchanged, same_language
from heed.text.doctor.findings import Check, Diagnosis, Finding, Tally, Thresholds, sorted_findings, visible
from heed.text.doctor.held_out import HeldOutPairs, HeldOutText, tokenised_differently
from heed.text.doctor.lines import LineScan
from heed.text.doctor.pairs import PairScan
from heed.text.hashing import HashSet, hash_pair, hash_text
from heed.text.language.codes import name_of
from heed.text.language.scripts import language_by_script
from heed.text.pair_filter import PairFilterConfig
from heed.text.vocabulary import UNK_ID

Pair = tuple[str, str]
T = TypeVar("T")

SHOWN = 30
"""Characters of the first line of each side that the summary shows."""

REPEATED = Check(
    "duplicate", "repeat an earlier one", "Check why they repeat: one of each is enough.", warn=Thresholds.warn_repeated
)


def unknown_pieces(side: str, lines: Sequence[str], ids: Sequence[Sequence[int]]) -> Iterator[Finding]:
    """The finding that tokens of these lines are unknown, or none. Examples number the lines from 1."""
    tally = Tally()
    for number, (line, of_line) in enumerate(zip(lines, ids, strict=True), start=1):
        if unknown := list(of_line).count(UNK_ID):
            tally.add(number, line, times=unknown)
    what = f"are not in the vocabulary (in {len(lines):,} sampled lines)"
    advice = "Train the tokenizer on text in this language and script, or use a byte-level one (bpe, unigram or byte)."
    check = Check("unknown", what, advice, stop=Thresholds.stop_unknown)
    return check.findings(tally, sum(map(len, ids)), f"{side} tokens")


def diagnose(
    train: Iterable[Pair],
    valid: Iterable[Pair] | None = None,
    test: Iterable[Pair] | None = None,
    *,
    pair_filter: PairFilterConfig | None = None,
    languages: tuple[str, str] = ("", ""),
    in_one_file: bool = False,
    to_exchange: str = "Exchange the two sides.",
) -> Diagnosis:
    """Examine sentence pairs; each iterable is read once. A DataError that one raises becomes a finding.

    `languages`: the languages given for source and target, empty where none was. `in_one_file`: both sides of a pair
    are in one record, so that a missing side does not shift the others. `to_exchange`: the advice when the sides are
    exchanged.
    """
    problems: list[Finding] = []
    cut: list[Finding] = []
    held_out = [
        HeldOutPairs(name, until_error(pairs, name, problems))
        for name, pairs in (("validation", valid), ("test", test))
        if pairs is not None
    ]
    src_scan, tgt_scan = LineScan("source"), LineScan("target")
    pair_scan = PairScan(pair_filter, in_one_file)
    for number, (src, tgt) in enumerate(until_error(train, "training", cut), start=1):
        src_hash, pair_hash = hash_text(src), hash_pair(src, tgt)
        src_scan.add(number, src)
        tgt_scan.add(number, tgt)
        pair_scan.add(number, src, tgt, src_hash, pair_hash)
        for held in held_out:
            held.compare(number, src, tgt, src_hash, pair_hash)
    own = [*src_scan.findings(tgt_scan), *tgt_scan.findings(src_scan), *pair_scan.findings()]
    findings = [*problems, *_unless_cut(own, cut)]
    findings += exchanged(src_scan, tgt_scan, languages, to_exchange)
    findings += tokenised_differently(src_scan, tgt_scan)
    findings += [*partly_exchanged(src_scan, tgt_scan)] or [*same_language(src_scan, tgt_scan)]
    for held in held_out:
        findings += held.findings(src_scan, tgt_scan)
    return Diagnosis(
        findings=sorted_findings(findings),
        num_pairs=pair_scan.num_pairs,
        statistics={**_sizes("src", src_scan), **_sizes("tgt", tgt_scan), "num_kept": pair_scan.num_kept},
        dropped=dict(pair_scan.filter.dropped),
        summary=(
            _summary(src_scan, tgt_scan),
            *_direction(src_scan, tgt_scan, languages),
            *(held.summary for held in held_out),
        ),
        languages={
            side: language_by_script(scan.sample.lines) for side, scan in (("src", src_scan), ("tgt", tgt_scan))
        },
    )


def diagnose_text(
    train: Iterable[str], valid: Iterable[str] | None = None, test: Iterable[str] | None = None
) -> Diagnosis:
    """Examine monolingual text, one segment per line, as `diagnose`."""
    problems: list[Finding] = []
    cut: list[Finding] = []
    held_out = [
        HeldOutText(name, until_error(lines, name, problems))
        for name, lines in (("validation", valid), ("test", test))
        if lines is not None
    ]
    scan, seen, repeated = LineScan("text"), HashSet(), Tally()
    for number, line in enumerate(until_error(train, "training", cut), start=1):
        scan.add(number, line)
        key = hash_text(line)
        if len(line) >= HeldOutText.MIN_CHARACTERS and not seen.add(key):
            repeated.add(number, line)
        for held in held_out:
            held.lines.compare(key, number, line)
    findings = [*problems, *_unless_cut([*scan.findings(), *_short(scan)], cut)]
    findings += REPEATED.findings(repeated, scan.num_lines, "lines")
    for held in held_out:
        findings += held.findings(scan)
    return Diagnosis(
        findings=sorted_findings(findings),
        num_pairs=scan.num_lines,
        statistics=_sizes("text", scan),
        summary=(_summary(scan), *(held.summary for held in held_out)),
    )


def until_error(items: Iterable[T], name: str, problems: list[Finding]) -> Iterator[T]:
    """The items up to an error in the file, which becomes a finding; the rest of the diagnosis is still useful."""
    try:
        yield from items
    except DataError as error:
        message = f"The {name} data cannot be read to its end. {error}"
        problems.append(Finding("unreadable", "stop", 1, 1, message, ""))


def _unless_cut(findings: Iterable[Finding], cut: list[Finding]) -> list[Finding]:
    """All findings; if the training data was cut off by an error, without the one that there are few lines."""
    return [*cut, *(finding for finding in findings if not (cut and finding.check == "few"))]


def _short(scan: LineScan) -> Iterator[Finding]:
    if scan.num_characters < Thresholds.min_characters:
        limit = f"{Thresholds.min_characters:,}"
        message = f"The text has {scan.num_characters:,} characters; a model learns nothing from fewer than {limit}."
        yield Finding("few", "stop", scan.num_characters, scan.num_characters, message, "Provide more text.")


def _sizes(prefix: str, scan: LineScan) -> dict[str, float]:
    return {f"{prefix}_words": scan.mean_words, f"{prefix}_characters": scan.mean_characters}


def _summary(*scans: LineScan) -> str:
    sizes = [f"{scan.mean_words:.1f} words ({scan.mean_characters:.0f} characters)" for scan in scans]
    if len(scans) > 1:
        sizes = [f"{scan.side} {size}" for scan, size in zip(scans, sizes, strict=True)]
    num, what = scans[0].num_lines, "pair" if len(scans) > 1 else "line"
    return f"train: {num:,} {what}{'s' * (num != 1)}; a line has {', '.join(sizes)}."


def _direction(src: LineScan, tgt: LineScan, languages: tuple[str, str]) -> Iterator[str]:
    """The direction of translation, shown by the first lines, where exchanged files are easy to see."""
    firsts = [next((line for line in scan.sample.lines if line.strip()), "") for scan in (src, tgt)]
    if all(firsts):
        names = [f"{name_of(code)} " if code else "" for code in languages]
        begins = [visible(first[:SHOWN]) + "…" * (len(first) > SHOWN) for first in firsts]
        src_side, tgt_side = (f'{name}"{begin}"' for name, begin in zip(names, begins, strict=True))
        yield f"translates from {src_side} to {tgt_side}."
