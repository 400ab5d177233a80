"""Reference implementation of byte pair encoding: it learns and applies merges as subword-nmt does.

heed's BPE is over bytes, with the space before a word as its first symbol, and the tokenizers library learns its
merges, which differ. They are applied like those of the reference: the earliest first.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from itertools import chain, product
from pathlib import Path

import pytest
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe
from text.bpe_twin import apply, dropout_distribution, learn, segment
from tokenizers.pre_tokenizers import ByteLevel

from heed.text.tokenizers import TokenizerConfig, train_tokenizer

COLUMNS = [
    ["der", "die", "das", "ein", "eine"],
    ["neue", "neueste", "alte", "älteste", "kleinste", "größte", "schöne"],
    ["Straßenbahn", "Bahnhof", "Straße", "Hofhund", "Hundehütte", "Haustür", "Tüte", "Banane"],
    ["liest", "las", "lesen", "gelesen", "fährt", "gefahren"],
    ["langsam", "langsamer", "schnell", "schneller", "aaaaaa", "mississippi", "niemals", "vielleicht", "immer"],
]
TEXT = [" ".join(words[row % len(words)] for words in COLUMNS) + f" {row % 60} ." for row in range(90)]
UNSEEN = ["die langsamste Straßenbahnfahrt las 2024 Xylophon", "Hundehüttentür , neuer Hof : 7 a", "aaa aaaaa y"]


def learned_by_subword_nmt(lines: list[str], num_merges: int) -> str:
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, num_merges)
    return codes.getvalue()


def merges_of(codes: str) -> list[tuple[str, ...]]:
    version, *lines = codes.splitlines()
    assert version == "#version: 0.2"
    return [tuple(line.split(" ")) for line in lines]


def multi30k(shared_data: Path, language: str, num_lines: int) -> list[str]:
    with gzip.open(shared_data / "multi30k" / f"val.{language}.gz", "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:num_lines]


def test_the_classic_example_is_merged_as_in_the_paper() -> None:
    lines = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    # es and st</w> are equally frequent, 9 times: the larger pair is taken
    assert learn(lines, 3) == [("s", "t</w>"), ("e", "st</w>"), ("l", "o")]
    assert segment("lowest", learn(lines, 3)) == ["lo@@", "w@@", "est"]


@pytest.mark.parametrize("num_merges", [1, 40, 120])
def test_learning_equals_subword_nmt(num_merges: int) -> None:
    assert learn(TEXT, num_merges) == merges_of(learned_by_subword_nmt(TEXT, num_merges))


def test_learning_stops_where_subword_nmt_stops() -> None:
    merges = learn(TEXT, 100_000)
    assert 120 < len(merges) < 1000
    assert merges == merges_of(learned_by_subword_nmt(TEXT, 100_000))


def test_segmentation_equals_subword_nmt() -> None:
    codes = learned_by_subword_nmt(TEXT, 120)
    oracle, merges = BPE(io.StringIO(codes)), learn(TEXT, 120)
    for line in TEXT + UNSEEN:
        assert segment(line, merges) == oracle.segment(line).split(" ")


def test_learning_and_segmentation_equal_subword_nmt_on_real_text(shared_data: Path) -> None:
    lines = multi30k(shared_data, "de", 120)
    codes = learned_by_subword_nmt(lines, 150)
    oracle, merges = BPE(io.StringIO(codes)), learn(lines, 150)
    assert merges == merges_of(codes)
    for line in lines[:40]:
        assert segment(line, merges) == oracle.segment(line).split()


def assert_encodes_like_the_twin(train_lines: list[str], lines: list[str], vocab_size: int) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=vocab_size), train_lines)
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_json())["model"]["merges"]]
    assert len(merges) > 100
    splitter = ByteLevel(add_prefix_space=False, use_regex=True)
    known: dict[str, tuple[str, ...]] = {}
    for line, ids in zip(lines, tokenizer.encode(lines), strict=True):
        words = [word for word, _ in splitter.pre_tokenize_str(line)]
        known.update({word: apply(tuple(word), merges) for word in words if word not in known})
        assert [tokenizer.vocabulary.piece(id) for id in ids] == list(chain(*(known[word] for word in words)))


def test_byte_level_encoding_merges_the_lowest_rank_first() -> None:
    assert_encodes_like_the_twin(TEXT, TEXT + UNSEEN, 500)


def test_byte_level_encoding_merges_the_lowest_rank_first_on_real_text(shared_data: Path) -> None:
    lines = [*multi30k(shared_data, "en", 200), *multi30k(shared_data, "de", 200)]
    assert_encodes_like_the_twin(lines[:150] + lines[200:350], lines, 800)


def test_the_exact_distribution_of_dropout_is_right_by_hand() -> None:
    merges = [("b", "c"), ("a", "b"), ("a", "bc")]
    expected = {
        ("abc",): 0.9 * 0.9,
        ("a", "bc"): 0.9 * 0.1,
        ("ab", "c"): 0.1 * 0.9,
        ("a", "b", "c"): 0.1 * 0.1,
    }
    assert dropout_distribution(("a", "b", "c"), merges, 0.1) == pytest.approx(expected)


@pytest.mark.parametrize(("word", "p"), list(product([" Straße", " langsam", " aaaaaa", " \t \t"], [0.1, 0.5])))
def test_every_cut_is_as_probable_as_in_the_twin(word: str, p: float) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=500), TEXT + ["x \t", "y \t", "z\t "] * 9)
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_json())["model"]["merges"]]
    [(symbols, _)] = ByteLevel(add_prefix_space=False, use_regex=True).pre_tokenize_str(word)
    expected = dropout_distribution(tuple(symbols), merges, p)
    [ids] = tokenizer.encode(["neueste" + word])  # behind another word it meets the random numbers halfway
    num_draws = 6000
    counts: Counter[tuple[str, ...]] = Counter()
    for index in range(num_draws):
        cut = tokenizer.encode_with_dropout(ids, p, (1, 2, index))
        pieces = [tokenizer.vocabulary.piece(id) for id in cut]
        start = next(i for i, piece in enumerate(pieces) if piece.startswith("Ġ"))
        counts[tuple(pieces[start:])] += 1
    assert counts.keys() <= expected.keys()
    for pieces, probability in expected.items():
        standard_error = (probability * (1 - probability) / num_draws) ** 0.5
        assert abs(counts[pieces] / num_draws - probability) < 4 * standard_error + 1 / num_draws
