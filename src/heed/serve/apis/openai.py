"""OpenAI's completions API, for models that generate text."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.scoring import TokenStats
from heed.serve.apis.openai_answers import Choice, Completion, Logprobs, ModelCard, ModelList, OpenAIError, Usage
from heed.serve.apis.openai_requests import CheckedRequest, CompletionRequest, check
from heed.serve.apis.schema import content, errors
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.generation import Prompt, continuations
from heed.serve.engine.job import Job
from heed.serve.engine.probabilities import finite, places_in_text, spell, spell_one
from heed.serve.errors import BadRequestError, ModelNotFoundError, body_of
from heed.serve.service import Service, bearer_key

PATH = "/v1/completions"

Event = Choice | Usage
"""What a stream consists of: pieces of choices, then the usage."""


class OpenAIApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = int(time.time())

    async def models(self, request: Request) -> ModelList:
        """GET /v1/models"""
        self.service.admit(request, bearer_key(request))
        return ModelList(data=[self._card(model) for model in self.service.catalogue.able_to("generate")])

    async def model(self, request: Request, model: str) -> ModelCard:
        """GET /v1/models/NAME"""
        self.service.admit(request, bearer_key(request))
        for served in self.service.catalogue.able_to("generate"):
            if served.name == model:
                return self._card(served)
        raise ModelNotFoundError(f"The model {model!r} does not exist.", "model")

    def _card(self, model: ServedModel) -> ModelCard:
        return ModelCard(id=model.name, created=self.started)

    async def completions(self, request: Request, body: CompletionRequest) -> Response | Completion:
        """POST /v1/completions"""
        self.service.admit(request, bearer_key(request))
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        self.service.limits.require_text("".join(text for text in texts if isinstance(text, str)))
        model = self.service.catalogue.model(body.model, "generate")
        checked = await asyncio.to_thread(check, body, model, self.service.limits.max_tokens)
        self._require_tokens(checked)
        empty = Completion(
            id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            system_fingerprint=f"heed-{model.fingerprint}",
        )
        if body.stream:
            events: AsyncIterator[Event] = await self.service.jobs.stream(partial(_stream, request=checked))
            return StreamingResponse(self._events(empty, checked, events), media_type="text/event-stream")
        choices, usage = await self.service.jobs.run(request, lambda job: _complete(job, checked))
        return empty.model_copy(update={"choices": choices, "usage": usage})

    def _require_tokens(self, request: CheckedRequest) -> None:
        """Raise BadRequestError for a prompt that is too long."""
        length, limit = max(len(prompt.ids) for prompt in request.prompts), self.service.limits.sentence_tokens
        if length > limit:
            raise BadRequestError(f"A prompt has {length:,} tokens; the limit is {limit:,}.", "prompt")

    async def _events(
        self, empty: Completion, request: CheckedRequest, events: AsyncIterator[Event]
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


def _complete(job: Job, request: CheckedRequest) -> tuple[list[Choice], Usage]:
    """All choices of a request."""
    candidates = _candidates(job, request)
    chosen = [best for number in range(len(request.prompts)) for best in _best(request, candidates, number)]
    choices = [_choice(job, request, index, hypothesis) for index, hypothesis in enumerate(chosen)]
    return choices, _usage(request, candidates)


def _stream(job: Job, send: Callable[[Event], None], request: CheckedRequest) -> None:
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
    job: Job, request: CheckedRequest, on_piece: Callable[[int, str], None] | None = None
) -> list[Hypothesis]:
    """All candidates of the first prompt, then those of the second, and so on."""
    if not request.max_tokens:
        return [Hypothesis((), 0.0, 0.0, finished=False)] * (len(request.prompts) * request.candidates)
    return continuations(job, request.model, request.prompts, request.candidates, request.options, on_piece)


def _best(request: CheckedRequest, candidates: Sequence[Hypothesis], prompt: int) -> list[Hypothesis]:
    """The `n` candidates of a prompt with the highest mean log-probability."""
    of_prompt = candidates[prompt * request.candidates : (prompt + 1) * request.candidates]
    if request.candidates == request.n:
        return list(of_prompt)
    return sorted(of_prompt, key=lambda hypothesis: -hypothesis.score)[: request.n]


def _choice(job: Job, request: CheckedRequest, index: int, hypothesis: Hypothesis) -> Choice:
    prompt = request.prompt_of(index)
    return Choice(
        index=index,
        text=prompt.text + hypothesis.text if request.body.echo else hypothesis.text,
        logprobs=_logprobs(job, request, prompt, hypothesis) if request.body.logprobs is not None else None,
        finish_reason="stop" if hypothesis.finished else "length",
    )


def _logprobs(job: Job, request: CheckedRequest, prompt: Prompt, hypothesis: Hypothesis) -> Logprobs:
    """Of the tokens of a choice's text. The first token of an echoed prompt has none, as in OpenAI's API."""
    translator, form = request.model.translator, request.model.translator.detokenizer
    num_choices, echo = request.body.logprobs or 0, request.body.echo
    ids = (*prompt.ids, *hypothesis.ids)
    places: list[TokenStats | None] = list(job.call(lambda: places_in_text(translator, ids, max(1, num_choices))))
    if echo and prompt.ids:
        places[0] = None
    first = 0 if echo else len(prompt.ids)
    gap = 0 if echo else len(form.space_between(prompt.text, hypothesis.text.lstrip(" ")))
    tokens, offsets = spell(form, ids[first:], gap)
    return Logprobs(
        tokens=tokens,
        token_logprobs=[None if place is None else finite(place.log_prob) for place in places[first:]],
        top_logprobs=[_top(request, place) for place in places[first:]] if num_choices else None,
        text_offset=offsets,
    )


def _top(request: CheckedRequest, place: TokenStats | None) -> dict[str, float] | None:
    if place is None:
        return None
    spelled = request.model.translator.detokenizer.token_bytes
    return {spell_one(spelled[id]): finite(log_prob) for id, log_prob in place.choices}


def _usage(request: CheckedRequest, candidates: Sequence[Hypothesis]) -> Usage:
    prompt = sum(len(each.ids) for each in request.prompts)
    completion = sum(len(hypothesis.ids) for hypothesis in candidates)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def routes(service: Service) -> APIRouter:
    """OpenAI's API of one server."""
    api, router = OpenAIApi(service), APIRouter(prefix="/v1", tags=["OpenAI"])
    router.add_api_route(
        "/completions", api.completions, methods=["POST"], summary="Complete a text.", response_model=Completion,
        responses={
            **content("The completion; with `stream` its pieces, as events.", "text/event-stream"),
            **errors(OpenAIError, 400, 401, 404, 429, 503, 504),
        },
    )  # fmt: skip
    router.add_api_route("/models", api.models, summary="Models.", responses=errors(OpenAIError, 401, 429))
    router.add_api_route(
        "/models/{model}", api.model, summary="One model.", responses=errors(OpenAIError, 401, 404, 429)
    )
    return router
