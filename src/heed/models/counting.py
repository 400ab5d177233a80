"""Count-based models: the adapter from a predictor to the contract of generators.

The features of a count-based model are its contexts, integers (`heed.statistical.predictor`): the head looks up
probabilities, for single tokens without a row of the vocabulary. The state is the last context.
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

from heed.models.model import LanguageModel
from heed.nn.contract import Smoothing, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import RowState
from heed.statistical.cache import CacheConfig, Cached
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.predictor import Bools, Ints, Predictor
from heed.statistical.saved_arrays import Arrays


@dataclass(frozen=True)
class CountingState(RowState):
    """The context of each row."""

    contexts: Int[Tensor, "B D"]


class CountingHead:
    """Looks up the probability of a token after a context."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def log_probs(
        self, features: Int[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        rows = torch.from_numpy(self.predictor.log_probs(_numbers(features.flatten(0, -2))))
        if subset is not None:
            rows = rows[:, subset.cpu()].log_softmax(dim=-1)
        return rows.float().reshape(*features.shape[:-1], -1).to(features.device)

    def log_prob(self, features: Int[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        log_prob = self.predictor.log_prob(_numbers(features.flatten(0, -2)), _numbers(ids.reshape(-1)))
        return torch.from_numpy(log_prob).float().reshape(ids.shape).to(ids.device)

    def loss(
        self, features: Int[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum of -log p over the real tokens, twice: label smoothing does not apply to counts."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum


class Counting(LanguageModel, ABC):
    """A model that is estimated from counts and has no weights."""

    count_based = True
    head: CountingHead

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self.hold(self.unestimated())

    def unestimated(self) -> Predictor:
        """The predictor of a new model."""
        return self.estimated(())

    @abstractmethod
    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """The predictor estimated from sentences (ids without begin and end)."""

    @abstractmethod
    def restored(self, arrays: Arrays) -> Predictor:
        """The predictor that was saved. Raises DataError for arrays of another kind of model or another vocabulary."""

    def hold(self, predictor: Predictor) -> None:
        """Use this predictor from now on."""
        self.head = CountingHead(predictor)

    def estimate(self, sequences: Iterable[Sequence[int]]) -> None:
        """Estimate the model from sentences (ids without begin and end)."""
        self.hold(self.estimated(sequences))

    @property
    def predictable(self) -> Bools:
        """Tokens of the vocabulary that can be predicted: all except padding and begin of sentence, [V]."""
        predictable = np.ones(self.vocabularies.tgt_size, dtype=np.bool_)
        predictable[[self.vocabularies.pad_id, self.vocabularies.bos_id]] = False
        return predictable

    def counts(self, sequences: Iterable[Sequence[int]], order: int) -> NgramCounts:
        """Counts of n-grams of sentences."""
        ids = self.vocabularies
        return NgramCounts.of(sequences, order, ids.tgt_size, ids.bos_id, ids.eos_id, ids.pad_id)

    def with_cache(self, model: Predictor, config: CacheConfig) -> Predictor:
        """The model interpolated with a cache of recent words, if the config asks for one."""
        ids = self.vocabularies
        if not config.cache_share:
            return model
        return Cached(model, config, ids.eos_id, (ids.pad_id, ids.bos_id, ids.eos_id))

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The predictor's arrays as tensors."""
        arrays = self.head.predictor.arrays()
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned. Raises DataError; see `restored`."""
        self.hold(self.restored({name: _array(tensor) for name, tensor in state_dict.items()}))

    def initial_state(self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None) -> CountingState:
        """Rows in the context of a beginning text."""
        return CountingState(torch.from_numpy(self.head.predictor.start).repeat(num_rows, 1))

    def advance(
        self, ids: Int[Tensor, "B T"], state: CountingState, trace: Trace | None = None
    ) -> tuple[Int[Tensor, "B T D"], CountingState]:
        """The contexts of the next tokens."""
        contexts = self.head.predictor.follow(_numbers(state.contexts), _numbers(ids))
        features = torch.from_numpy(contexts).to(ids.device)
        return features, CountingState(features[:, -1])


def _array(tensor: Tensor) -> NDArray[np.generic]:
    # NumPy has no bfloat16.
    array: NDArray[np.generic] = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).cpu().numpy()
    return array


def _numbers(tensor: Tensor) -> Ints:
    return np.asarray(tensor.cpu().numpy(), dtype=np.int64)
