"""Tests of `heed evaluate`: comparable scores, with signatures, intervals and paired tests."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from command import call
from sacrebleu.metrics.bleu import BLEU
from toy import pairs, write_lines


@pytest.fixture
def run(translator: Path, tmp_path: Path) -> Path:
    """The shared translator in a folder of its own: scoring writes into it."""
    shutil.copytree(translator, tmp_path / "run", ignore=shutil.ignore_patterns("scores.jsonl"))
    return tmp_path / "run"


@pytest.fixture
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without pictures, which take longest."""
    monkeypatch.setattr("heed.report.page.draw_curves", lambda folder, train, validations: "")


@pytest.fixture
def files(tmp_path: Path) -> tuple[object, ...]:
    """Forty pairs that the translator was partly trained on."""
    src = write_lines(tmp_path / "test.aa", [src for src, _ in pairs(40)])
    ref = write_lines(tmp_path / "test.bb", [tgt for _, tgt in pairs(40)])
    return "--src", src, "--ref", ref


def test_scores_carry_signatures_and_intervals_and_bleu_is_sacrebleus(translator: Path, tmp_path: Path) -> None:
    src, ref = translator.parent / "test.aa", translator.parent / "test.bb"
    out = tmp_path / "out"
    result = call("evaluate", translator, "--src", src, "--ref", ref, "--out", out)
    assert result.code == 0, result.err
    assert result.lines[0] == "test.aa and test.bb, 40 lines"
    assert re.split("  +", result.lines[2].strip()) == ["BLEU", "chrF2", "TER", "length"]
    assert re.fullmatch(rf"{translator}(  +[\d.]+ \[[\d.]+, [\d.]+\]){{3}}  +\d\.\d\d\d", result.lines[3])
    for line, name in zip(result.lines[5:], ("BLEU", "chrF2", "TER"), strict=False):
        assert re.fullmatch(rf"{name} +nrefs:1\|bs:1000\|.*version:\S+", line)
    outputs = out.read_text().splitlines()
    assert outputs == call("translate", translator, stdin=src.read_bytes()).lines
    bleu = BLEU().corpus_score(outputs, [ref.read_text().splitlines()]).score
    assert float(result.lines[3].removeprefix(str(translator)).split()[0]) == pytest.approx(bleu, abs=0.01)


def test_several_systems_are_one_table_each_tested_against_the_first(
    translator: Path, recurrent: Path, files: tuple[object, ...], tmp_path: Path
) -> None:
    finished = write_lines(tmp_path / "other.bb", [tgt for _, tgt in pairs(40)])
    words = (translator, recurrent, "--hyp", f"perfect={finished}", *files, "--beam", "1", "--json")
    result = call("evaluate", *words)
    assert result.code == 0, result.err
    first, second, third = json.loads(result.out)
    assert [it["system"] for it in (first, second, third)] == [str(translator), str(recurrent), "perfect"]
    assert (first["run"], third["run"]) == (str(translator), None)
    assert first["against_first"] == {}
    assert third["scores"][0]["value"] == pytest.approx(100)
    for found in (second, third):
        test = found["against_first"]["chrf"]
        assert test["difference"] == pytest.approx(found["scores"][1]["value"] - first["scores"][1]["value"])
        assert 0 < test["p_bootstrap"] <= 1 and 0 < test["p_randomisation"] <= 1
    assert second["against_first"]["chrf"]["p_bootstrap"] < 0.01
    assert {"name", "value", "signature", "low", "high"} == second["scores"][0].keys()
    assert first["search"]["beam_size"] == 1


def test_a_run_does_not_differ_from_itself(translator: Path, files: tuple[object, ...]) -> None:
    result = call("evaluate", translator, translator, *files)
    assert sum(line.startswith("  against the first ") for line in result.lines) == 1
    assert "+0.00 p 1.000 / 1.000" in result.out
    assert "approximate randomisation" in result.out


def test_finished_translations_are_compared_without_any_run(tmp_path: Path) -> None:
    lines = ["ein Hund läuft schnell", "zwei Katzen schlafen dort", "ein Mann geht weg"] * 9
    src, ref = write_lines(tmp_path / "src", lines), write_lines(tmp_path / "ref", lines)
    poor = write_lines(tmp_path / "poor", [line.upper() for line in lines])
    result = call("evaluate", "--src", src, "--ref", ref, "--hyp", f"a={ref}", "--hyp", f"b={poor}", "--tgt-lang", "zh")
    assert result.code == 0, result.err
    assert "tok:zh" in result.out
    assert re.search(r"^a  +100\.00 ", result.out, re.MULTILINE)
    assert "leakage" not in result.out


