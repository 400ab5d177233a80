"""Teacher forcing: one pass of a model over a given output, with token statistics and attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heed.data.batch import source_from_ids
from heed.decoding.scoring import TokenStats, forced_pass, token_stats
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Source, Trace
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

MAX_TRACED = 600
"""Length of the longer side, in tokens, up to which attention is collected: its size is quadratic."""
NUM_CHOICES = 12
"""Number of likeliest tokens reported at each position."""


@dataclass(frozen=True)
class EncodedPair:
    """Token ids of a source and an output, without begin and end of sentence."""

    src: tuple[int, ...] | None
    """None for a language model."""
    output: tuple[int, ...]
    inputs: tuple[int, ...]
    """The output as the model reads it. In a text of several lines, it reads a begin of sentence in place of each end
    of sentence."""

    @staticmethod
    def of_translation(src: list[int], tgt: list[int]) -> EncodedPair:
        """A source and its translation."""
        return EncodedPair(tuple(src), tuple(tgt), tuple(tgt))

    @staticmethod
    def of_text(translator: ModelTranslator, text: str) -> EncodedPair:
        """A text, as the language model reads it in training."""
        detokenizer = translator.detokenizer
        inputs = tuple(detokenizer.encode_prompt(text, translator.normaliser))
        after_eos = detokenizer.token_after_eos
        output = inputs if after_eos is None else tuple(EOS_ID if id == after_eos else id for id in inputs)
        return EncodedPair(None, output, inputs)

    @property
    def tgt_in(self) -> list[int]:
        """The inputs of the decoder."""
        return [BOS_ID, *self.inputs]

    @property
    def longest(self) -> int:
        """Tokens of the longer side."""
        return max(len(self.output), len(self.src or ()))

    def source(self, device: torch.device) -> Source | None:
        """The source as a batch of one."""
        return None if self.src is None else source_from_ids([list(self.src)], EOS_ID, PAD_ID).to(device)


@dataclass(frozen=True)
class InspectedPass:
    """Statistics of the tokens of an output and its end, and the attention of the pass."""

    stats: list[TokenStats]
    trace: Trace
    """Without weights if a side is longer than MAX_TRACED."""


@torch.inference_mode()
def inspected_pass(translator: ModelTranslator, pair: EncodedPair) -> InspectedPass:
    """Run the model over a given output."""
    trace = Trace()
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    traced = trace if pair.longest <= MAX_TRACED else None
    features = forced_pass(translator.model, pair.source(translator.device), tgt_in, traced)
    return InspectedPass(token_stats(translator.model, features[0], [*pair.output, EOS_ID], NUM_CHOICES), trace)
