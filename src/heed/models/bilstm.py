"""Bidirectional recurrent readers of words: BiLSTM and BiGRU (Graves & Schmidhuber 2005; Huang et al. 2015), and any
other recurrent unit, such as the tanh network of Schuster & Paliwal (1997) and the GRU of Cho et al. (2014).

The input of a word is its vector, and for sources of words optionally features of its characters (Lample et al. 2016;
Ma & Hovy 2016), vectors of its prefixes and suffixes (Huang et al. 2015), of its letter case and of its mark (the
predicate, in semantic role labelling). Words that occur once in training are read as the unknown word with a
probability, so that the unknown word is trained (Lample et al. 2016, section 4.3); with another one, any word is (Iyyer
et al. 2015, "Deep unordered composition rivals syntactic methods"), so that no word is all that a tag rests on.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.core.errors import UsageError
from heed.models.model import ModelConfig, ReaderModel
from heed.nn.affixes import AffixVectors
from heed.nn.characters import CHARACTERS, vectors
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.recurrent import CELLS, Bidirectional, Cell, GRUCell, LSTMCell
from heed.nn.word_source import NUM_CASES

UNKNOWN_SITE = 1 << 10
"""Dropout site of the words that are read as unknown."""


class BiLstmConfig(ModelConfig):
    """Sizes of a bidirectional LSTM."""

    kind: Literal["bilstm"] = "bilstm"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=100, ge=1)
    """Size of the vectors of words."""
    hidden_size: int = Field(default=200, ge=1)
    """Size of the state in each direction."""
    num_layers: int = Field(default=1, ge=1)
    """Layers, each in both directions."""
    characters: Literal["none", "lstm", "cnn"] = "none"
    """Features of the characters of a word: none, a bidirectional LSTM, or a convolution (sources of words only)."""
    character_size: int = Field(default=30, ge=1)
    """Size of the vectors of characters."""
    character_features: int = Field(default=50, ge=2)
    """Number of features of the characters of a word."""
    case_size: int = Field(default=0, ge=0)
    """Size of the vectors of letter case: lower, upper, capital first, ... (0: none; sources of words only)."""
    affix_size: int = Field(default=0, ge=0)
    """Size of the vector of each prefix and suffix of 2, 3 and 4 characters (0: none; sources of words only)."""
    mark_size: int = Field(default=0, ge=0)
    """Size of the vectors of marks (0: none; sources of words only)."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Dropout of the input and of the output of each layer (rounded to 1/256)."""
    unknown_dropout: float = Field(default=0.5, ge=0, lt=1)
    """Probability that a word that occurs once in training is read as unknown, in training."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Probability that any word is read as unknown, in training (Iyyer et al. 2015)."""

    @model_validator(mode="after")
    def _check_features(self) -> BiLstmConfig:
        if self.characters == "lstm" and self.character_features % 2:
            raise ValueError('model.character_features is shared by two directions with model.characters = "lstm": '
                             "give an even number")  # fmt: skip
        return self

    @property
    def network(self) -> str:
        """The recurrent network in words."""
        return "LSTM"

    def summary(self) -> str:
        inputs = {"none": "", "lstm": " and a character LSTM", "cnn": " and a character CNN"}[self.characters]
        layers = f"{self.num_layers} layer{'s' * (self.num_layers > 1)}"
        return (
            f"a bidirectional {self.network} of {layers} with {self.hidden_size} features in each direction, over "
            f"word vectors of {self.d_model}{inputs}"
        )


class BiGruConfig(BiLstmConfig):
    """Sizes of a bidirectional GRU."""

    kind: Literal["bigru"] = "bigru"  # type: ignore[assignment]
    """Kind of model: the key in `MODELS`."""

    @property
    def network(self) -> str:
        return "GRU"


class BiRnnConfig(BiLstmConfig):
    """Sizes of a bidirectional network of any recurrent unit."""

    kind: Literal["birnn"] = "birnn"  # type: ignore[assignment]
    """Kind of model: the key in `MODELS`."""
    cell: Annotated[str, KeyOf(CELLS)] = "tanh"
    """The recurrent unit (see heed.nn.recurrent)."""

    @property
    def network(self) -> str:
        return f"recurrent network ({self.cell.replace('_', ' ')})"


