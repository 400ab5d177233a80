"""Tests of the readers for classification, against their definitions written out."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from random_models import VOCABULARIES, random_source, row_of

from heed.core.errors import UsageError
from heed.models.bag import Bag, BagConfig
from heed.models.cnn import Cnn, CnnConfig
from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.pooling import Pooling, PoolingHead


@torch.no_grad()
def test_the_convolutional_reader_is_that_of_kim() -> None:
    torch.manual_seed(1)
    model = Cnn(CnnConfig(d_model=5, widths=(2, 3), num_filters=4), VOCABULARIES)
    source = random_source([6, 4])
    features = model.read(source)
    for row in range(2):
        length = int(source.mask[row].sum())
        vectors = model.embedding[source.ids[row, :length]]
        padded = torch.cat([vectors, torch.zeros(2, 5)])
        for at in range(length):
            expected = [
                (linear.weight @ padded[at : at + width].flatten() + linear.bias).relu()
                for linear, width in zip(model.filters, (2, 3), strict=True)
            ]
            torch.testing.assert_close(features[row, at], torch.cat(expected))


@pytest.mark.parametrize("widths", [(), (0,), (3, -1)])
def test_windows_without_tokens_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="widths"):
        CnnConfig(widths=widths)


@torch.no_grad()
def test_the_bag_sums_vectors_of_tokens_and_ngrams() -> None:
    model = Bag(BagConfig(d_model=4, order=3, num_buckets=7), VOCABULARIES)
    model.ngrams.data.normal_()
    source = row_of(random_source([5]), 0)
    ids = source.ids[0].tolist()
    for at in range(len(ids)):
        expected = model.embedding[ids[at]].clone()
        for length in (2, 3):
            if at >= length - 1:
                hashed = 0
                for token in ids[at - length + 1 : at + 1]:
                    hashed = hashed * 116049371 + token
                expected += model.ngrams[hashed % 7]
        torch.testing.assert_close(model.read(source)[0, at], expected)


@torch.no_grad()
def test_pooling_leaves_out_padding() -> None:
    torch.manual_seed(2)
    features, mask = torch.randn(2, 4, 3), torch.tensor([[True, True, False, False], [True] * 4])
    short = features[:1, :2]
    for pooling in ("mean", "max", "attention", "cls", "concat"):
        head = PoolingHead(3, 2, pooling, 0.0)
        torch.testing.assert_close(head(features, mask)[:1], head(short, mask[:1, :2]))
    head, trace = PoolingHead(3, 2, "attention", 0.0), Trace()
    pooled = head.pool(features, mask, trace)
    scores = torch.tanh(short[0] @ head.hidden.weight.T + head.hidden.bias) @ head.query
    torch.testing.assert_close(pooled[0], scores.softmax(0) @ short[0])
    [weights] = trace.weights["pooling"]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 1))


@torch.no_grad()
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_pooling_computes_in_the_precision_of_the_features(pooling: Pooling) -> None:
    features, mask = torch.randn(2, 4, 3), torch.tensor([[True, True, False, False], [True] * 4])
    head = PoolingHead(3, 2, pooling, 0.5)
    expected = head(features, mask)
    found = head.bfloat16()(features.bfloat16(), mask)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)


@torch.no_grad()
def test_concatenated_pooling_has_the_last_the_largest_and_the_mean() -> None:
    """[h_T, maxpool(H), meanpool(H)] (Howard & Ruder 2018, section 3.3)."""
    features, mask = torch.randn(2, 4, 3), torch.tensor([[True, True, False, False], [True] * 4])
    pooled = PoolingHead(3, 2, "concat", 0.0).pool(features, mask)
    for row, length in enumerate((2, 4)):
        h = features[row, :length]
        torch.testing.assert_close(pooled[row], torch.cat((h[-1], h.max(0).values, h.mean(0))))


def test_dropout_of_the_head_depends_on_the_row_alone() -> None:
    head = PoolingHead(8, 2, "max", 0.5)
    features, mask = torch.randn(3, 4, 8), torch.ones(3, 4, dtype=torch.bool)
    keys = DropoutKeys.for_step(1, 1, torch.arange(3))
    together = head(features, mask, keys)
    alone = head(features[1:2], mask[1:2], keys.select(torch.tensor([1])))
    torch.testing.assert_close(together[1:2], alone)
    assert not torch.allclose(together, head(features, mask))
