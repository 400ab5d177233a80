"""The reference page of the commands: it has a section for every verb, which lists exactly that verb's flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from heed.cli.main import app

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "commands.md").read_text(encoding="utf-8")
SECTIONS: dict[str, str] = dict(re.findall(r"^## heed ([a-z -]+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*(?![\w.-])")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def verbs(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every verb with its full name, such as `tokenizer train`."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for key, value in command.commands.items():
        yield from verbs(value, f"{name} {key}".strip())


VERBS = dict(verbs(typer.main.get_command(app)))


def test_every_verb_has_a_section() -> None:
    assert sorted(SECTIONS) == sorted(VERBS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_section_lists_the_flags_of_its_verb(verb: str) -> None:
    options = {flag for parameter in VERBS[verb].params for flag in (*parameter.opts, *parameter.secondary_opts)}
    flags = {flag for flag in options if flag.startswith("--") and flag != "--help"}
    listed = set(FLAG.findall(FENCED.sub("", SECTIONS[verb])))
    assert flags <= listed, "flags that docs/commands.md does not list"
    others = {flag for other in VERBS.values() for parameter in other.params for flag in parameter.opts}
    assert listed <= flags | others, "flags that no verb has"
