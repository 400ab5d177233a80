"""A classifier of documents: training, resuming, both attentions wherever they are shown, and other tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import call
from serving import serving
from toy import without_shape_checks
from toy_documents import REVIEW, TINY, train_reader, write_reviews

import heed

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run."""
    return train_reader(tmp_path_factory.mktemp("documents"))


def require_both_attentions(sentences: Any) -> None:
    """Sentences with shares, and their words with shares."""
    assert sum(sentence["weight"] for sentence in sentences) == pytest.approx(1, abs=1e-5)
    texts = [[word["text"] for word in sentence["words"]] for sentence in sentences]
    assert [" ".join(words) for words in texts] == [
        "The Story was in a town .", "A good plot was great !", "It was the end",
    ]  # fmt: skip
    for sentence in sentences:
        assert sum(word["weight"] for word in sentence["words"]) == pytest.approx(1, abs=1e-5)


def test_it_learns_and_shows_where_it_looks(run: Path) -> None:
    test = write_reviews(run.parent / "test.csv", 60, seed=1)
    [evaluation] = json.loads(call("evaluate", run, "--table", test, "--json", "--quiet").out)
    assert evaluation["scores"][0]["value"] > 90
    line = json.loads(call("predict", run, "--json", stdin=REVIEW + "\n").out)
    assert line["predictions"][0]["text"] == "pos"
    require_both_attentions(line["sentences"])
    explanation = heed.load(run).explain(REVIEW)
    assert [" ".join(word.text for word in explanation.words)] == [REVIEW]
    assert explanation.sentences == heed.load(run).attend(REVIEW)


def test_the_server_and_an_inspection_show_both_attentions(run: Path) -> None:
    with serving([heed.load(run)]) as live:
        answer = live.post("/api/predict", {"inputs": [REVIEW], "explain": True}).json
        require_both_attentions(answer["explanations"][0]["sentences"])
    inspected = json.loads(call("inspect", run, "--text", REVIEW, "--json").out)
    assert inspected["task"] == "reader" and inspected["answers"][0]["text"] == "pos"
    require_both_attentions(inspected["explanation"]["sentences"])
    refused = call("inspect", run, "--text", " ")
    assert refused.code == 2 and "blank" in refused.err


def test_a_word_is_left_out_without_joining_sentences(run: Path) -> None:
    predictor = heed.load(run)
    outputs = predictor.outputs([("A film.\nA good\nplot",), ("A film.\nA\nplot",)])
    odds = outputs[:, predictor.labels.numbers["pos"]] - outputs[:, predictor.labels.numbers["neg"]]
    found = predictor.explain("A film.\nA good\nplot")
    sign = 1 if found.answer == "pos" else -1
    assert found.words[3].weight == pytest.approx(sign * float(odds[0] - odds[1]), abs=1e-4)


def test_a_text_without_words_is_one_sentence(run: Path) -> None:
    [[answer]] = heed.load(run).predict([""])
    assert answer.text in ("pos", "neg")
    assert len(heed.load(run).attend("")) == 1


def test_a_resumed_training_is_the_same(run: Path, tmp_path: Path) -> None:
    keys = {**TINY, "task": "classification", "data.table": str(run.parent / "train.csv"), "training.max_steps": 20}
    heed.train(keys, tmp_path / "run", quiet=True)
    assert call("train", "--resume", tmp_path / "run", "--training.max_steps=40", "--quiet").code == 0
    assert (tmp_path / "run/model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_tasks_without_documents_refuse_the_model(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("a X\nb Y\n\n" * 30)
    refused = call(
        "train", "--conll", tmp_path / "t.conll", "--out", tmp_path / "r", "--model.kind", TINY["model.kind"]
    )
    assert refused.code == 2 and "hierarchical_attention" in refused.err
