"""Training loop: gradients, limits, averages, skipped updates, and batches that do not fit into memory."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from toy import events, prepared, trainer_of
from trainings import batches_of, gradients, scarce

from heed.core.errors import HeedError, StorageError, UsageError
from heed.core.progress import Progress
from heed.core.run_files import RunFiles
from heed.core.run_manifest import read_digests
from heed.data.batch import Batch, collate
from heed.metrics.metric import Score
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.task import Loss, Validation
from heed.training.checkpoints import list_checkpoints, load_checkpoint
from heed.training.gradients import Sums
from heed.training.progress import Divergence
from heed.training.trainer import Trainer


@pytest.fixture
def trainer(tmp_path: Path) -> Trainer:
    return trainer_of(prepared(tmp_path))


def halves(batch: Batch, cut: int) -> list[Batch]:
    """The same rows as two batches, without padding that is not needed."""
    assert batch.source is not None
    parts = []
    for rows in (range(cut), range(cut, batch.rows.shape[0])):
        src = [batch.source.ids[row][batch.source.mask[row]].tolist()[:-1] for row in rows]
        tgt = [batch.tgt_out[row][batch.tgt_mask[row]].tolist()[:-1] for row in rows]
        parts.append(collate(src, tgt, batch.rows[list(rows)].numpy(), bos_id=1, eos_id=2, pad_id=0))
    return parts


@pytest.mark.parametrize("cut", [1, 9])
def test_an_update_from_two_parts_of_a_batch_equals_that_of_the_whole_including_dropout(
    trainer: Trainer, cut: int
) -> None:
    [batch] = batches_of(trainer, 1)
    whole = gradients(trainer, [batch])
    trainer.progress.step = 0
    parts = gradients(trainer, halves(batch, cut))
    assert whole.keys() == parts.keys() == trainer.weights.master.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, rtol=1e-4, atol=1e-7)


def test_the_gradient_is_that_of_the_mean_over_all_target_tokens(trainer: Trainer) -> None:
    batches = batches_of(trainer, 2)
    assert batches[0].num_tokens != batches[1].num_tokens
    found = gradients(trainer, batches)
    total = sum(
        trainer.task.loss(trainer.model, batch, DropoutKeys.for_step(trainer.seed, 1, batch.rows))[0]
        for batch in batches
    )
    assert isinstance(total, Tensor)
    expected = torch.autograd.grad(total / sum(batch.num_tokens for batch in batches), trainer.weights.parameters())
    for (name, gradient), by_hand in zip(found.items(), expected, strict=True):
        torch.testing.assert_close(gradient, by_hand, rtol=1e-4, atol=1e-7, msg=name)


def test_the_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__clip_norm=0.01))
    norms = []
    step = trainer.optimizer.step

    def spy() -> None:
        norms.append(float(torch.stack([p.grad.norm() for p in trainer.weights.parameters()]).norm()))  # type: ignore[union-attr]
        step()

    trainer.optimizer.step = spy  # type: ignore[method-assign,assignment]
    trainer.train_step(batches_of(trainer, 1))
    assert norms == [pytest.approx(0.01, rel=1e-3)]


def test_training_lowers_the_loss_and_writes_model_log_and_checkpoints(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__max_steps=60, training__eval_every=30, training__save_every=20))
    outcome = trainer.run()
    folder = tmp_path / "run"
    assert outcome.reason == "reached 60 updates (training.max_steps)"
    assert outcome.interrupted_by is None
    log = events(folder)
    losses = [event["loss"] for event in log if event["event"] == "train"]
    assert len(losses) == 12
    assert losses[-1] < 0.7 * losses[0]
    assert {"loss", "perplexity", "padding_share", "lr", "epoch"} <= log[0].keys()
    validations = [event for event in log if event["event"] == "validation"]
    assert [event["step"] for event in validations] == [30, 60]
    assert validations[0]["signatures"]["bleu"].startswith("nrefs:1|")
    assert len(validations[0]["samples"]) == 4
    assert log[-1] == {"event": "end", "step": 60, "reason": outcome.reason}
    assert [path.name[-2:] for path in list_checkpoints(folder / "checkpoints")] == ["20", "40", "60"]
    best = max(validations, key=lambda event: (event["bleu"], -event["perplexity"]))
    kept = load_file(folder / "model.safetensors")
    assert kept.keys() == dict(trainer.evaluated.named_parameters()).keys()
    assert trainer.progress.best_step == best["step"]


def test_the_plain_weights_are_validated_and_kept_when_nothing_is_averaged(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__average="none", training__max_steps=10))
    trainer.run()
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(kept[name], weights) for name, weights in trainer.weights.master.items())


def test_the_last_validated_weights_are_averaged(tmp_path: Path) -> None:
    keys = {"training__average": "last", "training__average_last": 2, "training__eval_every": 2}
    trainer = trainer_of(prepared(tmp_path, **keys, training__max_steps=6))
    now: list[dict[str, Tensor]] = []
    seen: list[dict[str, Tensor]] = []

    def validate(model: Any, metrics: Any) -> Validation:
        now.append({name: weights.detach().clone() for name, weights in trainer.weights.master.items()})
        seen.append({name: weights.clone() for name, weights in model.named_parameters()})
        return Validation({name: Score(name, 1.0, "") for name in ("bleu", "perplexity")})

    trainer.task.validate = validate  # type: ignore[method-assign]
    trainer.run()
    assert len(now) == 3
    for name in now[0]:
        torch.testing.assert_close(seen[0][name], now[0][name])
        torch.testing.assert_close(seen[1][name], (now[0][name] + now[1][name]) / 2)
        torch.testing.assert_close(seen[2][name], (now[1][name] + now[2][name]) / 2)


@pytest.mark.parametrize(
    ("metric", "scores", "stops_at", "best_at"),
    [("bleu", [1, 5, 4, 5, 9], 8, 4), ("perplexity", [9, 7, 8, 6, 6, 6], 12, 8)],
)
def test_training_stops_after_validations_without_a_better_score(
    tmp_path: Path, metric: str, scores: list[float], stops_at: int, best_at: int
) -> None:
    keys = {"training__patience": 2, "training__stop_metric": metric, "training__eval_every": 2}
    trainer = trainer_of(prepared(tmp_path, **keys))
    script = iter(scores)
    trainer.task.validate = lambda model, metrics: Validation(  # type: ignore[method-assign]
        {"perplexity": Score("perplexity", 1.0, ""), metric: Score(metric, next(script), "")}
    )
    assert trainer.run().reason == f"no better {metric} in 2 validations (training.patience)"
    assert (trainer.progress.step, trainer.progress.best_step) == (stops_at, best_at)


def test_training_stops_after_a_number_of_epochs(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__max_epochs=2, training__max_steps=10_000))
    per_epoch = trainer.task.loader(256, 1).num_batches(0)
    assert trainer.run().reason == "reached 2 epochs (training.max_epochs)"
    assert trainer.progress.step == pytest.approx(2 * per_epoch, abs=1)


def test_the_bar_shows_the_share_of_the_nearest_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes end long before ten thousand updates: half of them are half of the time."""
    shown: list[tuple[float, float]] = []

    class Spy(Progress):
        def update(self, done: float, *values: Any) -> None:
            shown.append(values[-2:])

    monkeypatch.setattr("heed.training.trainer.Bar", Spy)
    trainer = trainer_of(prepared(tmp_path, training__max_epochs=2, training__max_steps=10_000))
    trainer.run()
    shares = [share for _, share in shown]
    assert shares == pytest.approx([(step + 1) / len(shown) for step in range(len(shown))], abs=1e-6)
    assert shown[-1][0] == 0.0 < shown[0][0]


