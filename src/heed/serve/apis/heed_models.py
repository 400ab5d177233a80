"""What does heed's own API take and give?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from heed.serve.apis.openapi import Whole, answers, error_answers, json_answer, objects

_STRICT = ConfigDict(strict=True, extra="forbid", protected_namespaces=())

Spoken = Annotated[str, Field(min_length=1)]
Term = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Name = Annotated[str, Field(max_length=200)]
Seed = Annotated[Whole, Field(ge=0, lt=1 << 31)]


class _Body(BaseModel):
    """A body; unknown fields are refused, and half of a surrogate pair becomes a question mark."""

    model_config = _STRICT

    @field_validator("*")
    @classmethod
    def _writable(cls, value: Any) -> Any:
        return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value

    @field_validator("model", check_fields=False)
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        return value or None


class GlossaryTerm(_Body):
    """A term of the source, and what it becomes."""

    source: Term
    target: Term


class TranslateBody(_Body):
    """POST /api/translate"""

    text: Spoken
    source: Name = "auto"
    """A language, or `auto`."""
    target: Name | None = None
    """A language; without one, that of the model."""
    model: Name | None = None
    """One of several models between these languages."""
    nbest: Annotated[Whole, Field(ge=1, le=10)] = 1
    beam_size: Annotated[Whole, Field(ge=1, le=16)] | None = None
    length_penalty: Annotated[float, Field(ge=0, le=10)] | None = None
    prefix: str = ""
    """How the translation begins; for a single sentence."""
    glossary: Annotated[list[GlossaryTerm], Field(max_length=1000)] = Field(default_factory=list)
    keep: Annotated[list[Term], Field(max_length=1000)] = Field(default_factory=list)
    """Terms that stay as they are."""
    format: Literal["text", "html"] = "text"
    stream: bool = False
    """Events: `partial` with the sentences as they grow, `done` with the answer, `error`."""


class _OfDirection(_Body):
    """What a model that translates in several directions is asked in one of them; in the first where none is said."""

    model: Name | None = None
    source_language: Name | None = None
    target_language: Name | None = None


class InspectBody(_OfDirection):
    """POST /api/inspect: `source` and maybe `target`, or `text`."""

    source: Annotated[str, Field(max_length=2000, pattern=r"\S")] | None = None
    target: Annotated[str, Field(max_length=2000, pattern=r"\S")] | None = None
    text: Annotated[str, Field(max_length=10_000, pattern=r"\S")] | None = None
    """For a language model, in place of source and target."""
    beam_size: Annotated[Whole, Field(ge=1, le=16)] | None = None
    nbest: Annotated[Whole, Field(ge=1, le=10)] | None = None
    """Without it as many as the beam has, and no more than five."""


class NextBody(_OfDirection):
    """POST /api/next"""

    source: Annotated[str, Field(max_length=2000)] | None = None
    """For a translation model."""
    prefix: Annotated[str, Field(max_length=2000)] = ""
    size: Annotated[Whole, Field(ge=1, le=100)] = 20


class ScoreBody(_OfDirection):
    """POST /api/score"""

    text: Annotated[str, Field(max_length=2000)]
    source: Annotated[str, Field(max_length=2000)] | None = None
    """For a translation model."""


class GenerateBody(_Body):
    """POST /api/generate"""

    model: Name | None = None
    prompt: str = ""
    max_tokens: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    """What is not said is as the run's recipe has it; without a limit there, 64."""
    samples: Annotated[Whole, Field(ge=1, le=10)] = 1
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """0: always the likeliest token."""
    top_k: Annotated[Whole, Field(ge=0, le=1_000_000)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Seed | None = None
    stop: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=4)] = Field(
        default_factory=list
    )
    stream: bool = False


class DetectBody(_Body):
    """POST /api/detect"""

    text: Spoken


