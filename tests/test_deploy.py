"""The files of deploy/: they fit the package and the server, and run it without privileges."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import which
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
    assert "--start-period=10m" in check, "a slow machine may take long to run each model once"
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


def test_the_server_may_have_a_thread_for_each_request_in_progress() -> None:
    from heed.serve.limits import Limits

    needed = 2 * Limits().queue
    assert int(unit()["TasksMax"]) > needed
    assert compose()["services"]["heed"]["pids_limit"] > needed


def test_the_files_that_are_read_at_once_fit_into_the_memory_of_the_unit_and_the_container() -> None:
    from heed.serve.engine.document_processes import MEMORY, files_at_once

    assert (unit()["MemoryMax"], compose()["services"]["heed"]["mem_limit"]) == ("4G", "4g")
    allowed = 4 << 30
    assert files_at_once(allowed) * MEMORY <= allowed - MEMORY, "the server needs memory, too"
    [number] = re.findall(r"(\w+) files at once in 4 GB", (ROOT / "docs" / "deploying.md").read_text())
    assert number == {3: "three"}[files_at_once(allowed)]


def test_the_unit_outlives_a_process_that_the_system_ends_when_memory_runs_out() -> None:
    assert unit()["OOMPolicy"] == "continue"


def complaints(text: str, folder: Path) -> list[str]:
    """What systemd says of a unit, whose programs are replaced by one that exists here."""
    path = folder / "heed.service"
    path.write_text(re.sub(r"^(Exec\w+=)\S+", rf"\g<1>{sys.executable}", text, flags=re.MULTILINE))
    verify = ["systemd-analyze", "verify", "--man=no", str(path)]
    checked = subprocess.run(verify, capture_output=True, text=True, check=False)
    return [line for line in checked.stderr.splitlines() if path.name in line]  # others are about units of the machine


@pytest.mark.skipif(not which("systemd-analyze"), reason="systemd-analyze is not installed (Debian package systemd)")
def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "heed.service").read_text()
    assert complaints(text, tmp_path) == []
    [unknown] = complaints(text.replace("ProtectClock=", "ProtectClocks="), tmp_path)
    assert "ProtectClocks" in unknown
    [malformed] = complaints(text.replace("TimeoutStopSec=40", "TimeoutStopSec=forty"), tmp_path)
    assert "forty" in malformed


def torchrun_commands() -> dict[str, list[str]]:
    """The words after `torchrun` in the recipes of trainings on several machines."""
    [job] = (each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()) if each["kind"] == "Job")
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["torchrun"]
    script = re.sub(r"\\\n", " ", (DEPLOY / "slurm.sbatch").read_text())
    [line] = re.findall(r"^srun .*? torchrun (.*) &$", script, re.MULTILINE)
    return {"kubernetes.yaml": container["args"], "slurm.sbatch": shlex.split(line)}


@pytest.mark.parametrize("file", ["kubernetes.yaml", "slurm.sbatch"])
def test_trainings_on_several_machines_are_restarted_with_options_that_exist(file: str) -> None:
    from torch.distributed.run import get_args_parser

    from heed.cli.main import app

    words = torchrun_commands()[file]
    place = words.index("-m")
    assert words[place : place + 3] == ["-m", "heed", "train"] and "--restartable" in words[place:]
    options = get_args_parser().parse_args([re.sub(r"\$\S+", "2", word) for word in words[:place]] + ["script"])
    assert options.max_restarts and options.rdzv_backend == "c10d" and options.shutdown_timeout >= 60
    command: Any = get_command(app)
    known = {option for parameter in command.get_command(None, "train").params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words[place + 3 :] if word.startswith("--")} <= known


def test_the_script_for_slurm_is_valid_and_leaves_time_to_save() -> None:
    script = DEPLOY / "slurm.sbatch"
    checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    [seconds] = re.findall(r"^#SBATCH --signal=B:TERM@(\d+)$", script.read_text(), re.MULTILINE)
    [patience] = re.findall(r"--shutdown-timeout=(\d+)", script.read_text())
    assert int(seconds) > int(patience)


def test_pods_that_train_have_no_rights_and_meet_at_the_first() -> None:
    service, job = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    name = job["metadata"]["name"]
    assert job["spec"]["completionMode"] == "Indexed" and job["spec"]["completions"] == job["spec"]["parallelism"]
    assert service["spec"]["selector"] == {"job-name": name} and pod["subdomain"] == service["metadata"]["name"]
    assert f"--rdzv-endpoint={name}-0.{pod['subdomain']}:29400" in container["args"]
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    [patience] = [int(word.split("=")[1]) for word in container["args"] if word.startswith("--shutdown-timeout=")]
    assert pod["terminationGracePeriodSeconds"] > patience


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
