"""The files of deploy/: they fit the package and the server, and run it without privileges."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their arguments, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "heed.service")
    return parser["Service"]


def commands() -> dict[str, list[str]]:
    """The arguments of `heed` in each file."""
    [cmd] = (rest for name, rest in dockerfile() if name == "CMD")
    return {
        "Dockerfile": yaml.safe_load(cmd),
        "compose.yaml": compose()["services"]["heed"]["command"],
        "heed.service": shlex.split(unit()["ExecStart"])[1:],
    }


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "heed.service"])
def test_the_server_is_started_with_options_that_it_has(file: str) -> None:
    from heed.cli.main import app

    verb, *arguments = commands()[file]
    command: Any = get_command(app)
    serve = command.get_command(None, verb)
    known = {option for parameter in serve.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("--")} <= known


def test_the_image_is_made_of_files_that_exist_and_are_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for name, rest in dockerfile()
        if name == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }  # fmt: skip
    copied = {source.removeprefix("./") for source in copied}
    assert copied == sent
    assert all((ROOT / source).exists() for source in copied)


def test_the_image_installs_the_pinned_versions_and_runs_as_a_user_without_rights() -> None:
    instructions = dockerfile()
    installs = [rest for name, rest in instructions if name == "RUN" and "pip install" in rest]
    assert installs and all("-c constraints.txt" in rest for rest in installs)
    users = [rest for name, rest in instructions if name == "USER"]
    assert users and not users[-1].startswith(("0", "root"))
    [ports] = [rest for name, rest in instructions if name == "EXPOSE"]
    [check] = [rest for name, rest in instructions if name == "HEALTHCHECK"]
    assert f":{ports}/ready" in check
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "serve" in extras and any(".[serve]" in rest for rest in installs)


def test_containers_have_no_rights_and_time_to_finish() -> None:
    server = compose()["services"]["heed"]
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
    assert all(volume["read_only"] for volume in server["volumes"])
    assert "ports" not in server, "only the proxy is reached from outside"
    assert int(server["stop_grace_period"].removesuffix("s")) > 30
    assert all(service["security_opt"] == ["no-new-privileges:true"] for service in compose()["services"].values())


def test_the_unit_has_no_rights_and_time_to_finish() -> None:
    service = unit()
    assert int(service["TimeoutStopSec"]) > 30
    assert service["CapabilityBoundingSet"] == ""
    assert {service[name] for name in ("DynamicUser", "NoNewPrivileges", "PrivateTmp", "ProtectHome")} == {"yes"}
    assert service["ProtectSystem"] == "strict"


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_the_workflow_of_a_release_runs_the_tests_and_targets_that_exist() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    [job] = workflow["jobs"].values()
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert ".ci/run" in runs
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {run.removeprefix("make ") for run in runs if run.startswith("make ")} <= targets
    assert workflow["permissions"] == {}
