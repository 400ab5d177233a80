"""Models learn tasks that need attention: copying, reversing and sorting."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice, repeat

import pytest
import torch

from heed.data.batch import collate
from heed.decoding.options import SearchOptions
from heed.inference.translator import ModelTranslator
from heed.models import Model, build_model
from heed.models.encoder_decoder import EncoderDecoderConfig
from heed.models.recurrent_decoder import RecurrentDecoderConfig
from heed.models.rnn_attention import RecurrentAttentionConfig
from heed.models.rnn_reader import RecurrentReaderConfig
from heed.models.transformer import TransformerConfig
from heed.nn.contract import Smoothing, Vocabularies
from heed.tasks.generation import chain_rule_loss
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

DIGITS = Word("0123456789")
PAD, BOS, EOS = (DIGITS.vocabulary.pad_id, DIGITS.vocabulary.bos_id, DIGITS.vocabulary.eos_id)
CONFIGS = {
    "transformer": TransformerConfig(
        d_model=32, d_ff=64, num_heads=4, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0, norm="pre"
    ),
    "rnn_attention": RecurrentAttentionConfig(d_model=32, hidden_size=48, attention_size=32, dropout=0.0),
    "encoder_decoder": EncoderDecoderConfig(
        d_model=32,
        dropout=0.0,
        encoder=RecurrentReaderConfig(d_model=32, hidden_size=48, dropout=0.0),
        decoder=RecurrentDecoderConfig(
            cell="lstm",
            hidden_size=48,
            start="thought",
            attention="bilinear",
            attends="after",
            input_feeding=True,
        ),
    ),
}
TASKS: dict[str, Callable[[Digits], Digits]] = {
    "copy": lambda digits: digits,
    "reverse": lambda digits: digits[::-1],
    "sort": lambda digits: tuple(sorted(digits)),
}
every_network = pytest.mark.parametrize("kind", CONFIGS)

Digits = tuple[str, ...]
Pair = tuple[Digits, Digits]


def sequences(shortest: int, seed: int) -> Iterator[Digits]:
    """Endless random sequences of up to eight digits."""
    dice = random.Random(seed)
    while True:
        yield tuple(dice.choices("0123456789", k=dice.randint(shortest, 8)))


HELD_OUT = list(dict.fromkeys(islice(sequences(shortest=4, seed=2), 500)))
"""What the models are asked afterwards, and never see before."""


def batches(task: str, size: int) -> Iterator[list[Pair]]:
    """So many sequences at a time, with what the task makes of them."""
    hidden = set(HELD_OUT)
    stream = ((digits, TASKS[task](digits)) for digits in sequences(shortest=1, seed=1) if digits not in hidden)
    while True:
        yield list(islice(stream, size))


def new_model(kind: str) -> Model:
    """Fresh weights, the same at every call."""
    torch.manual_seed(1)
    return build_model(CONFIGS[kind], Vocabularies(len(DIGITS.vocabulary), len(DIGITS.vocabulary)))


def learn(model: Model, stream: Iterator[list[Pair]], num_updates: int, lr: float) -> None:
    """A plain loop: the loss that the tasks use, Adam, a rate that rises and falls linearly."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(num_updates):
        sides = zip(*next(stream), strict=True)
        src, tgt = (DIGITS.encode([" ".join(digits) for digits in side]) for side in sides)
        batch = collate(src, tgt, range(len(src)), BOS, EOS, PAD)
        loss_sum, _, _ = chain_rule_loss(model, batch, Smoothing(0.1), dropout_keys=None)
        (loss_sum / batch.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = lr * min((update + 1) / 50, 1 - update / num_updates)
        optimizer.step()
        optimizer.zero_grad()


def exact_matches(model: Model, task: str, questions: list[Digits]) -> float:
    """The share of the questions that greedy search answers right to the last digit."""
    translator = ModelTranslator(model, DIGITS, DIGITS, Normaliser())
    answers = translator.translate([" ".join(digits) for digits in questions], SearchOptions(beam_size=1))
    right = [" ".join(TASKS[task](digits)) for digits in questions]
    return sum(answer.text == text for answer, text in zip(answers, right, strict=True)) / len(questions)


def test_a_transformer_learns_to_reverse_in_seconds() -> None:
    model = new_model("transformer")
    learn(model, batches("reverse", 16), num_updates=800, lr=5e-3)
    assert exact_matches(model, "reverse", HELD_OUT) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@every_network
def test_networks_learn_to_copy_reverse_and_sort(kind: str, task: str) -> None:
    model = new_model(kind)
    learn(model, batches(task, 64), num_updates=1000, lr=5e-3)
    assert exact_matches(model, task, HELD_OUT) >= 0.98


@every_network
def test_networks_overfit_eight_sentences_in_seconds(kind: str) -> None:
    model, eight = new_model(kind), HELD_OUT[:8]
    assert exact_matches(model, "reverse", eight) == 0.0
    learn(model, repeat([(digits, digits[::-1]) for digits in eight]), num_updates=100, lr=1e-2)
    assert exact_matches(model, "reverse", eight) == 1.0
