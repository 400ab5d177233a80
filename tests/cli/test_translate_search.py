"""Tests of the options of `heed translate` that steer the search."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import other_weights, pairs, prepared, unchecked_shapes, with_weights, write_lines

import heed
from heed.cli.options import search_options
from heed.core.errors import UsageError
from heed.core.run_files import WEIGHTS, RunFiles
from heed.decoding.options import SearchOptions
from heed.inference.sentences import MAX_CHARACTERS
from heed.memory.store import TranslationMemory
from heed.run import Run
from heed.tasks.translation import calibration

LINES = ["ba ce", "fo gu di", "", "me lu", "ko"]
TEXT = "\n".join(LINES) + "\n"


def records(run: Path, *flags: object, stdin: str = TEXT) -> list[dict[str, Any]]:
    """The objects that `--json` prints."""
    result = call("translate", run, "--json", *flags, stdin=stdin)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.lines]


@pytest.fixture(scope="module")
def language_model(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bigram of the target language, in the translator's pieces."""
    folder = tmp_path_factory.mktemp("lm")
    text = write_lines(folder / "text", [tgt for _, tgt in pairs(200)])
    flags = ("--text", text, "--model.kind=bigram", "--out", folder / "run", "--quiet", "--data.hold_out=8")
    with unchecked_shapes():
        result = call("train", *flags, "--tokenizer-of", translator)
    assert result.code == 0, result.err
    return folder / "run"


def test_prefixes_are_read_from_a_file_line_by_line(translator: Path, tmp_path: Path) -> None:
    prefixes = ["", "pur", "x", "tun v", ""]
    path = write_lines(tmp_path / "prefixes", prefixes)
    plain = call("translate", translator, stdin=TEXT).lines
    found = call("translate", translator, "--prefix-file", path, stdin=TEXT).lines
    assert [found[0], found[2], found[4]] == [plain[0], "", plain[4]]
    assert all(line.startswith(prefix) for line, prefix in zip(found, prefixes, strict=True) if line)
    assert [record.get("prefix") for record in records(translator, "--prefix-file", path)] == [
        None, "pur", "x", "tun v", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prefixes", "message"), [(["a"], "has fewer lines than stdin: there is no line 2"), (["a"] * 6, "has more lines")]
)
def test_a_file_of_prefixes_must_have_a_line_for_each(
    translator: Path, tmp_path: Path, prefixes: list[str], message: str
) -> None:
    result = call("translate", translator, "--prefix-file", write_lines(tmp_path / "prefixes", prefixes), stdin=TEXT)
    assert result.code == 65
    assert message in result.err


def test_lines_may_be_json_with_a_prefix(translator: Path) -> None:
    stdin = '{"source": "ba ce", "prefix": "not"}\n{"source": "fo gu di", "id": 7}\n'
    found = call("translate", translator, "--json-input", stdin=stdin).lines
    assert found[0].startswith("not")
    assert found[1] == call("translate", translator, stdin="fo gu di\n").lines[0]
    for bad in ("ba ce", "{}", '{"source": 1}', '{"source": "a", "prefix": null}', "[1]", "", "[" * 100_000):
        result = call("translate", translator, "--json-input", stdin=bad + "\n")
        assert result.code == 65
        assert "stdin, line 1: --json-input expects {" in result.err


@pytest.mark.parametrize(
    ("bad", "message"),
    [("{}", "--json-input"), ('{"source": "a \\ud800 b"}', "a \\u escape is half of a surrogate pair")],
)
def test_lines_before_a_bad_one_are_translated(translator: Path, bad: str, message: str) -> None:
    good = '{"source": "ba ce"}\n'
    result = call("translate", translator, "--json-input", stdin=good + good + bad + "\n" + good)
    assert (result.code, len(result.lines)) == (65, 2)
    assert f"stdin, line 3: {message}" in result.err


def test_a_prefix_without_bounds_is_refused(translator: Path, tmp_path: Path) -> None:
    prefixes = write_lines(tmp_path / "prefixes", ["not " * 1001])
    result = call("translate", translator, "--prefix-file", prefixes, stdin="ba ce\n")
    assert (result.code, result.stdout) == (65, b"")
    assert "at most 1,000 are allowed: 'not not" in result.err


