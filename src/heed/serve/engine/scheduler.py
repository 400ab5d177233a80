"""Whose sentence is searched when many ask at once? One queue in front of the flights of all models.

- Owners (requests of clients) take turns, so a sentence waits for no one's book.
- Rows of one model that are as wide join one flight, every few steps: the fewer cohorts, the less is spent on choosing.
- Equal searches are made once, for all who ask while it lasts.
- When a step fails, its searches are made again in halves, each apart from all others, until the one that fails
  is alone; it alone gets the error, at its second failure.
- A search for which nobody waits any longer gives its rows back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from heed.core.errors import HeedError
from heed.decoding.flight import Cohort, Flight
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.request import Request
from heed.decoding.translator import MAX_BATCH_POSITIONS, ModelTranslator
from heed.nn.device import is_out_of_memory

MAX_ROWS = 320
"""Hypotheses of one flight: sentences times beam."""

JOIN_EVERY = 4
"""Steps between two departures into a flight that is under way."""

_FROM_ONE_BATCH = {"guard": False, "batch_size": 1}
"""Options that change nothing about the search of one sentence."""

Outcome = Sequence[Hypothesis] | Exception
"""What a search found, best first and without texts; or why it found nothing."""


@dataclass(eq=False)
class Ticket:
    """One search that somebody waits for."""

    translator: ModelTranslator
    request: Request
    options: SearchOptions
    owner: object
    """Owners take turns."""
    deliver: Callable[[Outcome], None]
    """Gets the outcome, once."""
    watch: Callable[[list[int]], None] | None = None
    """Sees the best tokens so far after each step."""
    has_departed: bool = False


class _Search:
    """One search, for everyone who asked for the same."""

    def __init__(self, ticket: Ticket) -> None:
        translator, request, options = ticket.translator, ticket.request, _plain(ticket.options)
        num_steps = translator.num_steps(request)
        self.tickets = [ticket]
        self.translator, self.request, self.options = translator, request, options
        self.width = options.width + num_steps
        """Its rows."""
        self.length = len(request.source) + len(request.prefix) + 1
        """Positions of its source or prompt."""
        self.key = id(translator.model), request, options
        """What makes two searches the same."""
        self.flight = id(translator.model), self.width if request.source else 0
        """Which flight takes it: rows of one width share their sources' memory; a language model has none."""
        self.like = options, len(request.prefix), num_steps
        """Searches that are alike in this may depart in one cohort."""
        self.cohort: Cohort | None = None
        self.source = 0
        self.crashes = 0


def _plain(options: SearchOptions) -> SearchOptions:
    return options.model_copy(update=_FROM_ONE_BATCH)


@dataclass(eq=False)
class _Running:
    """A flight and who is on it."""

    flight: Flight
    on_board: dict[Cohort, list[_Search]] = field(default_factory=dict)
    steps_since_join: int = 0

    @property
    def searches(self) -> list[_Search]:
        """Those that have not landed."""
        return [searches[source] for cohort, searches in self.on_board.items() for source in cohort.flying]


class _Boarding:
    """Who joins a flight now, and what room is left."""

    def __init__(self, running: _Running) -> None:
        self.searches: list[_Search] = []
        there = running.searches
        self.num_rows = sum(search.width for search in there)
        self.longest = max((search.length for search in there), default=0)

    def takes(self, new: _Search, max_rows: int) -> bool:
        """Whether one more fits, which then is on board; alone, everyone does."""
        num_rows, longest = self.num_rows + new.width, max(self.longest, new.length)
        if self.num_rows and (num_rows > max_rows or num_rows * longest > MAX_BATCH_POSITIONS):
            return False
        self.num_rows, self.longest = num_rows, longest
        self.searches.append(new)
        return True


