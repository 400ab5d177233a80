"""Dynamic batches before an engine: who is searched with whom, who waits, and who gets which outcome."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from serving import until

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.inference.ctranslate2_engine import can_search
from heed.serve.engine.engine_queue import MAX_BATCH, MAX_SOURCE_TOKENS, EngineQueue
from heed.serve.engine.scheduler import Ticket

GREEDY = SearchOptions(beam_size=1)
BEAM = SearchOptions(beam_size=3, length_norm="mean")
FAILS, LEFT_TO_PYTORCH = 13, 14
"""Sources that the engine fails on, and that it leaves to PyTorch."""


class Engine:
    """An engine whose calls wait until they are released."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.options: list[SearchOptions] = []
        self._gate = threading.Semaphore(0)

    can_search = staticmethod(can_search)

    def search(
        self, requests: Sequence[Request], options: SearchOptions, with_tokens: bool, num_batches: int
    ) -> dict[Request, list[Hypothesis]]:
        assert num_batches == 1
        self.calls.append([request.source[0] for request in requests])
        self.options.append(options)
        assert self._gate.acquire(timeout=60), "nobody released the call"
        if any(request.source[0] == FAILS for request in requests):
            raise RuntimeError("the engine failed")
        return {
            request: [Hypothesis(request.source, 0.0, 0.0)]
            for request in requests
            if request.source[0] != LEFT_TO_PYTORCH
        }

    def release(self, calls: int = 1000) -> None:
        """Let calls end."""
        self._gate.release(calls)


@dataclass
class Setting:
    """A queue with one thread, its engine, and what was delivered."""

    engine: Engine
    queue: EngineQueue
    passed_on: list[Ticket]
    delivered: dict[int, Any] = field(default_factory=dict)

    def ask(self, source: int, owner: object = "one", options: SearchOptions = GREEDY, length: int = 1) -> Ticket:
        """Submit one search."""
        ticket = Ticket(
            Any, Request((source,) * length), options, owner, lambda outcome: self._deliver(ticket, outcome),
            engine=self.engine,
        )  # fmt: skip
        self.queue.submit([ticket])
        return ticket

    def _deliver(self, ticket: Ticket, outcome: Any) -> None:
        self.delivered[id(ticket)] = outcome

    def outcome(self, ticket: Ticket) -> Any:
        """The outcome of a search, when it is there."""
        until(lambda: id(ticket) in self.delivered)
        return self.delivered[id(ticket)]

    def busy(self) -> None:
        """Let the thread be busy with one search of its own."""
        calls = len(self.engine.calls)
        self.ask(1, "busy")
        until(lambda: len(self.engine.calls) > calls)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    monkeypatch.setattr("heed.serve.engine.engine_queue.num_cpus", lambda: 1)
    engine, passed_on, errors = Engine(), list[Ticket](), list[BaseException]()
    queue = EngineQueue(passed_on.extend, errors.append)
    yield Setting(engine, queue, passed_on)
    queue.stop()
    engine.release()
    assert not errors


def test_a_search_starts_at_once_and_those_that_arrive_meanwhile_become_one_batch(setting: Setting) -> None:
    setting.busy()
    tickets = [setting.ask(source) for source in (2, 3, 4)]
    assert setting.queue.num_waiting == 3
    assert not any(ticket.has_departed for ticket in tickets)
    setting.engine.release()
    assert [setting.outcome(ticket)[0].ids for ticket in tickets] == [(2,), (3,), (4,)]
    assert setting.engine.calls == [[1], [2, 3, 4]]
    assert all(ticket.has_departed for ticket in tickets)


def test_owners_take_turns(setting: Setting) -> None:
    setting.busy()
    book = [setting.ask(100 + page, "book") for page in range(2 * MAX_BATCH)]
    line = setting.ask(2, "line")
    setting.engine.release()
    setting.outcome(book[-1]), setting.outcome(line)
    _, first, *_ = setting.engine.calls
    assert len(first) == MAX_BATCH
    assert 2 in first[:2]


def test_searches_with_other_options_are_made_in_another_call(setting: Setting) -> None:
    setting.busy()
    tickets = [setting.ask(2), setting.ask(3, "two", BEAM), setting.ask(4, "three")]
    setting.engine.release()
    for ticket in tickets:
        setting.outcome(ticket)
    assert setting.engine.calls == [[1], [2, 4], [3]]
    assert [options.beam_size for options in setting.engine.options] == [1, 1, 3]


def test_long_sources_are_searched_by_few(setting: Setting) -> None:
    setting.busy()
    tickets = [setting.ask(source, source, length=MAX_SOURCE_TOKENS // 2) for source in (2, 3, 4)]
    setting.engine.release()
    for ticket in tickets:
        setting.outcome(ticket)
    assert setting.engine.calls == [[1], [2, 3], [4]]


def test_a_long_source_that_has_to_wait_keeps_no_short_one_waiting(setting: Setting) -> None:
    setting.busy()
    tickets = [setting.ask(2), setting.ask(3, "two", length=MAX_SOURCE_TOKENS), setting.ask(4, "three")]
    setting.engine.release()
    for ticket in tickets:
        setting.outcome(ticket)
    assert setting.engine.calls == [[1], [2, 4], [3]]


def test_equal_searches_are_made_once(setting: Setting) -> None:
    setting.busy()
    waiting = [setting.ask(2, "one"), setting.ask(2, "two")]
    running = setting.ask(1, "two")
    assert running.has_departed
    setting.engine.release()
    assert [setting.outcome(ticket)[0].ids for ticket in (*waiting, running)] == [(2,), (2,), (1,)]
    assert setting.engine.calls == [[1], [2]]


def test_a_cancelled_search_is_not_made_and_not_delivered(setting: Setting) -> None:
    setting.busy()
    cancelled, shared, kept = setting.ask(2), setting.ask(3, "two"), setting.ask(3, "three")
    setting.queue.cancel([cancelled, shared, setting.ask(4)])
    setting.engine.release()
    setting.outcome(kept)
    assert setting.engine.calls == [[1], [3]]
    assert not {id(cancelled), id(shared)} & setting.delivered.keys()
    assert setting.queue.num_waiting == 0


def test_what_the_engine_leaves_to_pytorch_is_passed_on(setting: Setting) -> None:
    setting.busy()
    left, cancelled, kept = setting.ask(LEFT_TO_PYTORCH), setting.ask(LEFT_TO_PYTORCH, "two"), setting.ask(2)
    setting.queue.cancel([cancelled])
    setting.engine.release()
    setting.outcome(kept)
    until(lambda: bool(setting.passed_on))
    assert setting.passed_on == [left]


def test_a_search_that_fails_does_not_affect_the_others(setting: Setting) -> None:
    setting.busy()
    tickets = [setting.ask(source) for source in (2, FAILS, 3)]
    setting.engine.release()
    before, failed, after = map(setting.outcome, tickets)
    assert (before[0].ids, after[0].ids) == ((2,), (3,))
    assert isinstance(failed, RuntimeError)
    assert setting.outcome(setting.ask(5))[0].ids == (5,)


def test_only_what_the_engine_can_do_is_taken(setting: Setting) -> None:
    def ticket(options: SearchOptions, engine: Any = setting.engine) -> Ticket:
        return Ticket(Any, Request((1,)), options, "one", lambda outcome: None, engine=engine)

    assert EngineQueue.takes(ticket(BEAM))
    assert not EngineQueue.takes(ticket(SearchOptions(sample=True)))
    assert not EngineQueue.takes(ticket(BEAM, None))
