"""Which data does a run read? The `[data]` table of a recipe, for every task."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import CorpusFiles


class DataConfig(Config):
    """Files of a run. Paths are relative to `dir`."""

    dir: str = ""
    """Folder that the paths are relative to; --data.dir or the variable HEED_DATA override it."""
    src: str = ""
    """Source side, one sentence a line (plain, .gz, .xz or .zst)."""
    tgt: str = ""
    """Target side, line by line the translation of the source."""
    pairs: str = ""
    """In place of src and tgt: one file of pairs (TSV, JSONL or Parquet)."""
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
    format: Literal["", "tsv", "jsonl", "parquet"] = ""
    """Format of `pairs`; empty: told by the name."""
    src_column: int = Field(default=1, ge=1)
    """TSV: column of the source, counted from 1."""
    tgt_column: int = Field(default=2, ge=1)
    """TSV: column of the target."""
    src_field: str = "src"
    """JSONL and Parquet: field of the source."""
    tgt_field: str = "tgt"
    """JSONL and Parquet: field of the target."""
    src_lang: str = ""
    """Language code of the source."""
    tgt_lang: str = ""
    """Language code of the target; it chooses the tokenisation of BLEU."""
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
        """A path of this table as it can be opened. Raises UsageError for standard input."""
        if path == "-":
            raise UsageError("Standard input cannot be read twice; write it to a file first.")
        return str(Path(self.dir) / path)

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
            src_column=self.src_column, tgt_column=self.tgt_column,
            src_field=self.src_field, tgt_field=self.tgt_field,
        )  # fmt: skip
