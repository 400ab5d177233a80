"""Sentence splitting, and restoring the text byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import UsageError
from heed.text.sentences import LINE_BREAKS, restore, split_long, split_paragraph

# A bar marks where one sentence ends and the next one starts.
CASES = [
    ("en", "One sentence. |Another one! |A third? |Yes."),
    ("en", "No stop at the end"),
    ("en", "Dr. Smith met Mr. Jones. |They talked."),
    ("en", "He moved to the U.S. Army base. |It was cold."),
    ("en", "He lives in the U.S. |He likes it."),
    ("en", "Cats, dogs, etc. are pets. |Birds, fish, etc. |The rest is wild."),
    ("en", "Use fruit, e.g. Apples, or i.e. Anything sweet."),
    ("en", "J. K. Rowling wrote it. |J.R.R. Tolkien did not. |C. A. Lee neither."),
    ("en", "It costs 3.50 dollars. |It weighs 4.2 kg."),
    ("en", "See No. 5 and p. 7 of vol. 3. |I said no. |Then I left."),
    ("en", "1. First do this. |2. Then do that."),
    ("en", "Visit www.example.com today. |Write to a.b@example.org. |Thanks!"),
    ("en", "Read https://example.com/a.html?x=1. |Then answer."),
    ("en", "Well... maybe not. |Wait… |What?"),
    ("en", "He said ... Nothing at all."),
    ("en", '"Really?" he asked. |"Yes!" |She left.'),
    ("en", "He left. |“Why?” |(Nobody knew.) |So be it."),
    ("en", "What?! |No way!!! |Really."),
    ("en", "We use Yahoo! every day. |It works."),
    ("en", "At 5 p.m. |The train left at 6 a.m. Monday."),
    ("en", "So did I. |Then we took vitamin C. |The end."),
    ("de", "Er traf Dr. Müller am 3. Mai. |Danach ging er."),
    ("de", "Das ist z. B. Brot, d. h. Essen. |Es schmeckt."),
    ("de", "Obst, z.B. Äpfel, usw. |Die Äpfel sind rot."),
    ("de", "Im 19. Jahrhundert war das so. |Heute nicht."),
    ("de", "Es war im Jahr 2010. |Niemand kam."),
    ("de", "Er ist 30. |Sie ist 28."),
    ("de", "„Komm!“ |Er kam. |»Wohin?« fragte sie."),
    ("de", "Das Heft, Nr. 5, kostet ca. 3 Mio. Euro. |Viel Geld!"),
    ("fr", "M. Dupont est là. |Mme Curie aussi."),
    ("fr", "« Bonjour ! » |Il est parti. |Pourquoi ? |Comme ça."),
    ("es", "¿Cómo estás? |¡Bien! |El Sr. García llegó. |Vive en EE.UU. |Es feliz."),
    ("it", "Il Sig. Rossi è qui. |Dov'è il pane? |Eccolo."),
    ("pt", "O Dr. Silva chegou. |Quem é? |Não sei."),
    ("nl", "Fruit, bijv. Appels, is gezond. |Dat klopt."),
    ("cs", "Sešli se 5. května. |Bylo teplo. |Např. Praha je krásná."),
    ("pl", "Urodził się 3. maja. |To był tzw. Cud."),
    ("ru", "Он жил в г. Москве и т. д. |Она уехала. |А. С. Пушкин писал стихи."),
    ("el", "Τι κάνεις; Καλά. |Ευχαριστώ!"),
    ("zh", "今天天气很好。|我们去公园吧！|你来吗？"),
    ("zh", "他说：“好。”|然后走了。"),
    ("ja", "今日は晴れです。|「はい。そうです。」と彼は言った。|終わり。"),
    ("ja", "価格は3.5ドルです。|（安い。）|本当？"),
    ("hi", "यह एक वाक्य है। |यह दूसरा है।"),
    ("ar", "كيف حالك؟ |أنا بخير. |شكرا!"),
    ("hi", "डॉ. राम घर गए। |प्रो. (श्रीमती) वर्मा आईं।"),
    ("hi", "डॉ. राम"),
    ("hi", "यह एक वाक्य है. |यह दूसरा है."),  # some write full stops
    ("ne", "डा. राम घर गए। |मिति २०७०. मा उनी आए।"),
    ("bn", "ডা. রহমান এসেছেন। |মো. আলী আসেননি।"),
    ("mr", "डॉ राम आले. |ते कुठे होते?"),
    (None, "डॉ. राम घर गए। |वे थके थे।"),
    (None, "पुणे हे शहर आहे. |ते मोठे आहे."),
    (None, "He is Ram. |वह राम है। |Yes. |No."),
    ("th", "ดร. สมชาย ไปตลาด"),
    (None, "ศ. นพ. ประเวศ และ ดร. สมชาย มาแล้ว."),
    ("ka", "საქართველო არის ქვეყანა. |თბილისი არის ქალაქი."),
    ("ka", "ე.ი. კარგად. |ა. წერეთელი წერდა."),
    ("km", "ខ្ញុំទៅផ្សារ។ |គាត់នៅផ្ទះ៕ |ចប់។"),
    ("am", "እንዴት ነህ፧ |ደህና ነኝ።"),
    ("ko", "안녕하세요. |반갑습니다!"),
    (None, "Dr. Smith met Hr. Müller z. B. in Rom. |He left."),
    ("sw", "Habari yako? |Nzuri sana. |Asante!"),
]


def sentences(text: str, language: str | None) -> list[str]:
    return [piece.text for piece in split_paragraph(text, language) if piece.is_sentence]


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_sentences_end_where_a_reader_ends_them(language: str | None, marked: str) -> None:
    expected = [sentence.strip() for sentence in marked.split("|")]
    assert sentences(marked.replace("|", ""), language) == expected


def test_line_breaks_and_paragraphs_end_sentences_and_are_restored() -> None:
    text = "  A first line\nwrapped here. Next.\r\n\r\n\tA paragraph.\u2028More.  \n"
    pieces = split_paragraph(text, "en")
    found = [piece.text for piece in pieces if piece.is_sentence]
    assert found == ["A first line", "wrapped here.", "Next.", "A paragraph.", "More."]
    expected = "  1\n2 3\r\n\r\n\t4\u20285  \n"
    assert restore(pieces, ["1", "2", "3", "4", "5"]) == expected


def test_a_language_code_may_have_a_region_and_any_case() -> None:
    text = "Das war am 3. Mai."
    assert sentences(text, "de-AT") == sentences(text, "DE_de") == [text]


def test_the_wrong_number_of_translations_is_refused() -> None:
    pieces = split_paragraph("One. Two.", "en")
    with pytest.raises(UsageError, match=r"1 translations for 2 sentences"):
        restore(pieces, ["Eins."])


PROSE = st.text(alphabet="aBéß3 .!?…\"'”»«()。」「と\n\r\u2028\u00a0\t", max_size=60)


@given(text=st.text() | PROSE, language=st.sampled_from(["en", "de", "zh", None]))
def test_pieces_joined_are_the_text_and_sentences_are_bare(text: str, language: str | None) -> None:
    pieces = split_paragraph(text, language)
    assert "".join(piece.text for piece in pieces) == text
    for piece in pieces:
        if piece.is_sentence:
            assert piece.text == piece.text.strip() != ""
            assert not set(piece.text) & set(LINE_BREAKS)
        else:
            assert piece.text.isspace()
    found = [piece.text for piece in pieces if piece.is_sentence]
    assert restore(pieces, found) == text


@given(text=PROSE.map(lambda text: text * 3), size=st.integers(2, 20))
def test_long_sentences_are_cut_to_size_and_nothing_is_lost(text: str, size: int) -> None:
    pieces = split_long(text, size)
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text) <= size for piece in pieces if piece.is_sentence)
    assert all(piece.text for piece in pieces)


def test_a_long_sentence_is_cut_at_a_space_where_there_is_one() -> None:
    pieces = split_long("Short one. one two  three fourfivesixseven", 8)
    assert [piece.text for piece in pieces] == [
        "Short", " ", "one.", " ", "one two", "  ", "three", " ", "fourfive", "sixseven",
    ]  # fmt: skip
    assert [piece.text for piece in pieces if not piece.is_sentence] == [" ", " ", "  ", " "]


@pytest.mark.parametrize(
    ("text", "size", "parts"),
    [
        ("ที่นี่", 4, ["ที่", "นี่"]), ("ကျွန်ုပ်", 4, ["ကျွ", "န်ု", "ပ်"]), ("aaaae\u0301e", 5, ["aaaa", "e\u0301e"]),
        ("aa👩\u200d👧b", 4, ["aa", "👩\u200d👧b"]), ("e" + "\u0301" * 4, 2, ["e\u0301", "\u0301\u0301", "\u0301"]),
        ("e\u0301", 1, ["e", "\u0301"]),
    ],
)  # fmt: skip
def test_a_long_run_is_cut_before_a_letter_and_not_before_its_marks(text: str, size: int, parts: list[str]) -> None:
    assert [piece.text for piece in split_long(text, size)] == parts


@pytest.mark.timeout(60)  # quadratic time would take far longer
@pytest.mark.parametrize("unit", [".", "a. ", "! ", "「", "。", '."', "。」", "Dr. ", "\n", "... "])
def test_repeated_signs_cost_linear_time(unit: str) -> None:
    text = unit * (150_000 // len(unit))
    pieces = split_paragraph(text, None)
    assert "".join(piece.text for piece in pieces) == text
