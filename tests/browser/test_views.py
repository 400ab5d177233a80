"""Views of the page that `heed inspect` writes: their content, the mouse and the keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import call

from browser.stand_in import RUNS, inspection

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

    from browser.conftest import Seen

SOURCE = "ba ce di fo"


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a translation."""
    out = tmp_path_factory.mktemp("file") / "page.html"
    result = call("inspect", RUNS / "translation", "--src", SOURCE, "--beam", 3, "--nbest", 3, "--out", out)
    assert result.code == 0, result.err
    return out


@pytest.fixture
def opened(page: Page, translation: Path) -> Page:
    """The page in the browser."""
    page.goto(translation.as_uri())
    return page


def words(page: Page, name: str) -> Locator:
    """The words of the source or of the translation."""
    return page.get_by_role("group", name=name).get_by_role("button")


def tab(page: Page, name: str) -> Locator:
    """Open a view and return its panel."""
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel", name=name)


def test_both_sentences_are_shown_as_words(opened: Page) -> None:
    assert words(opened, "source").all_inner_texts() == ["ba", "ce", "di", "fo", "end"]
    target = inspection(SOURCE, None)["target"]
    expected = [word["text"].strip() for word in target[:-1]]
    assert words(opened, "translation").all_inner_texts() == [*expected, "end"]


def test_pointing_at_a_word_highlights_what_it_attends_to(opened: Page) -> None:
    words(opened, "translation").nth(1).hover()
    layers = inspection(SOURCE, None)["attention"][0]["layers"]
    heads = layers[-1]["heads"]
    shares = [sum(head[1][c] for head in heads) / len(heads) for c in range(5)]
    lit = words(opened, "source").evaluate_all("all => all.map(e => Number(e.style.getPropertyValue('--lit-share')))")
    assert lit == pytest.approx([share**0.5 for share in shares], abs=0.01)
    assert "attends to:" in opened.locator(".sentence .status").inner_text()
    assert opened.locator(".heat tr.at").count() == 1
    opened.mouse.move(0, 0)
    assert opened.locator(".word.lit").count() == 0


def test_pointing_at_a_source_word_highlights_what_attends_to_it(opened: Page) -> None:
    words(opened, "source").nth(2).hover()
    assert "is attended to by:" in opened.locator(".sentence .status").inner_text()
    assert opened.get_by_role("group", name="translation").locator(".lit").count() > 0
    assert opened.locator(".heat thead th.at").inner_text() == "di"


def test_a_cell_of_the_heat_map_has_a_label_and_highlights_both_words(opened: Page) -> None:
    cell = opened.get_by_role("gridcell").nth(1)
    label = cell.get_attribute("aria-label")
    assert label is not None and "attends to ce:" in label and "%" in label
    cell.hover()
    assert words(opened, "translation").nth(0).evaluate("e => e.classList.contains('at')")


def test_arrow_keys_move_through_the_heat_map(opened: Page) -> None:
    grid = opened.get_by_role("grid")
    assert grid.locator("[tabindex='0']").count() == 1
    opened.get_by_role("gridcell").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "End"):
        opened.keyboard.press(key)
    row, column = opened.evaluate(
        "() => [document.activeElement.parentElement.rowIndex, document.activeElement.cellIndex]"
    )
    assert (row, column) == (3, 5)
    assert grid.locator("[tabindex='0']").count() == 1


def test_layers_heads_and_kinds_can_be_chosen_and_numbers_shown(opened: Page) -> None:
    attention = inspection(SOURCE, None)["attention"]
    opened.get_by_role("combobox", name="Head").select_option("1")
    opened.get_by_label("numbers").check()
    cells = opened.locator(".heat tbody tr").first.get_by_role("gridcell")
    expected = [str(round(share * 100)) for share in attention[0]["layers"][0]["heads"][1][0]]
    assert cells.locator("span").all_text_contents() == expected
    opened.get_by_role("combobox", name="Attention").select_option("self")
    assert opened.locator(".heat thead th").first.inner_text() == "begin"
    assert opened.locator(".heat thead th").count() == len(inspection(SOURCE, None)["target"])


def test_a_layer_or_head_that_is_chosen_keeps_the_focus(opened: Page) -> None:
    for name in ("Attention", "Head"):
        field = opened.get_by_role("combobox", name=name)
        before = field.input_value()
        field.focus()
        opened.keyboard.press("ArrowDown")
        assert field.input_value() != before
        assert field.evaluate("field => field === document.activeElement")


def test_keys_with_a_modifier_are_those_of_the_browser(opened: Page) -> None:
    opened.evaluate("() => document.addEventListener('keydown', (event) => { window.taken = event.defaultPrevented; })")
    for view, kind in (("Attention", "[role=gridcell]"), ("Beam", ".node"), ("Beam", "[role=tab]")):
        tab(opened, view)
        focused = opened.locator(kind)
        focused.first.focus()
        for modifier in ("Control", "Meta"):
            opened.keyboard.press(f"{modifier}+ArrowRight")
            assert opened.evaluate("window.taken") is False
            assert focused.first.evaluate("each => each === document.activeElement")


