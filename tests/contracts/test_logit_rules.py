"""Contract of logit rules: each row by itself; rules that forbid leave other log-probabilities unchanged."""

from __future__ import annotations

import pytest
import torch
from scripted import FixedRows

from heed.decoding.logit_rules import (
    LOGIT_RULES,
    BadWords,
    BannedPhrases,
    Forbidden,
    FrequencyPenalty,
    LogitBias,
    LogitRule,
    MinLength,
    NoRepeatNgram,
)

TOKEN_BYTES = [b"", b"", b"", b"", *(bytes([letter]) for letter in b"abcdefg ")]
FACTORIES = {
    "forbidden": lambda: Forbidden((0, 1, 3)),
    "min_length": lambda: MinLength(minima=[2, 0, 3]),
    "no_repeat_ngram": lambda: NoRepeatNgram(2),
    "bad_words": lambda: BadWords(BannedPhrases(("ab", "c d"), TOKEN_BYTES), limits=[9, 5, 4]),
    "logit_bias": lambda: LogitBias([(4, 1.5), (7, -2.0)]),
    "frequency_penalty": lambda: FrequencyPenalty(0.5, 0.25),
}
SHIFTING = {"logit_bias", "frequency_penalty"}
HISTORIES = [[(), (), ()], [(4, 5, 4), (11, 4, 5), (6, 11, 7)]]
every_rule = pytest.mark.parametrize("name", FACTORIES)
every_forbidding_rule = pytest.mark.parametrize("name", sorted(FACTORIES.keys() - SHIFTING))
every_history = pytest.mark.parametrize("tokens", HISTORIES, ids=["at the start", "later"])


def rows(num_rows: int) -> torch.Tensor:
    """Log-probabilities of a dozen tokens."""
    torch.manual_seed(num_rows)
    return torch.randn(num_rows, 12).log_softmax(-1)


def test_every_rule_of_the_registry_is_tested() -> None:
    assert FACTORIES.keys() == LOGIT_RULES.keys()
    assert all(type(factory()) is LOGIT_RULES[name] for name, factory in FACTORIES.items())


@every_forbidding_rule
def test_every_forbidding_rule_forbids_something(name: str) -> None:
    found = [FACTORIES[name]()(rows(3), FixedRows(tokens)) for tokens in HISTORIES]
    assert any((after == float("-inf")).any() for after in found)


@every_forbidding_rule
@every_history
def test_a_forbidding_rule_leaves_the_other_tokens_unchanged(name: str, tokens: list[tuple[int, ...]]) -> None:
    before = rows(3)
    rule: LogitRule = FACTORIES[name]()
    after = rule(before.clone(), FixedRows(tokens))
    assert ((after == before) | (after == float("-inf"))).all()
    assert (after > float("-inf")).any(dim=-1).all(), "something is always possible"


@every_rule
@every_history
def test_a_rule_does_not_depend_on_neighbouring_rows(name: str, tokens: list[tuple[int, ...]]) -> None:
    before = rows(3)
    rule: LogitRule = FACTORIES[name]()
    together = rule(before.clone(), FixedRows(tokens))
    alone = [rule(before[row : row + 1].clone(), FixedRows([tokens[row]], [row])) for row in range(3)]
    assert together.equal(torch.cat(alone))
