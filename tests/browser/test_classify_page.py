"""The page of a classifier of documents: answers as bars, attention to sentences and words, words for and against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import call
from serving import Live, serving
from toy_documents import REVIEW, train_reader

import heed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def run(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run; skipped without a browser."""
    return train_reader(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="module")
def live(run: Path) -> Iterator[Live]:
    """A server of the run."""
    with serving([heed.load(run)]) as server:
        yield server


def require_attention(page: Page) -> None:
    """A line for each sentence, with its share, a bar and marked words."""
    lines = page.locator(".attended li")
    lines.first.wait_for()
    said = [line.locator(".said").inner_text().strip() for line in lines.all()]
    assert said == ["The Story was in a town .", "A good plot was great !", "It was the end"]
    shares = [
        float(line.locator(".answer-share").inner_text().rstrip("\u202f%<> ").lstrip("<")) for line in lines.all()
    ]
    assert sum(shares) == pytest.approx(100, abs=2)
    widths = page.eval_on_selector_all(".attended .fill", "all => all.map((each) => each.offsetWidth)")
    assert widths.index(max(widths)) == shares.index(max(shares))
    strengths = page.eval_on_selector_all(
        ".said .weighed", "all => all.map((each) => Number(each.style.getPropertyValue('--strength')))"
    )
    assert max(strengths) == 1 and min(strengths) < 0.5
    assert page.get_by_role("heading", name="What speaks for “pos”").count() == 1


def test_a_document_is_classified_with_both_attentions(page: Page, live: Live) -> None:
    page.goto(live.url)
    page.get_by_label("Text to classify").fill(REVIEW)
    require_attention(page)
    assert page.locator(".answer-name").first.inner_text() == "pos"


def test_a_page_with_an_answer_is_one_file(page: Page, run: Path) -> None:
    out = run.parent / "page.html"
    result = call("inspect", run, "--text", REVIEW, "--out", out)
    assert result.code == 0, result.err
    page.goto(out.as_uri())
    page.get_by_role("heading", name="Inside a text").wait_for()
    require_attention(page)
