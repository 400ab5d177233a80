"""Taggers on the command line: training, streams of CoNLL rows and of text, evaluation and the data doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from command import call
from toy import flags, unchecked_shapes
from toy_tags import TINY, conll, rows, write_conll

import heed
from heed.tasks.predictor import AnswerOptions
from heed.tasks.tagging import streams
from heed.text.readers.conll import Columns

ROWS = AnswerOptions(input="conll", quiet=True)
QUICK = flags({key: value for key, value in TINY.items() if key != "task"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training file, a test file and the run of a tagger."""
    folder = tmp_path_factory.mktemp("tagging")
    train, test = write_conll(folder), write_conll(folder, "test.conll", 1, 30)
    with unchecked_shapes():
        result = call("train", "--conll", train, "--valid-conll", test, "--out", folder / "run", *QUICK)
    assert result.code == 0, result.err
    (folder / "train.log").write_text(result.err)
    return folder


def test_train_infers_the_task_and_says_what_it_reads(folder: Path) -> None:
    log = (folder / "train.log").read_text()
    assert "training: 200 sentences" in log and "IOB1 (B- only between touching spans); 400 spans of 2 types" in log
    assert ("entity_f1" in log and "[New York LOC]" in log) or "[Oslo LOC]" in log
    assert 'task = "tagging"' in (folder / "run/recipe.toml").read_text()
    report = (folder / "run/report.md").read_text()
    assert report.startswith("# Tagger") and "F1" in report and "heed evaluate run --conll test.conll" in report
    info = call("info", folder / "run").out
    assert "iob1" in info and "entity_f1" in info


def test_a_column_of_tags_is_added_and_all_lines_are_kept(folder: Path) -> None:
    text = "-DOCSTART- -X- O\n\nAnn NNP\nmet VB\na12 CD\nNew NNP\nYork NNP\n! .\n\n\nCem NNP\nleft VB\n"
    result = call("predict", folder / "run", "--quiet", stdin=text)
    assert result.code == 0, result.err
    assert result.lines == [
        "-DOCSTART- -X- O", "", "Ann NNP I-PER", "met VB O", "a12 CD O", "New NNP I-LOC", "York NNP I-LOC", "! . O",
        "", "", "Cem NNP I-PER", "left VB O",
    ]  # fmt: skip


def test_gold_tags_tabs_comments_and_one_column_are_kept(folder: Path) -> None:
    run = folder / "run"
    gold = call("predict", run, stdin="# sentence 1\nAnn\tNNP\tO\nmet\tVB\tO\n")
    assert gold.lines == ["# sentence 1", "Ann\tNNP\tO\tI-PER", "met\tVB\tO\tO"]
    assert call("predict", run, stdin="Ann\nmet\n\nOslo\n").lines == ["Ann I-PER", "met O", "", "Oslo I-LOC"]
    words = "1\tAnn\t_\t_\t_\t_\t_\t_\t_\t_\n2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    assert [line.split("\t")[-1] for line in call("predict", run, stdin=words).lines] == ["I-PER", "_"]


def test_sentences_are_split_into_words(folder: Path) -> None:
    result = call("predict", folder / "run", stdin="Ann met a1 Oslo!\n\nDan Lee left the2 Rome.\n")
    assert "reading one sentence per line (--input-as conll reads one token per line)" in result.err
    first, empty, second, *_ = result.out.split("\n\n")
    assert first.split("\n") == ["Ann\tI-PER", "met\tO", "a1\tO", "Oslo\tI-LOC", "!\tO"]
    assert (empty + second).strip().split("\n")[:2] == ["Dan\tI-PER", "Lee\tI-PER"]


def test_probabilities_and_several_taggings_are_further_columns(folder: Path) -> None:
    result = call("predict", folder / "run", "--top", 2, "--probabilities", stdin="Ann\nmet\n\n")
    assert [len(line.split(" ")) for line in result.lines] == [5, 5, 1]
    tag, share = result.lines[0].split(" ")[1:3]
    assert tag == "I-PER" and 0.5 < float(share) <= 1


def test_every_row_has_as_many_columns_though_short_sentences_have_few_taggings(folder: Path) -> None:
    result = call("predict", folder / "run", "--top", 7, "--probabilities", "--quiet", stdin="Ann\n\nAnn\nmet\n")
    rows = [line.split(" ") for line in result.lines if line]
    assert [len(row) for row in rows] == [15, 15, 15]
    assert rows[0][-2:] == ["_", "_"] and "_" not in rows[1]


def test_json_has_the_entities_of_each_sentence(folder: Path) -> None:
    for stdin in ("Ann met a1 New York!\nx\n", "Ann\nmet\na1\nNew\nYork\n!\n\nx\n"):
        first, second = (json.loads(line) for line in call("predict", folder / "run", "--json", stdin=stdin).lines)
        assert first["tokens"] == ["Ann", "met", "a1", "New", "York", "!"] and second["tokens"] == ["x"]
        [answer] = first["predictions"]
        assert answer["text"] == "I-PER O O I-LOC I-LOC O" and 0 < answer["probability"] <= 1
        place = answer["entities"][1]
        assert first["input"][place["start"] : place["end"]] == place["text"] == "New York"
        assert place["type"] == "LOC" and 0 < place["probability"] <= 1


