"""Tasks: batches, losses and validations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from toy import prepared, tiny_keys, write_lines
from toy import translate as toy_translation

from heed.core.config import Document
from heed.core.errors import UsageError
from heed.execute import prepare_run
from heed.inference.translator import ModelTranslator
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks.generation import likelihood
from heed.tasks.language_model.task import LanguageModelTask
from heed.tasks.translation.task import TranslationTask, sample_rows


def language_model(folder: Path, lines: list[str], **keys: object) -> Run:
    """A prepared bigram run."""
    text = write_lines(folder / "text", lines)
    options = TrainOptions(folder / "lm", device="cpu", quiet=True)
    wanted = {"task": "language-model", "data.text": str(text), "data.hold_out": 100, "model.kind": "bigram", **keys}
    return prepare_run(Planner(Document(), wanted, options).plan(), options.out, quiet=True)


def test_a_batch_is_the_pairs_of_its_rows(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    task = run.task()
    assert isinstance(task, TranslationTask)
    loader = task.loader(256, seed=1).batches_from()
    batch = next(loader)[1]
    loader.close()
    assert batch.source is not None
    sources = task.tokenizers["src"].decode(batch.source.ids.tolist())
    targets = task.tokenizers["tgt"].decode(batch.tgt_out.tolist())
    assert [toy_translation(src) for src in sources] == targets


def test_subword_dropout_differs_between_epochs_and_is_reproducible(tmp_path: Path) -> None:
    def epochs(run: Run) -> list[dict[int, list[int]]]:
        loader = run.task().loader(256, seed=1)
        stream = loader.batches_from()
        found: list[dict[int, list[int]]] = [{}, {}]
        for epoch in (0, 1):
            for _ in range(loader.num_batches(epoch)):
                batch = next(stream)[1]
                ids = [row[mask].tolist() for row, mask in zip(batch.tgt_out, batch.tgt_mask, strict=True)]
                found[epoch].update(zip(batch.rows.tolist(), ids, strict=True))
        stream.close()
        return found

    run = prepared(tmp_path, tokenizer__dropout=0.3)
    first, second = epochs(run)
    assert first.keys() == second.keys()
    assert sum(first[row] != second[row] for row in first) > len(first) / 2
    decode = run.tokenizers["tgt"].decode
    assert all(decode([first[row]]) == decode([second[row]]) for row in first)
    assert epochs(Run(run.folder)) == [first, second]


def test_a_validation_scores_and_shows_samples(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    task = run.task()
    assert isinstance(task, TranslationTask)
    model = run.new_model()
    validation = task.validate(model, ("bleu", "chrf", "perplexity"))
    assert list(validation.scores) == ["bleu", "chrf", "perplexity"]
    assert len(validation.samples) == 4
    assert {(sample.src, sample.reference) for sample in validation.samples} <= set(task.valid)
    sources, references = [row[0] for row in task.valid], [row[1] for row in task.valid]
    log_probs = [s.log_prob for s in task.translator(model).score(references, sources)]
    num_tokens = sum(len(ids) + 1 for ids in run.tokenizers["tgt"].encode(references))
    assert validation.value("perplexity") == pytest.approx(math.exp(-sum(log_probs) / num_tokens))
    assert list(task.validate(model, ("perplexity",)).scores) == ["perplexity"]


def test_the_unsmoothed_loss_equals_the_score(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    task, model = run.task(), run.new_model()
    assert isinstance(task, TranslationTask)
    loader = task.loader(256, seed=1).batches_from()
    batch = next(loader)[1]
    loader.close()
    loss_sum, nll_sum, _ = task.loss(model, batch, None)
    assert batch.source is not None
    texts = [task.tokenizers[side].decode(ids.tolist()) for side, ids in
             (("src", batch.source.ids), ("tgt", batch.tgt_out))]  # fmt: skip
    scored = task.translator(model).score(texts[1], texts[0])
    assert float(nll_sum) == pytest.approx(-sum(s.log_prob for s in scored), rel=1e-4)
    assert float(loss_sum.detach()) != pytest.approx(float(nll_sum), rel=1e-3)  # smoothed, as the recipe says


def test_the_sequences_of_a_task_are_its_training_targets(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    sequences = [list(ids) for ids in run.task().sequences()]
    assert len(sequences) == run.corpus["num_rows"]
    assert run.tokenizers["tgt"].decode(sequences[:1])[0].split()[0].isalpha()


@pytest.mark.parametrize(("rows", "picked"), [(0, []), (1, [0]), (2, [0, 1]), (8, [0, 2, 4, 6]), (9, [0, 2, 4, 6])])
def test_samples_are_spread_over_the_validation_data(rows: int, picked: list[int]) -> None:
    assert sample_rows(rows) == picked


LINES = [f"the {noun} {verb} ." for noun in ("dog", "cat", "man", "cow") for verb in ("runs", "sleeps", "eats")] * 30


def test_a_language_model_reads_lines_that_are_not_empty(tmp_path: Path) -> None:
    run = language_model(tmp_path, [*LINES, "", "   "])
    task = run.task()
    assert isinstance(task, LanguageModelTask)
    assert len(task.valid) + len({tuple(ids) for ids in task.sequences()}) == 12
    assert all(line in LINES for line in task.valid)


def test_the_perplexity_of_a_counted_model_is_that_of_its_counts(tmp_path: Path) -> None:
    run = language_model(tmp_path, LINES)
    task, model = run.task(), run.new_model()
    assert isinstance(task, LanguageModelTask)
    model.estimate(task.sequences())  # type: ignore[union-attr]
    validation = task.validate(model, task.metrics)
    translator = ModelTranslator(model, None, task.tokenizer, task.data.normaliser, task.device)
    total = sum(text.log_prob_sum for text in likelihood(translator, task.valid))
    assert validation.value("perplexity") == pytest.approx(math.exp(-total / (5 * len(task.valid))))
    assert set(validation.scores) >= {"perplexity", "perplexity_per_word", "bits_per_byte"}
    loader = task.loader(256, seed=1).batches_from()
    batch = next(loader)[1]
    loader.close()
    assert batch.source is None
    loss_sum, nll_sum, _ = task.loss(model, batch, None)
    assert torch.equal(loss_sum, nll_sum)
    assert np.isfinite(float(loss_sum))


def test_a_recipe_without_data_is_refused(tmp_path: Path) -> None:
    options = TrainOptions(tmp_path / "lm", device="cpu", quiet=True)
    with pytest.raises(UsageError, match=r"data.text is missing: give --text F\."):
        Planner(Document(), {"task": "language-model"}, options).plan()
    with pytest.raises(UsageError, match=r"data\.src and data\.tgt"):
        Planner(Document(), {"task": "translation"}, options).plan()
    keys = tiny_keys(tmp_path)
    del keys["data.tgt"]
    with pytest.raises(UsageError, match=r"data\.src and data\.tgt"):
        Planner(Document(), keys, options).plan()
