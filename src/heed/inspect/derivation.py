"""Inspection of a derivation: which part of the source became which part of the target, and what each step scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heed.core.errors import UsageError
from heed.inspect.inspection import MAX_SENTENCE, require_text
from heed.statistical.derivation import Derivation
from heed.tasks.predictor import Predictor


@dataclass(frozen=True)
class ShownStep:
    """A step in the order of the target."""

    source: str
    target: str
    place: tuple[int, int]
    """Begin and end of its tokens in the source."""
    score: float
    """The weighted sum of its features."""
    features: Mapping[str, float]
    """The value of each feature without its weight, those of 0 left out."""
    note: str


@dataclass(frozen=True)
class ShownDerivation:
    """A translation with its steps; the last one may be the end of the sentence, with an empty source and target."""

    text: str
    score: float
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True)
class DerivationInspection:
    """Everything that is shown of a translation that was derived."""

    source: str
    weights: Mapping[str, float]
    """The weight of each feature."""
    derivations: tuple[ShownDerivation, ...]
    """The best ones, with different texts."""
    task: Literal["derivation"] = "derivation"

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def inspect_derivation(
    predictor: Predictor, source: str, target: str | None, width: int, number: int
) -> DerivationInspection:
    """Inspect the best derivations of a sentence.

    Raises UsageError for a given target, and for a source that is blank or longer than MAX_SENTENCE.
    """
    require_text("source", source, MAX_SENTENCE)
    if target is not None:
        raise UsageError("a target was given, but this translator only shows its own derivations. Leave it out.")
    weights = predictor.derivation_weights()
    shown = (_shown(predictor, source, each, weights) for each in predictor.derivations(source, width, number))
    return DerivationInspection(source, weights, tuple(shown))


def _shown(predictor: Predictor, source: str, derivation: Derivation, weights: Mapping[str, float]) -> ShownDerivation:
    src, tgt = predictor.tokenizers["src"], predictor.tokenizers["tgt"]
    [ids] = src.encode([predictor.run.recipe.data.normaliser.apply(source)])
    steps = tuple(
        ShownStep(
            src.decode([ids[slice(*step.source)]])[0].strip(),
            tgt.decode([derivation.ids[slice(*step.target)]])[0].strip(),
            step.source,
            _rounded(sum(weights[name] * value for name, value in step.features.items())),
            {name: _rounded(value) for name, value in step.features.items()},
            step.note,
        )
        for step in derivation.steps
    )
    return ShownDerivation(tgt.decode([derivation.ids])[0], _rounded(derivation.score), steps)


def _rounded(number: float) -> float:
    return round(number, 4)
