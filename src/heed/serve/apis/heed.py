"""heed's own API: translation, inspection, scores, next words, predictions and generation."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from heed.documents.formats import FORMATS
from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Partial, TranslateOptions
from heed.inference.translator import ModelTranslator
from heed.inspect import inspect_derivation, inspect_reader, inspect_text, inspect_translation, likely_words
from heed.serve.apis import heed_schema as schema
from heed.serve.apis.heed_fields import (
    DEFAULT_MAX_TOKENS,
    match_of,
    model_card,
    output_of,
    pixels_of,
    sentence_of,
    tokens_of,
)
from heed.serve.apis.schema import Answer, content, errors, event_stream, request_body
from heed.serve.engine.catalogue import Route, ServedModel
from heed.serve.engine.generation import Prompt, continuations, temperature_of
from heed.serve.engine.job import SEPARATE_BATCH, Job
from heed.serve.engine.languages import Language
from heed.serve.engine.probabilities import next_tokens
from heed.serve.errors import ApiError, body_of
from heed.serve.service import Service
from heed.text.language.identify import Detected

T = TypeVar("T")
Event = tuple[str, Answer | dict[str, Any]]
"""Name and data of a server-sent event."""
Send = Callable[[Event], None]
OnPartial = Callable[[int, str, str], None]
"""Gets the number, source and text so far of a sentence."""

MOST_EXPLAINED = 8
"""Inputs of a request whose answers are explained."""


class HeedApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.catalogue = service.catalogue

    # --- models --------------------------------------------------------------------------------------

    async def models(self) -> schema.Models:
        """Models, languages and limits of the server."""
        self.service.jobs.require_warm()
        languages = [
            schema.LanguageWithTargets(
                code=each.code, name=each.name, direction=each.direction,
                targets=[target.code for target in self.catalogue.targets(each)],
            )
            for each in self.catalogue.languages
        ]  # fmt: skip
        limits = self.service.limits
        return schema.Models(
            models=[model_card(model, limits.max_tokens) for model in self.catalogue.models.values()],
            languages=languages,
            files=list(FORMATS),
            limits=schema.LimitsCard.model_validate(limits),
            suggestions=self.service.memory is not None,
        )

    async def report(self, name: str) -> Response:
        """A model's report.md: its data and its quality."""
        model = self.catalogue.models.get(name)
        text = model.read_report() if model is not None else None
        if text is None:
            raise ApiError(404, "No model of this name has a report.")
        return PlainTextResponse(text, media_type="text/markdown; charset=utf-8")

    async def detect(self, request: Request) -> schema.DetectedLanguages:
        """Detect the language of a text."""
        body = await self.service.read(request, schema.DetectBody)
        self.service.limits.require_text(body.text)
        guesses = await self.service.jobs.run(request, lambda job: self.service.detector.detect(body.text))
        return schema.DetectedLanguages(languages=guesses)

    # --- translation ---------------------------------------------------------------------------------

    async def translate(self, request: Request) -> Response | schema.Translated:
        """Translate a text."""
        body = await self.service.read(request, schema.TranslateBody)
        self.service.limits.require_text(body.text)
        if not body.stream:
            return await self.service.jobs.run(request, lambda job: self._translated(job, body, self._route(job, body)))
        route = await self.service.jobs.run(request, lambda job: self._route(job, body))

        def stream(job: Job, send: Send) -> None:
            def send_partial(number: int, source: str, text: str) -> None:
                send(("partial", {"sentence": number, "source": source, "text": text}))

            send(("done", self._translated(job, body, route, send_partial)))

        return await self._streamed(request, stream)

    def _translated(
        self, job: Job, body: schema.TranslateBody, route: Route, on_partial: OnPartial | None = None
    ) -> schema.Translated:
        """The translation of a text by a person, if the memory has one and nothing special is asked for, else ours."""
        is_plain = body.format == "text" and not (body.prefix or body.glossary or body.keep or body.nbest > 1)
        known = self.service.remembered(route, body.text) if is_plain else None
        return _translate(job, body, route, on_partial) if known is None else _from_memory(route, known)

    async def matches(self, request: Request) -> schema.Matches:
        """What people have translated before of a sentence like this one."""
        body = await self.service.read(request, schema.MatchesBody)
        source, target = self._language(body.source), self._language(body.target)
        route = Route(source, target, self.catalogue.path(source, target) or [], None)

        def work(job: Job) -> schema.Matches:
            found = self.service.matches(job, route, body.text)
            return schema.Matches(matches=[match_of(body.text, match) for match in found])

        return await self.service.jobs.run(request, work)

    def _route(self, job: Job, body: schema.TranslateBody) -> Route:
        """The languages of a translation and the models on the way. Raises ApiError if there are none."""
        catalogue = self.catalogue
        model = catalogue.model(body.model, "translate") if body.model is not None else None
        directions = model.directions if model else catalogue.directions
        if not directions:
            raise ApiError(404, "This server has no translation model.")
        target = self._language(body.target) if body.target else None
        detected = None
        if body.source not in ("", "auto"):
            source = self._language(body.source)
        else:
            detected = self._detect(job, body, [direction.source for direction in directions], target)
            source = Language(detected.language)
        if target is None:
            targets = (direction.target for direction in directions if direction.source == source)
            target = next(targets, None)
        if target is None:
            raise ApiError(404, f"No model translates from {source.code}.", "source")
        path = catalogue.path(source, target, model)
        if path is None:
            raise ApiError(404, f"No model translates from {source.code} to {target.code}.", "target")
        return Route(source, target, path, detected)

    def _detect(
        self, job: Job, body: schema.TranslateBody, sources: Sequence[Language], target: Language | None
    ) -> Detected:
        """The likeliest language that can be translated to the target."""
        text = spoken_text(body.text, job.check) if body.format == "html" else body.text
        for guess in self.service.detector.detect(text):
            language = Language(guess.language)
            if language in sources and (target is None or self.catalogue.path(language, target) is not None):
                return guess
        raise ApiError(404, "No model translates this text to the target language.", "target")

    def _language(self, code: str) -> Language:
        language = self.catalogue.language(code)
        if language is None:
            available = ", ".join(each.code for each in self.catalogue.languages)
            raise ApiError(404, f"{code[:40]} is not supported; available languages: {available}.", "language")
        return language

    # --- inspection ----------------------------------------------------------------------------------

    async def inspect(self, request: Request) -> dict[str, Any]:
        """Attention, probabilities, alternatives and beam, or derivations; of a reader, what its answer rests on."""
        body = await self.service.read(request, schema.InspectBody)
        if (body.text is None) == (body.source is None):
            raise ApiError(400, "Give either source (with an optional target) or text.", "source")
        if body.text is not None and body.target is not None:
            raise ApiError(400, "A target is the translation of a source: leave it out with text.", "target")
        if body.text is not None:
            model, text = self._model_of_text(body), body.text
            if model.can("read"):
                read = partial(inspect_reader, model.loaded, text)
                return await self.service.jobs.run(request, lambda job: job.call(read).to_json())
            inspect = partial(inspect_text, model.translator, text)
            return await self._call(request, model.translator, None, text, lambda: inspect().to_json())
        model, source = self.catalogue.model(body.model, "translate"), body.source or ""
        translator = _translator(model, body)
        options = TranslateOptions(body.nbest or 1, body.beam_size).search_options(model.options)  # as for translating
        if body.nbest is None and not options.sample:
            options = options.model_copy(update={"nbest": min(5, options.beam_size)})
        if model.can("derive"):
            derive = partial(inspect_derivation, model.loaded, source, body.target, options.width, options.nbest)
            return await self._call(request, translator, source, body.target or "", lambda: derive().to_json())
        return await self._call(
            request, translator, source, body.target or "",
            lambda: inspect_translation(translator, source, body.target, options).to_json(),
        )  # fmt: skip

    def _model_of_text(self, body: schema.InspectBody) -> ServedModel:
        """The model by name, or the first that reads or continues texts. Raises ApiError."""
        named = self.catalogue.models.get(body.model or "")
        reads = named.can("read") if named else not self.catalogue.able_to("generate")
        return self.catalogue.model(body.model, "read" if reads else "generate")

    async def next(self, request: Request) -> schema.Next:
        """Likely next tokens and words."""
        body = await self.service.read(request, schema.NextBody)
        model = self._scoring_model(body)
        translator = _translator(model, body)

        def work() -> schema.Next:
            words = likely_words(translator, body.source, body.prefix)
            return schema.Next(
                tokens=next_tokens(translator, body.source, body.prefix, body.size),
                words=[schema.NextWord(text=word.text, probability=word.prob, end=word.end) for word in words],
            )

        return await self._call(request, translator, body.source, body.prefix, work)

    async def score(self, request: Request) -> schema.Score:
        """Log-probability of a text."""
        body = await self.service.read(request, schema.ScoreBody)
        model = self._scoring_model(body)
        translator = _translator(model, body)

        def work() -> schema.Score:
            if body.source is not None:
                lines = translator.score([body.text], [body.source])
            else:
                lines = model.loaded.score(body.text.split("\n"))
            tokens = [token for line in lines for token in tokens_of(model, line.ids, line.log_probs)]
            return schema.Score(log_prob=sum(line.log_prob for line in lines), tokens=tokens)

        return await self._call(request, translator, body.source, body.text, work)

    def _scoring_model(self, body: schema.NextBody | schema.ScoreBody) -> ServedModel:
        """The model by name, or by whether there is a source. Raises ApiError."""
        named = self.catalogue.models.get(body.model or "")
        translates = named.can("translate") if named else body.model is None and body.source is not None
        if translates and body.source is None:
            raise ApiError(400, "A translation model needs a source.", "source")
        if body.source is not None and not translates:
            raise ApiError(400, "A language model takes no source.", "source")
        model = self.catalogue.model(body.model, "translate" if translates else "generate")
        if not model.can("score"):
            raise ApiError(400, "This model gives no probabilities of words.", "model")
        return model

    async def _call(
        self, request: Request, translator: ModelTranslator, source: str | None, text: str, work: Callable[[], T]
    ) -> T:
        """The result of the work of a model with a text, and the text's source if it has one.

        Raises ApiError if either would hold up the searches of other clients for too long.
        """
        limit = self.service.limits.sentence_tokens

        def checked(job: Job) -> T:
            for side, ids in zip(("source", "text"), translator.encoded(source, text), strict=True):
                if len(ids) > limit:
                    raise ApiError(400, f"The {side} has {len(ids):,} tokens; the limit is {limit:,}.", side)
            return job.call(work)

        return await self.service.jobs.run(request, checked)

    async def predict(self, request: Request) -> schema.Predictions:
        """Answers of any model to texts."""
        body = await self.service.read(request, schema.PredictBody)
        self.service.limits.require_text("".join(body.inputs))
        model = self.catalogue.model(body.model, "explain" if body.explain else "predict")
        if body.explain and len(body.inputs) > MOST_EXPLAINED:
            raise ApiError(400, f"At most {MOST_EXPLAINED} inputs can be explained at once.", "inputs")

        def work(job: Job) -> schema.Predictions:
            outputs = []
            for first in range(0, len(body.inputs), SEPARATE_BATCH):  # in parts, so that other requests get turns
                inputs = body.inputs[first : first + SEPARATE_BATCH]
                outputs += job.call(partial(model.loaded.predict, inputs, body.top))
            explained = [job.call(partial(model.loaded.explain, each)) for each in body.inputs * body.explain]
            return schema.Predictions(outputs=outputs, explanations=explained)

        return await self.service.jobs.run(request, work)

    async def caption(self, request: Request) -> schema.Captioned:
        """A caption of an image."""
        body = await self.service.read(request, schema.CaptionBody)
        model = self.catalogue.model(body.model, "caption")

        def work(job: Job) -> schema.Captioned:
            pixels = pixels_of(model, body.image)  # in the thread of the job, one at a time
            return schema.Captioned(caption=job.call(partial(model.loaded.look, pixels, body.top)))

        return await self.service.jobs.run(request, work)

    # --- generation ----------------------------------------------------------------------------------

    async def generate(self, request: Request) -> Response | schema.Generated:
        """Continue a text."""
        body = await self.service.read(request, schema.GenerateBody)
        self.service.limits.require_text(body.prompt)
        model = self.catalogue.model(body.model, "generate")
        seed = secrets.randbelow(1 << 31) if body.seed is None else body.seed
        options = model.options.of_text(
            DEFAULT_MAX_TOKENS, self.service.limits.max_tokens, sample=body.temperature != 0,
            temperature=temperature_of(body.temperature), top_k=body.top_k, top_p=body.top_p,
            max_tokens=body.max_tokens, seed=seed, stop=tuple(body.stop) or None,
        )  # fmt: skip
        encode = model.translator.prompt_request
        prompt = Prompt(body.prompt, await self.service.jobs.run(request, lambda job: encode(body.prompt).prefix))

        def work(job: Job, on_piece: Callable[[int, str], None] | None = None) -> schema.Generated:
            outputs = continuations(job, model, [prompt], body.samples, options, on_piece)
            return schema.Generated(
                continuations=[output_of(schema.Continuation, model, each) for each in outputs], seed=seed
            )

        if not body.stream:
            return await self.service.jobs.run(request, work)

        def stream(job: Job, send: Send) -> None:
            texts = [""] * body.samples

            def send_piece(index: int, text: str) -> None:
                texts[index] += text
                shown = text if body.pieces else texts[index]
                send(("piece" if body.pieces else "partial", {"index": index, "text": shown}))

            send(("done", work(job, send_piece)))

        return await self._streamed(request, stream)

    # --- streams -------------------------------------------------------------------------------------

    async def _streamed(self, request: Request, work: Callable[[Job, Send], None]) -> Response:
        events: AsyncIterator[Event] = await self.service.jobs.stream(request, work)
        return event_stream(self._events(events))

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


