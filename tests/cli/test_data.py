"""Does `heed data check` end with 65 on data that would ruin a training, and only then?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from command import call
from toy import pairs, write_lines, write_pairs


def test_a_good_corpus_passes(tmp_path: Path) -> None:
    result = call("data", "check", *write_pairs(tmp_path))
    assert result.code == 0
    assert result.out.startswith("train: 300 pairs")
    assert result.err == ""


def test_a_ruined_corpus_ends_with_65_and_says_why_on_stdout(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    write_lines(tgt, src.read_text().splitlines())
    result = call("data", "check", src, tgt)
    assert result.code == 65
    assert "STOP" in result.out
    shorter = call("data", "check", src, write_lines(tmp_path / "short", ["kan"] * 299))
    assert shorter.code == 65
    assert "has 300 lines" in shorter.out


def test_leaks_from_validation_and_test_are_found(tmp_path: Path) -> None:
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


def test_wrong_calls_are_told(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    three = call("data", "check", src, tgt, src)
    assert (three.code, three.err) == (2, "error: give two parallel files or one file of pairs, got 3 files.\n")
    two = call("data", "check", "--text", src, tgt)
    assert (two.code, two.err) == (2, "error: --text takes one file, got 2.\n")
    missing = call("data", "check", src, tmp_path / "nowhere")
    assert missing.code == 66
    assert "nowhere does not exist" in missing.err
