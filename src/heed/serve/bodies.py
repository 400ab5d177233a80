"""Bodies of requests: JSON and forms, with limits on the number of their parts, and checked against a model.

They are read in the thread of a job, because the largest take longer than other clients should wait.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from heed.serve.errors import ApiError

M = TypeVar("M", bound=BaseModel)

MAX_MEMBERS = 1000
"""Maximum members of a JSON object. All errors are built before the first is known, so there must be few."""
MOST_STRINGS = 20_000
MOST_OF = {"[": 10_000, "{": 10_000, ",": 150_000}
"""Maximum number of strings in a JSON text, and of these characters outside them. All threads wait while it is read, so
it must not have too many strings, lists and objects, nor numbers (128 prompts of 1024 tokens)."""
MAX_FORM_FIELDS = 100
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
JSON, URLENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"


def media_type_of(headers: Headers) -> str:
    """`application/json`"""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def json_of(body: bytes | str) -> Any:
    """The value of a JSON text. An unpaired surrogate, which cannot be encoded, becomes a question mark.

    Raises ApiError for what is not JSON or not in Unicode: text in another encoding would become another text.
    """
    try:
        text = body if isinstance(body, str) else body.decode(json.detect_encoding(body), "surrogatepass")
        _require_few(text)
        value = json.loads(text, object_pairs_hook=_object)
        if "\\ud" in text.lower() or not _is_unicode(text):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except UnicodeDecodeError as error:
        raise ApiError(400, "The JSON is not valid Unicode.") from error
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid JSON format") from error
    return value


def _is_unicode(text: str) -> bool:
    """Whether the text has no unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _require_few(text: str) -> None:
    """Raise ApiError for a JSON text with too many values."""
    outside, num_strings = _STRING.subn("", text, MOST_STRINGS + 1)
    if num_strings > MOST_STRINGS:
        raise ApiError(400, f"The JSON has more than {MOST_STRINGS:,} strings.")
    for character, most in MOST_OF.items():
        if outside.count(character) > most:
            raise ApiError(400, f"The JSON has more than {most:,} of the character {character}.")


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(members) > MAX_MEMBERS:
        raise ApiError(400, f"An object in the body has {len(members):,} members; the limit is {MAX_MEMBERS:,}.")
    return dict(members)


def json_body(kind: type[M], headers: Headers, body: bytes) -> M:
    """A JSON body as a model. Raises ApiError.

    Browsers let pages of any origin send other media types, so only a body that is named as JSON is read.
    """
    media_type = media_type_of(headers)
    if media_type != JSON and not (media_type.startswith("application/") and media_type.endswith("+json")):
        raise ApiError(400, f"The body must be JSON, with the header Content-Type: {JSON}.")
    try:
        return kind.model_validate(json_of(body))
    except ValidationError as error:
        raise first_invalid(error.errors(include_url=False)) from error


def first_invalid(invalid: Sequence[Any]) -> ApiError:
    """The error about the first invalid field, without its value."""
    first = invalid[0]
    location = [str(part)[:80] for part in first["loc"] if part != "body"]
    return ApiError(400, f"{'.'.join(location[:2]) or 'body'}: {first['msg']}", location[0] if location else None)


def form_of(headers: Headers, body: bytes, max_bytes: int) -> FormData:
    """The fields of a form; empty for a body of another kind. Raises ApiError. Close it after use.

    `max_bytes`: the maximum size of a body.
    """
    media_type = media_type_of(headers)
    try:
        if media_type == URLENCODED:
            text = body.decode()
            fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS)
            return FormData([*fields])
        return asyncio.run(_multipart(headers, body, max_bytes)) if media_type == MULTIPART else FormData()
    except UnicodeDecodeError as error:
        raise ApiError(400, "The form is not valid UTF-8.") from error
    except ValueError as error:
        raise ApiError(400, f"The form has more than {MAX_FORM_FIELDS} fields.") from error
    except MultiPartException as error:
        raise ApiError(400, error.message) from error


async def _multipart(headers: Headers, body: bytes, max_bytes: int) -> FormData:
    async def stream() -> Any:
        yield body

    parser = MultiPartParser(headers, stream(), max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=max_bytes)
    parser.spool_max_size = max_bytes + 1
    return await parser.parse()
