"""LibreTranslate's API, after the behaviour of LibreTranslate 1.9.6.

/translate and /translate_file take further fields, `glossary` and `keep`, which other servers ignore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import Field

from heed.documents.formats import BILINGUAL, FORMATS, MARKUP, sample_of, suffix_of, translate_file
from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import TranslateOptions, Translation
from heed.serve.apis import libretranslate_fields as fields_of
from heed.serve.apis.libretranslate_fields import AUTO, MULTIPART, request_body
from heed.serve.apis.schema import Answer, PlainError, content, errors
from heed.serve.engine.catalogue import Direction, Route
from heed.serve.engine.job import Job
from heed.serve.engine.languages import Language
from heed.serve.errors import BadRequestError, DisabledError, NotFoundError
from heed.serve.service import Service
from heed.text.language.identify import Detected as Guess
from heed.text.readers.columns import Sides

T = TypeVar("T")


class Detected(Answer):
    """A detected language and how sure the detector is."""

    confidence: float = Field(ge=0, le=100)
    language: str

    @classmethod
    def of(cls, guess: Guess | None) -> Detected:
        """From the detector."""
        assert guess is not None
        return cls(confidence=guess.confidence, language=guess.language)


class Translated(Answer):
    """POST /translate: for one text its translation; for a list, lists."""

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class TranslatedFile(Answer):
    """POST /translate_file"""

    translatedFileUrl: str  # noqa: N815


class LanguageCard(Answer):
    """A language, and those that it can be translated to."""

    code: str
    name: str
    targets: list[str]


class LibreTranslateApi:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.catalogue = service.catalogue

    async def _fields(self, request: Request) -> dict[str, Any]:
        """The fields of a request, its key checked."""
        fields = await fields_of.read_fields(request)
        self.service.admit(request, fields_of.text_or_none(fields, "api_key"))
        return fields

    async def translate(self, request: Request) -> Translated:
        """POST /translate"""
        fields = await self._fields(request)
        query = fields_of.required(fields, "q")
        texts = self._texts(query)
        source, target = self._language(fields, "source"), self._language(fields, "target")
        is_html = fields_of.format_of(fields) == "html"
        if target is None:
            raise BadRequestError("auto is not supported as a target language")
        nbest = fields_of.alternatives_of(fields, self.service.limits.nbest) + 1
        wanted = TranslateOptions(nbest, glossary=fields_of.glossary_of(fields), keep=fields_of.keep_of(fields))
        routes = await asyncio.to_thread(lambda: [self._route(text, source, target, is_html) for text in texts])
        done = await self.service.jobs.run(request, lambda job: _translate(job, texts, routes, wanted, is_html))
        is_list = isinstance(query, list)
        answer: dict[str, Any] = {"translatedText": _one_or_all([each.text for each in done], is_list)}
        if source is None:
            answer["detectedLanguage"] = _one_or_all([Detected.of(route.detected) for route in routes], is_list)
        if nbest > 1:
            answer["alternatives"] = _one_or_all([list(each.alternatives) for each in done], is_list)
        return Translated(**answer)

    async def detect(self, request: Request) -> list[Detected]:
        """POST /detect"""
        text = "\n".join(self._texts(fields_of.required(await self._fields(request), "q")))
        return [Detected.of(guess) for guess in self.service.detector.detect(text) if guess.confidence > 0]

    async def languages(self, request: Request) -> list[LanguageCard]:
        """GET /languages: a language that is only a target is listed too, with itself as its target."""
        return [
            LanguageCard(
                code=each.code,
                name=each.name,
                targets=[each.code, *(target.code for target in self.catalogue.targets(each))],
            )
            for each in self.catalogue.languages
        ]

    async def settings(self, request: Request) -> dict[str, Any]:
        """GET /frontend/settings"""
        required = self.service.keys.required
        directions = self.catalogue.directions
        target = directions[0].target if directions else Language("en")
        return {
            "charLimit": self.service.limits.characters,
            "frontendTimeout": 500,
            "apiKeys": required,
            "keyRequired": required,
            "suggestions": False,
            "filesTranslation": bool(directions),
            "supportedFilesFormat": list(FORMATS),
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target.code, "name": target.name},
            },
        }

    async def suggest(self, request: Request) -> None:
        """POST /suggest: always refused."""
        await self._fields(request)
        raise DisabledError("Suggestions are disabled on this server.")

    async def translate_file(self, request: Request) -> TranslatedFile:
        """POST /translate_file"""
        fields = await self._fields(request)
        file = fields_of.uploaded_file(fields)
        source, target = self._language(fields, "source"), self._language(fields, "target")
        if target is None:
            raise BadRequestError("auto is not supported as a target language")
        model = fields_of.text_or_none(fields, "model")
        sample, suffix = sample_of(file.name, file.data), suffix_of(file.name)
        route = await asyncio.to_thread(
            self._route, sample, source, target, suffix in MARKUP, suffix in BILINGUAL, model
        )
        wanted = TranslateOptions(glossary=fields_of.glossary_of(fields), keep=fields_of.keep_of(fields))
        columns = fields_of.column_of(fields, "src_column"), fields_of.column_of(fields, "tgt_column")
        sides = Sides(*route.codes, *columns)

        def work(job: Job) -> bytes:
            return translate_file(file.name, file.data, TextTranslator(job, route.steps, wanted), sides)

        done = await self.service.jobs.run(request, work, self.service.limits.file_seconds)
        key = self.service.downloads.put(file.name, target.code, done)
        return TranslatedFile(translatedFileUrl=f"{request.base_url}download_file/{key}")

    async def download_file(self, request: Request, filename: str) -> Response:
        """GET /download_file/NAME"""
        held = self.service.downloads.get(filename)
        if held is None:
            raise NotFoundError("There is no such file, or it has expired.")
        head = {"Content-Disposition": f'attachment; filename="{held.name}"', "X-Content-Type-Options": "nosniff"}
        return Response(held.data, media_type="application/octet-stream", headers=head)

    def _texts(self, query: Any) -> list[str]:
        texts = fields_of.texts_of(query)
        self.service.limits.require_texts(len(texts))
        self.service.limits.require_text("".join(texts))
        return texts

    def _language(self, fields: dict[str, Any], name: str) -> Language | None:
        """None for `auto`. Raises BadRequestError for a language of no model."""
        code = fields_of.required(fields, name)
        if code == AUTO:
            return None
        language = self.catalogue.language(code) if isinstance(code, str) else None
        if language is None:
            raise BadRequestError(f"{fields_of.encodable(str(code))[:40]} is not supported")
        return language

    def _route(
        self, text: str, source: Language | None, target: Language, is_html: bool, is_bilingual: bool = False,
        model: str | None = None,
    ) -> Route:  # fmt: skip
        """The models on the way, `model` if it is given. Raises BadRequestError where none lead there."""
        detected = None
        if source is None:
            detected = self._detect(spoken_text(text) if is_html else text, target, is_bilingual)
            source = Language(detected.language)
        path = self.catalogue.path(source, target)
        if path and model:
            directions = self.catalogue.model(model, "translate").directions
            path = [each for each in directions if (each.source, each.target) == (source, target)] or None
        if path is None:
            to, of = (f"{language.name} ({language.code})" for language in (target, source))
            raise BadRequestError(f"{to} is not available as a target language from {of}")
        return Route(source, target, path, detected)

    def _detect(self, text: str, target: Language, is_bilingual: bool) -> Guess:
        """The likeliest language with a path to the target; of a bilingual text, another one than the target."""
        for guess in self.service.detector.detect(text):
            path = self.catalogue.path(Language(guess.language), target)
            if path or (path is not None and not is_bilingual):
                return guess
        raise BadRequestError(f"{target.name} ({target.code}) is not available as a target language")


def _translate(
    job: Job, texts: Sequence[str], routes: Sequence[Route], wanted: TranslateOptions, is_html: bool
) -> list[Translation]:
    """Texts with the same route are translated together; one without a letter stays as it is."""
    done = [Translation(text) for text in texts]
    groups: dict[tuple[Direction, ...], list[int]] = {}
    for number, route in enumerate(routes):
        if route.path and any(map(str.isalpha, texts[number])):
            groups.setdefault(tuple(route.path), []).append(number)
    for numbers in groups.values():
        translator = TextTranslator(job, routes[numbers[0]].steps, wanted)
        translate = translator.htmls if is_html else translator.texts
        for number, translation in zip(numbers, translate([texts[n] for n in numbers]), strict=True):
            done[number] = translation
    return done


def _one_or_all(values: Sequence[T], is_list: bool) -> T | list[T]:
    return list(values) if is_list else values[0]


def routes(service: Service) -> APIRouter:
    """LibreTranslate's API of one server."""
    api, router = LibreTranslateApi(service), APIRouter(tags=["LibreTranslate"])
    codes = [language.code for language in service.catalogue.languages]
    get = partial(router.add_api_route, methods=["GET"])
    post = partial(router.add_api_route, methods=["POST"])
    failures = errors(PlainError, 400, 403, 429, 503, 504)
    post(
        "/translate", api.translate, summary="Translate one or several texts.", response_model_exclude_unset=True,
        responses=failures, openapi_extra=request_body(fields_of.TranslateFields, codes),
    )  # fmt: skip
    post(
        "/detect", api.detect, summary="Detect the language of a text.", responses=failures,
        openapi_extra=request_body(fields_of.DetectFields),
    )  # fmt: skip
    post(
        "/suggest", api.suggest, summary="Suggest a translation; disabled on this server.", status_code=403,
        responses=errors(PlainError, 400, 403, 429), openapi_extra=request_body(fields_of.SuggestFields),
    )  # fmt: skip
    post(
        "/translate_file", api.translate_file, summary=f"Translate a file: {', '.join(FORMATS)}.", responses=failures,
        openapi_extra=request_body(fields_of.FileFields, codes, [MULTIPART]),
    )  # fmt: skip
    get("/languages", api.languages, summary="Languages and their targets.", responses=errors(PlainError))
    get("/frontend/settings", api.settings, summary="Settings for a web page.", responses=errors(PlainError))
    get(
        "/download_file/{filename}", api.download_file, summary="Download a translated file.", response_model=None,
        responses={**content("The file.", "application/octet-stream"), **errors(PlainError, 404)},
    )  # fmt: skip
    return router
