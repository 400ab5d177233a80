"""Is this data fit to train on? One pass over it, before any training.

Memory: 11 to 15 bytes a pair for each of two sets of hashes (what came before, by source and by pair): 0.3 GB for ten
million pairs, and 100 bytes for each pair of validation and test sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from heed.core.errors import DataError
from heed.core.progress import watched
from heed.text.archives import is_stream
from heed.text.doctor.direction import exchanged_parts, how_to_exchange
from heed.text.doctor.findings import Diagnosis, Finding, Severity, Tally, fault, grade, sorted_findings, visible
from heed.text.doctor.held_out import HeldOutPairs, HeldOutText, tokenised_differently
from heed.text.doctor.lines import LineScan
from heed.text.doctor.pairs import PairScan
from heed.text.doctor.pieces import Pieces, unknown_pieces
from heed.text.doctor.thresholds import Thresholds
from heed.text.hashing import HashSet, hash_pair, hash_text
from heed.text.language.codes import name_of
from heed.text.language.identify import look_exchanged, profile, similarity
from heed.text.language.scripts import language_by_script
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import (
    CorpusFiles,
    Errors,
    FileFingerprint,
    column_languages,
    fingerprint,
    fingerprint_file,
    read_pairs,
    read_text,
    with_languages_of,
)

Pair = tuple[str, str]
T = TypeVar("T")

SHOWN = 30
"""Characters of the first line of each side."""
TAGGED = 0.9
"""Where so many lines begin with one word, it is a tag."""


def diagnose(
    train: Iterable[Pair],
    valid: Iterable[Pair] | None = None,
    test: Iterable[Pair] | None = None,
    *,
    thresholds: Thresholds | None = None,
    pair_filter: PairFilterConfig | None = None,
    languages: tuple[str, str] = ("", ""),
    src_pieces: Pieces | None = None,
    tgt_pieces: Pieces | None = None,
    in_one_file: bool = False,
    to_exchange: str = "Exchange the two sides.",
) -> Diagnosis:
    """Examine sentence pairs; each iterable is read once. A DataError that one raises becomes a finding.

    `languages` are what source and target are said to be in, as far as that was said. `in_one_file`: the sides of a
    training pair stand together, so that one may be missing without the others being out of step.
    `to_exchange`: what to do where they are the wrong way round. With `src_pieces` and `tgt_pieces` a sample of the
    training data is also checked for unknown tokens.
    """
    limits = thresholds or Thresholds()
    problems: list[Finding] = []
    cut: list[Finding] = []
    held_out = [
        HeldOutPairs(name, _until_error(pairs, name, problems), limits)
        for name, pairs in (("validation", valid), ("test", test))
        if pairs is not None
    ]
    src_scan, tgt_scan = LineScan("source", limits), LineScan("target", limits)
    pair_scan = PairScan(limits, pair_filter, in_one_file)
    for number, (src, tgt) in enumerate(_until_error(train, "training", cut), start=1):
        src_hash, pair_hash = hash_text(src), hash_pair(src, tgt)
        src_scan.add(number, src)
        tgt_scan.add(number, tgt)
        pair_scan.add(number, src, tgt, src_hash, pair_hash)
        for held in held_out:
            held.meet(number, src, tgt, src_hash, pair_hash)
    own = [*src_scan.findings(tgt_scan), *tgt_scan.findings(src_scan), *pair_scan.findings()]
    findings = [*problems, *_unless_cut(own, cut)]
    findings += _exchanged(src_scan, tgt_scan, languages, to_exchange)
    findings += tokenised_differently(src_scan, tgt_scan, limits.tokenised)
    findings += [*_partly_exchanged(src_scan, tgt_scan, limits)] or [*_same_language(src_scan, tgt_scan, limits)]
    for held in held_out:
        findings += held.findings(src_scan, tgt_scan)
    findings += _unknown([(src_scan, src_pieces), (tgt_scan, tgt_pieces)], limits)
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
            "src": language_by_script(src_scan.sample.lines),
            "tgt": language_by_script(tgt_scan.sample.lines),
        },
    )


def diagnose_text(
    train: Iterable[str],
    valid: Iterable[str] | None = None,
    test: Iterable[str] | None = None,
    *,
    thresholds: Thresholds | None = None,
    pieces: Pieces | None = None,
) -> Diagnosis:
    """Examine monolingual text, a segment a line; otherwise as `diagnose`."""
    limits = thresholds or Thresholds()
    problems: list[Finding] = []
    cut: list[Finding] = []
    held_out = [
        HeldOutText(name, _until_error(lines, name, problems), limits)
        for name, lines in (("validation", valid), ("test", test))
        if lines is not None
    ]
    scan, seen, repeated = LineScan("text", limits), HashSet(), Tally(limits.num_examples)
    for number, line in enumerate(_until_error(train, "training", cut), start=1):
        scan.add(number, line)
        key = hash_text(line)
        if len(line) >= HeldOutText.MIN_CHARACTERS and not seen.add(key):
            repeated.add(number, line)
        for held in held_out:
            held.lines.meet(key, number, line)
    findings = [*problems, *_unless_cut([*scan.findings(), *_short(scan, limits)], cut)]
    advice = "See where they come from."
    findings += fault("duplicate", repeated, scan.num_lines, "lines", "came before", advice, warn=limits.warn_repeated)
    for held in held_out:
        findings += held.findings(scan)
    findings += _unknown([(scan, pieces)], limits)
    return Diagnosis(
        findings=sorted_findings(findings),
        num_pairs=scan.num_lines,
        statistics=_sizes("text", scan),
        summary=(_summary(scan), *(held.summary for held in held_out)),
    )


def diagnose_files(
    train: CorpusFiles,
    valid: CorpusFiles | None = None,
    test: CorpusFiles | None = None,
    *,
    errors: Errors = "strict",
    thresholds: Thresholds | None = None,
    pair_filter: PairFilterConfig | None = None,
    quiet: bool = True,
) -> Diagnosis:
    """Examine files of sentence pairs, with their fingerprints; raises MissingInputError when one cannot be read.

    Unless quiet, large ones show on stderr how far they are read.
    """
    held_out = {"validation": valid, "test": test}
    named = column_languages(train, errors)
    given = {"train": train} | {
        name: with_languages_of(train, files, errors) for name, files in held_out.items() if files is not None
    }
    left_out: dict[str, Counter[str]] = {name: Counter() for name in given}
    pairs = {name: read_pairs(files, errors, left_out[name]) for name, files in given.items()}
    languages = train.src_lang or named["src"], train.tgt_lang or named["tgt"]
    diagnosis = diagnose(
        watched(pairs["train"], "examining", "pairs", quiet), pairs.get("validation"), pairs.get("test"),
        thresholds=thresholds, pair_filter=pair_filter, in_one_file=train.pairs is not None,
        languages=languages, to_exchange=how_to_exchange(train, languages, errors),
    )  # fmt: skip
    diagnosis = replace(diagnosis, languages={side: named[side] or code for side, code in diagnosis.languages.items()})
    is_lines = train.pairs is None or train.record_format in ("tsv", "jsonl")
    diagnosis = replace(diagnosis, counted="line" if is_lines else "pair")
    diagnosis = _with_left_out(diagnosis, left_out, thresholds or Thresholds())
    return _with_fingerprints(diagnosis, {name: _fingerprints(files) for name, files in given.items()})


def diagnose_text_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    *,
    errors: Errors = "strict",
    thresholds: Thresholds | None = None,
    quiet: bool = True,
) -> Diagnosis:
    """Examine files of monolingual text; otherwise as `diagnose_files`."""
    named = {"train": train, "validation": valid, "test": test}
    given = {name: path for name, path in named.items() if path is not None}
    lines = {name: read_text(path, errors) for name, path in given.items()}
    train_lines = watched(lines["train"], "examining", "lines", quiet)
    diagnosis = diagnose_text(train_lines, lines.get("validation"), lines.get("test"), thresholds=thresholds)
    return _with_fingerprints(diagnosis, {name: _text_fingerprint(path) for name, path in given.items()})


def _until_error(items: Iterable[T], name: str, problems: list[Finding]) -> Iterator[T]:
    """The items up to a fault of the file, which becomes a finding: the rest of the diagnosis is still of use."""
    try:
        yield from items
    except DataError as error:
        message = f"The {name} data cannot be read to its end. {error}"
        problems.append(Finding("unreadable", "stop", 1, 1, message, ""))


def _unless_cut(findings: Iterable[Finding], cut: list[Finding]) -> list[Finding]:
    """Why the training data could not be read to its end; that there are few lines is then no news."""
    return [*cut, *(finding for finding in findings if not (cut and finding.check == "few"))]


def _exchanged(src: LineScan, tgt: LineScan, languages: tuple[str, str], to_exchange: str) -> Iterator[Finding]:
    if look_exchanged(src.sample.lines, tgt.sample.lines, *languages):
        src_lang, tgt_lang = languages
        message = f"The source looks like {tgt_lang} and the target like {src_lang}, but the opposite was said."
        if not (src_lang and tgt_lang):
            said_of, looks = ("source", "target") if src_lang else ("target", "source")
            message = f"The {looks} looks like {src_lang or tgt_lang}, but that was said of the {said_of}."
        yield Finding("swapped", "stop", src.num_lines, src.num_lines, message, to_exchange)


def _partly_exchanged(src: LineScan, tgt: LineScan, limits: Thresholds) -> Iterator[Finding]:
    lines = src.sample.lines
    odd, others = exchanged_parts(lines, tgt.sample.lines, limits.same_language)
    if not odd:
        return
    num_parts = len(odd) + len(others)
    first_words = [_common_first_word([line for part in parts for line in lines[part]]) for parts in (odd, others)]
    if all(first_words) and first_words[0] != first_words[1]:
        message = (
            f"In {len(odd)} of {num_parts} parts of the data the two sides are exchanged, and the sources there begin "
            f"with {first_words[0]}, elsewhere with {first_words[1]}: two directions in one model?"
        )
        advice = "If so, give each direction as a part with a tag (docs/more-data.md): then each can be checked."
        yield Finding("partly-swapped", "warn", len(odd), num_parts, message, advice)
        return
    severity = grade(len(odd) / num_parts, limits.stop_exchanged, 0.0)
    message = (
        f"From about line {odd[0].start * src.sample.step + 1:,} on the two sides are exchanged, as far as their "
        f"letters tell: in {len(odd)} of {num_parts} parts of the data."
    )
    advice = "Look at the pairs there, and exchange the sides of those that are the wrong way round."
    yield Finding("partly-swapped", severity, len(odd), num_parts, message, advice)


def _common_first_word(lines: Sequence[str]) -> str:
    """What nearly all lines begin with, as a tag does; empty where there is no such word."""
    [(word, number)] = Counter((line.split(maxsplit=1) or [""])[0] for line in lines).most_common(1)
    return visible(word[:SHOWN]) if number >= TAGGED * len(lines) else ""


def _same_language(src: LineScan, tgt: LineScan, limits: Thresholds) -> Iterator[Finding]:
    value = similarity(profile(src.sample.lines), profile(tgt.sample.lines))
    if value > limits.same_language:
        message = f"Source and target look like the same language (their letter trigrams agree to {value:.2f})."
        advice = "If that is not what you want, look whether a file was given twice."
        yield Finding("same-language", "warn", src.num_lines, src.num_lines, message, advice)


def _short(scan: LineScan, limits: Thresholds) -> Iterator[Finding]:
    if scan.num_characters < limits.min_characters:
        message = (
            f"The text has {scan.num_characters:,} characters; fewer than {limits.min_characters:,} teach nothing."
        )
        yield Finding("few", "stop", scan.num_characters, scan.num_characters, message, "Find more text.")


def _unknown(sides: list[tuple[LineScan, Pieces | None]], limits: Thresholds) -> Iterator[Finding]:
    for scan, pieces in sides:
        if pieces is not None:
            yield from unknown_pieces(scan.side, scan.sample.lines, pieces, limits)


def _sizes(prefix: str, scan: LineScan) -> dict[str, float]:
    lines = max(scan.num_lines, 1)
    return {f"{prefix}_words": scan.num_words / lines, f"{prefix}_characters": scan.num_characters / lines}


def _summary(*scans: LineScan) -> str:
    sizes = []
    for scan in scans:
        lines = max(scan.num_lines, 1)
        label = f"{scan.side} " if len(scans) > 1 else ""
        sizes.append(f"{label}{scan.num_words / lines:.1f} words ({scan.num_characters / lines:.0f} characters)")
    num, what = scans[0].num_lines, "pair" if len(scans) > 1 else "line"
    return f"train: {num:,} {what}{'s' * (num != 1)}; a line has {', '.join(sizes)}."


def _direction(src: LineScan, tgt: LineScan, languages: tuple[str, str]) -> Iterator[str]:
    """What is translated into what, by its first lines: who has the files the wrong way round sees it here."""
    firsts = [next((line for line in scan.sample.lines if line.strip()), "") for scan in (src, tgt)]
    if all(firsts):
        names = [f"{name_of(code)} " if code else "" for code in languages]
        begins = [visible(first[:SHOWN]) + "…" * (len(first) > SHOWN) for first in firsts]
        src_side, tgt_side = (f'{name}"{begin}"' for name, begin in zip(names, begins, strict=True))
        yield f"translates from {src_side} to {tgt_side}."


def _with_left_out(diagnosis: Diagnosis, left_out: Mapping[str, Counter[str]], limits: Thresholds) -> Diagnosis:
    """The same with a finding for each file in which something held no pair."""
    findings = [*diagnosis.findings]
    for name, reasons in left_out.items():
        count = reasons.total()
        total = count + (diagnosis.num_pairs if name == "train" else 0)
        if count:
            severity: Severity = grade(count / total, 1.0, limits.warn_repeated) if name == "train" else "note"
            listed = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())
            message = f"The {'training' if name == 'train' else name} file has parts that hold no pair: {listed}."
            findings.append(Finding("no-pair", severity, count, total, message, "They are left out."))
    return replace(diagnosis, findings=sorted_findings(findings))


def _fingerprints(files: CorpusFiles) -> dict[str, FileFingerprint]:
    return {} if any(map(is_stream, files.paths.values())) else _or_nothing(lambda: fingerprint(files))


def _text_fingerprint(path: str | Path) -> dict[str, FileFingerprint]:
    return {} if is_stream(path) else _or_nothing(lambda: {"text": fingerprint_file(path)})


def _or_nothing(work: Callable[[], dict[str, FileFingerprint]]) -> dict[str, FileFingerprint]:
    try:
        return work()
    except DataError:  # a damaged archive, which reading it has reported
        return {}


def _with_fingerprints(diagnosis: Diagnosis, fingerprints: dict[str, dict[str, FileFingerprint]]) -> Diagnosis:
    findings = [*diagnosis.findings]
    for file in (file for parts in fingerprints.values() for file in parts.values()):
        if file["crlf_lines"]:
            message = (
                f"{file['name']}: {file['crlf_lines']:,} of {file['lines']:,} lines end as on Windows (CRLF). "
                "They are read as if they did not."
            )
            findings.append(Finding("crlf", "note", file["crlf_lines"], file["lines"], message, ""))
    return replace(diagnosis, findings=sorted_findings(findings), fingerprints=fingerprints)
