"""Where does a text end that must not go on behind certain words?"""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Texts that end an output; it is cut before them."""

    def __init__(self, stops: Sequence[str], spelled: Sequence[bytes], spaced: bool = False) -> None:
        """`spelled`: the bytes of each token. `spaced`: a space behind a word is none of the text where a line ends."""
        self._stops = [stop.encode() for stop in stops]
        self._spelled = spelled
        self._spaced = spaced
        self._longest = max(map(len, self._stops))

    def reached(self, tokens: Sequence[int]) -> bool:
        """Whether one of them stands at the end of these tokens, the last one having brought it."""
        last, tail = self._spelled[tokens[-1]], b""
        if not last:
            return False
        for token in reversed(tokens[:-1]):
            if len(self._read(tail)) >= self._longest:
                break
            tail = self._spelled[token] + tail
        before, now = len(self._read(tail)), self._read(tail + last)
        return any(now.find(stop, max(0, before - len(stop) + 1)) >= 0 for stop in self._stops)

    def _read(self, spelled: bytes) -> bytes:
        """The text of these bytes if it ends here."""
        return spelled.replace(b" \n", b"\n").removesuffix(b" ") if self._spaced else spelled


def cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stops."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text


def may_begin(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of a text may be the beginning of a stop."""
    longest = max(map(len, stops), default=0)
    sizes = range(min(longest - 1, len(text)), 0, -1)
    return next((size for size in sizes if any(stop.startswith(text[-size:]) for stop in stops)), 0)
