"""Documents as the programs that people use write them: `tests/fixtures/documents/README.md` names them."""

from __future__ import annotations

import importlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from loud import given, translated
from markdown_it import MarkdownIt
from packages import packed

from heed.core.errors import DataError
from heed.text.readers.columns import Sides

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "documents"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix not in (".sh",))
FILES.remove("README.md")
PACKED = [name for name in FILES if name.endswith((".docx", ".xlsx", ".pptx", ".odt"))]
CODES = re.compile(
    r"<[^<>]*>|%(?:\d+\$)?[.\d]*[a-z%](?!\w)|%?\{\{?\w+\}?\}|https?://[^\s\"<>]+|\$t\([^()]*\)|\{\\[^{}]*\}"
)
"""Codes in the texts of these files."""
SIDES = {"stock.csv": Sides("en", "de", "Remark")}
SCRIPT, REFERENCE = "<script>alert('left alone')</script>", "https://example.org/mill?a=1&amp;b=2"


@cache
def done(name: str, function: Callable[[str], str] = str.upper, data: bytes | None = None) -> bytes:
    """A file with a function applied to each sentence."""
    raw = (FOLDER / name).read_bytes() if data is None else data
    return translated(name, raw, function, sides=SIDES.get(name, Sides("en", "de")))


def loud(text: str) -> str:
    """A text in capitals, but for its codes."""
    out, begin = "", 0
    for code in CODES.finditer(text):
        out += text[begin : code.start()].upper() + code[0]
        begin = code.end()
    return out + text[begin:].upper()


