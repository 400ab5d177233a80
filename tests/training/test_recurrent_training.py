"""Recurrent and other language models: learning, and trainings that are resumed bit for bit."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import BOS, EOS, PAD, random_rows
from toy_language import CPU, trainer_for
from trainings import content, gradients, interrupt_after, scarce

from heed.data.batch import collate
from heed.models import AnyConfig, build_model
from heed.models.feed_forward_lm import FeedForwardConfig
from heed.models.rnn_lm import RecurrentConfig
from heed.models.trellisnet import TrellisNetConfig
from heed.nn.contract import Smoothing, Vocabularies
from heed.nn.recurrent import CELLS
from heed.tasks.generation import chain_rule_loss
from heed.training.checkpoints import newest_checkpoint
from heed.training.trainer import Trainer

AWD = RecurrentConfig(
    d_model=12, hidden_size=16, variational=True, dropout=0.2, embedding_dropout=0.1, recurrent_dropout=0.3,
    activation_penalty=2.0, change_penalty=1.0,
)  # fmt: skip


def trainer_of(folder: Path, model: AnyConfig, name: str = "run", **keys: Any) -> Trainer:
    """A trainer of the configured model on the toy text."""
    like = trainer_for(folder, name, **{"num_streams": 4, "context": 12, **keys})
    torch.manual_seed(1)
    built = build_model(model, Vocabularies(0, len(like.task.tokenizer.vocabulary)))
    return Trainer(like.config, built, like.task, folder / name, 1, CPU, 16, quiet=True)


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (
            AWD,
            {
                "optimizer": "sgd",
                "lr": 30.0,
                "average": "nt_asgd",
                "nonmonotone": 1,
                "random_context": True,
                "eval_every": 3,
            },
        ),
        (AWD, {"precision": "bfloat16", "average": "none"}),
        (RecurrentConfig(cell="ugrnn", d_model=12, hidden_size=12, residual=True), {"average": "none"}),
        (TrellisNetConfig(d_model=8, hidden_size=12, num_levels=4, weight_dropout=0.2), {"average": "none"}),
        (FeedForwardConfig(d_model=8, hidden_size=12, dropout=0.2), {"average": "none"}),
    ],
    ids=["awd", "awd bfloat16", "ugrnn", "trellisnet", "feed forward"],
)
def test_a_stopped_training_is_resumed_bit_for_bit(tmp_path: Path, model: AnyConfig, keys: dict[str, Any]) -> None:
    straight = trainer_of(tmp_path, model, "straight", **keys)
    straight.run()
    assert straight.progress.trigger.pulled == (keys["average"] == "nt_asgd")
    trainer = trainer_of(tmp_path, model, "stopped", **keys)
    interrupt_after(trainer, 15, signal.SIGTERM)
    trainer.run()
    trainer = trainer_of(tmp_path, model, "stopped", **keys)
    trainer.restore(newest_checkpoint(tmp_path / "stopped" / "checkpoints"))
    trainer.run()
    assert content(tmp_path / "stopped") == content(tmp_path / "straight")


def test_a_batch_in_parts_has_the_gradients_of_the_whole(tmp_path: Path) -> None:
    """All that is dropped is keyed by row or by update, and penalties are added up over tokens."""
    whole = trainer_of(tmp_path, AWD, "whole")
    batch = next(whole.task.loader(0, whole.seed).batches_from())[1]
    in_parts = trainer_of(tmp_path, AWD, "parts")
    scarce(in_parts, batch.num_positions // 3)
    expected, found = gradients(whole, [batch]), gradients(in_parts, [batch])
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-6)


LEARNERS: dict[str, AnyConfig] = {
    **{cell: RecurrentConfig(cell=cell, d_model=32, hidden_size=32, dropout=0.0, layer_bound=0.3) for cell in CELLS},
    "adaptive": RecurrentConfig(d_model=32, hidden_size=32, dropout=0.0, tie=False, cutoffs=(20,)),
    "feed_forward": FeedForwardConfig(order=3, d_model=32, hidden_size=32),
    "trellisnet": TrellisNetConfig(d_model=32, hidden_size=48, num_levels=4, dropout=0.0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_memorises_a_few_lines(name: str) -> None:
    torch.manual_seed(1)
    model = build_model(LEARNERS[name], Vocabularies(0, 50))
    rows = random_rows([12, 15, 9, 14], 50, seed=1)
    batch = collate(None, rows, range(4), BOS, EOS, PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(200):
        loss = chain_rule_loss(model, batch, Smoothing(), None)
        mean = loss.loss_sum / batch.num_targets
        if mean < 0.2:
            return
        optimizer.zero_grad()
        mean.backward()
        optimizer.step()
    pytest.fail(f"the loss is still {mean:.2f} nats per token")
