"""Count-based models: the adapter from a predictor to the contract of generators.

The features of a counting model are its contexts, whole numbers (`heed.statistical.predictor`): the head looks up what
follows them, for single tokens without a row of the vocabulary. The state is the last context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.models.model import GenerativeModel
from heed.nn.contract import Smoothing, Source, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.statistical.predictor import Bools, Ints, Predictor

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class CountingState:
    """The context of each row."""

    contexts: Int[Tensor, "B D"]

    def select(self, rows: Int[Tensor, " R"]) -> CountingState:
        """The given rows in the given order."""
        return CountingState(self.contexts[rows])

    def join(self, other: CountingState) -> CountingState:
        """These rows, then those of `other`."""
        return CountingState(torch.cat((self.contexts, other.contexts)))

    def detach(self) -> CountingState:
        """Counts carry no graph."""
        return self


class CountingHead:
    """Looks the probability of a token after a context up."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def log_probs(
        self, features: Int[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Log-probabilities of the whole vocabulary, or of `subset` normalised over the subset."""
        rows = torch.from_numpy(self.predictor.log_probs(_numbers(features.flatten(0, -2))))
        if subset is not None:
            rows = rows[:, subset.cpu()].log_softmax(dim=-1)
        return rows.float().reshape(*features.shape[:-1], -1).to(features.device)

    def log_prob(self, features: Int[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each context."""
        found = self.predictor.log_prob(_numbers(features.flatten(0, -2)), _numbers(ids.reshape(-1)))
        return torch.from_numpy(found).float().reshape(ids.shape).to(ids.device)

    def loss(
        self, features: Int[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor, int]:  # fmt: skip
        """Sum of -log p over the real tokens; counts are not smoothed towards the uniform distribution."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum, int(mask.sum())


class Counting(GenerativeModel, ABC):
    """A model that is estimated from counts and has no weights."""

    count_based = True
    head: CountingHead

    def __init__(self, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.vocabularies = vocabularies

    @abstractmethod
    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """What these sentences teach (ids without begin and end)."""

    @abstractmethod
    def restored(self, arrays: Arrays) -> Predictor:
        """What was saved. Raises DataError for arrays that are no such model, or one of another vocabulary."""

    def hold(self, predictor: Predictor) -> None:
        """Answer as this predictor does."""
        self.head = CountingHead(predictor)

    def estimate(self, sequences: Iterable[Sequence[int]]) -> None:
        """Count the given sentences (ids without begin and end)."""
        self.hold(self.estimated(sequences))

    @property
    def predictable(self) -> Bools:
        """Which tokens of the vocabulary can follow at all: all but padding and begin of sentence, [V]."""
        found = np.ones(self.vocabularies.tgt_size, dtype=np.bool_)
        found[[self.vocabularies.pad_id, self.vocabularies.bos_id]] = False
        return found

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """What was counted, as tensors."""
        arrays = self.head.predictor.arrays()
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """What was saved. Raises DataError for what is no such model, or one of another vocabulary."""
        self.hold(self.restored({name: _array(tensor) for name, tensor in state_dict.items()}))

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> CountingState:
        """As many rows as asked for; a source tells nothing to this model."""
        num_rows = rows_per_source * (1 if source is None else len(source))
        return CountingState(torch.from_numpy(self.head.predictor.start).repeat(num_rows, 1))

    def advance(
        self, ids: Int[Tensor, "B T"], state: CountingState, trace: Trace | None = None
    ) -> tuple[Int[Tensor, "B T D"], CountingState]:
        """The contexts of the next tokens."""
        found = self.head.predictor.follow(_numbers(state.contexts), _numbers(ids))
        features = torch.from_numpy(found).to(ids.device)
        return features, CountingState(features[:, -1])


def _array(tensor: Tensor) -> NDArray[np.generic]:
    """In NumPy's type; it has none for bfloat16."""
    found: NDArray[np.generic] = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).cpu().numpy()
    return found


def _numbers(tensor: Tensor) -> Ints:
    return np.asarray(tensor.cpu().numpy(), dtype=np.int64)
