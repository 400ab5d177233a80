"""What did the beam keep, and what did it drop, at each step?

`BeamRecorder` watches a search of one sentence. A node is a beginning that was considered; beginnings that several
beams consider are one node. What is not watched costs nothing: see `watch` in `decoding/beam.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Int
from torch import Tensor

from heed.decoding.beam import NEVER, Continuations
from heed.inspect.rounding import probability
from heed.inspect.words import goes_on
from heed.text.tokenizers import Tokenizer

Fate = Literal["dropped", "kept", "finished"]
_BY_WORTH: tuple[Fate, ...] = ("dropped", "kept", "finished")


@dataclass
class Considered:
    """A continuation that a beam considered."""

    step: float
    """The log-probability of its last token."""
    total: float
    """That of the whole."""
    fate: Fate


@dataclass(frozen=True)
class Node:
    """A beginning."""

    parent: int
    """The number of the node that it goes on from; -1 where the search began."""
    depth: int
    """How many steps from there, from 1."""
    text: str
    """Its last token; empty for the end of the sentence."""
    goes_on: bool
    """Whether that goes on with the word of the one before it."""
    prob: float
    """The probability of that token."""
    log_prob: float
    """That of the whole beginning, in nats."""
    fate: Fate
    """Kept ones without children were alive when the search stopped."""
    best: bool
    """Whether it leads to the hypothesis that was chosen."""


@dataclass(frozen=True)
class BeamTree:
    """All that a beam considered, from step to step, best first in each."""

    beam_size: int
    nodes: list[Node]


class BeamRecorder:
    """Sees the search of one sentence: pass its `see` as `watch`."""

    def __init__(self, eos_id: int) -> None:
        self.eos_id = eos_id
        self.considered: dict[tuple[int, ...], Considered] = {}
        """By all tokens, the end of sentence included."""

    def see(
        self, tokens: Int[Tensor, "S W T"], found: Continuations, accepted: Bool[Tensor, "S M"],
        going_on: Int[Tensor, "S W"],
    ) -> None:  # fmt: skip
        """One step."""
        for source, beams in enumerate(tokens.tolist()):
            kept = set(going_on[source].tolist())
            finished = {place for place, is_accepted in enumerate(accepted[source].tolist()) if is_accepted}
            rows = (found.beams, found.tokens, found.steps, found.scores)
            for place, (beam, token, step, total) in enumerate(
                zip(*(row[source].tolist() for row in rows), strict=True)
            ):
                if total > NEVER:
                    fate: Fate = "finished" if place in finished else "kept" if place in kept else "dropped"
                    self._note((*beams[beam], token), Considered(step, total, fate))

    def _note(self, ids: tuple[int, ...], new: Considered) -> None:
        if new.fate == "kept" and ids[-1] == self.eos_id:
            new.fate = "dropped"  # an end that is out of the running fills a place that nothing goes on from
        known = self.considered.setdefault(ids, new)
        known.fate = max(known.fate, new.fate, key=_BY_WORTH.index)

    def paths(self) -> list[tuple[int, ...]]:
        """The beginnings in the order of the tree: by length, best first."""
        return sorted(self.considered, key=lambda ids: (len(ids), -self.considered[ids].total))


def beam_tree(recorder: BeamRecorder, tokenizer: Tokenizer, chosen: tuple[int, ...], beam_size: int) -> BeamTree | None:
    """The nodes of what was recorded, `chosen` being the ids of the output with its end. None if there was no beam."""
    paths = recorder.paths()
    if not paths:
        return None
    number = {ids: place for place, ids in enumerate(paths)}
    before = len(paths[0]) - 1  # tokens of a forced prefix
    spelled = tokenizer.pieces([ids[-1] for ids in paths])
    nodes = []
    for ids, text in zip(paths, spelled, strict=True):
        facts = recorder.considered[ids]
        node = Node(
            number.get(ids[:-1], -1), len(ids) - before, "" if ids[-1] == recorder.eos_id else text,
            len(ids) > 1 and goes_on(*tokenizer.bytes_of(ids[-2:])), probability(facts.step), round(facts.total, 4),
            facts.fate, ids == chosen[: len(ids)],
        )  # fmt: skip
        nodes.append(node)
    return BeamTree(beam_size, nodes)
