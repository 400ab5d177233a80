"""Translation in heed's own API: the models on the way, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heed.documents.html_spans import spoken_text
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Partial, TranslateOptions
from heed.serve.apis.heed_answers import Detected, Sentence, Translated
from heed.serve.apis.heed_requests import TranslateBody
from heed.serve.engine.catalogue import Catalogue, Route, ServedModel
from heed.serve.engine.job import Job
from heed.serve.engine.languages import Language
from heed.serve.errors import NotFoundError
from heed.serve.service import Service
from heed.text.language.identify import Detected as Guess


def translate(
    job: Job, body: TranslateBody, route: Route, on_partial: Callable[[int, str, str], None] | None = None
) -> Translated:
    """The answer to a request. `on_partial` gets the number, source and text so far of sentences as they grow."""
    wanted = TranslateOptions(
        body.nbest, body.beam_size, body.length_penalty, body.prefix,
        {term.source: term.target for term in body.glossary}, body.keep,
    )  # fmt: skip
    translator = TextTranslator(job, route.steps, wanted)
    if body.format == "html":
        done = translator.html(body.text)
    else:
        done = translator.text(body.text, Partial(on_partial) if on_partial and route.path else None)
    return Translated(
        text=done.text,
        source=route.source.code,
        target=route.target.code,
        detected=Detected.of(route.detected) if route.detected else None,
        path=[direction.model.name for direction in route.path],
        sentences=[Sentence.of(route.path, sentence) for sentence in done.sentences],
    )


def find_route(service: Service, body: TranslateBody) -> Route:
    """The models on the way. Raises NotFoundError where none lead there, BadRequestError for a wrong model."""
    catalogue = service.catalogue
    model = catalogue.model(body.model, "translate") if body.model is not None else None
    directions = model.directions if model else catalogue.directions
    if not directions:
        raise NotFoundError("This server has no translation model.")
    source = _language(catalogue, body.source) if body.source not in ("", "auto") else None
    detected = None
    if source is None:
        detected = _detect(service, body, [direction.source for direction in directions])
        source = Language(detected.language)
    target = _target(catalogue, body, model, source)
    if model is not None:
        path = [each for each in directions if (each.source, each.target) == (source, target)]
    else:
        path = catalogue.path(source, target) or []
    if not path and (model is not None or source != target):
        raise NotFoundError(f"No model translates from {source.code} to {target.code}.", "target")
    return Route(source, target, path, detected)


def _detect(service: Service, body: TranslateBody, sources: Sequence[Language]) -> Guess:
    """The likeliest language that can be translated to the target."""
    target = _language(service.catalogue, body.target) if body.target else None
    text = spoken_text(body.text) if body.format == "html" else body.text
    for guess in service.detector.detect(text):
        language = Language(guess.language)
        if language in sources and (target is None or service.catalogue.path(language, target) is not None):
            return guess
    raise NotFoundError("No model translates this text to the target language.", "target")


def _target(catalogue: Catalogue, body: TranslateBody, model: ServedModel | None, source: Language) -> Language:
    if body.target:
        return _language(catalogue, body.target)
    for direction in model.directions if model is not None else catalogue.directions:
        if direction.source == source:
            return direction.target
    raise NotFoundError(f"No model translates from {source.code}.", "source")


def _language(catalogue: Catalogue, code: str) -> Language:
    language = catalogue.language(code)
    if language is None:
        known = ", ".join(each.code for each in catalogue.languages)
        raise NotFoundError(f"{code[:40]} is not supported; available languages: {known}.", "language")
    return language
