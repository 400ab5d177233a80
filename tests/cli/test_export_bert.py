"""Tests of `heed export --to bert` and `heed import`: masked language models to `transformers` and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from command import call
from safetensors.torch import load_file, save_file
from toy import WORDS, unchecked_shapes, write_lines
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizer

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
    kept = after.weights()
    assert all(tensor.equal(kept[name]) for name, tensor in before.weights().items())
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
        ("config.json", {"heed": {"max_tokens": 0}}, "the value of 'heed' is invalid"),
        ("config.json", {"num_hidden_layers": 3}, "has no weight 'bert.encoder.layer.2."),
        ("config.json", {"vocab_size": 7}, "the model has 7 pieces, but its tokenizer has"),
        ("tokenizer.json", {"model": {"type": "WordPiece"}}, "tokenizer.json: the tokenizers library cannot read it"),
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


PIECES = [
    "[PAD]",
    "[unused0]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "ba",
    "##s",
    "see",
    "ce",
    ".",
    "re",
    "##sume",
]
SIZES = {
    "vocab_size": len(PIECES), "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2,
    "num_hidden_layers": 2, "max_position_embeddings": 40,
}  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
@torch.no_grad()
def test_a_bert_with_wordpiece_reads_raw_text_as_transformers_does(as_json: bool, tmp_path: Path) -> None:
    """Its logits are equal piece by piece, although heed numbers the pieces in another order."""
    torch.manual_seed(3)
    theirs = BertForMaskedLM(BertConfig(**SIZES)).eval()
    theirs.save_pretrained(tmp_path / "bert")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    tokenizer = BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=True)
    if as_json:
        tokenizer.save_pretrained(tmp_path / "bert")
    else:
        (tmp_path / "vocab.txt").rename(tmp_path / "bert" / "vocab.txt")
    result = call("import", tmp_path / "bert", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    run = Run(tmp_path / "run")
    lines = ["The Bas see\x00 ce.", "Résumé, the"]
    source = source_from_ids(run.tokenizers["src"].encode([*map(run.recipe.data.normaliser.apply, lines)]), 2, 0)
    read = tokenizer(lines, padding=True, return_tensors="pt")
    logits = theirs(**read).logits[:, 1:]
    found = run.model.head.logits(run.model.read(source))
    names = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", *run.tokenizers["src"].vocabulary.text_pieces, "[MASK]")
    ours_in_theirs = [names.index(piece) for piece in PIECES]
    torch.testing.assert_close(found[source.mask][:, ours_in_theirs], logits[source.mask], rtol=1e-5, atol=1e-5)
    assert run.recipe.tokenizer.kind == "wordpiece" and run.recipe.tokenizer.uncased


def test_the_first_names_of_layer_normalisation_are_read(ours: Path, tmp_path: Path) -> None:
    assert call("export", ours, "--to", "bert", "--out", tmp_path / "bert").code == 0
    path = tmp_path / "bert" / "model.safetensors"
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in load_file(path).items()
    }
    assert sum(name.endswith(("gamma", "beta")) for name in older) == 12
    save_file(older, path)
    result = call("import", tmp_path / "bert", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    weights = Run(ours).weights()
    assert all(weight.equal(weights[name]) for name, weight in Run(tmp_path / "run").weights().items())


def test_a_model_of_wordpieces_is_exported_with_its_vocabulary_and_imported_as_it_was(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", [f"the {a} sees the {b} ." for a in WORDS for b in WORDS])
    words = ("--task", "masked-language-model", "--text", text, "--tokenizer.kind=wordpiece", "--model.begin=true")
    with unchecked_shapes():
        result = call("train", *words, "--out", tmp_path / "ours", *KEYS, "--tokenizer.vocab_size=60")
    assert result.code == 0, result.err
    for verb in (
        ("export", tmp_path / "ours", "--to", "bert", "--out", tmp_path / "bert"),
        ("import", tmp_path / "bert", "--out", tmp_path / "again"),
    ):
        result = call(*verb)
        assert result.code == 0, result.err
    before, after = Run(tmp_path / "ours"), Run(tmp_path / "again")
    kept = after.weights()
    assert all(tensor.equal(kept[name]) for name, tensor in before.weights().items())
    assert after.tokenizers["src"].to_json() == before.tokenizers["src"].to_json()
    assert after.recipe.data.normaliser == before.recipe.data.normaliser
    ids = AutoTokenizer.from_pretrained(tmp_path / "bert")("the ba sees", add_special_tokens=False)["input_ids"]
    assert [ids] == before.tokenizers["src"].encode(["the ba sees"])
    line = "the <mask> sees .\n"
    assert call("predict", tmp_path / "ours", stdin=line).out == call("predict", tmp_path / "again", stdin=line).out


def test_a_vocabulary_without_berts_pieces_is_refused(ours: Path, tmp_path: Path) -> None:
    assert call("export", ours, "--to", "bert", "--out", tmp_path / "bert").code == 0
    (tmp_path / "bert" / "tokenizer.json").unlink()
    (tmp_path / "bert" / "vocab.txt").write_text("[PAD]\n[UNK]\nthe\n")
    result = call("import", tmp_path / "bert", "--out", tmp_path / "run")
    assert result.code == 65 and "vocab.txt: its vocabulary has no [CLS]" in result.err
