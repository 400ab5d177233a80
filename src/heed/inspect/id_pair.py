"""What does a model read, and what does it say, when it writes a given output?

They differ where a language model's text has several lines: behind the end of one it reads the begin of sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heed.data.batch import source_from_ids
from heed.decoding.translator import ModelTranslator
from heed.nn.contract import Source
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True)
class IdPair:
    """The ids of a source and an output, without their ends."""

    src: tuple[int, ...] | None
    """None for a language model."""
    said: tuple[int, ...]
    read: tuple[int, ...]

    @staticmethod
    def of_translation(src: list[int], tgt: list[int]) -> IdPair:
        """What is said is read."""
        return IdPair(tuple(src), tuple(tgt), tuple(tgt))

    @staticmethod
    def of_text(translator: ModelTranslator, text: str) -> IdPair:
        """A text as the language model was trained to read it."""
        form = translator.detokenizer
        read = tuple(form.encode_prompt(text, translator.normaliser))
        said = (
            read if form.token_after_eos is None else tuple(EOS_ID if id == form.token_after_eos else id for id in read)
        )
        return IdPair(None, said, read)

    @property
    def tgt_in(self) -> list[int]:
        """What is read, from the begin of sentence."""
        return [BOS_ID, *self.read]

    @property
    def longest(self) -> int:
        """Tokens of the longer side."""
        return max(len(self.said), len(self.src or ()))

    def source(self, device: torch.device) -> Source | None:
        """What the output is conditioned on."""
        return None if self.src is None else source_from_ids([list(self.src)], EOS_ID, PAD_ID).to(device)
