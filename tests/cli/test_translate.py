"""Tests of `heed translate`: one output line for each input line, in each format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import call
from toy import pairs
from toy import translate as toy_translation

from heed.run import Run

NASTY = {
    "empty lines": "\nba ce\n\n\nfo gu\n",
    "only space": "  \nba\n\t\n \u3000 \n",
    "no final newline": "ba ce\nfo gu",
    "nothing": "",
    "one newline": "\n",
    "CRLF": "ba ce\r\n\r\nfo gu\r\n",
    "lone CR": "ba\rce\nfo\n",
    "other line ends": "ba\u2028ce\u0085di\x0b\x0c\nfo\n",
    "NUL and controls": "ba\x00ce\x1b[31m\nfo\n\x00\n",
    "byte-order mark": "\ufeffba ce\nfo\n",
    "a very long line": "ba ce di fo " * 700 + "\nfo\n",
    "unknown script": "日本語のテキスト 🙂\nfo\n",
    "control tokens": "</s> <pad> <unk>\nfo\n",
}


def num_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_the_output_has_as_many_lines_as_the_input(translator: Path, text: str) -> None:
    result = call("translate", translator, "--beam", "1", stdin=text)
    assert result.code == 0, result.err
    assert len(result.lines) == num_lines(text)
    assert result.err == ""


def test_blank_lines_are_copied(translator: Path) -> None:
    assert call("translate", translator, stdin="\n  \n\t\nba\n").lines[:3] == ["", "  ", "\t"]


def test_the_order_is_that_of_the_input_whatever_the_groups(translator: Path) -> None:
    sources = [src for src, _ in pairs(60)]
    together = call("translate", translator, stdin="\n".join(sources)).lines
    small = call("translate", translator, "--batch-size", "3", stdin="\n".join(sources)).lines
    backwards = call("translate", translator, stdin="\n".join(reversed(sources))).lines
    assert together == small == backwards[::-1]


def test_lines_are_translated_as_learned(translator: Path) -> None:
    """That lines and translations belong together can only be seen when something was learned."""
    sources = [src for src, _ in pairs(60)]
    outputs = call("translate", translator, stdin="\n".join(sources)).lines
    words = [
        len(set(out.split()) & set(toy_translation(src).split())) for src, out in zip(sources, outputs, strict=True)
    ]
    assert sum(words) > 0.6 * sum(len(set(src.split())) for src in sources)


def test_line_ends_and_the_byte_order_mark_do_not_reach_the_model(translator: Path) -> None:
    plain = call("translate", translator, stdin="ba ce\nfo gu\n").stdout
    assert call("translate", translator, stdin="\ufeffba ce\r\nfo gu\r\n").stdout == plain
    assert call("translate", translator, stdin="ba ce\nfo gu").stdout == plain


def test_invalid_utf8_ends_with_65_after_the_lines_before_it(translator: Path) -> None:
    result = call("translate", translator, stdin=b"ba\nce\nd\xffi\nfo\n")
    assert result.code == 65
    assert len(result.lines) == 2
    assert result.err == (
        "error: standard input:3: byte 2 is not valid UTF-8 (0xFF). If the file is Windows-1252, convert it "
        "with `iconv -f WINDOWS-1252 -t UTF-8`; otherwise pass --errors replace.\n"
    )
    replaced = call("translate", translator, "--errors", "replace", stdin=b"ba\nce\nd\xffi\nfo\n")
    assert (replaced.code, len(replaced.lines)) == (0, 4)


def test_lines_with_placeholders_get_a_warning(translator: Path) -> None:
    warned = call("translate", translator, stdin="ba {name} ce\nba ce\n%s ba\n").err
    assert "2 lines have placeholders or addresses such as {name}" in warned
    assert "placeholders" not in call("translate", translator, stdin="ba ce\n").err


def test_nbest_has_the_format_of_moses(translator: Path) -> None:
    result = call("translate", translator, "--nbest", "3", "--beam", "4", stdin="ba ce\n\nfo gu di\n")
    rows = [
        re.fullmatch(r"(\d) \|\|\| (.*) \|\|\| logprob= (-?\d+\.\d{4}) \|\|\| (-?\d+\.\d{4})", x) for x in result.lines
    ]
    assert [row and row[1] for row in rows] == ["0", "0", "0", "1", "2", "2", "2"]
    scores = [float(row[4]) for row in rows if row and row[1] == "2"]
    assert scores == sorted(scores, reverse=True)
    assert len({row[2] for row in rows if row and row[1] == "0"}) == 3


def test_nbest_cannot_be_combined_with_other_formats(translator: Path) -> None:
    for flag in ("--scores", "--alignment", "--paragraphs"):
        result = call("translate", translator, "--nbest", "2", flag, stdin="ba\n")
        assert (result.code, result.stdout) == (2, b"")
        assert "--nbest cannot be combined with" in result.err


def test_json_is_one_complete_object_per_line(translator: Path) -> None:
    result = call("translate", translator, "--json", "--nbest", "2", "--alignment", stdin='ba "ce"\n\nfo gu\n')
    records = [json.loads(line, parse_constant=pytest.fail) for line in result.lines]
    assert [record["source"] for record in records] == ['ba "ce"', "", "fo gu"]
    last = records[2]
    assert {"translation", "log_prob", "score", "finished", "tokens", "alternatives", "alignment"} <= last.keys()
    assert sum(token["log_prob"] for token in last["tokens"]) == pytest.approx(last["log_prob"], abs=1e-4)
    assert "".join(token["piece"] for token in last["tokens"]).removesuffix("</s>") == last["translation"]
    plain = call("translate", translator, stdin='ba "ce"\n\nfo gu\n').lines
    assert [record["translation"] for record in records] == plain


def test_scores_and_alignment_precede_a_tab(translator: Path) -> None:
    plain = call("translate", translator, stdin="ba ce\nfo gu di\n").lines
    scored = call("translate", translator, "--scores", stdin="ba ce\nfo gu di\n").lines
    assert [line.split("\t")[1] for line in scored] == plain
    assert all(re.fullmatch(r"-\d+\.\d{4}", line.split("\t")[0]) for line in scored)
    both = call("translate", translator, "--scores", "--alignment", stdin="ba ce\nfo gu di\n").lines
    for line, score in zip(both, scored, strict=True):
        first, links, text = line.split("\t")
        assert [first, text] == score.split("\t")
        assert re.fullmatch(r"(\d-\d ?)+", links)
        assert {int(link.split("-")[1]) for link in links.split()} == set(range(len(text.split())))


def test_a_model_with_additive_attention_aligns_too(recurrent: Path) -> None:
    lines = call("translate", recurrent, "--alignment", stdin="ba ce\n\n").lines
    assert lines[0].count("\t") == 1
    assert lines[1] == "\t"


def test_paragraphs_keep_the_white_space_between_their_sentences(translator: Path) -> None:
    text = "  Ba ce.   Fo gu!\tDi fo.  \n\n   \nBa.\n"
    result = call("translate", translator, "--paragraphs", stdin=text)
    assert len(result.lines) == 4
    first = result.lines[0]
    assert first.startswith("  ")
    assert first.endswith("  ")
    assert "   " in first.strip()
    assert "\t" in first
    assert result.lines[1:3] == ["", "   "]
    alone = call("translate", translator, stdin="Ba ce.\nFo gu!\nDi fo.\n").lines
    assert first == f"  {alone[0]}   {alone[1]}\t{alone[2]}  "


def test_sampling_depends_on_the_seed_and_not_on_other_lines(translator: Path) -> None:
    def draw(seed: int, *lines: str) -> list[str]:
        flags = ("--sample", "--temperature", "2", "--top-k", "50", "--top-p", "0.95", "--seed", seed)
        return call("translate", translator, *flags, stdin="\n".join(lines)).lines

    assert draw(1, "ba ce", "fo gu di") == [draw(1, "ba ce")[0], draw(1, "fo gu di")[0]]
    assert draw(1, "ba ce di fo") != draw(2, "ba ce di fo")


def test_sampling_options_need_sampling(translator: Path) -> None:
    for flag in ("--temperature", "--top-k", "--top-p", "--seed"):
        result = call("translate", translator, flag, "1", stdin="ba\n")
        assert result.code == 2
        assert "need --sample" in result.err
    result = call("translate", translator, "--sample", "--temperature", "0", stdin="ba\n")
    assert result.code == 2
    assert "temperature" in result.err


def test_the_search_of_the_recipe_is_the_default(translator: Path) -> None:
    assert Run(translator).recipe.decoding.beam_size == 2
    text = "\n".join(src for src, _ in pairs(30))
    scores = [
        sum(float(line.split("\t")[0]) for line in call("translate", translator, "--scores", *flags, stdin=text).lines)
        for flags in ((), ("--beam", "2"), ("--beam", "1"))
    ]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]


def test_bfloat16_translates(translator: Path) -> None:
    text = "\n".join(src for src, _ in pairs(30))
    exact = call("translate", translator, stdin=text).lines
    fast = call("translate", translator, "--precision", "bfloat16", stdin=text)
    assert fast.code == 0, fast.err
    assert sum(a == b for a, b in zip(exact, fast.lines, strict=True)) >= 15


def test_a_language_model_does_not_translate(bigram: Path) -> None:
    result = call("translate", bigram, stdin="ba\n")
    assert result.code == 2
    assert "translate needs a run that can translate" in result.err


@pytest.mark.parametrize("device", ["tpu", "cuda:99"])
def test_a_missing_device_is_reported(translator: Path, device: str) -> None:
    result = call("translate", translator, "--device", device, stdin="ba\n")
    assert result.code == 2
    assert result.err.startswith(f"error: --device {device}") or "--device must be auto, cpu" in result.err
