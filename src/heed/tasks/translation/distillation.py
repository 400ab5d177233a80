"""Sequence-level distillation (Kim & Rush 2016): the teachers' translations of their training sources.

A student learns from the training pairs and, as further parts of its data, from the same sources with the teachers'
best translations. They are written as plain text into a folder, some lines at a time, so that an interrupted
distillation continues. A translation that the output checks flag is replaced by the reference.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from heed.core.errors import DataError
from heed.core.files import atomic_write, sha256_file, storage_errors
from heed.core.progress import Progress, warn
from heed.decoding.options import SearchOptions
from heed.run import WEIGHTS
from heed.tasks.prepare import read_valid
from heed.tasks.translation.data import Part, PartConfig
from heed.tasks.translation.prepare import filtered_pairs
from heed.text.readers import fingerprint

AT_ONCE = 2000
"""Sources between two writes: what an interruption loses."""
DESCRIPTION = "teachers.json"
"""File with what the translations depend on."""


class Distillation:
    """The translations of a run's training sources, in a folder."""

    def __init__(self, predictor: Any, folder: Path, options: SearchOptions, quiet: bool) -> None:
        self.predictor = predictor
        self.folder = folder
        self.options = options
        self.quiet = quiet
        self.data = predictor.data
        of_tag = [part.tag == predictor.source_tag for part in self.data.train_parts()]
        self.parts = [part for part, chosen in zip(self.data.train_parts(), of_tag, strict=True) if chosen]
        """The parts whose sources have the predictor's tag."""

    def run(self) -> list[PartConfig]:
        """Translate what is not translated yet, and return the further parts of the student's data.

        Raises DataError for a folder with translations by other teachers, of other text or by another search.
        """
        with storage_errors("write the translations", path=self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._require_same_teachers()
            for part in self.parts:
                self._translate(part)
        return [self._config(part) for part in self.parts]

    def _paths(self, part: Part) -> tuple[Path, Path]:
        """The files of a part's sources and translations."""
        return self.folder / f"{part.number}.src", self.folder / f"{part.number}.tgt"

    def _config(self, part: Part) -> PartConfig:
        own: PartConfig = self.data.all_parts[part.number]
        src, tgt = (str(path.absolute()) for path in self._paths(part))
        return own.model_copy(update={"pairs": "", "src": src, "tgt": tgt})

    def _require_same_teachers(self) -> None:
        """Write what the translations depend on, or compare it with what is written."""
        runs = [self.predictor.run, *self.predictor.combined.others]
        description = {
            "teachers": [sha256_file(run.folder / WEIGHTS) for run in runs], "tag": self.predictor.source_tag,
            "search": self.options.model_dump(mode="json"), "text": [fingerprint(part.files) for part in self.parts],
        }  # fmt: skip
        written, path = json.dumps(description, indent=1) + "\n", self.folder / DESCRIPTION
        if not path.exists():
            with atomic_write(path, "w") as file:
                file.write(written)
        elif path.read_text("utf-8") != written:
            raise DataError(
                f"{self.folder} has translations by other teachers, of other text or by another search. Delete it to "
                "translate again."
            )

    def _translate(self, part: Part) -> None:
        """Translate the sources of a part from the first one without a translation."""
        translator = self.predictor.line_translator(with_tokens=False)
        title = "translating" + (f" {part.label}" if part.number else "")
        num_flagged = 0
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("ab+")) for path in self._paths(part)]
            done = _keep_complete_pairs(files)
            progress = stack.enter_context(Progress(None, "sentences", title, self.quiet, initial=done))
            rows = islice(self._rows(part), done, None)
            while chunk := list(islice(rows, AT_ONCE)):
                outputs = translator.translate([src for src, _ in chunk], self.options)
                targets = [tgt if best.flags else best.text for (_, tgt), best in zip(chunk, outputs, strict=True)]
                _append(files, [src for src, _ in chunk], targets)
                num_flagged += sum(bool(best.flags) for best in outputs)
                done += len(chunk)
                progress.update(done)
        if num_flagged:
            warn(f"{num_flagged:,} of {done:,} translations were flagged and replaced by the reference", self.quiet)

    def _rows(self, part: Part) -> Iterator[tuple[str, str]]:
        """The training pairs of a part, each source once, without sentences that are held out."""
        held = frozenset[str]() if self.data.valid_files() else frozenset(chain(*read_valid(self.predictor.folder)))
        seen: set[bytes] = set()
        for src, tgt in filtered_pairs(self.data, part.files, Counter()):
            digest = hashlib.blake2b(src.encode(), digest_size=12).digest()
            if digest not in seen and src not in held and tgt not in held:
                seen.add(digest)
                yield _one_line(src), _one_line(tgt)


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _append(files: Sequence[IO[bytes]], *columns: Sequence[str]) -> None:
    """Append a column of lines to each file."""
    for file, lines in zip(files, columns, strict=True):
        file.write("".join(f"{_one_line(line)}\n" for line in lines).encode())
        file.flush()


def _keep_complete_pairs(files: Sequence[IO[bytes]]) -> int:
    """The number of lines that all files have; what follows them is cut off."""
    ends = []
    for file in files:
        file.seek(0)
        ends.append([0, *_ends_of_lines(file)])
    number = min(map(len, ends)) - 1
    for file, of_file in zip(files, ends, strict=True):
        file.truncate(of_file[number])
    return number


def _ends_of_lines(file: IO[bytes]) -> Iterator[int]:
    """The position after each complete line."""
    end = 0
    for line in file:
        end += len(line)
        if line.endswith(b"\n"):
            yield end
