"""Tests of `heed export --to marian` and `heed import`: translators to `transformers` and back, and OPUS-MT's."""

from __future__ import annotations

import json
import shutil
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from serving import serving
from toy import WORDS, pairs, prepared, with_weights, write_pairs
from transformers import AutoTokenizer, MarianConfig, MarianMTModel

import heed
from heed.data.batch import source_from_ids
from heed.decoding.options import SearchOptions
from heed.export.marian import export_marian, learning_rate
from heed.run import Run

sentencepiece = pytest.importorskip("sentencepiece", reason="the package sentencepiece is not installed")

POST = {"model__norm": "post", "model__num_encoder_layers": 2, "model__num_decoder_layers": 2}
LINES = ["ba ce di", "ce", "di fo gu ba lu", "pi no me ☃"]


def logits_here(run: Run, sources: list[list[int]], target: list[int]) -> torch.Tensor:
    """The logits of a run's model after begin of sentence and each of these ids, for each source."""
    model: Any = run.model
    with torch.inference_mode():
        state = model.start(source_from_ids(sources, 2, 0), 1)
        features, _ = model.advance(torch.tensor([[1, *target]] * len(sources)), state)
        return model.head.logits(features)


def tokenizer_of(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sacremoses is recommended for text that is cleaned beforehand
        return AutoTokenizer.from_pretrained(folder)


def spm(lines: list[str], size: int, **keys: Any) -> bytes:
    """A SentencePiece model as those of OPUS-MT: pieces of characters, text normalised by NFKC."""
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **keys,
    )
    return model.getvalue()


def opus_mt(folder: Path, model_type: str = "unigram", **changes: Any) -> MarianMTModel:
    """A folder as OPUS-MT's, with random weights: pieces of both sides in one vocabulary, padding last."""
    folder.mkdir()
    sides = list(zip(*pairs(), strict=True))
    models = [spm(list(side), 60, model_type=model_type) for side in sides]
    pieces = {"</s>": 0, "<unk>": 1}
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
        reader = sentencepiece.SentencePieceProcessor(model_proto=model)
        for id in range(reader.get_piece_size()):
            if not reader.is_control(id):
                pieces.setdefault(reader.id_to_piece(id), len(pieces))
    for piece in (">>de<<", ">>ca@valencia<<", "<pad>"):
        pieces[piece] = len(pieces)
    (folder / "vocab.json").write_text(json.dumps(pieces))
    options = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    torch.manual_seed(4)
    pad = len(pieces) - 1
    keys = {
        "vocab_size": len(pieces), "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "pad_token_id": pad,
        "decoder_start_token_id": pad, "eos_token_id": 0, "scale_embedding": True, "activation_function": "swish",
        "max_position_embeddings": 64, "forced_eos_token_id": None, **changes,
    }  # fmt: skip
    model = MarianMTModel(MarianConfig(**keys)).eval()
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.model.shared.weight.data[pad] = 0
    model.final_logits_bias.data += torch.randn_like(model.final_logits_bias)
    model.generation_config.update(num_beams=3, length_penalty=0.8, early_stopping=True, bad_words_ids=[[pad], [1]])
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder as OPUS-MT's, and the run that heed makes of it."""
    folder = tmp_path_factory.mktemp("opus")
    opus_mt(folder / "opus-mt")
    result = call("import", folder / "opus-mt", "--out", folder / "run")
    assert result.code == 0, result.err
    return folder / "opus-mt", folder / "run"


@pytest.mark.parametrize(("width", "rate"), [(16, 4e-3), (128, 4e-3), (256, 2e-3), (512, 2e-4), (1024, 2e-4)])
def test_a_narrow_imported_model_has_heeds_own_rate_and_a_wide_one_the_usual(width: int, rate: float) -> None:
    assert learning_rate(width) == rate


