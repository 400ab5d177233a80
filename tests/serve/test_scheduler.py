"""Searches in a shared batch have the same results as alone, and one that fails does not affect the others."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from random_models import half_trained, model_of
from toy import without_shape_checks

from heed.core.errors import DataError
from heed.decoding.engine import ContinuousBatch, RequestGroup
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Autoregressive, Source
from heed.serve.engine.scheduler import Outcome, Scheduler, Ticket
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

__all__ = ["without_shape_checks"]  # shapes are checked elsewhere

WORDS = Word("abcdefgh")  # with the four special pieces: the twelve of the random models
DICE = random.Random(1)
LINES = [" ".join(DICE.choices("abcdefgh", k=length)) for length in (3, 1, 7, 2, 5, 3, 8, 1, 4, 6)]

BEAM = SearchOptions(beam_size=3, nbest=2, max_tokens=12)
SEARCHES = {
    "greedy": SearchOptions(beam_size=1, max_tokens=12),
    "beam": BEAM,
    "samples": SearchOptions(sample=True, nbest=2, temperature=1.5, max_tokens=12),
    "ruled": BEAM.model_copy(update={"no_repeat": 2, "ban": ("a", "b c"), "min_ratio": 0.7, "max_ratio": 1.5}),
    "diverse": SearchOptions(beam_size=4, nbest=2, diversity=0.7, max_tokens=12),
    "mbr": BEAM.model_copy(update={"mbr": "chrf", "candidates": 6}),
}
CASES = [*(("transformer", search) for search in SEARCHES), ("rnn_attention", "beam"), ("rnn_attention", "samples")]


def translator_of(model: Autoregressive) -> ModelTranslator:
    """A translator from words to words."""
    return ModelTranslator(model, WORDS, WORDS, Normaliser())


def language_model(name: str) -> ModelTranslator:
    """A language model with random weights."""
    return ModelTranslator(model_of(name), None, WORDS, Normaliser())


@dataclass(eq=False)
class Client:
    """Submits lines, and collects their outcomes."""

    scheduler: Scheduler
    translator: ModelTranslator
    options: SearchOptions
    outcomes: dict[Request, Outcome] = field(default_factory=dict)
    tickets: list[Ticket] = field(default_factory=list)

    def ask(self, request: Request, **options: Any) -> Ticket:
        """Submit one search."""

        def deliver(outcome: Outcome) -> None:
            assert request not in self.outcomes, "an outcome is delivered once"
            self.outcomes[request] = outcome

        ticket = Ticket(self.translator, request, self.options, self, deliver, **options)
        self.tickets.append(ticket)
        self.scheduler.submit(ticket)
        return ticket

    def ask_lines(self, lines: Sequence[str], constraints: Sequence[Constraints] | None = None) -> None:
        """Submit the searches of some lines."""
        for request in dict.fromkeys(self.translator.requests(lines, constraints)):
            self.ask(request)

    def results(self) -> dict[Request, Hypothesis]:
        """The results, with texts and alternatives."""
        return {
            request: self.translator.best_of(hypotheses, self.options)
            for request, hypotheses in self.hypotheses().items()
        }

    def hypotheses(self) -> dict[Request, Sequence[Hypothesis]]:
        """The hypotheses of each search; none may have failed."""
        assert not [outcome for outcome in self.outcomes.values() if isinstance(outcome, Exception)]
        return {request: outcome for request, outcome in self.outcomes.items() if not isinstance(outcome, Exception)}


def run(scheduler: Scheduler) -> Iterator[int]:
    """Step until the scheduler is idle; yields the rows of each step."""
    for _ in range(10_000):
        if scheduler.is_idle:
            return
        yield scheduler.step()
    pytest.fail("the scheduler does not become idle")


def assert_same(actual: Hypothesis, expected: Hypothesis) -> None:
    """The same texts, and the same numbers up to rounding."""
    assert actual.text == expected.text
    assert [h.text for h in actual.alternatives] == [h.text for h in expected.alternatives]
    assert actual.finished == expected.finished
    assert actual.score == pytest.approx(expected.score, rel=1e-4, abs=1e-5)
    assert actual.token_log_probs == pytest.approx(expected.token_log_probs, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("name", "search"), CASES, ids=[", ".join(case) for case in CASES])
def test_results_do_not_depend_on_other_running_searches(name: str, search: str) -> None:
    translator, dice = translator_of(half_trained(name)), random.Random(3)
    scheduler = Scheduler(max_rows=24, join_every=2)
    clients = [Client(scheduler, translator, SEARCHES[search]), Client(scheduler, translator, SEARCHES["greedy"])]
    lines = dice.sample(LINES, len(LINES))
    while lines or not scheduler.is_idle:
        if lines and dice.random() < 0.5:
            line = lines.pop()
            for client in clients:
                client.ask_lines([line])
        scheduler.step()
    for client in clients:
        results = client.results()
        assert len(results) == len(set(LINES))
        for request, result in results.items():
            assert_same(result, translator.search_in_batches([request], client.options)[request])


def test_searches_with_prefixes_and_terms_may_join() -> None:
    translator = translator_of(half_trained("transformer"))
    scheduler = Scheduler(join_every=2)
    client = Client(scheduler, translator, BEAM)
    client.ask_lines(LINES[:3])
    for _ in range(3):
        scheduler.step()
    constraints = [Constraints("a b"), Constraints(terms=("c d",)), Constraints(terms=("a", "e")), Constraints("h")]
    client.ask_lines(LINES[3:7], constraints)
    assert sum(1 for _ in run(scheduler)) > 0
    results = client.results()
    for request, result in results.items():
        assert_same(result, translator.search_in_batches([request], BEAM)[request])
    assert next(h.text for request, h in results.items() if request.terms == ("c d",)).count("c d")


@pytest.mark.parametrize("name", ["bigram", "gpt, few positions", "rnn"])
def test_prompts_of_different_lengths_are_continued_together(name: str) -> None:
    translator, options = language_model(name), SearchOptions(sample=True, nbest=2, max_tokens=9, temperature=1.5)
    scheduler = Scheduler(join_every=1)
    client = Client(scheduler, translator, options)
    prompts = ["a b", "c", "", "d e f", "a b"]
    for index, prompt in enumerate(prompts):
        client.ask(Request((), tuple(WORDS.encode([prompt])[0]), draw=index))
        scheduler.step()
    list(run(scheduler))
    by_draw = sorted(client.hypotheses().items(), key=lambda item: item[0].draw)
    result = [
        [translator.detokenizer.continuation(prompt, h).text for h in translator.ranked(each, options)]
        for prompt, (_, each) in zip(prompts, by_draw, strict=True)
    ]
    assert result == [[h.text for h in each] for each in translator.generate(prompts, options)]


def test_equal_searches_are_made_once() -> None:
    translator = translator_of(half_trained("transformer"))
    scheduler = Scheduler()
    clients = [
        Client(scheduler, translator, options) for options in (BEAM, BEAM, BEAM.model_copy(update={"guard": False}))
    ]
    for client in clients:
        client.ask_lines(LINES[:1])
    assert scheduler.num_waiting == 1
    assert max(run(scheduler)) == BEAM.width
    assert clients[0].hypotheses() == clients[1].hypotheses() == clients[2].hypotheses()


def test_a_ticket_may_share_a_running_search() -> None:
    scheduler = Scheduler()
    first, second = (Client(scheduler, translator_of(half_trained("transformer")), BEAM) for _ in range(2))
    first.ask_lines(LINES[:1])
    scheduler.step()
    second.translator = first.translator
    second.ask_lines(LINES[:1])
    assert second.tickets[0].has_departed
    list(run(scheduler))
    assert first.hypotheses() == second.hypotheses() != {}


def test_a_sentence_does_not_wait_for_a_whole_book() -> None:
    scheduler = Scheduler(max_rows=2 * BEAM.width, join_every=1)
    translator = translator_of(half_trained("transformer"))
    book, sentence = (Client(scheduler, translator, BEAM) for _ in range(2))
    book.ask_lines(LINES[1:])
    scheduler.step()
    sentence.ask_lines(LINES[:1])
    for _ in run(scheduler):
        if sentence.outcomes:
            break
    assert len(book.outcomes) <= 4 < len(LINES) - 1


def test_a_long_sentence_is_not_overtaken_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fits only into an empty batch, while other searches keep arriving."""
    monkeypatch.setattr("heed.serve.engine.scheduler.MAX_POSITIONS", 2 * BEAM.width * 10)
    translator = translator_of(half_trained("transformer"))
    scheduler = Scheduler(max_rows=BEAM.width * 2, join_every=1)
    others, long = (Client(scheduler, translator, BEAM) for _ in range(2))
    others.ask_lines(LINES)
    scheduler.step()
    long.ask(Request(tuple(WORDS.encode(["a b c d e f g h " * 3])[0])))
    scheduler.step()
    assert not long.tickets[0].has_departed, "otherwise the test shows nothing"
    for _ in run(scheduler):
        if long.outcomes:
            break
    assert len(others.outcomes) <= 4 < len(LINES)


