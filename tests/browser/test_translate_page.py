"""The page for translating: the translation, the inspection, and error messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.stand_in import SEE_EACH_TEXT, URL, StandIn, derivations, events, hypothesis, inspection, model, translated

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browser.conftest import Seen

TEXT = "ba ce di"


def opened(page: Page, stand_in: StandIn) -> Page:
    """The page of a fake server."""
    stand_in.on(page.context)
    page.goto(URL)
    page.get_by_label("Text to translate").wait_for()
    return page


def output(page: Page) -> Locator:
    """The element with the translation."""
    return page.get_by_role("region", name="translation")


def submit(page: Page, text: str = TEXT) -> None:
    """Translate a text without waiting for the pause after typing."""
    page.get_by_label("Text to translate").fill(text)
    page.keyboard.press("Control+Enter")


def translate(page: Page, text: str = TEXT) -> None:
    """Translate a text, and wait for its inspection."""
    submit(page, text)
    page.get_by_role("group", name="translation").wait_for()


def best(text: str) -> str:
    """The translation by the tiny run."""
    text_of_best: str = inspection(text, None)["alternatives"][0]["text"]
    return text_of_best


def test_typed_text_is_translated_after_a_pause(fresh_page: Page) -> None:
    server, page = StandIn(), fresh_page
    page.clock.install()
    opened(page, server)
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.keyboard.type(TEXT)
    page.clock.run_for(599)
    assert page.locator(".output.waiting").count() == 0
    assert server.bodies("/api/translate") == []
    page.clock.run_for(1)
    page.get_by_role("group", name="translation").wait_for()
    assert output(page).inner_text() == best(TEXT)
    [body] = server.bodies("/api/translate")
    assert (body["text"], body["source"], body["target"], body["stream"]) == (TEXT, "auto", "de", True)
    assert "Aaish (97" in page.locator("#facts").inner_text()
    assert "confidence 80" in page.locator("#facts").inner_text()
    assert page.get_by_role("status").first.text_content() == "Translated: 1 sentence."


def test_partial_translations_are_shown(page: Page) -> None:
    texts = ["kan", "kan ler", "kan ler mis"]
    partials = [{"sentence": 0, "source": TEXT, "text": text} for text in texts]
    server = StandIn({"/api/translate": lambda body: events(partials, translated(body))})
    opened(page, server)
    page.evaluate(SEE_EACH_TEXT)
    translate(page)
    assert [text for text in page.evaluate("texts") if text in texts][:3] == texts


def test_each_sentence_can_be_inspected(page: Page) -> None:
    server = StandIn()
    translate(opened(page, server), "ba ce\nfo gu")
    assert output(page).inner_text() == f"{best('ba ce')}\n{best('fo gu')}"
    sentences = output(page).get_by_role("button")
    assert sentences.count() == 2
    assert page.get_by_role("group", name="source").get_by_role("button").first.inner_text() == "ba"
    sentences.nth(1).click()
    page.get_by_role("group", name="source").get_by_role("button", name="fo", exact=True).wait_for()
    assert sentences.nth(1).get_attribute("aria-pressed") == "true"
    sentences.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="source").get_by_role("button", name="ba", exact=True).wait_for()


def test_an_alternative_can_replace_the_translation(page: Page) -> None:
    server = StandIn()
    translate(opened(page, server))
    second = inspection(TEXT, None)["alternatives"][1]["text"]
    page.get_by_role("tab", name="Alternatives").click()
    page.get_by_role("radio").nth(1).check()
    page.wait_for_function("text => document.querySelector('.output').textContent === text", arg=second)
    page.wait_for_function("() => !document.querySelector('.busy')")
    assert server.bodies("/api/inspect")[-1]["target"] == second
    page.get_by_role("tab", name="Alternatives").click()
    assert page.get_by_role("radio").nth(1).is_checked()


@pytest.mark.parametrize("keep", ["", "ACME"])
def test_derivations_are_shown_as_tables(page: Page, keep: str) -> None:
    shown = "different" if keep else best(TEXT)
    server = StandIn({"/api/inspect": derivations(shown)})
    server.answers["/api/models"]["models"] = [model("toy", abilities=["derive", "translate"])]
    opened(page, server)
    page.get_by_text("Options").click()
    page.get_by_label("Do not translate").fill(keep)
    submit(page)
    table = page.get_by_role("table").first
    table.wait_for()
    [body] = server.bodies("/api/inspect")
    assert (body["source"], body["target"]) == (TEXT, None)
    differs = page.get_by_text("The translation above is not among these derivations.")
    assert differs.count() == (1 if keep else 0)
    if keep:
        return
    assert table.get_by_role("columnheader").all_inner_texts() == [
        "source", "target", "score", "words", "language model",
    ]  # fmt: skip
    rows = [row.get_by_role("cell").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert rows == [
        ["ba", best(TEXT), "−1.00", "2.00", "−2.00"],
        ["ce", "(dropped) rule", "0.25", "0.50", ""],
        ["", "(end)", "−0.50", "", "−0.50"],
    ]
    assert page.get_by_text("kan score −2.00").is_visible()


def test_choosing_another_word_translates_again_from_there(page: Page) -> None:
    server = StandIn()
    opened(page, server)
    page.get_by_text("Options").click()
    page.get_by_label("Do not translate").fill("ACME")
    translate(page)
    page.get_by_role("tab", name="Next word").click()
    page.get_by_role("group", name="translation").get_by_role("button").nth(1).click()
    choice = page.get_by_role("tabpanel", name="Next word").get_by_role("table").first.get_by_role("button").nth(1)
    word = choice.inner_text()
    choice.click()
    page.wait_for_function("() => document.querySelector('.output').textContent.endsWith('steered')")
    first = inspection(TEXT, None)["target"][0]["text"]
    body = server.bodies("/api/translate")[-1]
    assert (body["prefix"].split(), body["keep"]) == ([first.strip(), word], ["ACME"])


def test_the_languages_offered_are_those_of_the_server(page: Page) -> None:
    server = StandIn()
    opened(page, server)
    assert page.get_by_role("combobox", name="From").locator("option").all_inner_texts() == [
        "Detect language",
        "Aaish",
        "Beeish",
    ]
    page.get_by_role("combobox", name="From").select_option("de")
    assert page.get_by_role("combobox", name="To").locator("option").all_inner_texts() == ["Aaish"]
    page.get_by_label("Swap the languages").click()
    assert page.get_by_role("combobox", name="From").input_value() == "en"
    assert page.get_by_role("combobox", name="To").input_value() == "de"
    assert page.get_by_label("Text to translate").get_attribute("lang") == "en"
    assert output(page).get_attribute("lang") == "de"


def test_a_model_can_be_chosen_if_several_translate_in_a_direction(page: Page) -> None:
    server = StandIn()
    server.answers["/api/models"]["models"] = [model("toy"), model("other")]
    opened(page, server)
    page.get_by_role("combobox", name="From").select_option("en")
    page.get_by_role("combobox", name="Model").select_option("other")
    translate(page)
    assert server.bodies("/api/translate")[-1]["model"] == "other"


def test_a_model_of_several_languages_is_offered_in_each_of_its_directions(page: Page) -> None:
    server = StandIn()
    served = server.answers["/api/models"]
    cc = {"code": "cc", "name": "Ceeish", "direction": "ltr"}
    [aa, bb] = served["languages"]
    served["languages"] = [{**aa, "targets": ["de", "cc"]}, {**bb, "targets": ["cc"]}, {**cc, "targets": []}]
    both = model("both")
    both["directions"].append({"source": both["target"], "target": cc, "tag": "2cc"})
    served["models"] = [model("toy"), both, {**both, "name": "other"}]
    server.answers["/api/translate"] = lambda body: {**translated(body), "target": "cc", "path": ["toy", "both"]}
    opened(page, server)
    page.get_by_role("combobox", name="From").select_option("de")
    models = page.get_by_role("combobox", name="Model").locator("option")
    assert models.all_inner_texts() == ["automatic", "both", "other"]
    translate(page)
    [body] = server.bodies("/api/inspect")
    assert (body["source_language"], body["target_language"]) == ("de", "cc")


def test_options_are_sent(page: Page) -> None:
    server = StandIn()
    opened(page, server)
    page.get_by_text("Options").click()
    page.get_by_label("Beam size").fill("4")
    page.get_by_label("Do not translate").fill("ACME\n\nX 1 ")
    page.get_by_label("Glossary").fill("ba = kan\nnonsense\nce=")
    translate(page)
    body = server.bodies("/api/translate")[-1]
    assert (body["beam_size"], body["keep"]) == (4, ["ACME", "X 1"])
    assert body["glossary"] == [{"source": "ba", "target": "kan"}]


def test_a_line_of_the_glossary_is_read_or_named(page: Page) -> None:
    server = StandIn()
    opened(page, server)
    page.get_by_text("Options").click()
    glossary, said = page.get_by_label("Glossary"), page.locator("details.options").get_by_role("alert")
    glossary.fill("ba = kan = x\nce\tler=\nnonsense\ndi=\n\tfo")
    translate(page)
    terms = [{"source": "ba", "target": "kan = x"}, {"source": "ce", "target": "ler="}]
    assert server.bodies("/api/translate")[-1]["glossary"] == terms
    fault = "Not used in the glossary, as it is not like “dog = Hund”: “nonsense”, “di=”, “fo”"
    assert said.first.inner_text() == fault
    glossary.fill("ba = kan")
    translate(page, "ce")
    assert said.first.inner_text() == ""


ERRORS: list[tuple[Any, str]] = [
    ((503, {"error": {"message": "The queue is full.", "code": "overloaded"}}), "The queue is full. Try again in 7 s."),
    ((429, {"error": "Slowdown: 80 per 1 minute"}), "Slowdown: 80 per 1 minute"),
    ((500, "not JSON"), "The server responded with status 500."),
    (None, "The server does not respond."),
    ('event: error\ndata: {"error": {"message": "Timed out."}}\n\n', "Timed out."),
    ('event: partial\ndata: {"sentence": 0, "text": "kan"}\n\n', "response is incomplete"),
]


@pytest.mark.parametrize(("answer", "message"), ERRORS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_failure_is_shown_and_can_be_retried(page: Page, seen: Seen, answer: Any, message: str) -> None:
    seen.expected = ("Failed to load resource",)
    server = StandIn({"/api/translate": answer})
    submit(opened(page, server))
    page.get_by_role("button", name="Try again").wait_for()
    assert message in page.get_by_role("alert").first.inner_text()
    assert output(page).inner_text() == ""
    server.answers["/api/translate"] = translated
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("group", name="translation").wait_for()
    assert output(page).inner_text() == best(TEXT)
    assert page.get_by_role("alert").first.inner_text() == ""


def test_a_failed_inspection_leaves_the_translation(page: Page, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    server = StandIn({"/api/inspect": (504, {"error": {"message": "It took too long.", "code": "timeout"}})})
    submit(opened(page, server))
    page.get_by_text("It took too long.").wait_for()
    assert output(page).inner_text() == best(TEXT)


def test_a_text_that_is_too_long_is_not_sent(page: Page) -> None:
    server = StandIn()
    opened(page, server)
    page.get_by_label("Text to translate").fill("ba " * 200)
    assert page.get_by_text("600 of 500 characters").is_visible()
    page.get_by_role("button", name="Translate").click()
    assert "the limit is 500" in page.get_by_role("alert").first.inner_text()
    assert server.bodies("/api/translate") == []


def test_an_empty_text_clears_the_translation_and_its_inspection(page: Page) -> None:
    server = StandIn()
    translate(opened(page, server))
    page.get_by_label("Text to translate").fill("")
    page.wait_for_function("() => document.querySelector('.output').textContent === ''")
    assert page.get_by_role("group", name="translation").count() == 0


def test_a_server_that_does_not_respond_is_reported(page: Page, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    server = StandIn({"/api/models": None}).on(page.context)
    page.goto(URL)
    page.get_by_text("The server does not respond.").wait_for()
    server.answers["/api/models"] = StandIn().answers["/api/models"]
    page.get_by_role("button", name="Try again").click()
    page.get_by_label("Text to translate").wait_for()


def test_a_required_key_is_requested_and_sent(fresh_page: Page, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    page, keys = fresh_page, list[str | None]()
    models = StandIn().answers["/api/models"]
    server = StandIn({"/frontend/settings": {"keyRequired": True}}).on(page.context)

    def answer(body: object) -> Any:
        return models if keys[-1] == "Bearer open" else (401, {"error": {"message": "Invalid API key"}})

    server.answers["/api/models"] = answer
    page.on("request", lambda request: keys.append(request.headers.get("authorization")))
    page.goto(URL)
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("Invalid API key").wait_for()
    page.get_by_label("API key").fill("öpen")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("An API key has only ASCII characters.").wait_for()
    page.get_by_label("API key").fill("open")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Text to translate").wait_for()
    assert page.evaluate("() => localStorage.length + sessionStorage.length") == 0


def test_the_report_of_a_model_is_rendered(page: Page) -> None:
    opened(page, StandIn())
    page.get_by_role("button", name="About this model").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Translation en → de: toy").wait_for()
    assert dialog.get_by_role("cell", name="12.3").is_visible()
    assert "a *small* one with code and a | bar." in dialog.get_by_role("listitem").first.inner_text()
    assert dialog.get_by_role("list").nth(1).inner_text() == "of two lists"
    assert dialog.get_by_role("heading").all_inner_texts() == ["Translation en → de: toy", "Scores", "On news"]
    assert dialog.get_by_text("what the doctor found").is_visible()
    assert dialog.get_by_text("Training").count() == 0  # it has only a picture
    page.keyboard.press("Escape")
    assert dialog.count() == 0


def test_models_on_the_way_and_failed_output_checks_are_named(page: Page) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        translation = translated(body)
        translation["path"] = ["toy-1", "toy"]
        translation["sentences"][0]["hypotheses"] = [{**hypothesis(translation["text"]), "flags": ["loop"]}]
        return translation

    translate(opened(page, StandIn({"/api/translate": answer})))
    facts = page.locator("#facts").inner_text()
    assert "via toy-1, toy" in facts
    assert "doubtful sentence 1: loop" in facts


def test_a_doubtful_sentence_is_marked_and_can_be_opened(page: Page) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        translation = translated(body)
        translation["sentences"][1]["hypotheses"][0]["flags"] = ["loop"]
        return translation

    translate(opened(page, StandIn({"/api/translate": answer})), "ba ce\nfo gu")
    doubted = output(page).locator(".doubted")
    assert doubted.count() == 1
    assert doubted.inner_text() == best("fo gu")
    page.get_by_role("button", name="doubtful sentence 2: loop").click()
    page.get_by_role("group", name="source").get_by_role("button", name="fo", exact=True).wait_for()
    assert doubted.get_attribute("aria-pressed") == "true"


WIDE = [("Attention", "ba ce di fo gu ha ji ko ba ce di fo gu ha"), ("Beam", "fo gu ha ji ko lu me")]
"""A text with many source words, and one with many steps of the search."""


@pytest.mark.parametrize(("view", "text"), WIDE)
def test_a_wide_view_fades_where_it_can_be_scrolled(page: Page, view: str, text: str) -> None:
    page.set_viewport_size({"width": 320, "height": 900})
    translate(opened(page, StandIn()), text)
    page.get_by_role("tab", name=view).click()
    frame = page.get_by_role("tabpanel", name=view).locator(".frame")
    fades = "([frame, width]) => frame.style.getPropertyValue('--right') === width"
    page.wait_for_function(fades, arg=[frame.element_handle(), "2.5rem"])
    assert frame.evaluate("frame => getComputedStyle(frame).maskImage") != "none"
    frame.evaluate("frame => { frame.scrollLeft = frame.scrollWidth; }")
    page.wait_for_function(fades, arg=[frame.element_handle(), "0px"])


def test_on_a_wide_screen_the_views_are_next_to_the_sentence(page: Page) -> None:
    page.set_viewport_size({"width": 1920, "height": 1000})
    translate(opened(page, StandIn()))
    sentence, views = page.locator(".sentence").bounding_box(), page.locator(".inspection .tabs").bounding_box()
    assert sentence is not None and views is not None
    assert views["x"] > sentence["x"] + sentence["width"] and views["y"] == pytest.approx(sentence["y"], abs=30)
    assert views["x"] + views["width"] > 0.9 * 1920


def test_a_request_that_cannot_succeed_later_has_no_retry(page: Page, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    refused = (400, {"error": {"message": "A prefix requires one sentence.", "code": "bad_request"}})
    server = StandIn({"/api/translate": refused})
    submit(opened(page, server))
    page.get_by_text("A prefix requires one sentence.").wait_for()
    assert page.get_by_role("button", name="Try again").count() == 0
    server.answers["/api/translate"] = (
        'event: error\ndata: {"error": {"message": "Too long.", "code": "bad_request"}}\n\n'
    )
    page.get_by_role("button", name="Translate", exact=True).click()
    page.get_by_text("Too long.").wait_for()
    assert page.get_by_role("button", name="Try again").count() == 0


def test_after_loading_the_views_need_no_network(page: Page) -> None:
    translate(opened(page, StandIn()))
    page.context.set_offline(True)
    for name in ("Next word", "Alternatives", "Beam", "Attention"):
        page.get_by_role("tab", name=name).click()
        assert page.get_by_role("tabpanel", name=name).is_visible()
    assert json.loads(page.evaluate("() => JSON.stringify(performance.getEntriesByType('resource').map(e => e.name))"))
