"""Which sentence pairs is a translator trained on, and which are kept for validation?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from heed.core.progress import watched
from heed.tasks import prepare
from heed.tasks.config import DataConfig
from heed.tasks.parts import Part
from heed.text.pair_filter import PairFilter
from heed.text.readers import CorpusFiles, read_pairs


def normalised_pairs(data: DataConfig, files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """The pairs of some files, normalised."""
    return ((data.normaliser.apply(src), data.normaliser.apply(tgt)) for src, tgt in read_pairs(files, data.errors))


def filtered_pairs(data: DataConfig, files: CorpusFiles, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Training pairs, normalised, without those that the filter drops."""
    pair_filter = PairFilter(data.filter)
    for row in normalised_pairs(data, files):
        reason = pair_filter.reason_to_drop(*row)
        if reason is None:
            yield row
        else:
            dropped[reason] += 1


class TrainingPairs:
    """The training pairs of each part, without what is held out for validation. Read as often as is asked."""

    def __init__(self, data: DataConfig, seed: int, num_pairs: int, quiet: bool) -> None:
        """`num_pairs`: those of the first part."""
        self.data = data
        self.seed = seed
        self.num_pairs = num_pairs
        self.quiet = quiet
        self.parts = data.train_parts()
        self.held: frozenset[str] = frozenset()
        """The sentences of both sides of the validation data, once they are known."""

    def held_out(self) -> Iterator[prepare.Row]:
        """The validation data: of its own files, or some pairs of the first part."""
        if files := self.data.valid_files():
            return normalised_pairs(self.data, files)
        return self._split(self._kept(self.parts[0], Counter(), "holding out"), held=True)

    def of(self, part: Part, dropped: Counter[str], title: str) -> Iterator[prepare.Row]:
        """The training pairs of a part."""
        pairs = self._kept(part, dropped, title)
        if self.data.valid_files():
            return pairs
        return self._without_held(pairs if part.number else self._split(pairs, held=False), dropped)

    def all(self, title: str) -> Iterator[prepare.Row]:
        """Those of all parts, each once."""
        return chain.from_iterable(self.of(part, Counter(), title) for part in self.parts)

    def _kept(self, part: Part, dropped: Counter[str], title: str) -> Iterator[prepare.Row]:
        title += f" {part.label}" if part.number else ""
        return watched(filtered_pairs(self.data, part.files, dropped), title, "pairs", self.quiet)

    def _split(self, pairs: Iterable[prepare.Row], held: bool) -> Iterator[prepare.Row]:
        return prepare.split_rows(pairs, self.num_pairs, self.data.num_held_out, self.seed, held)

    def _without_held(self, pairs: Iterable[prepare.Row], dropped: Counter[str]) -> Iterator[prepare.Row]:
        """Without either side of what was held out: it may stand in another part, or have several translations."""
        for row in pairs:
            if not self.held.isdisjoint(row):
                dropped["held out for validation"] += 1
            else:
                yield row
