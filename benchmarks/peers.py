"""Comparisons of heed with other libraries: both sides in turn, on the same weights, printed as ratios.

Each side runs in its own process, because settings of a process (threads, how the C library manages memory) would help
or harm the other. The parent sends jobs to the sides in turn, A B A B, so that disturbances affect both, and takes a
ratio for each pair.
"""

from __future__ import annotations

import importlib.util
import math
import platform
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from datetime import date
from importlib import metadata
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heed.core.environment import data_dir, library_versions
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.embeddings import half_split
from heed.text.readers import read_lines
from heed.text.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_DATA = ROOT.parent / "shared" / "data" / "multi30k"

# The model of every comparison, as in Marian: post-norm, half-split positions, one embedding for all.
MODEL = TransformerConfig(
    d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=3, num_decoder_layers=3, dropout=0.1,
    attention_dropout=0.1, norm="post", positions="half_split", tie="all",
)  # fmt: skip
VOCAB_SIZE = 8000


# --- data and machine -----------------------------------------------------------------------------------


def multi30k(given: Path | None) -> Path:
    """The folder of Multi30k's raw files: the given one, HEED_DATA, or `shared/data/multi30k` next to the checkout."""
    folder = given or data_dir() or DEFAULT_DATA
    if not (folder / "train.en.gz").exists():
        sys.exit(f"{folder} has no train.en.gz: pass the folder of Multi30k's raw .gz files with --data DIR.")
    return folder


def both_sides(folder: Path, part: str) -> tuple[list[str], list[str]]:
    """The English and the German lines of `train`, `val` or `test_2016_flickr`."""
    return tuple(list(read_lines(folder / f"{part}.{language}.gz")) for language in ("en", "de"))


def installed(package: str) -> bool:
    """Whether a peer is installed; prints a line if it is not."""
    there = importlib.util.find_spec(package) is not None
    if not there:
        print(f"{package} is not installed: left out.")
    return there


def machine_line(threads: int, packages: Sequence[str], device: torch.device | None = None) -> str:
    """A line about the machine, the date and the versions."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    name = re.search(r"model name\s*: (.*)", cpuinfo)
    fast = [flag for flag in ("avx512_bf16", "amx_bf16") if re.search(rf"\b{flag}\b", cpuinfo)]
    versions = library_versions()
    versions.update({package: metadata.version(package) for package in packages})
    on_gpu = device is not None and device.type == "cuda"
    parts = [
        *([torch.cuda.get_device_name(device)] if on_gpu else []),
        (name[1] if name else platform.processor() or platform.machine()) + f" ({', '.join(fast) or 'no bfloat16'})",
        f"{threads} threads",
        ", ".join(f"{package} {version}" for package, version in versions.items()),
        date.today().isoformat(),
    ]
    return "Machine: " + "; ".join(parts)


# --- side by side ---------------------------------------------------------------------------------------


class Side:
    """One side in its own process, where `build(*arguments)` creates the function that does the jobs."""

    def __init__(self, build: Callable[..., Callable[[Any], Any]], *arguments: Any) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, build, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, job: Any) -> Any:
        """The other process's result for a job."""
        try:
            self._pipe.send(job)
            return self._pipe.recv()
        except (EOFError, BrokenPipeError):
            sys.exit("one side of the comparison ended early; see its error above.")


