"""The CTranslate2 engine: the same output as PyTorch's search, on Transformers of every kind."""

from __future__ import annotations

import copy
import functools
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from random_models import CONFIGS, VOCABULARIES, half_trained

from heed.core.errors import UsageError
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.export.ctranslate2 import write_model
from heed.inference.ctranslate2_engine import CTranslate2Engine, can_search, searcher_with_fallback
from heed.inference.line_translator import LineTranslator
from heed.inference.translator import ModelTranslator
from heed.models import build_model
from heed.models.transformer import TransformerConfig
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word
from heed.text.vocabulary import EOS_ID

pytest.importorskip("ctranslate2")

WORDS = Word("abcdefgh")
NEVER = Detokenizer(WORDS).never
LETTERS = random.Random(7)
LINES = [" ".join(LETTERS.choices("abcdefgh", k=LETTERS.randint(1, 9))) for _ in range(60)]
TRANSFORMERS = [
    name
    for name, config in CONFIGS.items()
    if isinstance(config, TransformerConfig)
    and config.decoder_attends
    and config.encoder_attention == "same"
    and config.attention == "multi_head"
]
BEAM = SearchOptions(beam_size=4, length_penalty=1.0, length_norm="mean")


@functools.cache
def model_of(name: str) -> Any:
    """A half-trained model that gives no probability to special tokens, as it would after a long training."""
    model = copy.deepcopy(half_trained(name))
    with torch.no_grad():
        model.head.bias[list(NEVER)] = -30.0
    return model


def engine_of(name: str, folder: Path, **changes: Any) -> CTranslate2Engine:
    folder.mkdir(exist_ok=True)
    write_model(model_of(name), (WORDS.vocabulary, WORDS.vocabulary), 64, folder)
    return CTranslate2Engine(folder, 64, (WORDS.vocabulary, WORDS.vocabulary), NEVER, **changes)


def refused(*_: object) -> dict[Any, Hypothesis]:
    raise AssertionError("PyTorch was asked")


def pair_of(
    name: str, folder: Path, fallback: Callable[..., Any] | None = None, **changes: Any
) -> tuple[LineTranslator, ModelTranslator]:
    """Translators of one model, with CTranslate2 and with PyTorch."""
    oracle = ModelTranslator(model_of(name), WORDS, WORDS, Normaliser())
    lines = LineTranslator(WORDS, WORDS, Normaliser(), refused)
    fallback = fallback or oracle.search_in_batches
    engine = engine_of(name, folder, **changes)
    return lines.searched_by(searcher_with_fallback(engine, lines.best_of, fallback, True)), oracle


def assert_equal(actual: list[Hypothesis], expected: list[Hypothesis]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.text, ours.ids, ours.finished) == (theirs.text, theirs.ids, theirs.finished)
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-4)
        assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-4)
        assert [h.text for h in ours.alternatives] == [h.text for h in theirs.alternatives]


GREEDY = SearchOptions(beam_size=1)


@pytest.mark.parametrize("options", [GREEDY, BEAM, BEAM.model_copy(update={"nbest": 3})])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_outputs_equal_those_of_pytorch(name: str, options: SearchOptions, tmp_path: Path) -> None:
    ours, oracle = pair_of(name, tmp_path)
    assert_equal(ours.translate(LINES, options), oracle.translate(LINES, options))


@pytest.mark.parametrize(("norm", "alpha"), [("mean", 1.5), ("mean", 0.0), ("gnmt", 0.0), ("gnmt", 0.6)])
def test_every_length_penalty_ranks_as_in_pytorch(norm: Literal["mean", "gnmt"], alpha: float, tmp_path: Path) -> None:
    ours, oracle = pair_of("transformer", tmp_path)
    options = SearchOptions(beam_size=5, length_norm=norm, length_penalty=alpha, nbest=4)
    assert_equal(ours.translate(LINES, options), oracle.translate(LINES, options))
    assert can_search(options) == (norm == "mean" or alpha == 0)


def test_most_requests_do_without_pytorch(tmp_path: Path) -> None:
    engine, oracle = engine_of("transformer", tmp_path), pair_of("transformer", tmp_path / "pair")[1]
    requests = sorted(set(oracle.requests(LINES, None)))
    assert len(engine.search(requests, BEAM)) >= 0.9 * len(requests)


def test_neighbours_order_and_workers_change_nothing(tmp_path: Path) -> None:
    ours, _ = pair_of("transformer", tmp_path, num_workers=2)
    together = ours.translate(LINES, BEAM)
    assert [ours.translate([line], BEAM)[0].ids for line in LINES] == [h.ids for h in together]
    assert [h.ids for h in ours.translate(LINES[::-1], BEAM)] == [h.ids for h in together[::-1]]


