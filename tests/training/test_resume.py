"""Resumed trainings equal uninterrupted ones bit for bit."""

from __future__ import annotations

import random
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import events, prepared, trainer_of, unchecked_shapes
from trainings import content, interrupt_after

from heed.run import Run
from heed.training.checkpoints import list_checkpoints, newest_checkpoint
from heed.training.trainer import Outcome, Trainer

STEPS = 24
KEYS = {"training__max_steps": STEPS, "training__eval_every": 8, "training__save_every": 7}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an uninterrupted training with `KEYS`, which must not be changed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    with unchecked_shapes():
        trainer_of(prepared(folder, **KEYS)).run()
    return folder / "run"


def resume(folder: Path) -> tuple[Trainer, Outcome]:
    """Continue from the newest checkpoint, as another process would."""
    trainer = trainer_of(Run(folder))
    trainer.restore(newest_checkpoint(folder / "checkpoints"))
    return trainer, trainer.run()


def trained_straight(tmp_path: Path, keys: dict[str, Any]) -> Path:
    """The run folder of an uninterrupted training."""
    trainer_of(prepared(tmp_path, "straight", **keys)).run()
    return tmp_path / "straight"


def check(tmp_path: Path, stops: list[int], keys: dict[str, Any], straight: Path) -> None:
    """A run that is stopped after the updates `stops` equals the uninterrupted one."""
    trainer = trainer_of(prepared(tmp_path, "stopped", **keys))
    folder = tmp_path / "stopped"
    for number, stop in zip([signal.SIGTERM, signal.SIGINT], stops, strict=False):
        interrupt_after(trainer, stop, number)
        outcome = trainer.run()
        assert (outcome.interrupted_by, trainer.progress.step) == (number, stop)
        trainer = trainer_of(Run(folder))
        trainer.restore(newest_checkpoint(folder / "checkpoints"))
    assert trainer.run().interrupted_by is None
    assert content(folder) == content(straight)
    assert _without_ends(folder) == _without_ends(straight)
    progress = newest_checkpoint(straight / "checkpoints").progress
    same = {name: value for name, value in vars(progress).items() if name not in ("seconds", "window")}
    assert {name: value for name, value in vars(trainer.progress).items() if name in same} == same


def _without_ends(folder: Path) -> list[dict[str, Any]]:
    return [event for event in events(folder) if event["event"] != "end"]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    contents = []
    keys = {**KEYS, "training__max_steps": 8, "tokenizer__dropout": 0.2}
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        trainer_of(prepared(tmp_path, name, seed=seed, **keys)).run()
        contents.append(content(tmp_path / name))
    assert contents[0] == contents[1]
    assert all(contents[0][name] != other for name, other in contents[2].items())


def test_a_stopped_training_is_resumed_bit_for_bit(uninterrupted: Path, tmp_path: Path) -> None:
    check(tmp_path, [11], KEYS, uninterrupted)


def test_a_training_with_all_kinds_of_randomness_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    keys = {
        **KEYS, "tokenizer__dropout": 0.2, "model__dropout": 0.3, "model__attention_dropout": 0.1,
        "training__accumulate": 2, "training__precision": "bfloat16", "training__average": "last",
        "training__average_last": 3, "training__optimizer": "adamw", "training__weight_decay": 0.01,
    }  # fmt: skip
    check(tmp_path, [9, 17], keys, trained_straight(tmp_path, keys))


def test_an_encoder_decoder_of_nested_tables_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    keys = {
        **KEYS, "model__kind": "encoder_decoder", "model__decoder__attends": "after", "training__optimizer": "muon",
        "model__decoder__input_feeding": True, "training__truth_probability": 0.5, "training__truth_decay_updates": 5.0,
    }  # fmt: skip
    check(tmp_path, [9], keys, trained_straight(tmp_path, keys))


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(12))
def test_a_training_with_random_settings_is_resumed_bit_for_bit(tmp_path: Path, draw: int) -> None:
    dice = random.Random(draw)
    keys = {
        **KEYS, "tokenizer__dropout": dice.choice([0.0, 0.3]), "model__dropout": dice.choice([0.0, 0.3]),
        "training__accumulate": dice.choice([1, 2, 3]), "training__precision": dice.choice(["float32", "bfloat16"]),
        "training__average": dice.choice(["ema", "last", "none"]), "training__save_every": dice.randint(1, 9),
        "training__schedule": dice.choice(["noam", "inverse_sqrt", "cosine", "constant"]),
        "model__kind": dice.choice(["transformer", "rnn_attention"]), "seed": dice.randint(0, 99),
    }  # fmt: skip
    check(tmp_path, sorted(dice.sample(range(1, STEPS), 2)), keys, trained_straight(tmp_path, keys))


