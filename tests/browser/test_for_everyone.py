"""Can everyone use the pages: by keys alone, with a screen reader, on 320 pixels, in the dark, from right to left?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from browser.stand_in import URL, StandIn, inspection, model
from browser.test_translate_page import opened, translate

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "ba ce di"
SCHEMES = [("light", ()), ("dark", ("color-contrast",))]
"""What is the same in the dark is looked at once."""
VIEWS = ("Attention", "Next word", "Alternatives", "Beam")


def serious(page: Page, *rules: str) -> list[str]:
    """What axe finds serious or critical, of all or of some rules."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = axe.Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious_in_any_view(page: Page, scheme: Any, rules: tuple[str, ...]) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, StandIn())
    page.get_by_text("Options").click()
    assert serious(page, *rules) == []
    translate(page, "ba ce di fo\ngu ha")
    for name in VIEWS:
        page.get_by_role("tab", name=name).click()
        if name == "Attention":
            page.get_by_label("numbers").check()
        if name == "Next word":
            page.get_by_text("Token by token").click()
        page.get_by_role("group", name="translation").get_by_role("button").nth(1).hover()
        assert serious(page, *rules) == []
    page.get_by_role("button", name="About this model").click()
    page.get_by_role("dialog").get_by_role("cell").first.wait_for()
    assert serious(page, *rules) == []


@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious_where_one_writes(page: Page, scheme: Any, rules: tuple[str, ...]) -> None:
    page.emulate_media(color_scheme=scheme)
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model")]
    page.goto(URL)
    page.get_by_label("Prompt").fill("the ba sees")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    page.get_by_role("button", name="Inspect", exact=True).first.click()
    page.get_by_role("group", name="text").wait_for()
    assert serious(page, *rules) == []


def test_on_320_pixels_nothing_is_cut_off_and_only_tables_scroll(page: Page) -> None:
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


def test_writing_fits_320_pixels_too(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model"), model("toy")]
    page.goto(URL)
    page.get_by_role("tab", name="Write").click()
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320


def test_everything_is_reached_by_the_tab_key_and_shows_where_it_is(page: Page) -> None:
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
    for wanted in (
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
        assert any(wanted in name for name in reached), wanted
    assert len(reached) < 30  # words, cells, heads and nodes are one stop each


def test_a_translation_is_made_inspected_and_changed_by_keys_alone(page: Page) -> None:
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


def test_what_happened_is_said_to_a_screen_reader(page: Page) -> None:
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
    """The same with the words of the target in Arabic."""
    text = json.dumps(answer, ensure_ascii=False)
    for word, other in ARABIC.items():
        text = text.replace(word, other)
    return json.loads(text)


def test_text_that_runs_from_the_right_does_so_everywhere(page: Page) -> None:
    translate(opened(page, StandIn(changed=arabic)), "ba ce di fo")
    target = page.get_by_role("group", name="translation")
    assert target.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.get_by_role("group", name="source").evaluate("e => getComputedStyle(e).direction") == "ltr"
    boxes = [box for word in target.get_by_role("button").all() if (box := word.bounding_box())]
    assert boxes[0]["x"] > boxes[1]["x"]
    assert page.get_by_role("region", name="translation").evaluate("e => e.matches(':dir(rtl)')")
    target.get_by_role("button").first.focus()
    page.keyboard.press("ArrowLeft")  # to the next word, which stands to the left
    assert target.get_by_role("button").nth(1).evaluate("e => e === document.activeElement")


def test_nothing_moves_for_who_does_not_want_it(page: Page) -> None:
    translate(opened(page, StandIn()))
    assert (
        page.get_by_role("group", name="translation")
        .get_by_role("button")
        .first.evaluate("e => getComputedStyle(e).transitionDuration")
        == "0s"
    )
