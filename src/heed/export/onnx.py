"""Transformers for translation in ONNX: an encoder, and a step of the decoder with its cache.

The graphs are written node by node, from the weights, so that every axis is dynamic and nothing depends on how PyTorch
traces a model. The encoder also projects the keys and values of each decoder layer, once for each source.

- `encoder.onnx`: from `ids` and `mask` [B, S] of sources, the decoder's `keys` and `values` [L, B, H, S, D/H].
- `decoder.onnx`: from those, `mask`, the last `ids` [B], and `past_keys` and `past_values` [L, B, H, T, D/H], the
  `log_probs` [B, V] of the next token, and `new_keys` and `new_values` [L, B, H, T + 1, D/H].
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heed.core.errors import UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.decoding.detokenizer import Detokenizer
from heed.export.ctranslate2 import num_positions
from heed.export.hugging_face import write_json
from heed.export.marian_tokenizer import write_tokenizers
from heed.models.transformer import LAYER_NORM_EPSILON, TransformerConfig
from heed.run import Run
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

ENCODER, DECODER, DESCRIPTION = "encoder.onnx", "decoder.onnx", "config.json"
OPSET, IR_VERSION = 20, 10
HIDDEN = -1e30
"""Added to the scores of padding."""


class Graph:
    """A graph that is being written; values are named by their number."""

    def __init__(self, num_heads: int) -> None:
        self.onnx: Any = import_module("onnx")
        self.num_heads = num_heads
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The value of an operation."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, name: str = "", kind: Any = np.float32) -> str:
        """The name of a constant; a named one is stored once."""
        name = name or f"c{len(self._weights)}"
        array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
        self._weights.setdefault(name, self.onnx.numpy_helper.from_array(np.asarray(array, kind), name))
        return name

    def numbers(self, *values: int) -> str:
        """A vector of integers."""
        return self.constant(np.array(values), kind=np.int64)

    def linear(self, x: str, module: Any, name: str) -> str:
        """x Wᵀ + b."""
        product = self.op("MatMul", x, self.constant(module.weight.T, f"{name}.weight"))
        return product if module.bias is None else self.op("Add", product, self.constant(module.bias, f"{name}.bias"))

    def norm(self, x: str, module: Any, name: str) -> str:
        """Layer normalisation."""
        weight, bias = self.constant(module.weight, f"{name}.weight"), self.constant(module.bias, f"{name}.bias")
        return self.op("LayerNormalization", x, weight, bias, epsilon=LAYER_NORM_EPSILON)

    def heads(self, x: str) -> str:
        """[B, T, D] to [B, H, T, D/H]."""
        split = self.op("Reshape", x, self.numbers(0, 0, self.num_heads, -1))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def keys_values(self, x: str, attention: Any, name: str) -> tuple[str, str]:
        """Keys and values of all heads."""
        both = self.linear(x, attention.key_value, f"{name}.key_value")
        size = attention.key_value.weight.shape[0] // 2
        parts = [self.op("Slice", both, *map(self.numbers, (start, start + size, 2))) for start in (0, size)]
        return self.heads(parts[0]), self.heads(parts[1])

    def attend(self, x: str, keys: str, values: str, hidden: str, attention: Any, name: str) -> str:
        """Attention of vectors to keys and values; `hidden` is added to the scores, if there is any."""
        query = self.heads(self.linear(x, attention.query, f"{name}.query"))
        size = attention.query.weight.shape[0] // self.num_heads
        query = self.op("Mul", query, self.constant(np.array(size**-0.5)))
        scores = self.op("MatMul", query, self.op("Transpose", keys, perm=[0, 1, 3, 2]))
        weights = self.op("Softmax", self.op("Add", scores, hidden) if hidden else scores, axis=-1)
        merged = self.op("Transpose", self.op("MatMul", weights, values), perm=[0, 2, 1, 3])
        contexts = self.op("Reshape", merged, self.numbers(0, 0, -1))
        return self.linear(contexts, attention.output, f"{name}.output")

    def feed_forward(self, x: str, module: Any, activation: str, name: str) -> str:
        """The feed-forward layer."""
        inner = self.linear(x, module.expand, f"{name}.expand")
        if activation == "silu":
            inner = self.op("Mul", inner, self.op("Sigmoid", inner))
        else:
            inner = self.op({"relu": "Relu", "gelu": "Gelu"}[activation], inner)
        return self.linear(inner, module.contract, f"{name}.contract")

    def embed(self, ids: str, embedding: Any, table: str, name: str) -> str:
        """Embeddings of ids with their positions, whose encodings are `table`."""
        vectors = self.op("Gather", self.constant(embedding.weight, f"{name}.weight"), ids)
        vectors = self.op("Mul", vectors, self.constant(np.array(embedding.scale)))
        if embedding.kind == "concatenated":
            shape = self.op("Concat", self.op("Shape", ids), self.numbers(embedding.position_size), axis=0)
            return self.op("Concat", vectors, self.op("Expand", table, shape), axis=-1)
        return vectors if embedding.kind == "none" else self.op("Add", vectors, table)

    def hidden(self, mask: str) -> str:
        """What is added to scores, from the mask [B, S] of real tokens."""
        wide = self.op("Unsqueeze", mask, self.numbers(1, 2))
        return self.op("Where", wide, self.constant(np.array(0.0)), self.constant(np.array(HIDDEN)))

    def write(self, path: Path, inputs: dict[str, list[Any]], outputs: dict[str, tuple[str, list[Any]]]) -> None:
        """Write the graph with the shapes of its inputs, and the values and shapes of its outputs."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        described = helper.make_tensor_value_info
        kinds = {"ids": types.INT64, "mask": types.BOOL}
        for name, (value, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self._nodes, path.stem,
            [described(name, kinds.get(name, types.FLOAT), shape) for name, shape in inputs.items()],
            [described(name, types.FLOAT, shape) for name, (_, shape) in outputs.items()],
            list(self._weights.values()),
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        self.onnx.checker.check_model(model)
        self.onnx.save(model, str(path))


def _residual(graph: Graph, x: str, module: Any, sublayer: Any, name: str) -> str:
    if module.pre_norm:
        return graph.op("Add", x, sublayer(graph.norm(x, module.norm, name)))
    return graph.norm(graph.op("Add", x, sublayer(x)), module.norm, name)


def _write_encoder(model: Any, config: TransformerConfig, path: Path, most: int) -> None:
    graph = Graph(config.num_heads)
    hidden = graph.hidden("mask")
    first = ""
    if config.positions != "none":
        length = graph.op("Slice", graph.op("Shape", "ids"), graph.numbers(1), graph.numbers(2))
        table = graph.constant(model.encoder.embedding.table(most), "positions")
        first = graph.op("Slice", table, graph.numbers(0), length, graph.numbers(0))
    x = graph.embed("ids", model.encoder.embedding, first, "embedding")
    for number, block in enumerate(model.encoder.blocks):
        name = f"encoder.{number}"

        def attend(x: str, block: Any = block, name: str = f"{name}.self") -> str:
            keys, values = graph.keys_values(x, block.attention, name)
            return graph.attend(x, keys, values, hidden, block.attention, name)

        def feed(x: str, block: Any = block, name: str = f"{name}.feed") -> str:
            return graph.feed_forward(x, block.feed_forward, config.activation, name)

        x = _residual(graph, x, block.attention_residual, attend, f"{name}.norm_1")
        x = _residual(graph, x, block.feed_forward_residual, feed, f"{name}.norm_2")
    if config.norm == "pre":
        x = graph.norm(x, model.encoder.norm, "encoder.norm")
    pairs = [
        graph.keys_values(x, block.cross_attention, f"decoder.{number}.cross")
        for number, block in enumerate(model.blocks)
    ]
    shape = [config.num_decoder_layers, "B", config.num_heads, "S", config.d_model // config.num_heads]
    outputs = {
        name: (_stacked(graph, [pair[index] for pair in pairs]), shape) for index, name in enumerate(("keys", "values"))
    }
    graph.write(path, {"ids": ["B", "S"], "mask": ["B", "S"]}, outputs)


def _stacked(graph: Graph, layers: list[str]) -> str:
    return graph.op("Concat", *(graph.op("Unsqueeze", layer, graph.numbers(0)) for layer in layers), axis=0)


def _write_decoder(model: Any, config: TransformerConfig, path: Path, most: int) -> None:
    graph = Graph(config.num_heads)
    hidden = graph.hidden("mask")

    def layer_of(name: str, number: int) -> str:
        return graph.op("Gather", name, graph.constant(np.array(number), kind=np.int64), axis=0)

    here = ""
    if config.positions != "none":
        position = graph.op("Slice", graph.op("Shape", "past_keys"), graph.numbers(3), graph.numbers(4))
        here = graph.op("Gather", graph.constant(model.embedding.table(most), "positions"), position)
    ids = graph.op("Unsqueeze", "ids", graph.numbers(1))
    x = graph.embed(ids, model.embedding, here, "embedding")
    caches: tuple[list[str], list[str]] = ([], [])
    for number, block in enumerate(model.blocks):
        name = f"decoder.{number}"

        def attend_self(x: str, number: int = number, block: Any = block, name: str = f"{name}.self") -> str:
            new = graph.keys_values(x, block.self_attention, name)
            for cache, past, part in zip(caches, ("past_keys", "past_values"), new, strict=True):
                cache.append(graph.op("Concat", layer_of(past, number), part, axis=2))
            return graph.attend(x, caches[0][-1], caches[1][-1], "", block.self_attention, name)

        def attend_source(x: str, number: int = number, block: Any = block, name: str = f"{name}.cross") -> str:
            keys, values = layer_of("keys", number), layer_of("values", number)
            return graph.attend(x, keys, values, hidden, block.cross_attention, name)

        def feed(x: str, block: Any = block, name: str = f"{name}.feed") -> str:
            return graph.feed_forward(x, block.feed_forward, config.activation, name)

        x = _residual(graph, x, block.self_residual, attend_self, f"{name}.norm_1")
        x = _residual(graph, x, block.cross_residual, attend_source, f"{name}.norm_2")
        x = _residual(graph, x, block.feed_forward_residual, feed, f"{name}.norm_3")
    if config.norm == "pre":
        x = graph.norm(x, model.norm, "decoder.norm")
    logits = graph.linear(graph.op("Squeeze", x, graph.numbers(1)), model.head, "output")
    size = config.d_model // config.num_heads
    shapes = {"keys": "S", "values": "S", "past_keys": "T", "past_values": "T"}
    layers = {name: [config.num_decoder_layers, "B", config.num_heads, axis, size] for name, axis in shapes.items()}
    grown = [config.num_decoder_layers, "B", config.num_heads, "T + 1", size]
    graph.write(path, {"ids": ["B"], "mask": ["B", "S"], **layers}, {
        "log_probs": (graph.op("LogSoftmax", logits, axis=-1), ["B", len(model.head.weight)]),
        "new_keys": (_stacked(graph, caches[0]), grown), "new_values": (_stacked(graph, caches[1]), grown),
    })  # fmt: skip


def export_onnx(run: Run, folder: Path) -> bool:
    """Write a translator as two ONNX graphs; returns whether its tokenizers are included.

    Raises UsageError for another model than a Transformer with multi-head attention, and StorageError.
    """
    config = run.recipe.model
    if not isinstance(config, TransformerConfig) or run.sides != ("src", "tgt"):
        raise UsageError(f"{run.folder}: the model is of kind {config.kind}; only kind transformer is written as ONNX.")
    for attention in (config.attention, config.encoder_block().attention):
        if attention != "multi_head":
            raise UsageError(f"heed does not write the attention {attention!r} as ONNX, only 'multi_head'.")
    if not config.decoder_attends:
        raise UsageError(f"heed does not write decoders with {config.decoder_mixing!r} as ONNX.")
    model, most = run.unpacked(torch.device("cpu")).model, num_positions(run)
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        _write_encoder(model, config, new / ENCODER, most)
        _write_decoder(model, config, new / DECODER, most)
        write_json(new / DESCRIPTION, {
            "pad_id": PAD_ID, "begin_id": BOS_ID, "end_id": EOS_ID, "num_layers": config.num_decoder_layers,
            "num_heads": config.num_heads, "head_size": config.d_model // config.num_heads, "max_tokens": most,
            "never": list(Detokenizer(run.tokenizers["tgt"]).never),
        })  # fmt: skip
        return write_tokenizers(run, new, most)
