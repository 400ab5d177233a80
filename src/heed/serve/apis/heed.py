"""heed's own API: what the others cannot say. Scores, attention, probabilities, the beam, a forced beginning."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from heed.core.errors import HeedError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.translator import ModelTranslator
from heed.documents.formats import FORMATS
from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import Partial, Sentence, TextTranslator, Translation, Wanted
from heed.inspect import inspect_text, inspect_translation, likely_words
from heed.report.description import model_sentence
from heed.serve.apis import heed_models as schema
from heed.serve.apis.heed_models import DetectBody, GenerateBody, InspectBody, NextBody, ScoreBody, TranslateBody
from heed.serve.engine.catalogue import Direction, Language, ServedModel
from heed.serve.engine.generation import Prompt, continuations, temperature_of
from heed.serve.engine.jobs import Job
from heed.serve.engine.probabilities import finite, next_choices, spell_one
from heed.serve.errors import ApiError, BadRequestError, NotFoundError, body_of
from heed.serve.service import Service, bearer_key
from heed.text.language.identify import Detected

Answer = dict[str, Any]
Send = Callable[[tuple[str, Answer]], None]

USUAL_LENGTH = 64
"""The most tokens of a text that is written, where neither the request nor the recipe says it."""


class OwnApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.catalogue = service.catalogue

    def _admit(self, request: Request) -> None:
        self.service.admit(request, bearer_key(request))

    # --- models --------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Answer:
        """GET /api/models"""
        self._admit(request)
        limits = self.service.limits
        return {
            "models": [_card(model, limits.max_tokens) for model in self.catalogue.models.values()],
            "languages": [
                {**_language(each), "targets": [target.code for target in self.catalogue.targets(each)]}
                for each in self.catalogue.languages
            ],
            "files": list(FORMATS),
            "limits": {
                "characters": limits.characters, "beam_size": limits.beam_size, "nbest": limits.nbest,
                "max_tokens": limits.max_tokens,
            },
        }  # fmt: skip

    async def report(self, request: Request, name: str) -> Response:
        """GET /api/models/NAME/report"""
        self._admit(request)
        model = self.catalogue.models.get(name)
        if model is None or not model.report.is_file():
            raise NotFoundError("There is no report of such a model.")
        return PlainTextResponse(model.report.read_text(encoding="utf-8"), media_type="text/markdown; charset=utf-8")

    # --- translation ---------------------------------------------------------------------------------

    async def translate(self, request: Request, body: TranslateBody) -> Response | Answer:
        """POST /api/translate"""
        self._admit(request)
        self.service.limits.require_text(body.text)
        path, source, target, detected = await asyncio.to_thread(self._path, body)
        wanted = Wanted(
            body.nbest, body.beam_size, body.length_penalty, body.prefix,
            {term.source: term.target for term in body.glossary}, body.keep,
        )  # fmt: skip

        def work(job: Job, tell: Callable[[int, str, str], None] | None = None) -> Answer:
            watched = Partial(tell) if tell is not None and path and body.format == "text" else None
            translator = TextTranslator(job, [direction.step for direction in path], wanted)
            done = translator.html(body.text) if body.format == "html" else translator.text(body.text, watched)
            return {
                "text": done.text,
                "source": source.code,
                "target": target.code,
                "detected": detected and {"language": detected.language, "confidence": detected.confidence},
                "path": [direction.model.name for direction in path],
                "sentences": _sentences(done, path),
            }

        if not body.stream:
            return await self.service.jobs.run(request, work)

        def stream(job: Job, send: Send) -> None:
            def tell(number: int, of: str, text: str) -> None:
                send(("partial", {"sentence": number, "source": of, "text": text}))

            send(("done", work(job, tell)))

        return await self._streamed(stream)

    def _path(self, body: TranslateBody) -> tuple[list[Direction], Language, Language, Detected | None]:
        """The models on the way, both languages, and what was found of the source's. Raises ApiError."""
        forced = self.catalogue.model(body.model, "translation") if body.model is not None else None
        sources = [direction.source for direction in (forced.directions if forced else self.catalogue.directions)]
        detected, source = None, self._language(body.source) if body.source not in ("", "auto") else None
        if not sources:
            raise NotFoundError("This server has no translation model.")
        if source is None:
            detected = self._detect(body, sources)
            source = Language(detected.language)
        target = self._target(body, forced, source)
        if forced is not None:
            path = [each for each in forced.directions if (each.source, each.target) == (source, target)]
        else:
            path = self.catalogue.path(source, target) or []
        if not path and (forced is not None or source != target):
            raise NotFoundError(f"No model leads from {source.code} to {target.code}.", "target")
        return path, source, target, detected

    def _detect(self, body: TranslateBody, sources: Sequence[Language]) -> Detected:
        """The likeliest language that something can be done with."""
        target = self._language(body.target) if body.target else None
        text = spoken_text(body.text) if body.format == "html" else body.text
        for detected in self.service.detector.detect(text):
            language = Language(detected.language)
            if language in sources and (target is None or self.catalogue.path(language, target) is not None):
                return detected
        raise NotFoundError("No model translates this.", "target")

    def _target(self, body: TranslateBody, forced: ServedModel | None, source: Language) -> Language:
        if body.target:
            return self._language(body.target)
        directions = forced.directions if forced is not None else self.catalogue.directions
        targets = [direction.target for direction in directions if direction.source == source]
        if not targets:
            raise NotFoundError(f"Nothing translates from {source.code}.", "source")
        return targets[0]

    def _language(self, code: str) -> Language:
        language = self.catalogue.language(code)
        if language is None:
            known = ", ".join(each.code for each in self.catalogue.languages)
            raise NotFoundError(f"{code[:40]} is not supported; there are: {known}.", "language")
        return language

    async def detect(self, request: Request, body: DetectBody) -> Answer:
        """POST /api/detect"""
        self._admit(request)
        self.service.limits.require_text(body.text)
        found = self.service.detector.detect(body.text)
        return {"languages": [{"language": each.language, "confidence": each.confidence} for each in found]}

    # --- looking inside ------------------------------------------------------------------------------

    async def inspect(self, request: Request, body: InspectBody) -> Answer:
        """POST /api/inspect"""
        self._admit(request)
        if (body.text is None) == (body.source is None):
            raise BadRequestError("Give source (and target), or for a language model text.", "source")
        if body.text is not None:
            model, text = self._model(body.model, "language-model"), body.text
            await asyncio.to_thread(self._require_tokens, model, text)
            return await self._called(request, lambda: inspect_text(model.translator, text).to_json())
        model, source = self._model(body.model, "translation"), body.source or ""
        await asyncio.to_thread(self._require_tokens, model, body.target or "")
        translator = _translator(model, body)
        options = Wanted(body.nbest or 1, body.beam_size).options(model.options)  # as it is translated
        if body.nbest is None and not options.sample:
            options = options.model_copy(update={"nbest": min(5, options.beam_size)})
        return await self._called(
            request, lambda: inspect_translation(translator, source, body.target, options).to_json()
        )

    async def next(self, request: Request, body: NextBody) -> Answer:
        """POST /api/next"""
        self._admit(request)
        model, source = self._of(body.model, body.source)
        await asyncio.to_thread(self._require_tokens, model, body.prefix)
        translator = _translator(model, body)

        def look() -> Answer:
            tokens = next_choices(translator, source, body.prefix, body.size)
            words = likely_words(translator, source, body.prefix)
            shown = [{"text": word.text, "probability": word.prob, "end": word.end} for word in words]
            return {"tokens": tokens, "words": shown}

        return await self._called(request, look)

    async def score(self, request: Request, body: ScoreBody) -> Answer:
        """POST /api/score"""
        self._admit(request)
        model, source = self._of(body.model, body.source)
        await asyncio.to_thread(self._require_tokens, model, body.text)
        translator = _translator(model, body)

        def look() -> Answer:
            if source is not None:
                found = translator.score([body.text], [source])
            else:
                found = model.loaded.score(body.text.split("\n"))
            tokens = [token for line in found for token in _tokens(model, line.ids, line.log_probs)]
            return {"log_prob": finite(sum(line.log_prob for line in found)), "tokens": tokens}

        return await self._called(request, look)

    def _of(self, name: str | None, source: str | None) -> tuple[ServedModel, str | None]:
        """The model that is meant, by its name or by whether there is a source."""
        if name is not None and name in self.catalogue.models and self.catalogue.models[name].is_translator:
            if source is None:
                raise BadRequestError("A translation model needs a source.", "source")
            return self.catalogue.models[name], source
        if name is None and source is not None:
            return self._model(None, "translation"), source
        if source is not None:
            raise BadRequestError("A language model has no source.", "source")
        return self._model(name, "language-model"), None

    def _model(self, name: str | None, task: str) -> ServedModel:
        return self.catalogue.model(name, task)

    def _require_tokens(self, model: ServedModel, text: str) -> None:
        """Between two steps of all other clients, no more than so much."""
        num_tokens, most = len(model.translator.encoded(None, text)[1]), self.service.limits.sentence_tokens
        if num_tokens > most:
            raise BadRequestError(f"The text has {num_tokens:,} tokens; at most {most:,} are taken.", "text")

    async def _called(self, request: Request, look: Callable[[], Answer]) -> Answer:
        return await self.service.jobs.run(request, lambda job: job.call(look))

    # --- language models -----------------------------------------------------------------------------

    async def generate(self, request: Request, body: GenerateBody) -> Response | Answer:
        """POST /api/generate"""
        self._admit(request)
        self.service.limits.require_text(body.prompt)
        model = self._model(body.model, "language-model")
        seed = secrets.randbelow(1 << 31) if body.seed is None else body.seed
        options = model.options.of_text(
            USUAL_LENGTH, self.service.limits.max_tokens, sample=body.temperature != 0,
            temperature=temperature_of(body.temperature), top_k=body.top_k, top_p=body.top_p,
            max_tokens=body.max_tokens, seed=seed, stop=tuple(body.stop) or None,
        )  # fmt: skip
        request_of = await asyncio.to_thread(model.translator.request_of, body.prompt)
        prompt = Prompt(body.prompt, request_of.prefix)

        def work(job: Job, tell: Callable[[int, str], None] | None = None) -> Answer:
            found = continuations(job, model, [prompt], body.samples, options, tell)
            return {"continuations": [_continuation(model, each) for each in found], "seed": seed}

        if not body.stream:
            return await self.service.jobs.run(request, work)

        def stream(job: Job, send: Send) -> None:
            texts = [""] * body.samples

            def tell(index: int, text: str) -> None:
                texts[index] += text
                send(("partial", {"index": index, "text": texts[index]}))

            send(("done", work(job, tell)))

        return await self._streamed(stream)

    async def _streamed(self, work: Callable[[Job, Send], None]) -> Response:
        events: AsyncIterator[tuple[str, Answer]] = await self.service.jobs.stream(work)
        return StreamingResponse(self._events(events), media_type="text/event-stream")

    async def _events(self, events: AsyncIterator[tuple[str, Answer]]) -> AsyncIterator[str]:
        try:
            async for name, value in events:
                yield _event(name, value)
        except (ApiError, HeedError) as error:
            known = error if isinstance(error, ApiError) else BadRequestError(str(error))
            yield _event("error", body_of(known, "/api"))
        except Exception as error:
            self.service.log.error("stream_failed", error)
            yield _event("error", body_of(ApiError("The server failed at this request."), "/api"))


