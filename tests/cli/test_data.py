"""Tests of `heed data check`: exit code 65 for data that would ruin a training, and only then."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
from command import call
from toy import pairs, write_lines, write_pairs
from toy_questions import questions, write_questions


def test_a_good_corpus_passes(tmp_path: Path) -> None:
    result = call("data", "check", *write_pairs(tmp_path))
    assert result.code == 0
    assert result.out.startswith("train: 300 pairs")
    assert result.err == ""


def test_a_ruined_corpus_ends_with_65_and_the_reason_on_stdout(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    write_lines(tgt, src.read_text().splitlines())
    result = call("data", "check", src, tgt)
    assert result.code == 65
    assert "STOP" in result.out
    shorter = call("data", "check", src, write_lines(tmp_path / "short", ["kan"] * 299))
    assert shorter.code == 65
    assert "has 300 lines" in shorter.out


def test_leaks_from_validation_and_test_are_reported(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    result = call("data", "check", src, tgt, "--test", src, "--test", tgt, "--valid", src, "--valid", tgt)
    assert result.code == 65
    assert "test" in result.out


def test_json_has_every_finding(tmp_path: Path) -> None:
    report = json.loads(call("data", "check", *write_pairs(tmp_path), "--json").out)
    assert report["num_pairs"] == 300
    assert {"check", "severity", "count", "message", "advice"} <= report["findings"][0].keys()


def test_records_and_texts_are_read(tmp_path: Path) -> None:
    tsv = tmp_path / "corpus.tsv.gz"
    tsv.write_bytes(gzip.compress("".join(f"{src}\t{tgt}\n" for src, tgt in pairs(200)).encode()))
    assert call("data", "check", tsv).out.startswith("train: 200 pairs")
    text = write_lines(tmp_path / "text", [src for src, _ in pairs(200)])
    assert "200" in call("data", "check", "--text", text).out.splitlines()[0]


def test_columns_and_languages_select_the_sides(tmp_path: Path) -> None:
    table = tmp_path / "corpus.csv"
    table.write_text("id,English,German\n" + "".join(f"{i},{src},{tgt}\n" for i, (src, tgt) in enumerate(pairs(200))))
    by_name = call("data", "check", table, "--src-column", "english", "--tgt-column", "3")
    by_language = call("data", "check", table, "--src-lang", "en", "--tgt-lang", "deu")
    assert by_name.out.startswith("train: 200 pairs")
    assert by_name.out == by_language.out
    assert "without a pair: 1 row of headings ('id', 'English', 'German')." in " ".join(by_name.out.split())
    assert call("data", "check", table).out == by_name.out, "two columns name languages"
    table.write_text("id,Kitabu,Notes\n1,2,3\n")
    asked = call("data", "check", table)
    assert asked.code == 2
    assert "3 columns ('id', 'Kitabu', 'Notes'), and no heading identifies" in asked.err


def test_examples_of_a_table_are_numbered_by_pairs(tmp_path: Path) -> None:
    rows = [*pairs(200)[:7], ("ba <b>ce</b>", "ler kan"), *pairs(200)[7:]]
    for name, counted in (("c.csv", "pair"), ("c.tsv", "line")):
        mark = "," if name == "c.csv" else "\t"
        write_lines(tmp_path / name, [f"{src}{mark}{tgt}" for src, tgt in rows])
        assert f"        {counted} 8: ba <b>ce</b>" in call("data", "check", tmp_path / name).out.splitlines()


def test_units_of_a_memory_without_a_language_are_counted(tmp_path: Path) -> None:
    unit = "<tu><tuv lang='{}'><seg>{}</seg></tuv><tuv lang='{}'><seg>{}</seg></tuv></tu>"
    units = [unit.format("en-US", src, "fr" if i < 60 else "de", tgt) for i, (src, tgt) in enumerate(pairs(200))]
    (tmp_path / "m.tmx").write_text(f"<tmx><body>{''.join(units)}</body></tmx>")
    result = call("data", "check", tmp_path / "m.tmx", "--src-lang", "en", "--tgt-lang", "de", "--json")
    report = json.loads(result.out)
    assert report["num_pairs"] == 140
    [finding] = [finding for finding in report["findings"] if finding["check"] == "no-pair"]
    assert (finding["severity"], finding["count"], finding["total"]) == ("warn", 60, 200)
    assert finding["message"] == "The training file has entries without a pair: 60 units without de."


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    text = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs(200))
    writer = threading.Thread(target=pipe.write_text, args=[text])
    writer.start()
    result = call("data", "check", pipe)
    writer.join()
    assert (result.code, result.out[:16]) == (0, "train: 200 pairs")
    trained = call("train", "--task", "translation", "--pairs", pipe, "--out", tmp_path / "run")
    assert trained.code == 2
    assert trained.err == f"error: {pipe} cannot be read twice, which training requires: write it to a file first.\n"


@pytest.mark.parametrize("flags", [(), ("--questions",)], ids=["labels", "questions"])
def test_a_table_in_a_pipe_is_read_once(flags: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    rows = [row | {"text": row["question"], "label": row["answer"]} for row in questions(number=40)]
    writer = threading.Thread(target=write_questions, args=[pipe, rows])
    writer.start()
    result = call("data", "check", "--table", pipe, *flags, "--json")
    writer.join()
    assert (result.err, json.loads(result.out)["num_pairs"]) == ("", 40)


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    three = call("data", "check", src, tgt, src)
    assert (three.code, three.err) == (2, "error: expected two parallel files or one file of pairs, got 3 files.\n")
    valid = call("data", "check", src, tgt, "--valid", src, "--valid", tgt, "--valid", tgt)
    assert (valid.code, valid.err[:47]) == (2, "error: --valid: expected two parallel files or ")
    two = call("data", "check", "--text", src, tgt)
    assert (two.code, two.err) == (2, f"error: --text takes one file, got 2: {src}, {tgt}.\n")
    missing = call("data", "check", src, tmp_path / "nowhere")
    assert missing.code == 66
    assert "nowhere does not exist" in missing.err


def test_validation_files_without_their_own_flag_are_refused() -> None:
    one = call("data", "check", "train.en", "train.de", "--valid", "val.en", "val.de")
    said = "repeat the flag before each file of a validation or test set"
    assert (one.code, one.err) == (2, f"error: {said}: --valid SRC --valid TGT.\n")
    before = call("data", "check", "--valid", "val.en", "val.de", "train.en", "train.de")
    assert (before.code, before.err) == (2, one.err)
    both = call("data", "check", "a", "b", "--valid", "v.en", "v.de", "--test", "t.en", "t.de")
    assert both.err == f"error: {said}: --valid SRC --valid TGT --test SRC --test TGT.\n"
    alone = call("data", "check", "train.tsv", "--test", "t.en.gz")
    assert alone.code == 2
    assert alone.err == (
        "error: --test was given once, with t.en.gz. Give two parallel files as --test SRC --test TGT, or one file "
        "of pairs (.tsv, .csv, .jsonl, .parquet, .tmx).\n"
    )
    assert "is a spreadsheet" in call("data", "check", "train.tsv", "--test", "t.xlsx").err
