"""Fields of requests to LibreTranslate's API: how they are documented, and how they are read.

Every POST takes JSON or a form, and the fields of either may also be in the query. A form has only texts, so a number,
a list or an object is accepted as text, too. Error messages are LibreTranslate's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile

from heed.serve.errors import ApiError
from heed.text.readers import parse_column

AUTO = "auto"
JSON, URLENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MAX_TERMS = 1000
MAX_FIELD_BYTES = 1 << 30
"""Of a field of a form; the whole body has its own limit."""
_NUMBER = re.compile(r"-?[0-9]{1,9}")

Text = Annotated[str, Field(min_length=1)]


# --- documentation -----------------------------------------------------------------------------------


class KeyField(BaseModel):
    """The field that every request may have."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    api_key: str | None = None
    """Needed if the server requires a key."""


class TermFields(KeyField):
    """heed's own fields, which other servers ignore."""

    glossary: Annotated[dict[str, str], Field(max_length=MAX_TERMS)] | str | None = None
    """Extension: terms and their translations, as an object or as JSON text."""
    keep: Annotated[list[str], Field(max_length=MAX_TERMS)] | str | None = None
    """Extension: terms that are not translated, as an array or one per line."""


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
    model: str = ""
    """Extension: which model to use, by name."""
    src_column: str = ""
    """Extension: column of a table to translate, by number or name."""
    tgt_column: str = ""
    """Extension: column for the translations, by number or name."""


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


class Fields:
    """The fields of one request that are not empty. Methods raise ApiError for an invalid field."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None and value != ""}

    @staticmethod
    async def read(request: Request) -> Fields:
        """All fields of a request."""
        fields: dict[str, Any] = dict(request.query_params)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
            try:
                body = json.loads(await request.body() or b"{}")
            except (ValueError, RecursionError) as error:
                raise ApiError(400, "Invalid JSON format") from error
            if not isinstance(body, dict):
                raise ApiError(400, "Invalid JSON format")
            return Fields({**fields, **body})
        async with request.form(max_files=1, max_fields=100, max_part_size=MAX_FIELD_BYTES) as form:
            for name in form:
                values = form.getlist(name)
                texts = [value for value in values if isinstance(value, str)]
                fields[name] = "\n".join(texts) if texts else await _file(values[0])
        return Fields(fields)

    def required(self, name: str) -> Any:
        """A field that must not be missing or empty."""
        if not self._values.get(name):
            raise ApiError(400, f"Invalid request: missing {name} parameter")
        return self._values[name]

    def text(self, name: str) -> str | None:
        """An optional text."""
        value = self._values.get(name)
        if not isinstance(value, str | None):
            raise ApiError(400, f"Invalid request: {name} parameter is not a text")
        return value

    def texts(self) -> list[str]:
        """`q`: a text, or several."""
        query = self.required("q")
        texts = query if isinstance(query, list) else [query]
        if not all(isinstance(text, str) for text in texts):
            raise ApiError(400, "Invalid request: q parameter is not a text or an array of texts")
        return [encodable(text) for text in texts]

    def file(self) -> UploadedFile:
        """The file of a form."""
        file = self.required("file")
        if not isinstance(file, UploadedFile) or not file.name:
            raise ApiError(400, "Invalid request: file parameter is not a file")
        return file

    def is_html(self) -> bool:
        """`format`: text or html."""
        value = self._values.get("format", "text")
        if value not in ("text", "html"):
            raise ApiError(400, f"{value} format is not supported")
        return bool(value == "html")

    def alternatives(self, limit: int) -> int:
        """`alternatives`: how many, at most `limit`."""
        text = str(self._values.get("alternatives", 0))
        if not _NUMBER.fullmatch(text):
            raise ApiError(400, "Invalid request: alternatives parameter is not a number")
        if not 0 <= int(text) <= limit:
            raise ApiError(400, f"Invalid request: alternatives parameter must be >= 0 and <= {limit}")
        return int(text)

    def column(self, name: str) -> int | str | None:
        """A column of a table, by number or name."""
        value = self._values.get(name)
        if not isinstance(value, str | int | None) or isinstance(value, bool):
            raise ApiError(400, f"Invalid request: {name} parameter is not a number or a name")
        return None if value is None else parse_column(str(value))

    def glossary(self) -> dict[str, str]:
        """`glossary`: `{"dog": "Hund"}`."""
        terms = self._values.get("glossary", {})
        if isinstance(terms, str):
            try:
                terms = json.loads(terms)
            except (ValueError, RecursionError):
                terms = None
        if isinstance(terms, dict) and _are_texts(terms.values()):
            return {encodable(source): encodable(target) for source, target in terms.items()}
        raise ApiError(400, f"Invalid request: glossary parameter is not an object of texts, at most {MAX_TERMS}")

    def keep(self) -> list[str]:
        """`keep`: terms that are not translated."""
        terms = self._values.get("keep", [])
        if isinstance(terms, str):
            terms = terms.split("\n")
        if isinstance(terms, list) and _are_texts(terms):
            return [encodable(term) for term in terms]
        raise ApiError(400, f"Invalid request: keep parameter is not an array of texts, at most {MAX_TERMS}")


async def _file(value: UploadFile | str) -> UploadedFile | str:
    return UploadedFile(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value


def _are_texts(terms: Collection[Any]) -> bool:
    return len(terms) <= MAX_TERMS and all(isinstance(term, str) for term in terms)


def encodable(text: str) -> str:
    """Text that can be encoded as UTF-8: JSON can hold an unpaired surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