def _event(name: str, value: Answer) -> str:
    return f"event: {name}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n"


def _card(model: ServedModel, max_tokens: int) -> Answer:
    run, options = model.run, model.options
    draws = None if model.is_translator else options.of_text(USUAL_LENGTH, max_tokens, sample=True)
    return {
        "name": model.name,
        "task": run.recipe.task,
        "kind": run.recipe.model.kind,
        "parameters": run.num_parameters,
        "source": _language(model.directions[0].source) if model.directions else None,
        "target": _language(model.language),
        "directions": [
            {"source": _language(each.source), "target": _language(each.target), "tag": each.tag}
            for each in model.directions
        ],
        "attends": model.attends,
        "confidence": model.translator.judgement.confidence is not None,
        "report": model.report.is_file(),
        "description": model_sentence(run),
        "decoding": {"beam_size": options.beam_size, "length_penalty": options.length_penalty},
        "drawing": draws and draws.model_dump(include={"temperature", "top_k", "top_p", "max_tokens"}),
    }


def _language(language: Language) -> Answer:
    return {"code": language.code, "name": language.name, "direction": language.direction}


def _sentences(done: Translation, path: Sequence[Direction]) -> list[Answer]:
    """Those of the last model; through a third language, they have no place in the text."""
    found = []
    for sentence in done.sentences:
        is_direct = len(path) <= 1
        found.append(
            {
                "start": sentence.start if is_direct else None,
                "end": sentence.start + len(sentence.texts[0]) if is_direct else None,
                "source": sentence.texts[-2] if len(sentence.texts) > 1 else sentence.texts[0],
                "hypotheses": _hypotheses(sentence, path),
            }
        )
    return found


