"""Continuous-batching scheduler: one queue for the searches of all clients and models.

- Owners (requests of clients) take turns, so a sentence does not wait for another client's book.
- Searches of one model with the same number of rows join one continuous batch, every few steps: fewer groups make a
  step cheaper.
- Equal searches are made once, for all clients that ask while they run.
- When a step fails, its searches are repeated in halves, isolated from all others, until the failing one is alone; it
  gets the error when it fails a second time.
- A search that no client waits for is cancelled and frees its rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from heed.core.errors import HeedError
from heed.decoding.engine import ContinuousBatch, RequestGroup
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.scoring import MAX_POSITIONS
from heed.inference.translator import ModelTranslator
from heed.nn.device import is_out_of_memory

MAX_ROWS = 320
"""Maximum rows of a batch: sentences times beam size."""
JOIN_EVERY = 4
"""Steps between two groups that join a running batch."""

SEARCH_INDEPENDENT = {"guard": False, "batch_size": 1}
"""Values for options that do not affect the search of one sentence, so that more searches are equal."""

Outcome = Sequence[Hypothesis] | Exception
"""The hypotheses of a search, best first and without texts, or its error."""


@dataclass(eq=False)
class Ticket:
    """One search that a client waits for."""

    translator: ModelTranslator
    request: Request
    options: SearchOptions
    owner: object
    """Owners take turns."""
    deliver: Callable[[Outcome], None]
    """Called once, with the outcome."""
    watch: Callable[[list[int]], None] | None = None
    """Called after each step with the tokens of the best partial hypothesis."""
    engine: Any = None
    """The engine that may search instead of the scheduler (`heed.serve.engine.engine_queue`)."""
    with_tokens: bool = True
    """Whether hypotheses of the engine have the log-probabilities of their tokens."""
    has_departed: bool = False


class _Search:
    """One search, for all tickets that ask for it."""

    def __init__(self, ticket: Ticket) -> None:
        translator, request = ticket.translator, ticket.request
        options = ticket.options.model_copy(update=SEARCH_INDEPENDENT)
        num_steps = translator.num_steps(request)
        self.tickets = [ticket]
        self.translator, self.request, self.options = translator, request, options
        self.width = options.width + num_steps
        """Number of its rows."""
        self.length = len(request.source) + len(request.prefix) + 1
        """Positions of its source or prompt."""
        self.key = id(translator.model), request, options
        """Searches with one key are equal."""
        self.batch_key = id(translator.model), self.width if request.source else 0
        """Searches with one key share a batch: a model's rows for each source must be equally many."""
        self.group_key = options, len(request.prefix), num_steps
        """Searches of a batch with one key may start as one group."""
        self.group: RequestGroup | None = None
        self.source = 0
        self.num_failures = 0


@dataclass(eq=False)
class _Running:
    """A continuous batch and the searches of its groups."""

    batch: ContinuousBatch
    members: dict[RequestGroup, list[_Search]] = field(default_factory=dict)
    steps_since_join: int = 0

    @property
    def searches(self) -> list[_Search]:
        """The active searches."""
        return [searches[source] for group, searches in self.members.items() for source in group.active]


class _Joining:
    """The searches that join a batch at this step."""

    def __init__(self, running: _Running) -> None:
        self.searches: list[_Search] = []
        active = running.searches
        self.num_rows = sum(search.width for search in active)
        self.longest = max((search.length for search in active), default=0)

    def takes(self, new: _Search, max_rows: int) -> bool:
        """Add a search if it fits; any search fits into an empty batch."""
        num_rows, longest = self.num_rows + new.width, max(self.longest, new.length)
        if self.num_rows and (num_rows > max_rows or num_rows * longest > MAX_POSITIONS):
            return False
        self.num_rows, self.longest = num_rows, longest
        self.searches.append(new)
        return True


