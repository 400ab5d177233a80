"""Claims of Kakade's notes about perplexity, entropy and bits, and their conversions."""

from __future__ import annotations

import math

import pytest

from heed.metrics.likelihood import TextLikelihood

PTB_VALID = TextLikelihood(
    log_prob_sum=-1.175 * math.log(2) * 393_042, num_tokens=393_042, num_words=70_390, num_characters=389_672,
    num_bytes=389_672, num_sentences=3_370,
)  # fmt: skip
"""1.175 bits for each character of the Penn Treebank's validation text; each line break is one."""


@pytest.mark.parametrize("vocab_size", [2, 10, 32_000])
def test_a_uniform_model_over_m_words_has_perplexity_m(vocab_size: int) -> None:
    """Kakade, section 3.1, "Examples"."""
    text = TextLikelihood(-81 * math.log(vocab_size), num_tokens=81)
    assert text.perplexity("token") == pytest.approx(vocab_size, rel=1e-13)


def test_perplexity_is_the_exponential_of_the_cross_entropy_rate_in_any_base() -> None:
    """Kakade, section 3.1: exp(CrossEnt) in nats is 2^bits. The mean is over tokens, not over documents: the notes' 1/T
    is inside the logarithm's sum and not a mean of perplexities."""
    parts = [TextLikelihood(-30.0, num_tokens=10), TextLikelihood(-10.0, num_tokens=40)]
    whole = parts[0] + parts[1]
    assert whole.perplexity("token") == pytest.approx(math.exp(40 / 50)) == pytest.approx(2 ** whole.bits("token"))
    assert whole.perplexity("token") < sum(part.perplexity("token") for part in parts) / 2


def test_shannons_bit_a_character_is_a_perplexity_of_23_a_word() -> None:
    """Kakade, section 3.1: 1 bit a character and 4.5 characters a word make 4.5 bits a word, and 2^4.5 = 22.6."""
    text = TextLikelihood(-4500 * math.log(2), num_tokens=4500, num_words=1000, num_characters=4500)
    assert text.bits("character") == pytest.approx(1) and text.bits("word") == pytest.approx(4.5)
    assert text.perplexity("word") == pytest.approx(22.63, abs=0.005)


def test_77_follows_from_the_exact_counts_and_not_from_the_printed_fraction() -> None:
    """Kakade, section 3.1: "about 77", by 2^(1.175 · 390000 / 74000). The printed fraction gives 73.1; the exact
    counts, 393,042 characters and 73,760 words with the ends of lines, give 76.70. And 1.175 was measured on the test
    text, of which the counts are not."""
    assert PTB_VALID.perplexity("word") == pytest.approx(76.70, abs=0.005)
    printed = 2 ** (1.175 * 390_000 / 74_000)
    assert printed == pytest.approx(73.1, abs=0.05)
    assert (PTB_VALID.count("character"), PTB_VALID.count("word")) == (393_042, 73_760)
    assert PTB_VALID.bits("character") == pytest.approx(1.175)
    assert PTB_VALID.perplexity("character") == pytest.approx(2**1.175)


def test_perplexities_of_two_codings_compare_in_a_unit_of_the_text() -> None:
    """Kakade, section 3.1: "one can translate perplexities between different codings", if they represent the text
    faithfully. The probability of the text is what they share: per word it does not matter how many pieces there
    are."""
    text = "ein kleiner Hund"
    words, pieces = (TextLikelihood.of_sentence(text, -14.0, number) for number in (4, 9))
    assert words.perplexity("word") == pieces.perplexity("word")
    assert words.perplexity("token") > pieces.perplexity("token")
    assert pieces.perplexity("token") ** (9 / 4) == pytest.approx(words.perplexity("token"))
