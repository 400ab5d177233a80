"""Office documents: text is translated, formats move with their words, and all else stays byte by byte."""

from __future__ import annotations

import importlib
import io
import random
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from xml.etree import ElementTree

import pytest
from loud import EN_DE, STEP, Each, given, translated
from packages import packed

from heed.core.errors import DataError
from heed.documents.file_format import FileContext
from heed.documents.formats import translate_file
from heed.documents.inline_tags import Links
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import TranslateOptions
from heed.documents.workbook_references import texts_of

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A package with these parts."""
    return packed({"[Content_Types].xml": "<Types/>", **parts})


def word(body: str, others: Mapping[str, str | bytes] | None = None) -> bytes:
    """A Word document."""
    main = f"{HEAD}<w:document {W}><w:body>{body}</w:body></w:document>"
    return zipped({"word/document.xml": main, **(others or {})})


def part(data: bytes, name: str = "word/document.xml") -> str:
    """A part of a package."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return archive.read(name).decode()


def run(text: str, properties: str = "", attributes: str = "") -> str:
    """A run of Word."""
    space = ' xml:space="preserve"' if text != text.strip() else ""
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f"<w:r{attributes}>{properties}<w:t{space}>{text}</w:t></w:r>"


BOLD, ITALIC = "<w:b/>", "<w:i/>"
BEGIN, SEPARATE, END = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))


def code(text: str) -> str:
    """A run with the code of a field."""
    return f'<w:r><w:instrText xml:space="preserve"> {text} </w:instrText></w:r>'


LINK = BEGIN + code('HYPERLINK "left alone"') + SEPARATE + "{}" + END
PAGE = BEGIN + code("PAGEREF _x") + SEPARATE + "{}" + END
TORN = f"<w:ins>{BEGIN}{code('{}')}</w:ins>{SEPARATE}{{}}<w:ins>{{}}{END}{{}}</w:ins>"
PARAGRAPHS = {
    "formats": '<w:p w:rsidR="1"><w:pPr><w:jc/></w:pPr>' + run("A ") + run("bold ", BOLD) + run("and ", "", ' w:x="1"')
    + run("both", BOLD + ITALIC) + run(" dog.  End", ITALIC) + "</w:p>",
    "link": f'<w:p>{run("See ")}<w:hyperlink r:id="i">{run("this link", "<w:u/>")}</w:hyperlink>{run(" now.")}</w:p>',
    "field": f"<w:p>{run('On this ')}{LINK.format(run('nice page'))}{run(' of it')}</w:p>",
    "number": f"<w:p>{run('On page ')}{PAGE.format(run('7'))}{run(' of it, &quot;7&quot;')}</w:p>",
    "torn link": f"<w:p>{run('On ')}{TORN.format('HYPERLINK', run('this '), run('page'), run(' of it'))}</w:p>",
    "simple field": f"<w:p>{run('A ')}<w:fldSimple w:instr='HYPERLINK x'>{run('link')}</w:fldSimple>{run('.')}</w:p>",
    "note": f'<w:p>{run("A word")}<w:r><w:rPr><w:v/></w:rPr><w:footnoteReference w:id="2"/></w:r>{run(" more")}</w:p>',
    "tracked": f'<w:p>{run("It ")}<w:ins w:id="1">{run("really ")}</w:ins><w:del w:id="2"><w:r><w:delText>left alone'
    f"</w:delText></w:r></w:del>{run('works')}</w:p>",
    "control": f"<w:p>{run('Name: ')}<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{run('your name')}</w:sdtContent>"
    f"</w:sdt>{run('.')}</w:p>",
    "breaks": "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>",
    "box": f"<w:p>{run('before ')}<w:r><w:pict><w:box><w:txbxContent><w:p>{run('inside the')}{run(' box', BOLD)}</w:p>"
    f"</w:txbxContent></w:box></w:pict></w:r>{run(' after')}</w:p>",
    "bookmark": f'<w:p>{run("a ")}<w:bookmarkStart w:id="0" w:name="x"/>{run("marked")}<w:bookmarkEnd w:id="0"/></w:p>',
    "entities": f"<w:p>{run('Q&amp;A &lt;x&gt; it&apos;s &quot;so&quot;')}</w:p>",
    "spaced": f"<w:p>\n  {run('one ')}\n  {run('two', BOLD)}\n</w:p>\n",
    "empty": "<w:p/><w:p><w:pPr/></w:p><w:p><w:r/></w:p><w:p><w:r><w:t></w:t></w:r></w:p>" + f"<w:p>{run('12')}</w:p>",
}  # fmt: skip


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_a_document_that_is_translated_to_itself_is_the_same_bytes(name: str) -> None:
    data = word(PARAGRAPHS[name])
    assert translated("a.docx", data, str) == data


def shouted(xml: str) -> str:
    """XML with the text of its runs in capitals, but for its entities."""
    words = re.compile(r"&\w+;|[^&]+")

    def loud(found: re.Match[str]) -> str:
        parts = words.findall(found[2])
        return found[1] + "".join(each if each.startswith("&") else each.upper() for each in parts)

    return re.sub(r"(<w:t(?: [^>]*)?>)([^<]*)", loud, xml)


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_only_the_words_of_a_document_change(name: str) -> None:
    data = word(PARAGRAPHS[name])
    assert part(translated("a.docx", data)) == shouted(part(data))


def test_formats_move_with_their_words() -> None:
    body = f"<w:p>{run('one ')}{run('two', BOLD)}{run(' three')}</w:p>"
    done = part(translated("a.docx", word(body), lambda text: "three one two" if text == "one two three" else text))
    assert re.findall("<w:t[^>]*>([^<]*)", done) == ["three ", "one", " two"]  # linked by their places in the stub
    assert re.findall("<w:rPr>.*?<w:t>(.*?)<", done) == ["one"]


