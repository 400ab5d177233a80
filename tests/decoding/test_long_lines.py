"""Is a line that is too long translated in pieces that are put back where they stood?"""

from __future__ import annotations

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.long_lines import translate_apart
from heed.text.sentences import Piece, split_long


def line(*texts: str) -> list[Piece]:
    """A line in pieces: a text of spaces is one that stays."""
    return [Piece(text, bool(text.strip())) for text in texts]


def shout(lines: list[str]) -> list[Hypothesis]:
    """A translation into capitals; short lines are finished, and lines with an x are flagged."""
    return [
        Hypothesis((7,), -float(len(text)), -1.0, (-float(len(text)),), finished=len(text) < 6, text=text.upper(),
                   flags=("loop",) if "x" in text else ())
        for text in lines
    ]  # fmt: skip


def test_the_pieces_of_each_line_come_back_in_their_places() -> None:
    found = translate_apart([line("one.", "  ", "two"), [], line("  "), line("x.", " ", "y.", " ", "x.")], shout)
    assert [h.text for h in found] == ["ONE.  TWO", "", "  ", "X. Y. X."]
    assert [h.log_prob for h in found] == [-7.0, 0.0, 0.0, -6.0]
    assert [h.score for h in found] == [-2.0, 0.0, 0.0, -3.0]
    assert [h.flags for h in found] == [(), (), (), ("loop",)]
    assert all(h.ids == () and h.token_log_probs == () and h.alternatives == () for h in found)


def test_a_line_of_one_sentence_keeps_all_that_is_known_of_it() -> None:
    assert translate_apart([line("alone"), line("a", " ", "b")], shout)[0] == shout(["alone"])[0]


def test_a_line_is_finished_when_all_of_its_pieces_are() -> None:
    found = translate_apart([line("one.", " ", "two."), line("one.", " ", "seven.")], shout)
    assert [h.finished for h in found] == [True, False]


def test_all_pieces_are_translated_at_once() -> None:
    calls: list[list[str]] = []

    def record(lines: list[str]) -> list[Hypothesis]:
        calls.append(lines)
        return shout(lines)

    translate_apart([line("a.", " ", "b."), split_long("cc dd", 3)], record)
    assert calls == [["a.", "b.", "cc", "dd"]]
