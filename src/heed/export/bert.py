"""Masked language models to BERT folders of Hugging Face `transformers`, and back.

A folder has `config.json`, `model.safetensors` and the files of a tokenizer (`heed.export.bert_tokenizer`). Keys and
values are one matrix in heed and two there. An exported model is imported bit for bit; the vectors of a BERT that was
trained elsewhere are put into the order of heed's ids. The package `transformers` is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import save_file
from torch import Tensor

from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.core.run_files import WEIGHTS
from heed.core.weight_file import require_shapes
from heed.export.bert_tokenizer import is_portable, read_tokenizer, write_tokenizer
from heed.export.hugging_face import CONFIG, HEED, read_json, read_tensors, require_names, require_supported, write_json
from heed.export.imported_run import write_run
from heed.models.encoder import EncoderConfig
from heed.nn.contract import Vocabularies
from heed.nn.feed_forward import ACTIVATIONS
from heed.nn.masked_head import MaskedHeadConfig
from heed.nn.weight_file import shapes_of
from heed.recipe import recipe_type, task_of
from heed.run import Run
from heed.tasks import task_type
from heed.text.tokenizers import TOKENIZERS, TokenizerConfig
from heed.training.config import TrainingConfig

AS_IT_IS = {"normaliser": {"form": "none", "strip_control": False}}
"""How a BERT that was trained elsewhere reads text: its tokenizer cleans it."""

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


_NEXT_SENTENCE = {"head.next_sentence.pool": "bert.pooler.dense", "head.next_sentence.output": "cls.seq_relationship"}


def _names(num_layers: int, next_sentence: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each weight: its name in heed, and the names in BERT of its parts."""
    yield from ((name, (theirs,)) for name, theirs in _OUTER.items())
    if next_sentence:
        for name, theirs in _NEXT_SENTENCE.items():
            yield from ((f"{name}.{kind}", (f"{theirs}.{kind}",)) for kind in ("weight", "bias"))
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
        for name, bert_names in _names(config.num_layers, _predicts_next(weights))
        for bert_name, part in zip(bert_names, weights[name].chunk(len(bert_names)), strict=True)
    }


def _predicts_next(weights: Weights) -> bool:
    return any(name.startswith("head.next_sentence.") for name in weights)


def from_bert(weights: Weights, num_layers: int, next_sentence: bool = False) -> dict[str, Tensor]:
    """The weights under heed's names, in float32."""
    return {
        name: torch.cat([weights[bert_name] for bert_name in bert_names]).float().contiguous()
        for name, bert_names in _names(num_layers, next_sentence)
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
    reading = run.recipe.data.model_dump(include={"max_tokens", "normaliser", "next_sentence"})
    document = {**bert_config(config, head, run.vocabularies), BEGIN: config.begin, HEED: reading}
    if reading["next_sentence"]:
        document["architectures"] = ["BertForPreTraining"]
    weights = to_bert(run.weights(), config)
    portable = is_portable(run.recipe.tokenizer.kind)
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        save_file(weights, new / WEIGHTS, {"format": "pt"})
        write_json(new / CONFIG, document)
        if portable:
            write_tokenizer(run, config, new)
    return portable


# --- import -------------------------------------------------------------------------------------------------


def import_bert(folder: Path, out: Path) -> int:
    """Make a run from a BERT folder, to predict masked words, score or be trained further; returns its size.

    Raises MissingInputError, and DataError if it is not a BERT that heed can compute exactly.
    """
    document = read_json(folder / CONFIG)
    config, head = _read_config(document, folder / CONFIG)
    tokenizer, order = read_tokenizer(folder)
    size = len(tokenizer.vocabulary)
    if document.get("vocab_size") != size:
        raise DataError(f"{folder}: the model has {document.get('vocab_size')} pieces, but its tokenizer has {size:,}.")
    reading = document.get(HEED, AS_IT_IS)
    weights = _read_weights(folder / WEIGHTS, config.num_layers, bool(reading.get("next_sentence")))
    weights = _in_order(weights, order)
    kind = next(kind for kind, tokenizers in TOKENIZERS.items() if tokenizers is type(tokenizer))
    task = task_type(MASKED)
    try:
        data = task.Data.model_validate({"max_tokens": config.max_len - 2, **reading})
    except ValidationError as error:
        raise DataError(f"{folder / CONFIG}: the value of {HEED!r} is invalid: {error.errors()[0]['msg']}.") from error
    recipe = recipe_type(MASKED)(
        task=MASKED,
        data=data,
        tokenizer=TokenizerConfig.model_validate({"kind": kind, "vocab_size": size, "uncased": tokenizer.uncased}),
        model=config,
        head=head,
        training=TrainingConfig(stop_metric="masked_perplexity", label_smoothing=0.0),
    )  # type: ignore[call-arg]
    with torch.device("meta"):
        blank = task.new_model(recipe, Vocabularies(size, size))
    require_shapes(shapes_of(weights), shapes_of(dict(blank.named_parameters())), folder / WEIGHTS)
    write_run(out, recipe, {"src": tokenizer}, weights)
    return sum(weight.numel() for weight in weights.values())


def _read_config(document: Mapping[str, Any], path: Path) -> tuple[EncoderConfig, MaskedHeadConfig]:
    supported = {
        "model_type": ("bert",), "position_embedding_type": ("absolute",), "tie_word_embeddings": (True,),
        "is_decoder": (False,), "add_cross_attention": (False,), "hidden_act": tuple(ACTIVATIONS),
    }  # fmt: skip
    require_supported(document, supported, path)
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
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise DataError(f"{path} does not describe a BERT: {error}.") from error


def _read_weights(path: Path, num_layers: int, next_sentence: bool) -> dict[str, Tensor]:
    path = path.resolve()  # downloaded models are often links
    weights = {_renamed(name): weight for name, weight in read_tensors(path).items()}
    needed = (bert_name for _, bert_names in _names(num_layers, next_sentence) for bert_name in bert_names)
    require_names(weights, needed, path)
    return from_bert(weights, num_layers, next_sentence)


def _renamed(name: str) -> str:
    """The name of a weight; the first published models call those of layer normalisation gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _in_order(weights: Weights, order: Sequence[int]) -> dict[str, Tensor]:
    """The weights with one row for each of heed's ids."""
    rows = torch.tensor(order)
    of_pieces = ("reader.embedding.weight", "head.output.bias")
    return {**weights, **{name: weights[name][rows] for name in of_pieces if len(weights[name]) == len(rows)}}
