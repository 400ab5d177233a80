"""Tests of classification: from a table to a trained, resumed, scored and used classifier."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from toy import without_shape_checks
from wrong_arguments import refuses_what_is_no_text, refuses_wrong_tops

import heed
from heed.core.errors import MissingInputError, UsageError
from heed.core.run_files import RunFiles
from heed.data.validation import read_valid
from heed.models.linear import Examples, LinearConfig, LinearNgrams
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.documents import sentences_of
from heed.nn.links import LINKS
from heed.run import Run
from heed.tasks.classification.answer import Combination, combinations, fit_factors
from heed.tasks.classification.data import TableData
from heed.tasks.classification.defaults import LEAST_UPDATES
from heed.tasks.classification.labels import Labels
from heed.tasks.classification.linear_part import HELD_OUT
from heed.tasks.classification.prepare import targets_of
from heed.tasks.classification.reading import LONGEST_SENTENCE, Encoding
from heed.tasks.classification.rows import TableRows, held_out, split
from heed.tasks.classification.task import ClassificationTask
from heed.tasks.defaults import CorpusStats, Machine
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.vocabulary import EOS_ID

__all__ = ["without_shape_checks"]

GOOD, BAD = ["good", "great", "fine", "nice"], ["bad", "awful", "poor", "dull"]
OTHERS = ["film", "story", "the", "a", "plot", "actor", "very", "was"]
TINY = (
    "--model.d_model=8", "--model.num_filters=4", "--tokenizer.vocab_size=300", "--training.tokens_per_batch=256",
    "--training.max_steps=6", "--training.eval_every=2", "--training.save_every=2", "--training.warmup_steps=2",
    "--precision=float32", "--quiet",
)  # fmt: skip


def rows(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """Sentences with their sentiment."""
    source = random.Random(seed)
    result = []
    for _ in range(number):
        label = source.choice(["pos", "neg"])
        words = [*source.choices(OTHERS, k=4), source.choice(GOOD if label == "pos" else BAD)]
        source.shuffle(words)
        result.append((" ".join(words), label))
    return result


def write(path: Path, content: list[tuple[str, ...]], heading: str = "text,label") -> Path:
    path.write_text("\n".join([heading, *(",".join(row) for row in content)]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a linear and a neural part; `train.csv` and `test.csv` are in the same folder."""
    folder = tmp_path_factory.mktemp("classifier")
    write(folder / "train.csv", list(rows(160)))
    write(folder / "test.csv", list(rows(60, seed=1)))
    result = call("train", "--table", folder / "train.csv", "--out", folder / "run", *TINY)
    assert result.code == 0, result.err
    return folder / "run"


def test_a_table_becomes_a_classifier_with_scores(trained: Path) -> None:
    result = call("evaluate", trained, "--table", trained.parent / "test.csv", "--json", "--quiet")
    assert result.code == 0, result.err
    [evaluation] = json.loads(result.out)
    scores = {score["name"]: score for score in evaluation["scores"]}
    assert scores["accuracy"]["value"] > 95
    assert scores["macro F1"]["low"] <= scores["macro F1"]["value"] <= scores["macro F1"]["high"]
    assert {row["label"] for row in evaluation["by_label"]} == {"pos", "neg"}
    report = (trained / "report.md").read_text()
    assert "## Which part answers" in report
    assert "`good`" in report.split("pos:")[1].split("- neg")[0]


def test_predictions_are_labels_a_line(trained: Path) -> None:
    assert call("predict", trained, stdin="the film was great\na dull plot\n").out == "pos\nneg\n"
    top = call("predict", trained, "--top", "2", "--probabilities", stdin="the film was great\n").out.split("\t")
    assert (top[0], top[2]) == ("pos", "neg")
    assert float(top[1]) + float(top[3]) == pytest.approx(1, abs=2e-4)
    [first], _ = heed.load(trained).predict(["a great film", "bad"])
    assert first.text == "pos"


def test_what_is_not_text_is_refused(trained: Path) -> None:
    with pytest.raises(UsageError, match="expected a text or a list of texts, got float in the list"):
        heed.load(trained).predict(["a great film", float("nan")])


