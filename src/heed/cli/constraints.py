"""What must the output of each line keep to? What `heed translate` reads beside the lines themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from heed.core.errors import DataError
from heed.decoding.glossary import Glossary
from heed.decoding.request import Constraints
from heed.text.readers import Errors, read_lines


def read_ban(words: Sequence[str], path: Path | None, errors: Errors = "strict") -> tuple[str, ...]:
    """Banned words and phrases, those of a file (one a line) behind those that were said."""
    return (*words, *(line.strip() for line in (read_lines(path, errors) if path is not None else ()) if line.strip()))


class InputLines:
    """Takes lines of stdin apart, and knows what each one's output must keep to."""

    def __init__(
        self, as_json: bool, prefix_file: Path | None, glossary: Path | None, normalise: Callable[[str], str],
        errors: Errors = "strict",
    ) -> None:  # fmt: skip
        """`as_json`: each line is an object with a "source" and, if wanted, a "prefix"."""
        self.as_json = as_json
        self.normalise = normalise
        self.constrained = as_json or prefix_file is not None or glossary is not None
        self._prefix_file = prefix_file
        self._prefixes: Iterator[str] | None = read_lines(prefix_file, errors) if prefix_file is not None else None
        self._glossary = Glossary.read(glossary, normalise, errors) if glossary is not None else None
        self._number = 0
        self._error: DataError | None = None

    def read(self, lines: Sequence[str]) -> tuple[list[str], list[Constraints] | None]:
        """Source lines and, where anything was asked for, the constraints of each.

        Raises DataError where the first of these lines is wrong. Where another one is, those before it come first, and
        the error with the next call, or with `finish`.
        """
        if self._error is not None:
            raise self._error
        if not self.constrained:
            return list(lines), None
        pairs: list[tuple[str, str]] = []
        for line in lines:
            try:
                pairs.append(self._pair(line))
            except DataError as error:
                if not pairs:
                    raise
                self._error = error
                break
        sources = [source for source, _ in pairs]
        found = zip(pairs, self.terms(sources), strict=True)
        return sources, [Constraints(prefix, terms) for (_, prefix), terms in found]

    @property
    def demanded(self) -> tuple[str, ...]:
        """All that the glossary may demand."""
        return self._glossary.targets if self._glossary is not None else ()

    def terms(self, sources: Sequence[str]) -> list[tuple[str, ...]]:
        """What the glossary demands for each source."""
        glossary = self._glossary
        return [() if glossary is None else glossary.terms_for(self.normalise(source)) for source in sources]

    def _pair(self, line: str) -> tuple[str, str]:
        """The source and the prefix of the next line."""
        self._number += 1
        source, prefix = _from_json(line, self._number) if self.as_json else (line, "")
        if self._prefixes is not None:
            read = next(self._prefixes, None)
            if read is None:
                raise DataError(
                    f"{self._prefix_file} ended before stdin, at line {self._number}: a prefix is needed for each "
                    "line, an empty one too."
                )
            prefix = read
        return source, prefix

    def finish(self) -> None:
        """Raises DataError for a line that was wrong, or where the file of prefixes goes on after the last line."""
        if self._error is not None:
            raise self._error
        if self._prefixes is not None and next(self._prefixes, None) is not None:
            raise DataError(
                f"{self._prefix_file} has more lines than stdin, which had {self._number:,}: each prefix belongs to "
                "the line of the same number."
            )


def _from_json(line: str, number: int) -> tuple[str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # nothing is nested here that deep
        record = None
    source, prefix = (record.get("source"), record.get("prefix", "")) if isinstance(record, dict) else (None, "")
    if not isinstance(source, str) or not isinstance(prefix, str):
        raise DataError(
            f'stdin, line {number}: with --json-input each line is {{"source": "text"}}, if wanted with a '
            f'"prefix": "text", got {line[:60]!r}.'
        )
    if any("\ud800" <= char <= "\udfff" for char in source + prefix):
        raise DataError(f"stdin, line {number}: half of a pair of \\u escapes, which is no character.")
    return source.replace("\n", " "), prefix.replace("\n", " ")
