"""Does every rank that is left alone learn of it at once, and end with a true sentence?"""

from __future__ import annotations

import queue
import signal
import socket
import threading
from collections.abc import Iterator

import pytest
from forked import Program
from rank_processes import do_not_listen, work_alone

from heed.core.errors import HeedError
from heed.training import lifelines
from heed.training.last_words import LastWords
from heed.training.lifelines import ALIVE, FAILED, FINISHED, Lifelines, connected, sentence_of_loss

LOST = "another process of this training was lost: process {} of {} {}. Fix its cause, then continue from the last"
KILLED = "was killed, or its connection broke"


class Watched:
    """Lifelines of the first of some ranks, whose other ends a test holds."""

    def __init__(self, num_others: int = 1) -> None:
        pairs = [socket.socketpair() for _ in range(num_others)]
        self.others = [other for _, other in pairs]
        self.losses: queue.Queue[str] = queue.Queue()
        connections = {rank: ours for rank, (ours, _) in enumerate(pairs, start=1)}
        self.lines = Lifelines(connections, num_others + 1, self.losses.put)

    def close(self) -> None:
        for other in self.others:
            other.close()
        self.lines.close(FINISHED)


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.close()


def test_a_connection_that_ends_without_a_word_is_a_process_that_was_killed(watched: Watched) -> None:
    watched.others[0].close()
    sentence = watched.losses.get(timeout=30)
    assert sentence.startswith(LOST.format(2, 2, KILLED))
    assert sentence == watched.lines.verdict()


def test_a_process_that_failed_has_printed_why(watched: Watched) -> None:
    watched.others[0].sendall(ALIVE + ALIVE + FAILED)
    sentence = watched.losses.get(timeout=30)
    assert sentence.startswith(LOST.format(2, 2, "ended with an error, which it printed"))


def test_a_process_that_has_finished_is_not_lost(watched: Watched) -> None:
    watched.others[0].sendall(ALIVE + FINISHED)
    while watched.others[0].recv(100):  # until the other end lets go
        pass
    assert watched.losses.empty()
    assert watched.lines.verdict(0) == sentence_of_loss()


def test_each_gives_signs_of_life_and_long_silence_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifelines, "BEAT", 0.002)
    watched = Watched(2)
    alive = threading.Event()

    def live() -> None:
        while not alive.wait(0.002):
            watched.others[1].sendall(ALIVE)

    thread = threading.Thread(target=live)
    thread.start()
    sentence = watched.losses.get(timeout=30)
    alive.set()
    thread.join()
    assert sentence.startswith(LOST.format(2, 3, "has given no sign of life for 60 seconds"))
    assert set(watched.others[0].recv(1000)) == set(ALIVE)
    watched.close()


@pytest.mark.parametrize(("word", "said"), [(FINISHED, None), (FAILED, "ended with an error, which it printed")])
def test_the_last_word_arrives_though_there_are_beats_that_nobody_read(
    word: bytes, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifelines, "BEAT", 0.001)
    ours, theirs = socket.socketpair()
    losses: queue.Queue[str] = queue.Queue()
    first, second = Lifelines({1: ours}, 2, losses.put), Lifelines({0: theirs}, 2, losses.put)
    second.close(word)
    first.close(FINISHED)
    assert [losses.get()] == [sentence_of_loss(f"process 2 of 2 {said}")] if said else losses.empty()


def test_ranks_find_the_first_and_a_stranger_is_not_taken_for_one() -> None:
    """Three ranks in threads, which share numbers as real ones do, and somebody who tries every port."""
    barrier, given = threading.Barrier(3), [[0.0, 0.0] for _ in range(3)]
    found: dict[int, dict[int, socket.socket]] = {}
    strangers: list[socket.socket] = []

    def join(rank: int) -> None:
        def share(*numbers: float) -> list[float]:
            given[rank] = list(numbers)
            barrier.wait(30)
            sums = [sum(column) for column in zip(*given, strict=True)]
            if barrier.wait(30) == 0 and len(numbers) > 1:
                strangers.append(socket.create_connection(("127.0.0.1", int(sums[0]))))
                strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
            barrier.wait(30)
            return sums

        found[rank] = connected(rank, 3, "127.0.0.1", share)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {rank: sorted(others) for rank, others in found.items()} == {0: [1, 2], 1: [0], 2: [0]}
    for rank in (1, 2):
        found[rank][0].sendall(bytes([rank]))
        assert found[0][rank].recv(1) == bytes([rank])
    for connection in [*strangers, *(each for others in found.values() for each in others.values())]:
        connection.close()


def test_a_first_rank_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(HeedError, match=rf"process 2 cannot reach the first one at 127\.0\.0\.1, port {port}: "):
        connected(1, 2, "127.0.0.1", lambda *_: [port, 5])


# --- last words -----------------------------------------------------------------------------------------


def test_the_main_thread_is_interrupted_with_the_sentence_and_its_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    words = LastWords()
    with pytest.raises(HeedError, match="It is gone"), words.listening():
        threading.Thread(target=words.say, args=("It is gone.",)).start()
        threading.Event().wait(60)
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_process_that_is_ending_is_left_alone() -> None:
    words = LastWords()
    with words.listening():
        words.over()
        words.say("It is gone.")
        words._raise(signal.SIGUSR1, None)


def test_a_main_thread_that_does_not_listen_is_not_waited_for() -> None:
    with Program(do_not_listen) as program:
        assert program.output() == (b"", b"error: It is gone.\n")
        assert program.poll() == 1


# --- two real ranks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (1, LOST.format(2, 2, KILLED)),
        (0, LOST.format(1, 2, KILLED)),
        ("fails", LOST.format(1, 2, "ended with an error, which it printed")),
    ],
    ids=["a waiting one is killed", "one that works alone is killed", "one that works alone fails"],
)
def test_the_rank_that_is_left_says_what_became_of_the_other(lost: int | str, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ranks = [Program(work_alone, rank, listener) for rank in range(2)]
    with ranks[0], ranks[1]:
        assert [rank.stdout.readline() for rank in ranks] == [b"joined\n"] * 2
        if isinstance(lost, int):
            ranks[lost].kill()
        else:
            ranks[0].stdin.write(b"go on\n")
            ranks[0].stdin.flush()
        left = 1 if lost == "fails" else 1 - int(lost)
        assert ranks[left].stdout.read().decode().startswith(told)
        rest = [rank.output() for rank in ranks]
        assert (ranks[left].poll(), rest[left]) == (0, (b"", b""))
        if lost == "fails":
            assert rest[0] == (b"The data is wrong.\n", b"")
