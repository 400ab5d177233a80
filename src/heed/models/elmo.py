"""ELMo: language models as a reader (Peters et al. 2018, "Deep contextualized word representations", equation 1).

A forward model reads each text from its beginning, a backward one from its end. The features of position k are

    γ Σ_j s_j h_{k,j},   s = softmax(w),   h_{k,j} = [forward state j after reading x_1 … x_k ;
                                                      backward state j after reading x_n … x_k]

over the embeddings (j = 0) and all layers, or the last layer alone. Without a backward model the features are those of
the forward one, as in ULMFiT and GPT. The end of a text has the forward state after its last token, and the backward
state before it. The models are heed's own language models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import model_validator
from torch import Tensor, nn

from heed.core.config import ChosenBy
from heed.models.gpt import Gpt
from heed.models.model import ModelConfig, ReaderModel
from heed.models.rnn_lm import Recurrent, RecurrentConfig
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys

LANGUAGE_MODELS: dict[str, type[Gpt] | type[Recurrent]] = {"gpt": Gpt, "rnn": Recurrent}
"""Language models whose layers can be read."""

LanguageModelConfig = Annotated[
    ModelConfig, ChosenBy("kind", lambda: {kind: model.Config for kind, model in LANGUAGE_MODELS.items()}, dict)
]


class ElmoConfig(ModelConfig):
    """One or two language models, and how their layers are combined."""

    kind: Literal["elmo"] = "elmo"
    """Kind of model: the key in `MODELS`."""
    forward: LanguageModelConfig = RecurrentConfig(hidden_size=256)
    """The language model that reads from the beginning."""
    backward: LanguageModelConfig | None = None
    """The language model that reads from the end; none: one direction."""
    layers: Literal["mix", "last"] = "mix"
    """A learned weighted sum of all layers and the embeddings, or the last layer."""

    @model_validator(mode="after")
    def _check(self) -> ElmoConfig:
        for config in filter(None, (self.forward, self.backward)):
            sizes = {config.d_model, *getattr(config, "layer_sizes", ())}  # type: ignore[attr-defined]
            if self.layers == "mix" and len(sizes) > 1:
                raise ValueError(
                    f'model.layers = "mix" adds layers of equal size, and a language model has {sorted(sizes)}: set '
                    'model.layers = "last", or train it with model.hidden_size = model.d_model'
                )
        if self.backward is not None and len({_num_layers(c) for c in (self.forward, self.backward)}) > 1:
            raise ValueError("the forward and the backward language model must have the same number of layers")
        return self

    @property
    def max_positions(self) -> int | None:
        limits = [each.max_positions for each in (self.forward, self.backward) if each and each.max_positions]
        return min(limits, default=None)

    def summary(self) -> str:
        directions = "both directions" if self.backward else "one direction"
        features = "a weighted sum of their layers" if self.layers == "mix" else "their last layer"
        return f"language models in {directions} as a reader: {self.forward.summary()}; {features}"


def _num_layers(config: ModelConfig) -> int:
    number: int = config.num_layers  # type: ignore[attr-defined]
    return number


class ScalarMix(nn.Module):
    """γ Σ_j softmax(w)_j h_j; all layers are equal at first."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, layers: Sequence[Float[Tensor, "B S D"]]) -> Float[Tensor, "B S D"]:
        """The mixture, in the shape of a layer."""
        shares = self.weights.softmax(0)
        return self.scale * torch.stack([share * layer for share, layer in zip(shares, layers, strict=True)]).sum(0)


class Elmo(ReaderModel):
    """Features of each position from what language models compute there."""

    Config = ElmoConfig
    vectors_name = "forward_lm.embedding"
    papers = "ELMo (Peters et al. 2018)"

    def __init__(self, config: ElmoConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.bos_id = vocabularies.bos_id
        self.forward_lm = _language_model(config.forward, vocabularies)
        self.backward_lm = _language_model(config.backward, vocabularies) if config.backward else None
        sizes = [_feature_size(each) for each in (config.forward, config.backward) if each]
        self.num_features = sum(sizes)
        self.mix = ScalarMix(_num_layers(config.forward) + 1) if config.layers == "mix" else None

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """The combined layers of both models."""
        layers = self.layers(source, dropout_keys)
        mixed: Tensor = layers[-1] if self.mix is None else self.mix(layers)
        return mixed

    def layers(self, source: Any, dropout_keys: DropoutKeys | None = None) -> list[Float[Tensor, "B S D"]]:
        """h_0 (embeddings) … h_L, each with the features of both directions."""
        layers = self._forward_layers(source, dropout_keys and dropout_keys.fold(0))
        if self.backward_lm is None:
            return layers
        backward = self._backward_layers(source, dropout_keys and dropout_keys.fold(1))
        return [torch.cat(pair, dim=-1) for pair in zip(layers, backward, strict=True)]

    def _forward_layers(self, source: Any, dropout_keys: DropoutKeys | None) -> list[Tensor]:
        """Position k has the state after x_k; the end has that after the last token."""
        begin = torch.full_like(source.ids[:, :1], self.bos_id)
        read = torch.cat((begin, source.ids[:, :-1]), dim=1)
        last = source.mask.sum(1, keepdim=True) - 1
        after = torch.arange(1, read.shape[1] + 1, device=read.device).minimum(last)
        return [_gathered(layer, after) for layer in self.forward_lm.hidden_layers(read, dropout_keys)]

    def _backward_layers(self, source: Any, dropout_keys: DropoutKeys | None) -> list[Tensor]:
        """The reversed text, whose end is now the begin; position k has the state after x_k."""
        assert self.backward_lm is not None
        columns = torch.arange(source.ids.shape[1], device=source.ids.device)
        mirrored = (source.mask.sum(1, keepdim=True) - 1 - columns).clamp(min=0)
        read = source.ids.gather(1, mirrored)
        read[:, 0] = self.bos_id
        return [_gathered(layer, mirrored) for layer in self.backward_lm.hidden_layers(read, dropout_keys)]


def _gathered(layer: Float[Tensor, "B S D"], columns: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
    return layer.gather(1, columns[..., None].expand(-1, -1, layer.shape[-1]))


def _feature_size(config: ModelConfig) -> int:
    """Features of the last layer."""
    sizes: list[int] = getattr(config, "layer_sizes", [config.d_model])  # type: ignore[attr-defined]
    return sizes[-1]


def _language_model(config: ModelConfig, vocabularies: Vocabularies) -> Gpt | Recurrent:
    """The language model without its output layer."""
    sizes = Vocabularies(0, vocabularies.src_size)
    model = LANGUAGE_MODELS[config.kind](config, sizes)  # type: ignore[arg-type]
    del model.head
    return model
