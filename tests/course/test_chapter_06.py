"""Solutions of chapter 6: what reading backwards changes, and that probabilities of outputs sum to one."""

from __future__ import annotations

import itertools

import pytest
import torch
from random_models import BOS, EOS, PAD, model_of, random_source

LENGTH = 10


def distances(length: int, backward: bool) -> list[int]:
    """Solution 1: steps from reading source word i to writing its translation, target word i, in a monotone pair.

    Source words are read at steps 1 … T, target words are written at steps T + 1 … 2 T.
    """
    read = [length - i if backward else i + 1 for i in range(length)]
    return [length + 1 + i - read[i] for i in range(length)]


def test_reading_backwards_shortens_the_shortest_distance_and_not_the_mean() -> None:
    forward, backward = distances(LENGTH, backward=False), distances(LENGTH, backward=True)
    assert sum(forward) == sum(backward) == LENGTH**2
    assert set(forward) == {LENGTH}
    assert backward == list(range(1, 2 * LENGTH, 2))


@torch.no_grad()
def test_probabilities_of_all_outputs_sum_to_one_without_a_factor() -> None:
    """Solution 2: those that end within two tokens, and the beginnings of all longer ones. Each step's distribution
    sums to one, so the sum telescopes; divided by T_y it would not."""
    model = model_of("encoder_decoder, thought")
    vocab_size = model.embedding.weight.shape[0]
    words = [id for id in range(vocab_size) if id != EOS]
    ended = [(EOS,), *((word, EOS) for word in words)]
    going = list(itertools.product(words, repeat=2))
    total = 0.0
    for outputs in (ended[:1], ended[1:], going):
        ids = torch.tensor(outputs)
        read = torch.cat((torch.full((len(ids), 1), BOS), ids[:, :-1]), dim=1)
        features, _ = model.advance(read, model.start(random_source([4]), len(ids)))
        total += model.head.log_prob(features, ids).sum(1).exp().sum().item()
    assert total == pytest.approx(1.0, rel=1e-5)
    assert PAD != EOS
