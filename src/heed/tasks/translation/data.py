"""The `[data]` table of a translation recipe: files of sentence pairs, their parts, tags and languages."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from heed.core.errors import DataError, UsageError
from heed.tasks.data import DataConfig
from heed.tasks.translation.parts import Part, PartConfig, listed
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import CorpusFiles, with_languages_of
from heed.text.vocabulary import spelled_tag

Column = Annotated[int, Field(ge=1)] | str


class TranslationData(DataConfig):
    """Sentence pairs. Paths are relative to `dir`."""

    path_keys = ("src", "tgt", "pairs", "valid_src", "valid_tgt", "valid_pairs")

    src: str = ""
    """Source side, one sentence a line (plain, .gz, .xz or .zst)."""
    tgt: str = ""
    """Target side, line by line the translation of the source."""
    pairs: str = ""
    """In place of src and tgt: one file of pairs (TSV, CSV, JSONL, Parquet or TMX)."""
    valid_src: str = ""
    """Validation source; empty: pairs are held out of the training data."""
    valid_tgt: str = ""
    """Validation target."""
    valid_pairs: str = ""
    """Validation pairs in one file."""
    format: Literal["", "tsv", "csv", "jsonl", "parquet", "tmx"] = ""
    """Format of `pairs`; empty: told by the name."""
    src_column: Column = ""
    """TSV and CSV: column of the source, counted from 1 or by its name in the first row; empty: the first, or the one
    that is named as src_lang is. JSONL and Parquet: its name."""
    tgt_column: Column = ""
    """The same of the target; empty: the second."""
    src_field: str = "src"
    """JSONL and Parquet: field of the source, when src_column is empty."""
    tgt_field: str = "tgt"
    """JSONL and Parquet: field of the target, when tgt_column is empty."""
    tokenised: bool = False
    """The text is cut into words already, with blanks between: BLEU counts these (tok:none)."""
    tag: str = ""
    """Stands before each source of the files above, such as "2de"; empty: nothing does."""
    repeat: int = Field(default=1, ge=1)
    """How often each pair of the files above comes in an epoch."""
    valid_tag: str = ""
    """Stands before each source of validation; empty: `tag`."""
    default_tag: str = ""
    """Stands before what is translated without --tag; empty: nothing does, or the only tag that there is."""
    parts: tuple[PartConfig, ...] = ()
    """More training data: back-translated, or of other languages."""
    filter: PairFilterConfig = PairFilterConfig()
    """Which training pairs are left out."""

    @model_validator(mode="after")
    def _check(self) -> TranslationData:
        try:
            for tag in filter(None, (*self.tags_used, self.valid_tag, self.default_tag)):
                spelled_tag(tag)
        except DataError as error:
            raise ValueError(str(error).removesuffix(".")) from error
        for name in ("valid_tag", "default_tag"):
            tag = getattr(self, name)
            if tag and tag not in self.tags_used:
                used = listed(self.tags_used) or "it has none"
                raise ValueError(f"data.{name} = {tag!r} is no tag of the training data ({used})")
        return self

    @property
    def holds_out(self) -> bool:
        """Whether validation data is taken out of the training data: where none is given."""
        return not (self.valid_src or self.valid_tgt or self.valid_pairs)

    @property
    def tags_used(self) -> list[str]:
        """The tag of each part of the training data, which may be empty."""
        return [self.tag, *(part.tag for part in self.parts)]

    @property
    def tags(self) -> list[str]:
        """Those that the vocabulary must have."""
        return list(dict.fromkeys(filter(None, self.tags_used)))

    @property
    def must_say_tag(self) -> bool:
        """Whether nobody can tell which tag is meant where none is said."""
        return not self.default_tag and all(self.tags_used) and len(self.tags) > 1

    @property
    def tag_of_validation(self) -> str:
        """What stands before each source of validation."""
        return self.valid_tag or self.tag

    def languages(self, tag: str = "") -> tuple[str, str]:
        """Source and target language of the part with this tag; of the files of this table for any other."""
        part = next((part for part in self.parts if tag and part.tag == tag and tag != self.tag), PartConfig())
        return part.src_lang or self.src_lang, part.tgt_lang or self.tgt_lang

    @property
    def all_parts(self) -> list[PartConfig]:
        """Each part of the training data with its languages, the files of this table first."""
        own = PartConfig(
            src=self.src, tgt=self.tgt, pairs=self.pairs, tag=self.tag, repeat=self.repeat, src_lang=self.src_lang,
            tgt_lang=self.tgt_lang,
        )  # fmt: skip
        further = (
            {"src_lang": part.src_lang or self.src_lang, "tgt_lang": part.tgt_lang or self.tgt_lang}
            for part in self.parts
        )
        return [own, *(part.model_copy(update=more) for part, more in zip(self.parts, further, strict=True))]

    def train_files(self) -> CorpusFiles:
        """The training pairs."""
        if not self.pairs and not (self.src and self.tgt):
            raise UsageError("data.src and data.tgt (or data.pairs) are missing: give --src F --tgt F, or --pairs F.")
        return self._files(self.src, self.tgt, self.pairs)

    def train_parts(self) -> list[Part]:
        """All training pairs, those of `train_files` first. Raises UsageError for a part without files."""
        parts = [Part(0, self.train_files(), self.tag, self.repeat)]
        for number, part in enumerate(self.parts, start=1):
            if bool(part.pairs) == bool(part.src or part.tgt) or bool(part.src) != bool(part.tgt):
                raise UsageError(f"data.parts, number {number}: give it src and tgt, or pairs.")
            files = replace(
                self._files(part.src, part.tgt, part.pairs),
                src_lang=part.src_lang or self.src_lang, tgt_lang=part.tgt_lang or self.tgt_lang,
            )  # fmt: skip
            parts.append(Part(number, files, part.tag, part.repeat))
        return parts

    def valid_files(self) -> CorpusFiles | None:
        """The validation pairs, where they are given; of a table in the languages that the training table names."""
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
