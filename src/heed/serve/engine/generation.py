"""Generation of several continuations of several prompts, with their texts as they grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.decoding.detokenizer import TextStreamer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.job import Job

OnPiece = Callable[[int, str], None]
"""Gets the number of a continuation and the next piece of its text."""


@dataclass(frozen=True)
class Prompt:
    """A prompt as text and as token ids."""

    text: str
    ids: tuple[int, ...]


def temperature_of(requested: float | None) -> float | None:
    """The temperature to sample with; None for the default, and for 0, which does not sample."""
    return max(requested, 0.01) if requested else None


def continuations(
    job: Job, model: ServedModel, prompts: Sequence[Prompt], num_each: int, options: SearchOptions,
    on_piece: OnPiece | None = None,
) -> list[Hypothesis]:  # fmt: skip
    """`num_each` continuations of each prompt in turn, with texts that can be appended to their prompts."""
    form = model.translator.detokenizer
    repeated = [prompt for prompt in prompts for _ in range(num_each)]
    requests = [Request((), prompt.ids, draw=number) for number, prompt in enumerate(repeated)]
    streamers = [TextStreamer(form, prompt.text, options.stop) for prompt in repeated]
    num_seen = [0] * len(repeated)

    def watch(request: Request, ids: list[int]) -> None:
        number = request.draw
        new = "".join(streamers[number].add(form.token_bytes[id]) for id in ids[num_seen[number] :])
        num_seen[number] = len(ids)
        if on_piece and new:
            on_piece(number, new)

    engine = None if on_piece or options.sample else model.loaded.engine  # which shows no partial outputs
    outputs = job.find(model.name, model.translator, requests, options, watch if on_piece else None, engine)
    for number, request in enumerate(requests):
        if on_piece and (rest := streamers[number].rest(outputs[request])):
            on_piece(number, rest)
    return [
        form.continuation(prompt.text, outputs[request]) for prompt, request in zip(repeated, requests, strict=True)
    ]
