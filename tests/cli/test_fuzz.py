"""Properties of the command line for random arguments, input and files; `benchmarks/fuzz.py` tries many more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from properties import PROPERTIES, Subjects
from toy import pairs

CASES = 200
"""In all; 600 with the slow tests."""


@pytest.fixture(scope="module")
def subjects(translator: Path, bigram: Path, tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    """Two runs that learned something, and a folder with a test set."""
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("test.aa", "test.bb"):
        shutil.copy(translator.parent / name, folder / name)
    (folder / "test.csv").write_text("".join(f"{src};{tgt}\n" for src, tgt in pairs(20)), encoding="utf-8")
    return Subjects(folder, translator, bigram)


def test_the_shares_add_up_to_all_cases() -> None:
    assert sum(found.share for found in PROPERTIES.values()) == 100


@pytest.mark.parametrize("cases", [CASES, pytest.param(3 * CASES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_holds_for_any_input(name: str, cases: int, subjects: Subjects) -> None:
    assert PROPERTIES[name].hold(subjects, cases * PROPERTIES[name].share // 100) > 0
