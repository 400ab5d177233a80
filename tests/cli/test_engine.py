"""The engine in a run folder: converted when training ends, checked before use, exported for others."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from command import call, call_without_pytorch
from serving import serving

import heed
from heed.cli.options import Compute
from heed.core.errors import UsageError
from heed.core.own_files import SMALL
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.evaluation.evaluation import precision_of
from heed.evaluation.outputs import System
from heed.inference.converted_model import FOLDER, Conversion
from heed.metrics import score_outputs
from heed.report.page import report_text, write_report
from heed.run import Run
from heed.tasks import open_without_pytorch

ctranslate2 = pytest.importorskip("ctranslate2")


@pytest.fixture
def run(translator: Path, tmp_path: Path) -> Path:
    run = Path(shutil.copytree(translator, tmp_path / "run"))
    Run(run).predictor.convert()
    return run


def test_the_converted_model_is_used_without_reading_the_weights(run: Path) -> None:
    predictor = heed.load(run)
    assert predictor.engine is not None
    assert predictor.translate(["ba ce"]) == heed.load(run, engine="torch").translate(["ba ce"])
    assert heed.load(run, engine="torch").engine is None
    assert "model" not in vars(predictor.run), "PyTorch's weights were read"


def test_a_server_answers_with_the_engine_as_with_pytorch(run: Path) -> None:
    lines = ["ba ce di", "ce", "di fo gu ba"]
    expected = heed.load(run, engine="torch").translate(lines)
    loaded = heed.load(run)
    assert loaded.engine is not None
    num_requests = 0
    search = loaded.engine.search

    def counted(requests: Sequence[Request], *args: Any, **keys: Any) -> Any:
        nonlocal num_requests
        num_requests += len(requests)
        return search(requests, *args, **keys)

    loaded.engine.search = counted
    with serving([loaded]) as live:
        direction = live.get("/api/models").json["models"][0]["directions"][0]
        body = {"source": direction["source"]["code"], "target": direction["target"]["code"]}
        answers = [live.post("/translate", {**body, "q": line}).json["translatedText"] for line in lines]
        detailed = live.post("/api/translate", {"text": lines[0]}).json
    assert answers == expected
    assert num_requests == len(lines) + 1
    assert detailed["sentences"][0]["hypotheses"][0]["tokens"], "tokens need log-probabilities"


def test_pytorch_translates_as_many_batches_at_once_as_it_is_given_threads(
    translator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    lines, greedy = ["ba ce di", "ce", "di fo gu ba", "fo", "ba", "gu gu"], SearchOptions(beam_size=1, batch_size=1)
    expected = heed.load(translator, engine="torch", num_workers=1).translate(lines, greedy)
    monkeypatch.setattr("heed.nn.device.faster_threads", lambda model, available: 1)  # more threads do not help
    threads = torch.get_num_threads()
    try:
        loaded: Any = Compute(threads=3).load(translator, engine="torch")
        assert torch.get_num_threads() == 1
        three, search = threading.Barrier(3, timeout=60), loaded.translator.search_in_batches

        def together(*given: Any) -> Any:
            three.wait()
            return search(*given)

        monkeypatch.setattr(loaded.translator, "search_in_batches", together)
        assert loaded.translate(lines, greedy) == expected
        torch.set_num_threads(2)  # a product's threads are the user's choice
        three = threading.Barrier(1)
        assert loaded.translate(lines, greedy) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_pytorch_next_to_the_engine_computes_with_one_thread(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("heed.nn.device.faster_threads", lambda model, available: available)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert Compute().load(run).engine is not None
        assert torch.get_num_threads() == 1
        torch.set_num_threads(2)
        converted = open_without_pytorch("translate", run, None, "float32", "auto", 0)
        converted.word_links([("ba ce", "ba ce")])
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("file", ["heed.json", "model.bin", "shared_vocabulary.json"])
def test_a_damaged_conversion_is_not_used(run: Path, file: str) -> None:
    path = run / FOLDER / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert heed.load(run).translate("ba ce") == heed.load(run, engine="torch").translate("ba ce")


def test_a_conversion_of_other_weights_is_not_used(run: Path, tmp_path: Path) -> None:
    assert call("average", run, "--last", "2", "--out", tmp_path / "averaged").code == 0
    shutil.copy(tmp_path / "averaged" / "model.safetensors", run)
    assert heed.load(run).hypotheses(["ba ce"])[0].log_prob == pytest.approx(
        heed.load(tmp_path / "averaged", engine="torch").hypotheses(["ba ce"])[0].log_prob, abs=1e-5
    )


def test_loading_a_run_writes_nothing_into_it(run: Path) -> None:
    shutil.rmtree(run / FOLDER)
    before = sorted(run.rglob("*"))
    assert heed.load(run).translate("ba ce")
    assert sorted(run.rglob("*")) == before


def test_an_engine_that_cannot_be_used_is_an_error(run: Path) -> None:
    with pytest.raises(UsageError, match="CTranslate2 cannot search with this run"):
        heed.load(run, precision="bfloat16", engine="ctranslate2")
    assert call("translate", run, "--precision", "bfloat16", "--engine", "ctranslate2", stdin="ba ce\n").code == 2


def test_both_engines_print_the_same(run: Path) -> None:
    ours, theirs = (
        [json.loads(line) for line in call("translate", run, "--engine", kind, "--json", stdin="ba ce\nfa\n").lines]
        for kind in ("ctranslate2", "torch")
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one["translation"] == other["translation"]
        assert one["log_prob"] == pytest.approx(other["log_prob"], abs=1e-4)
        assert [token["piece"] for token in one["tokens"]] == [token["piece"] for token in other["tokens"]]


def test_an_exported_model_translates_without_heed(run: Path, tmp_path: Path) -> None:
    result = call("export", run, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert "a model for CTranslate2, with its tokenizers\n" in result.err
    assert (tmp_path / "out" / "tokenizer.json").exists()
    loaded = heed.load(run, engine="torch")
    options = loaded.run.recipe.decoding.model_copy(update={"beam_size": 1})
    src, tgt = (loaded.run.tokenizers[side].vocabulary for side in ("src", "tgt"))
    ids, _ = loaded.translator.encoded("ba ce", "")
    [translated] = ctranslate2.Translator(str(tmp_path / "out")).translate_batch(
        [[*map(src.piece, ids), "</s>"]], beam_size=1, max_decoding_length=30
    )
    assert translated.hypotheses[0] == [tgt.piece(id) for id in loaded.hypotheses(["ba ce"], options)[0].ids]


def test_a_model_of_counts_is_not_exported_to_ctranslate2(bigram: Path, tmp_path: Path) -> None:
    result = call("export", bigram, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert (result.code, "CTranslate2 does not have models of kind bigram" in result.err) == (2, True)


def test_a_language_model_searches_with_the_engine_and_samples_with_pytorch(speaker: Path) -> None:
    loaded, oracle = heed.load(speaker), heed.load(speaker, engine="torch")
    assert (speaker / FOLDER / "heed.json").exists(), "converted when the training ended"
    loaded.translator.search_in_batches = refused
    greedy = SearchOptions(beam_size=1, max_tokens=12)
    for prompt in ("", "the", "sees the\nt"):
        assert loaded.generate(prompt, greedy) == oracle.generate(prompt, greedy)
    sampled = greedy.model_copy(update={"sample": True, "nbest": 3})
    assert heed.load(speaker).generate("the", sampled) == oracle.generate("the", sampled)
    assert oracle.engine is None and heed.load(speaker, precision="bfloat16").engine is None


def refused(*_: object) -> dict[Request, Hypothesis]:
    raise AssertionError("PyTorch was asked")


def test_generating_prints_the_same_with_both_engines(speaker: Path, bigram: Path) -> None:
    flags = ("generate", speaker, "--prompt", "the", "--beam", "1", "--max-tokens", "12", "--json")
    ours, theirs = (json.loads(call(*flags, "--engine", kind).out) for kind in ("ctranslate2", "torch"))
    assert [token["piece"] for token in ours["tokens"]] == [token["piece"] for token in theirs["tokens"]]
    assert (ours["text"], ours["finished"]) == (theirs["text"], theirs["finished"])
    assert ours["log_prob"] == pytest.approx(theirs["log_prob"], abs=1e-4)
    assert call("generate", bigram, "--engine", "ctranslate2").code == 2
    assert "CTranslate2 for greedy search, else PyTorch" in call("info", speaker).out
    assert json.loads(call("info", bigram, "--json").out)["engine"] == "PyTorch"


GREEDY = ("--beam", "1", "--max-tokens", "12", "--json")


def test_generating_greedily_does_not_import_pytorch(speaker: Path) -> None:
    expected = call("generate", speaker, "--prompt", "the", "--prompt", "sees", *GREEDY, "--engine", "torch").lines
    done = call_without_pytorch("generate", speaker, "--prompt", "the", "--prompt", "sees", *GREEDY)
    for ours, theirs in zip(map(json.loads, done.lines), map(json.loads, expected), strict=True):
        assert ours["tokens"][0]["log_prob"] == pytest.approx(theirs["tokens"][0]["log_prob"], abs=1e-4)
        assert [token["piece"] for token in ours["tokens"]] == [token["piece"] for token in theirs["tokens"]]
        assert (ours["prompt"], ours["text"]) == (theirs["prompt"], theirs["text"])


def test_what_ctranslate2_does_not_search_is_generated_as_before(speaker: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(speaker, tmp_path / "run"))
    for flags in (("--stop", "e"), ("--prompt", "the dog sees the " * 20), ("--precision", "bfloat16"), ("--stream",)):
        words = ("generate", run, "--prompt", "the", *GREEDY[:-1], *flags)
        assert call(*words).out == call(*words, "--engine", "torch").out
    expected = call("generate", run, *GREEDY).out
    assert call("translate", run, stdin="the\n").code == 2
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text() + "\n")
    assert open_without_pytorch("generate", speaker, None, "float32", "auto", 1) is not None
    assert open_without_pytorch("generate", run, None, "float32", "auto", 1) is None
    assert call("generate", run, *GREEDY).out == expected


def test_an_exported_language_model_is_compared_with_ctranslate2(speaker: Path, tmp_path: Path) -> None:
    result = call("export", speaker, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert "verified with ctranslate2" in result.err, result.err


def test_a_server_generates_greedily_with_the_engine(speaker: Path) -> None:
    loaded, oracle = heed.load(speaker), heed.load(speaker, engine="torch")
    num_searches, search = 0, loaded.engine.search

    def counted(*args: Any, **keys: Any) -> Any:
        nonlocal num_searches
        num_searches += 1
        return search(*args, **keys)

    loaded.engine.search = counted
    with serving([loaded]) as live:
        warming_up, body = num_searches, {"model": "run", "prompt": "the", "max_tokens": 8, "temperature": 0}
        answer = live.post("/v1/completions", body).json["choices"][0]["text"]
        assert num_searches == warming_up + 1
        live.post("/v1/completions", {**body, "temperature": 1.0})
        assert num_searches == warming_up + 1
    assert [answer] == oracle.generate("the", SearchOptions(beam_size=1, max_tokens=8))


@pytest.mark.parametrize("lines", [1, 40])
def test_translating_with_a_converted_model_does_not_import_pytorch(run: Path, lines: int) -> None:
    expected = heed.load(run, engine="torch").translate("ba ce")
    done = call_without_pytorch("translate", run, "--json", stdin="ba ce\n" * lines)
    assert [json.loads(line)["translation"] for line in done.lines] == [expected] * lines


def test_translating_after_a_prefix_does_not_import_pytorch(run: Path, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("ca\n\n")
    words = ("translate", run, "--prefix-file", tmp_path / "prefixes", "--beam", "1", "--scores")
    expected = [line.split("\t") for line in call(*words, "--engine", "torch", stdin="ba ce\nce\n").lines]
    found = [line.split("\t") for line in call_without_pytorch(*words, stdin="ba ce\nce\n").lines]
    assert [text for _, text in found] == [text for _, text in expected]
    assert [float(score) for score, _ in found] == pytest.approx([float(score) for score, _ in expected], abs=2e-4)
    assert found[0][1].startswith("ca")


@pytest.mark.parametrize("name, content", [("a.txt", "ba ce\n"), ("a.csv", "source,target\nba ce,\n")])
def test_a_file_is_translated_without_importing_pytorch(run: Path, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    expected = call("translate-file", run, tmp_path / name, "--engine", "torch").out
    done = call_without_pytorch("translate-file", run, tmp_path / name, "--quiet")
    assert (done.out, done.err) == (expected, "")


def test_tags_are_moved_by_attention_with_either_engine(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>ba <b>ce</b> di</p>")
    expected = call("translate-file", run, tmp_path / "a.html", "--engine", "torch").out
    assert call("translate-file", run, tmp_path / "a.html").out == expected
    assert "<b>" in expected


def test_a_converted_model_is_not_used_after_the_recipe_was_edited(run: Path) -> None:
    assert open_without_pytorch("translate", run, None, "float32", "auto", 1) is not None
    assert open_without_pytorch("translate", run, None, "bfloat16", "auto", 1) is None
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("beam_size = 2", "beam_size = 3"))
    assert open_without_pytorch("translate", run, None, "float32", "auto", 1) is None


def test_int8_needs_no_products_of_pytorch(
    run: Path, speaker: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyTorch searches the lines whose outputs are flagged, in float32 where the processor has none for it."""
    monkeypatch.setattr("heed.nn.packing.has_rounded_products", lambda: False)
    monkeypatch.setattr("heed.export.ctranslate2.has_rounded_products", lambda: False)
    converted = open_without_pytorch("translate", run, None, "int8", "auto", 1)
    assert converted is not None
    [found] = converted.translator.translate(["ba ce di"], converted.decoding)
    converted.translator.translate(["ba ce di"], converted.decoding.model_copy(update={"sample": True}))
    warning = "what CTranslate2 cannot do, such as sampling, is computed in float32"
    assert capsys.readouterr().err.count(warning) == 1
    assert found.text == heed.load(run, engine="torch").translate("ba ce di")
    loaded = heed.load(run, precision="int8")
    assert loaded.engine is not None and loaded.run.model.head.weight.dtype == torch.float32
    assert warning in capsys.readouterr().err
    assert precision_of(System("int8", [], loaded.run)) == {"precision": "int8 (PyTorch: float32)"}
    assert heed.load(speaker, precision="int8").generate("the")
    with pytest.raises(UsageError, match="int8 is not available"):
        heed.load(run, precision="int8", engine="torch").translate(["ba ce di"])


