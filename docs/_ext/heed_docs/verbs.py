"""Reference of a verb: its usage, arguments and flags with their defaults, and its help, from the parser itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from heed.cli.main import command_line
from heed_docs.markdown import code, escaped, table

_VALUES = {"str": "TEXT", "path": "PATH", "int": "N", "int range": "N", "float": "X", "float range": "X"}
"""What the value of an option without a name of its own is called, by its type."""


def verbs() -> dict[str, Any]:
    """Every verb by its full name, such as `tokenizer train`."""

    def below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield name, command
        else:
            for key, value in command.commands.items():
                yield from below(value, f"{name} {key}".strip())

    return dict(below(command_line(), ""))


def verb_list() -> str:
    """A table of all verbs, each with its page and the first sentence of its help."""
    rows = [
        (f"[`heed {name}`]({page_of(name)})", escaped(command.help.partition("\n\n")[0]))
        for name, command in verbs().items()
    ]
    return table(("command", "what it does"), rows)


def page_of(name: str) -> str:
    """The page of a verb, seen from docs/commands.md."""
    return f"commands/{name.replace(' ', '-')}.md"


def verb_markdown(name: str) -> str:
    """The reference of the verb of this name."""
    command = verbs()[name]
    context = typer.Context(command, info_name=f"heed {name}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    text, examples = _described(command.help)
    heading = "Examples:" if "\n" in examples else "Example:"
    parts = [text, f"```text\n{usage}\n```", heading, f"```text\n{examples}\n```"]
    for heading, kind in (("argument", "argument"), ("flag", "option")):
        shown = [each for each in command.params if each.param_type_name == kind and "--help" not in each.opts]
        if shown:
            rows = [(_named(each, context), *_explained(each, context)) for each in shown]
            parts.append(table((heading, "meaning", "default"), rows))
    return "\n\n".join(parts)


def _described(text: str) -> tuple[str, str]:
    """The paragraphs of a help text, and its examples."""
    prose, examples = re.split(r"^Examples?:\n", text, flags=re.M)
    commands = [line.strip() for line in examples.splitlines() if line]
    return "\n\n".join(map(escaped, prose.strip().split("\n\n"))), "\n".join(commands)


def _named(parameter: Any, context: Any) -> str:
    """`--beam N`; `-q`, `--quiet`; the name of an argument."""
    if parameter.param_type_name == "argument":
        return code(parameter.metavar)
    names = sorted((*parameter.opts, *parameter.secondary_opts), key=len)
    kind = re.sub(r"^list\[(.*)\]$", r"\1", parameter.display_type(context).strip("<>"))
    value = "" if parameter.is_flag else " " + (parameter.metavar or _VALUES.get(kind, kind))
    return ", ".join(code(each) for each in [*names[:-1], names[-1] + value])


def _explained(parameter: Any, context: Any) -> tuple[str, str]:
    """The help of a parameter with its bounds, and its default, as `--help` shows them."""
    text, _, extra = str(parameter.get_help_record(context)[1]).partition("  [")
    notes = extra.removesuffix("]").split("; ")
    default = "".join(note.removeprefix("default: ") for note in notes if note.startswith("default: "))
    words = [_in_words(note) for note in notes if re.search(r"x[<>]=|<=x", note)]
    words += ["Repeatable."] if parameter.multiple and "repeatable" not in text else []
    return " ".join([escaped(text), *words]), "required" if "required" in notes else escaped(default)


def _in_words(bounds: str) -> str:
    """`x>=1` or `0<=x<=9`, as a sentence."""
    if both := re.fullmatch(r"(\S+)<=x<=(\S+)", bounds):
        return f"From {both[1]} to {both[2]}."
    return bounds.replace("x>=", "At least ").replace("x<=", "At most ") + "."
