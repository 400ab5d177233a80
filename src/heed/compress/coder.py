"""Entropy coder: symbols and their probabilities to bits and back.

Range coding (Martin 1979) by the library `constriction`: probabilities are rounded to 24-bit frequencies, none of them
0, so every symbol has a code. Byte strings that no token represents (`Literals`) are coded by adaptive counts: each
byte given the one before (Laplace's rule of succession).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError

Probabilities = NDArray[np.floating]
LITERAL_END, LITERAL_BEGIN = 256, 256
NO_END = "the decoded text does not end: the arithmetic here differs from that of the machine that wrote the file."


def _library() -> Any:
    try:
        return importlib.import_module("constriction")
    except ImportError as error:
        raise UsageError("compression needs the package constriction. Run: pip install constriction") from error


class Coder(Protocol):
    """Encoder or decoder."""

    def code(self, probabilities: Probabilities, symbol: int | None) -> int:
        """Encode the symbol, or decode the next one, for which `symbol` is None; returns it."""
        ...


class Encoder:
    """Writes symbols."""

    def __init__(self) -> None:
        self._stream = _library().stream
        self._coder = self._stream.queue.RangeEncoder()

    def code(self, probabilities: Probabilities, symbol: int | None) -> int:
        """Append a symbol."""
        assert symbol is not None
        self._coder.encode(symbol, _frequencies(self._stream, probabilities))
        return symbol

    def finish(self) -> bytes:
        """All bits, in 32-bit words."""
        words: NDArray[np.uint32] = self._coder.get_compressed()
        return words.astype("<u4").tobytes()


class Decoder:
    """Reads symbols in the order in which they were written."""

    def __init__(self, payload: bytes) -> None:
        if len(payload) % 4:
            raise DataError("the compressed file is damaged: its code is not a whole number of 32-bit words.")
        self._stream = _library().stream
        self._coder = self._stream.queue.RangeDecoder(np.frombuffer(payload, dtype="<u4").astype(np.uint32))

    def code(self, probabilities: Probabilities, symbol: int | None) -> int:
        """The next symbol."""
        return int(self._coder.decode(_frequencies(self._stream, probabilities)))


def _frequencies(stream: Any, probabilities: Probabilities) -> Any:
    """The library's model of a distribution; all its versions compute that of `perfect=False` alike."""
    try:
        return stream.model.Categorical(probabilities, perfect=False, lazy=True)
    except ValueError as error:
        raise DataError("the model's probabilities are not finite, so it cannot compress.") from error


class Literals:
    """Codes byte strings of limited length; encoder and decoder keep the same counts."""

    def __init__(self, coder: Coder, limit: int) -> None:
        """`limit`: maximum number of bytes of a string."""
        self._coder = coder
        self._limit = limit
        self._counts = np.ones((257, 257))

    def code(self, text: bytes | None) -> bytes:
        """Encode a string, or decode the next one, for which `text` is None. Raises DataError if it does not end."""
        symbols = None if text is None else iter((*text, LITERAL_END))
        coded = bytes(islice(self._symbols(symbols), self._limit + 1))
        if len(coded) > self._limit:
            raise DataError(NO_END)
        return coded

    def _symbols(self, symbols: Iterator[int] | None) -> Iterator[int]:
        before = LITERAL_BEGIN
        while True:
            symbol = self._coder.code(self._counts[before], None if symbols is None else next(symbols))
            self._counts[before, symbol] += 1
            if symbol == LITERAL_END:
                return
            yield symbol
            before = symbol
