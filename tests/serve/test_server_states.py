"""Does a server answer honest clients and forget all others, whoever comes, stalls, cancels and lies in between?"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import ExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from serving import REQUEST, Live, Runs, connected, serving, until

import heed
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

EXAMPLES = int(os.environ.get("HEED_SERVER_STATES", "4"))
"""Histories that are tried; more of them before a release."""
KEY = "secret"
HONEST = {**REQUEST, "api_key": KEY}
BODY = b'{"q": "ba ce", "source": "en", "target": "de", "api_key": "secret"}'


def head(path: str, length: int | None, *more: str) -> bytes:
    """The head of a POST of JSON that promises a body of this length."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def state_machine(loaded: list[Predictor]) -> type[RuleBasedStateMachine]:
    """A server of these models and its clients."""

    class Clients(RuleBasedStateMachine):
        """Each rule is what a client does; honest ones come in between."""

        live: Live

        @initialize()
        def start(self) -> None:
            self._stack = ExitStack()
            self._threads = set(threading.enumerate())
            self.live = self._stack.enter_context(serving(loaded, Limits(queue=4), [KEY]))
            self.expected = self.live.post("/translate", HONEST).json["translatedText"]
            self.open: list[socket.socket] = []

        def teardown(self) -> None:
            """When all clients have left, nothing of their requests is left; then the server stops."""
            if not hasattr(self, "open"):
                return
            try:
                for client in self.open:
                    client.close()
                jobs, worker = self.live.service.jobs, self.live.service.worker
                until(lambda: jobs.num_admitted == 0 and worker.num_waiting == 0)
                until(lambda: not self.live.server.server_state.connections)
            finally:
                self._stack.close()
            mine = ("heed job", "heed worker")
            until(lambda: not [t for t in threading.enumerate() if t.name in mine and t not in self._threads])

        @rule()
        def ask(self) -> None:
            answer = self.live.post("/translate", HONEST)
            assert (answer.status, answer.json["translatedText"]) == (200, self.expected)

        @rule(share=st.floats(0, 0.9))
        def stall_in_headers(self, share: float) -> None:
            sent = head("/translate", len(BODY))
            self.open.append(connected(self.live, sent[: int(share * len(sent))]))

        @rule(share=st.floats(0, 0.9))
        def stall_in_the_body(self, share: float) -> None:
            self.open.append(connected(self.live, head("/translate", len(BODY)) + BODY[: int(share * len(BODY))]))

        @rule(extra=st.integers(1, 1 << 40))
        def promise_more_than_is_sent(self, extra: int) -> None:
            self.open.append(connected(self.live, head("/translate", len(BODY) + extra) + BODY))

        @rule()
        def send_two_lengths(self) -> None:
            lie = head("/translate", 3, "Transfer-Encoding: chunked") + b"0\r\n\r\n"
            self.open.append(connected(self.live, lie))

        @rule()
        def ask_and_leave(self) -> None:
            connected(self.live, head("/translate", len(BODY)) + BODY).close()

        @rule()
        def never_read_a_stream(self) -> None:
            body = b'{"text": "ba ce di", "source": "en", "target": "de", "stream": true}'
            lines = head("/api/translate", len(body), f"Authorization: Bearer {KEY}")
            self.open.append(connected(self.live, lines + body))

        @rule(key=st.sampled_from(["", "guess", "x" * 1000]))
        def guess_a_key(self, key: str) -> None:
            answer = self.live.post("/translate", {**REQUEST, "api_key": key})
            assert answer.status in (400, 401, 403)
            assert self.expected.encode() not in answer.body

        @rule(data=st.data())
        def send_damaged_json(self, data: st.DataObject) -> None:
            damaged = bytearray(BODY)
            damaged[data.draw(st.integers(0, len(BODY) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            answer = self.live.post("/translate", bytes(damaged))
            assert answer.status in (200, 400, 401, 403, 404), answer.body

        @rule(data=st.data())
        def leave(self, data: st.DataObject) -> None:
            if self.open:
                self.open.pop(data.draw(st.integers(0, len(self.open) - 1))).close()

        @invariant()
        def is_healthy(self) -> None:
            if hasattr(self, "open"):
                assert self.live.get("/health").status == 200
                assert "Traceback" not in self.live.log.getvalue()

    return Clients


@pytest.fixture(scope="module")
def translator(runs: Runs) -> list[Predictor]:
    return [heed.load(runs.translator)]


def test_a_server_outlives_its_clients(translator: list[Predictor]) -> None:
    machine = state_machine(translator)
    machine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=12, deadline=None, derandomize=True)
    machine.TestCase().runTest()
