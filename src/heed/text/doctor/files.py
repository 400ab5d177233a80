"""Diagnosis of files, of one or several parts of the training data, with their fingerprints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from heed.core.errors import DataError
from heed.core.progress import watched
from heed.text.archives import is_stream
from heed.text.doctor.diagnose import diagnose, diagnose_text
from heed.text.doctor.direction import how_to_exchange
from heed.text.doctor.findings import Diagnosis, Finding, Severity, Thresholds, grade, sorted_findings
from heed.text.doctor.pairs import too_few
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import (
    CorpusFiles,
    Errors,
    FileFingerprint,
    column_languages,
    fingerprint_file,
    read_pairs,
    read_text,
    with_languages_of,
)
from heed.text.readers.corpus import Format, counted, format_of

WHOLE_CORPUS = ("few",)
"""Checks of the corpus as a whole."""


def diagnose_files(
    train: CorpusFiles,
    valid: CorpusFiles | None = None,
    test: CorpusFiles | None = None,
    *,
    errors: Errors = "strict",
    pair_filter: PairFilterConfig | None = None,
    normaliser: Normaliser | None = None,
    quiet: bool = True,
) -> Diagnosis:
    """Examine files of sentence pairs, and take their fingerprints.

    Shows the progress of large files on stderr unless `quiet`. Raises MissingInputError for a file that cannot be read.
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
        pair_filter=pair_filter, normaliser=normaliser, in_one_file=train.pairs is not None,
        languages=languages, to_exchange=how_to_exchange(train, languages, errors),
    )  # fmt: skip
    fingerprints = {name: fingerprints_of_pairs(files) for name, files in given.items()}
    return replace(of_files(diagnosis, train, named, left_out, fingerprints), fingerprints=fingerprints)


def of_files(
    diagnosis: Diagnosis, train: CorpusFiles, named: Mapping[str, str], left_out: Mapping[str, Counter[str]],
    fingerprints: Mapping[str, Mapping[str, FileFingerprint]],
) -> Diagnosis:  # fmt: skip
    """A diagnosis of pairs with what is known of their files.

    `named`: the languages in the headings of the training data; `left_out`: entries without a pair; both by set.
    """
    is_lines = train.pairs is None or train.record_format in ("tsv", "jsonl")
    return replace(
        diagnosis,
        findings=sorted_findings([*diagnosis.findings, *_no_pair(left_out, diagnosis.num_pairs), *crlf(fingerprints)]),
        languages={side: named[side] or code for side, code in diagnosis.languages.items()},
        counted="line" if is_lines else "pair",
    )


def diagnose_text_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    *,
    errors: Errors = "strict",
    normaliser: Normaliser | None = None,
    quiet: bool = True,
) -> Diagnosis:
    """Examine files of monolingual text, as `diagnose_files`."""
    named = {"train": train, "validation": valid, "test": test}
    given = {name: path for name, path in named.items() if path is not None}
    lines = {name: read_text(path, errors) for name, path in given.items()}
    train_lines = watched(lines["train"], "examining", "lines", quiet)
    diagnosis = diagnose_text(train_lines, lines.get("validation"), lines.get("test"), normaliser)
    return of_plain_files(diagnosis, "text", given)


def of_plain_files(diagnosis: Diagnosis, role: str, paths: Mapping[str, str | Path]) -> Diagnosis:
    """A diagnosis with what is known of its files, one for each set, by its name."""
    fingerprints = {name: fingerprints_of({role: path}) for name, path in paths.items()}
    findings = sorted_findings([*diagnosis.findings, *crlf(fingerprints)])
    return replace(diagnosis, findings=findings, fingerprints=fingerprints)


def _no_pair(left_out: Mapping[str, Counter[str]], num_pairs: int) -> Iterator[Finding]:
    """A finding for each file that has entries without a pair."""
    for name, reasons in left_out.items():
        count = reasons.total()
        total = count + (num_pairs if name == "train" else 0)
        if count:
            severity: Severity = grade(count / total, 1.0, Thresholds.warn_repeated) if name == "train" else "note"
            listed = ", ".join(counted(number, reason) for reason, number in reasons.most_common())
            message = f"The {'training' if name == 'train' else name} file has entries without a pair: {listed}."
            yield Finding("no-pair", severity, count, total, message, "They are left out.")


def fingerprints_of_pairs(files: CorpusFiles) -> dict[str, FileFingerprint]:
    """The fingerprints of files of pairs, as `fingerprints_of`."""
    return fingerprints_of(files.paths, files.record_format if files.pairs is not None else None)


def fingerprints_of_table(path: str | Path) -> dict[str, FileFingerprint]:
    """The fingerprint of a table, as `fingerprints_of`."""
    return fingerprints_of({"table": path}, format_of(Path(path)))


def fingerprints_of(paths: Mapping[str, str | Path], records: Format | None = None) -> dict[str, FileFingerprint]:
    """The fingerprints of the files of a corpus; nothing for pipes, which can be read only once."""
    if any(map(is_stream, paths.values())):
        return {}
    try:
        return {part: fingerprint_file(path, records) for part, path in paths.items()}
    except DataError:  # a damaged archive, already reported by reading it
        return {}


def crlf(fingerprints: Mapping[str, Mapping[str, FileFingerprint]]) -> Iterator[Finding]:
    """A finding for each file with Windows line ends."""
    for file in (file for parts in fingerprints.values() for file in parts.values()):
        if file["crlf_lines"]:
            message = (
                f"{file['name']}: {file['crlf_lines']:,} of {file['lines']:,} lines have Windows line ends (CRLF), "
                "which are removed when read."
            )
            yield Finding("crlf", "note", file["crlf_lines"], file["lines"], message, "")


def with_parts(
    first: Diagnosis, others: Mapping[str, Diagnosis], to_exchange: Mapping[str, str] | None = None
) -> Diagnosis:
    """One diagnosis of all parts; the findings of a part start with its name.

    `to_exchange`: the advice for a part whose sides are exchanged, by its name.
    """
    if not others:
        return first
    findings = [finding for finding in first.findings if finding.check not in WHOLE_CORPUS]
    findings += _few([first, *others.values()])
    summary = [*first.summary]
    for name, part in others.items():
        findings += _named(name, part, first, (to_exchange or {}).get(name, ""))
        train, *held_out = part.summary
        summary += [f"{name}: {train.removeprefix('train: ')}", *(f"{name}, {text}" for text in held_out)]
    return replace(
        first,
        findings=sorted_findings(findings),
        summary=tuple(summary),
        num_in_parts=sum(part.num_pairs for part in others.values()),
        fingerprints={**first.fingerprints, **{name: it.fingerprints.get("train", {}) for name, it in others.items()}},
    )


def _few(parts: Sequence[Diagnosis]) -> Iterator[Finding]:
    """The finding that all parts together are too few, unless one could not be read to its end."""
    if not any(finding.check == "unreadable" for part in parts for finding in part.findings):
        dropped = sum((Counter(part.dropped) for part in parts), Counter[str]())
        yield from too_few(sum(part.num_pairs for part in parts), dropped)


def _named(name: str, part: Diagnosis, first: Diagnosis, to_exchange: str) -> Iterator[Finding]:
    """The findings of a part, without those about the validation data, which all parts share."""
    shared = {(finding.check, finding.message) for finding in first.findings}
    for finding in part.findings:
        if finding.check not in WHOLE_CORPUS and (finding.check, finding.message) not in shared:
            advice = to_exchange if to_exchange and finding.check == "swapped" else finding.advice
            yield replace(finding, message=f"{name}: {finding.message}", advice=advice)
