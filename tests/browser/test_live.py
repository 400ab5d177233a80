"""The page with a real server: answers, streams, content policy and failures."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import Held, Live, held, serving

import heed
from browser.stand_in import RUNS, SEE_EACH_TEXT
from heed.memory.shared import SharedMemory
from heed.serve.engine.catalogue import Catalogue
from heed.tasks.predictor import Predictor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browser.conftest import Seen

TEXT = "ba ce di\n\n  fo gu"


@dataclass
class Served:
    """A server, and its translator, which can be made to fail."""

    live: Live
    loaded: Predictor
    model: Held

    def translations(self) -> list[str]:
        """The translations of both sentences without a server."""
        return self.loaded.translate(["ba ce di", "fo gu"])


@pytest.fixture(scope="module")
def served(browser: Browser) -> Iterator[Served]:
    """A server of the two tiny runs; it needs the browser, so it is skipped without one."""
    loaded, model = held(Path(RUNS / "translation"))
    with serving([loaded, heed.load(RUNS / "bigram")]) as live:
        yield Served(live, loaded, model)


@pytest.fixture
def opened(page: Page, served: Served) -> Page:
    """The page of the server."""
    page.goto(served.live.url)
    page.get_by_label("Text to translate").wait_for()
    return page


def test_a_text_is_translated_and_inspected(opened: Page, served: Served) -> None:
    opened.get_by_label("Text to translate").fill(TEXT)
    opened.get_by_role("group", name="translation").wait_for()
    first, second = served.translations()
    output = opened.get_by_role("region", name="translation")
    assert output.evaluate("e => e.textContent") == f"{first}\n\n  {second}"
    for name in ("Attention", "Next word", "Alternatives", "Beam"):
        opened.get_by_role("tab", name=name).click()
        assert opened.get_by_role("tabpanel", name=name).is_visible()
    output.get_by_role("button").nth(1).click()
    opened.get_by_role("group", name="source").get_by_role("button", name="fo", exact=True).wait_for()
    words = opened.get_by_role("group", name="translation").get_by_role("button").all_inner_texts()
    assert words == [*second.split(), "end"]


def test_a_correction_is_the_translation_from_then_on(page: Page, served: Served, tmp_path: Path) -> None:
    with serving([served.loaded], memory=SharedMemory(tmp_path / "team.memory")) as live:
        page.goto(live.url)
        source = page.get_by_label("Text to translate")
        source.fill("ba ce di")
        output = page.get_by_role("region", name="translation")
        page.get_by_role("group", name="translation").wait_for()
        page.get_by_role("button", name="Correct").click()
        form = page.get_by_label("Your translation")
        assert form.input_value() == served.translations()[0]
        form.fill("von Hand übersetzt")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved. This text").first.wait_for()
        assert not form.is_visible()
        source.fill("fo gu")
        page.get_by_text("Translated: 1 sentence.").wait_for()
        source.fill("ba ce di")
        page.locator("#facts", has_text="translated by a person").wait_for()
        assert output.inner_text() == "von Hand übersetzt"
        source.fill("fo gu fo gu\n\nba ce di")
        page.get_by_text("Translated: 2 sentences.").wait_for()
        assert not page.get_by_role("heading", name="Translated before").is_visible()
        output.get_by_role("button").nth(1).click()
        page.get_by_role("button", name="Use", exact=True).click()
        assert output.inner_text().endswith("von Hand übersetzt")


def test_a_translation_says_that_similar_translations_guide_it(page: Page, served: Served, tmp_path: Path) -> None:
    memory = SharedMemory(tmp_path / "team.memory")
    with serving(Catalogue.of_runs([served.loaded], guide=memory), memory=memory) as live:
        page.goto(live.url)
        page.get_by_label("Text to translate").fill("ba ce di")
        page.locator("#facts", has_text="guided by similar translations").wait_for()


def test_a_translated_file_can_be_downloaded(opened: Page, served: Served) -> None:
    opened.get_by_text("Translate a file", exact=True).click()
    button = opened.get_by_role("button", name="Translate file")
    assert button.is_disabled()
    table = {"name": "words.csv", "mimeType": "text/csv", "buffer": b"id;source\r\n1;ba ce di\r\n2;\r\n"}
    opened.get_by_label("File (").set_input_files(table)  # type: ignore[arg-type]
    button.click()
    with opened.expect_download() as download:
        opened.get_by_role("link", name="words.").click()
    assert download.value.suggested_filename == "words.tgt.csv"
    expected = f"id;source;target\r\n1;ba ce di;{served.translations()[0]}\r\n2;;\r\n"
    assert Path(download.value.path()).read_bytes() == expected.encode()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def test_a_word_document_can_be_translated(opened: Page, served: Served) -> None:
    packed = io.BytesIO()
    body = f'<w:d xmlns:w="{WORD}"><w:p><w:r><w:t>ba ce di</w:t></w:r></w:p></w:d>'
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", body)
    opened.get_by_text("Translate a file", exact=True).click()
    file = {"name": "letter.docx", "mimeType": "application/octet-stream", "buffer": packed.getvalue()}
    opened.get_by_label("File (").set_input_files(file)  # type: ignore[arg-type]
    opened.get_by_role("button", name="Translate file").click()
    with opened.expect_download() as download:
        opened.get_by_role("link", name="letter.").click()
    assert download.value.suggested_filename == "letter.tgt.docx"
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.read("word/document.xml").decode() == body.replace("ba ce di", served.translations()[0])


def test_a_column_of_a_file_can_be_named_after_an_error(opened: Page, served: Served, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    opened.get_by_text("Translate a file", exact=True).click()
    table = {"name": "words.csv", "mimeType": "text/csv", "buffer": b"x,y\nba ce di,fo gu\n"}
    opened.get_by_label("File (").set_input_files(table)  # type: ignore[arg-type]
    opened.get_by_role("button", name="Translate file").click()
    opened.get_by_role("alert").get_by_text("no heading identifies the one to translate").wait_for()
    opened.get_by_label("Table column").fill("y")
    opened.get_by_role("button", name="Translate file").click()
    with opened.expect_download() as download:
        opened.get_by_role("link", name="words.").click()
    [_, row] = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert row == f"ba ce di,fo gu,{served.translations()[1]}"


def test_partial_translations_are_shown(opened: Page, served: Served) -> None:
    opened.evaluate(SEE_EACH_TEXT)
    opened.get_by_label("Text to translate").fill("ba ce di fo gu ha")
    opened.get_by_text("Translated: 1 sentence.").wait_for(state="attached")
    texts = [text for text in opened.evaluate("texts") if text]
    assert len(texts) > 2
    assert len(texts[0]) < len(texts[-1])


def test_another_word_or_alternative_changes_the_translation(opened: Page, served: Served) -> None:
    opened.get_by_label("Text to translate").fill("ba ce di")
    opened.get_by_role("group", name="translation").wait_for()
    [first, _] = served.translations()
    opened.get_by_role("tab", name="Next word").click()
    opened.get_by_role("group", name="translation").get_by_role("button").first.click()
    tables = opened.get_by_role("tabpanel", name="Next word").get_by_role("table")
    row = tables.first.locator("tbody tr:not(.taken)").first.get_by_role("button")
    word = row.inner_text()
    row.click()
    output = opened.get_by_role("region", name="translation")
    opened.wait_for_function("text => !document.querySelector('.output').textContent.startsWith(text)", arg=first[:3])
    assert output.inner_text().split()[0] == word
    opened.wait_for_function("() => !document.querySelector('.busy')")
    opened.get_by_role("tab", name="Alternatives").click()
    opened.get_by_role("radio").first.check()
    opened.wait_for_function("text => document.querySelector('.output').textContent === text", arg=first)


def test_a_failure_of_the_model_is_shown(opened: Page, served: Served, seen: Seen) -> None:
    seen.expected = ("Failed to load resource",)
    served.model.failure = RuntimeError("broken")
    opened.get_by_label("Text to translate").fill("ba me")
    opened.get_by_role("button", name="Try again").wait_for()
    served.model.failure = None
    opened.get_by_role("button", name="Try again").first.click()
    opened.get_by_role("group", name="translation").wait_for()


def test_a_text_is_generated_with_likely_next_words(opened: Page) -> None:
    opened.get_by_role("tab", name="Write").click()
    opened.get_by_label("Prompt").fill("the old")
    opened.locator("table.choices").get_by_role("button", name="dog").click()
    assert opened.get_by_label("Prompt").input_value() == "the old dog"
    opened.get_by_label("Seed").fill("3")
    opened.get_by_label("Max tokens").fill("6")
    opened.get_by_role("button", name="Write").click()
    opened.get_by_text("Seed 3").wait_for()
    assert opened.locator(".continuation").inner_text().startswith("the old dog ")
    opened.get_by_role("button", name="Inspect", exact=True).click()
    opened.get_by_role("group", name="text").wait_for()


def test_the_report_of_each_model_is_shown(opened: Page) -> None:
    opened.get_by_role("button", name="About this model").click()
    assert opened.get_by_role("dialog").get_by_role("heading").first.is_visible()
    opened.keyboard.press("Escape")
    opened.get_by_role("tab", name="Write").click()
    opened.get_by_role("button", name="About this model").click()
    opened.get_by_role("dialog").get_by_text("Language model").first.wait_for()
