"""The audit of dependencies: licences, advisories, and lower bounds of versions."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from email.message import Message
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "benchmarks" / "audit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


audit = _loaded()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = {
    str(requirement): requirement
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for requirement in map(Requirement, group)
    if requirement.name != "heed"
}
PINNED = {
    canonicalize_name(name): Version(version)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
    for name, _, version in [line.partition("==")]
}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT AND Apache-2.0", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND (Apache-2.0 OR GPL-3.0-only)", False),
        ("(MIT OR ISC) AND BSD-3-Clause", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH another-exception", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_allowed_licences_suffice(expression: str, allowed: bool) -> None:
    assert audit.is_allowed(expression) == allowed


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "something else")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: BSD License"), ("License", "a\nlong\ntext")], "BSD-3-Clause"),
        ([("Classifier", "License :: OSI Approved"), ("License", "Apache 2.0")], "Apache-2.0"),
        ([("License", "Somebody's own")], "Somebody's own"),
        ([("License", "a\nlong\ntext")], ""),
        ([], ""),
    ],
)
def test_the_licence_is_that_of_the_metadata(fields: list[tuple[str, str]], licence: str) -> None:
    about = Message()
    for name, value in fields:
        about[name] = value
    assert audit.licence_of("a-package", about) == licence


def test_a_missing_or_refused_dependency_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Message()
    other["License-Expression"] = "GPL-3.0-only"
    packages = {
        "a": SimpleNamespace(requires=["b", "c; extra == 'more'", "d; extra == 'less'"], metadata=other, version="1"),
        "b": SimpleNamespace(requires=["a[more]"], metadata=metadata.metadata("numpy"), version="2"),
    }

    def distribution(name: str) -> Any:
        if name not in packages:
            raise metadata.PackageNotFoundError
        return packages[name]

    monkeypatch.setattr(metadata, "distribution", distribution)
    assert audit.licence_problems("a") == ["a 1: GPL-3.0-only", "c: not installed, so its licence is not known"]


@pytest.mark.parametrize(
    ("stdout", "stderr", "held", "said"),
    [
        ("", "requests.exceptions.ConnectionError: no", True, "No database of advisories"),
        ("", "another failure", False, "another failure"),
        ([{"name": "a", "skip_reason": "unknown"}], "", True, "No database of advisories"),
        ([{"name": "a", "version": "1", "vulns": []}], "", True, "1 versions looked up, 0 found"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}, {"skip_reason": "b"}],
            "", False, "a 1: X-1, mended in 2\nadvisories: 1 versions looked up, 1 found; the index has no facts",
        ),
    ],
)  # fmt: skip
def test_advisories_are_reported(
    stdout: Any, stderr: str, held: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = stdout and json.dumps({"dependencies": stdout})
    result = SimpleNamespace(stdout=text, stderr=stderr, returncode=int(not held or not text))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: result)
    got, printed = audit.advisories("pip-audit")
    assert got == held
    assert said in printed


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_every_requirement_has_a_lower_bound_that_the_pinned_version_satisfies(text: str) -> None:
    requirement = REQUIREMENTS[text]
    assert any(bound.operator in (">=", "==") for bound in requirement.specifier)
    assert PINNED[canonicalize_name(requirement.name)] in requirement.specifier
