"""The hierarchical attention network equals its equations, and a document source its sentences."""

from __future__ import annotations

import torch
from random_models import EOS, PAD, VOCABULARIES, model_of, random_documents, row_of
from torch import Tensor

from heed.models.hierarchical_attention import WORDS, HierarchicalAttention, HierarchicalAttentionConfig
from heed.nn.contract import Trace
from heed.nn.documents import documents_from_ids
from heed.nn.pooling import PoolingHead
from heed.nn.recurrent import Cell


def gru(cell: Cell, inputs: list[Tensor]) -> list[Tensor]:
    """Equations 1 to 4 step by step; the update gate is 1 - z of the cell's, whose reset has a bias of its own."""
    w_r, w_z, w_h = cell.input.weight.chunk(3)
    b_r, b_z, b_h = cell.input.bias.chunk(3)
    u_r, u_z, u_h = cell.recurrent.weight.chunk(3)
    c_r, c_z, c_h = cell.recurrent.bias.chunk(3)
    h = torch.zeros(cell.hidden_size)
    states = []
    for x in inputs:
        z = torch.sigmoid(-(w_z @ x + b_z + u_z @ h + c_z))
        r = torch.sigmoid(w_r @ x + b_r + u_r @ h + c_r)
        new = torch.tanh(w_h @ x + b_h + r * (u_h @ h + c_h))
        h = (1 - z) * h + z * new
        states.append(h)
    return states


def both(layer: torch.nn.Module, inputs: list[Tensor]) -> list[Tensor]:
    """The states of both directions at each input."""
    forward = gru(layer.left_to_right, inputs)
    backward = gru(layer.right_to_left, inputs[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]


def attended(hidden: torch.nn.Module, query: Tensor, states: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Equations 5 to 7, and 8 to 10: the weighted sum, and the weights."""
    scores = torch.stack([torch.tanh(hidden.weight @ h + hidden.bias) @ query for h in states])
    weights = scores.exp() / scores.exp().sum()
    return sum(a * h for a, h in zip(weights, states, strict=True)), weights


@torch.no_grad()
def test_it_equals_the_equations_word_by_word_and_sentence_by_sentence() -> None:
    torch.manual_seed(3)
    model = HierarchicalAttention(HierarchicalAttentionConfig(d_model=6, hidden_size=4), VOCABULARIES)
    head = PoolingHead(model.num_features, 3, "attention", 0.0)
    documents = [[[5, 6, 7], [8], [9, 10, 4, 5, 6]], [[11, 4]], [[4, 4, 4, 4], [5, 6]]]
    rows = [[token for sentence in document for token in (*sentence, EOS)] for document in documents]
    source, trace = documents_from_ids(rows, EOS, PAD), Trace()
    outputs = head(model.read(source, None, trace), source.mask, None, trace)
    [words], [sentences] = trace.weights[WORDS], trace.weights["pooling"]
    for row, document in enumerate(documents):
        vectors = []
        for number, sentence in enumerate(document):
            states = both(model.words, [model.embedding[token] for token in sentence])
            vector, weights = attended(model.hidden, model.query, states)
            vectors.append(vector)
            torch.testing.assert_close(words[row, 0, number, : len(sentence)], weights)
            assert not words[row, 0, number, len(sentence) :].any()
        vector, weights = attended(head.hidden, head.query, both(model.sentences, vectors))
        torch.testing.assert_close(sentences[row, 0, 0, : len(document)], weights)
        torch.testing.assert_close(outputs[row], head.output.weight @ vector + head.output.bias)


@torch.no_grad()
def test_longer_sentences_of_other_documents_change_nothing() -> None:
    model = model_of("hierarchical_attention")
    short = [5, 6, EOS, 7, EOS]
    alone = model.read(documents_from_ids([short], EOS, PAD))
    neighbours = [[*range(4, 12)] * 3, [4, EOS] * 9]
    together = model.read(documents_from_ids([neighbours[0], short, neighbours[1]], EOS, PAD))
    torch.testing.assert_close(together[1:2, :2], alone)


def test_every_weight_gets_a_gradient() -> None:
    model = model_of("hierarchical_attention")
    model.read(random_documents([3, 2])).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters())


def test_a_document_source_keeps_its_sentences() -> None:
    rows = [[5, EOS, EOS, 6, 7], [], [8, 9, 10, EOS, 4]]
    source = documents_from_ids(rows, EOS, PAD)
    keys = [((5,), (6, 7)), ((EOS,),), ((8, 9, 10), (4,))]
    assert [source.key(row) for row in range(3)] == keys
    assert source.mask.tolist() == [[True, True], [True, False], [True, True]]
    assert source.computed.sum() == 8
    middle = row_of(source, 1)
    assert (len(middle), middle.key(0), middle.mask.shape, middle.ids.shape) == (1, keys[1], (1, 1), (1, 1))
    twice = source.repeat(2).to(torch.device("cpu"))
    assert [twice.key(row) for row in range(6)] == keys * 2
    assert source.by_row(torch.arange(1.0, 6)).tolist() == [[1, 2], [3, 0], [4, 5]]