def test_training_stops_after_a_number_of_minutes_and_validates(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__max_minutes=1e-9, training__max_steps=10_000))
    assert trainer.run().reason == "reached 6e-08 seconds (training.max_minutes)"
    assert trainer.progress.step == trainer.progress.validated_at == 1
    assert (tmp_path / "run" / "model.safetensors").exists()


def spoil(trainer: Trainer, *steps: int) -> None:
    """Make the loss of these updates not a number."""
    loss = trainer.task.loss

    def spoiled(*arguments: Any) -> Loss:
        found = loss(*arguments)
        factor = float("nan") if trainer.progress.step + 1 in steps else 1.0
        return found._replace(loss_sum=found.loss_sum * factor)

    trainer.task.loss = spoiled  # type: ignore[method-assign]


def test_an_update_that_is_not_finite_is_skipped_and_its_rows_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = trainer_of(prepared(tmp_path))
    trainer.quiet = False
    spoil(trainer, 2)
    batches = batches_of(trainer, 2)
    trainer.train_step(batches[:1])
    before = {name: weights.detach().clone() for name, weights in trainer.weights.master.items()}
    trainer.train_step(batches[1:])
    assert all(torch.equal(before[name], weights) for name, weights in trainer.weights.master.items())
    assert trainer.progress.skipped_in_a_row == 1
    row = int(batches[1].rows[0])
    assert f"warning: update 2 is skipped, because its gradient is not finite (rows {row}, " in capsys.readouterr().err
    trainer.train_step(batches[:1])
    assert trainer.progress.skipped_in_a_row == 0
    assert all(torch.isfinite(weights).all() for weights in trainer.weights.master.values())


