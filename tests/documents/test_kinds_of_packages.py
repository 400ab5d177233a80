"""Kinds of packed documents: an empty one stays as it is, and one with the suffix of another kind is refused."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping

import pytest
from loud import translated
from packages import packed

from heed.core.errors import DataError
from heed.documents.formats import format_of

ODF = "application/vnd.oasis.opendocument."


def of_library(module: str, make: str) -> bytes:
    """An empty document as the usual library of its format writes it."""
    document = getattr(importlib.import_module(module), make)()
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


EMPTY: dict[str, Callable[[], bytes]] = {
    "a.docx": lambda: of_library("docx", "Document"),
    "a.xlsx": lambda: of_library("openpyxl", "Workbook"),
    "a.pptx": lambda: of_library("pptx", "Presentation"),
    "a.odt": lambda: packed({"mimetype": f"{ODF}text", "content.xml": "<a/>", "styles.xml": "<a/>"}),
    "template.odt": lambda: packed({"mimetype": f"{ODF}text-template", "content.xml": "<a/>"}),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_document_stays_the_same_bytes(name: str) -> None:
    data = EMPTY[name]()
    assert translated(name, data) == data
    assert isinstance(format_of(name).sample(data, name), str)


@pytest.mark.parametrize(
    ("name", "parts", "message"),
    [
        (
            "a.pptx",
            {"word/document.xml": "<a/>"},
            "a.pptx: it is a Word document, although .* Rename it to end in .docx",
        ),
        ("a.docx", {"ppt/presentation.xml": "<a/>"}, "it is a PowerPoint presentation, .* to end in .pptx"),
        ("a.odt", {"xl/workbook.xml": "<a/>"}, "a.odt: it is an Excel workbook, .* Rename it to end in .xlsx"),
        ("a.xlsx", {"mimetype": f"{ODF}text", "content.xml": "<a/>"}, "it is an OpenDocument text, .* to end in .odt"),
        (
            "a.odt",
            {"mimetype": f"{ODF}spreadsheet", "content.xml": "<a/>"},
            "OpenDocument spreadsheet, although .*, and .ods is not supported. Save it as xlsx",
        ),
        (
            "a.odt",
            {"mimetype": f"{ODF}presentation"},
            "OpenDocument presentation, .* .odp is not supported. Save it as",
        ),
        ("a.odt", {"mimetype": f"{ODF}graphics"}, "OpenDocument graphics, .* .odg is not supported. Copy its pages"),
        ("a.docx", {"mimetype": "application/epub+zip"}, "an EPUB book, .* .epub is not supported. Convert it with"),
        ("a.docx", {"notes.txt": "A dog"}, "a ZIP package, but not a .docx document"),
        ("a.pptx", {"notes.txt": "A dog"}, "a ZIP package, but not a .pptx document"),
    ],
)
def test_a_document_of_another_kind_is_refused_with_its_name(name: str, parts: Mapping[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(name, packed(parts))
