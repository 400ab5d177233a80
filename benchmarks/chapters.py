"""Run the course: the commands of every chapter, the figures they give, and the pictures.

    make course
    python benchmarks/chapters.py --only 1,7

Each page of docs/course has its commands in a block of the class `course`, and a table of figures: what is measured,
the figure on the page, and how far another machine's may be from it. This script runs these very blocks, one after the
other from the root of the checkout, measures the same figures again (`chapter_figures.py`) and prints both. It ends
with an error if a command fails or a figure is further away than the page allows. Everything that is made is in
`runs/course`, new pictures too; those of the pages are replaced with `--pictures docs/course/pictures`.

A chapter may need the runs of earlier ones, which its page says. With `--only`, the others are not run again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chapter_figures import MEASURES, draw

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "course"
RUNS = Path("runs") / "course"

_BLOCK = re.compile(r"^```\{code-block\} sh\n:class: course\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\| figure \| here \| within \|\n\| --- \| ---: \| ---: \|\n((?:\|.*\|\n)+)", re.MULTILINE)
_ROW = re.compile(r"\| (.+?) \| (-?[\d.,]+) \| ([\d.]+) \|\n")


@dataclass(frozen=True)
class Figure:
    """A figure of a page, and how far a new one may be from it."""

    value: float
    within: float

    def agrees(self, now: float) -> bool:
        """Whether a new figure is near enough."""
        return abs(now - self.value) <= self.within


@dataclass(frozen=True)
class Chapter:
    """The page of a chapter; number 0 is the index, which makes the corpus."""

    number: int
    path: Path
    title: str
    commands: str
    figures: Mapping[str, Figure]


def read_chapter(path: Path) -> Chapter:
    """What a page says is run and measured. Raises ValueError for a page without one block of commands."""
    text = path.read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1:
        raise ValueError(f"{path} has {len(blocks)} blocks of commands of the class course, and needs one")
    number = 0 if path.name == "index.md" else int(path.name[:2])
    rows = [row for table in _TABLE.findall(text) for row in _ROW.findall(table)]
    figures = {name: Figure(float(value.replace(",", "")), float(within)) for name, value, within in rows}
    title = next(line for line in text.splitlines() if line.startswith("# "))[2:]
    return Chapter(number, path, title, blocks[0], figures)


def chapters() -> list[Chapter]:
    """The index and all chapters, in order."""
    return [read_chapter(path) for path in [PAGES / "index.md", *sorted(PAGES.glob("[0-9][0-9]-*.md"))]]


def run(chapter: Chapter) -> float:
    """Run the commands of a chapter as they are on the page; returns the seconds. Raises CalledProcessError."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    print(f"\n== {chapter.title}", file=sys.stderr, flush=True)
    begin = time.perf_counter()
    subprocess.run(["bash", "-euo", "pipefail", "-c", chapter.commands], cwd=ROOT, env=environment, check=True)
    return time.perf_counter() - begin


def rows_of(chapter: Chapter, now: Mapping[str, float], seconds: float) -> tuple[list[str], bool]:
    """The rows of the table for a chapter, and whether all figures agree with the page."""
    if missing := sorted(now.keys() ^ chapter.figures.keys()):
        return [f"| {chapter.title} | {seconds:.0f} | not on the page and measured alike: {missing} | | |"], False
    rows, agree = [f"| {chapter.title} | {seconds:.0f} | | | |"], True
    for name, figure in chapter.figures.items():
        near = figure.agrees(now[name])
        agree &= near
        far = "" if near else f" **more than {figure.within:g} away**"
        rows.append(f"| | | {name} | {figure.value:g} | {now[name]:.4g}{far} |")
    return rows, agree


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chapters and print the table; 1 if a command failed or a figure is too far away."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="comma-separated numbers of chapters (0: the corpus)")
    parser.add_argument("--measure", action="store_true", help="run nothing, measure what earlier runs left")
    parser.add_argument("--pictures", type=Path, default=RUNS / "pictures", help="folder for the pictures")
    given = parser.parse_args(arguments)
    only = {int(number) for number in given.only.split(",") if number}
    os.chdir(ROOT)
    given.pictures.mkdir(parents=True, exist_ok=True)
    table, good = ["| chapter | seconds | figure | page | now |", "| --- | ---: | --- | ---: | ---: |"], True
    for chapter in chapters():
        if only and chapter.number not in only:
            continue
        try:
            seconds = 0.0 if given.measure else run(chapter)
        except subprocess.CalledProcessError as error:
            table.append(f"| {chapter.title} | | **failed with {error.returncode}** | | |")
            good = False
            continue
        if chapter.number in MEASURES:
            measured = MEASURES[chapter.number](RUNS)
            rows, agree = rows_of(chapter, measured.figures, seconds)
            good &= agree
            table += rows
            draw(measured, given.pictures / f"{chapter.path.stem}.png")
        else:
            table.append(f"| {chapter.title} | {seconds:.0f} | | | |")
    print("\n".join(["", *table]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
