"""Settings shared by the `[data]` tables of all tasks."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field

from heed.core.config import Config, flattened
from heed.core.errors import UsageError
from heed.text.archives import is_stream, shown_name
from heed.text.normalise import Normaliser
from heed.text.readers.lines import Errors


class DataConfig(Config):
    """Location of the data and how it is read. Each task adds its own files and columns."""

    path_keys: ClassVar[tuple[str, ...]] = ()
    """The keys that name files."""

    dir: str = ""
    """Folder that paths are relative to; --data.dir or the variable HEED_DATA overrides it."""
    errors: Errors = "strict"
    """Invalid UTF-8: stop ("strict"), or read it as U+FFFD ("replace")."""
    src_lang: str = ""
    """Language code of the source, which is compared with the text; required for a TMX file."""
    tgt_lang: str = ""
    """Language code of the target, or of a monolingual text; selects the tokenisation of BLEU."""
    hold_out: int = Field(default=1000, ge=1)
    """Without validation files: approximate number of rows that are held out for validation."""
    max_valid: int = Field(default=2000, ge=1)
    """Maximum number of validation rows used during training."""
    max_tokens: int = Field(default=256, ge=2)
    """Maximum number of tokens in any column; longer rows are left out of training."""
    synthetic: bool = False
    """The data is heed's built-in corpus: every score is labelled as synthetic."""
    normaliser: Normaliser = Normaliser()
    """Normalisation of text, in training and in use."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are named."""
        return tuple(path for key in self.path_keys if (path := getattr(self, key)))

    def with_file_names(self) -> Self:
        """The same settings with the names of files in place of their paths."""
        return self.model_copy(update={key: Path(getattr(self, key)).name for key in self.path_keys})

    @property
    def holds_out(self) -> bool:
        """Whether validation data is held out of the training data, because no validation file is given."""
        return not any(getattr(self, key) for key in self.path_keys if key.startswith("valid_"))

    @property
    def num_held_out(self) -> int:
        """Number of rows to hold out, at most `max_valid`."""
        return min(self.hold_out, self.max_valid)

    def given_keys(self) -> dict[str, object]:
        """The keys by which another training has the same data, and holds out the same rows: `data.KEY`.

        They are those that differ from their defaults, and `hold_out`, which heed would choose otherwise.
        """
        keys = flattened(self.model_dump(mode="json", exclude_defaults=True), "data.")
        return keys | {"data.hold_out": self.hold_out} if self.holds_out else keys

    def errors_in_test(self, given: Errors) -> Errors:
        """How to read invalid UTF-8 of a test set: as the training data, unless it is to be replaced there alone."""
        return self.errors if given == "strict" else given

    def require(self, key: str) -> None:
        """Raise UsageError if no file is named by this key, such as `text`, whose flag has the same name."""
        if not getattr(self, key):
            raise UsageError(f"data.{key} is missing: give --{key} F.")

    def resolve(self, path: str) -> str:
        """The path relative to `dir`. Raises UsageError for standard input and pipes."""
        resolved = path if path == "-" else str(Path(self.dir) / path)
        if is_stream(resolved):
            raise UsageError(
                f"{shown_name(resolved)} cannot be read twice, which training requires: write it to a file first."
            )
        return resolved
