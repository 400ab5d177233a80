"""The tokenizer of truecased text: what it changes, what it leaves alone, and that decoding restores every line."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.decoding.constraints import RequiredTerms
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.logit_rules import BannedPhrases
from heed.text.tokenizers import TokenizerConfig, parse_tokenizer, train_tokenizer
from heed.text.tokenizers.truecased import TruecasedBpe
from heed.text.vocabulary import EOS_ID

LINES = [
    "The dog sees the cat, and the cat sees a dog.", "A cat sees the dog in Paris.", "Paris is where the dog is.",
    "In Paris I see a cat.", "I see the dog, and so does der Hund.", "Der Hund sees the cat, and der Hund is in Paris.",
    "Dogs see ähnliche Hunde. Ähnliche dogs see a cat.",
] * 3  # fmt: skip


@cache
def tokenizer() -> TruecasedBpe:
    """A tokenizer of these lines, whose words are all pieces."""
    trained = train_tokenizer(TokenizerConfig(kind="truecased-bpe", vocab_size=400), LINES)
    assert isinstance(trained, TruecasedBpe)
    return trained


def spelled(line: str) -> str:
    """The concatenated text of a line's tokens."""
    [ids] = tokenizer().encode([line])
    return b"".join(tokenizer().bytes_of(ids)).decode()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The dog", " the dog"),
        ("Ähnliche dogs", " ähnliche dogs"),
        ("Paris is", " Paris is"),  # a name
        ("I see", " I see"),  # more often so inside sentences
        ("Der Hund", " der Hund"),
        ("Walrus", " Walrus"),  # unknown, so perhaps a name
        ("THE DOG", " THE DOG"),
        ("The's", " the's"),
        ('"The dog"', ' "The dog"'),
        ("3 dogs", " 3 dogs"),
        (" The dog", "  The dog"),
        ("the dog", "the dog"),  # it would be capitalised when it is restored
        ("ähnliche", "ähnliche"),
        ("ßa", " ßa"),  # has no capital of one character
        ("我们 the", "我们 the"),  # written without spaces between words
        ("", ""),
        (" ", "  "),
    ],
)
def test_a_first_word_is_written_as_inside_a_sentence(line: str, expected: str) -> None:
    assert spelled(line) == expected
    assert tokenizer().decode(tokenizer().encode([line])) == [line]


def test_a_first_word_has_the_pieces_that_it_has_inside() -> None:
    first, inside = tokenizer().encode(["The dog sees", "Paris the dog sees"])
    assert inside[-len(first) :] == first


@given(st.lists(st.text(max_size=12) | st.sampled_from(LINES), max_size=3))
def test_every_line_is_restored(lines: list[str]) -> None:
    assert tokenizer().decode(tokenizer().encode(lines)) == lines


@pytest.mark.parametrize("term", ["the cat", "The cat", "Paris", "ähnliche"])
@pytest.mark.parametrize("begin", ["", "In "])
def test_a_required_term_is_reached_by_its_tokens(term: str, begin: str) -> None:
    """At the beginning of a line too, where one in lower case must be written without a space."""
    form = Detokenizer(tokenizer())
    terms = RequiredTerms([term], tokenizer(), form.token_bytes)
    [ids] = tokenizer().encode([begin.strip()])
    state, certain = terms.read(ids)
    while not terms.may_end(state, certain):
        assert len(ids) < 30
        ids.append(terms.next_tokens(state, certain)[0])
        state, certain = terms.read(ids)
    assert form.texts([ids]) == [begin + term]


PARTS = [" the", "the", " ", " dog", "dog", " Paris", "Dog", ".", "s", " \u00e4", "\u00c4", "\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=6), st.sampled_from(["The", "the", "Paris", "dog", "Dog", "\u00c4"]))
def test_terms_and_banned_phrases_are_found_in_the_restored_text(parts: list[str], term: str) -> None:
    """Exactly where the final text has them, as words of their own, also at its beginning."""
    form = Detokenizer(tokenizer())
    ids = [id for piece in tokenizer().encode_inside(parts) for id in piece]
    [text] = form.texts([ids])
    terms = RequiredTerms([term], tokenizer(), form.token_bytes)
    written = rf"(?<!\w){term}(?!\w)"
    assert terms.may_end(*terms.read(ids)) == bool(re.search(written, text))
    banned = BannedPhrases([term], form.token_bytes, tokenizer().restored)
    is_forbidden = any(banned.forbidden(ids[:place], False)[id] for place, id in enumerate([*ids, EOS_ID]))
    assert is_forbidden == bool(re.search(written, text, re.IGNORECASE if term.islower() else 0))


def test_the_words_of_pieces_are_those_of_the_line() -> None:
    line = "The dog sees Paris"
    [ids] = tokenizer().encode([line])
    words = tokenizer().word_ids(line)
    assert len(words) == len(ids)
    assert words == sorted(words, key=lambda word: -1 if word is None else word)
    assert {*words} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [('"version": 1', '"version": 2', "header"), ('"lowered": [', '"lowered": [1, ', "list of strings")],
)
def test_a_damaged_file_is_refused(old: str, new: str, says: str) -> None:
    text = tokenizer().to_json()
    assert parse_tokenizer(text).to_json() == text
    assert old in text
    with pytest.raises(DataError, match=says):
        parse_tokenizer(text.replace(old, new, 1))
