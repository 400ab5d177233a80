"""The command line `heed`: its verbs, and the exit code and message that each error ends with.

The module of a verb is imported when the verb is asked for, and imports what it needs when it runs, so that both a verb
and `--help` start fast. An error is one screen on stderr and an exit code; `--debug` shows the traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple, cast

import typer
from typer.core import TyperGroup

from heed.cli.flags import add_verb
from heed.core.environment import let_waiting_threads_sleep, library_versions
from heed.core.errors import HeedError, StorageError
from heed.core.progress import message

BROKEN_PIPE = 141
"""Exit code that a shell reports for a command ended by SIGPIPE: 128 + 13."""


class Verb(NamedTuple):
    """Where a verb is, and what it does."""

    module: str
    """Module of `heed.cli`, which has a function or a typer app for the verb."""
    summary: str
    """Its line in `heed --help`, for which no module is imported."""
    function: str = ""
    """What the verb is called in its module, unless it is the verb's name with underscores."""


VERBS = {
    "train": Verb("train", "Train a model into a run folder."),
    "demo": Verb("demo", "Train a small translator on a synthetic corpus."),
    "distill": Verb("distill", "Train a student on the translations of its teachers."),
    "learn": Verb("learn", "Train a translator on human corrections."),
    "improve": Verb("improve", "Improve a translator with synthetic pairs."),
    "translate": Verb("translate", "Translate stdin to stdout, line by line."),
    "translate-file": Verb("translate_file", "Translate a whole file, and keep its format."),
    "generate": Verb("generate", "Continue prompts with a language model."),
    "score": Verb("score", "Print the log-probability of each line of stdin."),
    "predict": Verb("predict", "Predict an answer for each line of stdin, or for each image."),
    "align": Verb("align", "Link the words of sentence pairs."),
    "embed": Verb("embed", "Compute a vector for each line of stdin."),
    "neighbours": Verb("embed", "Print the words nearest to a word."),
    "evaluate": Verb("evaluate", "Score runs on test sets, with signatures and intervals."),
    "compress": Verb("compress", "Compress stdin to stdout with a language model."),
    "decompress": Verb("compress", "Decompress stdin to stdout."),
    "average": Verb("average", "Average the newest checkpoints of a run into a new run."),
    "export": Verb("convert", "Write a model in the format of another program."),
    "import": Verb("convert", "Make a run from a model of another program.", "import_model"),
    "info": Verb("info", "Describe a run, or compare several in a table."),
    "report": Verb("report", "Print the report of a run, or write it as one HTML file."),
    "inspect": Verb("inspect", "Show the attention, probabilities and beam of a model."),
    "serve": Verb("serve", "Serve runs over HTTP."),
    "tokenizer": Verb("tokenizer", "Train a tokenizer, or use one as a filter.", "app"),
    "data": Verb("data", "Check data, remove duplicates, and more.", "app"),
    "memory": Verb("memory", "Keep human translations in a memory, and reuse them.", "app"),
}
"""The verbs in the order of `heed --help`."""
WITH_RECIPE_KEYS = {"train", "distill", "learn", "translate", "translate-file"}
"""Verbs that take options with a dot, such as `--model.layers=4`, as keys of a recipe."""


@cache
def command_of(name: str) -> Any:
    """The command of a verb, read from the signature of its function."""
    where = VERBS[name]
    verb = getattr(import_module(f"heed.cli.{where.module}"), where.function or name.replace("-", "_"))
    if isinstance(verb, typer.Typer):
        return typer.main.get_group(verb)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    add_verb(alone, name, verb, has_recipe_keys=name in WITH_RECIPE_KEYS)
    return typer.main.get_command(alone)


class LazyCommands(Mapping[str, Any]):
    """The commands by the names of their verbs; a module is imported when its verb is looked up."""

    def __getitem__(self, name: str) -> Any:
        return command_of(name)

    def __contains__(self, name: object) -> bool:
        return name in VERBS

    def get(self, name: str, default: Any = None) -> Any:
        """The command; `default` for an unknown verb. A KeyError of its module is not caught."""
        return command_of(name) if name in VERBS else default

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Verbs(TyperGroup):
    """The verbs, each of which ends silently when the reader of its output has ended (`| head -1`)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(Any, LazyCommands())

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs."""
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of verbs in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a broken pipe can still be distinguished from other failures
            return result
        except BrokenPipeError as error:
            _discard_stdout()
            raise typer.Exit(BROKEN_PIPE) from error


def _discard_stdout() -> None:
    """Redirect stdout to nowhere, so that flushing it at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="heed",
    help="Train, evaluate, explain and serve your own sequence models.",
    cls=Verbs,
    no_args_is_help=True,
    context_settings={"max_content_width": 110},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print versions and exit.")) -> None:
    """Train, evaluate, explain and serve your own sequence models."""
    if version:
        print("  ".join(f"{name} {number}" for name, number in library_versions().items()))
        raise typer.Exit()


@contextmanager
def _unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a verb as an exception does, so that it removes what it left unfinished.

    A second signal ends it at once. A training, which saves, and a server, which drains, have handlers of their own.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    usual = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]  # not with `nohup`
    try:
        for number in usual:
            signal.signal(number, end)
    except ValueError:  # Python sets handlers in the main thread only
        usual = []
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


@cache
def command_line() -> Any:
    """The group of all verbs."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line and exit with its code."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would search all installed packages for some
    let_waiting_threads_sleep()
    try:
        with _unwinding():
            command_line()(prog_name="heed")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        text, code = _explained(error)
        message(f"error: {text}")
        sys.exit(code)


def _explained(error: Exception) -> tuple[str, int]:
    """The message of an error for the user, and the exit code."""
    if isinstance(error, HeedError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        _discard_stdout()  # stdout itself may be what cannot be written
        place = f" ({error.filename})" if error.filename else ""
        return f"reading or writing failed: {error.strerror or error}{place}.", StorageError.exit_code
    return f"{type(error).__name__}: {error}\nInternal error. Rerun with --debug and report it.", HeedError.exit_code
