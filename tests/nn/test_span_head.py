"""Span head: scores, loss and search of spans, against written-out sums over all of them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from heed.nn.span_head import SpanHead, as_grid

LENGTHS = [(2, 7), (1, 4), (3, 8)]
"""The first word of each context, and the one after its last."""


def head_and_features(hidden_size: int, no_answer: bool) -> tuple[SpanHead, torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    head = SpanHead(6, hidden_size, 3, no_answer)
    head.lengths.data = torch.randn(3)
    positions = torch.arange(8)
    context = torch.stack([(positions >= begin) & (positions < end) for begin, end in LENGTHS])
    return head, torch.randn(3, 8, 6), context


@torch.no_grad()
@pytest.mark.parametrize("hidden_size", [0, 5])
@pytest.mark.parametrize("no_answer", [False, True])
def test_the_distribution_is_that_of_all_legal_spans(hidden_size: int, no_answer: bool) -> None:
    head, features, context = head_and_features(hidden_size, no_answer)
    scores = head(features, context)
    weight, bias = head.ends.weight, head.ends.bias
    for row, (begin, end) in enumerate(LENGTHS):
        total = math.exp(float(scores.none[row]))
        for i, j in itertools.combinations_with_replacement(range(8), 2):
            legal = begin <= i and j < end and j - i < 3
            if j - i >= 3:
                continue
            score = float(scores.spans[row, i, j - i])
            if not legal:
                assert score == -math.inf
                continue
            f, g = features[row, i], features[row, j]
            expected = weight[0] @ f + bias[0] + weight[1] @ g + bias[1] + head.lengths[j - i]
            if hidden_size:
                first, last = head.hidden(f)[:5], head.hidden(g)[5:]
                expected = expected + torch.relu(first + last) @ head.together
            assert score == pytest.approx(float(expected), abs=1e-5)
            total += math.exp(score)
        assert float(scores.log_partition()[row]) == pytest.approx(math.log(total), abs=1e-5)
    assert bool(scores.none.isfinite().all()) == no_answer


def test_the_loss_is_the_mean_over_answers_and_no_answer_counts_as_one() -> None:
    head, features, context = head_and_features(5, True)
    scores = head(features, context)
    answers = torch.tensor([[[2, 1], [4, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]])
    weights = torch.tensor([[0.75, 0.25], [1.0, 0.0], [0.0, 0.0]])
    total = scores.log_partition()
    expected = (
        total[0] - 0.75 * scores.spans[0, 2, 1] - 0.25 * scores.spans[0, 4, 0]
        + total[1] - scores.spans[1, 1, 0]
        + total[2] - scores.none[2]
    )  # fmt: skip
    loss = head.loss(scores, answers, weights)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in head.parameters())


def test_padding_does_not_change_the_scores_of_a_row() -> None:
    head, features, context = head_and_features(5, True)
    together = head(features, context)
    alone = head(features[1:2, :4], context[1:2, :4])
    torch.testing.assert_close(alone.spans, together.spans[1:2, :4])
    torch.testing.assert_close(alone.log_partition(), together.log_partition()[1:2])


def test_only_candidates_are_legal_where_there_are_any() -> None:
    head, features, context = head_and_features(0, False)
    spans = torch.tensor([[[2, 1], [4, 0]], [[0, 0], [0, 0]], [[3, 2], [0, 0]]])
    given = torch.tensor([[True, True], [False, False], [True, False]])
    scores = head(features, context, as_grid(spans, given, 8, 3))
    finite = [sorted(map(tuple, row.isfinite().nonzero().tolist())) for row in scores.spans]
    assert finite[0] == [(2, 1), (4, 0)] and finite[2] == [(3, 2)]
    assert finite[1] == [(i, k) for i in range(1, 4) for k in range(3) if i + k < 4]
    at_zero = as_grid(torch.tensor([[[0, 0], [0, 0]]]), torch.tensor([[True, False]]), 8, 3)
    assert at_zero.nonzero().tolist() == [[0, 0, 0]]
