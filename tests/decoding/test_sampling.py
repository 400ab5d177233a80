"""Samples have the distribution that the options describe, and are the same in any batch."""

from __future__ import annotations

import math

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, random_source
from scripted import FixedRows
from torch import Tensor

from heed.decoding.detokenizer import StopTexts
from heed.decoding.engine import SearchInputs, search
from heed.decoding.logit_rules import Forbidden
from heed.decoding.ranking import LengthPenalty
from heed.decoding.sampling import RandomDraw, Sampler, greedy, stable_top_k

PROBS = torch.tensor([0.05, 0.4, 0.0, 0.25, 0.1, 0.2])
NUM_DRAWS = 4000


def draws(pick: RandomDraw, probs: Tensor = PROBS, step: int = 3) -> Tensor:
    """Count of each token over NUM_DRAWS streams."""
    tokens = pick(probs.log().expand(NUM_DRAWS, -1), range(NUM_DRAWS), step)
    return torch.bincount(tokens, minlength=len(probs)).double()


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
    choices: dict[str, float], expected: list[float]
) -> None:
    counts = draws(RandomDraw(seed=1, **choices))
    mean = torch.tensor(expected, dtype=torch.float64) / sum(expected) * NUM_DRAWS
    possible = mean > 0
    assert not counts[~possible].any()
    chi_square = ((counts - mean)[possible] ** 2 / mean[possible]).sum().item()
    freedom = int(possible.sum()) - 1
    assert chi_square <= freedom + 4 * math.sqrt(2 * freedom)


def test_a_draw_depends_on_seed_stream_and_step_and_on_nothing_else() -> None:
    pick, log_probs = RandomDraw(seed=5), PROBS.log().expand(6, -1)
    together = pick(log_probs, [9, 1, 4, 7, 2, 8], 3)
    for place, stream in enumerate([9, 1, 4, 7, 2, 8]):
        assert pick(log_probs[:1], [stream], 3) == together[place]
    others = [RandomDraw(seed=5).uniform(9, 4), RandomDraw(seed=5).uniform(8, 3), RandomDraw(seed=6).uniform(9, 3)]
    assert pick.uniform(9, 3) not in others


def test_numbers_of_neighbouring_steps_and_streams_are_uniform_and_uncorrelated() -> None:
    pick = RandomDraw(seed=1)
    numbers = torch.tensor([[pick.uniform(stream, step) for step in range(20)] for stream in range(50)])
    assert 0 <= numbers.min() < 0.01
    assert 0.99 < numbers.max() < 1
    assert numbers.mean().item() == pytest.approx(0.5, abs=4 * 0.29 / 2000**0.5)
    for dim in (0, 1):
        pairs = torch.stack((numbers.flatten(), numbers.roll(1, dim).flatten()))
        assert abs(torch.corrcoef(pairs)[0, 1].item()) < 4 / 2000**0.5


def test_a_forbidden_token_is_never_drawn() -> None:
    log_probs = Forbidden((1, 3))(PROBS.log().repeat(NUM_DRAWS, 1), FixedRows([()] * NUM_DRAWS))
    tokens = RandomDraw(seed=1)(log_probs, range(NUM_DRAWS), 0)
    assert set(tokens.tolist()) == {0, 4, 5}


def sampled(rows_per_source: int, streams: list[int], seed: int = 1) -> list[list[tuple[int, ...]]]:
    """Outputs drawn for the same source in each stream."""
    num_sources = len(streams)
    source = random_source([4])
    repeated = type(source)(source.ids.expand(num_sources, -1), source.mask.expand(num_sources, -1))
    strategy = Sampler(rows_per_source, [9] * num_sources, LengthPenalty(0.6), RandomDraw(seed), streams)
    prefix = torch.full((num_sources * rows_per_source, 1), BOS)
    actual = search(HashedModel(8), SearchInputs(repeated, strategy, [Forbidden((PAD, BOS))], prefix, 9))
    for hypotheses in actual:
        assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)
    return [sorted(h.ids for h in hypotheses) for hypotheses in actual]


def test_samples_of_one_source_differ_and_depend_on_its_stream_alone() -> None:
    alone, together = sampled(4, [7]), sampled(4, [3, 7, 5])
    assert together[1] == alone[0]
    assert len(set(alone[0])) > 1
    assert len({tuple(outputs) for outputs in together}) == 3
    assert sampled(4, [7], seed=2) != alone


def test_rows_that_end_leave_the_batch() -> None:
    model, source = HashedModel(6), random_source(range(1, 9))
    strategy = Sampler(1, [12] * 8, LengthPenalty(), greedy, range(8))
    prefix = torch.full((8, 1), BOS)
    actual = search(model, SearchInputs(source, strategy, [Forbidden((PAD, BOS))], prefix, 12))
    steps = [len(h.ids) + 1 for [h] in actual]
    assert len(set(steps)) > 2, "otherwise the test shows nothing"
    assert model.advanced == [(sum(n > step for n in steps), 1) for step in range(max(steps))]


# Partial sorting


