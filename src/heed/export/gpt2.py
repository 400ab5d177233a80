"""Decoder-only models to GPT-2 folders of Hugging Face `transformers`, and back.

A folder has `config.json`, `model.safetensors` and, if the `tokenizers` library has the kind, `tokenizer.json`. Weight
matrices are transposed there, [in, out]; queries, keys and values are one matrix in both. An exported model is imported
bit for bit, with the way it reads text. The package `transformers` is not needed.

Other GPT-2 models have one special piece, `<|endoftext|>`, where heed has four. It becomes heed's begin and end of
sentence; padding, begin of sentence and the unknown piece, which such a model never predicts, get a bias that makes
their probability 0.

A model of a running text with ends of sentence reads the begin of sentence in place of each end. Its exported input
embedding therefore has the vector of the begin for the end too, and differs from the output weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError
from safetensors.torch import save_file
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from heed.core.config import Config
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.core.run_files import WEIGHTS
from heed.core.weight_file import require_shapes
from heed.export.hugging_face import (
    CONFIG,
    HEED,
    TOKENIZER,
    read_json,
    read_tensors,
    require_names,
    require_supported,
    write_json,
)
from heed.export.imported_run import write_run
from heed.models.gpt import Gpt, GptConfig
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import shapes_of
from heed.recipe import Recipe, recipe_type, task_of
from heed.run import Run
from heed.tasks import task_type
from heed.text.normalise import Normaliser
from heed.text.tokenizers import (
    MAX_BYTES,
    TOKENIZERS,
    LineEnd,
    TextAs,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
)
from heed.text.tokenizers.hugging_face import Bpe, OfLibrary, parsed
from heed.text.vocabulary import BOS_ID, EOS_ID, SPECIAL_PIECES
from heed.training.config import TrainingConfig

EMBEDDING, OUTPUT = "transformer.wte.weight", "lm_head.weight"
END_OF_TEXT = "<|endoftext|>"
IMPOSSIBLE = -1e4
"""A bias that makes a probability 0, in bfloat16 too."""

Weights = Mapping[str, Tensor]

_BLOCK = {
    "attention_norm": "ln_1", "attention.query_key_value": "attn.c_attn", "attention.output": "attn.c_proj",
    "feed_forward_norm": "ln_2", "expand": "mlp.c_fc", "contract": "mlp.c_proj",
}  # fmt: skip
"""Parts of a block: name in heed, name in GPT-2."""


class Reading(Config):
    """Way in which a model reads text, which affects probabilities and which the format of GPT-2 lacks."""

    text_as: TextAs
    line_end: LineEnd
    keep_blank_lines: bool
    context: int = Field(ge=1)
    normaliser: Normaliser = Normaliser()

    @staticmethod
    def of(recipe: Recipe) -> Reading:
        """From the recipe of a run."""
        data = recipe.data.model_dump(include={"text_as", "line_end", "keep_blank_lines", "normaliser"})
        return Reading(**data, context=recipe.training.context)

    @property
    def reads_end_as_begin(self) -> bool:
        """Whether the model reads the begin of sentence in place of the end of the line before."""
        return self.text_as != "lines" and self.line_end == "eos"

    def data(self) -> dict[str, Any]:
        """The `[data]` table of a recipe. Raises ValidationError if the task does not accept it."""
        table = self.model_dump(exclude={"context"})
        task_type(task_of("gpt")).Data.model_validate(table)
        return table


def _names(num_layers: int) -> Iterator[tuple[str, str, bool]]:
    """Each weight: name in heed, name in GPT-2, and whether it is a matrix, which is transposed."""
    yield "embedding", "wte.weight", False
    yield "positions", "wpe.weight", False
    for number in range(num_layers):
        for name, gpt2_name in _BLOCK.items():
            for kind in ("weight", "bias"):
                is_matrix = kind == "weight" and "norm" not in name
                yield f"blocks.{number}.{name}.{kind}", f"h.{number}.{gpt2_name}.{kind}", is_matrix
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", f"ln_f.{kind}", False


# --- export ------------------------------------------------------------------------------------------------


def to_gpt2(weights: Weights, num_layers: int) -> dict[str, Tensor]:
    """The weights under the names of `transformers`; the output weight is the embedding and is not repeated."""
    return {
        f"transformer.{gpt2_name}": (weights[name].t() if is_matrix else weights[name]).contiguous()
        for name, gpt2_name, is_matrix in _names(num_layers)
    }


def _untied(weights: Weights) -> dict[str, Tensor]:
    """The output weight, and an input embedding in which the end of sentence has the vector of the begin."""
    output = weights[EMBEDDING]
    read = output.clone()
    read[EOS_ID] = read[BOS_ID]
    return {EMBEDDING: read, OUTPUT: output}


def gpt2_config(config: GptConfig, vocabularies: Vocabularies) -> dict[str, Any]:
    """The `config.json` of a model."""
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": vocabularies.tgt_size,
        "n_positions": config.max_len, "n_embd": config.d_model, "n_layer": config.num_layers,
        "n_head": config.num_heads, "n_inner": config.d_ff, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "embd_pdrop": config.dropout, "resid_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout, "tie_word_embeddings": True, "torch_dtype": "float32",
        "pad_token_id": vocabularies.pad_id, "bos_token_id": vocabularies.bos_id, "eos_token_id": vocabularies.eos_id,
    }  # fmt: skip


def export_gpt2(run: Run, folder: Path) -> bool:
    """Write a run's model as a GPT-2 folder; returns whether its tokenizer is included.

    Raises UsageError for a model that is not a GPT-2, and StorageError.
    """
    config, usual = run.recipe.model, GptConfig().attention
    needs = f"A GPT-2 is of kind gpt, without output_bias and with the attention {usual!r}."
    if not isinstance(config, GptConfig):
        raise UsageError(f"{run.folder}: the model is of kind {config.kind}. {needs}")
    if config.output_bias or config.attention != usual:
        problem = "an output bias" if config.output_bias else f"the attention {config.attention!r}"
        raise UsageError(f"{run.folder}: the model has {problem}. {needs}")
    weights = to_gpt2(run.weights(), config.num_layers)
    reading = Reading.of(run.recipe)
    document = gpt2_config(config, run.vocabularies) | {HEED: reading.model_dump()}
    if reading.reads_end_as_begin:
        weights |= _untied(weights)
        document |= {"tie_word_embeddings": False, "eos_token_id": None}  # a text goes on after the end of a line
    portable = issubclass(TOKENIZERS[run.recipe.tokenizer.kind], OfLibrary)
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        save_file(weights, new / WEIGHTS, {"format": "pt"})
        write_json(new / CONFIG, document)
        if portable:
            (new / TOKENIZER).write_bytes(run.files.read(TOKENIZER, MAX_BYTES))
            special = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIAL_PIECES, strict=True))
            config_of = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True, **special}
            write_json(new / "tokenizer_config.json", config_of)  # text that spells a special piece stays text
    return portable


# --- import -------------------------------------------------------------------------------------------------


def import_gpt2(folder: Path, out: Path) -> int:
    """Make a run from a GPT-2 folder, to generate, score, compress or be trained further; returns its parameter count.

    Raises MissingInputError, and DataError if it is not a GPT-2 that heed can compute exactly.
    """
    config, vocab_size, is_tied = _read_config(folder / CONFIG)
    weights = _read_weights(folder / WEIGHTS, config.num_layers, is_tied)
    tokenizer, order = _read_tokenizer(folder / TOKENIZER)
    if order:
        num_rows = len(weights["embedding"])
        if max(order) >= num_rows:
            raise DataError(
                f"{folder}: the model has {num_rows:,} pieces, but its tokenizer has the id {max(order):,}."
            )
        config = config.model_copy(update={"output_bias": True})
        weights |= _reordered(weights["embedding"], order)
    vocabularies = Vocabularies(0, len(tokenizer.vocabulary))
    if not order and vocab_size != vocabularies.tgt_size:
        raise DataError(
            f"{folder}: the model has {vocab_size:,} pieces, but its tokenizer has {vocabularies.tgt_size:,}."
        )
    try:
        with torch.device("meta"):
            blank = Gpt(config, vocabularies)
    except (RuntimeError, TypeError, OverflowError) as error:  # the number of bytes must fit 64 bits
        raise DataError(f"{folder / CONFIG} describes a model that no machine can hold.") from error
    require_shapes(shapes_of(weights), shapes_of(dict(blank.named_parameters())), folder / WEIGHTS)
    data, context = _read_reading(folder / CONFIG, config.max_len)
    kind = next(kind for kind, tokenizers in TOKENIZERS.items() if tokenizers is type(tokenizer))
    recipe = recipe_type(task_of("gpt"))(
        task=task_of("gpt"),
        data=data,
        tokenizer=TokenizerConfig.model_validate({"kind": kind, "vocab_size": vocabularies.tgt_size}),
        model=config,
        training=TrainingConfig(stop_metric="perplexity", context=context, label_smoothing=0.0),
    )
    write_run(out, recipe, {"tgt": tokenizer}, weights)
    return sum(weight.numel() for weight in weights.values())


def _read_config(path: Path) -> tuple[GptConfig, int, bool]:
    """The model, its vocabulary size, and whether its output weight is the embedding."""
    document = read_json(path)
    supported = {
        "model_type": ("gpt2",), "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "layer_norm_epsilon": (1e-5,), "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,),
        "tie_word_embeddings": (True, False) if HEED in document else (True,),
    }  # fmt: skip
    require_supported(document, supported, path)
    try:
        d_model = int(document["n_embd"])
        config = GptConfig(
            d_model=d_model, d_ff=int(document.get("n_inner") or 4 * d_model), num_heads=int(document["n_head"]),
            num_layers=int(document["n_layer"]), max_len=int(document["n_positions"]),
            dropout=float(document.get("resid_pdrop", 0.1)), attention_dropout=float(document.get("attn_pdrop", 0.1)),
        )  # fmt: skip
        return config, int(document["vocab_size"]), document.get("tie_word_embeddings", True)
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise DataError(f"{path} does not describe a GPT-2: {error}.") from error


def _read_reading(path: Path, max_len: int) -> tuple[dict[str, Any], int]:
    """The `[data]` table and the context: as heed wrote them, or as other GPT-2 models read text."""
    defaults = {"text_as": "windows", "line_end": "newline", "keep_blank_lines": True, "context": max_len}
    try:
        reading = Reading.model_validate(read_json(path).get(HEED, defaults))
        return reading.data(), reading.context
    except ValidationError as error:
        raise DataError(f"{path}: the value of {HEED!r} is invalid: {error.errors()[0]['msg']}.") from error


def _read_weights(path: Path, num_layers: int, is_tied: bool) -> dict[str, Tensor]:
    """The weights under heed's names, in float32. `is_tied`: the output weight is the embedding."""
    path = path.resolve()  # downloaded models are often links
    weights = read_tensors(path)
    names = list(_names(num_layers))
    prefix = "transformer." if any(name.startswith("transformer.") for name in weights) else ""
    require_names(weights, (prefix + name for _, name, _ in names), path)
    if not is_tied:
        name, output = f"{prefix}wte.weight", weights.get(OUTPUT, torch.empty(0))
        if (
            output.ndim != 2
            or len(output) <= EOS_ID
            or not weights[name].equal(_untied({EMBEDDING: output})[EMBEDDING])
        ):
            raise DataError(f"{path}: {name} is not {OUTPUT} with the end of sentence as its begin.")
        weights[name] = output
    return {
        name: (weights[prefix + gpt2_name].t() if is_matrix else weights[prefix + gpt2_name]).float().contiguous()
        for name, gpt2_name, is_matrix in names
    }


