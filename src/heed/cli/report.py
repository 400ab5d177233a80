"""`heed report`: the report of a run, as Markdown or as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import require_writable
from heed.core.files import atomic_write, storage_errors


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    html: Annotated[Path | None, typer.Option(metavar="F", help="Write one HTML file, with the curves inside.")] = None,
) -> None:
    """Print the report of a run, or write it as one HTML file to send to somebody.

    The report has the model, the data, the curves, scores, samples and weaknesses.

    Examples:

      heed report runs/en-de

      heed report runs/en-de --html en-de.html
    """
    from heed.report.html import html_report
    from heed.report.page import REPORT, report_text, write_report
    from heed.run import Run

    opened = Run(run)
    require_writable(html, "--html")
    if not opened.files.has(REPORT):
        write_report(opened)
    if html is None:
        print(report_text(opened), end="")
        return
    with storage_errors("write the report", path=html), atomic_write(html, "w") as file:
        file.write(html_report(opened))