def _translate(
    job: Job, body: schema.TranslateBody, route: Route, on_partial: OnPartial | None = None
) -> schema.Translated:
    """The answer to a request. `on_partial` gets the number, source and text so far of sentences as they grow."""
    options = TranslateOptions(
        body.nbest, body.beam_size, body.length_penalty, body.prefix,
        {term.source: term.target for term in body.glossary}, body.keep,
    )  # fmt: skip
    job.wants_tokens = True
    translator = TextTranslator(job, route.steps, options)
    if body.format == "html":
        translation = translator.html(body.text)
    else:
        translation = translator.text(body.text, Partial(on_partial) if on_partial and route.path else None)
    return schema.Translated(
        text=translation.text,
        source=route.source.code,
        target=route.target.code,
        detected=route.detected,
        path=[direction.model.name for direction in route.path],
        sentences=[sentence_of(route.path, sentence) for sentence in translation.sentences],
    )


def _from_memory(route: Route, known: str) -> schema.Translated:
    return schema.Translated(
        text=known, source=route.source.code, target=route.target.code, detected=route.detected, path=[],
        sentences=[], from_memory=True,
    )  # fmt: skip


def _translator(model: ServedModel, body: schema.DirectionBody) -> ModelTranslator:
    """The model in the requested direction. Raises ApiError if it has none."""
    codes = (body.source_language, body.target_language)
    if not model.directions or codes == (None, None):
        return model.translator
    for direction in model.directions:
        offered = (direction.source.code, direction.target.code)
        if all(code in (None, own) for code, own in zip(codes, offered, strict=True)):
            return direction.translator
    raise ApiError(404, f"{model.name} does not translate in this direction.", "target_language")


