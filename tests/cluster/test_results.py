"""What a cluster does about tasks that fail and workers that are lost. Ray is replaced; test_ray.py has a real one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from heed.cluster.ray_cluster import Cluster
from heed.core import environment
from heed.core.errors import HeedError


class RayError(Exception):
    """The base of Ray's errors."""


class RayTaskError(RayError):
    """A function raised an exception; the message ends with it."""


class WorkerCrashedError(RayError):
    """All workers that tried were lost."""


class Ray:
    """A Ray with a processor, that computes a task when its result is asked for."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1}}]

    def cluster_resources(self) -> dict[str, int]:
        return {"CPU": 1}

    def put(self, value: object) -> object:
        return value

    def remote(self, **settings: Any) -> Callable[[Callable[..., object]], Any]:
        self.settings = settings
        return lambda function: SimpleNamespace(remote=partial(partial, function))

    def wait(self, references: Sequence[Any], num_returns: int, timeout: float) -> tuple[Sequence[Any], list[Any]]:
        return references[:1], []

    def get(self, reference: Callable[[], object]) -> object:
        return reference()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    """The replacement."""
    fake = Ray()
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
    monkeypatch.setattr(environment, "keep_ray_private", lambda is_local: None)
    return fake


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (WorkerCrashedError("The worker died."), "6 workers died while computing it"),
        (RayTaskError("Traceback:\n  a line\nValueError: no"), "ValueError: no"),
    ],
)
def test_a_part_that_costs_six_workers_or_fails_ends_the_command_with_its_name(
    ray: Ray, error: RayError, reason: str
) -> None:
    def work(part: int, added: int) -> int:
        if part == 2:
            raise error
        return part + added

    tasks = {f"part {number} of a.parquet": {"part": number} for number in (1, 2, 3)}
    results = Cluster("", quiet=True).results(tasks, work, {"added": 10})
    assert next(results) == ("part 1 of a.parquet", 11)
    with pytest.raises(HeedError) as raised:
        next(results)
    assert str(raised.value) == f"part 2 of a.parquet: {reason}. The same command continues with what is left."
    assert ray.settings["max_retries"] == 5
