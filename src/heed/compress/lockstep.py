"""How does the model see the same on both sides?

Writer and reader run this very code: a token at a time, the same rows in the same batch, so that every product has
the same shapes and every probability the same bits. Rows of a group go side by side; one that ends leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from heed.compress.coder import NO_END, Coder, Literals, Probabilities
from heed.compress.transcript import END, LITERAL, UNKNOWN, Item, Piece
from heed.core.errors import DataError
from heed.nn.contract import Autoregressive
from heed.text.vocabulary import Vocabulary

RESERVE = 1 << 12
"""Tokens for which a state may make room beforehand."""


class Row(Protocol):
    """A piece that is coded."""

    def code(self, probabilities: Probabilities) -> int | None:
        """Code one token, with what stands behind it; the token, or None at the end of the piece."""
        ...


class Side:
    """Codes the rows of one side.

    `ends`: a piece ends with the end of a sentence, else with its last item. `limit`: the bytes of the whole text.
    """

    def __init__(self, coder: Coder, ends: bool, limit: int) -> None:
        self.coder = coder
        self.ends = ends
        self.limit = limit
        self.literals = Literals(coder, limit)

    def item(self, probabilities: Probabilities, item: Item | None) -> Item:
        """The next item; None where it is to be found out."""
        token = self.coder.code(probabilities, None if item is None else item.token)
        if token not in (LITERAL, UNKNOWN):
            return Item(token)
        return Item(token, self.literals.code(None if item is None else item.literal))


class CodedRow:
    """A row of either side: `given` are its items where they are known; `piece` are those that were coded."""

    def __init__(self, side: Side, length: int, given: Piece | None = None) -> None:
        self.side = side
        self.length = length
        self.given = given
        self.piece: Piece = []

    def code(self, probabilities: Probabilities) -> int | None:
        """Items up to the next token that the model reads; such a token, or None at the end."""
        while not self.is_over:
            item = self.side.item(probabilities, None if self.given is None else self.given[len(self.piece)])
            self.piece.append(item)
            if len(self.piece) > self.side.limit + 1:
                raise DataError(NO_END)
            if item.token != LITERAL:
                return None if self.is_over else item.token
        return None

    @property
    def is_over(self) -> bool:
        """Whether the last item has been coded."""
        if self.side.ends:
            return bool(self.piece) and self.piece[-1].token == END
        return len(self.piece) == self.length


@torch.inference_mode()
def run(model: Autoregressive, rows: Sequence[Row], tell: Callable[[int], None]) -> None:
    """Code all rows, side by side, each to its end. `tell` hears of the tokens of each step."""
    state = model.start(None, len(rows), reserve=RESERVE)
    ids = torch.full((len(rows), 1), Vocabulary.bos_id)
    while rows:
        features, state = model.advance(ids, state)
        probabilities = model.head.log_probs(features[:, -1]).double().exp().numpy()
        tokens = [row.code(of_row) for row, of_row in zip(rows, probabilities, strict=True)]
        tell(len(rows))
        going = [place for place, token in enumerate(tokens) if token is not None]
        if len(going) < len(rows):
            rows = [rows[place] for place in going]
            state = state.select(torch.tensor(going, dtype=torch.long))
        read = [Vocabulary.bos_id if tokens[place] == END else tokens[place] for place in going]
        ids = torch.from_numpy(np.array(read, dtype=np.int64).reshape(-1, 1))
