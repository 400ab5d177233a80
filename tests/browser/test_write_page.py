"""The page for generating text: continuations, likely next words, and the inspection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from browser.stand_in import URL, StandIn, events, model

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response


def opened(page: Page, more: dict[str, object] | None = None, **of_model: object) -> StandIn:
    """The page of a fake server with a language model."""
    server = StandIn(more or {}).on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model", **of_model)]
    page.goto(URL)
    page.get_by_label("Prompt").wait_for()
    return server


@contextmanager
def next_words_requested(page: Page, prefix: str) -> Iterator[None]:
    """The block makes the page request the next words of a prefix; afterwards, wait until they are shown."""

    def matches(response: Response) -> bool:
        return response.url.endswith("/api/next") and response.request.post_data_json["prefix"] == prefix

    table = page.locator("table.choices")
    table.evaluate("table => { table.dataset.old = ''; }")
    with page.expect_response(matches):
        yield
    page.locator("table.choices:not([data-old])").wait_for()


def test_next_tokens_are_shown_and_can_be_appended(page: Page) -> None:
    opened(page)
    with next_words_requested(page, "the"):
        page.get_by_label("Prompt").fill("the")
    rows = page.locator("table.choices tbody tr")
    assert rows.count() == 2
    assert "90" in rows.first.inner_text()
    assert rows.nth(1).get_by_role("button").count() == 0  # the end cannot be appended
    with next_words_requested(page, "the ba"):
        rows.first.get_by_role("button").click()
    assert page.get_by_label("Prompt").input_value() == "the ba"


def test_next_words_cannot_be_chosen_while_typing(fresh_page: Page) -> None:
    page = fresh_page
    page.clock.install()
    opened(page)
    page.locator("table.choices").wait_for()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.get_by_label("Prompt").fill("the dog")
    assert page.locator("div[inert] > table.choices, div[inert] table.choices").count() == 1
    with next_words_requested(page, "the dog"):
        page.get_by_role("button", name="Write").click()
    assert page.locator("div[inert]").count() == 0
    page.locator("table.choices").get_by_role("button").first.click()
    assert page.get_by_label("Prompt").input_value() == "the dog ba"


def test_whole_words_are_shown_if_the_server_sends_them(page: Page) -> None:
    words = [{"text": " banana", "probability": 0.5}, {"text": "", "probability": 0.2, "end": True}]
    opened(page, {"/api/next": {"tokens": [], "words": words}})
    rows = page.locator("table.choices tbody th")
    rows.first.wait_for()
    assert rows.all_inner_texts() == ["banana", "end"]


def test_words_without_spaces_are_separated_by_spaces(page: Page) -> None:
    tokens = [{"id": 5, "text": " dog", "log_prob": -0.1, "probability": 0.9}]
    spelled = [{"text": text, "log_prob": -1.0} for text in ("dog ", "eats ", "")]
    continuation = {"text": " dog eats", "log_prob": -1.0, "finished": True, "tokens": spelled}
    opened(page, {"/api/next": {"tokens": tokens}, "/api/generate": {"continuations": [continuation], "seed": 1}})
    with next_words_requested(page, "the"):
        page.get_by_label("Prompt").fill("the")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 1").wait_for()
    assert page.locator(".continuation").inner_text().rstrip() == "the dog eats"
    assert page.locator(".piece-of").count() == 3
    page.locator("table.choices").get_by_role("button").click()
    assert page.get_by_label("Prompt").input_value() == "the dog"


def test_the_sampling_options_are_sent(page: Page) -> None:
    server = opened(page)
    page.get_by_label("Prompt").fill("the ba")
    for label, value in (
        ("Temperature", "0.5"),
        ("Top k", "9"),
        ("Top p", "0.9"),
        ("Max tokens", "12"),
        ("Samples", "2"),
        ("Seed", "3"),
    ):
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    [body] = server.bodies("/api/generate")
    assert body == {
        "model": "lm", "prompt": "the ba", "temperature": 0.5, "top_k": 9, "top_p": 0.9, "max_tokens": 12, "samples": 2,
        "seed": 3, "stop": [], "stream": True, "pieces": True,
    }  # fmt: skip
    assert page.locator(".continuation").all_inner_texts() == ["the ba sees 0", "the ba sees 1"]
    assert page.get_by_text("2 tokens · 47").first.is_visible()


def test_the_sampling_options_start_with_the_defaults_of_the_recipe(page: Page) -> None:
    drawing = {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "max_tokens": 30}
    server = opened(page, drawing=drawing)
    assert page.get_by_label("Temperature").input_value() == "0.7"
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    [body] = server.bodies("/api/generate")
    assert body.items() >= drawing.items()


def test_partial_texts_are_shown(page: Page) -> None:
    done = {
        "continuations": [
            {"text": " end", "log_prob": -1.0, "finished": True, "tokens": [{"text": " end", "log_prob": -1.0}]}
        ],
        "seed": 1,
    }
    opened(page, {"/api/generate": events([{"index": 0, "text": " e"}, {"index": 0, "text": "n"}], done, "piece")})
    page.evaluate(
        """() => { window.texts = []; const list = document.querySelector(".continuations");
        const note = () => { if (list.textContent) texts.push(list.firstElementChild.firstElementChild.textContent); };
        new MutationObserver(note).observe(list, {childList: true, subtree: true}); }"""
    )
    page.keyboard.press("Control+Enter")
    page.get_by_text("Seed 1").wait_for()
    assert page.evaluate("texts.at(-1)") == " end"
    assert " en" in page.evaluate("texts")


def test_a_text_can_be_inspected(page: Page) -> None:
    server = opened(page)
    page.get_by_label("Prompt").fill("the ba sees")
    page.get_by_role("button", name="Inspect this text").click()
    page.get_by_role("group", name="text").wait_for()
    assert server.bodies("/api/inspect") == [{"model": "lm", "text": "the ba sees"}]


def test_translating_and_writing_are_two_tabs(page: Page) -> None:
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("toy"), model("lm", "language-model")]
    page.goto(URL)
    page.get_by_role("tab", name="Write").click()
    assert page.get_by_label("Prompt").is_visible()
    assert "lm" in page.locator("#tagline").inner_text()
    page.get_by_role("tab", name="Translate").click()
    assert page.get_by_label("Text to translate").is_visible()
    assert "toy" in page.locator("#tagline").inner_text()
