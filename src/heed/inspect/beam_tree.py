"""Tree of a beam search: the prefixes that it considered, kept and dropped at each step.

`BeamRecorder` records the search of one sentence (see `Watch` in `decoding/beam.py`). Each node is a prefix; a prefix
that several beams consider is one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Int
from torch import Tensor

from heed.decoding.beam import NEVER, Continuations
from heed.text.token_words import continues_word, probability
from heed.text.tokenizers import Tokenizer

Fate = Literal["dropped", "kept", "finished"]
_FATES: tuple[Fate, ...] = ("dropped", "kept", "finished")
"""Ascending: a prefix that two beams consider gets the higher one."""


@dataclass
class Considered:
    """A continuation that a beam considered."""

    step: float
    """Log-probability of its last token."""
    total: float
    """Log-probability of all its tokens."""
    fate: Fate


@dataclass(frozen=True)
class Node:
    """A prefix."""

    parent: int
    """Index of the prefix without the last token; -1 at the first step."""
    depth: int
    """Step of the search, from 1."""
    text: str
    """Its last token; empty for the end of the sentence."""
    goes_on: bool
    """Whether that token continues the previous word."""
    prob: float
    """Probability of that token."""
    log_prob: float
    """Log-probability of the whole prefix, in nats."""
    fate: Fate
    """A kept prefix without children was active when the search stopped."""
    best: bool
    """Whether it is a prefix of the output."""


@dataclass(frozen=True)
class BeamTree:
    """All prefixes that a beam considered, step by step, the best first in each."""

    beam_size: int
    nodes: list[Node]


class BeamRecorder:
    """Records the search of one sentence: pass `record` as its `watch`."""

    def __init__(self, eos_id: int) -> None:
        self.eos_id = eos_id
        self.considered: dict[tuple[int, ...], Considered] = {}
        """Keyed by all token ids of the prefix, end of sentence included."""

    def record(
        self, tokens: Int[Tensor, "S W T"], continuations: Continuations, accepted: Bool[Tensor, "S M"],
        kept: Int[Tensor, "S W"],
    ) -> None:  # fmt: skip
        """One step."""
        columns = (continuations.beams, continuations.tokens, continuations.steps, continuations.scores)
        for source, beams in enumerate(tokens.tolist()):
            kept_places = set(kept[source].tolist())
            finished = {place for place, is_accepted in enumerate(accepted[source].tolist()) if is_accepted}
            rows = zip(*(column[source].tolist() for column in columns), strict=True)
            for place, (beam, token, step, total) in enumerate(rows):
                if total > NEVER:
                    fate: Fate = "finished" if place in finished else "kept" if place in kept_places else "dropped"
                    self._add((*beams[beam], token), Considered(step, total, fate))

    def _add(self, ids: tuple[int, ...], new: Considered) -> None:
        if new.fate == "kept" and ids[-1] == self.eos_id:
            new.fate = "dropped"  # an end of sentence that was not accepted only fills the slot
        recorded = self.considered.setdefault(ids, new)
        recorded.fate = max(recorded.fate, new.fate, key=_FATES.index)


def beam_tree(recorder: BeamRecorder, tokenizer: Tokenizer, chosen: tuple[int, ...], beam_size: int) -> BeamTree | None:
    """The tree of a recorded search; None without a beam. `chosen`: ids of the output with its end of sentence."""
    considered = recorder.considered
    paths = sorted(considered, key=lambda ids: (len(ids), -considered[ids].total))
    if not paths:
        return None
    number = {ids: place for place, ids in enumerate(paths)}
    prefix_length = len(paths[0]) - 1  # tokens of a forced prefix
    nodes = []
    for ids, text in zip(paths, tokenizer.pieces([ids[-1] for ids in paths]), strict=True):
        node = Node(
            parent=number.get(ids[:-1], -1),
            depth=len(ids) - prefix_length,
            text="" if ids[-1] == recorder.eos_id else text,
            goes_on=len(ids) > 1 and continues_word(*tokenizer.bytes_of(ids[-2:])),
            prob=probability(considered[ids].step),
            log_prob=round(considered[ids].total, 4),
            fate=considered[ids].fate,
            best=ids == chosen[: len(ids)],
        )
        nodes.append(node)
    return BeamTree(beam_size, nodes)
