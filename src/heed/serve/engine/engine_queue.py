"""Dynamic batches for an engine: one queue for the searches of all clients, before CTranslate2.

An engine searches a whole batch in one call. Each thread of the queue repeats: take waiting searches, one of each owner
in turn, call the engine, deliver. A single search starts at once when a thread is free. While all threads are busy, the
searches that arrive become the next batch. Equal searches are made once, for all clients that ask while they wait or
run. Searches that the engine leaves to PyTorch are passed on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from heed.core.environment import num_cpus
from heed.serve.engine.scheduler import SEARCH_INDEPENDENT, Ticket
from heed.serve.errors import ApiError

MAX_BATCH = 32
"""Maximum searches of one call. Searches that arrive meanwhile wait for its end."""
MAX_SOURCE_TOKENS = 4096
"""Maximum source tokens of one call, with padding, unless it has a single search."""


class _Search:
    """One search, for all tickets that ask for it."""

    def __init__(self, ticket: Ticket, key: object, options: Any) -> None:
        self.tickets = [ticket]
        self.engine, self.request, self.options = ticket.engine, ticket.request, options
        self.key = key
        self.call_key = id(ticket.engine), options, ticket.with_tokens
        """Searches with one key may be made in one call."""
        self.with_tokens = ticket.with_tokens
        self.is_running = False


class EngineQueue:
    """The threads and the queue."""

    def __init__(self, pass_on: Callable[[Sequence[Ticket]], None], log_error: Callable[[BaseException], None]) -> None:
        """`pass_on` takes the tickets that the engine leaves to PyTorch; `log_error`, what should never be raised."""
        self._pass_on = pass_on
        self._log_error = log_error
        self._wake = threading.Condition()
        self._searches: dict[object, _Search] = {}  # waiting and running
        self._search_of: dict[Ticket, _Search] = {}
        self._waiting: dict[object, deque[_Search]] = {}  # by owner, the next in turn first
        self._threads: list[threading.Thread] = []
        self._num_threads = num_cpus()  # which asks the system
        self._is_stopping = False

    @staticmethod
    def takes(ticket: Ticket) -> bool:
        """Whether an engine may search for the ticket."""
        return ticket.engine is not None and bool(ticket.engine.can_search(ticket.options))

    @property
    def num_waiting(self) -> int:
        """Searches that have not started."""
        return sum(map(len, list(self._waiting.values())))

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Queue searches. Outcomes are delivered in a thread of the queue."""
        if not tickets:
            return
        with self._wake:
            self._start()
            for ticket in tickets:
                self._add(ticket)
            self._wake.notify(len(tickets))

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Cancel searches. One that runs is finished, and its outcome dropped."""
        with self._wake:
            for ticket in tickets:
                self._remove(ticket)
            self._waiting = {owner: queue for owner, queue in self._waiting.items() if queue}

    def stop(self) -> None:
        """End the threads after their calls. Searches that wait are not made."""
        with self._wake:
            self._is_stopping = True
            self._threads.clear()
            self._wake.notify_all()

    # --- with the lock ---------------------------------------------------------------------------------

    def _start(self) -> None:
        self._is_stopping = False
        for number in range(len(self._threads), self._num_threads):
            thread = threading.Thread(target=self._main, name=f"heed engine {number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _add(self, ticket: Ticket) -> None:
        options = ticket.options.model_copy(update=SEARCH_INDEPENDENT)
        key = id(ticket.engine), ticket.request, options, ticket.with_tokens
        search = self._searches.get(key)
        if search is None:
            search = self._searches[key] = _Search(ticket, key, options)
            self._waiting.setdefault(ticket.owner, deque()).append(search)
        else:
            search.tickets.append(ticket)
            ticket.has_departed = search.is_running
        self._search_of[ticket] = search

    def _remove(self, ticket: Ticket) -> None:
        search = self._search_of.pop(ticket, None)
        if search is None:
            return
        search.tickets.remove(ticket)
        if search.tickets or search.is_running:
            return
        del self._searches[search.key]
        for queue in self._waiting.values():
            with suppress(ValueError):
                queue.remove(search)

    def _next_batch(self) -> list[_Search]:
        """Searches for one call, one of each owner in turn, while there is room."""
        batch: list[_Search] = []
        longest = 0
        owners = deque(self._waiting)
        while owners and len(batch) < MAX_BATCH:
            queue = self._waiting[owner := owners.popleft()]
            search = queue[0]
            length = max(longest, len(search.request.source))
            if batch and (search.call_key != batch[0].call_key or length * (len(batch) + 1) > MAX_SOURCE_TOKENS):
                continue
            longest = length
            batch.append(queue.popleft())
            del self._waiting[owner]
            if queue:
                self._waiting[owner] = queue  # to the end of the queue
                owners.append(owner)
        for search in batch:
            search.is_running = True
            for ticket in search.tickets:
                ticket.has_departed = True
        return batch

    # --- in the threads --------------------------------------------------------------------------------

    def _main(self) -> None:
        while batch := self._wait_for_batch():
            try:
                self._search(batch)
            except BaseException as error:  # no other batch may be affected
                self._log_error(error)
                self._deliver(batch, ApiError(500, "The worker died while it handled this request."))

    def _wait_for_batch(self) -> list[_Search]:
        """The next batch; an empty one to stop."""
        with self._wake:
            while not self._waiting and not self._is_stopping:
                self._wake.wait()
            return [] if self._is_stopping else self._next_batch()

    def _search(self, batch: list[_Search]) -> None:
        first = batch[0]
        requests = [search.request for search in batch]
        try:
            found = first.engine.search(requests, first.options, first.with_tokens, num_batches=1)
        except Exception as error:
            if len(batch) == 1:
                self._deliver(batch, error)
                return
            for search in batch:  # the failing one alone gets the error
                self._search([search])
            return
        for search in batch:
            if search.request in found:
                self._deliver([search], found[search.request])
            else:
                with self._wake:  # a cancellation comes before or after it, and not in between
                    self._pass_on(self._taken(search))

    def _deliver(self, batch: Sequence[_Search], outcome: Any) -> None:
        for search in batch:
            for ticket in self._taken(search):
                ticket.deliver(outcome)

    def _taken(self, search: _Search) -> list[Ticket]:
        """The tickets that still wait for a search, which is then forgotten."""
        with self._wake:
            tickets = [ticket for ticket in search.tickets if self._search_of.pop(ticket, None) is not None]
            if self._searches.get(search.key) is search:
                del self._searches[search.key]
        return tickets
