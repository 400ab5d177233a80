"""What the spelling of words says about the lexical table, against the definition, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heed.statistical.alignment import align
from heed.statistical.alignment import lexicon as lexicon_module
from heed.statistical.alignment import related as related_module
from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.pairs import SentencePairs, Words
from heed.statistical.alignment.related import SPELLING, STEM
from heed.statistical.alignment.smoothing import NONE, STRENGTH, Smoothing
from heed.statistical.alignment.training import train
from heed.statistical.derivation import Bitext
from heed.statistical.phrases.aligned import AlignedBitext
from heed.statistical.phrases.casing import SentenceCase

Text = Sequence[Sequence[str]]
SOURCES = [line.split() for line in ("the ministers of prague", "the minister said", "prague said 12 , 12")]
TARGETS = [line.split() for line in ("ministri z prahy", "ministr řekl", "praha řekla 12 , 12 lidem")]
ALPHA = 0.3


def pairs_of(sources: Text, targets: Text, spelled: bool = True) -> SentencePairs:
    return SentencePairs.of(sources, targets, Words.of(sources), Words.of(targets), spelled)


def pseudo_count(e: str, f: str) -> float:
    shared = next((n for n, (a, b) in enumerate(zip(e, f, strict=False)) if a != b), min(len(e), len(f)))
    return SPELLING * (shared / max(len(e), len(f))) ** 2 if shared >= 3 or e == f else 0.0


def posteriors(aligner: Aligner, pairs: SentencePairs) -> list[list[list[float]]]:
    return [rows.tolist() for rows in aligner.posteriors(pairs)]


def test_each_cell_has_the_probability_of_the_definition() -> None:
    """t of Model 1 in its third iteration, in loops over words; the empty word is the empty string."""
    pairs, smoothing = pairs_of(SOURCES, TARGETS), Smoothing("collapsed", ALPHA)
    own = posteriors(train("ibm1", pairs, iterations=1, smoothing=smoothing), pairs)
    found = posteriors(train("ibm1", pairs, iterations=2, smoothing=smoothing), pairs)
    counts: dict[tuple[str, str], float] = {}
    for source, target, rows in zip(SOURCES, TARGETS, own, strict=True):
        for f, row in zip(target, rows, strict=True):
            for e, mass in zip(["", *source], row, strict=True):
                counts[e, f] = counts.get((e, f), pseudo_count(e, f)) + mass
    text = [f for target in TARGETS for f in target]
    num_targets, num_stems = len(set(text)) + 1, len({f[:STEM] for f in text}) + 1

    def total(counted: Callable[[str, str], bool]) -> float:
        return sum(count for (e, f), count in counts.items() if counted(e, f))

    def t(e: str, f: str, mass: float) -> float:
        of_stem = total(lambda other, _: other[:STEM] == e[:STEM]) - mass
        of_stems = total(lambda other, target: (other[:STEM], target[:STEM]) == (e[:STEM], f[:STEM])) - mass
        share = text.count(f) / sum(other[:STEM] == f[:STEM] for other in text)
        mean = (of_stems + ALPHA) / (of_stem + ALPHA * num_stems) * share
        of_word = total(lambda other, _: other == e) - mass
        return (counts[e, f] - mass + ALPHA + STRENGTH * mean) / (of_word + ALPHA * num_targets + STRENGTH)

    for source, target, before, after in zip(SOURCES, TARGETS, own, found, strict=True):
        for f, masses, row in zip(target, before, after, strict=True):
            weights = [t(e, f, mass) for e, mass in zip(["", *source], masses, strict=True)]
            np.testing.assert_allclose(row, np.array(weights) / sum(weights), atol=1e-6)


def test_without_related_words_nothing_changes() -> None:
    """Each word is then its own stem, and its prior is what it has already."""
    texts = [["a", "b"], ["b", "c"], ["a", "c", "c"]], [["x", "y"], ["y", "z"], ["x", "z"]]
    spelled, numbered = pairs_of(*texts), pairs_of(*texts, spelled=False)
    found, expected = train("hmm", spelled), train("hmm", numbered)
    assert found.lexicon.related is not None and expected.lexicon.related is None
    np.testing.assert_allclose(found.lexicon.probs, expected.lexicon.probs, rtol=1e-6)
    assert found.log_likelihood(spelled) == pytest.approx(expected.log_likelihood(numbered), rel=1e-6)


@pytest.mark.parametrize("smoothing", [NONE, Smoothing("variational", 0.01)], ids=lambda s: s.kind)
def test_other_smoothing_does_not_read_the_spelling(smoothing: Smoothing) -> None:
    likelihoods = [
        train("ibm1", pairs, smoothing=smoothing).log_likelihood(pairs)
        for pairs in (pairs_of(SOURCES, TARGETS), pairs_of(SOURCES, TARGETS, spelled=False))
    ]
    assert likelihoods[0] == likelihoods[1]


def test_the_number_of_entries_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pairs_of(SOURCES, TARGETS)
    expected = train("hmm", pairs)
    monkeypatch.setattr(lexicon_module, "_AT_ONCE", 5)
    monkeypatch.setattr(related_module, "_AT_ONCE", 3)
    found = train("hmm", pairs)
    np.testing.assert_allclose(found.lexicon.probs, expected.lexicon.probs)
    assert found.log_likelihood(pairs) == pytest.approx(expected.log_likelihood(pairs))


def test_an_iteration_on_pairs_of_words_that_the_table_does_not_have() -> None:
    aligner = train("hmm", pairs_of(SOURCES, TARGETS))
    sides = Words.of(SOURCES), Words.of(TARGETS)
    others = SentencePairs.of(SOURCES, TARGETS[::-1], *sides)
    for _ in range(3):
        aligner.estimate(others)
    assert np.isfinite(aligner.log_likelihood(others))


def test_a_form_that_occurs_once_is_linked_as_its_other_forms() -> None:
    sources = [["red", "schools"], ["red", "gardens"], ["old", "schools"], ["garden", "school"]]
    targets = [["czerwone", "szkoły"], ["czerwone", "ogrody"], ["stare", "szkoły"], ["szkole", "ogrodzie"]]
    assert align(sources, targets, "ibm1", "intersection")[3] == {(0, 1), (1, 0)}
    assert align(sources, targets, "ibm1", "intersection", spelled=False)[3] != {(0, 1), (1, 0)}


def test_words_that_are_spelled_alike_are_linked() -> None:
    sources, targets = [["président", "1998", "!"]], [["!", "1998", "president"]]
    assert align(sources, targets, "ibm1") == [{(0, 2), (1, 1), (2, 0)}]
    assert align(sources, targets, "ibm1", spelled=False) != [{(0, 2), (1, 1), (2, 0)}]


class AsWritten(SentenceCase):
    """Leaves each token as it is."""

    def __init__(self) -> None:
        return

    def enter(self, ids: Sequence[int]) -> tuple[list[tuple[int, ...]], bool]:
        return [(id,) for id in ids], False


def test_the_numbers_of_tokens_are_not_compared() -> None:
    bitext = Bitext([([300, 400], [400, 300])], [], None, lambda _: None)
    aligned = AlignedBitext.of(bitext, AsWritten(), "ibm1", Smoothing())
    assert list(aligned.links) != [{(0, 1), (1, 0)}]