def parts(data: bytes) -> dict[str, bytes]:
    """The parts of a package, in order."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- (a) translated to itself


def changed_on_purpose(name: str, text: str) -> str:
    """A text without what changes although each sentence is its own translation."""
    if name.endswith(".html"):  # white space inside a sentence becomes a space, and the language is set
        return re.sub(r"\s+", " ", re.sub(r'\s(?:xml:)?lang="[\w-]+"', "", text))
    if name.endswith((".po", ".pot")):  # missing translations are filled in, and an empty language is set
        return re.sub(r'(?m)^msgstr.*\n(?:".*\n)*|^"Language:.*\n', "", text.replace('msgid ""\nmsgstr ""\n', ""))
    if name.endswith(".xlf"):
        return re.sub(r'\s*<target.*?</target>| state="translated"', "", text, flags=re.DOTALL)
    if name.endswith(".csv"):  # a column is added
        return re.sub(r'(?m),(?:"[^"]*"|[^,"\r\n]*)$', "", text)
    return re.sub(r"\A---\n(?:en|de):", "", text) if name.endswith(".yml") else text


@pytest.mark.parametrize("name", [name for name in FILES if name not in PACKED and name != "stock.csv"])
def test_a_file_that_is_translated_to_itself_is_the_same(name: str) -> None:
    before = (FOLDER / name).read_bytes().decode()
    assert changed_on_purpose(name, done(name, str).decode()) == changed_on_purpose(name, before)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".json", ".srt", ".vtt", ".md"))])
def test_files_without_a_language_or_targets_stay_the_same_bytes(name: str) -> None:
    assert done(name, str) == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", PACKED)
def test_the_parts_of_a_document_that_is_translated_to_itself_are_the_same(name: str) -> None:
    before, after = parts((FOLDER / name).read_bytes()), parts(done(name, str))
    assert [*after] == [*before]
    two_runs = b'<w:t xml:space="preserve"> </w:t></w:r><w:r><w:rPr></w:rPr><w:t xml:space="preserve">Figure </w:t>'
    one_run = b'<w:t xml:space="preserve"> Figure </w:t>'  # neighbours with the same format become one run
    for part, content in before.items():
        assert after[part] == content.replace(two_runs, one_run), part


# --- (b) translated into capitals


def texts_of_xml(data: bytes, paragraph: str, text: str = "", left_alone: str = "") -> list[str]:
    """The texts of the elements with a name, in order, without those inside a second element of a name."""
    found = []
    for element in ElementTree.fromstring(data).iter():
        if element.tag.rpartition("}")[2] == paragraph:
            skipped = {id(e) for each in element.iter() if each.tag.endswith(f"}}{left_alone}") for e in each.iter()}
            inside = [each for each in element.iter() if not text or each.tag.rpartition("}")[2] == text]
            found.append("".join(each.text or "" for each in inside if id(each) not in skipped))
    return found


def texts_of_word(data: bytes) -> list[str]:
    """The paragraphs of all parts, as python-docx has them, and descriptions."""
    docx = importlib.import_module("docx")
    package = docx.Document(io.BytesIO(data)).part.package
    blobs = {part.partname: part.blob for part in package.iter_parts() if str(part.partname).endswith(".xml")}
    found = [text for _, blob in sorted(blobs.items()) for text in texts_of_xml(blob, "p", "t")]
    return [*found, *re.findall('descr="([^"]+)"', blobs["/word/document.xml"].decode())]


def texts_of_slides(data: bytes) -> list[str]:
    """The paragraphs of slides and notes, as python-pptx has them."""
    pptx = importlib.import_module("pptx")
    slides = [*pptx.Presentation(io.BytesIO(data)).slides]
    shapes = [shape for slide in slides for shape in (*slide.shapes, *slide.notes_slide.shapes)]
    frames = [shape.text_frame for shape in shapes if shape.has_text_frame]
    frames += [cell.text_frame for shape in shapes if shape.has_table for cell in shape.table.iter_cells()]
    return [paragraph.text for frame in frames for paragraph in frame.paragraphs]


def texts_of_workbook(data: bytes) -> list[str]:
    """The cells, comments and links, as openpyxl has them."""
    openpyxl = importlib.import_module("openpyxl")
    cells = [cell for row in openpyxl.load_workbook(io.BytesIO(data)).active for cell in row]
    comments = [cell.comment.text for cell in cells if cell.comment]
    return [*(str(cell.value) for cell in cells), *comments, *(c.hyperlink.target for c in cells if c.hyperlink)]


PACKED_TEXTS: dict[str, tuple[Callable[[bytes], list[str]], Mapping[str, str]]] = {
    "guide.docx": (texts_of_word, {"From the great oak you see the sea.": "FROM THE great oak YOU SEE THE SEA."}),
    "stock.xlsx": (texts_of_workbook, {text: text for text in (
        "open", "closed", "Round tables", '=COUNTIF(A2:A3,"Round tables")', "https://example.org/stock",
    )}),
    "talk.pptx": (texts_of_slides, {}),
}  # fmt: skip
"""How the library of a format reads texts, and those that do not just become capitals."""


@pytest.mark.parametrize("name", PACKED_TEXTS)
def test_all_texts_of_an_office_document_are_translated_and_its_library_reads_them(name: str) -> None:
    texts, others = PACKED_TEXTS[name]
    before, after = texts((FOLDER / name).read_bytes()), texts(done(name))
    assert len(before) > 10
    kept = "<number>"
    assert after == [others.get(text, text.upper().replace(kept.upper(), kept)) for text in before]


def test_all_texts_of_an_open_document_are_translated() -> None:
    before, after = parts((FOLDER / "guide.odt").read_bytes()), parts(done("guide.odt"))
    assert {name for name in before if before[name] != after[name]} == {"content.xml", "styles.xml"}
    xml = after["content.xml"].decode()
    for text in ("OUR PATH BEGINS", "BEHIND THE OLD MILL", "FRIENDLY", "GREAT OAK", "A MILL BESIDE A RIVER", "SUMMER"):
        assert f">{text}<" in xml or f">{text} <" in xml, text
    assert ">left alone<" in xml
    assert REFERENCE in xml
    assert ">A GUIDE FOR WALKERS<" in after["styles.xml"].decode()
    words = re.findall(r"[a-z]{3,}", re.sub(r"<[^<>]*>|&\w+;", " ", xml.partition("<office:text>")[2]))
    assert sorted(words) == ["alone", "great", "left", "oak"]  # what was deleted, and a reference that is computed
    assert ElementTree.fromstring(after["content.xml"])


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".po", ".pot"))])
def test_catalogues_are_filled_in_and_polib_reads_them(name: str) -> None:
    polib = importlib.import_module("polib")
    before, after = (polib.pofile(data.decode()) for data in ((FOLDER / name).read_bytes(), done(name)))
    for old, new in zip(before, after, strict=True):
        assert (old.msgid, old.msgctxt, old.flags, old.obsolete) == (new.msgid, new.msgctxt, new.flags, new.obsolete)
        if old.msgid_plural:
            assert new.msgstr_plural == {0: loud(new.msgid), 1: loud(new.msgid_plural)}
        else:
            is_done = old.obsolete or (old.msgstr and "fuzzy" not in old.flags)
            assert new.msgstr == (old.msgstr if is_done else loud(new.msgid))


def test_a_new_catalogue_of_gettext_can_hold_a_translation() -> None:
    new = done("app-new.po", lambda text: f"Größe {text}").decode()
    assert "charset=UTF-8" in new
    assert 'msgstr "Größe Welcome back"' in new


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".xlf")])
def test_all_targets_of_xliff_are_filled_in_and_marked(name: str) -> None:
    units = [
        each for each in ElementTree.fromstring(done(name)).iter() if each.tag.endswith(("trans-unit", "}segment"))
    ]
    assert len(units) >= 3
    for unit in units:
        source, target = (next(each for each in unit if each.tag.endswith(end)) for end in ("source", "target"))
        texts = ["".join(each.itertext()) for each in (source, target)]
        was_done = texts[0].startswith(("Welcome", "Print", "Project"))
        assert texts[1] == (texts[1] if was_done else loud(texts[0]))
        assert [(each.tag, each.attrib) for each in source.iter()][1:] == [
            (each.tag, each.attrib) for each in target.iter()
        ][1:]
        marks = (target.get("state"), unit.get("state"))
        assert was_done or marks in (("needs-review-translation", None), (None, "translated"))
    assert done(name, data=done(name)) == done(name)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".xlf")])
def test_the_translate_toolkit_reads_xliff(name: str) -> None:
    module, kind = ("xliff2", "Xliff2File") if name == "app-2.0.xlf" else ("xliff", "xlifffile")
    storage = pytest.importorskip(f"translate.storage.{module}", reason="the Translate Toolkit is not installed")
    store = getattr(storage, kind).parsestring(done(name))
    assert len(store.units) >= 3
    assert all(unit.target for unit in store.units)


def strings(value: Any, path: str = "") -> dict[str, str]:
    """The strings of a structure by their places."""
    if isinstance(value, str):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {where: text for key, each in items for where, text in strings(each, f"{path}/{key}").items()}


@pytest.mark.parametrize(("name", "read"), [("shop-en.json", json.loads), ("shop.yml", yaml.safe_load)])
def test_all_strings_are_translated_but_codes(name: str, read: Callable[[bytes], Any]) -> None:
    before, after = strings(read((FOLDER / name).read_bytes())), strings(read(done(name)))
    kept = ("btn_open", ":year", ":month", "%Y-%m-%d", "10:30")
    assert after == {
        path.replace("/en/", "/de/"): text if text in kept else loud(text) for path, text in before.items()
    }


@pytest.mark.parametrize("name", ["film.srt", "film.vtt"])
def test_subtitles_keep_their_times_and_lines(name: str) -> None:
    before, after = ([*each.splitlines()] for each in ((FOLDER / name).read_text(), done(name).decode()))
    assert [line for line in after if "-->" in line] == [line for line in before if "-->" in line]
    assert len(after) == len(before)
    start = before.index(next(line for line in before if "-->" in line))
    assert " ".join(after[start:]).split() == loud(" ".join(before[start:])).split()


class Texts(HTMLParser):
    """The texts of a page, in capitals where it has no code, and its tags."""

    def __init__(self, shout: Callable[[str], str]) -> None:
        super().__init__()
        self.shout = shout
        self.out: list[str] = []
        self.kept: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """A tag, with its texts in capitals."""
        self.kept += [tag] if tag in ("style", "script", "code", "pre") else []
        texts = ("alt", "title", "content") if ("name", "description") in attributes else ("alt", "title")
        values = [(key, self.shout(value or "") if key in texts else value) for key, value in attributes]
        self.out.append(f"<{tag} {[each for each in values if 'lang' not in each[0]]}>")

    def handle_endtag(self, tag: str) -> None:
        """The end of an element."""
        if self.kept and self.kept[-1] == tag:
            self.kept.pop()
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """A text, with its white space as a browser shows it."""
        self.out.append(re.sub(r"\s+", " ", data if self.kept else self.shout(data)))


def page(text: str, shout: Callable[[str], str] = str) -> list[str]:
    """The tags and texts of a page."""
    reader = Texts(shout)
    reader.feed(text)
    return [each for each in reader.out if each.strip()]


@pytest.mark.parametrize("name", ["guide.html", "page.html"])
def test_all_texts_of_a_page_are_translated(name: str) -> None:
    before, after = (FOLDER / name).read_text(), done(name).decode()
    assert page(after) == page(before, str.upper)
    assert 'lang="de"' in after


@pytest.mark.parametrize("name", ["page-gfm.md", "page-pandoc.md"])
def test_all_texts_of_markdown_are_translated(name: str) -> None:
    before, after = (FOLDER / name).read_text(), done(name).decode()
    table = re.search(r"(?m)^  Loaf .*\n(?:  .*\n)+", before)
    for sign, text in {"H~2~O": "", "{#bread}": "", table[0] if table else "": "", "All about bread": ""}.items():
        before, after = before.replace(sign, text), after.replace(sign, text)
    assert len(before) > 500
    if name == "page-gfm.md":
        render = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render
        assert page(render(after)) == page(render(before), str.upper)
    assert not re.search(r"[a-z]{3}", re.sub(r"`[^`]*`|\([^()]*\)|    oven.*|<[^<>]*>", "", after))


def test_a_column_of_a_table_is_translated() -> None:
    assert b"TWO ARE BADLY BROKEN & LOOSE" in done("stock.csv")
    assert (FOLDER / "stock.csv").read_bytes().splitlines()[1].split(b",")[0] in done("stock.csv")


# --- (c) nasty twins

MAINS = {"guide.docx": "word/document.xml", "guide.odt": "content.xml", "stock.xlsx": "xl/sharedStrings.xml",
         "talk.pptx": "ppt/slides/slide1.xml"}  # fmt: skip


def with_parts(name: str, others: Mapping[str, bytes]) -> bytes:
    """A document with other parts."""
    return packed({**parts((FOLDER / name).read_bytes()), **others})


@pytest.mark.parametrize("name", MAINS)
def test_a_document_with_a_bomb_or_cut_off_is_refused(name: str) -> None:
    main = parts((FOLDER / name).read_bytes())[MAINS[name]]
    bomb = b'<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;">]>'
    declared = re.sub(rb"^(<\?xml[^>]*\?>)", rb"\1" + bomb, main)
    with pytest.raises(DataError, match="it has a document type"):
        done(name, data=with_parts(name, {MAINS[name]: declared}))
    with pytest.raises(DataError, match="times its size or more"):
        done(name, data=with_parts(name, {"bomb.bin": bytes(40 << 20)}))
    with pytest.raises(DataError, match="not a readable package"):
        done(name, data=(FOLDER / name).read_bytes()[:-60])


@pytest.mark.parametrize("name", MAINS)
def test_macros_and_links_to_outside_files_are_copied(name: str) -> None:
    outside = b'<Relationships><Relationship Id="r" Target="file:///etc/passwd" TargetMode="External"/></Relationships>'
    others = {"Basic/Standard/Module1.xml": b"Sub AutoOpen", "word/vbaProject.bin": b"\0VBA", "x/_rels/x.rels": outside}
    data = with_parts(name, others)
    after = parts(done(name, data=data))
    assert {part: after[part] for part in others} == others
    assert given(name, data) == given(name, (FOLDER / name).read_bytes())


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".xlf")])
def test_xliff_with_entities_is_refused(name: str) -> None:
    text = (FOLDER / name).read_text()
    at = text.index("<xliff")
    with pytest.raises(DataError, match="it has a document type"):
        done(name, data=f'{text[:at]}<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>{text[at:]}'.encode())


def test_a_catalogue_with_other_lines_is_refused() -> None:
    with pytest.raises(DataError, match="not a line of a PO file"):
        done("app.pot", data=(FOLDER / "app.pot").read_bytes() + b'msgid "open\n')


def test_broken_placeholders_and_tags_that_build_objects_stay() -> None:
    text = (FOLDER / "shop-en.json").read_text().replace("{{name}}", "{{name} {0")
    assert json.loads(done("shop-en.json", data=text.encode()))["shop"]["greeting"].startswith("HELLO {{")
    built = (FOLDER / "shop.yml").read_text() + "  built: !!python/object/apply:os.system [left alone]\n"
    assert "!!python/object/apply:os.system [" in done("shop.yml", data=built.encode()).decode()


def test_scripts_of_pages_stay() -> None:
    for name in ("page.html", "guide.html", "page-gfm.md"):
        text = (FOLDER / name).read_text() + f"\n\n{SCRIPT}\n"
        assert SCRIPT in done(name, data=text.encode()).decode()


def test_each_format_has_a_real_file() -> None:
    suffixes = {Path(name).suffix for name in FILES}
    assert suffixes >= {
        ".odt",
        ".docx",
        ".xlsx",
        ".pptx",
        ".po",
        ".xlf",
        ".json",
        ".yml",
        ".vtt",
        ".srt",
        ".md",
        ".html",
    }
    sizes = {name: (FOLDER / name).stat().st_size for name in FILES}
    assert max(size for name, size in sizes.items() if name != "talk.pptx") <= 20_000
    assert sum(sizes.values()) <= 120_000
