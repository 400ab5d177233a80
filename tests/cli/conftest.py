"""Runs that the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call
from tiny_speakers import CHARACTERS, train_speaker
from toy import WORDS, tiny_keys, trainer_of, unchecked_shapes, without_shape_checks, write_lines, write_pairs

from heed.core.config import Document
from heed.execute import prepare_run
from heed.planner import Planner, TrainOptions

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run that has learned something; `train.*` and the unseen `test.*` are in the same folder."""
    folder = tmp_path_factory.mktemp("translator")
    keys = tiny_keys(
        folder, model__d_model=32, model__d_ff=64, model__dropout=0.0, training__max_steps=150,
        training__eval_every=75, training__save_every=25, training__lr=1e-2, training__average="none",
        training__label_smoothing=0.0, data__src_lang="aa", data__tgt_lang="bb",
    )  # fmt: skip
    write_pairs(folder, "test", 40, seed=1)
    with unchecked_shapes():
        options = TrainOptions(folder / "run", device="cpu", quiet=True)
        run = prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)
        trainer_of(run).run()
    return folder / "run"


@pytest.fixture(scope="session")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent translator that has learned almost nothing, trained by the command line without a recipe."""
    folder = tmp_path_factory.mktemp("recurrent")
    src, tgt = write_pairs(folder)
    with unchecked_shapes():
        result = call(
            "train", "--task", "translation", "--src", src, "--tgt", tgt, "--out", folder / "run",
            "--model.kind=rnn_attention", "--model.d_model=16", "--model.hidden_size=16", "--model.attention_size=16",
            "--tokenizer.vocab_size=290", "--training.max_steps=3", "--precision", "float32", "--quiet",
        )  # fmt: skip
    assert result.code == 0, result.err
    return folder / "run"


@pytest.fixture(scope="session")
def bigram(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A count-based language model; its `text` is in the same folder."""
    folder = tmp_path_factory.mktemp("bigram")
    text = write_lines(folder / "text", [f"the {a} sees the {b} ." for a in WORDS for b in WORDS])
    with unchecked_shapes():
        result = call("train", "--text", text, "--model.kind=bigram", "--out", folder / "run", "--quiet")
    assert result.code == 0, result.err
    return folder / "run"


@pytest.fixture(scope="session")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny decoder-only Transformer of a running text of characters; its `text` is in the same folder."""
    return train_speaker(tmp_path_factory.mktemp("speaker"), CHARACTERS)