def test_neighbours_with_the_same_format_become_one_run() -> None:
    first = run("Hel", BOLD, ' w:rsidR="1"')
    broken = f'<w:p>{first}<w:proofErr w:type="spellStart"/>'
    broken += f"<w:r><w:rPr>{BOLD}</w:rPr><w:lastRenderedPageBreak/><w:t>lo</w:t></w:r>"
    broken += f"{run(' you', BOLD)}{run(' there')}</w:p>"
    assert given("a.docx", word(broken)) == ["Hello you there"]
    done = part(translated("a.docx", word(broken)))
    assert f"<w:p>{first.replace('Hel', 'HELLO YOU')}{run(' THERE')}</w:p>" in done


FIELDS = {
    "PAGE": PAGE.format(run("left alone")),
    "no result": BEGIN + code("XE left alone") + END,
    "simple": f"<w:fldSimple w:instr=' SEQ Figure '>{run('left alone')}</w:fldSimple>",
    "code in pieces": BEGIN + "<w:r><w:instrText>MERGE</w:instrText><w:instrText>FIELD a</w:instrText></w:r>" + SEPARATE
    + run("left alone") + END,
    "in one run": (BEGIN + code("=1+1") + SEPARATE + run("left alone") + END).replace("</w:r><w:r>", ""),
    "nested": BEGIN + code("IF") + BEGIN + code("MERGEFIELD a") + SEPARATE + run("left") + END + code('= "b" "c"')
    + SEPARATE + run("left &quot;") + LINK.format(run("alone")) + run("&quot;") + END,
    "empty form": BEGIN + code("FORMTEXT") + SEPARATE + run("\u2002\u2002") + END,
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_what_word_computes_is_kept_whole_as_one_tag(name: str) -> None:
    """Word would compute it again, so no word of the sentence may be in it."""
    field = FIELDS[name]
    data = word(f"<w:p>{run('See page ')}{field}{run(' of the book.')}</w:p>")
    assert given("a.docx", data) == ["See page of the book."]
    assert translated("a.docx", data, str) == data
    done = part(translated("a.docx", data, lambda text: "OF THE BOOK SEE PAGE."))
    assert field in done
    assert re.sub("<[^>]*>", "", done.replace(field, "|")).split() == ["OF", "THE", "|", "BOOK", "SEE", "PAGE."]
    alone = word(f"<w:p>{field}</w:p>")
    assert translated("a.docx", alone) == alone


@pytest.mark.parametrize(
    "body",
    [
        f"<w:p>{run('A well')}<w:r><w:noBreakHyphen/></w:r>{run('known dog')}</w:p>",
        f"<w:p>{run('A well', BOLD)}<w:r><w:rPr>{BOLD}</w:rPr><w:noBreakHyphen/><w:t>known</w:t></w:r>"
        f"{run(' dog')}</w:p>",
        "<w:p><w:r><w:t>A well</w:t><w:noBreakHyphen/><w:t>known dog</w:t></w:r></w:p>",
    ],
    ids=["a run of its own", "before a text", "in a run"],
)
def test_a_hyphen_that_does_not_break_is_in_its_word(body: str) -> None:
    assert given("a.docx", word(body)) == ["A well-known dog"]
    done = part(translated("a.docx", word(body)))
    assert ElementTree.fromstring(done) is not None
    assert "".join(re.findall(r"<w:t[^>]*>([^<]*)<", done)) == "A WELL-KNOWN DOG" and "noBreakHyphen" not in done
    dash = "<w:p><w:r><w:t>5</w:t><w:noBreakHyphen/><w:t>10</w:t></w:r></w:p>"
    assert dash in part(translated("a.docx", word(dash)))


def test_links_in_a_table_of_contents_are_translated_and_their_numbers_of_pages_stay() -> None:
    entry = LINK.format(run("A {}") + "<w:r><w:tab/></w:r>" + PAGE.format(run("left alone")))
    head = f"<w:p><w:pPr/>{BEGIN}{code('TOC o')}{SEPARATE}"
    body = f"{head}{entry.format('heading')}</w:p><w:p>{entry.format('second')}{END}</w:p><w:p>{LINK.format('')}</w:p>"
    data = word(body)
    assert given("a.docx", data) == ["A heading", "A second"]
    done = part(translated("a.docx", data))
    assert done == part(data).replace("A heading", "A HEADING").replace("A second", "A SECOND")


def test_a_result_that_is_computed_stays_where_a_tracked_insertion_overlaps_its_field() -> None:
    torn = TORN.format("PAGE", run("left "), run("alone"), run(" after"))
    data = word(f"<w:p>{run('before ')}{torn}</w:p>")
    assert given("a.docx", data) == ["before", "after"]
    assert part(translated("a.docx", data)) == part(data).replace("before", "BEFORE").replace("after", "AFTER")


class AnyLinks(Each):
    """Shuffles words, and links them to any others."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(lambda text: " ".join(source.sample(text.split(), len(text.split()))))
        self.source = source

    def links(self, step: object, pairs: Sequence[tuple[str, str]]) -> list[Links]:
        """Some links."""
        return [
            [(self.source.randrange(len(a.split())), n) for n in range(len(b.split())) if self.source.random() < 0.8]
            for a, b in pairs
        ]


def random_content(source: random.Random, depth: int = 0) -> str:
    """Runs, pairs, fields and text boxes inside one another."""
    inside = "".join(random_content(source, depth + 1) for _ in range(source.randint(0, 3))) if depth < 4 else ""
    words = "".join(source.choice(["word ", " other", "more, ", "end. "]) for _ in range(source.randint(1, 4)))
    text = f'<w:t xml:space="preserve">{words}</w:t>'
    properties = source.choice(["", f"<w:rPr>{BOLD}</w:rPr>", f"<w:rPr>{ITALIC}</w:rPr>"])
    some_run = f"<w:r>{properties}{source.choice(['<w:tab/>', '<w:sym/>', text, text, text, text])}{text}</w:r>"
    return source.choice([
        *[some_run] * 6, f"<w:hyperlink>{inside}</w:hyperlink>", f"<w:ins>{inside}</w:ins>", LINK.format(inside),
        PAGE.format(inside), TORN.format("PAGE", inside, some_run, some_run), TORN.format("TOC", some_run, inside, ""),
        f"<w:sdt><w:sdtPr/><w:sdtContent>{inside}</w:sdtContent></w:sdt>", "<w:bookmarkStart/>",
        f"<w:r><w:pict><w:p>{inside}</w:p></w:pict></w:r>",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_wherever_words_go_the_document_is_well_formed_and_complete(seed: int) -> None:
    source = random.Random(seed)
    data = word("".join(f"<w:p>{''.join(random_content(source) for _ in range(4))}</w:p>" for _ in range(4)))
    translator = TextTranslator(AnyLinks(source), [STEP], TranslateOptions())
    before, after = part(data), part(translate_file(data, translator, FileContext("a.docx", EN_DE)))
    assert Counter("".join(re.sub("<[^>]*>", "", after).split())) == Counter(
        "".join(re.sub("<[^>]*>", "", before).split())
    )
    markup = r"<w:(?:hyperlink|ins|sdt|bookmarkStart|pict|tab|sym|instrText)\b"
    assert Counter(re.findall(markup, after)) == Counter(re.findall(markup, before))
    root = ElementTree.fromstring(after)
    parents = {child.tag.partition("}")[2]: parent.tag.partition("}")[2] for parent in root.iter() for child in parent}
    assert parents["t"] == "r"
    assert parents["r"] in ("p", "hyperlink", "ins", "sdtContent")
    depth = 0
    for kind in re.findall('fldCharType="(begin|end)', after):
        depth += 1 if kind == "begin" else -1
        assert depth >= 0


def test_headers_notes_and_comments_are_translated_and_the_other_parts_stay() -> None:
    inner = zipped({"a": "nested package"})
    others = {
        "word/header1.xml": f"<w:hdr {W}><w:p>{run('a header')}</w:p></w:hdr>",
        "word/footnotes.xml": f"<w:footnotes {W}><w:p>{run('a note')}</w:p></w:footnotes>",
        "word/vbaProject.bin": b"\xd0\xcf\x11\xe0 left alone",
        "word/embeddings/sheet.xlsx": inner,
        "word/styles.xml": f"<w:styles {W}><w:p>{run('left alone')}</w:p></w:styles>",
        "word/_rels/document.xml.rels": '<R Target="http://example.com/left-alone" TargetMode="External"/>',
        "docProps/core.xml": "<c><title>left alone</title></c>",
    }
    data = word(f"<w:p>{run('a text')}</w:p>", others)
    done = translated("a.docx", data)
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(io.BytesIO(done)) as after:
        assert [each.filename for each in after.infolist()] == [each.filename for each in before.infolist()]
        assert [each.date_time for each in after.infolist()] == [each.date_time for each in before.infolist()]
        changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
    assert changed == ["word/document.xml", "word/header1.xml", "word/footnotes.xml"]
    assert "A HEADER" in part(done, "word/header1.xml")


# --- slides, workbooks, text documents -------------------------------------------------------------------

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def test_slides_keep_fields_and_the_formats_of_runs() -> None:
    text = '<a:r><a:rPr lang="en" {}/><a:t>{}</a:t></a:r>'
    paragraph = (
        '<a:p><a:pPr lvl="1"/>' + text.format('dirty="0"', "A plain ") + text.format("", "text ")
        + text.format('b="1"', "bold") + "<a:br/>" + text.format("", "second line")
        + '<a:fld type="slidenum"><a:rPr/><a:t>seven</a:t></a:fld>'
        + '<a:endParaRPr lang="en"/></a:p>'
    )  # fmt: skip
    data = zipped({"ppt/slides/slide1.xml": f"<p:sld xmlns:p='urn:p' {A}>{paragraph}</p:sld>"})
    assert given("a.pptx", data) == ["A plain text bold", "second line"]
    done = part(translated("a.pptx", data), "ppt/slides/slide1.xml")
    assert re.findall("<a:t>(.*?)</a:t>", done) == ["A PLAIN TEXT ", "BOLD", "SECOND LINE", "seven"]
    assert 'b="1"/><a:t>BOLD' in done and "<a:br/>" in done and done.endswith('<a:endParaRPr lang="en"/></a:p></p:sld>')


STRINGS = (
    "<si><t>A cell</t></si><si><t>Yes</t></si><si><t>SKU_12</t></si><si><t>12.5</t></si><si><t>Price</t></si>"
    "<si><r><rPr><b/></rPr><t>rich</t></r><r><t xml:space='preserve'> text</t></r><phoneticPr fontId='1'/></si>"
    "<si><t xml:space='preserve'>one\ntwo </t></si>"
)


def test_workbooks_keep_numbers_formulas_dates_and_what_they_refer_to() -> None:
    sheet = (
        f"<worksheet {S}><sheetData><row><c t='s'><v>0</v></c>"
        "<c t='str'><f>IF(A1=&quot;Yes&quot;,1,&quot;No way&quot;)</f><v>left alone</v></c>"
        "<c s='14'><v>45000</v></c><c t='inlineStr'><is><t>Inline text</t></is></c>"
        "<c t='inlineStr'><is><t>No way</t></is></c></row></sheetData></worksheet>"
    )
    table = f"<table {S}><tableColumns><tableColumn id='1' name='Price'/></tableColumns></table>"
    data = zipped({
        "xl/workbook.xml": f"<workbook {S}><sheets><sheet name='Left alone'/></sheets></workbook>",
        "xl/sharedStrings.xml": f"<sst {S}>{STRINGS}</sst>", "xl/worksheets/sheet1.xml": sheet,
        "xl/tables/table1.xml": table, "xl/charts/style1.xml": "<a>left alone</a>",
    })  # fmt: skip
    assert translated("a.xlsx", data, str) == data
    done = translated("a.xlsx", data)
    expected = STRINGS.replace("A cell", "A CELL").replace("rich", "RICH").replace(" text", " TEXT")
    expected = expected.replace("one\ntwo", "ONE\nTWO")
    assert part(done, "xl/sharedStrings.xml") == f"<sst {S}>{expected}</sst>"
    assert part(done, "xl/worksheets/sheet1.xml") == sheet.replace("Inline text", "INLINE TEXT")


SHEETS = '<sheets><sheet name="A" sheetId="1"/></sheets>'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f'{SHEETS}<calcPr calcId="1"/>', f'{SHEETS}<calcPr calcId="1" fullCalcOnLoad="1"/>'),
        (f"{SHEETS}<calcPr fullCalcOnLoad='0' />", f'{SHEETS}<calcPr fullCalcOnLoad="1" />'),
        (f"{SHEETS}<calcPr></calcPr>", f'{SHEETS}<calcPr fullCalcOnLoad="1"></calcPr>'),
        (f"{SHEETS}<oleSize ref='A1'/>", f"{SHEETS}<calcPr fullCalcOnLoad=\"1\"/><oleSize ref='A1'/>"),
        (f"{SHEETS}<definedNames/><extLst/>", f'{SHEETS}<definedNames/><calcPr fullCalcOnLoad="1"/><extLst/>'),
        (f"<!-- <calcPr/> -->{SHEETS}", f'<!-- <calcPr/> -->{SHEETS}<calcPr fullCalcOnLoad="1"/>'),
    ],
)
@pytest.mark.parametrize("prefix", ["", "x:"])
def test_a_workbook_with_translated_cells_asks_for_new_results_of_its_formulas(
    before: str, after: str, prefix: str
) -> None:
    def book(content: str, formula: str) -> bytes:
        sheet = f"<worksheet {S}><sheetData><row><c t='str'>{formula}</c></row></sheetData></worksheet>"
        main = re.sub(r"<(/?)(?=\w)", rf"<\1{prefix}", f"<workbook {S}>{content}</workbook>")
        main = main.replace("xmlns=", f"xmlns:{prefix[:-1]}=") if prefix else main
        strings = f"<sst {S}><si><t>A cell</t></si></sst>"
        parts = {"xl/workbook.xml": main, "xl/sharedStrings.xml": strings, "xl/worksheets/sheet1.xml": sheet}
        return zipped(parts)

    data = book(before, "<f>A1</f><v>A cell</v>")
    assert translated("a.xlsx", data, str) == data
    changed = part(translated("a.xlsx", data), "xl/workbook.xml")
    assert changed == part(book(after, ""), "xl/workbook.xml")
    for formula in ("", "<f>A1</f>", "<v>1</v>"):  # no result that is stored
        data = book(before, formula)
        assert part(translated("a.xlsx", data), "xl/workbook.xml") == part(data, "xl/workbook.xml")


def heading(cell: str, name: str) -> bytes:
    """A workbook with a cell and a table that names it as its heading."""
    return zipped({
        "xl/workbook.xml": f"<workbook {S}/>", "xl/sharedStrings.xml": f"<sst {S}><si><t>{cell}</t></si></sst>",
        "xl/tables/table1.xml": f'<table {S}><tableColumns><tableColumn id="1" name="{name}"/></tableColumns></table>',
    })  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("Unit price\nin dollars", "Unit price_x000a_in dollars"),
        ("Unit price\nin dollars", "Unit price&#10;in dollars"),
        ("Unit price_x000D_\nin dollars", "Unit price_x000a_in dollars"),
        ("Unit price\nin dollars", "Unit price_x000D__x000A_in dollars"),
        ("The _x005F_x000a_ sign", "The _x005F_x000A_ sign"),
    ],
)
def test_headings_of_tables_stay_although_excel_writes_their_line_breaks_in_another_form(cell: str, name: str) -> None:
    data = heading(cell, name)
    assert translated("a.xlsx", data) == data


def test_a_heading_is_not_one_with_a_line_break_in_place_of_an_escaped_escape() -> None:
    assert given("a.xlsx", heading("Unit price\nin dollars", "Unit price_x005F_x000a_in dollars"))


def test_readings_of_a_japanese_cell_go_from_a_translated_text() -> None:
    sheet = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    reading = '<rPh sb="0" eb="1"><t>いぬ</t></rPh>{}<phoneticPr fontId="1"/>'
    twice = reading.format('<rPh sb="1" eb="2"><t>と</t></rPh>')
    cells = f"<si><t>犬</t>{reading.format('')}</si><si><r><t>犬</t></r><r><rPr><b/></rPr><t>と</t></r>{twice}</si>"
    kept = f"<si><t>1</t>{reading.format('')}</si>"
    data = zipped(
        {"xl/workbook.xml": f"<workbook {sheet}/>", "xl/sharedStrings.xml": f"<sst {sheet}>{cells}{kept}</sst>"}
    )
    assert given("a.xlsx", data) == ["犬", "犬と"]
    done = part(translated("a.xlsx", data, lambda text: "A dog."), "xl/sharedStrings.xml")
    assert done.startswith(f'<sst {sheet}><si><t>A dog.</t><phoneticPr fontId="1"/></si><si><r>')
    assert done.endswith(f'</r><phoneticPr fontId="1"/></si>{kept}</sst>') and done.count("<rPh") == 1


def test_words_below_readings_are_words_of_their_sentence() -> None:
    def ruby(text: str, reading: str) -> str:
        above = f"<w:rubyPr><w:hps/></w:rubyPr><w:rt>{reading}</w:rt>"
        return f"<w:r><w:ruby>{above}<w:rubyBase>{text}</w:rubyBase></w:ruby></w:r>"

    mark = '<w:bookmarkStart w:id="1"/>'
    two = ruby(run("big") + mark, run("left")) + ruby(run(" dogs", BOLD), run("alone"))
    body = f"<w:p>{run('Two ')}{two}{run('.')}</w:p>"
    assert given("a.docx", word(body)) == ["Two big dogs."]
    done = part(translated("a.docx", word(body)))
    assert f"<w:p>{run('TWO BIG')}{mark}{run(' DOGS', BOLD)}{run('.')}</w:p>" in done
    kept = f"<w:p>{ruby(run('12'), run('left alone'))}</w:p>"
    assert translated("a.docx", word(kept)) == word(kept)


def test_words_below_readings_of_a_text_document_are_words_of_their_sentence() -> None:
    content = '<a xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><text:p>{}</text:p></a>'
    base = "<text:ruby-base>big <text:span>{}</text:span></text:ruby-base>"
    ruby = f"<text:ruby text:style-name='R'>{base}<text:ruby-text>left alone</text:ruby-text></text:ruby>"
    data = zipped({"content.xml": content.format(f"Two {ruby.format('dogs')}.")})
    assert given("a.odt", data) == ["Two big dogs."]
    expected = content.format("TWO BIG <text:span>DOGS</text:span>.")
    assert part(translated("a.odt", data), "content.xml") == expected


def test_a_content_control_without_content_stays() -> None:
    body = f"<w:p>{run('A dog')}<w:sdt><w:sdtPr><w:id/></w:sdtPr></w:sdt>{run(' runs')}</w:p><w:p>{run('now')}</w:p>"
    assert part(translated("a.docx", word(body))) == shouted(part(word(body)))


def test_cells_that_formulas_match_or_search_stay_in_a_workbook_of_openpyxl() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    cells = [
        "A dog runs", "a DOG sits", "A boy", "A girl", "A woman walks", "The men eat", "Some rice here", "No.",
        "A* cat", "Ten apples",
    ]  # fmt: skip
    formulas = [
        '=SUMIF(A1:A9,"A dog*",B1:B9)', '=COUNTIF(A1:A9,"<>A boy")', '=SUM(COUNTIF(A1:A9,{"=A gir?","x"}))',
        '=IF(ISNUMBER(SEARCH("woman",A5)),"yes","rice")', '=IF(LEFT(A6,7)="The men","eat",1)', '="No"&A8',
        '=SUBSTITUTE(A1," ","")', '=COUNTIF(A1:A9,"a~* cat")', '=COUNTIF(A1:A9,"*"&"apple"&"*")', '=COUNTIF(A1:A9,"*")',
    ]  # fmt: skip
    book = openpyxl.Workbook()
    for row in zip(cells, formulas, strict=True):
        book.active.append(row)
    data = io.BytesIO()
    book.save(data)
    done = openpyxl.load_workbook(io.BytesIO(translated("a.xlsx", data.getvalue())))
    assert [cell.value for cell in done.active["B"]] == formulas
    changed = [cell.value for cell, before in zip(done.active["A"], cells, strict=True) if cell.value != before]
    assert changed == ["SOME RICE HERE", "NO."]


@pytest.mark.parametrize(
    ("formula", "uses"),
    [
        ('IF(A1>3,"yes","no")', ["whole", "whole"]),
        ('IF(A1="yes","say ""no""",B1&" no")', ["whole", "whole", "whole"]),
        ('IF(LEFT(A1,3)="yes","no")', ["part", "whole"]),
        ('IF(OR(MID(A1,2,1)={"a","b"}),"no")', ["part", "part", "whole"]),
        ('IF(A1=B1&" a","no")', ["part", "whole"]),
        ("VLOOKUP(\"a\",'it''s \"my\" sheet'!A1:B6,2)", ["criterion"]),
        ('_xlfn.XLOOKUP("a?",A1,B1,"no")', ["criterion", "criterion"]),
        ('IFERROR(MATCH("a*"&B1,A:A,0),"no")', ["part", "whole"]),
        ('IFERROR(find(UPPER("a"),A1),"no")', ["part", "whole"]),
        ('A1))="a"', ["whole"]),
    ],
)
def test_how_a_formula_uses_its_texts(formula: str, uses: list[str]) -> None:
    assert [use for _, use in texts_of(formula)] == uses


