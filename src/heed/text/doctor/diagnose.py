"""Diagnosis of training data in one pass, before any training.

Memory: 11 to 15 bytes per pair for each of two sets of hashes (sources and pairs seen so far), 0.3 GB for ten million
pairs; and half a kilobyte for each pair of the validation and test sets, with 1.2 more if it is leaked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heed.text.doctor.examination import (
    Counts,
    Examination,
    Pair,
    PairExamination,
    Row,
    TextExamination,
    until_error,
)
from heed.text.doctor.findings import Check, Diagnosis, Finding, Tally, Thresholds
from heed.text.hashing import HashSet
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig
from heed.text.vocabulary import UNK_ID


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
    normaliser: Normaliser | None = None,
    languages: tuple[str, str] = ("", ""),
    in_one_file: bool = False,
    to_exchange: str = "Swap the two sides.",
) -> Diagnosis:
    """Examine sentence pairs; each iterable is read once. A DataError that one raises becomes a finding.

    `pair_filter`, `normaliser`: those of the training; None: the defaults. `languages`: the languages given for source
    and target, empty where none was. `in_one_file`: both sides of a pair are in one record, so that a missing side does
    not shift the others. `to_exchange`: the advice when the sides are exchanged.
    """
    examination = PairExamination(valid, test, pair_filter, in_one_file, normaliser)
    cut: list[Finding] = []
    return examination.diagnosis(_counted(examination, train, cut), cut, languages, to_exchange)


def diagnose_text(
    train: Iterable[str], valid: Iterable[str] | None = None, test: Iterable[str] | None = None,
    normaliser: Normaliser | None = None,
) -> Diagnosis:  # fmt: skip
    """Examine monolingual text, one segment per line, as `diagnose`."""
    examination = TextExamination(valid, test, normaliser=normaliser)
    cut: list[Finding] = []
    return examination.diagnosis(_counted(examination, train, cut), cut)


def _counted(examination: Examination[Row, Counts], rows: Iterable[Row], cut: list[Finding]) -> Counts:
    """What is counted over all rows; an error of the file becomes the finding `cut`."""
    counts = examination.begin()
    seen = [HashSet() for _ in range(examination.num_keys)]
    for number, row in enumerate(until_error(rows, "training", cut), start=1):
        keys = examination.keys(row)
        are_new = [key == 0 or hashes.add(key) for hashes, key in zip(seen, keys, strict=True)]
        examination.add(counts, number, row, keys, are_new)
    return counts
