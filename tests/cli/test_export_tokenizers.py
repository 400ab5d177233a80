"""Tests of exported translators whose tokenizers, tags or texts the other program does not read as heed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import pairs, prepared, trainer_of, unchecked_shapes, with_weights, write_lines

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


SPELLING = {"ce": "</s>", "di": "<unk>"}


def spelling(folder: Path) -> None:
    """Toy pairs whose sources spell special pieces in most lines."""
    write_lines(folder / "train.aa", [" ".join(SPELLING.get(w, w) for w in src.split()) for src, _ in pairs()])
    write_lines(folder / "train.bb", [tgt for _, tgt in pairs()])


@pytest.mark.parametrize(
    ("kind", "tag", "is_text"),
    [("sentencepiece", "", True), ("sentencepiece", "2bb", True), ("bpe", "", True), ("bpe", "2bb", False)],
)
def test_text_that_spells_a_special_piece_is_exported(tmp_path: Path, kind: str, tag: str, is_text: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")
    spelling(tmp_path)
    keys = {"tokenizer__kind": kind, "data__tag": tag, "data__hold_out": 20}
    run = with_weights(prepared(tmp_path, **POST, **keys))
    result = call("export", run.folder, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sacremoses is recommended
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = run.tokenizers["src"].encode(["ba </s> fo <unk>"])[0]
    assert (tokenizer("ba </s> fo <unk>")["input_ids"] == [*ids, 2]) == is_text
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert (findings["num_spelling"] == 0) == is_text == ("spell a special piece" not in card)
    assert findings["num_spelling"] < findings["num_lines"]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_bert_whose_text_spells_a_special_piece_is_exported(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("transformers", reason="the package transformers is not installed")
    mask = "[MASK]" if kind == "wordpiece" else "<mask>"
    write_lines(tmp_path / "text", [src.replace("ce", mask) for src, _ in pairs()])
    keys = (
        "model.norm=post", "model.positions=learned", "model.embedding_norm=true", "model.scale_embeddings=false",
        "model.num_segments=2", "model.activation=gelu", "head.activation=gelu", "model.norm_epsilon=1e-5",
        "head.norm_epsilon=1e-5", "model.d_model=32", "model.d_ff=64", "model.num_heads=2", "training.max_steps=2",
        f"tokenizer.kind={kind}", "tokenizer.vocab_size=300", "data.hold_out=20",
    )  # fmt: skip
    flags = ("--task", "masked-language-model", "--text", tmp_path / "text", "--force", "--quiet")
    trained = call("train", *flags, *(f"--{key}" for key in keys), "--out", tmp_path / "run")
    assert trained.code == 0, trained.err
    result = call("export", tmp_path / "run", "--to", "bert", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert 0 < findings["num_spelling"] < findings["num_lines"]
    assert "lines spell a special piece" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_underscores_are_compared_as_argos_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2", reason="the package ctranslate2 is not installed")
    monkeypatch.setattr("heed.export.argos.END_BIASES", (0.0,))
    write_lines(tmp_path / "train.aa", [src for src, _ in pairs()])
    write_lines(tmp_path / "train.bb", [tgt.replace("a", "_") for _, tgt in pairs()])
    with unchecked_shapes():
        run = prepared(
            tmp_path, **POST, model__d_model=32, model__d_ff=64, model__dropout=0.0, tokenizer__kind="sentencepiece",
            tokenizer__joint=True, tokenizer__vocab_size=300, training__max_steps=60, training__eval_every=60,
            training__lr=1e-2, training__average="none", training__label_smoothing=0.0, data__hold_out=40,
        )  # fmt: skip
        trainer_of(run).run()
    result = call("export", run.folder, "--to", "argos", "--out", tmp_path / "x.argosmodel")
    assert result.code == 0, result.err
    findings = findings_of(tmp_path / "x.argosmodel.verification.json")
    assert findings["num_ended"] > 10 and findings["equal_outputs"] >= 0.95
    assert any("_" in text for text, _ in verification.outputs(run, ["ba ce", "di fo"], run.recipe.decoding))
