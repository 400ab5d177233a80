"""The task of extractive answers: training, answers in windows against brute force, no answer, candidates."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from toy import events, unchecked_shapes
from toy_questions import TINY, questions, tiny_reader, write_questions

import heed
from heed.core.config import Document
from heed.core.errors import DataError, UsageError
from heed.core.run_files import RunFiles
from heed.data.store import TokenStore
from heed.execute import execute
from heed.planner import Planner, TrainOptions, estimate_training
from heed.run import Run
from heed.tasks.span.answering import Answerer, Spans
from heed.tasks.span.baselines import nearest_candidate
from heed.tasks.span.batch import collate
from heed.tasks.span.rows import question_of, row_of
from heed.tasks.span.task import SpanTask
from heed.tasks.span.words import PairEncoder, SpanWords, SplitQuestion, windows
from heed.tasks.words import WordEncoder
from heed.text.readers.questions import Answer, Question

CONTEXT = "Bob Ray lives in La Paz, house 7. Cem went to Oslo, house 12."


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny model that has learned where people live, and that some are nowhere."""
    with unchecked_shapes():
        return tiny_reader(tmp_path_factory.mktemp("span"), unanswered=0.3)


def test_a_model_learns_to_answer_and_when_there_is_no_answer(reader: Any) -> None:
    best = [event for event in events(reader.run.folder) if event["event"] == "validation" and event["best"]]
    assert best[-1]["answer_match"] > 90 and best[-1]["answer_f1"] >= best[-1]["answer_match"]
    lines = [f"Where is {name}?\t{CONTEXT}" for name in ("Bob Ray", "Cem", "Ann")]
    [[bob], [cem], [ann]] = reader.predict(lines)
    assert (bob.text, bob.start, bob.end) == ("La Paz", 17, 23)
    assert (cem.text, cem.start, cem.end) == ("Oslo", 46, 50)
    assert (ann.text, ann.start, ann.end) == ("", None, None)
    assert all(0.5 < answer.probability <= 1 for answer in (bob, cem, ann))
    as_json = json.dumps({"question": "Where is Cem?", "context": CONTEXT})
    assert reader.predict([as_json]) == reader.predict([lines[1]])
    assert reader.predict(as_json) == reader.predict([as_json]), "a string is one question"
    assert reader.predict([as_json])[0][0].probability == pytest.approx(cem.probability, abs=1e-6)


def test_the_answers_of_a_context_are_all_its_spans_and_none(reader: Any) -> None:
    question = Question(1, "Where is Cem?", "Cem went to Oslo, house 12.")
    [answers] = reader.extract([question], top=1000)
    num_words, longest = 8, reader.run.recipe.head.max_words
    assert len(answers) == sum(min(longest, num_words - i) for i in range(num_words)) + 1
    shares = [answer.probability for answer in answers]
    assert sum(shares) == pytest.approx(1) and shares == sorted(shares, reverse=True)
    assert len({(answer.start, answer.end) for answer in answers}) == len(answers)


def test_neighbours_do_not_change_an_answer(reader: Any) -> None:
    lines = [f"Where is Cem?\t{CONTEXT}", "x\ty", f"Who?\t{CONTEXT * 3}", "\t", "Where is Ann?\t"]
    for line, together in zip(lines, reader.predict(lines, top=3), strict=True):
        [alone] = reader.predict([line], top=3)
        assert [each.text for each in alone] == [each.text for each in together]
        assert [each.probability for each in alone] == pytest.approx([each.probability for each in together], rel=1e-4)
    assert reader.predict(["Where is Ann?\t"])[0][0].text == ""


