"""Tests that `heed export` compares what it has written with the other program, and refuses what differs."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from command import call
from toy import prepared, trainer_of, unchecked_shapes, with_weights

from heed.core.errors import UsageError
from heed.data.validation import VALID
from heed.decoding.scoring import score_rows
from heed.export import argos, formats, marian, onnx, verification
from heed.export.programs import Kenlm, OnnxRuntime, mean_search
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


ONNX = [
    {"model__norm": "post", "model__positions": "half_split", "model__activation": "gelu"},
    {"model__norm": "pre", "model__activation": "silu", "model__num_decoder_layers": 2, "model__output_bias": False},
    {"model__positions": "concatenated", "model__tie": "none", "tokenizer__joint": False},
    {"model__positions": "none", "model__num_encoder_layers": 0},
]


@pytest.mark.parametrize("changes", ONNX, ids=["post-norm", "pre-norm", "concatenated", "no positions"])
def test_onnx_graphs_compute_as_the_model(tmp_path: Path, changes: dict[str, Any]) -> None:
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
    run = with_weights(prepared(tmp_path, model__dropout=0.0, **changes))
    onnx.export_onnx(run, tmp_path / "onnx")
    program = OnnxRuntime(tmp_path / "onnx", run)
    source, target = [9, 30, 41], [12, 13, 20, 7]
    [expected] = score_rows(run.model, [target], run.device, [source])
    assert program.log_probs(source, target) == pytest.approx(list(expected.log_probs), abs=1e-4)
    padded = {"ids": np.array([[*source, 2, 0, 0]]), "mask": np.array([[True] * 4 + [False] * 2])}
    alone = {"ids": padded["ids"][:, :4], "mask": padded["mask"][:, :4]}
    for wide, narrow in zip(program._encoder.run(None, padded), program._encoder.run(None, alone), strict=True):
        np.testing.assert_allclose(wide[:, :, :, :4], narrow, atol=1e-5)


def test_a_translator_in_onnx_runtime_is_compared(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
    result = call("export", trained, "--to", "onnx", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["equal_outputs"] == 1 and findings["largest_difference"] < 1e-4
    assert findings["search"] == "greedy" and findings["bleu_there"] > 10
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"encoder.onnx", "decoder.onnx", "config.json", "source.spm", "vocab.json", "README.md"} <= names


def test_the_greedy_search_of_the_guide_translates_as_heed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
    run = with_weights(prepared(tmp_path, tokenizer__joint=True))
    onnx.export_onnx(run, tmp_path / "en-de-onnx")
    guide = (Path(__file__).resolve().parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
    program = guide.split("## ONNX")[1].split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program.replace("print(", "str("), names)
    lines = ["ba ce", "di fo gu"]
    expected = [text for text, _ in verification.outputs(run, lines, mean_search(1, 0.0))]
    assert [names["translate"](line)[:20] for line in lines] == [text[:20] for text in expected]


def test_what_is_not_written_as_onnx_is_refused_with_the_reason(
    bigram: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="only kind transformer"):
        onnx.export_onnx(Run(bigram), tmp_path / "onnx")
    run = with_weights(prepared(tmp_path, model__decoder_mixing="ssru"))
    with pytest.raises(UsageError, match="decoders with 'ssru'"):
        onnx.export_onnx(run, tmp_path / "onnx")
    monkeypatch.setattr(verification, "find_spec", lambda package: None)
    with pytest.raises(UsageError, match="--to onnx needs a package that is not installed: onnx"):
        formats.export(run, tmp_path / "onnx", "onnx")


def test_a_model_card_has_the_facts_and_says_what_to_fill_in(trained: Path, tmp_path: Path) -> None:
    result = call("export", trained, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlanguage:\n- "aa"\n- "bb"\nlicense: other  # FILL IN\npipeline_tag: translation\n')
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
    assert result.code == 65 and "computes different probabilities" in result.err
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
    assert result.code == 65 and "equal heed's; the first that differs is 'kan' instead of" in result.err


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
        with pytest.raises(UsageError, match=r"only|requires|cannot|is of kind|does not have models"):
            formats.export(Run(bigram), tmp_path / to, to)
        assert not (tmp_path / to).exists()


def test_a_model_that_reads_text_from_its_end_is_not_exported(bigram: Path, tmp_path: Path) -> None:
    text, out = bigram.parent / "text", tmp_path / "run"
    keys = ("--model.kind=bigram", "--data.backward=true", "--quiet")
    assert call("train", "--text", text, "--out", out, *keys).code == 0
    result = call("export", out, "--to", "arpa", "--out", tmp_path / "bigram.arpa")
    assert result.code == 2 and "reads text from its end (data.backward)" in result.err
    assert not (tmp_path / "bigram.arpa").exists()


def test_an_interrupted_export_leaves_the_earlier_file(
    bigram: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "bigram.arpa").write_text("before")
    monkeypatch.setattr(formats, "_findings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        formats.export(Run(bigram), tmp_path / "bigram.arpa", "arpa")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("number", [3, 200, 399, 1000])
def test_lines_are_evenly_spaced_in_the_validation_data(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "read_valid", lambda folder: [(at, at) for at in range(number)])
    run = SimpleNamespace(folder=tmp_path, files=SimpleNamespace(has=lambda name: True))
    rows, _ = verification.validation_rows(cast(Run, run))
    places = [int(row[0]) for row in rows]
    assert len(places) == min(number, 200) and places[0] == 0 and number - places[-1] <= number // 200 + 1
    assert len({after - before for before, after in pairwise(places)}) <= 2


def test_a_run_without_validation_data_is_compared_on_three_lines(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    (run / VALID).unlink()
    result = call("export", run, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert (findings["verified"], findings["num_lines"], findings["bleu_here"]) == (True, 3, None)


def test_validation_data_that_was_changed_is_refused(trained: Path, tmp_path: Path) -> None:
    """It counts neither as the run's own nor as none."""
    run = shutil.copytree(trained, tmp_path / "run")
    text = (run / VALID).read_bytes()
    (run / VALID).write_bytes(bytes([text[0] ^ 1]) + text[1:])
    result = call("export", run, "--to", "marian", "--out", tmp_path / "out")
    assert (result.code, "valid.jsonl" in result.err) == (65, True), result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["bigram.arpa", "bigram.arpa.zst"])
