"""Class models: the product of the classes' model and the words' shares."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from statistical.ngram_oracle import BOS, EOS, PAD, UNK

from heed.core.errors import DataError
from heed.models.class_ngram import ClassNgram, ClassNgramConfig
from heed.nn.contract import Vocabularies
from heed.statistical.class_ngrams import FIRST, ClassModel

SUBJECTS, VERBS, OBJECTS = (4, 5), (6, 7), (8, 9)
VOCAB_SIZE = 11  # the last word is never seen
SENTENCES = [[*words] for words in itertools.product(SUBJECTS, VERBS, OBJECTS)] + [[4, 6, 8]] * 3


def model_of(order: int = 2) -> ClassModel:
    """Three classes of two words each."""
    model = ClassNgram(ClassNgramConfig(order=order, num_classes=3), Vocabularies(0, VOCAB_SIZE))
    model.estimate(SENTENCES)
    predictor = model.head.predictor
    assert isinstance(predictor, ClassModel)
    return predictor


def test_a_probability_is_that_of_the_class_times_that_of_the_word() -> None:
    model = model_of()
    subject, verb, obj = (int(model.classes[words[0]]) for words in (SUBJECTS, VERBS, OBJECTS))
    assert [model.classes[words[1]] for words in (SUBJECTS, VERBS, OBJECTS)] == [subject, verb, obj]
    context = model.follow(model.start[None], np.array([[BOS, 5]]))[0, -1:]
    of_class = np.exp(model.model.log_probs(context))[0]
    row = np.exp(model.log_probs(context))[0]
    assert row[6] == pytest.approx(of_class[verb] * np.exp(model.log_shares[6]), rel=1e-6)
    assert np.exp(model.log_shares[[6, 7]]) @ [1, 1] == pytest.approx(1, abs=0.05), "an unseen word has a share too"
    assert row[6] / row[7] == pytest.approx(7 / 4), "they are seen 7 and 4 times"
    assert row[[PAD, BOS]].tolist() == [0, 0]
    assert row.sum() == pytest.approx(1)


def test_an_unseen_word_counts_as_half_an_occurrence() -> None:
    model = model_of()
    assert model.classes[10] == model.classes[UNK] == FIRST + 2
    mates = [word for word in range(4, 10) if model.classes[word] == model.classes[10]]
    assert model.log_shares[10] == model.log_shares[UNK]
    assert np.exp(model.log_shares[mates[0]] - model.log_shares[10]) == pytest.approx(7 / 0.5)


def test_words_of_a_class_are_one_context() -> None:
    model = model_of(3)
    actual = model.follow(np.tile(model.start, (2, 1)), np.array([[BOS, 4, 7], [BOS, 5, 6]]))
    np.testing.assert_array_equal(actual[0], actual[1])


def test_each_word_has_the_path_of_its_class() -> None:
    paths = model_of().paths
    assert paths[4] == paths[5] != paths[6] == paths[7]
    assert paths[PAD] == paths[BOS] == paths[EOS] == ""
    assert len({paths[4], paths[6], paths[8]}) == 3


def test_a_model_is_restored_from_its_arrays() -> None:
    model = model_of(3)
    again = ClassModel.from_arrays(model.arrays(), VOCAB_SIZE, 3)
    contexts = model.follow(model.start[None], np.array([[BOS, 4, 7, 9]]))[0]
    np.testing.assert_allclose(again.log_probs(contexts), model.log_probs(contexts), rtol=1e-6)
    assert again.paths == model.paths


@pytest.mark.parametrize("what", ["classes", "log_shares", "merges", "missing", "words"])
def test_inconsistent_arrays_are_an_error(what: str) -> None:
    arrays = {name: array.copy() for name, array in model_of().arrays().items()}
    match what:
        case "classes":
            arrays["classes"][4] = 99
        case "log_shares":
            arrays["log_shares"][4] = np.nan
        case "merges":
            arrays["merges"] = arrays["merges"][1:]
        case "missing":
            del arrays["classes"]
        case "words":
            arrays["words"][-1] = 99
    with pytest.raises(DataError, match=r"not an? (class|n-gram) model"):
        ClassModel.from_arrays(arrays, VOCAB_SIZE, 3)
