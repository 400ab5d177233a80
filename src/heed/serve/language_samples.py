"""Which sentence pairs of the languages between which it translates does a run folder still have?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from heed.core.errors import DataError, MissingInputError
from heed.data.store import TokenStore
from heed.run import Run
from heed.tasks.prepare import read_valid

MAX_ROWS = 6000
"""Of the training data that are read, at equal distances."""

Pair = tuple[tuple[str, str], tuple[str, str]]
"""The codes of source and target, empty where the run does not say them, and the texts."""


def sample_pairs(run: Run) -> Iterator[Pair]:
    """Validation pairs, and some of each part of the training data, with the languages of its tag."""
    data = run.recipe.data
    with suppress(DataError):
        for source, target in read_valid(run.folder):
            yield data.languages(data.tag_of_validation), (source, target)
    with suppress(DataError, MissingInputError):
        yield from _trained_on(run, TokenStore.open(run.folder / "data" / "train"))


def _trained_on(run: Run, store: TokenStore) -> Iterator[Pair]:
    src, tgt = (run.tokenizers[side] for side in ("src", "tgt"))
    tags = {id: tag for tag, id in src.vocabulary.tag_ids.items()}
    for number in range(0, len(store), -(-len(store) // MAX_ROWS)):
        ids = store.row("src", number).tolist()
        [source], [target] = src.decode([ids]), tgt.decode([store.row("tgt", number).tolist()])
        yield run.recipe.data.languages(tags.get(ids[0], "")), (source, target)
