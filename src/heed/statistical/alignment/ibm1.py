"""IBM Model 1 (Brown et al. 1993, section 4.2), and what aligners without dependent links share.

    P(f | e) = Π_j Σ_i a(i | j, I, J) t(f_j | e_i)          i = 0 is the empty word

Model 1 has a = 1 / (I + 1). Its likelihood has one maximum, which does not depend on where estimation begins.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from heed.statistical.alignment.aligner import Aligner, Arrays
from heed.statistical.alignment.pairs import Block
from heed.statistical.predictor import Floats


class Independent(Aligner):
    """An aligner in which the source of a target word does not depend on those of the others."""

    @abstractmethod
    def prior(self, num_src: int, num_tgt: int) -> Floats:
        """a(i | j, I, J), an array that broadcasts to [J, I + 1]."""

    def expect(self, block: Block, probs: Floats) -> tuple[Floats, Floats]:
        joint = probs * self.prior(*block.shape)
        norms = joint.sum(-1, keepdims=True)
        joint /= norms
        return joint, np.log(norms[..., 0]).sum(-1)

    def begin(self) -> None:
        return

    def count(self, block: Block, posteriors: Floats) -> None:
        return

    def finish(self) -> None:
        return

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def restore(self, arrays: Arrays) -> None:
        return


class Ibm1(Independent):
    """Every source position is equally likely."""

    name = "ibm1"
    title = "IBM Model 1 (Brown et al. 1993)"

    def prior(self, num_src: int, num_tgt: int) -> Floats:
        return np.array(1.0 / (num_src + 1))
