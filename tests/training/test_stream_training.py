"""Training on streams: the state is carried through a stop, parts of a batch, and epochs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_language import trainer_for
from trainings import batches_of, content, gradients, interrupt_after, scarce

from heed.core.errors import UsageError
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import state_tensors
from heed.tasks.generation import chain_rule_loss
from heed.training.checkpoints import list_checkpoints, newest_checkpoint
from heed.training.trainer import Trainer


def carried(trainer: Trainer) -> dict[str, torch.Tensor]:
    assert trainer.carried is not None
    return state_tensors(trainer.carried)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"accumulate": 3, "precision": "bfloat16"},
        {"random_context": True, "context": 12, "average": "last"},
    ],
)
@pytest.mark.parametrize("stop", [13, 18])
def test_a_training_on_streams_is_resumed_bit_for_bit(tmp_path: Path, stop: int, keys: dict[str, Any]) -> None:
    straight = trainer_for(tmp_path, "straight", **keys)
    straight.run()
    trainer = trainer_for(tmp_path, "stopped", **keys)
    interrupt_after(trainer, stop, signal.SIGTERM)
    trainer.run()
    trainer = trainer_for(tmp_path, "stopped", **keys)
    trainer.restore(newest_checkpoint(tmp_path / "stopped" / "checkpoints"))
    assert trainer.progress.step == stop
    trainer.run()
    found = content(tmp_path / "stopped")
    assert any(name.endswith("carried.safetensors") for name in found)
    assert found == content(tmp_path / "straight")


def test_a_killed_training_on_streams_is_resumed_from_an_older_checkpoint(tmp_path: Path) -> None:
    trainer_for(tmp_path, "straight").run()
    trainer = trainer_for(tmp_path, "killed")
    interrupt_after(trainer, 17, signal.SIGTERM)
    trainer.run()
    newest = list_checkpoints(tmp_path / "killed" / "checkpoints")[-1]
    (newest / "carried.safetensors").unlink()  # as if it had been killed in the middle of writing
    trainer = trainer_for(tmp_path, "killed")
    trainer.restore(newest_checkpoint(tmp_path / "killed" / "checkpoints"))
    assert trainer.progress.step == 12
    trainer.run()
    assert content(tmp_path / "killed") == content(tmp_path / "straight")


def test_the_state_is_carried_within_an_epoch_only(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path)
    first, second = batches_of(trainer, 2)
    assert (first.segment, second.segment) == (0, 1)
    trainer.train_step([first])
    state = trainer.carried
    assert state is not None
    loss = [float(trainer.task.loss(trainer.model, second, None, before).nll_sum) for before in (None, state)]
    assert loss[0] != loss[1]
    trainer.train_step([second])
    assert int(carried(trainer)["length"]) == 14
    trainer.train_step([first])  # which begins an epoch
    assert int(carried(trainer)["length"]) == 7


def test_two_segments_of_an_update_equal_one_of_twice_the_length(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path)
    pair = batches_of(trainer, 2)
    dropout_keys = DropoutKeys.for_step(1, 1, pair[0].rows)
    found = chain_rule_loss(trainer.model, pair[0], Smoothing(), dropout_keys)
    then = chain_rule_loss(trainer.model, pair[1], Smoothing(), dropout_keys, found.state)
    state = trainer.model.start(None, 4, dropout_keys=dropout_keys)
    together, _ = trainer.model.advance(torch.cat([batch.tgt_in for batch in pair], 1), state)
    ids, mask = (torch.cat([getattr(batch, name) for batch in pair], 1) for name in ("tgt_out", "tgt_mask"))
    _, nll_sum = trainer.model.head.loss(together, ids, mask, Smoothing())
    assert float(found.nll_sum + then.nll_sum) == pytest.approx(float(nll_sum), rel=1e-5)
    assert not any(tensor.requires_grad for tensor in state_tensors(then.state).values())  # type: ignore[arg-type]


def test_streams_in_parts_have_the_same_gradient_and_state(
    tmp_path: Path,
) -> None:
    enough, little = (trainer_for(tmp_path, name) for name in ("enough", "little"))
    first, second, third = batches_of(enough, 3)
    for trainer in (enough, little):
        trainer.train_step([first])
    tried = scarce(little, 14)
    expected, found = gradients(enough, [second, third]), gradients(little, [second, third])
    assert 14 in tried
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-7, msg=name)
    for name, tensor in carried(enough).items():
        torch.testing.assert_close(carried(little)[name], tensor)


def test_a_skipped_update_does_not_change_the_state(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path)
    first, second = batches_of(trainer, 2)
    trainer.train_step([first])
    before = carried(trainer)
    loss = trainer.task.loss
    trainer.task.loss = lambda *a: loss(*a)._replace(loss_sum=loss(*a).loss_sum * float("nan"))  # type: ignore[method-assign]
    trainer.train_step([second])
    assert all(torch.equal(before[name], tensor) for name, tensor in carried(trainer).items())


def test_a_skipped_update_at_the_beginning_of_an_epoch_discards_the_state(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path)
    first, second = batches_of(trainer, 2)
    trainer.train_step([second])
    loss = trainer.task.loss
    trainer.task.loss = lambda *a: loss(*a)._replace(loss_sum=loss(*a).loss_sum * float("nan"))  # type: ignore[method-assign]
    trainer.train_step([first])
    assert trainer.carried is None


def test_the_rate_is_proportional_to_the_random_length_of_a_segment(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path, random_context=True, context=20)
    [batch] = batches_of(trainer, 1)
    assert batch.relative_length == batch.tgt_in.shape[1] / 20 != 1
    trainer.train_step([batch])
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(trainer.rate(1) * batch.relative_length)


def test_a_checkpoint_with_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path, max_steps=6)
    trainer.run()
    checkpoint = newest_checkpoint(tmp_path / "run" / "checkpoints")
    other = trainer_for(tmp_path, "other")
    odd = {name.replace("hidden", "memory"): tensor for name, tensor in checkpoint.carried.items()}
    checkpoint.__dict__["carried"] = odd
    with pytest.raises(UsageError, match=r"streams belong to another model"):
        other.restore(checkpoint)


def test_windows_are_trained_without_a_state(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path, text_as="windows", max_steps=10)
    trainer.run()
    assert trainer.carried is None
    assert not newest_checkpoint(tmp_path / "run" / "checkpoints").carried
