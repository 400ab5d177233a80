"""Which sentence pairs of the languages between which it translates does a run folder still have?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from heed.core.errors import DataError, MissingInputError
from heed.data.store import TokenStore
from heed.run import Run
from heed.tasks.prepare import read_valid, vocabulary_digests

PLACES, NEIGHBOURS = 200, 10
"""At so many places of the training data, in equal distances, so many rows are read."""

Pair = tuple[tuple[str, str], tuple[str, str]]
"""The codes of source and target, empty where the run does not say them, and the texts."""


def sample_pairs(run: Run) -> Iterator[Pair]:
    """Validation pairs, and some of each part of the training data, with the languages of its tag.

    Nothing but detection needs them: what is missing or damaged is left out.
    """
    data = run.recipe.data
    with suppress(DataError):
        for row in read_valid(run.folder):
            if len(row) == 2:
                yield data.languages(data.tag_of_validation), (row[0], row[1])
    with suppress(DataError, MissingInputError, OSError):
        store = TokenStore.open(run.folder / "data" / "train")
        if vocabulary_digests(run.tokenizers).items() <= store.manifest.fingerprint.items():
            yield from _trained_on(run, store)


def _trained_on(run: Run, store: TokenStore) -> Iterator[Pair]:
    src, tgt = (run.tokenizers[side] for side in ("src", "tgt"))
    tags = {id: tag for tag, id in src.vocabulary.tag_ids.items()}
    distance = max(NEIGHBOURS, len(store) // PLACES)
    for place in range(0, len(store), distance):
        for number in range(place, min(place + NEIGHBOURS, len(store))):
            ids = store.row("src", number).tolist()
            [source], [target] = src.decode([ids]), tgt.decode([store.row("tgt", number).tolist()])
            yield run.recipe.data.languages(tags.get(ids[0], "") if ids else ""), (source, target)
