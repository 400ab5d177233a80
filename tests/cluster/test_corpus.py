"""Corpora in parts: how files are cut and read, what is written, refused and continued, and every verb that does so.

The cluster is this process here; test_ray.py has a real one.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from cluster_work import Here, results, write_table
from command import Result, call
from toy import WORDS, barely_trained, pairs, without_shape_checks, write_lines

from heed.cluster import parts
from heed.cluster.corpus import Work, compute_corpus
from heed.cluster.parts import cut, input_files, open_files, read_part
from heed.cluster.ray_cluster import Cluster
from heed.core.errors import DataError, UsageError
from heed.core.own_scorer import SCORER, VERDICT
from heed.inference.output_checks import Confidence
from heed.run import Run

__all__ = ["without_shape_checks"]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use this process as the cluster."""
    monkeypatch.setattr("heed.cluster.ray_cluster.Cluster", Here)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of ten rows, in groups of four."""
    monkeypatch.setattr(parts, "STEP_ROWS", 10)
    monkeypatch.setattr(parts, "GROUP_ROWS", 4)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny translator."""
    return barely_trained(tmp_path_factory.mktemp("run")).folder


TEXTS = [src for src, _ in pairs(30, seed=9)]


def shouted(texts: list[str]) -> Mapping[str, Any]:
    """New columns in place of a model's; a text of a question mark is refused."""
    if "?" in texts:
        raise DataError("a question has no answer.")
    return {"shouted": pyarrow.array([text.upper() for text in texts], pyarrow.string())}


def opening() -> Callable[[list[str]], Mapping[str, Any]]:
    """What loads no model."""
    return shouted


def shout(pattern: Path, output: Path, cluster: Any = None, runs: tuple[Path, ...] = (), **options: Any) -> None:
    """Compute a corpus."""
    files, column = input_files([str(pattern)], None)
    compute_corpus(Work("shout", opening, (column,), options, runs), files, output, cluster or Here(), quiet=True)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "parquet"])
def test_every_row_is_in_one_part_in_order(tmp_path: Path, suffix: str, end: str) -> None:
    lines = [*TEXTS, "", "ä\u2028b", "last"]
    path = tmp_path / f"corpus.{suffix}"
    if suffix == "parquet":
        write_table(path, text=lines)
    else:
        content = ("\n".join(lines) + end).encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    files, column = input_files([str(path)], None)
    found = cut(files)
    assert [part.num_rows for part in found] == ([33] if suffix == "txt.gz" else [10, 10, 10, 3])
    tables = [list(read_part(part)) for part in found]
    assert max(table.num_rows for group in tables for table in group) <= 4
    assert [row for group in tables for table in group for row in table.column(column).to_pylist()] == lines


def test_a_larger_corpus_has_longer_parts_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_lines(tmp_path / "a", TEXTS)
    files, _ = input_files([str(tmp_path / "a")], None)
    monkeypatch.setattr(parts, "NUM_PARTS", 1)
    assert [part.num_rows for part in cut(files)] == [30]
    monkeypatch.setattr(parts, "MAX_STEPS", 2)
    assert [(part.first_row, part.num_rows) for part in cut(files)] == [(0, 20), (20, 10)]


def test_bytes_that_are_not_text_are_reported_with_their_line_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n" * 14 + b"b\xffd\n")
    with pytest.raises(DataError, match=r"a\.txt:15: byte 2 is not valid UTF-8"):
        shout(tmp_path / "a.txt", tmp_path / "out")


def test_results_have_the_columns_of_the_input_and_rows_without_a_text_have_none(tmp_path: Path) -> None:
    texts = ["a", None, "b", None, None, "c"]
    write_table(tmp_path / "in" / "a.parquet", id=range(6), text=texts, 더=[[1]] * 6)
    write_table(tmp_path / "in" / "b.parquet", id=range(6, 8), text=["d", "e"], 더=[[2]] * 2)
    shout(tmp_path / "in" / "*.parquet", tmp_path / "out")
    rows = results(tmp_path / "out")
    assert list(rows) == ["id", "text", "더", "shouted"]
    assert rows["id"] == list(range(8)) and rows["더"] == [[1]] * 6 + [[2]] * 2
    assert rows["shouted"] == ["A", None, "B", None, None, "C", "D", "E"]


