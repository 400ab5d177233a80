"""The pages of the course: what they promise exists, and their formulas can be rendered without JavaScript."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "docs" / "course").glob("*.md"))
CHAPTERS = [path for path in PAGES if path.name[0].isdigit()]

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]*`")
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)

sys.path.insert(0, str(ROOT / "benchmarks"))
import chapter_figures  # noqa: E402
import chapters  # noqa: E402


def formulas(path: Path) -> list[str]:
    """The LaTeX of a page, without the dollars."""
    text = CODE.sub("", FENCED.sub("", path.read_text(encoding="utf-8")))
    return [display or inline for display, inline in FORMULA.findall(text)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_formula_becomes_mathml(path: Path) -> None:
    latex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml")
    for formula in formulas(path):
        latex2mathml.tex2mathml(formula.strip())


def test_chapters_are_numbered_and_measured() -> None:
    numbers = [int(path.name[:2]) for path in CHAPTERS]
    assert numbers == list(range(1, len(CHAPTERS) + 1)) == sorted(chapter_figures.MEASURES)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_chapter_has_all_its_parts(path: Path) -> None:
    chapter, text = chapters.read_chapter(path), path.read_text(encoding="utf-8")
    assert chapter.figures, "a table of figures"
    assert f"](pictures/{path.stem}.png)" in text
    assert (path.parent / "pictures" / f"{path.stem}.png").stat().st_size < 60_000
    solutions = f"tests/course/test_chapter_{chapter.number:02}.py"
    assert f"`{solutions}`" in text and (ROOT / solutions).is_file()
    assert len(re.findall(r"^\d\. ", text.partition("## Exercises")[2], re.MULTILINE)) == 2
    assert "```{literalinclude} ../../src/heed/" in text
    assert re.search(r"\]\(\.\./[\w-]+\.md[)#]", text), "a guide"
    assert f"]({path.name})" in (path.parent / "index.md").read_text(encoding="utf-8")


def test_a_figure_agrees_within_its_distance() -> None:
    figure = chapters.Figure(12.5, 0.5)
    assert figure.agrees(13.0) and figure.agrees(12.0) and not figure.agrees(13.1)


def test_a_figure_that_is_missing_or_too_far_from_the_page_is_an_error() -> None:
    page = chapters.read_chapter(CHAPTERS[0])
    now = {name: figure.value for name, figure in page.figures.items()}
    assert chapters.rows_of(page, now, 1.0)[1]
    first = next(iter(now))
    assert not chapters.rows_of(page, {**now, first: now[first] + 2 * page.figures[first].within}, 1.0)[1]
    assert not chapters.rows_of(page, {name: value for name, value in now.items() if name != first}, 1.0)[1]
