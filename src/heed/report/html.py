"""A run's report as one HTML file, with its curves inside, to send to somebody or to print.

The report of a run from elsewhere may contain anything: markup in it is shown as text, its images are left out except
for the curves, and the page forbids scripts and whatever is not in the file.
"""

from __future__ import annotations

import base64
import html
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from heed.core.errors import DataError, MissingInputError
from heed.report.curves import PICTURE
from heed.report.page import MAX_BYTES, report_text
from heed.run import Run

_STYLE = """
:root { color-scheme: light dark; --line: #d8d4ca; --soft: #5c6166; --code: #f3f1ec; }
@media (prefers-color-scheme: dark) { :root { --line: #3c4146; --soft: #a0a6ab; --code: #24282c; } }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1.25rem; }
h1, h2, h3 { line-height: 1.25; margin: 2rem 0 .5rem; }
h2 { border-top: 1px solid var(--line); padding-top: 1rem; }
img { max-width: 100%; height: auto; background: white; border-radius: .3rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; }
td[style*="right"], th[style*="right"] { font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font-size: .85em; overflow-wrap: anywhere; }
pre { background: var(--code); padding: .75rem 1rem; border-radius: .4rem; overflow-x: auto; }
li > ul { color: var(--soft); }
@media print { body { max-width: none; margin: 0; font-size: 10pt; }
  h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_report(run: Run) -> str:
    """The page. Raises MissingInputError for a run without a report, and DataError."""
    text = report_text(run)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image)
    parser.add_render_rule("table_open", lambda *_: '<div class="table"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    body = parser.render(text, {"picture": _picture(run)})
    title = html.escape(text.splitlines()[0].removeprefix("# ").replace("\\", "")) if text.strip() else "report"
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n{body}</html>\n"
    )


def _picture(run: Run) -> str:
    """The curves as the address of an image; empty if the run has none."""
    try:
        content = run.files.read(PICTURE, MAX_BYTES)
    except (MissingInputError, DataError):
        return ""
    is_png = content.startswith(b"\x89PNG\r\n\x1a\n")
    return f"data:image/png;base64,{base64.b64encode(content).decode()}" if is_png else ""


def _image(renderer: Any, tokens: list[Token], index: int, options: Any, env: dict[str, str]) -> str:
    if tokens[index].attrs.get("src") != PICTURE or not env["picture"]:
        return ""
    return f'<img alt="Training curves" src="{env["picture"]}">'
