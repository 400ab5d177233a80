"""Constraints on the output of each line of `heed translate`: prefixes, glossary terms, banned words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.decoding.options import Constraints
from heed.decoding.phrases import Glossary
from heed.text.readers import Errors, read_lines


def read_ban(words: Sequence[str], path: Path | None, errors: Errors = "strict") -> tuple[str, ...]:
    """Banned words and phrases: those of the command line, then those of a file with one per line."""
    return (*words, *(line.strip() for line in (read_lines(path, errors) if path is not None else ()) if line.strip()))


class InputLines:
    """Parses the lines of stdin, and determines the constraints of each."""

    def __init__(
        self, as_json: bool, prefix_file: Path | None, glossary: Path | None, normalise: Callable[[str], str],
        errors: Errors = "strict",
    ) -> None:  # fmt: skip
        """`as_json`: each line is an object with a "source" and optionally a "prefix"."""
        self.as_json = as_json
        self.normalise = normalise
        self.constrained = as_json or prefix_file is not None or glossary is not None
        self._prefix_file = prefix_file
        self._prefixes: Iterator[str] | None = read_lines(prefix_file, errors) if prefix_file is not None else None
        self._glossary = Glossary.read(glossary, normalise, errors) if glossary is not None else None
        self._number = 0

    def read(self, groups: Iterable[Sequence[str]]) -> Iterator[tuple[list[str], list[Constraints] | None]]:
        """Yield the sources of each group of lines and, if there are any constraints, those of each line.

        Raises DataError for an invalid line, after the lines before it were yielded, and at the end if the file of
        prefixes has more lines than stdin.
        """
        for lines in groups:
            if not self.constrained:
                yield list(lines), None
                continue
            pairs: list[tuple[str, str]] = []
            for line in lines:
                try:
                    pairs.append(self._pair(line))
                except DataError:
                    if pairs:
                        yield self._constrained(pairs)
                    raise
            yield self._constrained(pairs)
        if self._prefixes is not None and next(self._prefixes, None) is not None:
            raise DataError(
                f"{self._prefix_file} has more lines than stdin, which had {self._number:,}. Give one prefix for "
                "each line."
            )

    def _constrained(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[Constraints]]:
        """The sources and the constraints of lines with prefixes."""
        sources, prefixes = [source for source, _ in pairs], [prefix for _, prefix in pairs]
        return sources, self.required(sources, prefixes)

    @property
    def target_terms(self) -> tuple[str, ...]:
        """All target terms of the glossary."""
        return self._glossary.targets if self._glossary is not None else ()

    def required(self, sources: Sequence[str], prefixes: Sequence[str]) -> list[Constraints]:
        """The prefix of each source, and the terms that the glossary requires for it."""
        glossary = self._glossary
        pairs = [() if glossary is None else glossary.pairs_for(self.normalise(source)) for source in sources]
        return [Constraints.of(prefix, own) for prefix, own in zip(prefixes, pairs, strict=True)]

    def _pair(self, line: str) -> tuple[str, str]:
        """The source and the prefix of the next line."""
        self._number += 1
        source, prefix = _from_json(line, self._number) if self.as_json else (line, "")
        if self._prefixes is not None:
            read = next(self._prefixes, None)
            if read is None:
                raise DataError(
                    f"{self._prefix_file} has fewer lines than stdin: there is no line {self._number}. Give a prefix "
                    "for each line; an empty line means no prefix."
                )
            prefix = read
        return source, prefix


def _from_json(line: str, number: int) -> tuple[str, str]:
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    source, prefix = (record.get("source"), record.get("prefix", "")) if isinstance(record, dict) else (None, "")
    if not isinstance(source, str) or not isinstance(prefix, str):
        raise DataError(
            f'stdin, line {number}: --json-input expects {{"source": "text"}} or '
            f'{{"source": "text", "prefix": "text"}}, got {line[:60]!r}.'
        )
    if any("\ud800" <= char <= "\udfff" for char in source + prefix):
        raise DataError(
            f"stdin, line {number}: a \\u escape is half of a surrogate pair. Write both halves, or the "
            "character itself."
        )
    return source.replace("\n", " "), prefix.replace("\n", " ")
