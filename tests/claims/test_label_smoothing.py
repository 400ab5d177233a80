"""Claim of O'Connor's notes: label smoothing by KL divergence, in the three forms that are in use."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heed.nn.contract import Smoothing
from heed.nn.heads import LinearHead, smoothing_weights

FIVE_WORDS = [
    ("uniform", [0.02, 0.02, 0.92, 0.02, 0.02]),
    ("others", [0.025, 0.025, 0.9, 0.025, 0.025]),
    ("no_padding", [0.0, 0.1 / 3, 0.9, 0.1 / 3, 0.1 / 3]),
]
every_form = pytest.mark.parametrize(("kind", "distribution"), FIVE_WORDS)


def head() -> LinearHead:
    """p = (1, 2, 4, 8, 16) / 31 for five words, of which the first is padding."""
    powers = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0]]) * math.log(2)
    return LinearHead(nn.Parameter(powers), pad_id=0, bias=False)


def loss_of(kind: str, epsilon: float = 0.1, truth: int = 2) -> float:
    """heed's loss of a true word, by default the third."""
    mask = torch.tensor([[True]])
    loss, _ = head().loss(torch.ones(1, 1, 1), torch.tensor([[truth]]), mask, Smoothing(epsilon, kind))
    return loss.item()


@every_form
def test_a_tenth_among_five_words_is_shared_in_three_ways(kind: str, distribution: list[float]) -> None:
    """O'Connor, "Label smoothing": (.025, .025, .9, .025, .025), which is ε / (V - 1) on the wrong words. Szegedy et
    al., Vaswani et al. and PyTorch give ε / V to every word, the truth included; the Annotated Transformer ε / (V - 2)
    and none to padding."""
    extra, share, padding = smoothing_weights(Smoothing(0.1, kind), 5)
    assert [padding, share, extra + share, share, share] == pytest.approx(distribution)
    by_hand = sum(q * (math.log(31) - power * math.log(2)) for power, q in enumerate(distribution))
    assert loss_of(kind) == pytest.approx(by_hand, abs=1e-5)


@every_form
def test_each_form_is_a_divergence_and_an_entropy_of_its_own(kind: str, distribution: list[float]) -> None:
    """O'Connor: "we implement label smoothing using the KL div loss". CE(q, p) = KL(q ‖ p) + H(q), and H(q) does not
    depend on the model: the gradients are equal, the numbers are not, and neither are those of two forms."""
    p, q = head().log_probs(torch.ones(1, 1)), torch.tensor([distribution])
    entropy = -sum(share * math.log(share) for share in distribution if share)
    divergence = F.kl_div(p, q, reduction="sum").item()
    assert loss_of(kind) == pytest.approx(divergence + entropy, abs=1e-5)
    assert loss_of(kind) > divergence + 0.1


def test_only_the_uniform_form_is_pytorchs() -> None:
    """The same ε is another loss in another form."""
    logits, rarest = head().logits(torch.ones(1, 1)), torch.tensor([1])
    theirs = F.cross_entropy(logits, rarest, label_smoothing=0.1).item()
    uniform, others, no_padding = (loss_of(kind, 0.1, truth=1) for kind, _ in FIVE_WORDS)
    assert uniform == pytest.approx(theirs, abs=1e-5)
    assert abs(others - theirs) > 0.01 and abs(no_padding - theirs) > 0.01
    assert others == pytest.approx(loss_of("uniform", 0.1 * 5 / 4, truth=1), abs=1e-5)