@pytest.mark.parametrize("name", ["", "heed.json", "translator.json", "model.bin"])
def test_a_conversion_that_leads_out_of_the_run_folder_is_not_used(run: Path, tmp_path: Path, name: str) -> None:
    (run / FOLDER / name).rename(tmp_path / "elsewhere")
    (run / FOLDER / name).symlink_to(tmp_path / "elsewhere")
    assert open_without_pytorch("translate", run, None, "float32", "auto", 1) is None


@pytest.mark.parametrize("name", ["heed.json", "translator.json", "model.bin"])
def test_a_pipe_in_a_conversion_does_not_hang(run: Path, name: str) -> None:
    (run / FOLDER / name).unlink()
    os.mkfifo(run / FOLDER / name)
    assert open_without_pytorch("translate", run, None, "float32", "auto", 1) is None


@pytest.mark.parametrize("name", ["heed.json", "translator.json"])
def test_a_description_of_a_conversion_that_is_too_large_is_not_read(run: Path, name: str) -> None:
    content = (run / FOLDER / name).read_bytes()
    (run / FOLDER / name).write_bytes(content + b" " * SMALL)
    assert open_without_pytorch("translate", run, None, "float32", "auto", 1) is None


def test_an_edited_recipe_is_warned_of_once(run: Path) -> None:
    shutil.rmtree(run / FOLDER)
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("beam_size = 2", "beam_size = 3"))
    assert call("translate", run, stdin="ba ce\n").err.count("was changed after heed wrote it") == 1


