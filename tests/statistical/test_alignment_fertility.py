"""IBM Models 3 to 5 against their definitions, alignment by alignment, and the neighbourhoods that they sum over."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from alignment_oracle import MIXED, Alignment, alignments, joint_of_hmm, lexical, summed, t

from heed.statistical.alignment import fertility
from heed.statistical.alignment.fertility import MAX_FERTILITY, Fertile
from heed.statistical.alignment.hmm import MAX_JUMP, Hmm
from heed.statistical.alignment.hmm_ibm3 import HmmIbm3
from heed.statistical.alignment.ibm3 import Ibm3
from heed.statistical.alignment.ibm4 import GROUPS, WIDTH, Ibm4
from heed.statistical.alignment.ibm5 import MAX_VACANT, Ibm5
from heed.statistical.alignment.pairs import SentencePairs
from heed.statistical.alignment.smoothing import NONE
from heed.statistical.alignment.training import train

Places = Callable[[Sequence[int], Sequence[int], Alignment], float]


def common(model: Fertile, source: Sequence[int], target: Sequence[int], a: Alignment) -> float:
    """The factors that Models 3 to 5 share."""
    num_tgt, fertilities = len(target), [a.count(i) for i in range(len(source) + 1)]
    if 2 * fertilities[0] > num_tgt:
        return 0.0
    p, n = model.p_one, fertilities[0]
    probability = math.comb(num_tgt - n, n) * p**n * (1 - p) ** (num_tgt - 2 * n)
    table = model.tables["fertility"].probs
    for e, phi in zip(source, fertilities[1:], strict=True):
        probability *= math.factorial(phi) if isinstance(model, Ibm3) else 1
        probability *= float(table[e * (MAX_FERTILITY + 1) + phi])
    return probability * lexical(lambda e, f: t(model, e, f), source, target, a)


def positions_of_3(model: Ibm3) -> Places:
    """Π d(j | a_j, I, J)."""

    def places(source: Sequence[int], target: Sequence[int], a: Alignment) -> float:
        begin = model.begins[len(source), len(target)]
        table = model.tables["distortion"].probs
        return math.prod(float(table[begin + (i - 1) * len(target) + j]) for j, i in enumerate(a) if i)

    return places


def positions_of_4(model: Ibm4) -> Places:
    """Π d_1 of heads, and d_>1 of other words, cept by cept."""

    def places(source: Sequence[int], target: Sequence[int], a: Alignment) -> float:
        assert model.src_classes is not None and model.tgt_classes is not None
        heads, others = model.tables["heads"].probs, model.tables["others"].probs
        probability, centre, before = 1.0, 0, 0
        for i in range(1, len(source) + 1):
            cept = [j for j, source_of in enumerate(a, start=1) if source_of == i]
            for number, j in enumerate(cept):
                group = int(model.tgt_classes[target[j - 1]])
                if number == 0:
                    row = before * GROUPS + group
                    probability *= float(heads[row * WIDTH + MAX_JUMP + j - centre])
                else:
                    probability *= float(others[group * WIDTH + MAX_JUMP + j - cept[number - 1]])
            if cept:
                centre, before = math.ceil(sum(cept) / len(cept)), int(model.src_classes[source[i - 1]])
        return probability

    return places


def positions_of_5(model: Ibm5) -> Places:
    """Π of the probabilities of vacancies, placed one by one."""

    def places(source: Sequence[int], target: Sequence[int], a: Alignment) -> float:
        assert model.tgt_classes is not None
        taken: set[int] = set()
        probability, centre = 1.0, 0
        for i in range(1, len(source) + 1):
            cept = [j for j, source_of in enumerate(a, start=1) if source_of == i]
            for number, j in enumerate(cept):
                group = int(model.tgt_classes[target[j - 1]])
                vacant = [k for k in range(1, len(target) + 1) if k not in taken]
                num = len(vacant) - (len(cept) - number - 1)
                before = sum(k <= (cept[number - 1] if number else centre) for k in vacant)
                here = vacant.index(j) + 1
                if number:
                    probability *= vacancy(model, "vacant others", group, num - before, here - before)
                else:
                    probability *= vacancy(model, "vacant heads", group, num, here, before)
                taken.add(j)
            if cept:
                centre = math.ceil(sum(cept) / len(cept))
        return probability

    return places


def vacancy(model: Ibm5, name: str, group: int, num: int, taken: int, centre: int | None = None) -> float:
    """An entry of a table of vacancies: those of each class by number of vacancies, then by that of the centre."""
    rows = 1 if centre is None else MAX_VACANT + 1
    size = rows * sum(range(MAX_VACANT + 1))
    begin = rows * sum(range(num)) + (centre or 0) * num
    return float(model.tables[name].probs[group * size + begin + taken - 1])


def joint_of(model: Fertile, places: Places) -> Places:
    """P(target, alignment | source)."""
    return lambda source, target, a: common(model, source, target, a) * places(source, target, a)


@pytest.fixture(scope="module", params=["ibm3", "ibm4", "ibm5"])
def trained(request: pytest.FixtureRequest) -> tuple[Fertile, Places]:
    """A model after some iterations, and its definition."""
    model = train(request.param, MIXED, iterations=2, smoothing=NONE)
    assert isinstance(model, Fertile)
    return model, joint_of(model, places_of(model))


def places_of(model: Fertile) -> Places:
    """The factors of positions, by definition."""
    if isinstance(model, Ibm3):
        return positions_of_3(model)
    if isinstance(model, Ibm5):
        return positions_of_5(model)
    assert isinstance(model, Ibm4)
    return positions_of_4(model)


def test_likelihood_and_posteriors_are_sums_over_all_alignments(trained: tuple[Fertile, Places]) -> None:
    model, joint = trained
    total, posteriors = summed(MIXED, joint)
    assert model.log_likelihood(MIXED) == pytest.approx(total)
    for ours, theirs in zip(model.posteriors(MIXED), posteriors, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_mean_of_two_models_is_that_of_their_sums_over_all_alignments() -> None:
    model = train("hmm_ibm3", MIXED, iterations=2, smoothing=NONE)
    assert isinstance(model, HmmIbm3)
    of_hmm = summed(MIXED, lambda *pair: joint_of_hmm(model.start, *pair))
    of_3 = summed(MIXED, joint_of(model, positions_of_3(model)))
    assert model.log_likelihood(MIXED) == pytest.approx((of_hmm[0] + of_3[0]) / 2)
    for ours, links, *both in zip(model.posteriors(MIXED), model.links(MIXED), of_hmm[1], of_3[1], strict=True):
        mean = np.mean(both, axis=0)
        np.testing.assert_allclose(ours, mean, atol=1e-9)
        assert links == {(i - 1, j) for j, i in enumerate(mean.argmax(-1)) if i}


def test_an_iteration_of_a_mean_estimates_the_jumps_of_its_hidden_markov_model() -> None:
    """From its own posteriors, as an iteration of that model alone does."""
    model = train("hmm_ibm3", MIXED, iterations=1, smoothing=NONE)
    assert isinstance(model, HmmIbm3) and isinstance(model.start, Hmm)
    alone, pairs = copy.copy(model.start), SentencePairs.of_ids(MIXED)
    alone.lexicon = copy.deepcopy(model.lexicon)
    alone.estimate(pairs)
    model.estimate(pairs)
    for num_src in {len(source) for source, _ in MIXED}:
        np.testing.assert_allclose(model.start.jumps.table(num_src), alone.jumps.table(num_src))


def test_the_links_are_the_best_alignment(trained: tuple[Fertile, Places]) -> None:
    model, joint = trained
    for (source, target), links in zip(MIXED, model.links(MIXED), strict=True):
        ours = tuple(next((i + 1 for i, other in links if other == j), 0) for j in range(len(target)))
        best = max(joint(source, target, a) for a in alignments(len(source), len(target)))
        assert joint(source, target, ours) == pytest.approx(best)


def test_hill_climbing_sums_over_the_neighbours_of_a_local_maximum(
    trained: tuple[Fertile, Places], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, joint = trained
    monkeypatch.setattr(fertility, "MOST_ALIGNMENTS", 1)
    pair = MIXED[7]
    block = next(SentencePairs.of_ids([pair]).blocks())
    keys = np.array([0, *pair[0]]) * model.lexicon.tgt_size + np.array(pair[1])[:, None]
    weighted = model.weighted(block, model.lexicon.probs[model.lexicon.find(keys)][None])
    centre = tuple(weighted.alignments[0, 0].tolist())
    around = {centre, *neighbours(centre, len(pair[0]))}
    values = {a: joint(*pair, a) for a in around}
    if not isinstance(model, Ibm5):  # whose climbing follows Model 4
        assert values[centre] == max(values.values())
    assert weighted.log_probs[0] == pytest.approx(math.log(sum(values.values())))
    found = {tuple(a): 0.0 for a in weighted.alignments[0].tolist()}
    for a, weight in zip(weighted.alignments[0].tolist(), weighted.weights[0].tolist(), strict=True):
        found[tuple(a)] += weight
    for a, value in values.items():
        assert found[a] == pytest.approx(value / sum(values.values()), abs=1e-9)


def neighbours(centre: Alignment, num_src: int) -> list[Alignment]:
    """All moves and swaps."""
    places = range(len(centre))
    moves = [(*centre[:j], i, *centre[j + 1 :]) for j in places for i in range(num_src + 1)]
    swaps = []
    for j, k in product(places, places):
        swapped = list(centre)
        swapped[j], swapped[k] = swapped[k], swapped[j]
        swaps.append(tuple(swapped))
    return moves + swaps


def test_hill_climbing_never_ends_below_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """On pairs of random words, whose best alignments are far from those of the hidden Markov model."""
    draw = np.random.default_rng(3)
    pairs = SentencePairs.of_ids(
        [(draw.integers(2, 9, size=6).tolist(), draw.integers(2, 9, size=7).tolist()) for _ in range(12)]
    )
    model = train("ibm3", pairs)
    assert isinstance(model, Fertile)
    for block in pairs.blocks():
        keys = np.concatenate([np.zeros((len(block.src), 1), dtype=np.int64), block.src], axis=1)[:, None]
        probs = model.lexicon.probs[model.lexicon.find(keys * model.lexicon.tgt_size + block.tgt[..., None])]
        climbed = model.weighted(block, probs)
        monkeypatch.setattr(fertility, "_MOST_STEPS", 0)
        standing = model.weighted(block, probs)
        monkeypatch.undo()
        log_t = np.log(probs)
        end, start = (model.score(block, log_t, each.alignments[:, :1]) for each in (climbed, standing))
        assert (end >= start).all()
        assert (end > start).any()


def test_long_pairs_keep_the_links_of_the_hidden_markov_model(
    trained: tuple[Fertile, Places], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, joint = trained
    monkeypatch.setattr(fertility, "MOST_ALIGNMENTS", 1)
    monkeypatch.setattr(fertility, "MOST_WORDS", 2)
    pair = SentencePairs.of_ids([MIXED[7]])
    (links,) = model.links(pair)
    assert [links] == Hmm.links(model.start, pair)
    alone = tuple(next((i + 1 for i, other in links if other == j), 0) for j in range(len(MIXED[7][1])))
    assert model.log_likelihood(pair) == pytest.approx(math.log(joint(*MIXED[7], alone)))


@pytest.mark.parametrize(("name", "is_deficient"), [("ibm3", True), ("ibm4", True), ("ibm5", False)])
def test_all_target_sentences_have_a_probability_of_one_unless_the_model_is_deficient(
    name: str, is_deficient: bool
) -> None:
    """Two source words of at most two and one words; target sentences of one to four words are summed."""
    pairs = SentencePairs.of_ids([([2, 3], [2, 3, 2]), ([3, 2], [3, 2]), ([2], [2]), ([2, 3], [2] * 4), ([3], [3] * 2)])
    every = SentencePairs.of_ids([([2, 3], f) for n in range(1, 5) for f in product([2, 3], repeat=n)])
    model = train(name, pairs, iterations=2, smoothing=NONE)
    assert isinstance(model, Fertile)
    words = {2: [0.3, 0.5, 0.2], 3: [0.2, 0.8]}
    fertilities = model.tables["fertility"].probs.reshape(-1, MAX_FERTILITY + 1)
    for e, row in words.items():
        fertilities[e] = [*row, *[0.0] * (MAX_FERTILITY + 1 - len(row))]
    model.prepare(every)
    joint = joint_of(model, places_of(model))
    total = sum(joint(*pair, a) for pair in every for a in alignments(2, len(pair[1])))
    p = model.p_one
    expected = sum(
        first * second * math.comb(m + n, empty) * p**empty * (1 - p) ** (m + n - empty)
        for m, first in enumerate(words[2])
        for n, second in enumerate(words[3])
        for empty in range(m + n + 1)
        if 1 <= m + n + empty <= 4
    )
    assert total < 0.99 * expected if is_deficient else total == pytest.approx(expected)
