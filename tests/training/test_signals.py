"""Signals that request a stop, and second signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from heed.training.signals import signal_handlers


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of before are there again at the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_requests_a_stop_and_the_previous_handler_is_restored(number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    before = signal.getsignal(number)
    with signal_handlers() as stop:
        os.kill(os.getpid(), number)
        assert stop.signal == number
    assert signal.getsignal(number) is before


def test_a_second_sighup_is_ignored_and_other_signals_exit_at_once() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with signal_handlers() as stop:
        stop(signal.SIGHUP, None)
        stop(signal.SIGHUP, None)
        assert stop.signal == signal.SIGHUP
        with pytest.raises(SystemExit) as left:
            stop(signal.SIGTERM, None)
        assert left.value.code == 128 + signal.SIGTERM


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signal_handlers() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.signal is None
