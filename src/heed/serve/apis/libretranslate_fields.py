"""Fields of requests to LibreTranslate's API.

Every POST takes JSON or a form, and the fields of either may also be in the query. A form has only texts, so a number,
a list or an object is accepted as text, too. Error messages are LibreTranslate's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

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
from starlette.datastructures import Headers, UploadFile

from heed.serve.apis.schema import request_body
from heed.serve.bodies import JSON, MULTIPART, URLENCODED, form_of, json_of, media_type_of
from heed.serve.errors import ApiError
from heed.text.readers import parse_column

AUTO = "auto"
MAX_TERMS, MAX_ALTERNATIVES = 1000, 10

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
    if not isinstance(value, str):
        return value
    try:
        return json_of(value)
    except ApiError as error:
        raise ValueError(error.message) from error


def _lines(value: Any) -> Any:
    """The lines of a text that are not blank."""
    return [line for line in value.splitlines() if line.strip()] if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1)]
Terms = Annotated[dict[str, str], Field(max_length=MAX_TERMS)]
TermList = Annotated[list[str], Field(max_length=MAX_TERMS, fail_fast=True)]
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
    q: Text | Annotated[list[str], Field(min_length=1, fail_fast=True)]

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
    q: Text
    s: Text
    """The suggested translation."""
    source: str
    target: str


def fields_body(
    fields: type[BaseModel], codes: Sequence[str] = (), kinds: Sequence[str] = (JSON, URLENCODED, MULTIPART)
) -> dict[str, Any]:
    """The request body in OpenAPI. `codes`: the languages of this server."""
    languages = {"source": {"enum": [AUTO, *codes]}, "target": {"enum": list(codes)}} if codes else {}
    return request_body(fields, kinds, **languages)


def read_fields(query: Mapping[str, str], headers: Headers, body: bytes, max_bytes: int) -> dict[str, Any]:
    """The fields of a request that are not empty. Raises ApiError. `max_bytes`: the maximum size of a body."""
    fields: dict[str, Any] = dict(query)
    if media_type_of(headers) == JSON:
        value = json_of(body or b"{}")
        if not isinstance(value, dict):
            raise ApiError(400, "Invalid JSON format")
        fields |= value
    else:
        form = form_of(headers, body, max_bytes)
        for name in form:
            values = form.getlist(name)
            texts = [_encodable(value) for value in values if isinstance(value, str)]
            fields[name] = "\n".join(texts) if texts else _file(values[0])
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _encodable(text: str) -> str:
    """The text, with question marks for unpaired surrogates, which a form may have in a charset of its own."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _file(value: UploadFile | str) -> UploadedFile | str:
    if isinstance(value, str):
        return value
    with value.file as file:
        return UploadedFile(_encodable(value.filename or ""), file.read())


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
