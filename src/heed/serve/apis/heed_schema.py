"""Requests and answers of heed's own API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator

from heed.serve.apis.schema import WHOLE, Answer, LogProb
from heed.serve.engine.probabilities import NextToken
from heed.tasks.predictor import Explanation, Prediction, SeenCaption
from heed.text.language.identify import Detected

Text = Annotated[str, Field(min_length=1)]
Term = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Name = Annotated[str, Field(max_length=200)]
Short = Annotated[str, Field(max_length=2000)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31), WHOLE]
Stop = Annotated[str, Field(min_length=1, max_length=100)]
BeamSize = Annotated[int, Field(ge=1, le=16), WHOLE]
Number = Annotated[int, Field(ge=1, le=10), WHOLE]
"""Number of hypotheses, continuations or answers."""


# --- requests ----------------------------------------------------------------------------------------


class _Body(BaseModel):
    """A request body. Unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=(), use_attribute_docstrings=True)

    @field_validator("model", check_fields=False)
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        return value or None


class GlossaryTerm(_Body):
    """A term of the source and its translation."""

    source: Term
    target: Term


class TranslateBody(_Body):
    text: Text
    source: Name = "auto"
    """Language of the text, or `auto`."""
    target: Name | None = None
    """Language to translate to; by default that of the model."""
    model: Name | None = None
    """Model to use, if several translate between these languages."""
    nbest: Number = 1
    beam_size: BeamSize | None = None
    length_penalty: Annotated[float, Field(ge=0, le=10)] | None = None
    prefix: str = ""
    """Beginning of the translation, for a text of one sentence."""
    glossary: Annotated[list[GlossaryTerm], Field(max_length=1000, fail_fast=True)] = []
    keep: Annotated[list[Term], Field(max_length=1000, fail_fast=True)] = []
    """Terms that are not translated."""
    format: Literal["text", "html"] = "text"
    stream: bool = False
    """Send events: `partial` with sentences as they grow, then `done` with the answer, or `error`."""


class MatchesBody(_Body):
    """POST /api/matches: a sentence whose like may be in the translation memory of the server."""

    text: Annotated[str, Field(max_length=2000, pattern=r"\S")]
    source: Name
    """Language of the sentence."""
    target: Name


class DirectionBody(_Body):
    """A request to one direction of a model; by default its first."""

    model: Name | None = None
    source_language: Name | None = None
    target_language: Name | None = None


class InspectBody(DirectionBody):
    """POST /api/inspect: `source` with an optional `target` (not for a model with the ability `derive`), or `text`."""

    source: Annotated[str, Field(max_length=2000, pattern=r"\S")] | None = None
    target: Annotated[str, Field(max_length=2000, pattern=r"\S")] | None = None
    text: Annotated[str, Field(max_length=10_000, pattern=r"\S")] | None = None
    """Text for a language model or a reader, instead of source and target.

    Taggers and masked language models take at most 2,000 characters.
    """
    beam_size: BeamSize | None = None
    nbest: Number | None = None
    """By default the beam size, at most five."""


class NextBody(DirectionBody):
    source: Short | None = None
    """Source sentence, for a translation model."""
    prefix: Short = ""
    size: Annotated[int, Field(ge=1, le=100), WHOLE] = 20


class ScoreBody(DirectionBody):
    text: Short
    source: Short | None = None
    """Source sentence, for a translation model."""


class GenerateBody(_Body):
    model: Name | None = None
    prompt: str = ""
    max_tokens: Annotated[int, Field(ge=1, le=1024), WHOLE] | None = None
    """Default: the limit in the run's recipe, or 64 if it has none."""
    samples: Number = 1
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """0 always chooses the likeliest token."""
    top_k: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Seed | None = None
    stop: Annotated[list[Stop], Field(max_length=4, fail_fast=True)] = []
    stream: bool = False
    """Send events: `partial` with the texts as they grow, then `done` with the answer, or `error`."""
    pieces: bool = False
    """With `stream`, send events `piece` with what is new in a text instead of `partial` with all of it."""


