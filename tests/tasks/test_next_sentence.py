"""Prediction of the next sentence by a masked language model: pairs, the loss of BERT, scores, folders of BERT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from command import call
from toy import events, unchecked_shapes, without_shape_checks, write_lines
from trainings import content
from transformers import BertForPreTraining

from heed.data.batch import divided
from heed.data.next_sentence import BEGINS, PairedBatch, Pairs
from heed.data.schedule import START
from heed.data.store import TokenStore, write_store
from heed.data.validation import read_valid
from heed.run import Run

__all__ = ["without_shape_checks"]

COLOURS = ("red", "blue")
TINY = (
    "--task", "masked-language-model", "--data.next_sentence=true", "--model.d_model=32", "--model.d_ff=64",
    "--model.num_heads=2", "--model.num_layers=1", "--model.dropout=0.0", "--model.norm=post",
    "--model.positions=learned", "--model.max_len=20", "--data.max_tokens=15", "--training.tokens_per_batch=512",
    "--training.warmup_steps=10", "--training.lr=5e-3", "--training.precision=float32", "--tokenizer.kind=word",
    "--tokenizer.min_frequency=1", "--training.average=none", "--quiet", "--force",
)  # fmt: skip


def train(folder: Path, text: Path, *words: str) -> Path:
    with unchecked_shapes():
        result = call("train", *TINY, "--text", text, "--out", folder / "run", *words)
    assert result.code == 0, result.err
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of documents of two lines, of which the second has the colour of the first."""
    folder = tmp_path_factory.mktemp("next")
    documents = [f"{colour} {n}\nit is {colour}\n" for n in range(12) for colour in COLOURS]
    text, valid = write_lines(folder / "text", documents), write_lines(folder / "valid", documents[:8])
    limits = ("--training.max_steps=60", "--training.eval_every=30", "--training.save_every=30")
    return train(folder, text, "--valid-text", str(valid), *limits, "--tokenizer.kind=wordpiece")


def store_of(folder: Path, begins: list[int]) -> TokenStore:
    rows = (([5 + at, 6], [begin]) for at, begin in enumerate(begins))
    return write_store(folder / "store", ("src", BEGINS), rows, (1000, 2), {})


def test_half_of_the_pairs_are_neighbours_and_the_others_are_not(tmp_path: Path) -> None:
    begins = [int(at % 10 == 0) for at in range(400)]
    pairs, rows = Pairs(store_of(tmp_path, begins), seed=3), np.arange(400)
    second, is_next = pairs.second(rows, epoch=1)
    assert (second[is_next] == rows[is_next] + 1).all()
    assert not (second[~is_next] == rows[~is_next] + 1).any() and not (second == rows).any()
    assert not is_next[9::10].any()  # the end of a document
    assert 140 <= is_next.sum() <= 220
    again = pairs.second(rows[50:60], epoch=1)
    assert (again[0] == second[50:60]).all() and (again[1] == is_next[50:60]).all()
    assert (pairs.second(rows, epoch=2)[0] != second).sum() > 200
    assert len({*second[~is_next]}) > 100


@pytest.fixture(scope="module")
def theirs(run: Path, tmp_path_factory: pytest.TempPathFactory) -> BertForPreTraining:
    """The exported model in `transformers`."""
    folder = tmp_path_factory.mktemp("theirs") / "bert"
    assert call("export", run, "--to", "bert", "--out", folder).code == 0
    return BertForPreTraining.from_pretrained(folder).eval()


def read_by(theirs: BertForPreTraining, batch: PairedBatch) -> Any:
    """What their model makes of a batch: a [CLS] before it, and the second text as segment 1."""
    first = torch.ones(len(batch.rows), 1, dtype=torch.long)
    ids = torch.cat((first, batch.source.ids), 1)
    ends = (ids == 2).long()
    segments = (ends.cumsum(1) - ends).clamp(max=1)
    labels = torch.cat((torch.full_like(first, -100), torch.where(batch.chosen, batch.truth, -100)), 1)
    mask = torch.cat((first, batch.source.mask.long()), 1)
    return theirs(
        input_ids=ids, attention_mask=mask, token_type_ids=segments, labels=labels,
        next_sentence_label=(~batch.is_next).long(),
    )  # fmt: skip


@torch.no_grad()
def test_the_loss_of_an_update_is_that_of_bert(run: Path, theirs: BertForPreTraining) -> None:
    """The mean over masked pieces plus the mean over pairs, also where a batch is computed in parts."""
    ours, task = Run(run).model, Run(run).task()
    _, batch = next(task.loader(200, seed=1).batches_from(START))
    loss = task.loss(ours, batch, None)
    expected = read_by(theirs, batch).loss
    torch.testing.assert_close(loss.loss_sum / batch.num_targets, expected, rtol=1e-4, atol=1e-5)
    parts = [task.loss(ours, part, None) for part in divided(batch, 2)]
    torch.testing.assert_close(sum(part.loss_sum for part in parts), loss.loss_sum)


@torch.no_grad()
def test_loss_and_accuracy_of_the_pairs_are_reported(run: Path, theirs: BertForPreTraining) -> None:
    [*_, best] = [event for event in events(run) if event["event"] == "validation" and event["best"]]
    batches = [*Run(run).task()._validation_batches()]
    log_probs = torch.cat([read_by(theirs, batch).seq_relationship_logits.log_softmax(1) for batch in batches])
    truth = torch.cat([(~batch.is_next).long() for batch in batches])
    assert {*truth.tolist()} == {0, 1}
    loss, accuracy = F.nll_loss(log_probs, truth), (log_probs.argmax(1) == truth).float().mean()
    assert best["next_sentence_loss"] == pytest.approx(float(loss), abs=1e-3)
    assert best["next_sentence_accuracy"] == pytest.approx(100 * float(accuracy))
    assert "next sentence accuracy" in (run / "report.md").read_text()


