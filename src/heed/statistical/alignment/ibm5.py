"""IBM Model 5 (Brown et al. 1993, section 4.6): Model 4 without deficiency, as words are placed in vacant positions.

Cepts are placed in order, and the words of each from left to right. With v(j) the number of vacant positions up to j,
and n the number of them that leave room for the rest of the cept, the position has the factor

    d_1(v(j) | B(f_j), v(centre before), n)                        for heads
    d_>1(v(j) - v(word before) | B(f_j), n - v(word before))       for others

Each is a distribution over the possible vacancies. The words of the empty word get what is left, and a position cannot
be taken twice, so the probabilities of all target sentences sum to one. Rows beyond `MAX_VACANT` vacancies share a row,
with their vacancies scaled to it.

As in the paper, Model 4 guides hill climbing, and Model 5 weighs the alignments in the neighbourhood.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heed.statistical.alignment.classes import NUM_CLASSES
from heed.statistical.alignment.ibm4 import Cepts, Ibm4
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.alignment.table import NOTHING, Table
from heed.statistical.predictor import Ints, starts

MAX_VACANT = 40
_SIZES = np.arange(MAX_VACANT + 1)
_HEADS = starts(_SIZES * (MAX_VACANT + 1))
"""The first entry of the heads of each number of vacancies: rows of v(centre) from 0 to `MAX_VACANT`."""
_OTHERS = starts(_SIZES)
"""Likewise of other words."""


class Ibm5(Ibm4):
    """Target words take vacant positions."""

    name = "ibm5"
    title = "IBM Model 5 (Brown et al. 1993)"
    before: ClassVar[tuple[tuple[str, int], ...]] = (("ibm1", 1), ("hmm", 10), ("ibm3", 3), ("ibm4", 3))
    is_guided = True

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE, p_one: float = 0.1) -> None:
        super().__init__(lexicon, smoothing, p_one)
        self.tables["vacant heads"] = _repeated(*_heads(), smoothing)
        self.tables["vacant others"] = _repeated(*_others(), smoothing)

    def guides(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        return super().entries(block, alignments)

    def entries(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        cepts = Cepts.of(alignments)
        return {
            "fertility": self.fertility_entries(block, self.fertilities(block, alignments)),
            **self.vacancies(block, cepts),
        }

    def vacancies(self, block: Block, cepts: Cepts) -> dict[str, Ints]:
        """The entries of heads and of other words, [B, K, J]."""
        num_tgt = block.shape[1]
        real = cepts.sources > 0
        order = np.arange(num_tgt)
        placed = real[..., None, :] & (order < order[:, None])
        left = cepts.positions[..., None, :]

        def vacant(up_to: Ints) -> Ints:
            """Vacant positions among the first `up_to`, before each word is placed."""
            return np.asarray(up_to - (placed & (left < up_to[..., None])).sum(-1))

        here, centre = vacant(cepts.positions + 1), vacant(cepts.centres)
        before = np.zeros_like(here)
        before[..., 1:] = cepts.positions[..., :-1] + 1
        before = vacant(before)
        room = num_tgt - placed.sum(-1) - _remaining(cepts.sources)
        target = self.target_classes(block, cepts)
        heads = _scaled(room, here, centre)
        others = _scaled(room - before, here - before, before)
        head_entries = _HEADS[heads[0]] + heads[2] * heads[0] + heads[1] - 1
        return {
            "vacant heads": np.where(cepts.is_head, target * _HEADS[-1] + head_entries, NOTHING),
            "vacant others": np.where(
                cepts.is_other, target * _OTHERS[-1] + _OTHERS[others[0]] + others[1] - 1, NOTHING
            ),
        }


def _scaled(num: Ints, vacancy: Ints, centre: Ints) -> tuple[Ints, Ints, Ints]:
    """The number of vacancies, the one that is taken, and that of the centre; at most `MAX_VACANT`."""
    few = num <= MAX_VACANT
    safe = np.maximum(num, 1)
    taken = np.where(few, vacancy, np.clip(-(-vacancy * MAX_VACANT // safe), 1, MAX_VACANT))
    at = np.where(few, centre, centre * MAX_VACANT // safe)
    return np.clip(num, 1, MAX_VACANT), np.clip(taken, 1, MAX_VACANT), np.clip(at, 0, MAX_VACANT)


def _remaining(sources: Ints) -> Ints:
    """The number of later words of the same cept, for sorted sources [B, K, J]."""
    later = sources[..., None, :] == sources[..., :, None]
    return np.asarray(np.triu(later, 1).sum(-1))


def _heads() -> tuple[Ints, Ints]:
    """Groups and kinds of the heads of a class: by the number of vacancies and that of the centre."""
    sizes = _SIZES.repeat(MAX_VACANT + 1)
    groups = np.arange(len(sizes)).repeat(sizes)
    vacancies = np.arange(len(groups)) - starts(sizes)[groups]
    return groups, vacancies + 1 - groups % (MAX_VACANT + 1) + MAX_VACANT


def _others() -> tuple[Ints, Ints]:
    """Groups and kinds of the other words of a class: by the number of vacancies."""
    groups = np.arange(len(_SIZES)).repeat(_SIZES)
    return groups, np.arange(len(groups)) - _OTHERS[groups]


def _repeated(groups: Ints, kinds: Ints, smoothing: Smoothing) -> Table:
    """A table with these groups for each class of target words."""
    num_groups = int(groups.max()) + 1
    all_groups = (np.arange(NUM_CLASSES + 1)[:, None] * num_groups + groups).ravel()
    return Table.uniform(all_groups, np.tile(kinds, NUM_CLASSES + 1), smoothing)
