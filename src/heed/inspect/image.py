"""Inspection of a caption: the image, the words, and where the model looked at each of them."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from heed.core.errors import DataError
from heed.images.decode import preview
from heed.images.files import open_images
from heed.tasks.predictor import Predictor, SeenCaption


@dataclass(frozen=True)
class ImageInspection:
    """Everything that is shown of a caption."""

    image: str
    """The image as a `data:` address."""
    caption: SeenCaption
    task: Literal["image"] = "image"

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def inspect_image(predictor: Predictor, place: Path, nbest: int) -> ImageInspection:
    """Caption the image of a file. Raises DataError for a folder or an archive of several images."""
    with open_images(place) as files:
        if len(files.names) != 1:
            raise DataError(f"{place} has {len(files.names):,} images; give one of them.")
        name, content = files.shown(files.names[0]), files.read(files.names[0])
    address = "data:image/png;base64," + base64.b64encode(preview(content, name)).decode()
    return ImageInspection(address, predictor.look(content, nbest))
