"""Laws of all tokenizers: text is restored, control ids are never produced, and files and keys are reproducible."""

from __future__ import annotations

import argparse
import copy
import io
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt.segment_char_ngrams import segment_char_ngrams
from tokenizer_kinds import KINDS
from tokenizers import pre_tokenizers

from heed.core import config
from heed.core.errors import DataError, MissingInputError, UsageError
from heed.inference.sentences import most_tokens
from heed.text.tokenizers import (
    TOKENIZERS,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    parse_tokenizer,
    save,
    train_tokenizer,
)
from heed.text.tokenizers import dropout as dropout_module
from heed.text.tokenizers.byte_level import BYTE_SYMBOLS
from heed.text.tokenizers.hugging_face import MANY_LINES
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary

LINES = [
    f"{who} {what} {where}, {when} um {hour}:30 Uhr ({hour}ff.)"
    for hour, (who, what, where, when) in enumerate(
        (who, what, where, when)
        for who in ["The tall woman", "Ein großer Hund", "Two children", "Die Straßenbahn"]
        for what in ["is waiting", "fährt langsam", "isn't running", "schläft"]
        for where in ["outside", "im Garten", "near the station"]
        for when in ["today", "heute"]
    )
]
HARD = [
    "",
    " ",
    "  two  spaces ",
    "\ttab\u00a0no-break",
    "NUL \x00 inside",
    "CRLF\r\nand\rCR",
    "\ufeffbyte order mark",
    "line\u2028separator\u2029s",
    "family 👩‍👩‍👧‍👦 and flag 🇩🇪",
    "שלום עולם \u200f!",
    "我们 今天去 北京。",
    "▁meta▁space ▁",
    "<0x41> <0xE2>",
    "a </s> b <pad><s> <unk>",
    "</s>",
    "<s>",
    "<pad>",
    "@@ @@@@ a@@ b@@ c",
    "Ġ ġ Ċ Ä",
    "e\u0301 is not é",
    "हिन्दी भाषा, \u0301 (\u094d ज़\u200dx می\u200cخواهم \u200c",
    "\x85\x1c\x1f \u3000",
    "\U0010ffff\ue000\uffff",
    "'s 'sky isn't ''ll",
]
LOSSLESS = ["bpe", "unigram", "open-word", "byte"]
LEARNED = [kind for kind in KINDS if kind != "byte"]
DROPOUT_LINES = LINES[:40] + HARD

by_kind = pytest.mark.parametrize("kind", KINDS)
by_lossless_kind = pytest.mark.parametrize("kind", LOSSLESS)
texts = st.text(max_size=40)
keys = st.tuples(*[st.integers(0, 2**64 - 1)] * 3)


def config_of(kind: str) -> TokenizerConfig:
    return TokenizerConfig.model_validate({"kind": kind, "vocab_size": 400, "shortlist": 12})


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    return train_tokenizer(config_of(kind), LINES)


def text_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    return tokenizer.vocabulary.pieces[len(SPECIAL_PIECES) :]


# Every kind


