"""Settings that the `[data]` tables of all tasks share."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.text.archives import is_stream, shown_name
from heed.text.normalise import Normaliser


class DataConfig(Config):
    """Where the data of a run is and how it is read. Each task adds its own files and columns."""

    path_keys: ClassVar[tuple[str, ...]] = ()
    """The keys that name files."""

    dir: str = ""
    """Folder that the paths are relative to; --data.dir or the variable HEED_DATA overrides it."""
    errors: Literal["strict", "replace"] = "strict"
    """Bytes that are not UTF-8: stop, or read them as U+FFFD."""
    src_lang: str = ""
    """Language code of the source; required for a TMX file, and compared with the text."""
    tgt_lang: str = ""
    """Language code of the target, or of a text without a source; it also chooses the tokenisation of BLEU."""
    hold_out: int = Field(default=1000, ge=1)
    """Without validation files: about so many rows are held out for validation."""
    max_valid: int = Field(default=2000, ge=1)
    """Largest number of validation rows used during training."""
    max_tokens: int = Field(default=256, ge=2)
    """Rows with a longer text (in tokens, in any column) are left out of training."""
    synthetic: bool = False
    """The data is heed's built-in corpus: every score is labelled as synthetic."""
    normaliser: Normaliser = Normaliser()
    """How text is normalised, in training and in use alike."""

    @property
    def holds_out(self) -> bool:
        """Whether validation data is taken out of the training data, because no file was given for it."""
        raise NotImplementedError

    @property
    def num_held_out(self) -> int:
        """Number of rows to hold out; never more than validation uses."""
        return min(self.hold_out, self.max_valid)

    def resolve(self, path: str) -> str:
        """Return a path of this table as it can be opened. Raises UsageError for standard input and pipes."""
        resolved = path if path == "-" else str(Path(self.dir) / path)
        if is_stream(resolved):
            raise UsageError(
                f"{shown_name(resolved)} cannot be read twice, as training must: write it to a file first."
            )
        return resolved