def test_rows_of_a_table_are_printed_with_their_answers(trained: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "new.csv", [("1", '"great, nice"'), ("2", ""), ("3", "a poor film")], "id,text")
    result = call("predict", trained, "--table", table)
    assert result.out == 'id,text,prediction\n1,"great, nice",pos\n2,,\n3,a poor film,neg\n'
    plain = tmp_path / "new.tsv"
    plain.write_text("great film and a nice actor\t7\ndull story by a bad actor\t8\n")
    lines = call("predict", trained, "--table", plain, "--probabilities").lines
    assert [line.split("\t")[2] for line in lines] == ["pos", "neg"]


def test_answers_are_in_their_column_in_rows_of_other_widths(trained: Path, tmp_path: Path) -> None:
    table = tmp_path / "ragged.csv"
    table.write_text("text,note\na great film\na dull plot,x,\n")
    assert call("predict", trained, "--table", table).lines[1:] == ["a great film,,pos", "a dull plot,x,neg"]


def test_bad_bytes_of_a_test_table_are_replaced_if_asked(trained: Path, tmp_path: Path) -> None:
    table = tmp_path / "latin.csv"
    table.write_bytes("text,label,caf\xe9\na great film,pos,x\na dull caf\xe9,neg,y\n".encode("latin-1"))
    strict = call("evaluate", trained, "--table", table)
    assert strict.code == 65 and "--errors replace" in strict.err
    replaced = call("evaluate", trained, "--table", table, "--errors", "replace", "--json")
    assert json.loads(replaced.out)[0]["scores"][0]["value"] == 100
    assert call("predict", trained, "--table", table, "--errors", "replace").code == 0


def test_vectors_are_the_features_of_the_reader_whatever_the_batch(trained: Path, tmp_path: Path) -> None:
    predictor, texts = heed.load(trained), ["the film was great", "", "a dull plot", "plot " * 400, "bad"]
    vectors = predictor.embed(texts)
    ids = [row[: predictor.run.recipe.data.max_tokens] for row in predictor.tokenizers["src"].encode(texts)]
    for text, row, vector in zip(texts, ids, vectors, strict=True):
        read = TokenSource(torch.tensor([[*row, 2]]), torch.ones(1, len(row) + 1, dtype=torch.bool))
        features = predictor.run.model.reader.read(read)[0, : len(row)]
        expected = features.mean(0) if row else torch.zeros(len(vector))
        np.testing.assert_allclose(vector, expected.detach().numpy(), atol=1e-6)
        np.testing.assert_allclose(predictor.embed(text), vector, atol=1e-6)
    result = call("embed", trained, stdin="\n".join(texts) + "\n")
    np.testing.assert_allclose(np.load(io.BytesIO(result.stdout)), vectors, atol=1e-6)


def test_pairs_have_vectors_also_without_the_tab_between_them_and_words_have_neighbours(trained: Path) -> None:
    predictor = heed.load(trained)
    data = predictor.run.recipe.data
    collapsed = data.model_copy(update={"normaliser": data.normaliser.model_copy(update={"collapse_spaces": True})})
    predictor.run.recipe = predictor.run.recipe.model_copy(update={"data": collapsed})
    predictor.labels = replace(predictor.labels, columns=("premise", "hypothesis", "label"))
    expected = predictor.embed("great film\ta plot")
    np.testing.assert_array_equal(predictor.embed(" great  film \t a plot"), expected)
    np.testing.assert_array_equal(predictor.word_vectors(["film"])[0], predictor.embed("film\t"))
    assert len(predictor.neighbours("film", 3)) == 3


def test_a_resumed_training_is_the_same(trained: Path, tmp_path: Path) -> None:
    short = [flag for flag in TINY if "max_steps" not in flag]
    out = tmp_path / "run"
    call("train", "--table", trained.parent / "train.csv", "--out", out, *short, "--training.max_steps=4")
    result = call("train", "--resume", out, "--training.max_steps=6", "--quiet")
    assert result.code == 0, result.err
    for name in ("model.safetensors", "answer.json", "linear.safetensors"):
        assert (out / name).read_bytes() == (trained / name).read_bytes(), name


