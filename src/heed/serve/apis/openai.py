"""OpenAI's completions API, for models that generate text, and its list of models."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.scoring import TokenStats
from heed.serve.apis.openai_schema import (
    Choice,
    Completion,
    CompletionRequest,
    Logprobs,
    ModelCard,
    ModelList,
    OpenAIError,
    Usage,
)
from heed.serve.apis.schema import content, errors, event_stream, request_body
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.generation import Prompt, continuations, temperature_of
from heed.serve.engine.job import Job
from heed.serve.engine.probabilities import as_written, spell, spell_one, text_stats
from heed.serve.errors import MODEL_NOT_FOUND, ApiError, body_of
from heed.serve.service import Service

PATH = "/v1/completions"
DEFAULT_MAX_TOKENS = 16
"""OpenAI's, if neither the request nor the run's recipe has a limit."""
MAX_COMPLETIONS = 128
"""Completions of one request."""
_MIN_TOP_P = 1e-6
"""OpenAI allows 0, which leaves only the likeliest token."""

Event = Choice | Usage
"""What a stream consists of: pieces of choices, then the usage."""


class OpenAIApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = int(time.time())

    async def chat(self) -> None:
        """Chats, which the models of this server were not trained for."""
        raise ApiError(404, "These models complete text and do not support chat: use /v1/completions with a prompt.")

    async def models(self) -> ModelList:
        """Models that complete or embed texts."""
        return ModelList(data=[self._card(model) for model in self._served()])

    async def model(self, model: str) -> ModelCard:
        """One model."""
        for served in self._served():
            if served.name == model:
                return self._card(served)
        raise ApiError(404, f"The model {model!r} does not exist.", "model", MODEL_NOT_FOUND)

    def _served(self) -> list[ServedModel]:
        return self.service.catalogue.able_to("generate", "embed")

    def _card(self, model: ServedModel) -> ModelCard:
        return ModelCard(id=model.name, created=self.started)

    async def completions(self, request: Request) -> Response | Completion:
        """Complete a text."""
        body = await self.service.read(request, CompletionRequest)
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        self.service.limits.require_text("".join(text for text in texts if isinstance(text, str)), "prompt")
        model = self.service.catalogue.model(body.model, "generate")
        checked = await self.service.jobs.run(request, lambda job: _check(body, model, self.service))
        empty = Completion(
            id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            system_fingerprint=f"heed-{model.fingerprint}",
        )
        if body.stream:
            stream = partial(_stream, request=checked)
            events: AsyncIterator[Event] = await self.service.jobs.stream(request, stream)
            return event_stream(self._events(empty, checked, events))
        choices, usage = await self.service.jobs.run(request, lambda job: _complete(job, checked))
        return empty.model_copy(update={"choices": choices, "usage": usage})

    async def _events(
        self, empty: Completion, request: _CheckedRequest, events: AsyncIterator[Event]
    ) -> AsyncIterator[str]:
        """Server-sent events. An error is one too, as the status has been sent already."""
        options = request.body.stream_options
        with_usage = options is not None and bool(options.include_usage)
        exclude = None if with_usage else {"usage"}
        try:
            async for event in events:
                if isinstance(event, Choice):
                    yield _data(empty.model_copy(update={"choices": [event]}).model_dump_json(exclude=exclude))
                elif with_usage:
                    yield _data(empty.model_copy(update={"usage": event}).model_dump_json())
        except Exception as error:
            yield _data(json.dumps(body_of(self.service.reported(error), PATH)))
        yield _data("[DONE]")


def _data(text: str) -> str:
    return f"data: {text}\n\n"


# --- checks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CheckedRequest:
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


def _check(body: CompletionRequest, model: ServedModel, service: Service) -> _CheckedRequest:
    """Check what depends on several fields or on the model. Raises ApiError."""
    n = body.n or 1
    candidates = max(n, body.best_of or 1)
    if body.best_of is not None and body.best_of < n:
        raise ApiError(400, "best_of must be at least n.", "best_of")
    if body.stream and candidates > n:
        raise ApiError(400, "best_of cannot be streamed.", "best_of")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options requires stream.", "stream_options")
    is_one = isinstance(body.prompt, str) or isinstance(body.prompt[0], int)
    several: Sequence[Any] = [body.prompt] if is_one else body.prompt
    prompts = [_prompt(each, model) for each in several]
    if len(prompts) * candidates > MAX_COMPLETIONS:
        raise ApiError(400, f"At most {MAX_COMPLETIONS} completions can be requested at once.", "n")
    options = _options(body, model.options, service.limits.max_tokens)
    if any(token >= len(model.translator.tgt_tokenizer.vocabulary) for token, _ in options.bias):
        raise ApiError(400, "logit_bias has a token id that is not in this model's vocabulary.", "logit_bias")
    length, limit = max(len(prompt.ids) for prompt in prompts), service.limits.sentence_tokens
    if length > limit:
        raise ApiError(400, f"A prompt has {length:,} tokens; the limit is {limit:,}.", "prompt")
    return _CheckedRequest(body, model, prompts, options, n, candidates)


def _prompt(prompt: str | Sequence[int], model: ServedModel) -> Prompt:
    translator = model.translator
    if isinstance(prompt, str):
        return Prompt(prompt, translator.prompt_request(prompt).prefix)
    if any(id >= len(translator.tgt_tokenizer.vocabulary) for id in prompt):
        raise ApiError(400, "The prompt has a token id that is not in this model's vocabulary.", "prompt")
    form = translator.detokenizer
    return Prompt(form.texts([as_written(form, prompt)])[0], tuple(prompt))


def _options(body: CompletionRequest, default: SearchOptions, max_tokens: int) -> SearchOptions:
    stop = (body.stop,) if isinstance(body.stop, str) else body.stop
    seed = secrets.randbelow(1 << 31) if body.seed is None else abs(body.seed) % (1 << 31)
    return default.of_text(
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
        raise ApiError(400, "The keys of logit_bias must be token ids, each given once.", "logit_bias")
    return bias


# --- completions -------------------------------------------------------------------------------------


def _complete(job: Job, request: _CheckedRequest) -> tuple[list[Choice], Usage]:
    candidates = _candidates(job, request)
    chosen = [best for number in range(len(request.prompts)) for best in _best(request, candidates, number)]
    choices = [_choice(job, request, index, hypothesis) for index, hypothesis in enumerate(chosen)]
    return choices, _usage(request, candidates)


def _stream(job: Job, send: Callable[[Event], None], request: _CheckedRequest) -> None:
    """The same in pieces."""

    def send_piece(index: int, text: str) -> None:
        send(Choice(index=index, text=text))

    if request.in_pieces and request.body.echo:
        for index in range(len(request.prompts) * request.n):
            send_piece(index, request.prompt_of(index).text)
    candidates = _candidates(job, request, send_piece if request.in_pieces else None)
    for index, hypothesis in enumerate(candidates):
        choice = _choice(job, request, index, hypothesis)
        send(choice.model_copy(update={"text": ""}) if request.in_pieces else choice)
    send(_usage(request, candidates))


def _candidates(
    job: Job, request: _CheckedRequest, on_piece: Callable[[int, str], None] | None = None
) -> list[Hypothesis]:
    """All candidates of the first prompt, then those of the second, and so on."""
    if not request.max_tokens:
        return [Hypothesis((), 0.0, 0.0, finished=False)] * (len(request.prompts) * request.candidates)
    return continuations(job, request.model, request.prompts, request.candidates, request.options, on_piece)


def _best(request: _CheckedRequest, candidates: Sequence[Hypothesis], prompt: int) -> list[Hypothesis]:
    """The `n` candidates of a prompt with the highest mean log-probability."""
    of_prompt = candidates[prompt * request.candidates : (prompt + 1) * request.candidates]
    if request.candidates == request.n:
        return list(of_prompt)
    return sorted(of_prompt, key=lambda hypothesis: -hypothesis.score)[: request.n]


def _choice(job: Job, request: _CheckedRequest, index: int, hypothesis: Hypothesis) -> Choice:
    prompt = request.prompt_of(index)
    return Choice(
        index=index,
        text=prompt.text + hypothesis.text if request.body.echo else hypothesis.text,
        logprobs=_logprobs(job, request, prompt, hypothesis) if request.body.logprobs is not None else None,
        finish_reason="stop" if hypothesis.finished else "length",
    )


def _logprobs(job: Job, request: _CheckedRequest, prompt: Prompt, hypothesis: Hypothesis) -> Logprobs:
    """Log-probabilities of a choice's tokens. The first token of an echoed prompt has none, as in OpenAI's API."""
    translator, form = request.model.translator, request.model.translator.detokenizer
    num_choices, echo = request.body.logprobs or 0, request.body.echo
    ids = (*prompt.ids, *hypothesis.ids)
    stats: list[TokenStats | None] = list(job.call(lambda: text_stats(translator, ids, max(1, num_choices))))
    if echo and prompt.ids:
        stats[0] = None
    first = 0 if echo else len(prompt.ids)
    gap = 0 if echo else len(form.space_between(prompt.text, hypothesis.text.lstrip(" ")))
    tokens, offsets = spell(form, ids[first:], gap)

    def top(id: int, stat: TokenStats | None) -> dict[str, float] | None:
        """The likeliest tokens, and the token of the text itself if it is none of them, as in OpenAI's API."""
        if stat is None:
            return None
        choices = {**dict(stat.choices), id: stat.log_prob}
        return {spell_one(form.token_bytes[each]): value for each, value in choices.items()}

    return Logprobs(
        tokens=tokens,
        token_logprobs=[stat.log_prob if stat else None for stat in stats[first:]],
        top_logprobs=[*map(top, as_written(form, ids[first:]), stats[first:])] if num_choices else None,
        text_offset=offsets,
    )


def _usage(request: _CheckedRequest, candidates: Sequence[Hypothesis]) -> Usage:
    prompt = sum(len(each.ids) for each in request.prompts)
    completion = sum(len(hypothesis.ids) for hypothesis in candidates)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def routes(service: Service) -> APIRouter:
    """OpenAI's API of one server."""
    api = OpenAIApi(service)
    router = APIRouter(prefix="/v1", tags=["OpenAI"], dependencies=[Depends(service.admit_bearer)])
    streamed = content("The completion; with `stream`, in parts, as events.", "text/event-stream")
    router.add_api_route(
        "/completions", api.completions, methods=["POST"], response_model=Completion,
        responses={**streamed, **errors(OpenAIError, 400, 401, 403, 404, 429, 503, 504)},
        openapi_extra=request_body(CompletionRequest),
    )  # fmt: skip
    router.add_api_route(
        "/chat/completions", api.chat, methods=["POST"], response_model=None, status_code=404,
        responses=errors(OpenAIError, 401, 403, 429),
    )  # fmt: skip
    router.add_api_route("/models", api.models, responses=errors(OpenAIError, 401, 429))
    router.add_api_route("/models/{model}", api.model, responses=errors(OpenAIError, 401, 404, 429))
    return router
