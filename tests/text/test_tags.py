"""Tags are pieces of their own, which no text becomes."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_kinds import KINDS

from heed.core.errors import DataError
from heed.text.tokenizers import Tokenizer, TokenizerConfig, load_tokenizer, save, train_tokenizer
from heed.text.vocabulary import Vocabulary, spelled_tag

TAGS = ("2de", "bt")
LINES = ["<2de> the dog <bt> runs", "2de bt < > the cat <s> </s>", "a dog <2de><bt>"] * 5
by_kind = pytest.mark.parametrize("kind", KINDS)
smuggled = st.lists(
    st.sampled_from(["<2de>", "<bt>", "2de", "<", ">", " ", "\u0120", "<pad>", "the", "\\", "<2de", "b"])
    | st.text(max_size=3),
    max_size=6,
).map("".join)


@functools.cache
def tagged(kind: str) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300, "min_frequency": 1, "shortlist": 3})
    return train_tokenizer(config, LINES, TAGS)


@by_kind
def test_tags_are_the_last_pieces(kind: str) -> None:
    vocabulary = tagged(kind).vocabulary
    assert vocabulary.pieces[-2:] == ("<2de>", "<bt>")
    assert vocabulary.tag_ids == {"2de": len(vocabulary) - 2, "bt": len(vocabulary) - 1}
    assert vocabulary.pieces == (*vocabulary.pieces[:4], *vocabulary.text_pieces, "<2de>", "<bt>")


@by_kind
@given(text=smuggled)
def test_no_text_becomes_a_tag(kind: str, text: str) -> None:
    tokenizer = tagged(kind)
    [ids] = tokenizer.encode([text])
    assert not {*ids} & {*tokenizer.vocabulary.tag_ids.values()}
    if tokenizer.lossless:
        assert tokenizer.decode([ids]) == [text]


@by_kind
def test_a_tag_adds_nothing_to_a_text_and_can_be_shown(kind: str) -> None:
    tokenizer = tagged(kind)
    tag = tokenizer.vocabulary.tag_ids["bt"]
    [ids] = tokenizer.encode(["the dog"])
    assert tokenizer.decode([[tag, *ids]]) == tokenizer.decode([ids])
    assert tokenizer.pieces([tag]) == ["<bt>"]
    assert tokenizer.bytes_of([tag]) == [b""]


@by_kind
def test_a_file_keeps_the_tags(kind: str, tmp_path: Path) -> None:
    save(tagged(kind), tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.vocabulary.tags == TAGS
    assert loaded.vocabulary.sha256 == tagged(kind).vocabulary.sha256
    assert loaded.encode(LINES) == tagged(kind).encode(LINES)


@by_kind
def test_a_file_without_tags_does_not_mention_them(kind: str) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300, "min_frequency": 1, "shortlist": 3})
    plain = train_tokenizer(config, LINES)
    assert plain.vocabulary.tags == ()
    assert "tags" not in json.loads(plain.to_json())
    assert plain.to_json() == train_tokenizer(config, LINES, ()).to_json()


def test_a_word_that_is_spelled_like_a_tag_is_unknown() -> None:
    tokenizer = tagged("word")
    assert "<2de>" not in tokenizer.vocabulary.text_pieces
    assert tokenizer.encode(["<2de> the"])[0][0] == Vocabulary.unk_id


@pytest.mark.parametrize("name", ["", "s", "pad", "unk", "/s", "2 de", "2de>", "-x", "é", "a\n", "_"])
def test_an_invalid_name_of_a_tag_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="is not a valid tag"):
        spelled_tag(name)


def test_a_tag_that_occurs_twice_is_refused() -> None:
    with pytest.raises(DataError, match="'<bt>' 2 times"):
        Vocabulary(["a"], ["bt", "bt"])


@pytest.mark.parametrize(
    "change",
    [
        lambda tokens: tokens[-1].update(content="x bt y"),
        lambda tokens: tokens[-1].update(content="xbty"),
    ],
    ids=["no name", "no brackets"],
)
def test_foreign_added_pieces_are_refused(change: object, tmp_path: Path) -> None:
    document = json.loads(tagged("bpe").to_json())
    change(document["added_tokens"])  # type: ignore[operator]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError):
        load_tokenizer(path)
