"""Choices among candidates: whom a pronoun means, scored as links, by group, and next to the nearest name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import unchecked_shapes
from toy_questions import TINY

import heed
from heed.evaluation.evaluation import compared
from heed.evaluation.table import render_table
from heed.metrics.answers import rates
from heed.text.readers.questions import Answer, Question

GAP = ["ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL"]
WOMEN, MEN = ["Ann", "Eve Lee", "Mia"], ["Bob", "Dan Ray", "Tom"]


def write_gap(path: Path, number: int, seed: int = 0) -> Path:
    """Rows of GAP in which a woman and a man meet, and a pronoun means one of them or, in a fifth, neither."""
    dice = random.Random(seed)
    lines = ["\t".join(GAP)]
    for index in range(number):
        names = [dice.choice(WOMEN), dice.choice(MEN)]
        pronoun, is_woman = dice.choice([("she", True), ("he", False)])
        meant = names[not is_woman]
        if dice.random() < 0.2:
            names[not is_woman] = dice.choice(MEN if is_woman else WOMEN)
            meant = ""
        dice.shuffle(names)
        text = f"{names[0]} met {names[1]} when {pronoun} left house {index}."
        places = [0, text.index(names[1], len(names[0]))]
        cells = [str(index), text, pronoun, str(text.index(f" {pronoun} ") + 1)]
        for name, place in zip(names, places, strict=True):
            cells += [name, str(place), str(name == meant).upper()]
        lines.append("\t".join([*cells, "http://x"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chooser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny model that has learned which names are those of women and of men."""
    folder = tmp_path_factory.mktemp("choices")
    keys = TINY | {"data.table": str(write_gap(folder / "gap.tsv", 250)), "training.max_steps": 60}
    with unchecked_shapes():
        return heed.train(keys, folder / "run", device="cpu", quiet=True)


def test_choices_are_scored_as_links_overall_and_by_group(chooser: Any, tmp_path: Path) -> None:
    assert chooser.run.recipe.training.stop_metric == "choice_f1" and chooser.run.recipe.head.no_answer
    table = write_gap(tmp_path / "test.tsv", 60, seed=3)
    evaluation, baseline = compared([chooser.evaluate(table), *chooser.baselines(table)])
    assert list(evaluation.scores) == ["answer_match", "answer_f1", "choice_f1", "choice_bias"]
    assert evaluation.scores["choice_f1"].value > 85 > baseline.scores["choice_f1"].value
    assert baseline.system == "nearest candidate" and baseline.against_first["choice_f1"].difference < 0
    women, men = evaluation.by_label
    assert (women["label"], men["label"]) == ("feminine", "masculine") and women["number"] + men["number"] == 60
    assert evaluation.scores["choice_bias"].value == pytest.approx(women["f1"] / men["f1"])
    rows = evaluation.statistics["choice_f1"].rows
    assert evaluation.scores["choice_f1"].value == pytest.approx(rates(rows.sum(0))["f1"])
    shown = render_table([evaluation, baseline])
    assert "feminine" in shown and "F1 of choices" in shown and "bias" in shown


def test_only_candidates_and_none_are_answers(chooser: Any) -> None:
    text = "Ann met Bob when she left house 7."
    names = (Answer("Ann", 0), Answer("Bob", 8))
    [answers] = chooser.extract([Question(1, "she", text, None, names, text.index("she"))], top=10)
    assert sorted(answer.text for answer in answers) == ["", "Ann", "Bob"]
    assert sum(answer.probability for answer in answers) == pytest.approx(1)
    assert answers[0].text == "Ann"
    gone = (Answer("Zoe", 3),)
    [[none]] = chooser.extract([Question(1, "she", text, None, gone, text.index("she"))])
    assert (none.text, none.probability) == ("", 1.0)


def test_a_candidate_is_answered_as_it_was_given(chooser: Any) -> None:
    text = "Ann-Bob met Eve Lee."
    [answers] = chooser.extract([Question(1, "she", text, None, (Answer("Ann", 0), Answer("Eve", 12)), 0)], top=3)
    found = {answer.text: (answer.start, answer.end) for answer in answers}
    assert found == {"Ann": (0, 3), "Eve": (12, 15), "": (None, None)}


def test_json_lines_may_have_candidates(chooser: Any) -> None:
    text = "Mia met Tom when he left house 3."
    record = {"question": "he", "context": text, "mark": 17, "candidates": [{"text": "Mia", "start": 0}, "Tom"]}
    assert call("predict", chooser.run.folder, stdin=json.dumps(record) + "\n").lines == ["Tom"]