class Scheduler:
    """Runs the searches of tickets one step at a time. Not thread-safe."""

    def __init__(self, max_rows: int = MAX_ROWS, join_every: int = JOIN_EVERY) -> None:
        self.max_rows = max_rows
        self.join_every = join_every
        self._searches: dict[object, _Search] = {}
        self._search_of: dict[Ticket, _Search] = {}
        self._waiting: dict[object, deque[_Search]] = {}  # by owner, the next in turn first
        self._isolated: deque[list[_Search]] = deque()  # searches that failed together, to be repeated in these parts
        self._batches: dict[object, _Running] = {}  # the next in turn first

    # --- tickets -------------------------------------------------------------------------------------

    def submit(self, ticket: Ticket) -> None:
        """Queue a search, or share an equal one."""
        new = _Search(ticket)
        search = self._searches.setdefault(new.key, new)
        self._search_of[ticket] = search
        if search is new:
            self._waiting.setdefault(ticket.owner, deque()).append(search)
        else:
            search.tickets.append(ticket)
            ticket.has_departed = search.group is not None

    def cancel(self, ticket: Ticket) -> None:
        """Cancel a ticket; does nothing if it has been delivered."""
        search = self._search_of.pop(ticket, None)
        if search is None:
            return
        if len(search.tickets) > 1:
            search.tickets.remove(ticket)
            return
        del self._searches[search.key]
        if search.group is not None:
            search.group.strategy.cancel(search.source)
        for queue in (*self._waiting.values(), *self._isolated):
            if search in queue:
                queue.remove(search)
        self._waiting = {owner: queue for owner, queue in self._waiting.items() if queue}

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._waiting or self._isolated or self._batches)

    @property
    def num_waiting(self) -> int:
        """Searches that have not started."""
        return sum(map(len, (*self._waiting.values(), *self._isolated)))

    @property
    def tickets(self) -> list[Ticket]:
        """Tickets that have not been delivered."""
        return list(self._search_of)

    # --- steps ---------------------------------------------------------------------------------------

    def step(self) -> int:
        """Start waiting searches, then step the batch in turn; returns the number of rows it advanced."""
        self._start_isolated()
        for running, searches in self._joining():
            self._start(running, searches)
        self._batches = {key: running for key, running in self._batches.items() if running.batch.groups}
        if not self._batches:
            return 0
        key = next(iter(self._batches))
        running = self._batches[key] = self._batches.pop(key)  # to the end of the queue
        num_rows = running.batch.num_rows
        if not self._advance(running):
            del self._batches[key]
        return num_rows

    def _advance(self, running: _Running) -> bool:
        """Step a batch; returns whether it has active searches left."""
        running.steps_since_join += 1
        try:
            groups = running.batch.step()
        except Exception as error:  # no other batch may be affected
            for group, searches in running.members.items():  # some may have finished in this very step
                self._deliver_finished(group, searches)
            self._failed(running.searches, error)
            return False
        for group in groups:
            self._after_step(running, group)
        return bool(running.batch.groups)

    def _after_step(self, running: _Running, group: RequestGroup) -> None:
        searches = running.members[group]
        self._deliver_finished(group, searches)
        watches = [
            (source, ticket.watch) for source in group.active for ticket in searches[source].tickets
            if ticket.watch is not None and ticket in self._search_of
        ]  # fmt: skip
        best = group.best_so_far() if watches else {}
        for source, watch in watches:
            watch(best[source])
        if not group.active:
            del running.members[group]

    def _deliver_finished(self, group: RequestGroup, searches: Sequence[_Search]) -> None:
        for source in group.finished:
            self._deliver(searches[source], group.strategy.hypotheses(source))

    def _joining(self) -> Iterator[tuple[_Running, list[_Search]]]:
        """Yields (batch, searches of one group) to start now: one of each owner in turn, while there is room."""
        closed: set[object] = {
            key for key, running in self._batches.items() if 0 < running.steps_since_join < self.join_every
        }
        joining: dict[object, _Joining] = {}
        owners = deque(self._waiting)
        while owners:
            owner = owners.popleft()
            queue = self._waiting[owner]
            key = queue[0].batch_key
            if key not in self._batches:
                self._batches[key] = _Running(ContinuousBatch(queue[0].translator.model))
            if key not in joining:
                joining[key] = _Joining(self._batches[key])
            if key in closed or not joining[key].takes(queue[0], self.max_rows):
                closed.add(key)  # later searches must not take the room that this one waits for
                continue
            queue.popleft()
            del self._waiting[owner]
            if queue:
                self._waiting[owner] = queue  # to the end of the queue
                owners.append(owner)
        for batch_key, joiners in joining.items():
            for searches in _by_group(joiners.searches):
                yield self._batches[batch_key], searches

    def _start(self, running: _Running, searches: list[_Search]) -> None:
        """Add searches to a batch as one group."""
        first, requests = searches[0], [search.request for search in searches]
        try:
            group = running.batch.join(first.translator.search_inputs(requests, first.options))
        except Exception as error:  # no other group may be affected
            self._failed(searches, error)
            return
        running.steps_since_join = 0
        running.members[group] = searches
        for source, search in enumerate(searches):
            search.group, search.source = group, source
            for each in search.tickets:
                each.has_departed = True
        self._after_step(running, group)

    def _deliver(self, search: _Search, outcome: Outcome) -> None:
        waiting = [ticket for ticket in search.tickets if self._search_of.pop(ticket, None)]
        if waiting:
            del self._searches[search.key]
        for ticket in waiting:
            ticket.deliver(outcome)

    # --- failures ------------------------------------------------------------------------------------

    def _failed(self, searches: Sequence[_Search], error: Exception) -> None:
        """Repeat searches that failed together in halves; one that fails alone a second time gets the error."""
        searches = [search for search in searches if search.tickets[0] in self._search_of]
        if is_out_of_memory(error) and len(searches) > 1:  # one that needs too much by itself says nothing of others
            self.max_rows = max(1, sum(search.width for search in searches) // 2)
        for search in searches:
            search.group, search.num_failures = None, search.num_failures + 1
        if len(searches) == 1 and (searches[0].num_failures > 1 or isinstance(error, HeedError)):
            self._deliver(searches[0], error)
            return
        middle = (len(searches) + 1) // 2
        self._isolated.extend([part for part in (list(searches[:middle]), list(searches[middle:])) if part])

    def _start_isolated(self) -> None:
        """Run one part at a time in batches of its own, isolated from all others."""
        if not self._isolated or any(isinstance(key, _Isolated) for key in self._batches):
            return
        part = self._isolated.popleft()
        for searches in _by_group(part):
            running = _Running(ContinuousBatch(searches[0].translator.model))
            self._batches[_Isolated()] = running
            self._start(running, searches)


class _Isolated:
    """The key of a batch that nothing else may join."""


def _by_group(searches: Sequence[_Search]) -> list[list[_Search]]:
    groups: dict[object, list[_Search]] = {}
    for search in searches:
        groups.setdefault((search.batch_key, search.group_key), []).append(search)
    return list(groups.values())
