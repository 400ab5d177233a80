"""What does OpenAI's completions API take and give?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from heed.serve.apis.openapi import Whole, answers, error_answers, json_answer, objects

MAX_PROMPTS, MAX_TOKENS = 128, 10_000
Prompt = str | list[str] | list[int] | list[list[int]]
_TOKENS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "maxItems": MAX_TOKENS}
Stop = Annotated[str, Field(min_length=1, max_length=100)]


_PROMPT = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_PROMPTS},
        _TOKENS,
        {"type": "array", "items": _TOKENS, "minItems": 1, "maxItems": MAX_PROMPTS},
    ]
}


def _prompt(said: Any) -> Any:
    """Checked as a whole: a hundred thousand mistakes are one."""
    if isinstance(said, str) or _are_tokens(said):
        return said
    is_list = isinstance(said, list) and 0 < len(said) <= MAX_PROMPTS
    if is_list and (all(isinstance(each, str) for each in said) or all(map(_are_tokens, said))):
        return said
    raise ValueError(
        f"a prompt is a text, a list of token ids, or a list of either; at most {MAX_PROMPTS} prompts "
        f"of at most {MAX_TOKENS:,} ids"
    )


def _are_tokens(said: Any) -> bool:
    return (
        isinstance(said, list)
        and 0 < len(said) <= MAX_TOKENS
        and all(type(token) is int and token >= 0 for token in said)
    )


class StreamOptions(BaseModel):
    """What a stream tells beside the text."""

    model_config = ConfigDict(strict=True)

    include_usage: bool | None = None


class CompletionRequest(BaseModel):
    """The body of POST /v1/completions. Unknown fields are ignored: OpenAI adds some now and then."""

    model_config = ConfigDict(strict=True, protected_namespaces=())

    model: str
    prompt: Annotated[Prompt, PlainValidator(_prompt), WithJsonSchema(_PROMPT)] = ""
    max_tokens: Annotated[Whole, Field(ge=0, le=1024)] | None = None
    """What is not said is as the run's recipe has it; without a limit there, OpenAI's 16."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    n: Annotated[Whole, Field(ge=1, le=10)] | None = 1
    best_of: Annotated[Whole, Field(ge=1, le=10)] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    logprobs: Annotated[Whole, Field(ge=0, le=5)] | None = None
    echo: bool | None = False
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=300)] | None = None
    seed: Annotated[Whole, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    user: str | None = None
    suffix: Literal[""] | None = None


ERROR = objects(
    {
        "error": objects(
            {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            required=["message", "type", "param", "code"],
        )
    },
    required=["error"],
)

_MODEL = objects(
    {
        "id": {"type": "string"},
        "object": {"const": "model"},
        "created": {"type": "integer"},
        "owned_by": {"type": "string"},
    },
    required=["id", "object", "created", "owned_by"],
)
_NUMBERS = {"type": "array", "items": {"type": ["number", "null"]}}
_LOGPROBS = objects(
    {
        "tokens": {"type": "array", "items": {"type": "string"}},
        "token_logprobs": _NUMBERS,
        "top_logprobs": {"type": ["array", "null"]},
        "text_offset": {"type": "array", "items": {"type": "integer"}},
    },
    required=["tokens", "token_logprobs", "top_logprobs", "text_offset"],
)
_CHOICE = objects(
    {
        "index": {"type": "integer"},
        "text": {"type": "string"},
        "finish_reason": {"enum": ["stop", "length", None]},
        "logprobs": {"anyOf": [_LOGPROBS, {"type": "null"}]},
    },
    required=["index", "text", "finish_reason", "logprobs"],
)
_COMPLETION = objects(
    {
        "id": {"type": "string"},
        "object": {"const": "text_completion"},
        "created": {"type": "integer"},
        "model": {"type": "string"},
        "system_fingerprint": {"type": "string"},
        "choices": {"type": "array", "items": _CHOICE},
        "usage": {"type": "object"},
    },
    required=["id", "object", "created", "model", "choices"],
)

_done = json_answer("The completion; with `stream` its pieces, as events.", _COMPLETION)
_done[200]["content"]["text/event-stream"] = {}

COMPLETIONS: dict[str, Any] = {
    "summary": "Go on from a prompt.",
    "responses": answers(_done, error_answers(ERROR, 400, 401, 404, 413, 429, 500, 503, 504)),
}
MODELS: dict[str, Any] = {
    "summary": "The language models.",
    "responses": answers(
        json_answer(
            "Models.",
            objects({"object": {"const": "list"}, "data": {"type": "array", "items": _MODEL}}, ["object", "data"]),
        ),
        error_answers(ERROR, 401, 413, 429, 500),
    ),
}
MODEL: dict[str, Any] = {
    "summary": "One of them.",
    "responses": answers(json_answer("The model.", _MODEL), error_answers(ERROR, 401, 404, 413, 429, 500)),
}
