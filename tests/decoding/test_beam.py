"""Beam search finds the best outputs, and stops when nothing better can follow."""

from __future__ import annotations

import itertools

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, half_trained, random_source

from heed.decoding.beam import BeamSearch
from heed.decoding.engine import SearchInputs, search
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.logit_rules import Forbidden, MinLength
from heed.decoding.ranking import LengthPenalty
from heed.decoding.sampling import Sampler, greedy
from heed.nn.contract import Autoregressive, Source, TokenSource, Vocabularies

SMALL = Vocabularies(src_size=8, tgt_size=5)  # two words and padding, begin, end
PENALTIES = [LengthPenalty(0.0), LengthPenalty(0.6), LengthPenalty(2.0), LengthPenalty(1.0, "mean")]
penalties = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: f"{p.kind} {p.alpha}")
forbid = Forbidden((PAD, BOS))


def beam_search(
    model: Autoregressive, source: Source, beam_size: int, penalty: LengthPenalty, limit: int, nbest: int = 1,
    rules: tuple = (forbid,),
) -> list[list[Hypothesis]]:  # fmt: skip
    """Beam search over a batch of sources with one limit."""
    num_sources = len(source)
    strategy = BeamSearch(beam_size, [limit] * num_sources, penalty, nbest)
    prefix = torch.full((num_sources * beam_size, 1), BOS)
    return search(model, SearchInputs(source, strategy, list(rules), prefix, limit))


def greedy_search(model: Autoregressive, source: Source, limit: int, penalty: LengthPenalty) -> list[list[Hypothesis]]:
    """The most likely token, again and again."""
    num_sources = len(source)
    strategy = Sampler(1, [limit] * num_sources, penalty, greedy, range(num_sources))
    return search(model, SearchInputs(source, strategy, [forbid], torch.full((num_sources, 1), BOS), limit))


def one_of(source: Source, row: int) -> Source:
    """One sentence, with its padding."""
    return TokenSource(source.ids[row : row + 1], source.mask[row : row + 1])


@torch.no_grad()
def every_output(
    model: Autoregressive, source: Source, words: range, limit: int, penalty: LengthPenalty
) -> list[tuple[float, tuple[int, ...]]]:
    """Score and ids of everything that ends within `limit` tokens, best first: each scored by itself."""
    outputs = [ids for length in range(limit) for ids in itertools.product(words, repeat=length)]
    scored = [(log_prob(model, source, ids) / divisor(penalty, len(ids) + 1), ids) for ids in outputs]
    return sorted(scored, key=lambda pair: -pair[0])


def log_prob(model: Autoregressive, source: Source, ids: tuple[int, ...]) -> float:
    """log P of one output and its end, from the distribution at each position."""
    features, _ = model.advance(torch.tensor([[BOS, *ids]]), model.start(source))
    return sum(model.head.log_probs(features)[0, i, token].item() for i, token in enumerate((*ids, EOS)))


def divisor(penalty: LengthPenalty, length: int) -> float:
    """The formulas of Wu et al. (2016), equation 14, and of the mean, written out."""
    return ((5 + length) / 6) ** penalty.alpha if penalty.kind == "gnmt" else length**penalty.alpha


@penalties
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(seed: int, penalty: LengthPenalty) -> None:
    """Outputs of up to four tokens out of two words: 31 in all. Not the best alone, but all of the ten best."""
    model, source = HashedModel(SMALL.tgt_size, seed), random_source([2, 5, 1], seed, SMALL)
    expected = [every_output(model, one_of(source, row), range(3, 5), 5, penalty) for row in range(3)]
    for nbest in (1, 10):  # for one alone the search may stop earlier
        actual = beam_search(model, source, 32, penalty, limit=5, nbest=nbest)
        for hypotheses, ranked in zip(actual, expected, strict=True):
            assert [h.ids for h in hypotheses] == [ids for _, ids in ranked[:nbest]]
            assert [h.score for h in hypotheses] == pytest.approx([score for score, _ in ranked[:nbest]], abs=1e-4)