def _serve(pipe: Connection, build: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    do = build(*arguments)
    while True:
        try:
            pipe.send(do(pipe.recv()))
        except (EOFError, BrokenPipeError):  # the parent has ended
            return


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The median, the smallest and the largest of the pairs' ratios."""
    pairs = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    return f"**{statistics.median(pairs):.2f}x** ({pairs[0]:.2f} to {pairs[-1]:.2f})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are numbers, except the first."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# --- the same weights in the peers' models --------------------------------------------------------------


def why_not_marian(config: Any) -> str:
    """Why a model cannot be converted to Marian; empty if it can."""
    wanted = {"kind": "transformer", "norm": "post", "positions": "half_split", "tie": "all"}
    found = config.model_dump()
    return ", ".join(
        f"model.{key} is {found.get(key)!r}, not {v!r}" for key, v in wanted.items() if found.get(key) != v
    )


def marian(config: TransformerConfig, vocab_size: int, dropout: float, attention_dropout: float) -> Any:
    """A `transformers` Marian model of the same sizes, with random weights."""
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils.logging import disable_progress_bar, set_verbosity_error

    set_verbosity_error()
    disable_progress_bar()
    return MarianMTModel(
        MarianConfig(
            vocab_size=vocab_size, d_model=config.d_model, activation_function=config.activation,
            encoder_layers=config.num_encoder_layers, decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads, decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff, max_position_embeddings=256,
            dropout=dropout, attention_dropout=attention_dropout, activation_dropout=0.0, scale_embedding=True,
            share_encoder_decoder_embeddings=True, pad_token_id=Vocabulary.pad_id, bos_token_id=Vocabulary.bos_id,
            eos_token_id=Vocabulary.eos_id, decoder_start_token_id=Vocabulary.bos_id, forced_eos_token_id=None,
        )
    )  # fmt: skip


_IN_BLOCK = re.compile(r"(encoder\.)?blocks\.(\d+)\.([a-z_]+)\.([a-z_]+)\.(weight|bias)")
_ATTENTION = {"attention": "self_attn", "self_attention": "self_attn", "cross_attention": "encoder_attn"}
_OTHERS = {
    ("feed_forward", "expand"): "fc1", ("feed_forward", "contract"): "fc2",
    ("attention_residual", "norm"): "self_attn_layer_norm", ("self_residual", "norm"): "self_attn_layer_norm",
    ("cross_residual", "norm"): "encoder_attn_layer_norm", ("feed_forward_residual", "norm"): "final_layer_norm",
}  # fmt: skip


def give_weights_to_marian(model: Transformer, peer: Any) -> None:
    """Copy heed's weights into a Marian model."""
    weights = model.state_dict()
    bias = weights.get("head.bias", torch.zeros(len(weights["head.weight"])))
    renamed: dict[str, Tensor] = {"model.shared.weight": weights["head.weight"], "final_logits_bias": bias[None]}
    for name, tensor in weights.items():
        if match := _IN_BLOCK.fullmatch(name):
            side = "encoder" if match[1] else "decoder"
            for part, value in _marian_parts(match[3], match[4], tensor):
                renamed[f"model.{side}.layers.{match[2]}.{part}.{match[5]}"] = value
    missing, unexpected = peer.load_state_dict(renamed, strict=False)
    left = [name for name in missing if not name.endswith(("embed_tokens.weight", "embed_positions.weight"))]
    if unexpected or left != ["lm_head.weight"]:  # these are tied, or computed
        sys.exit(f"the weights do not fit: {[*unexpected, *left]}")
    peer.tie_weights()


def _marian_parts(module: str, part: str, tensor: Tensor) -> list[tuple[str, Tensor]]:
    if module not in _ATTENTION:
        return [(_OTHERS[module, part], tensor)]
    names = {"query": ["q_proj"], "key_value": ["k_proj", "v_proj"], "output": ["out_proj"]}[part]
    return [
        (f"{_ATTENTION[module]}.{name}", value) for name, value in zip(names, tensor.chunk(len(names)), strict=True)
    ]


def save_for_ctranslate2(model: Transformer, pieces: Sequence[str], folder: Path, quantization: str | None) -> None:
    """Write heed's weights as a CTranslate2 model folder, in float32 or quantised."""
    from ctranslate2.specs import transformer_spec as specs

    config, weights = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    encoder = specs.TransformerEncoderSpec(config.num_encoder_layers, config.num_heads, pre_norm=False)
    decoder = specs.TransformerDecoderSpec(config.num_decoder_layers, config.num_heads, pre_norm=False)
    positions = half_split(256, config.d_model).numpy()
    for part, embeddings in ((encoder, encoder.embeddings[0]), (decoder, decoder.embeddings)):
        embeddings.weight = weights["head.weight"]
        part.scale_embeddings = np.float32(math.sqrt(config.d_model))
        part.position_encodings.encodings = positions
    decoder.projection.weight = weights["head.weight"]
    if "head.bias" in weights:
        decoder.projection.bias = weights["head.bias"]
    for number, layer in enumerate(encoder.layer):
        name = f"encoder.blocks.{number}"
        _self_attention(layer.self_attention, weights, f"{name}.attention", f"{name}.attention_residual")
        _feed_forward(layer.ffn, weights, name)
    for number, layer in enumerate(decoder.layer):
        name = f"blocks.{number}"
        _self_attention(layer.self_attention, weights, f"{name}.self_attention", f"{name}.self_residual")
        for spec, part in zip(layer.attention.linear, ("query", "key_value", "output"), strict=True):
            _fill(spec, weights, f"{name}.cross_attention.{part}")
        _norm(layer.attention.layer_norm, weights, f"{name}.cross_residual")
        _feed_forward(layer.ffn, weights, name)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(list(pieces))
    spec.register_target_vocabulary(list(pieces))
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))


def _fill(spec: Any, weights: dict[str, Any], *names: str) -> None:
    """A linear layer, or several stacked into one."""
    spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _norm(spec: Any, weights: dict[str, Any], residual: str) -> None:
    spec.gamma, spec.beta = weights[f"{residual}.norm.weight"], weights[f"{residual}.norm.bias"]


def _self_attention(spec: Any, weights: dict[str, Any], attention: str, residual: str) -> None:
    _fill(spec.linear[0], weights, f"{attention}.query", f"{attention}.key_value")
    _fill(spec.linear[1], weights, f"{attention}.output")
    _norm(spec.layer_norm, weights, residual)


def _feed_forward(spec: Any, weights: dict[str, Any], block: str) -> None:
    _fill(spec.linear_0, weights, f"{block}.feed_forward.expand")
    _fill(spec.linear_1, weights, f"{block}.feed_forward.contract")
    _norm(spec.layer_norm, weights, f"{block}.feed_forward_residual")
