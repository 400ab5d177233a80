"""Base classes of models and of their configs.

A model is one file and one key of `heed.models.MODELS`: a config with a `kind`, and a class that names its config and
declares the attributes below. The rest of heed reads these attributes and never a model's name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.core.config import Config
from heed.core.errors import DataError, UsageError
from heed.nn.contract import Head, Source, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.recurrent import States
from heed.statistical.derivation import Bitext, Derivation, Forced


class ModelConfig(Config):
    """The `[model]` table of a recipe; each model has one with a `kind` of its own."""

    kind: str
    """Kind of model: the key in `MODELS`."""

    @property
    def max_positions(self) -> int | None:
        """Most positions of a text that it reads at once, the end of the text included; None: any number."""
        return None

    def keys_below(self, positions: int) -> list[str]:
        """The keys of this table and of its inner ones, such as `encoder.max_len`, that limit it to fewer positions."""
        inner = [(name, value) for name, value in self if isinstance(value, ModelConfig)]
        found = [f"{name}.{key}" for name, value in inner for key in value.keys_below(positions)]
        is_own = "max_len" in type(self).model_fields and (self.max_positions or positions) < positions
        return ["max_len", *found] if is_own else found

    def summary(self) -> str:
        """The model in a phrase, for reports: `a Transformer encoder-decoder of 3 + 3 layers`."""
        keys = ", ".join(f"{key} {value}" for key, value in self if key != "kind")
        return f"a model of kind {self.kind}" + (f" ({keys})" if keys else "")


Shard = tuple[nn.Module, Sequence[str]]
"""A part of a model, and its methods besides `forward` that are called from outside and need its weights."""


class Model(nn.Module):
    """A model that a recipe can name. It is made from its config and the vocabularies."""

    Config: ClassVar[type[ModelConfig]]
    """Its `[model]` table."""
    count_based: ClassVar[bool] = False
    """Whether it is estimated from counts in one pass, without gradients."""
    sparse_gradients: ClassVar[bool] = False
    """Whether an update changes few rows of its weights, so that gradients are sparse tensors."""
    replayable: ClassVar[bool] = False
    """Whether a GPU computes all batches of one shape by the same kernels, so that `heed.training.replay` can record
    them."""
    generates: ClassVar[bool] = False
    """Whether it writes token by token (`GenerativeModel`)."""
    derives: ClassVar[bool] = False
    """Whether it is a translator that searches by itself (`DerivingModel`)."""
    proposes_several: ClassVar[bool] = False
    """Whether it derives several translations of a source, of which others can choose."""
    reads_target_text: ClassVar[bool] = False
    """Whether it is a translator that also learns from text in the target language alone."""
    needs_source: ClassVar[bool] = False
    """Whether it is conditioned on a source, as a translation model is."""
    source: ClassVar[Literal["tokens", "images", "documents"]] = "tokens"
    """What its source is made of, if it needs one: tokens, images, or documents as sentences of tokens."""
    reads_words: ClassVar[bool] = False
    """Whether it is a reader of whole words and their characters, with the settings of `heed.models.bilstm`."""
    reads: ClassVar[Literal["lines", "stream", "windows"]] = "lines"
    """How it reads a text by default: line by line, as one stream with a state that is carried along, or in
    independent windows."""
    compares_losses: ClassVar[bool] = False
    """Whether the loss of its head compares with the moving average of -log p, as that of `CaptionHead`."""
    vectors_name: ClassVar[str] = "embedding"
    """The name of the vectors of tokens among the weights of a reader."""
    papers: ClassVar[str] = ""
    """Citation: `the trellis network (Bai et al. 2019)`."""

    def require_ctranslate2(self) -> None:
        """Raise UsageError for a model that CTranslate2 does not have."""
        kind = self.Config.model_fields["kind"].default
        raise UsageError(f"CTranslate2 does not have models of kind {kind}.")


MODELS: dict[str, type[Model]] = {}
"""The models that a recipe can name by `model.kind`; `heed.models` adds those of heed."""


class ReaderModel(Model):
    """A model that reads a whole source at once. A task puts a head on it (`heed.nn.reader_heads`).

    Laws, tested for every reader in tests/contracts: (1) padding and neighbours do not change the features of a row;
    (2) without positions, permuting the source permutes the features; (3) traced attention sums to one over the real
    positions.
    """

    num_features: int
    """Features of each position (D)."""
    num_added: int = 0
    """Positions that it reads before the first one of each row: traced attention has them, features do not."""
    num_right_to_left: int = 0
    """How many of the features of a position, the last ones, are the state of a network that reads right to left."""
    last_sizes: tuple[tuple[int, ...], ...] = ()
    """Sizes of the states of each layer after the whole source, in readers that have a last state."""

    def token_vectors(self) -> nn.Parameter | None:
        """The vectors [V, D] of the tokens that it reads, which an output layer may share; None without any."""
        return None

    @abstractmethod
    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """Features of each position of a `heed.nn.contract.Source`; those of padding are undefined."""

    def read_begun(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B N D"]:
        """As `read`, after the features of the `num_added` positions before the first one."""
        return self.read(source, dropout_keys, trace)

    def read_to_end(
        self, source: Any, dropout_keys: DropoutKeys | None = None
    ) -> tuple[Float[Tensor, "B S D"], tuple[States, ...]]:
        """As `read`, and the states of the layers after the whole source, in models of `last_sizes`."""
        return self.read(source, dropout_keys), ()


class ReaderToEnd(ReaderModel):
    """A reader that always computes the states after the whole source."""

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """Its features alone; it has no attention to trace."""
        features, _ = self.read_to_end(source, dropout_keys)
        return features

    @abstractmethod
    def read_to_end(
        self, source: Any, dropout_keys: DropoutKeys | None = None
    ) -> tuple[Float[Tensor, "B S D"], tuple[States, ...]]: ...


class GenerativeModel(Model):
    """A model of P(w_t | w_<t, source): it keeps the contract of `heed.nn.contract.Autoregressive`."""

    generates = True
    head: Head

    def shards(self) -> Iterable[Shard]:
        """The parts whose weights are gathered one after another when the model is sharded, inner ones first."""
        return ()

    def start(
        self,
        source: Any,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> Any:
        """The state before the first token; `source` is a `heed.nn.contract.Source` that the model reads, or None."""
        raise NotImplementedError

    def advance(
        self, ids: Int[Tensor, "B T"], state: Any, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], Any]:
        """Features of the next token after each of the given ones, and the state after them."""
        raise NotImplementedError

    def ctranslate2_specification(self, num_positions: int) -> Any:
        """Its weights in the layout of CTranslate2, for texts of up to `num_positions` tokens.

        `require_ctranslate2` must accept it.
        """
        raise NotImplementedError


class DerivingModel(Model):
    """A translator that searches by itself (`heed.statistical.derivation.Derives`), estimated from sentence pairs."""

    count_based = True
    derives = True
    needs_source = True
    needs_words = False
    """Whether each token must be a word."""
    config: ModelConfig

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self._translator: Any = None

    @property
    def translator(self) -> Any:
        """What was estimated: it derives (`Derives`), and has `arrays`. Raises DataError before."""
        if self._translator is None:
            raise DataError(f"the {self.config.kind.replace('_', '-')} model is not estimated yet.")
        return self._translator

    def hold(self, translator: Any) -> None:
        """Use this translator from now on."""
        self._translator = translator

    def untuned(self) -> Self:
        """This model with weights that were not tuned on validation data; itself if it has none."""
        return self

    def estimate(self, bitext: Bitext) -> None:
        """Estimate everything, and tune the weights."""
        self.hold(self.estimated(bitext))

    @classmethod
    def require_usable(cls, config: Any) -> None:
        """Raise UsageError, before anything is prepared, for settings that nothing can be estimated with."""
        return

    @abstractmethod
    def estimated(self, bitext: Bitext) -> Any:
        """A translator that is estimated from sentence pairs."""

    @abstractmethod
    def restored(self, arrays: Mapping[str, Any]) -> Any:
        """The translator with these arrays. Raises DataError for other arrays."""

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """The best derivations with different targets, the best first, with `width` active hypotheses."""
        derivations: list[Derivation] = self.translator.derive(source, width, number, forced)
        return derivations

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The arrays of the translator as tensors."""
        return {name: torch.from_numpy(np.array(array)) for name, array in self.translator.arrays().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned. Raises DataError for other arrays."""
        self.hold(self.restored({name: tensor.cpu().numpy() for name, tensor in state_dict.items()}))

    def weights_by_name(self) -> Mapping[str, float]:
        """The weight of each feature of its derivations."""
        weights: Mapping[str, float] = self.translator.weights_by_name()
        return weights


class LanguageModel(GenerativeModel):
    """A model of P(w_t | w_<t): a source only determines the number of rows."""

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> Any:
        """The state before the first token, with `rows_per_source` rows for each row of the source."""
        if source is not None:
            dropout_keys = dropout_keys and dropout_keys.repeat(rows_per_source)
            rows_per_source *= len(source)
        return self.initial_state(rows_per_source, reserve, dropout_keys)

    @abstractmethod
    def initial_state(self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None) -> Any:
        """The state of `num_rows` rows before the first token; see `start`."""
