"""`heed generate`: what a language model says behind a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import BadBytes, Debug, Device, Json, Precision, Quiet, RunFolder, Threads, use_threads
from heed.core.environment import is_terminal
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import SearchOptions
    from heed.tasks.predictor import Predictor

BETWEEN_TEXTS = "---"
"""Between texts that may have several lines each."""


def generate(
    run: RunFolder,
    prompt: Annotated[list[str] | None, typer.Option(help="Text to go on from; may be given again.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="A file of prompts, one a line; - is stdin.")] = None,
    samples: Annotated[int, typer.Option(help="How many continuations of each prompt.", min=1)] = 1,
    temperature: Annotated[float | None, typer.Option(help="Sharper below 1 (the recipe's).")] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest tokens (0: all).", min=0)] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the likeliest tokens of this probability together.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="At most so many tokens (recipe, or 200).", min=1)] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be given again.")] = None,
    beam: Annotated[int, typer.Option(help="Search with this beam instead of drawing (1: greedy).", min=0)] = 0,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same text (the recipe's).", min=0)] = None,
    ensemble: Annotated[list[Path] | None, typer.Option(metavar="RUN", help="Another run to decide with.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show one text as it grows, as on a terminal.")] = False,
    json_lines: Json = False,
    errors: BadBytes = "strict",
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Continue prompts with a language model. Without a prompt a text begins.

    On a terminal a text is shown as it grows. A model of lines says one line; one of a running text as many as
    --max-tokens or --stop let it, but for a beam, which ends with the line. --json tells each token's probability.
    What [decoding] of the run's recipe.toml says of drawing, bans, stops and penalties holds where no flag says other.

    Examples:

      heed generate runs/shakespeare --prompt "JULIET:" --temperature 0.8 --top-k 50 --max-tokens 500

      heed generate runs/bigram --prompts lines.txt --samples 3 --json
    """
    import heed

    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    if beam and any(value is not None for value in drawing.values()):
        raise UsageError("--temperature, --top-k and --top-p are about drawing: leave out --beam.")
    if beam > 1 and stop:
        raise UsageError("--stop goes with drawing and with --beam 1: a wider beam ranks whole lines.")
    wanted: dict[str, Any] = {
        "sample": beam == 0, "beam_size": beam or 1, "nbest": samples, "max_tokens": max_tokens, "seed": seed,
        "stop": tuple(stop) if stop else None, **drawing,
    }  # fmt: skip
    if 0 < beam < samples:
        raise UsageError(f"a beam of {beam} has no {samples} continuations: --beam is at least --samples.")
    if stream and (json_lines or samples > 1 or beam > 1):
        raise UsageError("--stream shows one text as it grows: leave out --json, --samples and --beam.")
    use_threads(threads)
    loaded = heed.load(run, device, precision, ensemble=ensemble or ())
    loaded.require("generate")
    options = loaded.run.recipe.decoding.of_text(**wanted)
    output = Output(loaded, options, json_lines)
    show = (stream or is_terminal(sys.stdout)) and options.width == 1 and not json_lines
    for group in _groups(prompt or [], prompts, errors):
        if show:
            output.show(group)
        else:
            output.write(group)


def _groups(given: Sequence[str], path: Path | None, errors: Any) -> Iterator[Sequence[str]]:
    """The prompts of the command line, then those of the file, as they come; one empty one where there are none."""
    from heed.cli.stdio import groups_as_they_come
    from heed.decoding.options import SearchOptions
    from heed.text.readers import read_lines

    if given or path is None:
        yield given or [""]
    if path is not None and str(path) == "-":
        yield from groups_as_they_come(errors, max_lines=SearchOptions().batch_size)
    elif path is not None:
        yield from ([line] for line in read_lines(path, errors))


@dataclass
class Output:
    """Writes continuations to stdout."""

    loaded: Predictor
    options: SearchOptions
    as_json: bool
    num_prompts: int = 0
    num_texts: int = 0

    def write(self, prompts: Sequence[str]) -> None:
        """The continuations of some prompts, all at once."""
        from heed.cli.stdio import flush, write_line

        continued = self.loaded.translator.generate(prompts, self.options, self.num_prompts)
        self.num_prompts += len(prompts)
        for prompt, found in zip(prompts, continued, strict=True):
            for hypothesis in found:
                if self.as_json:
                    write_line(json.dumps(self._record(prompt, hypothesis), ensure_ascii=False))
                else:
                    self._separate()
                    write_line(prompt + hypothesis.text)
        flush()

    def show(self, prompts: Sequence[str]) -> None:
        """The continuation of each prompt, piece by piece."""
        from heed.cli.stdio import flush, write_line, write_text

        for prompt in prompts:
            self._separate()
            write_text(prompt)
            for piece in self.loaded.translator.stream(prompt, self.options, self.num_prompts):
                write_text(piece)
                flush()
            write_line("")
            flush()
            self.num_prompts += 1

    def _separate(self) -> None:
        from heed.cli.stdio import write_line

        if self.num_texts and self.loaded.run.recipe.data.text_as != "lines":
            write_line(BETWEEN_TEXTS)
        self.num_texts += 1

    def _record(self, prompt: str, hypothesis: Hypothesis) -> dict[str, Any]:
        from heed.text.vocabulary import Vocabulary

        ids = (*hypothesis.ids, Vocabulary.eos_id)[: len(hypothesis.token_log_probs)]  # what was cut off has no end
        pieces = self.loaded.run.tokenizers["tgt"].pieces(ids)
        tokens = zip(pieces, hypothesis.token_log_probs, strict=True)
        return {
            "prompt": prompt, "text": hypothesis.text, "log_prob": hypothesis.log_prob, "finished": hypothesis.finished,
            "tokens": [{"piece": piece, "log_prob": log_prob} for piece, log_prob in tokens],
        }  # fmt: skip