def test_a_long_context_is_answered_by_the_best_span_of_all_windows(reader: Any) -> None:
    """Brute force: every window by itself, and the highest score of each span in the windows that contain it."""
    encoder = PairEncoder(reader.answerer.encoder.words, 14, 7)
    answerer = Answerer(reader.run.model, encoder, torch.device("cpu"))
    question = Question(1, "Where is Cem?", CONTEXT)
    split = SplitQuestion.of(question)
    [found] = answerer.scores([split])
    best: dict[tuple[int, int], float] = {}
    head = reader.run.model.head
    ends = list(range(1, len(split.words) + 1))
    parts = windows(ends, 14, 7)
    assert len(parts) > 1
    [rows] = encoder.windows([split])
    with torch.no_grad():
        for (begin, end), (first, row) in zip(parts, rows, strict=True):
            assert first == begin
            batch = collate({name: [values] for name, values in {**row, "answers": [], "candidates": []}.items()}, [0])
            features = batch.source.words.of_words(reader.run.model.read(batch.source.words))
            scores = head(features, batch.source.context)
            asked = row["asked"][0]
            for i, j in itertools.combinations_with_replacement(range(begin, end), 2):
                if j - i < head.max_words:
                    score = float(scores.spans[0, asked + i - begin, j - i] - scores.none[0])
                    best[i, j] = max(best.get((i, j), -math.inf), score)
    for (i, j), score in best.items():
        assert found.scores[i, j - i] == pytest.approx(score, abs=1e-5)
    assert np.isfinite(found.scores).sum() == len(best)
    total = 1 + sum(map(math.exp, best.values()))
    for (first, further), share in found.best(5):
        expected = 1.0 if first < 0 else math.exp(best[first, first + further])
        assert share == pytest.approx(expected / total, rel=1e-5)