def test_the_state_of_an_endless_batch_does_not_grow() -> None:
    translator = translator_of(half_trained("transformer"))
    options = BEAM.model_copy(update={"min_tokens": 10})
    batch, longest = ContinuousBatch(translator.model), 0
    lines = [" ".join(random.Random(i).choices("abcdefgh", k=1 + i % 7)) for i in range(40)]
    for number, request in enumerate(translator.requests(lines, None)):
        batch.join(translator.search_inputs([request], options))
        for _ in range(4):
            batch.step()
        assert batch.groups, "some row is always active"
        state: Any = batch._state
        longest = max(longest, state.columns.length)
        assert number < 4 or state.memory.mask.shape[1] <= 8
    assert longest <= options.limit(0) + 4


def test_cancelled_rows_are_freed() -> None:
    translator = translator_of(half_trained("transformer"))
    for options in (BEAM, SEARCHES["samples"], SEARCHES["greedy"]):
        scheduler = Scheduler(max_rows=2 * options.width)
        stays, leaves = Client(scheduler, translator, options), Client(scheduler, translator, options)
        stays.ask_lines(LINES[:1])
        leaves.ask_lines(LINES[1:6])
        rows = [scheduler.step(), scheduler.step()]
        for ticket in leaves.tickets:
            scheduler.cancel(ticket)
        assert scheduler.num_waiting == 0
        ended = set(leaves.outcomes)  # a short one may have ended
        rows += run(scheduler)
        assert rows[0] == 2 * options.width or (options.sample and rows[0] > options.width)  # a draw may end at once
        assert set(rows[3:]) <= {options.width, options.width - 1, 0}
        assert set(leaves.outcomes) == ended
        assert len(ended) < len(leaves.tickets)
        [(request, result)] = stays.results().items()
        assert_same(result, translator.search_in_batches([request], options)[request])
        assert not scheduler.tickets