def routes(service: Service) -> APIRouter:
    """heed's own API of one server."""
    api = HeedApi(service)
    router = APIRouter(prefix="/api", tags=["heed"], dependencies=[Depends(service.admit_bearer)])
    failures = errors(schema.HeedError, 400, 401, 403, 404, 429, 503, 504)
    streams = {**content("The answer; with `stream`, in parts, as events.", "text/event-stream"), **failures}
    report = {**content("report.md", "text/markdown"), **failures}
    get = partial(router.add_api_route, methods=["GET"])
    post = partial(router.add_api_route, methods=["POST"])
    get("/models", api.models, responses=failures)
    get("/models/{name}/report", api.report, response_model=None, responses=report)
    post(
        "/translate", api.translate, response_model=schema.Translated, responses=streams,
        openapi_extra=request_body(schema.TranslateBody),
    )  # fmt: skip
    post(
        "/generate", api.generate, response_model=schema.Generated, responses=streams,
        openapi_extra=request_body(schema.GenerateBody),
    )  # fmt: skip
    for path, endpoint, body in (
        ("/detect", api.detect, schema.DetectBody), ("/inspect", api.inspect, schema.InspectBody),
        ("/next", api.next, schema.NextBody), ("/score", api.score, schema.ScoreBody),
        ("/predict", api.predict, schema.PredictBody), ("/caption", api.caption, schema.CaptionBody),
        ("/matches", api.matches, schema.MatchesBody),
    ):  # fmt: skip
        post(path, endpoint, responses=failures, openapi_extra=request_body(body))
    return router
