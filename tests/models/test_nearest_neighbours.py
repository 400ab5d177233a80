"""Nearest neighbours are interpolated with a translator as by their definition, computed word by word."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from random_models import model_of, random_source, random_stores, random_targets
from torch import Tensor

from heed.models import nearest_neighbours
from heed.models.nearest_neighbours import NEIGHBOURS, USUAL, Interpolation, NearestNeighbours, Store, Tokens, fit

LENGTHS = [4, 1, 7]
GIVEN = Interpolation(bias=-0.7, scale=15.0, temperature=4.0, similarity=2.0, domain=1.0)


def by_definition(model, source, ids: Tensor, given: Interpolation) -> Tensor:
    """Probabilities `[B, T, V]` as in the first lines of the module, with loops."""
    features, _ = model.advance(ids, model.start(source))
    found, features = model.head.log_probs(features).exp(), features.float()
    for row, store in enumerate(random_stores([source.key(row) for row in range(len(source))])):
        for t in range(ids.shape[1]):
            distances = [float(((features[row, t] - key) ** 2).sum()) for key in store.keys]
            nearest = sorted(range(len(distances)), key=distances.__getitem__)[:NEIGHBOURS]
            if not nearest:
                continue
            similarity, domain = store.evidence[nearest[0]].tolist()
            evidence = given.similarity * similarity + given.domain * domain
            log_odds = given.bias - distances[nearest[0]] / given.scale + evidence
            part = 1 / (1 + math.exp(-log_odds))
            weights = [math.exp(-distances[j] / given.temperature) for j in nearest]
            found[row, t] *= 1 - part
            for j, weight in zip(nearest, weights, strict=True):
                found[row, t, store.values[j]] += part * weight / sum(weights)
    return found


@torch.no_grad()
def test_probabilities_are_those_of_the_definition() -> None:
    model, source, ids = model_of("transformer"), random_source(LENGTHS), random_targets(3, 5)
    helped = NearestNeighbours(model, random_stores, GIVEN)
    features, _ = helped.advance(ids, helped.start(source))
    expected = by_definition(model, source, ids, GIVEN)
    torch.testing.assert_close(helped.head.log_probs(features).exp(), expected, rtol=1e-3, atol=1e-5)
    one = random_targets(3, 5, seed=1)
    of_one = helped.head.log_prob(features, one).exp()
    torch.testing.assert_close(of_one, expected.gather(-1, one[..., None])[..., 0], rtol=1e-3, atol=1e-5)
    alone = model.head.log_probs(model.advance(ids, model.start(source))[0]).exp()
    assert (expected - alone).abs().max() > 0.05


@torch.no_grad()
def test_a_model_in_bfloat16_is_helped_too() -> None:
    model, source, ids = model_of("transformer").to(torch.bfloat16), random_source(LENGTHS), random_targets(3, 5)
    helped = NearestNeighbours(model, random_stores, GIVEN)
    features, _ = helped.advance(ids, helped.start(source))
    found = helped.head.log_probs(features)
    torch.testing.assert_close(found.exp(), by_definition(model, source, ids, GIVEN), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(helped.head.log_prob(features, ids), found.gather(-1, ids[..., None])[..., 0])


@torch.no_grad()
def test_a_long_text_is_looked_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest matrix of distances has a limited size, and the neighbours are the same."""
    helped = NearestNeighbours(model_of("transformer"), random_stores, GIVEN)
    source, ids = random_source(LENGTHS), random_targets(6, 7)
    whole, _ = helped.advance(ids, helped.start(source, rows_per_source=2))
    sizes = []

    def observed(squares: Tensor, *given: Any, **options: Any) -> Tensor:
        sizes.append(squares.numel())
        return baddbmm(squares, *given, **options)

    baddbmm = torch.baddbmm
    monkeypatch.setattr(torch, "baddbmm", observed)
    monkeypatch.setattr(nearest_neighbours, "MAX_DISTANCES", 300)
    in_parts, _ = helped.advance(ids, helped.start(source, rows_per_source=2))
    torch.testing.assert_close(in_parts, whole)
    assert len(sizes) > 1
    assert max(sizes) <= 300