@pytest.mark.parametrize(
    ("lines", "is_text"),
    [
        (["", "Oslo", "Ann met Dan Lee ."], True),
        (["Oslo", "Rome", "Ann met Dan Lee ."], True),
        (["Ann", "met", "", "Oslo"], False),
        (["Oslo"], False),
        (["Ann", "met", "10\u00a0000"], False),
        (["Non\u00a0!"], True),
    ],
)
def test_the_form_of_lines_does_not_depend_on_when_they_come(folder: Path, lines: list[str], is_text: bool) -> None:
    tagger, options = heed.load(folder / "run"), AnswerOptions(quiet=True)
    answers = [[*chain.from_iterable(tagger.annotate(groups, options))] for groups in ([[x] for x in lines], [lines])]
    assert answers[0] == answers[1] == call("predict", folder / "run", "--quiet", stdin="\n".join(lines)).lines
    assert (answers[0][-1] == "") == is_text


def test_no_break_spaces_are_part_of_the_tokens_of_rows(folder: Path) -> None:
    lines = ["10\u00a0000\u202f%\u3000 CD O", "met VB O", "Ann NNP O"]
    result = call("predict", folder / "run", stdin="\n".join(lines))
    assert "one sentence per line" not in result.err
    assert [line.rpartition(" ")[0] for line in result.lines] == lines
    column = streams.answered([lines[0].split(" ")[:1]], heed.load(folder / "run").tagger, Columns(2), ROWS)
    assert [len(line.split(" ")) for line in chain.from_iterable(column)] == [2], "column 2 is not needed"


def test_sentences_are_answered_as_they_come(folder: Path) -> None:
    read: list[str] = []

    def groups() -> Iterator[list[str]]:
        for lines in (["Ann", "met", ""], ["Cem"], ["met", ""], ["x"]):
            read.extend(lines)
            yield lines

    options = AnswerOptions(quiet=True)
    answers = [(len(read), lines) for lines in heed.load(folder / "run").annotate(groups(), options)]
    assert answers == [
        (3, ["Ann I-PER", "met O", ""]), (4, []), (6, ["Cem I-PER", "met O", ""]), (7, []), (7, answers[-1][1])
    ]  # fmt: skip
    assert answers[-1][1][0].startswith("x ")


def test_an_empty_stream_gives_nothing(folder: Path) -> None:
    assert call("predict", folder / "run", stdin="").out == ""
    assert call("predict", folder / "run", stdin="\n\n").out == "\n\n"
    assert call("predict", folder / "run", "--json", stdin="\n\n").out == ""


def test_evaluate_compares_runs_and_lists_the_types(folder: Path, tmp_path: Path) -> None:
    with unchecked_shapes():
        other = call(
            "train", "--conll", folder / "train.conll", "--out", tmp_path / "other", *QUICK, "--training.max_steps=10"
        )
    assert other.code == 0, other.err
    table = call("evaluate", folder / "run", tmp_path / "other", "--conll", folder / "test.conll")
    assert table.code == 0, table.err
    assert table.out.startswith("test.conll, 30 sentences") and "p 0.0" in table.out and "precision" in table.out
    assert [line.split()[0] for line in table.lines if line.startswith(("PER ", "LOC "))] == ["LOC"] * 2 + ["PER"] * 2
    leaked = tmp_path / "leaked.conll"
    leaked.write_text(conll(rows()[:5] + rows(1, 30)))
    table = call("evaluate", folder / "run", "--conll", leaked)
    assert "without those sentences" in table.out and "Every sentence" not in table.out
    result = call("evaluate", folder / "run", "--conll", folder / "test.conll", "--json")
    [evaluation] = json.loads(result.out)
    scores = {score["name"]: score for score in evaluation["scores"]}
    assert set(scores) == {"F1", "precision", "recall", "accuracy"} and scores["F1"]["low"] <= scores["F1"]["value"]
    assert {each["label"] for each in evaluation["by_label"]} == {"PER", "LOC"}
    assert len((folder / "run/scores.jsonl").read_text().splitlines()) == 3


def test_the_doctor_reports_the_scheme_and_what_is_wrong(tmp_path: Path) -> None:
    sentences = rows()
    sentences[3][0] = "Ann NNP I-PRE"
    sentences[4][0] = "Ann NNP B-PER"
    path, test = tmp_path / "x.conll", tmp_path / "test.conll"
    path.write_text(conll(sentences))
    test.write_text(conll([*sentences[:2], *([f"Xi{n} NN I-MISC"] for n in range(3)), ["Xi0 NN I-MISC"]]))
    result = call("data", "check", "--conll", path, "--test", test, "--json")
    assert result.code == 0, result.err
    found = {finding["check"]: finding for finding in json.loads(result.out)["findings"]}
    line = 1 + conll(sentences).split("\n").index("Ann NNP I-PRE")
    assert f"The type PRE occurs once (line {line}), the similar PER 2" in found["label-typo"]["message"]
    [[at, shown]] = found["broken-spans"]["examples"]
    assert shown == "Ann B-PER" and conll(sentences).split("\n")[at - 1] == "Ann NNP B-PER"
    assert found["leaked"]["count"] == 2 and found["duplicate"]["count"] >= 1
    assert "test has labels that training does not have: MISC" in found["unknown-label"]["message"]


