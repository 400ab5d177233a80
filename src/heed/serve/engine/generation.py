"""How does a language model go on from several prompts, several times each, for a client?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.request import Request
from heed.decoding.streaming import TextSoFar
from heed.decoding.text_form import TextForm
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.jobs import Job

Tell = Callable[[int, str], None]
"""(number of the continuation, what its text goes on with)."""


@dataclass(frozen=True)
class Prompt:
    """What is gone on from, as text and as ids."""

    text: str
    ids: tuple[int, ...]


def temperature_of(said: float | None) -> float | None:
    """The temperature to draw with; None where 0 is said, which is not drawn, or nothing."""
    return max(said, 0.01) if said else None


def continuations(
    job: Job, model: ServedModel, prompts: Sequence[Prompt], times: int, options: SearchOptions,
    tell: Tell | None = None,
) -> list[Hypothesis]:  # fmt: skip
    """So many of the first prompt, then of the second, and so on: each text reads right behind its prompt.

    `tell` hears (the number of the continuation, what its text goes on with) until the texts are whole.
    """
    form = model.translator.roles.form
    behind = [prompt for prompt in prompts for _ in range(times)]
    requests = [Request((), prompt.ids, draw=draw) for draw, prompt in enumerate(behind)]
    watch = None
    if tell is not None:
        growing = {
            request: _Growing(form, prompt.text, options.stop)
            for request, prompt in zip(requests, behind, strict=True)
        }  # fmt: skip
        numbers = {request: number for number, request in enumerate(requests)}

        def watch(request: Request, ids: list[int]) -> None:
            if new := growing[request].add(ids):
                tell(numbers[request], new)

    found = job.find(model.name, model.translator, requests, options, watch)
    if tell is not None:
        for number, request in enumerate(requests):
            if rest := growing[request].text.rest(found[request].text):
                tell(number, rest)
    return [form.behind(prompt.text, found[request]) for prompt, request in zip(behind, requests, strict=True)]


class _Growing:
    """A text whose tokens are seen one after the other."""

    def __init__(self, form: TextForm, before: str, stop: Sequence[str]) -> None:
        self.spelled = form.spelled
        self.text = TextSoFar(form, before, stop)
        self.num_seen = 0

    def add(self, ids: Sequence[int]) -> str:
        """What can be shown now that could not before."""
        new = ids[self.num_seen :]
        self.num_seen = len(ids)
        return "".join(self.text.add(self.spelled[id]) for id in new)
