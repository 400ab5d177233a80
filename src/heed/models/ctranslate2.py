"""CTranslate2 specifications of Transformers, with and without an encoder: the same weights in that program's layout.

Embeddings are stored scaled, and the table of positions is heed's own, so every layout of positions is exact.
Concatenated positions become a sum: vectors and table are padded with zeros to d_model features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import torch
from ctranslate2.specs import common_spec, transformer_spec
from numpy.typing import NDArray
from torch import Tensor, nn

from heed.nn.attention import MultiHeadAttention
from heed.nn.embeddings import TokenEmbedding
from heed.text.vocabulary import BOS_ID, EOS_ID

Array = NDArray[np.float32]

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}
"""CTranslate2's activations, by the names of recipes."""


def transformer_specification(model: Any, num_positions: int) -> Any:
    """The specification of a `heed.models.transformer.Transformer`, for texts of up to `num_positions` tokens."""
    config = model.config
    spec = transformer_spec.TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers), config.num_heads, pre_norm=config.norm == "pre",
        activation=ACTIVATIONS[config.activation],
    )  # fmt: skip
    _set_input(spec.encoder, spec.encoder.embeddings[0], model.encoder.embedding, num_positions)
    _set_input(spec.decoder, spec.decoder.embeddings, model.embedding, num_positions)
    if config.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder.norm)
        _set_norm(spec.decoder.layer_norm, model.norm)
    for layer, block in zip(spec.encoder.layer, _blocks(model.encoder), strict=True):
        _set_self_attention(layer.self_attention, block.attention, block.attention_residual.norm)
        _set_feed_forward(layer.ffn, block)
    for layer, block in zip(spec.decoder.layer, _blocks(model), strict=True):
        _set_self_attention(layer.self_attention, block.self_attention, block.self_residual.norm)
        _set_cross_attention(layer.attention, block.cross_attention, block.cross_residual.norm)
        _set_feed_forward(layer.ffn, block)
    _set_output(spec, model)
    return spec


def gpt_specification(model: Any) -> Any:
    """The specification of a `heed.models.gpt.Gpt`. An end of sentence is read as the begin of the next one."""
    config = model.config
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config.num_layers, config.num_heads, pre_norm=True, activation=common_spec.Activation.GELUTanh
    )
    vectors = _array(model.embedding).copy()
    vectors[EOS_ID] = vectors[BOS_ID]
    spec.decoder.embeddings.weight, spec.decoder.scale_embeddings = vectors, False
    spec.decoder.position_encodings.encodings = _array(model.positions)
    _set_norm(spec.decoder.layer_norm, model.norm)
    for layer, block in zip(spec.decoder.layer, _blocks(model), strict=True):
        _set_linear(layer.self_attention.linear[0], block.attention.query_key_value)
        _set_linear(layer.self_attention.linear[1], block.attention.output)
        _set_norm(layer.self_attention.layer_norm, block.attention_norm)
        _set_linear(layer.ffn.linear_0, block.expand)
        _set_linear(layer.ffn.linear_1, block.contract)
        _set_norm(layer.ffn.layer_norm, block.feed_forward_norm)
    _set_output(spec, model)
    return spec


def _blocks(module: Any) -> Iterable[Any]:
    return cast(Iterable[Any], module.blocks)


def _set_input(side: Any, embeddings: Any, embedding: TokenEmbedding, num_positions: int) -> None:
    vectors = _array(embedding.weight) * np.float32(embedding.scale)
    if embedding.kind == "none":
        table = np.zeros((num_positions, vectors.shape[1]), np.float32)
    else:
        table = _array(embedding.table(num_positions))
    if embedding.kind == "concatenated":
        size = vectors.shape[1]
        vectors = np.pad(vectors, ((0, 0), (0, table.shape[1])))
        table = np.pad(table, ((0, 0), (size, 0)))
    embeddings.weight, side.position_encodings.encodings = vectors, table
    side.scale_embeddings = False


def _set_self_attention(spec: Any, attention: MultiHeadAttention, norm: nn.LayerNorm) -> None:
    """Queries, keys and values are one matrix in CTranslate2."""
    query, key_value = attention.query, attention.key_value
    spec.linear[0].weight = _array(torch.cat((query.weight, key_value.weight)))
    spec.linear[0].bias = _array(torch.cat((query.bias, key_value.bias)))
    _set_linear(spec.linear[1], attention.output)
    _set_norm(spec.layer_norm, norm)


def _set_cross_attention(spec: Any, attention: MultiHeadAttention, norm: nn.LayerNorm) -> None:
    for linear, module in zip(spec.linear, (attention.query, attention.key_value, attention.output), strict=True):
        _set_linear(linear, module)
    _set_norm(spec.layer_norm, norm)


def _set_feed_forward(spec: Any, block: Any) -> None:
    _set_linear(spec.linear_0, block.feed_forward.expand)
    _set_linear(spec.linear_1, block.feed_forward.contract)
    _set_norm(spec.layer_norm, block.feed_forward_residual.norm)


def _set_output(spec: Any, model: Any) -> None:
    spec.decoder.projection.weight = _array(model.head.weight)
    if model.head.bias is not None:
        spec.decoder.projection.bias = _array(model.head.bias)


def _set_linear(spec: Any, linear: Any) -> None:
    spec.weight, spec.bias = _array(linear.weight), _array(linear.bias)


def _set_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Array:
    array: Array = np.ascontiguousarray(tensor.detach().float().cpu().numpy())
    return array
