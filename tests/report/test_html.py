"""A report as one HTML file: all of it, nothing from elsewhere, and no markup of its own."""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path

import pytest
from command import call

from heed.report.curves import PICTURE
from heed.report.html import html_report
from heed.report.page import REPORT
from heed.run import Run

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "run-v1" / "translation"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "run"))


def test_the_page_has_the_report_and_its_curves(run: Path, tmp_path: Path) -> None:
    printed = call("report", run)
    assert (printed.code, printed.out) == (0, (run / REPORT).read_text(encoding="utf-8"))
    assert call("report", run, "--html", tmp_path / "report.html").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    headings = re.findall("^#+ (.*)$", re.sub(r"(?s)```.*?```", "", printed.out), re.MULTILINE)
    shown = re.findall(r"<h\d>(.*?)</h\d>", page)
    assert len(headings) == len(shown) > 5
    assert page.count("<table>") == len(re.findall(r"^\| ?-|^\|[ -:|]+\|$", printed.out, re.MULTILINE))
    picture = base64.b64encode((run / PICTURE).read_bytes()).decode()
    assert page.count("<img") == page.count(picture) == 1


def test_a_report_is_written_if_there_is_none(run: Path) -> None:
    assert not (run / REPORT).exists()
    assert call("report", run).out.startswith("# Translation")
    assert call("report", run, "--html", run / "nowhere" / "report.html").code == 2


def test_a_hostile_report_is_only_text(run: Path) -> None:
    (run / REPORT).write_text(
        "# <script>alert(1)</script>\n\n![x](https://spam.example/a.png) ![y](curves.png) [go](javascript:alert(1))\n\n"
        "<img src=x onerror=alert(1)>\n\n| a | b |\n|---|---|\n| <b>c | d |\n",
        encoding="utf-8",
    )
    (run / PICTURE).write_bytes(b"<svg onload=alert(1)>")
    page = html_report(Run(run))
    tags = set(re.findall(r"<(\w+)", page))
    assert tags <= {
        "html",
        "meta",
        "title",
        "style",
        "h1",
        "p",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
    }
    assert not re.search(r"<[^>]*(?:spam\.example|javascript|onerror|onload)", page)
    assert "default-src 'none'" in page
