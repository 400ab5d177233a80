"""Batches: the tensors of given rows."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data.batch import collate, source_from_ids

PAD, BOS, EOS = 0, 1, 2


def test_a_batch_of_two_rows_equals_one_written_by_hand() -> None:
    batch = collate([[5], [6, 7, 8]], [[11, 12], []], [40, 41], bos_id=BOS, eos_id=EOS, pad_id=PAD)
    assert batch.source is not None
    assert batch.source.ids.tolist() == [[5, EOS, PAD, PAD], [6, 7, 8, EOS]]
    assert batch.source.mask.tolist() == [[True, True, False, False], [True, True, True, True]]
    assert batch.tgt_in.tolist() == [[BOS, 11, 12], [BOS, PAD, PAD]]
    assert batch.tgt_out.tolist() == [[11, 12, EOS], [EOS, PAD, PAD]]
    assert batch.tgt_mask.tolist() == [[True, True, True], [True, False, False]]
    assert batch.rows.tolist() == [40, 41]
    assert (batch.num_tokens, batch.num_src_tokens, batch.num_positions) == (4, 6, 14)
    assert {batch.tgt_in.dtype, batch.tgt_out.dtype, batch.rows.dtype, batch.source.ids.dtype} == {torch.int64}
    assert {batch.tgt_mask.dtype, batch.source.mask.dtype} == {torch.bool}


def test_without_a_source_only_target_tokens_are_counted() -> None:
    batch = collate(None, [np.array([11], dtype=np.uint16), [12, 13]], [0, 1], BOS, EOS, PAD)
    assert batch.source is None
    assert (batch.num_tokens, batch.num_src_tokens, batch.num_positions) == (5, 0, 6)


def test_no_sentences_give_an_empty_source() -> None:
    assert source_from_ids([], EOS, PAD).ids.shape == (0, 0)


def test_all_tensors_of_a_batch_move_to_a_device() -> None:
    batch = collate([[5]], [[6]], [0], BOS, EOS, PAD).to(torch.device("meta"))
    assert batch.source is not None
    tensors = [batch.source.ids, batch.source.mask, batch.tgt_in, batch.tgt_out, batch.tgt_mask, batch.rows]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert batch.num_tokens == 2


# Control ids may occur in a sentence, or be equal: nothing may be inferred from the ids themselves.
sentences = st.lists(st.lists(st.integers(0, 60_000), max_size=6), min_size=1, max_size=6)


@settings(max_examples=40)
@given(sentences, st.sampled_from([(0, 1, 2), (3, 3, 3), (2, 0, 0)]), st.sampled_from([np.uint16, np.uint32, None]))
def test_the_real_tokens_of_each_row_are_its_sentence(
    tgt: list[list[int]], control: tuple[int, int, int], dtype: type[np.unsignedinteger] | None
) -> None:
    pad, bos, eos = control
    given_ids = tgt if dtype is None else [np.array(ids, dtype=dtype) for ids in tgt]
    batch = collate(given_ids, given_ids, range(len(tgt)), bos, eos, pad)
    assert batch.source is not None
    for i, ids in enumerate(tgt):
        real = batch.tgt_mask[i]
        assert batch.tgt_in[i][real].tolist() == [bos, *ids]
        assert batch.tgt_out[i][real].tolist() == [*ids, eos]
        assert batch.source.ids[i][batch.source.mask[i]].tolist() == [*ids, eos]
        assert {*batch.tgt_in[i][~real].tolist(), *batch.tgt_out[i][~real].tolist()} <= {pad}
    assert batch.num_tokens == sum(len(ids) + 1 for ids in tgt)
