"""Are draws distributed as the options say, and the same in any batch?"""

from __future__ import annotations

import math

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, random_source
from scripted import FixedRows
from torch import Tensor

from heed.decoding.filters import Forbid
from heed.decoding.hypothesis import LengthPenalty
from heed.decoding.pick import PickChooser, Sample, greedy
from heed.decoding.search import search

PROBS = torch.tensor([0.05, 0.4, 0.0, 0.25, 0.1, 0.2])
NUM_DRAWS = 4000


def draws(pick: Sample, probs: Tensor = PROBS, step: int = 3) -> Tensor:
    """How often each token is drawn by as many streams."""
    tokens = pick(probs.log().expand(NUM_DRAWS, -1), range(NUM_DRAWS), step)
    return torch.bincount(tokens, minlength=len(probs)).double()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, [0.05, 0.4, 0, 0.25, 0.1, 0.2]),
        ({"temperature": 0.5}, [0.0025, 0.16, 0, 0.0625, 0.01, 0.04]),
        ({"temperature": 2.0}, [0.05**0.5, 0.4**0.5, 0, 0.25**0.5, 0.1**0.5, 0.2**0.5]),
        ({"top_k": 3}, [0, 0.4, 0, 0.25, 0, 0.2]),
        ({"top_k": 100}, [0.05, 0.4, 0, 0.25, 0.1, 0.2]),
        ({"top_p": 0.6}, [0, 0.4, 0, 0.25, 0, 0]),
        ({"top_p": 0.7}, [0, 0.4, 0, 0.25, 0, 0.2]),
        ({"top_p": 0.01}, [0, 0.4, 0, 0, 0, 0]),
        # First the temperature, then top-k, then top-p of what is left: 16 and 6.25 of 26.25 are 0.85.
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.8}, [0, 0.16, 0, 0.0625, 0, 0]),
    ],
)
def test_draws_have_the_distribution_that_the_options_describe(
    choices: dict[str, float], expected: list[float], seed: int
) -> None:
    counts = draws(Sample(seed, **choices))
    mean = torch.tensor(expected, dtype=torch.float64) / sum(expected) * NUM_DRAWS
    possible = mean > 0
    assert not counts[~possible].any()
    chi_square = ((counts - mean)[possible] ** 2 / mean[possible]).sum().item()
    freedom = int(possible.sum()) - 1
    assert chi_square <= freedom + 4 * math.sqrt(2 * freedom)


def test_a_draw_depends_on_seed_stream_and_step_and_on_nothing_else() -> None:
    pick, log_probs = Sample(seed=5), PROBS.log().expand(6, -1)
    together = pick(log_probs, [9, 1, 4, 7, 2, 8], 3)
    for place, stream in enumerate([9, 1, 4, 7, 2, 8]):
        assert pick(log_probs[:1], [stream], 3) == together[place]
    others = [Sample(seed=5).uniform(9, 4), Sample(seed=5).uniform(8, 3), Sample(seed=6).uniform(9, 3)]
    assert pick.uniform(9, 3) not in others


def test_numbers_of_neighbouring_steps_and_streams_are_uniform_and_uncorrelated() -> None:
    pick = Sample(seed=1)
    numbers = torch.tensor([[pick.uniform(stream, step) for step in range(40)] for stream in range(50)])
    assert 0 <= numbers.min() < 0.01
    assert 0.99 < numbers.max() < 1
    assert numbers.mean().item() == pytest.approx(0.5, abs=4 * 0.29 / 2000**0.5)
    for dim in (0, 1):
        pairs = torch.stack((numbers.flatten(), numbers.roll(1, dim).flatten()))
        assert abs(torch.corrcoef(pairs)[0, 1].item()) < 4 / 2000**0.5


def test_what_a_filter_forbids_is_never_drawn() -> None:
    log_probs = Forbid((1, 3))(PROBS.log().repeat(NUM_DRAWS, 1), FixedRows([()] * NUM_DRAWS))
    tokens = Sample(seed=1)(log_probs, range(NUM_DRAWS), 0)
    assert set(tokens.tolist()) == {0, 4, 5}


def sampled(rows_per_source: int, streams: list[int], seed: int = 1) -> list[list[tuple[int, ...]]]:
    """Outputs drawn for the same source in each stream."""
    num_sources = len(streams)
    source = random_source([4])
    repeated = type(source)(source.ids.expand(num_sources, -1), source.mask.expand(num_sources, -1))
    chooser = PickChooser(
        num_sources, rows_per_source, EOS, Sample(seed), LengthPenalty(0.6), [9] * num_sources, streams
    )
    prefix = torch.full((num_sources * rows_per_source, 1), BOS)
    found = search(HashedModel(8), repeated, chooser, [Forbid((PAD, BOS))], prefix, 9)
    for hypotheses in found:
        assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)
    return [sorted(h.ids for h in hypotheses) for hypotheses in found]


def test_samples_of_one_source_differ_and_depend_on_its_stream_alone() -> None:
    alone, together = sampled(4, [7]), sampled(4, [3, 7, 5])
    assert together[1] == alone[0]
    assert len(set(alone[0])) > 1
    assert len({tuple(outputs) for outputs in together}) == 3
    assert sampled(4, [7], seed=2) != alone


def test_rows_that_end_leave_the_batch() -> None:
    model, source = HashedModel(6), random_source(range(1, 9))
    chooser = PickChooser(8, 1, EOS, greedy, LengthPenalty(), [12] * 8, range(8))
    found = search(model, source, chooser, [Forbid((PAD, BOS))], torch.full((8, 1), BOS), 12)
    steps = [len(h.ids) + 1 for [h] in found]
    assert len(set(steps)) > 2, "or nothing is shown"
    assert model.advanced == [(sum(n > step for n in steps), 1) for step in range(max(steps))]
