"""Preparation of text as lines, a stream or windows, with line ends, blank lines and vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import write_lines
from toy_language import prepared_text, text, tiny_model

from heed.core.config import Document, build
from heed.core.errors import DataError, UsageError
from heed.data.store import TokenStore
from heed.data.text_stream import TextStream
from heed.tasks import prepare
from heed.tasks.language_model import prepare as preparation
from heed.tasks.language_model import task as language_modelling
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.prepare import prepare_language_model
from heed.tasks.language_model.task import LanguageModelTask
from heed.tasks.prepare import split_end
from heed.text.tokenizers import TokenizerConfig, load_tokenizer

EOS, UNK = 2, 3


def stored(task: LanguageModelTask) -> list[list[int]]:
    """The rows of the training data."""
    store = TokenStore.open(task.folder / "data" / "train")
    return [store.row("tgt", index).tolist() for index in range(len(store))]


@pytest.mark.parametrize("text_as", ["stream", "windows"])
def test_a_stream_is_all_lines_in_order_each_with_its_end_and_the_last_ones_validate(
    tmp_path: Path, text_as: str
) -> None:
    task = prepared_text(tmp_path, text_as=text_as)
    rows, lines = stored(task), text()
    assert all(row[-1] == EOS and EOS not in row[:-1] for row in rows)
    assert task.tokenizer.decode(rows) == lines[:-20]
    assert task.valid == lines[-20:]
    assert [list(row) for row in task.sequences()] == [row[:-1] for row in rows]
    ids = TextStream.of_store(TokenStore.open(task.folder / "data" / "train")).ids
    assert ids.tolist() == [id for row in rows for id in row]


def test_the_batch_adds_the_ends_of_independent_lines(tmp_path: Path) -> None:
    task = prepared_text(tmp_path, text_as="lines")
    assert all(EOS not in row for row in stored(task))
    assert [list(row) for row in task.sequences()] == stored(task)


def test_long_and_repeated_lines_of_a_validation_text_are_kept(tmp_path: Path) -> None:
    lines = ["ba ce", "ba " * 3000 + "ce", "ba ce", "di"]
    task = prepared_text(tmp_path, text_as="lines", valid_text=str(write_lines(tmp_path / "valid", lines)))
    assert task.valid == lines


def test_a_held_out_line_is_validated_once(tmp_path: Path) -> None:
    write_lines(tmp_path / "toy.txt", [f"ba {number % 40} " + "ce " * 2000 for number in range(120)])
    task = prepared_text(tmp_path, text_as="lines", hold_out=60, max_tokens=5000)
    assert 0 < len(task.valid) == len({*task.valid}) < 40


@pytest.mark.parametrize(("text_as", "counted"), [("stream", "50"), ("windows", "50"), ("lines", "601")])
def test_the_scored_part_of_a_training_text_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_as: str, counted: str
) -> None:
    """An independent line is scored as a whole."""
    monkeypatch.setattr(language_modelling, "MAX_TRAINING_TOKENS", 50)
    write_lines(tmp_path / "toy.txt", ["ba ce di " * 200])
    valid = write_lines(tmp_path / "valid", text())
    task = prepared_text(tmp_path, text_as=text_as, valid_text=str(valid), max_tokens=1000)
    validation = task.validate(tiny_model(task), task.metrics)
    assert f"|n:{counted}|text:training|" in validation.scores["training_perplexity"].signature


def test_line_breaks_can_be_characters_and_blank_lines_can_be_kept(tmp_path: Path) -> None:
    lines = [*(["ab", "", "  ", "b"] * 30)]
    write_lines(tmp_path / "toy.txt", lines)
    task = prepared_text(tmp_path, line_end="newline", keep_blank_lines=True)
    assert "".join(task.tokenizer.decode(stored(task))) == "".join(line + "\n" for line in lines[:-20])
    assert task.valid == lines[-20:]


def test_blank_lines_are_dropped_by_default(tmp_path: Path) -> None:
    write_lines(tmp_path / "toy.txt", ["ab", "", "  ", "b"] * 60)
    task = prepared_text(tmp_path)
    assert len(stored(task)) == 120 - 20
    assert set(task.valid) == {"ab", "b"}


def test_the_vocabulary_may_come_from_another_text(tmp_path: Path) -> None:
    words = write_lines(tmp_path / "words", ["ba", "ce", "xyz"])
    task = prepared_text(tmp_path, vocabulary_text=str(words))
    assert set(task.tokenizer.vocabulary.text_pieces) == {"ba", "ce", "xyz"}
    known = [id for row in stored(task) for id in row]
    assert UNK in known
    assert (task.folder / "data" / "corpus.json").read_text().count("words") == 1


def test_a_vocabulary_is_sampled_by_the_lines_of_its_own_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "MAX_SUBWORD_ROWS", 50)
    words = write_lines(tmp_path / "words", ["ba", "ce", "xyz"])
    data = TextData(text=str(write_lines(tmp_path / "text", text())), hold_out=20, vocabulary_text=str(words))
    bpe = TokenizerConfig(kind="bpe", vocab_size=270, min_frequency=1)
    (tmp_path / "run" / "data").mkdir(parents=True)
    prepare_language_model(data, bpe, 1, tmp_path / "run", len(text()))
    assert len(load_tokenizer(tmp_path / "run" / "tokenizer.json").encode(["xyz"])[0]) < 3, "all three words are read"


def test_a_validation_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "MAX_SCORED_TOKENS", 4)
    valid = write_lines(tmp_path / "valid", ["ba", "ba ce di fo", "ce di fo"])
    task = prepared_text(tmp_path, text_as="lines", max_tokens=3, valid_text=str(valid))
    assert task.valid == ["ba", "ce di fo"]
    write_lines(valid, ["ba ce di fo"])
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match=r"all 1 validation lines have more than 3 tokens"):
        prepared_text(tmp_path / "other", text_as="lines", max_tokens=3, valid_text=str(valid))


def test_a_row_of_a_stream_is_described_by_its_text(tmp_path: Path) -> None:
    task = prepared_text(tmp_path)
    batch = next(task.loader(0, 1).batches_from())[1]
    shown = task.text_of(int(batch.rows[1]))
    assert task.tokenizer.decode([batch.tgt_out[1].tolist()])[0] in shown


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"line_end": "newline"}, 'need data.text_as = "stream"'),
        ({"keep_blank_lines": True}, 'need data.text_as = "stream"'),
        ({"text_as": "book"}, "expected one of 'lines', 'stream', 'windows', got 'book'"),
    ],
)
def test_contradictory_settings_are_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match="(?s)" + message):
        build(TextData, Document(keys))


def test_the_end_of_a_text_is_split_off() -> None:
    rows = [(str(number),) for number in range(10)]
    assert [*split_end(iter(rows), 10, 3, held=False)] == rows[:7]
    assert [*split_end(iter(rows), 10, 3, held=True)] == rows[7:]
    with pytest.raises(DataError, match=r"data.hold_out = 6 would hold out more than half"):
        next(split_end(iter(rows), 10, 6, held=True))
