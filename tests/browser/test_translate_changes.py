"""The page for translating while texts, languages, words and corrections change: nothing gets lost or mixed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from browser.stand_in import StandIn, inspection, model
from browser.test_translate_page import TEXT, best, opened, output, submit, translate

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_swapping_twice_brings_the_text_back(page: Page) -> None:
    opened(page, StandIn())
    page.get_by_role("combobox", name="From").select_option("en")
    translate(page)
    swap, source = page.get_by_label("Swap the languages"), page.get_by_label("Text to translate")
    swap.evaluate("swap => { swap.click(); swap.click(); }")
    assert (source.input_value(), source.get_attribute("lang")) == (TEXT, "en")
    page.get_by_role("group", name="translation").wait_for()
    swap.click()
    assert (source.input_value(), source.get_attribute("lang")) == (best(TEXT), "de")


def test_a_text_that_was_not_translated_yet_stays_when_the_languages_are_swapped(page: Page) -> None:
    opened(page, StandIn())
    page.get_by_role("combobox", name="From").select_option("en")
    translate(page)
    source = page.get_by_label("Text to translate")
    source.evaluate(
        "(area, swap) => { area.value = 'fo'; swap.click(); }", page.get_by_label("Swap the languages").element_handle()
    )
    assert source.input_value() == "fo"


def test_the_inspection_of_the_text_before_cannot_be_used_during_a_translation(page: Page) -> None:
    server = StandIn()
    translate(opened(page, server))
    waiting = server.hold(page.context, "/api/translate")
    with page.expect_request("**/api/translate"):
        submit(page, "fo gu")
    inside = page.locator("details.inside")
    assert inside.evaluate("inside => inside.inert")
    waiting[0].fallback()
    page.wait_for_function("text => document.querySelector('.output').textContent === text", arg=best("fo gu"))
    assert not inside.evaluate("inside => inside.inert")


def test_a_language_and_a_model_that_are_chosen_keep_the_focus(page: Page) -> None:
    server = StandIn()
    server.answers["/api/models"]["models"] = [model("toy"), model("other")]
    opened(page, server)
    for name, value in (("From", "en"), ("Model", "toy")):
        field = page.get_by_role("combobox", name=name)
        field.focus()
        page.keyboard.press("ArrowDown")
        assert field.input_value() == value
        assert field.evaluate("field => field === document.activeElement")


def test_the_focus_stays_where_an_alternative_or_a_word_is_chosen(page: Page) -> None:
    translate(opened(page, StandIn()))
    alternatives = [each["text"] for each in inspection(TEXT, None)["alternatives"]]
    page.get_by_role("tab", name="Alternatives").click()
    page.get_by_role("radio").first.focus()
    for text in alternatives[1:]:
        page.keyboard.press("ArrowDown")
        page.wait_for_function("text => document.querySelector('.output').textContent === text", arg=text)
        page.wait_for_function("() => !document.querySelector('.busy')")
        assert page.evaluate("() => document.activeElement.matches('input:checked')")
    page.get_by_role("tab", name="Next word").click()
    page.locator("button.pick").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.output').textContent.endsWith('steered')")
    page.wait_for_function("() => !document.querySelector('.busy')")
    assert page.evaluate("() => document.activeElement.matches('.word[aria-pressed=true]')")


def test_a_word_that_was_chosen_for_one_sentence_changes_no_other(page: Page) -> None:
    server = StandIn()
    translate(opened(page, server), "ba ce\nfo gu")
    page.get_by_role("tab", name="Next word").click()
    waiting = server.hold(page.context, "/api/translate")
    with page.expect_request("**/api/translate"):
        page.locator("button.pick").first.click()
    output(page).get_by_role("button").nth(1).click()
    page.get_by_role("group", name="source").get_by_role("button", name="fo", exact=True).wait_for()
    with page.expect_response("**/api/translate"):
        waiting[0].fallback()
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve))")
    assert output(page).inner_text() == f"{best('ba ce')}\n{best('fo gu')}"


def test_answers_leave_no_listeners_behind(page: Page) -> None:
    opened(page, StandIn())
    page.evaluate(
        """() => { window.listeners = 0; const output = document.querySelector(".output");
        output.addEventListener = () => { listeners += 1; }; }"""
    )
    translate(page, "ba ce\nfo gu")
    assert output(page).get_by_role("button").count() == 2
    assert page.evaluate("listeners") == 0


def test_a_correction_that_is_being_written_is_kept_for_its_own_text(page: Page) -> None:
    server = StandIn({"/api/matches": {"matches": []}, "/suggest": {"success": True}})
    server.answers["/api/models"]["suggestions"] = True
    translate(opened(page, server))
    page.get_by_role("button", name="Correct").click()
    form, save = page.get_by_label("Your translation"), page.get_by_role("button", name="Save")
    form.fill(" ")
    assert save.is_disabled()
    form.fill("von Hand")
    submit(page, "fo gu")
    page.wait_for_function("text => document.querySelector('.output').textContent === text", arg=best("fo gu"))
    assert (form.input_value(), page.locator("label", has_text=f"of “\u2068{TEXT}\u2069”").count()) == ("von Hand", 1)
    save.click()
    page.get_by_text("Saved. This text").first.wait_for()
    [body] = server.bodies("/suggest")
    assert (body["q"], body["s"]) == (TEXT, "von Hand")
    assert not form.is_visible()
    page.get_by_role("button", name="Correct").click()
    assert form.input_value() == best("fo gu")
    submit(page, "ba")
    form.wait_for(state="hidden")
