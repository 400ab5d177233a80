"""The reference page of the Python API: it lists every parameter of its functions and every attribute of a result."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import heed
from heed.decoding.hypothesis import Hypothesis

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
SECTIONS: dict[str, str] = dict(re.findall(r"^#+ ([^\n]+)\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S))


@pytest.mark.parametrize("name", ["evaluate", "load", "train"])
def test_the_page_lists_the_parameters_of_a_function(name: str) -> None:
    section = SECTIONS[f"heed.{name}"]
    missing = [each for each in inspect.signature(getattr(heed, name)).parameters if f"`{each}`" not in section]
    assert not missing


def test_the_page_lists_the_attributes_of_a_hypothesis() -> None:
    section = SECTIONS["Hypothesis"]
    assert not [field.name for field in fields(Hypothesis) if f"`{field.name}`" not in section]
