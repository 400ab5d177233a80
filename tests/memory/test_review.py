"""Review of a memory: what looks wrong is found, in a time that no text makes long, and what is right is not."""

from __future__ import annotations

import pytest
from growth import require_linear_time

from heed.inference.output_checks import Guard
from heed.memory.review import guard_of, is_usable
from heed.memory.store import Unit


def unit(source: str, target: str) -> Unit:
    return Unit(1, source, target, "", "new", "")


@pytest.mark.parametrize(
    ("source", "target", "usable"),
    [
        ("Write to ann@x.example today.", "Schreiben Sie heute an ann@x.example.", True),
        ("See (https://x.example/a), please!", "Siehe https://x.example/a.", True),
        ("Write to ann@x.example today.", "Schreiben Sie heute an bob@x.example.", False),
        ("See our page.", "Siehe (www.x.example).", False),
        ("See our page.", "Siehe <mailto:bob@x.co.example>.", False),
        ("See https://x.example for more.", "詳しくはhttps://x.exampleをご覧ください。", True),
        ("See https://x.example/a/.", "请参阅https://x.example/a/的页面.", True),
        ("Write to ann@x.example today.", "お問い合わせはann@x.exampleまで", True),
        ("Write to ann@x.example today.", "오늘 ann@x.example으로 보내세요.", True),
        ("Write to ann@x.example today.", "お問い合わせはbob@x.exampleまで", False),
        ("See https://x.example for more.", "https://x.exampleみ.co.example を見て", False),
        ("See https://x.example for more.", "https://x.example.みんな を見て", False),
        ("Two at 3.50 each.", "Zwei @ 3.50 pro Stück.", True),
    ],
)
def test_an_address_that_the_source_lacks_looks_wrong(source: str, target: str, usable: bool) -> None:
    assert is_usable(unit(source, target), Guard()) is usable


@pytest.mark.parametrize(
    ("languages", "usable"),
    [(("en", "en"), True), (("en-GB", "eng"), True), (("xx", "xx"), True), (("sr-Cyrl", "sr-Latn"), False),
     (("en", "de"), False), (("", ""), False), (("xx", "yy"), False)],
)  # fmt: skip
def test_a_copy_looks_wrong_unless_both_sides_are_in_one_language(languages: tuple[str, str], usable: bool) -> None:
    guard, source = guard_of(languages), "the man are walking his dog"
    for target in (source, "the man is walking his dog"):
        assert is_usable(unit(source, target), guard) is usable
    assert not is_usable(unit(source, ""), guard)


@pytest.mark.parametrize(
    ("begin", "part"),
    [("", "a"), ("", "@"), ("", "a@"), ("", "@."), ("", "a@a"), ("www.a", "!"), ("www.a", "a!"), ("www.a", "あ"),
     ("www.a", "あa")],
)  # fmt: skip
def test_no_text_takes_long_to_review(begin: str, part: str) -> None:
    """Whoever suggests a translation chooses its text, and everybody waits while it is searched for addresses."""
    guard = Guard()
    require_linear_time(
        lambda target: is_usable(unit("Press the button.", target), guard), lambda times: f"{begin}{part * times}a"
    )