@pytest.mark.parametrize("changes", [{"max_ratio": 0.5, "max_extra": 1}, {"max_tokens": 3}, {"max_tokens": 1}], ids=str)
@pytest.mark.parametrize("nbest", [1, 2, 4])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_beams_are_cut_off_as_in_pytorch(name: str, nbest: int, changes: dict[str, Any], tmp_path: Path) -> None:
    ours, oracle = pair_of(name, tmp_path, refused)
    options = BEAM.model_copy(update={"nbest": nbest, **changes})
    expected = oracle.translate(LINES, options)
    assert_equal(ours.translate(LINES, options), expected)
    assert any(not hypothesis.finished for best in expected for hypothesis in (best, *best.alternatives))


@pytest.mark.parametrize(
    "changes", [{"max_ratio": 0.5, "max_extra": 1}, {"max_tokens": 3}, {"no_repeat": 1}, {"no_repeat": 2}]
)
def test_greedy_outputs_are_cut_off_and_do_not_repeat_as_in_pytorch(changes: dict[str, Any], tmp_path: Path) -> None:
    ours, oracle = pair_of("transformer", tmp_path, refused)
    options = SearchOptions(beam_size=1, **changes)
    assert_equal(ours.translate(LINES, options), oracle.translate(LINES, options))


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_threads_give_what_one_gives(options: SearchOptions, tmp_path: Path) -> None:
    ours, oracle = pair_of("transformer", tmp_path, num_workers=2)
    expected = ours.translate(LINES, options)
    searched: list[int] = []

    def search(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        searched.append(len(requests))
        return ours._searcher(requests, options)

    small = options.model_copy(update={"batch_size": 3})
    assert_equal(ours.searched_by(search, num_threads=3).translate(LINES, small), expected)
    assert len(searched) > 1
    assert max(searched) == 3
    assert_equal(oracle.searched_by(oracle.search_in_batches, num_threads=2).translate(LINES, small), expected)


def test_an_error_of_one_thread_ends_the_others(tmp_path: Path) -> None:
    ours, _ = pair_of("transformer", tmp_path)
    with pytest.raises(AssertionError, match="PyTorch was asked"):
        ours.searched_by(refused, num_threads=2).translate(LINES, GREEDY.model_copy(update={"batch_size": 1}))


@pytest.mark.parametrize(
    "changes",
    [
        {"sample": True}, {"ban": ("a",)}, {"diversity": 0.5, "nbest": 2}, {"coverage_penalty": 0.1}, {"no_repeat": 2},
        {"bias": ((5, -1.0),)}, {"min_ratio": 0.5}, {"min_tokens": 2}, {"presence_penalty": 0.5}, {"stop": ("b",)},
    ],
    ids=str,
)  # fmt: skip
def test_other_options_are_left_to_pytorch(changes: dict[str, Any]) -> None:
    assert not can_search(BEAM.model_copy(update=changes))


PREFIXES = [Constraints(" ".join(LETTERS.choices("abcdefgh", k=LETTERS.randint(0, 6)))) for _ in LINES]


@pytest.mark.parametrize(
    "options",
    [
        GREEDY, BEAM, BEAM.model_copy(update={"nbest": 2}),
        SearchOptions(beam_size=2, length_norm="mean", length_penalty=1.5),
        SearchOptions(beam_size=3, length_penalty=0.0), BEAM.model_copy(update={"max_tokens": 5}),
        GREEDY.model_copy(update={"max_tokens": 4}), GREEDY.model_copy(update={"no_repeat": 2}),
    ],
    ids=["greedy", "beam", "best two", "two", "sum", "short beam", "cut off", "no repeat"],
)  # fmt: skip
@pytest.mark.parametrize("with_tokens", [True, False], ids=["tokens", "texts"])
def test_outputs_after_prefixes_equal_those_of_pytorch(
    options: SearchOptions, with_tokens: bool, tmp_path: Path
) -> None:
    engine, (_, oracle) = engine_of("transformer", tmp_path, num_workers=2), pair_of("transformer", tmp_path / "pair")
    requests = sorted(set(oracle.requests(LINES, PREFIXES)))
    assert len({len(request.prefix) for request in requests}) == 7
    found, expected = engine.search(requests, options, with_tokens), oracle.search_in_batches(requests, options)
    assert len(found) == len(requests) if options.width == 1 else len(found) >= len(requests) // 3
    for request, [ours, *others] in found.items():
        theirs = expected[request]
        assert {each.ids for each in theirs.alternatives} <= {each.ids for each in others}  # a text counts once
        assert (ours.ids, ours.finished) == (theirs.ids, theirs.finished)
        assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-4)
        if with_tokens:
            assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-4)