def test_one_of_two_tickets_of_a_search_may_be_cancelled() -> None:
    translator, scheduler = translator_of(half_trained("transformer")), Scheduler()
    clients = [Client(scheduler, translator, BEAM) for _ in range(2)]
    for client in clients:
        client.ask_lines(LINES[:1])
    scheduler.cancel(clients[0].tickets[0])
    scheduler.cancel(clients[0].tickets[0])
    list(run(scheduler))
    assert not clients[0].outcomes
    assert len(clients[1].hypotheses()) == 1


class Failing:
    """A model that fails on one token in a source, or on too many rows."""

    count_based = False

    def __init__(self, poison: str = "", max_rows: int = 1000, error: Exception | None = None) -> None:
        self.model: Any = model_of("transformer")
        self.head = self.model.head
        self.poison = WORDS.encode([poison])[0] if poison else [-1]
        self.max_rows = max_rows
        self.error = error or RuntimeError("a kernel failed")
        self.started: list[int] = []

    def start(self, source: Source | None, *args: Any, **kwargs: Any) -> Any:
        """Record the number of sources."""
        assert source is not None
        self.started.append(len(source))
        state = self.model.start(source, *args, **kwargs)
        return (state, bool((source.ids == self.poison[0]).any()))

    def advance(self, ids: torch.Tensor, state: Any, trace: Any = None) -> Any:
        """Fail where the poison is."""
        if state[1] or len(ids) > self.max_rows:
            raise self.error
        features, after = self.model.advance(ids, state[0], trace)
        return features, _Poisoned(after, state[1])