def test_a_thumbnail_of_a_head_selects_it(opened: Page) -> None:
    heads = opened.locator("button.head")
    assert heads.count() == len(inspection(SOURCE, None)["attention"][0]["layers"][0]["heads"])
    heads.nth(1).click()
    assert opened.locator("button.head").nth(1).get_attribute("aria-pressed") == "true"
    assert opened.get_by_role("combobox", name="Head").input_value() == "1"


def test_choosing_a_word_shows_likely_words_at_its_position(opened: Page) -> None:
    panel = tab(opened, "Next word")
    target = inspection(SOURCE, None)["target"]
    for place, word in enumerate(target):
        words(opened, "translation").nth(place).click()
        listed = panel.get_by_role("table").first.locator("tbody tr")
        shown = listed.locator(".piece").all_inner_texts()
        assert shown[: len(word["choices"])] == [choice["text"].strip() or "end" for choice in word["choices"]]
        assert listed.locator("text=in the text").count() == 1
    panel.get_by_text("Token by token").click()
    assert panel.get_by_role("table").count() == 2


def test_alternatives_mark_differences(opened: Page) -> None:
    panel = tab(opened, "Alternatives")
    texts = [each["text"] for each in inspection(SOURCE, None)["alternatives"]]
    assert panel.locator(".text").all_inner_texts() == texts
    assert panel.get_by_role("listitem").first.locator("mark").count() == 0
    for place, text in enumerate(texts[1:], start=1):
        marked = panel.get_by_role("listitem").nth(place).locator("mark").all_inner_texts()
        assert [word for word in text.split() if word not in texts[0].split()] == [
            word for word in marked if word not in texts[0].split()
        ]


def test_the_beam_shows_every_node_and_the_path_of_the_output(opened: Page) -> None:
    panel = tab(opened, "Beam")
    nodes = inspection(SOURCE, None)["tree"]["nodes"]
    assert panel.locator("button.node").count() == len(nodes)
    best = [node["text"].strip() or "end" for node in nodes if node["best"]]
    assert [text.split("\n")[0] for text in panel.locator("button.node.best").all_inner_texts()] == best
    assert panel.locator("svg path.best").count() == len(best) - 1
    panel.locator("button.node.best").nth(1).hover()
    assert panel.locator("svg path.at").count() == 1
    assert "log-probability" in panel.locator(".status").inner_text()
    panel.get_by_label("show dropped prefixes").uncheck()
    assert panel.locator("button.node.dropped").first.is_hidden()


def test_arrow_keys_move_through_the_beam(opened: Page) -> None:
    panel = tab(opened, "Beam")
    panel.locator("button.node.best").first.focus()
    opened.keyboard.press("ArrowRight")
    assert opened.evaluate("() => document.activeElement.classList.contains('best')")
    assert opened.evaluate("() => document.activeElement.closest('ol').getAttribute('aria-label')") == "step 2"
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowLeft")
    assert opened.evaluate("() => document.activeElement.closest('ol').getAttribute('aria-label')") == "step 1"


def test_the_tab_key_reaches_the_beam_without_its_dropped_prefixes(opened: Page) -> None:
    panel = tab(opened, "Beam")
    panel.locator("button.node.best").first.focus()
    opened.keyboard.press("ArrowRight")
    while opened.evaluate("() => !document.activeElement.matches('.dropped')"):
        opened.keyboard.press("ArrowDown")
    panel.get_by_label("show dropped prefixes").uncheck()
    reached = panel.locator("button.node[tabindex='0']")
    assert reached.count() == 1 and reached.is_visible()


def test_arrow_keys_change_tabs(opened: Page) -> None:
    opened.get_by_role("tab", name="Attention").focus()
    opened.keyboard.press("ArrowRight")
    assert opened.get_by_role("tab", name="Next word").get_attribute("aria-selected") == "true"
    assert opened.evaluate("() => document.activeElement.textContent") == "Next word"
    opened.keyboard.press("End")
    assert opened.get_by_role("tabpanel", name="Beam").is_visible()


def test_the_page_of_a_text_shows_words_and_likely_next_words(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert call("inspect", RUNS / "bigram", "--text", "the old dog", "--out", out).code == 0
    page.goto(out.as_uri())
    assert words(page, "text").all_inner_texts() == ["the", "old", "dog", "end"]
    assert page.get_by_role("tab").all_inner_texts() == ["Next word"]
    assert page.get_by_role("table").first.locator("tbody tr").count() >= 3
    words(page, "text").nth(1).hover()
    assert "probability" in page.locator(".sentence .status").inner_text().replace("\u202f", " ")


def test_the_page_loads_nothing_but_itself(context: BrowserContext, translation: Path, seen: Seen) -> None:
    page = context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    context.set_offline(True)
    page.goto(translation.as_uri())
    assert page.get_by_role("grid").is_visible()
    assert requested == [translation.as_uri()]
