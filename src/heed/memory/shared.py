"""The translation memory of a server: suggestions go in, and texts that people have translated come out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from heed.inference.output_checks import Guard
from heed.memory.review import is_usable
from heed.memory.store import NearMatch, TranslationMemory

_GUARD = Guard()


class SharedMemory:
    """A memory for all directions of a server. Several threads may use it."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises DataError for a file that is not a memory, and StorageError."""
        TranslationMemory(path, ("", ""), create=True).close()
        self.of = cache(lambda source, target: TranslationMemory(path, (source, target)))
        """The memory of two languages, given by their codes."""

    def suggest(self, source: str, target: str, text: str, translation: str, machine: str = "") -> None:
        """Add a translation of a text, which nobody has reviewed. `source` and `target`: language codes."""
        self.of(source, target).add([(text, translation, machine)])

    def translation(self, source: str, target: str, text: str) -> str | None:
        """The translation of exactly this text by a person, if it was approved or does not look wrong."""
        unit = self.of(source, target).exact(text)
        return unit.target if unit is not None and is_usable(unit, _GUARD) else None

    def matches(self, source: str, target: str, text: str) -> list[NearMatch]:
        """Translations by people of this text and of similar ones, the most similar first, without what looks wrong."""
        memory = self.of(source, target)
        exact = memory.exact(text)
        found = [*([NearMatch(exact, 1.0)] if exact is not None else []), *memory.near(text)]
        return [match for match in found if is_usable(match.unit, _GUARD)]
