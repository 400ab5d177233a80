"""LibreTranslate's API: what its clients send, and what they expect back.

Written from the behaviour of LibreTranslate 1.9.6. Every POST takes JSON or a form; the key is a field. Beside its
fields, /translate takes `glossary` and `keep`, which other servers ignore.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import UploadFile

from heed.documents.formats import BILINGUAL, FORMATS, MARKUP, sample_of, suffix_of, translate_file
from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import Step, TextTranslator, Translation, Wanted
from heed.serve.apis import libretranslate_models as schema
from heed.serve.engine.catalogue import Direction, Language
from heed.serve.engine.jobs import Job
from heed.serve.errors import BadRequestError, DisabledError, NotFoundError
from heed.serve.service import Service
from heed.text.language.identify import Detected
from heed.text.readers import parse_column
from heed.text.readers.to_translate import Sides

AUTO = "auto"
_NUMBER = re.compile(r"-?[0-9]{1,9}")
MAX_FIELD = 1 << 30
"""Bytes of a form's field; the whole body has its limit already."""


async def parameters(request: Request) -> dict[str, Any]:
    """The fields of a request: those of its address, and of its body. Raises BadRequestError."""
    found: dict[str, Any] = dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            body = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadRequestError("Invalid JSON format") from error
        if not isinstance(body, dict):
            raise BadRequestError("Invalid JSON format")
        return {**found, **body}
    async with request.form(max_files=1, max_fields=100, max_part_size=MAX_FIELD) as form:
        for name in form:
            values = form.getlist(name)
            texts = [value for value in values if isinstance(value, str)]
            found[name] = "\n".join(texts) if texts else await _read(values[0])
    return found


@dataclass(frozen=True)
class _File:
    """A file of a form."""

    name: str
    data: bytes


