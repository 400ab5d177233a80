"""Masked language models to BERT folders of Hugging Face `transformers`, and back.

A folder has `config.json`, `model.safetensors` and `tokenizer.json`. Keys and values are one matrix in heed and two
there. An exported model is imported bit for bit. Folders with a WordPiece tokenizer, which heed does not have, are
refused. The package `transformers` is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heed.core.config import to_toml
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.core.json_text import parse_json
from heed.core.run_files import RunFiles
from heed.export.gpt2 import HEED, read_json
from heed.models.encoder import EncoderConfig
from heed.models.transformer import ACTIVATIONS
from heed.nn.contract import Vocabularies
from heed.nn.masked_head import MaskedHeadConfig
from heed.nn.weight_file import read_header, require_shapes, save_weights, shapes_of
from heed.recipe import recipe_type, task_of
from heed.run import RECIPE, WEIGHTS, Run
from heed.tasks import task_type
from heed.tasks.prepare import vocabulary_digests
from heed.text.tokenizers import MAX_BYTES, TOKENIZERS, Tokenizer, TokenizerConfig, parse_tokenizer, save_in_run
from heed.text.vocabulary import SPECIAL_PIECES
from heed.training.config import TrainingConfig

CONFIG, TOKENIZER = "config.json", "tokenizer.json"

MASKED = task_of("encoder")
"""The task of a masked language model, the first one for which encoders can be trained."""
BEGIN = "heed_begin"
"""Key of `config.json`: whether a text begins with a token of its own, as all other BERT models have."""

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
    reading = run.recipe.data.model_dump(include={"max_tokens", "normaliser"})
    document = {**bert_config(config, head, run.vocabularies), BEGIN: config.begin, HEED: reading}
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
    tokenizer = parse_json(run.files.read(TOKENIZER, MAX_BYTES))
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
    names: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", **special, "mask_token": "<mask>"}
    names["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    _write_json(folder / "tokenizer_config.json", names)


def _special(piece: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": piece, "type_id": segment}}


def _text(which: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": which, "type_id": segment}}


# --- import -------------------------------------------------------------------------------------------------


def import_bert(folder: Path, out: Path) -> int:
    """Make a run from a BERT folder, to predict masked words, score or be trained further; returns its size.

    Raises MissingInputError, and DataError if it is not a BERT that heed can compute exactly.
    """
    document = read_json(folder / CONFIG)
    config, head = _read_config(document, folder / CONFIG)
    tokenizer = _read_tokenizer(folder / TOKENIZER)
    size = len(tokenizer.vocabulary)
    if document.get("vocab_size") != size:
        raise DataError(f"{folder}: the model has {document.get('vocab_size')} pieces, but its tokenizer has {size:,}.")
    weights = _read_weights(folder / WEIGHTS, config.num_layers)
    kind = next(kind for kind, tokenizers in TOKENIZERS.items() if tokenizers is type(tokenizer))
    task = task_type(MASKED)
    recipe = recipe_type(MASKED)(
        task=MASKED,
        data=task.Data.model_validate({"max_tokens": config.max_len - 2, **document.get(HEED, {})}),
        tokenizer=TokenizerConfig.model_validate({"kind": kind, "vocab_size": size}),
        model=config,
        head=head,
        training=TrainingConfig(stop_metric="masked_perplexity", label_smoothing=0.0),
    )  # type: ignore[call-arg]
    with torch.device("meta"):
        blank = task.new_model(recipe, Vocabularies(size, size))
    require_shapes(shapes_of(weights), shapes_of(dict(blank.named_parameters())), folder / WEIGHTS)
    with storage_errors("write the run", path=out), atomic_folder(out) as new:
        files = RunFiles(new)
        with files.write(RECIPE, "w") as file:
            file.write(to_toml(recipe))
        save_in_run(tokenizer, files, TOKENIZER)
        save_weights(new / WEIGHTS, weights, vocabulary_digests({"src": tokenizer}))
    return sum(weight.numel() for weight in weights.values())


def _read_config(document: Mapping[str, Any], path: Path) -> tuple[EncoderConfig, MaskedHeadConfig]:
    supported = {
        "model_type": ("bert",), "position_embedding_type": ("absolute",), "tie_word_embeddings": (True,),
        "is_decoder": (False,), "add_cross_attention": (False,), "hidden_act": tuple(ACTIVATIONS),
    }  # fmt: skip
    for key, allowed in supported.items():
        if document.get(key, allowed[0]) not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise DataError(f"{path}: {key} is {document[key]!r}, but heed supports only {expected}.")
    try:
        epsilon, activation = float(document.get("layer_norm_eps", 1e-12)), document.get("hidden_act", "gelu")
        config = EncoderConfig(
            d_model=int(document["hidden_size"]), d_ff=int(document["intermediate_size"]),
            num_heads=int(document["num_attention_heads"]), num_layers=int(document["num_hidden_layers"]),
            max_len=int(document["max_position_embeddings"]), num_segments=int(document["type_vocab_size"]),
            begin=bool(document.get(BEGIN, True)), norm_epsilon=epsilon, activation=activation,
            dropout=float(document.get("hidden_dropout_prob", 0.1)),
            attention_dropout=float(document.get("attention_probs_dropout_prob", 0.1)),
        )  # fmt: skip
        return config, MaskedHeadConfig(activation=activation, norm_epsilon=epsilon)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} does not describe a BERT: {error}.") from error


def _read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer without the template that adds begin and end, which heed's batches add."""
    document = read_json(path)
    if document.get("model", {}).get("type") == "WordPiece":
        raise DataError(
            f"{path} is a WordPiece tokenizer, and heed has only {', '.join(TOKENIZERS)}: export a model that was "
            "trained by heed."
        )
    try:
        tokenizer = parse_tokenizer(json.dumps({**document, "post_processor": None}))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if "mask" not in tokenizer.vocabulary.tag_ids:
        raise DataError(f"{path} has no piece <mask>, which a masked language model needs.")
    return tokenizer


def _read_weights(path: Path, num_layers: int) -> dict[str, Tensor]:
    path = path.resolve()  # downloaded models are often links
    present = read_header(path).tensors.keys()
    needed = [bert_name for _, bert_names in _names(num_layers) for bert_name in bert_names]
    if missing := [name for name in needed if name not in present]:
        raise DataError(f"{path} has no weight {missing[0]!r}, so it is not the model that {CONFIG} describes.")
    try:
        return from_bert(load_file(path), num_layers)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
