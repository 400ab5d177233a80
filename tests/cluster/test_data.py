"""Corpora that are examined and deduplicated in parts: the same as one process finds in one file with all rows."""

from __future__ import annotations

import gzip
import json
import os
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cluster_work import Here, results, write_table
from command import call
from messy import messy_pairs
from toy import write_lines

from heed.cli.data_corpus import Deduplication
from heed.cluster import parts, repeats
from heed.cluster.corpus import Work
from heed.cluster.repeats import compute_distinct
from heed.cluster.rows import open_texts
from heed.text.doctor.lines import EvenSample
from heed.text.doctor.pairs import LengthCorrelation
from heed.text.hashing import hash_pair, hash_text

PAIRS = messy_pairs(300)
BARE = [(src.replace("\r", " "), tgt.replace("\r", " ")) for src, tgt in PAIRS]
"""Without carriage returns, which a text with Windows line ends loses at the ends of its lines."""
LINES = [src for src, _ in BARE]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process as the cluster; parts of ten rows; and blocks, samples and ranges that cross the bounds of parts."""
    monkeypatch.setattr("heed.cluster.ray_cluster.Cluster", Here)
    monkeypatch.setattr("heed.cli.data_corpus.Cluster", Here)
    monkeypatch.setattr(parts, "STEP_ROWS", 10)
    monkeypatch.setattr(parts, "GROUP_ROWS", 4)
    monkeypatch.setattr(LengthCorrelation, "BLOCK", 25)
    monkeypatch.setattr(LengthCorrelation, "SMALLEST_BLOCK", 10)
    monkeypatch.setattr(EvenSample, "SIZE", 7)
    monkeypatch.setattr(repeats, "RANGE_KEYS", 64)


def write_pairs(folder: Path, kind: str, pairs: list[tuple[str, str]], cuts: tuple[int, ...] = (0, 117, 300)) -> Path:
    """The pairs in files of one kind."""
    for number, (begin, end) in enumerate(pairwise(cuts)):
        src, tgt = map(list, zip(*pairs[begin:end], strict=True))
        path = folder / f"{number}.{kind}"
        if kind == "parquet":
            write_table(path, en=src, de=tgt)
        else:
            rows = (
                json.dumps({"en": one, "de": other}) if kind == "jsonl" else f"{one}\t{other}"
                for one, other in pairs[begin:end]
            )
            lines = "".join(f"{row}\n" for row in rows).encode()
            folder.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(lines) if kind.endswith("gz") else lines)
    return folder / f"*.{kind}"


def report(*words: object) -> dict[str, Any]:
    """The report of a command, without the fingerprints of files."""
    result = call("data", "check", *words, "--json", "--quiet")
    assert result.code in (0, 65), result.err
    found: dict[str, Any] = json.loads(result.out)
    del found["fingerprints"]
    return found


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "tsv", "tsv.gz"])
def test_the_report_on_pairs_is_that_of_one_process(tmp_path: Path, kind: str) -> None:
    write_pairs(tmp_path / "valid", kind, BARE[40:80], (0, 40))
    write_pairs(tmp_path / "test", kind, messy_pairs(30, 7), (0, 30))
    columns = ("--src-column", "en", "--tgt-column", "de") if kind in ("parquet", "jsonl") else ()
    more = (*columns, "--src-lang", "en", *(f"--{name}={tmp_path / name / '0'}.{kind}" for name in ("valid", "test")))
    write_pairs(tmp_path / "one", kind, BARE, (0, 300))
    alone = report(tmp_path / "one" / f"0.{kind}", *more)
    output = tmp_path / "out"
    words = ("--ray", "--input", write_pairs(tmp_path / "many", kind, BARE), "--output", output, *more)
    assert report(*words) == alone
    assert len(list(output.glob("part-*.json"))) >= (2 if kind == "tsv.gz" else 30)
    assert {path.suffix for path in output.iterdir()} == {".json"}, "the hashes are removed"
    assert report(*words) == alone, "of the parts that are there already"
    assert {"duplicate", "several-targets", "misaligned", "leaked"} <= {each["check"] for each in alone["findings"]}


def test_the_report_on_texts_is_that_of_one_process(tmp_path: Path) -> None:
    lines = [*LINES, *(src for src, _ in messy_pairs(90, 3))]
    held_out = write_lines(tmp_path / "held-out", lines[100:130])
    alone = report("--text", write_lines(tmp_path / "all", lines), "--valid", held_out)
    for name, begin, end in (("a.txt", 0, 135), ("b.txt", 135, 136), ("c.txt", 136, 390)):
        write_lines(tmp_path / name, lines[begin:end])
    words = ("--text", "--valid", held_out, "--ray", "--input", tmp_path / "*.txt", "--output")
    assert report(*words, tmp_path / "out") == alone
    assert {"duplicate", "leaked"} <= {finding["check"] for finding in alone["findings"]}
    (tmp_path / "out" / "part-000000.json").write_text("{}")
    refused = call("data", "check", *words, tmp_path / "out")
    assert refused.code == 65 and "part-000000.json is damaged, or of another version of heed." in refused.err


def test_rows_of_headings_and_windows_line_ends_are_reported(tmp_path: Path) -> None:
    lines = [f"{src}\t{tgt}" for src, tgt in BARE]
    for name, begin, end in (("a.tsv", 0, 120), ("b.tsv", 120, 300)):
        (tmp_path / name).write_bytes("".join(f"{line}\r\n" for line in ["en\tde", *lines[begin:end]]).encode())
    write_lines(tmp_path / "all", ["en\tde", *lines]).rename(tmp_path / "all.tab")
    found = report("--ray", "--input", tmp_path / "?.tsv", "--output", tmp_path / "out")
    alone = report(tmp_path / "all.tab")
    assert (found["num_pairs"], found["languages"]) == (300, {"src": "en", "tgt": "de"})
    messages = {finding["message"] for finding in found["findings"]}
    assert messages - {finding["message"] for finding in alone["findings"]} == {
        "The training file has entries without a pair: 2 rows of headings ('en', 'de').",
        "a.tsv: 121 of 121 lines have Windows line ends (CRLF), which are removed when read.",
        "b.tsv: 181 of 181 lines have Windows line ends (CRLF), which are removed when read.",
    }
    assert found["statistics"] == alone["statistics"] and found["dropped"] == alone["dropped"]


def test_held_out_pairs_in_two_files_and_their_roles(tmp_path: Path) -> None:
    write_pairs(tmp_path / "in", "tsv", BARE)
    held = [
        write_lines(tmp_path / name, lines) for name, lines in zip("st", zip(*BARE[40:80], strict=True), strict=True)
    ]
    words = ("--ray", "--input", tmp_path / "in" / "*.tsv", "--output", tmp_path / "out")
    found = report(*words, "--valid", held[0], "--valid", held[1])
    assert "leaked" in {finding["check"] for finding in found["findings"]}
    other = call("data", "check", *words, "--test", held[0], "--test", held[1])
    assert other.code == 2 and "has the results of another call" in other.err


def test_held_out_pairs_from_a_pipe_are_refused(tmp_path: Path) -> None:
    write_pairs(tmp_path / "in", "tsv", BARE)
    words = ("--ray", "--input", tmp_path / "in" / "*.tsv", "--output", tmp_path / "out")
    os.mkfifo(pipe := tmp_path / "pipe")
    for more in (("--valid", pipe, "--valid", pipe), ("--text", "--test", pipe), ("--text", "--test", "-")):
        refused = call("data", "check", *words, *more)
        assert refused.code == 2 and "can be read only once: with --ray, write it to a file first." in refused.err


def test_a_text_that_fills_the_corpus_takes_no_memory_of_a_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "a", ["same"] * 150 + LINES[:5] + ["same"] * 145)
    sizes: list[int] = []

    def counted(arrays: Any) -> Any:
        whole = np.concatenate(arrays)
        sizes.append(len(whole))
        return whole

    monkeypatch.setattr("heed.cluster.repeats.np", SimpleNamespace(**{**vars(np), "concatenate": counted}))
    out = tmp_path / "out"
    assert call("data", "deduplicate", "--ray", "--input", tmp_path / "a", "--output", out).code == 0
    assert results(out)["text"] == list(dict.fromkeys(["same", *LINES[:5]]))
    assert max(sizes) < 64


def test_headings_that_are_left_out_are_named_and_empty_files_read(tmp_path: Path) -> None:
    for name, lines in (("a", []), ("b", ["en\tde", "x\ty"]), ("c", ["x\ty", "z\tw"])):
        write_lines(tmp_path / f"{name}.tsv", lines)
    words = ("--src-column", "1", "--tgt-column", "2", "--output", tmp_path / "out")
    result = call("data", "deduplicate", "--ray", "--input", tmp_path / "*.tsv", *words)
    assert (result.code, results(tmp_path / "out")["text"]) == (0, ["x\ty", "z\tw"])
    assert "left out: 1 row of headings ('en', 'de')" in result.err and "kept 2 of 3 rows" in result.err


def test_the_first_of_equal_rows_is_kept(tmp_path: Path) -> None:
    texts: list[str | None] = [*LINES[:200], None, *(f" {line} " for line in LINES[50:150]), None]
    for name, begin, end in (("a", 0, 33), ("b", 33, 302)):
        write_table(tmp_path / f"{name}.parquet", 40, id=range(begin, end), text=texts[begin:end])
    result = call("data", "deduplicate", "--ray", "--input", tmp_path / "*.parquet", "--output", tmp_path / "out")
    seen: set[int] = set()
    kept = [
        at
        for at, text in enumerate(texts)
        if text is None or not (hash_text(text) in seen or seen.add(hash_text(text)))
    ]
    rows = results(tmp_path / "out")
    assert rows == {"id": kept, "text": [texts[at] for at in kept]}
    assert f"kept {len(kept)} of 302 rows" in result.err and len(kept) < 302
    stdin = "".join(f"{text}\n" for text in texts if text is not None)
    assert call("data", "deduplicate", stdin=stdin).lines == [text for text in rows["text"] if text is not None]


def test_pairs_are_deduplicated_by_both_sides(tmp_path: Path) -> None:
    write_pairs(tmp_path / "in", "parquet", PAIRS)
    words = ("--ray", "--input", tmp_path / "in" / "*.parquet", "--src-column", "en", "--tgt-column", "de")
    assert call("data", "deduplicate", *words, "--output", tmp_path / "out").code == 0
    rows = results(tmp_path / "out")
    distinct: dict[int, tuple[str, str]] = {}
    for pair in PAIRS:
        distinct.setdefault(hash_pair(*pair), pair)
    assert [*zip(rows["en"], rows["de"], strict=True)] == [*distinct.values()]
    assert len(distinct) < len(PAIRS)


@pytest.mark.parametrize("lost_after", [1, 5, 31, 37, 45, 60])
def test_a_lost_driver_continues_with_what_is_missing(tmp_path: Path, lost_after: int) -> None:
    """Whatever stage it was in: 30 parts write hashes, ranges of them are compared, and parts are written."""
    write_lines(tmp_path / "a", LINES)
    corpus = open_texts([str(tmp_path / "a")], None, "strict", quiet=True)
    work = Work("data deduplicate", partial(Deduplication, corpus.rows), ("text",), {}, ())

    def compute(name: str, cluster: Here) -> list[Path]:
        return compute_distinct(work, 1, corpus, tmp_path / name, ".parquet", cluster, quiet=True)

    whole, lost, again = Here(), Here(lost_after=lost_after), Here()
    expected = [path.read_bytes() for path in compute("whole", whole)]
    with pytest.raises(ConnectionError):
        compute("out", lost)
    assert [path.read_bytes() for path in compute("out", again)] == expected
    assert len(lost.done) + len(again.done) == len(whole.done)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "{}/a.tsv", "--ray", "--input", "{}/a.tsv", "--output", "o"), "FILES cannot be combined with --ray"),
        (
            ("check", "--conll", "--ray", "--input", "{}/a.tsv", "--output", "o"),
            "--conll cannot be combined with --ray",
        ),
        (("check", "--column", "c", "--ray", "--input", "{}/a.tsv", "--output", "o"), "--column selects a text: give"),
        (("check", "--ray", "--input", "{}/a.csv", "--output", "{}/o"), "a.csv is csv, which cannot be read in parts"),
        (
            ("check", "--ray", "--input", "{}/a.tsv", "--output", "{}/o"),
            "a.tsv:3: 1 column, but the source is column 1",
        ),
        (
            ("check", "--ray", "--input", "{}/?.tsv", "--output", "o", "--src-lang", "en"),
            "b.tsv: the source and the target are in other columns than in",
        ),
        (("check", "--ray", "--input", "{}/a.parquet", "--output", "{}/o"), "no column 'src'; it has 'en', 'de'"),
        (
            ("check", "--ray", "--input", "{}/a.parquet", "--output", "{}/o", "--src-column=en", "--tgt-column=de"),
            "a.parquet, row 2: field 'de' is null; it must be a string.",
        ),
        (("deduplicate", "--src-column", "a"), "give both --src-column and --tgt-column, or neither."),
        (("deduplicate", "--src-column", "a", "--tgt-column", "b"), "--src-column needs --ray."),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    write_lines(tmp_path / "a.tsv", ["a\tb", "c\td", "e"])
    write_lines(tmp_path / "b.tsv", ["de\ten", "c\td"])
    write_lines(tmp_path / "a.csv", ["a,b"])
    write_table(tmp_path / "a.parquet", en=["x", "y"], de=["z", None])
    result = call("data", *(word.format(tmp_path) for word in words))
    assert result.code in (2, 65) and message in result.err
