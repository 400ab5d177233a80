"""LibreTranslate's API, after the behaviour of LibreTranslate 1.9.6.

/translate and /translate_file take further fields, `glossary` and `keep`, which other servers ignore.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import Field

from heed.documents.formats import FORMATS, format_of
from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import TranslateOptions, Translation
from heed.serve.apis.libretranslate_fields import (
    AUTO,
    DetectFields,
    FileFields,
    KeyField,
    SuggestFields,
    TranslateFields,
    fields_body,
    read_fields,
    validated,
)
from heed.serve.apis.schema import Answer, PlainError, content, errors
from heed.serve.bodies import MULTIPART
from heed.serve.engine.catalogue import Direction, Route
from heed.serve.engine.job import Job
from heed.serve.engine.languages import Language
from heed.serve.errors import ApiError
from heed.serve.service import Service, bearer_key
from heed.text.language.identify import Detected as Guess
from heed.text.readers.columns import Sides

T = TypeVar("T")
F = TypeVar("F", bound=KeyField)


class Detected(Answer):
    """A detected language and how sure the detector is."""

    confidence: float = Field(ge=0, le=100)
    language: str


class Translated(Answer):
    """POST /translate: for one text its translation; for a list, lists."""

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    model: str | list[str] | None = None
    """Extension: the models that translated a text, in order, with commas between them; empty for none."""
    fromMemory: bool | list[bool] | None = None  # noqa: N815
    """Extension: whether people translated the text; only of a server with a translation memory."""


class Suggested(Answer):
    """POST /suggest."""

    success: bool


class TranslatedFile(Answer):
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

    async def _fields(self, request: Request, kind: type[F]) -> F:
        """The fields of a request, after its rate and key have been checked. Raises ApiError.

        The key may be in the body, so only those with a key learn about errors in other fields.
        """
        body, limit = await request.body(), self.service.limits.body_bytes

        def read(job: Job) -> tuple[str | None, F | ApiError]:
            fields = read_fields(request.query_params, request.headers, body, limit)
            key = validated(KeyField, fields).api_key
            try:
                return key, validated(kind, fields)
            except ApiError as error:
                return key, error

        try:
            key, fields = await self.service.jobs.read(request, body, read)
        except ApiError as error:
            if error.status < 500:  # nobody can read the body, and so no key in it
                self.service.count(request, bearer_key(request))
            raise
        self.service.admit(request, key or bearer_key(request))
        if isinstance(fields, ApiError):
            raise fields
        return fields

    async def translate(self, request: Request) -> Translated:
        """Translate one or several texts."""
        fields = await self._fields(request, TranslateFields)
        is_list, texts, is_html = isinstance(fields.q, list), fields.texts, fields.format == "html"
        self.service.limits.require_texts(texts)
        source, target = self._source(fields.source), self._target(fields.target)
        options = TranslateOptions(fields.alternatives + 1, glossary=fields.glossary, keep=fields.keep)
        is_plain = not (is_html or fields.alternatives or fields.glossary or fields.keep)

        def work(job: Job) -> tuple[list[Route], list[str | None], list[Translation]]:
            routes = [self._route(job, text, source, target, is_html) for text in texts]
            remembered = [
                self.service.remembered(route, text) if is_plain else None
                for route, text in zip(routes, texts, strict=True)
            ]  # fmt: skip
            return routes, remembered, _translate(job, texts, routes, remembered, options, is_html)

        routes, remembered, done = await self.service.jobs.run(request, work)
        answer: dict[str, Any] = {"translatedText": _one_or_all([each.text for each in done], is_list)}
        if source is None:
            answer["detectedLanguage"] = _one_or_all([route.detected for route in routes], is_list)
        if fields.alternatives:
            answer["alternatives"] = _one_or_all([list(each.alternatives) for each in done], is_list)
        models = [
            ",".join(direction.model.name for direction in (route.path if known is None else ()))
            for route, known in zip(routes, remembered, strict=True)
        ]
        answer["model"] = _one_or_all(models, is_list)
        if self.service.memory is not None:
            answer["fromMemory"] = _one_or_all([each is not None for each in remembered], is_list)
        return Translated.model_validate(answer)

    async def detect(self, request: Request) -> list[Detected]:
        """The likely languages of a text, or else the first guess: clients expect at least one."""
        texts = (await self._fields(request, DetectFields)).texts
        self.service.limits.require_texts(texts)
        text = "\n".join(texts)
        guesses = await self.service.jobs.run(request, lambda job: self.service.detector.detect(text))
        likely = [guess for guess in guesses if guess.confidence > 0] or guesses[:1]
        return [Detected.model_validate(guess) for guess in likely]

    async def languages(self) -> list[LanguageCard]:
        """Languages and their targets. A language that is only a target is listed with itself as its target."""
        return [
            LanguageCard(
                code=each.code,
                name=each.name,
                targets=list(dict.fromkeys([each.code, *(target.code for target in self.catalogue.targets(each))])),
            )
            for each in self.catalogue.languages
        ]

    async def settings(self) -> dict[str, Any]:
        """Settings for a web page."""
        required = self.service.keys.required
        directions = self.catalogue.directions
        target = directions[0].target if directions else Language("en")
        return {
            "charLimit": self.service.limits.characters,
            "frontendTimeout": 500,
            "apiKeys": required,
            "keyRequired": required,
            "suggestions": self.service.memory is not None,
            "filesTranslation": bool(directions),
            "supportedFilesFormat": list(FORMATS),
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target.code, "name": target.name},
            },
        }

    async def suggest(self, request: Request) -> Suggested:
        """Suggest a translation, which goes into the translation memory of the server."""
        memory = self.service.memory
        if memory is None:
            await self._fields(request, KeyField)
            raise ApiError(403, "Suggestions are disabled on this server.")
        fields = await self._fields(request, SuggestFields)
        for text in (fields.q, fields.s):
            self.service.limits.require_text(text)
        source, target = self._source(fields.source), self._target(fields.target)

        def work(job: Job) -> None:
            route = self._route(job, fields.q, source, target, is_html=False)
            if not route.path:
                name = f"{route.target.name} ({route.target.code})"
                advice = " as detected: give the language of the source" if route.detected else ""
                raise ApiError(400, f"the source and the suggested translation are both in {name}{advice}")
            memory.suggest(*route.codes, fields.q, fields.s)

        await self.service.jobs.run(request, work)
        return Suggested(success=True)

    async def translate_file(self, request: Request) -> TranslatedFile:
        """Translate a file; see /frontend/settings for the supported formats."""
        fields = await self._fields(request, FileFields)
        file, source, target = fields.file, self._source(fields.source), self._target(fields.target)
        options = TranslateOptions(glossary=fields.glossary, keep=fields.keep)

        def work(job: Job) -> bytes:
            kind = format_of(file.name)
            sample = kind.sample(file.data, file.name)
            route = self._route(job, sample, source, target, kind.is_markup, kind.is_bilingual, fields.model)
            sides = Sides(*route.codes, fields.src_column, fields.tgt_column)
            return self.service.documents.translate(file.name, file.data, job, route.steps, options, sides)

        data = await self.service.jobs.run(request, work, self.service.limits.file_seconds)
        key = self.service.downloads.put(file.name, target.code, data)
        own_url = self.service.public_url or request.base_url
        return TranslatedFile(translatedFileUrl=f"{own_url}download_file/{key}")

    async def download_file(self, filename: str) -> Response:
        """Download a translated file."""
        file = self.service.downloads.get(filename)
        if file is None:
            raise ApiError(404, "This file does not exist, or has expired.")
        names = f"filename=\"{file.name}\"; filename*=UTF-8''{quote(file.title, safe='')}"
        head = {"Content-Disposition": f"attachment; {names}", "X-Content-Type-Options": "nosniff"}
        return Response(file.data, media_type="application/octet-stream", headers=head)

    def _source(self, code: str) -> Language | None:
        """None for `auto`."""
        return None if code == AUTO else self._language(code)

    def _target(self, code: str) -> Language:
        if code == AUTO:
            raise ApiError(400, "auto is not supported as a target language")
        return self._language(code)

    def _language(self, code: str) -> Language:
        language = self.catalogue.language(code)
        if language is None:
            raise ApiError(400, f"{code[:40]} is not supported")
        return language

    def _route(
        self, job: Job, text: str, source: Language | None, target: Language, is_html: bool,
        is_bilingual: bool = False, model: str = "",
    ) -> Route:  # fmt: skip
        """The languages of a translation and the models on the way. Raises ApiError if there are none.

        `model`: name of the only model to use.
        """
        detected = None
        if source is None:
            detected = self._detect(spoken_text(text, job.check) if is_html else text, target, is_bilingual)
            source = Language(detected.language)
        only = self.catalogue.model(model, "translate") if model else None
        path = self.catalogue.path(source, target, only)
        if path is None and source != target:
            to, of = (f"{language.name} ({language.code})" for language in (target, source))
            raise ApiError(400, f"{to} is not available as a target language from {of}")
        return Route(source, target, path or [], detected)

    def _detect(self, text: str, target: Language, is_bilingual: bool) -> Guess:
        """The likeliest language with a path to the target; for a bilingual text, not the target itself."""
        for guess in self.service.detector.detect(text):
            path = self.catalogue.path(Language(guess.language), target)
            if path or (path is not None and not is_bilingual):
                return guess
        raise ApiError(400, f"{target.name} ({target.code}) is not available as a target language")


def _translate(
    job: Job, texts: Sequence[str], routes: Sequence[Route], remembered: Sequence[str | None],
    options: TranslateOptions, is_html: bool,
) -> list[Translation]:  # fmt: skip
    """Texts with the same route are translated together; a text without letters is returned unchanged.

    `remembered`: translations by people, which are taken where there are some.
    """
    done = [Translation(text if known is None else known) for text, known in zip(texts, remembered, strict=True)]
    groups: dict[tuple[Direction, ...], list[int]] = {}
    for number, route in enumerate(routes):
        if route.path and remembered[number] is None and any(map(str.isalpha, texts[number])):
            groups.setdefault(tuple(route.path), []).append(number)
    for numbers in groups.values():
        translator = TextTranslator(job, routes[numbers[0]].steps, options)
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
        "/translate", api.translate, response_model_exclude_unset=True, responses=failures,
        openapi_extra=fields_body(TranslateFields, codes),
    )  # fmt: skip
    post("/detect", api.detect, responses=failures, openapi_extra=fields_body(DetectFields))
    post(
        "/suggest", api.suggest, responses=failures, openapi_extra=fields_body(SuggestFields, codes),
    )  # fmt: skip
    post(
        "/translate_file", api.translate_file, responses={**failures, **errors(PlainError, 404)},
        openapi_extra=fields_body(FileFields, codes, [MULTIPART]),
    )  # fmt: skip
    get("/languages", api.languages, responses=errors(PlainError))
    get("/frontend/settings", api.settings, responses=errors(PlainError))
    get(
        "/download_file/{filename}", api.download_file, response_model=None,
        responses={**content("The file.", "application/octet-stream"), **errors(PlainError, 404)},
    )  # fmt: skip
    return router
