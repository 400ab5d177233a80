"""The command line `heed`: its verbs, and the exit code and message that each error ends with.

Verbs import what they need when they run, so that `--help` is fast. An error is one screen on stderr and an exit code;
`--debug` shows the traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from heed.cli import (
    align,
    average,
    compress,
    convert,
    data,
    demo,
    distill,
    embed,
    evaluate,
    generate,
    improve,
    info,
    inspect,
    learn,
    memory,
    predict,
    report,
    score,
    serve,
    tokenizer,
    train,
    translate,
    translate_file,
)
from heed.cli.flags import add_verb
from heed.core.environment import let_waiting_threads_sleep, library_versions
from heed.core.errors import HeedError, StorageError
from heed.core.progress import message

BROKEN_PIPE = 141
"""Exit code that a shell reports for a command ended by SIGPIPE: 128 + 13."""


class Verbs(TyperGroup):
    """The verbs, each of which ends silently when the reader of its output has ended (`| head -1`)."""

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
add_verb(app, "train", train.train, has_recipe_keys=True)
add_verb(app, "demo", demo.demo)
add_verb(app, "distill", distill.distill, has_recipe_keys=True)
add_verb(app, "learn", learn.learn, has_recipe_keys=True)
add_verb(app, "improve", improve.improve)
add_verb(app, "translate", translate.translate, has_recipe_keys=True)
add_verb(app, "translate-file", translate_file.translate_file, has_recipe_keys=True)
add_verb(app, "generate", generate.generate)
add_verb(app, "score", score.score)
add_verb(app, "predict", predict.predict)
add_verb(app, "align", align.align)
add_verb(app, "embed", embed.embed)
add_verb(app, "neighbours", embed.neighbours)
add_verb(app, "evaluate", evaluate.evaluate)
add_verb(app, "compress", compress.compress)
add_verb(app, "decompress", compress.decompress)
add_verb(app, "average", average.average)
add_verb(app, "export", convert.export)
add_verb(app, "import", convert.import_model)
add_verb(app, "info", info.info)
add_verb(app, "report", report.report)
add_verb(app, "inspect", inspect.inspect)
add_verb(app, "serve", serve.serve)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")
app.add_typer(memory.app, name="memory")


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
    """All verbs with their options, read from signatures once; typer would read them again at each call."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line and exit with its code."""
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
