"""Two nodes of a Ray cluster on this machine: a worker, the driver and a node are killed while they work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet
import pytest
from cluster_work import FREE_PARTS, compute, compute_alone, contents, gate_of, slow_translation, write_corpus
from command import call
from toy import WORDS, barely_trained

from heed.cluster.ray_cluster import Cluster
from heed.core.environment import keep_ray_private
from heed.core.errors import UsageError

# Ray is imported by the fixture, after the environment is set.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'heed[ray]'")

TESTS = Path(__file__).resolve().parent.parent
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
"""Settings of Ray with which the loss of a node is noticed within two seconds."""


class Nodes:
    """A cluster of two nodes with a processor each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        few = {"num_cpus": 1, "include_dashboard": False, "include_log_monitor": False}
        self.cluster = Cluster(True, head_node_args={**few, "no_monitor": True, "_system_config": QUICK})
        self.address: str = self.cluster.address
        self.second: Any = self.cluster.add_node(wait=False, **few)

    def kill_second(self) -> None:
        """Kill the second node with its workers."""
        self.cluster.remove_node(self.second, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """The cluster of all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent / "src")]))
        keep_ray_private(is_local=True)
        ends = signal.getsignal(signal.SIGTERM)
        try:
            nodes = Nodes()
            signal.signal(signal.SIGTERM, ends)  # Ray sets its own
        except Exception as error:
            if not isinstance(error, (OSError, RuntimeError, ValueError)) and type(error) is not Exception:
                raise  # not what Ray raises here, such as for too little shared memory
            pytest.skip(f"Ray itself does not start two nodes here: {error}")
        yield nodes
        nodes.cluster.shutdown()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny translator with its files for CTranslate2, so that workers need no PyTorch."""
    run = barely_trained(tmp_path_factory.mktemp("run"))
    run.predictor.convert()
    return run.folder


def when(condition: Callable[[], bool], then: Callable[[], object]) -> Thread:
    """Start a thread that does something once a condition holds."""

    def work() -> None:
        wait_until(condition)
        then()

    thread = Thread(target=work)
    thread.start()
    return thread


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, two minutes at most."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.02)


def listening_addresses(session: str) -> set[str]:
    """The addresses on which the processes of a session of Ray listen, as the system writes them."""
    sockets = set()
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and session.encode() in (process / "cmdline").read_bytes():
                sockets |= {str(file.readlink()) for file in (process / "fd").iterdir()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_cluster_of_this_machine_listens_on_the_loopback_interface_alone() -> None:
    with Cluster("", quiet=True) as cluster:
        session = cluster._ray._private.worker.global_worker.node.get_session_dir_path()
        found = listening_addresses(session)
        with pytest.raises(UsageError, match="no machine of the cluster has 99 processors, which each worker needs"):
            next(cluster.results({"a": {}}, len, {}, num_cpus=99))
    assert found and found <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_a_killed_worker_a_killed_driver_and_a_killed_node_lose_and_double_no_row(
    nodes: Nodes, run: Path, tmp_path: Path
) -> None:
    corpus, begun, output = write_corpus(tmp_path / "corpus", list(WORDS)), tmp_path / "begun", tmp_path / "out"
    begun.mkdir()
    arguments = (str(corpus), str(run), str(begun), str(output), nodes.address, 0.5)
    program = f"from cluster_work import compute; compute(*{arguments!r})"
    with subprocess.Popen([sys.executable, "-c", program]) as driver:
        wait_until(lambda: len(contents(output)) >= 1)
        os.kill(int(next(begun.iterdir()).name), signal.SIGKILL)
        wait_until(lambda: len(contents(output)) >= FREE_PARTS)
        driver.kill()
    before = {name: (output / name).stat().st_mtime_ns for name in contents(output)}
    assert FREE_PARTS <= len(before) < 12
    gate_of(begun).touch()
    for path in begun.iterdir():
        path.unlink()
    killer = when(lambda: len(list(begun.iterdir())) >= 2, nodes.kill_second)
    compute(*arguments)
    killer.join()
    assert {name: (output / name).stat().st_mtime_ns for name in before} == before, "what was done is not done again"
    expected = compute_alone(corpus, partial(slow_translation, run, 0.0, begun), tmp_path / "alone")
    assert contents(output) == expected and len(expected) == 12
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", *expected]
    rows = pyarrow.concat_tables([pyarrow.parquet.read_table(output / name) for name in expected]).to_pydict()
    assert list(rows) == ["id", "text", "translation"] and rows["id"] == list(range(300))
    text = "".join(f"{line}\n" for line in rows["text"])
    assert call("translate", run, "--no-guard", stdin=text).lines == rows["translation"]


def test_a_corpus_is_examined_and_deduplicated_by_workers(nodes: Nodes, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", list(WORDS)[:3])
    words = ("--ray", nodes.address, "--input", corpus / "*.parquet", "--output")
    checked = call("data", "check", "--text", *words, tmp_path / "checked")
    assert checked.out.startswith("train: 300 lines;") and checked.code == 0, checked.err
    assert call("data", "deduplicate", *words, tmp_path / "distinct").code == 0
    found = [
        pyarrow.parquet.read_table(path)["text"].to_pylist() for path in sorted((tmp_path / "distinct").glob("p*"))
    ]
    texts = [pyarrow.parquet.read_table(path)["text"].to_pylist() for path in sorted(corpus.iterdir())]
    assert [text for part in found for text in part] == [*dict.fromkeys(text for part in texts for text in part)]
