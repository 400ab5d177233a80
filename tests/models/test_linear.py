"""The linear model is the same however few texts and entries are held at a time."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import torch

from heed.core.errors import UsageError
from heed.models.linear import Examples, LinearConfig, LinearNgrams
from heed.nn.contract import Vocabularies
from heed.statistical.ngram_table import NgramNames
from heed.statistical.text_ngrams import NgramOrders, ngrams_of


def fitted(pairs: bool) -> LinearNgrams:
    """A model of two labels over random texts or pairs of them, some with repeated words."""
    drawn = random.Random(1)
    texts = [" ".join(drawn.choices(["good", "bad", "film", "naïve", "a"], k=6)) for _ in range(120)]
    rows = list(zip(texts[::2], texts[1::2], strict=True)) if pairs else [(text,) for text in texts]
    labels = torch.tensor([float("good" in row[0]) for row in rows])
    full = torch.stack((1 - labels, labels), 1)
    model = LinearNgrams(LinearConfig(), Vocabularies(0, 2))
    model.estimate(Examples(lambda: rows[10:], full[10:, 1:].contiguous(), rows[:10], full[:10], "label", True))
    return model


@pytest.mark.parametrize("pairs", [False, True])
def test_the_model_does_not_depend_on_how_much_is_held_at_a_time(pairs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted(pairs)
    monkeypatch.setattr("heed.models.ngram_blocks._CHARACTERS", 90)
    monkeypatch.setattr("heed.nn.incidence.ENTRIES", 70)
    monkeypatch.setattr("heed.nn.incidence.KEPT", 0)
    monkeypatch.setattr("heed.statistical.ngram_table._NAMES", 5)
    in_parts = fitted(pairs)
    assert whole.state_dict().keys() == in_parts.state_dict().keys()
    for name, array in whole.state_dict().items():
        assert array.equal(in_parts.state_dict()[name]), name


def test_a_model_of_an_earlier_version_cuts_words_at_marks_as_it_was_fitted() -> None:
    model = fitted(pairs=False)
    state = model.state_dict()
    model.load_state_dict(state)
    assert not model.orders.cut_at_marks and model.orders == NgramOrders()
    model.load_state_dict({**state, "how": state["how"][:6]})
    assert model.orders.cut_at_marks


@pytest.mark.parametrize(
    "keys", [{"characters": 1}, {"min_characters": 4, "characters": 3}, {"max_features": (1 << 24) + 1}]
)
def test_ngrams_that_cannot_be_features_are_refused(keys: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=list(keys)[-1]):
        LinearConfig(**keys)


@pytest.mark.parametrize(("least", "most", "longest"), [(2, 80, 3), (4, 32, 4), (4, 20, 0), (5, 20, 0)])
def test_in_a_large_corpus_the_longest_ngrams_that_fit_are_features(
    least: int, most: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("one two three four",), ("five six seven eight",)]
    model = LinearNgrams(LinearConfig(words=1, min_characters=least, min_count=1), Vocabularies(0, 2))
    examples = Examples(lambda: rows, torch.tensor([[0.0], [1.0]]), (), torch.zeros(0, 2), "label")
    monkeypatch.setattr("heed.models.linear.MAX_ENTRIES", most)
    model.estimate(examples)
    assert model.facts["characters"] == longest


def test_ngrams_are_named_as_they_are_written() -> None:
    ngrams = ngrams_of(["Naïve film", "film"], NgramOrders(1, 2, 0))
    [found] = ngrams.kinds
    vocabulary = found.hashes[:0]
    assert [each.tolist() for each in NgramNames(vocabulary).arrays()] == [[0], [0]]
    vocabulary = torch.from_numpy(found.hashes.view("int64")).unique().numpy().view("uint64")
    vocabulary.sort()
    names = NgramNames(vocabulary)
    names.add(found, ngrams)
    text, ends = names.arrays()
    written = [text[begin:end].tobytes().decode() for begin, end in pairwise(ends)]
    assert sorted(name for name in written if name.strip("\n")) == ["film", "naïve"]
