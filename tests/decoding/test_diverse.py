"""Diverse beam search follows its paper, and its outputs differ."""

from __future__ import annotations

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, random_source

from heed.decoding.beam import BeamSearch, DiverseBeamSearch
from heed.decoding.engine import SearchInputs, search
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.logit_rules import Forbidden
from heed.decoding.ranking import LengthPenalty
from heed.nn.contract import Source, TokenSource

forbid = Forbidden((PAD, BOS))
PENALTY = LengthPenalty(0.6)


def diverse_search(
    model: HashedModel, source: Source, beam_size: int, nbest: int, strength: float, limit: int
) -> list[list[Hypothesis]]:
    """Diverse beam search over a batch of sources with one limit."""
    strategy = DiverseBeamSearch(beam_size, [limit] * len(source), PENALTY, nbest, strength)
    prefix = torch.full((len(source) * strategy.rows_per_source, 1), BOS)
    return search(model, SearchInputs(source, strategy, [forbid], prefix, limit))


def beam_search(model: HashedModel, source: Source, beam_size: int, limit: int, nbest: int) -> list[list[Hypothesis]]:
    """The same without groups."""
    strategy = BeamSearch(beam_size, [limit] * len(source), PENALTY, nbest)
    prefix = torch.full((len(source) * beam_size, 1), BOS)
    return search(model, SearchInputs(source, strategy, [forbid], prefix, limit))


def one_of(source: Source, row: int) -> Source:
    """One sentence, with its padding."""
    return TokenSource(source.ids[row : row + 1], source.mask[row : row + 1])


def by_the_paper(
    model: HashedModel, source: Source, groups: int, strength: float, limit: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Algorithm 1 with groups of one beam: each in its turn takes the best token after what the others have taken."""
    seen = tuple(id for id in source.ids[0].tolist() if id != PAD)
    tokens_of: list[list[int]] = [[] for _ in range(groups)]
    totals, ended = [0.0] * groups, [False] * groups
    for _ in range(limit):
        taken: list[int] = []
        for group in range(groups):
            if ended[group]:
                continue
            log_probs = model.distribution((*seen, *(-1 - id for id in (BOS, *tokens_of[group]))))
            log_probs[[PAD, BOS]] = float("-inf")
            costs = torch.tensor([strength * taken.count(token) for token in range(model.vocab_size)])
            if any(ended[other] and tokens_of[other] == tokens_of[group] for other in range(groups)):
                log_probs[EOS] = float("-inf")  # another group has this output
            token = int((log_probs - costs).argmax())
            totals[group] += log_probs[token].item()
            taken.append(token)
            if token == EOS:
                ended[group] = True
            else:
                tokens_of[group].append(token)
    assert all(ended), "choose a longer limit"
    actual = {tuple(ids): total / PENALTY.divisor(len(ids) + 1) for ids, total in zip(tokens_of, totals, strict=True)}
    return sorted(((score, ids) for ids, score in actual.items()), reverse=True)


@pytest.mark.parametrize("strength", [0.5, 2.0])
@pytest.mark.parametrize("row", range(4))
def test_groups_of_one_follow_the_algorithm_of_the_paper(strength: float, row: int) -> None:
    model, source = HashedModel(6, seed=3), one_of(random_source([2, 5, 1, 4], 3), row)
    [actual] = diverse_search(model, source, 3, 3, strength, limit=40)
    expected = by_the_paper(model, source, 3, strength, limit=40)
    assert [h.ids for h in actual] == [ids for _, ids in expected]
    assert [h.score for h in actual] == pytest.approx([score for score, _ in expected], abs=1e-4)


def test_groups_without_a_penalty_are_plain_beams() -> None:
    """With next to no cost the first group finds what one beam of its width finds; no other may give that again."""
    model, source = HashedModel(8), random_source([2, 5, 1, 7])
    actual = diverse_search(model, source, 6, 2, 1e-9, limit=9)
    alone = beam_search(model, source, 3, 9, nbest=1)
    for hypotheses, [best] in zip(actual, alone, strict=True):
        assert best in hypotheses


@pytest.mark.parametrize("strength", [1e-9, 0.5, 100.0])
def test_n_best_outputs_differ_and_are_as_many_as_requested(strength: float) -> None:
    for hypotheses in diverse_search(HashedModel(8), random_source([2, 5, 1, 7]), 6, 6, strength, limit=60):
        assert len({h.ids for h in hypotheses}) == len(hypotheses) == 6


def test_a_high_penalty_makes_all_first_tokens_differ() -> None:
    model, source = HashedModel(12), random_source([2, 5, 1, 7])
    shunned = diverse_search(model, source, 8, 4, 100.0, limit=9)
    plain = beam_search(model, source, 8, 9, nbest=4)
    for hypotheses in shunned:
        assert len({h.ids[:1] for h in hypotheses}) == 4
    assert sum(len({h.ids[:1] for h in hypotheses}) for hypotheses in plain) < 16, "plain beams repeat first tokens"


def test_the_penalty_is_not_part_of_scores() -> None:
    model, source = HashedModel(8), random_source([2, 5, 1, 7])
    for hypotheses in diverse_search(model, source, 6, 3, 3.0, limit=9):
        assert [h.score for h in hypotheses if h.finished] == sorted(
            (h.score for h in hypotheses if h.finished), reverse=True
        )
        for h in hypotheses:
            assert h.log_prob == pytest.approx(sum(h.token_log_probs))
            assert h.score == pytest.approx(h.log_prob / PENALTY.divisor(len(h.token_log_probs)))


def test_cancelling_a_source_drops_all_its_groups_and_no_other() -> None:
    strategy = DiverseBeamSearch(4, [9, 9, 9], PENALTY, 2, 1.0)
    strategy.cancel(1)
    assert strategy._limits == [9, 9, 0, 0, 9, 9]


def test_one_source_is_not_penalised_for_the_tokens_of_another() -> None:
    model, source = HashedModel(8), random_source([2, 5, 1, 7])
    together = diverse_search(model, source, 6, 3, 3.0, limit=9)
    alone = [diverse_search(model, one_of(source, row), 6, 3, 3.0, limit=9)[0] for row in range(4)]
    assert together == alone