def test_scores_by_length_are_drawn_for_every_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn: dict[str, list[float]] = {}
    errorbar = Axes.errorbar

    def record(self: Axes, x: list[float], y: list[float], *args: object, **style: object) -> object:
        drawn.setdefault(str(style["label"]), []).extend(y)
        return errorbar(self, x, y, *args, **style)  # type: ignore[arg-type]

    monkeypatch.setattr(Axes, "errorbar", record)
    lines = [" ".join(["a", "b", "c", "d"] * number) for number in (1, 2, 5)] * 5
    src = ref = write_lines(tmp_path / "src", lines)
    good, bad = write_lines(tmp_path / "good", lines), write_lines(tmp_path / "bad", [f"x {line}" for line in lines])
    picture = tmp_path / "lengths.png"
    words = ("--hyp", f"good={good}", "--hyp", f"$a_{{$={bad}", "--src", src, "--ref", ref, "--plot")
    result = call("evaluate", *words, picture)
    assert result.code == 0, result.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert drawn["good"] == pytest.approx([100] * 6)  # BLEU and chrF2 of three lengths
    shown = drawn[r"\$a_{\$"]  # no formula
    assert all(10 < score < 100 for score in shown) and shown[0] < shown[2]
    nowhere = call("evaluate", *words, tmp_path / "missing" / "a.png")
    assert nowhere.code == 2 and "--plot" in nowhere.err


def test_several_test_sets_are_scored_in_one_call(translator: Path, files: tuple[object, ...]) -> None:
    other = ("--src", translator.parent / "test.aa", "--ref", translator.parent / "test.bb")
    result = call("evaluate", translator, *files, *other, "--json")
    assert result.code == 0, result.err
    first, second = json.loads(result.out)
    assert first["test"] != second["test"]
    alone = json.loads(call("evaluate", translator, *other, "--json").out)
    assert second["scores"] == alone[0]["scores"]


def test_leaked_test_lines_are_reported_and_left_out(run: Path, files: tuple[object, ...]) -> None:
    result = call("evaluate", run, *files)
    [told] = re.findall(
        r"^warning: (\d+) of 40 test lines \(.*%\) are in the training data of", result.err, re.MULTILINE
    )
    assert 30 <= int(told) <= 40
    assert "as pairs" in result.err
    unseen = ("--src", run.parent / "new.aa", "--ref", run.parent / "new.bb")
    write_lines(run.parent / "new.aa", ["ba ba ba ba ba ba ba ba"])
    write_lines(run.parent / "new.bb", ["kan kan kan kan kan kan kan kan"])
    assert "no test line is in the training data" in call("evaluate", run, *unseen).out
    shutil.rmtree(run / "data")
    assert f"there is no fingerprint of the training data of {run}" in call("evaluate", run, *unseen).out


def test_the_worst_lines_and_the_analysis_are_shown_on_request(run: Path, files: tuple[object, ...]) -> None:
    plain = call("evaluate", run, *files).out
    assert "worst lines" not in plain
    assert "word in training" not in plain
    result = call("evaluate", run, *files, "--worst", "2", "--analysis")
    assert result.out.count("\n  line ") == 2
    assert re.search(r"^    links      \w+=\w+", result.out, re.MULTILINE)
    assert re.search(r"^source, words  lines", result.out, re.MULTILINE)
    assert re.search(r"^1–|^10–99|^5–9|^100–999", result.out, re.MULTILINE)


@pytest.mark.usefixtures("no_curves")
def test_scores_are_logged_and_earlier_evaluations_are_reported(run: Path, files: tuple[object, ...]) -> None:
    (run / "report.md").write_text("old")
    first = call("evaluate", run, *files, "--quiet")
    assert first.err == ""
    second = call("evaluate", run, *files)
    assert "was scored on this test set once before" in second.err
    assert "was scored on this test set 2 times before" in call("evaluate", run, *files).err
    entries = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    assert [[file["name"] for file in entry["test"]] for entry in entries] == [["test.aa", "test.bb"]] * 3
    assert re.search(r"\(time 3\) \| `test.aa` `test.bb` \| 40 \|", (run / "report.md").read_text())