async def _read(value: UploadFile | str) -> _File | str:
    return _File(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value


@dataclass(frozen=True)
class _Route:
    """How one text goes: its language, as it was found where it was not said, and the models on its way."""

    path: list[Direction]
    detected: Detected | None

    @property
    def steps(self) -> list[Step]:
        """The path, for translating."""
        return [direction.step for direction in self.path]

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of its first and last language; empty where a run does not say its own."""
        ends = (self.path[0].source, self.path[-1].target) if self.path else ()
        src, tgt = (language.code if language.is_known else "" for language in ends) if ends else ("", "")
        return src, tgt


class LibreTranslate:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.catalogue = service.catalogue

    async def fields(self, request: Request) -> dict[str, Any]:
        """The fields of a request that may be made."""
        found = await parameters(request)
        key = found.get("api_key")
        if not isinstance(key, str | None):
            raise BadRequestError("Invalid request: api_key parameter is not a text")
        self.service.admit(request, key)
        return found

    async def translate(self, request: Request) -> dict[str, Any]:
        """POST /translate"""
        said = await self.fields(request)
        query = _required(said, "q")
        texts = self._texts(query)
        source, target = self._language(_required(said, "source")), self._language(_required(said, "target"))
        form = said.get("format")
        form = "text" if form is None or form == "" else form
        if form not in ("text", "html"):
            raise BadRequestError(f"{form} format is not supported")
        if target is None:
            raise BadRequestError("auto is not supported as a target language")
        nbest = self._alternatives(said.get("alternatives")) + 1
        wanted = Wanted(nbest, glossary=_terms(said.get("glossary")), keep=_names(said.get("keep")))
        is_html = form == "html"
        routes = await asyncio.to_thread(lambda: [self._route(text, source, target, is_html) for text in texts])

        def work(job: Job) -> list[Translation]:
            return self._translated(job, texts, routes, wanted, form)

        found = await self.service.jobs.run(request, work)
        several = isinstance(query, list)
        answer: dict[str, Any] = {"translatedText": _one_or_all([each.text for each in found], several)}
        if source is None:
            answer["detectedLanguage"] = _one_or_all([_shown(route.detected) for route in routes], several)
        if nbest > 1:
            answer["alternatives"] = _one_or_all([list(each.alternatives) for each in found], several)
        return answer

    async def detect(self, request: Request) -> list[dict[str, Any]]:
        """POST /detect"""
        query = _required(await self.fields(request), "q")
        text = "\n".join(self._texts(query))
        return [_shown(detected) for detected in self.service.detector.detect(text) if detected.confidence > 0]

    async def languages(self, request: Request) -> list[dict[str, Any]]:
        """GET /languages: those that are only translated to are there too, and lead to themselves."""
        catalogue = self.catalogue
        return [
            {"code": each.code, "name": each.name, "targets": [each.code, *(to.code for to in catalogue.targets(each))]}
            for each in catalogue.languages
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

    async def suggest(self, request: Request) -> dict[str, Any]:
        """POST /suggest: nothing is learned from it here."""
        await self.fields(request)
        raise DisabledError("Suggestions are disabled on this server.")

    async def translate_file(self, request: Request) -> dict[str, Any]:
        """POST /translate_file"""
        said = await self.fields(request)
        file = _required(said, "file")
        if not isinstance(file, _File) or not file.name:
            raise BadRequestError("Invalid request: file is no file")
        source, target = self._language(_required(said, "source")), self._language(_required(said, "target"))
        if target is None:
            raise BadRequestError("auto is not supported as a target language")
        model = said.get("model")
        if not isinstance(model, str | None):
            raise BadRequestError("Invalid request: model parameter is not a text")
        sample, suffix = sample_of(file.name, file.data), suffix_of(file.name)
        route = await asyncio.to_thread(
            self._route, sample, source, target, suffix in MARKUP, suffix in BILINGUAL, model
        )

        wanted = Wanted(glossary=_terms(said.get("glossary")), keep=_names(said.get("keep")))
        sides = Sides(*route.languages, _column(said.get("src_column")), _column(said.get("tgt_column")))

        def work(job: Job) -> bytes:
            return translate_file(file.name, file.data, TextTranslator(job, route.steps, wanted), sides)

        done = await self.service.jobs.run(request, work, self.service.limits.file_seconds)
        key = self.service.downloads.put(file.name, done)
        return {"translatedFileUrl": str(request.base_url) + f"download_file/{key}"}

    async def download_file(self, request: Request, filename: str) -> Response:
        """GET /download_file/NAME"""
        held = self.service.downloads.get(filename)
        if held is None:
            raise NotFoundError("This file is not here, or not here any longer.")
        head = {"Content-Disposition": f'attachment; filename="{held.name}"', "X-Content-Type-Options": "nosniff"}
        return Response(held.data, media_type="application/octet-stream", headers=head)

    # --- what was said -------------------------------------------------------------------------------

    def _texts(self, query: Any) -> list[str]:
        texts = query if isinstance(query, list) else [query]
        if not all(isinstance(text, str) for text in texts):
            raise BadRequestError("Invalid request: q parameter is not a text or an array of texts")
        self.service.limits.require_texts(len(texts))
        self.service.limits.require_text("".join(texts))
        return [_clean(text) for text in texts]

    def _language(self, code: Any) -> Language | None:
        """None for `auto`. Raises BadRequestError for a language that no model knows."""
        if code == AUTO:
            return None
        language = self.catalogue.language(code) if isinstance(code, str) else None
        if language is None:
            raise BadRequestError(f"{_clean(str(code))[:40]} is not supported")
        return language

    def _alternatives(self, said: Any) -> int:
        text = "0" if said is None or said == "" else str(said)
        if not _NUMBER.fullmatch(text):
            raise BadRequestError("Invalid request: alternatives parameter is not a number")
        number = int(text)
        most = self.service.limits.nbest
        if not 0 <= number <= most:
            raise BadRequestError(f"Invalid request: alternatives parameter must be >= 0 and <= {most}")
        return number

    def _route(
        self, text: str, source: Language | None, target: Language, is_html: bool, has_both: bool = False,
        model: str | None = None,
    ) -> _Route:  # fmt: skip
        """`has_both`: the text may be in both languages; `model`: the one that is wanted.

        Raises BadRequestError where no model leads there.
        """
        detected = None
        if source is None:
            detected = self._detected(spoken_text(text) if is_html else text, target, has_both)
            source = Language(detected.language)
        path = self.catalogue.path(source, target)
        if path and model:
            directions = self.catalogue.model(model, "translation").directions
            path = [each for each in directions if (each.source, each.target) == (source, target)] or None
        if path is None:
            to, of = (f"{language.name} ({language.code})" for language in (target, source))
            raise BadRequestError(f"{to} is not available as a target language from {of}")
        return _Route(path, detected)

    def _detected(self, text: str, target: Language, has_both: bool) -> Detected:
        """The likeliest language of those that lead to the target; another one where the text may be in both."""
        for detected in self.service.detector.detect(text):
            path = self.catalogue.path(Language(detected.language), target)
            if path or (path is not None and not has_both):
                return detected
        raise BadRequestError(f"{target.name} ({target.code}) is not available as a target language")

    # --- what is done --------------------------------------------------------------------------------

    def _translated(
        self, job: Job, texts: Sequence[str], routes: Sequence[_Route], wanted: Wanted, form: str
    ) -> list[Translation]:
        """Those that go the same way are translated together; what has no letter stays as it is."""
        found = [Translation(text) for text in texts]
        ways: dict[tuple[Direction, ...], list[int]] = {}
        for number, route in enumerate(routes):
            if route.path and any(map(str.isalpha, texts[number])):
                ways.setdefault(tuple(route.path), []).append(number)
        for path, numbers in ways.items():
            translator = TextTranslator(job, [direction.step for direction in path], wanted)
            translate = translator.htmls if form == "html" else translator.texts
            for number, translation in zip(numbers, translate([texts[n] for n in numbers]), strict=True):
                found[number] = translation
        return found


def _required(said: Mapping[str, Any], name: str) -> Any:
    if not said.get(name):
        raise BadRequestError(f"Invalid request: missing {name} parameter")
    return said[name]


def _column(said: Any) -> int | str | None:
    """The number of a column, or its name."""
    if said is None or said == "":
        return None
    if not isinstance(said, str | int) or isinstance(said, bool):
        raise BadRequestError("Invalid request: a column is a number or a name")
    return parse_column(str(said))


def _terms(said: Any) -> dict[str, str]:
    """`{"dog": "Hund"}`."""
    if said is None or said == "":
        return {}
    if isinstance(said, str):  # in a form
        try:
            said = json.loads(said)
        except (ValueError, RecursionError):
            said = None
    if isinstance(said, dict) and len(said) <= 1000 and all(isinstance(value, str) for value in said.values()):
        return {_clean(source): _clean(target) for source, target in said.items()}
    raise BadRequestError("Invalid request: glossary parameter is not an object of texts, at most 1000")


def _names(said: Any) -> list[str]:
    if said is None or said == "":
        return []
    names = said.split("\n") if isinstance(said, str) else said
    if isinstance(names, list) and len(names) <= 1000 and all(isinstance(name, str) for name in names):
        return [_clean(name) for name in names]
    raise BadRequestError("Invalid request: keep parameter is not an array of texts, at most 1000")


def _clean(text: str) -> str:
    """Text that can be written as UTF-8: JSON can hold half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _one_or_all(values: Sequence[Any], several: bool) -> Any:
    return list(values) if several else values[0]


def _shown(detected: Detected | None) -> dict[str, Any]:
    assert detected is not None
    return {"confidence": detected.confidence, "language": detected.language}


def routes(service: Service) -> APIRouter:
    """LibreTranslate's API of one server."""
    api, router = LibreTranslate(service), APIRouter(tags=["LibreTranslate"])
    codes = [language.code for language in service.catalogue.languages]
    for path, endpoint, described in (
        ("/translate", api.translate, schema.translate(codes)),
        ("/detect", api.detect, schema.DETECT),
        ("/suggest", api.suggest, schema.SUGGEST),
        ("/translate_file", api.translate_file, schema.translate_file(codes)),
    ):
        router.add_api_route(path, endpoint, methods=["POST"], response_model=None, **described)
    add = partial(router.add_api_route, methods=["GET"], response_model=None)
    add("/languages", api.languages, **schema.LANGUAGES)
    add("/frontend/settings", api.settings, **schema.SETTINGS)
    add("/download_file/{filename}", api.download_file, **schema.DOWNLOAD)
    return router
