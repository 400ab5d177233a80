"""Answers of heed's own API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from heed.decoding.hypothesis import Hypothesis as Found
from heed.documents.translation import Sentence as TranslatedSentence
from heed.report.description import model_sentence
from heed.serve.apis.schema import Answer
from heed.serve.engine.catalogue import Direction, ServedModel
from heed.serve.engine.languages import Language
from heed.serve.engine.probabilities import finite, spell_one
from heed.text.language.identify import Detected as Guess

DEFAULT_MAX_TOKENS = 64
"""Of a generated text, where neither the request nor the recipe has a limit."""


class ErrorDetail(Answer):
    """What went wrong."""

    message: str
    code: str


class HeedError(Answer):
    """An error as heed's own API writes it."""

    error: ErrorDetail


class LanguageCard(Answer):
    """A language and its writing direction."""

    code: str
    name: str
    direction: Literal["ltr", "rtl"]

    @classmethod
    def of(cls, language: Language) -> LanguageCard:
        """From the catalogue."""
        return cls(code=language.code, name=language.name, direction=language.direction)


class LanguageWithTargets(LanguageCard):
    """A language, and those that it can be translated to."""

    targets: list[str]


class DirectionCard(Answer):
    """One direction of a translation model."""

    source: LanguageCard
    target: LanguageCard
    tag: str


class DecodingDefaults(Answer):
    """How a model searches by default."""

    beam_size: int
    length_penalty: float


class SamplingDefaults(Answer):
    """How a model samples by default."""

    temperature: float
    top_k: int
    top_p: float
    max_tokens: int


class ModelCard(Answer):
    """A served model."""

    name: str
    task: str
    kind: str
    parameters: int
    source: LanguageCard | None
    target: LanguageCard
    directions: list[DirectionCard]
    attends: bool
    confidence: bool
    report: bool
    description: str
    decoding: DecodingDefaults | None
    """None for a model that does not generate text."""
    drawing: SamplingDefaults | None
    abilities: list[str]

    @classmethod
    def of(cls, model: ServedModel, max_tokens: int) -> ModelCard:
        """From the catalogue. `max_tokens`: the server's limit."""
        run, options = model.run, model.options
        directions = [
            DirectionCard(source=LanguageCard.of(each.source), target=LanguageCard.of(each.target), tag=each.tag)
            for each in model.directions
        ]
        drawing = None
        if model.can("generate"):
            sampling = options.of_text(DEFAULT_MAX_TOKENS, max_tokens, sample=True)
            drawing = SamplingDefaults(**sampling.model_dump(include=set(SamplingDefaults.model_fields)))
        return cls(
            name=model.name, task=run.recipe.task, kind=run.recipe.model.kind, parameters=run.num_parameters,
            source=directions[0].source if directions else None, target=LanguageCard.of(model.language),
            directions=directions, attends=model.attends,
            confidence=model.searches and model.translator.checks.confidence is not None, report=model.report.is_file(),
            description=model_sentence(run),
            decoding=DecodingDefaults.model_validate(options, from_attributes=True) if model.searches else None,
            drawing=drawing, abilities=sorted(model.abilities),
        )  # fmt: skip


class LimitsCard(Answer):
    """What the server accepts."""

    characters: int
    beam_size: int
    nbest: int
    max_tokens: int


class Models(Answer):
    """GET /api/models"""

    models: list[ModelCard]
    languages: list[LanguageWithTargets]
    files: list[str]
    limits: LimitsCard


class Detected(Answer):
    """A detected language, with a confidence from 0 to 100."""

    language: str
    confidence: float

    @classmethod
    def of(cls, guess: Guess) -> Detected:
        """From the detector."""
        return cls(language=guess.language, confidence=guess.confidence)


class DetectedLanguages(Answer):
    """POST /api/detect"""

    languages: list[Detected]


class Token(Answer):
    """A token and its log-probability. The end of the sentence is a token without text."""

    text: str
    log_prob: float

    @classmethod
    def all_of(cls, model: ServedModel, ids: Sequence[int], log_probs: Sequence[float]) -> list[Token]:
        """All tokens of an output."""
        spelled = model.translator.detokenizer.token_bytes
        texts = [spell_one(spelled[id]) for id in ids]
        texts += [""] * (len(log_probs) - len(texts))
        return [cls(text=text, log_prob=finite(value)) for text, value in zip(texts, log_probs, strict=False)]


class Hypothesis(Answer):
    """One translation of a sentence."""

    text: str
    score: float
    log_prob: float
    confidence: float | None
    flags: list[str]
    fallback: bool
    finished: bool
    tokens: list[Token]

    @classmethod
    def of(cls, path: Sequence[Direction], found: Found) -> Hypothesis:
        """An output of the last model of a path."""
        return cls(
            text=found.text, score=finite(found.score), log_prob=finite(found.log_prob), confidence=found.confidence,
            flags=list(found.flags), fallback=found.fallback, finished=found.finished,
            tokens=Token.all_of(path[-1].model, found.ids, found.token_log_probs) if path else [],
        )  # fmt: skip


class Sentence(Answer):
    """A sentence of the text, where it is, and its translations. Through a third language it has no position."""

    start: int | None
    end: int | None
    source: str
    hypotheses: list[Hypothesis]

    @classmethod
    def of(cls, path: Sequence[Direction], sentence: TranslatedSentence) -> Sentence:
        """A sentence as the last model of a path read it."""
        is_direct = len(path) <= 1
        best = sentence.hypothesis or Found((), 0.0, 0.0, text=sentence.texts[-1])
        return cls(
            start=sentence.start if is_direct else None,
            end=sentence.start + len(sentence.texts[0]) if is_direct else None,
            source=sentence.texts[-2] if len(sentence.texts) > 1 else sentence.texts[0],
            hypotheses=[Hypothesis.of(path, each) for each in (best, *best.alternatives)],
        )


class Translated(Answer):
    """POST /api/translate"""

    text: str
    source: str
    target: str
    detected: Detected | None
    path: list[str]
    sentences: list[Sentence]


class Prediction(Answer):
    """An answer to an input, as text, and its probability if the model has one."""

    text: str
    probability: float | None


class Predictions(Answer):
    """POST /api/predict: for each input its answers, the most probable first."""

    outputs: list[list[Prediction]]


class NextToken(Answer):
    """A possible next token."""

    id: int
    text: str
    log_prob: float
    probability: float
    end: bool


class NextWord(Answer):
    """A possible next word."""

    text: str
    probability: float
    end: bool


class Next(Answer):
    """POST /api/next"""

    tokens: list[NextToken]
    words: list[NextWord]


class Score(Answer):
    """POST /api/score"""

    log_prob: float
    tokens: list[Token]


class Continuation(Answer):
    """A generated text."""

    text: str
    log_prob: float
    finished: bool
    tokens: list[Token]

    @classmethod
    def of(cls, model: ServedModel, found: Found) -> Continuation:
        """An output of a model."""
        tokens = Token.all_of(model, found.ids, found.token_log_probs)
        return cls(text=found.text, log_prob=finite(found.log_prob), finished=found.finished, tokens=tokens)


class Generated(Answer):
    """POST /api/generate"""

    continuations: list[Continuation]
    seed: int