@pytest.mark.usefixtures("no_curves")
def test_scores_of_an_ensemble_are_logged_in_each_of_its_runs(
    run: Path, files: tuple[object, ...], tmp_path: Path
) -> None:
    (run / "report.md").write_text("old")
    twin = shutil.copytree(run, tmp_path / "twin")
    assert call("evaluate", run, twin, "--ensemble", *files, "--beam", "1").code == 0
    for folder in (run, twin):
        entries = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
        assert [entry.get("ensemble") for entry in entries] == [None, ["run", "twin"]]
        assert entries[0]["time"] == entries[1]["time"], "the test set was looked at once"
        report = (folder / "report.md").read_text()
        assert re.search(r"\| `test.aa` `test.bb` \| 40 \| ensemble of `run`, `twin`, beam 1", report)
        assert "(time 2)" not in report


def test_scores_are_printed_even_if_they_cannot_be_logged(run: Path, files: tuple[object, ...]) -> None:
    (run / "scores.jsonl").mkdir()
    result = call("evaluate", run, *files)
    assert result.code == 0
    assert "warning: the scores were not written into the run folder" in result.err
    assert "BLEU" in result.out


def test_a_test_set_with_exchanged_sides_is_refused(run: Path, tmp_path: Path) -> None:
    src = write_lines(tmp_path / "test.aa", [src for src, _ in pairs(40)])
    ref = write_lines(tmp_path / "test.bb", [tgt for _, tgt in pairs(40)])
    result = call("evaluate", run, "--src", ref, "--ref", src)
    assert (result.code, result.stdout) == (65, b"")
    assert "Swap the two sides" in result.err


def test_a_language_model_is_scored_on_text(bigram: Path) -> None:
    result = call("evaluate", bigram, "--text", bigram.parent / "text")
    assert result.code == 0, result.err
    heads, row = (re.split("  +", line.strip()) for line in result.lines[2:4])
    assert heads == [
        "perplexity per word", "perplexity per token", "bits per character", "bits per byte",
        "training, per token", "parameters", "reads",
    ]  # fmt: skip
    assert row[0] == str(bigram)
    assert re.fullmatch(r"\d+\.\d+ \[\d+\.\d+, \d+\.\d+\]", row[1])
    assert row[-1] == "line"
    assert "|bs:1000|" in result.out
    assert "bits per byte" in result.out


def test_tokenised_text_is_not_tokenised_again(translator: Path) -> None:
    src, ref = translator.parent / "test.aa", translator.parent / "test.bb"
    assert "tok:none" in call("evaluate", translator, "--src", src, "--ref", ref, "--tokenised").out


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((), 2, "give --src F --ref F (or --pairs F) for translation runs, --text F for language models"),
        (("--src", "test.aa"), 2, "give one --ref F for each --src F."),
        (("--src", "test.aa", "--ref", "test.bb", "--text", "x"), 2, "give --src F --ref F"),
        (("--src", "test.aa", "--ref", "train.bb"), 65, "line k of one must be the translation of line k"),
        (("--src", "test.aa", "--ref", "nowhere"), 66, "nowhere does not exist"),
        (("--text", "test.aa"), 2, "--text needs a run that can generate"),
        (("--text", "test.aa", "--out", "x"), 2, "--text is for language models: leave out --out."),
        (("--text", "test.aa", "--worst", "3"), 2, "--text is for language models: leave out --worst."),
        (("--src", "test.aa", "--ref", "test.bb", "--src", "test.aa"), 2, "give one --ref F for each --src F"),
        (("--src", "test.aa", "--ref", "test.bb", "--hyp", "x=test.csv"), 2, "test.csv is csv; give plain text"),
        (("--src", "test.aa", "--ref", "test.bb", "--hyp", "x"), 2, "--hyp takes NAME=FILE"),
        (("--src", "test.aa", "--ref", "test.bb", "--hyp", "x=nowhere"), 66, "nowhere does not exist"),
        (("--src", "test.aa", "--ref", "test.bb", "--hyp", "x=train.bb"), 65, "one translation for each line"),
    ],
)
def test_wrong_calls_are_refused(
    translator: Path, flags: tuple[str, ...], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(translator.parent)
    result = call("evaluate", translator, *flags)
    assert (result.code, result.stdout) == (code, b"")
    assert message in result.err


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        (("--dynamic", "sgd", "--stride", "3"), "leave out --stride, --dynamic."),
        (("--compressors",), "leave out --compressors."),
        (("--dynamic-lr", "1"), "leave out --dynamic-lr."),
        (("--src-column", "2"), "columns are those of --pairs: leave out --src-column."),
        (("--rare", "7"), "--rare needs --analysis or --json"),
    ],
)
def test_flags_without_effect_on_translations_are_refused(
    translator: Path, files: tuple[object, ...], words: tuple[str, ...], left_out: str
) -> None:
    result = call("evaluate", translator, *files, *words)
    assert (result.code, left_out in result.err) == (2, True), result.err


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        (("--beam", "3", "--tokenised"), "leave out --tokenised, --beam."),
        (("--worst", "3"), "leave out --worst."),
        (("--dynamic-lr", "1"), "without --dynamic: leave out --dynamic-lr."),
        (("--cache-size", "7"), "without --cache: leave out --cache-size."),
        (("--stride", "7"), "--stride is for runs trained with data.text_as"),
        (("--dynamic", "sgd", "--precision", "int8"), "leave out --precision."),
    ],
)
def test_flags_without_effect_on_a_text_are_refused(bigram: Path, words: tuple[str, ...], left_out: str) -> None:
    result = call("evaluate", bigram, "--text", bigram.parent / "text", *words)
    assert (result.code, left_out in result.err) == (2, True), result.err


