"""The page for questions: the answer is marked in the text, and others can be chosen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from browser.stand_in import URL, StandIn, model

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "😀 <b>Ann</b> lives in Oslo,\nnot in Rome."


def answer(word: str, probability: float) -> dict[str, Any]:
    """An answer with its place in the text, in characters; empty for none."""
    start = TEXT.index(word) if word else None
    end = None if start is None else start + len(word)
    return {"text": word, "probability": probability, "start": start, "end": end}


def opened(page: Page, answers: list[Any]) -> None:
    """The page of a fake server that gives these answers."""
    server = StandIn({"/api/predict": {"outputs": [answers]}}).on(page.context)
    server.answers["/api/models"]["models"] = [model("qa", "span", abilities=["extract", "predict"])]
    page.goto(URL)
    page.get_by_label("Question").fill(" Where? ")
    page.get_by_label("Text").fill(TEXT)


def test_the_answer_is_marked_where_it_is_in_the_text(page: Page) -> None:
    opened(page, [answer("Oslo", 0.8), answer("Rome", 0.15), answer("", 0.05)])
    with page.expect_request("**/api/predict") as request:
        page.get_by_role("button", name="Find the answer").click()
    sent = request.value.post_data_json
    assert sent["model"] == "qa" and sent["top"] == 5
    assert json.loads(sent["inputs"][0]) == {"question": "Where?", "context": TEXT}
    mark = page.locator(".answered mark")
    mark.wait_for()
    assert mark.inner_text() == "Oslo" and mark.get_attribute("title") == "80\u202f%"
    assert page.locator(".answered").inner_text() == TEXT
    choices = page.locator("button.choice")
    names = [each.locator(".answer-name").inner_text() for each in choices.all()]
    assert names == ["Oslo", "Rome", "no answer in this text"]
    assert [each.get_attribute("aria-pressed") for each in choices.all()] == ["true", "false", "false"]


def test_another_answer_can_be_chosen(page: Page) -> None:
    opened(page, [answer("Oslo", 0.8), answer("Rome", 0.15), answer("", 0.05)])
    page.get_by_label("Question").press("Enter")
    page.get_by_role("button", name="Rome").click()
    assert page.locator(".answered mark").inner_text() == "Rome"
    page.get_by_role("button", name="no answer in this text").click()
    assert page.locator(".answered mark").count() == 0
    assert page.locator(".answered").inner_text() == TEXT


def test_nothing_is_sent_without_a_question(page: Page) -> None:
    opened(page, [answer("Oslo", 1.0)])
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.get_by_label("Question").fill(" ")
    page.get_by_role("button", name="Find the answer").click()
    assert not [url for url in sent if "predict" in url]
    assert page.locator("button.choice").count() == 0