class Scheduler:
    """Takes tickets and makes their searches, a step at a time. For one thread."""

    def __init__(self, max_rows: int = MAX_ROWS, join_every: int = JOIN_EVERY) -> None:
        self.max_rows = max_rows
        self.join_every = join_every
        self._searches: dict[object, _Search] = {}
        self._search_of: dict[Ticket, _Search] = {}
        self._waiting: dict[object, deque[_Search]] = {}  # by owner; the next one's turn is the first
        self._apart: deque[list[_Search]] = deque()  # what crashed together, to be tried in these parts
        self._flights: dict[object, _Running] = {}  # the next one's turn is the first

    # --- tickets -------------------------------------------------------------------------------------

    def submit(self, ticket: Ticket) -> None:
        """Queue a search, or share one that is there."""
        new = _Search(ticket)
        search = self._searches.setdefault(new.key, new)
        self._search_of[ticket] = search
        if search is new:
            self._waiting.setdefault(ticket.owner, deque()).append(search)
        else:
            search.tickets.append(ticket)
            ticket.has_departed = search.cohort is not None

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for it any longer. One that has been delivered is no matter."""
        search = self._search_of.pop(ticket, None)
        if search is None:
            return
        if len(search.tickets) > 1:
            search.tickets.remove(ticket)
            return
        del self._searches[search.key]
        if search.cohort is not None:
            search.cohort.chooser.give_up(search.source)
        for queue in (*self._waiting.values(), *self._apart):
            if search in queue:
                queue.remove(search)
        self._waiting = {owner: queue for owner, queue in self._waiting.items() if queue}

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._waiting or self._apart or self._flights)

    @property
    def num_waiting(self) -> int:
        """Searches that have not departed."""
        return sum(map(len, (*self._waiting.values(), *self._apart)))

    @property
    def num_rows(self) -> int:
        """Rows under way."""
        return sum(running.flight.num_rows for running in self._flights.values())

    @property
    def tickets(self) -> list[Ticket]:
        """Those that have not been delivered."""
        return list(self._search_of)

    # --- flying --------------------------------------------------------------------------------------

    def step(self) -> int:
        """Let in who waits, then one step of the flight whose turn it is; the rows that took part."""
        self._open_apart()
        for running, searches in self._boarding():
            self._depart(running, searches)
        self._flights = {key: running for key, running in self._flights.items() if running.flight.cohorts}
        if not self._flights:
            return 0
        key = next(iter(self._flights))
        running = self._flights[key] = self._flights.pop(key)  # at the end of the row
        num_rows = running.flight.num_rows
        if not self._flies_on(running):
            del self._flights[key]
        return num_rows

    def _flies_on(self, running: _Running) -> bool:
        """One step of a flight; whether anyone is left on it."""
        running.steps_since_join += 1
        try:
            cohorts = running.flight.step()
        except Exception as error:  # whatever it is, others must not suffer
            for cohort, searches in running.on_board.items():  # some may have come to their end in this very step
                for source, hypotheses in cohort.landed:
                    self._deliver(searches[source], hypotheses)
            self._crashed(running.searches, error)
            return False
        for cohort in cohorts:
            self._arrived(running, cohort)
        return bool(running.flight.cohorts)

    def _arrived(self, running: _Running, cohort: Cohort) -> None:
        searches = running.on_board[cohort]
        for source, hypotheses in cohort.landed:
            self._deliver(searches[source], hypotheses)
        for source in cohort.flying:
            for ticket in searches[source].tickets:
                if ticket.watch is not None and ticket in self._search_of:
                    ticket.watch(cohort.best_so_far(source))
        if not cohort.flying:
            del running.on_board[cohort]

    def _boarding(self) -> Iterator[tuple[_Running, list[_Search]]]:
        """Who departs now: a flight, and searches that are alike; in turn by owner, as many as there is room for."""
        closed: set[object] = {
            key for key, running in self._flights.items() if 0 < running.steps_since_join < self.join_every
        }
        boarding: dict[object, _Boarding] = {}
        owners = deque(self._waiting)
        while owners:
            owner = owners.popleft()
            queue = self._waiting[owner]
            key = queue[0].flight
            if key not in self._flights:
                self._flights[key] = _Running(Flight(queue[0].translator.model))
            if key not in boarding:
                boarding[key] = _Boarding(self._flights[key])
            if key in closed or not boarding[key].takes(queue[0], self.max_rows):
                closed.add(key)  # what comes later must not take the room that this one waits for
                continue
            queue.popleft()
            del self._waiting[owner]
            if queue:
                self._waiting[owner] = queue  # at the end of the row
                owners.append(owner)
        for name, those in boarding.items():
            for alike in _by_likeness(those.searches):
                yield self._flights[name], alike

    def _depart(self, running: _Running, searches: list[_Search]) -> None:
        """Searches that are alike join a flight as one cohort."""
        first, requests = searches[0], [search.request for search in searches]
        try:
            cohort = running.flight.join(first.translator.departure(requests, first.options))
        except Exception as error:  # as above
            self._crashed(searches, error)
            return
        running.steps_since_join = 0
        running.on_board[cohort] = searches
        for source, search in enumerate(searches):
            search.cohort, search.source = cohort, source
            for each in search.tickets:
                each.has_departed = True
        self._arrived(running, cohort)

    def _deliver(self, search: _Search, outcome: Outcome) -> None:
        """To all who still wait; one that was cancelled has been forgotten already."""
        waiting = [ticket for ticket in search.tickets if self._search_of.pop(ticket, None)]
        if waiting:
            del self._searches[search.key]
        for ticket in waiting:
            ticket.deliver(outcome)

    # --- failures ------------------------------------------------------------------------------------

    def _crashed(self, searches: Sequence[_Search], error: Exception) -> None:
        """These failed together: they are tried again in halves; one that fails alone a second time has failed."""
        searches = [search for search in searches if search.tickets[0] in self._search_of]
        if is_out_of_memory(error):
            self.max_rows = max(1, sum(search.width for search in searches) // 2)
        for search in searches:
            search.cohort, search.crashes = None, search.crashes + 1
        if len(searches) == 1 and (searches[0].crashes > 1 or isinstance(error, HeedError)):
            self._deliver(searches[0], error)
            return
        middle = (len(searches) + 1) // 2
        self._apart.extend([part for part in (list(searches[:middle]), list(searches[middle:])) if part])

    def _open_apart(self) -> None:
        """One part at a time flies apart from all others, whom it must not take along again."""
        if not self._apart or any(isinstance(key, _Apart) for key in self._flights):
            return
        part = self._apart.popleft()
        for alike in _by_likeness(part):
            running = _Running(Flight(alike[0].translator.model))
            self._flights[_Apart()] = running
            self._depart(running, alike)


class _Apart:
    """The name of a flight that nobody may join."""


def _by_likeness(searches: Sequence[_Search]) -> list[list[_Search]]:
    alike: dict[object, list[_Search]] = {}
    for search in searches:
        alike.setdefault((search.flight, search.like), []).append(search)
    return list(alike.values())
