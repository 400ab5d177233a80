"""R-Drop: the published loss for every translator, in any parts of a batch, and resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from random_models import BOS, EOS, PAD, VOCABULARIES, model_of, random_rows
from torch import Tensor
from toy import events, prepared, straight_and_resumed, trainer_of

from heed.core.errors import UsageError
from heed.data.batch import Batch, collate, divided
from heed.models import MODELS, GenerativeModel
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.generation import SECOND_PASS, r_drop_loss
from heed.training.checkpoints import list_checkpoints, load_checkpoint

ALPHA = 5.0


def batch_of(lengths: tuple[int, ...] = (4, 2, 5)) -> Batch:
    src = random_rows(lengths, VOCABULARIES.src_size, seed=1)
    tgt = random_rows(lengths[::-1], VOCABULARIES.tgt_size, seed=2)
    return collate(src, tgt, range(len(lengths)), BOS, EOS, PAD)


def gradients(loss: Tensor, model: Any) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True))


TRANSLATORS = [
    kind for kind, each in MODELS.items()
    if issubclass(each, GenerativeModel) and each.needs_source and each.source == "tokens" and not each.count_based
]  # fmt: skip


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_loss_is_that_of_two_passes_and_their_divergence(name: str) -> None:
    model, batch = model_of(name), batch_of()
    dropout_keys = DropoutKeys.for_step(1, 7, batch.rows)
    found = r_drop_loss(model, batch, Smoothing(0.1), dropout_keys, ALPHA)

    def log_probs(dropout_keys: DropoutKeys) -> Tensor:
        features, _ = model.advance(batch.tgt_in, model.start(batch.source, dropout_keys=dropout_keys))
        result: Tensor = model.head.log_probs(features)[batch.tgt_mask]
        return result

    p, q = log_probs(dropout_keys), log_probs(dropout_keys.fold(SECOND_PASS))
    assert not torch.allclose(p, q)
    truth = batch.tgt_out[batch.tgt_mask]
    nll = sum(F.cross_entropy(x, truth, reduction="sum", label_smoothing=0.1) for x in (p, q))
    divergence = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(p, q, reduction="sum", log_target=True)
    expected = (nll + ALPHA / 2 * divergence) / 2
    torch.testing.assert_close(found.loss_sum, expected, rtol=1e-5, atol=1e-4)
    for ours, theirs in zip(gradients(found.loss_sum, model), gradients(expected, model), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_loss_of_a_batch_is_the_sum_of_its_halves(name: str) -> None:
    model, batch = model_of(name), batch_of((4, 2, 5, 3))

    def loss(part: Batch) -> Tensor:
        return r_drop_loss(model, part, Smoothing(0.1), DropoutKeys.for_step(1, 7, part.rows), ALPHA).loss_sum

    left, right = divided(batch, 2)
    torch.testing.assert_close(loss(batch), loss(left) + loss(right), rtol=1e-5, atol=1e-4)


def test_a_training_with_r_drop_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    straight, again = straight_and_resumed(tmp_path, training__r_drop=ALPHA, model__dropout=0.3)
    assert straight.progress.step == again.progress.step == 8
    assert all(torch.equal(tensor, straight.weights[name]) for name, tensor in again.weights.items())


def test_r_drop_changes_the_weights_but_not_the_scale_of_the_logged_loss(tmp_path: Path) -> None:
    losses, learned = [], []
    for name, alpha in (("plain", 0.0), ("r-drop", ALPHA)):
        run = prepared(tmp_path, name, training__r_drop=alpha, training__max_steps=5, model__dropout=0.3)
        trainer_of(run).run()
        losses.append(next(event["loss"] for event in events(run.folder) if event["event"] == "train"))
        learned.append(load_checkpoint(list_checkpoints(run.folder / "checkpoints")[-1]).weights)
    assert any(not torch.equal(tensor, learned[1][name]) for name, tensor in learned[0].items())
    assert losses[1] == pytest.approx(losses[0], rel=0.2)


def test_r_drop_without_dropout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"training\.r_drop compares two passes .*: set model\.dropout"):
        prepared(tmp_path, training__r_drop=1.0, model__dropout=0.0)


def test_dropout_of_the_encoder_alone_is_enough_for_r_drop(tmp_path: Path) -> None:
    run = prepared(tmp_path, model__kind="encoder_decoder", training__r_drop=1.0, model__dropout=0.0)
    assert run.recipe.model.encoder.dropout > 0
