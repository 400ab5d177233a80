"""Progress on a terminal and in a log file."""

from __future__ import annotations

import errno
import io
import re
import sys

import pytest

from heed.core.progress import Progress, format_minutes, format_seconds, message, warn, watched


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A stream whose reader ends after the first write."""

    num_written = 0

    def write(self, text: str) -> int:
        self.num_written += 1
        if self.num_written > 1:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return super().write(text)


class GoneTerminal(Gone, Terminal):
    """A terminal that is closed after the first write."""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


FIELDS = {"tok/s": "5,120", "loss": "3.21"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_log_file_gets_a_line_at_most_every_interval_and_the_last_state() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress(100, "steps", "training", stream=stream, clock=clock, plain_interval=10) as progress:
        for step in range(1, 26):
            clock.now += 1
            progress.update(step, FIELDS)
    assert stream.getvalue().splitlines() == [
        "training: 1/100 steps (1%), tok/s 5,120, loss 3.21, elapsed 0:01, left 1:39",
        "training: 11/100 steps (11%), tok/s 5,120, loss 3.21, elapsed 0:11, left 1:29",
        "training: 21/100 steps (21%), tok/s 5,120, loss 3.21, elapsed 0:21, left 1:19",
        "training: 25/100 steps (25%), tok/s 5,120, loss 3.21, elapsed 0:25, left 1:15",
    ]


def test_the_last_state_is_not_written_twice() -> None:
    stream = io.StringIO()
    with Progress(1, "files", "reading", stream=stream, clock=Clock()) as progress:
        progress.update(1)
        progress.close()
    assert stream.getvalue() == "reading: 1/1 files (100%), elapsed 0:00, left 0:00\n"


def test_the_time_left_of_a_resumed_run_counts_only_what_this_run_did() -> None:
    clock = Clock()
    with Progress(1000, "steps", "training", initial=900, stream=io.StringIO(), clock=clock) as progress:
        assert progress.remaining_seconds is None
        clock.now += 10
        progress.update(950)
        assert progress.elapsed_seconds == 10
        assert progress.remaining_seconds == pytest.approx(10)
        progress.update(950, remaining_seconds=77)
        assert progress.remaining_seconds == 77


def test_an_unknown_total_shows_what_is_done() -> None:
    stream = io.StringIO()
    with Progress(None, "lines", "translating", stream=stream, clock=Clock()) as progress:
        progress.update(12345.5, {})
    assert stream.getvalue() == "translating: 12,345.5 lines, elapsed 0:00\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_writes_nothing(stream: io.StringIO) -> None:
    with Progress(10, "steps", "training", quiet=True, stream=stream) as progress:
        progress.update(3, FIELDS)
        progress.say("hello")
    message("hello", quiet=True, stream=stream)
    warn("hello", quiet=True, stream=stream)
    assert stream.getvalue() == ""


def test_a_line_is_written_whole_and_verbatim() -> None:
    stream = io.StringIO()
    with Progress(10, "steps", "training", stream=stream, clock=Clock()) as progress:
        progress.say("[bold]not markup[/bold] :smile: " + "x" * 200)
    assert stream.getvalue() == "[bold]not markup[/bold] :smile: " + "x" * 200 + "\n"


def last_screen(text: str) -> list[str]:
    """The screen of a terminal after these characters, without colours."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part == "\x1b[1A":
            row -= 1
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines]


def test_a_terminal_gets_one_live_bar_below_the_lines() -> None:
    stream, clock = Terminal(), Clock()
    with Progress(1000, "steps", "training [x]", stream=stream, clock=clock) as progress:
        for step in (100, 200, 300):
            clock.now += 1
            progress.update(step, {"loss": "[red]3.21[/red]", "ppl": "12.4"})
            progress.say(f"step {step} [bold]as it is[/bold]")
    *lines, bar, fields, last = last_screen(stream.getvalue())
    assert lines == [f"step {step} [bold]as it is[/bold]" for step in (100, 200, 300)]
    assert re.fullmatch(r"training \[x\] ━+\S* ?━* 300/1,000 steps \(30%\) elapsed 0:03, left 0:07", bar)
    assert fields == "  loss [red]3.21[/red]  ppl 12.4"
    assert last == ""


