"""How is a text shown while it is made, so that what was shown need not be taken back?"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from heed.decoding.options import SearchOptions
from heed.decoding.search import steps
from heed.decoding.stops import cut, may_begin
from heed.decoding.text_form import TextForm
from heed.decoding.translator import ModelTranslator


class TextSoFar:
    """Bytes of tokens become text: whole characters, and nothing that a stop or the end of the text may take back."""

    def __init__(self, form: TextForm, before: str, stop: Sequence[str]) -> None:
        """`before`: what the text stands behind."""
        self._form = form
        self._before = before
        self._stop = stop
        self._spaced = form.spaced
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._num_shown = 0

    def add(self, piece: bytes) -> str:
        """What can be shown now. A space behind a word is none of the text before another word comes."""
        self._waiting += self._decoder.decode(piece)
        if self._spaced:
            self._waiting = self._waiting.replace(" \n", "\n")
        text = self._waiting.removesuffix(" ") if self._spaced else self._waiting
        safe = cut(text, self._stop)
        new = safe[: len(safe) - may_begin(safe, self._stop)]
        self._waiting = self._waiting[len(new) :]
        return self._shown(new)

    def rest(self, text: str) -> str:
        """What is left to be shown of the text, which is complete."""
        return self._shown(text[self._num_shown :])

    def _shown(self, new: str) -> str:
        gap = self._form.gap(self._before, new) if not self._num_shown else ""
        self._num_shown += len(new)
        return gap + new


def stream(translator: ModelTranslator, prompt: str, options: SearchOptions, draw: int = 0) -> Iterator[str]:
    """The continuation of a prompt piece by piece, as it is chosen: together what `generate` gives as number `draw`.

    `options` must be about one hypothesis, drawn or greedy: a beam changes its mind.
    """
    assert options.width == 1
    start = translator.departure([translator.request_of(prompt, draw)], options)
    form = translator.roles.form
    text, num_seen = TextSoFar(form, prompt, options.stop), 0
    for _ in steps(translator.model, None, start.chooser, start.filters, start.begin, start.limit):
        for token in start.chooser.row_tokens()[:1, num_seen:].flatten().tolist():
            num_seen += 1
            if piece := text.add(form.spelled[token]):
                yield piece
    [found] = start.chooser.hypotheses()
    if rest := text.rest(translator.best_of(found, options).text):
        yield rest
