"""Accessibility: keyboard, screen readers, narrow screens, dark mode, right-to-left text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.stand_in import URL, StandIn, derivations, inspection, model
from browser.test_translate_page import opened, submit, translate

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "ba ce di"
VIEWS = ("Attention", "Next word", "Alternatives", "Beam")


def violations(page: Page) -> list[str]:
    """What axe calls serious or critical: of all its rules, and of contrast in the dark, where only colours differ."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(axe.Axe().axe_script)
    run = "only => axe.run({resultTypes: ['violations'], ...(only ? {runOnly: [only]} : {})})"
    results = page.evaluate(run, None)["violations"]
    page.emulate_media(color_scheme="dark")
    results += page.evaluate(run, "color-contrast")["violations"]
    page.emulate_media(color_scheme="light")
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for rule in results
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def test_no_view_of_a_translation_violates_a_rule_of_axe(page: Page) -> None:
    opened(page, StandIn())
    page.get_by_text("Options").click()
    assert violations(page) == []
    translate(page, "ba ce di fo\ngu ha")
    for name in VIEWS:
        page.get_by_role("tab", name=name).click()
        if name == "Attention":
            page.get_by_label("numbers").check()
        if name == "Next word":
            page.get_by_text("Token by token").click()
        page.get_by_role("group", name="translation").get_by_role("button").nth(1).hover()
        assert violations(page) == []
    page.get_by_role("button", name="About this model").click()
    page.get_by_role("dialog").get_by_role("cell").first.wait_for()
    assert violations(page) == []


def test_the_page_for_writing_violates_no_rule_of_axe(page: Page) -> None:
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model")]
    page.goto(URL)
    page.get_by_label("Prompt").fill("the ba sees")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    page.get_by_role("button", name="Inspect", exact=True).first.click()
    page.get_by_role("group", name="text").wait_for()
    assert violations(page) == []


def test_on_320_pixels_only_tables_scroll(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    translate(opened(page, StandIn()), "ba ce di fo gu ha ji ko\nlu me no pi " + "ba" * 60)
    for name in VIEWS:
        page.get_by_role("tab", name=name).click()
        assert page.evaluate("() => document.documentElement.scrollWidth") == 320, name
    page.get_by_role("button", name="About this model").click()
    page.get_by_role("dialog").get_by_role("cell").first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320
    wide = page.evaluate("() => { const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth; }")
    assert wide == 0


def test_derivations_violate_no_rule_of_axe_and_fit_320_pixels(page: Page) -> None:
    server = StandIn({"/api/inspect": derivations(f"kan {'ler' * 40}")})
    server.answers["/api/models"]["models"] = [model("toy", abilities=["derive", "translate"])]
    submit(opened(page, server))
    page.get_by_role("region", name="steps").first.wait_for()
    assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320


def test_the_page_for_writing_fits_320_pixels(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model"), model("toy")]
    page.goto(URL)
    page.get_by_role("tab", name="Write").click()
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320


def test_the_tab_key_reaches_everything_and_shows_the_focus(page: Page) -> None:
    translate(opened(page, StandIn()))
    page.evaluate(
        "() => { document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex'); }"
    )
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(
            """() => { const e = document.activeElement, style = getComputedStyle(e);
            const name = e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent;
            return [name, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0]; }"""
        )
        if "About this model" in name and reached:
            break
        assert outlined or name == "", name
        reached.append(name)
    for expected in (
        "About this model",
        "FromDetect",
        "To",
        "Text to translate",
        "Translate",
        "translation",
        "Copy",
        "Options",
        "Inside the model",
        "Attention",
    ):
        assert any(expected in name for name in reached), expected
    assert len(reached) < 30  # words, cells, heads and nodes are one stop each


def test_the_keyboard_is_enough_to_translate_inspect_and_choose_an_alternative(page: Page) -> None:
    opened(page, StandIn())
    page.keyboard.type(TEXT)
    page.keyboard.press("Control+Enter")
    page.get_by_role("group", name="translation").wait_for()
    page.get_by_role("tab", name="Attention").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tabpanel", name="Alternatives").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    second = inspection(TEXT, None)["alternatives"][1]["text"]
    page.wait_for_function("text => document.querySelector('.output').textContent === text", arg=second)


def test_a_screen_reader_is_informed(page: Page) -> None:
    translate(opened(page, StandIn()), "ba ce\nfo")
    assert page.get_by_role("status").first.text_content() == "Translated: 2 sentences."
    label = page.get_by_role("grid").get_attribute("aria-label")
    assert label is not None and label.startswith("Attention to the source")
    named = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, textarea")].filter(e => e.offsetParent)
        .every(e => e.getAttribute("aria-label") || e.textContent || e.labels?.length)"""
    )
    assert named


ARABIC = {
    "kan": "كلبان", "ler": "يلعبان", "mis": "في", "not": "الثلج", "pur": "قط", "qes": "على", "rit": "بيت", "sol": "شمس",
    "tun": "قمر", "vax": "ماء", "wem": "نار", "zil": "باب",
}  # fmt: skip


def arabic(answer: Any) -> Any:
    """An answer with the target words in Arabic."""
    text = json.dumps(answer, ensure_ascii=False)
    for word, other in ARABIC.items():
        text = text.replace(word, other)
    return json.loads(text)


def test_right_to_left_text_has_its_direction_everywhere(page: Page) -> None:
    translate(opened(page, StandIn(changed=arabic)), "ba ce di fo")
    target = page.get_by_role("group", name="translation")
    assert target.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.get_by_role("group", name="source").evaluate("e => getComputedStyle(e).direction") == "ltr"
    boxes = [box for word in target.get_by_role("button").all() if (box := word.bounding_box())]
    assert boxes[0]["x"] > boxes[1]["x"]
    assert page.get_by_role("region", name="translation").evaluate("e => e.matches(':dir(rtl)')")
    target.get_by_role("button").first.focus()
    page.keyboard.press("ArrowLeft")  # to the next word, which is on the left
    assert target.get_by_role("button").nth(1).evaluate("e => e === document.activeElement")


def test_reduced_motion_disables_transitions(page: Page) -> None:
    translate(opened(page, StandIn()))
    assert (
        page.get_by_role("group", name="translation")
        .get_by_role("button")
        .first.evaluate("e => getComputedStyle(e).transitionDuration")
        == "0s"
    )