@pytest.mark.parametrize("name", ["transformer", "rnn_attention"])
def test_a_wide_beam_is_exhaustive_search_for_a_network_too(name: str) -> None:
    """Up to two tokens out of nine words: 91 outputs."""
    penalty, model = LengthPenalty(0.6), half_trained(name)
    source = random_source([2, 1], 1, Vocabularies(12, 12))
    actual = beam_search(model, source, 92, penalty, limit=3, nbest=5)
    for row in range(2):
        expected = every_output(model, one_of(source, row), range(3, 12), 3, penalty)[:5]
        assert [h.ids for h in actual[row]] == [ids for _, ids in expected]
        assert [h.score for h in actual[row]] == pytest.approx([score for score, _ in expected], abs=1e-4)


def plain_argmax(model: Autoregressive, source: Source, limit: int) -> tuple[tuple[int, ...], bool]:
    """Greedy search as anyone would write it: the whole beginning is read again for each token."""
    ids: list[int] = []
    while len(ids) < limit:
        features, _ = model.advance(torch.tensor([[BOS, *ids]]), model.start(source))
        log_probs = model.head.log_probs(features)[0, -1]
        log_probs[[PAD, BOS]] = float("-inf")
        best = int(log_probs.argmax())
        if best == EOS:
            return tuple(ids), True
        ids.append(best)
    return tuple(ids[:-1]), False


@pytest.mark.parametrize("name", ["transformer", "rnn_attention", "bigram", "hashed"])
@torch.no_grad()
def test_a_beam_of_one_equals_greedy_equals_a_plain_loop(name: str) -> None:
    model = HashedModel(12) if name == "hashed" else half_trained(name)
    source, penalty = random_source(range(1, 9), 2, Vocabularies(12, 12)), LengthPenalty(0.6)
    by_beam = beam_search(model, source, 1, penalty, limit=10)
    by_greedy = greedy_search(model, source, 10, penalty)
    for row in range(len(source)):
        [beam], [plain] = by_beam[row], by_greedy[row]
        assert (beam.ids, beam.finished) == (plain.ids, plain.finished)
        assert (plain.ids, plain.finished) == plain_argmax(model, one_of(source, row), 10)
        assert beam.token_log_probs == pytest.approx(plain.token_log_probs, abs=1e-5)
        assert beam.score == pytest.approx(plain.score, abs=1e-5)


@penalties
def test_n_best_lists_are_sorted_and_distinct(penalty: LengthPenalty) -> None:
    actual = beam_search(HashedModel(9), random_source([2, 5, 1, 7]), 6, penalty, limit=7, nbest=6)
    for hypotheses in actual:
        assert len(hypotheses) == len({h.ids for h in hypotheses}) == 6
        for kind in (True, False):
            scores = [h.score for h in hypotheses if h.finished == kind]
            assert scores == sorted(scores, reverse=True)
        for h in hypotheses:
            assert h.log_prob == pytest.approx(sum(h.token_log_probs))
            assert len(h.token_log_probs) == len(h.ids) + h.finished
            assert h.score == pytest.approx(h.log_prob / penalty.divisor(len(h.token_log_probs)))


def test_a_longer_n_best_list_begins_with_the_shorter_one() -> None:
    source, penalty = random_source([2, 5, 1, 7]), LengthPenalty(0.6)
    many = beam_search(HashedModel(9), source, 6, penalty, limit=7, nbest=6)
    few = beam_search(HashedModel(9), source, 6, penalty, limit=7, nbest=2)
    assert [hypotheses[:2] for hypotheses in many] == few


def test_sources_that_are_done_leave_the_batch() -> None:
    """Sources take as many steps together as alone, and leave one by one."""
    model, source, penalty = HashedModel(6), random_source(range(1, 9)), LengthPenalty(0.0)
    needed = []
    for row in range(len(source)):
        model.advanced.clear()
        beam_search(model, one_of(source, row), 3, penalty, limit=15)
        needed.append(len(model.advanced))
    assert len(set(needed)) > 2, "otherwise the test shows nothing"
    model.advanced.clear()
    beam_search(model, source, 3, penalty, limit=15)
    expected = [(3 * sum(step < steps for steps in needed), 1) for step in range(max(needed))]
    assert model.advanced == expected


