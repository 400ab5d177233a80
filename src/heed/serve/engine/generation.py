"""Generation of several continuations of several prompts, for a client that may see them grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.decoding.detokenizer import Detokenizer, TextStreamer
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
    """The temperature to sample with. None by default, and for 0, which does not sample."""
    return max(requested, 0.01) if requested else None


def continuations(
    job: Job, model: ServedModel, prompts: Sequence[Prompt], num_each: int, options: SearchOptions,
    on_piece: OnPiece | None = None,
) -> list[Hypothesis]:  # fmt: skip
    """`num_each` continuations of each prompt in turn, as they read after their prompts."""
    form = model.translator.detokenizer
    repeated = [prompt for prompt in prompts for _ in range(num_each)]
    requests = [Request((), prompt.ids, draw=draw) for draw, prompt in enumerate(repeated)]
    growing = {
        request: _GrowingText(form, prompt.text, options.stop)
        for request, prompt in zip(requests, repeated, strict=True)
    }
    numbers = {request: number for number, request in enumerate(requests)}

    def watch(request: Request, ids: list[int]) -> None:
        if on_piece and (new := growing[request].add(ids)):
            on_piece(numbers[request], new)

    outputs = job.find(model.name, model.translator, requests, options, watch if on_piece else None)
    for number, request in enumerate(requests):
        if on_piece and (rest := growing[request].text.rest(outputs[request].text)):
            on_piece(number, rest)
    return [
        form.continuation(prompt.text, outputs[request]) for prompt, request in zip(repeated, requests, strict=True)
    ]


class _GrowingText:
    """The text of an output whose tokens arrive one by one."""

    def __init__(self, form: Detokenizer, prompt: str, stop: Sequence[str]) -> None:
        self.spelled = form.token_bytes
        self.text = TextStreamer(form, prompt, stop)
        self.num_seen = 0

    def add(self, ids: Sequence[int]) -> str:
        """The text that is complete now and was not before. `ids`: all tokens so far."""
        new = ids[self.num_seen :]
        self.num_seen = len(ids)
        return "".join(self.text.add(self.spelled[id]) for id in new)