class BiLstm(ReaderModel):
    """Features of each position from the words on both sides."""

    Config: ClassVar[type[ModelConfig]] = BiLstmConfig
    reads_words = True
    papers = "bidirectional LSTM tagging (Huang et al. 2015; Lample et al. 2016; Ma & Hovy 2016)"

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.unknown_id, self.end_id = vocabularies.unk_id, vocabularies.eos_id
        self.first_singleton = vocabularies.src_size - vocabularies.num_singletons
        _require_words(config, vocabularies)
        self.embedding = vectors(vocabularies.src_size, config.d_model)
        size = config.d_model
        self.characters: nn.Module | None = None
        if config.characters != "none":
            kind = CHARACTERS[config.characters]
            self.characters = kind(vocabularies.num_characters, config.character_size, config.character_features)
            size += config.character_features
        self.affixes = AffixVectors(config.affix_size) if config.affix_size else None
        size += self.affixes.num_features if self.affixes is not None else 0
        self.cases = vectors(NUM_CASES, config.case_size) if config.case_size else None
        self.marks = vectors(vocabularies.num_marks + 1, config.mark_size) if config.mark_size else None
        size += config.case_size + config.mark_size
        self.num_features, self.num_right_to_left = 2 * config.hidden_size, config.hidden_size
        self._add_layers(size)

    @property
    def cell(self) -> type[Cell]:
        """The recurrent unit of its layers."""
        return LSTMCell

    def _add_layers(self, num_inputs: int) -> None:
        """The layers above the input vectors of words."""
        config = self.config
        sizes = [num_inputs] + [self.num_features] * (config.num_layers - 1)
        self.layers = nn.ModuleList(Bidirectional(self.cell, size, config.hidden_size) for size in sizes)

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """The states of both directions at each position."""
        x = self._drop(self._embed(source, dropout_keys), dropout_keys, 0)
        for site, layer in enumerate(self.layers, start=1):
            x, _ = layer(x, source.mask)
            x = self._drop(x, dropout_keys, site)
        return x

    def _drop(self, x: Tensor, dropout_keys: DropoutKeys | None, site: int) -> Tensor:
        return dropout(x, self.config.dropout, dropout_keys, site)

    def _embed(self, source: Any, dropout_keys: DropoutKeys | None) -> Float[Tensor, "B S E"]:
        inputs = [nn.functional.embedding(self._some_unknown(source.ids, dropout_keys), self.embedding)]
        for features in (self.characters, self.affixes):
            if features is not None:
                inputs.append(nn.functional.embedding(source.forms, features(source.characters)))
        if self.cases is not None:
            inputs.append(nn.functional.embedding(source.cases, self.cases))
        if self.marks is not None:
            inputs.append(nn.functional.embedding(source.marks, self.marks))
        return torch.cat(inputs, dim=-1)

    def _some_unknown(self, ids: Int[Tensor, "B S"], dropout_keys: DropoutKeys | None) -> Int[Tensor, "B S"]:
        """The ids, with some of the words replaced by the unknown word, rare ones at a rate of their own."""
        if dropout_keys is None:
            return ids
        rare = ids >= self.first_singleton
        read = self._dropped(ids, rare, self.config.unknown_dropout, dropout_keys.fold(UNKNOWN_SITE))
        return self._dropped(read, ids != self.end_id, self.config.word_dropout, dropout_keys.fold(UNKNOWN_SITE + 1))

    def _dropped(
        self, ids: Int[Tensor, "B S"], may: Bool[Tensor, "B S"], probability: float, dropout_keys: DropoutKeys
    ) -> Int[Tensor, "B S"]:
        """The ids, with some of those that `may` be replaced read as unknown."""
        if not probability:
            return ids
        kept = dropout_keys.keep((ids.shape[1], 1), probability)[..., 0]
        return torch.where(kept | ~may, ids, self.unknown_id)


class BiGru(BiLstm):
    """The same with gated recurrent units."""

    Config: ClassVar[type[ModelConfig]] = BiGruConfig
    papers = "bidirectional GRU tagging (Cho et al. 2014; Yang et al. 2016)"

    @property
    def cell(self) -> type[Cell]:
        return GRUCell


class BiRnn(BiLstm):
    """The same with the recurrent unit that the recipe names."""

    Config: ClassVar[type[ModelConfig]] = BiRnnConfig
    papers = "bidirectional recurrent networks (Schuster & Paliwal 1997)"

    @property
    def cell(self) -> type[Cell]:
        return CELLS[self.config.cell]


def _require_words(config: BiLstmConfig, vocabularies: Vocabularies) -> None:
    """Raise UsageError for inputs that only sources of words have."""
    given = {
        "characters": config.characters != "none", "affix_size": config.affix_size > 0,
        "case_size": config.case_size > 0,
    }  # fmt: skip
    if not vocabularies.num_characters and any(given.values()):
        named = ", ".join(f"model.{key}" for key, value in given.items() if value)
        raise UsageError(f"{named}: this task has no characters of words, which task tagging has. Leave it out.")
    if config.mark_size and not vocabularies.num_marks:
        raise UsageError("model.mark_size: the data has no marks. Name their column (--mark-column), or leave it out.")