def _read_tokenizer(path: Path) -> tuple[Tokenizer, list[int]]:
    """The tokenizer, and the row of each of its text pieces in the model; no rows if the order is already heed's."""
    document = read_json(path)
    try:
        parsed(json.dumps(document))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    special = {token.get("content"): token.get("id") for token in document.get("added_tokens", [])}
    if [special.get(piece) for piece in SPECIAL_PIECES] == [0, 1, 2, 3]:
        return load_tokenizer(path), []
    model = document.get("model", {})
    if model.get("type") not in (None, "BPE") or list(special) != [END_OF_TEXT]:
        raise DataError(
            f"{path}: a GPT-2 has a BPE tokenizer with {END_OF_TEXT} as its only special piece; this one differs."
        )
    split = document.get("pre_tokenizer") or {}
    plain = split.get("type") == "ByteLevel" and not split.get("add_prefix_space") and split.get("use_regex", True)
    if document.get("normalizer") is not None or not plain:
        raise DataError(
            f"{path} normalises or splits text differently from GPT-2, which has no normalizer and a ByteLevel "
            "pre_tokenizer without add_prefix_space."
        )
    ids = {piece: id for piece, id in model.get("vocab", {}).items() if piece != END_OF_TEXT}
    pieces = sorted(ids, key=lambda piece: ids[piece])
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges", []))
    merges = [(first, second) for first, second in pairs]
    vocab = {piece: id for id, piece in enumerate((*SPECIAL_PIECES, *pieces))}
    library = Library(models.BPE(vocab=vocab, merges=merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(list(SPECIAL_PIECES))
    try:
        tokenizer = Bpe.from_json(library.to_str(pretty=True) + "\n")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return tokenizer, [special[END_OF_TEXT], *(ids[piece] for piece in pieces)]


def _reordered(embedding: Tensor, order: list[int]) -> dict[str, Tensor]:
    """The rows in the order of heed's vocabulary, whose begin and end are the first of `order`, and their bias."""
    end, *text = order
    zeros = torch.zeros_like(embedding[:1])
    rows = torch.cat((zeros, embedding[[end, end]], zeros, embedding[text]))
    bias = torch.zeros(len(rows))
    bias[[0, 1, 3]] = IMPOSSIBLE
    return {"embedding": rows, "head.bias": bias}
