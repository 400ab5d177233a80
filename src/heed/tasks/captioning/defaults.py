"""Default settings of a captioning model, by the number of captioned images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.tasks.defaults import (
    Choices,
    Chosen,
    CorpusStats,
    Machine,
    given_number,
    held_out,
    trained_model_choices,
    vocabulary,
    without,
)

IMAGES_PER_BATCH = 16
FEW = 10_000
"""Below this number of images, models are small and dropout is high."""


def choose_captioning(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a model with soft attention for this number of images, around the keys `given`."""
    images = f"{stats.num_rows:,} images"
    few = stats.num_rows < FEW
    tokens_per_image = max(8.0, stats.characters_per_row / 4)
    tokens_per_batch = round(IMAGES_PER_BATCH * tokens_per_image / 64) * 64 or 64
    per_update = given_number(given, "training.tokens_per_batch", tokens_per_batch) * machine.num_processes
    epoch = max(20, min(1000, round(stats.num_rows * tokens_per_image / per_update)))
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocabulary(given, 2000 if few else 8000, images), epoch),
        **_held_out(stats, given),
        "data.image_size": (64 if machine.device == "cpu" else 128, "pixels; larger images take longer"),
        "model.kind": ("show_attend_tell", "attention over the image; --model.kind=image_transformer is the other"),
        "model.channels": ([32, 64, 128] if few else [64, 128, 256], images),
        "model.dropout": (0.5 if few else 0.3, f"{images}: more dropout for fewer images"),
        "training.tokens_per_batch": (tokens_per_batch, f"about {IMAGES_PER_BATCH} images with all their captions"),
        "training.lr": (1e-3, "peak, after the warm-up"),
        "training.warmup_steps": (200, "updates"),
        "training.stop_metric": ("cider", "made for captions"),
        "training.patience": (15, "validations without a better score end the training"),
        "decoding.beam_size": (3, "wider beams make captions shorter"),
        "decoding.length_norm": ("mean", "captions would be too short otherwise"),
        "decoding.length_penalty": (0.7, "towards longer captions"),
        "decoding.max_tokens": (40, "longer than most captions"),
    }  # fmt: skip
    return without(chosen, given)


def _held_out(stats: CorpusStats, given: Mapping[str, Any]) -> Chosen:
    why = "images for validation, if the table has no part for them"
    return {key: (number, why) for key, (number, _) in held_out(stats, given).items()}
