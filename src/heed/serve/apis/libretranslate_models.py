"""What does OpenAPI say of LibreTranslate's API?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heed.serve.apis.openapi import answers, error_answers, json_answer, objects

_ERROR = objects({"error": {"type": "string"}}, required=["error"])
_TEXT = {"type": "string", "minLength": 1}
_NULL = {"type": "null"}
_KEY = {"type": ["string", "null"], "description": "Where the server asks for one."}
JSON = "application/json"
_KINDS = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")
_CONFIDENT = objects(
    {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": {"type": "string"}},
    required=["confidence", "language"],
)


def _one_or_more(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _body(fields: dict[str, Any], required: Sequence[str], kinds: Sequence[str] = _KINDS) -> dict[str, Any]:
    """In a form every field is a text. In JSON a number may be one too, and null is as good as nothing."""
    content = {}
    for kind in kinds:
        plain = {
            name: _in_form(schema) if kind != JSON else schema if name in required else _in_json(schema)
            for name, schema in fields.items()
        }
        content[kind] = {"schema": objects({**plain, "api_key": _KEY}, required=required)}
    return {"requestBody": {"required": True, "content": content}}


def _in_json(schema: dict[str, Any]) -> dict[str, Any]:
    as_text = [_in_form(schema)] if schema.get("type") == "integer" else []
    return {"anyOf": [schema, *as_text, _NULL]}


def _in_form(schema: dict[str, Any]) -> dict[str, Any]:
    if "enum" in schema or schema.get("type") == "string":
        return schema
    if schema.get("type") == "integer":
        return {"type": "string", "pattern": r"^\d{0,2}$"}
    return schema if "anyOf" in schema else {"type": "string"}


_ERRORS = error_answers(_ERROR, 400, 403, 413, 429, 500, 503, 504)


_TERMS: dict[str, Any] = {
    "glossary": {
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1000},
            {"type": "string"},
        ],
        "description": "heed's own: terms and what they become, as an object or as JSON in a text.",
    },
    "keep": {
        "anyOf": [{"type": "array", "items": {"type": "string"}, "maxItems": 1000}, {"type": "string"}],
        "description": "heed's own: terms that stay as they are, as an array or each on a line of its own.",
    },
}


def translate(codes: Sequence[str]) -> dict[str, Any]:
    """POST /translate, between these languages."""
    fields = {
        "q": {"anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 128}]},
        "source": {"type": "string", "enum": ["auto", *codes]},
        "target": {"type": "string", "enum": list(codes)},
        "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 10, "default": 0},
        **_TERMS,
    }  # fmt: skip
    texts = {"anyOf": [{"type": "array", "items": {"type": "string"}}]}
    done = objects(
        {
            "translatedText": _one_or_more({"type": "string"}),
            "detectedLanguage": _one_or_more(_CONFIDENT),
            "alternatives": _one_or_more({"anyOf": [{"type": "string"}, texts]}),
        },
        required=["translatedText"],
    )
    return {
        "summary": "Translate a text, or several.",
        "responses": answers(json_answer("The translation.", done), _ERRORS),
        "openapi_extra": _body(fields, ["q", "source", "target"]),
    }


def translate_file(codes: Sequence[str]) -> dict[str, Any]:
    """POST /translate_file, between these languages."""
    fields = {
        "file": {"type": "string", "format": "binary"},
        "source": {"type": "string", "enum": ["auto", *codes]},
        "target": {"type": "string", "enum": list(codes)},
        "model": {"type": "string", "description": "heed's own: the model, by its name."},
        "src_column": {"type": "string", "description": "heed's own: a table's column to translate, number or name."},
        "tgt_column": {"type": "string", "description": "heed's own: the column that its translations go to."},
        **_TERMS,
    }
    done = objects({"translatedFileUrl": {"type": "string"}}, required=["translatedFileUrl"])
    return {
        "summary": "Translate a file: .txt, .csv, .tsv, .tmx, .srt, .html.",
        "responses": answers(json_answer("Where to fetch it.", done), _ERRORS),
        "openapi_extra": _body(fields, ["file", "source", "target"], ["multipart/form-data"]),
    }


DETECT: dict[str, Any] = {
    "summary": "The language of a text.",
    "responses": answers(
        json_answer("Languages, the likeliest first.", {"type": "array", "items": _CONFIDENT}), _ERRORS
    ),
    "openapi_extra": _body({"q": _TEXT}, ["q"]),
}

SUGGEST: dict[str, Any] = {
    "summary": "Suggest another translation; this server takes none.",
    "status_code": 403,
    "responses": error_answers(_ERROR, 400, 403, 413, 429, 500),
    "openapi_extra": _body(
        {name: {"type": "string"} for name in ("q", "s", "source", "target")}, ["q", "s", "source", "target"]
    ),
}

LANGUAGES: dict[str, Any] = {
    "summary": "Languages, and what each can be translated to.",
    "responses": answers(
        json_answer(
            "Languages.",
            {
                "type": "array",
                "items": objects(
                    {
                        "code": {"type": "string"},
                        "name": {"type": "string"},
                        "targets": {"type": "array", "items": {"type": "string"}},
                    },
                    required=["code", "name", "targets"],
                ),
            },
        ),
        error_answers(_ERROR, 413, 500),
    ),
}

SETTINGS: dict[str, Any] = {
    "summary": "What a page must know of the server.",
    "responses": answers(json_answer("Settings.", {"type": "object"}), error_answers(_ERROR, 413, 500)),
}

DOWNLOAD: dict[str, Any] = {
    "summary": "Fetch a translated file.",
    "responses": answers(
        {200: {"description": "The file.", "content": {"application/octet-stream": {}}}},
        error_answers(_ERROR, 404, 413, 500),
    ),
}
