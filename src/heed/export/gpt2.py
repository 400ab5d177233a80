"""How does a decoder-only model get into the folder of a GPT-2 of Hugging Face `transformers`, and from there?

The folder has `config.json`, `model.safetensors` and, where the tokenizer is one of the `tokenizers` library's kinds,
`tokenizer.json`. Weights of layers are the other way round there, [in, out]; queries, keys and values are one matrix in
both. What is written is read back bit for bit, and how the model reads a text with it; `transformers` itself is not
needed.

A GPT-2 of another maker has one special piece, `<|endoftext|>`, where heed has four. It becomes heed's begin and end of
sentence; padding, begin and the unknown piece, which nobody predicts there, get a bias that leaves them no probability.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from heed.core.config import Config, to_toml
from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.files import atomic_folder, storage_errors
from heed.core.run_files import RunFiles
from heed.decoding.readers import TextAs
from heed.models.gpt import Gpt, GptConfig
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import read_header, require_shapes, save_weights, shapes_of
from heed.recipe import Recipe, recipe_type, task_of
from heed.run import RECIPE, WEIGHTS, Run
from heed.tasks import task_type
from heed.tasks.prepare import vocabulary_digests
from heed.text.normalise import Normaliser
from heed.text.tokenizers import (
    MAX_BYTES,
    TOKENIZERS,
    LineEnd,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    save_in_run,
)
from heed.text.vocabulary import SPECIAL_PIECES
from heed.training.config import TrainingConfig

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
END_OF_TEXT = "<|endoftext|>"
IMPOSSIBLE = -1e4
"""A bias that leaves no probability, in bfloat16 too."""

OURS = "heed"
"""Where `config.json` holds what is heed's own."""

Weights = Mapping[str, Tensor]

_BLOCK = {
    "attention_norm": "ln_1", "attention.query_key_value": "attn.c_attn", "attention.output": "attn.c_proj",
    "feed_forward_norm": "ln_2", "expand": "mlp.c_fc", "contract": "mlp.c_proj",
}  # fmt: skip
"""Parts of a block: heed's name and theirs."""


class Reading(Config):
    """How a model reads a text: the format of a GPT-2 does not say it, and another way gives other numbers."""

    text_as: TextAs
    line_end: LineEnd
    keep_blank_lines: bool
    context: int = Field(ge=1)
    normaliser: Normaliser = Normaliser()

    @staticmethod
    def of(recipe: Recipe) -> Reading:
        """That of a run."""
        data = recipe.data.model_dump(include={"text_as", "line_end", "keep_blank_lines", "normaliser"})
        return Reading(**data, context=recipe.training.context)

    def data(self) -> dict[str, Any]:
        """The same as the `[data]` table of a recipe."""
        table = self.model_dump(exclude={"context"})
        task_type(task_of("gpt")).Data.model_validate(table)
        return table


def _names(num_layers: int) -> Iterator[tuple[str, str, bool]]:
    """Each weight: heed's name, theirs, and whether it is a matrix that stands the other way round."""
    yield "embedding", "wte.weight", False
    yield "positions", "wpe.weight", False
    for number in range(num_layers):
        for ours, theirs in _BLOCK.items():
            for kind in ("weight", "bias"):
                is_matrix = kind == "weight" and "norm" not in ours
                yield f"blocks.{number}.{ours}.{kind}", f"h.{number}.{theirs}.{kind}", is_matrix
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", f"ln_f.{kind}", False


# --- out ------------------------------------------------------------------------------------------------


