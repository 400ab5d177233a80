"""Tests of `heed export --to bert` and `heed import`: masked language models to `transformers` and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from command import call
from toy import WORDS, unchecked_shapes, write_lines
from transformers import AutoTokenizer, BertForMaskedLM

from heed.data.batch import source_from_ids
from heed.run import Run

KEYS = (
    "--model.d_model=16", "--model.d_ff=32", "--model.num_heads=2", "--model.num_layers=2", "--model.norm=post",
    "--model.positions=learned", "--model.max_len=40", "--data.max_tokens=38", "--tokenizer.vocab_size=290",
    "--training.max_steps=3", "--training.precision=float32", "--quiet", "--force",
)  # fmt: skip


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model as BERT is, of byte-level subwords."""
    folder = tmp_path_factory.mktemp("bert")
    text = write_lines(folder / "text", [f"the {a} sees the {b} ." for a in WORDS for b in WORDS])
    with unchecked_shapes():
        result = call(
            "train", "--task", "masked-language-model", "--text", text, "--out", folder / "run", *KEYS,
            "--model.begin=true",
        )  # fmt: skip
    assert result.code == 0, result.err
    return folder / "run"


@torch.no_grad()
def test_an_exported_model_and_its_tokenizer_have_the_same_logits_in_transformers(ours: Path, tmp_path: Path) -> None:
    result = call("export", ours, "--to", "bert", "--out", tmp_path / "bert")
    assert result.code == 0, result.err
    theirs, tokenizer = (
        BertForMaskedLM.from_pretrained(tmp_path / "bert"),
        AutoTokenizer.from_pretrained(tmp_path / "bert"),
    )
    run = Run(ours)
    lines = ["the ba sees the ce .", "the di"]
    read = tokenizer(lines, padding=True, return_tensors="pt")
    source = source_from_ids(run.tokenizers["src"].encode(lines), 2, 0)
    assert read["input_ids"][:, 1:].equal(source.ids) and read["input_ids"][:, 0].tolist() == [1, 1]
    logits = theirs.eval()(read["input_ids"], attention_mask=read["attention_mask"]).logits[:, 1:]
    found = run.model.head.logits(run.model.read(source))
    torch.testing.assert_close(found[source.mask], logits[source.mask], rtol=1e-5, atol=1e-5)
    pair = tokenizer("the ba", "the ce", return_tensors="pt")
    assert pair["token_type_ids"][0].tolist() == sorted(pair["token_type_ids"][0].tolist())
    assert tokenizer.mask_token_id == run.tokenizers["src"].vocabulary.tag_ids["mask"]


def test_an_imported_model_is_the_exported_one(ours: Path, tmp_path: Path) -> None:
    assert call("export", ours, "--to", "bert", "--out", tmp_path / "bert").code == 0
    result = call("import", tmp_path / "bert", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    before, after = Run(ours), Run(tmp_path / "run")
    assert all(tensor.equal(after.weights()[name]) for name, tensor in before.weights().items())
    assert after.recipe.model == before.recipe.model
    line = "the <mask> sees the ce .\n"
    assert (
        call("predict", ours, "--top", "3", stdin=line).out
        == call("predict", tmp_path / "run", "--top", "3", stdin=line).out
    )


def test_what_bert_lacks_is_refused_with_the_reason(ours: Path, tmp_path: Path) -> None:
    text = ours.parent / "text"
    words = ("train", "--task", "masked-language-model", "--text", text, "--out", tmp_path / "run", *KEYS)
    assert call(*words, "--model.norm=pre").code == 0
    result = call("export", tmp_path / "run", "--to", "bert", "--out", tmp_path / "bert")
    assert result.code == 2 and "the model is not a BERT: model.norm = 'pre', not 'post'" in result.err


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new', but heed supports only"),
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("config.json", {"num_hidden_layers": 3}, "has no weight 'bert.encoder.layer.2."),
        ("config.json", {"vocab_size": 7}, "the model has 7 pieces, but its tokenizer has"),
        ("tokenizer.json", {"model": {"type": "WordPiece"}}, "is a WordPiece tokenizer, and heed has only bpe"),
    ],
)
def test_a_folder_that_heed_cannot_compute_is_refused(
    ours: Path, tmp_path: Path, file: str, changes: dict[str, object], message: str
) -> None:
    assert call("export", ours, "--to", "bert", "--out", tmp_path / "bert").code == 0
    path = tmp_path / "bert" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    result = call("import", tmp_path / "bert", "--out", tmp_path / "run")
    assert result.code == 65 and message in result.err
