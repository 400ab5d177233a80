"""heed's own API: scores, token probabilities, attention, the beam, forced prefixes, events as a text grows."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from heed.decoding.translator import ModelTranslator
from heed.documents.formats import FORMATS
from heed.documents.translation import TranslateOptions
from heed.inspect import inspect_text, inspect_translation, likely_words
from heed.serve.apis.heed_answers import (
    DEFAULT_MAX_TOKENS,
    Continuation,
    Detected,
    DetectedLanguages,
    Generated,
    HeedError,
    LanguageWithTargets,
    LimitsCard,
    ModelCard,
    Models,
    Next,
    NextToken,
    NextWord,
    Prediction,
    Predictions,
    Score,
    Token,
    Translated,
)  # fmt: skip
from heed.serve.apis.heed_requests import (
    DetectBody,
    DirectionBody,
    GenerateBody,
    InspectBody,
    NextBody,
    PredictBody,
    ScoreBody,
    TranslateBody,
)  # fmt: skip
from heed.serve.apis.heed_translate import find_route, translate
from heed.serve.apis.schema import Answer, content, errors
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.generation import Prompt, continuations, temperature_of
from heed.serve.engine.job import SEPARATE_BATCH, Job
from heed.serve.engine.probabilities import finite, next_choices
from heed.serve.errors import BadRequestError, NotFoundError, body_of
from heed.serve.service import Service, bearer_key

T = TypeVar("T")
Event = tuple[str, Answer | dict[str, Any]]
"""Name and data of a server-sent event."""
Send = Callable[[Event], None]


class HeedApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.catalogue = service.catalogue

    def _admit(self, request: Request) -> None:
        self.service.admit(request, bearer_key(request))

    # --- models --------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Models:
        """GET /api/models"""
        self._admit(request)
        catalogue, limits = self.catalogue, self.service.limits
        languages = [
            LanguageWithTargets(
                code=each.code, name=each.name, direction=each.direction,
                targets=[target.code for target in catalogue.targets(each)],
            )
            for each in catalogue.languages
        ]  # fmt: skip
        return Models(
            models=[ModelCard.of(model, limits.max_tokens) for model in catalogue.models.values()],
            languages=languages,
            files=list(FORMATS),
            limits=LimitsCard.model_validate(limits, from_attributes=True),
        )

    async def report(self, request: Request, name: str) -> Response:
        """GET /api/models/NAME/report"""
        self._admit(request)
        model = self.catalogue.models.get(name)
        if model is None or not model.report.is_file():
            raise NotFoundError("There is no model of this name with a report.")
        return PlainTextResponse(model.report.read_text(encoding="utf-8"), media_type="text/markdown; charset=utf-8")

    async def detect(self, request: Request, body: DetectBody) -> DetectedLanguages:
        """POST /api/detect"""
        self._admit(request)
        self.service.limits.require_text(body.text)
        return DetectedLanguages(languages=[Detected.of(each) for each in self.service.detector.detect(body.text)])

    # --- translation ---------------------------------------------------------------------------------

    async def translate(self, request: Request, body: TranslateBody) -> Response | Translated:
        """POST /api/translate"""
        self._admit(request)
        self.service.limits.require_text(body.text)
        route = await asyncio.to_thread(find_route, self.service, body)
        if not body.stream:
            return await self.service.jobs.run(request, lambda job: translate(job, body, route))

        def stream(job: Job, send: Send) -> None:
            def send_partial(number: int, source: str, text: str) -> None:
                send(("partial", {"sentence": number, "source": source, "text": text}))

            send(("done", translate(job, body, route, send_partial)))

        return await self._streamed(stream)

    # --- inspection ----------------------------------------------------------------------------------

    async def inspect(self, request: Request, body: InspectBody) -> dict[str, Any]:
        """POST /api/inspect"""
        self._admit(request)
        if (body.text is None) == (body.source is None):
            raise BadRequestError("Give either source (with an optional target) or text.", "source")
        if body.text is not None:
            model, text = self.catalogue.model(body.model, "generate"), body.text
            await asyncio.to_thread(self._require_tokens, model, text)
            return await self._call(request, lambda: inspect_text(model.translator, text).to_json())
        model, source = self.catalogue.model(body.model, "translate"), body.source or ""
        await asyncio.to_thread(self._require_tokens, model, body.target or "")
        translator = _translator(model, body)
        options = TranslateOptions(body.nbest or 1, body.beam_size).search_options(model.options)  # as for translating
        if body.nbest is None and not options.sample:
            options = options.model_copy(update={"nbest": min(5, options.beam_size)})
        return await self._call(
            request, lambda: inspect_translation(translator, source, body.target, options).to_json()
        )

    async def next(self, request: Request, body: NextBody) -> Next:
        """POST /api/next"""
        self._admit(request)
        model = self._scoring_model(body)
        await asyncio.to_thread(self._require_tokens, model, body.prefix)
        translator = _translator(model, body)

        def look() -> Next:
            tokens = next_choices(translator, body.source, body.prefix, body.size)
            words = likely_words(translator, body.source, body.prefix)
            return Next(
                tokens=[NextToken.model_validate(token) for token in tokens],
                words=[NextWord(text=word.text, probability=word.prob, end=word.end) for word in words],
            )

        return await self._call(request, look)

    async def score(self, request: Request, body: ScoreBody) -> Score:
        """POST /api/score"""
        self._admit(request)
        model = self._scoring_model(body)
        await asyncio.to_thread(self._require_tokens, model, body.text)
        translator = _translator(model, body)

        def look() -> Score:
            if body.source is not None:
                lines = translator.score([body.text], [body.source])
            else:
                lines = model.loaded.score(body.text.split("\n"))
            tokens = [token for line in lines for token in Token.all_of(model, line.ids, line.log_probs)]
            return Score(log_prob=finite(sum(line.log_prob for line in lines)), tokens=tokens)

        return await self._call(request, look)

    def _scoring_model(self, body: NextBody | ScoreBody) -> ServedModel:
        """The model by name, or by whether there is a source. Raises BadRequestError or ModelNotFoundError."""
        named = self.catalogue.models.get(body.model or "")
        translates = named.can("translate") if named else body.model is None and body.source is not None
        if translates and body.source is None:
            raise BadRequestError("A translation model needs a source.", "source")
        if body.source is not None and not translates:
            raise BadRequestError("A language model takes no source.", "source")
        return self.catalogue.model(body.model, "translate" if translates else "generate")

    def _require_tokens(self, model: ServedModel, text: str) -> None:
        """Raise BadRequestError for a text that would hold up the searches of other clients for too long."""
        num_tokens, limit = len(model.translator.encoded(None, text)[1]), self.service.limits.sentence_tokens
        if num_tokens > limit:
            raise BadRequestError(f"The text has {num_tokens:,} tokens; the limit is {limit:,}.", "text")

    async def _call(self, request: Request, look: Callable[[], T]) -> T:
        return await self.service.jobs.run(request, lambda job: job.call(look))

    async def predict(self, request: Request, body: PredictBody) -> Predictions:
        """POST /api/predict"""
        self._admit(request)
        self.service.limits.require_text("".join(body.inputs))
        model = self.catalogue.model(body.model, "predict")

        def work(job: Job) -> Predictions:
            outputs = []
            for first in range(0, len(body.inputs), SEPARATE_BATCH):  # in parts, so that other requests get turns
                inputs = body.inputs[first : first + SEPARATE_BATCH]
                for ranked in job.call(partial(model.loaded.predict, inputs, body.top)):
                    outputs.append([Prediction.model_validate(each, from_attributes=True) for each in ranked])
            return Predictions(outputs=outputs)

        return await self.service.jobs.run(request, work)

    # --- generation ----------------------------------------------------------------------------------

    async def generate(self, request: Request, body: GenerateBody) -> Response | Generated:
        """POST /api/generate"""
        self._admit(request)
        self.service.limits.require_text(body.prompt)
        model = self.catalogue.model(body.model, "generate")
        seed = secrets.randbelow(1 << 31) if body.seed is None else body.seed
        options = model.options.of_text(
            DEFAULT_MAX_TOKENS, self.service.limits.max_tokens, sample=body.temperature != 0,
            temperature=temperature_of(body.temperature), top_k=body.top_k, top_p=body.top_p,
            max_tokens=body.max_tokens, seed=seed, stop=tuple(body.stop) or None,
        )  # fmt: skip
        prompt_request = await asyncio.to_thread(model.translator.prompt_request, body.prompt)
        prompt = Prompt(body.prompt, prompt_request.prefix)

        def work(job: Job, on_piece: Callable[[int, str], None] | None = None) -> Generated:
            outputs = continuations(job, model, [prompt], body.samples, options, on_piece)
            return Generated(continuations=[Continuation.of(model, each) for each in outputs], seed=seed)

        if not body.stream:
            return await self.service.jobs.run(request, work)

        def stream(job: Job, send: Send) -> None:
            texts = [""] * body.samples

            def send_partial(index: int, text: str) -> None:
                texts[index] += text
                send(("partial", {"index": index, "text": texts[index]}))

            send(("done", work(job, send_partial)))

        return await self._streamed(stream)

    # --- streams -------------------------------------------------------------------------------------

    async def _streamed(self, work: Callable[[Job, Send], None]) -> Response:
        events: AsyncIterator[Event] = await self.service.jobs.stream(work)
        return StreamingResponse(self._events(events), media_type="text/event-stream")

    async def _events(self, events: AsyncIterator[Event]) -> AsyncIterator[str]:
        """Server-sent events. An error is one too, as the status has been sent already."""
        try:
            async for event in events:
                yield _text_of(event)
        except Exception as error:
            yield _text_of(("error", body_of(self.service.reported(error), "/api")))


def _text_of(event: Event) -> str:
    name, value = event
    data = value.model_dump_json() if isinstance(value, Answer) else json.dumps(value, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n"


def _translator(model: ServedModel, body: DirectionBody) -> ModelTranslator:
    """The model in the requested direction. Raises NotFoundError."""
    codes = (body.source_language, body.target_language)
    if not model.directions or codes == (None, None):
        return model.translator
    for direction in model.directions:
        offered = (direction.source.code, direction.target.code)
        if all(code in (None, own) for code, own in zip(codes, offered, strict=True)):
            return direction.translator
    raise NotFoundError(f"{model.name} does not translate in this direction.", "target_language")


def routes(service: Service) -> APIRouter:
    """heed's own API of one server."""
    api, router = HeedApi(service), APIRouter(prefix="/api", tags=["heed"])
    failures = errors(HeedError, 400, 401, 404, 429, 503, 504)
    streams = {**content("The answer; with `stream` its pieces, as events.", "text/event-stream"), **failures}
    get = partial(router.add_api_route, methods=["GET"])
    post = partial(router.add_api_route, methods=["POST"])
    get("/models", api.models, summary="Models, languages and limits of the server.", responses=failures)
    get(
        "/models/{name}/report", api.report, summary="A model's report.md: its data and its quality.",
        response_model=None, responses={**content("report.md", "text/markdown"), **failures},
    )  # fmt: skip
    post(
        "/translate", api.translate, summary="Translate a text.", response_model=Translated, responses=streams,
    )  # fmt: skip
    post("/detect", api.detect, summary="Detect the language of a text.", responses=failures)
    post("/inspect", api.inspect, summary="Attention, probabilities, alternatives and the beam.", responses=failures)
    post("/next", api.next, summary="Likely next tokens and words.", responses=failures)
    post("/score", api.score, summary="Log-probability of a text.", responses=failures)
    post("/predict", api.predict, summary="Answers of any model to texts.", responses=failures)
    post("/generate", api.generate, summary="Continue a text.", response_model=Generated, responses=streams)
    return router
