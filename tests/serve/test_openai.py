"""OpenAI's completions API, as called by its client."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from openai import OpenAI
from serving import Live

from heed.decoding.options import SearchOptions
from heed.serve.engine.probabilities import spell
from heed.tasks.predictor import Predictor

PROMPT = "the ba"


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[OpenAI]:
    """The official client."""
    with OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def spelled(logprobs: Any) -> str:
    """The text of the tokens."""
    return b"".join(
        bytes.fromhex(token.removeprefix("bytes:").replace("\\x", "")) if token.startswith("bytes:") else token.encode()
        for token in logprobs.tokens
    ).decode()


def test_models_are_listed_and_retrieved(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["en-de", "de-fr", "lm"]
    assert client.models.retrieve("lm").owned_by == "heed"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("fr-de")
    assert error.value.code == "model_not_found"


def test_a_completion_equals_that_without_a_server(client: OpenAI, loaded: list[Predictor]) -> None:
    completion = client.completions.create(model="lm", prompt=PROMPT, max_tokens=9, temperature=0.7, top_p=0.9, seed=5)
    options = SearchOptions(
        sample=True, beam_size=1, temperature=0.7, top_p=0.9, seed=5, max_tokens=9, length_norm="mean", length_penalty=1
    )
    [expected] = loaded[2].continuations(PROMPT, options)
    [choice] = completion.choices
    assert choice.text == expected.text
    assert choice.finish_reason == ("stop" if expected.finished else "length")
    assert completion.usage is not None
    assert completion.usage.completion_tokens == len(expected.ids)
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert completion.system_fingerprint is not None
    assert completion.system_fingerprint.startswith("heed-")


def test_temperature_0_is_greedy(client: OpenAI, loaded: list[Predictor]) -> None:
    completion = client.completions.create(model="lm", prompt=PROMPT, temperature=0, max_tokens=30)
    assert completion.choices[0].text == loaded[2].generate(PROMPT, SearchOptions(beam_size=1, max_tokens=30))[0]


def test_several_prompts_with_several_choices_each(client: OpenAI) -> None:
    completion = client.completions.create(model="lm", prompt=[PROMPT, "the"], n=3, max_tokens=5, seed=2)
    assert [choice.index for choice in completion.choices] == list(range(6))
    again = client.completions.create(model="lm", prompt=[PROMPT, "the"], n=3, max_tokens=5, seed=2)
    assert [choice.text for choice in again.choices] == [choice.text for choice in completion.choices]
    assert len({choice.text for choice in completion.choices}) > 1
    other = client.completions.create(model="lm", prompt=PROMPT, n=3, max_tokens=5)
    another = client.completions.create(model="lm", prompt=PROMPT, n=3, max_tokens=5)
    assert [c.text for c in other.choices] != [c.text for c in another.choices], "without a seed each sample is new"


def test_a_prompt_of_token_ids(client: OpenAI, loaded: list[Predictor]) -> None:
    [ids] = loaded[2].run.tokenizers["tgt"].encode([PROMPT])
    by_text = client.completions.create(model="lm", prompt=PROMPT, seed=3, echo=True)
    for prompt in (ids, [ids]):
        by_ids = client.completions.create(model="lm", prompt=prompt, seed=3, echo=True)
        assert by_ids.choices[0].text == by_text.choices[0].text


def test_echo_scores_a_text(client: OpenAI, loaded: list[Predictor]) -> None:
    """Evaluation harnesses score texts in this way."""
    text = "the ba sees the ce – für"
    [choice] = client.completions.create(model="lm", prompt=text, max_tokens=0, echo=True, logprobs=2).choices
    logprobs = choice.logprobs
    assert choice.text == text == spelled(logprobs)
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert logprobs.token_logprobs is not None
    assert logprobs.token_logprobs[0] is None
    [expected] = loaded[2].score([text])
    assert loaded[2].score(text) == [expected], "a string is one text"
    assert logprobs.token_logprobs[1:] == pytest.approx(list(expected.log_probs[1:-1]), abs=1e-5)
    assert logprobs.top_logprobs is not None
    for token, value, top in [*zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, strict=True)][1:]:
        assert top[token] == value
    assert {len(top) for top in logprobs.top_logprobs[1:]} == {2, 3}, "the token of the text, too"
    assert logprobs.text_offset is not None
    for token, offset in zip(logprobs.tokens, logprobs.text_offset, strict=True):
        assert token.startswith("bytes:") or text[offset : offset + len(token)] == token


def test_a_token_after_half_a_character_begins_after_its_replacement() -> None:
    form: Any = SimpleNamespace(token_after_eos=None, token_bytes=[b"\xd1", b" the", b"\xd1\x88"])
    tokens, offsets = spell(form, [0, 1, 2, 0, 0, 1])
    assert (tokens[:2], offsets) == (["bytes:\\xd1", " the"], [0, 1, 5, 6, 7, 8])


def test_log_probabilities_of_a_completion_are_those_of_its_tokens(client: OpenAI) -> None:
    [choice] = client.completions.create(model="lm", prompt=PROMPT, max_tokens=6, logprobs=5, seed=4).choices
    logprobs = choice.logprobs
    assert logprobs is not None
    assert spelled(logprobs) == choice.text
    assert logprobs.token_logprobs is not None
    assert logprobs.top_logprobs is not None
    for value, top in zip(logprobs.token_logprobs, logprobs.top_logprobs, strict=True):
        assert value is not None
        assert [*top.values()][:5] == sorted(top.values(), reverse=True)[:5]
        assert sum(map(math.exp, top.values())) <= 1 + 1e-6
        assert value <= max([*top.values()][:5]) + 1e-6


def test_a_completion_ends_before_a_stop_text(client: OpenAI) -> None:
    free = client.completions.create(model="lm", prompt="the", max_tokens=12, temperature=0)
    stop = free.choices[0].text[4:7]
    assert stop.strip()
    for stops in (stop, ["never", stop]):
        [choice] = client.completions.create(
            model="lm", prompt="the", max_tokens=12, temperature=0, stop=stops, logprobs=1
        ).choices
        assert choice.text == free.choices[0].text.split(stop)[0]
        assert choice.finish_reason == "stop"


def test_best_of_chooses_among_several(client: OpenAI) -> None:
    completion = client.completions.create(model="lm", prompt="the", n=1, best_of=5, max_tokens=5, logprobs=1, seed=6)
    all_five = client.completions.create(model="lm", prompt="the", n=5, max_tokens=5, logprobs=1, seed=6)
    assert completion.usage is not None
    assert all_five.usage is not None
    assert completion.usage.completion_tokens == all_five.usage.completion_tokens
    assert completion.choices[0].text in [choice.text for choice in all_five.choices]


def test_logit_bias_and_penalties_change_the_completion(client: OpenAI, loaded: list[Predictor]) -> None:
    body: dict[str, Any] = {"model": "lm", "prompt": "the", "temperature": 0, "max_tokens": 20}
    free = client.completions.create(**body).choices[0].text
    ids = loaded[2].translator.generate(["the"], SearchOptions(beam_size=1, max_tokens=20))[0][0].ids
    assert client.completions.create(**body, logit_bias={str(ids[0]): -100}).choices[0].text != free
    assert client.completions.create(**body, presence_penalty=2, frequency_penalty=2).choices[0].text != free


def test_a_stream_has_the_same_texts_in_pieces(client: OpenAI) -> None:
    body: dict[str, Any] = {"model": "lm", "prompt": [PROMPT, "the"], "max_tokens": 12, "seed": 8, "n": 2}
    whole = client.completions.create(**body, echo=True)
    texts, ends, usage = [""] * 4, dict[int, str](), None
    for chunk in client.completions.create(**body, echo=True, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            if choice.finish_reason is not None:
                ends[choice.index] = choice.finish_reason
    assert texts == [choice.text for choice in whole.choices]
    assert [ends[index] for index in range(4)] == [choice.finish_reason for choice in whole.choices]
    assert usage == whole.usage


def test_streams_ask_proxies_to_pass_each_event_on(live: Live) -> None:
    for path, body in (
        ("/v1/completions", {"model": "lm", "prompt": "the", "max_tokens": 3}),
        ("/api/generate", {"prompt": "the", "max_tokens": 3}),
        ("/api/translate", {"text": "ba ce"}),
    ):
        headers = live.post(path, {**body, "stream": True}).headers
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no"), path


def test_a_stream_consists_of_events_and_ends_with_done(live: Live) -> None:
    answer = live.post("/v1/completions", {"model": "lm", "prompt": "the", "max_tokens": 3, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = answer.body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert json.loads(events[0].removeprefix("data: "))["object"] == "text_completion"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"logprobs": 99}, "logprobs"),
        ({"prompt": [[-1] * 1000] * 100}, "prompt"),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"prompt": ["x"] * 10_000}, "prompt"),
        ({"prompt": [10**6]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": "x" * 20_000}, "prompt"),
        ({"prompt": ["x" * 6_000] * 2}, "prompt"),
        ({"prompt": [5] * 1_100, "max_tokens": 0, "echo": True, "logprobs": 1}, "prompt"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"suffix": "x"}, "suffix"),
        ({"temperature": "hot"}, "temperature"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"1000000": 1}}, "logit_bias"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
    ],
)
def test_an_invalid_request_names_the_parameter(client: OpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        client.completions.create(**{"model": "lm", "prompt": PROMPT, **body})
    assert error.value.type == "invalid_request_error"
    assert error.value.param == param


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as error:
        client.completions.create(model="gpt-9", prompt=PROMPT)
    assert (error.value.code, error.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="en-de", prompt=PROMPT)


def test_an_unknown_route_is_an_error_in_openais_form(live: Live) -> None:
    answer = live.post("/v1/chat/completions", {"model": "lm"})
    assert answer.status == 404
    assert answer.json["error"].keys() == {"message", "type", "param", "code"}


def test_chats_are_refused_with_the_route_of_completions(live: Live) -> None:
    answer = live.post("/v1/chat/completions", {"model": "lm", "messages": [{"role": "user", "content": "ba"}]})
    assert answer.status == 404
    assert "use /v1/completions" in answer.json["error"]["message"]