def sorted_whole(pick: RandomDraw, log_probs: Tensor, streams: range, step: int) -> Tensor:
    """The definition: all tokens sorted, likeliest first, of equal ones the first; what is left of them, in the order
    of their numbers; the cumulative sum inverted."""
    ordered, tokens = (log_probs / pick.temperature).sort(dim=-1, descending=True, stable=True)
    if pick.top_k:
        ordered = ordered[:, : pick.top_k]
    probs = ordered.double().softmax(dim=-1)
    cumulative = probs.cumsum(dim=-1)
    probs = probs * ((cumulative - probs) < pick.top_p) if pick.top_p < 1 else probs
    left = torch.zeros_like(log_probs, dtype=torch.float64).scatter(1, tokens[:, : probs.shape[1]], probs)
    cumulative = left.cumsum(dim=-1)
    draws = torch.tensor([[pick.uniform(stream, step)] for stream in streams], dtype=torch.float64)
    return torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True).squeeze(1)


def rows_of(kind: str) -> Tensor:
    """Log-probabilities of 20 rows of 5,003 tokens: no share of these is asked for that is a whole number of them."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(20, 5003, generator=generator)
    return {
        "sharp": scores * 4,
        "flat": scores * 0.01,
        "equal": (scores * 2).round(),  # as counting models have it: many tokens that are as likely
        "all equal": torch.zeros(20, 5003),
        "some forbidden": scores.masked_fill(scores > 1, -math.inf),
    }[kind].log_softmax(-1)


@pytest.mark.parametrize("kind", ["sharp", "flat", "equal", "all equal", "some forbidden"])
@pytest.mark.parametrize(
    "choices",
    [{}, {"top_k": 1}, {"top_k": 50}, {"top_k": 4000}, {"top_p": 0.5}, {"top_p": 0.99}, {"top_k": 303, "top_p": 0.9},
     {"temperature": 0.3}],
)  # fmt: skip
def test_a_draw_is_what_sorting_all_tokens_would_give(kind: str, choices: dict[str, float]) -> None:
    pick, log_probs = RandomDraw(7, **choices), rows_of(kind)
    assert pick(log_probs, range(20), 2).equal(sorted_whole(pick, log_probs, range(20), 2))


@pytest.mark.parametrize("choices", [{"temperature": 1.5}, {"top_p": 0.9}])
def test_rounding_of_probabilities_rarely_changes_a_draw(choices: dict[str, float]) -> None:
    log_probs = (0.01 * torch.randn(300, 5003, generator=torch.Generator().manual_seed(3))).log_softmax(-1)
    noisy = log_probs + 1e-6 * torch.randn(log_probs.shape, generator=torch.Generator().manual_seed(1))
    pick, streams = RandomDraw(7, **choices), range(len(log_probs))
    assert (pick(log_probs, streams, 0) != pick(noisy, streams, 0)).sum() < len(log_probs) / 30


def test_at_the_lowest_temperature_the_likeliest_token_is_drawn() -> None:
    log_probs = torch.randn(3, 50, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    drawn = RandomDraw(1, temperature=1e-39)(log_probs, [0, 1, 2], 0)
    assert drawn.tolist() == log_probs.argmax(-1).tolist()


def test_the_largest_random_number_does_not_draw_a_forbidden_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomDraw, "uniform", lambda *_: 1 - 2**-53)
    log_probs = torch.tensor([[0.3, 0.3, 0.3, 0.0]]).log()
    for choices in ({}, {"top_k": 4}, {"top_p": 0.999}):
        assert RandomDraw(1, **choices)(log_probs, [0], 0).item() == 2  # type: ignore[arg-type]


def test_only_a_flat_distribution_is_sorted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = stable_top_k

    def counted(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        sizes.append(k)
        return original(scores, k)

    monkeypatch.setattr("heed.decoding.sampling.stable_top_k", counted)
    RandomDraw(1, top_p=0.95)(rows_of("sharp"), range(20), 0)
    RandomDraw(1, top_p=0.95)(rows_of("flat"), range(20), 0)
    assert sizes == [256, 256, 4096, 5003]


# Where a row ends


def test_a_stop_text_ends_a_row_and_an_end_of_sentence_may_not() -> None:
    """Row 0 says 3 3 3 …, its stop after two of them; row 1 says the end of sentence again and again, read as bos."""
    script = torch.full((2, 6), -9.0)
    script[0, 3], script[1, EOS] = 0.0, 0.0
    stops = StopTexts(["cc"], [b"", b"", b"\n", b"c", b"d", b"e"])
    strategy = Sampler(1, [5, 5], LengthPenalty(0.0), greedy, [0, 1], stops=stops, token_after_eos=BOS)
    kept, read = strategy.choose(script.clone())
    assert (kept.tolist(), read.tolist()) == ([0, 1], [3, BOS])
    kept, read = strategy.choose(script.clone())
    assert (kept.tolist(), read.tolist()) == ([1], [BOS])
    for _ in range(3):
        kept, _ = strategy.choose(script[1:].clone())
    assert not len(kept)
    [stopped], [endless] = strategy.hypotheses(0), strategy.hypotheses(1)
    assert (stopped.ids, stopped.finished) == ((3, 3), True)
    assert (endless.ids, endless.finished) == ((EOS,) * 4, False)
