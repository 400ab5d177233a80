"""Transformer encoder and head of masked language models: equal to BERT in `transformers`, and their options."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import ENCODER, model_of, random_rows, random_source
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from heed.core.errors import DataError
from heed.export.bert import bert_config, to_bert
from heed.models.encoder import Encoder, EncoderConfig
from heed.nn.attention import RotaryAttention, rotated
from heed.nn.contract import Smoothing, TokenSource, Vocabularies
from heed.nn.masked_head import MaskedHead, MaskedHeadConfig
from heed.nn.pooling import PoolingHead
from heed.nn.reader_heads import ReaderWithHead
from heed.nn.two_texts import segments_of
from heed.tasks.classification.reading import outputs_of

VOCABULARIES = Vocabularies(19, 19)
BERT = ENCODER.model_copy(update={"begin": True})


def build(config: EncoderConfig = BERT) -> ReaderWithHead:
    """The model with random weights, none of them 0 or 1."""
    torch.manual_seed(10)
    reader = Encoder(config, VOCABULARIES)
    model = ReaderWithHead(reader, MaskedHead(MaskedHeadConfig(), reader.token_vectors(), 0))
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def bert_of(ours: ReaderWithHead, config: EncoderConfig = BERT) -> BertForMaskedLM:
    """The model of `transformers` with the weights of ours."""
    theirs = BertForMaskedLM(BertConfig(**bert_config(config, MaskedHeadConfig(), VOCABULARIES)))
    weights = to_bert(dict(ours.named_parameters()), config)
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected
    assert {*missing} <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    theirs.tie_weights()
    return theirs.eval()


def pairs() -> TokenSource:
    """Rows of two texts with their ends, of different lengths."""
    first, second = random_rows([4, 2, 6], 19), random_rows([3, 5, 1], 19, seed=1)
    rows = [[*a, 2, *b] for a, b in zip(first, second, strict=True)]
    from heed.data.batch import source_from_ids

    return source_from_ids(rows, 2, 0)


def theirs_reads(theirs: BertForMaskedLM, source: TokenSource) -> Tensor:
    """Their logits at the positions of the source, after [CLS]."""
    begin = torch.ones(len(source), 1, dtype=torch.long)
    ids = torch.cat((begin, source.ids), 1)
    mask = torch.cat((begin, source.mask.long()), 1)
    logits: Tensor = theirs(input_ids=ids, attention_mask=mask, token_type_ids=segments_of(ids, 2, 2)).logits
    return logits[:, 1:]


@torch.no_grad()
def test_outputs_and_logits_equal_those_of_transformers() -> None:
    ours, source = build(), pairs()
    theirs = bert_of(ours)
    begin = torch.ones(3, 1, dtype=torch.long)
    ids, mask = torch.cat((begin, source.ids), 1), torch.cat((begin, source.mask.long()), 1)
    outputs = theirs.bert(input_ids=ids, attention_mask=mask, token_type_ids=segments_of(ids, 2, 2)).last_hidden_state
    features = ours.read(source)
    torch.testing.assert_close(features[source.mask], outputs[:, 1:][source.mask], rtol=1e-5, atol=1e-5)
    logits = ours.head.logits(features)  # type: ignore[operator]
    expected = theirs_reads(theirs, source)
    torch.testing.assert_close(logits[source.mask], expected[source.mask], rtol=1e-5, atol=1e-5)


def test_the_loss_at_the_masks_and_its_gradients_equal_those_of_transformers() -> None:
    ours, source = build(), pairs()
    theirs = bert_of(ours)
    chosen = torch.zeros_like(source.mask)
    chosen[0, 1] = chosen[1, 3] = chosen[2, 0] = chosen[2, 4] = True
    truth = source.ids.roll(1, 0).clamp(min=3)
    loss, _ = ours.head.loss(ours.read(source), truth, chosen, Smoothing())  # type: ignore[operator]
    loss.backward()
    logits = theirs_reads(theirs, source)
    expected = torch.nn.functional.cross_entropy(logits[chosen], truth[chosen], reduction="sum")
    torch.testing.assert_close(loss, expected)
    expected.backward()
    found = to_bert({name: p.grad for name, p in ours.named_parameters() if p.grad is not None}, BERT)
    gradients = dict(theirs.named_parameters())
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, gradients[name].grad, rtol=1e-3, atol=1e-4, msg=name)


def test_the_published_sizes_are_those_of_bert_base() -> None:
    """Devlin et al. (2019), section 3: 110 million, as counted in the published weights without the pooler."""
    base = EncoderConfig(d_model=768, d_ff=3072, num_heads=12, num_layers=12)
    with torch.device("meta"):
        model = Encoder(base, Vocabularies(30_522, 30_522))
    assert sum(parameter.numel() for parameter in model.parameters()) == 108_891_648


@torch.no_grad()
def test_the_first_position_of_a_classifier_is_that_of_cls() -> None:
    """The pooled features are those that `BertModel` computes at [CLS]."""
    ours, source = build(), pairs()
    begin = torch.ones(len(source), 1, dtype=torch.long)
    ids, mask = torch.cat((begin, source.ids), 1), torch.cat((begin, source.mask.long()), 1)
    theirs = bert_of(ours).bert(input_ids=ids, attention_mask=mask, token_type_ids=segments_of(ids, 2, 2))
    head = PoolingHead(BERT.d_model, 3, "cls", 0.0)
    expected = head.output(theirs.last_hidden_state[:, 0])
    torch.testing.assert_close(outputs_of(ReaderWithHead(ours.reader, head), source), expected, rtol=1e-4, atol=1e-5)


def test_segments_are_counted_by_ends() -> None:
    ids = torch.tensor([[5, 2, 6, 7, 2, 8, 2, 0]])
    assert segments_of(ids, 2, 2).tolist() == [[0, 0, 1, 1, 1, 1, 1, 1]]
    assert segments_of(ids, 2, 9).tolist() == [[0, 0, 1, 1, 1, 2, 2, 3]]


def test_a_text_longer_than_the_learned_positions_is_refused() -> None:
    reader = model_of("encoder")
    with pytest.raises(DataError, match=r"a text of 41 tokens is longer than the 40 positions .*model\.max_len"):
        reader.read(random_source([40]))
    model_of("encoder, rotary").read(random_source([40]))


def test_rotary_positions_equal_those_of_transformers() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    x, positions = torch.randn(2, 3, 5, 8), torch.arange(4, 9)
    rates = 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    angles = (positions[:, None] * rates).repeat(1, 2)[None]
    expected, _ = apply_rotary_pos_emb(x, x, angles.cos(), angles.sin())
    torch.testing.assert_close(rotated(x, positions), expected)


@torch.no_grad()
def test_rotary_scores_depend_on_distances_alone() -> None:
    torch.manual_seed(1)
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def score(at: int, to: int) -> float:
        return float((rotated(q, torch.tensor([at])) * rotated(k, torch.tensor([to]))).sum())

    assert math.isclose(score(3, 1), score(10, 8), rel_tol=1e-4)
    assert not math.isclose(score(3, 1), score(3, 2), rel_tol=1e-2)
    attention = RotaryAttention(8, 2)
    x = torch.randn(1, 4, 8)
    assert not torch.allclose(
        attention(x, attention.project(x))[:, 1], attention(x.flip(1), attention.project(x.flip(1)))[:, 2]
    )
