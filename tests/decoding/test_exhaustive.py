"""With a beam as wide as the space of outputs, each kind of search is the brute-force argmax.

Every output is scored by itself, outputs that the search may not return are left out by a plain rule on their text or
tokens, and the best of the rest must be what the search returns.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, PAD, half_trained

from heed.data.batch import collate, source_from_ids
from heed.decoding.options import Constraints, SearchOptions
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Source, Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Character, Word

LETTERS = Character("ab ")  # with the four special pieces: seven
LINES = ["ab", "a ba"]
LONGEST = 4
WIDE = SearchOptions(beam_size=130, max_tokens=LONGEST, nbest=5, guard=False)  # 121 outputs of up to four letters


@dataclass(frozen=True)
class Output:
    """One of all outputs, scored by itself."""

    ids: tuple[int, ...]
    text: str
    log_prob: float

    def score(self, options: SearchOptions) -> float:
        """After the length penalty."""
        length = len(self.ids) + 1
        base = (5 + length) / 6 if options.length_norm == "gnmt" else length
        return self.log_prob / base**options.length_penalty


@functools.cache
def translator_of(seed: int) -> ModelTranslator:
    """From letters to letters, at random."""
    return ModelTranslator(HashedModel(7, seed), LETTERS, LETTERS, Normaliser())


@functools.cache
@torch.no_grad()
def every_output(translator: ModelTranslator, line: str, longest: int = LONGEST) -> list[Output]:
    """All possible outputs for a line."""
    words = range(4, len(translator.tgt_tokenizer.vocabulary))
    outputs = [ids for length in range(longest + 1) for ids in itertools.product(words, repeat=length)]
    framed = collate(None, outputs, range(len(outputs)), BOS, EOS, PAD)
    tgt_out, mask = framed.tgt_out, framed.tgt_mask
    source = source_from_ids(translator.src_tokenizer.encode([line]) * len(outputs), EOS, PAD)
    features, _ = translator.model.advance(framed.tgt_in, translator.model.start(source))
    steps = translator.model.head.log_probs(features).gather(2, tgt_out[..., None]).squeeze(2)
    log_probs = (steps * mask).sum(1).tolist()
    texts = translator.tgt_tokenizer.decode(outputs)
    return [Output(*output) for output in zip(outputs, texts, log_probs, strict=True)]


def has(phrase: str, text: str) -> bool:
    """Whether a text contains a phrase as whole words."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def repeats(ids: tuple[int, ...], size: int) -> bool:
    """Whether an n-gram of this size occurs twice."""
    runs = list(zip(*(ids[i:] for i in range(size)), strict=False))
    return len(set(runs)) < len(runs)


def distinct(outputs: list[Output]) -> list[Output]:
    """The first of those that differ only in white space."""
    first: dict[str, Output] = {}
    for output in outputs:
        first.setdefault(" ".join(output.text.split()), output)
    return [*first.values()]


