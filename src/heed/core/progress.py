"""Progress bars, messages and warnings on stderr.

On a terminal progress is one live bar, elsewhere a plain line every ten seconds, so that a log file stays readable.
Text from the user's data is shown verbatim: it is not read as markup and cannot send commands to the terminal. When
stderr cannot be written (its reader has ended, the disk is full, it is closed), the work continues silently.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar, cast

from heed.core import environment

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

T = TypeVar("T")

REDRAW_INTERVAL = 0.1  # seconds

# Control characters other than tab and line feed; a terminal would act on them.
_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def message(text: str, quiet: bool = False, stream: TextIO | None = None) -> None:
    """Write a line to stderr, unless quiet. While a bar is shown it appears above it."""
    if not quiet:
        best_effort = BestEffort(stream)
        best_effort.write(text.translate(_CONTROL) + "\n")
        best_effort.flush()


def warn(text: str, quiet: bool = False, stream: TextIO | None = None) -> None:
    """Write a line that starts with `warning:` to stderr, unless quiet."""
    message(f"warning: {text}", quiet, stream)


class BestEffort:
    """A stream, by default stderr, that drops what cannot be written."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream: TextIO | None = sys.stderr if stream is None else stream  # without a stderr None

    def write(self, text: str) -> int:
        """Write a text if possible."""
        if self.stream is not None:
            with suppress(OSError):
                self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if possible."""
        if self.stream is not None:
            with suppress(OSError):
                self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Progress:
    """Context manager that shows the progress of some work.

        with Progress(total=1000, unit="steps", title="training") as progress:
            progress.update(done=step, fields={"loss": "3.21"})
            progress.say("a line above the bar")

    `total` is None if it is unknown; `initial` is what a resumed run did before. If `stream` is not a terminal, a line
    is written every `plain_interval` seconds. Nothing is written when quiet.
    """

    def __init__(
        self,
        total: float | None,
        unit: str,
        title: str,
        quiet: bool = False,
        *,
        initial: float = 0.0,
        stream: TextIO | None = None,
        plain_interval: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.unit = unit
        self.title = title
        self.stream: TextIO | None = sys.stderr if stream is None else stream
        self.quiet = quiet or self.stream is None
        self.initial = self.done = initial
        self.fields: Mapping[str, str] = {}
        self.remaining_override: float | None = None
        self.share_override: float | None = None
        self.plain_interval = plain_interval
        self.clock = clock
        self.started = clock()
        self._next_show = self.started
        self._shown = True  # whether the last update has been shown
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self.started = self._next_show = self.clock()
        if not self.quiet and self.stream is not None and environment.is_terminal(self.stream):
            self._live = _live(self.stream, self._render)
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Show the last state and restore the terminal; may be called twice."""
        live, self._live = self._live, None
        if live:
            live.stop()  # draws once more, and shows the cursor again
        elif not self._shown:
            self._show_plain()

    def update(
        self, done: float, fields: Mapping[str, str] | None = None, remaining_seconds: float | None = None,
        share: float | None = None,
    ) -> None:  # fmt: skip
        """Set how much is done, and the formatted values to show next to it; None keeps the previous `fields`.

        `remaining_seconds` and `share` (the part that is done, 0 to 1) are for work that does not end at `total`.
        """
        self.done = done
        self.share_override = share
        self.fields = self.fields if fields is None else fields
        self.remaining_override = remaining_seconds
        self._shown = self.quiet
        now = self.clock()
        if self.quiet or now < self._next_show:
            return
        self._next_show = now + (REDRAW_INTERVAL if self._live else self.plain_interval)
        if self._live:
            self._live.refresh()
        else:
            self._show_plain()

    def say(self, text: str) -> None:
        """Write one or more lines above the bar."""
        if self._live:
            from rich.text import Text

            self._live.console.print(Text(text.translate(_CONTROL)), soft_wrap=True)
        else:
            message(text, self.quiet, self.stream)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the with-block began."""
        return self.clock() - self.started

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds left at the average speed so far; None while it is unknown."""
        if self.remaining_override is not None:
            return self.remaining_override
        if self.total is None or self.done <= self.initial:
            return None
        return self.elapsed_seconds * max(0.0, self.total - self.done) / (self.done - self.initial)

    def _show_plain(self) -> None:
        self._shown = True
        message(f"{self.title}: " + ", ".join([self._amount(), *self._fields(), *self._times()]), stream=self.stream)

    def _amount(self) -> str:
        total = "" if self.total is None or self.share_override is not None else f"/{_number(self.total)}"
        percent = "" if self._share is None else f" ({100 * self._share:.0f}%)"
        return f"{_number(self.done)}{total} {self.unit}{percent}"

    @property
    def _share(self) -> float | None:
        """The part that is done, 0 to 1; None if the total is unknown."""
        if self.share_override is not None:
            return self.share_override
        return self.done / self.total if self.total else None

    def _fields(self) -> list[str]:
        return [f"{name} {value}" for name, value in self.fields.items()]

    def _times(self) -> list[str]:
        left = self.remaining_seconds
        return [f"elapsed {format_seconds(self.elapsed_seconds)}"] + (
            [] if left is None else [f"left {format_seconds(left)}"]
        )

    def _render(self) -> RenderableType:
        """The bar: a line with the amount and the times, and a line with the fields if there are any."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        self._shown = True
        cells: list[RenderableType] = [Text(self.title, style="bold"), Text(self._amount())]
        if self._share is not None:
            cells.insert(1, ProgressBar(1.0, min(self._share, 1.0), width=None))
        cells.append(Text(", ".join(self._times()), style="dim"))
        row = Table.grid(padding=(0, 1), expand=self._share is not None)
        for cell in cells:
            row.add_column(no_wrap=True, ratio=1 if isinstance(cell, ProgressBar) else None)
        row.add_row(*cells)
        fields = Text("  " + "  ".join(self._fields()).translate(_CONTROL), no_wrap=True, overflow="ellipsis")
        return Group(row, fields) if self.fields else row


MANY = 20_000
"""Number of items up to which no progress is shown."""


def watched(items: Iterable[T], title: str, unit: str, quiet: bool = False) -> Iterator[T]:
    """Yield the items, and show their number so far once there are more than `MANY`."""
    rest = iter(items)
    yield from islice(rest, MANY)
    more = list(islice(rest, 1))
    if more:
        with Progress(None, unit, title, quiet, initial=MANY) as progress:
            for number, item in enumerate(chain(more, rest), start=MANY + 1):
                yield item
                if number % MANY == 0:
                    progress.update(number)


def _live(stream: TextIO, render: Callable[[], RenderableType]) -> Live:
    """A live region that is redrawn only on request: without a thread, which forks and signals could disturb."""
    from rich.console import Console
    from rich.live import Live

    console = Console(
        file=cast("TextIO", BestEffort(stream)),
        force_terminal=True,
        no_color=not environment.colour_allowed(stream),
        markup=False,
        highlight=False,
        emoji=False,
    )
    # Other output to stderr is printed above the bar; stdout is for the results.
    return Live(
        console=console,
        get_renderable=render,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=stream is sys.stderr,
    )


def format_seconds(seconds: float) -> str:
    """Format a duration: `0:07`, `12:30`, `1:02:30`, `3 d 1:02:30`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{days} d {clock}" if days else clock


def format_minutes(minutes: float) -> str:
    """Format a time limit: `45 minutes`, `90 seconds`, `2:30 minutes`, `0.5 seconds`."""
    seconds = round(60 * minutes)
    is_whole = math.isclose(60 * minutes, seconds)
    if minutes == int(minutes) or (minutes > 1 and not is_whole):
        return f"{minutes:g} minute{'s' * (minutes != 1)}"
    if minutes < 2:
        number = seconds if is_whole else 60 * minutes
        return f"{number:g} second{'s' * (number != 1)}"
    return f"{format_seconds(seconds)} minutes"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
