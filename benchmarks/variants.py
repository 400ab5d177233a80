"""Variants of the Transformer that heed does not have, trained on your data: are they worth having?

    python benchmarks/variants.py --out runs/variants --updates 1108 -- \\
        --task=translation --data.src=train.en.gz --data.tgt=train.de.gz --data.valid_src=val.en.gz ...

After `--` come recipe keys that all runs share, or one recipe file and keys. Each variant is an external model
(docs/adding.md): heed's own Transformer with some of its parts replaced, so what it costs to try an idea is this file.
Finished runs are not trained again, so choose another --out for other settings. The table has greedy BLEU on validation
data after each validation.

- `gated`: feed-forward layers W_3 (silu(W_1 x) * W_2 x) with two thirds of the features (Shazeer 2020, SwiGLU).
- `rms-norm`: root mean square normalisation (Zhang & Sennrich 2019).
- `rotary`, `deep-encoder`, `ssru`: keys of heed's own, for comparison.
- `layer-drop`: each decoder block is left out for a fifth of the rows (Fan et al. 2020; Araabi & Monz 2020).
- `word-dropout`, `source-word-dropout`: a tenth of the target words that the decoder reads, or of the words of the
  source, have no embedding (Gal & Ghahramani 2016).
- `activation-dropout`: a tenth of the features inside the feed-forward layers are zero.
- `factorised`: embeddings of half the size, and a matrix from them to the size of the model (Lan et al. 2020, ALBERT);
  the output layer has the target's embeddings and a matrix of its own.
- `qk-norm`: queries and keys of length one, and a learned scale in place of 1/√K (Henry et al. 2020).
- `no-bias`: linear layers and layer normalisation without biases (Chowdhery et al. 2022, PaLM).
- `araabi-monz`: what Araabi & Monz (2020) recommend for 5,000 pairs, but for the width of the model: five layers each,
  four times as many features in the feed-forward layers, dropout 0.3, label smoothing 0.6, and `layer-drop`,
  `word-dropout` and `activation-dropout` with 0.3, 0.1 and 0.3.
- `araabi-monz-10k`, `araabi-monz-40k`, `araabi-monz-80k`: what they recommend for 10,000, 40,000 and 80,000 pairs,
  likewise: 1,024, 2,048 and 2,048 features in the feed-forward layers, label smoothing 0.5, 0.5 and 0.4, `layer-drop`
  0.2, 0.1 and 0.1. For 40,000 pairs also `source-word-dropout`; for 80,000 twice as much of both kinds of word dropout,
  and none of activations. The vocabulary is that of the recipe (the paper has 10,000, 12,000 and 15,000 pieces).
- `wide-inside`, `wide`, `deep`, `deep-narrow`: other sizes, for comparison at equal minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from experiments import markdown
from pydantic import Field
from torch import Tensor, nn

import heed
from heed.core.errors import UsageError
from heed.models.transformer import LAYER_NORM_EPSILON, Residual, Transformer, TransformerConfig
from heed.nn.attention.attention import BEGINNING
from heed.nn.attention.multi_head import MultiHeadAttention
from heed.nn.contract import Smoothing, Vocabularies
from heed.nn.device import set_threads
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.heads import LinearHead
from heed.nn.states import KeysValues, RowPositions
from heed.training.metrics_log import read_metrics

KIND = "transformer_variant"
VARIANTS: dict[str, dict[str, object]] = {
    "baseline": {},
    "gated": {"model.gated": True},
    "rms-norm": {"model.rms_norm": True},
    "rotary": {"model.attention": "rotary"},
    "deep-encoder": {"model.num_encoder_layers": 6, "model.num_decoder_layers": 2},
    "ssru": {"model.decoder_mixing": "ssru"},
    "layer-drop": {"model.layer_drop": 0.2},
    "word-dropout": {"model.word_dropout": 0.1},
    "activation-dropout": {"model.activation_dropout": 0.1},
    "source-word-dropout": {"model.source_word_dropout": 0.1},
    "factorised": {"model.embedding_size": 64},
    "no-bias": {"model.bias": False},
    "qk-norm": {"model.qk_norm": True},
    "araabi-monz": {
        "model.num_encoder_layers": 5, "model.num_decoder_layers": 5, "model.d_ff": 512, "model.dropout": 0.3,
        "training.label_smoothing": 0.6, "model.layer_drop": 0.3, "model.word_dropout": 0.1,
        "model.activation_dropout": 0.3,
    },
    "araabi-monz-10k": {
        "model.num_encoder_layers": 5, "model.num_decoder_layers": 5, "model.d_ff": 1024, "model.dropout": 0.3,
        "training.label_smoothing": 0.5, "model.layer_drop": 0.2, "model.word_dropout": 0.1,
        "model.activation_dropout": 0.3,
    },
    "araabi-monz-40k": {
        "model.num_encoder_layers": 5, "model.num_decoder_layers": 5, "model.d_ff": 2048, "model.dropout": 0.3,
        "training.label_smoothing": 0.5, "model.layer_drop": 0.1, "model.source_word_dropout": 0.1,
        "model.word_dropout": 0.1, "model.activation_dropout": 0.3,
    },
    "araabi-monz-80k": {
        "model.num_encoder_layers": 5, "model.num_decoder_layers": 5, "model.d_ff": 2048, "model.dropout": 0.3,
        "training.label_smoothing": 0.4, "model.layer_drop": 0.1, "model.source_word_dropout": 0.2,
        "model.word_dropout": 0.2,
    },
    "wide-inside": {"model.d_ff": 512},
    "wide": {"model.d_model": 192, "model.d_ff": 384, "model.num_heads": 3},
    "deep": {"model.num_encoder_layers": 6, "model.num_decoder_layers": 6},
    "deep-narrow": {
        "model.d_model": 96, "model.d_ff": 192, "model.num_encoder_layers": 6, "model.num_decoder_layers": 6,
    },
}  # fmt: skip
"""The keys that each variant changes."""


class VariantConfig(TransformerConfig):
    """Sizes and choices of a Transformer with other parts."""

    kind: Literal["transformer_variant"] = "transformer_variant"  # type: ignore[assignment]
    """Kind of model: the key in `MODELS`."""
    gated: bool = False
    """Feed-forward layers with a gate."""
    rms_norm: bool = False
    """Root mean square normalisation in place of layer normalisation."""
    layer_drop: float = Field(default=0.0, ge=0, lt=1)
    """Share of the rows for which a decoder block is left out in training."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the target words without an embedding in training."""
    source_word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """The same of the words of the source."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout inside the feed-forward layers."""
    embedding_size: int | None = Field(default=None, ge=1)
    """Features of a factorised embedding."""
    bias: bool = True
    """Biases in linear layers and layer normalisation."""
    qk_norm: bool = False
    """Queries and keys of length one."""


