"""Tests of `heed export` and `heed import`: GPT-2 to `transformers` and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command import call
from safetensors.torch import load_file, save_file
from tiny_speakers import LINES, train_speaker
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from heed.run import Run

CROOKED = {"text_as": "lines", "line_end": "newline", "keep_blank_lines": True, "context": 9}
PIECES = {"data.text_as": "windows", "data.line_end": "newline", "tokenizer.kind": "bpe", "tokenizer.vocab_size": 290}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GPT of byte-level pieces."""
    return train_speaker(tmp_path_factory.mktemp("pieces"), PIECES, num_steps=10)


def logits_of(run: Path, ids: list[int]) -> torch.Tensor:
    """The logits of a run's model after these ids."""
    model: Any = Run(run).model
    with torch.inference_mode():
        return model.head.logits(model.advance(torch.tensor([ids]), model.start(None, 1))[0])


def test_an_exported_model_has_the_same_logits_in_transformers(ours: Path, tmp_path: Path) -> None:
    result = call("export", ours, "--to", "gpt2", "--out", tmp_path / "gpt2")
    assert result.code == 0, result.err
    theirs, tokenizer = (
        GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2"),
        AutoTokenizer.from_pretrained(tmp_path / "gpt2"),
    )
    text = "the ba sees ä, <unk> and </s>"
    ids = Run(ours).tokenizers["tgt"].encode([text])[0]
    assert tokenizer.encode(text) == ids, "text that spells a special piece stays text"
    with torch.inference_mode():
        expected = theirs.eval()(input_ids=torch.tensor([ids])).logits
    torch.testing.assert_close(logits_of(ours, ids), expected, rtol=1e-5, atol=1e-5)


def test_export_and_import_give_the_same_weights_bit_for_bit(ours: Path, tmp_path: Path) -> None:
    call("export", ours, "--out", tmp_path / "gpt2")
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "back")
    assert result.code == 0, result.err
    before, after = Run(ours).weights(), Run(tmp_path / "back").weights()
    assert before.keys() == after.keys()
    assert all(weight.equal(after[name]) for name, weight in before.items())
    assert (tmp_path / "back" / "tokenizer.json").read_bytes() == (ours / "tokenizer.json").read_bytes()
    flags = ("--prompt", "the", "--max-tokens", "12")
    assert call("generate", tmp_path / "back", *flags).stdout == call("generate", ours, *flags).stdout


def test_an_imported_model_reads_text_as_the_exported_one(tmp_path: Path) -> None:
    ended = {**PIECES, "data.line_end": "eos", "data.normaliser.collapse_spaces": True, "training.context": 9}
    ours = train_speaker(tmp_path, ended, num_steps=10)
    call("export", ours, "--out", tmp_path / "gpt2")
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "back")
    assert result.code == 0, result.err
    assert Run(tmp_path / "back").model.embedding.equal(Run(ours).model.embedding)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2").eval()
    ids = [1, *(id for row in Run(ours).tokenizers["tgt"].encode(LINES[:2]) for id in (*row, 2))][:24]
    with torch.inference_mode():
        expected = theirs(input_ids=torch.tensor([ids])).logits
    assert 2 in ids[:-1] and theirs.generation_config.eos_token_id is None
    torch.testing.assert_close(logits_of(ours, [1 if id == 2 else id for id in ids]), expected, rtol=1e-5, atol=1e-5)
    text = "\n".join(LINES[:5]) + "\n"
    assert call("score", tmp_path / "back", stdin=text).stdout == call("score", ours, stdin=text).stdout
    flags = ("--prompt", "the", "--max-tokens", "30")
    assert call("generate", tmp_path / "back", *flags).stdout == call("generate", ours, *flags).stdout


def test_a_gpt2_with_an_output_weight_of_its_own_is_an_error(ours: Path, tmp_path: Path) -> None:
    call("export", ours, "--out", tmp_path / "gpt2")
    path, weights = tmp_path / "gpt2" / "config.json", load_file(tmp_path / "gpt2" / "model.safetensors")
    path.write_text(json.dumps({**json.loads(path.read_text()), "tie_word_embeddings": False}))
    for output in ({}, {"lm_head.weight": torch.randn(290, 32)}, {"lm_head.weight": torch.randn(1, 32)}):
        save_file({**weights, **output}, tmp_path / "gpt2" / "model.safetensors", {"format": "pt"})
        result = call("import", tmp_path / "gpt2", "--out", tmp_path / "back")
        assert result.code == 65 and "is not lm_head.weight with the end of sentence" in result.err


@pytest.mark.parametrize("reading", [3, {"text_as": "sideways"}, {"context": 9}, {"dir": "/"}, CROOKED])
def test_an_invalid_description_of_reading_is_an_error(ours: Path, tmp_path: Path, reading: object) -> None:
    call("export", ours, "--out", tmp_path / "gpt2")
    config = json.loads((tmp_path / "gpt2" / "config.json").read_text())
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps({**config, "heed": reading}))
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "back")
    assert result.code == 65
    assert "the value of 'heed' is invalid" in result.err


