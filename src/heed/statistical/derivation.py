"""Derivations: translations with the steps that made them, from translators that search by themselves.

A translator that derives (`Derives`) is estimated from a `Bitext` and has no P(w_t | w_<t): its score is of a whole
derivation. `heed.inference.deriving_translator` makes it a searcher like any other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from heed.core.progress import message

Pair = tuple[Sequence[int], Sequence[int]]
"""Source and target ids of a sentence pair."""


@dataclass(frozen=True)
class DerivationStep:
    """A part of the source that became a part of the target."""

    source: tuple[int, int]
    """Begin and end of its tokens."""
    target: tuple[int, int]
    features: Mapping[str, float] = field(default_factory=dict)
    """The value of each feature, without those that are 0."""
    note: str = ""
    """What made it, if a name says it."""


@dataclass(frozen=True)
class Derivation:
    """A translation and how it came about."""

    ids: tuple[int, ...]
    """The tokens of the target."""
    score: float
    steps: tuple[DerivationStep, ...]
    """In the order of the target."""
    links: tuple[tuple[int, int], ...] = ()
    """(source, target) tokens that correspond."""


def never() -> bool:
    """There is no time limit."""
    return False


@dataclass(frozen=True)
class Bitext:
    """What a translator that derives is estimated from."""

    pairs: Sequence[Pair]
    valid: Sequence[Pair]
    """Validation pairs, on which weights are tuned."""
    tokenizer: Any
    """The `heed.text.tokenizers.Tokenizer` of both sides."""
    report: Callable[[str], None] = message
    """Called with each step of the estimation, for people."""
    texts: Sequence[Sequence[Sequence[int]]] = ()
    """The sentences of each text in the target language alone."""
    is_late: Callable[[], bool] = never
    """Whether the time limit is over, after which weights are not tuned further."""
    languages: tuple[str, str] = ("", "")
    """Codes or names of source and target; empty if unknown."""


@dataclass(frozen=True)
class Forced:
    """Tokens of a source that have a given translation."""

    begin: int
    end: int
    ids: tuple[int, ...]


def by_words(forced: Sequence[Forced], words: Sequence[Sequence[int]], begins: Sequence[int]) -> list[Forced]:
    """The same parts in order, by words, of which each begins at the token `begins`.

    A part has each word that it touches. What it leaves of a word that is spelled by several tokens is copied, and
    parts that touch the same word are one. The first word may have a space that its tokens in the source lack.
    """
    tokens = [id for word in words for id in word]
    added = len(tokens) - begins[-1]
    groups: list[tuple[int, int, list[Forced]]] = []
    for part in forced:
        first, last = bisect_right(begins, part.begin) - 1, bisect_left(begins, part.end)
        if groups and first < groups[-1][1]:
            first, _, earlier = groups.pop()
            groups.append((first, last, [*earlier, part]))
        else:
            groups.append((first, last, [part]))
    found: list[Forced] = []
    for first, last, parts in groups:
        ids: list[int] = []
        done = parts[0].begin + added
        if begins[first] < parts[0].begin:
            done = begins[first] + added if first else 0
        for part in parts:
            ids += [*tokens[done : part.begin + added], *part.ids]
            done = part.end + added
        found.append(Forced(first, last, (*ids, *tokens[done : begins[last] + added])))
    return found


def every_link(begins: Sequence[int], begin: int, end: int) -> list[tuple[int, int]]:
    """Links from each word of a part of the source to the target tokens from `begin` to `end`.

    `begins`: where each of its words begins, and where the last one ends. A word links by its last token: before that,
    one that is spelled may have a space.
    """
    return [(after - 1, j) for after in begins[1:] for j in range(begin, end)]


class Derives(Protocol):
    """A translator that derives."""

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """The best derivations of a source, with different targets, the best first.

        `width`: hypotheses that are active at once; `number`: the derivations to return, fewer if there are not so
        many. `forced`: parts of the source in order that do not overlap, with the translation that they must have.
        """
        ...

    def weights_by_name(self) -> Mapping[str, float]:
        """The weight of each feature of its derivations."""
        ...


ForcedSource = tuple[Sequence[int], Sequence[Forced]]
"""A source, and the parts of it that have a given translation."""


@runtime_checkable
class DerivesTogether(Derives, Protocol):
    """A translator that derives several sources in less time than one after the other."""

    def derive_all(self, sources: Sequence[ForcedSource], width: int, number: int) -> list[list[Derivation]]:
        """What `derive` returns for each source."""
        ...


def derive_all(model: Derives, sources: Sequence[ForcedSource], width: int, number: int) -> list[list[Derivation]]:
    """The best derivations of each source; see `Derives`."""
    if isinstance(model, DerivesTogether):
        return model.derive_all(sources, width, number)
    return [model.derive(source, width, number, forced) for source, forced in sources]