@pytest.mark.parametrize(
    ("tag", "severity", "advice"),
    [
        ("B-PER", "note", "No score is affected: tags are compared in the scheme of the test file."),
        ("NNP", "warn", "They are compared as they are written."),
    ],
)
def test_the_doctor_says_whether_another_scheme_affects_scores(
    tag: str, severity: str, advice: str, tmp_path: Path
) -> None:
    train, test = write_conll(tmp_path), tmp_path / "test.conll"  # IOB1
    test.write_text(conll([[f"Zoe NNP {tag}", f"left{n} VB O"] for n in range(20)]))
    found = json.loads(call("data", "check", "--conll", train, "--test", test, "--json").out)["findings"]
    [finding] = [each for each in found if each["check"] == "other-scheme"]
    assert (finding["severity"], finding["advice"]) == (severity, advice)


def test_arguments_of_marked_tokens_are_tagged_one_column_each(tmp_path: Path) -> None:
    sentence = "0\tAnn\t-\t(A0*)\t(A0*)\n1\tsaw\tsee\t(V*)\t*\n2\tand\t-\t*\t*\n3\tleft\tleave\t*\t(V*)\n\n"
    other = "0\tOslo\t-\t(A1*)\n1\tburned\tburn\t(V*)\n\n"
    train = tmp_path / "x.srl"
    train.write_text("".join((sentence + other).replace("Ann", f"Ann{n}") for n in range(40)))
    keys = [*QUICK, "--mark-column", 3, "--training.max_steps=40", "--data.hold_out=4"]
    with unchecked_shapes():
        trained = call("train", "--conll", train, "--out", tmp_path / "run", *keys)
    assert trained.code == 0, trained.err
    rows_alone = "".join("\t".join(line.split("\t")[:3]) + "\n" for line in sentence.split("\n")[:4])
    result = call("predict", tmp_path / "run", stdin=rows_alone + "\n" + "0\tOh\t-\n")
    assert result.code == 0, result.err
    assert [len(line.split("\t")) for line in result.lines] == [5, 5, 5, 5, 1, 3]
    first, second = (json.loads(line) for line in call("predict", tmp_path / "run", "--json", stdin=rows_alone).lines)
    assert (first["marked"], second["marked"]) == ([1], [3])
    evaluated = call("evaluate", tmp_path / "run", "--conll", train)
    assert evaluated.code == 0 and "120 sentences" in evaluated.out, evaluated.err
    answers = heed.load(tmp_path / "run").evaluate(train).test.references
    assert answers[:2] == ["B-A0 O O O", "B-A0 O O O"], "the tags and not the marks"


def test_broken_spans_and_unknown_schemes_train(tmp_path: Path) -> None:
    text = conll(rows()).replace("I-LOC", "E-LOC", 7).replace("O\n", "X-ODD\n", 3)
    (tmp_path / "x.conll").write_text(text)
    with unchecked_shapes():
        result = call(
            "train", "--conll", tmp_path / "x.conll", "--out", tmp_path / "run", *QUICK, "--training.max_steps=2"
        )
    assert result.code == 0, result.err
    assert "plain tags, without spans" in result.err, "X-ODD is in no scheme, so the tags are not spans"


def test_ragged_rows_on_stdin_are_reported_after_the_sentences_before_them(folder: Path) -> None:
    result = call("predict", folder / "run", "--input-as", "conll", stdin="Ann NNP\nmet VB\n\nx y z\n")
    assert result.code == 65 and "standard input:4: the row has 3 columns ('x y z'), the rows before it 2" in result.err


def test_bad_bytes_of_a_test_set_are_replaced_if_asked(folder: Path, tmp_path: Path) -> None:
    test = tmp_path / "latin.conll"
    test.write_bytes("Ren\xe9 NNP I-PER\nmet VB O\n".encode("latin-1"))
    strict = call("evaluate", folder / "run", "--conll", test)
    assert strict.code == 65 and "--errors replace" in strict.err
    assert call("evaluate", folder / "run", "--conll", test, "--errors", "replace").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--table", "test.csv"], "is a tagger, which is scored on tagged words: give --conll F."),
        (["--conll", "test.conll", "--text", "x"], "--conll is for taggers: leave out --text"),
        (["--conll", "no.conll"], "no.conll does not exist"),
    ],
)
def test_evaluate_refuses_what_does_not_fit(words: list[str], message: str, folder: Path) -> None:
    result = call("evaluate", folder / "run", *words)
    assert result.code in (2, 66) and message in result.err
