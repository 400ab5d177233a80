"""Normalisation of a line before tokenisation, the same in training and in translation."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from heed.core.config import Config

_SPACES = re.compile(r"[ \t]+")
_CONTROLS = [code for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")]
_LINE_ENDS = "\n\v\f\r\x1c\x1d\x1e\x85"
_WITHOUT_CONTROL: dict[int, str | None] = {
    **dict.fromkeys(_CONTROLS),
    **dict.fromkeys(map(ord, _LINE_ENDS), " "),  # they separated words
    0xFEFF: None,  # a byte-order mark, left inside by concatenating files
}


class Normaliser(Config):
    """The normalisation of a run, saved with it. The defaults leave clean text unchanged."""

    form: Literal["none", "nfc", "nfkc"] = "nfc"
    """Unicode normal form: nfc joins a letter and its accents, nfkc also replaces ligatures, full-width forms, ..."""
    lowercase: bool = False
    """Replace capital letters by small ones."""
    strip_control: bool = True
    """Remove control characters except the tab, and byte-order marks; those that end a line become a space."""
    collapse_spaces: bool = False
    """Replace each run of spaces and tabs by one space, and remove them at the ends. No-break spaces stay."""

    def apply(self, line: str) -> str:
        """The normalised line; normalising it again changes nothing."""
        if self.strip_control and not line.isprintable():
            line = line.translate(_WITHOUT_CONTROL)
        if self.lowercase:
            line = unicodedata.normalize("NFKC", line).lower() if self.form == "nfkc" else line.lower()
        if self.form == "nfc":
            line = unicodedata.normalize("NFC", line)
        elif self.form == "nfkc":
            line = unicodedata.normalize("NFKC", line)
        return _SPACES.sub(" ", line).strip(" ") if self.collapse_spaces else line
