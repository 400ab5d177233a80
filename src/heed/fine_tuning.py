"""Fine-tuning: the settings that a training inherits from the run whose weights it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.task import Task
from heed.training.config import TrainingConfig


def fine_tuned(
    task: type[Task], stats: CorpusStats, machine: Machine, trained: Mapping[str, Any], given: Mapping[str, Any]
) -> Choices:
    """Choices for training that starts from the weights of another run: its model and reading, and a lower rate.

    `trained` holds the tables of that run's recipe. The other choices fit what comes from it; what the task lists in
    `chosen_anew` is chosen for the new data.
    """
    inherited = {key: value for key, value in _inherited(task, trained, given).items() if key not in given}
    fitted = {key: value for key, value in inherited.items() if key == "model.kind" or not key.startswith("model.")}
    choices = task.defaults(stats, machine, {**fitted, **given})
    anew = set(task.chosen_anew) & set(choices.values)
    inherited = {key: value for key, value in inherited.items() if key not in anew}
    values = {key: value for key, value in choices.values.items() if key in anew or not key.startswith("model.")}
    reasons = {key: choices.reasons[key] for key in values} | dict.fromkeys(inherited, "as in --init")
    if "training.lr" in inherited:
        reasons["training.lr"] = "a quarter of the rate of --init"
    return Choices(values | inherited, reasons)


_TIED_TO_RATE = (
    "optimizer", "schedule", "lr_decay", "decay_after", "clip_norm", "weight_decay", "beta1", "beta2", "epsilon",
)  # fmt: skip
"""Settings that a learning rate was chosen with: a rate of 20 suits SGD and ruins the weights with Adam."""


def _inherited_rate(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A quarter of a run's rate, with the settings tied to it; empty where the user changes one of these."""
    training = trained["training"]
    if any(given.get(f"training.{name}", training[name]) != training[name] for name in ("optimizer", "schedule")):
        return {}
    usual = TrainingConfig().model_dump()
    unusual = {f"training.{name}": training[name] for name in _TIED_TO_RATE if training[name] != usual[name]}
    if training["schedule"] == "noam":  # its peak is in the warm-up
        unusual["training.warmup_steps"] = training["warmup_steps"]
    return {**unusual, "training.lr": training["lr"] / 4}


def _inherited(task: type[Task], trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the weights of a run require. A new vocabulary is of the same kind; its size fits the data."""
    keys = [f"{table}.{name}" for table in ("tokenizer", "model") for name in trained[table]]
    keys.remove("tokenizer.vocab_size")
    keys += ["data.normaliser", *task.inherited_keys(given)]
    values = {key: trained[table][name] for key in keys for table, name in [key.split(".")]}
    return {**values, **_inherited_rate(trained, given)}
