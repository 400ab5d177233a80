"""Translation with the help of a translation memory: its related pairs, and how far they are trusted.

For each source, the translator reads the pairs whose sources share most with it, with their translations forced, and
looks its next tokens up in what it has read (`heed.models.nearest_neighbours`). How far it trusts them is fitted to
pairs of the memory that are read as if they were not in it: a memory that helps nothing is then hardly used.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from heed.core.errors import DataError
from heed.data.batch import collate
from heed.decoding.scoring import forced_pass, in_length_order
from heed.inference.output_checks import Guard
from heed.inference.sentences import MAX_CHARACTERS
from heed.inference.translator import ModelTranslator
from heed.memory.related import RelatedSentences
from heed.memory.review import is_usable
from heed.memory.store import TranslationMemory
from heed.models.nearest_neighbours import Interpolation, NearestNeighbours, Store, divided, fit
from heed.nn.contract import Autoregressive
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

NUM_RELATED = 16
"""Pairs that are read for each source."""
MAX_REMEMBERED = 500_000
"""Positions of pairs whose features stay on the device: 256 MB with 128 features, 1 GB with 512."""
NUM_FITTED = 100
"""Pairs of the memory that the interpolation is fitted to."""


def read_memory(path: Path, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The translations of a memory that were approved or do not look wrong. `languages`: empty ones if unknown.

    Raises DataError if there are none, and what opening a memory raises.
    """
    guard = Guard()
    with closing(TranslationMemory(path, languages if all(languages) else None)) as memory:
        pairs = [(unit.source, unit.target) for unit in memory.units("new", "approved") if is_usable(unit, guard)]
        if not pairs:
            direction = " to ".join(memory.languages)
            raise DataError(f"{path}: it has no translation in {direction} that was approved or does not look wrong.")
    return pairs


def with_memory(translator: ModelTranslator, pairs: Sequence[tuple[str, str]]) -> Autoregressive:
    """The model of a translator with the help of these pairs. Raises DataError if none of them can be used."""
    related = RelatedPairs(translator, pairs)
    return cast(Autoregressive, NearestNeighbours(translator.model, related.stores, related.fitted()))


class RelatedPairs:
    """The pairs of a translation memory, of which a translator reads those that are related to a source."""

    def __init__(self, translator: ModelTranslator, pairs: Sequence[tuple[str, str]]) -> None:
        """Raises DataError if no pair can be used; those that are too long to be read at once are left out."""
        self.translator = translator
        requests = translator.requests([source for source, _ in pairs], None)
        usable = [n for n, each in enumerate(requests) if each.source and max(map(len, pairs[n])) <= MAX_CHARACTERS]
        if not usable:
            raise DataError("the translation memory has only empty or very long texts.")
        self.sources = [requests[n].source for n in usable]
        self.targets = [pairs[n][1] for n in usable]
        self.index = RelatedSentences([self._without_tag(source) for source in self.sources])
        [(keys, values)] = self._forced(translator.model, [0])
        self._empty = Store(keys[:0], values[:0])
        self._read: dict[int, tuple[Tensor, Tensor]] = {}

    def stores(self, keys: Sequence[Hashable]) -> list[Store]:
        """The store of each source, whose key is its ids with their end."""
        return self._stores([self._related(_ids_of(key), NUM_RELATED) for key in keys])

    def fitted(self) -> Interpolation:
        """The interpolation that makes some pairs most probable, each given the others and not its own source."""
        return fit(*self.looked_up(self, _some(len(self.sources))))

    @torch.no_grad()
    def looked_up(self, pairs: RelatedPairs, numbers: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """What `fit` takes: the tokens of some pairs, which may be these pairs, looked up in pairs of other sources."""

        def others(keys: Sequence[Hashable]) -> list[Store]:
            return self._stores([self._others(_ids_of(key)) for key in keys])

        model = NearestNeighbours(self.translator.model, others, Interpolation(0.0, 1.0, 1.0))
        parts = pairs._forced(cast(Autoregressive, model), numbers)
        features, tokens = (torch.cat(each).clone() for each in zip(*parts, strict=True))
        own, distances, values = divided(features)
        log_prob = self.translator.model.head.log_prob(own.to(self._empty.keys.dtype), tokens)
        return log_prob.cpu(), distances.cpu(), (values == tokens[:, None]).cpu()

    def _related(self, source: tuple[int, ...], number: int) -> list[int]:
        return self.index.find(self._without_tag(source), number)

    def _without_tag(self, source: tuple[int, ...]) -> tuple[int, ...]:
        """A source without its tag, which all sources share."""
        return source[len(self.translator.before_source) :]

    def _others(self, source: tuple[int, ...]) -> list[int]:
        """The pairs related to a source, without those of this source."""
        found = self._related(source, 2 * NUM_RELATED)
        return [n for n in found if self.sources[n] != source][:NUM_RELATED]

    def _stores(self, related: Sequence[Sequence[int]]) -> list[Store]:
        """The stores of some pairs for each source. A pair is read once, and again when it has been forgotten.

        Several threads may call this: what one forgets, another still has, and two may read the same pair.
        """
        read = self._read
        if sum(len(values) for _, values in list(read.values())) > MAX_REMEMBERED:
            read = self._read = {}
        new = sorted({n for of_source in related for n in of_source if n not in read})
        read.update(zip(new, self._forced(self.translator.model, new), strict=True))
        return [Store(*map(torch.cat, zip(self._empty, *(read[n] for n in each), strict=True))) for each in related]

    def _forced(self, model: Autoregressive, numbers: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """For each pair, the features of the model at each position of its target, and the tokens that follow."""
        targets = [self.translator.encoded(None, self.targets[n])[1] for n in numbers]
        lengths = [max(len(self.sources[n]), len(target)) + 1 for n, target in zip(numbers, targets, strict=True)]

        def read(some: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
            sources = [self.sources[numbers[i]] for i in some]
            batch = collate(sources, [targets[i] for i in some], some, BOS_ID, EOS_ID, PAD_ID)
            batch = batch.to(self.translator.device)
            features = forced_pass(model, batch.source, batch.tgt_in)
            return [
                (of_row[mask], tokens[mask])
                for of_row, tokens, mask in zip(features, batch.tgt_out, batch.tgt_mask, strict=True)
            ]

        return in_length_order(lengths, numbers, read)


def _ids_of(key: Hashable) -> tuple[int, ...]:
    """The ids of a source without their end."""
    return cast(tuple[int, ...], key)[:-1]


def _some(number: int) -> list[int]:
    """The pairs, of as many, that the interpolation is fitted to."""
    return random.Random(1).sample(range(number), min(NUM_FITTED, number))