def write_records(path: Path, *records: dict[str, object]) -> None:
    """A file of JSON lines."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def test_json_lines_are_rows_of_one_table(tmp_path: Path) -> None:
    """Fields that an object or a file lacks are null, in all files alike."""
    write_records(tmp_path / "a.jsonl", *({"n": at, "text": str(at), "x": None} for at in range(24)), {"n": 0.5})
    write_records(tmp_path / "b.jsonl.gz", {"text": "b\u2028\U0001f600", "x": True})
    files, column = input_files([str(tmp_path / "*.jsonl*")], None)
    assert [part.num_rows for part in cut(files)] == [10, 10, 5, 1]
    shout(tmp_path / "*.jsonl*", tmp_path / "out")
    rows = results(tmp_path / "out")
    assert rows["n"] == [*range(24), 0.5, None] and rows["x"] == [None] * 25 + [True] and column == "text"
    assert rows["shouted"] == [*map(str, range(24)), None, "B\u2028\U0001f600"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "a", "x": [1]}, "a.jsonl:2: field 'x' is a list; a row of a table has strings, numbers, true, false"),
        ({"text": "a", "x": {"y": 1}}, "a.jsonl:2: field 'x' is an object; a row of a table has strings"),
        ({"text": "a", "x": "b"}, "a.jsonl:2: field 'x' is a string, and a number in earlier rows. Write one kind"),
        ({"text": "a", "x": 1 << 63}, "a.jsonl:2: field 'x' is a number of more than 64 bits. Write it as a string."),
        ({"text": 1}, "a.jsonl:2: field 'text' is a number, and a string in earlier rows. Write one kind"),
        ({"text": "a", "\ud800": 1}, "a.jsonl:2: field '\\ud800' contains \\ud800, half a character."),
        (
            {"text": "a", "n": (1 << 53) + 1},
            "a.jsonl:2: field 'n' is a whole number that would be rounded, as other rows",
        ),
    ],
)
def test_json_lines_that_are_no_table_are_refused(tmp_path: Path, record: dict[str, object], message: str) -> None:
    write_records(tmp_path / "a.jsonl", {"text": "a", "x": 1, "n": 0.5}, record)
    with pytest.raises(DataError) as error:
        shout(tmp_path / "a.jsonl", tmp_path / "out")
    assert message in str(error.value)


def test_a_lost_driver_continues_with_the_parts_that_are_missing(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", TEXTS)
    lost = Here(lost_after=2)
    with pytest.raises(ConnectionError):
        shout(tmp_path / "a", tmp_path / "out", lost)
    (tmp_path / "out" / ".heed-0123456789ab.tmp").touch()  # of a worker that was killed
    again = Here()
    shout(tmp_path / "a", tmp_path / "out", again)
    assert (len(lost.done), len(again.done)) == (2, 1)
    assert results(tmp_path / "out")["shouted"] == [text.upper() for text in TEXTS]
    assert len(list((tmp_path / "out").iterdir())) == 4  # and the manifest
    finished = Here()
    shout(tmp_path / "a", tmp_path / "out", finished)
    assert finished.done == []


def test_an_error_names_the_row_and_what_was_done_is_kept(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", [*TEXTS[:17], "?", *TEXTS[17:29]])
    with pytest.raises(DataError, match=r"a, row 18 \(part 1\): a question has no answer\."):
        shout(tmp_path / "a", tmp_path / "out")
    assert [path.name for path in sorted((tmp_path / "out").glob("part-*"))] == ["part-000002.parquet"]


def test_results_of_a_run_whose_scorer_was_finished_since_are_refused(run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a", TEXTS)
    folder = shutil.copytree(run, tmp_path / "run")
    for change in (None, SCORER, VERDICT):
        if change == SCORER:
            shutil.copytree(run, folder / SCORER)
        elif change == VERDICT:
            (folder / VERDICT).write_text("{}")
        if change:
            with pytest.raises(UsageError, match=r"\S+run has changed"):
                shout(tmp_path / "a", tmp_path / "out", runs=(folder,))
            shutil.rmtree(tmp_path / "out")
        shout(tmp_path / "a", tmp_path / "out", runs=(folder,))


def test_a_folder_of_other_results_is_refused_with_what_differs(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", TEXTS)
    write_lines(tmp_path / "b", TEXTS)
    output = tmp_path / "out"
    shout(tmp_path / "a", output, beam=1)
    with pytest.raises(UsageError, match=r"out has the results of another call: beam 1, now 2\. Repeat that call"):
        shout(tmp_path / "a", output, beam=2)
    with pytest.raises(UsageError, match=r"a is missing; \S+b is new"):
        shout(tmp_path / "b", output, beam=1)
    write_lines(tmp_path / "a", [*TEXTS[:-1], "other"])
    with pytest.raises(UsageError, match=r"\S+a has changed"):
        shout(tmp_path / "a", output, beam=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(UsageError, match=r"full is not empty \(it has mine\)\. Name another --output\."):
        shout(tmp_path / "a", tmp_path / "full")


def test_a_change_in_the_middle_of_a_text_is_noticed(tmp_path: Path) -> None:
    lines = [f"line {number:06}\n" for number in range(20_000)]
    (tmp_path / "a.txt").write_text("".join(lines), encoding="utf-8")
    [[before], _] = input_files([str(tmp_path / "a.txt")], None, quiet=True)
    lines[10_000] = "LINE 010000\n"
    (tmp_path / "a.txt").write_text("".join(lines), encoding="utf-8")
    [[after], _] = input_files([str(tmp_path / "a.txt")], None, quiet=True)
    assert before.size == after.size and before.fingerprint != after.fingerprint


def test_a_file_that_two_patterns_match_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.txt").symlink_to("a.txt")
    patterns = [str(tmp_path / "a.txt"), str(tmp_path / "sub" / ".." / "a.txt"), str(tmp_path / "*.txt")]
    for given in (patterns, [*reversed(patterns)]):
        assert [file.path.name for file in input_files(given, None, quiet=True)[0]] == ["a.txt"]


@pytest.mark.parametrize("pattern", ["*.txt", "./*.txt", "../*/a.txt"])
def test_a_pattern_is_one_in_a_folder_with_brackets_in_its_name(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpus [2024]"
    folder.mkdir()
    (folder / "a.txt").write_text("a dog\n")
    monkeypatch.chdir(folder)
    [file], _ = input_files([pattern], None, quiet=True)
    assert file.path.is_absolute() and file.path.resolve() == folder / "a.txt"


def test_a_part_reads_no_further_than_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_table(tmp_path / "a.parquet", 1000, text=[str(number) for number in range(1000)])
    sizes: list[int] = []
    iterate = pyarrow.parquet.ParquetFile.iter_batches

    def counted(*args: Any, **kwargs: Any) -> Any:
        for batch in iterate(*args, **kwargs):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "iter_batches", counted)
    part = cut(input_files([str(path)], None, quiet=True)[0])[2]
    assert [row for table in read_part(part) for row in table["text"].to_pylist()] == [str(n) for n in range(20, 30)]
    assert sum(sizes) <= 32


def test_a_part_reads_no_columns_that_are_not_asked_for(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", text=["a"], more=["b"])
    write_records(tmp_path / "a.jsonl", {"text": "a", "more": "b"})
    for name in ("a.parquet", "a.jsonl"):
        [part] = cut(open_files([tmp_path / name], quiet=True))
        assert [table.column_names for table in read_part(part, columns=["text"])] == [["text"]]


def test_results_that_lack_rows_are_noticed(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", TEXTS)
    shout(tmp_path / "a", tmp_path / "out")
    write_table(tmp_path / "out" / "part-000001.parquet", text=["one"])
    with pytest.raises(Exception, match=r"part-000001\.parquet has 1 rows, its part has 10\. Remove the file"):
        shout(tmp_path / "a", tmp_path / "out")


def on_corpus(*words: object, output: Path, code: int = 0) -> Result:
    """A command with --ray."""
    result = call(*words, "--ray", "--output", output)
    assert result.code == code, result.err
    return result


def test_a_corpus_is_translated_as_lines_are(run: Path, tmp_path: Path) -> None:
    path = write_table(tmp_path / "in.parquet", row_group_size=100, en=[*TEXTS, ""], n=range(31))
    result = on_corpus("translate", run, "--beam", 3, "--scores", "--input", path, output=tmp_path / "out")
    text = "".join(f"{line}\n" for line in [*TEXTS, ""])
    rows = results(tmp_path / "out")
    lines = call("translate", run, "--beam", 3, "--scores", stdin=text).lines
    assert [f"{p:.4f}\t{t}" for p, t in zip(rows["log_prob"], rows["translation"], strict=True)] == lines
    assert "results: " in result.err
    options = json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]
    assert (options["--beam"], options["--scores"], options["--precision"]) == (3, True, "float32")


def test_a_row_has_one_translation_whatever_the_recipe_prints(run: Path, tmp_path: Path) -> None:
    several = shutil.copytree(run, tmp_path / "run")
    recipe = (several / "recipe.toml").read_text()
    (several / "recipe.toml").write_text(
        recipe.replace("nbest = 1", "nbest = 2").replace("diversity = 0.0", "diversity = 0.5")
    )
    assert Run(several).recipe.decoding.nbest == 2
    write_lines(tmp_path / "in", TEXTS)
    on_corpus("translate", several, "--scores", "--input", tmp_path / "in", output=tmp_path / "out")
    on_corpus("translate", run, "--scores", "--input", tmp_path / "in", output=tmp_path / "expected")
    assert results(tmp_path / "out") == results(tmp_path / "expected")


def test_pairs_are_scored_embedded_and_predicted_as_lines_are(run: Path, tmp_path: Path) -> None:
    sides = dict(zip(("src", "tgt"), map(list, zip(*pairs(30, seed=9), strict=True)), strict=True))
    text, src = "".join(f"{line}\n" for line in sides["tgt"]), write_lines(tmp_path / "src", sides["src"])
    nothing = [None] * 10  # a part without any text
    path = write_table(tmp_path / "in.parquet", src=sides["src"] + nothing, tgt=sides["tgt"] + nothing)
    words = ("--input", path, "--column", "tgt")
    on_corpus("score", run, *words, "--src-column", "src", output=tmp_path / "scored")
    *scores, last = results(tmp_path / "scored")["log_prob"]
    assert [last, *(scores.pop() for _ in range(9))] == nothing
    lines = call("score", run, "--src", src, stdin=text).lines
    assert scores == pytest.approx([float(line) for line in lines], abs=1e-3)  # batches of other lines round otherwise
    on_corpus("embed", run, *words, "--pooling", "max", output=tmp_path / "embedded")
    vectors = np.load(io.BytesIO(call("embed", run, "--pooling", "max", stdin=text).stdout))
    found = results(tmp_path / "embedded")["vector"]
    np.testing.assert_allclose(found[:30], vectors, rtol=1e-4, atol=1e-6)
    assert found[30:] == nothing
    ones = (1.0, 1.0, 1.0, 1.0)
    confidence = Confidence(
        mean=ones,
        scale=ones,
        weights=ones,
        bias=0.5,
        good_chrf=50.0,
        num_sentences=80,
        beam_size=5,
        calibration_error=0.1,
    )
    confidence.write(calibrated := shutil.copytree(run, tmp_path / "run"))
    on_corpus("predict", calibrated, *words, "--top", 2, "--probabilities", output=tmp_path / "predicted")
    rows = results(tmp_path / "predicted")
    names = ["prediction", "probability", "prediction2", "probability2"]
    assert list(rows)[2:] == names
    lines = call("predict", calibrated, "--top", 2, "--probabilities", stdin=text).lines
    found = list(zip(*(rows[name] for name in names), strict=True))
    shown = [[f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row if cell is not None] for row in found]
    assert ["\t".join(cells) for cells in shown[:30]] == lines
    assert found[30:] == [(None,) * 4] * 10
    refused = on_corpus("predict", run, *words, "--probabilities", output=tmp_path / "refused", code=2)
    assert "its confidence is not calibrated" in refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--input", "{}"), "--input needs --ray."),
        (("--ray",), "--ray needs --input FILES and --output DIR."),
        (("--ray", "--input", "{}/none*", "--output", "out"), "no file matches {}/none*. Put patterns in quotes"),
        (("--ray", "--input", "{}/two.parquet", "--output", "out"), "which column has the texts? Give --column NAME"),
        (("--ray", "--input", "{}/two.parquet", "--output", "out", "--column", "c"), "no column 'c'; it has 'a', 'b'"),
        (("--ray", "--input", "{}/two.parquet", "--output", "out", "--column", "n"), "column 'n' is int64; it must be"),
        (
            ("--ray", "--input", "{}/*", "--output", "out", "--column", "a"),
            "is Parquet, but {}/a.txt is plain text. Give one",
        ),
        (("--ray", "--input", "{}/a.txt", "--output", "out", "--json"), "--json cannot be combined with --ray."),
        (
            ("--ray", "--input", "{}/a.txt", "--output", "out", "--decoding.nbest=2"),
            "with --ray, each row gets one translation: leave out --decoding.nbest.",
        ),
        (("--ray", "--input", "{}/a.txt", "--output", "out", "--device", "auto"), "--ray takes --device cpu or cuda"),
    ],
)
def test_what_cannot_be_done_is_refused(run: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    write_table(tmp_path / "two.parquet", a=["x"], b=["y"], n=[1])
    write_lines(tmp_path / "a.txt", ["x"])
    result = call("translate", run, *(word.format(tmp_path) for word in words))
    assert result.code in (2, 65, 66) and message.format(tmp_path) in result.err


def test_an_address_is_checked_before_a_cluster_is_sought() -> None:
    for address in ("runs/en-de", "ray://host:1", ":1"):
        with pytest.raises(UsageError, match="give auto or HOST:PORT of a cluster"):
            Cluster(address)


def test_a_text_that_depends_on_others_is_not_scored_in_parts(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", [f"the {a} sees the {b} ." for a in WORDS for b in WORDS])
    keys = ("--model.kind=bigram", "--data.text_as=stream", "--out", tmp_path / "run", "--quiet")
    assert call("train", "--text", text, *keys).code == 0
    result = on_corpus("score", tmp_path / "run", "--input", text, output=tmp_path / "out", code=2)
    assert "reads all lines as one text, which cannot be scored in parts" in result.err