Allowed = Callable[[Output, str], bool]
SEARCHES: dict[str, tuple[dict[str, object], Constraints | None, Allowed]] = {
    "plain": ({}, None, lambda output, line: True),
    "no length penalty": ({"length_penalty": 0.0}, None, lambda output, line: True),
    "mean": ({"length_penalty": 1.0, "length_norm": "mean"}, None, lambda output, line: True),
    "no token twice": ({"no_repeat": 1}, None, lambda output, line: not repeats(output.ids, 1)),
    "no pair twice": ({"no_repeat": 2}, None, lambda output, line: not repeats(output.ids, 2)),
    "shortest by the source": (
        {"min_ratio": 1.5, "min_tokens": 1, "max_tokens": LONGEST},
        None,
        lambda output, line: len(output.ids) >= min(LONGEST, 1 + int(1.5 * len(line))),
    ),
    "longest by the source": (
        {"max_tokens": 0, "max_ratio": 0.5, "max_extra": 1},
        None,
        lambda output, line: len(output.ids) <= 1 + int(0.5 * len(line)),
    ),
    "banned word": ({"ban": ("a",)}, None, lambda output, line: not has("a", output.text)),
    "banned phrases": (
        {"ban": ("a b", "b")},
        None,
        lambda output, line: not has("a b", output.text) and not has("b", output.text),
    ),
    "prefix": ({}, Constraints(prefix="ba"), lambda output, line: output.text.startswith("ba")),
    "prefix, banned word": (
        {"ban": ("ba",)},
        Constraints(prefix="b"),
        lambda output, line: output.text.startswith("b") and not has("ba", output.text),
    ),
    "term": ({}, Constraints(terms=("ab",)), lambda output, line: has("ab", output.text)),
    "terms": (
        {"length_penalty": 0.0},
        Constraints(terms=("b", "a")),
        lambda output, line: has("a", output.text) and has("b", output.text),
    ),
    "a term of two words": ({}, Constraints(terms=("a b",)), lambda output, line: has("a b", output.text)),
    "prefix and term": (
        {},
        Constraints(prefix="b ", terms=("a",)),
        lambda output, line: output.text.startswith("b") and has("a", output.text),
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_beam_as_wide_as_the_space_returns_the_best_allowed_outputs(name: str) -> None:
    changes, constraints, allowed = SEARCHES[name]
    options = SearchOptions.model_validate({**WIDE.model_dump(), **changes})
    translator = translator_of(seed=0)
    actual = translator.translate(LINES, options, [constraints] * len(LINES) if constraints else None)
    for line, best in zip(LINES, actual, strict=True):
        outputs = [output for output in every_output(translator, line) if allowed(output, line)]
        expected = distinct(sorted(outputs, key=lambda output: -output.score(options))[: options.nbest])
        hypotheses = [h for h in (best, *best.alternatives) if h.finished]
        assert [h.ids for h in hypotheses] == [output.ids for output in expected]
        assert [h.score for h in hypotheses] == pytest.approx([o.score(options) for o in expected], abs=1e-4)
        assert [h.log_prob for h in hypotheses] == pytest.approx([o.log_prob for o in expected], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("longest", [1, 2, 3])
def test_an_output_that_is_cut_off_does_not_end_with_a_banned_word(beam_size: int, longest: int) -> None:
    options = WIDE.model_copy(update={"beam_size": beam_size, "nbest": beam_size, "max_tokens": longest})
    plain, banned = (
        [
            h
            for seed in (1, 3)
            for best in translator_of(seed).translate(LINES, search)
            for h in (best, *best.alternatives)
        ]
        for search in (options, options.model_copy(update={"ban": ("a", "ab")}))
    )
    assert not all(h.finished for h in banned)
    assert not any(has("a", h.text) or has("ab", h.text) for h in banned)
    if beam_size > 1:
        assert any(has("a", h.text) for h in plain if not h.finished)


def test_banned_phrases_are_normalised_like_outputs() -> None:
    words = Word(["Café", "x"])
    translator = ModelTranslator(HashedModel(6, 0), words, words, Normaliser())
    options = SearchOptions(beam_size=20, nbest=7, max_tokens=2, guard=False)
    for ban in (("Cafe\u0301",), ("  Café ",)):
        [best] = translator.translate(["x"], options.model_copy(update={"ban": ban}))
        assert not any(has("Café", h.text) for h in (best, *best.alternatives))


def test_the_length_limit_of_a_line_with_terms_does_not_depend_on_its_neighbours() -> None:
    options = SearchOptions(beam_size=8, max_tokens=1, guard=False)
    constraints = [Constraints(terms=("abab",)), Constraints(terms=("a", "b"))]  # as many steps, and not as many pieces
    translator = translator_of(seed=3)
    assert len({translator.num_steps(request) for request in translator.requests(LINES, constraints)}) == 1
    together = translator.translate(LINES, options, constraints)
    alone = [
        translator.translate([line], options, [wanted])[0] for line, wanted in zip(LINES, constraints, strict=True)
    ]
    assert together == alone


def test_without_the_restrictions_forbidden_outputs_would_be_among_the_best() -> None:
    """Otherwise the searches above would prove nothing."""
    for name, (changes, constraints, allowed) in SEARCHES.items():
        if changes.keys() - {"length_penalty", "length_norm"} or constraints:
            best = [
                (output, line)
                for line in LINES
                for output in sorted(every_output(translator_of(seed=0), line), key=lambda o: -o.score(WIDE))[:5]
            ]
            assert not all(allowed(output, line) for output, line in best), name


@pytest.mark.parametrize("name", ["transformer", "rnn_attention"])
@pytest.mark.parametrize("prefix", ["", "c"])
def test_a_coverage_penalty_ranks_by_the_attention_to_each_source_word(name: str, prefix: str) -> None:
    """Up to two tokens out of eight words; the penalty is written out from a trace under teacher forcing."""
    words = Word("abcdefgh")
    translator = ModelTranslator(half_trained(name), words, words, Normaliser())
    options = SearchOptions(beam_size=100, nbest=4, max_tokens=2, coverage_penalty=0.7, guard=False)
    lines = ["a b c", "d", "e f"]

    @torch.no_grad()
    def scores(outputs: list[Output], line: str) -> dict[Output, float]:
        """The outputs must have one length, so that there is no padding."""
        source: Source = source_from_ids(words.encode([line]) * len(outputs), EOS, PAD)
        tgt_in = collate(None, [output.ids for output in outputs], range(len(outputs)), BOS, EOS, PAD).tgt_in
        trace = Trace()
        translator.model.advance(tgt_in, translator.model.start(source), trace)
        last_block = [name for name in trace.weights if name.endswith("cross")][-1]  # of at most two
        covered = torch.cat(trace.weights[last_block], dim=2).mean(1).sum(1).tolist()
        penalties = [0.7 * sum(math.log(min(attention, 1.0)) for attention in row) for row in covered]
        return {output: output.score(options) + p for output, p in zip(outputs, penalties, strict=True)}

    actual = translator.translate(lines, options, [Constraints(prefix=prefix)] * 3)
    plain = translator.translate(lines, options.model_copy(update={"coverage_penalty": 0.0}), [Constraints(prefix)] * 3)
    for line, best in zip(lines, actual, strict=True):
        outputs = [o for o in every_output(translator, line, 2) if o.text.startswith(prefix)]
        by_length = [[o for o in outputs if len(o.ids) == length] for length in range(3)]
        score = {o: s for group in by_length if group for o, s in scores(group, line).items()}
        expected = sorted(outputs, key=lambda output: -score[output])[:4]
        hypotheses = [best, *best.alternatives]
        assert [h.ids for h in hypotheses] == [output.ids for output in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score[o] for o in expected], abs=1e-4)
        assert [h.log_prob for h in hypotheses] == pytest.approx([o.log_prob for o in expected], abs=1e-4)
    assert [h.score for h in plain] != [h.score for h in actual]