class KeyedFeedForward(nn.Module):
    """Feed-forward layers with a gate, or with dropout inside; the residual gives them the keys."""

    def __init__(self, config: VariantConfig) -> None:
        super().__init__()
        size = config.d_ff * 2 // 3 // 8 * 8 if config.gated else config.d_ff
        self.expand = nn.Linear(config.d_model, size)
        self.gate = nn.Linear(config.d_model, size) if config.gated else None
        self.contract = nn.Linear(size, config.d_model)
        for linear in (self.expand, self.gate, self.contract):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
        self.probability = config.activation_dropout
        self.keys: DropoutKeys | None = None
        self.offset = 0

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        inner = F.relu(self.expand(x)) if self.gate is None else F.silu(self.gate(x)) * self.expand(x)
        inner = dropout(inner, self.probability, self.keys, 97, self.offset)
        out: Tensor = self.contract(inner)
        return out


class QKNormAttention(MultiHeadAttention):
    """Attention by the angle between queries and keys: softmax(g cos(q, k)) v."""

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.scale = nn.Parameter(torch.tensor(8.0))  # about log2(L² - L) for L = 16 tokens, as in the paper

    def queries(self, x: Tensor, positions: RowPositions) -> Tensor:
        """Queries of length g √K, which the product divides by √K."""
        heads = super().queries(x, positions).unflatten(-1, (self.num_heads, -1))
        return (F.normalize(heads, dim=-1) * self.scale * self.key_size**0.5).flatten(-2)

    def project(self, memory: Tensor, positions: RowPositions = BEGINNING) -> KeysValues:
        """Keys of length one, and values."""
        keys, values = super().project(memory, positions)
        return F.normalize(keys, dim=-1), values


