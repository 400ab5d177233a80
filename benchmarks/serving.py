"""`heed serve` under load: many clients, a full queue, 10,000 requests, SIGTERM, and the death of its worker.

    python benchmarks/serving.py RUN
    python benchmarks/serving.py RUN --only throughput --requests 512
    python benchmarks/serving.py RUN --only queue,memory,drain,worker

`throughput`: 1, 8 and 64 clients, each asking for its next sentence when it has the last one, compared with the same
model translating one line at a time without a server; they take turns, `--pairs` times. `queue`: 200 clients at once
and a queue of 256. `crowd`: 300 clients for as long as 50,000 different lines take; one that is told to come back
later does so. `memory`: 10,000 requests. `drain`: 500 requests, and SIGTERM after a hundred answers. `worker`:
the worker's thread is killed under load. All traffic stays on this machine's loopback. The sentences are those of the
run's validation data. Prints Markdown; exits with 0 only if the promises of docs/reliability.md held (they include no
speed).
"""

from __future__ import annotations

import argparse
import ctypes
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import heed
from heed.core.environment import num_cpus, processor_name
from heed.data.validation import read_valid
from heed.nn.device import set_threads

PARTS = ("throughput", "queue", "memory", "drain", "worker")
"""Those of a run without `--only`."""
CROWD = 300
"""Clients of `crowd`, which takes several minutes."""
CLIENTS = (1, 8, 64)
HANGS = 120.0
"""Seconds after which a request counts as hanging."""


