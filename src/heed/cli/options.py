"""Options that several verbs share, said once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.options import SearchOptions

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, made by heed train.")]
Threads = Annotated[int, typer.Option(help="CPU threads (0: all cores).", min=0)]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")]
FloatKind = Literal["float32", "bfloat16"]
Precision = Annotated[FloatKind, typer.Option(help="float32 is exact, bfloat16 may be faster.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.", min=0)]
OnBadBytes = Literal["strict", "replace"]
BadBytes = Annotated[OnBadBytes, typer.Option("--errors", help="Bytes that are not UTF-8: stop, or read U+FFFD.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_UNITS = {"": 1.0, "s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}


def parse_minutes(text: str) -> float:
    """`90s`, `30m`, `2h`, `1d`, or a number of minutes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--max-time is a time such as 90s, 30m or 2h, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]


def search_options(recipe: SearchOptions, said: Mapping[str, object]) -> SearchOptions:
    """The recipe's search options with what was said on the command line over them; None is what was not said."""
    from heed.core.config import Document, build
    from heed.decoding.options import SearchOptions

    changes = {name: value for name, value in said.items() if value is not None}
    options = {**recipe.model_dump(), **changes}
    if "beam_size" not in changes:  # who asks for more hypotheses only has to say so
        options["beam_size"] = max(options["beam_size"], options["nbest"])
    return build(SearchOptions, Document(options))
