"""What is scored, and on what? Test sets, and what runs and other toolkits made of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heed.core.errors import DataError, UsageError
from heed.core.progress import message, warn
from heed.decoding.options import SearchOptions
from heed.run import Run
from heed.tasks.parts import listed
from heed.tasks.prepare import Row
from heed.text.doctor.direction import how_to_exchange
from heed.text.readers import CorpusFiles, Errors, read_pairs, read_text


@dataclass(frozen=True)
class HeldOut:
    """A test set: the lines of each of its files, (source, reference) or the (text,) of a language model."""

    files: tuple[str, ...]
    """Names of the files, without folders: the report goes to other people."""
    rows: Sequence[Row]
    to_exchange: str = "Exchange the two sides."
    """What to do where source and reference are the other way round."""
    counted: Literal["line", "pair"] = "line"
    """What a number of a row counts: lines of the files, or pairs where these are no lines."""

    @property
    def label(self) -> str:
        """`test.en and test.de, 1,000 lines`."""
        return f"{' and '.join(self.files)}, {len(self.rows):,} {self.counted}{'s' * (len(self.rows) != 1)}"

    @property
    def sources(self) -> list[str]:
        """The first side."""
        return [row[0] for row in self.rows]

    @property
    def references(self) -> list[str]:
        """The last side."""
        return [row[-1] for row in self.rows]

    def fingerprint(self) -> list[dict[str, str | int]]:
        """Name, lines and SHA-256 of each file; of its lines, so that a file is the same packed and unpacked."""
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
    """A test set of two files, line by line. Raises DataError where one has more lines, or both have none."""
    return HeldOut((src.name, ref.name), _read(CorpusFiles(src, ref), errors))


def read_records(
    pairs: Path,
    columns: tuple[int | str | None, int | str | None],
    languages: tuple[str, str],
    errors: Errors = "strict",
) -> HeldOut:
    """A test set in one file of pairs, by its columns or its languages. Raises what `read_pairs` raises."""
    files = CorpusFiles(
        pairs=pairs, src_column=columns[0], tgt_column=columns[1], src_lang=languages[0], tgt_lang=languages[1]
    )
    names = f"{pairs.name} (source)", f"{pairs.name} (reference)"
    return HeldOut(names, _read(files, errors), how_to_exchange(files, errors=errors), "pair")


def _read(files: CorpusFiles, errors: Errors) -> list[Row]:
    left_out = Counter[str]()
    rows: list[Row] = list(read_pairs(files, errors, left_out))
    names = " and ".join(map(str, files.paths.values()))
    if not rows:
        raise DataError(f"{names}: there is nothing to score.")
    for what, count in left_out.items():
        message(f"{names}: left out {count:,} {what}")
    both = sum(not (src.strip() or ref.strip()) for src, ref in rows)
    if empty := sum(not (src.strip() and ref.strip()) for src, ref in rows) - both:
        warn(
            f"{empty:,} of {len(rows):,} test pairs have one empty side, for which no translation is right: take them "
            "out of the test set."
        )
    if both:
        message(f"{names}: {both:,} lines are empty on both sides and change no score.")
    return rows


def read_monolingual(text: Path, blank_lines: bool = False, errors: Errors = "strict") -> HeldOut:
    """A test text of language models: its lines, those without words only with `blank_lines`."""
    lines = [line for line in read_text(text, errors) if blank_lines or line.strip()]
    if not lines:
        raise DataError(f"{text} has no text to score.")
    return HeldOut((text.name,), [(line,) for line in lines])


@dataclass(frozen=True)
class System:
    """What made translations: a run, or another toolkit whose finished translations are in a file."""

    name: str
    outputs: Sequence[str]
    run: Run | None = None
    options: SearchOptions | None = None
    """How the run was searched."""
    members: Sequence[Run] = ()
    """The runs of an ensemble."""


def translated(run: Run, test: HeldOut, options: SearchOptions, quiet: bool = False) -> System:
    """What a run makes of a test set."""
    message(f"translating {test.label} with {run.folder}", quiet)
    outputs = [hypothesis.text for hypothesis in run.translator.translate(test.sources, options)]
    return System(str(run.folder), outputs, run, options)


def together(runs: Sequence[Run], test: HeldOut, options: SearchOptions | None, quiet: bool = False) -> System:
    """What several runs make of a test set as one model. Raises UsageError where their vocabularies differ."""
    first, *others = runs
    message(f"translating {test.label} with all {len(runs)} runs together", quiet)
    translator = first.translator_with(others)
    found = translator.translate(test.sources, options or first.recipe.decoding)
    return System(f"ensemble of {len(runs)}", [hypothesis.text for hypothesis in found], None, options, runs)


def tags_for(folders: Sequence[Path], tag: str | None) -> list[str | None]:
    """The tag for each run that is compared: one that does not know it gets its own default.

    Raises UsageError for a tag that none of them was trained with.
    """
    known = [Run(folder).recipe.data.tags for folder in folders]
    if tag and not any(tag in tags for tags in known):
        told = listed(name for tags in known for name in tags)
        raise UsageError(f"--tag {tag}: {f'the runs know {told}' if told else 'the runs were trained without tags'}.")
    return [tag if tag in tags else None for tags in known]


def read_finished(named: str, test: HeldOut, errors: Errors = "strict") -> System:
    """The translations in a file, given as NAME=FILE. Raises UsageError for another form, DataError for their lines."""
    name, equals, path = named.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--hyp is NAME=FILE, for instance marian=marian.out, got {named!r}.")
    outputs = list(read_text(path, errors))
    if len(outputs) != len(test.rows):
        raise DataError(
            f"{path} has {len(outputs):,} lines and {test.files[0]} {len(test.rows):,}: "
            "a translation is needed for each line, an empty one too."
        )
    return System(name, outputs)
