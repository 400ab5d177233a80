"""A training killed at any moment resumes as if nothing had happened; a short form of benchmarks/kill.py."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from forked import Program, script

SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "kill.py"


def number(name: str, table: str) -> int:
    """The number in a row of the script's table."""
    found = re.search(rf"^\| {re.escape(name)}.* \| ([\d,]+) \|$", table, re.MULTILINE)
    assert found, table
    return int(found[1].replace(",", ""))


def run(*arguments: str) -> str:
    """The table that the script prints."""
    with Program(script, SCRIPT, *arguments) as program:
        out, err = (pipe.decode() for pipe in program.output(timeout=3600))
    assert program.poll() == 0, out + err
    return out


@pytest.mark.skipif(sys.platform != "linux", reason="forks and waits as Linux does")
def test_a_training_killed_at_random_moments_ends_as_if_nothing_had_happened() -> None:
    table = run("--kills", "4", "--during-save", "1")
    assert number("kills", table) >= 4
    assert number("... during a save", table) >= 1
    assert number("checkpoints left by kills", table) > 0
    assert number("... of which written again after a kill", table) > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks and waits as Linux does")
def test_a_hundred_kills_change_nothing() -> None:
    table = run("--kills", "100", "--seed", "2")
    assert number("... during a save", table) >= 25


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks and waits as Linux does")
def test_when_one_of_two_ranks_is_killed_the_other_reports_it_and_both_resume() -> None:
    table = run("--kills", "5", "--ranks", "2", "--during-save", "0")
    assert number("kills", table) >= 5
    assert number("ranks that a killed one left alone", table) >= 4
    assert number("seconds from a kill to the end of all ranks", table) <= 15