def test_comments_of_a_workbook_may_have_the_words_of_formulas() -> None:
    sheet = (
        f"<worksheet {S}><c><f>SEARCH(&quot;dog&quot;,A1)</f></c><autoFilter><customFilter val='*cat'/></autoFilter>"
    )
    data = zipped({
        "xl/workbook.xml": "<a/>", "xl/worksheets/sheet1.xml": f"{sheet}</worksheet>",
        "xl/sharedStrings.xml": f"<sst {S}><si><t>a dog</t></si><si><t>a cat</t></si></sst>",
        "xl/comments1.xml": f"<comments {S}><text><t>a dog</t></text><text><t>SKU_12</t></text></comments>",
    })  # fmt: skip
    assert given("a.xlsx", data) == ["a dog"]
    assert "<t>A DOG</t>" in part(translated("a.xlsx", data), "xl/comments1.xml")


def test_comments_of_openpyxl_are_translated() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    comments = importlib.import_module("openpyxl.comments")
    book = openpyxl.Workbook()
    book.active["A1"] = "A cell"
    book.active["A1"].comment = comments.Comment("A comment\nwith a dog", "An author")
    data = io.BytesIO()
    book.save(data)
    done = openpyxl.load_workbook(io.BytesIO(translated("a.xlsx", data.getvalue()))).active["A1"]
    assert (done.value, done.comment.text) == ("A CELL", "A COMMENT\nWITH A DOG")
    assert done.comment.author == "An author"


