"""Sequence-level distillation (Kim & Rush 2016): the teachers' translations of training sources.

A student learns from the training pairs and, as further parts of its data, from the same sources with the teachers'
best translations. They are written as plain text into a folder, some lines at a time, so that an interrupted
distillation continues. A source is translated once, even if several parts have it. A translation that the output checks
flag is replaced by the reference.

`BackTranslation` does the same with the targets: a translator for the opposite direction translates them back, and the
student also learns to translate these sources into them. Both together are data diversification (Nguyen et al. 2020).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write, empty_folder, is_debris, sha256_file, sole_writer, storage_errors
from heed.core.progress import Progress, message, warn, watched
from heed.core.run_files import WEIGHTS
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.tasks.prepare import chunks
from heed.tasks.translation.compatibility import fit
from heed.tasks.translation.data import Part, PartConfig, TranslationData, listed
from heed.tasks.translation.prepare import filtered_pairs
from heed.text.hashing import HashSet, hash_text
from heed.text.readers.tables import one_line

AT_ONCE = 512
"""Sentences between two writes: what an interruption loses."""
SAMPLE = 1000
"""Targets that are compared with the text of the translator that translates them back."""
DESCRIPTION = "teachers.json"
"""File with what the translations depend on."""


class Distillation:
    """The translations of the sources of some training data, in a folder."""

    fate_of_flagged = "replaced by the reference"
    """What becomes of translations that the output checks flag."""
    sides = ("src", "tgt")
    """The side that is translated, and the one that the translations are on: the suffixes of the files."""
    texts, activity = "sources", "translating"
    """What is translated, and what is done with it."""

    def __init__(
        self, predictor: Any, data: TranslationData, folder: Path, options: SearchOptions, quiet: bool,
        teacher: Any = None,
    ) -> None:  # fmt: skip
        """`teacher`: the translator of the pairs, if `predictor` translates in the opposite direction.

        Raises UsageError if no part of the data has the teacher's tag and sentences that are translated.
        """
        self.predictor = predictor
        self.teacher = teacher or predictor
        self.data = data
        self.folder = folder
        self.options = options
        self.quiet = quiet
        tag = self.teacher.source_tag
        tagged = [part for part in data.train_parts() if part.tag == tag]
        if not tagged:
            tags = listed(data.tags) or "none"
            raise UsageError(f"no part of the training data has the tag {tag!r} (its tags: {tags}).")
        self.parts = [part for part in tagged if self._is_translated(part)]
        if not self.parts:
            raise UsageError(f"all {self.texts} of the training data are in other languages, or a model wrote them.")

    def _is_translated(self, part: Part) -> bool:
        """Whether people wrote the part's sentences; translations of translations would teach nothing."""
        return not part.back_translated

    def check(self, overwrite: bool = False) -> None:
        """Raise HeedError if there is nothing to translate, or if the folder cannot be used."""
        self._require_sentences()
        if self.folder.is_dir():
            self._continues(overwrite)

    def run(self, overwrite: bool = False) -> list[PartConfig]:
        """Translate what is not translated yet, and return the further parts of the student's data.

        `overwrite`: replace the translations by other models, of other text or by another search, for which DataError
        is raised otherwise.
        """
        self._require_sentences()
        sizes, description = self._examined
        parts = [part for part in self.parts if sizes[part]]
        with storage_errors("write the translations", path=self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with sole_writer(self.folder, "translating into"):
                self._begin(description, overwrite)
                self._translate(parts, sizes.total())
        return [self._config(part) for part in parts]

    def _require_sentences(self) -> None:
        if not any(self._examined[0].values()):
            raise DataError(
                "there is nothing to translate: data.filter and the held-out sentences leave no pair of the training "
                "data."
            )

    def _paths(self, part: Part) -> tuple[Path, Path]:
        """The files of a part's sentences and of their translations."""
        text, translations = (self.folder / f"{part.number}.{side}" for side in self.sides)
        return text, translations

    def _config(self, part: Part) -> PartConfig:
        own: PartConfig = self.data.all_parts[part.number]
        files = {side: str(path.absolute()) for side, path in zip(self.sides, self._paths(part), strict=True)}
        return own.model_copy(update={"pairs": "", **files, "by_model": True})

    @cached_property
    def _examined(self) -> tuple[Counter[Part], bytes]:
        """The number of sentences in each part, and a description of all that the translations depend on."""
        sizes, digest = Counter[Part](), hashlib.sha256()
        for part, src, tgt in watched(self._rows(), f"reading the {self.texts}", "sentences", self.quiet):
            sizes[part] += 1
            digest.update(f"{part.number}\t{src}\t{tgt}\n".encode())
        description = {
            "teachers": [sha256_file(run.folder / WEIGHTS) for run in self._teachers],
            "tag": self.predictor.source_tag, "search": self.options.model_dump(mode="json"),
            "text": digest.hexdigest(),
        }  # fmt: skip
        return sizes, f"{json.dumps(description, indent=1)}\n".encode()

    @property
    def _teachers(self) -> list[Any]:
        """The runs that translate."""
        return [self.predictor.run, *self.predictor.combined.others]

    def _begin(self, description: bytes, overwrite: bool) -> None:
        """Write what the translations depend on, unless translations that depend on the same are in the folder."""
        path = self.folder / DESCRIPTION
        if self._continues(overwrite):
            return
        if path.exists():
            empty_folder(self.folder, last=DESCRIPTION)
        with atomic_write(path) as file:
            file.write(description)

    def _continues(self, overwrite: bool) -> bool:
        """Whether the folder has translations that depend on the same. Raises HeedError if it must not be emptied."""
        path = self.folder / DESCRIPTION
        if not path.exists():
            if not all(map(is_debris, self.folder.iterdir())):
                raise UsageError(
                    f"{self.folder} is not empty and has no translations for a student, so nothing was written. Name "
                    "another --out."
                )
            return False
        if path.read_bytes() == self._examined[1]:
            return True
        if not overwrite and any(file.stat().st_size for file in self.folder.glob(f"*.{self.sides[1]}")):
            raise DataError(
                f"{self.folder} has translations by other models, of other text or by another search. Replace them "
                "with --overwrite, or name another --out."
            )
        self._require_not_read()
        return False

    def _require_not_read(self) -> None:
        """Raise UsageError if the folder has files that the student or a teacher is trained on."""
        runs = {*self._teachers, self.teacher.run, *self.teacher.combined.others}
        tables = [self.data, *(run.recipe.data for run in runs)]
        if any(data.reads_from(self.folder) for data in tables):
            raise UsageError(f"{self.folder} has training data of a teacher. Name another --out.")

    def _translate(self, parts: Sequence[Part], total: int) -> None:
        """Translate the sentences of each part from the first one without a translation."""
        translator = self.predictor.line_translator(with_tokens=False)
        done = {part: _keep_complete_pairs(self._paths(part)) for part in parts}
        before = sum(done.values())
        if before:
            message(f"{before:,} of {total:,} sentences were translated before", self.quiet)
        num_flagged, number = 0, before
        with Progress(total, "sentences", self.activity, self.quiet, initial=before) as progress:
            for part, rows in groupby(self._rows(), key=itemgetter(0)):
                for chunk in chunks(islice(rows, done[part], None), AT_ONCE):
                    texts = [text for _, text, _ in chunk]
                    outputs = translator.translate(texts, self.options)
                    pairs = zip(chunk, outputs, strict=True)
                    translated = [other if best.flags else one_line(best.text) for (*_, other), best in pairs]
                    _append(self._paths(part), texts, translated)
                    num_flagged += sum(bool(best.flags) for best in outputs)
                    number += len(chunk)
                    progress.update(number)
        if num_flagged:
            flagged = f"{num_flagged:,} of {number - before:,} translations"
            warn(f"{flagged} were flagged and {self.fate_of_flagged}", self.quiet)

    def _rows(self) -> Iterator[tuple[Part, str, str]]:
        """The training pairs: each sentence to translate once, with the other one, and none that is held out."""
        held = frozenset[str]() if self.data.valid_files() else frozenset(chain(*read_valid(self.teacher.folder)))
        seen = HashSet()
        for part in self.parts:
            for pair in filtered_pairs(self.data, part.files, Counter()):
                text, reference = self._directed(*pair)
                if held.isdisjoint(pair) and seen.add(hash_text(text)):
                    yield part, one_line(text), one_line(reference)

    def _directed(self, src: str, tgt: str) -> tuple[str, str]:
        """The sentence of a pair that is translated, and the other one."""
        return src, tgt


class BackTranslation(Distillation):
    """The translations of the targets of some training data, by a translator for the opposite direction.

    A part in another language than the translator's, or with targets that a model wrote, is left out.
    """

    sides = ("tgt", "src")
    texts, activity = "targets", "translating back"

    def warn_about_text(self) -> None:
        """Warn if the targets do not look like what the translator was trained on."""
        self.predictor.check_input([text for _, text, _ in islice(self._rows(), SAMPLE)], self.quiet)

    def _is_translated(self, part: Part) -> bool:
        languages = self.data.languages(self.teacher.source_tag)
        return not part.by_model and fit((part.files.src_lang, part.files.tgt_lang), languages)

    def _config(self, part: Part) -> PartConfig:
        return super()._config(part).model_copy(update={"back_translated": True})

    def _directed(self, src: str, tgt: str) -> tuple[str, str]:
        return tgt, src


def _append(paths: Sequence[Path], *columns: Sequence[str]) -> None:
    """Append a column of lines to each file."""
    for path, lines in zip(paths, columns, strict=True):
        with path.open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())


def _keep_complete_pairs(paths: Sequence[Path]) -> int:
    """Create the files that do not exist, and cut off what follows the last line that all have; returns its number."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("ab+")) for path in paths]
        ends = [[0, *_ends_of_lines(file)] for file in files]
        number = min(map(len, ends)) - 1
        for file, of_file in zip(files, ends, strict=True):
            file.truncate(of_file[number])
    return number


def _ends_of_lines(file: IO[bytes]) -> Iterator[int]:
    """The position after each complete line."""
    end = 0
    file.seek(0)
    for line in file:
        end += len(line)
        if line.endswith(b"\n"):
            yield end
