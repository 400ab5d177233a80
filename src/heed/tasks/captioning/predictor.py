"""Predictor of a captioning run: captions of images, their scores, and what the model looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.core.progress import message
from heed.data.image_store import ImageStore
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import System
from heed.evaluation.test_set import HeldOut
from heed.images.decode import MAX_PIXELS, Pixels, decode
from heed.images.files import open_images
from heed.nn.images import PATCH
from heed.report.usability import usability
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.arguments import require_top, several
from heed.tasks.captioning.captioner import Captioner
from heed.tasks.captioning.data import CaptioningData
from heed.tasks.captioning.evaluate import check_images, evaluate_captions, read_test, with_baselines
from heed.tasks.captioning.prepare import VALID_IMAGES
from heed.tasks.predictor import ALONE, Combination, Prediction, Predictor, SeenCaption
from heed.text.readers.lines import Errors

Image = str | Path | bytes | NDArray[np.uint8]
"""An image file, by its path or as its bytes; or its decoded pixels."""
AT_ONCE = 64
"""Images that are decoded and captioned at once."""


class CaptioningPredictor(Predictor):
    """A trained captioning model."""

    abilities = frozenset({"caption"})
    run: Run

    def __init__(self, run: Run, combined: Combination = ALONE) -> None:
        super().__init__(run, combined)
        self.data: CaptioningData = run.recipe.data

    @cached_property
    def captioner(self) -> Captioner:
        """The model with its tokenizer."""
        return Captioner(self.run.model, self.run.tokenizers["tgt"], self.data.normaliser, self.run.device)

    @property
    def not_usable(self) -> str:
        """Why the model is not usable yet; empty for a usable one."""
        return usability(self.run)

    def predict(self, inputs: Sequence[Any], top: int = 1) -> list[list[Prediction]]:
        """Return the `top` best captions of each image, given as a path or as the bytes of a file."""
        return self.caption(inputs, top)

    def warm_up(self) -> None:
        self.look(np.full((3, self.data.image_size, self.data.image_size), 128, dtype=np.uint8))

    def caption(self, images: Sequence[Any], top: int = 1) -> list[list[Prediction]]:
        require_top(top)
        is_single = isinstance(images, np.ndarray) and images.ndim == 3
        each: Sequence[Any] = [images] if is_single else several(images)
        pixels = [self.pixels(image) for image in each]
        return [_predictions(best, top) for best in self.captions(pixels, top)]

    def look(self, image: Any, top: int = 1) -> SeenCaption:
        require_top(top)
        pixels = self.pixels(image)
        [best] = self.captions([pixels], top)
        side = self.data.image_size // PATCH
        words = self.captioner.glances(pixels, best.ids)
        return SeenCaption(best.text.strip(), words, side, side, tuple(each.text.strip() for each in best.alternatives))

    def caption_files(self, place: Path, top: int = 1) -> Iterator[tuple[str, list[Prediction]]]:
        require_top(top)
        with open_images(place) as files:
            names = iter(files.names)
            while chunk := list(islice(names, AT_ONCE)):
                pixels = [decode(files.read(name), files.shown(name), self.data.image_size) for name in chunk]
                for name, best in zip(chunk, self.captions(pixels, top), strict=True):
                    yield name, _predictions(best, top)

    def captions(self, images: Sequence[Pixels], top: int = 1) -> list[Hypothesis]:
        """The best caption of each image, with up to `top - 1` alternatives, by the recipe's search."""
        options = self.run.recipe.decoding
        if top > 1:
            options = options.model_copy(update={"nbest": top, "beam_size": max(top, options.beam_size)})
        return self.captioner.caption(images, options)

    def image_pixels(self, image: bytes, name: str, max_pixels: int = MAX_PIXELS) -> Pixels:
        return decode(image, name, self.data.image_size, max_pixels)

    def pixels(self, image: Image) -> Pixels:
        """The pixels of an image as the model reads them. Raises DataError for what is not an image."""
        size = self.data.image_size
        if isinstance(image, np.ndarray):
            return image
        if isinstance(image, bytes):
            return self.image_pixels(image, "the image")
        with open_images(image) as files:
            return decode(files.read(files.names[0]), files.shown(files.names[0]), size)

    def evaluate_captions(
        self, captions: Path, images: Path, others: Sequence[Any] = (), quiet: bool = False, errors: Errors = "strict"
    ) -> list[Evaluation]:
        data = self.data
        columns = data.image_column, data.caption_column, data.split_column
        test = read_test(captions, images, columns, quiet, data.errors_in_test(errors))
        systems, leaks = [], []
        for predictor in (self, *others):
            assert isinstance(predictor, CaptioningPredictor)
            message(f"captioning {test.held_out.label} with {predictor.run.folder}", quiet)
            pixels = test.pixels(predictor.data.image_size)
            systems.append(predictor.system(list(pixels), predictor.run.recipe.decoding))
            leaks.append(check_images(predictor.run, pixels))
        baselines = with_baselines(self.run, test.pixels(data.image_size))
        references = [each.captions for each in test.captioned]
        every = [*systems, *baselines]
        return evaluate_captions(
            test.held_out, references, every, [*leaks, *[None] * len(baselines)], data.tgt_lang or None
        )

    def system(self, images: Sequence[Pixels], options: SearchOptions) -> System:
        """The run's captions of images as a system to evaluate."""
        outputs = [best.text.strip() for best in self.captioner.caption(images, options)]
        return System(str(self.run.folder), outputs, self.run, options)

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        """Scores on the validation images with the recipe's search, next to those of the baselines."""
        message("captioning the validation images for the report", quiet)
        store = ImageStore.open(self.run.folder / VALID_IMAGES)
        pixels, references = store.pixels(range(len(store))), read_valid(self.run.folder)
        system = self.system(list(pixels), self.run.recipe.decoding)
        systems = [system, *with_baselines(self.run, pixels)]
        test = HeldOut(
            ("image",), [(name, *row) for name, row in zip(store.names, references, strict=True)], unit="image"
        )
        language = self.data.tgt_lang or None
        own, *baselines = evaluate_captions(test, references, systems, [None] * len(systems), language)
        return {**measured(own), "baselines": [each.to_json() for each in baselines]}

    def require_probabilities(self) -> None:
        raise UsageError(f"{self.run.folder}: captions have no probabilities.")

    def commands(self, name: str) -> Sequence[str]:
        return [
            f"heed predict {name} --images image.jpg",
            f"heed evaluate {name} --captions captions.tsv --images images.tar",
        ]

    def facts(self) -> Mapping[str, Any]:
        return {"image size": f"{self.data.image_size} × {self.data.image_size} pixels"}


def _predictions(best: Hypothesis, top: int) -> list[Prediction]:
    return [Prediction(each.text.strip()) for each in (best, *best.alternatives)][:top]