def test_verify_checks_the_converted_model(run: Path) -> None:
    assert f"{FOLDER}: as heed wrote it" in call("info", run, "--verify").out
    with (run / FOLDER / "model.bin").open("ab") as file:
        file.write(b"x")
    result = call("info", run, "--verify")
    assert (result.code, "ctranslate2 is damaged and not used" in result.out + result.err) == (65, True)


def test_conversion_measures_int8_on_the_validation_data(run: Path) -> None:
    conversion = Conversion.read(run / FOLDER)
    assert conversion and conversion.rounding
    measured = conversion.rounding
    lines = read_valid(run)
    options = heed.load(run).run.recipe.decoding
    outputs = {
        precision: heed.load(run, precision=precision).translate([row[0] for row in lines], options)
        for precision in ("float32", "int8")
    }
    exact, rounded = (
        score_outputs(outputs[precision], [row[1] for row in lines], "bb", ["bleu"], 0)[0].value
        for precision in ("float32", "int8")
    )
    assert (measured.num_lines, measured.beam_size) == (len(lines), options.beam_size)
    assert (measured.bleu, measured.difference) == pytest.approx((exact, rounded - exact), abs=1e-6)
    assert f"BLEU {measured.difference:+.2f}" in call("info", run).out
    write_report(Run(run))
    assert f"- **With `--precision int8`**: BLEU {measured.difference:+.2f}" in report_text(Run(run))


def test_a_model_without_validation_data_is_converted_without_measuring_int8(run: Path) -> None:
    for path in (run / "data").glob("valid*"):
        path.unlink()
    Run(run).predictor.convert()
    conversion = Conversion.read(run / FOLDER)
    assert conversion and conversion.rounding is None
    assert "int8" not in call("info", run).out
