"""Conformance to the OpenAPI description, under generated requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from serving import Live

# Languages that have no model between them, and a file of another kind, are refused though each field is right.
REFUSED = "positive_data_acceptance"


def problems(live: Live, folder: Path, *flags: str) -> str:
    """What `schemathesis` prints when it finds something; nothing when it does not."""
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    command = [sys.executable, "-c", program, "run", f"{live.url}/openapi.json", "--exclude-checks", REFUSED, *flags]
    result = subprocess.run([*command, "--seed", "1"], capture_output=True, text=True, check=False, cwd=folder)
    assert "cases" in result.stdout, result.stdout + result.stderr
    return result.stdout if result.returncode else ""


def test_a_few_odd_requests_meet_no_server_error_and_nothing_undocumented(live: Live, tmp_path: Path) -> None:
    found = problems(live, tmp_path, "--max-examples", "2", "--phases", "fuzzing")
    assert not found, found
    assert '"level": "error"' not in live.log.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_odd_requests_meet_no_server_error_and_nothing_undocumented(live: Live, tmp_path: Path) -> None:
    found = problems(live, tmp_path, "--max-examples", "50")
    assert not found, found
