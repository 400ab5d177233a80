"""Translation with the help of a translation memory: its related pairs, and how far they are trusted.

For each source, the translator reads the pairs whose sources share most with it, with their translations forced, and
looks its next tokens up in what it has read (`heed.models.nearest_neighbours`). How far it trusts them is fitted to
pairs of the memory that are read as if they were not in it, and to validation data, which may be of another kind: so
the memory helps with what it is about, and leaves the rest alone.

People may add to the memory, approve and reject while it is used; what they do counts from the next search on.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from heed.core.errors import DataError
from heed.data.batch import collate
from heed.decoding.scoring import forced_pass, in_length_order
from heed.inference.sentences import MAX_CHARACTERS
from heed.inference.translator import ModelTranslator
from heed.memory.domain import Domain
from heed.memory.related import RelatedSentences, Usable
from heed.memory.review import guard_of, is_usable
from heed.memory.store import TranslationMemory, Unit, memory_of
from heed.models.nearest_neighbours import (
    Interpolation,
    NearestNeighbours,
    Store,
    Tokens,
    fit,
    looked_up,
)
from heed.nn.contract import Autoregressive
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

NUM_RELATED = 16
"""Pairs that are read for each source."""
MAX_REMEMBERED = 500_000
"""Positions of pairs whose features stay on the device: 256 MB with 128 features, 1 GB with 512."""
NUM_FITTED = 100
"""Pairs of the memory, and of validation data, that the interpolation is fitted to."""
VALIDATION_WEIGHT = 4
"""How many times as much the validation data counts (docs/results/low-resource.md)."""
_UNUSED = Interpolation(0.0, 1.0, 1.0, 0.0, 0.0)
T = TypeVar("T")


def open_memory(path: Path, languages: tuple[str, str]) -> TranslationMemory:
    """A memory with translations that can be used. `languages`: empty ones if unknown.

    Raises DataError if it has none, and what opening a memory raises.
    """
    memory = memory_of(path, languages)
    guard = guard_of(memory.languages)
    if any(_is_readable((unit.source, unit.target)) and is_usable(unit, guard) for unit in memory.units()):
        return memory
    memory.close()
    direction = " to ".join(memory.languages)
    raise DataError(
        f"{path} has no usable translation from {direction}: one that was approved or does not look wrong, and has at "
        f"most {MAX_CHARACTERS:,} characters."
    )


def with_memory(
    translator: ModelTranslator, memory: TranslationMemory, validation: Sequence[tuple[str, str]]
) -> Autoregressive:
    """The model of a translator with the help of a memory, which may have no translations yet.

    `validation`: translations of another kind, which the memory must not spoil; there may be none.
    """
    return cast(Autoregressive, Guide(translator, memory, validation).model)


class Guide:
    """A translation memory as the stores of a translator that it helps. Several threads may search."""

    def __init__(
        self, translator: ModelTranslator, memory: TranslationMemory, validation: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.memory = memory
        self.related = RelatedPairs(translator, validation)
        self.model = NearestNeighbours(translator.model, self.stores, fit([]))
        self._ids: list[int] = []
        """The ids of the units, by the numbers of their pairs."""
        self._last_id = 0
        self._numbers: dict[tuple[str, str], int] = {}
        """The numbers of the pairs, by their texts."""
        self._num_pairs_when_fitted = 0
        self._lock = Lock()
        guard = guard_of(memory.languages)
        self._may_be_used = lru_cache(1 << 16)(lambda unit: is_usable(unit, guard))
        self._update()

    def stores(self, keys: Sequence[Hashable]) -> list[Store]:
        """The store of each source, whose key is its ids with their end."""
        self._update()
        return self.related.stores(keys, self.usable)

    def usable(self, pairs: Sequence[int]) -> list[int]:
        """Those of some pairs that were approved or do not look wrong, by what the memory says now."""
        units: dict[int, Unit] = {unit.id: unit for unit in self.memory.with_ids([self._ids[n] for n in pairs])}
        return [n for n in pairs if (unit := units.get(self._ids[n])) is not None and self._may_be_used(unit)]

    def known(self) -> list[tuple[Tokens, float]]:
        """What `fit` takes: tokens of the memory and of validation data, looked up in pairs of other sources."""
        related = self.related
        ours = [related.pairs[n] for n in self.usable(_some(range(len(related.pairs)))) if related.pairs[n].source]
        parts = ((ours, 1), (_some(related.validation), VALIDATION_WEIGHT))
        return [(related.looked_up(pairs, self.usable), times) for pairs, times in parts if pairs]

    def _update(self) -> None:
        """Take what has been added to the memory; fit again when it has doubled."""
        with self._lock:
            units = self.memory.added_after(self._last_id)
            new = [unit for unit in units if (unit.source, unit.target) not in self._numbers]
            pairs = self.related.encoded([(unit.source, unit.target) for unit in new])
            for unit in units:
                number = self._numbers.setdefault((unit.source, unit.target), len(self._ids))
                self._ids[number : number + 1] = [unit.id]  # a unit that was suggested again has another id
                self._last_id = unit.id
            self.related.add(pairs)
            if new and len(self._ids) >= 2 * self._num_pairs_when_fitted:
                self._num_pairs_when_fitted = len(self._ids)
                self.model.head.interpolation = fit(self.known())


class Pair(NamedTuple):
    """A translation; one that is empty, or too long to be read at once, has no ids."""

    source: tuple[int, ...]
    """The ids of the source, with its tag."""
    target: str


class RelatedPairs:
    """Translations, numbered as they are added, of which a translator reads those that are related to a source."""

    def __init__(self, translator: ModelTranslator, validation: Sequence[tuple[str, str]] = ()) -> None:
        """`validation`: translations that may be of another kind, from which the domain of the others differs."""
        self.translator = translator
        self.pairs: list[Pair] = []
        self.validation = [pair for pair in self.encoded(validation) if pair.source]
        self._index = RelatedSentences()
        self._domain = Domain()
        self._domain.add(1, [self._without_tag(pair.source) for pair in self.validation])
        [(keys, values)] = self._forced(translator.model, [Pair((), "")])
        self._empty = Store(keys[:0], values[:0], keys[:0, :2].float())
        self._read: dict[int, tuple[Tensor, Tensor]] = {}
        self._num_positions = 0
        """Those in `_read`: counting them would take longer than a search."""
        self._lock = Lock()
        """Of the number."""

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """The pairs, to be looked up or added."""
        requests = self.translator.requests([source for source, _ in pairs], None)
        longest = self.translator.longest
        return [
            Pair(request.source if _is_readable(pair) and len(request.source) <= longest else (), pair[1])
            for pair, request in zip(pairs, requests, strict=True)
        ]

    def add(self, pairs: Sequence[Pair]) -> None:
        """Add pairs. One thread at a time may add, while others look up."""
        self.pairs += pairs
        sources = [self._without_tag(pair.source) for pair in pairs]
        self._domain.add(0, sources)
        self._index.add(sources)

    def stores(self, keys: Sequence[Hashable], usable: Usable = list) -> list[Store]:
        """The store of each source, whose key is its ids with their end."""
        return self._stores([_ids_of(key) for key in keys], usable)

    @torch.no_grad()
    def looked_up(self, pairs: Sequence[Pair], usable: Usable = list) -> Tokens:
        """The tokens of pairs, each looked up as if its source were neither in these pairs nor in validation data."""

        def stores(keys: Sequence[Hashable]) -> list[Store]:
            return self._stores([_ids_of(key) for key in keys], usable, are_known=True)

        own = self.translator.model
        model = cast(Autoregressive, NearestNeighbours(own, stores, _UNUSED))
        features, tokens = (torch.cat(each).clone() for each in zip(*self._forced(model, pairs), strict=True))
        return Tokens(*(each.cpu() for each in looked_up(own.head, features, tokens, self._empty.keys.dtype)))

    def _without_tag(self, source: tuple[int, ...]) -> tuple[int, ...]:
        """A source without its tag, which all sources share."""
        return source[len(self.translator.before_source) :]

    def _related(self, source: tuple[int, ...], usable: Usable, is_known: bool) -> dict[int, float]:
        """The usable pairs that are most related to a source, and not its own if it is known, with their similarity."""

        def usable_others(pairs: Sequence[int]) -> Sequence[int]:
            return usable([n for n in pairs if not is_known or self.pairs[n].source != source])

        return self._index.find(self._without_tag(source), NUM_RELATED, usable_others)

    def _stores(self, sources: Sequence[tuple[int, ...]], usable: Usable, are_known: bool = False) -> list[Store]:
        """The stores of sources. A pair is read once, and again when it has been forgotten.

        Several threads may call this: what one forgets, another still has, and two may read the same pair.
        """
        related = [self._related(source, usable, are_known) for source in sources]
        with self._lock:
            if self._num_positions > MAX_REMEMBERED:
                self._read, self._num_positions = {}, 0
            read = self._read
        new = sorted({n for of_source in related for n in of_source if n not in read})
        features = self._forced(self.translator.model, [self.pairs[n] for n in new])
        read.update(zip(new, features, strict=True))
        with self._lock:
            self._num_positions += sum(len(values) for _, values in features)
        stores = []
        for source, of_source in zip(sources, related, strict=True):
            domain = self._domain.log_ratio(self._without_tag(source), are_known)
            parts = [
                (*read[n], self._empty.evidence.new_tensor([[similarity, domain]]).expand(len(read[n][1]), 2))
                for n, similarity in of_source.items()
            ]
            stores.append(Store(*map(torch.cat, zip(self._empty, *parts, strict=True))))
        return stores

    def _forced(self, model: Autoregressive, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """The features of the model at each position of the target of each pair, and the tokens that follow."""
        targets = [self.translator.encoded(None, pair.target)[1] for pair in pairs]
        lengths = [max(len(pair.source), len(target)) + 1 for pair, target in zip(pairs, targets, strict=True)]

        def read(some: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
            sources = [pairs[i].source for i in some]
            batch = collate(sources, [targets[i] for i in some], some, BOS_ID, EOS_ID, PAD_ID)
            batch = batch.to(self.translator.device)
            features = forced_pass(model, batch.source, batch.tgt_in)
            return [
                (of_row[mask], tokens[mask])
                for of_row, tokens, mask in zip(features, batch.tgt_out, batch.tgt_mask, strict=True)
            ]

        return in_length_order(lengths, range(len(pairs)), read)


def _is_readable(pair: tuple[str, str]) -> bool:
    """Whether both texts have words, and few enough characters to be read at once."""
    return all(text.strip() and len(text) <= MAX_CHARACTERS for text in pair)


def _ids_of(key: Hashable) -> tuple[int, ...]:
    """The ids of a source without their end."""
    return cast(tuple[int, ...], key)[:-1]


def _some(pairs: Sequence[T]) -> list[T]:
    """The pairs, of as many, that the interpolation is fitted to."""
    return random.Random(1).sample(pairs, min(NUM_FITTED, len(pairs)))
