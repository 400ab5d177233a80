"""Tests of hostile and damaged tokenizer files: refused in a sentence, and valid large ones read."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from heed.core.errors import DataError, UsageError
from heed.text.tokenizers import MAX_BYTES, Tokenizer, TokenizerConfig, load_tokenizer, save, train_tokenizer

LINES = ["The tall woman is waiting, and the dog isn't.", "Der große Hund schläft im Garten.", "a  b\t12:30 ☃"]


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=300), LINES * 3)


def refused(path: Path, text: str, match: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=match):
        load_tokenizer(path)


def test_a_vocabulary_in_which_ids_or_merges_are_ambiguous_is_refused(tmp_path: Path) -> None:
    """The library would take it: two pieces of one id decode to one of them, and repeated merges fill the memory."""
    path = tmp_path / "tokenizer.json"
    document = json.loads(tokenizer_of("bpe").to_json())
    vocab, merges = document["model"]["vocab"], document["model"]["merges"]
    first, second = [piece for piece in vocab if vocab[piece] in (260, 261)]
    for changes, message in (
        ({"vocab": {**vocab, second: 260}}, f"the pieces {first!r} and {second!r} have the same id 260"),
        (
            {"vocab": {**vocab, second: len(vocab)}},
            f"{second!r} has the id {len(vocab)}, but .* end at {len(vocab) - 1}",
        ),
        ({"merges": merges + merges[:1] * 8000}, "occurs 8,001 times; each must be unique"),
        ({"merges": [*merges, " ".join(merges[0])]}, "occurs 2 times"),
    ):
        refused(path, json.dumps(document | {"model": document["model"] | changes}), message)
    document = json.loads(tokenizer_of("unigram").to_json())
    document["model"]["vocab"].append(document["model"]["vocab"][-1])
    refused(path, json.dumps(document), "the piece '.*' occurs 2 times")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_no_flipped_bit_of_a_file_is_unforeseen_or_changes_a_word_unnoticed(kind: str, tmp_path: Path) -> None:
    content, path = tokenizer_of(kind).to_json().encode(), tmp_path / "tokenizer.json"
    for place in range(0, len(content), len(content) // 300):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with suppress(DataError):
            read = load_tokenizer(path)
            decoded = read.decode(read.encode(LINES))
            assert decoded == LINES or not read.restores
            read.encode_with_dropout(read.encode(LINES)[0], 0.5, (1, 2, 3))


def test_a_file_larger_than_any_tokenizer_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(DataError, match=r"tokenizer\.json is larger than 64 MB"):
        load_tokenizer(path)
    monkeypatch.setattr("heed.text.tokenizers.MAX_BYTES", 100)
    with pytest.raises(UsageError, match=r"pieces and takes .* kB, but heed reads at most 100 bytes\. Lower"):
        save(tokenizer_of("byte"), path)


def test_a_large_vocabulary_whose_merges_differ_is_read(tmp_path: Path) -> None:
    """A piece may be made by several merges, as in the largest public tokenizers."""
    document = json.loads(tokenizer_of("bpe").to_json())
    vocab, letters = document["model"]["vocab"], "abcdefghijklmnopqrstuvwxyz"
    pairs = [left + right for left in letters for right in letters]
    triples = [pair + letter for pair in pairs for letter in letters]
    known = [piece for piece in (*pairs, *triples) if piece not in vocab]
    for piece in known:
        vocab[piece] = len(vocab)
    known_merges = {tuple(merge) for merge in document["model"]["merges"]}
    merges = [(pair[0], pair[1]) for pair in pairs]
    merges += [merge for triple in triples for merge in ((triple[:2], triple[2]), (triple[0], triple[1:]))]
    document["model"]["merges"] += [merge for merge in merges if merge not in known_merges]
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert len(load_tokenizer(tmp_path / "tokenizer.json").vocabulary) == len(vocab) > 18_000
