"""Toy corpora and translators that are small enough to be trained in a test.

Each source word has one translation, and the order of words is reversed. With a few hundred pairs and a model of 16
features, an update takes some milliseconds.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from safetensors.torch import load_file, save_file

from heed.core.config import Document
from heed.core.run_files import WEIGHTS
from heed.execute import prepare_run
from heed.nn.weight_file import save_weights
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.training.checkpoints import Checkpoint, list_checkpoints, load_checkpoint
from heed.training.trainer import Trainer

WORDS = {
    "ba": "kan", "ce": "ler", "di": "mis", "fo": "not", "gu": "pur", "ha": "qes", "ji": "rit", "ko": "sol",
    "lu": "tun", "me": "vax", "no": "wem", "pi": "zil",
}  # fmt: skip

TINY: dict[str, Any] = {
    "tokenizer.vocab_size": 290, "model.kind": "transformer", "model.d_model": 16, "model.d_ff": 32,
    "model.num_heads": 2, "model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "model.dropout": 0.1,
    "training.tokens_per_batch": 256, "training.warmup_steps": 10, "training.lr": 5e-3,
    "training.precision": "float32", "training.log_every": 5, "training.max_steps": 20, "training.eval_every": 10,
    "training.save_every": 5, "decoding.beam_size": 2,
}  # fmt: skip
"""Recipe keys of a tiny translation run."""

OTHER_MODELS: dict[str, dict[str, Any]] = {
    "rnn_attention": {
        "model.d_model": 16, "model.hidden_size": 16, "model.attention_size": 16, "model.dropout": 0.1,
    },
    "encoder_decoder": {
        "model.d_model": 16, "model.dropout": 0.1, "model.encoder.kind": "rnn_reader", "model.encoder.d_model": 16,
        "model.encoder.hidden_size": 16, "model.decoder.kind": "recurrent", "model.decoder.hidden_size": 16,
        "model.decoder.attention_size": 16,
    },
}  # fmt: skip
"""The keys of tiny models of other kinds."""

TIMES = ("seconds", "tokens_per_second")
"""Differences between two equal runs."""


def translate(src: str) -> str:
    """The toy translation of a toy source sentence."""
    return " ".join(WORDS[word] for word in reversed(src.split()))


def pairs(num_pairs: int = 300, seed: int = 0, longest: int = 5) -> list[tuple[str, str]]:
    """Distinct sentence pairs of the toy languages."""
    dice = random.Random(seed)
    sentences: dict[str, None] = {}
    while len(sentences) < num_pairs:
        sentences[" ".join(dice.choices(list(WORDS), k=dice.randint(2, longest)))] = None
    return [(src, translate(src)) for src in sentences]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """A text file of these lines."""
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_pairs(folder: Path, name: str = "train", num_pairs: int = 300, seed: int = 0) -> tuple[Path, Path]:
    """`NAME.aa` and `NAME.bb` with toy pairs, line by line."""
    sentences = pairs(num_pairs, seed)
    return (
        write_lines(folder / f"{name}.aa", [src for src, _ in sentences]),
        write_lines(folder / f"{name}.bb", [tgt for _, tgt in sentences]),
    )


def flags(keys: dict[str, Any]) -> list[str]:
    """Recipe keys as flags of `heed train`."""
    return [f"--{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in keys.items()]


def tiny_keys(folder: Path, **changes: Any) -> dict[str, Any]:
    """The keys of a tiny run on toy pairs in `folder`; `changes` are more keys, with `__` for the dot."""
    src, tgt = folder / "train.aa", folder / "train.bb"
    if not src.exists():
        write_pairs(folder)
    tiny = dict(TINY)
    if own := OTHER_MODELS.get(str(changes.get("model__kind"))):
        tiny = {key: value for key, value in TINY.items() if not key.startswith("model.")} | own
    return {
        "task": "translation", "data.src": str(src), "data.tgt": str(tgt), "data.hold_out": 8, **tiny,
        **{name.replace("__", "."): value for name, value in changes.items()},
    }  # fmt: skip


def prepared(folder: Path, out: str = "run", **changes: Any) -> Run:
    """A tiny run on toy pairs, prepared but not trained, in `folder / out`."""
    options = TrainOptions(folder / out, device="cpu", quiet=True)
    return prepare_run(Planner(Document(), tiny_keys(folder, **changes), options).plan(), options.out, quiet=True)


def other_weights(run: Path, folder: Path) -> Path:
    """A copy of a run that translates differently, as the scores of its words are turned around."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("ctranslate2"))
    weights = load_file(folder / "model.safetensors")
    save_file({name: torch.flip(each, [0]) if each.dim() == 2 else each for name, each in weights.items()},
              folder / "model.safetensors")  # fmt: skip
    return folder


def with_weights(run: Run) -> Run:
    """The run with untrained weights, to initialise another run."""
    save_weights(run.folder / WEIGHTS, dict(run.new_model().named_parameters()), {})
    return run


def trainer_of(run: Run, threads: int = 1) -> Trainer:
    """A trainer for a prepared run, from its first update."""
    torch.set_num_threads(threads)
    recipe = run.recipe
    d_model = recipe.model.model_dump()["d_model"]
    model = run.new_model()
    return Trainer(recipe.training, model, run.task(), run.folder, recipe.seed, run.device, d_model, quiet=True)


def barely_trained(folder: Path) -> Run:
    """A translation run that has learned next to nothing, in `folder / "run"`."""
    with unchecked_shapes():
        run = prepared(folder, training__max_steps=2, training__eval_every=2)
        trainer_of(run).run()
    return run


def straight_and_resumed(folder: Path, **changes: Any) -> tuple[Checkpoint, Checkpoint]:
    """The last checkpoint of a training of 8 updates, and that of the same one, stopped after 4 and resumed."""
    changes |= {"training__max_steps": 8, "training__save_every": 4}
    trainer_of(prepared(folder, "straight", **changes)).run()
    stopped = prepared(folder, "stopped", **{**changes, "training__max_steps": 4})
    trainer_of(stopped).run()
    again = trainer_of(prepared(folder, "again", **changes))
    again.restore(last_checkpoint(stopped.folder))
    again.run()
    return last_checkpoint(folder / "straight"), last_checkpoint(folder / "again")


def last_checkpoint(run: Path) -> Checkpoint:
    """The newest checkpoint of a run folder."""
    return load_checkpoint(list_checkpoints(run / "checkpoints")[-1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates with its data and checkpoints; tests must not change it."""
    folder = tmp_path_factory.mktemp("trained")
    trainer_of(prepared(folder, training__max_steps=4, training__eval_every=4)).run()
    return folder / "run"


def events(folder: Path) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl` without the times."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Disable the checks of shapes, which make whole runs many times slower."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(autouse=True)
def without_shape_checks() -> Iterator[None]:
    """Disable the checks of shapes for each test of the modules that import this."""
    with unchecked_shapes():
        yield
