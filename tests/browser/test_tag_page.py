"""The page for taggers: entities marked in the text, and a tag below each word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from browser.stand_in import URL, StandIn, model

if TYPE_CHECKING:
    from playwright.sync_api import Page


def entity(text: str, word: str, type: str) -> dict[str, Any]:
    """An entity with the place of a word in a text, in characters."""
    start = text.index(word)
    return {"text": word, "type": type, "start": start, "end": start + len(word), "probability": 0.9}


def opened(page: Page, outputs: list[Any]) -> StandIn:
    """The page of a fake server with a tagger that gives these answers."""
    server = StandIn({"/api/predict": {"outputs": outputs}}).on(page.context)
    server.answers["/api/models"]["models"] = [model("names", "tagging", abilities=["annotate", "predict"])]
    page.goto(URL)
    page.get_by_label("Text").wait_for()
    return server


def test_entities_are_marked_where_they_are_in_the_text(page: Page) -> None:
    text = "😀 <b>Ann</b> met Bob in Rome"
    found = [entity(text, "Ann", "PER"), entity(text, "Bob", "PER"), entity(text, "Rome", "LOC")]
    opened(page, [[{"text": "O B-PER O", "tokens": [], "entities": found}]])
    page.get_by_label("Text").fill(text)
    page.get_by_role("button", name="Tag").click()
    marks = page.locator("mark.entity")
    marks.first.wait_for()
    assert [mark.inner_text() for mark in marks.all()] == ["AnnPER", "BobPER", "RomeLOC"]
    assert page.locator(".tagging p").inner_text() == "😀 <b>AnnPER</b> met BobPER in RomeLOC"
    hues = [mark.evaluate("mark => mark.style.getPropertyValue('--hue')") for mark in marks.all()]
    assert hues[0] == hues[1] != hues[2]
    assert marks.first.get_attribute("title") == "PER 90\u202f%"
    assert "3 entities" in page.get_by_role("status").inner_text()


def test_plain_tags_are_below_their_words(page: Page) -> None:
    opened(page, [[{"text": "DET NOUN", "tokens": ["the", "dog"], "entities": []}]])
    page.get_by_label("Text").fill("the dog")
    page.get_by_label("Text").press("Control+Enter")
    page.locator("ruby").first.wait_for()
    assert page.locator("ruby").all_inner_texts() == ["theDET", "dogNOUN"]
    assert "2 words" in page.get_by_role("status").inner_text()


def test_another_text_or_model_ends_the_work_on_the_one_before(page: Page) -> None:
    server = opened(page, [[{"text": "O", "tokens": ["a"], "entities": []}]])
    server.answers["/api/models"]["models"] *= 2
    server.answers["/api/models"]["models"][1] = model("others", "tagging", abilities=["annotate", "predict"])
    page.reload()
    text, waiting = page.get_by_label("Text"), server.hold(page.context, "/api/predict")
    for number, changed in enumerate(
        (
            lambda: (text.fill(""), text.press("Control+Enter")),
            lambda: page.get_by_role("combobox", name="Model").select_option("others"),
        )
    ):
        text.fill("a")
        with page.expect_request("**/api/predict"):
            text.press("Control+Enter")
        with page.expect_event("requestfailed"):
            changed()
        assert len(waiting) == number + 1
        assert page.get_by_role("status").inner_text() == ""


def test_each_line_is_a_sentence_and_empty_ones_are_not_sent(page: Page) -> None:
    server = opened(page, [[{"text": "O", "tokens": ["a"], "entities": []}]] * 2)
    page.get_by_label("Text").fill("a\n\n  \nb")
    with page.expect_request("**/api/predict") as request:
        page.get_by_role("button", name="Tag").click()
    assert request.value.post_data_json == {"model": "names", "inputs": ["a", "b"]}
    assert server is not None
