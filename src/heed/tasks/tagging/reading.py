"""Reading of a text by a tagger: words, taggings, and the lattice of the tags that it considers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heed.nn.contract import Trace
from heed.tasks.reading import Lattice, Reading, of_kind, spelled_words
from heed.tasks.tagging.prediction import prediction_of
from heed.tasks.tagging.tagger import Tagger
from heed.tasks.words import Words
from heed.text.words import split_words

MOST_TAGGINGS = 5
"""Taggings of a reading."""
IMPROBABLE = 0.005
"""Tags and steps below this probability are left out of a lattice, except those of the best tagging."""


def read(tagger: Tagger, text: str) -> Reading:
    """A text as a tagger reads it. Without a word, it has no lattice."""
    places = split_words(text)
    sentence = Words([place.text for place in places])
    if not places:
        return Reading(())
    [taggings] = tagger.taggings([sentence], MOST_TAGGINGS)
    answers = tuple(prediction_of(text, places, tagging) for tagging in taggings)
    words = spelled_words(text, places)
    traced = tagger.traced(sentence)
    if traced is None or not traced[0].weights:
        return Reading(tuple(words), (), Trace(), answers, lattice=lattice_of(tagger, sentence))
    trace, starts, number = traced
    bounds = [slice(*pair) for pair in pairwise([*starts, number - 1, number])]
    if starts[0]:
        words, bounds = [of_kind("begin"), *words], [slice(0, starts[0]), *bounds]
    return Reading((*words, of_kind("end")), tuple(bounds), trace, answers, lattice=lattice_of(tagger, sentence))


def lattice_of(tagger: Tagger, sentence: Words) -> Lattice:
    """The probable tags of each word, and the probable steps between them. Parts of a long sentence have no steps."""
    parts = tagger.masses(sentence)
    marginals = np.concatenate([masses.marginals(0) for masses, _ in parts])
    best = [tag for _, tags in parts for tag in tags]
    shown = sorted({*best, *np.flatnonzero(marginals.max(0) >= IMPROBABLE).tolist()})
    row_of = {tag: row for row, tag in enumerate(shown)}
    nothing: list[tuple[tuple[int, int, float], ...]] = [()]
    steps: list[tuple[tuple[int, int, float], ...]] = []
    for masses, _ in parts:
        steps += (nothing if masses is not parts[0][0] else []) + [_probable(each, row_of) for each in masses.steps(0)]
    return Lattice(
        tuple(tagger.labels.labels[tag] for tag in shown),
        tuple(tuple(round(p, 4) for p in row) for row in marginals[:, shown].tolist()),
        tuple(steps), tuple(row_of[tag] for tag in best),
    )  # fmt: skip


def _probable(step: NDArray[np.float64], row_of: dict[int, int]) -> tuple[tuple[int, int, float], ...]:
    """The probable pairs of tags of neighbouring words."""
    return tuple(
        (row_of[before], row_of[tag], round(float(step[before, tag]), 4))
        for before, tag in np.argwhere(step >= IMPROBABLE).tolist()
        if before in row_of and tag in row_of
    )