class VariantResidual(Residual):
    """A residual connection that may leave its block out for some rows, and hands the keys to the feed-forward."""

    def __init__(self, config: VariantConfig, layer_drop: float) -> None:
        super().__init__(config)
        self.layer_drop = layer_drop
        if config.rms_norm:
            self.norm = nn.RMSNorm(config.d_model, LAYER_NORM_EPSILON)

    def forward(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], dropout_keys: DropoutKeys | None, site: int,
        offset: int = 0,
    ) -> Tensor:  # fmt: skip
        """As without variants; all sublayers of a block are left out for the same rows."""
        if isinstance(sublayer, KeyedFeedForward):
            sublayer.keys, sublayer.offset = dropout_keys, offset
        y = super().forward(x, sublayer, dropout_keys, site, offset)
        if dropout_keys is None or not self.layer_drop:
            return y
        stays = dropout_keys.fold(98).keep((1, 1), self.layer_drop)
        return torch.where(stays, y, x)


class WordDropoutEmbedding(TokenEmbedding):
    """Embeddings without the words at some positions."""

    word_dropout = 0.0

    def forward(
        self, ids: Tensor, dropout_keys: DropoutKeys | None = None, offset: int = 0, first: Tensor | None = None
    ) -> Tensor:
        """Vectors of the tokens; only the position remains of those that are dropped."""
        if dropout_keys is None:
            return super().forward(ids, dropout_keys, offset, first)
        stays = dropout_keys.fold(96).keep((ids.shape[1], 1), self.word_dropout, dropout_keys.shift + offset)
        vectors = F.embedding(ids, self.weight) * self.scale * stays
        vectors = vectors + self._encodings(offset, offset + ids.shape[1], first)
        return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)


class FactorisedEmbedding(TokenEmbedding):
    """Embeddings of few features, which a matrix brings to the size of the model."""

    def __init__(self, weight: nn.Parameter, config: VariantConfig) -> None:
        super().__init__(weight, config.d_model, "none", config.dropout)
        self.kind, self.position_size = config.positions, config.d_model
        self.register_buffer("positions", self.table(256), persistent=False)
        self.expand = embedding_weight(weight.shape[1], config.d_model)
        nn.init.normal_(self.expand, std=weight.shape[1] ** -0.5)

    def forward(
        self, ids: Tensor, dropout_keys: DropoutKeys | None = None, offset: int = 0, first: Tensor | None = None
    ) -> Tensor:
        """Vectors of the tokens with their positions."""
        vectors = F.embedding(ids, self.weight) * self.scale @ self.expand
        vectors = vectors + self._encodings(offset, offset + ids.shape[1], first)
        return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)


class FactorisedHead(LinearHead):
    """An output layer over few features, which a matrix makes from those of the model."""

    def __init__(self, weight: nn.Parameter, pad_id: int, bias: bool, d_model: int) -> None:
        super().__init__(weight, pad_id, bias)
        self.narrow = nn.Linear(d_model, weight.shape[1])

    def logits(self, features: Tensor) -> Tensor:
        """Unnormalised scores of the whole vocabulary."""
        return super().logits(self.narrow(features))

    def loss(self, features: Tensor, tgt_out: Tensor, mask: Tensor, smoothing: Smoothing) -> tuple[Tensor, Tensor]:
        """As of a linear head."""
        return super().loss(self.narrow(features), tgt_out, mask, smoothing)


def without_biases(model: nn.Module) -> None:
    """Replace all biases by zeros that are not trained."""
    for module in model.modules():
        if isinstance(bias := module._parameters.get("bias"), nn.Parameter):
            del module.bias
            module.register_buffer("bias", torch.zeros_like(bias), persistent=False)


