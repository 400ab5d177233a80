"""The linear-chain CRF against a sum over all tag sequences, and against pytorch-crf where it is installed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from heed.nn.contract import Smoothing
from heed.nn.crf import Chain, Legal
from heed.nn.tag_head import CrfHead, SoftmaxHead

NUM_TAGS, LENGTHS = 4, (5, 1, 3)
LEGAL = Legal(
    torch.tensor([True, True, False, True]),
    torch.tensor([[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]).bool(),
    torch.tensor([True, False, True, True]),
)


def parts(seed: int = 0, scale: float = 2.0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Random emissions [3, 5, 4], transitions, begin and end, and the mask of sentences of 5, 1 and 3 words."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((3, 5, NUM_TAGS), (NUM_TAGS, NUM_TAGS), (NUM_TAGS,), (NUM_TAGS,))
    mask = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    drawn = [scale * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return drawn[0], drawn[1], drawn[2], drawn[3], mask


def sequences(length: int, legal: Legal | None) -> Iterator[tuple[int, ...]]:
    """All (legal) tag sequences of this length."""
    for tags in itertools.product(range(NUM_TAGS), repeat=length):
        steps = itertools.pairwise(tags)
        if legal is None or (legal.begin[tags[0]] and legal.end[tags[-1]] and all(legal.step[a, b] for a, b in steps)):
            yield tags


def scores_of(row: int, legal: Legal | None, seed: int = 0) -> dict[tuple[int, ...], float]:
    """The score of each sequence of a sentence, by the definition."""
    emissions, transitions, begin, end, _ = parts(seed)
    return {
        tags: float(
            begin[tags[0]] + end[tags[-1]] + sum(emissions[row, t, tag] for t, tag in enumerate(tags))
            + sum(transitions[a, b] for a, b in itertools.pairwise(tags))
        )
        for tags in sequences(LENGTHS[row], legal)
    }  # fmt: skip


both = pytest.mark.parametrize("legal", [None, LEGAL], ids=["all", "legal"])


@both
def test_the_partition_function_sums_over_all_sequences(legal: Legal | None) -> None:
    log_partition = Chain.of(*parts(), legal).log_partition()
    expected = [torch.tensor([*scores_of(row, legal).values()]).double().logsumexp(0) for row in range(3)]
    torch.testing.assert_close(log_partition, torch.stack(expected), rtol=1e-6, atol=1e-6)


@both
def test_scores_of_given_tags_are_those_of_the_definition(legal: Legal | None) -> None:
    chain = Chain.of(*parts(), legal)
    for row, length in enumerate(LENGTHS):
        for tags, score in itertools.islice(scores_of(row, legal).items(), 20):
            padded = torch.zeros(3, 5, dtype=torch.long)
            padded[row, :length] = torch.tensor(tags)
            assert float(chain.scores(padded)[row]) == pytest.approx(score)


def test_tags_of_the_padding_are_ignored_even_where_they_are_illegal() -> None:
    chain, tags = Chain.of(*parts(), LEGAL), torch.tensor([[0, 1, 1, 2, 0], [0, 2, 1, 0, 2], [0, 3, 3, 2, 1]])
    of_rows = [scores_of(row, LEGAL)[tuple(tags[row, :length].tolist())] for row, length in enumerate(LENGTHS)]
    torch.testing.assert_close(chain.scores(tags), torch.tensor(of_rows).double(), rtol=1e-6, atol=1e-6)


@both
@pytest.mark.parametrize("number", [1, 2, 7, 100])
def test_the_best_sequences_are_the_best_of_all(legal: Legal | None, number: int) -> None:
    for row, paths in enumerate(Chain.of(*parts(), legal).best(number)):
        expected = sorted(scores_of(row, legal).items(), key=lambda item: -item[1])[:number]
        assert [tuple(path.tags) for path in paths] == [tags for tags, _ in expected]
        assert [path.score for path in paths] == pytest.approx([score for _, score in expected])


@both
def test_marginals_are_sums_over_sequences(legal: Legal | None) -> None:
    marginals = Chain.of(*parts(), legal).marginals()
    for row, length in enumerate(LENGTHS):
        expected = torch.zeros(length, NUM_TAGS, dtype=torch.float64)
        scores = scores_of(row, legal)
        weights = torch.tensor([*scores.values()]).double().softmax(0)
        for tags, weight in zip(scores, weights, strict=True):
            expected[range(length), tags] += weight
        torch.testing.assert_close(marginals[row, :length], expected, rtol=1e-5, atol=1e-8)


@both
def test_the_gradient_of_the_partition_function_is_the_marginals(legal: Legal | None) -> None:
    emissions, *others = parts()
    emissions.requires_grad_()
    chain = Chain.of(emissions, *others, legal)
    [gradient] = torch.autograd.grad(chain.log_partition().sum(), emissions)
    mask = others[-1]
    torch.testing.assert_close(gradient[mask], chain.marginals()[mask])
    assert not gradient[~mask].any()


def test_scores_far_apart_do_not_overflow() -> None:
    emissions, transitions, begin, end, mask = parts(scale=60.0)
    chain = Chain.of(emissions, transitions, begin, end, mask, LEGAL)
    assert bool(chain.log_partition().isfinite().all())
    best = [paths[0].score for paths in chain.best()]
    torch.testing.assert_close(chain.log_partition(), torch.tensor(best).double(), rtol=1e-3, atol=2.0)


def test_sums_are_exact_where_the_highest_scores_of_neighbours_exclude_each_other() -> None:
    """The probability of each legal sequence is below the smallest float64, next to that of the illegal one."""
    legal = Legal(torch.ones(2).bool(), torch.tensor([[True, False], [True, True]]), torch.ones(2).bool())
    emissions = torch.tensor([[[800.0, 0.0], [0.0, 800.0]]], dtype=torch.float64, requires_grad=True)
    zeros = torch.zeros(2, 2, dtype=torch.float64)
    chain = Chain.of(emissions, zeros, zeros[0], zeros[0], torch.ones(1, 2).bool(), legal)
    log_partition = chain.log_partition()
    assert log_partition.item() == pytest.approx(800 + math.log(2))  # (0, 0) and (1, 1)
    [gradient] = torch.autograd.grad(log_partition.sum(), emissions)
    for shares in (gradient, chain.marginals()):
        torch.testing.assert_close(shares, torch.full((1, 2, 2), 0.5, dtype=torch.float64))


def test_padding_and_neighbours_do_not_change_a_sentence() -> None:
    emissions, transitions, begin, end, mask = parts()
    together = Chain.of(emissions, transitions, begin, end, mask, LEGAL)
    for row, length in enumerate(LENGTHS):
        part = slice(row, row + 1)
        alone = Chain.of(emissions[part, :length], transitions, begin, end, mask[part, :length], LEGAL)
        torch.testing.assert_close(together.log_partition()[part], alone.log_partition())
        torch.testing.assert_close(together.marginals()[part, :length], alone.marginals())
        paths = zip(together.best(3)[row], alone.best(3)[0], strict=True)
        assert all(ours.tags == theirs.tags and ours.score == pytest.approx(theirs.score) for ours, theirs in paths)


def test_the_loss_of_a_crf_is_that_of_pytorch_crf() -> None:
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    head = CrfHead(6, Legal(*(torch.ones_like(part) for part in LEGAL))).double()
    for parameter in head.parameters():
        parameter.data = torch.randn_like(parameter)
    oracle = torchcrf.CRF(NUM_TAGS, batch_first=True).double()
    oracle.transitions.data, oracle.start_transitions.data = head.transitions.data, head.begin.data
    oracle.end_transitions.data = head.end.data
    *_, mask = parts()
    features, tags = torch.randn(3, 5, 6).double(), torch.randint(NUM_TAGS, (3, 5))
    loss, nll = head.loss(features, tags, mask, Smoothing())
    torch.testing.assert_close(loss, -oracle(head.output(features), tags, mask))
    assert loss == nll
    decoded = [paths[0].tags for paths in head.searched(features, mask).best()]
    assert decoded == oracle.decode(head.output(features), mask)


def test_the_softmax_head_is_independent_but_its_search_is_legal() -> None:
    head = SoftmaxHead(6, LEGAL).double()
    *_, mask = parts()
    features, tags = torch.randn(3, 5, 6).double(), torch.randint(NUM_TAGS, (3, 5))
    scores = head.output(features)
    loss, nll = head.loss(features, tags, mask, Smoothing())
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(scores[mask], tags[mask], reduction="sum"))
    chain = head.chain(features, mask)
    torch.testing.assert_close(chain.log_partition().sum() - chain.scores(tags).sum(), nll)
    torch.testing.assert_close(chain.marginals()[mask], scores.softmax(-1)[mask])
    smoothed, plain = head.loss(features, tags, mask, Smoothing(0.1))
    uniform = 0.9 * loss - 0.1 * scores.log_softmax(-1)[mask].mean(-1).sum()
    torch.testing.assert_close(smoothed, uniform)
    assert plain == nll
    for paths, length in zip(head.searched(features, mask).best(), LENGTHS, strict=True):
        assert tuple(paths[0].tags) in set(sequences(length, LEGAL))
