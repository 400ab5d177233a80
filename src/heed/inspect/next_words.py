"""Which words could have stood in the place of a word, when a model speaks in pieces of words?

From the likeliest pieces at each place words are written to their ends, piece by piece, each the likeliest that goes on
with the word. The probability of a word is that of its pieces and of its end: that no further piece goes on with it.
What begins with an unlikely piece is not found, so the list may miss a word; its probabilities are the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce

import torch
from jaxtyping import Bool
from torch import Tensor

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.translator import ModelTranslator
from heed.inspect.id_pair import IdPair
from heed.inspect.words import goes_on
from heed.text.vocabulary import EOS_ID

NUM_WORDS = 8
"""How many words are told for each place."""
MAX_PLACES = 48
"""Places of one output for which words are looked for; a longer one is told in pieces only."""
MAX_PIECES = 8
"""Of one word."""
_LEAST = -12.0
"""Beginnings that are less likely (nats) are given up."""

Found = dict[str, float]
"""Words with the white space before them, and their log-probabilities; "" is the end."""


@dataclass
class _Rows:
    """Beginnings of words that go on, one for each row of the state."""

    found: list[Found]
    """The words that ended, for each place."""
    places: list[int] = field(default_factory=list)
    ids: list[list[int]] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def keep(self, rows: Sequence[int]) -> None:
        """Only these."""
        self.places = [self.places[row] for row in rows]
        self.ids = [self.ids[row] for row in rows]
        self.totals = [self.totals[row] for row in rows]


@torch.inference_mode()
def next_words(translator: ModelTranslator, pair: IdPair, starts: Sequence[int]) -> list[Found]:
    """For the places of `starts`, each a number of tokens of the output before it, the likeliest words and the end."""
    model, form = translator.model, translator.detokenizer
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    state = model.start(pair.source(translator.device), 1)
    rows = _Rows([{} for _ in starts])
    states = []
    begin = 0
    for place, start in enumerate(starts):
        features, state = model.advance(tgt_in[:, begin : start + 1], state)
        begin = start + 1
        log_probs = model.head.log_probs(features[:, -1])[0].float()
        best, first = log_probs.topk(min(NUM_WORDS, len(log_probs)))
        rows.places += [place] * len(first)
        rows.ids += [[token] for token in first.tolist()]
        rows.totals += best.tolist()
        states.append(state.select(torch.zeros_like(first)))
    state = reduce(lambda left, right: left.join(right), states)
    within = _within_word(form).to(translator.device)
    for _ in range(MAX_PIECES):
        going = _note_ended(rows, form)
        if not going:
            break
        rows.keep(going)
        last = torch.tensor([[ids[-1]] for ids in rows.ids], device=translator.device)
        features, state = model.advance(last, state.select(torch.tensor(going, device=translator.device)))
        _go_on(rows, model.head.log_probs(features[:, -1]).float(), within, form)
    return [dict(sorted(words.items(), key=lambda item: -item[1])[:NUM_WORDS]) for words in rows.found]


def _note_ended(rows: _Rows, form: Detokenizer) -> list[int]:
    """Put aside what shows itself that it has ended; the rows of the others."""
    going = []
    for row, ids in enumerate(rows.ids):
        piece = form.token_bytes[ids[-1]]
        if goes_on(piece, b"a"):
            if rows.totals[row] > _LEAST:
                going.append(row)
        elif piece or ids[-1] == EOS_ID:
            _note(rows, row, _spelled(form, ids), rows.totals[row])
    return going


def _go_on(rows: _Rows, log_probs: Tensor, within: Bool[Tensor, " V"], form: Detokenizer) -> None:
    """Each word ends here with some probability, and goes on with its likeliest piece."""
    ended = log_probs.masked_fill(within, float("-inf")).logsumexp(dim=1).tolist()
    best, pieces = log_probs.masked_fill(~within, float("-inf")).max(dim=1)
    for row, (end, step, piece) in enumerate(zip(ended, best.tolist(), pieces.tolist(), strict=True)):
        _note(rows, row, _spelled(form, rows.ids[row]), rows.totals[row] + end)
        rows.ids[row] = [*rows.ids[row], piece]
        rows.totals[row] += step


def _note(rows: _Rows, row: int, text: str, total: float) -> None:
    words = rows.found[rows.places[row]]
    words[text] = max(words.get(text, total), total)


def _spelled(form: Detokenizer, ids: Sequence[int]) -> str:
    return b"".join(form.token_bytes[id] for id in ids).decode("utf-8", "replace")


@lru_cache(maxsize=4)
def _within_word(form: Detokenizer) -> Bool[Tensor, " V"]:
    """The pieces that go on with a word."""
    return torch.tensor([goes_on(b"a", piece) for piece in form.token_bytes])