def test_parts_with_text_are_found_by_their_content_types_and_threads_of_comments_too() -> None:
    office, excel = "application/vnd.openxmlformats-officedocument.spreadsheetml", "application/vnd.ms-excel"
    types = {
        "/xl/a.xml": f"{office}.comments+xml", "/xl/b.xml": f"{excel}.threadedcomments+xml",
        "/xl/c.xml": f"{office}.styles+xml", "/xl/missing.xml": f"{office}.comments+xml",
    }  # fmt: skip
    overrides = "".join(f"<Override PartName='{name}' ContentType='{kind}'/>" for name, kind in types.items())
    thread = (
        "<ThreadedComments xmlns='http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments'>"
        "<threadedComment ref='A1'><text>Tom &amp; a {}</text></threadedComment><threadedComment><text>@Tom left alone"
        "</text><mentions><mention startIndex='0' length='4'/></mentions></threadedComment>"
        "<threadedComment><text/></threadedComment></ThreadedComments>"
    )
    comments = f"<comments {S}><commentList><comment><text><r><t>{{}}</t></r></text></comment></commentList></comments>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", f"<Types>{overrides}<Default Extension='xml'/></Types>")
        archive.writestr("xl/workbook.xml", "<a/>")
        archive.writestr("xl/a.xml", comments.format("a dog"))
        archive.writestr("xl/b.xml", thread.format("dog"))
        archive.writestr("xl/c.xml", comments.format("left alone"))
    done = translated("a.xlsx", out.getvalue())
    assert part(done, "xl/a.xml") == comments.format("A DOG")
    assert part(done, "xl/b.xml") == thread.replace("Tom &amp; a {}", "TOM &amp; A DOG")
    assert part(done, "xl/c.xml") == comments.format("left alone")


