"""The `[data]` table of a captioning recipe, and tables of captions.

A table has a row for each caption, with a column that names the image, one with the caption and, if the data is already
divided, one with the name of the part. A list of captions counts as a row for each. All captions of an image belong
together, so that they are in one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.nn.images import PATCH
from heed.tasks.data import DataConfig
from heed.text.archives import shown_name
from heed.text.normalise import Normaliser
from heed.text.readers.lines import Errors
from heed.text.readers.named import find_column, read_named
from heed.text.readers.records import kind_of

Part = Literal["train", "valid", "test"]
PARTS: Mapping[str, Part] = {
    **dict.fromkeys(("", "train", "training", "restval"), "train"),
    **dict.fromkeys(("valid", "val", "validation", "dev"), "valid"),
    **dict.fromkeys(("test", "testing"), "test"),
}  # fmt: skip
"""The part that a cell of the column of parts names."""
IMAGE_COLUMNS = ("image", "image_name", "filename", "file_name", "file", "path")
CAPTION_COLUMNS = ("caption", "captions", "text", "sentence", "description")
SPLIT_COLUMNS = ("split", "part", "set")
"""Usual names of the columns."""


class CaptioningData(DataConfig):
    """Images with captions. Paths are relative to `dir`."""

    path_keys = ("captions", "images", "valid_captions", "valid_images")

    captions: str = ""
    """Table with a row for each caption, or a list of captions (TSV, CSV or JSONL with named columns)."""
    images: str = ""
    """Folder or .tar archive of the images that the table names."""
    valid_captions: str = ""
    """Validation captions; empty: those of the part "dev" of the table, or else images are held out."""
    valid_images: str = ""
    """Validation images; empty: in `images`."""
    image_column: str = ""
    """Column of the image's name; empty: image, filename, file or path."""
    caption_column: str = ""
    """Column of the caption; empty: caption, text, sentence or description."""
    split_column: str = ""
    """Column of the part: train, dev or test (test is not read); empty: split, if there is one."""
    image_size: int = Field(default=64, ge=2 * PATCH, le=512, multiple_of=PATCH)
    """Pixels of each side of the square that an image is scaled to."""
    max_shift: int = Field(default=8, ge=0, le=64)
    """Training images are shifted at random by at most this many pixels in each direction (0: not)."""
    mirror: bool = True
    """Half of the training images are mirrored at random; turn it off if captions say "left" and "right"."""

    @model_validator(mode="after")
    def _check(self) -> CaptioningData:
        if self.max_shift >= self.image_size:
            raise ValueError(f"max_shift must be below image_size, got {self.max_shift} and {self.image_size}")
        return self

    @property
    def holds_out(self) -> bool:
        """False: only the table shows whether images are held out, and preparing it requires enough."""
        return False

    def table(self, path: str) -> CaptionTable:
        """The captions in a file, whose path is relative to `dir`."""
        columns = self.image_column, self.caption_column, self.split_column
        return CaptionTable.read(self.resolve(path), columns, self.errors, self.normaliser)


@dataclass(frozen=True)
class Captioned:
    """An image with all its captions."""

    image: str
    captions: tuple[str, ...]


@dataclass(frozen=True)
class CaptionTable:
    """The captioned images of a table, by part."""

    name: str
    parts: Mapping[Part, Sequence[Captioned]]

    @property
    def all(self) -> list[Captioned]:
        """The images of all parts."""
        return [captioned for part in self.parts.values() for captioned in part]

    @classmethod
    def read(
        cls, path: str | Path, columns: tuple[str, str, str] = ("", "", ""), errors: Errors = "strict",
        normaliser: Normaliser | None = None,
    ) -> CaptionTable:  # fmt: skip
        """Read a table. `columns`: of image, caption and part, empty for the usual names. Empty captions are left out.

        Raises UsageError without the columns; DataError, with file and line, for a malformed table, a field that is no
        text, a part that is not known, an image in several parts, and a table without captions.
        """
        normalise = normaliser.apply if normaliser is not None else str
        captions: dict[str, list[str]] = {}
        part_of: dict[str, Part] = {}
        for place, image, texts, part in _cells(Path(path), columns, errors):
            if part_of.setdefault(image, part) != part:
                raise DataError(
                    f"{place}: the image {image!r:.200} is in {part_of[image]!r} above and in {part!r} here; all "
                    "captions of an image must be in one part."
                )
            if plain := [text for each in texts if (text := normalise(each).strip())]:
                captions.setdefault(image, []).extend(plain)
        if not captions:
            raise DataError(f"{shown_name(path)} has no captions.")
        parts: dict[Part, list[Captioned]] = {}
        for image, of_image in captions.items():
            parts.setdefault(part_of[image], []).append(Captioned(image, tuple(of_image)))
        return cls(shown_name(path), parts)


def _cells(path: Path, columns: tuple[str, str, str], errors: Errors) -> Iterator[tuple[str, str, list[str], Part]]:
    """The place, image, captions and part of each row."""
    name = shown_name(path)
    chosen: tuple[str, str, str] | None = None
    for number, row in read_named(path, errors):
        chosen = chosen or _columns(row, columns, name)
        place = f"{name}:{number}"
        image = _text(row.get(chosen[0]), chosen[0], place).strip()
        split = _text(row.get(chosen[2]), chosen[2], place).strip() if chosen[2] else ""
        if not chosen[2] and (column := next((each for each in _texts_of(row) if _is_split(each)), "")):
            raise DataError(
                f"{place}: the row has a part, in the column {column!r}, and the rows above have none. Give each row "
                "its part."
            )
        if not image:
            raise DataError(f"{place}: no image is named in the column {chosen[0]!r}.")
        if split.casefold() not in PARTS:
            raise DataError(f"{place}: the part is {split!r:.50}; it must be train, dev or test.")
        yield place, image, _captions(row.get(chosen[1]), chosen[1], place), PARTS[split.casefold()]


def _captions(field: Any, column: str, place: str) -> list[str]:
    """The captions of a row: one, or a list of them, which a cell of a table writes as JSON."""
    if isinstance(field, str) and field.strip().startswith("["):
        with suppress(ValueError):
            listed = parse_json(field)
            field = listed if all(each is None or isinstance(each, str) for each in listed) else field
    if isinstance(field, list):
        return [_text(each, column, place, "a list with ") for each in field]
    return [_text(field, column, place)]


def _text(field: Any, column: str, place: str, inside: str = "") -> str:
    """A field that must be a text; nothing is an empty one. `inside`: what it is in."""
    if field is None or isinstance(field, str):
        return field or ""
    raise DataError(f"{place}: the column {column!r} is {inside}{kind_of(field)}; it must be text.")


def _texts_of(row: Mapping[str, Any]) -> list[str]:
    """The columns of a row that are texts."""
    return [column for column, field in row.items() if isinstance(field, str)]


def _columns(row: Mapping[str, Any], given: tuple[str, str, str], place: str) -> tuple[str, str, str]:
    """The columns of image, caption and part; the last is empty if there is none."""
    image, caption, split = given
    names = _texts_of(row)
    can_be_captions = [column for column, field in row.items() if isinstance(field, str | list)]
    image = find_column(names, image, IMAGE_COLUMNS, "--data.image_column", place)
    caption = find_column(can_be_captions, caption, CAPTION_COLUMNS, "--data.caption_column", place)
    if split or any(map(_is_split, names)):
        split = find_column(names, split, SPLIT_COLUMNS, "--data.split_column", place)
    return image, caption, split


def _is_split(name: str) -> bool:
    return name.casefold() in SPLIT_COLUMNS
