"""WordPiece: equal to a written-out greedy longest match, and to the tokenizer of `transformers` on BERT's files."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers
from transformers import BertTokenizer

from heed.core.errors import DataError
from heed.text.tokenizers import TokenizerConfig, load_tokenizer, save, train_tokenizer
from heed.text.tokenizers.wordpiece import MAX_CHARACTERS, WordPiece, from_bert
from heed.text.vocabulary import UNK_ID

LINES = [
    "The station isn't far, unfortunately: the train's late!",
    "Der große Hund fährt um 12:30 ...",
    "unaffable affairs",
]
BERT_VOCAB = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "!", "'", ",", "。", "中", "a", "un", "##aff",
              "##able", "##a", "##un", "aff", "##air", "##s", "the", "resume", "é", "##é", "The"]  # fmt: skip
texts = st.text(
    st.sampled_from("unafblersTh É'!,。中\t\u0301\x00\u200b-\u3000") | st.characters(codec="utf-8"), max_size=30
)


@cache
def tokenizer_of(uncased: bool = False) -> WordPiece:
    tokenizer = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=120, uncased=uncased), LINES * 3)
    assert isinstance(tokenizer, WordPiece)
    return tokenizer


def greedy(word: str, pieces: set[str]) -> list[str]:
    """The longest piece that the word begins with, and so on; a word that has none is unknown."""
    found: list[str] = []
    while word:
        mark = "##" if found else ""
        ends = [end for end in range(len(word), 0, -1) if mark + word[:end] in pieces]
        if not ends or len(word) > MAX_CHARACTERS:
            return ["<unk>"]
        found.append(mark + word[: ends[0]])
        word = word[ends[0] :]
    return found


def split(text: str) -> list[str]:
    """Words and punctuation marks of a text in ASCII and German letters."""
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    return "".join(f" {each} " if each in marks else each for each in text).split()


@pytest.mark.parametrize("uncased", [False, True])
@given(text=st.text(st.sampled_from("Thestaioncfarunlybgößätw 12:30.!,'"), max_size=40))
def test_each_word_is_cut_greedily_into_the_longest_pieces(uncased: bool, text: str) -> None:
    tokenizer = tokenizer_of(uncased)
    pieces = {*tokenizer.vocabulary.text_pieces}
    read = text
    if uncased:
        plain = unicodedata.normalize("NFD", text.lower())
        read = "".join(each for each in plain if unicodedata.category(each) != "Mn")
    expected = [piece for word in split(read) for piece in greedy(word, pieces)]
    assert tokenizer.pieces(tokenizer.encode([text])[0]) == expected


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, BertTokenizer]:
    """The tokenizers of `transformers` for the vocabulary, cased and uncased."""
    path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("\n".join(BERT_VOCAB) + "\n", encoding="utf-8")
    return {uncased: BertTokenizer(vocab=str(path), do_lower_case=uncased) for uncased in (False, True)}


@pytest.mark.parametrize("uncased", [False, True])
@given(text=texts)
def test_a_bert_vocabulary_is_read_as_bert_reads_it(
    uncased: bool, theirs: dict[bool, BertTokenizer], text: str
) -> None:
    tokenizer, ids = from_bert(BERT_VOCAB, normalizers.BertNormalizer(lowercase=uncased))
    expected = theirs[uncased].encode(text, add_special_tokens=False)
    assert [ids[id] for id in tokenizer.encode([text])[0]] == expected


def test_the_pieces_of_a_bert_vocabulary_move_with_the_special_ones_first() -> None:
    tokenizer, ids = from_bert(BERT_VOCAB, normalizers.BertNormalizer())
    assert [BERT_VOCAB[id] for id in ids[:5]] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[unused0]"]
    assert tokenizer.vocabulary.tags == ("mask",) and BERT_VOCAB[ids[-1]] == "[MASK]"
    assert sorted(ids) == list(range(len(BERT_VOCAB)))
    with pytest.raises(DataError, match=r"no \[MASK\], which a BERT needs"):
        from_bert(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"], normalizers.BertNormalizer())


def test_words_and_marks_are_restored_with_spaces_between_them() -> None:
    tokenizer = tokenizer_of()
    assert tokenizer.decode(tokenizer.encode(LINES)) == [" ".join(split(line)) for line in LINES]
    assert tokenizer_of(uncased=True).decode(tokenizer_of(uncased=True).encode(["Der GROẞE Hund"])) == [
        "der große hund"
    ]
    assert tokenizer.decode([[UNK_ID]]) == ["<unk>"]


def test_pieces_belong_to_words_between_white_space() -> None:
    tokenizer = tokenizer_of()
    line = " isn't  late!\tx"
    [ids] = tokenizer.encode([line])
    words = [line.split()[word] for word in tokenizer.word_ids(line) if word is not None]
    spelled = [text.strip() for text in map(bytes.decode, tokenizer.bytes_of(ids))]
    assert all(piece in word or piece == "<unk>" for piece, word in zip(spelled, words, strict=True))
    assert {*words} == {*line.split()}


def test_the_vocabulary_stays_within_its_size_however_many_characters_there_are() -> None:
    lines = ["".join(map(chr, range(0x4E00, 0x4E00 + 300))), "abcdefgh " * 9]
    for size in (6, 8, 40, 200):
        assert len(train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=size), lines).vocabulary) <= size


def test_a_file_that_reads_text_in_another_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    save(tokenizer_of(), path)
    document = json.loads(path.read_text())
    for change, message in (
        ({"normalizer": {"type": "Lowercase"}}, "its normalizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre-tokenizer"),
        ({"model": {**document["model"], "continuing_subword_prefix": "@@"}}, "its mark of pieces inside a word"),
    ):
        path.write_text(json.dumps(document | change))
        with pytest.raises(DataError, match=message):
            load_tokenizer(path)
