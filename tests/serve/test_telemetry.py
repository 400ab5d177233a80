"""The log: one line per event, and no text of a request."""

from __future__ import annotations

import errno
import io
import json

import pytest

from heed.serve.telemetry import Log


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_raises_nothing() -> None:
    Log(stream=Full()).event("started")
    Log(stream=Full()).error("failed", ValueError("text"))


def test_an_event_is_one_line_and_an_error_is_logged_without_its_message() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
    log.event("started", port=1)
    try:
        raise ValueError("what somebody wrote")
    except ValueError as error:
        log.error("failed", error)
    started, failed = map(json.loads, stream.getvalue().splitlines())
    assert (started["event"], started["port"], failed["kind"]) == ("started", 1, "ValueError")
    assert failed["at"].startswith("test_telemetry.py:")
    assert "somebody" not in stream.getvalue()


@pytest.mark.parametrize(("quiet", "events"), [(True, ["failed"]), (False, ["started", "failed"])])
def test_a_quiet_log_has_only_errors(quiet: bool, events: list[str]) -> None:
    stream = io.StringIO()
    log = Log(quiet, stream)
    log.event("started")
    log.error("failed")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == events
