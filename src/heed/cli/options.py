"""Options that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.core.environment import num_threads
from heed.core.errors import UsageError
from heed.core.progress import warn

if TYPE_CHECKING:
    from heed.decoding.options import SearchOptions
    from heed.tasks.predictor import Predictor

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, made by heed train.")]
Threads = Annotated[int, typer.Option(help="CPU threads (0: one for each CPU).", min=0)]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
ForceText = Annotated[
    bool,
    typer.Option(
        "--force", help="Train despite errors the data doctor found, and on text that looks like the other language."
    ),
]
FloatKind = Literal["float32", "bfloat16"]
Precision = Annotated[
    Literal["float32", "bfloat16", "int8"],
    typer.Option(help="float32 or bfloat16; on a CPU also int8 (for beam 1).", metavar="KIND"),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the random numbers.", min=0)]
OnBadBytes = Literal["strict", "replace"]
BadBytes = Annotated[OnBadBytes, typer.Option("--errors", help="Invalid UTF-8: stop, or read it as U+FFFD.")]
SrcColumn = Annotated[str | None, typer.Option(help="Source column of a table (number or name).")]
TgtColumn = Annotated[str | None, typer.Option(help="Target column of a table (number or name).")]
TokenColumn = Annotated[str | None, typer.Option(help="CoNLL column of the tokens (number or name).")]
TagColumn = Annotated[str | None, typer.Option(help="Tag column (default: the last; in CoNLL-U, upos).")]
MarkColumn = Annotated[
    str | None,
    typer.Option(help="Column of an additional input, such as the predicate or the part of speech."),
]
Tag = Annotated[str | None, typer.Option(help="Tag to put before each source (for a tagged run).")]
Glossary = Annotated[Path | None, typer.Option(help="TSV of source terms and their required translations.")]
Ensemble = Annotated[list[Path] | None, typer.Option(metavar="RUN", help="Add a run to the ensemble.")]
Engine = Annotated[
    Literal["auto", "torch", "ctranslate2"] | None,
    typer.Option(help="auto, torch or ctranslate2.", metavar="KIND"),
]
Unknown = Literal["never", "keep", "replace"]
Beam = Annotated[int | None, typer.Option("--beam", help="Beam size (default: the recipe's).", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]

NO_LANGUAGES = {
    "bpe", "csv", "dat", "dev", "hyp", "low", "lst", "out", "raw", "ref", "spm", "src", "tgt", "tmx", "tok", "trg",
    "tsv", "txt", "val",
}  # fmt: skip
"""Suffixes of file names that look like language codes but are not."""

_WITH_REGION = re.compile(
    "[a-z]{2,3}[-_](?:[A-Z]{2}|Latn|Cyrl|Arab|Deva|Hans|Hant|Jpan|Hang|Ethi|Beng|Thai|Khmr|Laoo|Mymr)"
)
"""`zh-CN`, `jpn_Jpan`."""
_UNITS = {"": 1.0, "s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}


@dataclass(frozen=True)
class BeamFlags:
    """Changes of the search options of a recipe, by their keys."""

    beam_size: Beam = None
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.", min=0)] = None
    unknown: Annotated[
        Unknown | None,
        typer.Option(help="Unknown words: never, keep (<unk>), replace.", metavar="HOW"),
    ] = None
    dictionary: Annotated[Path | None, typer.Option(metavar="F", help="TSV of translations for --unknown replace.")] = (
        None
    )


@dataclass(frozen=True)
class CombinationFlags:
    """The tag of the source, further runs of an ensemble, a translation memory, and the engine that translates."""

    tag: Tag = None
    ensemble: Ensemble = None
    memory: Annotated[
        Path | None, typer.Option(help="A translation memory, whose similar sentences guide the translation.")
    ] = None
    engine: Engine = None


@dataclass(frozen=True)
class Compute:
    """Device, threads and arithmetic of a model."""

    precision: Precision = "float32"
    threads: Annotated[
        int, typer.Option(help="CPU threads (0: one for each CPU, unless a single one is faster).", min=0)
    ] = 0
    device: Device = "cpu"

    def load(self, folder: Path, *, searches_in_threads: bool = False, **combined: Any) -> Predictor:
        """Open a run folder, and set the number of threads in a product: the fastest for this model.

        With a given number it is that one, except for a translator, which translates several batches at once instead.
        Where CTranslate2 does nearly all of the work, as for translators and for what scores phrases, one: PyTorch
        searches only a few lines, and on a busy machine its threads would wait for each other for longer than all the
        rest takes. Also one where an engine `searches_in_threads`, as in a server: in each of them, the others of an
        ensemble score what it finds.
        """
        from heed.nn.device import faster_threads

        use_threads(self.threads)
        predictor = self.open_run(folder, **combined)
        runs = [predictor.run, *predictor.combined.others]
        translates_itself = predictor.can("translate") and predictor.engine is not None
        if translates_itself and (searches_in_threads or all(run.predictor.engine is not None for run in runs[1:])):
            use_threads(1)
        elif not self.threads or predictor.can("translate"):
            models = [run.blank_model for run in runs]
            measured = next((model for model in models if not model.count_based), models[0])  # counts need no threads
            use_threads(faster_threads(measured, self.threads or num_threads()))
        return predictor

    def open_without_pytorch(self, ability: str, folder: Path, engine: str | None, tag: str | None = None) -> Any:
        """Open a run for this use without PyTorch, whose import takes seconds; None if it must be opened in full."""
        from heed.core.allocator import keep_freed_memory
        from heed.tasks import open_without_pytorch

        if self.device != "cpu":
            return None
        keep_freed_memory()
        return open_without_pytorch(ability, folder, tag, self.precision, engine or "auto", self.threads)

    def open_run(self, folder: Path, **combined: Any) -> Predictor:
        """Open a run folder, and leave the number of threads as it is."""
        import heed

        return heed.load(folder, self.device, self.precision, num_workers=self.threads, **combined)


def warn_if_not_usable(loaded: Any, quiet: bool) -> None:
    """Warn about a run whose validation scores are too bad for any use."""
    if loaded.not_usable:
        warn(f"{loaded.folder}: {loaded.not_usable}.", quiet)


def use_threads(threads: int) -> None:
    """Compute with this many CPU threads (0: all cores). Only the command line sets this; the library does not."""
    from heed.nn.device import set_threads

    set_threads(threads or num_threads())


def parse_minutes(text: str) -> float:
    """Read `90s`, `30m`, `2h`, `1d`, or a number of minutes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--max-time takes a duration such as 90s, 30m or 2h, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]


