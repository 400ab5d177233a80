"""A Ray cluster: a local one that ends with this process, or one that is joined.

A local cluster listens on the loopback interface alone, and none reports its use to anybody.

Work is Ray's plain tasks. Ray Data would schedule the same tasks, but its own merits, blocks of rows that stream
through the object store, are not needed where each task reads and writes files. It repeats a task that kills its
workers without end, gives up when none ends within half an hour, and needs ten seconds more to begin. Actors keep a
model, but the calls of a lost actor wait until that actor starts again, for which a smaller cluster may have no room;
the task of a lost worker goes to any other.
"""

from __future__ import annotations

import io
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from heed.core import environment
from heed.core.errors import HeedError, UsageError
from heed.core.progress import message, warn

RETRIES = 5
"""Workers that may be lost over one task."""
AHEAD = 2
"""Tasks that are submitted for each that can run, so that none waits for the driver; the others are not yet begun."""
LOOK = 5.0
"""Seconds between looks at the size of the cluster, which nodes join and leave."""
PAUSE = 0.02
"""Seconds between looks at tasks that have not ended."""

Key = TypeVar("Key")


class Cluster:
    """Context manager of a connection: `address` is empty for a local cluster, else `auto` or HOST:PORT."""

    def __init__(self, address: str, quiet: bool = False) -> None:
        """Raises UsageError without Ray, or for something else."""
        host, _, port = address.rpartition(":")
        if address not in ("", "auto") and ("/" in host or not (host and port.isdecimal())):
            raise UsageError(
                f"--ray {address}: give auto or HOST:PORT of a cluster, or nothing for one on this machine. The run "
                "comes first: heed VERB RUN --ray --input ..."
            )
        environment.keep_ray_private(is_local=not address)
        try:
            import ray
        except ImportError as error:
            raise UsageError("--ray needs the package ray: pip install 'heed[ray]'.") from error
        self._address = address
        self._quiet = quiet
        self._ray: Any = ray
        self._exits = ExitStack()

    @property
    def num_nodes(self) -> int:
        """The number of machines that are alive."""
        return sum(node["Alive"] for node in self._ray.nodes())

    def __enter__(self) -> Self:
        local = {"address": "local", "num_cpus": environment.num_cpus(), "include_dashboard": False}
        ends = signal.getsignal(signal.SIGTERM)
        try:
            with self._exits:
                self._exits.enter_context(redirect_stdout(_Nowhere()))  # Ray's reports of losses, with its logs
                self._exits.callback(self._ray.shutdown)
                self._ray.init(
                    **({"address": self._address} if self._address else local), log_to_driver=False,
                    logging_level=logging.CRITICAL,
                )  # fmt: skip
                self._exits = self._exits.pop_all()
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = (str(error).strip() or type(error).__name__).split("\n")[0]
            raise HeedError(
                f"no Ray cluster answers at {self._address or 'this machine'} ({reason}). Start one with "
                "`ray start --head`, and further nodes with `ray start --address HOST:PORT`."
            ) from error
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, ends)  # Ray's own loses the exit code
        message(f"cluster: {self.num_nodes:,} nodes, {self._total('CPU'):g} processors", self._quiet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._exits.close()

    def results(
        self, tasks: Mapping[Key, Mapping[str, Any]], function: Callable[..., Any], shared: Mapping[str, Any],
        num_cpus: int = 1, num_gpus: int = 0,
    ) -> Iterator[tuple[Key, Any]]:  # fmt: skip
        """Call a function for each task, with its arguments and the shared ones, and yield its key and the result.

        The order is that in which tasks end. A task whose worker or node is lost is repeated on another. Raises
        HeedError, with the key, if that happens too often, or for an error that the function should not raise.
        """
        self._require_a_node(num_cpus, num_gpus)
        remote = self._ray.remote(
            num_cpus=num_cpus, num_gpus=num_gpus, max_retries=RETRIES, scheduling_strategy="SPREAD",
            max_calls=0,  # a process keeps its model, on a GPU too
        )(function)  # fmt: skip
        common = {name: self._ray.put(value) for name, value in shared.items()}
        waiting = iter(tasks.items())
        running: dict[Any, Key] = {}
        most, looked = 0, float("-inf")
        while True:
            if time.monotonic() > looked + LOOK:
                most, looked = AHEAD * self._at_once(num_cpus, num_gpus), time.monotonic()
            for _, (key, arguments) in zip(range(most - len(running)), waiting, strict=False):
                running[remote.remote(**arguments, **common)] = key
            if not running:
                return
            # Ray's own waiting turns a signal into another exit code.
            ended, _ = self._ray.wait(list(running), num_returns=len(running), timeout=0)
            if not ended:
                time.sleep(PAUSE)
            for reference in ended:
                key = running.pop(reference)
                try:
                    yield key, self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    failed = isinstance(error, self._ray.exceptions.RayTaskError)
                    reason = (
                        str(error).strip().split("\n")[-1]
                        if failed
                        else f"{RETRIES + 1} workers died while computing it"
                    )
                    raise HeedError(f"{key}: {reason}. The same command continues with what is left.") from error

    def _total(self, resource: str) -> float:
        return float(self._ray.cluster_resources().get(resource, 0))

    def _require_a_node(self, num_cpus: int, num_gpus: int) -> None:
        """Warn if no machine can do a task yet. Raises UsageError for a cluster of heed's own, which does not grow."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(each.get("CPU", 0) >= num_cpus and each.get("GPU", 0) >= num_gpus for each in machines):
            needed = f"{num_cpus:,} processor{'s' * (num_cpus > 1)}" + " and a GPU" * bool(num_gpus)
            missing = f"no machine of the cluster has {needed}, which each worker needs (--threads, --device)."
            if not self._address:
                raise UsageError(missing)
            warn(f"{missing} Waiting for one that joins.", self._quiet)

    def _at_once(self, num_cpus: int, num_gpus: int) -> int:
        """The number of tasks that can run now; one at least, as nodes may join."""
        by_gpu = self._total("GPU") // num_gpus if num_gpus else float("inf")
        return max(1, int(min(self._total("CPU") // num_cpus, by_gpu)))


class _Nowhere(io.TextIOBase):
    """A stream that drops what is written."""

    def write(self, text: str) -> int:
        return len(text)
