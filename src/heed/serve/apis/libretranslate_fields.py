"""Fields of requests to LibreTranslate's API.

Every POST takes JSON or a form, and the fields of either may also be in the query. A form has only texts, so a number,
a list or an object is accepted as text, too. Error messages are LibreTranslate's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    WithJsonSchema,
)
from starlette.datastructures import UploadFile

from heed.serve.errors import ApiError
from heed.text.readers import parse_column

AUTO = "auto"
JSON, URLENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MAX_TERMS, MAX_ALTERNATIVES = 1000, 10
MAX_FIELD_BYTES = 1 << 30
"""Maximum size of a field of a form. The whole body has its own limit."""

_TYPES = {
    "q": "a text or an array of texts",
    "alternatives": "a number",
    "glossary": f"an object of texts, at most {MAX_TERMS}",
    "keep": f"an array of texts, at most {MAX_TERMS}",
    "file": "a file",
    "src_column": "a number or a name",
    "tgt_column": "a number or a name",
}

F = TypeVar("F", bound="KeyField")


@dataclass(frozen=True)
class UploadedFile:
    """A file of a form."""

    name: str
    data: bytes


def _from_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _lines(value: Any) -> Any:
    return value.split("\n") if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1)]
Terms = Annotated[dict[str, str], Field(max_length=MAX_TERMS)]
TermList = Annotated[list[str], Field(max_length=MAX_TERMS)]
Column = Annotated[str | int, AfterValidator(lambda value: parse_column(str(value)))]
"""A column of a table, by number or name."""


class KeyField(BaseModel):
    """The field that every request may have."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    api_key: str | None = None
    """Needed if the server requires a key."""


class TermFields(KeyField):
    """heed's own fields, which other servers ignore."""

    glossary: Annotated[Terms, BeforeValidator(_from_json, json_schema_input_type=Terms | str)] = {}
    """Extension: terms and their translations, as an object or as JSON text."""
    keep: Annotated[TermList, BeforeValidator(_lines, json_schema_input_type=TermList | str)] = []
    """Extension: terms that are not translated, as an array or one per line."""


class DetectFields(KeyField):
    q: Text | Annotated[list[str], Field(min_length=1)]

    @property
    def texts(self) -> list[str]:
        """All texts of `q`."""
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateFields(DetectFields, TermFields):
    source: str
    target: str
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, le=MAX_ALTERNATIVES)] = 0


class FileFields(TermFields):
    file: Annotated[InstanceOf[UploadedFile], WithJsonSchema({"type": "string", "format": "binary"})]
    source: str
    target: str
    model: str = ""
    """Extension: which model to use, by name."""
    src_column: Column | None = None
    """Extension: column of a table to translate, by number or name."""
    tgt_column: Column | None = None
    """Extension: column for the translations, by number or name."""


class SuggestFields(KeyField):
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


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a request that are not empty. Raises ApiError."""
    fields: dict[str, Any] = dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
        fields |= _json_object(await request.body())
    else:
        async with request.form(max_files=1, max_fields=100, max_part_size=MAX_FIELD_BYTES) as form:
            for name in form:
                values = form.getlist(name)
                texts = [value for value in values if isinstance(value, str)]
                fields[name] = "\n".join(texts) if texts else await _file(values[0])
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
        # JSON can hold unpaired surrogates, which cannot be encoded: they become question marks.
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid JSON format") from error
    if not isinstance(value, dict):
        raise ApiError(400, "Invalid JSON format")
    return value


async def _file(value: UploadFile | str) -> UploadedFile | str:
    return UploadedFile(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value


def validated(kind: type[F], fields: dict[str, Any]) -> F:
    """The fields of one route. Raises ApiError for the first invalid one."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        if first["type"] == "missing":
            message = f"Invalid request: missing {name} parameter"
        elif name in ("source", "target"):
            message = f"{str(first['input'])[:40]} is not supported"
        elif name == "format":
            message = f"{first['input']} format is not supported"
        elif first["type"] in ("greater_than_equal", "less_than_equal"):
            message = f"Invalid request: {name} parameter must be >= 0 and <= {MAX_ALTERNATIVES}"
        else:
            message = f"Invalid request: {name} parameter is not {_TYPES.get(name, 'a text')}"
        raise ApiError(400, message) from error