def test_a_missing_prefix_is_reported_after_the_lines_before_it(translator: Path, tmp_path: Path) -> None:
    prefixes = write_lines(tmp_path / "prefixes", ["", ""])
    result = call("translate", translator, "--prefix-file", prefixes, stdin="ba ce\nfo gu\ndi\n")
    assert (result.code, len(result.lines)) == (65, 2)
    assert "there is no line 3" in result.err


def test_a_banned_term_is_reported_first(translator: Path, tmp_path: Path) -> None:
    glossary = write_lines(tmp_path / "terms", ["never\tnot"])
    result = call("translate", translator, "--glossary", glossary, "--ban", "not", stdin="ba ce\n")
    assert (result.code, result.stdout) == (2, b"")
    assert "'not' is banned" in result.err


def test_banned_words_are_in_no_output(translator: Path, tmp_path: Path) -> None:
    plain = call("translate", translator, stdin=TEXT).lines
    words = sorted({word for line in plain for word in line.split()})[:3]
    path = write_lines(tmp_path / "words", words[1:])
    found = call("translate", translator, "--ban", words[0], "--ban-file", path, stdin=TEXT).lines
    assert len(found) == len(plain)
    assert not set(words) & {word for line in found for word in line.split()}
    assert call("translate", translator, "--ban", " ", stdin=TEXT).code == 2


def test_banned_words_add_up(translator: Path) -> None:
    line = call("translate", translator, stdin="ba ce\n").lines[0]
    first, second = line.split()[:2]
    assert first != second, line
    found = call("translate", translator, f'--decoding.ban=["{first}"]', "--ban", second, stdin="ba ce\n").lines[0]
    assert not {first, second} & set(found.split()), found


def test_glossary_terms_are_in_the_lines_that_require_them(translator: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "terms", ["fo gu\tzebra", "me\tokapi"])
    plain = call("translate", translator, stdin=TEXT).lines
    found = call("translate", translator, "--glossary", path, stdin=TEXT).lines
    assert "zebra" in found[1].split()
    assert "okapi" in found[3].split()
    assert [found[0], found[2], found[4]] == [plain[0], plain[2], plain[4]]
    apart = call("translate", translator, "--glossary", path, "--paragraphs", stdin="Fo gu. Me lu.\n").lines
    assert {"zebra", "okapi"} <= set(apart[0].replace(".", " ").split())


def test_in_a_long_line_a_term_is_in_the_sentence_that_requires_it(translator: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "terms", ["me\tokapi"])
    line = "Ba ce. " * 290 + "Me lu."
    assert len(line) > MAX_CHARACTERS
    [plain] = call("translate", translator, stdin=line + "\n").lines
    [found] = call("translate", translator, "--glossary", path, stdin=line + "\n").lines
    assert found.count("okapi") == 1
    assert plain[:1000] == found[:1000]


def test_in_a_paragraph_a_long_sentence_has_its_terms_in_place(translator: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "terms", ["me\tokapi"])
    line = "ba ce " * 350 + "me lu"
    assert len(line) > MAX_CHARACTERS
    [plain] = call("translate", translator, "--paragraphs", stdin=line + "\n").lines
    [found] = call("translate", translator, "--glossary", path, "--paragraphs", stdin=line + "\n").lines
    assert found.count("okapi") == 1
    before = found.split("okapi")[0]
    assert before
    assert plain.startswith(before), "the piece before is translated as ever"


def test_a_recipe_with_several_hypotheses_is_evaluated_by_the_best(translator: Path, tmp_path: Path) -> None:
    run = shutil.copytree(translator, tmp_path / "run")
    recipe = run / "recipe.toml"
    text = recipe.read_text().replace("nbest = 1", "nbest = 2").replace("diversity = 0.0", "diversity = 0.5")
    recipe.write_text(text)
    assert Run(run).recipe.decoding.diversity == 0.5
    for name, files in (("evaluate", ("--src", "test.aa", "--ref", "test.bb")), ("inspect", ("--src", "ba ce"))):
        flags = [str(translator.parent / word) if word.startswith("test.") else word for word in files]
        more = ["--beam", "1", "--out", str(tmp_path / "page.html")] if name == "inspect" else []
        result = call(name, run, *flags, *more)
        assert result.code == 0, result.err