def test_a_training_that_resumes_before_a_damaged_checkpoint_ends_equally(uninterrupted: Path, tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, "stopped", **KEYS))
    interrupt_after(trainer, 17, signal.SIGTERM)
    trainer.run()
    folder = tmp_path / "stopped"
    (list_checkpoints(folder / "checkpoints")[-1] / "weights.safetensors").write_bytes(b"")
    trainer, _ = resume(folder)
    assert trainer.progress.step == STEPS
    assert content(folder) == content(uninterrupted)


def test_resuming_a_finished_training_changes_nothing(uninterrupted: Path, tmp_path: Path) -> None:
    shutil.copytree(uninterrupted, tmp_path / "run")
    before = content(tmp_path / "run")
    trainer, outcome = resume(tmp_path / "run")
    assert outcome.reason == f"reached {STEPS} updates (training.max_steps)"
    assert trainer.progress.num_validations == 3
    assert content(tmp_path / "run") == before


@pytest.mark.parametrize("keys", [{"training__average": "last"}, {"training__schedule": "plateau"}])
def test_raising_a_limit_does_not_change_the_training(tmp_path: Path, keys: dict[str, Any]) -> None:
    """The validation at a limit keeps the best weights, and has no effect on the resumed training."""
    keys = {**KEYS, "training__stop_metric": "bleu", **keys}
    straight = trainer_of(prepared(tmp_path, "straight", **keys))
    straight.run()
    trainer_of(prepared(tmp_path, "limited", **{**keys, "training__max_steps": 11})).run()
    recipe = tmp_path / "limited" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 11", f"max_steps = {STEPS}"))
    resume(tmp_path / "limited")
    ends = [newest_checkpoint(tmp_path / name / "checkpoints") for name in ("straight", "limited")]
    for part in ("weights", "optimizer", "average"):
        ours, theirs = (getattr(end, part) for end in ends)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items()), part
    assert ends[0].progress.rate_scale == ends[1].progress.rate_scale
    assert ends[0].progress.num_validations == ends[1].progress.num_validations == 3


def test_the_best_validation_at_a_limit_does_not_change_the_training(tmp_path: Path) -> None:
    """Its weights are kept, and later scores are compared with those of an uninterrupted training."""
    scores = {8: 10.0, 11: 30.0, 16: 20.0, 24: 25.0}
    keys = {**KEYS, "training__stop_metric": "bleu", "training__schedule": "plateau", "training__patience": 2}

    def with_scores(run: Run) -> Trainer:
        trainer = trainer_of(run)
        validate = trainer.task.validate

        def scored(model: Any, metrics: Any) -> Any:
            found = validate(model, metrics)
            score = replace(found.scores["bleu"], value=scores[trainer.progress.step])
            return replace(found, scores={**found.scores, "bleu": score})

        trainer.task.validate = scored  # type: ignore[method-assign]
        return trainer

    straight = with_scores(prepared(tmp_path, "straight", **keys))
    straight.run()
    with_scores(prepared(tmp_path, "limited", **{**keys, "training__max_steps": 11})).run()
    recipe = tmp_path / "limited" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 11", f"max_steps = {STEPS}"))
    limited = with_scores(Run(tmp_path / "limited"))
    limited.restore(newest_checkpoint(tmp_path / "limited" / "checkpoints"))
    limited.run()
    ends = straight.progress, limited.progress
    assert [end.rate_scale for end in ends] == [1, 1]
    assert [end.validations_since_best for end in ends] == [0, 0]
    assert [(end.best_step, end.best_score) for end in ends] == [(24, 25), (11, 30)]


