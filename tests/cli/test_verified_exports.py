"""Tests that `heed export` compares what it has written with the other program, and refuses what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command import call
from toy import prepared, trainer_of, unchecked_shapes

from heed.core.errors import UsageError
from heed.export import formats, marian, verification
from heed.run import Run

pytest.importorskip("sentencepiece", reason="the package sentencepiece is not installed")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A post-norm Transformer with SentencePiece pieces that has learned something."""
    with unchecked_shapes():
        run = prepared(
            tmp_path_factory.mktemp("post"), model__norm="post", model__d_model=32, model__d_ff=64, model__dropout=0.0,
            tokenizer__kind="sentencepiece", tokenizer__vocab_size=300, training__max_steps=120,
            training__eval_every=60,
            training__lr=1e-2, training__average="none", training__label_smoothing=0.0, data__src_lang="aa",
            data__tgt_lang="bb", data__hold_out=40, decoding__length_norm="mean", decoding__length_penalty=1.5,
        )  # fmt: skip
        trainer_of(run).run()
    return run.folder


def findings_of(path: Path) -> dict[str, Any]:
    findings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return findings


@pytest.mark.parametrize(("to", "package"), [("marian", "transformers"), ("ctranslate2", "ctranslate2")])
def test_an_exported_translator_is_compared_with_the_other_program(
    trained: Path, tmp_path: Path, to: str, package: str
) -> None:
    pytest.importorskip(package, reason=f"the package {package} is not installed")
    result = call("export", trained, "--to", to, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["verified"] and findings["program"].startswith(package)
    assert findings["num_ended"] == findings["num_lines"] >= 30
    assert findings["equal_outputs"] == 1 and findings["largest_difference"] < 1e-4
    assert findings["bleu_here"] == findings["bleu_there"] > 20
    assert findings["signature"].startswith("nrefs:1|case:mixed")
    assert findings["search"] == "beam 2, log-probability divided by length^1.5"
    assert "verified with" in result.err and "100.0% of the outputs are equal" in result.err


def test_a_model_card_has_the_facts_and_says_what_to_fill_in(trained: Path, tmp_path: Path) -> None:
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage:\n- aa\n- bb\nlicense: other  # FILL IN\npipeline_tag: translation\n")
    for part in ("Transformer encoder-decoder (post-norm)", "train.aa", "SHA-256", "## Licence", "## Intended use",
                 "MarianMTModel.from_pretrained", "verified with transformers", "Unicode's form NFC"):  # fmt: skip
        assert part in card, part


def test_an_export_that_computes_otherwise_is_refused(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = marian.to_marian

    def wrong(model: Any, config: Any) -> dict[str, torch.Tensor]:
        tensors = right(model, config)
        tensors["model.decoder.layers.0.fc1.bias"] += 0.1
        return tensors

    monkeypatch.setattr(marian, "to_marian", wrong)
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 65 and "computes other probabilities" in result.err
    assert not (tmp_path / "out").exists()


def test_an_export_that_cuts_text_otherwise_is_refused(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.export.programs.Marian.read", lambda self, line: [7])
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 65 and "the tokenizer in transformers" in result.err
    assert not (tmp_path / "out").exists()


def test_an_export_that_searches_otherwise_is_refused(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.export.programs.Marian.translate", lambda self, lines: ["kan"] * len(lines))
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 65 and "of the outputs as heed does: 'kan' in place of" in result.err


def test_without_the_other_program_the_file_says_so(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "find_spec", lambda package: None)
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert not findings["verified"] and findings["reason"] == "not installed: transformers (pip install transformers)"
    assert "not verified: not installed: transformers" in result.err


def test_every_format_is_for_other_kinds_of_runs_refused_with_the_reason(bigram: Path, tmp_path: Path) -> None:
    for to in formats.FORMATS.keys() - {"arpa"}:
        with pytest.raises(UsageError, match=r"only|requires|cannot|is of kind"):
            formats.export(Run(bigram), tmp_path / to, to)
        assert not (tmp_path / to).exists()


def test_n_grams_are_compared_with_kenlm(bigram: Path, tmp_path: Path) -> None:
    result = call("export", bigram, "--to", "arpa", "--out", tmp_path / "bigram.arpa")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "bigram.arpa.verification.json")
    pytest.importorskip("kenlm", reason="the package kenlm is not installed: pip install kenlm")
    assert findings["verified"] and findings["largest_difference"] < 1e-4


def test_a_language_model_is_compared_with_transformers(speaker: Path, tmp_path: Path) -> None:
    result = call("export", speaker, "--to", "gpt2", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["verified"] and findings["largest_difference"] < 1e-4 and findings["num_tokens"] > 50
    assert findings["equal_outputs"] is None
