"""Records of the training rows and words of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from toy import pairs, prepared, tiny_keys, with_weights, write_lines, write_pairs

from heed.core.config import Document
from heed.data.line_hashes import LineHashes
from heed.data.validation import read_valid
from heed.execute import prepare_run
from heed.metrics.word_frequency import WordCounts
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks.prepare import LINES_SEEN, WORDS_SEEN


def lines_of(run: Run) -> LineHashes:
    """The fingerprint of a run."""
    known = LineHashes.open(run.files, LINES_SEEN)
    assert known is not None
    return known


def words_of(run: Run) -> WordCounts:
    """The words of a run."""
    known = WordCounts.read(run.files, WORDS_SEEN)
    assert known is not None
    return known


def test_training_rows_are_recorded_and_held_out_ones_are_not(tmp_path: Path) -> None:
    run = prepared(tmp_path, data__hold_out=30)
    held = read_valid(run.folder)
    trained = [row for row in pairs() if row not in held]
    assert lines_of(run).found(trained)["pair"].all()
    assert not lines_of(run).found(held)["pair"].any()
    assert words_of(run).counts == Counter(word for _, tgt in trained for word in tgt.split())
    assert words_of(run).tokenizer == "13a"


def test_dropped_pairs_are_not_recorded(tmp_path: Path) -> None:
    found = [*pairs(100), ("", "kan kan kan zz"), ("ba " * 40, "yy"), ("ba " * 40, "xx " * 40)]
    write_lines(tmp_path / "train.aa", [src for src, _ in found])
    write_lines(tmp_path / "train.bb", [tgt for _, tgt in found])
    run = prepared(tmp_path, data__max_tokens=30)
    assert len(run.corpus["dropped"]) == 3, run.corpus["dropped"]
    assert not lines_of(run).found(found[-3:])["pair"].any()
    assert not {"xx", "yy", "zz"} & words_of(run).counts.keys()


def test_a_language_model_records_its_lines_and_no_words(tmp_path: Path) -> None:
    lines = [f"the dog sees cow number {number}" for number in range(100)]
    keys = {"task": "language-model", "data.text": str(write_lines(tmp_path / "text", lines)), "data.hold_out": 20}
    options = TrainOptions(tmp_path / "lm", device="cpu", quiet=True)
    run = prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)
    held = {row[0] for row in read_valid(run.folder)}
    known = lines_of(run).found([(line,) for line in lines])["tgt"]
    assert [line not in held for line in lines] == known.tolist()
    assert 0 < len(held) < 50
    assert not run.files.has(WORDS_SEEN)


def fine_tuned(folder: Path, init: Run) -> Run:
    """A prepared run on other pairs, which begins with another run."""
    write_pairs(folder, "more", 50, seed=7)
    keys = tiny_keys(folder, data__src=str(folder / "more.aa"), data__tgt=str(folder / "more.bb"))
    options = TrainOptions(folder / "tuned", init=with_weights(init).folder, device="cpu", quiet=True)
    return prepare_run(Planner(Document(), keys, options).plan(), options.out, init, quiet=True)


def test_a_fine_tuned_run_includes_the_rows_of_the_first_one(tmp_path: Path) -> None:
    init = prepared(tmp_path)
    run = fine_tuned(tmp_path, init)
    before = [row for row in pairs() if row not in read_valid(init.folder)]
    now = [row for row in pairs(50, seed=7) if row not in read_valid(run.folder)]
    assert lines_of(run).found([*before, *now])["pair"].all()
    assert words_of(run).counts == Counter(word for _, tgt in [*before, *now] for word in tgt.split())


@pytest.mark.parametrize("missing", [LINES_SEEN, WORDS_SEEN])
def test_a_missing_record_of_the_first_run_removes_that_of_the_fine_tuned_one(tmp_path: Path, missing: str) -> None:
    init = prepared(tmp_path)
    (init.folder / missing).rename(init.folder / "gone")
    run = fine_tuned(tmp_path, init)
    assert not (run.folder / missing).exists()
    assert run.files.has(LINES_SEEN) or run.files.has(WORDS_SEEN)


def test_texts_are_looked_up_in_both_sides_of_a_translator_that_was_read() -> None:
    translator = LineHashes.of([("der Hund", "the dog"), ("die Kuh", "the cow")])
    texts, tagged = LineHashes.of([("a cat",)]), LineHashes.of([("a cat", "DET NOUN")])
    known = texts.united(translator.as_read_by(texts))
    asked = [("der Hund",), ("the cow",), ("a cat",), ("a horse",)]
    assert known.found(asked)["tgt"].tolist() == [True, True, True, False]
    language_model = LineHashes.of([("the dog",)])
    known = tagged.united(language_model.as_read_by(tagged))
    assert known.found([("the dog", "DET NOUN"), ("a cat", "X")])["src"].tolist() == [True, True]
    assert translator.as_read_by(translator) is translator
