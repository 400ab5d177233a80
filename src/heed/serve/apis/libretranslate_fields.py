"""Fields of requests to LibreTranslate's API: how they are documented, and how they are read.

Every POST takes JSON or a form, and the fields of either may also be in the query. A form has texts only, so a number,
a list or an object is accepted as text, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile

from heed.serve.errors import BadRequestError
from heed.text.readers import parse_column

AUTO = "auto"
JSON, URLENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MAX_TERMS = 1000
MAX_FIELD_BYTES = 1 << 30
"""Of a form; the whole body has its own limit."""
_NUMBER = re.compile(r"-?[0-9]{1,9}")

Text = Annotated[str, Field(min_length=1)]


# --- documentation -----------------------------------------------------------------------------------


class KeyField(BaseModel):
    """What every request may have."""

    api_key: Annotated[str | None, Field(description="Needed where the server requires a key.")] = None


class TermFields(KeyField):
    """heed's own fields, which other servers ignore."""

    glossary: Annotated[
        Annotated[dict[str, str], Field(max_length=MAX_TERMS)] | str | None,
        Field(description="Extension: terms and their translations, as an object or as JSON text."),
    ] = None
    keep: Annotated[
        Annotated[list[str], Field(max_length=MAX_TERMS)] | str | None,
        Field(description="Extension: terms that are not translated, as an array or one per line."),
    ] = None


class TranslateFields(TermFields):
    """POST /translate"""

    q: Text | Annotated[list[str], Field(min_length=1, max_length=128)]
    source: str
    target: str
    format: Literal["text", "html"] | None = "text"
    alternatives: Annotated[int, Field(ge=0, le=10)] | Annotated[str, Field(pattern=r"^\d{0,2}$")] | None = 0


class FileFields(TermFields):
    """POST /translate_file"""

    file: Annotated[bytes, Field(json_schema_extra={"format": "binary"})]
    source: str
    target: str
    model: Annotated[str, Field(description="Extension: which model to use, by name.")] = ""
    src_column: Annotated[str, Field(description="Extension: column of a table to translate, by number or name.")] = ""
    tgt_column: Annotated[str, Field(description="Extension: column for the translations, by number or name.")] = ""


class DetectFields(KeyField):
    """POST /detect"""

    q: Text


class SuggestFields(KeyField):
    """POST /suggest"""

    q: str
    s: str
    source: str
    target: str


def request_body(
    fields: type[BaseModel], codes: Sequence[str] = (), kinds: Sequence[str] = (JSON, URLENCODED, MULTIPART)
) -> dict[str, Any]:
    """The request body in OpenAPI. `codes`: the languages of this server."""
    schema = fields.model_json_schema()
    if codes:
        schema["properties"]["source"]["enum"] = [AUTO, *codes]
        schema["properties"]["target"]["enum"] = list(codes)
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


# --- reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UploadedFile:
    """A file of a form."""

    name: str
    data: bytes


async def read_fields(request: Request) -> dict[str, Any]:
    """All fields of a request. Raises BadRequestError."""
    fields: dict[str, Any] = dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
        try:
            body = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadRequestError("Invalid JSON format") from error
        if not isinstance(body, dict):
            raise BadRequestError("Invalid JSON format")
        return {**fields, **body}
    async with request.form(max_files=1, max_fields=100, max_part_size=MAX_FIELD_BYTES) as form:
        for name in form:
            values = form.getlist(name)
            texts = [value for value in values if isinstance(value, str)]
            fields[name] = "\n".join(texts) if texts else await _file(values[0])
    return fields


async def _file(value: UploadFile | str) -> UploadedFile | str:
    return UploadedFile(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value


def required(fields: Mapping[str, Any], name: str) -> Any:
    """A field that must be there and not be empty."""
    if not fields.get(name):
        raise BadRequestError(f"Invalid request: missing {name} parameter")
    return fields[name]


def text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    """An optional text."""
    value = fields.get(name)
    if not isinstance(value, str | None):
        raise BadRequestError(f"Invalid request: {name} parameter is not a text")
    return value


def uploaded_file(fields: Mapping[str, Any]) -> UploadedFile:
    """The file of a form."""
    file = required(fields, "file")
    if not isinstance(file, UploadedFile) or not file.name:
        raise BadRequestError("Invalid request: file parameter is not a file")
    return file


def texts_of(query: Any) -> list[str]:
    """`q`: a text, or several."""
    texts = query if isinstance(query, list) else [query]
    if not all(isinstance(text, str) for text in texts):
        raise BadRequestError("Invalid request: q parameter is not a text or an array of texts")
    return [encodable(text) for text in texts]


def format_of(fields: Mapping[str, Any]) -> Literal["text", "html"]:
    """`format`"""
    value = fields.get("format")
    if value is None or value == "":
        return "text"
    if value not in ("text", "html"):
        raise BadRequestError(f"{value} format is not supported")
    return "html" if value == "html" else "text"


def alternatives_of(fields: Mapping[str, Any], limit: int) -> int:
    """`alternatives`: how many, at most `limit`."""
    value = fields.get("alternatives")
    text = "0" if value is None or value == "" else str(value)
    if not _NUMBER.fullmatch(text):
        raise BadRequestError("Invalid request: alternatives parameter is not a number")
    if not 0 <= int(text) <= limit:
        raise BadRequestError(f"Invalid request: alternatives parameter must be >= 0 and <= {limit}")
    return int(text)


def column_of(fields: Mapping[str, Any], name: str) -> int | str | None:
    """A column of a table by number or name."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise BadRequestError(f"Invalid request: {name} parameter is not a number or a name")
    return parse_column(str(value))


def glossary_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """`glossary`: `{"dog": "Hund"}`."""
    value = fields.get("glossary")
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, dict) and len(value) <= MAX_TERMS and all(isinstance(each, str) for each in value.values()):
        return {encodable(source): encodable(target) for source, target in value.items()}
    raise BadRequestError(f"Invalid request: glossary parameter is not an object of texts, at most {MAX_TERMS}")


def keep_of(fields: Mapping[str, Any]) -> list[str]:
    """`keep`: terms that are not translated."""
    value = fields.get("keep")
    if value is None or value == "":
        return []
    terms = value.split("\n") if isinstance(value, str) else value
    if isinstance(terms, list) and len(terms) <= MAX_TERMS and all(isinstance(term, str) for term in terms):
        return [encodable(term) for term in terms]
    raise BadRequestError(f"Invalid request: keep parameter is not an array of texts, at most {MAX_TERMS}")


def encodable(text: str) -> str:
    """Text that can be encoded as UTF-8: JSON can hold an unpaired surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