def test_patterns_are_matched_in_linear_time() -> None:
    pattern, cell = "a*" * 200 + "b", "a" * 30_000
    sheet = f"<worksheet {S}><c><f>COUNTIF(A1,&quot;{pattern}&quot;)</f></c></worksheet>"
    strings = f"<sst {S}><si><t>{cell}</t></si></sst>"
    data = zipped({"xl/workbook.xml": "<a/>", "xl/worksheets/sheet1.xml": sheet, "xl/sharedStrings.xml": strings})
    assert part(translated("a.xlsx", data), "xl/sharedStrings.xml") == strings.replace("a" * 30_000, "A" * 30_000)


def test_text_documents_keep_spans_notes_and_tracked_changes() -> None:
    names = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:office="urn:o"'
    body = (
        "<text:tracked-changes><text:p>left alone</text:p></text:tracked-changes>"
        '<text:h text:style-name="H">A heading</text:h><text:p>'
        'It&apos;s <text:span text:style-name="T1">bold </text:span>'
        '<text:a href="u"><text:span>a link</text:span></text:a><text:note><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>a note</text:p></text:note-body></text:note> here.<text:tab/>x <text:s text:c='2'/>y"
        "<text:page-number>left alone</text:page-number></text:p><text:p/>"
    )
    data = zipped({"content.xml": f"<office:document {names}>{body}</office:document>"})
    assert translated("a.odt", data, str) == data
    assert given("a.odt", data) == ["A heading", "It's bold a link here.", "x y", "a note"]
    done = part(translated("a.odt", data), "content.xml")
    assert 'IT&apos;S <text:span text:style-name="T1">BOLD </text:span><text:a href="u"><text:span>A LINK' in done
    assert "<text:note-body><text:p>A NOTE</text:p></text:note-body></text:note> HERE." in done
    assert done.count("left alone") == 2


