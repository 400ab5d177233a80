"""Estimation of a phrase-based translator: a table of two aligners, and a model of word classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from toy import pairs

from heed.core.errors import DataError, UsageError
from heed.statistical.derivation import Bitext
from heed.statistical.phrases.features import beginning_weights
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.table import PhraseTable
from heed.statistical.phrases.training import estimate_translator
from heed.statistical.phrases.translator import PhraseTranslator
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.vocabulary import BOS_ID, EOS_ID

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


def test_a_model_of_word_classes_has_a_weight_and_learns_from_the_text_too() -> None:
    settings = PhraseSettings(aligner="ibm1", max_phrase=3, lm_order=2, word_classes=4, class_order=3, tuning_rounds=1)
    data = bitext(10)
    alone = estimate_translator(data, settings)
    assert alone.classes is not None
    assert len(alone.weights) == len(beginning_weights()) + 1
    assert "class model" in alone.weights_by_name()
    source = alone.case.enter(data.valid[0][0])[0]
    [best] = alone.best(source, 1)
    words = np.array([best.target])
    scorer = alone.scorers[1]
    sums, after = scorer.phrases(np.array([scorer.start]), words, np.array([len(best.target)]))
    assert best.features[-1] == pytest.approx(float(sums[0] + scorer.end(after)[0]), abs=1e-4)
    with_text = estimate_translator(replace(data, texts=[[pair[1] for pair in data.valid]]), settings)
    assert with_text.classes is not None
    assert (with_text.classes.classes == alone.classes.classes).all()
    ours, theirs = (each.classes.model.log_probs_of for each in (with_text, alone) if each.classes is not None)
    assert ours.shape != theirs.shape or (ours != theirs).any()


def test_the_models_of_text_have_the_order_of_the_settings_also_where_the_pairs_are_shorter() -> None:
    data = bitext()
    short = [(source[:1], target[:1]) for source, target in data.pairs]
    text = [target * 3 for _, target in data.pairs]
    settings = PhraseSettings(aligner="ibm1", lm_order=5, word_classes=4, class_order=6, tuning_rounds=0)
    alone, found = (estimate_translator(replace(data, pairs=short, texts=texts), settings) for texts in ([], [text]))
    assert alone.classes is not None and found.classes is not None
    assert (alone.language.order, alone.classes.model.order) == (3, 3)
    assert (found.language.order, found.classes.model.order) == (5, 6)


def test_it_is_saved_with_its_classes_and_read_without_them_as_before() -> None:
    for number in (0, 4):
        settings = PhraseSettings(aligner="ibm1", max_phrase=3, lm_order=2, word_classes=number, tuning_rounds=0)
        translator = estimate_translator(bitext(), settings)
        arrays = translator.arrays()
        size = len(translator.case.inner)
        read = PhraseTranslator.from_arrays(arrays, size, BOS_ID, EOS_ID, 20, settings.limits)
        source = [(id,) for id in bitext().pairs[3][0]]
        [ours], [theirs] = read.best(source, 1), translator.best(source, 1)
        assert (ours.target, ours.score) == (theirs.target, pytest.approx(theirs.score, abs=1e-5))
        assert (read.classes is None) == (number == 0)
        with pytest.raises(DataError, match="it needs"):
            PhraseTranslator.from_arrays({**arrays, "weights": arrays["weights"][:-1]}, size, BOS_ID, EOS_ID, 20,
                                         settings.limits)  # fmt: skip
