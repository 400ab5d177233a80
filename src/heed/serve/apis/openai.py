"""OpenAI's completions API for language models: what its clients send, and what they expect back."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from heed.core.errors import HeedError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.places import Place
from heed.serve.apis import openai_models as schema
from heed.serve.apis.openai_models import CompletionRequest
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.generation import Prompt, continuations, temperature_of
from heed.serve.engine.jobs import Job
from heed.serve.engine.probabilities import as_said, finite, places_in_text, spell, spell_one
from heed.serve.errors import ApiError, BadRequestError, ModelNotFoundError, body_of
from heed.serve.service import Service, bearer_key

PATH = "/v1/completions"
USUAL_LENGTH = 16
"""Tokens, where neither the request nor the run's recipe has a limit: OpenAI's."""
_LEAST_TOP_P = 1e-6
"""OpenAI allows 0, which leaves the likeliest token."""


@dataclass(frozen=True)
class _Asked:
    """A request, read."""

    said: CompletionRequest
    model: ServedModel
    prompts: list[Prompt]
    options: SearchOptions
    n: int
    candidates: int

    @property
    def max_tokens(self) -> int:
        """To go on with."""
        return 0 if self.said.max_tokens == 0 else self.options.max_tokens

    @property
    def in_pieces(self) -> bool:
        """Whether a stream sends the text as it grows: what is known only at the end has to wait for it."""
        return self.candidates == self.n and self.said.logprobs is None


def _read(said: CompletionRequest, model: ServedModel, most: int) -> _Asked:
    """Check what fields cannot say each for itself."""
    n = said.n or 1
    candidates = max(n, said.best_of or 1)
    if said.best_of is not None and said.best_of < n:
        raise BadRequestError("best_of must be at least n.", "best_of")
    if said.stream and candidates > n:
        raise BadRequestError("best_of cannot be streamed.", "best_of")
    if said.stream_options is not None and not said.stream:
        raise BadRequestError("stream_options goes with stream.", "stream_options")
    prompts = _prompts(said.prompt, model)
    if len(prompts) * candidates > 128:
        raise BadRequestError("At most 128 completions are made at once.", "n")
    options = _options(said, model.options, most)
    if any(token >= len(model.translator.tgt_tokenizer.vocabulary) for token, _ in options.bias):
        raise BadRequestError("A token of logit_bias is none of this model's.", "logit_bias")
    return _Asked(said, model, prompts, options, n, candidates)


def _prompts(said: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]], model: ServedModel) -> list[Prompt]:
    several: Sequence[Any] = [said] if isinstance(said, str) or (said and isinstance(said[0], int)) else said
    return [_prompt(each, model) for each in several]


def _prompt(said: str | Sequence[int], model: ServedModel) -> Prompt:
    translator = model.translator
    if isinstance(said, str):
        said = said.encode("utf-8", "replace").decode("utf-8")
        return Prompt(said, translator.request_of(said).prefix)
    if any(id >= len(translator.tgt_tokenizer.vocabulary) for id in said):
        raise BadRequestError("A token of the prompt is none of this model's.", "prompt")
    form = translator.roles.form
    return Prompt(form.texts([as_said(form, said)])[0], tuple(said))


def _options(said: CompletionRequest, usual: SearchOptions, most: int) -> SearchOptions:
    stop = (said.stop,) if isinstance(said.stop, str) else said.stop
    seed = secrets.randbelow(1 << 31) if said.seed is None else abs(said.seed) % (1 << 31)
    try:
        bias = tuple(sorted((int(token), value) for token, value in (said.logit_bias or {}).items()))
    except ValueError:
        bias = ((-1, 0.0),)
    if any(token < 0 for token, _ in bias) or len({token for token, _ in bias}) < len(bias):
        raise BadRequestError("The keys of logit_bias are token ids, each once.", "logit_bias")
    return usual.of_text(
        USUAL_LENGTH, most, sample=said.temperature != 0, temperature=temperature_of(said.temperature),
        top_p=None if said.top_p is None else max(said.top_p, _LEAST_TOP_P), max_tokens=said.max_tokens or None,
        seed=seed, stop=stop if stop is None else tuple(stop), presence_penalty=said.presence_penalty,
        frequency_penalty=said.frequency_penalty, bias=bias or None, length_norm="mean", length_penalty=1.0,
    )  # fmt: skip


class Completions:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = int(time.time())

    async def models(self, request: Request) -> dict[str, Any]:
        """GET /v1/models"""
        self.service.admit(request, bearer_key(request))
        served = self.service.catalogue.models.values()
        return {"object": "list", "data": [self._model(model) for model in served if not model.is_translator]}

    async def one_model(self, request: Request, model: str) -> dict[str, Any]:
        """GET /v1/models/NAME"""
        self.service.admit(request, bearer_key(request))
        found = self.service.catalogue.models.get(model)
        if found is None or found.is_translator:
            raise ModelNotFoundError(f"The model {model!r} does not exist.", "model")
        return self._model(found)

    def _model(self, model: ServedModel) -> dict[str, Any]:
        return {"id": model.name, "object": "model", "created": self.started, "owned_by": "heed"}

    async def completions(self, request: Request, body: CompletionRequest) -> Response | dict[str, Any]:
        """POST /v1/completions"""
        self.service.admit(request, bearer_key(request))
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        self.service.limits.require_text("".join(text for text in texts if isinstance(text, str)))
        model = self.service.catalogue.model(body.model, "language-model")
        asked = await asyncio.to_thread(_read, body, model, self.service.limits.max_tokens)
        self._require_tokens(asked)
        head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": asked.model.name,
            "system_fingerprint": f"heed-{asked.model.fingerprint}",
        }
        if body.stream:
            events: AsyncIterator[dict[str, Any]] = await self.service.jobs.stream(partial(_stream, asked=asked))
            return StreamingResponse(self._events(head, asked, events), media_type="text/event-stream")
        choices, usage = await self.service.jobs.run(request, lambda job: _complete(job, asked))
        return {**head, "choices": choices, "usage": usage}

    def _require_tokens(self, asked: _Asked) -> None:
        """Raise BadRequestError for a prompt that is too long, whatever is asked of it."""
        length, most = max(len(prompt.ids) for prompt in asked.prompts), self.service.limits.sentence_tokens
        if length > most:
            raise BadRequestError(f"A prompt has {length:,} tokens; at most {most:,} are taken.", "prompt")

    async def _events(
        self, head: dict[str, Any], asked: _Asked, events: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[str]:
        """Each piece as an event; an error too, as the head of the answer has been sent."""
        wants_usage = asked.said.stream_options is not None and asked.said.stream_options.include_usage
        try:
            async for event in events:
                if "usage" not in event:
                    yield _event({**head, "choices": [event], **({"usage": None} if wants_usage else {})})
                elif wants_usage:
                    yield _event({**head, "choices": [], **event})
        except (ApiError, HeedError) as error:
            known = error if isinstance(error, ApiError) else BadRequestError(str(error))
            yield _event(body_of(known, PATH))
        except Exception as error:
            self.service.log.error("stream_failed", error)
            yield _event(body_of(ApiError("The server failed at this request."), PATH))
        yield "data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _complete(job: Job, asked: _Asked) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """All choices, and the usage."""
    found = _found(job, asked)
    chosen = [each for number in range(len(asked.prompts)) for each in _best(asked, found, number)]
    choices = [
        _choice(job, asked, index, asked.prompts[index // asked.n], hypothesis)
        for index, hypothesis in enumerate(chosen)
    ]
    return choices, _usage(asked, found)


def _stream(job: Job, send: Callable[[dict[str, Any]], None], asked: _Asked) -> None:
    """The same in pieces."""

    def tell(index: int, text: str) -> None:
        send({"index": index, "text": text, "logprobs": None, "finish_reason": None})

    if asked.in_pieces and asked.said.echo:
        for index in range(len(asked.prompts) * asked.n):
            tell(index, asked.prompts[index // asked.n].text)
    found = _found(job, asked, tell if asked.in_pieces else None)
    for index, hypothesis in enumerate(found):
        choice = _choice(job, asked, index, asked.prompts[index // asked.n], hypothesis)
        send({**choice, "text": ""} if asked.in_pieces else choice)
    send({"usage": _usage(asked, found)})


def _found(job: Job, asked: _Asked, tell: Callable[[int, str], None] | None = None) -> list[Hypothesis]:
    """All candidates of the first prompt, then those of the second, and so on."""
    if not asked.max_tokens:
        return [Hypothesis((), 0.0, 0.0, finished=False)] * (len(asked.prompts) * asked.candidates)
    return continuations(job, asked.model, asked.prompts, asked.candidates, asked.options, tell)


def _best(asked: _Asked, found: Sequence[Hypothesis], prompt: int) -> list[Hypothesis]:
    """The `n` best candidates of a prompt by mean log-probability; all of them where there are no more."""
    candidates = found[prompt * asked.candidates : (prompt + 1) * asked.candidates]
    if asked.candidates == asked.n:
        return list(candidates)
    return sorted(candidates, key=lambda hypothesis: -hypothesis.score)[: asked.n]


def _choice(job: Job, asked: _Asked, index: int, prompt: Prompt, hypothesis: Hypothesis) -> dict[str, Any]:
    text = prompt.text + hypothesis.text if asked.said.echo else hypothesis.text
    logprobs = _logprobs(job, asked, prompt, hypothesis) if asked.said.logprobs is not None else None
    reason = "stop" if hypothesis.finished else "length"
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


def _logprobs(job: Job, asked: _Asked, prompt: Prompt, hypothesis: Hypothesis) -> dict[str, Any]:
    """Of the tokens of the choice's text; the first of a prompt has none, as OpenAI has it."""
    translator, form = asked.model.translator, asked.model.translator.roles.form
    num_choices = asked.said.logprobs or 0
    ids = (*prompt.ids, *hypothesis.ids)
    places: list[Place | None] = list(job.call(lambda: places_in_text(translator, ids, max(1, num_choices))))
    first = 0 if asked.said.echo else len(prompt.ids)
    if asked.said.echo and prompt.ids:
        places[0] = None
    gap = 0 if asked.said.echo else len(form.gap(prompt.text, hypothesis.text.lstrip(" ")))
    spelling = spell(form, ids[first:], gap)
    return {
        "tokens": spelling.tokens,
        "token_logprobs": [None if place is None else finite(place.log_prob) for place in places[first:]],
        "top_logprobs": [_top(asked, place) for place in places[first:]] if num_choices else None,
        "text_offset": spelling.offsets,
    }


def _top(asked: _Asked, place: Place | None) -> dict[str, float] | None:
    if place is None:
        return None
    spelled = asked.model.translator.roles.form.spelled
    return {spell_one(spelled[id]): finite(log_prob) for id, log_prob in place.choices}


def _usage(asked: _Asked, found: Sequence[Hypothesis]) -> dict[str, int]:
    prompt = sum(len(each.ids) for each in asked.prompts)
    completion = sum(len(hypothesis.ids) for hypothesis in found)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def routes(service: Service) -> APIRouter:
    """OpenAI's API of one server."""
    api, router = Completions(service), APIRouter(tags=["OpenAI"])
    router.add_api_route(PATH, api.completions, methods=["POST"], response_model=None, **schema.COMPLETIONS)
    router.add_api_route("/v1/models", api.models, methods=["GET"], response_model=None, **schema.MODELS)
    router.add_api_route("/v1/models/{model}", api.one_model, methods=["GET"], response_model=None, **schema.MODEL)
    return router
