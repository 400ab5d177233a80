"""How does a language model go on from several prompts, several times each, for a client?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.request import Request
from heed.decoding.streaming import TextSoFar
from heed.serve.catalogue import ServedModel
from heed.serve.jobs import Job

Tell = Callable[[int, str], None]
"""(number of the request, what its text goes on with)."""


def continuations(
    job: Job, model: ServedModel, requests: Sequence[Request], options: SearchOptions, tell: Tell | None = None
) -> list[Hypothesis]:
    """One for each request. `tell` hears the text as it grows, but for its last piece."""
    watch = None
    if tell is not None:
        growing = {request: _Growing(model, options) for request in requests}
        numbers = {request: number for number, request in enumerate(requests)}

        def watch(request: Request, ids: list[int]) -> None:
            if new := growing[request].add(ids):
                tell(numbers[request], new)

    found = job.find(model.name, model.translator, requests, options, watch)
    if tell is not None:
        for number, request in enumerate(requests):
            if rest := growing[request].text.rest(found[request].text):
                tell(number, rest)
    return [found[request] for request in requests]


class _Growing:
    """A text whose tokens are seen one after the other."""

    def __init__(self, model: ServedModel, options: SearchOptions) -> None:
        self.spelled = model.translator.roles.form.spelled
        self.text = TextSoFar(options.stop, model.translator.roles.form.spaced)
        self.num_seen = 0

    def add(self, ids: Sequence[int]) -> str:
        """What can be shown now that could not before."""
        new = ids[self.num_seen :]
        self.num_seen = len(ids)
        return "".join(self.text.add(self.spelled[id]) for id in new)


def requests_of(prompts: Sequence[Sequence[int]], times: int) -> list[Request]:
    """Each prompt so many times, in the order of the prompts; every draw is another one."""
    prompts = [prompt for prompt in prompts for _ in range(times)]
    return [Request((), tuple(prompt), draw=draw) for draw, prompt in enumerate(prompts)]


def without_what_was_cut(model: ServedModel, hypothesis: Hypothesis) -> Hypothesis:
    """Only the tokens of the text: a stop cuts it in the middle of its tokens."""
    spelled, size, length = model.translator.roles.form.spelled, len(hypothesis.text.encode()), 0
    for number, id in enumerate(hypothesis.ids):
        if length >= size:
            return replace(hypothesis, ids=hypothesis.ids[:number], token_log_probs=hypothesis.token_log_probs[:number])
        length += len(spelled[id])
    return hypothesis