ERROR = objects(
    {"error": objects({"message": {"type": "string"}, "code": {"type": "string"}}, required=["message", "code"])},
    required=["error"],
)
_STRING, _NUMBER, _BOOL = {"type": "string"}, {"type": "number"}, {"type": "boolean"}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _all_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object with these properties, all of them there."""
    return objects(properties, required=list(properties))


_LANGUAGE = _all_of(code=_STRING, name=_STRING, direction={"enum": ["ltr", "rtl"]})
_DIRECTION = _all_of(source=_LANGUAGE, target=_LANGUAGE, tag=_STRING)
_TOKEN = _all_of(text=_STRING, log_prob=_NUMBER)
_DETECTED = _all_of(language=_STRING, confidence=_NUMBER)
_HYPOTHESIS = _all_of(
    text=_STRING, score=_NUMBER, log_prob=_NUMBER, confidence=_or_null(_NUMBER), flags=_list(_STRING), fallback=_BOOL,
    finished=_BOOL, tokens=_list(_TOKEN),
)  # fmt: skip
_SENTENCE = _all_of(
    start=_or_null({"type": "integer"}), end=_or_null({"type": "integer"}), source=_STRING,
    hypotheses=_list(_HYPOTHESIS),
)  # fmt: skip
_ERRORS = error_answers(ERROR, 400, 401, 404, 413, 429, 500, 503, 504)


def _route(summary: str, schema: dict[str, Any], streams: bool = False) -> dict[str, Any]:
    done = json_answer("The answer.", schema)
    if streams:
        done[200]["content"]["text/event-stream"] = {}
    return {"summary": summary, "responses": answers(done, _ERRORS)}


TRANSLATE = _route(
    "Translate, and say how sure the model is.",
    _all_of(
        text=_STRING, source=_STRING, target=_STRING, detected=_or_null(_DETECTED), path=_list(_STRING),
        sentences=_list(_SENTENCE),
    ),
    streams=True,
)  # fmt: skip
INSPECT = _route("Look inside: attention, probabilities, alternatives, the beam's tree.", {"type": "object"})
NEXT = _route(
    "What could come next.",
    _all_of(
        tokens=_list(
            objects(
                {"id": {"type": "integer"}, "text": _STRING, "log_prob": _NUMBER, "probability": _NUMBER, "end": _BOOL},
                required=["id", "text", "log_prob", "probability"],
            )
        ),
        words=_list(_all_of(text=_STRING, probability=_NUMBER, end=_BOOL)),
    ),
)
SCORE = _route("How likely a text is.", _all_of(log_prob=_NUMBER, tokens=_list(_TOKEN)))
GENERATE = _route(
    "Go on from a prompt.",
    _all_of(
        continuations=_list(_all_of(text=_STRING, log_prob=_NUMBER, finished=_BOOL, tokens=_list(_TOKEN))),
        seed={"type": "integer"},
    ),
    streams=True,
)
DETECT = _route("The language of a text.", _all_of(languages=_list(_DETECTED)))
MODELS = _route(
    "The models, their languages, and the server's limits.",
    _all_of(
        models=_list(
            _all_of(
                name=_STRING, task={"enum": ["translation", "language-model"]}, kind=_STRING,
                parameters={"type": "integer"}, source=_or_null(_LANGUAGE), target=_LANGUAGE,
                directions=_list(_DIRECTION), attends=_BOOL, confidence=_BOOL, report=_BOOL, description=_STRING,
                decoding=_all_of(beam_size={"type": "integer"}, length_penalty=_NUMBER),
                drawing=_or_null(
                    _all_of(
                        temperature=_NUMBER, top_k={"type": "integer"}, top_p=_NUMBER, max_tokens={"type": "integer"}
                    )
                ),
            )
        ),
        languages=_list(_all_of(code=_STRING, name=_STRING, direction=_STRING, targets=_list(_STRING))),
        files=_list(_STRING),
        limits={"type": "object"},
    ),
)  # fmt: skip
REPORT: dict[str, Any] = {
    "summary": "What a model was trained on, and how good it is.",
    "responses": answers(
        {200: {"description": "report.md", "content": {"text/markdown": {"schema": _STRING}}}},
        error_answers(ERROR, 401, 404, 413, 429, 500),
    ),
}
