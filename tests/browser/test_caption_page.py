"""The page of a captioning model: an image is chosen, captioned, and shown with the attention for each word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import call
from serving import Live, serving

import heed
from browser.stand_in import URL, StandIn, model

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browser.conftest import Seen

toy_images = pytest.importorskip("toy_images", reason="images need the package pillow")


@pytest.fixture(scope="module")
def run(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioning run that has learned little, and an image; skipped without a browser."""
    folder = toy_images.write_scenes(tmp_path_factory.mktemp("captioner"), 60)
    heed.train({**toy_images.keys_of(folder), "training.max_steps": 2}, folder / "run", quiet=True)
    next(iter(toy_images.scenes(1)))[1].resize((900, 600)).save(folder / "image.png")
    return folder / "run"


@pytest.fixture(scope="module")
def live(run: Path) -> Iterator[Live]:
    """A server of the run."""
    with serving([heed.load(run)]) as server:
        yield server


def require_glances(page: Page, tag: str) -> None:
    """Each word has the image, and a shade for each of its four patches."""
    glances = page.get_by_role("listitem", name="looked most at the")
    glances.first.wait_for()
    for glance in glances.all():
        assert glance.locator(tag).count() == 1
        shades = [float(rect.get_attribute("fill-opacity") or 1) for rect in glance.locator("rect").all()]
        assert len(shades) == 4
        assert min(shades) == 0, "the place with the most attention is not darkened"
    assert glances.last.inner_text().startswith("end")


def test_an_image_is_made_small_and_captioned(page: Page, live: Live, run: Path) -> None:
    page.goto(live.url)
    page.get_by_label("Choose an image").set_input_files(run.parent / "image.png")
    require_glances(page, "canvas")
    widths = page.eval_on_selector_all(".seen canvas", "all => all.map((each) => [each.width, each.height])")
    assert {tuple(size) for size in widths} == {(512, 341)}


def test_a_file_that_is_no_image_is_refused_in_the_browser(page: Page, live: Live, run: Path) -> None:
    page.goto(live.url)
    page.get_by_label("Choose an image").set_input_files(run / "recipe.toml")
    page.get_by_text("recipe.toml is not an image that this browser can read.").wait_for()


def test_another_file_ends_the_captioning_of_the_one_before(page: Page, seen: Seen, run: Path) -> None:
    server = StandIn().on(page.context)
    server.answers["/api/models"]["models"] = [model("toy", "captioning", abilities=["caption"])]
    page.goto(URL)
    server.hold(page.context, "/api/caption")
    with page.expect_request("**/api/caption"):
        page.get_by_label("Choose an image").set_input_files(run.parent / "image.png")
    with page.expect_event("requestfailed"):
        page.get_by_label("Choose an image").set_input_files(run / "recipe.toml")
    page.get_by_text("recipe.toml is not an image that this browser can read.").wait_for()


def test_a_page_with_a_caption_is_one_file(page: Page, seen: Seen, run: Path) -> None:
    out = run.parent / "page.html"
    result = call("inspect", run, "--image", run.parent / "image.png", "--out", out)
    assert result.code == 0, result.err
    page.goto(out.as_uri())
    page.get_by_role("heading", name="Inside a caption").wait_for()
    require_glances(page, "img")
    assert page.locator(".seen img").first.evaluate("e => [e.naturalWidth, e.naturalHeight]") == [512, 341]
    both = call("inspect", run, "--image", run.parent / "image.png", "--text", "a")
    assert (both.code, "leave out --text, --src and --tgt" in both.err) == (2, True)
