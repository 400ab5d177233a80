"""The page for classifiers: labels with their probabilities as bars, and a number without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from browser.stand_in import URL, StandIn, model

if TYPE_CHECKING:
    from playwright.sync_api import Page


def classified(page: Page, answers: list[Any]) -> None:
    """The page of a fake server whose classifier gives these answers to a text."""
    words = [{"text": "good", "weight": 2.0}, {"text": "film", "weight": -0.5}]
    explanations = [{"answer": answers[0]["text"], "words": words, "ngrams": []}]
    server = StandIn({"/api/predict": {"outputs": [answers], "explanations": explanations}}).on(page.context)
    server.answers["/api/models"]["models"] = [model("topics", "classification", abilities=["explain", "predict"])]
    page.goto(URL)
    page.get_by_label("Text to classify").fill("good film")
    page.get_by_role("button", name="Classify").click()
    page.locator(".basis .weighed").first.wait_for()


def test_labels_have_bars_as_long_as_their_probabilities(page: Page) -> None:
    classified(page, [{"text": "<b>pos</b>", "probability": 0.75}, {"text": "neg", "probability": 0.25}])
    assert page.locator(".answer-name").all_inner_texts() == ["<b>pos</b>", "neg"]
    assert page.locator(".answer-share").all_inner_texts() == ["75\u202f%", "25\u202f%"]
    first, second = (each.bounding_box() for each in page.locator(".answer .fill").all())
    assert first is not None and second is not None
    assert abs(first["width"] - 3 * second["width"]) < 2


def test_a_number_has_no_bar(page: Page) -> None:
    classified(page, [{"text": "3.7", "probability": None}])
    assert page.locator(".answer-number").inner_text() == "3.7"
    assert page.locator(".track").count() == 0