class VariantTransformer(Transformer):
    """A Transformer with some of its parts replaced."""

    Config = VariantConfig

    def __init__(self, config: VariantConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        for block, layer_drop in self._all_blocks():
            for name, child in list(block.named_children()):
                if isinstance(child, Residual):
                    setattr(block, name, VariantResidual(config, layer_drop))
                if config.qk_norm and type(child) is MultiHeadAttention:
                    setattr(block, name, QKNormAttention(config.d_model, config.num_heads, config.attention_dropout))
            if config.gated or config.activation_dropout:
                block.feed_forward = KeyedFeedForward(config)
        if config.qk_norm and not any(isinstance(module, QKNormAttention) for module in self.modules()):
            raise UsageError("model.qk_norm is for model.attention = multi_head.")
        for block in self.blocks:
            block.make_step = lambda: None  # the fast step knows heed's own parts alone
        if config.rms_norm and config.norm == "pre":
            self.norm = nn.RMSNorm(config.d_model, LAYER_NORM_EPSILON)
            self.encoder.norm = nn.RMSNorm(config.d_model, LAYER_NORM_EPSILON)
        for embedding, share in (
            (self.embedding, config.word_dropout),
            (self.encoder.embedding, config.source_word_dropout),
        ):
            if share:
                embedding.__class__ = WordDropoutEmbedding
                embedding.word_dropout = share
        if config.embedding_size:
            src_weight = embedding_weight(vocabularies.src_size, config.embedding_size)
            tgt_weight = embedding_weight(vocabularies.tgt_size, config.embedding_size)
            self.encoder.embedding = FactorisedEmbedding(src_weight, config)
            self.embedding = FactorisedEmbedding(tgt_weight, config)
            self.head = FactorisedHead(tgt_weight, vocabularies.pad_id, config.output_bias, config.d_model)
        if not config.bias:
            without_biases(self)

    def _all_blocks(self) -> Iterator[tuple[Any, float]]:
        yield from ((block, 0.0) for block in self.encoder.blocks)
        yield from ((block, self.config.layer_drop) for block in self.blocks)  # type: ignore[attr-defined]

    def require_ctranslate2(self) -> None:
        """Raises UsageError: CTranslate2 does not know the variants."""
        raise UsageError("CTranslate2 does not have the variants of this benchmark.")


def run(name: str, recipe: Path | None, keys: dict[str, object], out: Path) -> None:
    """Train one variant, unless it is finished."""
    folder = out / name
    if (folder / "report.md").is_file():
        return
    changes = {**keys, **VARIANTS[name], "model.kind": KIND, "training.patience": 0, "training.max_minutes": 0}
    if recipe is None:
        heed.train(changes, folder, device="cpu", overwrite=True, members=[VariantTransformer])
    else:
        heed.train(recipe, folder, changes, device="cpu", overwrite=True, members=[VariantTransformer])


def greedy(folder: Path) -> dict[int, float]:
    """Greedy BLEU on validation data by update."""
    return {int(e["step"]): float(e["bleu"]) for e in read_metrics(folder) if e["event"] == "validation"}


def value_of(text: str) -> object:
    """A recipe key's value: JSON where it is, or a string."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def split_keys(words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Arguments before `--`, and the recipe keys after it."""
    end = words.index("--") if "--" in words else len(words)
    changes = [word.removeprefix("--").partition("=") for word in words[end + 1 :]]
    return words[:end], {name: value_of(value) for name, _, value in changes}


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/variants"), help="folder of the runs")
    parser.add_argument("--updates", type=int, required=True, help="updates for each variant")
    parser.add_argument("--only", default=",".join(VARIANTS), help="comma-separated names")
    parser.add_argument("words", nargs="+", metavar="-- KEYS", help="a recipe file, and recipe keys")
    given = parser.parse_args()
    recipes = [Path(word) for word in given.words if not word.startswith("--")]
    pairs = [word.removeprefix("--").partition("=") for word in given.words if word.startswith("--")]
    keys = {name: value_of(value) for name, _, value in pairs} | {"training.max_steps": given.updates}
    names = given.only.split(",")
    if unknown := set(names) - VARIANTS.keys():
        sys.exit(f"error: no variant is called {', '.join(sorted(unknown))}. There are: {', '.join(VARIANTS)}.")
    set_threads(1)
    scores = {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        run(name, recipes[0] if recipes else None, keys, given.out)
        scores[name] = greedy(given.out / name)
    steps = sorted({step for of_one in scores.values() for step in of_one})
    rows = [[name, *(f"{own[step]:.1f}" if step in own else "" for step in steps)] for name, own in scores.items()]
    print(markdown(["variant", *(f"{step:,}" for step in steps)], rows))


if __name__ == "__main__":
    main()