def to_gpt2(weights: Weights, num_layers: int) -> dict[str, Tensor]:
    """heed's weights under the names of `transformers`; the output's weight is the embedding and is not repeated."""
    return {
        f"transformer.{theirs}": (weights[ours].t() if turned else weights[ours]).contiguous()
        for ours, theirs, turned in _names(num_layers)
    }


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
    """Write a run's model as the folder of a GPT-2; whether its tokenizer could go along.

    Raises UsageError for a model that is no GPT-2, and StorageError.
    """
    config = run.recipe.model
    if not isinstance(config, GptConfig) or config.output_bias:
        what = "has an output bias" if isinstance(config, GptConfig) else f"is of kind {config.kind}"
        raise UsageError(f"{run.folder}: its model {what}; a GPT-2 is of kind gpt, without one.")
    weights = to_gpt2(run.weights(), config.num_layers)
    portable = run.recipe.tokenizer.kind in ("bpe", "unigram")
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        save_file(weights, new / WEIGHTS, {"format": "pt"})
        described = gpt2_config(config, run.vocabularies) | {OURS: Reading.of(run.recipe).model_dump()}
        (new / CONFIG).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        if portable:
            (new / TOKENIZER).write_bytes(run.files.read(TOKENIZER, MAX_BYTES))
            special = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIAL_PIECES, strict=True))
            described = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
            (new / "tokenizer_config.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    return portable


# --- in -------------------------------------------------------------------------------------------------


def import_gpt2(folder: Path, out: Path) -> int:
    """Make a run folder of the folder of a GPT-2, to generate, score, compress or be trained further; its parameters.

    Raises MissingInputError, and DataError where it is no GPT-2 that heed can compute exactly.
    """
    config, vocab_size = _read_config(folder / CONFIG)
    found = _read_weights(folder / WEIGHTS, config.num_layers)
    tokenizer, order = _read_tokenizer(folder / TOKENIZER)
    if order:
        config = config.model_copy(update={"output_bias": True})
        found |= _reordered(found["embedding"], order)
    vocabularies = Vocabularies(0, len(tokenizer.vocabulary))
    if not order and vocab_size != vocabularies.tgt_size:
        raise DataError(f"{folder}: the model has {vocab_size:,} pieces, its tokenizer {vocabularies.tgt_size:,}.")
    try:
        with torch.device("meta"):
            blank = Gpt(config, vocabularies)
    except (RuntimeError, TypeError, OverflowError) as error:  # PyTorch counts bytes in 64 bits
        raise DataError(f"{folder / CONFIG} describes a model that no machine can hold.") from error
    require_shapes(shapes_of(found), shapes_of(dict(blank.named_parameters())), folder / WEIGHTS)
    data, context = _read_reading(folder / CONFIG, config.max_len)
    kind = next(kind for kind, tokenizers in TOKENIZERS.items() if tokenizers is type(tokenizer))
    recipe = recipe_type(task_of("gpt"))(
        task=task_of("gpt"),
        data=data,
        tokenizer=TokenizerConfig.model_validate({"kind": kind, "vocab_size": vocabularies.tgt_size}),
        model=config,
        training=TrainingConfig(stop_metric="perplexity", context=context, label_smoothing=0.0),
    )
    with storage_errors("write the run", path=out), atomic_folder(out) as new:
        files = RunFiles(new)
        with files.write(RECIPE, "w") as file:
            file.write(to_toml(recipe))
        save_in_run(tokenizer, files, TOKENIZER)
        save_weights(new / WEIGHTS, found, vocabulary_digests({"tgt": tokenizer}))
    return sum(weight.numel() for weight in found.values())


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingInputError(f"{path} is missing: give the folder of a GPT-2 with {CONFIG}, {WEIGHTS}, {TOKENIZER}.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON file.") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no object.")
    return found


def _read_config(path: Path) -> tuple[GptConfig, int]:
    """The sizes of a model, and of its vocabulary."""
    found = _read_json(path)
    wanted = {
        "model_type": ("gpt2",), "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "layer_norm_epsilon": (1e-5,), "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,),
        "tie_word_embeddings": (True,),
    }  # fmt: skip
    for key, allowed in wanted.items():
        if found.get(key, allowed[0]) not in allowed:
            raise DataError(f"{path}: {key} is {found[key]!r}, and heed computes {' or '.join(map(repr, allowed))}.")
    try:
        d_model = int(found["n_embd"])
        config = GptConfig(
            d_model=d_model, d_ff=int(found.get("n_inner") or 4 * d_model), num_heads=int(found["n_head"]),
            num_layers=int(found["n_layer"]), max_len=int(found["n_positions"]),
            dropout=float(found.get("resid_pdrop", 0.1)), attention_dropout=float(found.get("attn_pdrop", 0.1)),
        )  # fmt: skip
        return config, int(found["vocab_size"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} does not describe a GPT-2: {error}.") from error


def _read_reading(path: Path, max_len: int) -> tuple[dict[str, Any], int]:
    """How a text is read, and the context: as heed wrote it down, or as models of other makers read."""
    others = {"text_as": "windows", "line_end": "newline", "keep_blank_lines": True, "context": max_len}
    try:
        reading = Reading.model_validate(_read_json(path).get(OURS, others))
        return reading.data(), reading.context
    except ValidationError as error:
        raise DataError(f"{path}: {OURS!r} is not what heed writes there: {error.errors()[0]['msg']}.") from error


def _read_weights(path: Path, num_layers: int) -> dict[str, Tensor]:
    """The weights under heed's names, in float32."""
    path = path.resolve()  # downloaded models are often links
    there = read_header(path).tensors.keys()
    names = list(_names(num_layers))
    prefix = "transformer." if any(name.startswith("transformer.") for name in there) else ""
    if missing := [prefix + theirs for _, theirs, _ in names if prefix + theirs not in there]:
        raise DataError(f"{path} has no {missing[0]!r}: it is not the model that {CONFIG} describes.")
    try:
        found = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    return {
        ours: (found[prefix + theirs].t() if turned else found[prefix + theirs]).float().contiguous()
        for ours, theirs, turned in names
    }


def _read_tokenizer(path: Path) -> tuple[Tokenizer, list[int]]:
    """heed's tokenizer, and for each of its text pieces the row of the model; no rows where they are its own."""
    document = _read_json(path)
    special = {token.get("content"): token.get("id") for token in document.get("added_tokens", [])}
    if [special.get(piece) for piece in SPECIAL_PIECES] == [0, 1, 2, 3]:
        return load_tokenizer(path), []
    model = document.get("model", {})
    if model.get("type") not in (None, "BPE") or list(special) != [END_OF_TEXT]:
        raise DataError(f"{path} is no tokenizer of a GPT-2: BPE, with {END_OF_TEXT} as its one special piece.")
    cut = document.get("pre_tokenizer") or {}
    plain = cut.get("type") == "ByteLevel" and not cut.get("add_prefix_space") and cut.get("use_regex", True)
    if document.get("normalizer") is not None or not plain:
        raise DataError(
            f"{path} changes or cuts a text in another way than GPT-2: no normalizer, bytes, no space before."
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
    with_ours = library.to_str(pretty=True) + "\n"
    return _parsed(with_ours, path), [special[END_OF_TEXT], *(ids[piece] for piece in pieces)]


def _parsed(text: str, path: Path) -> Tokenizer:
    from heed.text.tokenizers.hugging_face import Bpe

    try:
        return Bpe.from_json(text)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _reordered(embedding: Tensor, order: list[int]) -> dict[str, Tensor]:
    """The rows for heed's vocabulary, whose begin and end are the first of `order`, and their bias."""
    end, *text = order
    nothing = torch.zeros_like(embedding[:1])
    rows = torch.cat((nothing, embedding[[end, end]], nothing, embedding[text]))
    bias = torch.zeros(len(rows))
    bias[[0, 1, 3]] = IMPOSSIBLE
    return {"embedding": rows, "head.bias": bias}