def test_the_search_stops_when_no_active_hypothesis_can_become_the_best() -> None:
    """After "end" at 0.9 the alive beam has 0.1 left, and without a penalty that can only fall."""

    class Hasty(HashedModel):
        def distribution(self, seen: tuple[int, ...]) -> torch.Tensor:
            return torch.tensor([1e-9, 1e-9, 0.9, 0.06, 0.04]).log()

    model, source = Hasty(5), random_source([3])
    [[best]] = beam_search(model, source, 4, LengthPenalty(0.0), limit=9)
    assert (best.ids, len(model.advanced)) == ((), 1)
    model.advanced.clear()
    [hypotheses] = beam_search(model, source, 4, LengthPenalty(0.0), limit=9, nbest=3)
    assert [h.ids for h in hypotheses] == [(), (3,), (4,)]
    assert len(model.advanced) == 2


class Endless(HashedModel):
    """The end of sentence is the least likely of all."""

    def distribution(self, seen: tuple[int, ...]) -> torch.Tensor:
        """Mostly 3, then 4, hardly ever the end."""
        return torch.tensor([1e-12, 1e-12, 1e-9, 0.7, 0.3]).log()


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_an_endless_output_is_cut_off_one_token_before_its_limit(limit: int) -> None:
    """The limit counts the end of sentence, and so the last of its tokens can be nothing else."""
    model, source, penalty = Endless(5), random_source([3, 1]), LengthPenalty(0.6)
    for [best] in (*beam_search(model, source, 1, penalty, limit), *greedy_search(model, source, limit, penalty)):
        assert best.ids == (3,) * (limit - 1)
        assert not best.finished
        assert best.log_prob == pytest.approx((limit - 1) * torch.tensor(0.7).log().item())
        assert best.score == pytest.approx(best.log_prob / penalty.divisor(limit - 1))


def test_finished_hypotheses_precede_those_cut_off_without_duplicates() -> None:
    """With a beam of 3 only the empty output ends among the first three; with one of 6 all three outputs do."""
    narrow, wide = (
        beam_search(Endless(5), random_source([3]), size, LengthPenalty(0.0), limit=2, nbest=size)[0] for size in (3, 6)
    )
    assert [(h.ids, h.finished) for h in narrow] == [((), True), ((3,), False), ((4,), False)]
    assert [(h.ids, h.finished) for h in wide] == [((), True), ((3,), True), ((4,), True)]


def test_every_source_has_its_own_limit() -> None:
    source = random_source([3, 3, 3])
    strategy = BeamSearch(2, [4, 1, 2], LengthPenalty(0.0))
    actual = search(Endless(5), SearchInputs(source, strategy, [forbid], torch.full((6, 1), BOS), 4))
    assert [len(best.ids) for [best, *_] in actual] == [3, 0, 1]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_minimum_length_is_respected(beam_size: int) -> None:
    source, penalty = random_source(range(1, 9)), LengthPenalty(0.0)
    strict = beam_search(HashedModel(6), source, beam_size, penalty, 6, rules=(forbid, MinLength([3] * 8)))
    assert min(len(best.ids) for [best] in strict) >= 3
    lenient = beam_search(HashedModel(6), source, beam_size, penalty, 6)
    assert min(len(best.ids) for [best] in lenient) < 3, "otherwise the test shows nothing"


@pytest.mark.parametrize("beam_size", [1, 4])
def test_forbidden_tokens_are_never_chosen(beam_size: int) -> None:
    source = random_source(range(1, 9))
    strict = beam_search(HashedModel(8), source, beam_size, LengthPenalty(0.6), 9, rules=(Forbidden((PAD, BOS, 5)),))
    assert not {PAD, BOS, 5} & {id for [best] in strict for id in best.ids}
    lenient = beam_search(HashedModel(8), source, beam_size, LengthPenalty(0.6), 9)
    assert 5 in {id for [best] in lenient for id in best.ids}, "otherwise the test shows nothing"


def test_a_prompt_starts_every_row_and_is_not_part_of_the_output() -> None:
    model, prefix = HashedModel(7), torch.tensor([[BOS, 5, 4]])
    strategy = BeamSearch(2, [6], LengthPenalty(0.0))
    [[best]] = search(model, SearchInputs(None, strategy, [forbid], prefix.expand(2, -1), 6))
    assert model.advanced[0] == (2, 3)
    features, _ = model.advance(torch.tensor([[BOS, 5, 4, *best.ids]]), model.start(None))
    steps = features[0, 2:].gather(1, torch.tensor([*best.ids, EOS])[: len(best.token_log_probs), None])
    assert best.token_log_probs == pytest.approx(steps.flatten().tolist())