def test_an_average_answers_with_parts_that_are_weighed_for_its_weights(trained: Path, tmp_path: Path) -> None:
    run, other = shutil.copytree(trained, tmp_path / "run"), Combination("neural", {"neural": 9.0})
    other.write(RunFiles(run))  # as of weights that differ more from their average
    result = call("average", run, "--last", "2", "--out", tmp_path / "averaged")
    assert result.code == 0, result.err
    assert call("predict", tmp_path / "averaged", stdin="the film was great\n").out == "pos\n"
    averaged, rows = Run(tmp_path / "averaged").predictor, read_valid(run)
    parts = averaged.parts_on_valid([split(row)[0] for row in rows])
    assert {*parts} == {"linear", "neural"}
    expected = combinations(averaged.labels.link, parts, targets_of(averaged.labels, [row[-1] for row in rows]))
    assert averaged.answer in expected


@pytest.mark.parametrize("name", ["answer.json", "linear.safetensors"])
def test_a_classifier_without_one_of_its_files_is_refused(name: str, trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    Combination("both", {"linear": 2.0, "neural": 0.1}).write(RunFiles(run))
    assert heed.load(run).predict("the film was great")[0][0].text == "pos"
    (run / name).unlink()
    with pytest.raises(MissingInputError, match=f"{name} is missing. Restore the run's original file"):
        heed.load(run)


def test_the_linear_model_alone_explains_itself(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = call("train", "--table", trained.parent / "train.csv", "--out", out, "--model.kind=linear", "--quiet")
    assert result.code == 0, result.err
    predictor = heed.load(out)
    linear = predictor.linear
    assert linear is not None
    assert linear.facts["relative_gradient"] <= 1e-3
    number = predictor.labels.names.index("pos")
    assert {ngram for ngram, _ in linear.top_ngrams(number, 20)} & set(GOOD)
    found = linear.contributions(("a great film",))
    total = sum(np.array(each.weights) for each in found)
    bias = linear.link.full(linear.weights[-1:])
    torch.testing.assert_close(torch.tensor(total).float() + bias[0], linear.logits([("a great film",)])[0])
    assert call("info", out).code == 0
    refused = call("embed", out, stdin="a film\n")
    assert refused.code == 2 and "which can explain, predict, read" in refused.err


def test_pairs_several_labels_and_numbers(tmp_path: Path) -> None:
    source = random.Random(3)
    pairs = []
    for _ in range(120):
        first, second = (source.choice(OTHERS) + " " + source.choice(GOOD + BAD) for _ in range(2))
        pairs.append((first, second, "same" if (first in second) or source.random() < 0.5 else "other"))
    table = write(tmp_path / "pairs.csv", pairs, "premise,hypothesis,label")
    out = tmp_path / "pairs"
    assert call("train", "--table", table, "--out", out, "--model.kind=linear", "--quiet").code == 0
    assert call("predict", out, stdin="a film\ta film\n").out.strip() in ("same", "other")
    refused = call("predict", out, stdin="only one text\n")
    assert (refused.code, refused.err) == (
        2, "error: standard input, line 1: expected 2 texts separated by tabs, got 1: 'only one text'.\n",
    )  # fmt: skip
    several = [(text, "pos|" + label if label == "neg" else label) for text, label in rows(120)]
    table = write(tmp_path / "several.csv", several)
    words = ("--label-separator", "|", "--model.kind=linear", "--quiet")
    assert call("train", "--table", table, "--out", tmp_path / "several", *words).code == 0
    assert json.loads(call("predict", tmp_path / "several", stdin="a dull plot\n").out) == ["pos", "neg"]
    numbers = [(text, f"{len(text) / 7:.3f}") for text, _ in rows(120)]
    table = write(tmp_path / "numbers.csv", numbers, "text,score")
    assert call("train", "--table", table, "--out", tmp_path / "n", "--model.kind=linear", "--quiet").code == 0
    assert Run(tmp_path / "n").recipe.data.answer == "number"
    assert 1 < float(call("predict", tmp_path / "n", stdin="the film was good\n").out) < 5
    refused = call("predict", tmp_path / "n", "--probabilities", stdin="the film was good\n")
    assert (refused.code, refused.out, "numbers, which have no probabilities" in refused.err) == (2, "", True)


def test_rows_without_a_single_label_are_left_out_of_tests(trained: Path, tmp_path: Path) -> None:
    table = tmp_path / "test.jsonl"
    labels: list[Any] = [[], ["pos", "neg"], ["pos"], "pos"]
    records = [{"text": f"a plot {number}", "label": each} for number, each in enumerate(labels)]
    table.write_text("".join(json.dumps(record) + "\n" for record in records))
    scored = call("evaluate", trained, "--table", table)
    assert scored.code == 0 and "skipped 2 rows without a text or a single label" in scored.err, scored.err
    assert "2 lines" in scored.out


def test_labels_that_are_no_numbers_are_refused_in_training_and_left_out_of_tests(tmp_path: Path) -> None:
    numbers = [(text, f"{len(text) / 7:.3f}") for text, _ in rows(120)]
    train = write(tmp_path / "train.csv", numbers, "text,score")
    held = [("a film of its own", "2.5"), ("a plot of its own", "N/A"), ("an actor of his own", "nan")]
    test = write(tmp_path / "test.csv", held, "text,score")
    words = ("--model.kind=linear", "--valid-table", test)
    result = call("train", "--table", train, "--out", tmp_path / "run", *words)
    assert result.code == 0 and "120 rows for training, 1 for validation" in result.err
    scored = call("evaluate", tmp_path / "run", "--table", test)
    assert scored.code == 0 and "skipped 2 rows without a text or a number" in scored.err
    mixed = write(tmp_path / "mixed.csv", [*numbers, ("no score", "NaN")], "text,score")
    refused = call("train", "--table", mixed, "--out", tmp_path / "other", *words[:1], "--data.answer=number")
    assert refused.code == 65 and "1 of the labels are not numbers, such as 'NaN'" in refused.err


@pytest.mark.parametrize("kind", ["linear", "cnn"])
def test_a_single_label_is_refused_before_the_training(kind: str, tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", [(text, "same") for text, _ in rows(60)], "text,label")
    words = ("--force", f"--model.kind={kind}", "--out", tmp_path / "run")
    refused = call("train", "--task", "classification", "--table", train, *words)
    assert (refused.code, "have the same label: 'same'" in refused.err) == (65, True)


def test_a_run_knows_its_columns_in_another_table(tmp_path: Path) -> None:
    content = [(*text.split(" ", 1), label) for text, label in rows(120)]
    names, words = ("left", "right", "verdict"), ("--model.kind=linear", "--quiet")
    table = write(tmp_path / "train.csv", content, ",".join(names))
    columns = ("--text-column", "left", "--text-column", "right", "--label-column", "verdict")
    assert call("train", "--table", table, "--out", tmp_path / "run", *columns, *words).code == 0
    turned = [(label, *text.split(" ", 1)) for text, label in rows(40, seed=1)]
    test = write(tmp_path / "test.csv", turned, "verdict,left,right")
    result = call("evaluate", tmp_path / "run", "--table", test)
    assert result.code == 0, result.err
    assert "accuracy" in result.out


def test_a_table_with_another_number_of_texts_is_refused(trained: Path, tmp_path: Path) -> None:
    pairs = write(tmp_path / "pairs.csv", [("a film", "great film", "pos")] * 4, "premise,hypothesis,label")
    read = '(text: column "premise" and column "hypothesis"'
    message = f"error: {pairs}: expected 1 column of texts, as in the training table, got 2 {read}"
    labels = '; label: column "label"). Name the columns as there: "text".\n'
    evaluated, predicted = (call(verb, trained, "--table", pairs) for verb in ("evaluate", "predict"))
    assert (evaluated.code, evaluated.err) == (2, message + labels)
    assert (predicted.code, predicted.err) == (2, message + '). Name the columns as there: "text".\n')
    words = ("--valid-table", pairs, "--out", tmp_path / "run")
    trained_with = call("train", "--table", trained.parent / "train.csv", *words, *TINY)
    assert (trained_with.code, trained_with.err) == (
        2, message + labels.split(" Name")[0] + " Name the columns of both tables with --text-column.\n"
    )  # fmt: skip


def test_a_table_whose_columns_are_unclear_is_refused_without_flags_of_the_training(
    trained: Path, tmp_path: Path
) -> None:
    table = write(
        tmp_path / "t.csv", [("a very good film", f"{n} that was good to see", "pos") for n in range(8)], "x,y,z"
    )
    for verb in ("evaluate", "predict"):
        result = call(verb, trained, "--table", table)
        assert (result.code, result.err) == (
            2, f"error: {table}: several columns could hold the texts ('x', 'y', 'z'). Name the columns as in the "
            'training table: "text", "label".\n'
        )  # fmt: skip


def test_rows_are_held_out_by_label_and_equal_texts_together(tmp_path: Path) -> None:
    content = [*rows(300), *rows(300)[:100], *[("rare text " + str(i), "rare") for i in range(20)]]
    data = TableData(table=str(write(tmp_path / "t.csv", content)))
    held = held_out(TableRows(data, data.table), 60, 1, "label")
    texts = np.array([text for text, _ in content])
    assert not set(texts[held]) & set(texts[~held])
    counts = Counter(label for (_, label), is_held in zip(content, held, strict=True) if is_held)
    assert 40 <= counts.total() <= 80
    assert 1 <= counts["rare"] <= 5
    assert held.tolist() != held_out(TableRows(data, data.table), 60, 2, "label").tolist()


def test_rows_with_several_labels_are_held_out_though_each_combination_is_rare(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    names = [f"tag{number}" for number in range(40)]
    drawn = [sorted(rng.choice(names, 5, replace=False).tolist()) for _ in range(400)]
    lines = [json.dumps({"text": f"text {number}", "labels": tags}) for number, tags in enumerate(drawn)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    data = TableData(table=str(tmp_path / "t.jsonl"))
    held = held_out(TableRows(data, data.table), 80, 1, "labels")
    assert 60 <= held.sum() <= 100
    assert {tag for tags, is_held in zip(drawn, held, strict=True) if not is_held for tag in tags} == set(names)


def test_validation_labels_that_are_all_unknown_are_named(trained: Path, tmp_path: Path) -> None:
    valid = write(tmp_path / "valid.csv", [("a great film", "1"), ("a bad plot", "0")])
    flags = ("--valid-table", valid, "--model.kind=linear", "--force", "--quiet")
    result = call("train", "--table", trained.parent / "train.csv", "--out", tmp_path / "run", *flags)
    assert result.code == 65 and "none of the labels of its 2 validation rows is in the training data" in result.err


def test_the_column_that_is_scored_is_named_if_it_is_another(trained: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "test.csv", [("a great film", "pos"), ("a dull plot", "neg")], "text,category")
    result = call("evaluate", trained, "--table", table)
    assert result.code == 0
    assert 'no column "label", which the run was trained on; compared with "category"' in result.err
    same = call("evaluate", trained, "--table", write(table, [("a great film", "pos")], "text,Label"))
    assert "no column" not in same.err


@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_the_column_of_texts_is_named_if_it_is_another(verb: str, trained: Path, tmp_path: Path) -> None:
    texts = [("a great film", "pos"), ("a dull plot", "neg")]
    result = call(verb, trained, "--table", write(tmp_path / "test.csv", texts, "sentence,label"))
    assert result.code == 0
    assert f'{tmp_path}/test.csv: no column "text", which the run was trained on; read "sentence"\n' in result.err
    same = call(verb, trained, "--table", write(tmp_path / "same.csv", texts, "Text,label"))
    assert "no column" not in same.err


def test_a_scored_column_may_have_no_heading(trained: Path, tmp_path: Path) -> None:
    lines = [f"a {word} film\t{n}\t{label}\n" for n, (word, label) in enumerate([("great", "pos"), ("bad", "neg")] * 4)]
    (tmp_path / "test.tsv").write_text("text\tnumber\n" + "".join(lines))
    result = call("evaluate", trained, "--table", tmp_path / "test.tsv")
    assert result.code == 0
    assert 'no column "label", which the run was trained on; compared with column 3' in result.err


def test_the_combination_of_equal_ones_is_the_simplest_and_easy_data_leave_doubt() -> None:
    z = torch.linspace(0.1, 1.1, 20)[:, None] * torch.tensor([[1.0, -1.0]])
    targets = torch.tensor([[1.0, 0.0]]).expand(20, 2)
    [alone] = combinations(LINKS["label"], {"linear": z}, targets)
    probabilities = LINKS["label"].probabilities(alone.outputs({"linear": z}))[:, 0]
    assert 0.9 < float(probabilities.mean()) < 20.5 / 21 + 1e-3  # as if one of 21 rows were unknown
    assert 0.6 < float(probabilities[0]) < 0.98 < float(probabilities[-1])


def test_numbers_are_not_drawn_to_their_mean() -> None:
    z = torch.linspace(-1, 1, 10)[:, None]
    [alone] = combinations(LINKS["number"], {"linear": z}, z)
    assert alone.factors["linear"] == pytest.approx(1)


def test_numbers_are_written_without_exponents() -> None:
    labels = Labels("number", mean=0.0, scale=1.0)
    assert [labels.answer([value]) for value in (1234567.0, -0.25, 3.0)] == ["1234570", "-0.25", "3"]


@pytest.mark.parametrize("kind", list(LINKS))
def test_factors_have_the_best_likelihood(kind: str) -> None:
    torch.manual_seed(1)
    link = LINKS[kind]
    width = 1 if kind == "number" else 3
    parts = [torch.randn(80, width), torch.randn(80, width)]
    z = parts[0] + 0.5 * parts[1] + torch.randn(80, width)
    targets = z if kind == "number" else torch.nn.functional.one_hot(z.argmax(1), 3).float()
    factors = fit_factors(link, parts, targets)

    def loss(scales: list[float]) -> float:
        return float(link.full_loss(sum(s * part for s, part in zip(scales, parts, strict=True)), targets))

    assert min(factors) > 0
    for at in (0, 1):
        for change in (0.98, 1.02):
            assert loss(factors) <= loss([f * change if i == at else f for i, f in enumerate(factors)])


def test_a_useless_part_gets_no_weight() -> None:
    torch.manual_seed(1)
    good = torch.randn(200, 3)
    targets = torch.nn.functional.one_hot(good.argmax(1), 3).float()
    noisy = good + torch.randn(200, 3)
    [first, second] = fit_factors(LINKS["label"], [noisy, -targets], targets)
    assert first > 0 and second == 0
    found = combinations(LINKS["label"], {"linear": noisy, "neural": -targets}, targets)
    assert [each.name for each in found] == ["linear", "neural", "both"]
    assert Combination("linear", {"linear": 2.0}).outputs({"linear": noisy}).equal(2 * noisy)


def test_an_answer_is_explained_by_words_and_ngrams(trained: Path) -> None:
    predictor = heed.load(trained)
    found = predictor.explain("the Film was great")
    assert found.answer == "pos"
    assert [word.text for word in found.words] == ["the", "Film", "was", "great"]
    assert max(found.words, key=lambda word: word.weight).text == "great"
    assert found.ngrams[0].weight > 0 and "grea" in "".join(ngram.text for ngram in found.ngrams)
    outputs = predictor.outputs([("the Film was great",), ("the Film was",)])
    odds = outputs[:, predictor.labels.numbers["pos"]] - outputs[:, predictor.labels.numbers["neg"]]
    assert found.words[3].weight == pytest.approx(float(odds[0] - odds[1]), abs=1e-4)
    long = predictor.explain(" ".join(["word"] * 300))
    assert len(long.words) == 300


def test_fewer_ngrams_are_features_of_a_larger_corpus(trained: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("heed.models.linear.MAX_ENTRIES", 5000)
    out = tmp_path / "run"
    table = trained.parent / "train.csv"
    assert call("train", "--table", table, "--out", out, "--model.kind=linear", "--quiet").code == 0
    predictor = heed.load(out)
    assert (predictor.linear.facts["words"], predictor.linear.facts["characters"]) == (2, 0)
    assert predictor.predict(["a great film"])[0][0].text == "pos"
    assert predictor.predict("a great film") == predictor.predict(["a great film"]), "a string is one text"


def test_the_linear_model_is_fitted_again_on_the_held_out_rows(trained: Path, tmp_path: Path) -> None:
    table = str(write(tmp_path / "t.csv", [*rows(160)]))
    held, number = TableRows(TableData(table=table), table), 40
    flags = ("--model.kind=linear", f"--data.hold_out={number}", "--quiet")
    assert call("train", "--table", tmp_path / "t.csv", "--out", tmp_path / "run", *flags).code == 0
    predictor = heed.load(tmp_path / "run")
    linear = predictor.linear
    valid = [split(row)[0] for row in read_valid(tmp_path / "run")]
    chosen = {"scaling": linear.facts["scaling"], "strength": linear.facts["strength"]}

    def fitted(kept: list[bool]) -> LinearNgrams:
        texts = [texts for texts, keep in zip((texts for texts, _ in held), kept, strict=True) if keep]
        names = [labels[0] for (_, labels), keep in zip(held, kept, strict=True) if keep]
        full = targets_of(predictor.labels, names)
        model = LinearNgrams(LinearConfig(**chosen), Vocabularies(0, 2))
        model.estimate(Examples(lambda: texts, full[:, -1:].contiguous(), (), full[:0], "label"))
        return model

    is_held = held_out(held, number, predictor.run.recipe.seed, "label")
    oracle = {"all": fitted([True] * len(is_held)), "training": fitted((~is_held).tolist())}
    close = {"rtol": 1e-2, "atol": 1e-2}  # another order of the rows, and a start from another fit
    torch.testing.assert_close(linear.logits(valid), oracle["all"].logits(valid), **close)
    kept = predictor.parts_on_valid(valid)["linear"]
    torch.testing.assert_close(kept, oracle["training"].logits(valid), **close)
    assert not torch.allclose(kept, linear.logits(valid), **close)
    targets = targets_of(predictor.labels, [split(row)[1] for row in read_valid(tmp_path / "run")])
    [expected] = combinations(predictor.labels.link, {"linear": kept}, targets)
    assert predictor.answer.factors["linear"] == pytest.approx(expected.factors["linear"], rel=1e-3)


def test_given_validation_rows_are_not_fitted(trained: Path, tmp_path: Path) -> None:
    valid = write(tmp_path / "valid.csv", [("zyzzyva film", "pos"), ("a bad plot", "neg")])
    flags = ("--valid-table", valid, "--model.kind=linear", "--quiet")
    assert call("train", "--table", trained.parent / "train.csv", "--out", tmp_path / "run", *flags).code == 0
    assert not (tmp_path / "run" / HELD_OUT).exists()
    assert (trained / HELD_OUT).exists()


def test_documents_are_read_sentence_by_sentence() -> None:
    encoding = Encoding(12, as_documents=True, language="en")
    tokenizer = train_tokenizer(TokenizerConfig(kind="byte"), [])
    text = "Dr. Ray ran.\na bee. It"
    [row] = Encoding(100, as_documents=True, language="en").encode([(text,)], tokenizer)
    found = [tokenizer.decode([sentence])[0] for sentence in sentences_of(row, EOS_ID)]
    assert found == ["Dr. Ray ran.", "a bee.", "It"]
    assert encoding.encode([(text,)], tokenizer) == [row[:12]]
    long = Encoding(1000, as_documents=True).encode([("x" * (2 * LONGEST_SENTENCE + 3),)], tokenizer)[0]
    assert [len(sentence) for sentence in sentences_of(long, EOS_ID)] == [LONGEST_SENTENCE, LONGEST_SENTENCE, 3]
    assert encoding.source(encoding.encode([("",), ("a",)], tokenizer)).key(0) == ((EOS_ID,),)
    pair = Encoding(9, as_documents=True).encode([("one. Two", "three")], tokenizer)[0]
    assert [tokenizer.decode([each])[0] for each in sentences_of(pair, EOS_ID)] == ["one.", "thre"]


def test_a_small_corpus_is_not_given_up_before_it_is_learned() -> None:
    machine = Machine("cpu", 2, 8 << 30, "float32", 1.0)
    small = ClassificationTask.defaults(CorpusStats(300, 300.0), machine, {}).values
    large = ClassificationTask.defaults(CorpusStats(30_000, 300.0), machine, {}).values
    assert small["training.eval_every"] == LEAST_UPDATES < large["training.eval_every"] <= 1000


def test_pairs_get_a_reader_that_compares_their_texts() -> None:
    machine = Machine("cpu", 2, 8 << 30, "float32", 1.0)
    for number, kind in ((1, "cnn"), (2, "decomposable_attention")):
        stats = CorpusStats(5000, 60.0, measured={"num_texts": float(number)})
        assert ClassificationTask.defaults(stats, machine, {}).values["model.kind"] == kind


def test_the_number_of_answers_is_checked(trained: Path) -> None:
    predictor = heed.load(trained)
    refuses_wrong_tops(predictor.predict, ["a film"])
    refuses_wrong_tops(lambda table, top: next(predictor.predict_table(table, top)), trained.parent / "train.csv")


def test_what_is_no_text_is_not_explained(trained: Path) -> None:
    predictor = heed.load(trained)
    for method in (predictor.explain, predictor.attend, predictor.read):
        refuses_what_is_no_text(method)
