"""Does `heed evaluate` print scores that can be compared, with signatures, intervals and paired tests?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import call
from sacrebleu.metrics.bleu import BLEU
from toy import pairs, write_lines


def test_scores_carry_signatures_and_intervals_and_bleu_is_sacrebleus(translator: Path, tmp_path: Path) -> None:
    src, ref = translator.parent / "test.aa", translator.parent / "test.bb"
    out = tmp_path / "out"
    result = call("evaluate", translator, "--src", src, "--ref", ref, "--out", out)
    assert result.code == 0, result.err
    assert result.lines[0] == str(translator)
    for line, name in zip(result.lines[1:], ("BLEU", "chrF2", "TER"), strict=True):
        assert re.fullmatch(rf"  {name} [\d.]+ \[[\d.]+, [\d.]+\]  nrefs:1\|.*version:\S+", line)
    outputs = out.read_text().splitlines()
    assert outputs == call("translate", translator, stdin=src.read_bytes()).lines
    bleu = BLEU().corpus_score(outputs, [ref.read_text().splitlines()]).score
    [found] = re.findall(r"BLEU ([\d.]+) ", result.out)
    assert float(found) == pytest.approx(bleu, abs=0.01)


def test_several_runs_are_compared_with_the_first_by_a_paired_test(
    translator: Path, recurrent: Path, tmp_path: Path
) -> None:
    src = write_lines(tmp_path / "src", [src for src, _ in pairs(40)])
    ref = write_lines(tmp_path / "ref", [tgt for _, tgt in pairs(40)])
    result = call("evaluate", translator, recurrent, "--src", src, "--ref", ref, "--beam", "1")
    assert result.code == 0, result.err
    assert re.search(r"chrf against the first: -\d+\.\d\d \(paired bootstrap, p = 0\.001\)", result.out)
    as_json = call("evaluate", translator, recurrent, "--src", src, "--ref", ref, "--beam", "1", "--json")
    first, second = json.loads(as_json.out)
    assert first["run"] == str(translator)
    assert "against_first" not in first
    assert second["against_first"]["chrf"]["difference"] == pytest.approx(
        second["scores"][1]["value"] - first["scores"][1]["value"]
    )
    assert {"name", "value", "signature", "low", "high"} == second["scores"][0].keys()


def test_a_run_against_itself_is_no_different(translator: Path, tmp_path: Path) -> None:
    src = write_lines(tmp_path / "src", [src for src, _ in pairs(10)])
    ref = write_lines(tmp_path / "ref", [tgt for _, tgt in pairs(10)])
    result = call("evaluate", translator, translator, "--src", src, "--ref", ref)
    assert "bleu against the first: +0.00 (paired bootstrap, p = 1.000)" in result.out


def test_a_language_model_is_scored_on_text(bigram: Path) -> None:
    result = call("evaluate", bigram, "--text", bigram.parent / "text")
    assert result.code == 0, result.err
    names = [line.split(" [")[0].rsplit(" ", 1)[0].strip() for line in result.lines[1:]]
    assert names[:2] == ["perplexity per token", "perplexity per word"]
    assert "|bs:1000|" in result.out


def test_text_that_is_tokenised_is_scored_as_it_stands(translator: Path) -> None:
    src, ref = translator.parent / "test.aa", translator.parent / "test.bb"
    assert "tok:none" in call("evaluate", translator, "--src", src, "--ref", ref, "--tokenised").out


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((), 2, "give --src F --ref F for translation runs, or --text F"),
        (("--src", "test.aa"), 2, "give --src F --ref F"),
        (("--src", "test.aa", "--ref", "test.bb", "--text", "x"), 2, "give --src F --ref F"),
        (("--src", "test.aa", "--ref", "train.bb"), 65, "they must be parallel"),
        (("--src", "test.aa", "--ref", "nowhere"), 66, "nowhere does not exist"),
        (("--text", "test.aa"), 2, "evaluate --text needs a language-model run"),
        (("--text", "test.aa", "--out", "x"), 2, "--out is for the translations of one run"),
    ],
)
def test_what_cannot_be_scored_is_told(
    translator: Path, flags: tuple[str, ...], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(translator.parent)
    result = call("evaluate", translator, *flags)
    assert (result.code, result.stdout) == (code, b"")
    assert message in result.err


def test_an_empty_test_set_is_told(translator: Path, tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty", [])
    result = call("evaluate", translator, "--src", empty, "--ref", empty)
    assert result.code == 65
    assert result.err.count("\n") == 1
