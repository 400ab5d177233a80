"""Rescored derivations: the scores of other translators decide among what one translator derives."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

import pytest
from random_models import model_of

from heed.inference.rescoring import AHEAD, NUM_CANDIDATES, WEIGHT, WORD, RescoredDerivations, num_words
from heed.inference.translator import ModelTranslator
from heed.statistical.derivation import Derivation, Forced
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.tokenizers.symbols import Word

WORDS = train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=1000, min_frequency=1), ["a b c d e f g h"])
OTHER_WORDS = Word("abcdefgh")
SCORERS = [
    ModelTranslator(model_of("transformer", seed), OTHER_WORDS, OTHER_WORDS, Normaliser()) for seed in (1, 2)
]  # fmt: skip
TARGETS = ["a b c", "c b a", "a", "h g f e", "d d d d d d"]
SOURCE = "c a b"


class Proposes:
    """Proposes the same targets for each source, each a tenth worse than the one before."""

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = targets

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """As many as are asked for."""
        ids = WORDS.encode(self.targets)
        return [Derivation(tuple(each), -rank / 10, ()) for rank, each in enumerate(ids)][:number]

    def weights_by_name(self) -> Mapping[str, float]:
        """One."""
        return {"rank": -0.1}


def rescored(
    number: int, scorers: Sequence[ModelTranslator] = SCORERS, targets: Sequence[str] = TARGETS
) -> list[tuple[str, float]]:
    """The best targets with their scores."""
    model = RescoredDerivations(Proposes(targets), WORDS, WORDS, scorers)
    [source] = WORDS.encode([SOURCE])
    found = model.derive(source, 5, number)
    return list(zip(WORDS.decode([each.ids for each in found]), [each.score for each in found], strict=True))


def expected(scorers: Sequence[ModelTranslator]) -> dict[str, float]:
    """The score of each target, from the scores that each translator gives when it is asked for it alone."""
    return {
        target: -rank / 10
        + WEIGHT * math.fsum(scorer.score([target], [SOURCE])[0].log_prob for scorer in scorers) / len(scorers)
        + WEIGHT * WORD * len(target.split())
        for rank, target in enumerate(TARGETS)
    }


@pytest.mark.parametrize("scorers", [SCORERS, SCORERS[:1]], ids=["two", "one"])
def test_the_score_is_that_of_the_derivation_and_a_share_of_the_mean_of_the_others(
    scorers: Sequence[ModelTranslator],
) -> None:
    wanted = expected(scorers)
    order = sorted(TARGETS, key=lambda target: -wanted[target])
    assert order != TARGETS  # the scores of the others change the order
    found = rescored(len(TARGETS), scorers)
    assert [target for target, _ in found] == order
    assert [score for _, score in found] == pytest.approx([wanted[target] for target in order], abs=1e-4)


def test_the_best_do_not_depend_on_how_many_are_asked_for() -> None:
    targets = [" ".join("abcdefgh"[number % 8 :: 2 + number % 3]) for number in range(NUM_CANDIDATES + 10)]
    all_of_them = rescored(NUM_CANDIDATES + 10, targets=targets)
    assert len(all_of_them) == NUM_CANDIDATES
    assert [score for _, score in all_of_them] == sorted((score for _, score in all_of_them), reverse=True)
    assert all_of_them[0][0] != targets[0]  # else the first derivation would be enough
    for number in (1, 2, NUM_CANDIDATES):
        assert rescored(number, targets=targets) == all_of_them[:number]


def test_a_scorer_for_which_a_target_is_too_long_is_not_asked() -> None:
    short = ModelTranslator(model_of("transformer", 1), OTHER_WORDS, OTHER_WORDS, Normaliser(), max_positions=6)
    assert rescored(5, [short]) == [(target, -rank / 10) for rank, target in enumerate(TARGETS)]
    assert rescored(5, [short, SCORERS[1]]) == rescored(5, SCORERS[1:])
    long = ModelTranslator(model_of("transformer", 1), OTHER_WORDS, OTHER_WORDS, Normaliser(), max_positions=7)
    assert rescored(5, [long]) == rescored(5, SCORERS[:1])


class Indifferent:
    """Likes all targets equally."""

    def score_all(self, source: str, targets: Sequence[str]) -> list[float]:
        """Zeros."""
        return [0.0] * len(targets)


def test_longer_targets_are_preferred_by_words_and_without_spaces_by_characters() -> None:
    model = RescoredDerivations(Proposes(["猫", "猫と犬", "cats  and dogs"]), WORDS, WORDS, [Indifferent()])
    found = {WORDS.decode([each.ids])[0]: each.score for each in model.derive([], 5, 3)}
    assert list(found.values()) == pytest.approx([3 * WEIGHT - 0.1, 3 * WEIGHT - 0.2, WEIGHT])
    assert [num_words(text) for text in ("", "東京 2020", "iPhoneを", "고양이 개")] == [0, 3, 2, 2]


class Watched(Proposes):
    """Notes in which thread each source was derived, and how many of them were scored by then."""

    def __init__(self) -> None:
        super().__init__(TARGETS)
        self.threads: list[threading.Thread] = []
        self.num_scored = 0
        self.ahead: list[int] = []

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        self.ahead.append(len(self.threads) - self.num_scored)
        self.threads.append(threading.current_thread())
        return super().derive(source, width, number, forced)

    def score_all(self, source: str, targets: Sequence[str]) -> list[float]:
        """Prefers the first source's last target, the second's last but one, and so on."""
        self.num_scored += 1
        best = -self.num_scored % len(targets)
        return [float(100 * (place == best)) for place in range(len(targets))]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_with_two_threads_few_sources_are_derived_before_earlier_ones_are_scored(num_threads: int) -> None:
    watched = Watched()
    model = RescoredDerivations(watched, WORDS, WORDS, [watched], num_threads)
    sources = WORDS.encode(["a b", "b c d", "c", "d e f g", "e", "f g", "g h", "h a b", "a", "b"])
    found = model.derive_all([(source, ()) for source in sources], 5, 1)
    best = WORDS.decode([derivations[0].ids for derivations in found])
    assert best == [TARGETS[-place % len(TARGETS)] for place in range(1, len(sources) + 1)]
    is_beside = [thread is not threading.current_thread() for thread in watched.threads]
    assert is_beside == [num_threads == 2] * len(sources)
    assert max(watched.ahead) <= (AHEAD if num_threads == 2 else 0)
