"""White space between translated sentences follows their scripts."""

from __future__ import annotations

import pytest

from heed.documents.html_spans import parse
from heed.documents.spans import Span, write_span
from heed.inference.sentences import join_sentences
from heed.text.sentences import Piece, split_long, split_paragraph


@pytest.mark.parametrize(
    ("source", "translations", "expected"),
    [
        ("你好。你今天怎么样？", ["Hello.", "How are you today?"], "Hello. How are you today?"),
        ("他说“你好。”我走了。", ["He said hello.", "I left."], "He said hello. I left."),
        ("यह घर है।वह जाता है।", ["This is a house.", "He goes."], "This is a house. He goes."),
        ("你好。你今天怎么样？", ["안녕하세요.", "오늘 어때요?"], "안녕하세요. 오늘 어때요?"),
        ("你好。你今天怎么样？", ["こんにちは。", "「元気ですか。」"], "こんにちは。「元気ですか。」"),
        ("你好。\n 你今天怎么样？", ["Hello.", "How are you today?"], "Hello.\n How are you today?"),
        ("Hello. How are you?", ["你好。", "你今天怎么样？"], "你好。你今天怎么样？"),
        ("Hello.\nHow are you?", ["你好。", "你今天怎么样？"], "你好。\n你今天怎么样？"),
        (" Hello. How are you? ", ["你好。", "OK?"], " 你好。 OK? "),
        ("Hello. How are you?", ["สวัสดี", "สบายดีไหม"], "สวัสดี สบายดีไหม"),
        ("Hello. How are you?", ["안녕하세요", "오늘 어때요?"], "안녕하세요 오늘 어때요?"),
        ("你好！ 你今天怎么样？", ["こんにちは！", "元気ですか。"], "こんにちは！ 元気ですか。"),
        ("१।२।३", ["१।", "२।", "३"], "१।२।३"),
        ("你好。你今天怎么样？", ["Hello.", ""], "Hello."),
    ],
)
def test_a_space_is_inserted_where_the_target_script_needs_one(
    source: str, translations: list[str], expected: str
) -> None:
    assert join_sentences(split_paragraph(source), translations) == expected


def test_the_parts_of_a_word_split_for_its_length_stay_together() -> None:
    pieces = split_long("https://example.org/" + "abcdef" * 4, 12)
    assert join_sentences(pieces, [piece.text.upper() for piece in pieces]) == "HTTPS://EXAMPLE.ORG/" + "ABCDEF" * 4
    assert join_sentences([Piece("狗跑", True), Piece("得快", True)], ["The dog", "runs fast"]) == "The dog runs fast"


def test_inline_tags_stay_with_their_sentence() -> None:
    def translated(text: str, *translations: str) -> str:
        [stretch] = (part for part in parse(text) if isinstance(part, Span))
        return write_span(stretch, split_paragraph(stretch.plain), translations, [[(0, 0)]] * len(translations))

    assert translated("<i>你好。</i><b>好。</b>", "Hello.", "Good.") == "<i>Hello.</i> <b>Good.</b>"
    assert translated("<i>Hello.</i> <b>Good.</b>", "你好。", "好。") == "<i>你好。</i><b>好。</b>"
