"""Pages of readers: what `heed inspect` writes of them, and the panel of the server that shows the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import call
from serving import Live, serving
from toy import unchecked_shapes, write_lines
from toy_questions import tiny_reader
from toy_tags import tiny_tagger

import heed
from browser.stand_in import URL, StandIn, model
from heed.tasks.predictor import Predictor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FEW: dict[str, Any] = {
    "training.max_steps": 12, "training.eval_every": 12, "training.save_every": 12, "training.warmup_steps": 5,
    "training.lr": 1e-2, "model.kind": "encoder", "model.d_model": 16, "model.d_ff": 16, "model.num_layers": 2,
    "model.num_heads": 2, "tokenizer.vocab_size": 300,
}  # fmt: skip
TEXTS = {"names": "Ann met the5 New York!", "sentiment": "a <b>great</b> film", "masked": "the great film <mask> here"}


@pytest.fixture(scope="module")
def readers(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Predictor]:
    """A tagger, a classifier with attention and a masked language model; skipped without a browser."""
    folder, draw = tmp_path_factory.mktemp("readers"), random.Random(1)
    rows = [(draw.choice(["great", "fine", "bad", "dull"]), draw.choice(["film", "plot", "book"])) for _ in range(120)]
    table = write_lines(folder / "t.tsv", ["text\tlabel", *(f"a {a} {b} {n}\t{a in 'great fine'}"
                                                            for n, (a, b) in enumerate(rows))])  # fmt: skip
    text = write_lines(folder / "text", [f"the {a} {b} sleeps here {n}" for n, (a, b) in enumerate(rows)])
    classifier = {"task": "classification", "data.table": str(table), "head.pooling": "attention"}
    masked = {"task": "masked-language-model", "data.text": str(text), "tokenizer.kind": "word", "model.begin": True}
    with unchecked_shapes():
        return {
            "names": tiny_tagger(folder),
            "sentiment": heed.train({**FEW, **classifier}, folder / "sentiment", device="cpu", quiet=True),
            "masked": heed.train({**FEW, **masked}, folder / "masked", device="cpu", quiet=True),
        }


@pytest.fixture(scope="module")
def live(readers: dict[str, Predictor]) -> Iterator[Live]:
    """A server of all of them."""
    with serving([*readers.values()]) as server:
        yield server


def written(predictor: Predictor, text: str, folder: Path) -> Path:
    """The page of a text, by the command."""
    result = call("inspect", predictor.run.folder, "--text", text, "--out", folder / "page.html")
    assert result.code == 0, result.err
    return folder / "page.html"


def test_numbers_are_the_same_on_the_command_line_and_from_the_server(
    readers: dict[str, Predictor], live: Live
) -> None:
    for predictor, text in zip(readers.values(), TEXTS.values(), strict=True):
        folder = Path(predictor.run.folder)
        printed = json.loads(call("inspect", folder, "--text", text, "--json").out)
        assert printed["task"] == "reader"
        for layer in (layer for each in printed["attention"] for layer in each["layers"]):
            rows = [row for head in layer["heads"] for row in head]
            assert len(rows[0]) == len(printed["target"]) and len(rows) % len(rows[0]) == 0
            assert [sum(row) for row in rows] == pytest.approx([1] * len(rows), abs=0.02)
        answer = live.post("/api/inspect", {"model": folder.name, "text": text})
        assert answer.status == 200 and answer.json.keys() == printed.keys()
        assert answer.json["target"] == printed["target"] and answer.json["lattice"] == printed["lattice"]
    first = live.post("/api/inspect", {"text": "Ann"})
    assert first.json["lattice"], "without a name, the first that reads texts"
    long = live.post("/api/inspect", {"text": "Ann " * 501})
    assert long.status == 400 and "the limit is 2,000" in long.json["error"]["message"]


def test_tags_are_a_lattice(readers: dict[str, Predictor], page: Page, tmp_path: Path) -> None:
    page.goto(written(readers["names"], TEXTS["names"], tmp_path).as_uri())
    reading = readers["names"].read(TEXTS["names"])
    marks = page.locator("mark.entity")
    assert marks.all_inner_texts() == ["AnnPER", "New YorkLOC"]
    assert page.get_by_role("columnheader").all_inner_texts() == ["Ann", "met", "the5", "New", "York", "!"]
    assert page.get_by_role("rowheader").all_inner_texts() == list(reading.lattice.tags)
    assert page.locator(".circle.best").count() == 6
    assert page.locator(".steps path.best").count() == 5
    cell = page.get_by_role("gridcell").first
    assert (cell.get_attribute("aria-label") or "").startswith(f"Ann is {reading.lattice.tags[0]}: ")
    circle, line = page.locator(".circle.best").first.bounding_box(), page.locator("svg.steps").bounding_box()
    assert circle and line
    row = reading.lattice.best[0]
    middle = line["y"] + line["height"] * (row + 0.5) / len(reading.lattice.tags)
    first = min(page.locator(".circle.best").all(), key=lambda each: (each.bounding_box() or {"x": 0})["x"])
    box = first.bounding_box()
    assert box and box["y"] + box["height"] / 2 == pytest.approx(middle, abs=2), "lines go through the circles"
    assert page.locator(".taggings li").count() == len(reading.answers) - 1


def test_an_answer_has_bars_attention_and_weights(readers: dict[str, Predictor], page: Page, tmp_path: Path) -> None:
    page.goto(written(readers["sentiment"], TEXTS["sentiment"], tmp_path).as_uri())
    [answers] = readers["sentiment"].predict([TEXTS["sentiment"]], top=9)
    assert page.locator(".answer-name").all_inner_texts() == [answer.text for answer in answers]
    pooled, weighed = page.locator(".marked").all()
    assert "great" in pooled.inner_text()
    assert weighed.inner_text() == TEXTS["sentiment"], "what looks like markup is text"
    page.get_by_role("tab", name="Attention").click()
    assert page.locator(".heat").get_attribute("aria-label").startswith("Attention between words")  # type: ignore[union-attr]
    page.get_by_role("group", name="text").get_by_role("button").nth(1).hover()
    assert "attends to" in page.get_by_role("tabpanel", name="Attention").locator("xpath=../..").inner_text()


def test_a_mask_has_its_likely_words(readers: dict[str, Predictor], page: Page, tmp_path: Path) -> None:
    page.goto(written(readers["masked"], TEXTS["masked"], tmp_path).as_uri())
    words = page.get_by_role("group", name="text").get_by_role("button")
    assert words.all_inner_texts() == ["begin", "the", "great", "film", "<mask>", "here", "end"]
    assert words.nth(4).get_attribute("aria-pressed") == "true"
    [likely] = readers["masked"].predict([TEXTS["masked"]], top=3)
    names = page.get_by_role("tabpanel").locator(".choices tbody th")
    assert names.all_inner_texts()[:3] == [each.text for each in likely]
    words.nth(1).click()
    assert "has probability" in page.get_by_role("tabpanel").inner_text()


def test_the_server_has_a_panel_for_all_readers(live: Live, page: Page) -> None:
    page.goto(live.url)
    page.get_by_role("tab", name="Inside").click()
    page.get_by_label("Text to look into").fill(TEXTS["names"])
    page.get_by_role("button", name="Look inside").click()
    page.locator(".lattice").wait_for()
    page.get_by_role("tabpanel", name="Inside").get_by_label("Model").select_option("masked")
    assert page.locator(".lattice").count() == 0
    assert page.get_by_text("each word that is written <mask>").is_visible()
    page.get_by_label("Text to look into").fill(TEXTS["masked"])
    page.keyboard.press("Control+Enter")
    page.locator(".choices").first.wait_for()


def test_another_model_ends_the_reading_of_the_one_before(page: Page) -> None:
    server = StandIn().on(page.context)
    names = ("one", "other")
    server.answers["/api/models"]["models"] = [model(name, "classification", abilities=["read"]) for name in names]
    page.goto(URL)
    server.hold(page.context, "/api/inspect")
    page.get_by_label("Text to look into").fill("a")
    with page.expect_request("**/api/inspect"):
        page.get_by_role("button", name="Look inside").click()
    with page.expect_event("requestfailed"):
        page.get_by_role("combobox", name="Model").select_option("other")


@pytest.fixture(scope="module")
def answers(readers: dict[str, Predictor], tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """A reader with attention between a question and its context, which may have no answer."""
    flow = {"model.kind": "attention_flow", "head.no_answer": True}
    with unchecked_shapes():
        made: Predictor = tiny_reader(tmp_path_factory.mktemp("answers"), unanswered=0.3, **flow)
    return made


def test_answers_are_marked_where_they_begin_and_end(answers: Predictor, page: Page, tmp_path: Path) -> None:
    text = "Where is Ann?\tAnn lives in New York, house 7. 🐈 Cem went to Oslo."
    page.goto(written(answers, text, tmp_path).as_uri())
    reading = answers.read(text)
    bars = page.locator(".answer.choice")
    assert bars.count() == len(reading.answers) == 5
    spots = page.locator(".spots .spot")
    assert spots.all_inner_texts()[:6] == ["Ann", "lives", "in", "New", "York", ","]
    for number, answer in enumerate(reading.answers):
        bars.nth(number).click()
        marked = page.locator(".spots .answered").all_inner_texts()
        assert "".join(marked) == answer.text.replace(" ", "")
    assert page.locator(".spots").inner_text() == text.split("\t")[1]
    page.get_by_role("tab", name="Attention").click()
    assert page.get_by_role("columnheader").all_inner_texts() == ["Where", "is", "Ann", "?", "end"]
    assert page.get_by_role("rowheader").all_inner_texts()[:3] == ["Ann", "lives", "in"]
    page.get_by_role("gridcell").first.hover()
    assert page.locator(".status").inner_text().startswith("“\u2068Ann\u2069” attends to")


def test_the_panel_of_the_server_asks_questions(answers: Predictor, page: Page) -> None:
    with serving([answers]) as server:
        page.goto(f"{server.url}/")
        page.get_by_role("tab", name="Inside").or_(page.get_by_role("link", name="Inside")).click()
        page.get_by_label("Text to look into").fill("Ann lives in Rome, house 7. Cem went to Oslo.")
        page.locator("#to-ask").fill("Where is Ann?")
        page.get_by_role("button", name="Look inside").click()
        assert page.locator(".spots .spot").first.inner_text() == "Ann"
