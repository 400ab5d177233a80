"""Translators to `MarianMTModel` folders of Hugging Face `transformers`, and back; those of OPUS-MT are such folders.

A Marian is a post-norm Transformer whose positions are all sines, then all cosines. Interleaved positions are the same
numbers in another order: the features of the whole model are put into that order, which changes nothing that it
computes. Keys and values are one matrix in heed and two there. An exported model with "half_split" positions is
imported bit for bit. The package `transformers` is not needed.

Models of OPUS-MT begin a translation with their padding, whose vector is zero, and have no begin of sentence. heed's
begin of sentence gets that vector, and a bias that makes its own probability 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import save_file
from torch import Tensor

from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.core.run_files import WEIGHTS
from heed.core.weight_file import require_shapes
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.options import SearchOptions
from heed.export.bert import AS_IT_IS
from heed.export.gpt2 import IMPOSSIBLE
from heed.export.hugging_face import CONFIG, HEED, read_json, read_tensors, require_names, require_supported, write_json
from heed.export.imported_run import write_run
from heed.export.marian_tokenizer import MarianTokenizers, read_tokenizers, write_tokenizers
from heed.models.transformer import TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.embeddings import half_split
from heed.nn.weight_file import shapes_of
from heed.recipe import recipe_type, task_of
from heed.run import Run
from heed.tasks import task_type
from heed.text.tokenizers import TokenizerConfig
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
from heed.training.config import TrainingConfig

GENERATION = "generation_config.json"
MAX_LENGTH = 512
LEARNING_RATES = ((128, 4e-3), (256, 2e-3), (1 << 62, 2e-4))
"""Largest width and learning rate of imported models, of which a training that begins with one has a quarter: heed's
own rates for narrow models, the usual one of published models, which are wider ("Tuning an imported model")."""

_ATTENTION = {"query": ("q_proj",), "key_value": ("k_proj", "v_proj"), "output": ("out_proj",)}
_FEED_FORWARD = {"feed_forward.expand": ("fc1",), "feed_forward.contract": ("fc2",)}
_ENCODER_NORMS = {"attention_residual": "self_attn_layer_norm", "feed_forward_residual": "final_layer_norm"}
_DECODER_NORMS = {
    "self_residual": "self_attn_layer_norm", "cross_residual": "encoder_attn_layer_norm",
    "feed_forward_residual": "final_layer_norm",
}  # fmt: skip
"""Parts of blocks: name in heed, and the names in Marian of its parts."""
_SHARED = ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
_OUTPUT = "lm_head.weight"


def learning_rate(width: int) -> float:
    """The learning rate in the recipe of an imported model with this number of features."""
    return next(rate for widest, rate in LEARNING_RATES if width <= widest)


def _blocks(config: TransformerConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each weight of the blocks: its name in heed, and the names in Marian of its parts."""
    sides = (
        (config.num_encoder_layers, "encoder.blocks", "encoder", {"attention": "self_attn"}, _ENCODER_NORMS),
        (
            config.num_decoder_layers, "blocks", "decoder",
            {"self_attention": "self_attn", "cross_attention": "encoder_attn"}, _DECODER_NORMS,
        ),
    )  # fmt: skip
    for num_layers, ours, theirs, attentions, norms in sides:
        for number in range(num_layers):
            linear = {
                f"{attention}.{part}": tuple(f"{marian}.{name}" for name in names)
                for attention, marian in attentions.items()
                for part, names in _ATTENTION.items()
            }
            parts = {**linear, **_FEED_FORWARD, **{f"{norm}.norm": (name,) for norm, name in norms.items()}}
            for part, names in parts.items():
                for kind in ("weight", "bias"):
                    marian_names = tuple(f"model.{theirs}.layers.{number}.{name}.{kind}" for name in names)
                    yield f"{ours}.{number}.{part}.{kind}", marian_names


# --- export ------------------------------------------------------------------------------------------------


def to_marian(model: Any, config: TransformerConfig) -> dict[str, Tensor]:
    """The weights of a Transformer under the names of `transformers`; shared ones are not repeated."""
    weights = dict(model.named_parameters())
    tensors = {
        marian_name: part
        for name, marian_names in _blocks(config)
        for marian_name, part in zip(marian_names, _in_order(name, weights[name], config), strict=True)
    }
    embeddings = {
        _SHARED[0 if config.tie == "all" else 1]: model.encoder.embedding.weight,
        **({} if config.tie == "all" else {_SHARED[2]: model.embedding.weight}),
        **({_OUTPUT: model.head.weight} if config.tie == "none" else {}),
    }
    order = _order(config)
    tensors |= {name: weight[:, order] for name, weight in embeddings.items()}
    bias = model.head.bias
    tensors["final_logits_bias"] = torch.zeros(1, len(model.head.weight)) if bias is None else bias[None]
    return {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}


def _order(config: TransformerConfig) -> Tensor:
    """The place in heed of each feature in Marian."""
    places = torch.arange(config.d_model)
    return places if config.positions == "half_split" else torch.cat((places[::2], places[1::2]))


