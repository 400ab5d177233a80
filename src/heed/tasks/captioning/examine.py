"""Examination of captioned images before training: too few or missing images, and problems in the captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heed.images.files import open_images
from heed.tasks.captioning.data import Captioned, CaptioningData
from heed.tasks.captioning.prepare import divide
from heed.tasks.task import Examination
from heed.text.doctor.findings import Check, Diagnosis, Finding, Tally, Thresholds, sorted_findings
from heed.text.doctor.lines import LineScan

FEWEST, FEW = 40, 5_000
"""With fewer images, training is refused, or warned about."""
REPEATED = Check(
    "duplicate", "repeat that of another image", "Check why: a model learns to write them for any image.",
    warn=Thresholds.warn_repeated,
)  # fmt: skip


def examine(data: CaptioningData, quiet: bool) -> Examination:
    """Read the captions and look for their images. Raises DataError for images that are missing."""
    division = divide(data, seed=0)
    with open_images(data.resolve(data.images)) as files:
        files.require([each.image for each in division.train], data.captions)
    with open_images(data.resolve(division.valid_images)) as files:
        files.require([each.image for each in division.valid], data.valid_captions or data.captions)
    scan, repeated = LineScan("caption"), Tally()
    image_of: dict[str, str] = {}
    captions = [(each.image, text) for each in division.train for text in each.captions]
    for number, (image, text) in enumerate(captions, start=1):
        scan.add(number, text)
        if image_of.setdefault(text, image) != image:
            repeated.add(number, text)
    findings = [*scan.findings(), *REPEATED.findings(repeated, len(captions), "captions"), *_few(division.train)]
    num_images = len(division.train) + (0 if division.has_own_file else len(division.valid))
    return Examination(
        Diagnosis(
            sorted_findings(findings), num_images,
            statistics={"tgt_characters": scan.mean_characters * len(captions) / max(1, len(division.train))},
            summary=(
                f"train: {len(division.train):,} images with {len(captions):,} captions; a caption has "
                f"{scan.mean_words:.1f} words ({scan.mean_characters:.0f} characters). validation: "
                f"{len(division.valid):,} other images.",
            ),
        )
    )  # fmt: skip


def _few(train: Sequence[Captioned]) -> Iterator[Finding]:
    number = len(train)
    if number < FEWEST:
        message = f"There are {number:,} images to train on; a model learns nothing from fewer than {FEWEST}."
        yield Finding("few", "stop", number, number, message, "Provide more images with captions.")
    elif number < FEW:
        message = f"There are {number:,} images to train on, few for a model that learns to see from them alone."
        advice = "Captions will be fluent and often wrong: compare their scores with those of the baselines."
        yield Finding("few", "warn", number, number, message, advice)
