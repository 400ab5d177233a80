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
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
FloatKind = Literal["float32", "bfloat16"]
Precision = Annotated[
    Literal["float32", "bfloat16", "int8"],
    typer.Option(help="float32, bfloat16; int8 on a CPU, for beam 1.", metavar="KIND"),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.", min=0)]
OnBadBytes = Literal["strict", "replace"]
BadBytes = Annotated[OnBadBytes, typer.Option("--errors", help="Bytes that are not UTF-8: stop, or read U+FFFD.")]
SrcColumn = Annotated[str | None, typer.Option(help="Column of the source in a file of pairs.")]
TgtColumn = Annotated[str | None, typer.Option(help="Column of the target (number or name).")]
Tag = Annotated[str | None, typer.Option(help="Put before each source (of a tagged run).")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

NO_LANGUAGES = {
    "bpe", "csv", "dat", "dev", "hyp", "low", "lst", "out", "raw", "ref", "spm", "src", "tgt", "tmx", "tok", "trg",
    "tsv", "txt", "val",
}  # fmt: skip
"""Endings of file names that look like the code of a language."""

_WITH_REGION = re.compile(
    "[a-z]{2,3}[-_](?:[A-Z]{2}|Latn|Cyrl|Arab|Deva|Hans|Hant|Jpan|Hang|Ethi|Beng|Thai|Khmr|Laoo|Mymr)"
)
"""`zh-CN`, `jpn_Jpan`."""
_UNITS = {"": 1.0, "s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}


def use_threads(threads: int) -> None:
    """Compute with this many CPU threads (0: all cores). Only the command line decides this; the library does not."""
    from heed.core.environment import num_threads
    from heed.nn.device import set_threads

    set_threads(threads or num_threads())


def parse_minutes(text: str) -> float:
    """`90s`, `30m`, `2h`, `1d`, or a number of minutes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--max-time is a time such as 90s, 30m or 2h, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]


def language_of(name: str) -> str:
    """The language that the name of a file tells, `de` for `train.de.gz` and `train.de.txt`; empty: it tells none."""
    from heed.text.language.codes import code_of

    stem, *rest = Path(name).name.split(".")
    suffixes = [part for part in rest if part not in ("gz", "xz", "zst")]
    told = [suffix for suffix in suffixes if suffix.lower() not in NO_LANGUAGES][-1:]
    if told and re.fullmatch("[A-Za-z]{2,3}", told[0]) and (told == suffixes[-1:] or code_of(told[0])):
        return told[0].lower()
    with_region = (part for part in (*told, stem) if _WITH_REGION.fullmatch(part))
    return next((part for part in with_region if code_of(part)), "")


def require_writable(path: Path | None) -> None:
    """Raise UsageError for what cannot become a file: translating takes long."""
    if path is not None and (not path.absolute().parent.is_dir() or (path.exists() and not path.is_file())):
        raise UsageError(f"--out {path}: name a file in a folder that exists.")


def search_options(recipe: SearchOptions, said: Mapping[str, object]) -> SearchOptions:
    """The recipe's search options with what was said on the command line over them; None is what was not said."""
    from heed.core.config import Document, build
    from heed.decoding.options import SearchOptions

    changes = {name: value for name, value in said.items() if value is not None}
    beam_size = changes.get("beam_size")
    options = {**recipe.model_dump(), **changes}
    if "beam_size" not in changes and isinstance(options["nbest"], int):  # who asks for more only has to say so
        options["beam_size"] = max(options["beam_size"], options["nbest"])
    is_alone = options["nbest"] == 1 and not options["mbr"]
    if "diversity" not in changes and is_alone:  # then there is nothing to differ from
        options["diversity"] = 0.0
    found = build(SearchOptions, Document(options))
    if not isinstance(beam_size, int) or found.sample or "candidates" in changes:
        return found
    if found.nbest > beam_size or (beam_size == 1 and changes.get("mbr")):
        least = max(2, found.nbest)
        raise UsageError(f"a beam of {beam_size} is too small for what is asked of it: --beam {least} or more.")
    return found.model_copy(update=found.of_beam(beam_size))
