"""Which data does a run read? The `[data]` table of a recipe, for every task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.text.archives import is_stream, shown_name
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import CorpusFiles

Column = Annotated[int, Field(ge=1)] | str


class DataConfig(Config):
    """Files of a run. Paths are relative to `dir`."""

    dir: str = ""
    """Folder that the paths are relative to; --data.dir or the variable HEED_DATA override it."""
    src: str = ""
    """Source side, one sentence a line (plain, .gz, .xz or .zst)."""
    tgt: str = ""
    """Target side, line by line the translation of the source."""
    pairs: str = ""
    """In place of src and tgt: one file of pairs (TSV, CSV, JSONL, Parquet or TMX)."""
    text: str = ""
    """For language models: one sentence or paragraph a line."""
    valid_src: str = ""
    """Validation source; empty: pairs are held out of the training data."""
    valid_tgt: str = ""
    """Validation target."""
    valid_pairs: str = ""
    """Validation pairs in one file."""
    valid_text: str = ""
    """Validation text of a language model."""
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
    src_lang: str = ""
    """Language code of the source; a TMX file needs it, and the text is compared with it."""
    tgt_lang: str = ""
    """Language code of the target; it also chooses the tokenisation of BLEU."""
    errors: Literal["strict", "replace"] = "strict"
    """Bytes that are not UTF-8: stop, or read them as U+FFFD."""
    hold_out: int = Field(default=1000, ge=1)
    """Without validation files: about so many lines are held out for validation."""
    max_valid: int = Field(default=2000, ge=1)
    """At most so many validation lines are used during training."""
    max_tokens: int = Field(default=256, ge=2)
    """Longer sentences (in tokens, on either side) are left out of training."""
    synthetic: bool = False
    """The data is heed's built-in corpus: every score is printed as synthetic."""
    normaliser: Normaliser = Normaliser()
    """How lines are normalised, in training and in translating alike."""
    filter: PairFilterConfig = PairFilterConfig()
    """Which training pairs are left out."""

    def resolve(self, path: str) -> str:
        """A path of this table as it can be opened. Raises UsageError for standard input and pipes."""
        found = path if path == "-" else str(Path(self.dir) / path)
        if is_stream(found):
            raise UsageError(f"{shown_name(found)} cannot be read twice, as training must: write it to a file first.")
        return found

    def train_files(self) -> CorpusFiles:
        """The training pairs."""
        if not self.pairs and not (self.src and self.tgt):
            raise UsageError("data.src and data.tgt (or data.pairs) are missing: give --src F --tgt F, or --pairs F.")
        return self._files(self.src, self.tgt, self.pairs)

    def valid_files(self) -> CorpusFiles | None:
        """The validation pairs, where they are given."""
        if bool(self.valid_src) != bool(self.valid_tgt):
            raise UsageError("give both data.valid_src and data.valid_tgt, or neither.")
        if not self.valid_src and not self.valid_pairs:
            return None
        return self._files(self.valid_src, self.valid_tgt, self.valid_pairs)

    def _files(self, src: str, tgt: str, pairs: str) -> CorpusFiles:
        return CorpusFiles(
            src=self.resolve(src) if src else None, tgt=self.resolve(tgt) if tgt else None,
            pairs=self.resolve(pairs) if pairs else None, format=self.format or None,
            src_column=self.src_column or None, tgt_column=self.tgt_column or None,
            src_field=self.src_field, tgt_field=self.tgt_field,
            src_lang=self.src_lang, tgt_lang=self.tgt_lang,
        )  # fmt: skip
