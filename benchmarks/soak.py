"""An hour of `heed serve` with honest clients at a fixed rate, with and without hostile ones, in turn.

    nice -n -10 python benchmarks/soak.py RUN LANGUAGE_MODEL
    python benchmarks/soak.py RUN LANGUAGE_MODEL --minutes 4 --window 30

The honest clients translate sentences, translate longer texts, translate and download files, and read generated texts
as they are streamed. Each asks at fixed times, whatever becomes of its requests, and its latency counts from when it
should have asked. In every second window all attacks of attacks.py happen at once. Windows alternate, so that other
work on the machine meets both kinds. The server's memory, threads, open files and connections are sampled every five
seconds; a line fitted through the second half of the samples shows their growth. In the end SIGTERM comes in the middle
of the attacks. All traffic stays on this machine's loopback. Prints Markdown; exits with 0 only if every honest request
was answered with 200, the p99 of each kind is at most three times as long during the attacks, nothing grows, none of
the attacks' answers is 500, and the server ended within 30 s.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from attacks import ATTACKS, JSON, LIMIT, Attacker, Attacks, table_of, terminated
from serving import HANGS, Seen, Server, sentences, serving, shown

from heed.core.environment import num_cpus, processor_name

SAMPLE_SECONDS = 5.0
ALONE, DURING, BETWEEN = "alone", "during all attacks", "between"
"""Kinds of moments. BETWEEN: attacks begin or end."""
SUFFIXES = (".txt", ".srt", ".html", ".tsv")
GROWTH = {"memory, MB": 0.05, "threads": 0.1, "open files": 0.1, "connections": 0.1}
"""Of each, the growth in the second half that is allowed, as a share of its mean."""


@dataclass
class Soak:
    """A server under test, what its honest clients have seen, and samples of what it uses."""

    server: Server
    model: str
    texts: list[str]
    moment: str = ALONE
    seen: dict[tuple[str, str], Seen] = field(default_factory=lambda: defaultdict(Seen))
    """By kind of request and of moment."""
    samples: list[tuple[float, str, dict[str, float]]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    # --- honest clients ------------------------------------------------------------------------------

    def client(self, kind: str, period: float, offset: float) -> None:
        """Make one request of a kind in each period, until the end."""
        begin, ask = time.perf_counter() + offset, REQUESTS[kind]
        for number in count():
            due = begin + number * period
            if self.stop.wait(max(0.0, due - time.perf_counter())):
                return
            moment = self.moment
            try:
                status = ask(self, number)
            except TimeoutError:
                status = "hung"
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
            seen = self.seen[kind, moment if moment == self.moment else BETWEEN]
            seen.statuses[status] += 1
            if status == "200":
                seen.seconds.append(time.perf_counter() - due)

    def post(self, path: str, body: str, headers: dict[str, str]) -> tuple[str, bytes]:
        """The status and the whole answer to a request on a connection of its own."""
        return self._answer("POST", path, body, headers)

    def _answer(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANGS)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return str(response.status), response.read()
        finally:
            connection.close()

    def sentence(self, number: int) -> str:
        """Translate a sentence."""
        return self.post("/translate", *self._forged().text(self._text(number, 1)))[0]

    def document(self, number: int) -> str:
        """Translate a text of five sentences."""
        return self.post("/translate", *self._forged().text(self._text(number, 5)))[0]

    def stream(self, number: int) -> str:
        """Read a text while it is generated, to its end."""
        body = {"model": self.model, "prompt": "", "max_tokens": 64, "stream": True, "seed": number}
        status, events = self.post("/api/generate", json.dumps(body), JSON)
        return status if b"event: error" not in events else "error in the stream"

    def file(self, number: int) -> str:
        """Translate a file and download the translation."""
        suffix = SUFFIXES[number % len(SUFFIXES)]
        lines = [self._text(number + n, 1) for n in range(3)]
        status, answer = self.post("/translate_file", *self._forged().file(f"a{suffix}", file_of(suffix, lines)))
        if status != "200":
            return status
        path = "/" + json.loads(answer)["translatedFileUrl"].partition("://")[2].partition("/")[2]
        return self._answer("GET", path, None, {})[0]

    def _text(self, number: int, length: int) -> str:
        return " ".join(self.texts[(number * length + n) % len(self.texts)] for n in range(length))

    def _forged(self) -> Attacker:
        """The writer of requests, which an attacker is too."""
        return Attacker(self.server.port, self.server.languages, self.model, 0.0, self.stop)

    # --- samples -------------------------------------------------------------------------------------

    def sample(self) -> None:
        """Note what the server uses, until the end."""
        begin = time.perf_counter()
        while not self.stop.wait(SAMPLE_SECONDS):
            self.samples.append(((time.perf_counter() - begin) / 3600, self.moment, used(self.server)))


REQUESTS: dict[str, Callable[[Soak, int], str]] = {
    "sentences": Soak.sentence,
    "texts of five sentences": Soak.document,
    "files": Soak.file,
    "streams": Soak.stream,
}
CLIENTS = {"sentences": (4, 1.0), "texts of five sentences": (1, 3.0), "files": (1, 4.0), "streams": (1, 2.0)}
"""Of each kind, the number of clients, and the seconds between the requests of one."""


def file_of(suffix: str, lines: list[str]) -> str:
    """A file with these lines in a format."""
    if suffix == ".srt":
        times = "00:00:{0:02},000 --> 00:00:{1:02},000"
        return "\n".join(f"{n + 1}\n{times.format(n, n + 1)}\n{line}\n" for n, line in enumerate(lines))
    if suffix == ".html":
        return "".join(f"<p>{line}</p>\n" for line in lines)
    return "".join(f"{line}\n" for line in lines)


def used(server: Server) -> dict[str, float]:
    """Memory, threads, open files and connections of the server's process."""
    folder = Path(f"/proc/{server.process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text(encoding="ascii").splitlines())
    local = f"0100007F:{server.port:04X}"
    table = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
    return {
        "memory, MB": int(status["VmRSS"].split()[0]) / 1024,
        "threads": int(status["Threads"]),
        "open files": len([*(folder / "fd").iterdir()]),
        "connections": sum(row[1] == local and row[3] == "01" for row in table),
    }


def run(soak: Soak, names: list[str], windows: int, seconds: float, pause: float) -> dict[str, Counter[str]]:
    """Alternate windows without and with attacks while the clients work; return the attacks' answers."""
    answers: dict[str, Counter[str]] = {name: Counter() for name in names}
    for _ in range(windows):
        soak.moment = ALONE
        time.sleep(seconds)
        soak.moment = BETWEEN
        with Attacks(soak.server, soak.model, names, pause) as attacks:
            soak.moment = DURING
            time.sleep(seconds)
            soak.moment = BETWEEN
        for name, counted in attacks.ended().items():
            answers[name] += counted
        shown_now = ", ".join(
            f"{kind}, {moment}: p99 {1000 * seen.percentile(0.99):.0f} ms" for (kind, moment), seen in soak.seen.items()
        )
        print(f"{time.strftime('%H:%M:%S')} {soak.samples[-1][2]}; {shown_now}", file=sys.stderr, flush=True)
    return answers


def latencies(soak: Soak) -> tuple[str, bool]:
    """A table of the honest clients' latencies, and whether all of them held."""
    rows, held = [], True
    for kind in REQUESTS:
        alone, during = soak.seen[kind, ALONE], soak.seen[kind, DURING]
        ratio = during.percentile(0.99) / alone.percentile(0.99)
        for moment in (ALONE, DURING, BETWEEN):
            seen = soak.seen[kind, moment]
            times = " | ".join(f"{1000 * seen.percentile(share):.0f}" for share in (0.5, 0.9, 0.99))
            shown_ratio = f"{ratio:.2f}" if moment == DURING else ""
            rows.append(f"| {kind} | {moment} | {shown(seen.statuses)} | {times} | {shown_ratio} |")
            held &= set(seen.statuses) <= {"200"}
        held &= ratio <= LIMIT
    head = "| honest clients | | answers | p50, ms | p90, ms | p99, ms | ratio |"
    return "\n".join([head, "| --- | --- | --- | ---: | ---: | ---: | ---: |", *rows]), held


def growth(soak: Soak) -> tuple[str, bool]:
    """A table of what the server used, with the growth in the second half, and whether it used no more and more."""
    rows, held = [], True
    for moment in (ALONE, DURING):
        for name, allowed in GROWTH.items():
            points = [(hours, each[name]) for hours, at, each in soak.samples if at == moment]
            half = points[len(points) // 2 :]
            hours, values = [x for x, _ in half], [y for _, y in half]
            grown = statistics.linear_regression(hours, values).slope * (hours[-1] - hours[0])
            mean, most = statistics.fmean(values), max(y for _, y in points)
            used = f"{points[0][1]:.0f} | {mean:.1f} | {most:.0f} | {points[-1][1]:.0f} | {grown:+.1f}"
            rows.append(f"| {name} | {moment} | {used} |")
            held &= moment == DURING or grown <= max(allowed * mean, 1)
    head = "| used | | first | mean of the second half | most | last | growth in the second half |"
    return "\n".join([head, "| --- | --- | ---: | ---: | ---: | ---: | ---: |", *rows]), held


def measure(options: argparse.Namespace) -> bool:
    """The whole soak. Returns whether everything held."""
    names, windows = options.only.split(","), max(1, round(30 * options.minutes / options.window))
    with serving([options.run, options.language_model], options.threads) as server:
        soak = Soak(server, options.language_model.name, sentences(options.run))
        threads = [threading.Thread(target=soak.sample, daemon=True)]
        for kind, (clients, period) in CLIENTS.items():
            for number in range(clients):
                arguments = (kind, period, period * number / clients)
                threads.append(threading.Thread(target=soak.client, args=arguments, daemon=True))
        for thread in threads:
            thread.start()
        answers = run(soak, names, windows, options.window, options.pause)
        soak.stop.set()
        for thread in threads:
            thread.join(HANGS)
        with Attacks(server, soak.model, names, options.pause) as attacks:
            code, ended = terminated(server)
        attacks.ended()
    (times, fast), (uses, flat) = latencies(soak), growth(soak)
    print(f"{times}\n\n{uses}\n\nSIGTERM in the middle of the attacks: exit code {code} within {ended:.1f} s\n")
    print(table_of(answers))
    return fast and flat and code == 0 and ended < 30 and not any("500" in each for each in answers.values())


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a translation run")
    parser.add_argument("language_model", type=Path, help="a run of a language model")
    parser.add_argument("--minutes", type=float, default=60.0, help="of all windows together")
    parser.add_argument("--window", type=float, default=60.0, help="seconds of each window")
    parser.add_argument("--only", default=",".join(ATTACKS), help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds after each request of an attack")
    parser.add_argument("--threads", type=int, default=1, help="threads that the models compute with")
    options = parser.parse_args()
    print(f"{processor_name()}, {num_cpus()} cores, {options.threads} threads; load {os.getloadavg()[0]:.1f}\n")
    held = measure(options)
    print(f"\n{'all held' if held else 'did NOT hold'}")
    sys.exit(not held)


if __name__ == "__main__":
    main()