@pytest.mark.parametrize(
    ("body", "sentence", "expected"),
    [
        ("A<text:s/>dog", "A dog", "A DOG"),
        ("<text:span>A<text:s/></text:span>dog", "A dog", "<text:span>A </text:span>DOG"),
        ("A<text:s text:c='3'/>dog", "A dog", "A <text:s text:c='2'/>DOG"),
        ("A <text:s/>dog", "A dog", "A <text:s/>DOG"),
        ("<text:s text:c='4'/>A dog", "A dog", "<text:s text:c='4'/>A DOG"),
    ],
)
def test_a_space_that_is_an_element_separates_words(body: str, sentence: str, expected: str) -> None:
    content = '<a xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><text:p>{}</text:p></a>'
    data = zipped({"content.xml": content.format(body)})
    assert given("a.odt", data) == [sentence]
    assert part(translated("a.odt", data), "content.xml") == content.format(expected)


DESCRIBED = {
    "a.docx": ("word/document.xml", "w:document", W, "w:p><w:r><w:drawing", "wp:docPr",
               "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"),
    "a.pptx": ("ppt/slides/slide1.xml", "p:sld", A, "p:pic", "p:cNvPr",
               "http://schemas.openxmlformats.org/presentationml/2006/main"),
    "a.xlsx": ("xl/drawings/drawing1.xml", "xdr:wsDr", A, "xdr:pic", "xdr:cNvPr",
               "http://purl.oclc.org/ooxml/drawingml/spreadsheetDrawing"),
}  # fmt: skip


def described(name: str, attributes: str) -> bytes:
    """A document with an image that has these attributes."""
    place, root, others, inside, element, namespace = DESCRIBED[name]
    closing = "".join(f"</{each}>" for each in reversed(inside.split("><")))
    prefix = element.partition(":")[0]
    content = f'<{root} {others} xmlns:{prefix}="{namespace}"><{inside}><{element} {attributes}/>{closing}</{root}>'
    parts = {"xl/workbook.xml": "<a/>"} if name == "a.xlsx" else {}
    return zipped({place: content, **parts})


@pytest.mark.parametrize("name", DESCRIBED)
def test_descriptions_of_images_are_translated_and_names_stay(name: str) -> None:
    attributes = """id="1" name="left alone" descr="Tom's &quot;dog&quot; &amp; a &#xA;cat&#xA;" title='a "title"'"""
    data = described(name, attributes)
    assert translated(name, data, str) == data
    done = part(translated(name, data), DESCRIBED[name][0])
    expected = """id="1" name="left alone" descr="TOM'S &quot;DOG&quot; &amp; A &#xA;CAT&#xA;" title='A "TITLE"'/>"""
    assert expected in done
    done = part(translated(name, data, lambda text: "<'\"&"), DESCRIBED[name][0])
    assert """descr="&lt;'&quot;&amp;""" in done and """title='&lt;&#x27;"&amp;'/>""" in done