def test_lm_weight_needs_a_language_model(translator: Path) -> None:
    result = call("translate", translator, "--lm-weight", "0.5", stdin=TEXT)
    assert (result.code, "--lm-weight needs --lm RUN" in result.err) == (2, True)


def test_constraints_that_cannot_be_combined_are_refused(translator: Path, tmp_path: Path) -> None:
    terms, prefixes = write_lines(tmp_path / "terms", ["a\tb"]), write_lines(tmp_path / "prefixes", ["a"])
    for flags in (
        ("--glossary", terms, "--sample"),
        ("--glossary", terms, "--diversity", "1", "--nbest", "2"),
        ("--prefix-file", prefixes, "--paragraphs"),
        ("--json-input", "--paragraphs"),
        ("--diversity", "1"),
        ("--mbr", "ter"),
        ("--decoding.max_ratio=0.5", "--decoding.min_ratio=0.7"),
        ("--decoding.maxratio=0.5",),
        ("--coverage-penalty", "99"),
    ):
        result = call("translate", translator, *flags, stdin="a\n")
        assert (result.code, result.stdout) == (2, b""), flags
    assert call("translate", translator, "--glossary", tmp_path / "nothing", stdin="a\n").code == 66
    assert call("translate", translator, "--glossary", prefixes, stdin="a\n").code == 65


def test_any_key_of_the_search_is_a_flag(translator: Path) -> None:
    short = call("translate", "--decoding.max_tokens=2", translator, stdin=TEXT).lines
    assert short == call("translate", translator, "--decoding.max_tokens=2", stdin=TEXT).lines
    assert short != call("translate", translator, stdin=TEXT).lines
    result = call("translate", translator, "--decoding.maxtokens=2", stdin=TEXT)
    assert "Did you mean 'max_tokens'?" in result.err
    assert call("translate", translator, translator, stdin=TEXT).code == 2
    assert call("translate", translator, "--decoding.max_tokens", "2", stdin=TEXT).code == 2


def test_other_searches_keep_line_count_and_order(translator: Path) -> None:
    alone = [call("translate", translator, "--mbr", "chrf", stdin=line + "\n").lines[0] for line in LINES]
    assert call("translate", translator, "--mbr", "chrf", stdin=TEXT).lines == alone
    for flags in (
        ("--coverage-penalty", "0.3"),
        ("--no-repeat", "2"),
        ("--mbr", "bleu", "--sample", "--decoding.candidates=4"),
        ("--decoding.min_ratio=0.5", "--decoding.max_ratio=1.5"),
    ):
        assert len(call("translate", translator, *flags, stdin=TEXT).lines) == len(LINES)
    rows = call("translate", translator, "--nbest", "3", "--beam", "6", "--diversity", "5", stdin="ba ce\n").lines
    assert len({row.split(" ||| ")[1].split()[0] for row in rows}) == 3, "each begins in its own way"


