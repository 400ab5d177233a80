"""Parts of pretrained models as the first weights of a translator (Rothe, Narayan & Severyn 2020).

A masked language model gives the encoder. A translator that was trained on sentences with sources that say nothing
gives the decoder without its attention to the source, which stays random. One vocabulary and one table of vectors
serve both sides. A piece takes its vector from the model in whose text it occurs most often, and keeps its random one
if it occurs in none: a model that never reads a piece has only learned not to predict it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.models.transfer import TRANSFORMER, embedding_name, reader_config, reader_weights
from heed.run import Run, with_other_weights

VECTORS = "encoder.embedding.weight"
"""The vectors of pieces, which encoder, decoder and output layer of a translator share."""
OF_DECODER = ("blocks.", "norm.", "head.")
ATTENDS_TO_SOURCE = ".cross_"
"""In the names of weights: the decoder's attention to the source, and its normalisation."""


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model and the text that it was trained on."""

    run: Run
    sentences: Sequence[str]

    def occurrences(self) -> Tensor:
        """How often each piece occurs in the text, `[V]`; the ends of sentences occur in each."""
        tokenizer = self.run.tokenizers["src"]
        ids = [id for row in tokenizer.encode(list(self.sentences)) for id in row]
        counts = torch.bincount(torch.tensor(ids), minlength=len(tokenizer.vocabulary))
        counts[[tokenizer.vocabulary.bos_id, tokenizer.vocabulary.eos_id]] = len(self.sentences)
        return counts


def require_shared_vectors(translator: Run) -> None:
    """End with an error unless the translator is a Transformer whose vectors of pieces are all shared."""
    config: Any = translator.recipe.model
    if config.kind != TRANSFORMER or config.tie != "all":
        sys.exit("error: parts of models are for --model.kind=transformer with --model.tie=all.")


def encoder_flags(translator: Run) -> list[str]:
    """Recipe keys of the model that a translator's encoder is, to train it alone."""
    values = reader_config(translator.recipe.model).model_dump()
    return [f"--model.{name}={str(value).lower()}" for name, value in values.items()]


def write_start(
    translator: Run, out: Path, masked: Pretrained | None = None, language_model: Pretrained | None = None
) -> None:
    """Write a run with a translator's recipe, its random first weights, and parts of pretrained models in their place.

    `masked`: a masked language model, for the encoder. `language_model`: a translator of sources that say nothing, for
    the decoder.
    """
    weights = {name: parameter.detach() for name, parameter in translator.new_model().named_parameters()}
    pretrained: list[tuple[Tensor, Tensor]] = []
    if language_model is not None:
        trained = language_model.run.weights()
        weights |= {name: each for name, each in trained.items() if _is_of_decoder(name)}
        pretrained.append((language_model.occurrences(), trained[VECTORS]))
    if masked is not None:
        config = masked.run.recipe.model
        encoder = reader_weights(config, masked.run.weights())
        vectors = encoder.pop(embedding_name(config))
        weights |= {f"encoder.{name}": each for name, each in encoder.items()}
        pretrained.append((masked.occurrences(), vectors))
    counts, tables = (torch.stack(each) for each in zip(*pretrained, strict=True))
    most, model = counts.max(0)
    chosen = tables[model, torch.arange(len(most))]
    weights[VECTORS] = torch.where((most > 0)[:, None], chosen, weights[VECTORS])
    with with_other_weights(translator, out, weights, {"pretrained": "parts"}):
        pass


def _is_of_decoder(name: str) -> bool:
    return name.startswith(OF_DECODER) and ATTENDS_TO_SOURCE not in name
