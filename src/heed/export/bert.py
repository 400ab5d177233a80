"""Masked language models to BERT folders of Hugging Face `transformers`, and back.

A folder has `config.json`, `model.safetensors` and `tokenizer.json`. Keys and values are one matrix in heed and two
there. A run that heed trained is exported with its tokenizer; a WordPiece tokenizer of BERT becomes one of heed's own
kinds, `wordpiece`, whose special pieces are moved to the places where heed has them. The package `transformers` is not
needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heed.core.errors import UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.models.encoder import EncoderConfig
from heed.nn.contract import Vocabularies
from heed.nn.masked_head import MaskedHeadConfig
from heed.run import WEIGHTS, Run
from heed.text.tokenizers import MAX_BYTES
from heed.text.vocabulary import SPECIAL_PIECES

CONFIG, TOKENIZER = "config.json", "tokenizer.json"

Weights = Mapping[str, Tensor]

_BLOCK = {
    "attention.query": "attention.self.query", "attention.output": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm", "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense", "feed_forward_residual.norm": "output.LayerNorm",
}  # fmt: skip
"""Parts of a block: name in heed, name in BERT. Keys and values are `attention.key_value` in heed."""
_OUTER = {
    "reader.embedding.weight": "bert.embeddings.word_embeddings.weight",
    "reader.positions": "bert.embeddings.position_embeddings.weight",
    "reader.segments": "bert.embeddings.token_type_embeddings.weight",
    "reader.embedding_norm.weight": "bert.embeddings.LayerNorm.weight",
    "reader.embedding_norm.bias": "bert.embeddings.LayerNorm.bias",
    "head.transform.weight": "cls.predictions.transform.dense.weight",
    "head.transform.bias": "cls.predictions.transform.dense.bias",
    "head.norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "head.norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "head.output.bias": "cls.predictions.bias",
}


def _names(num_layers: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each weight: its name in heed, and the names in BERT of its parts."""
    yield from ((name, (theirs,)) for name, theirs in _OUTER.items())
    for number in range(num_layers):
        ours, theirs = f"reader.blocks.{number}.", f"bert.encoder.layer.{number}."
        for kind in ("weight", "bias"):
            for name, bert_name in _BLOCK.items():
                yield f"{ours}{name}.{kind}", (f"{theirs}{bert_name}.{kind}",)
            both = tuple(f"{theirs}attention.self.{part}.{kind}" for part in ("key", "value"))
            yield f"{ours}attention.key_value.{kind}", both


def to_bert(weights: Weights, config: EncoderConfig) -> dict[str, Tensor]:
    """The weights under the names of `transformers`; the output weight is the embedding and is not repeated."""
    return {
        bert_name: part.contiguous().clone()
        for name, bert_names in _names(config.num_layers)
        for bert_name, part in zip(bert_names, weights[name].chunk(len(bert_names)), strict=True)
    }


def from_bert(weights: Weights, num_layers: int) -> dict[str, Tensor]:
    """The weights under heed's names, in float32."""
    return {
        name: torch.cat([weights[bert_name] for bert_name in bert_names]).float().contiguous()
        for name, bert_names in _names(num_layers)
    }


def bert_config(config: EncoderConfig, head: MaskedHeadConfig, vocabularies: Vocabularies) -> dict[str, Any]:
    """The `config.json` of a model. Raises UsageError for one that is not a BERT."""
    if differences := _differences(config, head):
        raise UsageError(f"the model is not a BERT: {'; '.join(differences)}.")
    return {
        "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": vocabularies.src_size,
        "hidden_size": config.d_model, "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads, "intermediate_size": config.d_ff, "hidden_act": config.activation,
        "hidden_dropout_prob": config.dropout, "attention_probs_dropout_prob": config.attention_dropout,
        "max_position_embeddings": config.max_len, "type_vocab_size": config.num_segments,
        "layer_norm_eps": config.norm_epsilon, "position_embedding_type": "absolute", "tie_word_embeddings": True,
        "torch_dtype": "float32", "pad_token_id": vocabularies.pad_id, "bos_token_id": vocabularies.bos_id,
        "eos_token_id": vocabularies.eos_id,
    }  # fmt: skip


def _differences(config: EncoderConfig, head: MaskedHeadConfig) -> list[str]:
    """What BERT does not have, as settings."""
    needed = {
        "norm": "post", "positions": "learned", "embedding_norm": True, "attention": "multi_head",
        "scale_embeddings": False,
    }  # fmt: skip
    values = config.model_dump()
    differences = [
        f"model.{key} = {values[key]!r}, not {value!r}" for key, value in needed.items() if values[key] != value
    ]
    if not config.num_segments:
        differences.append("model.num_segments = 0, not at least 1")
    if (head.activation, head.norm_epsilon) != (config.activation, config.norm_epsilon):
        differences.append("the head has another activation or norm_epsilon than the encoder")
    return differences


def export_bert(run: Run, folder: Path) -> bool:
    """Write a masked language model as a BERT folder; returns whether its tokenizer is included.

    Raises UsageError for a model that is not a BERT, and StorageError.
    """
    config, head = run.recipe.model, getattr(run.recipe, "head", None)
    if not isinstance(config, EncoderConfig) or not isinstance(head, MaskedHeadConfig):
        raise UsageError(f"{run.folder}: only masked language models of kind encoder can be exported as BERT.")
    document = bert_config(config, head, run.vocabularies)
    weights = to_bert(run.weights(), config)
    portable = run.recipe.tokenizer.kind in ("bpe", "unigram")
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        save_file(weights, new / WEIGHTS, {"format": "pt"})
        _write_json(new / CONFIG, document)
        if portable:
            _write_tokenizer(run, config, new)
    return portable


def _write_tokenizer(run: Run, config: EncoderConfig, folder: Path) -> None:
    """The tokenizer, which adds the begin and the ends of texts as the model reads them."""
    tokenizer = json.loads(run.files.read(TOKENIZER, MAX_BYTES))
    begin, end = SPECIAL_PIECES[1:3]
    first = [_special(begin, 0)] * config.begin
    one = [*first, _text("A", 0), _special(end, 0)]
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": one, "pair": [*one, _text("B", 1), _special(end, 1)],
        "special_tokens": {
            piece: {"id": piece, "ids": [id], "tokens": [piece]} for id, piece in ((1, begin), (2, end))
        },
    }  # fmt: skip
    _write_json(folder / TOKENIZER, tokenizer)
    special = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token"), SPECIAL_PIECES, strict=True))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", **special, "mask_token": "<mask>"}
    _write_json(folder / "tokenizer_config.json", names)


def _special(piece: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": piece, "type_id": segment}}


def _text(which: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": which, "type_id": segment}}


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