def test_an_ensemble_combines_its_members(translator: Path, recurrent: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(translator, tmp_path / "twin")
    plain = records(translator, "--beam", "3")
    same = records(translator, "--beam", "3", "--ensemble", twin, "--ensemble", twin)
    assert [record["translation"] for record in same] == [record["translation"] for record in plain]
    assert [r["log_prob"] for r in same] == pytest.approx([r["log_prob"] for r in plain], abs=1e-4)
    result = call("translate", translator, "--ensemble", recurrent, stdin=TEXT)
    assert result.code == 2
    assert f"{recurrent} and {translator} have different vocabularies" in result.err


def test_shallow_fusion_reports_both_scores(translator: Path, language_model: Path, bigram: Path) -> None:
    plain = records(translator)
    for record, before in zip(records(translator, "--lm", language_model, "--lm-weight", "0.5"), plain, strict=True):
        if record["source"]:
            both = record["translation_log_prob"] + 0.5 * record["lm_log_prob"]
            assert record["log_prob"] == pytest.approx(both)
            if record["translation"] == before["translation"]:
                assert record["translation_log_prob"] == pytest.approx(before["log_prob"], abs=1e-3)
    result = call("translate", translator, "--lm", bigram, stdin=TEXT)
    assert result.code == 2
    assert "have different vocabularies" in result.err
    result = call("translate", translator, "--lm", translator, stdin=TEXT)
    assert result.code == 2
    assert "--lm needs a run that can generate" in result.err


def test_a_language_model_without_sentence_ends_is_refused(
    translator: Path, language_model: Path, tmp_path: Path
) -> None:
    endless = shutil.copytree(language_model, tmp_path / "endless")
    recipe = (endless / "recipe.toml").read_text(encoding="utf-8")
    recipe = recipe.replace('line_end = "eos"', 'line_end = "newline"').replace(
        'text_as = "lines"', 'text_as = "stream"'
    )
    (endless / "recipe.toml").write_text(recipe, encoding="utf-8")
    result = call("translate", translator, "--lm", endless, stdin=TEXT)
    assert result.code == 2
    assert "it did not learn where sentences end" in result.err


def test_a_language_model_that_reads_from_the_end_is_refused(
    translator: Path, language_model: Path, tmp_path: Path
) -> None:
    backward = shutil.copytree(language_model, tmp_path / "backward")
    Run(backward).change_recipe({"data.backward": True})
    result = call("translate", translator, "--lm", backward, stdin=TEXT)
    assert result.code == 2
    assert "reads text from its end" in result.err


def test_unusual_input_is_reported(translator: Path) -> None:
    rows = pairs(40, seed=8)
    right, wrong = ("".join(row[side] + "\n" for row in rows) for side in (0, 1))
    assert call("translate", translator, "--beam", "1", stdin=right).err == ""
    assert "looks like the target language" in call("translate", translator, "--beam", "1", stdin=wrong).err
    assert "looks like XML" in call("translate", translator, stdin="<?xml version='1.0'?>\n").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sample", "--beam", "3"), "--sample replaces beam search: leave out --beam"),
        (
            ("--json-input", "--prefix-file", "p"),
            "--json-input and --prefix-file both give prefixes: leave out --prefix-file",
        ),
        (("--decoding.nbest=abc",), "nbest"),
        (("--beam", "3", "--decoding.beam_size=2"), "--decoding.beam_size and the option for the same key"),
        (("--no-guard", "--decoding.guard=true"), "--decoding.guard and the option for the same key"),
        (("--sample", "--decoding.beam_size=2"), "--sample replaces beam search"),
        (("--decoding.top_k=2",), "need --sample"),
        (("--decoding.bias=[[9999, -1.0]]",), "bias contains token 9,999, but the last token of this vocabulary is"),
        (("--ban", "\ufeff"), "ban contains an empty phrase"),
    ],
)
def test_options_that_exclude_each_other_are_refused(translator: Path, words: tuple[str, ...], message: str) -> None:
    result = call("translate", translator, *words, stdin=TEXT)
    assert (result.code, message in result.err) == (2, True), result.err


def test_a_file_argument_is_refused_with_advice(translator: Path) -> None:
    file = translator.parent / "test.aa"
    assert f"Read lines with < {file}" in call("translate", translator, file).err


def test_json_has_the_flags_of_the_output_checks(translator: Path) -> None:
    found = records(translator, stdin=TEXT + "ba " * 200 + "\n")
    assert all(record["flags"] == [] and record["fallback"] is False for record in found[:5])
    assert "short" in found[5]["flags"]
    assert all(record["flags"] == [] for record in records(translator, "--no-guard", stdin="ba " * 200 + "\n"))


def test_sampling_may_be_a_recipe_key(translator: Path) -> None:
    words = ("--decoding.sample=true", "--temperature", "0.5")
    assert call("translate", translator, *words, stdin=TEXT).code == 0
    refused = call("translate", translator, "--decoding.sample=true", "--beam", "3", stdin=TEXT)
    assert (refused.code, "leave out --beam" in refused.err) == (2, True)


