"""Review of a translation memory: units that look wrong, for a person to decide.

Corrections come from whoever uses a page. A unit is suspicious if it is empty or a copy on one side, if the output
checks would flag it as a translation of its source, if it is too short or too long, if it has an address that its
source does not have, or if the same source has another translation that nobody has rejected. Between varieties of one
language, as in corrected spelling, a copy is nothing suspicious.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heed.inference.output_checks import Guard
from heed.memory.store import Unit
from heed.text.language.codes import same_language
from heed.text.language.scripts import UNSEPARATED
from heed.text.pair_filter import PairFilter, PairFilterConfig

_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|(?<![^\s@])[^\s@]++@[^\s@.]++\.\S+", re.IGNORECASE)
"""Written so that no character is read more than a few times: whoever suggests a translation chooses its text."""
_AROUND = re.compile(r"^\W+|(?<!\W)\W+$")
_WORDS_AROUND = re.compile(rf"\A[{UNSEPARATED}]+(?=[0-9A-Za-z])|(?<=[0-9A-Za-z/])[{UNSEPARATED}]+\Z")
"""Words without a space before or after an address; what follows a dot may be part of it."""
_FILTER = PairFilterConfig(max_length_ratio=4.0)
"""Stricter than for training data: a person looks at what it finds."""
_FILTER_WITH_COPIES = _FILTER.model_copy(update={"drop_copies": True})


@dataclass(frozen=True)
class Suspicion:
    """A unit, and why it is suspicious."""

    unit: Unit
    reasons: tuple[str, ...]


def guard_of(languages: tuple[str, str]) -> Guard:
    """The guard for the units of a pair of languages, which are empty if they are unknown."""
    return Guard(same_language=same_language(*languages))


def suspicious(units: Iterable[Unit], guard: Guard) -> Iterator[Suspicion]:
    """The suspicious units among those that nobody has rejected, in their order."""
    kept = [unit for unit in units if unit.state != "rejected"]
    translations: dict[str, set[str]] = defaultdict(set)
    for unit in kept:
        translations[unit.source].add(unit.target)
    for unit in kept:
        reasons = [*_reasons(unit, guard), *_contradiction(len(translations[unit.source]) - 1)]
        if reasons:
            yield Suspicion(unit, tuple(dict.fromkeys(reasons)))


def is_usable(unit: Unit, guard: Guard) -> bool:
    """Whether a unit may be used without a further look: it was approved, or was not rejected and does not look wrong.

    That other units contradict it does not count.
    """
    return unit.state == "approved" or (unit.state == "new" and not any(suspicious([unit], guard)))


def _reasons(unit: Unit, guard: Guard) -> Iterator[str]:
    config = _FILTER if guard.same_language else _FILTER_WITH_COPIES
    reason = PairFilter(config).reason_to_drop(unit.source, unit.target)
    if reason is not None:
        yield reason
    if unit.source.strip() and unit.target.strip():
        yield from guard.flags(unit.source, unit.target)
    if _addresses(unit.target) - _addresses(unit.source):
        yield "an address that the source does not have"


def _addresses(text: str) -> set[str]:
    """The addresses in a text, without the punctuation and the words around them."""
    bare = (_WORDS_AROUND.sub("", _AROUND.sub("", address)) for address in _ADDRESS.findall(text))
    return {_AROUND.sub("", address) for address in bare}


def _contradiction(others: int) -> Iterator[str]:
    if others:
        yield f"{others} other translation{'s' * (others != 1)} of the same source"
