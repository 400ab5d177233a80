"""Synthetic pairs for a translator: translations of its own training pairs and of text in one language.

Four kinds, each a folder that an interrupted translation continues (`heed.tasks.translation.distillation`):

- the training sources, translated forward, and the training targets, translated back: data diversification (Nguyen et
  al. 2020);
- text in the target language, translated back (Sennrich et al. 2016);
- text in the source language, translated forward: self-training (He et al. 2020).

In `heed improve`, a pair whose source is synthetic has the tag `bt`, so that a model can tell such sources from what
people write (Caswell et al. 2019). Where the target is synthetic, the source is the kind of text that the model is used
on, so the pair has no tag of its own, as in both papers.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from heed.core.errors import DataError
from heed.core.files import atomic_write, storage_errors
from heed.core.progress import message
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.run import Run
from heed.tasks.translation.corrections import old_pairs
from heed.tasks.translation.data import Part, PartConfig, TranslationData
from heed.tasks.translation.distillation import Distillation
from heed.tasks.translation.monolingual import SAMPLE, SIDES, reasons, usable_text
from heed.tasks.translation.restoring import MOST_LINES, write_masked
from heed.text.hashing import hash_text
from heed.text.readers import fingerprint_file
from heed.text.readers.tables import one_line

BACK_TRANSLATED = "bt"
KEPT = "pairs"
"""Name of the files with the pairs that have a translation."""
MOST_TEXT = 2
"""Lines of text in each language for each training pair: more would outweigh what people wrote."""
MOST_RESTORED = 10
"""Likewise, of text whose masked sentences a model learns to restore; but no more than `MOST_LINES`."""
MOST_REPEATS = 8
RESTORED = ("restoring", "restoring-valid")
"""Names of the files with masked sentences."""
MOST_LONGER = 1000.0
"""Times that a sentence may be longer than its masked copy, which may be one mask."""


class TextTranslation(Distillation):
    """The translations of lines of text; empty where the output checks flag one, so that the pair is left out."""

    fate_of_flagged = "left out"

    def _rows(self) -> Iterator[tuple[Part, str, str]]:
        return ((part, src, "") for part, src, _ in super()._rows())


@dataclass(frozen=True)
class Texts:
    """The files of an improvement, by side: `pairs` and `valid` of the run, and text in each language.

    Of `text`, all of which may be restored, `mono` is the part that is translated.
    """

    folder: Path
    data: TranslationData
    """Of the run that is improved."""

    def path(self, name: str, side: str) -> Path:
        """The file of one side: `pairs.src`."""
        return self.folder / f"{name}.{side}"

    def num_lines(self, name: str, side: str) -> int:
        """The number of its lines."""
        return fingerprint_file(self.path(name, side))["lines"]

    def write(
        self, run: Run, mono: Mapping[str, Sequence[Path]], force: bool = False, most: int = MOST_TEXT
    ) -> dict[str, Counter[str]]:
        """Write the files, and return what was left out of the text in each language, by reason.

        `most`: lines of text for each training pair. Raises UsageError for text that looks like the other language,
        unless `force`, which only warns of it, and DataError for text of which nothing is left.
        """
        valid = read_valid(run.folder)
        held = {text for row in valid for text in row[:2]}
        tag = self.data.tag_of_validation
        pairs = [row[:2] for row in old_pairs(self.data, held, synthetic=False) if row[2] == tag]
        if not pairs:
            raise DataError("the training data has no pairs that people wrote.")
        pairs.sort(key=lambda row: hash_text(row[0]))  # the first ones are then a fair sample
        columns = {
            name: dict(zip(SIDES, zip(*(row[:2] for row in rows), strict=True), strict=True))
            for name, rows in (("pairs", pairs), ("valid", valid))
        }
        dropped = {}
        for side, other in zip(SIDES, SIDES[::-1], strict=True):
            known, flag = columns["pairs"][side], "" if run.blank_model.reads_target_text else f"--mono-{other}"
            usable, dropped[side] = usable_text(mono[side], side, pairs[:SAMPLE], known, held, self.data, force, flag)
            number = count()
            counted = (line for line, _ in zip(usable, number, strict=False))
            number_kept = min(most * len(pairs), max(MOST_TEXT * len(pairs), MOST_LINES))
            kept = tuple(heapq.nsmallest(number_kept, counted, key=hash_text))
            columns.setdefault("text", {})[side] = kept
            columns.setdefault("mono", {})[side] = kept[: MOST_TEXT * len(pairs)]
            if too_many := next(number) - len(kept):
                beyond = f"{most} lines for each training pair"
                if number_kept < most * len(pairs):
                    beyond = f"{number_kept:,} lines"
                dropped[side][f"more than {beyond}"] += too_many
            if mono[side] and not kept:
                raise DataError(f"nothing is left of --mono-{side}: {reasons(dropped[side])}. Give other text.")
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, sides in columns.items():
            for side, texts in sides.items():
                with atomic_write(self.path(name, side), "w") as file:
                    file.writelines(f"{one_line(text)}\n" for text in texts)
        return dropped

    def table(self, src: str, tgt: str, files: Mapping[str, str] = {}) -> TranslationData:
        """A `[data]` table of the pairs in one direction: from `src` to `tgt`, which are "src" and "tgt", or reverse.

        `files`: keys of the table to change.
        """
        languages = dict(zip(SIDES, self.data.languages(self.data.tag_of_validation), strict=True))
        own = {
            "src": self.path("pairs", src), "tgt": self.path("pairs", tgt), "valid_src": self.path("valid", src),
            "valid_tgt": self.path("valid", tgt),
        }  # fmt: skip
        kept = ("errors", "max_valid", "max_tokens", "normaliser", "tokenised", "filter")
        keys: dict[str, Any] = {name: getattr(self.data, name) for name in kept}
        keys |= {name: str(path.absolute()) for name, path in own.items()}
        return TranslationData(**{**keys, **files}, src_lang=languages[src], tgt_lang=languages[tgt])

    def write_restoring(self) -> int:
        """Write masked sentences of both languages; returns their number, which is 0 if there are too few."""
        files = [self.path(name, side) for name in ("pairs", "text") for side in SIDES]
        return write_masked(files, *(self.path(name, side) for name in RESTORED for side in SIDES))

    def restoring(self) -> TranslationData:
        """A `[data]` table of the masked sentences, with what they were."""
        longer = self.data.filter.model_copy(update={"max_length_ratio": MOST_LONGER})
        paths = {
            f"{prefix}{side}": str(self.path(name, side).absolute())
            for prefix, name in zip(("", "valid_"), RESTORED, strict=True)
            for side in SIDES
        }
        return self.table(*SIDES, paths).model_copy(update={"filter": longer, "src_lang": "", "tgt_lang": ""})


def text_part(
    predictor: Any, data: TranslationData, lines: tuple[Iterator[str], Counter[str]], folder: Path,
    options: SearchOptions, quiet: bool, overwrite: bool = False,
) -> PartConfig:  # fmt: skip
    """Let teachers translate the lines of `source_text`; returns the translations as a part of a student's data.

    Raises DataError if the output checks flag all of them.
    """
    usable, dropped = lines
    text, number = folder / "text.src", count()
    with storage_errors("write the text", path=folder), atomic_write(text, "w") as file:
        file.writelines(f"{line}\n" for line, _ in zip(usable, number, strict=False))
    left = f"; left out: {reasons(dropped)}" if dropped else ""
    message(f"--mono-src: {next(number):,} lines are used{left}", quiet)
    tag = predictor.source_tag
    src_lang, tgt_lang = data.languages(tag)
    table = TranslationData(
        src=str(text.absolute()), tgt=str(text.absolute()), tag=tag, src_lang=src_lang, tgt_lang=tgt_lang,
        max_tokens=data.max_tokens, normaliser=data.normaliser, tokenised=data.tokenised,
        filter=data.filter.model_copy(update={"drop_copies": False}),
    )  # fmt: skip
    TextTranslation(predictor, table, folder / "text", options, quiet).run(overwrite)
    if not keep_translated(folder / "text"):
        raise DataError("no translation of --mono-src passed the output checks. Give other text, or better teachers.")
    return synthetic_part(folder / "text", True, data, tag)


def translate_pairs(predictor: Any, texts: Texts, forward: bool, number: int, folder: Path, quiet: bool) -> None:
    """Translate the sources (or, backward, the targets) of the first `number` training pairs into a folder."""
    src, tgt = SIDES if forward else SIDES[::-1]
    _translated(Distillation, predictor, _first(texts, "pairs", src, tgt, number), folder, quiet)


def translate_text(predictor: Any, texts: Texts, forward: bool, number: int, folder: Path, quiet: bool) -> None:
    """Translate the first `number` lines of the text in the source (or, backward, the target) language."""
    side = SIDES[0] if forward else SIDES[1]
    data = _first(texts, "mono", side, side, number)
    filtering = data.filter.model_copy(update={"drop_copies": False})
    _translated(TextTranslation, predictor, data.model_copy(update={"filter": filtering}), folder, quiet)


def keep_translated(folder: Path) -> int:
    """Write the pairs of a folder that have a translation into files of their own; returns their number."""
    columns = [(folder / f"0.{side}").read_text(encoding="utf-8").split("\n")[:-1] for side in SIDES]
    kept = [row for row in zip(*columns, strict=True) if all(row)]
    for place, side in enumerate(SIDES):
        with atomic_write(folder / f"{KEPT}.{side}", "w") as file:
            file.writelines(f"{row[place]}\n" for row in kept)
    return len(kept)


def num_kept(folder: Path) -> int:
    """The number of pairs that `keep_translated` wrote."""
    return fingerprint_file(folder / f"{KEPT}.{SIDES[0]}")["lines"]


def synthetic_part(folder: Path, forward: bool, data: TranslationData, tag: str | None = None) -> PartConfig:
    """Translations in a folder as a part of the training data of a table: forward, or with exchanged sides.

    `tag`: that of the sources that were translated forward (default: that of the validation data).
    """
    forward_tag = data.tag_of_validation if tag is None else tag
    written = [str((folder / f"{KEPT}.{side}").absolute()) for side in SIDES]
    src, tgt = written if forward else written[::-1]
    src_lang, tgt_lang = data.languages(forward_tag)
    part = PartConfig(
        src=src, tgt=tgt, tag=forward_tag if forward else BACK_TRANSLATED, by_model=True, back_translated=not forward
    )
    if (src_lang, tgt_lang) == (data.src_lang, data.tgt_lang):
        return part
    return part.model_copy(update={"src_lang": src_lang, "tgt_lang": tgt_lang})


def mirrored(part: PartConfig) -> PartConfig:
    """The pairs of a part that were translated forward, for a model of the opposite direction."""
    return part.model_copy(
        update={
            "src": part.tgt, "tgt": part.src, "src_lang": part.tgt_lang, "tgt_lang": part.src_lang,
            "tag": BACK_TRANSLATED, "back_translated": True,
        }
    )  # fmt: skip


def with_synthetic(data: TranslationData, parts: Sequence[PartConfig], num_real: int) -> dict[str, Any]:
    """The keys of `[data]` that add synthetic parts, and repeat the real pairs until they are half of an epoch.

    Of a run that was itself improved, they are repeated already.
    """
    old = [data.resolve(part.src) for part in data.parts if part.by_model]
    paths = [*old, *(part.src for part in parts if part.src)]
    num_synthetic = sum(fingerprint_file(Path(path))["lines"] for path in paths)
    before = data.repeat if old else 1
    wanted = num_synthetic / max(num_real * before, 1)
    repeat = max(1, min(MOST_REPEATS // before, round(wanted)))
    tag, texts = data.tag_of_validation, data.target_texts()
    own = [
        part.model_copy(update={"repeat": part.repeat * repeat})
        if part.tag == tag and number not in texts and not part.by_model
        else part
        for number, part in enumerate(data.parts, start=1)
    ]
    keys: dict[str, Any] = {"data.parts": [part.model_dump(exclude_defaults=True) for part in (*own, *parts)]}
    if data.tag == tag and repeat > 1:
        keys["data.repeat"] = data.repeat * repeat
    if not data.requires_tag and tag and not data.default_tag:  # the tag of the synthetic sources is a second one
        keys["data.default_tag"] = data.tag_to_use(data.tags, None)
    return keys


def plain_search(options: SearchOptions) -> SearchOptions:
    """The one best translation of a recipe's search."""
    return options.model_copy(update={"mbr": "", "sample": False, "nbest": 1, "diversity": 0.0})


def _translated(how: type[Distillation], predictor: Any, data: TranslationData, folder: Path, quiet: bool) -> None:
    tagged = data.model_copy(update={"tag": predictor.source_tag})
    how(predictor, tagged, folder, plain_search(predictor.decoding), quiet).run()


def _first(texts: Texts, name: str, src: str, tgt: str, number: int) -> TranslationData:
    """A table of the first lines of two files, which are written to files of their own if they are not all."""
    paths = {side: texts.path(name, side) for side in {src, tgt}}
    if number < texts.num_lines(name, src):
        for side, path in paths.items():
            paths[side] = texts.path(f"{name}-{number}", side)
            with path.open(encoding="utf-8", newline="\n") as lines, atomic_write(paths[side], "w") as file:
                file.writelines(islice(lines, number))
    return texts.table(src, tgt, {"src": str(paths[src].absolute()), "tgt": str(paths[tgt].absolute())})
