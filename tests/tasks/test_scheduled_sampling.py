"""Scheduled sampling: the published decays, keyed choices, the loss for every translator, and exact resuming."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import BOS, EOS, PAD, VOCABULARIES, model_of, random_rows
from toy import last_checkpoint, prepared, straight_and_resumed, trainer_of

from heed.core.config import Document
from heed.core.errors import UsageError
from heed.data.batch import Batch, collate, divided
from heed.models import MODELS, GenerativeModel
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.recipe import build_recipe
from heed.tasks.generation import chain_rule_loss
from heed.tasks.scheduled_sampling import DECAYS, read_partly_own, truth_probability
from heed.training.config import TrainingConfig

TRANSLATORS = [
    kind for kind, each in MODELS.items()
    if issubclass(each, GenerativeModel) and each.needs_source and each.source == "tokens" and not each.count_based
]  # fmt: skip
LENGTHS = (6, 3, 5, 8)


def batch_of(lengths: tuple[int, ...] = LENGTHS, rows: range | None = None) -> Batch:
    src = random_rows(lengths, VOCABULARIES.src_size, seed=1)
    tgt = random_rows(lengths, VOCABULARIES.tgt_size, seed=2)
    return collate(src, tgt, rows or range(len(lengths)), BOS, EOS, PAD)


def test_the_probability_of_the_truth_falls_as_published() -> None:
    """At i = k: 0, 1/e and k / (k + e); it begins near 1 and ends at the final value."""
    expected = {"linear": 0.0, "exponential": 1 / math.e, "inverse_sigmoid": 100 / (100 + math.e)}
    assert {name: DECAYS[name](100, 100) for name in DECAYS} == pytest.approx(expected)
    for name in DECAYS:
        config = TrainingConfig(truth_probability=0.25, truth_decay=name, truth_decay_updates=50)  # type: ignore[arg-type]
        falling = [truth_probability(config, update) for update in range(1, 100_000, 500)]
        assert falling == sorted(falling, reverse=True) and falling[-1] == 0.25
        assert truth_probability(config, 1) > 0.95
    assert truth_probability(TrainingConfig(), 10**9) == 1.0


@pytest.mark.parametrize("name", TRANSLATORS)
def test_each_position_reads_the_truth_or_a_sample_of_the_model_after_what_it_read(name: str) -> None:
    model, batch = model_of(name), batch_of()
    keys = DropoutKeys.for_step(1, 7, batch.rows)
    state = model.start(batch.source, dropout_keys=keys)
    read = read_partly_own(model, batch.tgt_in, state, keys, 0.5)
    assert read[:, 0].equal(batch.tgt_in[:, 0])
    differs = read != batch.tgt_in
    assert 0.2 < differs[:, 1:].float().mean() < 0.7
    features, _ = model.advance(read, model.start(batch.source, dropout_keys=keys))
    probable = model.head.log_probs(features[:, :-1]).gather(-1, read[:, 1:, None])[..., 0]
    assert (probable[differs[:, 1:]] > -12).all()  # samples are tokens that the model gives probability
    found = chain_rule_loss(model, batch, Smoothing(), keys, truth=0.5)
    expected, _ = model.head.loss(features, batch.tgt_out, batch.tgt_mask, Smoothing())
    torch.testing.assert_close(found.loss_sum, expected)
    found.loss_sum.backward()  # type: ignore[no-untyped-call]


def test_samples_follow_the_distribution_of_the_model() -> None:
    """Without the truth, the second token of many equal rows has the frequencies that the model predicts."""
    model, num_rows = model_of("transformer"), 4000
    batch = batch_of((2,) * num_rows)
    source = type(batch.source)(batch.source.ids[:1], batch.source.mask[:1])  # type: ignore[call-arg, union-attr, misc]
    keys = DropoutKeys.for_step(3, 1, torch.arange(num_rows))
    state = model.start(source, num_rows)
    read = read_partly_own(model, batch.tgt_in, state, keys, 0.0)
    features, _ = model.advance(batch.tgt_in[:1, :1], model.start(source))
    expected = model.head.log_probs(features[0, 0]).exp()
    shares = torch.bincount(read[:, 1], minlength=VOCABULARIES.tgt_size) / num_rows
    torch.testing.assert_close(shares, expected, atol=0.03, rtol=0)


def test_choices_do_not_depend_on_the_neighbours() -> None:
    model, batch = model_of("encoder_decoder"), batch_of()

    def read(part: Batch) -> torch.Tensor:
        keys = DropoutKeys.for_step(1, 7, part.rows)
        return read_partly_own(model, part.tgt_in, model.start(part.source, dropout_keys=keys), keys, 0.3)

    together, (left, right) = read(batch), divided(batch, 2)
    for part, rows in ((left, slice(0, 2)), (right, slice(2, 4))):
        alone = read(part)
        assert alone[part.tgt_mask].equal(together[rows, : alone.shape[1]][part.tgt_mask])


def test_a_training_with_scheduled_sampling_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "training__truth_probability": 0.3, "training__truth_decay": "linear", "training__truth_decay_updates": 6.0,
        "model__dropout": 0.3,
    }  # fmt: skip
    straight, again = straight_and_resumed(tmp_path, **changes)
    assert straight.progress.step == again.progress.step == 8
    assert all(torch.equal(tensor, straight.weights[name]) for name, tensor in again.weights.items())
    steps = {"training__max_steps": 8, "training__save_every": 4, "training__truth_probability": 1.0}
    trainer_of(prepared(tmp_path, "plain", **{**changes, **steps})).run()
    forced = last_checkpoint(tmp_path / "plain")
    assert not all(torch.equal(tensor, straight.weights[name]) for name, tensor in forced.weights.items())


def test_scheduled_sampling_with_r_drop_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"training\.truth_probability below 1\) cannot be combined with R-Drop: set it to 1"
    ):
        prepared(tmp_path, training__truth_probability=0.5, training__r_drop=1.0, model__dropout=0.3)


def test_scheduled_sampling_in_sharded_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'equally many steps: set training\.parallel = "data"'):
        prepared(tmp_path, training__truth_probability=0.5, training__parallel="sharded")


def test_a_task_without_scheduled_sampling_says_so() -> None:
    keys = {
        "task": "language-model",
        "data.text": "a.txt",
        "model.kind": "gpt",
        "training.stop_metric": "perplexity",
        "training.truth_probability": 0.5,
    }
    with pytest.raises(UsageError, match=r"task 'language-model' has no scheduled sampling .* set it to 1"):
        build_recipe(Document(), keys)