@by_kind
def test_a_line_is_encoded_alone_as_among_others(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    assert tokenizer.encode(LINES) == [tokenizer.encode([line])[0] for line in LINES]
    assert tokenizer.encode([]) == []
    assert tokenizer.encode([""]) == [[]]


@by_kind
def test_no_tokenizer_exceeds_the_tokens_that_a_line_can_have(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    lines = [*LINES, *HARD, "a" * 300, " " * 300, "\U0001f9d1" * 100]
    for line, ids in zip(lines, tokenizer.encode(lines), strict=True):
        assert len(ids) + 1 <= most_tokens(line)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_line_is_encoded_among_many_as_alone(kind: str) -> None:
    tokenizer = tokenizer_of(kind).with_tags(["2de"])
    lines = [*HARD, *LINES, "<2de> literally"] * (MANY_LINES // len(LINES) + 1)
    assert tokenizer.encode(lines) == [ids for line in lines for ids in tokenizer.encode([line])]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if TOKENIZERS[kind].restores])
def test_known_text_is_restored(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    words = ["fährt langsam", "the station, today um"]
    known = [line for line in words + LINES if Vocabulary.unk_id not in tokenizer.encode([line])[0]]
    assert len(known) >= 2
    assert tokenizer.decode(tokenizer.encode(known)) == known


@by_kind
def test_text_never_becomes_a_control_id(kind: str) -> None:
    text = HARD + ["</s>", "<pad> <s>"] * 5
    loaded = type(tokenizer_of(kind)).from_json(tokenizer_of(kind).to_json())
    for tokenizer in (tokenizer_of(kind), train_tokenizer(config_of(kind), text), loaded):
        allowed = range(Vocabulary.unk_id + tokenizer.lossless, len(tokenizer.vocabulary))
        for again in (tokenizer, pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
            ids = again.encode(text)
            assert ids == tokenizer.encode(text)
            assert all(id in allowed for line in ids for id in line)


@by_kind
@given(data=st.data())
def test_any_ids_can_be_decoded_and_control_ids_leave_no_trace(kind: str, data: st.DataObject) -> None:
    tokenizer = tokenizer_of(kind)
    ids = data.draw(st.lists(st.integers(-5, len(tokenizer.vocabulary) + 5)))
    [text] = tokenizer.decode([ids])
    text.encode()
    assert tokenizer.decode([[1, *ids, 2, 0, 0]]) == tokenizer.decode([[id for id in ids if id > 2]]) == [text]


@by_kind
@pytest.mark.parametrize(("bad", "place"), [("\ud800", 1), ("ok \udfff there", 4)])
def test_a_lone_surrogate_is_refused_with_its_place(kind: str, bad: str, place: int) -> None:
    with pytest.raises(DataError, match=rf"line 2 has the lone surrogate U\+D.* at character {place},"):
        tokenizer_of(kind).encode(["fine", bad])


@pytest.mark.parametrize("kind", LEARNED)
def test_text_that_nothing_can_be_learned_from_is_refused(kind: str) -> None:
    for lines in ([], ["", "  "]):
        with pytest.raises(DataError, match="every line is empty"):
            train_tokenizer(config_of(kind), lines)
    with pytest.raises(DataError, match="line 2 has the lone surrogate"):
        train_tokenizer(config_of(kind), iter(["fine", "bad \ud800"]))


@by_kind
def test_the_file_gives_the_same_tokenizer(kind: str, tmp_path: Path) -> None:
    tokenizer, path = tokenizer_of(kind), tmp_path / "tokenizer.json"
    save(tokenizer, path)
    loaded = load_tokenizer(path)
    assert type(loaded) is TOKENIZERS[kind]
    assert loaded.vocabulary.sha256 == tokenizer.vocabulary.sha256
    assert loaded.encode(LINES + HARD) == tokenizer.encode(LINES + HARD)
    save(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


ANOTHER_PROCESS = """
import json, sys
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.tokenizers import load_tokenizer
kinds, lines, config, dropout_lines = json.load(sys.stdin)
for kind in kinds:
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, **config), lines)
    ids = tokenizer.encode(dropout_lines)
    dropped = [tokenizer.encode_with_dropout(line, 0.2, (7, 8, i)) for i, line in enumerate(ids)]
    print(json.dumps([kind, tokenizer.to_json(), dropped]))
"""


def test_another_process_learns_the_same_file_and_draws_the_same_dropout() -> None:
    config = config_of("bpe").model_dump(exclude={"kind"})
    text = json.dumps([KINDS, LINES, config, DROPOUT_LINES])
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROCESS], input=text, capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        kind, file, dropped = json.loads(line)
        assert file == tokenizer_of(kind).to_json()
        backwards = list(enumerate(tokenizer_of(kind).encode(DROPOUT_LINES)))[::-1]
        assert dropped[::-1] == [tokenizer_of(kind).encode_with_dropout(ids, 0.2, (7, 8, i)) for i, ids in backwards]


@by_kind
def test_learning_twice_gives_the_same_bytes(kind: str) -> None:
    assert train_tokenizer(config_of(kind), iter(LINES)).to_json() == tokenizer_of(kind).to_json()


@by_kind
@given(line=texts)
def test_each_piece_has_its_word(kind: str, line: str) -> None:
    tokenizer = tokenizer_of(kind)
    [ids] = tokenizer.encode([line])
    words = tokenizer.word_ids(line)
    assert len(words) == len(ids)
    numbers = [word for word in words if word is not None]
    assert numbers == sorted(numbers)
    if kind in ("word", "character", "char-bigram", "byte"):  # no piece of theirs crosses odd white space
        assert sorted({*numbers}) == list(range(len(line.split())))


@pytest.mark.parametrize("kind", [*LOSSLESS, "character"])
def test_the_pieces_of_a_word_spell_it(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    for line in ["  Die Straßenbahn fährt langsam , heute ", *LINES]:
        [ids] = tokenizer.encode([line])
        spelled = [""] * len(line.split())
        for number in range(len(spelled)):
            own = [id for id, word in zip(ids, tokenizer.word_ids(line), strict=True) if word == number]
            [spelled[number]] = tokenizer.decode([own])
        assert [word.strip() for word in spelled] == line.split()


@by_kind
def test_a_vocabulary_begins_with_the_special_pieces_and_keeps_to_its_size(kind: str) -> None:
    vocabulary = tokenizer_of(kind).vocabulary
    assert vocabulary.pieces[:4] == ("<pad>", "<s>", "</s>", "<unk>")
    assert len(vocabulary) <= 400
    assert tokenizer_of(kind).pieces(range(4)) == list(SPECIAL_PIECES)


@pytest.mark.parametrize(
    ("kind", "minimum", "shortlist"), [("bpe", 260, 0), ("unigram", 261, 0), ("byte", 260, 0), ("char-bigram", 15, 10)]
)
def test_a_vocabulary_that_is_too_small_is_refused_with_the_minimum(kind: str, minimum: int, shortlist: int) -> None:
    def train(vocab_size: int) -> Tokenizer:
        settings = {"kind": kind, "vocab_size": vocab_size, "shortlist": shortlist}
        return train_tokenizer(TokenizerConfig.model_validate(settings), LINES)

    assert len(train(minimum).vocabulary) <= minimum
    with pytest.raises(UsageError, match=f"vocab_size = {minimum - 1} is too small.*at least {minimum}"):
        train(minimum - 1)


@by_kind
def test_a_small_text_gives_fewer_pieces_than_asked_for(kind: str) -> None:
    tokenizer = train_tokenizer(config_of(kind).model_copy(update={"vocab_size": 50_000}), LINES[:9])
    assert 10 < len(tokenizer.vocabulary) < 1000
    assert tokenizer.decode(tokenizer.encode(["The tall woman is waiting"])) == ["The tall woman is waiting"]


@by_kind
def test_the_bytes_of_the_pieces_are_the_text_with_at_most_a_space_at_one_end(kind: str) -> None:
    lines = ["the dogs see the cat", "die Hunde sehen die Katze: 日本 é!", "underdog  two spaces", ""]
    config = TokenizerConfig(kind=kind, vocab_size=400, min_frequency=1, shortlist=3 * (kind == "char-bigram"))
    tokenizer = train_tokenizer(config, lines[:2] * 3)
    for line, ids in zip(lines, tokenizer.encode(lines), strict=True):
        text = b"".join(tokenizer.bytes_of(ids)).decode()
        [decoded] = tokenizer.decode([ids])
        assert text in (decoded, f"{decoded} ", f" {decoded}")
        if tokenizer.lossless:
            assert text == line
    special = tokenizer.bytes_of([Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id])
    assert special == [b""] * 3


# The lossless kinds


@by_lossless_kind
def test_hard_text_is_restored_exactly(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    assert tokenizer.lossless
    assert tokenizer.decode(tokenizer.encode(HARD)) == HARD


@by_lossless_kind
@given(lines=st.lists(texts, max_size=3))
def test_any_text_is_restored_exactly(kind: str, lines: list[str]) -> None:
    tokenizer = tokenizer_of(kind)
    assert tokenizer.decode(tokenizer.encode(lines)) == lines


def test_bytes_that_are_not_text_become_replacement_characters() -> None:
    tokenizer = tokenizer_of("byte")
    [ids] = tokenizer.encode(["a€b"])
    assert ids == [4 + byte for byte in b"a\xe2\x82\xacb"]
    assert tokenizer.decode([ids[:3], ids[2:], ids[:1] + ids[4:]]) == ["a\ufffd", "\ufffd\ufffdb", "ab"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(data=st.data())
def test_decoding_equals_the_library(kind: str, data: st.DataObject) -> None:
    tokenizer = tokenizer_of(kind)
    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    ids = data.draw(st.lists(st.integers(0, len(tokenizer.vocabulary) - 1), max_size=12))
    assert tokenizer.decode([ids]) == [library.decode(ids, skip_special_tokens=True)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_file_is_one_of_the_hugging_face_library(kind: str, tmp_path: Path) -> None:
    save(tokenizer_of(kind), tmp_path / "tokenizer.json")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ordinary = [line for line in LINES + HARD if not any(piece in line for piece in SPECIAL_PIECES)]
    assert [line.ids for line in library.encode_batch(ordinary)] == tokenizer_of(kind).encode(ordinary)
    assert library.get_vocab_size() == len(tokenizer_of(kind).vocabulary)
    document = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    assert document.keys() == json.loads(library.to_str()).keys()
    assert document["model"].get("dropout") is None


def test_the_symbols_of_the_bytes_are_those_of_the_library() -> None:
    assert {*BYTE_SYMBOLS} == {*pre_tokenizers.ByteLevel.alphabet()}
    [(spelled, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str("\x00 ~é€")
    assert spelled == "".join(BYTE_SYMBOLS[byte] for byte in "\x00 ~é€".encode())


def test_unigram_chooses_the_most_probable_segmentation() -> None:
    tokenizer = tokenizer_of("unigram")
    scores = dict(json.loads(tokenizer.to_json())["model"]["vocab"])
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for line in LINES[:5] + HARD:
        expected = sum(_best_score(word, scores) for word, _ in splitter.pre_tokenize_str(line))
        found = sum(scores[tokenizer.vocabulary.piece(id)] for id in tokenizer.encode([line])[0])
        assert found == pytest.approx(expected)


def _best_score(word: str, scores: dict[str, float]) -> float:
    best = [0.0]
    for end in range(1, len(word) + 1):
        best.append(max(best[start] + scores[word[start:end]] for start in range(end) if word[start:end] in scores))
    return best[-1]


def test_pieces_are_shown_as_text() -> None:
    tokenizer = tokenizer_of("bpe")
    [ids] = tokenizer.encode(["Die Straßenbahn"])
    assert "".join(tokenizer.pieces([1, *ids, 2])) == "<s>Die Straßenbahn</s>"
    assert tokenizer_of("byte").pieces(tokenizer_of("byte").encode(["é "])[0]) == ["\\xc3", "\\xa9", " "]


# Closed lists


def test_words_are_ordered_by_frequency_and_rare_ones_are_unknown() -> None:
    config = TokenizerConfig(kind="word", min_frequency=2)
    tokenizer = train_tokenizer(config, ["b a c b", "c  b\ta once <unk> <unk> </s> </s>"])
    assert text_pieces(tokenizer) == ("b", "a", "c")
    assert tokenizer.encode(["a b  never <unk> </s>"]) == [[5, 4, 3, 3, 3]]
    assert tokenizer.decode([[5, 4, 3, 2]]) == ["a b <unk>"]
    assert not tokenizer.lossless
    smaller = train_tokenizer(TokenizerConfig(kind="word", vocab_size=6, min_frequency=1), ["b a c b", "c a d"])
    assert text_pieces(smaller) == ("a", "b")


def test_unknown_characters_become_the_replacement_character() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="character"), ["aab b", "x  "])
    assert text_pieces(tokenizer) == (" ", "a", "b")
    assert tokenizer.decode(tokenizer.encode(["ab x "])) == ["ab \ufffd "]


def test_character_bigrams_equal_subword_nmt() -> None:
    settings = TokenizerConfig(kind="char-bigram", vocab_size=5000, shortlist=10, min_frequency=1)
    tokenizer = train_tokenizer(settings, LINES)
    shortlist = text_pieces(tokenizer)[:10]
    vocabulary = [f"{word} 1" for word in ("unused", *shortlist)]  # its ranks start at 0 and the shortlist at 1
    output = io.StringIO()
    segment_char_ngrams(
        argparse.Namespace(vocab=vocabulary, input=LINES, output=output, shortlist=10, n=2, separator="@@")
    )
    expected = [line.split() for line in output.getvalue().splitlines()]
    assert [tokenizer.pieces(ids) for ids in tokenizer.encode(LINES)] == expected
    assert any(word in pieces for word in shortlist for pieces in expected)
    assert tokenizer.decode(tokenizer.encode(LINES)) == LINES


def test_character_bigrams_survive_marks_in_the_text() -> None:
    line = "ab@@ @@ a@@@ @ <s> </s> ab abc abcd"
    settings = TokenizerConfig(kind="char-bigram", vocab_size=100, shortlist=4, min_frequency=1)
    tokenizer = train_tokenizer(settings, [line, "ab@@ ab@@ ab <s> <s> <s>"])
    assert tokenizer.decode(tokenizer.encode([line])) == [line]
    assert tokenizer.pieces(tokenizer.encode(["ab@@ abcd"])[0]) == ["ab@@", "@@", "ab@@", "cd"]
    assert tokenizer.word_ids("<s> abcd ab") == [0, 0, 1, 1, 2]


# BPE-dropout


def dropped(p: float, epoch: int = 0, lines: Sequence[str] = LINES) -> list[list[int]]:
    tokenizer = tokenizer_of("bpe")
    return [tokenizer.encode_with_dropout(ids, p, (1, epoch, i)) for i, ids in enumerate(tokenizer.encode(lines))]


@given(line=texts | st.sampled_from(DROPOUT_LINES), p=st.floats(0, 1), key=keys)
def test_dropout_keeps_the_text_and_the_key_decides(line: str, p: float, key: tuple[int, int, int]) -> None:
    tokenizer = tokenizer_of("bpe")
    [ids] = tokenizer.encode([line])
    cut = tokenizer.encode_with_dropout(ids, p, key)
    assert tokenizer.decode([cut]) == [line]
    assert tokenizer.encode_with_dropout(ids, p, key) == cut
    assert tokenizer.encode_with_dropout(np.array(ids, dtype=np.uint16), p, tuple(map(np.uint64, key))) == cut


def test_dropout_differs_between_epochs_sentences_and_seeds() -> None:
    tokenizer = tokenizer_of("bpe")
    [ids] = tokenizer.encode([LINES[0]])
    cuts = {
        tuple(tokenizer.encode_with_dropout(ids, 0.3, (seed, epoch, index)))
        for seed in range(5)
        for epoch in range(5)
        for index in range(5)
    }
    assert len(cuts) > 110


def test_dropout_of_nothing_changes_nothing_and_of_everything_leaves_bytes() -> None:
    byte_ids = [[tokenizer_of("bpe").vocabulary.id(BYTE_SYMBOLS[byte]) for byte in line.encode()] for line in HARD]
    assert dropped(0.0, lines=HARD) == dropped(1e-12, lines=HARD) == tokenizer_of("bpe").encode(HARD)
    assert dropped(1.0, lines=HARD) == byte_ids


def test_more_dropout_means_more_pieces() -> None:
    counts = [sum(map(len, dropped(p))) for p in (0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0)]
    assert all(few < many for few, many in pairwise(counts))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bpe"])
def test_kinds_without_merges_ignore_dropout(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    [ids] = tokenizer.encode([LINES[0]])
    assert tokenizer.encode_with_dropout(ids, 0.5, (0, 0, 0)) == ids


def test_dropout_does_not_depend_on_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dropped(0.2)
    monkeypatch.setattr(dropout_module, "MAX_REMEMBERED", 1)
    tokenizer_of.cache_clear()
    assert dropped(0.2) == expected


def test_a_sentence_cut_off_inside_a_character_keeps_its_bytes() -> None:
    tokenizer = train_tokenizer(config_of("bpe"), LINES)
    [ids] = tokenizer.encode(["The woman 👩"])
    for cut_off in (ids[:-1], ids[-1:]):
        for index in range(20):
            cut = tokenizer.encode_with_dropout(cut_off, 0.5, (0, 0, index))
            assert "".join(map(tokenizer.vocabulary.piece, cut)) == "".join(map(tokenizer.vocabulary.piece, cut_off))


def test_dropout_refuses_special_ids() -> None:
    with pytest.raises(KeyError):
        tokenizer_of("bpe").encode_with_dropout([*tokenizer_of("bpe").encode(["a"])[0], 2], 0.1, (0, 0, 0))


def test_an_open_word_vocabulary_of_an_earlier_version_cuts_words_at_marks_as_before() -> None:
    options = TokenizerConfig(kind="open-word", vocab_size=300, min_frequency=1)
    tokenizer = train_tokenizer(options, ["हिन्दी भाषा ह \u093f न \u094d द \u0940"])
    assert tokenizer.pieces(tokenizer.encode(["हिन्दी भाषा"])[0]) == ["हिन्दी", " भाषा"]
    before = parse_tokenizer(tokenizer.to_json().replace('"version": 2', '"version": 1'))
    for earlier in (before, parse_tokenizer(before.to_json()), before.with_tags(["bt"])):
        assert len(earlier.encode(["हिन्दी"])[0]) > 1
        assert earlier.decode(earlier.encode(["हिन्दी भाषा"])) == ["हिन्दी भाषा"]
    for tagged in (tokenizer.with_tags(["bt"]), parse_tokenizer(tokenizer.to_json())):
        assert len(tagged.encode(["हिन्दी"])[0]) == 1


# Files that are refused


def refused(path: Path, text: str | bytes, match: str) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=match) as caught:
        load_tokenizer(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_missing_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"none\.json does not exist"):
        load_tokenizer(tmp_path / "none.json")
    with pytest.raises(DataError, match="is not a regular file"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"\xff\xfe", "not a JSON file"),
        ("", "not a JSON file"),
        ("[" * 100_000, "not a JSON file"),
        ("[1, 2]", "not a tokenizer of a kind"),
        ('{"model": {"type": "WordLevel"}}', "not a tokenizer of a kind"),
        ('{"model": {"type": "WordPiece"}}', "cannot read it"),
        ('{"model": {"type": "BPE"}}', "cannot read it"),
        ('{"heed": {"tokenizer": "spaces", "version": 1}, "pieces": []}', "not a tokenizer of a kind"),
        ('{"heed": {"tokenizer": "word", "version": 2}, "pieces": []}', "'version': 2"),
        ('{"heed": {"tokenizer": "open-word", "version": 3}, "pieces": []}', "reads .*'version': 2"),
        ('{"heed": {"tokenizer": "word", "version": 1}, "pieces": "abc"}', "not a list of strings"),
        ('{"heed": {"tokenizer": "word", "version": 1}, "pieces": ["a", 7]}', "not a list of strings"),
        ('{"heed": {"tokenizer": "word", "version": 1}, "pieces": ["a", "</s>"]}', "'</s>' 2 times"),
        ('{"heed": {"tokenizer": "byte", "version": 1}, "pieces": ["a"]}', "256 bytes in order"),
    ],
)
def test_a_file_that_is_not_a_tokenizer_is_refused(text: str | bytes, match: str, tmp_path: Path) -> None:
    refused(tmp_path / "tokenizer.json", text, match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "its normalizer"),
        ({"pre_tokenizer": None}, "its pre-tokenizer: got None"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}}, "add_prefix_space"),
        ({"decoder": None}, "its decoder"),
        ({"added_tokens": []}, "its special pieces"),
        ({"model": {"type": "BPE", "vocab": {"<pad>": 0, "a": 1}, "merges": []}}, "its special pieces|its ids"),
    ],
)
def test_a_tokenizer_that_would_change_text_is_refused(change: dict[str, object], match: str, tmp_path: Path) -> None:
    document = json.loads(tokenizer_of("bpe").to_json())
    refused(tmp_path / "tokenizer.json", json.dumps(document | change), match)


def test_a_file_with_dropout_in_it_is_refused(tmp_path: Path) -> None:
    document = json.loads(tokenizer_of("bpe").to_json())
    document["model"]["dropout"] = 0.1
    refused(tmp_path / "tokenizer.json", json.dumps(document), "its dropout")


def test_a_file_that_lacks_a_byte_is_refused(tmp_path: Path) -> None:
    document = json.loads(tokenizer_of("unigram").to_json())
    document["model"]["vocab"] = [entry for entry in document["model"]["vocab"] if entry[0] != "Ġ"]
    refused(tmp_path / "tokenizer.json", json.dumps(document), "lacks 1 of the 256")


# Vocabulary and settings


def test_a_vocabulary_numbers_its_pieces_after_the_special_ones() -> None:
    vocabulary = Vocabulary(["b", "a"])
    assert len(vocabulary) == 6
    assert [vocabulary.id(piece) for piece in ("<pad>", "<s>", "</s>", "<unk>", "b", "a", "c")] == [0, 1, 2, 3, 4, 5, 3]
    assert [vocabulary.piece(id) for id in range(6)] == ["<pad>", "<s>", "</s>", "<unk>", "b", "a"]
    assert (vocabulary.pad_id, vocabulary.bos_id, vocabulary.eos_id, vocabulary.unk_id) == (0, 1, 2, 3)


def test_the_fingerprint_of_a_vocabulary_depends_on_the_order_and_borders_of_pieces() -> None:
    lists = [["a", "b"], ["b", "a"], ["ab"], ["a\nb"], ["a", "b", "c"], ['a", "b']]
    assert len({Vocabulary(pieces).sha256 for pieces in lists}) == len(lists)
    assert Vocabulary(["a", "b"]).sha256 == Vocabulary(iter("ab")).sha256


def test_every_setting_is_documented() -> None:
    assert all(key.docstring for key in config.keys(TokenizerConfig))
