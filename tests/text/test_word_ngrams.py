"""Character n-grams of words and their hashes."""

from __future__ import annotations

from heed.text.word_ngrams import character_ngrams, hash_ngram, ngram_buckets


def test_the_example_of_the_paper() -> None:
    """Bojanowski et al. 2017, section 3.2: `where` has the n-grams <wh, whe, her, ere, re> of three characters."""
    assert character_ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]
    assert "<where>" in character_ngrams("where", 3, 7)


def test_the_marks_of_the_ends_are_no_ngrams_by_themselves() -> None:
    assert character_ngrams("ab", 1, 2) == ["<a", "a", "ab", "b", "b>"]
    assert character_ngrams("über", 3, 3) == ["<üb", "übe", "ber", "er>"]


def test_hashes_are_fnv_1a_with_signed_bytes() -> None:
    """Known values of FNV-1a for ASCII; a byte of ü counts as a negative number, as in fastText."""
    assert hash_ngram("") == 0x811C9DC5 and hash_ngram("a") == 0xE40C292C and hash_ngram("foobar") == 0xBF9CF968
    value = 0x811C9DC5
    for byte in (0xC3 - 256, 0xBC - 256):
        value = ((value ^ (byte & 0xFFFFFFFF)) * 0x01000193) % 2**32
    assert hash_ngram("ü") == value
    assert [*ngram_buckets("a", 3, 3, 100)] == [hash_ngram("<a>") % 100]