@dataclass
class Server:
    """A server in its own process."""

    process: subprocess.Popen[str]
    port: int
    languages: tuple[str, str]

    def megabytes(self, quiet: float = 3.0) -> float:
        """Its resident memory after the given seconds without work."""
        time.sleep(quiet)
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@dataclass
class Seen:
    """The clients' results: the status of each request, and the seconds of those answered with 200."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """A quantile of the seconds of the answered requests."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Client:
    """One client with a persistent connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANGS)

    def translate(self, text: str) -> str:
        """The status of a translation request, or one word for what happened instead."""
        source, target = self.server.languages
        body = json.dumps({"q": text, "source": source, "target": target})
        try:
            self.connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        except OSError:  # nothing was admitted
            self.connection.close()
            return "not connected"
        try:
            response = self.connection.getresponse()
            response.read()
        except TimeoutError:
            return "hung"
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return "broken off"
        retry = "" if response.status != 503 or response.getheader("Retry-After") else " without Retry-After"
        return f"{response.status}{retry}"

    def health(self) -> int:
        """The status of /health."""
        self.connection.request("GET", "/health")
        response = self.connection.getresponse()
        response.read()
        return response.status


@contextmanager
def serving(runs: Path | Sequence[Path], threads: int, killable: bool = False) -> Iterator[Server]:
    """The server of runs, the first a translator; `killable`: SIGUSR1 kills its worker."""
    runs = [runs] if isinstance(runs, Path) else runs
    program = [sys.executable, __file__, "--serve-killable"] if killable else [sys.executable, "-m", "heed", "serve"]
    command = [*program, *map(str, runs), "--port", "0", "--threads", str(threads)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        ready = next((line for line in process.stderr if " at http://" in line), None)
        if ready is None:
            raise SystemExit("the server did not start")
        port = int(ready.partition(" at http://127.0.0.1:")[2].split()[0])
        log = threading.Thread(target=process.stderr.read, daemon=True)  # it must not fill its pipe
        log.start()
        try:
            yield Server(process, port, heed.load(runs[0]).languages)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(60)


def ask(server: Server, texts: Iterable[str], num_clients: int, seen: Seen | None = None) -> Seen:
    """Run clients that request the texts one after the other, each after its last answer."""
    seen, left, lock = seen or Seen(), iter(texts), threading.Lock()

    def client() -> None:
        mine = Client(server)
        while True:
            with lock:
                text = next(left, None)
            if text is None:
                mine.connection.close()
                return
            begin = time.perf_counter()
            status = mine.translate(text)
            taken = time.perf_counter() - begin
            with lock:
                seen.statuses[status] += 1
                if status == "200":
                    seen.seconds.append(taken)

    with ThreadPoolExecutor(num_clients) as pool:
        for done in [pool.submit(client) for _ in range(num_clients)]:
            done.result()
    return seen


def throughput(run: Path, texts: Sequence[str], threads: int, requests: int, pairs: int) -> bool:
    """Sentences per second and latencies, compared with the model alone."""
    set_threads(threads)
    loaded = heed.load(run)
    rates: dict[int, list[float]] = {clients: [] for clients in (0, *CLIENTS)}
    seen = {clients: Seen() for clients in rates}
    with serving(run, threads) as server:
        ask(server, texts[:16], 4)
        for turn in range(pairs):
            for clients in rates:
                # Fewer clients make fewer requests, so that all settings take about as long.
                count = requests if clients > 8 else max(requests // (8 if clients < 2 else 2), 16)
                part = [texts[(turn * requests + n) % len(texts)] for n in range(count)]
                begin = time.perf_counter()
                if clients:
                    ask(server, part, clients, seen[clients])
                else:
                    for text in part:
                        before = time.perf_counter()
                        loaded.translate([text])
                        seen[0].seconds.append(time.perf_counter() - before)
                        seen[0].statuses["200"] += 1
                rates[clients].append(count / (time.perf_counter() - begin))
    print("| | sentences/s | relative to the model alone | p50, ms | p90, ms | p99, ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for clients, found in rates.items():
        ratios = [rate / alone for rate, alone in zip(found, rates[0], strict=True)]
        name = f"{clients} client{'s' * (clients > 1)}" if clients else "the model alone, one line at a time"
        times = " | ".join(f"{1000 * seen[clients].percentile(share):.0f}" for share in (0.5, 0.9, 0.99))
        print(
            f"| {name} | {statistics.median(found):.1f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {times} |"
        )
    return all(set(each.statuses) == {"200"} for each in seen.values())


def queue(run: Path, texts: Sequence[str], threads: int) -> bool:
    """Send the requests of 200 clients at once."""
    with serving(run, threads) as server:
        seen = ask(server, [texts[n % len(texts)] + f" {n}." for n in range(1000)], 200)
    print(f"200 clients, 1,000 requests: {shown(seen.statuses)}; p99 of those admitted {seen.percentile(0.99):.1f} s")
    return set(seen.statuses) <= {"200", "429", "503"} and seen.percentile(0.99) <= 20


def crowd(run: Path, texts: Sequence[str], threads: int, requests: int) -> bool:
    """Let very many clients translate lines that are all different, until each line has its translation."""
    left, lock, seen = iter(range(requests)), threading.Lock(), Seen()
    with serving(run, threads) as server:
        before, begin = server.megabytes(), time.perf_counter()

        def client() -> None:
            mine = Client(server)
            while True:
                with lock:
                    number = next(left, None)
                if number is None:
                    return
                asked = time.perf_counter()
                while (status := mine.translate(f"{texts[number % len(texts)]} {number}.")) == "503":
                    with lock:
                        seen.statuses[status] += 1
                    time.sleep(2.0)  # as Retry-After says
                with lock:
                    seen.statuses[status] += 1
                    seen.seconds.append(time.perf_counter() - asked)

        with ThreadPoolExecutor(CROWD) as pool:
            for done in [pool.submit(client) for _ in range(CROWD)]:
                done.result()
        seconds = time.perf_counter() - begin
        after = server.megabytes()
    times = " / ".join(f"{seen.percentile(share):.2f}" for share in (0.5, 0.9, 0.99))
    print(
        f"{CROWD} clients, {requests:,} different lines: {shown(seen.statuses)}; {requests / seconds:.0f} lines/s; "
        f"p50 / p90 / p99 {times} s, including the waits of "
        f"clients that were refused and tried again; memory {before:.0f} to {after:.0f} MB"
    )
    return set(seen.statuses) <= {"200", "503"} and seen.statuses["200"] == requests


def memory(run: Path, texts: Sequence[str], threads: int, requests: int) -> bool:
    """Compare the server's memory after the first part of the requests with that after all."""
    with serving(run, threads) as server:
        first = max(requests // 10, 500)
        ask(server, [texts[n % len(texts)] for n in range(first)], 64)
        busy, before = server.megabytes(0), server.megabytes()
        seen = ask(server, [texts[n % len(texts)] for n in range(requests - first)], 64)
        busy_after, after = server.megabytes(0), server.megabytes()
    growth = after / before - 1
    print(
        f"memory after {first:,} requests {before:.0f} MB, after {requests:,} {after:.0f} MB: {growth:+.1%} "
        f"(before it was quiet {busy:.0f} and {busy_after:.0f} MB)"
    )
    return set(seen.statuses) == {"200"} and growth <= 0.05


def drain(run: Path, texts: Sequence[str], threads: int) -> bool:
    """Send SIGTERM in the middle of 500 requests."""
    seen, began = Seen(), 0.0
    with serving(run, threads) as server:

        def terminate() -> None:
            nonlocal began
            while seen.statuses["200"] < 100:
                time.sleep(0.002)
            began = time.perf_counter()
            server.process.send_signal(signal.SIGTERM)

        stopper = threading.Thread(target=terminate)
        stopper.start()
        ask(server, [texts[n % len(texts)] for n in range(500)], 50, seen)
        stopper.join()
        code = server.process.wait(60)
        took = time.perf_counter() - began
    print(f"500 requests under SIGTERM: {shown(seen.statuses)}; exit code {code} within {took:.1f} s")
    return code == 0 and set(seen.statuses) <= {"200", "503", "not connected"}


def worker(run: Path, texts: Sequence[str], threads: int) -> bool:
    """Kill the worker's thread while it works."""
    with serving(run, threads, killable=True) as server, ThreadPoolExecutor(1) as pool:
        load = pool.submit(ask, server, [texts[n % len(texts)] for n in range(200)], 8)
        time.sleep(0.5)
        watch, begin = Client(server), time.perf_counter()
        server.process.send_signal(signal.SIGUSR1)
        while watch.health() != 503 and time.perf_counter() - begin < 30:
            time.sleep(0.005)
        told = time.perf_counter() - begin
        while watch.health() != 200 and time.perf_counter() - begin < 60:
            time.sleep(0.005)
        back = time.perf_counter() - begin
        seen = load.result()
        again = Client(server).translate(texts[0])
    print(
        f"worker killed under 8 clients: /health says so after {told:.2f} s and is well again after {back:.2f} s; "
        f"200 requests: {shown(seen.statuses)}; then: {again}"
    )
    return told <= 10 and back < 60 and again == "200" and set(seen.statuses) <= {"200", "500", "503"}


def shown(statuses: Counter[str]) -> str:
    """The counts of the statuses, such as `200: 480, 503: 20`."""
    return ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))


