"""The translation memory of a server: suggestions go in, and texts that people have translated come out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path

from heed.core.errors import MissingInputError, StorageError
from heed.memory.review import guard_of, is_usable
from heed.memory.store import NearMatch, TranslationMemory, pair_of

MOST_NEAR = 3
"""Translations of similar texts that are shown."""


class SharedMemory:
    """A memory for all directions of a server. Several threads may use it.

    Each direction has one pair of its languages, the first that is found: see `pair_of`.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises DataError for a file that is not a memory, and StorageError."""
        self.path = path
        TranslationMemory(path, ("", ""), create=True).close()

        self._found: dict[tuple[str, str], tuple[str, str]] = {}
        self._opened = cache(self._open)
        """A memory of two of its languages, for a use: one connection for each."""

    def _open(self, languages: tuple[str, str], use: str) -> TranslationMemory:
        try:
            return TranslationMemory(self.path, languages)
        except MissingInputError as error:  # somebody has deleted it since
            raise StorageError(str(error)) from error

    def of(self, source: str, target: str) -> TranslationMemory:
        """The memory of two languages, given by their codes."""
        return self._opened(self.languages(source, target), "write")

    def to_read(self, source: str, target: str) -> TranslationMemory:
        """The same, opened again: whoever reads it does not wait for suggestions, which wait for other programs."""
        return self._opened(self.languages(source, target), "read")

    def to_compare(self, source: str, target: str) -> TranslationMemory:
        """The same, opened a third time: comparing a text with the whole memory takes longer than other reading."""
        return self._opened(self.languages(source, target), "compare")

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of languages of all units."""
        return self._opened(("", ""), "list").pairs()

    def languages(self, source: str, target: str) -> tuple[str, str]:
        """The pair of the memory for two languages, given by their codes: these codes until it has units for them.

        Languages that are unknown, and so empty, are a pair by themselves, since another model may have the others.
        """
        own = source, target
        if own not in self._found and all(own) and (pair := pair_of(own, self.pairs())) is not None:
            self._found[own] = pair
        return self._found.get(own, own)

    def suggest(self, source: str, target: str, text: str, translation: str, machine: str = "") -> None:
        """Add a translation of a text, which nobody has reviewed. `source` and `target`: language codes."""
        self.of(source, target).suggest(text, translation, machine)

    def translation(self, source: str, target: str, text: str) -> str | None:
        """The first translation of exactly this text by a person that was approved or does not look wrong."""
        memory = self.to_read(source, target)
        guard = guard_of(memory.languages)
        return next((unit.target for unit in memory.exact_matches(text) if is_usable(unit, guard)), None)

    def matches(self, source: str, target: str, text: str, check: Callable[[], None]) -> list[NearMatch]:
        """Translations by people of this text and of similar ones, the most similar first, without what looks wrong.

        `check`: see `TranslationMemory.near`.
        """
        memory = self.to_compare(source, target)
        guard = guard_of(memory.languages)
        exact = (NearMatch(unit, 1.0) for unit in memory.exact_matches(text) if is_usable(unit, guard))
        near = memory.near(text, MOST_NEAR, check=check, usable=lambda unit: is_usable(unit, guard))
        return [*islice(exact, 1), *near]
