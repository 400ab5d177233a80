"""Captioning task: images with several captions each, cross-entropy of the captions, CIDEr-D, BLEU and chrF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heed.core.errors import DataError
from heed.data.augmentation import Augmentation
from heed.data.image_store import ImageStore
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.metrics import METRICS, score_likelihoods, score_several
from heed.metrics.metric import Score
from heed.nn.contract import Autoregressive, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.captioning.batches import CaptionBatch, CaptionLoader, caption_batch, caption_loss, split
from heed.tasks.captioning.captioner import Captioner
from heed.tasks.captioning.data import CaptioningData
from heed.tasks.captioning.defaults import choose_captioning
from heed.tasks.captioning.examine import examine
from heed.tasks.captioning.predictor import CaptioningPredictor
from heed.tasks.captioning.prepare import SIDES, TRAIN_IMAGES, VALID_IMAGES, prepare_captioning
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.generation import likelihoods_of
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loss, Sample, Task, Validation, refuse_settings_of_translation
from heed.text.doctor.findings import Diagnosis
from heed.text.tokenizers import Tokenizer

CAPTIONS_OF_A_TRIAL = 5
"""Captions of an image in the batch that estimates the time of a training."""


class CaptioningTask(Task):
    """Description of images, learned from images with captions."""

    name = "captioning"
    title = "Image captioning"
    row = "captioned image"
    Data = CaptioningData
    sides = SIDES
    metrics = ("cider", "bleu", "chrf", "perplexity")
    headline = ("CIDEr-D", "BLEU", "chrF2")
    tie_breaker = "perplexity"
    chosen_anew = ("model.dropout",)

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return bool(model.generates and model.needs_source) and model.source == "images"

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        if is_new:
            refuse_settings_of_translation(recipe)

    @classmethod
    def examine(cls, data: CaptioningData, quiet: bool) -> Examination:
        return examine(data, quiet)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_captioning(stats, machine, given)

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any], trained: Mapping[str, Any]) -> Sequence[str]:
        return ("data.image_size",)

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        return prepare_captioning(recipe.data, recipe.tokenizer, recipe.seed, folder, reuse, quiet)

    @classmethod
    def require_whole(cls, folder: Path) -> None:
        for name in (TRAIN_IMAGES, VALID_IMAGES):
            ImageStore.open(folder / name, verify=True)

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def valid_images(self) -> ImageStore:
        """The validation images."""
        return ImageStore.open(self.folder / VALID_IMAGES)

    @cached_property
    def valid(self) -> list[tuple[str, ...]]:
        """The captions of each validation image."""
        return read_valid(self.folder)

    def loader(
        self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0
    ) -> CaptionLoader:
        data = self.recipe.data
        return CaptionLoader(
            self.store, ImageStore.open(self.folder / TRAIN_IMAGES),
            Augmentation(self.recipe.seed, data.max_shift, data.mirror), tokens_per_batch=tokens_per_batch, seed=seed,
            rank=rank, world_size=world_size, workers=workers,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        name = ImageStore.open(self.folder / TRAIN_IMAGES).names[row]
        return f"{name}: {self.tokenizers['tgt'].decode([split(self.store.row('tgt', row))[0].tolist()])[0]!r}"

    def loss(
        self, model: Autoregressive, batch: CaptionBatch, dropout_keys: DropoutKeys | None, carried: State | None = None
    ) -> Loss:
        return caption_loss(model, batch, self.recipe.training.smoothing, dropout_keys, self.moving_nll)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> CaptionBatch:
        training, size = self.recipe.training, self.recipe.data.image_size
        per_caption = max(2, min(round(length / CAPTIONS_OF_A_TRIAL), training.tokens_per_batch))
        num_images = max(1, round(training.tokens_per_batch / (per_caption * CAPTIONS_OF_A_TRIAL)))
        ids = torch.randint(4, vocabularies.tgt_size, (num_images, CAPTIONS_OF_A_TRIAL, per_caption - 1)).tolist()
        return caption_batch(np.full((num_images, 3, size, size), 128, dtype=np.uint8), ids, range(num_images))

    def captioner(self, model: Autoregressive) -> Captioner:
        """The model with this run's tokenizer."""
        return Captioner(model, self.tokenizers["tgt"], self.recipe.data.normaliser, self.device)

    def validate(
        self, model: Autoregressive, metrics: Sequence[str], options: SearchOptions | None = None
    ) -> Validation:
        """Scores of greedy captions (or with `options`) against all captions, and perplexity of these captions."""
        captioner, images = self.captioner(model), list(self.valid_images.pixels(range(len(self.valid_images))))
        if len(images) != len(self.valid):
            raise DataError(
                f"{self.folder}: the validation images do not fit their captions. Start again with --overwrite."
            )
        outputs = [each.text.strip() for each in captioner.caption(images, options or self.recipe.decoding.greedy())]
        names = [name for name in metrics if name != "perplexity"]
        language = self.recipe.data.tgt_lang or None
        scores: dict[str, Score] = score_several(outputs, self.valid, language, names, intervals=0)
        if "perplexity" in metrics:
            scored = captioner.score_captions(images, self.valid)
            likelihoods = [
                each for row, tokens in zip(self.valid, scored, strict=True) for each in likelihoods_of(row, tokens)
            ]
            scores["perplexity"] = score_likelihoods(likelihoods, intervals=0)["perplexity"]
        rows = sorted({len(images) * k // 4 for k in range(4)})
        samples = [Sample(self.valid_images.names[row], outputs[row], self.valid[row][0]) for row in rows]
        return Validation(scores, samples)

    @classmethod
    def measures(cls, metric: str) -> bool:
        return metric in METRICS and METRICS[metric].needs == "outputs"

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> CaptioningPredictor:
        return CaptioningPredictor(run, combined)