def serve_killable(arguments: Sequence[str]) -> None:
    """Run `heed serve` with a worker that SIGUSR1 kills."""

    def kill(*_: object) -> None:
        for thread in threading.enumerate():
            if thread.name == "heed worker" and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))

    signal.signal(signal.SIGUSR1, kill)
    sys.argv = ["heed", "serve", *arguments]
    from heed.cli.main import main

    main()


def sentences(run: Path) -> list[str]:
    """The sources of the run's validation data."""
    return list(dict.fromkeys(row[0] for row in read_valid(run)))


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a translation run")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join((*PARTS, 'crowd'))}")
    parser.add_argument("--requests", type=int, default=512, help="of 64 clients, per turn of throughput")
    parser.add_argument("--pairs", type=int, default=3, help="turns of throughput")
    parser.add_argument("--crowd-lines", type=int, default=50_000)
    parser.add_argument("--memory-requests", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=num_cpus(), help="threads that the model computes with")
    said = parser.parse_args()
    wanted = said.only.split(",")
    if unknown := set(wanted) - {*PARTS, "crowd"}:
        parser.error(f"--only: {', '.join(unknown)} is not one of {', '.join((*PARTS, 'crowd'))}")
    texts, threads = sentences(said.run), said.threads
    print(f"{processor_name()}, {num_cpus()} cores, {threads} threads; load {os.getloadavg()[0]:.1f}\n")
    held = {}
    for part in wanted:
        print(f"\n## {part}\n", flush=True)
        if part == "throughput":
            held[part] = throughput(said.run, texts, threads, said.requests, said.pairs)
        elif part == "crowd":
            held[part] = crowd(said.run, texts, threads, said.crowd_lines)
        elif part == "memory":
            held[part] = memory(said.run, texts, threads, said.memory_requests)
        else:
            held[part] = {"queue": queue, "drain": drain, "worker": worker}[part](said.run, texts, threads)
    broken = [part for part, well in held.items() if not well]
    print(f"\n{'all held' if not broken else 'did NOT hold: ' + ', '.join(broken)}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve-killable"]:
        serve_killable(sys.argv[2:])
    else:
        main()
