"""Requests and answers of OpenAI's completions and embeddings APIs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from heed.serve.apis.schema import WHOLE, Answer, LogProb

MAX_PROMPTS, MAX_TOKENS = 128, 10_000

Stop = Annotated[str, Field(min_length=1, max_length=100)]
TokenIds = Annotated[list[NonNegativeInt], Field(min_length=1, max_length=MAX_TOKENS, fail_fast=True)]
Texts = Annotated[list[str], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]
ListOfTokenIds = Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]


def _with_one_error(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """One error for an invalid prompt, instead of one for each of the types that it may have."""
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError(
            f"expected a text, a list of token ids, or a list of either; at most {MAX_PROMPTS} prompts "
            f"of at most {MAX_TOKENS:,} ids"
        ) from error


def _with_one_input_error(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """One error for an invalid input, instead of one for each of the types that it may have."""
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError(f"expected a text, or a list of at most {MAX_PROMPTS} texts") from error


# --- requests ----------------------------------------------------------------------------------------


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(strict=True)

    include_usage: bool | None = None


class CompletionRequest(BaseModel):
    """Body of POST /v1/completions. Unknown fields are ignored, as OpenAI adds new ones."""

    model_config = ConfigDict(strict=True, protected_namespaces=(), use_attribute_docstrings=True)

    model: str
    prompt: Annotated[str | TokenIds | Texts | ListOfTokenIds, WrapValidator(_with_one_error)] = ""
    max_tokens: Annotated[int, Field(ge=0, le=1024), WHOLE] | None = None
    """Default: the limit in the run's recipe, or OpenAI's 16 if it has none."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=10), WHOLE] | None = 1
    best_of: Annotated[int, Field(ge=1, le=10), WHOLE] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    logprobs: Annotated[int, Field(ge=0, le=5), WHOLE] | None = None
    echo: bool | None = False
    stop: Stop | Annotated[list[Stop], Field(max_length=4, fail_fast=True)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=300)] | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63), WHOLE] | None = None
    user: str | None = None
    suffix: Literal[""] | None = None


class EmbeddingRequest(BaseModel):
    """Body of POST /v1/embeddings. Unknown fields are ignored, as OpenAI adds new ones."""

    model_config = ConfigDict(strict=True, protected_namespaces=(), use_attribute_docstrings=True)

    model: str
    input: Annotated[str | Texts | TokenIds | ListOfTokenIds, WrapValidator(_with_one_input_error)]
    """A text or several texts."""
    encoding_format: Literal["float", "base64"] | None = "float"
    """Numbers, or float32 in little-endian order, in base64."""
    dimensions: Annotated[int, Field(ge=1), WHOLE] | None = None
    """Allowed only as the size of the model's vectors."""
    user: str | None = None


# --- answers -----------------------------------------------------------------------------------------


class ErrorDetail(Answer):
    """An error, and the parameter that caused it."""

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
    """All models that complete or embed texts."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Logprobs(Answer):
    """Log-probabilities of the tokens of a choice."""

    tokens: list[str]
    token_logprobs: list[LogProb | None]
    top_logprobs: list[dict[str, LogProb] | None] | None
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


class Embedding(Answer):
    """The vector of a text."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(Answer):
    """Numbers of tokens, of which an embedding has none of its own."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(Answer):
    """The answer to an embedding request."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage
