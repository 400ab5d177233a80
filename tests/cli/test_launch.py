"""Tests of the launcher: the processes of one training find each other."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from heed.cli import launch


def test_nobody_can_take_the_port_before_the_first_process_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, list[int]]] = []

    class Started:
        """A process that is not started, at the moment at which it would be."""

        def __init__(self, command: list[str], *, env: dict[str, str], pass_fds: list[int], **_: Any) -> None:
            with socket.socket() as other, pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
                other.bind((env["MASTER_ADDR"], int(env["MASTER_PORT"])))
            if "HEED_LISTENER" in env:
                with socket.socket(fileno=os.dup(int(env["HEED_LISTENER"]))) as listener:
                    assert listener.getsockname() == (env["MASTER_ADDR"], int(env["MASTER_PORT"]))
            seen.append((env["RANK"], env.get("HEED_LISTENER", ""), pass_fds))

    monkeypatch.setattr("heed.cli.launch.subprocess.Popen", Started)
    monkeypatch.setattr(launch, "supervise", len)
    assert launch.launch(3, ["train"]) == 3
    listener = seen[0][1]
    assert seen == [("0", listener, [int(listener)]), ("1", "", []), ("2", "", [])]
