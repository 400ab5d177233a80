"""Requests of OpenAI's completions API: the body, and what is checked before work begins."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from heed.decoding.options import SearchOptions
from heed.serve.apis.schema import Whole
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.generation import Prompt, temperature_of
from heed.serve.engine.probabilities import as_written
from heed.serve.errors import BadRequestError

MAX_PROMPTS, MAX_TOKENS = 128, 10_000
DEFAULT_MAX_TOKENS = 16
"""OpenAI's, where neither the request nor the run's recipe has a limit."""
MAX_COMPLETIONS = 128
"""Completions of one request."""
_MIN_TOP_P = 1e-6
"""OpenAI allows 0, which leaves the likeliest token."""
PromptField = str | list[str] | list[int] | list[list[int]]
Stop = Annotated[str, Field(min_length=1, max_length=100)]

_TOKENS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "maxItems": MAX_TOKENS}
_PROMPT = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_PROMPTS},
        _TOKENS,
        {"type": "array", "items": _TOKENS, "minItems": 1, "maxItems": MAX_PROMPTS},
    ]
}


def _valid_prompt(value: Any) -> Any:
    """Validated as a whole: a hundred thousand invalid items give one error."""
    if isinstance(value, str) or _are_tokens(value):
        return value
    is_list = isinstance(value, list) and 0 < len(value) <= MAX_PROMPTS
    if is_list and (all(isinstance(each, str) for each in value) or all(map(_are_tokens, value))):
        return value
    raise ValueError(
        f"expected a text, a list of token ids, or a list of either; at most {MAX_PROMPTS} prompts "
        f"of at most {MAX_TOKENS:,} ids"
    )


def _are_tokens(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= MAX_TOKENS
        and all(type(token) is int and token >= 0 for token in value)
    )


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(strict=True)

    include_usage: bool | None = None


class CompletionRequest(BaseModel):
    """Body of POST /v1/completions. Unknown fields are ignored, as OpenAI adds new ones."""

    model_config = ConfigDict(strict=True, protected_namespaces=(), use_attribute_docstrings=True)

    model: str
    prompt: Annotated[PromptField, PlainValidator(_valid_prompt), WithJsonSchema(_PROMPT)] = ""
    max_tokens: Annotated[Whole, Field(ge=0, le=1024)] | None = None
    """Default: the limit in the run's recipe, or OpenAI's 16 if it has none."""
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


@dataclass(frozen=True)
class CheckedRequest:
    """A completion request, checked against its model."""

    body: CompletionRequest
    model: ServedModel
    prompts: list[Prompt]
    options: SearchOptions
    n: int
    candidates: int

    @property
    def max_tokens(self) -> int:
        """Tokens to generate."""
        return 0 if self.body.max_tokens == 0 else self.options.max_tokens

    @property
    def in_pieces(self) -> bool:
        """Whether a stream sends text as it grows: log-probabilities and a choice of the best are known at the end."""
        return self.candidates == self.n and self.body.logprobs is None

    def prompt_of(self, index: int) -> Prompt:
        """The prompt of a choice."""
        return self.prompts[index // self.n]


def check(body: CompletionRequest, model: ServedModel, max_tokens: int) -> CheckedRequest:
    """Check what depends on several fields or on the model. Raises BadRequestError."""
    n = body.n or 1
    candidates = max(n, body.best_of or 1)
    if body.best_of is not None and body.best_of < n:
        raise BadRequestError("best_of must be at least n.", "best_of")
    if body.stream and candidates > n:
        raise BadRequestError("best_of cannot be streamed.", "best_of")
    if body.stream_options is not None and not body.stream:
        raise BadRequestError("stream_options requires stream.", "stream_options")
    prompts = _prompts(body.prompt, model)
    if len(prompts) * candidates > MAX_COMPLETIONS:
        raise BadRequestError(f"At most {MAX_COMPLETIONS} completions can be requested at once.", "n")
    options = _options(body, model.options, max_tokens)
    if any(token >= len(model.translator.tgt_tokenizer.vocabulary) for token, _ in options.bias):
        raise BadRequestError("logit_bias has a token id that is not in this model's vocabulary.", "logit_bias")
    return CheckedRequest(body, model, prompts, options, n, candidates)


def _prompts(prompt: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]], model: ServedModel) -> list[Prompt]:
    is_one = isinstance(prompt, str) or (prompt and isinstance(prompt[0], int))
    prompts: Sequence[Any] = [prompt] if is_one else prompt
    return [_prompt(each, model) for each in prompts]


def _prompt(prompt: str | Sequence[int], model: ServedModel) -> Prompt:
    translator = model.translator
    if isinstance(prompt, str):
        prompt = prompt.encode("utf-8", "replace").decode("utf-8")
        return Prompt(prompt, translator.prompt_request(prompt).prefix)
    if any(id >= len(translator.tgt_tokenizer.vocabulary) for id in prompt):
        raise BadRequestError("The prompt has a token id that is not in this model's vocabulary.", "prompt")
    form = translator.detokenizer
    return Prompt(form.texts([as_written(form, prompt)])[0], tuple(prompt))


def _options(body: CompletionRequest, usual: SearchOptions, max_tokens: int) -> SearchOptions:
    stop = (body.stop,) if isinstance(body.stop, str) else body.stop
    seed = secrets.randbelow(1 << 31) if body.seed is None else abs(body.seed) % (1 << 31)
    return usual.of_text(
        DEFAULT_MAX_TOKENS, max_tokens, sample=body.temperature != 0, temperature=temperature_of(body.temperature),
        top_p=None if body.top_p is None else max(body.top_p, _MIN_TOP_P), max_tokens=body.max_tokens or None,
        seed=seed, stop=stop if stop is None else tuple(stop), presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty, bias=_logit_bias(body) or None, length_norm="mean",
        length_penalty=1.0,
    )  # fmt: skip


def _logit_bias(body: CompletionRequest) -> tuple[tuple[int, float], ...]:
    try:
        bias = tuple(sorted((int(token), value) for token, value in (body.logit_bias or {}).items()))
    except ValueError:
        bias = ((-1, 0.0),)
    if any(token < 0 for token, _ in bias) or len({token for token, _ in bias}) < len(bias):
        raise BadRequestError("The keys of logit_bias must be token ids, each given once.", "logit_bias")
    return bias