def _in_order(name: str, weight: Tensor, config: TransformerConfig) -> tuple[Tensor, ...]:
    """The parts of a weight, with the features that blocks read and write in Marian's order."""
    order = _order(config)
    writes = "norm" in name or any(part in name for part in (".output.", ".contract."))
    reads = weight.dim() == 2 and not writes
    if reads:
        weight = weight[:, order]
    elif writes:
        weight = weight[order]
    return weight.chunk(2) if "key_value" in name else (weight,)


def marian_config(config: TransformerConfig, vocabularies: Vocabularies) -> dict[str, Any]:
    """The `config.json` of a model. Raises UsageError for one that is not a Marian."""
    if differences := _differences(config):
        raise UsageError(f"the model is not a Marian: {'; '.join(differences)}. Train one with these settings.")
    return {
        "model_type": "marian", "architectures": ["MarianMTModel"], "is_encoder_decoder": True,
        "vocab_size": vocabularies.src_size, "decoder_vocab_size": vocabularies.tgt_size, "d_model": config.d_model,
        "encoder_layers": config.num_encoder_layers, "decoder_layers": config.num_decoder_layers,
        "encoder_attention_heads": config.num_heads, "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff,
        "activation_function": config.activation, "dropout": config.dropout,
        "attention_dropout": config.attention_dropout, "max_position_embeddings": MAX_LENGTH,
        "scale_embedding": True, "static_position_embeddings": True, "normalize_before": False,
        "share_encoder_decoder_embeddings": config.tie == "all", "tie_word_embeddings": config.tie != "none",
        "pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": EOS_ID, "torch_dtype": "float32",
    }  # fmt: skip


def _differences(config: TransformerConfig) -> list[str]:
    """What Marian does not have, as settings."""
    allowed = {
        "norm": ("post",), "attention": ("multi_head",), "encoder_attention": ("same", "multi_head"),
        "decoder_mixing": ("self_attention",), "positions": ("interleaved", "half_split"),
    }  # fmt: skip
    values = config.model_dump()
    return [
        f"model.{key} = {values[key]!r}, not {' or '.join(map(repr, choices))}"
        for key, choices in allowed.items()
        if values[key] not in choices
    ]


def generation_config(run: Run) -> dict[str, Any]:
    """The `generation_config.json`: heed's search, as far as `transformers` has it."""
    options = run.recipe.decoding
    never = Detokenizer(run.tokenizers["tgt"]).never
    return {
        "num_beams": options.beam_size, "early_stopping": options.beam_size > 1, "max_length": MAX_LENGTH,
        "length_penalty": options.length_penalty if options.length_norm == "mean" else 1.0,
        "bad_words_ids": [[id] for id in never], "pad_token_id": PAD_ID, "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID, "decoder_start_token_id": BOS_ID, "forced_eos_token_id": EOS_ID,
    }  # fmt: skip


def export_marian(run: Run, folder: Path) -> bool:
    """Write a translator as a Marian folder; returns whether its tokenizers are included.

    Raises UsageError for a model that is not a Marian, and StorageError.
    """
    config = run.recipe.model
    if not isinstance(config, TransformerConfig) or run.sides != ("src", "tgt"):
        raise UsageError(f"{run.folder}: the model is of kind {config.kind}; only kind transformer can be a Marian.")
    reading = run.recipe.data.model_dump(include={"normaliser", "src_lang", "tgt_lang"})
    document = {**marian_config(config, run.vocabularies), HEED: reading}
    weights = to_marian(run.unpacked(torch.device("cpu")).model, config)
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        save_file(weights, new / WEIGHTS, {"format": "pt"})
        write_json(new / CONFIG, document)
        write_json(new / GENERATION, generation_config(run))
        return write_tokenizers(run, new, MAX_LENGTH)


# --- import -------------------------------------------------------------------------------------------------


def import_marian(folder: Path, out: Path) -> int:
    """Make a run from a Marian folder, to translate, serve, inspect or train further; returns its size.

    Raises MissingInputError, and DataError if it is not a Marian that heed can compute exactly.
    """
    path = folder / CONFIG
    document = read_json(path)
    config = _read_config(document, path)
    tokenizers = read_tokenizers(folder, document)
    sizes = Vocabularies(*(len(tokenizer.vocabulary) for tokenizer in tokenizers.both))
    task = task_type(TRANSLATION)
    try:
        data = task.Data.model_validate({**document.get(HEED, AS_IT_IS), **tokenizers.languages})
    except ValidationError as error:
        raise DataError(f"{path}: the value of {HEED!r} is invalid: {error.errors()[0]['msg']}.") from error
    recipe = recipe_type(TRANSLATION)(
        task=TRANSLATION,
        data=data,
        tokenizer=TokenizerConfig.model_validate(
            {"kind": tokenizers.kind, "vocab_size": sizes.tgt_size, "joint": tokenizers.joint}
        ),
        model=config,
        training=TrainingConfig(lr=learning_rate(config.d_model)),
        decoding=_search(folder, document),
    )
    weights = _read_weights(folder / WEIGHTS, config, tokenizers)
    with torch.device("meta"):
        blank = task.new_model(recipe, sizes)
    require_shapes(shapes_of(weights), shapes_of(dict(blank.named_parameters())), folder / WEIGHTS)
    write_run(out, recipe, {"src": tokenizers.src, "tgt": tokenizers.tgt}, weights)
    return sum(weight.numel() for weight in weights.values())