class _Poisoned(tuple[Any, bool]):
    """A state, and whether the poison is in it."""

    def __new__(cls, state: Any, poisoned: bool) -> _Poisoned:
        return super().__new__(cls, (state, poisoned))

    def select(self, rows: torch.Tensor) -> _Poisoned:
        return _Poisoned(self[0].select(rows), self[1])

    def join(self, other: _Poisoned) -> _Poisoned:
        return _Poisoned(self[0].join(other[0]), self[1] or other[1])


def failing_translator(**kwargs: Any) -> tuple[Failing, ModelTranslator]:
    """A translator with a model that fails."""
    model: Any = Failing(**kwargs)
    return model, ModelTranslator(model, WORDS, WORDS, Normaliser())


def test_a_search_that_fails_fails_alone() -> None:
    model, translator = failing_translator(poison="h")
    scheduler = Scheduler()
    client = Client(scheduler, translator, BEAM)
    client.ask_lines(LINES)
    list(run(scheduler))
    assert len(client.outcomes) == len(set(LINES))
    bad = {request for request, outcome in client.outcomes.items() if isinstance(outcome, Exception)}
    assert bad == {request for request in client.outcomes if model.poison[0] in request.source}
    assert 0 < len(bad) < len(client.outcomes)


def test_a_single_failure_is_retried_unless_it_can_never_succeed() -> None:
    for error, times in ((RuntimeError("once"), 2), (DataError("never"), 1)):
        model, translator = failing_translator(poison="h", error=error)
        scheduler = Scheduler()
        client = Client(scheduler, translator, BEAM)
        client.ask_lines(["h"])
        list(run(scheduler))
        assert list(client.outcomes.values()) == [error]
        assert model.started == [1] * times


def test_batches_shrink_when_memory_runs_out() -> None:
    _, translator = failing_translator(max_rows=3 * BEAM.width, error=MemoryError())
    scheduler = Scheduler()
    client = Client(scheduler, translator, BEAM)
    client.ask_lines(LINES)
    list(run(scheduler))
    assert len(client.hypotheses()) == len(set(LINES))
    assert scheduler.max_rows <= len(LINES) * BEAM.width // 2


def test_a_search_that_needs_too_much_memory_by_itself_shrinks_no_batches() -> None:
    _, translator = failing_translator(poison="h", error=MemoryError())
    scheduler = Scheduler(max_rows=12)
    client = Client(scheduler, translator, BEAM)
    client.ask_lines(["h"])
    list(run(scheduler))
    assert [type(outcome) for outcome in client.outcomes.values()] == [MemoryError]
    assert scheduler.max_rows == 12


def test_a_watch_sees_growing_prefixes_of_the_output() -> None:
    translator, scheduler = translator_of(half_trained("transformer")), Scheduler()
    greedy = SEARCHES["greedy"]
    client, seen = Client(scheduler, translator, greedy), list[list[int]]()
    [request] = translator.requests([LINES[2]], None)
    client.ask(request, watch=seen.append)
    list(run(scheduler))
    ids = client.hypotheses()[request][0].ids
    assert [len(tokens) for tokens in seen] == list(range(1, len(seen) + 1))
    assert all(tuple(tokens) == ids[: len(tokens)] for tokens in seen)


def test_searches_that_finish_in_a_failing_step_are_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    step, failed = ContinuousBatch.step, list[int]()

    def failing(batch: ContinuousBatch) -> Sequence[RequestGroup]:
        groups = step(batch)
        if num_finished := sum(len(group.finished) for group in groups):
            failed.append(num_finished)
            if len(failed) == 1:
                raise RuntimeError("after a search has finished")
        return groups

    monkeypatch.setattr(ContinuousBatch, "step", failing)
    scheduler = Scheduler()
    client = Client(scheduler, translator_of(half_trained("transformer")), BEAM)
    client.ask_lines(LINES)
    list(run(scheduler))
    assert failed
    assert len(client.hypotheses()) == len(set(LINES))
