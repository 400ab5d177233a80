"""The `[data]` table of a translation recipe: files of sentence pairs, their parts, tags and languages.

Tagged back-translation (Caswell et al. 2019) marks synthetic sources, so that the model can tell them from real ones; a
tag for the target language lets one model translate into several languages (Johnson et al. 2017). A tag is a piece of
the vocabulary that no text is encoded as (see `heed.text.vocabulary`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from heed.core.config import Config
from heed.core.errors import DataError, UsageError
from heed.tasks.data import DataConfig
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import CorpusFiles, fingerprint, with_languages_of
from heed.text.vocabulary import spelled_tag

Column = Annotated[int, Field(ge=1)] | str


class PartConfig(Config):
    """A further part of the training data. Paths are relative to `data.dir`."""

    path_keys: ClassVar[tuple[str, ...]] = ("src", "tgt", "pairs")
    """The keys that name files."""

    src: str = ""
    """Source side, one sentence per line."""
    tgt: str = ""
    """Target side. Without `src`: text in the target language alone, which a phrase-based translator's language model
    reads."""
    pairs: str = ""
    """Instead of src and tgt: one file of pairs, in the format of `data.pairs`."""
    tag: str = ""
    """Tag before each source of this part, such as "bt" or "2de"; empty: none."""
    repeat: int = Field(default=1, ge=1)
    """Number of times that each pair is read in an epoch."""
    src_lang: str = ""
    """Language of the source; empty: as in `[data]`."""
    tgt_lang: str = ""
    """Language of the target; empty: as in `[data]`."""
    by_model: bool = False
    """A side was written by a model: `heed improve` does not translate these pairs again."""
    back_translated: bool = False
    """A model wrote the source: `heed distill` does not translate it."""


@dataclass(frozen=True)
class Part:
    """A part of the training data, with resolved files."""

    number: int
    """0 for the files of `[data]` itself."""
    files: CorpusFiles
    tag: str
    repeat: int
    by_model: bool = False
    """Whether a model wrote a side of its pairs."""
    back_translated: bool = False
    """Whether a model wrote the sources."""

    @property
    def label(self) -> str:
        """`part 1`, `part 2 (<bt>)`."""
        return f"part {self.number}" + (f" (<{self.tag}>)" if self.tag else "")

    @property
    def prefix(self) -> str:
        """Prefix of its keys in a table of all parts; empty for the first."""
        return f"part_{self.number}." if self.number else ""


class TranslationData(DataConfig):
    """Sentence pairs. Paths are relative to `dir`."""

    path_keys = ("src", "tgt", "pairs", "valid_src", "valid_tgt", "valid_pairs")

    src: str = ""
    """Source side, one sentence per line (plain, .gz, .xz or .zst)."""
    tgt: str = ""
    """Target side, each line the translation of the same line of src."""
    pairs: str = ""
    """Instead of src and tgt: one file of pairs (TSV, CSV, JSONL, Parquet or TMX)."""
    valid_src: str = ""
    """Validation source; empty: pairs are held out of the training data."""
    valid_tgt: str = ""
    """Validation target."""
    valid_pairs: str = ""
    """Validation pairs in one file."""
    format: Literal["", "tsv", "csv", "jsonl", "parquet", "tmx"] = ""
    """Format of `pairs`; empty: inferred from the file name."""
    src_column: Column = ""
    """TSV and CSV: column of the source, as a number from 1 or its name in the first row; empty: the column named
    src_lang, or the first. JSONL and Parquet: its name."""
    tgt_column: Column = ""
    """Column of the target; empty: the column named tgt_lang, or the second."""
    src_field: str = "src"
    """JSONL and Parquet: field of the source if src_column is empty; without that field, the one named src_lang."""
    tgt_field: str = "tgt"
    """JSONL and Parquet: field of the target if tgt_column is empty; without that field, the one named tgt_lang."""
    tokenised: bool = False
    """The text is already tokenised into words separated by spaces, which BLEU counts (tok:none)."""
    tag: str = ""
    """Tag before each source of the files above, such as "2de"; empty: none."""
    repeat: int = Field(default=1, ge=1)
    """Number of times that each pair of the files above is read in an epoch."""
    valid_tag: str = ""
    """Tag before each validation source; empty: `tag`."""
    default_tag: str = ""
    """Tag before sources that are translated without --tag; empty: none, or the only tag."""
    parts: tuple[PartConfig, ...] = ()
    """Further training data: back-translated, or in other languages."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Share of the training pairs to train on, drawn at random; a smaller share is a part of a larger one."""
    filter: PairFilterConfig = PairFilterConfig()
    """Filter of the training pairs."""

    @model_validator(mode="after")
    def _check(self) -> TranslationData:
        try:
            for tag in filter(None, (*self.tags_used, self.valid_tag, self.default_tag)):
                spelled_tag(tag)
        except DataError as error:
            raise ValueError(str(error).removesuffix(".")) from error
        for number in self.target_texts():
            if self.parts[number - 1].repeat > 1:
                raise ValueError(f"data.parts, number {number}: text without src is read once, so leave out repeat")
        for name in ("valid_tag", "default_tag"):
            tag = getattr(self, name)
            if tag and tag not in self.tags_used:
                used = listed(self.tags_used) or "it has none"
                raise ValueError(f"data.{name} = {tag!r} is not a tag of the training data ({used})")
        return self

    @property
    def tags_used(self) -> list[str]:
        """The tag of each part of the training data; may be empty."""
        return [self.tag, *(part.tag for part in self.parts)]

    @property
    def tags(self) -> list[str]:
        """The distinct tags, which the vocabulary must have."""
        return list(dict.fromkeys(filter(None, self.tags_used)))

    @property
    def requires_tag(self) -> bool:
        """Whether --tag is required, because there are several tags and no default."""
        return not self.default_tag and all(self.tags_used) and len(self.tags) > 1

    def tag_to_use(self, tags: Sequence[str], requested: str | None) -> str:
        """The tag before the sources to translate; empty for none.

        `tags` are those of the vocabulary. Raises UsageError if the requested one is not among them, or if one is
        required and `requested` is None.
        """
        if requested is not None:
            if requested and requested not in tags:
                allowed = f"the tags of the run are {listed(tags)}" if tags else "the run was trained without tags"
                raise UsageError(f"--tag {requested}: {allowed}.")
            return requested
        if self.requires_tag:
            raise UsageError(
                f"this run was trained with a tag before each source: choose one with --tag ({listed(self.tags)}), or "
                f'from Python with heed.load(RUN, tag="{self.tags[0]}").'
            )
        return self.default_tag or (self.tag if all(self.tags_used) else "")

    @property
    def tag_of_validation(self) -> str:
        """The tag before each validation source."""
        return self.valid_tag or self.tag

    def languages(self, tag: str = "") -> tuple[str, str]:
        """Source and target language of the part with this tag, else of this table."""
        part = next((part for part in self.parts if tag and part.tag == tag and tag != self.tag), PartConfig())
        return part.src_lang or self.src_lang, part.tgt_lang or self.tgt_lang

    @property
    def paths(self) -> tuple[str, ...]:
        of_parts = (path for part in self.parts for key in part.path_keys if (path := getattr(part, key)))
        return (*super().paths, *of_parts)

    def with_file_names(self) -> Self:
        names = [{key: Path(getattr(part, key)).name for key in part.path_keys} for part in self.parts]
        parts = tuple(part.model_copy(update=of_part) for part, of_part in zip(self.parts, names, strict=True))
        return super().with_file_names().model_copy(update={"parts": parts})

    def reads_from(self, folder: Path) -> bool:
        """Whether a file of the data is in this folder."""
        return any(Path(self.resolve(path)).resolve().is_relative_to(folder.resolve()) for path in self.paths)

    @property
    def all_parts(self) -> list[PartConfig]:
        """All parts of the training data with their languages; the files of this table are the first."""
        own = PartConfig(
            src=self.src, tgt=self.tgt, pairs=self.pairs, tag=self.tag, repeat=self.repeat, src_lang=self.src_lang,
            tgt_lang=self.tgt_lang,
        )  # fmt: skip
        further = [
            part.model_copy(
                update={"src_lang": part.src_lang or self.src_lang, "tgt_lang": part.tgt_lang or self.tgt_lang}
            )
            for part in self.parts
        ]
        return [own, *further]

    def train_files(self) -> CorpusFiles:
        """The training files of this table, without its further parts. Raises UsageError if they are missing."""
        if not self.pairs and not (self.src and self.tgt):
            raise UsageError("data.src and data.tgt (or data.pairs) are missing: give --src F --tgt F, or --pairs F.")
        return self._files(self.src, self.tgt, self.pairs)

    def target_texts(self) -> dict[int, str]:
        """The files of text in the target language alone, by the number of their part."""
        return {
            number: self.resolve(part.tgt)
            for number, part in enumerate(self.parts, start=1)
            if part.tgt and not (part.src or part.pairs)
        }

    def train_parts(self) -> list[Part]:
        """All parts of the training data that are pairs, `train_files` first.

        Raises UsageError for a part without files.
        """
        self.train_files()
        parts = []
        texts = self.target_texts()
        for number, part in enumerate(self.all_parts):
            if number in texts:
                continue
            if number and (bool(part.pairs) == bool(part.src or part.tgt) or bool(part.src) != bool(part.tgt)):
                raise UsageError(f"data.parts, number {number}: needs src and tgt, or pairs, or tgt alone.")
            files = self._files(part.src, part.tgt, part.pairs)
            files = replace(files, src_lang=part.src_lang, tgt_lang=part.tgt_lang)
            parts.append(Part(number, files, part.tag, part.repeat, part.by_model, part.back_translated))
        return parts

    def require_unchanged(self, corpus: Mapping[str, Any], folder: Path) -> None:
        """Raise DataError if the files are not those of a run in `folder`; `corpus` is its record of them.

        With other training files, other pairs might be held out, too.
        """
        parts, valid = self.train_parts(), self.valid_files()
        trained = {f"{part.prefix}{side}": file for part in parts for side, file in fingerprint(part.files).items()}
        validated = fingerprint(valid) if valid else {}
        for kind, files, use in (("files", trained, "trained on"), ("valid_files", validated, "validated on")):
            known = {name: entry["sha256"] for name, entry in corpus.get(kind, {}).items()}
            for name, file in files.items():
                if known.get(name) != file["sha256"]:
                    raise DataError(
                        f"{file['name']} is not the file that {folder} was {use}: its SHA-256 differs. Put that file "
                        "back, or train a run on the new one first."
                    )

    def valid_files(self) -> CorpusFiles | None:
        """The validation files, if given; of tables, the columns in the same languages as those for training."""
        if bool(self.valid_src) != bool(self.valid_tgt):
            raise UsageError("give both data.valid_src and data.valid_tgt, or neither.")
        if not self.valid_src and not self.valid_pairs:
            return None
        files = self._files(self.valid_src, self.valid_tgt, self.valid_pairs)
        return with_languages_of(self.train_files(), files, self.errors)

    def _files(self, src: str, tgt: str, pairs: str) -> CorpusFiles:
        return CorpusFiles(
            src=self.resolve(src) if src else None, tgt=self.resolve(tgt) if tgt else None,
            pairs=self.resolve(pairs) if pairs else None, format=self.format or None,
            src_column=self.src_column or None, tgt_column=self.tgt_column or None,
            src_field=self.src_field, tgt_field=self.tgt_field,
            src_lang=self.src_lang, tgt_lang=self.tgt_lang,
        )  # fmt: skip


def listed(tags: Iterable[str]) -> str:
    """The distinct tags as a list: `2de, 2fr`."""
    return ", ".join(dict.fromkeys(tag for tag in tags if tag))