def test_an_average_of_checkpoints_answers(reader: Any, tmp_path: Path) -> None:
    result = call("average", reader.run.folder, "--last", "1", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert heed.load(tmp_path / "run").predict([f"Where is Cem?\t{CONTEXT}"])


def test_a_span_in_several_windows_has_its_highest_score() -> None:
    spans = Spans.empty(4, 2, no_answer=False)
    spans.add(0, np.array([[1.0, 5.0], [2.0, -np.inf]]), 9.0)
    spans.add(1, np.array([[3.0, 0.0], [1.0, 1.0], [0.0, -np.inf]]), 9.0)
    assert spans.scores.tolist() == [[1, 5], [3, 0], [1, 1], [0, -np.inf]]
    assert [cell for cell, _ in spans.best(2)] == [(0, 1), (1, 0)]
    assert Spans.empty(0, 2, no_answer=False).best(3) == [((-1, 0), 1.0)]


@pytest.mark.parametrize("most", [1, 3, 8, 100])
@pytest.mark.parametrize("overlap", [0, 2, 5])
def test_windows_cover_a_context_in_order(most: int, overlap: int) -> None:
    sizes = [1, 2, 1, 9, 1, 1, 3, 1, 1, 1, 2]
    ends = list(itertools.accumulate(sizes))
    parts = windows(ends, most, overlap)
    assert {at for begin, end in parts for at in range(begin, end)} == set(range(len(sizes)))
    assert parts == sorted(parts) and len({begin for begin, _ in parts}) == len(parts)
    for begin, end in parts:
        assert sum(sizes[begin:end]) <= most or end == begin + 1
    for (_, before), (begin, _) in itertools.pairwise(parts):
        assert sum(sizes[begin:before]) <= overlap
    assert windows([], most, overlap) == [(0, 0)]


def test_marks_show_what_a_question_and_its_context_have_in_common() -> None:
    question = Question(1, "Who visited the Organs?", "She visits THE organist.", mark=0)
    split = SplitQuestion.of(question)
    of_asked, of_words = split.marks
    assert of_asked == ["question", "question", "found", "question", "question"]
    assert of_words == ["mark", "alike", "same", "alike", ""]
    chosen = Question(1, "she", "Ann met Eve. Ann sang.", candidates=(Answer("Eve", 8), Answer("Ann", 0)))
    assert SplitQuestion.of(chosen).marks[1] == ["candidate", "", "candidate", "", "named", "", ""]


def test_an_answer_is_the_fewest_words_that_contain_it() -> None:
    split = SplitQuestion.of(Question(1, "", "It cost $12 in mid-March."))
    assert split.cell(Answer("12", 9)) == (3, 0)
    assert split.cell(Answer("$12 in", 8)) == (2, 2)
    assert split.cell(Answer("March", 19)) == (5, 0)
    assert split.text((2, 1)) == (8, 11)
    assert split.cell(Answer("Paris")) is None


def test_a_row_of_the_validation_data_is_its_question(tmp_path: Path) -> None:
    question = Question(3, "q\t?", "c\nc", (Answer("c", 2), Answer("c", None)), (Answer("c", 2),), 2, "id", "feminine")
    assert question_of(row_of(question), 3) == question
    assert row_of(question)[-1] == '["c", "c"]'


def test_contexts_are_held_out_whole_and_answers_are_stored_by_words(reader: Any) -> None:
    folder = reader.run.folder
    store = TokenStore.open(folder / "data" / "train")
    valid = [json.loads(line) for line in (folder / "data/valid.jsonl").read_text().splitlines()]
    every = questions(unanswered=0.3)
    held = {row[1] for row in valid}
    assert len(valid) + len(store) == len(every)
    assert sum(row["context"] in held for row in every) == len(valid)
    kept = [row for row in every if row["context"] not in held]
    for index in (0, 5, 9):
        answers, asked = store.row("answers", index).tolist(), store.row("asked", index).tolist()
        split = SplitQuestion.of(Question(1, kept[index]["question"], kept[index]["context"]))
        assert asked == [len(split.asked) + 1]
        if kept[index]["answer"]:
            first, further = answers
            start, end = split.text((first - asked[0], further))
            assert kept[index]["context"][start:end] == kept[index]["answer"]
        else:
            assert answers == []


def test_a_run_is_evaluated_on_a_table(reader: Any, tmp_path: Path) -> None:
    table = write_questions(tmp_path / "test.jsonl", questions(seed=5, number=40, unanswered=0.3))
    evaluation = reader.evaluate(table)
    assert list(evaluation.scores) == ["answer_match", "answer_f1"]
    assert evaluation.scores["answer_match"].value > 85
    assert evaluation.test.label == "test.jsonl, 40 questions"
    assert evaluation.leakage.lines == () and evaluation.num_rows == 40
    seen = reader.evaluate(write_questions(tmp_path / "seen.jsonl", questions(unanswered=0.3)[:50]))
    assert len(seen.leakage.lines) > 30


@pytest.mark.parametrize("line", ["no tab", "two\ttabs\there", '{"question": "x"'])
def test_a_line_without_question_and_context_is_refused(reader: Any, line: str) -> None:
    with pytest.raises(UsageError, match=r"expected a question, a tab|is not a JSON object"):
        reader.predict([line])


def test_the_time_of_an_epoch_is_that_of_all_questions(tmp_path: Path) -> None:
    table = write_questions(tmp_path / "questions.jsonl", questions(number=120))
    options = TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    plan = Planner(Document(), TINY | {"data.table": str(table)}, options).plan()
    estimate = estimate_training(plan)
    assert estimate is not None
    num_trained = 120 - plan.recipe.data.num_held_out
    assert estimate.seconds_per_epoch * estimate.tokens_per_second == pytest.approx(num_trained)


def test_word_vectors_can_be_the_beginning(tmp_path: Path) -> None:
    rows = questions(number=120)
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{row['context']}\n{row['question']}\n" for row in rows), encoding="utf-8")
    words = {"task": "word-vectors", "data.text": str(text), "tokenizer.kind": "word", "tokenizer.min_frequency": 1}
    small = {"model.d_model": 24, "model.max_ngram": 0, "training.max_steps": 4, "data.hold_out": 10}
    vectors = heed.train({**words, **small}, tmp_path / "vectors", device="cpu", quiet=True)
    table = write_questions(tmp_path / "questions.jsonl", rows)
    options = TrainOptions(
        tmp_path / "run", device="cpu", quiet=True, init=tmp_path / "vectors", init_parts="embeddings"
    )
    keys = {**TINY, "data.table": str(table), "training.max_steps": 1, "training.lr": 1e-12}
    with unchecked_shapes():
        execute(Planner(Document(), keys, options).plan(), options)
    run = Run(tmp_path / "run")
    assert run.tokenizers["src"].vocabulary.pieces == vectors.tokenizers["tgt"].vocabulary.pieces
    torch.testing.assert_close(run.model.reader.embedding.data, vectors.run.model.inputs.data)
    assert SpanWords.read(run.files).num_singletons == 0


def test_the_analysis_compares_probabilities_with_annotators(reader: Any) -> None:
    analysis = reader.analyse()
    assert [score["name"] for score in analysis["scores"]] == ["exact match", "F1"]
    assert 0 <= analysis["calibration_error"] < 0.3
    assert analysis["sections"][0].startswith("## Probabilities")


@pytest.mark.parametrize("kind", ["encoder", "bigru", "attention_flow"])
def test_any_reader_answers_with_the_positions_that_it_has(kind: str, tmp_path: Path) -> None:
    sizes = {
        "encoder": {
            "tokenizer__kind": "bpe", "tokenizer__vocab_size": 300, "model__d_model": 16, "model__d_ff": 16,
            "model__num_heads": 2, "model__num_layers": 1, "model__max_len": 64, "data__max_tokens": 40,
        },
    }.get(kind, {"model__d_model": 8})  # fmt: skip
    table = write_questions(tmp_path / "questions.jsonl", questions(number=60))
    keys = {key: value for key, value in TINY.items() if not key.startswith("model.")} | {
        "data.table": str(table), "model.kind": kind, "training.max_steps": 2, "data.hold_out": 10, "data.overlap": 8,
        **{name.replace("__", "."): value for name, value in sizes.items()},
    }  # fmt: skip
    with unchecked_shapes():
        reader = heed.train(keys, tmp_path / "run", device="cpu", quiet=True)
    long = " ".join(CONTEXT for _ in range(20))
    [[answer]] = reader.predict([f"Where is Cem?\t{long}"])
    assert long[answer.start : answer.end] == answer.text and 0 < answer.probability < 1
    if kind == "encoder":
        encoder = reader.answerer.encoder
        asked = [SplitQuestion.of(Question(1, text, long)) for text in ("Where is Cem?", "Where is Cem? " * 30)]
        short, cut = encoder.windows(asked)
        assert len(short) > 5 and all(len(row["src"]) + 1 <= 64 for _, row in [*short, *cut])
        assert max(len(row["src"]) for _, row in short) > 40  # as many tokens of the context as there are positions
        assert encoder.windows(asked[:1]) == [short]  # whatever else is asked
        assert all(len(row["starts"]) == len(row["cases"]) for _, row in cut)


def test_a_reader_with_few_positions_gets_short_windows() -> None:
    assert SpanTask.shorter_texts(127) == {"data.max_tokens": 127, "data.overlap": 42}


def test_a_line_has_one_question(reader: Any) -> None:
    asked = {"question": "Who?"}
    for number in (0, 2):
        with pytest.raises(UsageError, match=f'line 1 has {number} questions in "qas"'):
            reader.predict([json.dumps({"context": CONTEXT, "qas": [asked] * number})])
    assert reader.predict([json.dumps({"context": CONTEXT, "qas": [asked]})])


def test_the_nearest_candidate_is_found_without_its_place() -> None:
    context = "Ann met Bea. Then she left."
    candidates = (Answer("Ann"), Answer("Bea"), Answer("Zoe"))
    asked = Question(1, "she", context, candidates=candidates, mark=context.index("she"))
    assert nearest_candidate(asked) == "Bea"


def test_runs_of_earlier_versions_cut_words_at_marks_as_they_were_trained(reader: Any) -> None:
    words = reader.answerer.encoder.words
    assert words.labels.cut_at_marks is False
    earlier = SpanWords.model_validate_json('{"format": 1, "characters": ["a"], "num_singletons": 0}')
    asked = Question(1, "हिन्दी", "भाषा है")
    numbers = []
    for labels in (words.labels, earlier):
        split = PairEncoder(WordEncoder(words.data, words.tokenizer, labels), 14, 7).split(asked)
        numbers.append((len(split.asked), len(split.words)))
    assert numbers == [(1, 2), (6, 6)]


def test_damaged_labels_are_named(reader: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{"characters": 5}')
    with pytest.raises(DataError, match=r"labels.json is damaged"):
        SpanWords.read(RunFiles(tmp_path))
