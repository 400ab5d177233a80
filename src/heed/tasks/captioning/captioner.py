"""Captioner: images to captions with the search that all models share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import torch

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.scoring import TokenScores, batches, forced_pass
from heed.images.decode import Pixels, digest_of
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Autoregressive, Source, Trace
from heed.nn.images import ImageSource
from heed.tasks.captioning.batches import caption_batch, features_of
from heed.tasks.predictor import Glance
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID

SCORED_IMAGES = 32
"""Images whose captions are scored at once."""


class ImageKey(tuple[int, ...]):
    """The source of a request: the digest of an image, together with its pixels `[3, S, S]`.

    Requests are compared by the digest, so that equal images are searched once.
    """

    pixels: Pixels

    def __new__(cls, pixels: Pixels) -> Self:
        key = super().__new__(cls, (digest_of(pixels),))
        key.pixels = pixels
        return key


def image_source(sources: Sequence[tuple[int, ...]]) -> Source:
    """The images of several requests as a source."""
    images = [source.pixels for source in sources if isinstance(source, ImageKey)]
    return ImageSource(torch.from_numpy(np.stack(images)))


class Captioner(ModelTranslator):
    """A captioning model with its tokenizer."""

    def __init__(
        self, model: Autoregressive, tokenizer: Tokenizer, normaliser: Normaliser, device: torch.device
    ) -> None:
        super().__init__(model, None, tokenizer, normaliser, device)
        self.make_source = image_source

    def caption(self, images: Sequence[Pixels], options: SearchOptions) -> list[Hypothesis]:
        """The best caption of each image, with the next best as its alternatives if `options.nbest` is above 1."""
        requests = [Request(ImageKey(pixels)) for pixels in images]
        best = self._searcher(sorted(set(requests)), options)
        return [best[request] for request in requests]

    @torch.inference_mode()
    def score_captions(self, images: Sequence[Pixels], captions: Sequence[Sequence[str]]) -> list[list[TokenScores]]:
        """Log-probabilities (nats) of the tokens of each caption of each image, ends of captions included."""
        scores: list[list[TokenScores]] = []
        for part in batches([1] * len(images), SCORED_IMAGES, SCORED_IMAGES):
            ids = [self._encode(self.tgt_tokenizer, list(texts)) for texts in captions[part]]
            batch = caption_batch(np.stack(images[part]), ids, range(len(ids))).to(self.device)
            log_probs = self.model.head.log_prob(features_of(self.model, batch), batch.text.tgt_out).tolist()
            rows = iter(log_probs)
            scores += [
                [TokenScores((*own, EOS_ID), tuple(next(rows)[: len(own) + 1])) for own in of_image] for of_image in ids
            ]
        return scores

    @torch.inference_mode()
    def glances(self, image: Pixels, ids: Sequence[int]) -> tuple[Glance, ...]:
        """The words of a caption and its end, each with the attention, the mean over heads, layers and tokens."""
        trace = Trace()
        batch = caption_batch(image[None], [[list(ids)]], [0]).to(self.device)
        features = forced_pass(self.model, batch.source, batch.text.tgt_in, trace)
        log_probs = self.model.head.log_prob(features, batch.text.tgt_out)[0].double()
        crosses = [torch.cat(pieces, 2).mean(1)[0] for name, pieces in trace.weights.items() if name.endswith("cross")]
        weights = torch.stack(crosses).mean(0).double()  # [T, S]
        pieces = [self.detokenizer.token_bytes[id] for id in ids]
        words = [
            Glance(
                b"".join(pieces[part]).decode(errors="replace").strip(), float(log_probs[part].sum().exp()),
                tuple(weights[part].mean(0).tolist()),
            )
            for part in _words(pieces)
        ]  # fmt: skip
        return (*words, Glance("", float(log_probs[-1].exp()), tuple(weights[-1].tolist())))


def _words(pieces: Sequence[bytes]) -> Iterator[slice]:
    """The tokens of each word: one begins where a token begins with a space, or the token before ends with one."""
    begin = 0
    for end in range(1, len(pieces) + 1):
        if end == len(pieces) or pieces[end][:1].isspace() or pieces[end - 1][-1:].isspace():
            yield slice(begin, end)
            begin = end
