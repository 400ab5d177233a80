"""Carriage returns in XML: each is written as a reference again, as a bare one would be read as a line feed."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

import pytest
from loud import given, translated
from packages import packed

TEXTS = "A dog.&#13;\nA cat.&#13;&#13;Red&#xD; cow&#13;"
NAMESPACE = "http://schemas.openxmlformats.org/{}/2006/main"
PARTS = {
    "a.docx": ("word/document.xml", "wordprocessingml", "<{n}d><{n}p><{n}r><{n}t>{}</{n}t></{n}r></{n}p></{n}d>"),
    "a.pptx": ("ppt/slides/slide1.xml", "drawingml", "<{n}sld><{n}p><{n}r><{n}t>{}</{n}t></{n}r></{n}p></{n}sld>"),
    "shared.xlsx": ("xl/sharedStrings.xml", "spreadsheetml", "<{n}sst><{n}si><{n}t>{}</{n}t></{n}si></{n}sst>"),
    "inline.xlsx": ("xl/worksheets/sheet1.xml", "spreadsheetml", "<{n}c><{n}is><{n}t>{}</{n}t></{n}is></{n}c>"),
}  # fmt: skip
"""For each file, a part, its namespace, and what is around its text."""


def read(data: bytes, part: str) -> str:
    """All text of a part as XML has it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return "".join(ElementTree.fromstring(archive.read(part)).itertext())


@pytest.mark.parametrize("name", PARTS)
def test_office_documents_keep_carriage_returns(name: str) -> None:
    part, kind, around = PARTS[name]
    text = around.format(TEXTS, n="x:").replace(">", f' xmlns:x="{NAMESPACE.format(kind)}">', 1)
    others = {"xl/workbook.xml": "<a/>"} if name.endswith("xlsx") else {}
    data = packed({part: text, **others})
    done = translated(name, data)
    assert read(done, part) == read(data, part).upper()
    assert read(done, part).count("\r") == 5
    assert read(translated(name, data, str), part) == read(data, part)


def test_a_workbook_keeps_carriage_returns_as_excel_writes_them() -> None:
    sheet = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>{}</t></si></sst>'
    data = packed({"xl/workbook.xml": "<a/>", "xl/sharedStrings.xml": sheet.format("One dog_x000D_\nand two_x000D_")})
    assert "x000D" not in " ".join(given("a.xlsx", data))
    assert read(translated("a.xlsx", data), "xl/sharedStrings.xml") == "ONE DOG_x000D_\nAND TWO_x000D_"
    assert translated("a.xlsx", data, str) == data


def test_open_document_reads_a_carriage_return_as_a_space() -> None:
    text = '<d xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><text:p>A dog&#13;&#10;runs.</text:p></d>'
    assert read(translated("a.odt", packed({"content.xml": text})), "content.xml") == "A DOG RUNS."


def test_xliff_keeps_carriage_returns() -> None:
    text = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">'
        f"<source>{TEXTS}</source></trans-unit></body></file></xliff>"
    )
    unit = ElementTree.fromstring(translated("a.xlf", text))
    (source,), (target,) = unit.iter("source"), unit.iter("target")
    assert source.text and target.text == source.text.upper()
    assert target.text.count("\r") == 5


def test_html_keeps_bare_carriage_returns_between_lines() -> None:
    text = "<p>A dog</p>\r\n<p>\r\n  A cat\r\n</p>\r\n"
    assert translated("a.html", text, str).decode() == text
