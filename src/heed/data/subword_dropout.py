"""BPE-dropout of stored rows: a new segmentation in every epoch, the same in every process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.core.json_text import parse_json
from heed.text.tokenizers import Tokenizer, parse_tokenizer

SIDES = ("src", "tgt")


@dataclass(frozen=True)
class SubwordDropout:
    """BPE-dropout (Provilkov et al. 2020): each merge is omitted with probability `p`; a leading tag is kept."""

    tokenizers: Mapping[str, Tokenizer]
    """The tokenizer of each side."""
    p: float
    seed: int
    longest_source: int | None = None
    """Most tokens of a source, with its tag, that the model reads: one that would have more is not segmented anew."""

    def __call__(self, side: str, ids: NDArray[np.integer], epoch: int, row: int) -> list[int]:
        """A new segmentation of a row of the corpus: a function of seed, epoch, row and side alone."""
        tokenizer = self.tokenizers[side]
        pieces: list[int] = ids.tolist()
        begin = sum(id in tokenizer.vocabulary.tag_ids.values() for id in pieces[:1])
        key = (self.seed, epoch, 2 * row + SIDES.index(side))
        segmented = pieces[:begin] + tokenizer.encode_with_dropout(pieces[begin:], self.p, key)
        is_too_long = side == "src" and self.longest_source is not None and len(segmented) > self.longest_source
        return pieces if is_too_long else segmented

    def to_json(self) -> str:
        """JSON for another process, including the tokenizers."""
        tokenizers = {side: tokenizer.to_json() for side, tokenizer in self.tokenizers.items()}
        settings = {"p": self.p, "seed": self.seed, "longest_source": self.longest_source}
        return json.dumps({"tokenizers": tokenizers, **settings})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`."""
        fields = parse_json(text)
        texts = fields.pop("tokenizers")
        parsed = {text: parse_tokenizer(text) for text in {*texts.values()}}
        return cls({side: parsed[text] for side, text in texts.items()}, **fields)
