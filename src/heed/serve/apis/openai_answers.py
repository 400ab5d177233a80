"""Answers of OpenAI's completions API."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heed.serve.apis.schema import Answer


class ErrorDetail(Answer):
    """What went wrong, and with which parameter."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(Answer):
    """An error as OpenAI writes it."""

    error: ErrorDetail


class ModelCard(Answer):
    """A model in the list."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["heed"] = "heed"


class ModelList(Answer):
    """All models that complete texts."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Logprobs(Answer):
    """Log-probabilities of the tokens of a choice."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class Choice(Answer):
    """One completion, or a piece of one in a stream."""

    index: int
    text: str
    logprobs: Logprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Usage(Answer):
    """Numbers of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(Answer):
    """The answer to a completion request, and each event of a stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    system_fingerprint: str
    choices: list[Choice] = Field(default_factory=list)
    usage: Usage | None = None
    """In a stream only in the last event, if requested."""