def test_a_long_line_above_the_bar_is_not_cut() -> None:
    stream = Terminal()
    with Progress(10, "steps", "training", stream=stream) as progress:
        progress.say("word " * 60)
    assert "word " * 60 in stream.getvalue()


def test_the_bar_is_redrawn_at_most_ten_times_a_second() -> None:
    stream, clock = Terminal(), Clock()
    with Progress(1000, "steps", "training", stream=stream, clock=clock) as progress:
        for step in range(1000):
            clock.now += 0.001
            progress.update(step)
    assert stream.getvalue().count("steps") <= 13  # at the start, ten in a second, at the end


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_restores_the_terminal(error: type[BaseException]) -> None:
    stream, stderr = Terminal(), sys.stderr
    with pytest.raises(error), Progress(10, "steps", "training", stream=stream) as progress:
        progress.update(1)
        raise error
    assert stream.getvalue().rfind("\x1b[?25h") > stream.getvalue().rfind("\x1b[?25l") >= 0  # the cursor is shown
    assert sys.stderr is stderr


def test_other_output_to_stderr_appears_above_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, stdout = Terminal(), sys.stdout
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(10, "steps", "training", clock=Clock()) as progress:
        progress.update(1, {})
        message("a [message]")
        warn("a warning")
        assert sys.stdout is stdout
    assert sys.stderr is stream
    screen = last_screen(stream.getvalue())
    assert screen[:2] == ["a [message]", "warning: a warning"]
    assert screen[2].startswith("training ━")


def test_no_color_keeps_the_bar_and_drops_the_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    with Progress(10, "steps", "training", stream=stream) as progress:
        progress.update(5)
    assert "5/10 steps" in stream.getvalue()
    assert not re.search(r"\x1b\[[\d;]*3\dm", stream.getvalue())


def test_a_terminal_that_cannot_redraw_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with Progress(10, "steps", "training", stream=stream, clock=Clock()) as progress:
        progress.update(5)
    assert stream.getvalue() == "training: 5/10 steps (50%), elapsed 0:00, left 0:00\n"


@pytest.mark.parametrize("stream_type", [Gone, GoneTerminal])
def test_work_continues_when_the_reader_has_ended(stream_type: type[Gone]) -> None:
    stream = stream_type()
    with Progress(10, "steps", "training", stream=stream, clock=Clock(), plain_interval=0) as progress:
        for step in range(1, 11):
            progress.update(step)
        progress.say("a line")
    message("another", stream=stream)
    assert progress.done == 10
    assert stream.num_written > 1


def test_work_continues_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # as where the program was started with 2>&-
    message("a line")
    with Progress(10, "steps", "training", clock=Clock()) as progress:
        progress.update(1)
        progress.say("another")
    assert progress.done == 1


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_text_cannot_send_commands_to_the_terminal(stream_type: type[io.StringIO]) -> None:
    stream = stream_type()
    with Progress(10, "steps", "training", stream=stream) as progress:
        progress.update(1, {"sample": "\x1b]0;title\x07"})
        progress.say("\x1b[2J\x9b31m ä 日本\u200d")
    message("\x1b[2J\r", stream=stream)
    written = stream.getvalue()
    assert "\x1b[2J" not in written and "\x1b]" not in written and "\x9b" not in written
    assert "ä 日本\u200d" in written


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (7.4, "0:07"), (750, "12:30"), (3750, "1:02:30"), (262_950, "3 d 1:02:30"), (86_400, "1 d 0:00:00")],
)
def test_formats_of_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (45, "45 minutes"),
        (1, "1 minute"),
        (40 / 60, "40 seconds"),
        (1.5, "90 seconds"),
        (2.5, "2:30 minutes"),
        (0.5 / 60, "0.5 seconds"),
        (1 / 60, "1 second"),
        (7.123, "7.123 minutes"),
    ],
)
def test_formats_of_time_limits(minutes: float, text: str) -> None:
    assert format_minutes(minutes) == text


def test_progress_is_shown_only_for_many_items(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("heed.core.progress.MANY", 3)
    assert list(watched(range(3), "reading", "lines")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    assert list(watched(range(7), "reading", "lines")) == list(range(7))
    assert capsys.readouterr().err == "reading: 6 lines, elapsed 0:00\n"
    assert list(watched(range(7), "reading", "lines", quiet=True)) == list(range(7))
    assert capsys.readouterr().err == ""