def _hypotheses(sentence: Sentence, path: Sequence[Direction]) -> list[Answer]:
    best = sentence.hypothesis
    if best is None:
        best = Hypothesis((), 0.0, 0.0, text=sentence.texts[-1])
    return [_hypothesis(path, each) for each in (best, *best.alternatives)]


def _hypothesis(path: Sequence[Direction], hypothesis: Hypothesis) -> Answer:
    return {
        "text": hypothesis.text,
        "score": finite(hypothesis.score),
        "log_prob": finite(hypothesis.log_prob),
        "confidence": hypothesis.confidence,
        "flags": list(hypothesis.flags),
        "fallback": hypothesis.fallback,
        "finished": hypothesis.finished,
        "tokens": _tokens(path[-1].model, hypothesis.ids, hypothesis.token_log_probs) if path else [],
    }


def _translator(model: ServedModel, body: InspectBody | NextBody | ScoreBody) -> ModelTranslator:
    """The model in the direction that is meant."""
    wanted = (body.source_language, body.target_language)
    if not model.directions or wanted == (None, None):
        return model.translator
    for direction in model.directions:
        codes = (direction.source.code, direction.target.code)
        if all(said in (None, code) for said, code in zip(wanted, codes, strict=True)):
            return direction.translator
    raise NotFoundError(f"{model.name} does not translate in this direction.", "target_language")