def test_skipped_updates_do_not_affect_the_log(tmp_path: Path) -> None:
    """All of the first line, some of the second."""
    trainer = trainer_of(prepared(tmp_path))
    spoil(trainer, 1, 2, 3, 4, 5, 7, 9)
    trainer.run()
    first, *others = [event for event in events(tmp_path / "run") if event["event"] == "train"]
    assert [first[name] for name in ("loss", "perplexity", "padding_share")] == [None] * 3
    assert len(others) == 3
    assert all(event["perplexity"] > 1 for event in others)
    assert trainer.progress.divergence.best == pytest.approx(min(event["loss"] for event in others), rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_ten_consecutive_updates_that_are_not_finite_end_the_training_with_advice(
    tmp_path: Path, precision: str
) -> None:
    trainer = trainer_of(prepared(tmp_path, training__precision=precision))
    spoil(trainer, *range(4, 100))
    with pytest.raises(HeedError, match=r"not finite in 10 consecutive updates \(up to update 13\)\. Lower"):
        trainer.run()
    newest = load_checkpoint(list_checkpoints(tmp_path / "run" / "checkpoints")[-1])
    assert all(torch.isfinite(weights).all() for weights in newest.weights.values())


def test_a_full_disk_is_reported_before_the_first_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(prepared(tmp_path))

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match="cannot write a checkpoint: no space left on the device"):
        trainer.run()
    assert trainer.progress.step == 0


def test_a_checkpoint_of_another_model_or_average_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__average="none", training__max_steps=1))
    trainer.run()
    checkpoint = load_checkpoint(list_checkpoints(tmp_path / "run" / "checkpoints")[-1])
    with pytest.raises(UsageError, match=r"does not fit the model in recipe\.toml"):
        trainer_of(prepared(tmp_path, "wider", model__d_ff=48)).restore(checkpoint)
    with pytest.raises(UsageError, match="no average of the weights"):
        trainer_of(prepared(tmp_path, "averaged")).restore(checkpoint)
    averaged = dataclasses.replace(checkpoint, average=checkpoint.weights)
    moving = dataclasses.replace(averaged, progress=dataclasses.replace(checkpoint.progress, average="ema"))
    with pytest.raises(UsageError, match=r'training\.average was not "asgd"'):
        trainer_of(prepared(tmp_path, "asgd", training__average="asgd")).restore(moving)
    older = dataclasses.replace(averaged, progress=dataclasses.replace(checkpoint.progress, average=""))
    trainer_of(prepared(tmp_path, "ema", training__average="ema")).restore(older)
    with pytest.raises(UsageError, match=r'no earlier sets of the weights: training.average was not "last"'):
        trainer_of(prepared(tmp_path, "last", training__average="last")).restore(averaged)


@pytest.mark.parametrize(("before", "after"), [("adam", "muon"), ("muon", "adam"), ("sgd", "adam")])
def test_a_checkpoint_of_another_optimiser_is_refused(tmp_path: Path, before: str, after: str) -> None:
    keys = {"training__max_steps": 1, "training__average": "none"}
    trainer_of(prepared(tmp_path, training__optimizer=before, **keys)).run()
    checkpoint = load_checkpoint(list_checkpoints(tmp_path / "run" / "checkpoints")[-1])
    with pytest.raises(UsageError, match=f'not written with training.optimizer = "{after}".*--init'):
        trainer_of(prepared(tmp_path, "other", training__optimizer=after, **keys)).restore(checkpoint)