class PredictBody(_Body):
    model: Name | None = None
    inputs: Annotated[list[Text], Field(min_length=1, max_length=128, fail_fast=True)]
    top: Number = 1
    """Number of answers to each input, the most probable first."""
    explain: bool = False
    """Also tell what each most probable answer rests on; for at most 8 inputs to models with the ability `explain`."""


class CaptionBody(_Body):
    model: Name | None = None
    image: Text
    """The bytes of an image file (JPEG, PNG, GIF, WebP, BMP, TIFF) in base64."""
    top: Number = 1
    """Number of captions, the best first."""


class DetectBody(_Body):
    text: Text


# --- answers -----------------------------------------------------------------------------------------


class ErrorDetail(Answer):
    """The message and the code of an error."""

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


class LanguageWithTargets(LanguageCard):
    """A language, and those that it can be translated to."""

    targets: list[str]


class DirectionCard(Answer):
    """One direction of a translation model."""

    source: LanguageCard
    target: LanguageCard
    tag: str


class DecodingDefaults(Answer):
    """Default search of a model."""

    beam_size: int
    length_penalty: float


class SamplingDefaults(Answer):
    """Default sampling of a model."""

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
    guided: bool
    """Whether similar sentences of the translation memory guide its translations."""
    confidence: bool
    report: bool
    description: str
    decoding: DecodingDefaults | None
    """None for a model that does not generate text."""
    drawing: SamplingDefaults | None
    """None for a model that is not a language model."""
    abilities: list[str]


class LimitsCard(Answer):
    """Limits of the server."""

    characters: int
    beam_size: int
    nbest: int
    max_tokens: int


class Models(Answer):
    models: list[ModelCard]
    languages: list[LanguageWithTargets]
    files: list[str]
    limits: LimitsCard
    suggestions: bool
    """Whether the server takes suggestions, at /suggest."""


class DetectedLanguages(Answer):
    languages: list[Detected]


class Token(Answer):
    """A token and its log-probability. The end of the sentence is a token without text."""

    text: str
    log_prob: LogProb


class Hypothesis(Answer):
    """One translation of a sentence."""

    text: str
    score: LogProb
    log_prob: LogProb
    confidence: float | None
    flags: list[str]
    fallback: bool
    finished: bool
    tokens: list[Token]


class Piece(Answer):
    """A piece of a sentence or of a source in the translation memory, and where it is."""

    text: str
    found_in: Literal["both", "memory", "text"]


class MemoryMatch(Answer):
    """A translation by a person of a sentence like this one."""

    source: str
    target: str
    similarity: float
    """Of the two sources, from 0 to 1: twice the characters in common, divided by those of both."""
    pieces: list[Piece]
    """The sentence and the source of the memory, word by word."""


class Matches(Answer):
    """POST /api/matches: the most similar first; none without a translation memory."""

    matches: list[MemoryMatch]


class Sentence(Answer):
    """A sentence with its position in the text and its translations. Through a third language it has no position."""

    start: int | None
    end: int | None
    source: str
    hypotheses: list[Hypothesis]


class Translated(Answer):
    text: str
    source: str
    target: str
    detected: Detected | None
    path: list[str]
    sentences: list[Sentence]
    from_memory: bool = Field(default=False)
    """Whether people translated this text, and no model (of a server with a translation memory)."""


class Predictions(Answer):
    """POST /api/predict: for each input its answers, the most probable first."""

    outputs: list[list[SerializeAsAny[Prediction]]]
    """Those of taggers have `tokens` and `entities` too, answers to questions `start` and `end`."""
    explanations: list[Explanation] = Field(default=[])
    """With `explain`, one for each input."""


class Captioned(Answer):
    """POST /api/caption: the best caption, and for each of its words where the model looked."""

    caption: SeenCaption


class NextWord(Answer):
    """A possible next word."""

    text: str
    probability: float
    end: bool


class Next(Answer):
    tokens: list[NextToken]
    words: list[NextWord]


class Score(Answer):
    log_prob: LogProb
    tokens: list[Token]


class Continuation(Answer):
    """A generated text."""

    text: str
    log_prob: LogProb
    finished: bool
    tokens: list[Token]


class Generated(Answer):
    continuations: list[Continuation]
    seed: int
