"""Bigram model: its formula, and counts in old run folders."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from heed.core.errors import DataError
from heed.models.ngram import Bigram, BigramConfig
from heed.nn.contract import Smoothing, Vocabularies

A, B = 4, 5
VOCABULARIES = Vocabularies(src_size=0, tgt_size=6)


def counted() -> Bigram:
    """A model of "a b", "a b" and "a"."""
    model = Bigram(BigramConfig(), VOCABULARIES)
    model.estimate([[A, B], [A, B], [A]])
    return model


def test_probabilities_are_those_of_the_formula() -> None:
    """Pairs: bos a 3, a b 2, b eos 2, a eos 1. D = 1 / (1 + 2 · 2) = 1/5; p(w) = (c(w) + 1) / (8 + 4)."""
    model = counted()
    features, _ = model.advance(torch.tensor([[1, A]]), model.start(None))
    unigram = {2: 4 / 12, 3: 1 / 12, A: 4 / 12, B: 3 / 12}
    after_bos = {w: (3 - 0.2) / 3 * (w == A) + 0.2 / 3 * p for w, p in unigram.items()}
    after_a = {w: ((2 - 0.2) * (w == B) + (1 - 0.2) * (w == 2)) / 3 + 0.2 * 2 / 3 * p for w, p in unigram.items()}
    found = model.head.log_probs(features)[0].exp()
    for position, expected in enumerate((after_bos, after_a)):
        assert found[position, :2].tolist() == [0.0, 0.0], "padding and begin are never predicted"
        assert found[position, 2:].tolist() == pytest.approx(list(expected.values()), abs=1e-6)


def test_a_sentence_is_as_likely_as_its_pairs() -> None:
    model = counted()
    tgt_in, tgt_out = torch.tensor([[1, A, B]]), torch.tensor([[A, B, 2]])
    features, _ = model.advance(tgt_in, model.start(None))
    steps = model.head.log_prob(features, tgt_out)
    loss, nll = model.head.loss(features, tgt_out, torch.ones_like(tgt_out, dtype=torch.bool), Smoothing(0.1))
    assert loss.item() == nll.item() == pytest.approx(-steps.sum().item())
    assert steps[0, 0].item() == pytest.approx(math.log(2.8 / 3 + 0.2 / 3 * 4 / 12), abs=1e-6)


def test_it_has_no_weights_to_train() -> None:
    assert list(counted().parameters()) == []


def test_an_unestimated_bigram_is_uniform() -> None:
    model = Bigram(BigramConfig(), VOCABULARIES)
    features, _ = model.advance(torch.tensor([[1]]), model.start(None))
    assert model.head.log_probs(features)[0, 0, 2:].exp().tolist() == pytest.approx([0.25] * 4)


# --- runs of heed's first days ----------------------------------------------------------------------------


def old_counts() -> dict[str, Any]:
    """The pairs of "a b", "a b" and "a" as they were saved: bos a 3, a end 1, a b 2, b end 2."""
    return {
        "offsets": torch.tensor([0, 0, 1, 1, 1, 3, 4]),
        "words": torch.tensor([A, 2, B, 2], dtype=torch.int32),
        "counts": torch.tensor([3, 1, 2, 2]),
        "predictable": torch.tensor([False, False, True, True, True, True]),
    }


def test_counts_of_an_old_run_give_the_same_probabilities() -> None:
    model, old = counted(), Bigram(BigramConfig(), VOCABULARIES)
    old.load_state_dict(old_counts())
    features, _ = model.advance(torch.tensor([[1, A, B, 3]]), model.start(None))
    torch.testing.assert_close(old.head.log_probs(features), model.head.log_probs(features))


@pytest.mark.parametrize(
    "changes",
    [
        {"words": None},
        {"words": [A, 2, B, 9]},
        {"words": [A, 2, B, 1]},
        {"words": [A, B, 2, 2]},
        {"words": [A, 2, B]},
        {"offsets": [0, 0, 1, 1, 1, 3, 9]},
        {"offsets": [1, 0, 1, 1, 1, 3, 4]},
        {"offsets": [0, 0, 1, 1, 1, 3]},
        {"counts": [3, 1, 0, 2]},
        {"counts": [3.0, 1.0, float("nan"), 2.0]},
    ],
)
def test_wrong_counts_are_refused(changes: dict[str, Any]) -> None:
    arrays = {**old_counts(), **{name: values and torch.tensor(values) for name, values in changes.items()}}
    with pytest.raises(DataError, match=r"not bigram counts|the counts are for \d+ tokens"):
        Bigram(BigramConfig(), VOCABULARIES).load_state_dict({k: v for k, v in arrays.items() if v is not None})