def language_of(name: str) -> str:
    """The language in the name of a file, `de` for `train.de.gz` and `train.de.txt`; empty if it has none."""
    from heed.text.language.codes import code_of

    stem, *rest = Path(name).name.split(".")
    suffixes = [part for part in rest if part not in ("gz", "xz", "zst")]
    candidates = [suffix for suffix in suffixes if suffix.lower() not in NO_LANGUAGES][-1:]
    is_code = bool(candidates) and re.fullmatch("[A-Za-z]{2,3}", candidates[0]) is not None
    if is_code and (candidates == suffixes[-1:] or code_of(candidates[0])):
        return candidates[0].lower()
    with_region = (part for part in (*candidates, stem) if _WITH_REGION.fullmatch(part))
    return next((part for part in with_region if code_of(part)), "")


def require_writable(path: Path | None, flag: str = "--out") -> None:
    """Raise UsageError for a path that cannot become a file; checked before the work, which may take long."""
    if path is not None and (not path.absolute().parent.is_dir() or (path.exists() and not path.is_file())):
        raise UsageError(f"{flag} {path}: name a file in an existing folder.")


def merge_keys(keys: Mapping[str, object], flags: Mapping[str, object], table: str = "") -> dict[str, object]:
    """Join keys that were given as `--KEY=VALUE` and those of other flags. Raises UsageError for one that is in both.

    `table`: what is missing before each key, such as `decoding.`.
    """
    if twice := sorted(keys.keys() & flags.keys()):
        raise UsageError(f"--{table}{twice[0]} and the option for the same key were both given: leave one of them out.")
    return {**keys, **flags}


def search_options(recipe: SearchOptions, given: Mapping[str, object]) -> SearchOptions:
    """The recipe's search options, changed by those of the command line; None means not given."""
    from heed.core.config import Document, build
    from heed.decoding.options import SearchOptions

    changes = {name: value for name, value in given.items() if value is not None}
    if isinstance(dictionary := changes.get("dictionary"), Path):
        changes["dictionary"] = str(dictionary)
    beam_size = changes.get("beam_size")
    values = {**recipe.model_dump(), **changes}
    if "dictionary" not in changes and values["unknown"] != "replace":
        values["dictionary"] = ""  # the recipe's translates words that are no longer replaced
    if "beam_size" not in changes and isinstance(values["nbest"], int):  # --nbest alone widens the beam
        values["beam_size"] = max(values["beam_size"], values["nbest"])
    if "diversity" not in changes and values["nbest"] == 1 and not values["mbr"]:
        values["diversity"] = 0.0  # a single hypothesis has none to differ from
    options = build(SearchOptions, Document(values))
    if not isinstance(beam_size, int) or options.sample or "candidates" in changes:
        return options
    if options.nbest > beam_size or (beam_size == 1 and changes.get("mbr")):
        least = max(2, options.nbest)
        raise UsageError(f"--beam {beam_size} is too small for these options; it must be at least {least}.")
    return options.model_copy(update=options.of_beam(beam_size))
