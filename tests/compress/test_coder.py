"""Does the code come near the entropy, and is what cannot be right refused?"""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("constriction", reason="constriction is not installed")

from heed.compress.coder import Decoder, Encoder, Literals
from heed.core.errors import DataError


def test_symbols_come_back_and_take_their_entropy() -> None:
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


def test_what_the_model_holds_impossible_can_be_written() -> None:
    row, encoder = np.array([0.0, 1.0, 0.0]), Encoder()
    for symbol in (1, 0, 1, 2):
        encoder.code(row, symbol)
    payload = encoder.finish()
    assert 8 * len(payload) <= 2 * 24 + 32
    decoder = Decoder(payload)
    assert [decoder.code(row, None) for _ in range(4)] == [1, 0, 1, 2]


def test_bytes_come_back_and_what_repeats_gets_cheap() -> None:
    texts = [b"", b"zebra", b"\x00\xff\n", *[b"zebra"] * 40, b""]
    encoder = Encoder()
    writer = Literals(encoder, 100)
    sizes = [len(encoder.finish()) for text in texts if writer.code(text) == text]
    assert sizes[-2] - sizes[-3] < sizes[1] - sizes[0]
    reader = Literals(Decoder(encoder.finish()), 100)
    assert [reader.code(None) for _ in texts] == texts


def test_random_bytes_take_about_their_size() -> None:
    text = np.random.default_rng(2).bytes(5000)
    encoder = Encoder()
    Literals(encoder, len(text)).code(text)
    assert len(encoder.finish()) < 1.04 * len(text)


def test_a_string_without_end_is_given_up() -> None:
    encoder = Encoder()
    Literals(encoder, 10).code(b"0123456789")
    with pytest.raises(DataError, match="has no end"):
        Literals(Decoder(encoder.finish()), 5).code(None)


def test_a_model_without_numbers_cannot_compress() -> None:
    with pytest.raises(DataError, match="its numbers are not finite"):
        Encoder().code(np.array([math.nan, 1.0]), 0)


def test_a_code_of_odd_length_is_damaged() -> None:
    with pytest.raises(DataError, match="damaged"):
        Decoder(b"12345")
