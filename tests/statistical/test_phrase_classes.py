"""Classes of target words in phrase-based translation, and the model of them."""

from __future__ import annotations

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.statistical.phrases.language import LanguageScorer
from heed.statistical.phrases.training import language_model
from heed.statistical.phrases.word_classes import FIRST, LEFT_OUT, ClassLanguage, in_classes, word_classes
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

SIZE, NOUNS, VERBS = 20, range(5, 11), range(11, 17)
UNSEEN, LETTER = 17, 18


def sentences() -> list[list[int]]:
    """Nouns and verbs in turn, beginning with a noun."""
    rng = np.random.default_rng(1)
    return [
        [int(rng.choice(NOUNS if place % 2 == 0 else VERBS)) for place in range(int(rng.integers(1, 9)))]
        for _ in range(200)
    ]


def classes(number: int = 2) -> np.ndarray:
    """The classes of these sentences' words, next to an unseen word and a letter."""
    return word_classes(sentences(), np.arange(SIZE) == LETTER, number)


def test_words_with_the_same_neighbours_share_a_class() -> None:
    found = classes()
    assert len(set(found[list(NOUNS)])) == len(set(found[list(VERBS)])) == 1
    assert {found[NOUNS[0]], found[VERBS[0]]} == {FIRST, FIRST + 1}


def test_what_the_text_does_not_have_is_unknown_and_a_continuation_is_left_out() -> None:
    found = classes()
    assert (found[UNSEEN], found[LETTER]) == (UNK_ID, LEFT_OUT)
    assert found[[PAD_ID, BOS_ID, EOS_ID]].tolist() == [PAD_ID, BOS_ID, EOS_ID]
    assert in_classes(found, [[5, UNSEEN, LETTER, LETTER, 11]]) == [[found[5], UNK_ID, found[11]]]


def test_a_text_of_fewer_words_than_classes_has_a_class_for_each() -> None:
    found = classes(number=50)
    assert sorted(found[[*NOUNS, *VERBS]]) == list(range(FIRST, FIRST + 12))


def test_words_are_scored_by_their_classes_as_the_classes_themselves() -> None:
    found = classes()
    model = language_model(in_classes(found, sentences()), 3, FIRST + 2)
    scorer, of_classes = LanguageScorer(model, found), LanguageScorer(model)
    words = np.array([[5, 12, UNSEEN, LETTER, 7], [6, LETTER, 11, 11, 11]])
    lengths = np.array([5, 3])
    start = np.full(2, scorer.start)
    sums, after = scorer.phrases(start, words, lengths)
    known = np.array([[found[5], found[12], UNK_ID, found[7]], [found[6], found[11], PAD_ID, PAD_ID]])
    expected, states = of_classes.phrases(start, known, np.array([4, 2]))
    assert sums == pytest.approx(expected)
    assert after.tolist() == states.tolist()
    [noun, verb], _ = scorer.phrases(start, np.array([[5], [11]]), np.array([1, 1]))
    assert noun > verb  # sentences begin with a noun


def test_arrays_are_read_as_they_were_and_refused_if_they_do_not_fit() -> None:
    found = classes()
    written = ClassLanguage(found, language_model(in_classes(found, sentences()), 3, FIRST + 2)).arrays()
    read = ClassLanguage.from_arrays(written, SIZE)
    assert (read.classes == found).all()
    assert all((read.model.arrays()[name] == array).all() for name, array in written.items() if name != "classes")
    for wrong in (found[:-1], np.where(found == FIRST, -2, found), np.where(found == FIRST, FIRST + 9, found)):
        with pytest.raises(DataError):
            ClassLanguage.from_arrays({**written, "classes": wrong.astype(np.int32)}, SIZE)
    with pytest.raises(DataError, match="'classes' is missing"):
        ClassLanguage.from_arrays({name: array for name, array in written.items() if name != "classes"}, SIZE)
