"""Decoder-only Transformer: equal to GPT-2 in `transformers`, and reading texts of any length."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import GPT, model_of, random_rows
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from heed.core.errors import UsageError
from heed.export.gpt2 import gpt2_config, to_gpt2
from heed.models.gpt import Gpt, GptConfig
from heed.nn.contract import Smoothing, Vocabularies

VOCABULARIES = Vocabularies(0, 19)


def build(config: GptConfig = GPT) -> Gpt:
    """The model with random weights, none of them 0 or 1."""
    torch.manual_seed(10)
    model = Gpt(config, VOCABULARIES)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def gpt2_of(ours: Gpt) -> GPT2LMHeadModel:
    """The model of `transformers` with the weights of ours."""
    theirs = GPT2LMHeadModel(GPT2Config(**gpt2_config(ours.config, VOCABULARIES)))
    missing, unexpected = theirs.load_state_dict(to_gpt2(dict(ours.named_parameters()), GPT.num_layers), strict=False)
    assert not unexpected
    assert missing == ["lm_head.weight"]
    return theirs.eval()


def random_ids(num_rows: int, length: int) -> Tensor:
    """Real tokens."""
    return torch.tensor(random_rows([length] * num_rows, VOCABULARIES.tgt_size))


@torch.no_grad()
def test_the_logits_equal_those_of_transformers() -> None:
    ours, ids = build(), random_ids(3, 32)
    features, _ = ours.advance(ids, ours.start(None, 3))
    torch.testing.assert_close(ours.head.logits(features), gpt2_of(ours)(input_ids=ids).logits, rtol=1e-5, atol=1e-5)


def test_the_gradients_equal_those_of_transformers() -> None:
    """Those of our blocks of queries, whose gradient is written out."""
    ours, ids = build(GPT.model_copy(update={"max_len": 150})), random_ids(2, 150)
    theirs = gpt2_of(ours)
    features, _ = ours.advance(ids, ours.start(None, 2))
    for logits in (ours.head.logits(features), theirs(input_ids=ids).logits):
        (logits.softmax(-1) ** 2).sum().backward()
    found = to_gpt2({name: p.grad for name, p in ours.named_parameters() if p.grad is not None}, GPT.num_layers)
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-4)


def test_the_cached_steps_of_a_greedy_search_equal_generate_of_transformers() -> None:
    ours, ids = build(), random_ids(1, 4)
    with torch.inference_mode():
        state, read, found = ours.start(None, 1, reserve=24), ids, []
        for _ in range(20):
            features, state = ours.advance(read, state)
            read = ours.head.log_probs(features[:, -1]).argmax(-1)[:, None]
            found.append(int(read))
    theirs = gpt2_of(ours).generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, eos_token_id=None
    )
    assert found == theirs[0, 4:].tolist()


def test_the_published_sizes_are_those_of_the_smallest_gpt2() -> None:
    """Radford et al. (2019), table 2, as counted in the published weights: 124 million."""
    small = GptConfig(d_model=768, d_ff=3072, num_heads=12, num_layers=12, max_len=1024)
    with torch.device("meta"):
        model = Gpt(small, Vocabularies(0, 50_257))
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808


def test_weights_are_initialised_as_in_gpt2() -> None:
    """0.02, and less by √(2 L) in the layers whose outputs are added up."""
    model = Gpt(GptConfig(d_model=128, d_ff=512, num_heads=4, num_layers=8), Vocabularies(0, 500))
    block = model.blocks[3]
    for weight in (model.embedding, model.positions, block.attention.query_key_value.weight, block.expand.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.05)
    for weight in (block.attention.output.weight, block.contract.weight):
        assert weight.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.05)
    assert not block.expand.bias.any()
    assert (model.norm.weight == 1).all()


@torch.no_grad()
def test_a_text_longer_than_its_positions_is_read_in_halves() -> None:
    """Token 9 of a model of 4 positions sees itself, 8 and 7: 4, 6 and 8 tokens were the ends of windows."""
    model = model_of("gpt, few positions")
    ids = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 3, 4, 5]])
    features, _ = model.advance(ids, model.start(None, 1))
    for place, begin in ((3, 0), (4, 2), (5, 2), (6, 4), (9, 6)):
        window, _ = model.advance(ids[:, begin : place + 1], model.start(None, 1))
        torch.testing.assert_close(features[:, place], window[:, -1])


def test_it_learns_in_bfloat16_as_in_float32() -> None:
    """One step of training computes the same to the precision of bfloat16."""
    losses = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = build(GPT.model_copy(update={"d_model": 64, "d_ff": 128})).to(dtype)
        ids = random_ids(4, 32)
        features, _ = model.advance(ids[:, :-1], model.start(None, 4))
        loss, _ = model.head.loss(features, ids[:, 1:], ids[:, 1:] > 0, Smoothing())
        loss.backward()
        losses[dtype] = loss.item()
        assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())
    assert losses[torch.bfloat16] == pytest.approx(losses[torch.float32], rel=0.02)


@torch.inference_mode()
def test_in_bfloat16_keys_and_values_are_kept_in_float32_for_decoding() -> None:
    model, ids = build().bfloat16(), random_ids(2, 9)
    whole, state = model.advance(ids, model.start(None, 2))
    assert {cache.keys.dtype for cache in state.caches} == {torch.float32}
    state, pieces = model.start(None, 2, reserve=9), []
    for token in ids.split(1, dim=1):
        features, state = model.advance(token, state)
        pieces.append(features)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=0.05, atol=0.05)


def test_incompatible_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="num_heads must divide d_model, got 3 and 16"):
        GptConfig(d_model=16, num_heads=3)
