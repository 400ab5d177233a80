"""Readers with a head: the models of tasks that predict labels, tags or spans from a whole source.

The weights of the reader are named `reader.*` and those of the head `head.*`, so that a reader trained for one task can
start the training of another (transfer).
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys


class ReaderWithHead(nn.Module):
    """A reader whose features [B, S, D] a head turns into the outputs of a task."""

    count_based: ClassVar[bool] = False

    def __init__(self, reader: Any, head: nn.Module) -> None:
        super().__init__()
        self.reader = reader
        self.head = head

    def read(self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None) -> Tensor:
        """Features of each position [B, S, D]; those of padding are undefined."""
        features: Tensor = self.reader.read(source, dropout_keys, trace)
        return features

    def read_begun(self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None) -> Tensor:
        """As `read`, after the features of positions that the reader adds before the first one, such as [CLS]."""
        features: Tensor = self.reader.read_begun(source, dropout_keys, trace)
        return features