def test_an_imported_folder_still_predicts_next_sentences(run: Path, tmp_path: Path) -> None:
    assert call("export", run, "--to", "bert", "--out", tmp_path / "bert").code == 0
    assert call("import", tmp_path / "bert", "--out", tmp_path / "again").code == 0
    again = Run(tmp_path / "again")
    kept = again.weights()
    assert all(tensor.equal(kept[name]) for name, tensor in Run(run).weights().items())
    assert again.recipe.data.next_sentence


def test_lines_that_are_held_out_or_apart_do_not_follow(tmp_path: Path) -> None:
    """A blank line, a line without known pieces and a held-out line interrupt a document; parts of a line do not."""
    lines = ["a b", "c d", "", "e f", "☃", "g h", *(f"w{n} x{n}" for n in range(30)), "a " * 12]
    text = write_lines(tmp_path / "text", lines)
    valid = write_lines(tmp_path / "valid", ["a b", "c d", "e f", "", "g h", "w1 x1"])
    folder = train(tmp_path, text, "--valid-text", str(valid), "--tokenizer.vocab_size=72", "--training.max_steps=1")
    task = Run(folder).task()
    begins = task.store.all_tokens(BEGINS)[0].tolist()
    shown = {task.text_of(row): begin for row, begin in enumerate(begins)}
    assert [shown[f"'{text}'"] for text in ("a b", "c d", "e f", "g h", "w0 x0")] == [1, 0, 1, 1, 0]
    assert begins[-2:] == [0, 0] and len(task.store) == len(lines) - 1  # the last line has two parts
    assert [row[0] for row in read_valid(folder)] == ["a b", "c d", "g h", "w1 x1"]
    pairs, is_next = task._validation_rows()
    shown_pairs = [" ".join(task.tokenizers["src"].decode([pair])) for pair in pairs]
    assert (is_next, shown_pairs) == ([True, False], ["a b c d", "g h c d"])


@pytest.mark.parametrize("number", [2, 3, 5])
def test_half_of_the_validation_pairs_are_neighbours(number: int, tmp_path: Path) -> None:
    documents = [f"a{n} b{n}\nc{n} d{n}\n" for n in range(number)]
    text, valid = (write_lines(tmp_path / name, documents) for name in ("text", "valid"))
    folder = train(tmp_path, text, "--valid-text", str(valid), "--tokenizer.vocab_size=72", "--training.max_steps=1")
    task = Run(folder).task()
    pairs, is_next = task._validation_rows()
    assert 2 * sum(is_next) == len(is_next) == number + number % 2
    for pair, follows in zip(pairs, is_next, strict=True):
        first, second = (word[1:] for word in task.tokenizers["src"].decode([pair])[0].split()[::3])
        assert (first == second) == follows
    assert len({*map(bytes, pairs)}) == len(pairs)


def test_held_out_pairs_are_not_trained_on(tmp_path: Path) -> None:
    lines = [f"w{n} x{n}" if n % 7 else "" for n in range(200)]
    text = write_lines(tmp_path / "text", lines)
    folder = train(tmp_path, text, "--data.hold_out=40", "--tokenizer.vocab_size=600", "--training.max_steps=1")
    valid = [row[0] for row in read_valid(folder)]
    task = Run(folder).task()
    trained = {task.text_of(row).strip("'") for row in range(len(task.store))}
    assert len(valid) > 10 and not {*valid} & trained
    neither = {*filter(None, lines)} - {*valid} - trained
    assert neither and all(lines[lines.index(line) + 1] == "" for line in neither)
    assert Run(folder).corpus["dropped"] == {"chosen for validation, but without a next line": len(neither)}
    assert all(lines.index(b) == lines.index(a) + 1 for a, b in zip(valid[::2], valid[1::2], strict=True))
    begins = task.store.all_tokens(BEGINS)[0].tolist()
    for row in range(1, len(begins)):
        before, after = (int(task.text_of(at).split()[0].strip("'w")) for at in (row - 1, row))
        assert begins[row] == (after != before + 1)


def test_a_resumed_training_draws_the_same_pairs(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", [f"the {colour} {n}" for n in range(20) for colour in COLOURS])
    for name, steps in (("whole", 6), ("parts", 3)):
        limits = (f"--training.max_steps={steps}", "--training.eval_every=3", "--training.save_every=3")
        train(tmp_path / name, text, *limits, "--training.schedule=constant", "--training.tokens_per_batch=200")
    assert call("train", "--resume", tmp_path / "parts" / "run", "--max-steps", "6", "--quiet").code == 0
    assert content(tmp_path / "parts" / "run") == content(tmp_path / "whole" / "run")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model.begin=false",), "data.next_sentence = true needs model.begin = true"),
        (("--model.num_segments=1",), "model.num_segments of at least 2"),
        (
            ("--data.next_sentence=false", "--training.stop_metric=next_sentence_loss"),
            "needs data.next_sentence = true",
        ),
    ],
)
def test_settings_that_contradict_it_are_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["a b", "c d"])
    result = call("train", *TINY, "--text", text, "--out", tmp_path / "run", *words)
    assert result.code == 2 and message in result.err
