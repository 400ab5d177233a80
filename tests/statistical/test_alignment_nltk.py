"""IBM Models 1 to 3 against those of NLTK: the same pairs, initial values and iterations give the same tables.

Where NLTK deviates from Brown et al. (1993), the test avoids or repairs it:

- Models 1 and 2 normalise a target word over all of its places in a sentence, so that a word which a sentence has twice
  counts once. No sentence here has one.
- No probability is below 1e-12, that of alignments included.
- Model 3 sums over neighbourhoods of alignments that hill climbing reaches. Here it sums over all alignments, as heed
  does for short pairs.
- Model 3 multiplies by d(j | 0, I, J) for words of the empty word, too. Here that is 1.
- Model 3 estimates p_1, which heed does not. Here it is heed's in every iteration.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from alignment_oracle import MIXED, alignments, t
from nltk.translate import AlignedSent, IBMModel1, IBMModel2, IBMModel3
from nltk.translate.ibm_model import AlignmentInfo

from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.fertility import MAX_FERTILITY
from heed.statistical.alignment.ibm2 import Ibm2
from heed.statistical.alignment.ibm3 import Ibm3
from heed.statistical.alignment.pairs import NULL, SentencePairs
from heed.statistical.alignment.smoothing import NONE
from heed.statistical.alignment.training import train

PAIRS = SentencePairs.of_ids([*MIXED, ([3, 2, 3], [2, 3, 4])])
"""Also a source word that occurs twice in its sentence."""
CLOSE = {"rel": 1e-6, "abs": 1e-9}


def corpus() -> list[AlignedSent]:
    """The pairs as NLTK has them: the target first. It writes its links into them."""
    return [AlignedSent(list(target), list(source)) for source, target in PAIRS]


def word(e: int) -> int | None:
    """A source word as NLTK names it."""
    return None if e == NULL else e


def entries(aligner: Aligner) -> list[tuple[int, int]]:
    """Each source word, the empty one included, with each target word that shares a pair with it."""
    size = aligner.lexicon.tgt_size
    return [divmod(key, size) for key in aligner.lexicon.keys.tolist()]


def copied(aligner: Aligner) -> Any:
    """t of an aligner, as a table of NLTK."""
    table: Any = defaultdict(lambda: defaultdict(float))
    for e, f in entries(aligner):
        table[f][word(e)] = t(aligner, e, f)
    return table


def require_equal_lexicons(aligner: Aligner, peer: Any) -> None:
    found = {(e, f): t(aligner, e, f) for e, f in entries(aligner)}
    assert found == pytest.approx({(e, f): peer.translation_table[f][word(e)] for e, f in found}, **CLOSE)
    assert max(found.values()) - min(found.values()) > 0.2  # no longer uniform


def model_1(iterations: int) -> Any:
    """NLTK's Model 1 from heed's initial values."""
    texts = corpus()
    peer = IBMModel1(texts, 0)
    peer.translation_table = copied(train("ibm1", PAIRS, iterations=0, smoothing=NONE))
    for _ in range(iterations):
        peer.train(texts)
    return peer


@pytest.mark.parametrize("iterations", [1, 2, 6])
def test_model_1_equals_that_of_nltk(iterations: int) -> None:
    require_equal_lexicons(train("ibm1", PAIRS, iterations, NONE), model_1(iterations))


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_model_2_after_model_1_equals_that_of_nltk(iterations: int) -> None:
    aligner, texts = train("ibm2", PAIRS, iterations, NONE), corpus()
    peer = IBMModel2(texts, 0)  # with a uniform table of positions
    peer.translation_table = model_1(dict(Ibm2.before)["ibm1"]).translation_table
    for _ in range(iterations):
        peer.train(texts)
    require_equal_lexicons(aligner, peer)
    assert isinstance(aligner, Ibm2)
    assert set(aligner.tables) == {(len(source), len(target)) for source, target in PAIRS}
    for (num_src, num_tgt), table in aligner.tables.items():
        theirs = [
            [peer.alignment_table[i][j][num_src][num_tgt] for i in range(num_src + 1)] for j in range(1, num_tgt + 1)
        ]
        assert table == pytest.approx(np.array(theirs), **CLOSE)


class EveryAlignment(IBMModel3):  # type: ignore[misc]
    """NLTK's Model 3 with sums over all alignments."""

    def sample(self, sentence_pair: AlignedSent) -> tuple[list[AlignmentInfo], AlignmentInfo]:
        source, target = sentence_pair.mots, sentence_pair.words
        every = [
            AlignmentInfo(
                (0, *alignment), (None, *source), ("", *target),
                [[j for j, i in enumerate(alignment, start=1) if i == place] for place in range(len(source) + 1)],
            )
            for alignment in alignments(len(source), len(target))
        ]  # fmt: skip
        return every, every[0]


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_model_3_equals_the_formulas_of_nltk(iterations: int) -> None:
    start = train("ibm1", PAIRS, 2, NONE)
    aligner, texts = Ibm3(start.lexicon), corpus()
    peer = EveryAlignment(texts, 0)  # with uniform positions
    peer.translation_table = copied(start)
    peer.fertility_table = defaultdict(lambda: defaultdict(lambda: 1 / (MAX_FERTILITY + 1)))
    for _ in range(iterations):
        peer.p1 = aligner.p_one
        for j in range(1, 4):
            peer.distortion_table[j][0] = defaultdict(lambda: defaultdict(lambda: 1.0))
        peer.train(texts)
        aligner.estimate(PAIRS)
    require_equal_lexicons(aligner, peer)
    for e in range(2, PAIRS.src_size):
        ours = aligner.tables["fertility"].probs[e * (MAX_FERTILITY + 1) :][:4]
        assert ours == pytest.approx([peer.fertility_table[phi][e] for phi in range(4)], **CLOSE)
    for (num_src, num_tgt), begin in aligner.begins.items():
        ours = aligner.tables["distortion"].probs[begin : begin + num_src * num_tgt].reshape(num_src, num_tgt)
        theirs = [
            [peer.distortion_table[j][i][num_src][num_tgt] for j in range(1, num_tgt + 1)]
            for i in range(1, num_src + 1)
        ]
        assert ours == pytest.approx(np.array(theirs), **CLOSE)