def _continuation(model: ServedModel, hypothesis: Hypothesis) -> Answer:
    return {
        "text": hypothesis.text,
        "log_prob": finite(hypothesis.log_prob),
        "finished": hypothesis.finished,
        "tokens": _tokens(model, hypothesis.ids, hypothesis.token_log_probs),
    }


def _tokens(model: ServedModel, ids: Sequence[int], log_probs: Sequence[float]) -> list[Answer]:
    """Each token and its log-probability; an end of sentence is a last token without text."""
    spelled = model.translator.roles.form.spelled
    texts = [spell_one(spelled[id]) for id in ids]
    texts += [""] * (len(log_probs) - len(texts))
    return [{"text": text, "log_prob": finite(value)} for text, value in zip(texts, log_probs, strict=False)]


def routes(service: Service) -> APIRouter:
    """heed's own API of one server."""
    api, router = OwnApi(service), APIRouter(tags=["heed"], prefix="/api")
    post = partial(router.add_api_route, methods=["POST"], response_model=None)
    get = partial(router.add_api_route, methods=["GET"], response_model=None)
    get("/models", api.models, **schema.MODELS)
    get("/models/{name}/report", api.report, **schema.REPORT)
    post("/translate", api.translate, **schema.TRANSLATE)
    post("/detect", api.detect, **schema.DETECT)
    post("/inspect", api.inspect, **schema.INSPECT)
    post("/next", api.next, **schema.NEXT)
    post("/score", api.score, **schema.SCORE)
    post("/generate", api.generate, **schema.GENERATE)
    return router