@torch.no_grad()
def test_beams_of_a_source_look_up_its_own_store() -> None:
    helped = NearestNeighbours(model_of("transformer"), random_stores, GIVEN)
    source, ids = random_source(LENGTHS), random_targets(6, 4)
    together, _ = helped.advance(ids, helped.start(source, rows_per_source=2))
    for row in range(6):
        alone, _ = helped.advance(ids[row : row + 1], helped.start(source.part(slice(row // 2, row // 2 + 1))))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_a_translation_that_was_read_is_found_again() -> None:
    """At its own positions the distance is 0, and λ is as large as the bias says."""
    model, source, ids = model_of("transformer"), random_source([4]), random_targets(1, 6)
    features, _ = model.advance(ids, model.start(source))
    tokens = random_targets(1, 6, seed=2)
    store = Store(features[0], tokens[0], torch.ones(6, 2))
    helped = NearestNeighbours(model, lambda keys: [store], Interpolation(3.0, 1.0, 1e-3, 1.0, 1.0))
    found, _ = helped.advance(ids, helped.start(source))
    assert (helped.head.log_prob(found, tokens).exp() > 0.98).all()


def tokens_and_neighbours(right_when_near: bool, number: int = 4000) -> Tokens:
    """Tokens that a model gives a tenth: half of them have near neighbours, which are always right or never."""
    random = torch.Generator().manual_seed(1)
    is_near = (torch.arange(number) % 2 == 0)[:, None]
    distances = torch.rand(number, NEIGHBOURS, generator=random).sort(dim=-1).values + torch.where(is_near, 1, 50)
    is_value = is_near.expand(-1, NEIGHBOURS) & torch.tensor(right_when_near)
    return Tokens(
        torch.full((number,), math.log(0.1)), distances, torch.tensor([[1.0, 0.0]]).expand(number, 2), is_value
    )


def trust(given: Interpolation, distance: float, similarity: float = 1.0, domain: float = 0.0) -> float:
    """λ."""
    evidence = given.similarity * similarity + given.domain * domain
    return 1 / (1 + math.exp(distance / given.scale - given.bias - evidence))


def test_neighbours_that_are_right_when_they_are_near_are_trusted_when_they_are_near() -> None:
    given = fit([(tokens_and_neighbours(right_when_near=True), 1)])
    assert trust(given, 2) > 0.99
    assert trust(given, 50) < 0.01


def test_neighbours_that_are_never_right_are_not_trusted() -> None:
    assert trust(fit([(tokens_and_neighbours(right_when_near=False), 1)]), 1) < 0.01


@pytest.mark.parametrize("evidence", [(1.0, 0.0), (0.0, 1.0)])
def test_neighbours_are_trusted_by_the_evidence_for_their_sources(evidence: tuple[float, float]) -> None:
    """At the same distances, those of similar sources, or of this domain, are right, and the others wrong."""
    right, wrong = (tokens_and_neighbours(right_when_near=each) for each in (True, False))
    right, wrong = (
        tokens._replace(evidence=torch.tensor([each]).expand(4000, 2))
        for tokens, each in ((right, evidence), (wrong, (0.0, 0.0)))
    )
    given = fit([(right, 1), (wrong, 1)])
    assert trust(given, 1.1, *evidence) > 0.95
    assert trust(given, 1.1, 0.0, 0.0) < 0.05


def test_tokens_that_count_more_decide() -> None:
    right, wrong = (tokens_and_neighbours(right_when_near=each, number=400) for each in (True, False))
    assert trust(fit([(right, 10), (wrong, 1)]), 2) > 0.8 > 0.2 > trust(fit([(right, 1), (wrong, 10)]), 2)
    assert fit([(right, 2)]) == pytest.approx(fit([(right, 1), (right, 1)]), rel=1e-3)


def test_the_more_tokens_the_more_certain() -> None:
    """Near neighbours that are always right, or never, are trusted accordingly, but two tokens make nothing certain."""
    right, wrong = (
        [trust(fit([(tokens_and_neighbours(each, number), 1)]), 1) for number in (2, 20, 200)] for each in (True, False)
    )
    assert 0.5 < right[0] < right[1] < right[2] < 1
    assert 0.5 > wrong[0] > wrong[1] > wrong[2] > 0
    assert max(right[0], 1 - wrong[0]) < 0.9


def test_without_any_token_the_fit_is_the_usual_one() -> None:
    given = fit([])
    bias, scale, temperature, *evidence = given
    assert (bias, math.log(scale), math.log(temperature), *evidence) == pytest.approx(USUAL)


@pytest.mark.parametrize("number", [1, NEIGHBOURS])
def test_without_any_neighbour_the_fit_is_finite(number: int) -> None:
    far, similarity, is_value = torch.full((3, number), 1e30), torch.zeros(3, 2), torch.zeros(3, number).bool()
    assert all(map(math.isfinite, fit([(Tokens(torch.full((3,), -1.0), far, similarity, is_value), 1)])))


@pytest.mark.parametrize("right", [1, 2, NEIGHBOURS])
@torch.no_grad()
def test_a_source_without_any_neighbour_is_translated_by_the_model_alone(right: int) -> None:
    """Where only the nearest are right, no temperature is too small for the fit."""
    distances = torch.rand(100, NEIGHBOURS, generator=torch.Generator().manual_seed(1)).sort(dim=-1).values
    is_token = (torch.arange(NEIGHBOURS) < right).expand(100, -1)
    given = fit([(Tokens(torch.full((100,), -0.1), distances, torch.zeros(100, 2), is_token), 1)])
    model, source, ids = model_of("transformer"), random_source([1]), random_targets(1, 3)
    helped = NearestNeighbours(
        model, lambda keys: [Store(torch.empty(0, 16), torch.empty(0).long(), torch.empty(0, 2))], given
    )
    features, _ = helped.advance(ids, helped.start(source))
    alone = model.head.log_probs(model.advance(ids, model.start(source))[0])
    torch.testing.assert_close(helped.head.log_probs(features).exp(), alone.exp())


def test_the_fit_is_the_same_under_inference_mode() -> None:
    outside = fit([(tokens_and_neighbours(right_when_near=True), 1)])
    with torch.inference_mode():
        assert fit([(tokens_and_neighbours(right_when_near=True), 1)]) == outside
