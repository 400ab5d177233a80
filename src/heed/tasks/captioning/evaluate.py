"""Evaluation of captions against all references of each image, next to baselines that copy training captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.progress import message
from heed.data.image_store import ImageStore
from heed.data.line_hashes import LineHashes
from heed.evaluation.evaluation import INTERVALS, Evaluation, compare_all, precision_of
from heed.evaluation.leakage import Leakage
from heed.evaluation.outputs import System, composed, search_of
from heed.evaluation.test_set import HeldOut
from heed.images.decode import decode, digest_of
from heed.images.files import open_images
from heed.metrics import statistics_of_several
from heed.run import Run
from heed.tasks.captioning.baselines import baseline_captions
from heed.tasks.captioning.data import Captioned, CaptionTable
from heed.tasks.captioning.prepare import VALID_IMAGES
from heed.tasks.prepare import LINES_SEEN
from heed.text.readers.lines import Errors

METRICS = ("cider", "bleu", "chrf")


@dataclass(frozen=True)
class CaptionedTest:
    """Test images with their captions."""

    name: str
    captioned: Sequence[Captioned]
    contents: Sequence[tuple[str, bytes]]
    """The name and the bytes of each image file."""

    def pixels(self, size: int) -> NDArray[np.uint8]:
        """The images `[N, 3, size, size]`."""
        return np.stack([decode(content, name, size) for name, content in self.contents])

    @property
    def held_out(self) -> HeldOut:
        """The test set as reports name it."""
        return HeldOut(
            (self.name,), [("\t".join((each.image, *each.captions)),) for each in self.captioned], unit="image"
        )


def read_test(
    captions: Path, images: Path, columns: tuple[str, str, str], quiet: bool = False, errors: Errors = "strict"
) -> CaptionedTest:
    """The images of the part "test" of a table of captions, or all if it has no such part."""
    table = CaptionTable.read(captions, columns, errors)
    captioned = list(table.parts.get("test", ())) or table.all
    if len(captioned) < len(table.all):
        message(f"{table.name}: {len(captioned):,} of {len(table.all):,} images are in its part test", quiet)
    with open_images(images) as files:
        names = files.require([each.image for each in captioned], table.name)
        contents = [(files.shown(name), files.read(name)) for name in names]
    return CaptionedTest(captions.name, captioned, contents)


def evaluate_captions(
    test: HeldOut, references: Sequence[Sequence[str]], systems: Sequence[System], leaks: Sequence[Leakage | None],
    language: str | None,
) -> list[Evaluation]:  # fmt: skip
    """Score the captions of each system in Unicode's form NFC; those after the first are compared with it."""
    references = [list(map(composed, of_one)) for of_one in references]
    first: Mapping[str, Any] = {}
    evaluations = []
    for system, leakage in zip(systems, leaks, strict=True):
        statistics = statistics_of_several(list(map(composed, system.outputs)), references, language, METRICS)
        evaluations.append(
            Evaluation(
                system=system.name, test=test, run=system.run, leakage=leakage,
                scores={name: each.score(INTERVALS) for name, each in statistics.items()},
                how={**search_of(system), **precision_of(system)}, against_first=compare_all(first, statistics),
                num_rows=len(references),
            )
        )  # fmt: skip
        first = first or statistics
    return evaluations


def check_images(run: Run, images: NDArray[np.uint8]) -> Leakage | None:
    """Look up the pixels of test images in the run's training and validation data."""
    known = LineHashes.open(run.files, LINES_SEEN)
    if known is None:
        return None
    rows = [(f"{digest_of(image):032x}",) for image in images]
    seen = known.found(rows)["tgt"]
    valid: set[int] = set()
    if run.files.has(VALID_IMAGES):
        store = ImageStore.open(run.folder / VALID_IMAGES)
        valid = {digest_of(image) for image in store.pixels(range(len(store)))}
    in_validation = sum(digest_of(image) in valid for image in images)
    lines = tuple((np.flatnonzero(seen) + 1).tolist())
    return Leakage(len(rows), {"tgt": len(lines)}, in_validation, lines, len(rows))


def with_baselines(run: Run, images: NDArray[np.uint8]) -> list[System]:
    """The captions of the baselines as systems."""
    return [System(name, outputs) for name, outputs in baseline_captions(run, images).items()]
