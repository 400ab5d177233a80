"""Test sets: parallel files, files of pairs, and monolingual text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heed.core.errors import DataError
from heed.core.progress import message, warn
from heed.data.validation import Row
from heed.text.doctor.direction import how_to_exchange
from heed.text.readers import CorpusFiles, Errors, read_pairs, read_text


@dataclass(frozen=True)
class HeldOut:
    """A test set: the lines of each of its files, (source, reference) or the (text,) of a language model."""

    files: tuple[str, ...]
    """Names of the files, without folders: reports are shared."""
    rows: Sequence[Row]
    to_exchange: str = "Swap the two sides."
    """Advice if source and reference are exchanged."""
    unit: Literal["line", "pair", "sentence", "question", "image"] = "line"
    """Name of a row: a line of each file, a pair in a file of pairs, a sentence of tagged words, a question, or an
    image with its captions."""

    @property
    def label(self) -> str:
        """`test.en and test.de, 1,000 lines`."""
        return f"{' and '.join(self.files)}, {len(self.rows):,} {self.unit}{'s' * (len(self.rows) != 1)}"

    @property
    def sources(self) -> list[str]:
        """The first side."""
        return [row[0] for row in self.rows]

    @property
    def references(self) -> list[str]:
        """The last side."""
        return [row[-1] for row in self.rows]

    def fingerprint(self) -> list[dict[str, str | int]]:
        """Name, lines and SHA-256 of each file. The digest is that of its lines, so compression does not change it."""
        return [
            {"name": name, "lines": len(self.rows), "sha256": _sha256([row[side] for row in self.rows])}
            for side, name in enumerate(self.files)
        ]


def _sha256(lines: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def read_parallel(src: Path, ref: Path, errors: Errors = "strict") -> HeldOut:
    """A test set of two parallel files. Raises DataError if their numbers of lines differ, or are 0."""
    return HeldOut((src.name, ref.name), _read(CorpusFiles(src, ref), errors))


def read_records(
    pairs: Path,
    columns: tuple[int | str | None, int | str | None],
    languages: tuple[str, str],
    errors: Errors = "strict",
) -> HeldOut:
    """A test set in one file of pairs, selected by columns or languages. Raises what `read_pairs` raises."""
    files = CorpusFiles(
        pairs=pairs, src_column=columns[0], tgt_column=columns[1], src_lang=languages[0], tgt_lang=languages[1]
    )
    names = f"{pairs.name} (source)", f"{pairs.name} (reference)"
    return HeldOut(names, _read(files, errors), how_to_exchange(files, errors=errors), "pair")


def _read(files: CorpusFiles, errors: Errors) -> list[Row]:
    skipped = Counter[str]()
    rows: list[Row] = list(read_pairs(files, errors, skipped))
    names = " and ".join(map(str, files.paths.values()))
    if not rows:
        raise DataError(f"{names}: no lines to score.")
    for what, count in skipped.items():
        message(f"{names}: skipped {count:,} {what}")
    both = sum(not (src.strip() or ref.strip()) for src, ref in rows)
    if empty := sum(not (src.strip() and ref.strip()) for src, ref in rows) - both:
        warn(
            f"{empty:,} of {len(rows):,} test pairs have one empty side, for which no translation is right: remove "
            "them from the test set."
        )
    if both:
        message(f"{names}: {both:,} lines are empty on both sides and change no score.")
    return rows


def read_monolingual(text: Path, blank_lines: bool = False, errors: Errors = "strict") -> HeldOut:
    """A test text: its lines, with `blank_lines` also those without words."""
    lines = [line for line in read_text(text, errors) if blank_lines or line.strip()]
    if not lines:
        raise DataError(f"{text} has no text to score.")
    return HeldOut((text.name,), [(line,) for line in lines])