TRANSLATION = task_of("transformer")


def _read_config(document: Mapping[str, Any], path: Path) -> TransformerConfig:
    supported: dict[str, tuple[Any, ...]] = {
        "model_type": ("marian",), "scale_embedding": (True,), "normalize_before": (False,),
        "normalize_embedding": (False,), "add_final_layer_norm": (False,),
        "activation_function": tuple(_ACTIVATIONS),
        "decoder_attention_heads": (document.get("encoder_attention_heads"),),
        "decoder_ffn_dim": (document.get("encoder_ffn_dim"),),
        "tie_word_embeddings": (True,) if document.get("share_encoder_decoder_embeddings", True) else (True, False),
    }  # fmt: skip
    defaults = {"scale_embedding": False, "activation_function": "gelu"}
    require_supported(document, supported, path, defaults)
    tie = "all" if document.get("share_encoder_decoder_embeddings", True) else "target"
    try:
        return TransformerConfig.model_validate({
            "d_model": int(document["d_model"]), "d_ff": int(document["encoder_ffn_dim"]),
            "num_heads": int(document["encoder_attention_heads"]),
            "num_encoder_layers": int(document["encoder_layers"]),
            "num_decoder_layers": int(document["decoder_layers"]),
            "dropout": float(document.get("dropout", 0.1)),
            "attention_dropout": float(document.get("attention_dropout", 0.0)),
            "activation": _ACTIVATIONS[document.get("activation_function", "gelu")], "positions": "half_split",
            "tie": tie if document.get("tie_word_embeddings", True) else "none",
        })  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} does not describe a Marian: {error}.") from error


_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}


def _search(folder: Path, document: Mapping[str, Any]) -> SearchOptions:
    """The search that the folder describes. Older folders do so in `config.json`."""
    described = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else document
    try:
        return SearchOptions(
            beam_size=int(described.get("num_beams") or 1), length_norm="mean",
            length_penalty=float(described.get("length_penalty", 1.0)),
        )  # fmt: skip
    except (TypeError, ValueError, UsageError) as error:
        raise DataError(f"{folder}: num_beams or length_penalty is not a number that heed can search with.") from error


def _read_weights(path: Path, config: TransformerConfig, tokenizers: MarianTokenizers) -> dict[str, Tensor]:
    """The weights under heed's names, in float32, with one row for each of heed's ids."""
    path = path.resolve()  # downloaded models are often links
    if not path.is_file() and path.with_name("pytorch_model.bin").is_file():
        raise MissingInputError(
            f"{path} is missing. heed does not read pytorch_model.bin, which can run code: load the folder with "
            "MarianMTModel.from_pretrained of transformers, and write it again with save_pretrained."
        )
    tensors = {name: tensor.float() for name, tensor in read_tensors(path).items()}

    def first(*names: str) -> Tensor:
        found = next((name for name in names if name in tensors), names[0])
        require_names(tensors, [found], path)
        return tensors[found]

    weights = {name: torch.cat([first(each) for each in names]) for name, names in _blocks(config)}
    for side in ("encoder", "decoder"):
        _require_sinusoids(tensors.get(f"model.{side}.embed_positions.weight"), path)
    src_order, tgt_order = map(torch.tensor, tokenizers.orders)
    tgt = (_SHARED[2], _OUTPUT) if config.tie != "all" else (*_SHARED, _OUTPUT)
    target = first(*(tgt if config.tie != "none" else tgt[:1]))
    weights["encoder.embedding.weight"] = first(*(_SHARED[1:2] if config.tie != "all" else tgt))
    if config.tie != "all":
        weights["embedding.weight"] = target
    if config.tie == "none":
        weights["head.weight"] = first(_OUTPUT)
    bias = tensors.get("final_logits_bias", torch.zeros(1, len(target))).reshape(-1)
    orders = {"encoder.embedding.weight": src_order, "embedding.weight": tgt_order, "head.weight": tgt_order}
    for name, order in orders.items():
        if name in weights:
            if len(weights[name]) != (expected := int(order.max()) + 1):
                raise DataError(
                    f"{path}: {name} has {len(weights[name]):,} rows, but the tokenizer has {expected:,} pieces."
                )
            weights[name] = weights[name][order]
    if len(bias) != int(tgt_order.max()) + 1:
        raise DataError(f"{path}: final_logits_bias has {len(bias):,} values, not one for each piece.")
    weights["head.bias"] = bias[tgt_order]
    if tgt_order[BOS_ID] == tgt_order[PAD_ID]:
        weights["head.bias"][BOS_ID] = IMPOSSIBLE
    return {name: weight.contiguous() for name, weight in weights.items()}


def _require_sinusoids(table: Tensor | None, path: Path) -> None:
    if table is not None and (table - half_split(*table.shape)).abs().max() > 1e-4:
        raise DataError(f"{path}: its table of positions was trained; heed's Transformer has sines and cosines.")
