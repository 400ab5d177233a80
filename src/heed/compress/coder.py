"""How do tokens and their probabilities become bits?

By range coding (Martin 1979), of the library `constriction`: probabilities become whole 24-bit frequencies, none of
them 0, so every token has a code. Bytes that no token spells are coded by their own counts: after each byte, and at
the beginning, what has followed there before (Laplace's rule of succession).
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
NO_END = "what is decoded has no end: the arithmetic here is another one than where the file was written."


def _library() -> Any:
    try:
        return importlib.import_module("constriction")
    except ImportError as error:
        raise UsageError("compressing needs the library constriction: pip install constriction.") from error


class Coder(Protocol):
    """One side of the code: `token` codes what it is given, or finds out what was coded."""

    def code(self, probabilities: Probabilities, symbol: int | None) -> int:
        """The next symbol; None where it is to be found out."""
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
            raise DataError("it is damaged: its code has no whole number of words.")
        self._stream = _library().stream
        self._coder = self._stream.queue.RangeDecoder(np.frombuffer(payload, dtype="<u4").astype(np.uint32))

    def code(self, probabilities: Probabilities, symbol: int | None) -> int:
        """The next symbol."""
        return int(self._coder.decode(_frequencies(self._stream, probabilities)))


def _frequencies(stream: Any, probabilities: Probabilities) -> Any:
    """The library's model of a distribution; `perfect=False` is the way that its versions keep."""
    try:
        return stream.model.Categorical(probabilities, perfect=False, lazy=True)
    except ValueError as error:
        raise DataError("the model gives no probabilities (its numbers are not finite): it cannot compress.") from error


class Literals:
    """Codes strings of at most so many bytes; both sides count alike."""

    def __init__(self, coder: Coder, limit: int) -> None:
        self._coder = coder
        self._limit = limit
        self._counts = np.ones((257, 257))

    def code(self, text: bytes | None) -> bytes:
        """The next string; None where it is to be found out. Raises DataError for one that has no end."""
        given = None if text is None else iter((*text, LITERAL_END))
        found = bytes(islice(self._symbols(given), self._limit + 1))
        if len(found) > self._limit:
            raise DataError(NO_END)
        return found

    def _symbols(self, given: Iterator[int] | None) -> Iterator[int]:
        before = LITERAL_BEGIN
        while True:
            symbol = self._coder.code(self._counts[before], None if given is None else next(given))
            self._counts[before, symbol] += 1
            if symbol == LITERAL_END:
                return
            yield symbol
            before = symbol