def test_an_output_may_end_right_after_its_prefix(tmp_path: Path) -> None:
    ours, oracle = pair_of("transformer", tmp_path)
    whole = [Constraints(hypothesis.text) for hypothesis in oracle.translate(LINES, BEAM)]
    found = ours.translate(LINES, BEAM, whole)
    assert_equal(found, oracle.translate(LINES, BEAM, whole))
    assert any(hypothesis.text == own.prefix for hypothesis, own in zip(found, whole, strict=True))


def test_terms_and_long_lists_after_a_prefix_are_left_to_pytorch(tmp_path: Path) -> None:
    engine = engine_of("transformer", tmp_path)
    prefix, terms = Request((5, 6, 7), prefix=(5,)), Request((5, 6, 7), terms=("h",))
    assert [engine._fits(prefix, BEAM.model_copy(update={"nbest": nbest})) for nbest in (1, 2, 3)] == [
        True,
        True,
        False,
    ]
    assert not engine._fits(terms, BEAM)
    ours, oracle = pair_of("transformer", tmp_path / "pair")
    constraints, options = [Constraints("c d"), Constraints(terms=("h",))], BEAM.model_copy(update={"nbest": 3})
    assert_equal(ours.translate(LINES[:2], options, constraints), oracle.translate(LINES[:2], options, constraints))


def test_outputs_with_forbidden_tokens_are_left_to_pytorch(tmp_path: Path) -> None:
    vocabularies = WORDS.vocabulary, WORDS.vocabulary
    engine_of("transformer", tmp_path)
    [letter] = WORDS.encode(["a"])[0]
    engine = CTranslate2Engine(tmp_path, 64, vocabularies, [*NEVER, letter])
    requests = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()).requests(LINES, None)
    searched = engine.search(requests, BEAM)
    assert 0 < len(searched) < len(set(requests))
    assert all(letter not in hypothesis.ids for best in searched.values() for hypothesis in best)


@pytest.mark.parametrize("beam_size", [2, 4])
@pytest.mark.parametrize("log_odds", [-30.0, 2.0])
def test_beams_that_forbidden_tokens_share_are_not_cut_off(log_odds: float, beam_size: int, tmp_path: Path) -> None:
    model = copy.deepcopy(half_trained("transformer"))
    with torch.no_grad():
        model.head.bias[list(NEVER)] = log_odds
        model.head.bias[EOS_ID] = -3.0
    vocabularies = WORDS.vocabulary, WORDS.vocabulary
    write_model(model, vocabularies, 64, tmp_path)
    engine = CTranslate2Engine(tmp_path, 64, vocabularies, NEVER)
    oracle = ModelTranslator(model, WORDS, WORDS, Normaliser())
    options = SearchOptions(beam_size=beam_size, length_penalty=1.5, length_norm="mean", max_tokens=10)
    requests = [*dict.fromkeys(oracle.requests(LINES, None))]
    searched, expected = engine.search(requests, options), oracle.search_in_batches(requests, options)
    cut_off = [request for request in searched if not searched[request][0].finished]
    assert [searched[request][0].ids for request in cut_off] == [expected[request].ids for request in cut_off]
    assert (len(cut_off) > 0) == (log_odds < 0)


def test_a_model_that_ctranslate2_does_not_have_is_refused() -> None:
    def transformer(**changes: str) -> Any:
        return CONFIGS["transformer"].model_copy(update=changes)

    for config, what in [
        (CONFIGS["rnn_attention"], "models of kind rnn_attention"),
        (transformer(attention="additive"), "the attention 'additive'"),
        (transformer(encoder_attention="rotary"), "the attention 'rotary'"),
        (transformer(decoder_mixing="ssru"), "decoders with 'ssru'"),
    ]:
        with pytest.raises(UsageError, match=f"^CTranslate2 does not have {what}\\.$"):
            build_model(config, VOCABULARIES).require_ctranslate2()


def test_the_fallback_is_called_alone_at_first_and_then_by_all_workers() -> None:
    called: list[int] = []
    together = threading.Barrier(2, timeout=60)

    def fallback(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        called.append(len(requests))
        if len(called) > 1:
            together.wait()
        return {request: Hypothesis((), 0.0, 0.0) for request in requests}

    engine: Any = SimpleNamespace(num_workers=2, search=lambda requests, options, with_tokens: {})
    search = searcher_with_fallback(engine, lambda hypotheses, options: hypotheses[0], fallback, False)
    assert len(search([Request((4,))], SearchOptions())) == 1
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda id: search([Request((id,))], SearchOptions()), (5, 6)))
    assert [list(each) for each in found] == [[Request((5,))], [Request((6,))]]