def test_a_string_is_one_text_for_all_methods_that_take_several(imported: tuple[Path, Path]) -> None:
    loaded = heed.load(imported[1])
    [expected], [attention] = loaded.token_vectors(["ba ce"]), loaded.self_attention(["ba ce"])
    assert [np.array_equal(each.vectors, expected.vectors) for each in loaded.token_vectors("ba ce")] == [True]
    assert [np.array_equal(each.weights, attention.weights) for each in loaded.self_attention("ba ce")] == [True]
    assert np.array_equal(loaded.word_vectors("ba"), loaded.word_vectors(["ba"]))
    assert loaded.predict("ba ce") == loaded.predict(["ba ce"])
    assert [each.log_prob for each in loaded.score("kan", "ba")] == [loaded.score(["kan"], ["ba"])[0].log_prob]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_an_imported_model_cuts_and_computes_as_in_transformers(tmp_path: Path, model_type: str) -> None:
    theirs = opus_mt(tmp_path / "opus-mt", model_type)
    assert call("import", tmp_path / "opus-mt", "--out", tmp_path / "run").code == 0
    run, tokenizer = Run(tmp_path / "run"), tokenizer_of(tmp_path / "opus-mt")
    table = tokenizer.get_vocab()
    src, tgt = run.tokenizers["src"], run.tokenizers["tgt"]
    odd = [*LINES, "  ba\tce  ", "ﬁ ½ ba", "", "not pur ..."]
    here = [[piece if piece in table else "<unk>" for piece in src.pieces(ids)] for ids in src.encode(odd)]
    unknown_too = [[piece if piece in table else "<unk>" for piece in tokenizer.tokenize(line)] for line in odd]
    assert here == unknown_too
    tokenizer._switch_to_target_mode()
    for line, ids in zip(odd, tgt.encode(odd), strict=True):
        assert tgt.pieces(ids) == [piece if piece in table else "<unk>" for piece in tokenizer.tokenize(line)]
    order = [table["<pad>"], table["<pad>"], table["</s>"], table["<unk>"]]
    order += [table[piece] for piece in src.vocabulary.text_pieces] + [table[">>de<<"]]
    assert src.vocabulary.tags == ("de",) and tgt.vocabulary.pieces == src.vocabulary.pieces
    sources, target = src.encode(LINES), tgt.encode(["kan ler mis"])[0]
    there = [torch.tensor([[*(order[id] for id in ids), 0]]) for ids in sources]
    begun = torch.tensor([[table["<pad>"], *(order[id] for id in target)]])
    for source, ids in zip(there, sources, strict=True):
        with torch.inference_mode():
            expected = theirs(input_ids=source, decoder_input_ids=begun).logits[0].log_softmax(-1)[:, order]
        found = logits_here(run, [ids], target)[0].log_softmax(-1)
        assert found[:, 1].max() < -9000, "begin of sentence is never predicted"
        torch.testing.assert_close(found[:, [0, *range(2, len(order))]], expected[:, [0, *range(2, len(order))]])


@pytest.mark.parametrize("num_beams", [1, 3])
def test_an_imported_model_translates_as_in_transformers(imported: tuple[Path, Path], num_beams: int) -> None:
    folder, run = imported
    theirs, tokenizer = MarianMTModel.from_pretrained(folder).eval(), tokenizer_of(folder)
    lines = [src for src, _ in pairs(30, seed=5)]
    read = tokenizer(lines, padding=True, return_tensors="pt")
    with torch.inference_mode():
        written = theirs.generate(**read, num_beams=num_beams, max_new_tokens=12)
    expected = [tokenizer.decode(ids, skip_special_tokens=True) for ids in written]
    predictor = heed.load(run, engine="torch")
    assert (predictor.decoding.beam_size, predictor.decoding.length_penalty) == (3, 0.8)
    options = predictor.decoding.model_copy(
        update={"beam_size": num_beams, "max_tokens": 12, "guard": False, "max_ratio": 100.0}
    )
    found = predictor.translate(lines, options)
    equal = sum(map(str.__eq__, found, expected))
    assert equal == len(lines), [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]][:3]


def test_an_imported_model_is_served(imported: tuple[Path, Path]) -> None:
    loaded = heed.load(imported[1], tag="de")
    with serving([loaded]) as live:
        answer = live.post("/translate", {"q": "ba ce", "source": "auto", "target": loaded.languages[1] or "tgt"})
    assert (answer.status, answer.json["translatedText"]) == (200, loaded.translate("ba ce"))


