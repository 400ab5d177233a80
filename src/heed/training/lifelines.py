"""Lifelines between ranks: connections that detect the loss of a process at once, whatever the others are doing.

A rank that prepares data or validates works alone for minutes, while the others wait for it. The sums that they share
break when a process ends, but whoever works alone would notice only at the next one, and nothing breaks when a machine
loses its power. So each rank is connected with the first one, and a thread at each end sends a sign of life and
listens. The end of a connection says that the process is gone; a last word before it, that it was finished or failed
by itself; and long silence, that its machine does not answer.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from heed.core.errors import HeedError

BEAT = 1.0
"""Seconds between two signs of life."""
SILENT_BEATS = 60
"""Missing signs of life after which a process counts as lost."""
JOINING = 30.0
"""Seconds for a rank to connect to the first one and to identify itself."""

ALIVE, FINISHED, FAILED = b".", b"e", b"f"
_KILLED = "was killed, or its connection broke"
_FAILED = "ended with an error, which it printed"
_SILENT = f"has given no sign of life for {SILENT_BEATS * BEAT:.0f} seconds"
_GREETING = struct.Struct("!QI")

Share = Callable[..., list[float]]
"""Each number's sum over all ranks."""


def sentence_of_loss(what: str = "") -> str:
    """The message about a lost rank, on the others."""
    return (
        f"another process of this training was lost{what and f': {what}'}. Fix its cause, then continue from the last "
        "checkpoint with --resume, or start again with --overwrite if there is none."
    )


def connected(rank: int, world_size: int, host: str, share: Share) -> dict[int, socket.socket]:
    """The connections of a rank by the rank at the other end: the first one has those of all others.

    `host` is where the first one can be reached. Raises HeedError where that fails.
    """
    if rank == 0:
        with _listening(host) as listener:
            port, token = listener.getsockname()[1], secrets.randbits(48)
            share(port, token)
            share(0)  # all have connected
            return _accepted(listener, token, world_size)
    port, token = map(int, share(0, 0))
    try:
        connection = socket.create_connection((host, port), JOINING)
        connection.sendall(_GREETING.pack(token, rank))
    except OSError as error:
        raise HeedError(f"process {rank + 1} cannot reach the first one at {host}, port {port}: {error}.") from error
    share(0)
    return {0: connection}


def _listening(host: str) -> socket.socket:
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    try:
        return socket.create_server((host, 0), family=family)
    except OSError:  # the address of a router in front of this machine
        return socket.create_server(("", 0), family=family)


def _accepted(listener: socket.socket, token: int, world_size: int) -> dict[int, socket.socket]:
    """The connections of the other ranks. A connection without the token is closed."""
    found: dict[int, socket.socket] = {}
    listener.settimeout(JOINING)
    while len(found) < world_size - 1:
        connection, _ = listener.accept()
        connection.settimeout(JOINING)
        with suppress(OSError, struct.error):
            theirs, rank = _GREETING.unpack(connection.recv(_GREETING.size, socket.MSG_WAITALL))
            if theirs == token:
                found[rank] = connection
                continue
        connection.close()
    return found


class Lifelines:
    """Watches connections in a thread; `on_loss` gets the message about the first lost rank."""

    def __init__(
        self, connections: Mapping[int, socket.socket], world_size: int, on_loss: Callable[[str], None]
    ) -> None:
        self._world_size = world_size
        self._on_loss = on_loss
        self._silent = dict.fromkeys(connections, 0)
        self._selector = selectors.DefaultSelector()
        for rank, connection in connections.items():
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, rank)
        self._wake, waking = socket.socketpair()
        self._selector.register(waking, selectors.EVENT_READ)
        self._last_word = b""
        self._lost = threading.Event()
        self._sentence = sentence_of_loss()
        self._thread = threading.Thread(target=self._watch, name="lifelines", daemon=True)
        self._thread.start()

    def close(self, last_word: bytes) -> None:
        """Report to the others how this rank ended, and stop."""
        self._last_word = last_word
        self._wake.close()
        self._thread.join()

    def verdict(self, patience: float = BEAT) -> str:
        """What became of the rank whose loss broke a shared sum: that takes a moment to be seen here too."""
        self._lost.wait(patience)
        return self._sentence

    def _watch(self) -> None:
        next_beat = time.monotonic()
        try:
            while not self._last_word:
                events = self._selector.select(max(0.0, next_beat - time.monotonic()))
                for key, _ in events:
                    if key.data is not None:
                        self._listen(key.fileobj, key.data)  # type: ignore[arg-type]
                if time.monotonic() >= next_beat:
                    next_beat = time.monotonic() + BEAT
                    self._beat()
            self._say_goodbye()
        finally:
            for key in [*self._selector.get_map().values()]:
                key.fileobj.close()  # type: ignore[union-attr]
            self._selector.close()

    def _listen(self, connection: socket.socket, rank: int) -> None:
        try:
            heard = connection.recv(1 << 12)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        self._silent[rank] = 0
        if FINISHED in heard:
            self._let_go(connection)
        elif FAILED in heard or not heard:
            self._let_go(connection)
            self._lose(rank, _FAILED if heard else _KILLED)

    def _beat(self) -> None:
        for key in [*self._selector.get_map().values()]:
            if key.data is None:
                continue
            with suppress(OSError):  # listening tells the reason
                key.fileobj.send(ALIVE)  # type: ignore[union-attr]
            self._silent[key.data] += 1
            if self._silent[key.data] > SILENT_BEATS:
                self._let_go(key.fileobj)  # type: ignore[arg-type]
                self._lose(key.data, _SILENT)

    def _let_go(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()

    def _lose(self, rank: int, what: str) -> None:
        if self._lost.is_set():
            return
        self._sentence = sentence_of_loss(f"process {rank + 1} of {self._world_size} {what}")
        self._lost.set()
        self._on_loss(self._sentence)

    def _say_goodbye(self) -> None:
        """Send the last word, and wait until it was heard: closing with unread bytes would take it back."""
        for key in [*self._selector.get_map().values()]:
            if key.data is None:
                continue
            connection: socket.socket = key.fileobj  # type: ignore[assignment]
            with suppress(OSError):
                connection.settimeout(BEAT)
                connection.sendall(self._last_word)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 12):
                    pass