def test_any_score_is_better_than_one_that_is_not_a_number(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path))
    order = [math.nan, 0.0, 20.0]
    better = [trainer._is_better(value, 1.0, best, 1.0) for best in order for value in order]
    assert better == [False, True, True, False, False, True, False, False, False]
    assert trainer._is_better(math.nan, 1.0, None, None)


def test_bfloat16_trains_and_keeps_float32_weights(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__precision="bfloat16", training__max_steps=30))
    trainer.run()
    losses = [event["loss"] for event in events(tmp_path / "run") if event["event"] == "train"]
    assert losses[-1] < losses[0]
    assert {tensor.dtype for tensor in load_file(tmp_path / "run" / "model.safetensors").values()} == {torch.float32}


def test_a_batch_that_does_not_fit_into_memory_is_computed_in_parts_with_the_same_gradient(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enough, little = (trainer_of(prepared(tmp_path, name)) for name in ("enough", "little"))
    little.gradients.quiet = False
    batches = batches_of(enough, 6)
    largest = max(batch.num_positions for batch in batches)
    tried = scarce(little, largest // 2)
    expected, found = gradients(enough, batches), gradients(little, batches)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-7, msg=name)
    assert 0 < little.progress.max_positions < largest
    assert sum(size > largest // 2 for size in tried) <= 3  # cut at most so often, and remembered
    assert capsys.readouterr().err.count("out of memory") == 1


def test_a_sentence_that_does_not_fit_into_memory_ends_the_training_with_advice(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path))
    scarce(trainer, 0)
    with pytest.raises(HeedError, match=r"one row of \d+ targets.*Lower --data\.max_tokens"):
        trainer.train_step(batches_of(trainer, 1))
    assert all(torch.isfinite(weights).all() for weights in trainer.weights.master.values())


def test_gradients_of_a_failed_attempt_are_discarded(tmp_path: Path) -> None:
    enough, little = (trainer_of(prepared(tmp_path, name)) for name in ("enough", "little"))
    batches = batches_of(enough, 3)
    failed = []

    backward = little.gradients._backward

    def fails_late(model: Any, step: int, batch: Batch, num_tokens: float, before: None) -> Sums | None:
        sums = backward(model, step, batch, num_tokens, before)
        if batch is batches[1] and not failed:
            failed.append(batch)
            return None
        return sums

    little.gradients._backward = fails_late  # type: ignore[method-assign,assignment]
    expected, found = gradients(enough, batches), gradients(little, batches)
    assert failed
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-7, msg=name)


def test_other_errors_of_the_loss_are_not_treated_as_out_of_memory(trainer: Trainer) -> None:
    def wrong(*arguments: Any) -> Loss:
        raise RuntimeError("The size of tensor a (3) must match the size of tensor b (4)")

    trainer.task.loss = wrong  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="size of tensor"):
        trainer.train_step(batches_of(trainer, 1))


def test_a_loss_that_stays_far_above_its_best_is_reported_once() -> None:
    watch = Divergence()
    told = [watch.update(loss, step) for step, loss in enumerate([5.0, 3.0, 4.5, 2.0, *[3.5] * 12, 2.5, *[9.0] * 9], 1)]
    assert [bool(message) for message in told].index(True) == 13
    assert sum(map(bool, told)) == 1
    assert told[13].startswith("the training diverges: the loss is 3.50 at update 14, and was 2.00 at update 4.")


def test_a_loss_that_is_not_finite_does_not_end_the_watch() -> None:
    watch = Divergence()
    losses = [float("nan"), 2.0, *[3.5] * 5, float("inf"), *[3.5] * 5]
    told = [watch.update(loss, step) for step, loss in enumerate(losses, 1)]
    assert [step for step, message in enumerate(told, 1) if message] == [13]
    assert watch.best == 2.0


def test_a_confidence_is_deleted_with_the_weights_that_it_was_learned_from(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, training__max_steps=1))
    with RunFiles(trainer.folder).write("confidence.json", "w") as file:
        file.write("{}")
    trainer.run()
    assert (trainer.folder / "model.safetensors").exists()
    assert not (trainer.folder / "confidence.json").exists()
    assert "confidence.json" not in read_digests(trainer.folder)
