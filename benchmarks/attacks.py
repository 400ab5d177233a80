"""Honest clients of `heed serve` while others attack it, compared with the same clients alone.

    python benchmarks/attacks.py RUN LANGUAGE_MODEL
    python benchmarks/attacks.py RUN LANGUAGE_MODEL --only headers,html --turns 1

The honest clients ask for one translation after the other, in turns of `--seconds`: alone, then during all attacks at
once, `--turns` times. Each attack repeats one of the table in docs/reliability.md with a pause (`--pause`) after each
of its requests; their processes are not the honest clients'. In the end SIGTERM comes in the middle of the attacks. All
traffic stays on this machine's loopback. Prints Markdown; exits with 0 only if every honest request was answered with
200, none of the attacks' answers is 500, the p99 of the honest clients during the attacks is at most three times that
without, and the server ended within 30 s.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, takewhile
from multiprocessing.synchronize import Event
from pathlib import Path

from serving import Seen, Server, ask, sentences, serving, shown

from heed.core.environment import num_cpus, processor_name

CONNECTIONS = 320
"""Connections with half of their headers."""
STREAMS = 16
"""Streams that nobody reads."""
SLOW_BODIES = 64
MEGABYTE = 1_000_000
LIMIT = 3.0
"""How many times longer the slowest honest requests may take during the attacks."""
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Attacker:
    """One attack, which is repeated until it must stop, and its answers."""

    def __init__(self, port: int, languages: tuple[str, str], model: str, pause: float, stop: Event) -> None:
        self.port = port
        self.languages = languages
        self.model = model
        self.pause = pause
        self.stop = stop
        self.answers = Counter[str]()

    # --- attacks -------------------------------------------------------------------------------------

    def html(self) -> None:
        """Files of many inline tags, and of tags that are never closed."""
        for part in ("<b> </b> ", "<a ", "<code><b></i>", "<!--"):
            self.send("/translate_file", *self.file("a.html", part * (900_000 // len(part))))
            self.send("/translate", *self.text("a " + part * (9000 // len(part)), format="html"))

    def headers(self) -> None:
        """Connections with half of a request's headers."""
        self.hold(CONNECTIONS, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-")

    def bodies(self) -> None:
        """Connections with half of a request's body."""
        self.hold(SLOW_BODIES, b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{")

    def objects(self) -> None:
        """JSON with very many wrong fields."""
        wrong = dict.fromkeys(map(str, range(80_000)), "")
        self.send("/v1/completions", json.dumps({"model": self.model, "prompt": "a", "logit_bias": wrong}), JSON)
        self.send("/api/translate", json.dumps({"text": "a", **wrong}), JSON)
        self.send("/translate", *self.text(["" for _ in range(200_000)]))

    def forms(self) -> None:
        """Forms with very many fields."""
        self.send("/translate", "&" * MEGABYTE, FORM)
        self.send("/translate", "q=a&" * (MEGABYTE // 4), FORM)

    def streams(self) -> None:
        """Streams that nobody reads."""
        body = json.dumps({"model": self.model, "samples": 10, "max_tokens": 1024, "stream": True, "prompt": ""})
        head = "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.hold(STREAMS, f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def documents(self) -> None:
        """Files of tables, subtitles and translation memories that are nothing but structure."""
        self.send("/translate_file", *self.file("a.srt", "1\n00:00:00,000 --> 00:00:01,000\n\n" * 25_000))
        self.send("/translate_file", *self.file("a.csv", '"' + "," * 900_000))
        self.send("/translate_file", *self.file("a.tsv", "\t\n" * 450_000))
        self.send("/translate_file", *self.file("a.tmx", "<tmx><body>" + "<tu><tuv><seg>" * 60_000))

    def cancels(self) -> None:
        """Requests whose clients are gone before the answer."""
        body, headers = self.text(" ".join(["A man walks."] * 100))
        head = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": len(body)}.items())
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as client:
                client.sendall(f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{body}".encode())
                self.answers["opened"] += 1
        self.stop.wait(self.pause)

    def requests(self) -> None:
        """Small requests that lie: about names, keys, lengths, encodings and formats."""
        self.send("/api/models", None, {"Host": "evil.example"})
        self.send("/translate?api_key=guess", *self.text("a"))
        self.send("/api/models", None, {"Authorization": "Bearer guess"})
        self.send("/translate", *self.text("a", format="\ud800"))
        self.send("/api/translate", "no JSON", JSON)
        two = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(two + b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.answers[client.recv(1 << 16)[9:12].decode()] += 1

    # --- their parts ---------------------------------------------------------------------------------

    def text(self, text: str | list[str], **fields: str) -> tuple[str, dict[str, str]]:
        """A request to translate a text."""
        source, target = self.languages
        return json.dumps({"q": text, "source": source, "target": target, **fields}), JSON

    def file(self, name: str, text: str) -> tuple[str, dict[str, str]]:
        """A request to translate a file."""
        fields = dict(zip(("source", "target"), self.languages, strict=True))
        parts = [f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields]
        parts.append(
            f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{text}\r\n--x--\r\n'
        )
        return "".join(parts), {"Content-Type": "multipart/form-data; boundary=x"}

    def send(self, path: str, body: str | None, headers: dict[str, str]) -> None:
        """One request, whose answer is counted, and a pause."""
        if self.stop.is_set():
            return
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            client.request("POST" if body is not None else "GET", path, body, headers)
            response = client.getresponse()
            response.read()
            self.answers[str(response.status)] += 1
        except (OSError, http.client.HTTPException):
            self.answers["closed"] += 1
        finally:
            client.close()
        self.stop.wait(self.pause)

    def hold(self, count: int, sent: bytes) -> None:
        """Open connections that send this and do nothing more, and open those again that the server closes."""
        held: list[socket.socket] = []
        while not self.stop.is_set():
            held = [client for client in held if not is_closed(client)]
            for _ in range(count - len(held)):
                with suppress(OSError):
                    client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                    client.sendall(sent)
                    client.setblocking(False)
                    held.append(client)
                    self.answers["opened"] += 1
            self.stop.wait(max(self.pause, 0.2))
        for client in held:
            client.close()


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed a connection, of which nothing is read."""
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


ATTACKS: dict[str, Callable[[Attacker], None]] = {
    "html": Attacker.html,
    "headers": Attacker.headers,
    "bodies": Attacker.bodies,
    "objects": Attacker.objects,
    "forms": Attacker.forms,
    "streams": Attacker.streams,
    "documents": Attacker.documents,
    "cancels": Attacker.cancels,
    "requests": Attacker.requests,
}


def attack(
    port: int, languages: tuple[str, str], model: str, names: list[str], pause: float, stop: Event,
    answers: multiprocessing.Queue[tuple[str, Counter[str]]],
) -> None:  # fmt: skip
    """Run attacks in this process, each in a thread, until they must stop.

    They stand for other machines, so the server and its honest clients come first at this one's processors.
    """
    os.nice(39)  # to the least

    def repeat(name: str) -> None:
        attacker = Attacker(port, languages, model, pause, stop)
        while not stop.is_set():
            with suppress(OSError):
                ATTACKS[name](attacker)
        answers.put((name, attacker.answers))

    threads = [threading.Thread(target=repeat, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Attacks:
    """The attacks on a server, in a process of their own."""

    def __init__(self, server: Server, model: str, names: list[str], pause: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._answers: multiprocessing.Queue[tuple[str, Counter[str]]] = context.Queue()
        arguments = (server.port, server.languages, model, names, pause, self._stop, self._answers)
        self._process = context.Process(target=attack, args=arguments)
        self._names = names

    def __enter__(self) -> Attacks:
        self._process.start()
        time.sleep(3)  # until all of them have begun
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def ended(self) -> dict[str, Counter[str]]:
        """The answers to each, when they have ended."""
        answers = dict(self._answers.get(timeout=120) for _ in self._names)
        self._process.join(60)
        return answers


def honest(server: Server, texts: list[str], clients: int, seconds: float, seen: Seen) -> None:
    """Let honest clients translate for some seconds."""
    end = time.perf_counter() + seconds
    ask(server, takewhile(lambda _: time.perf_counter() < end, cycle(texts)), clients, seen)


def terminated(server: Server) -> tuple[int, float]:
    """Send SIGTERM; return the exit code and the seconds until the end."""
    begin = time.perf_counter()
    server.process.terminate()
    return server.process.wait(120), time.perf_counter() - begin


def table_of(answers: dict[str, Counter[str]]) -> str:
    """The answers to each attack."""
    rows = [f"| {(ATTACKS[name].__doc__ or '').rstrip('.')} | {shown(counted)} |" for name, counted in answers.items()]
    return "\n".join(["| attack | answers |", "| --- | --- |", *rows])


def measure(run: Path, model: Path, names: list[str], options: argparse.Namespace) -> bool:
    """Compare honest clients alone and during the attacks."""
    texts, alone, during = sentences(run), Seen(), Seen()
    answers: dict[str, Counter[str]] = {name: Counter() for name in names}
    with serving([run, model], options.threads) as server:
        honest(server, texts, options.clients, 3, Seen())
        idle = server.megabytes(0)
        most = idle
        for _ in range(options.turns):
            honest(server, texts, options.clients, options.seconds, alone)
            with Attacks(server, model.name, names, options.pause) as attacks:
                honest(server, texts, options.clients, options.seconds, during)
                most = max(most, server.megabytes(0))
            for name, counted in attacks.ended().items():
                answers[name] += counted
        with Attacks(server, model.name, names, options.pause) as attacks:
            code, ended = terminated(server)
        attacks.ended()
    print("| honest clients | requests | p50, ms | p90, ms | p99, ms |\n| --- | --- | ---: | ---: | ---: |")
    for name, seen in (("alone", alone), ("during all attacks", during)):
        times = " | ".join(f"{1000 * seen.percentile(share):.0f}" for share in (0.5, 0.9, 0.99))
        print(f"| {name} | {shown(seen.statuses)} | {times} |")
    ratio = during.percentile(0.99) / alone.percentile(0.99)
    print(
        f"\np99 during the attacks / alone: {ratio:.2f}; memory {idle:.0f} MB, during the attacks at most {most:.0f} MB"
    )
    print(f"SIGTERM in the middle of the attacks: exit code {code} within {ended:.1f} s\n")
    print(table_of(answers))
    well = set(alone.statuses) == set(during.statuses) == {"200"} and not any(
        "500" in each for each in answers.values()
    )
    return well and ratio <= LIMIT and code == 0 and ended < 30


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a translation run")
    parser.add_argument("language_model", type=Path, help="a run of a language model")
    parser.add_argument("--only", default=",".join(ATTACKS), help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--clients", type=int, default=4, help="honest clients")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds after each request of an attack")
    parser.add_argument("--threads", type=int, default=1, help="threads that the models compute with")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(ATTACKS):
        parser.error(f"--only: {', '.join(unknown)} is not one of {', '.join(ATTACKS)}")
    load = os.getloadavg()[0]
    print(f"{processor_name()}, {num_cpus()} cores, {options.threads} threads; load {load:.1f}\n", flush=True)
    well = measure(options.run, options.language_model, names, options)
    print(f"\n{'all held' if well else 'did NOT hold'}")
    sys.exit(not well)


if __name__ == "__main__":
    main()