def test_between_equal_scores_the_perplexity_decides(tmp_path: Path) -> None:
    """Early BLEU scores are all 0, which must neither stop the training nor keep the first weights."""
    keys = {**KEYS, "training__stop_metric": "bleu", "training__patience": 2, "training__max_steps": 32}
    trainer = trainer_of(prepared(tmp_path, **keys))
    validate, perplexities = trainer.task.validate, {8: 90.0, 16: 80.0, 24: 70.0, 32: 75.0}

    def scored(model: Any, metrics: Any) -> Any:
        found = validate(model, metrics)
        values = {"bleu": 0.0, "perplexity": perplexities[trainer.progress.step]}
        scores = {name: replace(found.scores[name], value=value) for name, value in values.items()}
        return replace(found, scores={**found.scores, **scores})

    trainer.task.validate = scored  # type: ignore[method-assign]
    assert trainer.run().reason == "reached 32 updates (training.max_steps)"
    assert (trainer.progress.best_step, trainer.progress.validations_since_best) == (24, 1)


def test_a_checkpoint_of_an_older_version_keeps_its_best_score(uninterrupted: Path) -> None:
    trainer = trainer_of(Run(uninterrupted))
    checkpoint = newest_checkpoint(uninterrupted / "checkpoints")
    checkpoint.progress.best_on_schedule = checkpoint.progress.best_perplexity_on_schedule = None
    trainer.restore(checkpoint)
    assert trainer.progress.best_on_schedule == trainer.progress.best_score is not None
    trainer._adapt(trainer.progress.best_on_schedule, 1e9)
    assert trainer.progress.validations_since_best == 0, "of equal scores the one with a perplexity"


@pytest.mark.parametrize("average", ["last", "ema"])
def test_a_signal_interrupts_a_validation_which_is_repeated(uninterrupted: Path, tmp_path: Path, average: str) -> None:
    keys = {**KEYS, "training__average": average}
    straight = uninterrupted if average == "ema" else trained_straight(tmp_path, keys)
    trainer = trainer_of(prepared(tmp_path, "stopped", **keys))
    folder = tmp_path / "stopped"

    def interrupted(model: Any, metrics: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the validation went on")

    trainer.task.validate = interrupted  # type: ignore[method-assign]
    outcome = trainer.run()
    assert (outcome.reason, trainer.progress.step) == ("stopped by SIGTERM", 8)
    assert not (folder / "model.safetensors").exists()
    resume(folder)
    assert content(folder) == content(straight)
    assert _without_ends(folder) == _without_ends(straight)


def test_an_interrupted_last_validation_is_repeated(tmp_path: Path) -> None:
    keys = {**KEYS, "training__max_steps": 11, "training__average": "last"}
    straight = trainer_of(prepared(tmp_path, "straight", **keys))
    straight.run()
    trainer = trainer_of(prepared(tmp_path, "stopped", **keys))
    validate = trainer.task.validate

    def interrupted(model: Any, metrics: Any) -> Any:
        if trainer.progress.step == 11:
            signal.raise_signal(signal.SIGINT)
        return validate(model, metrics)

    trainer.task.validate = interrupted  # type: ignore[method-assign]
    assert trainer.run().reason == "stopped by SIGINT"
    folder = tmp_path / "stopped"
    assert newest_checkpoint(folder / "checkpoints").progress.validated_at == 8
    resume(folder)
    kept = newest_checkpoint(folder / "checkpoints").progress
    assert (kept.validated_at, kept.best_score) == (11, straight.progress.best_score)
    assert content(folder) == content(tmp_path / "straight")


def test_a_second_signal_exits_at_once(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path, **KEYS))
    update = trainer.train_step

    def twice(batches: Any) -> None:
        update(batches)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    trainer.train_step = twice  # type: ignore[method-assign]
    with pytest.raises(SystemExit) as left:
        trainer.run()
    assert left.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
