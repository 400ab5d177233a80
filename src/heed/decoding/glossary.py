"""Which target terms must stand in the translation of a line? A glossary: source terms, and what they become.

A file with a term on each line: source, tab, target. A source term in lower case stands for every case, one with
capitals for itself ("us" and "US" are two); a target term is written as it is to stand in the output. Where two
terms begin at one place in the source, the longer one counts, of two as long the one with capitals. How the search then
places them: `constrained.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from heed.core.errors import DataError
from heed.decoding.phrases import is_boundary, lowered
from heed.text.readers import Errors, read_lines


def read_terms(path: str | Path, normalise: Callable[[str], str], errors: Errors = "strict") -> dict[str, str]:
    """The terms of a file, normalised; empty lines are skipped.

    Raises DataError for a line of another form, or a term said twice.
    """
    terms: dict[str, str] = {}
    for number, line in enumerate(read_lines(path, errors), start=1):
        if not line.strip():
            continue
        columns = [normalise(column).strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(
                f"{path}, line {number}: a line of a glossary is a source term, one tab and a target term, "
                f"got {line!r}."
            )
        source, target = columns
        if terms.setdefault(source, target) != target:
            raise DataError(
                f"{path}, line {number}: {source!r} is to become {target!r} here and {terms[source]!r} before. "
                "Leave one of them."
            )
    return terms


class Glossary:
    """Source terms and the target terms that they demand."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Neither side of a term is empty."""
        self.targets = tuple(dict.fromkeys(terms.values()))
        """All that may be demanded."""
        self._by_first: dict[str, list[tuple[str, str, bool]]] = {}
        for source in sorted(terms, key=lambda term: (-len(term), term == lowered(term))):
            entry = (source, terms[source], source == lowered(source))
            self._by_first.setdefault(lowered(source[0]), []).append(entry)

    @staticmethod
    def read(path: str | Path, normalise: Callable[[str], str], errors: Errors = "strict") -> Glossary:
        """From a file, as `read_terms` reads it."""
        return Glossary(read_terms(path, normalise, errors))

    def terms_for(self, source: str) -> tuple[str, ...]:
        """The target terms that a source line demands, in the order of its terms, each once."""
        return tuple(dict.fromkeys(target for _, target in self._found(source)))

    def stretches_of(self, source: str) -> tuple[str, ...]:
        """The source terms as a line writes them, in their order, each once."""
        return tuple(dict.fromkeys(stretch for stretch, _ in self._found(source)))

    def _found(self, source: str) -> Iterator[tuple[str, str]]:
        """Each term of a line as it is written there, and its target."""
        folded, place = lowered(source), 0
        while place < len(source):
            match = self._at(source, folded, place)
            if match is None:
                place += 1
            else:
                term, target = match
                yield source[place : place + len(term)], target
                place += len(term)

    def _at(self, source: str, folded: str, place: int) -> tuple[str, str] | None:
        """The longest term that begins at a place of the source."""
        for term, target, any_case in self._by_first.get(folded[place], ()):
            end = place + len(term)
            if (
                (folded if any_case else source).startswith(term, place)
                and is_boundary(source[place - 1 : place], source[place])
                and is_boundary(source[end - 1], source[end : end + 1])
            ):
                return term, target
        return None
