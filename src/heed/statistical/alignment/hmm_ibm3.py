"""Hidden Markov model and IBM Model 3 with one lexical table, and the mean of their posteriors.

Model 3 sums over the neighbourhood of one alignment, so its posteriors are too sure of themselves; the hidden Markov
model knows nothing of fertilities. Their mean is better than either where posteriors are combined (`agreement`).

What an iteration raises is the mean of both log-likelihoods: the expected counts of the shared table are the mean of
those of both models, and each model counts its own jumps, fertilities and positions.
"""

from __future__ import annotations

from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.ibm3 import Ibm3
from heed.statistical.alignment.pairs import Block
from heed.statistical.predictor import Floats


class HmmIbm3(Ibm3):
    """Model 3, and the hidden Markov model that its hill climbing starts from."""

    name = "hmm_ibm3"
    title = "mean of the hidden Markov model and IBM Model 3"

    best = Aligner.best

    def expect(self, block: Block, probs: Floats) -> tuple[Floats, Floats]:
        ours, our_logs = super().expect(block, probs)
        theirs, their_logs = self.start.expect(block, probs)
        return (ours + theirs) / 2, (our_logs + their_logs) / 2

    def begin(self) -> None:
        super().begin()
        self.start.begin()

    def count(self, block: Block, posteriors: Floats) -> None:
        super().count(block, posteriors)
        self.start.count(block, posteriors)

    def finish(self) -> None:
        super().finish()
        self.start.finish()
