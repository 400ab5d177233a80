"""Tests of exported translators whose tokenizers, tags or texts the other program does not read as heed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import prepared, with_weights

from heed.core.errors import UsageError
from heed.export import verification
from heed.export.argos import export_argos
from heed.run import Run

POST = {"model__norm": "post", "data__src_lang": "aa", "data__tgt_lang": "bb"}


def findings_of(path: Path) -> dict[str, Any]:
    findings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return findings


@pytest.mark.parametrize("kind", ["word", "character", "byte"])
def test_a_marian_without_a_tokenizer_is_compared_by_ids(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("transformers", reason="the package transformers is not installed")
    run = with_weights(prepared(tmp_path, tokenizer__kind=kind, data__hold_out=20, **POST))
    result = call("export", run.folder, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert f"without a tokenizer, as only heed has the kind '{kind}': use token ids" in result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["verified"] and findings["largest_difference"] < 1e-4 and findings["search"]
    assert findings["equal_outputs"] in (None, 1.0)
    assert "AutoTokenizer" not in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def tagged(folder: Path, **changes: Any) -> Path:
    """A run of two parts, each with a tag, and no default."""
    parts = [{"src": "train.aa", "tgt": "train.aa", "tag": "2aa", "tgt_lang": "aa"}]
    keys = {**POST, "data__tag": "2bb", "data__parts": parts, "data__hold_out": 20, **changes}
    return with_weights(prepared(folder, **keys)).folder


@pytest.mark.parametrize("default", ["", "2aa"])
@pytest.mark.parametrize(
    ("to", "package"), [("marian", "transformers"), ("ctranslate2", "ctranslate2"), ("onnx", "onnxruntime")]
)
def test_a_run_with_several_tags_is_compared_with_that_of_its_validation_data(
    tmp_path: Path, to: str, package: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=f"the package {package} is not installed")
    monkeypatch.chdir(tmp_path)
    run, read = tagged(tmp_path, data__default_tag=default), []
    encoded = verification._encoded
    monkeypatch.setattr(verification, "_encoded", lambda *of: read.append(encoded(*of)) or read[-1])
    result = call("export", run, "--to", to, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert findings_of(tmp_path / "out" / verification.FILE)["verified"]
    tag_ids = Run(run).tokenizers["src"].vocabulary.tag_ids
    assert {source[0] for source, _ in read} == {tag_ids["2bb"]}


def test_a_package_of_argos_is_not_made_of_a_run_with_several_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tagged(tmp_path, tokenizer__kind="sentencepiece", tokenizer__joint=True)
    result = call("export", run, "--to", "argos", "--out", tmp_path / "x.argosmodel")
    assert (result.code, "--tag" in result.err) == (2, False), result.err
    assert "Train a run for one language without a tag" in result.err
    with pytest.raises(UsageError, match="Train a run for one language"):
        export_argos(Run(run), tmp_path / "x.argosmodel")


@pytest.mark.parametrize(
    ("to", "kind", "use"),
    [
        ("marian", "sentencepiece", 'tokenizer([">>2bb<<A sentence."]'),
        ("marian", "bpe", 'tokenizer(["<2bb> A sentence."]'),
        ("marian", "word", ""),
        ("ctranslate2", "sentencepiece", ""),
    ],
)
def test_the_card_of_a_run_with_tags_names_them(
    tmp_path: Path, to: str, kind: str, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verification, "find_spec", lambda package: None)  # the comparison is not of interest
    run = tagged(tmp_path, tokenizer__kind=kind)
    result = call("export", run, "--to", to, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    ids = Run(run).tokenizers["src"].vocabulary.tag_ids
    text = {"sentencepiece": "Write `>>2bb<<` (into bb) or `>>2aa<<` (into aa) before each source.",
            "bpe": "Write `<2bb>` (into bb) or `<2aa>` (into aa) before each source."}  # fmt: skip
    pieces = f"Put the piece `<2bb>` (id {ids['2bb']}, into bb) or `<2aa>` (id {ids['2aa']}, into aa) before the pieces"
    assert use in card and (text[kind] if use else pieces) in card