def test_an_imported_model_is_trained_further_translated_and_inspected(
    imported: tuple[Path, Path], tmp_path: Path
) -> None:
    src, tgt = write_pairs(tmp_path)
    flags = ("--src", src, "--tgt", tgt, "--data.hold_out=8", "--training.max_steps=4", "--quiet", "--force")
    result = call("train", "--init", imported[1], "--out", tmp_path / "tuned", *flags)
    assert result.code == 0, result.err
    tuned, base = Run(tmp_path / "tuned"), Run(imported[1])
    assert tuned.recipe.training.lr == 1e-3
    assert tuned.tokenizers["tgt"].to_json() == base.tokenizers["tgt"].to_json()
    assert call("translate", tmp_path / "tuned", "--tag", "de", stdin="ba ce\n").code == 0
    assert call("inspect", tmp_path / "tuned", "--src", "ba ce", "--out", tmp_path / "page.html").code == 0
    export_marian(tuned, tmp_path / "marian")
    theirs = MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    ids, target = tuned.tokenizers["src"].encode(["ba ce"])[0], tuned.tokenizers["tgt"].encode(["kan"])[0]
    with torch.inference_mode():
        expected = theirs(torch.tensor([[*ids, 2]]), decoder_input_ids=torch.tensor([[1, *target]])).logits
    torch.testing.assert_close(logits_here(tuned, [ids], target), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"model__positions": "half_split", "tokenizer__joint": True, "tokenizer__kind": "sentencepiece"},
        {"model__positions": "interleaved", "tokenizer__joint": True, "model__activation": "silu"},
        {"model__positions": "interleaved", "tokenizer__joint": False, "model__tie": "target"},
        {"tokenizer__joint": False, "model__tie": "none", "tokenizer__kind": "sentencepiece"},
        {"model__positions": "half_split", "model__tie": "none", "model__output_bias": False, "data__tag": "2bb"},
    ],
    ids=["sentencepiece", "interleaved", "a vocabulary each", "nothing shared", "a tag"],
)
def test_an_exported_model_and_its_tokenizers_equal_heeds_in_transformers(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    languages = {"data__src_lang": "aa", "data__tgt_lang": "bb"}
    run = with_weights(prepared(tmp_path, **{**POST, **languages, **changes}))
    export_marian(run, tmp_path / "marian")
    theirs, tokenizer = MarianMTModel.from_pretrained(tmp_path / "marian").eval(), tokenizer_of(tmp_path / "marian")
    src, tgt = run.tokenizers["src"], run.tokenizers["tgt"]
    lines = [*LINES, *WORDS, "fo  ĝu", "</ s>"]
    assert [tokenizer(line)["input_ids"] for line in lines] == [[*ids, 2] for ids in src.encode(lines)]
    if "data__tag" in changes:
        assert tokenizer("<2bb> ba ce")["input_ids"] == [src.vocabulary.tag_ids["2bb"], *src.encode(["ba ce"])[0], 2]
    ids, target = src.encode(["ba ce di"])[0], tgt.encode(["kan ler"])[0]
    with torch.inference_mode():
        expected = theirs(torch.tensor([[*ids, 2]]), decoder_input_ids=torch.tensor([[1, *target]])).logits
    torch.testing.assert_close(logits_here(run, [ids], target), expected, rtol=1e-5, atol=1e-5)
    back = call("import", tmp_path / "marian", "--out", tmp_path / "back")
    assert back.code == 0, back.err
    again = Run(tmp_path / "back")
    assert again.tokenizers["tgt"].encode(lines) == tgt.encode(lines)
    torch.testing.assert_close(logits_here(again, [ids], target), expected, rtol=1e-5, atol=1e-5)
    if run.recipe.model.positions == "half_split":
        weights, kept = run.weights(), again.weights()
        assert all(tensor.equal(kept[name]) for name, tensor in weights.items())
        assert set(kept) - set(weights) <= {"head.bias"}
    assert again.recipe.data.normaliser == run.recipe.data.normaliser
    assert again.predictor.languages == run.predictor.languages == ("aa", "bb")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__norm": "pre"}, "the model is not a Marian: model.norm = 'pre', not 'post'"),
        ({"model__positions": "none"}, "model.positions = 'none', not 'interleaved' or 'half_split'"),
        ({"model__decoder_mixing": "ssru"}, "model.decoder_mixing = 'ssru', not 'self_attention'"),
        ({"model__kind": "rnn_attention"}, "only kind transformer can be a Marian"),
    ],
)
def test_what_marian_lacks_is_refused_with_the_reason(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    post = {} if "model__kind" in changes else POST
    run = with_weights(prepared(tmp_path, **{**post, **changes}))
    result = call("export", run.folder, "--to", "marian", "--out", tmp_path / "marian")
    assert (result.code, message in result.err) == (2, True), result.err


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"scale_embedding": False}, "scale_embedding is False, but heed supports only True"),
        ("config.json", {"normalize_before": True}, "normalize_before is True"),
        ("config.json", {"activation_function": "gelu_new"}, "activation_function is 'gelu_new'"),
        ("config.json", {"decoder_attention_heads": 4}, "decoder_attention_heads is 4, but heed supports only 2"),
        ("config.json", {"decoder_layers": 2}, "has no weight 'model.decoder.layers.1."),
        ("config.json", {"d_model": 18}, "has the shape"),
        ("config.json", {"pad_token_id": 9999}, "pad_token_id, eos_token_id, decoder_start_token_id or unk_token is"),
        ("config.json", {"heed": {"normaliser": 3}}, "the value of 'heed' is invalid"),
        ("vocab.json", {"more": 4000}, "the ids are not those of distinct pieces, without gaps"),
        ("generation_config.json", {"num_beams": -1}, "num_beams or length_penalty is not a number"),
    ],
)
def test_a_folder_that_heed_cannot_compute_is_refused(
    imported: tuple[Path, Path], tmp_path: Path, file: str, changes: dict[str, object], message: str
) -> None:
    folder = Path(shutil.copytree(imported[0], tmp_path / "opus-mt"))
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    result = call("import", folder, "--out", tmp_path / "run")
    assert (result.code, message in result.err) == (65, True), result.err


def test_a_folder_without_its_parts_is_refused_with_the_way_to_get_them(
    imported: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(imported[0], tmp_path / "opus-mt"))
    (folder / "source.spm").write_bytes(b"not a model")
    result = call("import", folder, "--out", tmp_path / "run")
    assert result.code == 65 and "not a model of SentencePiece" in result.err
    (folder / "source.spm").unlink()
    result = call("import", folder, "--out", tmp_path / "run")
    assert result.code == 66 and "source.spm is missing. A Marian folder has" in result.err
    shutil.copy(imported[0] / "source.spm", folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    result = call("import", folder, "--out", tmp_path / "run")
    assert result.code == 66 and "write it again with save_pretrained" in result.err


def test_options_of_a_search_stay_defaults_without_a_description(imported: tuple[Path, Path]) -> None:
    assert Run(imported[1]).recipe.decoding == SearchOptions(beam_size=3, length_norm="mean", length_penalty=0.8)