@pytest.mark.parametrize(
    "text", ["", "12", "IMG_20.jpg", "my photo 2.PNG", "C:\\pictures\\my dog.jpeg", "http://a.b/c d"]
)
@pytest.mark.parametrize("name", DESCRIBED)
def test_names_of_files_that_describe_images_stay(name: str, text: str) -> None:
    data = described(name, f'descr="{text}"')
    assert given(name, data) == [] and translated(name, data) == data


def test_images_in_a_text_keep_their_descriptions_in_place() -> None:
    image = f'<w:r><w:drawing><p:docPr xmlns:p="{DESCRIBED["a.docx"][-1]}" descr="a dog"/>{{}}</w:drawing></w:r>'
    box = f"<w:p>{run('in the box')}</w:p>"
    data = word(f"<w:p>{run('before ')}{image.format(box)}{run('after')}</w:p><w:p>{image.format('')}</w:p>")
    assert sorted(given("a.docx", data)) == ["a dog", "a dog", "after", "before", "in the box"]
    assert translated("a.docx", data, str) == data
    done = part(translated("a.docx", data))
    assert done == shouted(part(data)).replace("a dog", "A DOG")


def test_descriptions_of_images_in_text_documents_are_translated() -> None:
    names = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:draw="urn:d"'
    names += ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    frame = "<draw:frame><svg:title>a {}</svg:title><svg:desc>the dog &amp; {}</svg:desc><svg:desc>my a.png</svg:desc>"
    body = f"<text:p>One {frame}<svg:title/></draw:frame> two</text:p>{frame}</draw:frame>"
    content = f"<office:document {names} xmlns:office='urn:o'>{body}</office:document>"
    data = zipped({"content.xml": content.replace("{}", "cat")})
    assert translated("a.odt", data, str) == data
    expected = content.replace("a {}", "A CAT").replace("the dog &amp; {}", "THE DOG &amp; CAT")
    assert part(translated("a.odt", data), "content.xml") == expected.replace("One", "ONE").replace("two", "TWO")


# --- other programs' files --------------------------------------------------------------------------------


def test_python_docx_reads_the_translation_of_its_document() -> None:
    docx = pytest.importorskip("docx", reason="python-docx is not installed")
    document = docx.Document()
    document.add_heading("A heading", 1)
    paragraph = document.add_paragraph("A sentence with ")
    paragraph.add_run("bold words").bold = True
    paragraph.add_run(" in it.\tafter a tab")
    document.add_table(1, 1).cell(0, 0).text = "a cell"
    data, out = io.BytesIO(), io.BytesIO()
    document.save(data)
    assert translated("a.docx", data.getvalue(), str) == data.getvalue()
    out.write(translated("a.docx", data.getvalue()))
    done = docx.Document(out)
    assert [p.text for p in done.paragraphs] == ["A HEADING", "A SENTENCE WITH BOLD WORDS IN IT.\tAFTER A TAB"]
    assert [r.text for r in done.paragraphs[1].runs if r.bold] == ["BOLD WORDS"]
    assert done.tables[0].cell(0, 0).text == "A CELL"


def test_openpyxl_reads_the_translation_of_its_workbook() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in (["A name", "Yes", 3.5], ['=IF(B1="Yes",1,2)', "two\nlines", " lead"]):
        book.active.append(row)
    data = io.BytesIO()
    book.save(data)
    assert translated("a.xlsx", data.getvalue(), str) == data.getvalue()
    done = openpyxl.load_workbook(io.BytesIO(translated("a.xlsx", data.getvalue())))
    assert [[cell.value for cell in row] for row in done.active.iter_rows()] == [
        ["A NAME", "Yes", 3.5], ['=IF(B1="Yes",1,2)', "TWO\nLINES", " LEAD"],
    ]  # fmt: skip


def test_python_pptx_reads_the_translation_of_its_slides() -> None:
    pptx = pytest.importorskip("pptx", reason="python-pptx is not installed")
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "A title"
    slide.placeholders[1].text_frame.text = "first\nsecond"
    slide.notes_slide.notes_text_frame.text = "a note"
    data = io.BytesIO()
    deck.save(data)
    assert translated("a.pptx", data.getvalue(), str) == data.getvalue()
    done = pptx.Presentation(io.BytesIO(translated("a.pptx", data.getvalue()))).slides[0]
    assert [shape.text_frame.text for shape in done.shapes] == ["A TITLE", "FIRST\nSECOND"]
    assert done.notes_slide.notes_text_frame.text == "A NOTE"


# --- nasty twins ------------------------------------------------------------------------------------------

TEXT = f"<w:p>{run('a text')}</w:p>"


def entities(body: str) -> bytes:
    """A document whose XML has a document type."""
    main = f"<!DOCTYPE a [{body}]><w:document {W}><w:p>{run('&x;')}</w:p></w:document>"
    return zipped({"word/document.xml": main})


def declaring(size: int) -> bytes:
    """A document whose table of contents declares another size of its main part."""
    data = bytearray(word(TEXT))
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, at + 24, size)
    return bytes(data)


def flagged() -> bytes:
    """A document with the flag of encrypted parts."""
    data = bytearray(word(TEXT))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def damaged() -> bytes:
    """A document with a changed byte in its main part."""
    data = bytearray(word(TEXT))
    data[data.index(b"word/document.xml") + 60] ^= 0xFF
    return bytes(data)


def overlapping() -> bytes:
    """A document with two parts at one place."""
    data = bytearray(word(TEXT, {"other.xml": "x" * 400}))
    first = data.index(b"PK\x01\x02")
    struct.pack_into(
        "<L", data, data.index(b"PK\x01\x02", first + 4) + 42, struct.unpack_from("<L", data, first + 42)[0]
    )
    return bytes(data)


