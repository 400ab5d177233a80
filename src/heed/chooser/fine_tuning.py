"""What does a training that begins with the weights of a run take from it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.chooser.facts import Choices, Chooser, Machine, Survey
from heed.training.config import TrainingConfig


def fine_tuned(
    choose: Chooser, survey: Survey, machine: Machine, trained: Mapping[str, Any], given: Mapping[str, Any]
) -> Choices:
    """The choices when training begins with the weights of a run: its model, read as it was, and a lower rate.

    `trained` are the tables of that run's recipe. The other choices fit what comes from it, but for its model's sizes;
    a translator's dropout is chosen for the new data.
    """
    inherited = {key: value for key, value in _inherited(trained, given).items() if key not in given}
    fitted = {key: value for key, value in inherited.items() if key == "model.kind" or not key.startswith("model.")}
    choices = choose(survey, machine, {**fitted, **given})
    anew = {"model.dropout"} & set(choices.values) if trained["task"] == "translation" else set()
    inherited = {key: value for key, value in inherited.items() if key not in anew}
    values = {key: value for key, value in choices.values.items() if key in anew or not key.startswith("model.")}
    reasons = {key: choices.reasons[key] for key in values} | dict.fromkeys(inherited, "as in --init")
    if "training.lr" in inherited:
        reasons["training.lr"] = "a quarter of the rate of --init"
    return Choices(values | inherited, reasons)


_OF_THE_RATE = (
    "optimizer", "schedule", "lr_decay", "decay_after", "clip_norm", "weight_decay", "beta1", "beta2", "epsilon",
)  # fmt: skip
"""What a learning rate is meant for: 20 is a rate of SGD, and ruins the weights with Adam."""


def _inherited_rate(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A quarter of the rate of a run, with all that it is meant for; nothing where the user wants another of these."""
    training = trained["training"]
    if any(given.get(f"training.{name}", training[name]) != training[name] for name in ("optimizer", "schedule")):
        return {}
    usual = TrainingConfig().model_dump()
    unusual = {f"training.{name}": training[name] for name in _OF_THE_RATE if training[name] != usual[name]}
    if training["schedule"] == "noam":  # whose peak is in its warm-up
        unusual["training.warmup_steps"] = training["warmup_steps"]
    return {**unusual, "training.lr": training["lr"] / 4}


def _inherited(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the weights of a run ask for. A new vocabulary is of its kind, and of a size that fits the data."""
    keys = [f"{table}.{name}" for table in ("tokenizer", "model") for name in trained[table]]
    keys.remove("tokenizer.vocab_size")
    keys.append("data.normaliser")
    if trained["task"] == "language-model":
        keys += ["training.context", "training.num_streams"]
        if given.get("data.text_as") != "lines":  # lines that stand alone are never blank, and end in one way
            keys += ["data.text_as", "data.line_end", "data.keep_blank_lines"]
    values = {key: trained[table][name] for key in keys for table, name in [key.split(".")]}
    return {**values, **_inherited_rate(trained, given)}
