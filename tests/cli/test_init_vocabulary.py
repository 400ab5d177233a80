"""Tests of fine-tuning with a new vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command import call
from toy import TINY, flags, pairs, write_lines

from heed.models.vocabulary_change import spellings
from heed.run import Run
from heed.training.checkpoints import list_checkpoints, load_checkpoint

FEW = flags({**TINY, "training.max_steps": 1, "training.eval_every": 1, "data.hold_out": 8})
KEPT = [flag for flag in FEW if not flag.startswith(("--model.", "--tokenizer."))]


@pytest.fixture
def files(tmp_path: Path) -> tuple[object, ...]:
    """Another language pair, which shares some words."""
    lines = pairs(120, seed=9)
    src = write_lines(tmp_path / "new.aa", [f"{src} zebra" for src, _ in lines])
    tgt = write_lines(tmp_path / "new.bb", [f"{tgt} zebra zebu" for _, tgt in lines])
    return "--src", src, "--tgt", tgt


def test_the_first_weights_are_the_old_rows_of_each_piece(
    translator: Path, files: tuple[object, ...], tmp_path: Path
) -> None:
    words = ("train", *files, "--init", translator, "--init-vocabulary", "new", "--out", tmp_path / "run")
    result = call(*words, *KEPT, "--training.save_every=1", "--tokenizer.vocab_size=300")
    assert result.code == 0, result.err
    old, run = Run(translator), Run(tmp_path / "run")
    assert "zebra" in "".join(run.tokenizers["src"].vocabulary.pieces)
    assert run.tokenizers["src"].vocabulary.sha256 != old.tokenizers["src"].vocabulary.sha256
    kept = len({*old.tokenizers["src"].vocabulary.pieces} & {*run.tokenizers["src"].vocabulary.pieces})
    assert f"src: {kept:,} of {len(run.tokenizers['src'].vocabulary):,} pieces keep their weights" in result.err
    first = load_checkpoint(list_checkpoints(run.folder / "checkpoints")[0])
    assert first.progress.step == 0
    before, spelled = old.weights(), spellings(run.tokenizers["src"], old.tokenizers["src"])
    for name, tensor in first.weights.items():
        if tensor.shape == before[name].shape:
            assert torch.equal(tensor, before[name])
        else:
            expected = torch.stack([before[name][ids].mean(0) for ids in spelled])
            torch.testing.assert_close(tensor, expected)


def test_a_kept_vocabulary_is_the_default(translator: Path, files: tuple[object, ...], tmp_path: Path) -> None:
    result = call("train", *files, "--init", translator, "--out", tmp_path / "run", *KEPT)
    assert result.code == 0, result.err
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (translator / "tokenizer.json").read_bytes()
    assert "pieces keep their weights" not in result.err


def test_new_tags_need_a_new_vocabulary(translator: Path, files: tuple[object, ...], tmp_path: Path) -> None:
    words = ("train", *files, "--init", translator, "--tag", "2cc", *KEPT, "--out")
    result = call(*words, tmp_path / "a")
    assert result.code == 2
    assert "does not have the tag 2cc (it has none)" in result.err
    assert not (tmp_path / "a").exists()
    result = call(*words, tmp_path / "b", "--init-vocabulary", "new", "--tokenizer.vocab_size=300")
    assert result.code == 0, result.err
    assert call("translate", tmp_path / "b", stdin="ba\n").code == 0


def test_it_requires_init(translator: Path, files: tuple[object, ...], tmp_path: Path) -> None:
    for more in ((), ("--init", translator, "--tokenizer-of", translator)):
        result = call("train", *files, "--init-vocabulary", "new", *more, "--out", tmp_path / "run")
        assert result.code == 2
        assert "--init-vocabulary new needs --init RUN" in result.err
