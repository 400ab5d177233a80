"""Fields of Word whose results are several paragraphs: what a program computes stays, all else is translated."""

from __future__ import annotations

import pytest
from loud import given, translated
from packages import packed

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BEGIN, SEPARATE, END = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))


def code(text: str) -> str:
    """The code of a field."""
    return f"<w:r><w:instrText> {text} </w:instrText></w:r>"


def word(*paragraphs: str) -> bytes:
    """A Word document."""
    body = "".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)
    return packed({"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"})


def run(text: str) -> str:
    """A run."""
    return f"<w:r><w:t>{text}</w:t></w:r>"


@pytest.mark.parametrize("kind", ["BIBLIOGRAPHY", 'INDEX \\c "2"', "ADDIN ZOTERO_BIBL {} CSL", "ADDIN EN.REFLIST"])
def test_results_that_word_computes_stay(kind: str) -> None:
    data = word(
        run("A dog"), BEGIN + code(kind) + SEPARATE + run("Left alone"), run("Left alone"),
        run("On page ") + BEGIN + code("PAGEREF _x") + SEPARATE + run("7") + END, run("Left alone") + END, run("Two")
    )  # fmt: skip
    assert given("a.docx", data) == ["A dog", "Two"]
    assert translated("a.docx", data, str) == data


def test_tables_of_contents_are_text() -> None:
    data = word(BEGIN + code("TOC") + SEPARATE + run("One"), run("Two"), run("Three") + END, run("Four"))
    assert given("a.docx", data) == ["One", "Two", "Three", "Four"]


def test_text_next_to_such_a_field_is_translated() -> None:
    data = word(run("See ") + BEGIN + code("INDEX") + SEPARATE + run("a list"), run("Left alone") + END, run("Two"))
    sentences = given("a.docx", data)
    assert "Left alone" not in sentences
    assert "Two" in sentences
    assert any("See" in sentence for sentence in sentences)


def test_a_field_that_never_ends_leaves_other_text_alone() -> None:
    data = word(BEGIN + code("PAGE") + SEPARATE + run("One"), run("Two"))
    assert given("a.docx", data)[-1] == "Two"
