"""Likely next words, for models whose tokens are parts of words.

The likeliest first tokens are extended to whole words, greedily, token by token. The probability of a word is the
product of the probabilities of its tokens and of its end, where no further token continues it. A word whose first
token is unlikely may be missing from the list; the probabilities of the others are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce

import torch
from jaxtyping import Bool
from torch import Tensor

from heed.decoding.detokenizer import Detokenizer
from heed.inference.translator import ModelTranslator
from heed.inspect.teacher_forcing import EncodedPair
from heed.text.token_words import Choice, continues_word, probability
from heed.text.vocabulary import EOS_ID

NUM_WORDS = 8
"""Number of words reported at each position."""
MAX_PIECES = 8
"""Maximum number of tokens of a word."""
_MIN_LOG_PROB = -12.0
"""Log-probability (nats) below which a partial word is dropped."""

LogProbs = dict[str, float]
"""Log-probabilities of words, with the white space before them; "" is the end of the sentence."""


@dataclass
class _PartialWords:
    """Words that are not complete, one for each row of the state."""

    complete: list[LogProbs]
    """The complete words of each position."""
    positions: list[int] = field(default_factory=list)
    ids: list[list[int]] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    def select(self, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        self.positions = [self.positions[row] for row in rows]
        self.ids = [self.ids[row] for row in rows]
        self.log_probs = [self.log_probs[row] for row in rows]

    def finish(self, row: int, form: Detokenizer, log_prob: float) -> None:
        """Record the word of a row as complete."""
        words = self.complete[self.positions[row]]
        text = b"".join(form.token_bytes[id] for id in self.ids[row]).decode("utf-8", "replace")
        words[text] = max(words.get(text, log_prob), log_prob)


def next_words(translator: ModelTranslator, pair: EncodedPair, starts: Sequence[int]) -> list[tuple[Choice, ...]]:
    """The likeliest words at each position of an output: `starts` are the numbers of tokens before each, ascending."""
    return [
        tuple(Choice(text, False, probability(log_prob), not text) for text, log_prob in words.items())
        for words in next_word_log_probs(translator, pair, starts)
    ]


@torch.inference_mode()
def next_word_log_probs(translator: ModelTranslator, pair: EncodedPair, starts: Sequence[int]) -> list[LogProbs]:
    """As `next_words`, with log-probabilities in nats, the likeliest word first."""
    model, form = translator.model, translator.detokenizer
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    state = model.start(pair.source(translator.device), 1)
    rows = _PartialWords([{} for _ in starts])
    states = []
    begin = 0
    for position, start in enumerate(starts):
        features, state = model.advance(tgt_in[:, begin : start + 1], state)
        begin = start + 1
        log_probs = model.head.log_probs(features[:, -1])[0].float()
        best, first = log_probs.topk(min(NUM_WORDS, len(log_probs)))
        rows.positions += [position] * len(first)
        rows.ids += [[token] for token in first.tolist()]
        rows.log_probs += best.tolist()
        states.append(state.select(torch.zeros_like(first)))
    state = reduce(lambda left, right: left.join(right), states)
    continuing = _continuing_tokens(form).to(translator.device)
    for _ in range(MAX_PIECES):
        active = _finish_ended(rows, form)
        if not active:
            break
        rows.select(active)
        last = torch.tensor([[ids[-1]] for ids in rows.ids], device=translator.device)
        features, state = model.advance(last, state.select(torch.tensor(active, device=translator.device)))
        _extend(rows, model.head.log_probs(features[:, -1]).float(), continuing, form)
    return [dict(sorted(words.items(), key=lambda item: -item[1])[:NUM_WORDS]) for words in rows.complete]


def _finish_ended(rows: _PartialWords, form: Detokenizer) -> list[int]:
    """Record the words whose last token ends them; returns the rows of the others."""
    active = []
    for row, ids in enumerate(rows.ids):
        piece = form.token_bytes[ids[-1]]
        if continues_word(piece, b"a"):
            if rows.log_probs[row] > _MIN_LOG_PROB:
                active.append(row)
        elif piece or ids[-1] == EOS_ID:
            rows.finish(row, form, rows.log_probs[row])
    return active


def _extend(rows: _PartialWords, log_probs: Tensor, continuing: Bool[Tensor, " V"], form: Detokenizer) -> None:
    """Record each word as complete, with the probability that it ends here, and append its likeliest next token."""
    ended = log_probs.masked_fill(continuing, float("-inf")).logsumexp(dim=1).tolist()
    best, pieces = log_probs.masked_fill(~continuing, float("-inf")).max(dim=1)
    for row, (end, step, piece) in enumerate(zip(ended, best.tolist(), pieces.tolist(), strict=True)):
        rows.finish(row, form, rows.log_probs[row] + end)
        rows.ids[row] = [*rows.ids[row], piece]
        rows.log_probs[row] += step


@lru_cache(maxsize=4)
def _continuing_tokens(form: Detokenizer) -> Bool[Tensor, " V"]:
    """Mask of the tokens that continue a word."""
    return torch.tensor([continues_word(b"a", piece) for piece in form.token_bytes])
