"""Entropy coder: size close to the entropy, and errors for damaged codes."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("constriction", reason="constriction is not installed")

from heed.compress.coder import Decoder, Encoder, Literals
from heed.core.errors import DataError


def test_symbols_are_restored_and_take_their_entropy() -> None:
    random = np.random.default_rng(1)
    rows = random.dirichlet(np.full(300, 0.1), size=500)
    symbols = [int(random.choice(300, p=row)) for row in rows]
    encoder = Encoder()
    for row, symbol in zip(rows, symbols, strict=True):
        encoder.code(row, symbol)
    payload = encoder.finish()
    entropy = -sum(math.log2(row[symbol]) for row, symbol in zip(rows, symbols, strict=True))
    assert 8 * len(payload) <= 1.001 * entropy + 32
    decoder = Decoder(payload)
    assert [decoder.code(row, None) for row in rows] == symbols


def test_a_symbol_of_probability_zero_can_be_coded() -> None:
    row, encoder = np.array([0.0, 1.0, 0.0]), Encoder()
    for symbol in (1, 0, 1, 2):
        encoder.code(row, symbol)
    payload = encoder.finish()
    assert 8 * len(payload) <= 2 * 24 + 32
    decoder = Decoder(payload)
    assert [decoder.code(row, None) for _ in range(4)] == [1, 0, 1, 2]


def test_byte_strings_are_restored_and_repeated_ones_become_cheap() -> None:
    texts = [b"", b"zebra", b"\x00\xff\n", *[b"zebra"] * 40, b""]
    encoder = Encoder()
    writer = Literals(encoder, 100)
    sizes = [len(encoder.finish()) for text in texts if writer.code(text) == text]
    assert sizes[-2] - sizes[-3] < sizes[1] - sizes[0]
    reader = Literals(Decoder(encoder.finish()), 100)
    assert [reader.code(None) for _ in texts] == texts


def test_random_bytes_take_about_their_own_size() -> None:
    text = np.random.default_rng(2).bytes(5000)
    encoder = Encoder()
    Literals(encoder, len(text)).code(text)
    assert len(encoder.finish()) < 1.04 * len(text)


def test_a_string_that_does_not_end_is_an_error() -> None:
    encoder = Encoder()
    Literals(encoder, 10).code(b"0123456789")
    with pytest.raises(DataError, match="does not end"):
        Literals(Decoder(encoder.finish()), 5).code(None)


def test_probabilities_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(DataError, match="probabilities are not finite"):
        Encoder().code(np.array([math.nan, 1.0]), 0)


def test_a_code_of_odd_length_is_an_error() -> None:
    with pytest.raises(DataError, match="damaged"):
        Decoder(b"12345")
