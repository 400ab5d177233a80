"""Minimum risk training: the published risk and its gradient for every translator, keyed samples, exact resuming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import BOS, EOS, PAD, VOCABULARIES, model_of, random_rows
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from toy import last_checkpoint, prepared, straight_and_resumed, trainer_of

from heed.core.config import Document
from heed.core.errors import UsageError
from heed.data.batch import Batch, collate, divided
from heed.models import MODELS, GenerativeModel
from heed.nn.contract import TokenSource
from heed.nn.dropout_keys import DropoutKeys
from heed.recipe import build_recipe
from heed.tasks.translation.minimum_risk import Ids, Risk, minimum_risk_loss, sampled

TRANSLATORS = [
    kind for kind, each in MODELS.items()
    if issubclass(each, GenerativeModel) and each.needs_source and each.source == "tokens" and not each.count_based
]  # fmt: skip
LENGTHS = (4, 2, 5)
CHANGES: dict[str, Any] = {
    "training__risk": "chrf", "training__risk_samples": 3, "training__label_smoothing": 0.0, "model__dropout": 0.3,
}  # fmt: skip


def batch_of(lengths: Sequence[int] = LENGTHS) -> Batch:
    src = random_rows(lengths, VOCABULARIES.src_size, seed=1)
    tgt = random_rows(lengths, VOCABULARIES.tgt_size, seed=2)
    return collate(src, tgt, range(len(lengths)), BOS, EOS, PAD)


def keys_of(batch: Batch) -> DropoutKeys:
    return DropoutKeys.for_step(1, 7, batch.rows)


def overlap(outputs: Sequence[Ids], references: Sequence[Ids]) -> list[float]:
    """The share of the tokens of either that are tokens of both."""
    pairs = zip(outputs, references, strict=True)
    return [len(set(output) & set(reference)) / len(set(output) | set(reference)) for output, reference in pairs]


RISK = Risk(6, 0.5, lambda length: length + 2, overlap)


def log_prob(model: Any, batch: Batch, row: int, ids: Ids) -> torch.Tensor:
    """log P of one translation, token by token, with the dropout of its row."""
    part = batch.part(slice(row, row + 1))
    state = model.start(part.source, dropout_keys=keys_of(part))
    total, before = torch.zeros(()), BOS
    for token in ids:
        features, state = model.advance(torch.tensor([[before]]), state)
        total = total + model.head.log_probs(features[0, 0])[token]
        before = token
    return total


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_loss_is_the_expected_loss_of_the_reference_and_the_distinct_samples(name: str) -> None:
    """Σ_y Q(y) Δ(y, y*) with Q(y) = P(y)^α / Σ P(y')^α, written out, and its gradient."""
    model, batch = model_of(name), batch_of()
    assert batch.source is not None
    limits = [length + 3 for length in LENGTHS]  # the end of the source counts
    samples = sampled(model, batch.source, RISK.num_samples, limits, keys_of(batch))
    expected, nll = torch.zeros(()), 0.0
    for row, drawn in enumerate(samples):
        reference = tuple(batch.tgt_out[row][batch.tgt_mask[row]].tolist())
        candidates = [reference, *sorted(set(drawn) - {reference})]
        log_probs = [log_prob(model, batch, row, ids) for ids in candidates]
        powers = [(RISK.sharpness * each).exp() for each in log_probs]
        for power, ids in zip(powers, candidates, strict=True):
            expected = expected + power / sum(powers) * (1 - overlap([ids], [reference])[0])
        nll -= log_probs[0].item()
    found = minimum_risk_loss(model, batch, keys_of(batch), RISK)
    torch.testing.assert_close(found.loss_sum, expected, rtol=1e-4, atol=1e-5)
    assert found.nll_sum.item() == pytest.approx(nll, rel=1e-4)
    weights = list(model.parameters())
    for ours, theirs in zip(
        *(torch.autograd.grad(each, weights, allow_unused=True, materialize_grads=True)
          for each in (found.loss_sum, expected)), strict=True
    ):  # fmt: skip
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_samples_follow_the_model_and_end_at_the_end_of_sentence_or_the_limit() -> None:
    model, batch, number = model_of("transformer"), batch_of((3,)), 4000
    source = batch.source
    assert isinstance(source, TokenSource)
    [samples] = sampled(model, source, number, [5], keys_of(batch))
    features, _ = model.advance(torch.tensor([[BOS]]), model.start(source))
    first = torch.bincount(torch.tensor([ids[0] for ids in samples]), minlength=VOCABULARIES.tgt_size) / number
    torch.testing.assert_close(first, model.head.log_probs(features[0, 0]).exp(), atol=0.03, rtol=0)
    assert all(len(ids) == 5 or ids[-1] == EOS for ids in samples)
    assert all(EOS not in ids[:-1] for ids in samples) and {len(ids) for ids in samples} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_loss_of_a_batch_is_the_sum_of_its_halves(name: str) -> None:
    """Neither samples nor dropout depend on the neighbours, nor a translation on how many its row has."""
    model, batch = model_of(name), batch_of((4, 2, 5, 3))
    whole, left, right = (
        minimum_risk_loss(model, part, keys_of(part), RISK).loss_sum for part in (batch, *divided(batch, 2))
    )
    torch.testing.assert_close(whole, left + right, rtol=1e-5, atol=1e-5)


def test_training_lowers_the_mean_loss_of_new_samples() -> None:
    model, batch, risk = model_of("transformer"), batch_of(), replace(RISK, num_samples=16)
    assert batch.source is not None
    source = batch.source
    references = [tuple(ids[mask].tolist()) for ids, mask in zip(batch.tgt_out, batch.tgt_mask, strict=True)]

    def mean_loss() -> float:
        drawn = sampled(model, source, 100, [7] * len(references), DropoutKeys.for_step(2, 0, batch.rows))
        losses = [1 - overlap([ids], [own])[0] for own, of_row in zip(references, drawn, strict=True) for ids in of_row]
        return sum(losses) / len(losses)

    optimizer, before = torch.optim.Adam(model.parameters(), lr=1e-2), mean_loss()
    for update in range(40):
        loss = minimum_risk_loss(model, batch, DropoutKeys.for_step(1, update, batch.rows), risk)
        optimizer.zero_grad()
        loss.loss_sum.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert mean_loss() < 0.7 * before


@pytest.mark.parametrize(("metric", "scorer"), [("bleu", BLEU(effective_order=True)), ("chrf", CHRF())])
def test_the_score_of_a_task_is_that_of_sentences_of_text(tmp_path: Path, metric: str, scorer: Any) -> None:
    run = prepared(tmp_path, training__risk=metric, training__label_smoothing=0.0)
    task: Any = run.task()
    texts = ["kan ler mis not", "kan mis ler not pur qes", "rit"]
    outputs, references = ([(*ids, EOS) for ids in task.tokenizers["tgt"].encode(x)] for x in (texts[::-1], texts))
    expected = [scorer.sentence_score(out, [ref]).score / 100 for out, ref in zip(texts[::-1], texts, strict=True)]
    assert task._risk.scores(outputs, references) == pytest.approx(expected)
    assert task._risk.scores(references, references) == pytest.approx([1.0] * 3)
    assert task._risk.limit(8) == run.recipe.decoding.limit(7)
    assert task.trial_batch(VOCABULARIES, 4, 1) is None


def test_a_training_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    straight, again = straight_and_resumed(tmp_path, **CHANGES)
    assert straight.progress.step == again.progress.step == 8
    assert all(torch.equal(tensor, straight.weights[name]) for name, tensor in again.weights.items())
    likelihood = {**CHANGES, "training__risk": "none", "training__max_steps": 8, "training__save_every": 4}
    trainer_of(prepared(tmp_path, "likelihood", **likelihood)).run()
    plain = last_checkpoint(tmp_path / "likelihood")
    assert not all(torch.equal(tensor, straight.weights[name]) for name, tensor in plain.weights.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training__r_drop": 1.0}, r'cannot be combined with R-Drop: set it to "none", or training\.r_drop to 0'),
        ({"training__truth_probability": 0.5}, r"below 1\) cannot be combined with minimum risk training"),
        ({"training__parallel": "sharded"}, r'equally many steps: set training\.parallel = "data"'),
        ({"training__label_smoothing": 0.1}, r"no label smoothing: set training\.label_smoothing = 0"),
    ],
)
def test_what_it_cannot_be_combined_with_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(tmp_path, **{**CHANGES, **changes})


def test_a_task_without_it_says_so() -> None:
    keys = {
        "task": "language-model",
        "data.text": "a.txt",
        "model.kind": "gpt",
        "training.stop_metric": "perplexity",
        "training.risk": "bleu",
    }
    with pytest.raises(UsageError, match=r"task 'language-model' has no minimum risk training .* set it to \"none\""):
        build_recipe(Document(), keys)


def test_without_dropout_keys_the_loss_is_that_of_the_likelihood(tmp_path: Path) -> None:
    """As for all losses of training alone."""
    run = prepared(tmp_path, **CHANGES)
    task, batch = run.task(), batch_of()
    model = run.new_model()
    found = task.loss(model, batch, None)
    torch.testing.assert_close(found.loss_sum.detach(), found.nll_sum)