def test_calibration_is_printed_kept_and_used(translator: Path, tmp_path: Path) -> None:
    run = shutil.copytree(translator, tmp_path / "run")
    assert "confidence" not in records(run)[0]
    few = call("evaluate", run, "--calibrate")
    assert few.code == 65
    assert "too little data for calibration" in few.err
    rows = "".join(json.dumps(pair) + "\n" for pair in pairs(80, seed=9))
    with RunFiles(run).write("data/valid.jsonl", "w") as file:
        file.write(rows)
    unknown = call("predict", run, "--probabilities", stdin=TEXT)
    assert (unknown.code, unknown.out) == (2, "")
    assert f"its confidence is not calibrated: `heed evaluate {run} --calibrate` does it." in unknown.err
    result = call("evaluate", run, "--calibrate")
    assert result.code == 0, result.err
    text, confidence = call("predict", run, "--probabilities", stdin=TEXT).lines[0].split("\t")
    assert text and 0 < float(confidence) < 1
    assert "expected calibration error 0." in result.out
    assert (run / "reliability.png").stat().st_size > 1000
    found = records(run)
    assert all(0 < record["confidence"] < 1 for record in found if record["source"])
    assert "confidence" not in found[2], "an empty line"
    again = json.loads(call("evaluate", run, "--calibrate", "--json").out)
    assert again[0]["num_sentences"] == 80
    assert sum(part["count"] for part in again[0]["reliability"]) == 80
    assert json.loads((run / "confidence.json").read_text(encoding="utf-8"))["weights"] == list(again[0]["weights"])
    (run / "confidence.json").write_text("{}")
    assert "or write a new one with" in call("translate", run, stdin=TEXT).err
    assert call("evaluate", run, "--calibrate", "--quiet").code == 0
    assert records(run) == found