def foreign_gpt2(folder: Path, **changes: object) -> GPT2LMHeadModel:
    """A GPT-2 as published: `<|endoftext|>` after the other pieces, random weights."""
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    library.train_from_iterator(LINES, trainer)
    library.add_special_tokens(["<|endoftext|>"])
    size, end = library.get_vocab_size(), library.token_to_id("<|endoftext|>")
    assert end == size - 1
    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=size, n_positions=32, n_embd=24, n_layer=2, n_head=3, bos_token_id=end, eos_token_id=end
    )
    model = GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    library.save(str(folder / "tokenizer.json"))
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**written, **changes}), encoding="utf-8")
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}},
    ],
    ids=["lower case", "a space before"],
)
def test_a_gpt2_that_reads_text_differently_is_an_error(tmp_path: Path, changes: dict[str, object]) -> None:
    foreign_gpt2(tmp_path / "gpt2")
    path = tmp_path / "gpt2" / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "run")
    assert (result.code, "normalises or splits text differently" in result.err) == (65, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab": {"more": 5000}}, "the model has 281 pieces, but its tokenizer has the id 5,000"),
        ({"merges": ["zz qq"]}, "the tokenizers library cannot read it"),
    ],
    ids=["of another model", "damaged"],
)
def test_a_gpt2_with_another_tokenizer_is_an_error(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    foreign_gpt2(tmp_path / "gpt2")
    path = tmp_path / "gpt2" / "tokenizer.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["model"]["vocab"] |= changes.get("vocab", {})
    document["model"]["merges"] = changes.get("merges", document["model"]["merges"])
    path.write_text(json.dumps(document), encoding="utf-8")
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "run")
    assert (result.code, message in result.err) == (65, True), result.err


def test_a_foreign_gpt2_has_the_same_probabilities_here(tmp_path: Path) -> None:
    theirs = foreign_gpt2(tmp_path / "gpt2")
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    library = Tokenizer.from_file(str(tmp_path / "gpt2" / "tokenizer.json"))
    end, text = library.token_to_id("<|endoftext|>"), "the ba sees\nthe ä"
    ids = Run(tmp_path / "run").tokenizers["tgt"].encode([text])[0]
    there = library.encode(text).ids
    assert len(ids) == len(there)
    with torch.inference_mode():
        expected = theirs(input_ids=torch.tensor([[end, *there]])).logits.softmax(-1)[0]
    found = logits_of(tmp_path / "run", [1, *ids]).softmax(-1)[0]
    assert found[:, [0, 1, 3]].max() == 0, "padding, begin of sentence and unknown are never predicted"
    pieces = Run(tmp_path / "run").tokenizers["tgt"].vocabulary
    order = [library.token_to_id(pieces.piece(id)) for id in range(4, len(pieces))]
    torch.testing.assert_close(found[:, 4:], expected[:, order], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found[:, 2], expected[:, end], rtol=1e-4, atol=1e-6)
    generated = call("generate", tmp_path / "run", "--prompt", "the", "--max-tokens", "5")
    assert generated.code == 0, generated.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_function": "relu"}, "activation_function is 'relu'"),
        ({"model_type": "llama"}, "model_type is 'llama'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        ({"n_layer": 3}, "it is not the model that config.json describes"),
        ({"n_embd": 30}, "has the shape"),
        ({"n_embd": 3000, "n_head": 10}, "has the shape"),
        ({"n_embd": 10**9, "n_head": 10}, "no machine can hold"),
        ({"n_head": 5}, "num_heads must divide d_model"),
        ({"n_positions": None}, "does not describe a GPT-2"),
    ],
)
def test_a_gpt2_that_heed_cannot_compute_exactly_is_an_error(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    foreign_gpt2(tmp_path / "gpt2", **changes)
    result = call("import", tmp_path / "gpt2", "--out", tmp_path / "run")
    assert result.code == 65, result.err
    assert message in result.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_not_a_gpt2_is_an_error(bigram: Path, translator: Path, speaker: Path, tmp_path: Path) -> None:
    counted = call("export", bigram, "--out", tmp_path / "a")
    assert counted.code == 2
    assert "is of kind bigram" in counted.err
    assert call("export", translator, "--out", tmp_path / "b").code == 2
    (tmp_path / "rotary").mkdir()
    rotary = train_speaker(tmp_path / "rotary", PIECES | {"model.attention": "rotary"}, num_steps=1)
    refused = call("export", rotary, "--to", "gpt2", "--out", tmp_path / "e")
    assert (refused.code, "the model has the attention 'rotary'" in refused.err) == (2, True), refused.err
    missing = call("import", tmp_path, "--out", tmp_path / "c")
    assert missing.code == 66
    characters = call("export", speaker, "--out", tmp_path / "d")
    assert characters.code == 0
    assert "only heed has the kind 'character'" in characters.err
    again = call("export", speaker, "--out", tmp_path / "d")
    assert again.code == 74, "nothing is written over"