def repeated() -> bytes:
    """A document with two parts of one name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("word/document.xml", "a")
        archive.writestr("word/document.xml", "b")
    return out.getvalue()


NASTY: dict[str, tuple[Callable[[], bytes], str]] = {
    "not a package": (lambda: b"%PDF-1.7", "its content is not that of an office document"),
    "old or encrypted": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "remove the password"),
    "encrypted parts": (flagged, "encrypted. Open the document, remove the password"),
    "another format": (
        lambda: zipped({"xl/workbook.xml": "<a/>"}),
        "it is an Excel workbook, although its suffix says otherwise",
    ),
    "cut off": (lambda: word(TEXT)[:-40], "not a readable package"),
    "a changed byte": (damaged, "not a readable package"),
    "a bomb": (lambda: word("", {"bomb.bin": bytes(40 << 20)}), "it would unpack to 42 MB, 200 times its size or more"),
    "a bomb of text": (
        lambda: word(TEXT, {"word/header1.xml": bytes(300_000)}),
        "its text unpacks to more than 262 kB",
    ),
    "declared too small": (lambda: declaring(10), "cut off or changed"),
    "declared too large": (lambda: declaring(10_000), "cut off or changed"),
    "many parts": (lambda: word(TEXT, {f"p{n}": "" for n in range(10_001)}), "10,003 parts; heed reads up"),
    "overlapping parts": (overlapping, "its parts overlap"),
    "a path that leads out": (lambda: word(TEXT, {"word/../../etc/passwd": "x"}), "a part is called 'word/../../etc"),
    "an absolute path": (lambda: word(TEXT, {"/etc/passwd": "x"}), "a part is called '/etc/passwd'"),
    "two parts of one name": (repeated, "two parts have the same name"),
    "a bomb of entities": (lambda: entities('<!ENTITY x "aaaa">'), "it has a document type"),
    "an external entity": (lambda: entities('<!ENTITY x SYSTEM "file:///etc/passwd">'), "it has a document type"),
    "deep elements": (lambda: word("<a>" * 500), "nested more than 400 deep"),
    "not XML": (lambda: zipped({"word/document.xml": "<a>"}), "not well-formed XML"),
    "not UTF-8": (lambda: zipped({"word/document.xml": b"<a>\xff</a>"}), "byte 4 is not valid utf-8"),
}


@pytest.mark.parametrize("name", NASTY)
def test_a_document_that_is_damaged_or_made_to_harm_is_refused(name: str) -> None:
    make, message = NASTY[name]
    with pytest.raises(DataError, match=re.escape(message)):
        translated("a.docx", make(), most_unpacked=1 << 18)


def test_a_sheet_in_which_references_are_looked_for_counts_once_against_the_limit() -> None:
    sheet = f"<worksheet {S}><sheetData><row>{'<c><v>1</v></c>' * 100}</row></sheetData></worksheet>"
    data = zipped({"xl/workbook.xml": f"<workbook {S}/>", "xl/worksheets/sheet1.xml": sheet})
    assert translated("a.xlsx", data, most_unpacked=len(sheet) + 200) == data


def test_a_huge_cell_is_read_in_linear_time() -> None:
    cell = "word " * 20_000
    data = zipped({"xl/workbook.xml": "<a/>", "xl/sharedStrings.xml": f"<sst {S}><si><t>{cell}</t></si></sst>"})
    assert cell.upper().strip() in part(translated("a.xlsx", data), "xl/sharedStrings.xml")


def with_64_bits(monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, bytes | str]) -> bytes:
    """A package with all sizes and places in fields of 64 bits."""
    out = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP64_LIMIT", -1)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = b"a comment"
            for name, content in parts.items():
                archive.writestr(name, content)
    return out.getvalue()


def test_packages_with_fields_of_64_bits_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """And written with fields of 32 bits; further fields of a part are kept."""
    parts = {"a.bin": "kept", "word/document.xml": f"<w:document {W}>{TEXT}</w:document>", "z.bin": "kept too"}
    data = with_64_bits(monkeypatch, parts)
    assert data.count(b"PK\x06\x06") == data.count(b"PK\x06\x07") == 1
    assert struct.unpack_from("<L", data, data.index(b"PK\x01\x02") + 20) == (0xFFFFFFFF,)
    done = translated("a.docx", data)
    assert done.count(b"PK\x06\x06") == done.count(b"PK\x06\x07") == 0
    with zipfile.ZipFile(io.BytesIO(done)) as archive:
        assert archive.testzip() is None and archive.namelist() == [*parts] and archive.comment == b"a comment"
        assert archive.read("a.bin") == b"kept" and archive.read("z.bin") == b"kept too"
        assert all(each.extra == b"" for each in archive.infolist())
    assert part(done) == part(translated("a.docx", zipped(parts)))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (8, 1 << 62, "it would unpack to "),  # the size of the part when it is unpacked
        (16, 1 << 62, "its parts overlap"),  # when it is packed
        (24, 1 << 40, "its parts overlap"),  # where it begins
        (24, (1 << 64) - 1, "its parts overlap"),
    ],
)
def test_fields_of_64_bits_that_harm_are_refused(
    monkeypatch: pytest.MonkeyPatch, place: int, value: int, message: str
) -> None:
    data = bytearray(with_64_bits(monkeypatch, {"word/document.xml": f"<w:document {W}>{TEXT}</w:document>"}))
    extra = data.index(b"PK\x01\x02") + 46 + len("word/document.xml")
    data[extra + place - 4 : extra + place + 4] = value.to_bytes(8, "little")
    with pytest.raises(DataError, match=message):
        translated("a.docx", bytes(data))


def test_stored_parts_stay_stored_and_further_fields_of_the_package_are_kept() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"a comment"
        archive.writestr("word/document.xml", f"<w:document {W}>{TEXT}</w:document>")
        archive.writestr("a.bin", b"a text")
    done = translated("a.docx", out.getvalue())
    with zipfile.ZipFile(io.BytesIO(done)) as archive:
        assert archive.comment == b"a comment"
        assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}
    assert len(done) == len(out.getvalue())
    assert zlib.crc32(part(done).encode()) == zipfile.ZipFile(io.BytesIO(done)).getinfo("word/document.xml").CRC
