"""Conformance to the OpenAPI description under generated requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from serving import Live

# Languages without a model between them, and files of other types, are refused though each field is valid.
REFUSED = "positive_data_acceptance"


def problems(live: Live, folder: Path, *flags: str) -> str:
    """The report of `schemathesis`; empty if it finds no problem."""
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    command = [sys.executable, "-c", program, "run", f"{live.url}/openapi.json", "--exclude-checks", REFUSED, *flags]
    result = subprocess.run([*command, "--seed", "1"], capture_output=True, text=True, check=False, cwd=folder)
    assert "cases" in result.stdout, result.stdout + result.stderr
    return result.stdout if result.returncode else ""


def test_a_few_generated_requests_get_documented_answers(live: Live, tmp_path: Path) -> None:
    report = problems(live, tmp_path, "--max-examples", "2", "--phases", "fuzzing")
    assert not report, report
    assert '"level": "error"' not in live.log.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_generated_requests_get_documented_answers(live: Live, tmp_path: Path) -> None:
    report = problems(live, tmp_path, "--max-examples", "50")
    assert not report, report