def test_a_confidence_of_weights_that_are_replaced_meanwhile_is_not_kept(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, better = shutil.copytree(translator, tmp_path / "run"), other_weights(translator, tmp_path / "better")
    with RunFiles(run).write("data/valid.jsonl", "w") as file:
        file.write("".join(json.dumps(pair) + "\n" for pair in pairs(80, seed=9)))

    def learn_late(*given: Any) -> calibration.Calibration:
        shutil.copy(better / WEIGHTS, run / WEIGHTS)
        return learn(*given)

    learn = calibration.learn
    monkeypatch.setattr(calibration, "learn", learn_late)
    result = call("evaluate", run, "--calibrate")
    assert (result.code, "got other weights while its confidence was learned" in result.err) == (65, True)
    assert not (run / "confidence.json").exists()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation memory in which one word is translated otherwise than in the training data."""
    folder = tmp_path_factory.mktemp("memory")
    lines = [f"{src}\t{tgt.replace('kan', 'zil')}" for src, tgt in pairs(150)]
    table = write_lines(folder / "pairs.tsv", lines)
    languages = ("--src-lang", "aa", "--tgt-lang", "bb")
    assert call("memory", "import", folder / "team.memory", table, *languages, "--approved").code == 0
    return folder / "team.memory"


def test_a_translation_memory_guides_the_translation(translator: Path, memory: Path) -> None:
    unseen = [src for src, _ in pairs(120, seed=1) if "ba" in src]
    stdin = "\n".join([*LINES, *unseen]) + "\n"
    plain = call("translate", translator, stdin=stdin).lines[len(LINES) :]
    result = call("translate", translator, "--memory", memory, stdin=stdin)
    assert result.code == 0, result.err
    guided = result.lines[len(LINES) :]
    assert len(plain) == 27 and sum("kan" in line for line in plain) > 19
    assert sum("kan" in line for line in guided) < 4 and sum("zil" in line for line in guided) > 11
    assert result.lines[2] == ""
    one = call("translate", translator, "--memory", memory, "--batch-size", "1", stdin=stdin)
    assert one.lines == result.lines


def test_a_memory_that_cannot_be_used_is_refused(
    translator: Path, language_model: Path, bigram: Path, memory: Path, tmp_path: Path
) -> None:
    result = call("translate", translator, "--memory", memory, "--lm", language_model, stdin=TEXT)
    assert (result.code, "--memory cannot be combined with --lm" in result.err) == (2, True)
    result = call("translate", translator, "--memory", memory, "--engine", "ctranslate2", stdin=TEXT)
    assert (result.code, "without --lm or --memory" in result.err) == (2, True)
    result = call("translate", translator, "--memory", tmp_path / "none", stdin=TEXT)
    assert (result.code, "heed memory import makes a translation memory" in result.err) == (66, True)
    result = call("translate", translator, "--memory", translator / "recipe.toml", stdin=TEXT)
    assert (result.code, "is not a translation memory" in result.err) == (65, True)
    with closing(TranslationMemory(tmp_path / "rejected.memory", ("aa", "bb"), create=True)) as rejected:
        rejected.add([("ba", "kan", "")])
        rejected.set_state([1], "rejected")
    result = call("translate", translator, "--memory", tmp_path / "rejected.memory", stdin=TEXT)
    assert (result.code, "has no usable translation from aa to bb: one that was approved" in result.err) == (65, True)
    with pytest.raises(UsageError, match="--memory requires a translation run"):
        heed.load(bigram, memory=memory)


@pytest.fixture(scope="module")
def word_translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of whole words, three of which it knows on each side; it has learned nothing."""
    keys = {"tokenizer__kind": "word", "tokenizer__vocab_size": 7, "tokenizer__joint": False, "decoding__guard": False}
    with unchecked_shapes():
        return with_weights(prepared(tmp_path_factory.mktemp("words"), **keys)).folder


def test_unknown_words_are_kept_copied_or_looked_up(word_translator: Path, tmp_path: Path) -> None:
    dictionary = write_lines(tmp_path / "words.tsv", ["ce\tCE\t1", "di\tDI", "lu\tLU\t0.1", "ko\tKO"])
    hows = {
        "never": (), "keep": ("--unknown", "keep"), "copy": ("--unknown", "replace"),
        "dictionary": ("--unknown", "replace", "--dictionary", dictionary),
    }  # fmt: skip
    found = {how: call("translate", word_translator, *flags, stdin=TEXT).lines for how, flags in hows.items()}
    assert "<unk>" not in "".join(found["never"])
    assert "<unk>" in found["keep"][0]
    known = {"ce": "CE", "di": "DI", "lu": "LU", "ko": "KO"}
    for source, kept, copied, looked_up in zip(LINES, found["keep"], found["copy"], found["dictionary"], strict=True):
        for word, copy, other in zip(kept.split(" "), copied.split(" "), looked_up.split(" "), strict=True):
            assert (copy in source.split() and other == known.get(copy, copy)) if word == "<unk>" else copy == word
    many = call("translate", word_translator, *hows["copy"], "--nbest", 2, "--alignment", "--json", stdin=TEXT)
    assert (many.code, "<unk>" in json.loads(many.lines[0])["translation"]) == (0, False)


def test_a_run_of_subwords_and_a_dictionary_that_is_not_used_are_refused(translator: Path, tmp_path: Path) -> None:
    result = call("translate", translator, "--unknown", "keep", stdin=TEXT)
    assert (result.code, 'unknown = "keep" needs a vocabulary of whole words' in result.err) == (2, True)
    dictionary = write_lines(tmp_path / "words.tsv", ["a\tb"])
    result = call("translate", translator, "--dictionary", dictionary, stdin=TEXT)
    assert (result.code, 'set unknown = "replace"' in result.err) == (2, True)


def test_words_that_are_no_longer_replaced_need_no_dictionary_of_the_recipe() -> None:
    recipe = SearchOptions(unknown="replace", dictionary="words.tsv")
    assert search_options(recipe, {}) == recipe
    for unknown in ("never", "keep"):
        assert search_options(recipe, {"unknown": unknown}) == SearchOptions(unknown=unknown)


def test_a_test_set_is_scored_with_replaced_words(word_translator: Path, tmp_path: Path) -> None:
    files = write_lines(tmp_path / "t.aa", LINES[:2]), write_lines(tmp_path / "t.bb", ["x", "y"])
    out, copy = tmp_path / "out", ("--unknown", "replace")
    result = call("evaluate", word_translator, "--src", files[0], "--ref", files[1], *copy, "--out", out)
    assert result.code == 0, result.err
    expected = call("translate", word_translator, *copy, stdin=TEXT).lines[:2]
    assert out.read_text(encoding="utf-8").splitlines() == expected
    assert json.loads((word_translator / "scores.jsonl").read_text())["search"]["unknown"] == "replace"
