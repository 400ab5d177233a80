"""`heed generate`: continue prompts with a language model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.flags import flags_given
from heed.cli.options import BadBytes, Compute, Engine, Ensemble, Json, Quiet, RunFolder, warn_if_not_usable
from heed.core.environment import is_terminal
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.options import SearchOptions


@dataclass(frozen=True)
class PromptFlags:
    """Prompts, and the number of continuations of each."""

    prompt: Annotated[list[str] | None, typer.Option(help="Text to continue (repeatable).")] = None
    prompts: Annotated[Path | None, typer.Option(help="File with a prompt per line; - is stdin.")] = None
    samples: Annotated[int, typer.Option(help="Number of continuations of each prompt.", min=1)] = 1

    def read(self, errors: Any) -> Iterator[Sequence[str]]:
        """Yield the prompts of the command line, then those of the file as they come; without any, an empty one."""
        from heed.cli.stdio import groups_as_they_come
        from heed.decoding.options import SearchOptions
        from heed.text.readers import read_lines

        if self.prompt or self.prompts is None:
            yield self.prompt or [""]
        if self.prompts is not None and str(self.prompts) == "-":
            yield from groups_as_they_come(errors, max_lines=SearchOptions().batch_size)
        elif self.prompts is not None:
            yield from ([line] for line in read_lines(self.prompts, errors))


@dataclass(frozen=True)
class SamplingFlags:
    """Options of sampling; the defaults are those of the recipe."""

    temperature: Annotated[float | None, typer.Option(help="Below 1 is sharper, above 1 flatter.")] = None
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest tokens (0: all).", min=0)] = None
    top_p: Annotated[float | None, typer.Option(help="Only the likeliest tokens of this total mass.")] = None


@dataclass(frozen=True)
class LimitFlags:
    """The end of a continuation, and how it is searched."""

    max_tokens: Annotated[
        int | None, typer.Option(help="Maximum number of tokens (default: the recipe's, or 200).", min=1)
    ] = None
    stop: Annotated[list[str] | None, typer.Option(help="End before this text (repeatable).")] = None
    beam: Annotated[int, typer.Option(help="Beam search instead of sampling (1: greedy).", min=0)] = 0
    seed: Annotated[
        int | None, typer.Option(help="Seed of the sampling (default: the recipe's); not with --beam.", min=0)
    ] = None


def generate(
    *,
    run: RunFolder,
    prompts: PromptFlags,
    sampling: SamplingFlags,
    limits: LimitFlags,
    ensemble: Ensemble = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print a text while it grows, as on a terminal.")] = False,
    json_lines: Json = False,
    errors: BadBytes = "strict",
    engine: Engine = None,
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Continue prompts with a language model.

    Without a prompt a new text begins. On a terminal a text is shown as it grows. A model of lines generates one line;
    a model of running text stops at --max-tokens or --stop, or with --beam at the end of the line. --json shows the
    probability of each token. Other options come from [decoding] in the run's recipe.toml.

    Examples:

      heed generate runs/shakespeare --prompt "JULIET:" --temperature 0.8 --top-k 50 --max-tokens 500

      heed generate runs/bigram --prompts lines.txt --samples 3 --json
    """
    from heed.cli.output import TextOutput

    _check(prompts, sampling, limits)
    if stream and (json_lines or prompts.samples > 1 or limits.beam > 1):
        raise UsageError("--stream prints a single text: leave out --json, --samples and --beam.")

    def options_of(loaded: Any) -> SearchOptions:
        options: SearchOptions = loaded.decoding.of_text(
            sample=limits.beam == 0, beam_size=limits.beam or 1, nbest=prompts.samples, max_tokens=limits.max_tokens,
            seed=limits.seed, stop=tuple(limits.stop) if limits.stop else None, **vars(sampling),
        )  # fmt: skip
        return options

    show = (stream or is_terminal(sys.stdout)) and max(limits.beam, prompts.samples) == 1 and not json_lines
    loaded: Any = None
    if limits.beam == 1 and not (show or ensemble):
        loaded = compute.open_without_pytorch("generate", run, engine)
    if loaded is None or not loaded.engine.can_search(options_of(loaded)):
        loaded = compute.load(run, ensemble=ensemble or (), engine=engine or "auto")
        loaded.require("generate")
    loaded.data.require_forward()
    warn_if_not_usable(loaded, quiet)
    options = options_of(loaded)
    output = TextOutput(loaded, options, json_lines)
    for group in prompts.read(errors):
        if show:
            output.show(group)
        else:
            output.write(group)


def _check(prompts: PromptFlags, sampling: SamplingFlags, limits: LimitFlags) -> None:
    """Raise UsageError for options that cannot be combined."""
    of_sampling = [*flags_given(sampling), *["--seed"] * (limits.seed is not None)]
    if limits.beam and of_sampling:
        raise UsageError(f"{', '.join(of_sampling)} cannot be combined with --beam, which does not sample.")
    if limits.beam > 1 and limits.stop:
        raise UsageError("--stop needs sampling or --beam 1: a wider beam compares whole lines.")
    if 0 < limits.beam < prompts.samples:
        raise UsageError(f"--samples {prompts.samples} needs --beam {prompts.samples} or more, got {limits.beam}.")
