"""Logit rules: what each one forbids or shifts, and for how long."""

from __future__ import annotations

import random

import torch
from scripted import FixedRows

from heed.decoding.logit_rules import Forbidden, FrequencyPenalty, LogitBias, MinLength, NoRepeatNgram
from heed.text.vocabulary import EOS_ID

NEVER = float("-inf")


def test_forbidden_tokens_become_impossible() -> None:
    actual = Forbidden((3, 1))(torch.full((2, 4), -1.0), FixedRows([(0,), (2,)]))
    assert actual.tolist() == [[-1.0, NEVER, -1.0, NEVER]] * 2


def test_the_end_is_impossible_until_there_are_enough_tokens() -> None:
    rule = MinLength(minima=[2])
    actual = [rule(torch.full((1, 3), -1.0), FixedRows([(1,) * length])).tolist() for length in (0, 1, 2, 3)]
    assert actual == [[[-1.0, -1.0, NEVER]]] * 2 + [[[-1.0, -1.0, -1.0]]] * 2


def test_each_source_has_its_own_minimum_length() -> None:
    rule = MinLength(minima=[0, 3, 1])
    actual = rule(torch.full((4, 3), -1.0), FixedRows([(1,)] * 4, sources=[1, 1, 2, 0]))
    assert actual[:, EOS_ID].tolist() == [NEVER, NEVER, -1.0, -1.0]


def test_a_token_that_would_repeat_an_ngram_is_impossible() -> None:
    history = (4, 5, 6, 4, 5)
    for size, forbidden in ((1, {4, 5, 6}), (2, {6}), (3, {6}), (4, set()), (9, set())):
        actual = NoRepeatNgram(size)(torch.full((1, 8), -1.0), FixedRows([history]))
        assert set((actual[0] == NEVER).nonzero().flatten().tolist()) == forbidden


def test_exactly_the_repeating_tokens_are_impossible() -> None:
    dice = random.Random(1)
    seen = 0
    for size in (1, 2, 3):
        histories = [tuple(dice.choices(range(4), k=7)) for _ in range(40)]
        actual = NoRepeatNgram(size)(torch.zeros(40, 4), FixedRows(histories))
        for history, row in zip(histories, actual.tolist(), strict=True):
            runs = {history[i : i + size] for i in range(len(history) - size + 1)}
            for token in range(4):
                repeats = (*history, token)[-size:] in runs
                seen += repeats
                assert (row[token] == NEVER) == repeats
    assert seen > 20, "the test needs repeating tokens"


def test_a_bias_is_added_to_its_tokens() -> None:
    actual = LogitBias([(1, 2.5), (3, -100.0)])(torch.zeros(2, 4), FixedRows([(), ()]))
    assert actual.tolist() == [[0.0, 2.5, 0.0, -100.0]] * 2


def test_a_token_is_penalised_once_for_its_presence_and_again_for_each_occurrence() -> None:
    rows = FixedRows([(1, 1, 3), (0, 2, 2)])
    actual = FrequencyPenalty(presence=0.5, frequency=0.25)(torch.zeros(2, 4), rows)
    assert actual.tolist() == [[0.0, -1.0, 0.0, -0.75], [-0.75, 0.0, -1.0, 0.0]]


def test_no_token_is_penalised_before_the_first_one() -> None:
    assert FrequencyPenalty(1.0, 1.0)(torch.zeros(1, 3), FixedRows([()])).tolist() == [[0.0] * 3]
