"""Minimum risk training: the expected loss of a translator's own outputs (Shen et al. 2016, equations 9 to 11).

The likelihood of references is not what translations are scored by. The risk of a source x with the reference y* is

    R = Σ_{y in S} Q(y | x) Δ(y, y*),    Q(y | x) = P(y | x)^α / Σ_{y' in S} P(y' | x)^α,

where Δ is 1 minus the sentence score of y (BLEU or chrF, from 0 to 1), and α the sharpness. As in the paper's algorithm
1, S holds the reference and the distinct ones of k samples, each of which ends after as many tokens as the recipe's
search allows. The loss of a batch is the sum of its risks; the training loop divides it by the number of target tokens,
as every loss.

Samples are drawn from the model without dropout. P(y | x) is computed with the dropout of the update, which is the same
for all translations of a source. Draws depend on (seed, update, row, sample, position) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heed.data.batch import Batch
from heed.decoding.sampling import inverted
from heed.nn.contract import Autoregressive, Source
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.task import Loss
from heed.text.vocabulary import Vocabulary

SAMPLE = (1 << 20) + 3
"""Dropout site of the draws; no layer uses it."""

Ids = tuple[int, ...]
"""A translation, with its end unless it was cut off."""


@dataclass(frozen=True)
class Risk:
    """What the risk of a translation is computed with."""

    num_samples: int
    """k: translations that are sampled for each source."""
    sharpness: float
    """α: exponent of the probabilities."""
    limit: Callable[[int], int]
    """Maximum number of tokens of a translation for a source of this length, both with their ends."""
    scores: Callable[[Sequence[Ids], Sequence[Ids]], Sequence[float]]
    """The score from 0 to 1 of each translation, given its reference."""


def minimum_risk_loss(model: Autoregressive, batch: Batch, dropout_keys: DropoutKeys, risk: Risk) -> Loss:
    """The sum of the risks of a batch, and -log p of its references."""
    assert batch.source is not None
    references = [tuple(row[mask].tolist()) for row, mask in zip(batch.tgt_out, batch.tgt_mask, strict=True)]
    limits = [risk.limit(length) for length in batch.source.mask.sum(1).tolist()]
    samples = sampled(model, batch.source, risk.num_samples, limits, dropout_keys)
    candidates = [list(dict.fromkeys((own, *drawn))) for own, drawn in zip(references, samples, strict=True)]
    log_probs, real = candidate_log_probs(model, batch.source, candidates, dropout_keys)
    losses = log_probs.new_zeros(real.shape)
    losses[real] = log_probs.new_tensor(losses_of(candidates, risk))
    shares = (risk.sharpness * log_probs).masked_fill(~real, float("-inf")).softmax(dim=1)
    return Loss((shares * losses).sum(), -log_probs[:, 0].detach().sum())


def losses_of(candidates: Sequence[list[Ids]], risk: Risk) -> list[float]:
    """Δ of all translations, row by row; the first one of each row is its reference."""
    flat = [ids for of_row in candidates for ids in of_row]
    references = [of_row[0] for of_row in candidates for _ in of_row]
    return [1 - score for score in risk.scores(flat, references)]


@torch.no_grad()
def sampled(
    model: Autoregressive, source: Source, number: int, limits: Sequence[int], dropout_keys: DropoutKeys
) -> list[list[Ids]]:
    """`number` translations of each source from the model's distribution, of at most so many tokens."""
    device = source.mask.device
    stream = torch.arange(number, device=device).repeat(len(source))
    drawn = dropout_keys.repeat(number).numbered(stream).uniform(max(limits), SAMPLE)
    most = torch.tensor(limits, device=device).repeat_interleave(number)
    state = model.start(source, number)
    ids = torch.full_like(most, Vocabulary.bos_id)[:, None]
    lengths, tokens = torch.zeros_like(most), []
    for t in range(max(limits)):
        features, state = model.advance(ids, state)
        ids = inverted(model.head.log_probs(features[:, 0]).double().exp(), drawn[:, t, None])
        tokens.append(ids)
        ends = (lengths == 0) & ((ids[:, 0] == Vocabulary.eos_id) | (most == t + 1))
        lengths = lengths.masked_fill(ends, t + 1)
        if bool((lengths > 0).all()):
            break
    rows = zip(torch.cat(tokens, 1).tolist(), lengths.tolist(), strict=True)
    found = [tuple(row[:length]) for row, length in rows]
    return [found[begin : begin + number] for begin in range(0, len(found), number)]


def candidate_log_probs(
    model: Autoregressive, source: Source, candidates: Sequence[list[Ids]], dropout_keys: DropoutKeys
) -> tuple[Float[Tensor, "B C"], Bool[Tensor, "B C"]]:
    """log P of the translations of each source, and which of the C columns a source has."""
    device, most = source.mask.device, max(map(len, candidates))
    filled = [ids for of_row in candidates for ids in of_row + of_row[:1] * (most - len(of_row))]
    tgt_out: Int[Tensor, "R T"] = pad_sequence(
        [torch.tensor(ids) for ids in filled], batch_first=True, padding_value=Vocabulary.pad_id
    ).to(device)
    tgt_in = torch.cat((torch.full_like(tgt_out[:, :1], Vocabulary.bos_id), tgt_out[:, :-1]), 1)
    features, _ = model.advance(tgt_in, model.start(source, most, dropout_keys=dropout_keys))
    positions = torch.arange(tgt_out.shape[1], device=device)
    inside = positions < torch.tensor([len(ids) for ids in filled], device=device)[:, None]
    log_probs = model.head.log_prob(features, tgt_out).masked_fill(~inside, 0.0).sum(1).view(-1, most)
    numbers = torch.tensor([len(of_row) for of_row in candidates], device=device)
    return log_probs, torch.arange(most, device=device) < numbers[:, None]
