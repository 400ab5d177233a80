"""A phrase table of two aligners."""

from __future__ import annotations

from collections import Counter

import pytest
from toy import pairs

from heed.core.errors import UsageError
from heed.statistical.derivation import Bitext
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.table import PhraseTable
from heed.statistical.phrases.training import estimate_translator
from heed.text.tokenizers import TokenizerConfig, train_tokenizer

SIDES = list(zip(*pairs(60), strict=True))


def bitext(num_valid: int = 0) -> Bitext:
    tokenizer = train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=1000), [*SIDES[0], *SIDES[1]])
    rows = list(zip(*(tokenizer.encode(side) for side in SIDES), strict=True))
    return Bitext(rows[num_valid:], rows[:num_valid], tokenizer, lambda _: None)


def counts(table: PhraseTable) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The number of occurrences of each phrase pair."""
    return Counter({
        (table.sources.words(source), table.target(target)): count
        for source, target, count in zip(
            table.src_nodes.tolist(), table.tgt_nodes.tolist(), table.counts.tolist(), strict=True
        )
    })  # fmt: skip


def test_the_phrases_of_two_aligners_are_counted_together_and_the_text_once() -> None:
    def settings(aligner: str, second: str) -> PhraseSettings:
        return PhraseSettings(aligner=aligner, second_aligner=second, max_phrase=3, lm_order=2, tuning_rounds=0)

    one, other, both = (
        estimate_translator(bitext(), settings(*names))
        for names in (("ibm1", "none"), ("hmm", "none"), ("ibm1", "hmm"))
    )
    assert counts(one.table) != counts(other.table)
    assert counts(both.table) == counts(one.table) + counts(other.table)
    ours, alone = both.language.arrays(), one.language.arrays()
    assert all((ours[name] == alone[name]).all() for name in alone)


def test_two_aligners_differ() -> None:
    with pytest.raises(UsageError, match="choose two different ones"):
        PhraseSettings(aligner="hmm", second_aligner="hmm")
