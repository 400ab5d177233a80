"""Bodies of requests: limits on their parts, and where and when they are read."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel
from serving import REQUEST, Live, Runs, held, serving, until
from starlette.datastructures import Headers

from heed.serve.apis.heed_schema import TranslateBody
from heed.serve.apis.openai_schema import CompletionRequest
from heed.serve.bodies import MAX_MEMBERS, form_of, json_body, json_of
from heed.serve.engine.admission import READ_AT_ONCE
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

JSON = Headers({"Content-Type": "application/json"})
BIASES = {str(number): "" for number in range(6_000)}
ONE = {"model": "lm", "prompt": "a"}


@pytest.mark.parametrize("path", ["/api/translate", "/v1/completions", "/translate"])
@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b"[1]", b"nothing"])
def test_a_body_that_is_no_json_object_is_a_bad_request(live: Live, path: str, body: bytes) -> None:
    answer = live.post(path, body)
    assert answer.status == 400
    if path.startswith("/api"):
        assert answer.json["error"]["code"] == "bad_request"


def test_a_wrong_method_is_no_error_of_the_server(live: Live) -> None:
    answer = live.get("/api/translate")
    assert (answer.status, answer.json["error"]["code"]) == (405, "bad_request")


def test_a_body_that_is_not_named_as_json_is_refused(live: Live) -> None:
    """A page of any origin may send it as a form or as text."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = live.ask("POST", "/api/translate", json.dumps({"text": "ba"}), {"Content-Type": kind})
        assert (answer.status, "application/json" in answer.json["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    ("part", "too_many"),
    [('"",', "20,000 strings"), ('{"a":1},', "20,000 strings"), ("{},", "10,000 of the character {"),
     ("[],", "10,000 of the character ["), ("1,", "150,000 of the character ,"), ('"1":1,', "20,000 strings")],
    ids=["texts", "objects", "empty objects", "lists", "numbers", "members"],
)  # fmt: skip
def test_json_of_very_many_parts_is_refused_before_it_is_read(
    part: str, too_many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.serve.bodies.json.loads", pytest.fail)
    with pytest.raises(ApiError, match=re.escape(f"The JSON has more than {too_many}.")):
        json_of("[" + part * (900_000 // len(part)) + "1]")


def test_what_a_text_contains_is_not_taken_for_parts_of_the_json() -> None:
    for text in ('<a href="x">, {}</a>' * 50_000, "[[a]] " * 50_000, '\\"' * 50_000):
        assert json_of(json.dumps({"q": text})) == {"q": text}


def test_an_object_with_many_members_is_refused_before_they_are_checked(live: Live) -> None:
    answer = live.post("/v1/completions", {**ONE, "logit_bias": BIASES})
    assert (answer.status, answer.json["error"]["code"]) == (400, None)
    assert answer.json["error"]["message"] == "An object in the body has 6,000 members; the limit is 1,000."
    assert live.post("/translate", {**REQUEST, "glossary": json.dumps(BIASES)}).status == 400
    assert live.post("/api/translate", {"text": "ba", **BIASES}).status == 400


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CompletionRequest, {**ONE, "prompt": [""] * 10_000}),
        (CompletionRequest, {**ONE, "prompt": [["a"] * 10] * 1_000}),
        (CompletionRequest, {**ONE, "stop": [1] * 100_000}),
        (CompletionRequest, {**ONE, "logit_bias": dict.fromkeys(map(str, range(MAX_MEMBERS)))}),
        (TranslateBody, {"text": "a", "keep": [""] * 10_000}),
        (TranslateBody, {"text": "a", "glossary": [{}] * 9_000}),
        (TranslateBody, {"text": "a", "glossary": [dict.fromkeys(map(str, range(MAX_MEMBERS)))] * 10}),
    ],
)
def test_the_number_of_errors_is_bounded(kind: type[BaseModel], body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def first_invalid(errors: list[Any]) -> ApiError:
        seen.append(len(errors))
        return ApiError(400, "")

    monkeypatch.setattr("heed.serve.bodies.first_invalid", first_invalid)
    with pytest.raises(ApiError):
        json_body(kind, JSON, json.dumps(body).encode())
    assert seen[0] <= MAX_MEMBERS + 2


def test_a_form_has_a_bounded_number_of_fields(live: Live) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in ("&" * 1_000_000, "q=a&" * 1000):
        answer = live.ask("POST", "/translate", body, form)
        assert (answer.status, answer.json) == (400, {"error": "The form has more than 100 fields."})
    part = '--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n'
    multipart = {"Content-Type": "multipart/form-data; boundary=x"}
    assert live.ask("POST", "/translate", part * 200 + "--x--\r\n", multipart).status == 400


def test_a_form_is_read_with_its_encoding() -> None:
    kind = Headers({"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"})
    form = form_of(kind, b"q=f%C3%BCr+a&q=&b", 1000)
    assert form.multi_items() == [("q", "für a"), ("q", ""), ("b", "")]
    assert form_of(kind, "q=für €&b=%E2%82%AC".encode(), 1000).multi_items() == [("q", "für €"), ("b", "€")]
    for latin in ("q=für".encode("latin-1"), b"q=f%FCr"):
        with pytest.raises(ApiError, match="The form is not valid UTF-8"):
            form_of(kind, latin, 1000)


def test_json_in_another_encoding_is_refused_and_not_damaged() -> None:
    assert json_of('"für"'.encode()) == json_of('"für"'.encode("utf-16")) == "für"
    with pytest.raises(ApiError, match="The JSON is not valid Unicode"):
        json_of('"für"'.encode("latin-1"))


@pytest.mark.parametrize("text", ['"\\ud800"', '"a\\uDFFFb"', b'"\xed\xa0\x80"'])
def test_unpaired_surrogates_are_replaced(text: str | bytes) -> None:
    assert json_of(text).encode("utf-8")
    assert json_of('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize("field", ["format", "source", "target", "q", "api_key", "alternatives", "keep"])
def test_unpaired_surrogates_are_no_error_of_the_server(live: Live, field: str) -> None:
    assert live.post("/translate", {**REQUEST, field: "\ud800"}).status < 500
    part = f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n\\ud800\r\n--x--\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=x; charset=raw_unicode_escape"}
    assert live.ask("POST", "/translate", part, kind).status < 500
    assert live.post("/api/translate", {"text": "ba", "keep": ["\ud800"], "prefix": "\ud800"}).status < 500


@pytest.mark.parametrize(("padding", "are_in_jobs"), [(0, False), (READ_AT_ONCE, True)])
def test_large_bodies_are_read_in_jobs_and_small_ones_at_once(
    padding: int, are_in_jobs: bool, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noted(body: bytes | str) -> Any:
        threads.append(threading.current_thread().name)
        return json_of(body)

    monkeypatch.setattr("heed.serve.bodies.json_of", noted)
    monkeypatch.setattr("heed.serve.apis.libretranslate_fields.json_of", noted)
    for path, body in (("/translate", REQUEST), ("/api/translate", {"text": "ba"}), ("/v1/completions", ONE)):
        assert live.post(path, json.dumps(body).encode() + b" " * padding).status == 200
    assert [thread == "heed job" for thread in threads] == [are_in_jobs] * 3


def test_bodies_are_read_after_the_key_and_within_the_queue(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded], Limits(queue=1), keys=["k"]) as live, ThreadPoolExecutor(1) as pool, model.shut():
        first = pool.submit(live.post, "/translate", {**REQUEST, "api_key": "k"})
        until(lambda: model.is_held)
        monkeypatch.setattr("heed.serve.service.json_body", pytest.fail)
        assert live.post("/api/translate", b"{").status == 401
        assert live.post("/api/translate", b"{", Authorization="Bearer k").status == 503
        assert live.post("/translate", b"{").status == 503
        model.open()
        assert first.result().status == 200


def test_invalid_fields_are_only_explained_to_those_with_a_key(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["k"]) as live:
        assert live.post("/translate", {**REQUEST, "format": "x"}).json["error"].startswith("Please contact")
        assert live.post("/translate", {**REQUEST, "format": "x", "api_key": "k"}).json["error"].startswith("x format")
