"""The command `heed`: which verbs are there, and how does each end?

Verbs import what they need when they run, so that `--help` is quick. An error for a person is one screen on
stderr and an exit code; `--debug` shows the traceback.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from heed.cli import (
    average,
    compress,
    data,
    decompress,
    demo,
    evaluate,
    export,
    generate,
    import_model,
    info,
    inspect,
    score,
    serve,
    tokenizer,
    train,
    translate,
    translate_file,
)
from heed.core.environment import let_waiting_threads_sleep, library_versions
from heed.core.errors import HeedError, StorageError, UsageError
from heed.core.progress import message

READER_GONE = 141
"""What a shell reports for a command that SIGPIPE ended: 128 + 13."""


class Verbs(TyperGroup):
    """The verbs; a reader that has gone (`| head -1`) ends any of them quietly."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader that has gone can still be told from a failure
            return result
        except BrokenPipeError as error:
            _give_up_stdout()
            raise typer.Exit(READER_GONE) from error


_PARTS = " More training data is a part: --part src=F,tgt=F."
_ANOTHER = {"--src": _PARTS, "--tgt": _PARTS, "--pairs": " More training data is a part: --part pairs=F."}


class Verb(TyperCommand):
    """A verb that takes an option once, unless it says that it comes again: no value is lost without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option of one value that came twice."""
        _, _, came = self.make_parser(ctx).parse_args(args=list(args))
        for option in dict.fromkeys(came):
            if came.count(option) > 1 and not (
                option.multiple or option.nargs == -1 or getattr(option, "is_flag", False)
            ):
                name = option.opts[0]
                raise UsageError(f"{name} came {came.count(option)} times and takes one value.{_ANOTHER.get(name, '')}")
        return super().parse_args(ctx, args)


def _give_up_stdout() -> None:
    """What is left in the buffer has nowhere to go, and flushing it at exit must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


RECIPE_KEYS = {"ignore_unknown_options": True}
"""Flags that `heed train`, `heed translate` and `heed translate-file` do not name are keys of the recipe."""

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
app.command("train", cls=Verb, context_settings=RECIPE_KEYS)(train.train)
app.command("demo", cls=Verb)(demo.demo)
app.command("translate", cls=Verb, context_settings=RECIPE_KEYS)(translate.translate)
app.command("translate-file", cls=Verb, context_settings=RECIPE_KEYS)(translate_file.translate_file)
app.command("generate", cls=Verb)(generate.generate)
app.command("score", cls=Verb)(score.score)
app.command("evaluate", cls=Verb)(evaluate.evaluate)
app.command("compress", cls=Verb)(compress.compress)
app.command("decompress", cls=Verb)(decompress.decompress)
app.command("average", cls=Verb)(average.average)
app.command("export", cls=Verb)(export.export)
app.command("import", cls=Verb)(import_model.import_model)
app.command("info", cls=Verb)(info.info)
app.command("inspect", cls=Verb)(inspect.inspect)
app.command("serve", cls=Verb)(serve.serve)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print versions and exit.")) -> None:
    """Train, evaluate, explain and serve your own sequence models."""
    if version:
        print("  ".join(f"{name} {number}" for name, number in library_versions().items()))
        raise typer.Exit()


def main() -> None:
    """Run the command line and exit with its code."""
    let_waiting_threads_sleep()
    try:
        app(prog_name="heed")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        explanation, code = _explained(error)
        message(f"error: {explanation}")
        sys.exit(code)


def _explained(error: Exception) -> tuple[str, int]:
    """What a person reads of an error, and the exit code."""
    if isinstance(error, HeedError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        _give_up_stdout()  # it may be stdout that cannot be written
        place = f" ({error.filename})" if error.filename else ""
        return f"reading or writing failed: {error.strerror or error}{place}.", StorageError.exit_code
    advice = "heed did not foresee this. Run it again with --debug and report what it shows."
    return f"{type(error).__name__}: {error}\n{advice}", HeedError.exit_code