def test_invalid_utf8_in_finished_translations_is_replaced_on_request(tmp_path: Path) -> None:
    for name, text in (("s", b"a b\n"), ("r", b"c d\n"), ("h", b"c \xff\n")):
        (tmp_path / name).write_bytes(text)
    words = ("evaluate", "--src", tmp_path / "s", "--ref", tmp_path / "r", "--hyp", f"x={tmp_path / 'h'}")
    assert call(*words).code == 65
    assert call(*words, "--errors", "replace").code == 0


@pytest.mark.parametrize(
    "words",
    [("--conll", "F"), ("--table", "F"), ("--similarity", "F"), ("--text", "F"), ("--src", "F"), ("--worst", 3)],
)
def test_a_calibration_reads_no_test_set(words: tuple[object, ...]) -> None:
    result = call("evaluate", "run", "--calibrate", *words)
    assert (result.code, f"leave out {words[0]}." in result.err) == (2, True)


def test_a_call_without_systems_is_refused() -> None:
    result = call("evaluate", "--src", "a", "--ref", "b")
    assert result.code == 2
    assert "name a run to score, or finished translations with --hyp NAME=FILE" in result.err


def test_several_language_models_are_compared_by_bits_per_byte(bigram: Path) -> None:
    result = call("evaluate", bigram, bigram, "--text", bigram.parent / "text")
    assert result.code == 0, result.err
    assert "+0.000 p 1.000 / 1.000" in result.out
    [told] = re.findall(r"(\d+) of 144 test lines \(.*\) are in the training data", result.out)
    assert 100 < int(told) < 144  # the others were held out


def test_an_empty_test_set_is_refused(translator: Path, tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty", [])
    result = call("evaluate", translator, "--src", empty, "--ref", empty)
    assert result.code == 65
    assert result.err.count("\n") == 1


def test_without_a_run_the_languages_of_a_memory_must_be_given(tmp_path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{src}</seg></tuv><tuv xml:lang="de"><seg>{tgt}</seg></tuv></tu>'
        for src, tgt in (("One dog.", "Ein Hund."), ("Two dogs.", "Zwei Hunde."))
    )
    memory = tmp_path / "test.tmx"
    memory.write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>')
    made = write_lines(tmp_path / "made", ["Ein Hund.", "Zwei Hunde."])
    refused = call("evaluate", "--hyp", f"other={made}", "--pairs", memory)
    assert refused.code == 2
    assert "--src-lang" in refused.err
    told = call("evaluate", "--hyp", f"other={made}", "--pairs", memory, "--src-lang", "en", "--tgt-lang", "de")
    assert told.code == 0, told.err
    assert "100.00" in told.stdout.decode()