def test_n_grams_are_compared_with_kenlm(bigram: Path, tmp_path: Path, name: str) -> None:
    result = call("export", bigram, "--to", "arpa", "--out", tmp_path / name)
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / f"{name}.verification.json")
    pytest.importorskip("kenlm", reason="the package kenlm is not installed: pip install kenlm")
    assert findings["verified"] and findings["largest_difference"] < 1e-4


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_kenlm_reads_a_plain_copy_of_a_compressed_file(
    bigram: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plain.arpa", f"packed.arpa{suffix}"):
        assert call("export", bigram, "--to", "arpa", "--out", tmp_path / name).code == 0
    monkeypatch.setitem(sys.modules, "kenlm", SimpleNamespace(Model=lambda path: Path(path).read_bytes()))
    read = Kenlm(tmp_path / f"packed.arpa{suffix}", Run(bigram))._model
    assert read == (tmp_path / "plain.arpa").read_bytes()
    assert len((tmp_path / f"packed.arpa{suffix}").read_bytes()) < len(read)


def test_a_language_model_is_compared_with_transformers(speaker: Path, tmp_path: Path) -> None:
    result = call("export", speaker, "--to", "gpt2", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["verified"] and findings["largest_difference"] < 1e-4 and findings["num_tokens"] > 50
    assert findings["equal_outputs"] is None


def test_a_package_of_argos_is_compared_and_its_bias_chosen(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="the package ctranslate2 is not installed")
    result = call("export", trained, "--to", "argos", "--out", tmp_path / "aa_bb.argosmodel")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "aa_bb.argosmodel.verification.json")
    assert findings["equal_outputs"] >= 0.95 and findings["largest_difference"] < 1e-4
    assert findings["end_bias"] in argos.END_BIASES and findings["num_measured"] >= 15
    assert findings["bleu_there"] > findings["bleu_here"] - 5
    with ZipFile(tmp_path / "aa_bb.argosmodel") as archive:
        assert archive.testzip() is None and len(set(archive.namelist())) == len(archive.namelist())
        [name] = [name for name in archive.namelist() if name.endswith("README.md")]
        card = archive.read(name).decode("utf-8")
        assert json.loads(archive.read(name.replace("README.md", "metadata.json")))["from_code"] == "aa"
    for part in ('- "aa"\n- "bb"\n', "a package for Argos Translate", "train.aa", "SHA-256", "## Scores",
                 "nrefs:1\\|case:mixed", "## Intended use\n\nFILL IN", "## Licence\n\nFILL IN", "## Limits",
                 "package.install_from_path", "verified with the calls of Argos Translate",
                 f"on {findings['num_measured']} lines"):  # fmt: skip
        assert part in card, part


def test_the_code_of_argos_translates_with_a_package(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argos Translate's own package, tokenizer and search; only the splitting of sentences is replaced."""
    if find_spec("argostranslate") is None:
        pytest.skip("the package argostranslate is not installed")
    for name in ("stanza", "minisbd"):  # split sentences, and need models of their own
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(SBDetect=None, models=SimpleNamespace()))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    package = importlib.import_module("argostranslate.package")
    translate = importlib.import_module("argostranslate.translate")
    run = Run(trained)
    argos.export_argos(run, tmp_path / "aa_bb.argosmodel")
    argos.add_card(tmp_path / "aa_bb.argosmodel", "README.md", "A card.\n")
    package.install_from_path(tmp_path / "aa_bb.argosmodel")
    [installed] = package.get_installed_packages()
    assert (installed.from_code, installed.to_code) == ("aa", "bb")
    assert installed.get_readme() == "A card.\n"
    model = ctranslate2_translator(installed.package_path / "model")
    whole = SimpleNamespace(split_sentences=lambda text: [text])
    lines = [row[0] for row in verification.validation_rows(run)[0]]
    texts = [translate.apply_packaged_translation(installed, line, model, whole, 1)[0].value for line in lines]
    assert texts == argos.Argos(tmp_path / "aa_bb.argosmodel", run).translate(lines)
    here = [text for text, _ in verification.outputs(run, lines, mean_search(4, 0.2))]
    assert sum(map(str.__eq__, texts, here)) >= 0.95 * len(lines)


def ctranslate2_translator(folder: Path) -> Any:
    return importlib.import_module("ctranslate2").Translator(str(folder), device="cpu", compute_type="float32")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "one SentencePiece model for both sides. Train a run with --for argos"),
        ({"tokenizer__kind": "sentencepiece", "data__tag": "2bb"}, "has no tags before sources"),
        ({"tokenizer__kind": "sentencepiece"}, "does not know its languages"),
    ],
)
def test_what_a_package_cannot_hold_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    run = with_weights(prepared(tmp_path, tokenizer__joint=True, **changes))
    with pytest.raises(UsageError, match=message):
        argos.export_argos(run, tmp_path / "x.argosmodel")
