"""Attention between words, merged from attention between tokens."""

from __future__ import annotations

import pytest
import torch

from heed.inspect import attention as attention_module
from heed.inspect.attention import pooled_words, word_attention, word_attention_within
from heed.nn.contract import Trace

SRC = [slice(0, 1), slice(1, 3), slice(3, 4)]
TGT = [slice(0, 2), slice(2, 3), slice(3, 4)]


def traced(**weights: torch.Tensor) -> Trace:
    """A trace with these weights; `layer0_cross` is recorded as `layer0.cross`."""
    trace = Trace()
    for name, each in weights.items():
        trace.record(name.replace("_", "."), each)
    return trace


def random_weights(heads: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Rows that sum to one."""
    return torch.rand(1, heads, rows, columns, generator=torch.Generator().manual_seed(seed)).softmax(dim=-1)


def test_attention_is_summed_over_source_tokens_and_averaged_over_target_tokens() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.3, 0.0, 0.1, 0.6], [0.0, 0.0, 0.0, 1.0], [0.25, 0.25, 0.25, 0.25]])
    [attention] = word_attention(traced(decoder_0_cross=weights[None, None]), SRC, TGT)
    assert (attention.kind, attention.detail) == ("source", "heads")
    assert attention.layers[0].heads == [[[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25]]]


def test_rows_of_words_sum_to_one() -> None:
    trace = traced(decoder_0_cross=random_weights(2, 4, 4), decoder_0_self=random_weights(2, 4, 4, 1))
    for attention in word_attention(trace, SRC, TGT):
        for layer in attention.layers:
            for head in layer.heads:
                assert [sum(row) for row in head] == pytest.approx([1.0] * 3, abs=0.003)


def test_self_attention_has_a_column_for_the_begin_and_each_earlier_word() -> None:
    weights = torch.eye(4)[None, None]  # each token attends to the one before it, which is in its own column
    [attention] = word_attention(traced(decoder_0_self=weights), [], TGT)
    assert attention.kind == "self"
    assert attention.layers[0].heads == [[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]


def test_weights_recorded_token_by_token_are_concatenated() -> None:
    weights = random_weights(1, 4, 4)
    trace = Trace()
    for row in range(4):
        trace.record("decoder.cross", weights[:, :, row : row + 1])
    assert word_attention(trace, SRC, TGT) == word_attention(traced(decoder_cross=weights), SRC, TGT)


def test_a_text_read_in_several_parts_has_no_attention() -> None:
    trace = traced(decoder_0_self=random_weights(1, 2, 2))
    trace.record("decoder.0.self", random_weights(1, 2, 3))
    assert word_attention(trace, [], TGT) == []
    assert word_attention(Trace(), SRC, TGT) == []


@pytest.mark.parametrize(
    ("limit", "detail", "shape"), [(36, "heads", (2, 2)), (20, "layers", (2, 1)), (9, "mean", (1, 1))]
)
def test_attention_beyond_the_limit_is_averaged(
    limit: int, detail: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_module, "MAX_NUMBERS", limit)
    trace = traced(decoder_0_cross=random_weights(2, 4, 4), decoder_1_cross=random_weights(2, 4, 4, 1))
    [attention] = word_attention(trace, SRC, TGT)
    assert attention.detail == detail
    assert (len(attention.layers), len(attention.layers[0].heads)) == shape
    monkeypatch.setattr(attention_module, "MAX_NUMBERS", 8)
    assert word_attention(trace, SRC, TGT) == []


def test_pooling_gives_each_word_the_sum_of_its_positions_and_the_begin_none() -> None:
    trace = Trace()
    trace.record("pooling", torch.tensor([0.1, 0.2, 0.3, 0.4])[None, None, None])
    words = [slice(0, 1), slice(1, 3), slice(3, 4), slice(4, 5)]  # a begin, of which the head knows nothing
    assert pooled_words(trace, words) == pytest.approx((0, 0.3, 0.3, 0.4))
    assert pooled_words(trace, [slice(0, 3), slice(3, 4)]) == pytest.approx((0.6, 0.4))
    assert pooled_words(trace, [slice(0, 3)]) is None, "the head pooled something else than these positions"
    assert pooled_words(Trace(), words) is None and pooled_words(trace, []) is None


def test_attention_of_a_reader_is_between_all_words() -> None:
    trace = Trace()
    weights = torch.rand(1, 2, 4, 4).softmax(3)
    trace.record("encoder.0.self", weights)
    [attention] = word_attention_within(trace, [slice(0, 2), slice(2, 3), slice(3, 4)])
    assert attention.kind == "text" and attention.layers[0].name == "encoder.0.self"
    expected = weights[0, 1, :2, :2].sum(1).mean()
    assert attention.layers[0].heads[1][0][0] == pytest.approx(float(expected), abs=1e-3)
    assert word_attention_within(Trace(), [slice(0, 1)]) == []
