"""Count-based models: the answers of their predictors, saving and loading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import CONFIGS, VOCABULARIES, model_of, random_source, random_targets

from heed.core.errors import DataError
from heed.models import build_model
from heed.models.ensemble import Ensemble
from heed.models.ngram import Ngram, NgramConfig
from heed.nn.contract import Source, Vocabularies
from heed.nn.weight_file import read_weights, save_weights

COUNTED = [name for name in CONFIGS if model_of(name).count_based]
every_kind = pytest.mark.parametrize("name", COUNTED)


@every_kind
def test_a_model_is_restored_from_its_file(name: str, tmp_path: Path) -> None:
    model, other = model_of(name), build_model(CONFIGS[name], VOCABULARIES)
    ids = random_targets(3, 6)
    features, _ = model.advance(ids, model.start(None, 3))
    save_weights(tmp_path / "model.safetensors", model.state_dict(), {})
    other.load_state_dict(read_weights(tmp_path / "model.safetensors"))
    again, _ = other.advance(ids, other.start(None, 3))
    assert again.equal(features)
    torch.testing.assert_close(other.head.log_probs(again), model.head.log_probs(features))


@every_kind
def test_a_file_of_another_vocabulary_is_refused(name: str) -> None:
    other = build_model(CONFIGS[name], Vocabularies(src_size=0, tgt_size=VOCABULARIES.tgt_size - 3))
    with pytest.raises(DataError, match="not a"):
        other.load_state_dict(model_of(name).state_dict())


@every_kind
def test_it_has_no_weights_to_train(name: str) -> None:
    assert list(model_of(name).parameters()) == []


@every_kind
def test_an_unestimated_model_predicts_every_token(name: str) -> None:
    model = build_model(CONFIGS[name], VOCABULARIES)
    features, _ = model.advance(torch.tensor([[1]]), model.start(None))
    found = model.head.log_probs(features)[0, 0].exp()
    assert found[:2].tolist() == [0, 0]
    assert (found[2:] > 0).all()


@every_kind
@pytest.mark.parametrize(("source", "rows", "expected"), [(None, 3, 3), (random_source([2, 4]), 3, 6)])
def test_a_source_only_determines_the_number_of_rows(
    name: str, source: Source | None, rows: int, expected: int
) -> None:
    state = model_of(name).start(source, rows)
    assert len(state.contexts) == expected
    assert len(state.select(torch.tensor([0, 0])).join(state).contexts) == 2 + expected


def test_orders_0_and_1_are_the_uniform_and_the_unigram_model() -> None:
    sentences = [[4, 5], [4]]
    uniform, unigram = (Ngram(NgramConfig(order=n, smoothing="additive", additive=0.0), VOCABULARIES) for n in (0, 1))
    for model, expected in ((uniform, [0.1, 0.1, 0.1]), (unigram, [2 / 5, 2 / 5, 1 / 5])):
        model.estimate(sentences)
        features, _ = model.advance(torch.tensor([[1, 4]]), model.start(None))
        assert features.unique().tolist() == [0], "no word tells anything"
        for row in model.head.log_probs(features)[0].exp():
            assert row[[2, 4, 5]].tolist() == pytest.approx(expected)


def test_contexts_of_large_models_remain_exact_in_an_ensemble() -> None:
    """Features of an ensemble are one tensor, and float32 cannot represent all integers beyond 2^24."""
    ensemble = Ensemble([model_of("transformer"), model_of("ngram")])
    part = ensemble.parts[1]
    assert part.of(torch.tensor([[0.5] * part.columns.start + [2.0**40 + 1]], dtype=torch.float64)).item() == 2**40 + 1
    source, ids = random_source([3, 4]), random_targets(2, 4)
    features, _ = ensemble.advance(ids, ensemble.start(source))
    expected, _ = model_of("ngram").advance(ids, model_of("ngram").start(source))
    assert features.dtype == torch.float64
    assert part.of(features).equal(expected)


def test_estimates_do_not_depend_on_how_sentences_are_given() -> None:
    lists, arrays = (Ngram(NgramConfig(order=3), VOCABULARIES) for _ in range(2))
    lists.estimate([[4, 5, 6], [4]])
    arrays.estimate(np.array(ids, dtype=np.uint16).tolist() for ids in ([4, 5, 6], [4]))
    assert all(tensor.equal(arrays.state_dict()[name]) for name, tensor in lists.state_dict().items())
