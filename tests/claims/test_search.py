"""Claims of lecture 9 about decoding: what maximum likelihood and a beam cost, and the inference gap."""

from __future__ import annotations

import itertools
import math

import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, VOCABULARIES, model_of, random_rows, random_source
from torch import Tensor

from heed.data.batch import collate
from heed.decoding.beam import BeamSearch
from heed.decoding.engine import SearchInputs, search
from heed.decoding.logit_rules import Forbidden
from heed.decoding.ranking import LengthPenalty
from heed.nn.contract import Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.scheduled_sampling import read_partly_own
from heed.training.config import TrainingConfig


class CountingBeam(BeamSearch):
    """A beam that records how many continuations it was given to compare at each step."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)
        self.compared: list[int] = []

    def choose(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        self.compared.append(log_probs.numel())
        return super().choose(log_probs)


def test_a_beam_of_k_scores_k_times_v_continuations_a_step() -> None:
    """Lecture 9, "Beam search": N² = 10¹⁰ becomes "K² = 9". K² is the number of candidates if each beam proposes K
    words; to find them, all N words of each of the K beams are scored: K · N a step, and K · N · T in all, where
    exhaustive search scores N^T."""
    vocab_size, width, limit = 12, 3, 5
    strategy = CountingBeam(width, [limit], LengthPenalty(0.0))
    prefix = torch.full((width, 1), BOS)
    never = Forbidden((PAD, BOS, EOS))  # so that no output ends early
    source = random_source([3], 0, Vocabularies(8, vocab_size))
    search(HashedModel(vocab_size), SearchInputs(source, strategy, [never], prefix, limit))
    assert strategy.compared == [width * vocab_size] * limit
    assert sum(strategy.compared) == width * vocab_size * limit < vocab_size**limit


@torch.no_grad()
def test_exhaustive_likelihood_is_v_to_the_t_and_needs_no_further_factor() -> None:
    """Lecture 9, "Can we just estimate p using MLE?": N = 100,000 words and T = 5 make 10²⁵ outputs. The notes divide
    the product of the conditionals by T_y; the product alone is the probability: over all V^T outputs it sums to
    one."""
    assert 100_000**5 == 10**25
    model, length = model_of("transformer"), 2
    vocab_size = VOCABULARIES.tgt_size
    outputs = torch.tensor(list(itertools.product(range(vocab_size), repeat=length)))
    assert len(outputs) == vocab_size**length
    ids = torch.cat((torch.full((len(outputs), 1), BOS), outputs), dim=1)
    features, _ = model.advance(ids[:, :-1], model.start(random_source([4]), len(ids)))
    probabilities = model.head.log_prob(features, outputs).sum(1).exp()
    assert math.isclose(probabilities.sum().item(), 1.0, rel_tol=1e-5)


def test_scheduled_sampling_is_told_the_probability_of_the_truth() -> None:
    """Lecture 9, "Scheduled sampling": p is the probability of the model's token, and rises in training. In Bengio et
    al. (2015) ε is the probability of the truth, and falls. heed's `truth_probability` is ε: with 1 every position
    reads the truth, which is teacher forcing and the default; with 0 every position after the first reads the model."""
    model = model_of("transformer")
    batch = collate(
        random_rows([9] * 8, 14, 1), random_rows([9] * 8, VOCABULARIES.tgt_size, 2), range(8), BOS, EOS, PAD
    )
    keys = DropoutKeys.for_step(1, 7, batch.rows)

    def share_of_truth(probability: float) -> float:
        state = model.start(batch.source, dropout_keys=keys)
        read = read_partly_own(model, batch.tgt_in, state, keys, probability)
        return (read == batch.tgt_in)[:, 1:].float().mean().item()

    assert TrainingConfig().truth_probability == 1.0 == share_of_truth(1.0)
    by_chance = share_of_truth(0.0)
    assert by_chance < 0.3 and abs(share_of_truth(0.5) - (1 + by_chance) / 2) < 0.15
