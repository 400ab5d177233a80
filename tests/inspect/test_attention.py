"""Does attention between words say what the attention between tokens says?"""

from __future__ import annotations

import pytest
import torch

from heed.inspect import attention as attention_module
from heed.inspect.attention import word_attention
from heed.nn.contract import Trace

SRC = [slice(0, 1), slice(1, 3), slice(3, 4)]
TGT = [slice(0, 2), slice(2, 3), slice(3, 4)]


def traced(**weights: torch.Tensor) -> Trace:
    """A trace with these weights; `layer0_cross` stands for `layer0.cross`."""
    trace = Trace()
    for name, each in weights.items():
        trace.record(name.replace("_", "."), each)
    return trace


def random_weights(heads: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Rows that sum to one."""
    return torch.rand(1, heads, rows, columns, generator=torch.Generator().manual_seed(seed)).softmax(dim=-1)


def test_pieces_of_a_source_word_are_added_and_those_of_a_target_word_averaged() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.3, 0.0, 0.1, 0.6], [0.0, 0.0, 0.0, 1.0], [0.25, 0.25, 0.25, 0.25]])
    [found] = word_attention(traced(decoder_0_cross=weights[None, None]), SRC, TGT)
    assert (found.kind, found.detail) == ("source", "heads")
    assert found.layers[0].heads == [[[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25]]]


def test_rows_of_words_sum_to_one() -> None:
    trace = traced(decoder_0_cross=random_weights(2, 4, 4), decoder_0_self=random_weights(2, 4, 4, 1))
    for attention in word_attention(trace, SRC, TGT):
        for layer in attention.layers:
            for head in layer.heads:
                assert [sum(row) for row in head] == pytest.approx([1.0] * 3, abs=0.003)


def test_attention_to_the_own_words_is_to_those_before_and_the_begin() -> None:
    weights = torch.eye(4)[None, None]  # each token looks at the one before it, which stands in its own column
    [found] = word_attention(traced(decoder_0_self=weights), [], TGT)
    assert found.kind == "self"
    assert found.layers[0].heads == [[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]


def test_a_model_that_records_token_by_token_is_put_together() -> None:
    weights = random_weights(1, 4, 4)
    trace = Trace()
    for row in range(4):
        trace.record("decoder.cross", weights[:, :, row : row + 1])
    assert word_attention(trace, SRC, TGT) == word_attention(traced(decoder_cross=weights), SRC, TGT)


def test_a_text_that_was_read_in_parts_has_no_map() -> None:
    trace = traced(decoder_0_self=random_weights(1, 2, 2))
    trace.record("decoder.0.self", random_weights(1, 2, 3))
    assert word_attention(trace, [], TGT) == []
    assert word_attention(Trace(), SRC, TGT) == []


@pytest.mark.parametrize(
    ("most", "detail", "shape"), [(36, "heads", (2, 2)), (20, "layers", (2, 1)), (9, "mean", (1, 1))]
)
def test_what_is_too_much_is_averaged(
    most: int, detail: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_module, "MAX_NUMBERS", most)
    trace = traced(decoder_0_cross=random_weights(2, 4, 4), decoder_1_cross=random_weights(2, 4, 4, 1))
    [found] = word_attention(trace, SRC, TGT)
    assert found.detail == detail
    assert (len(found.layers), len(found.layers[0].heads)) == shape
    monkeypatch.setattr(attention_module, "MAX_NUMBERS", 8)
    assert word_attention(trace, SRC, TGT) == []
