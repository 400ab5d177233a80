"""Linear model over n-grams of words and characters: penalised (logistic) regression at its proper optimum.

Features are the n-grams of a text that occur at least `min_count` times in training, with tf-idf values (1 + log of the
count, times inverse document frequency) and unit norm for each kind: words, characters, and for pairs those of each
text and those that both have. The scaling (tf-idf alone, or with Naive Bayes log-count ratios; Wang & Manning 2012,
"Baselines and bigrams") and the strength C are those with the best likelihood on validation data, after a temperature.
If the validation texts were held out of the training ones, the weights are then fitted again on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from heed.core.errors import DataError
from heed.models.model import Model, ModelConfig
from heed.models.ngram_blocks import NgramBlocks, Texts
from heed.nn.contract import Vocabularies
from heed.nn.incidence import MOST_COLUMNS, Features, Incidence
from heed.nn.links import LINKS, Link
from heed.nn.penalised_regression import Optimum, fit
from heed.statistical.text_ngrams import MAX_COUNT, Hashes, NgramOrders, columns_of

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of C that are tried."""
_ROUGH = 1e-2
"""Tolerance of the fits that are only compared."""
_VERSION = 2
"""Of the arrays. In version 1, which had no number, marks after a letter were words of their own."""
MAX_ENTRIES = 60_000_000
"""N-grams of all texts together, at most ten bytes each: in a larger corpus, only shorter n-grams are features."""
_SAMPLE = 1000
"""Texts by which their number is estimated."""
MAX_WEIGHTS = 40_000_000
"""Weights of all labels together: with many labels, fewer n-grams are features."""


class LinearConfig(ModelConfig):
    """Logistic regression over n-grams (regression, if labels are numbers)."""

    kind: Literal["linear"] = "linear"
    """Kind of model: the key in `MODELS`."""
    words: int = Field(default=2, ge=1, le=5)
    """Longest n-gram of words."""
    min_characters: int = Field(default=2, ge=2)
    """Shortest n-gram of characters."""
    characters: int = Field(default=5, ge=0, le=10)
    """Longest n-gram of characters (0: none)."""
    min_count: int = Field(default=2, ge=1)
    """Occurrences in training from which an n-gram is a feature."""
    max_features: int = Field(default=1_000_000, ge=1, le=MOST_COLUMNS)
    """The most frequent n-grams of each kind that are features."""
    scaling: Literal["auto", "tfidf", "naive_bayes"] = "auto"
    """Scaling of the features ("auto": the better one on validation data)."""
    strength: float = Field(default=0.0, ge=0)
    """C, the weight of the data relative to the penalty (0: the best one on validation data)."""

    @model_validator(mode="after")
    def _check(self) -> LinearConfig:
        if 0 < self.characters < self.min_characters:
            raise ValueError(
                f"model.characters = {self.characters} must be at least model.min_characters = {self.min_characters}, "
                "or 0 for no n-grams of characters"
            )
        return self

    def summary(self) -> str:
        characters = f" and {self.min_characters} to {self.characters} characters" * bool(self.characters)
        return f"a linear model over n-grams of 1 to {self.words} words{characters}"


@dataclass(frozen=True)
class Examples:
    """Training and validation texts with their targets."""

    texts: Callable[[], Iterable[Texts]]
    """The training texts; each call returns them anew."""
    targets: Float[Tensor, "N C"]
    """Their targets, as the link takes them."""
    valid_texts: Sequence[Texts]
    valid_targets: Float[Tensor, "M K"]
    """For `Link.full_loss`."""
    kind: str
    """Kind of answer: a key of `LINKS`."""
    held_out: bool = False
    """Whether the validation texts belong to the training data, and are fitted too once they have chosen."""

    def joined(self) -> Examples:
        """The training and validation texts as training texts."""
        targets = torch.cat([self.targets, self.valid_targets[:, -self.targets.shape[1] :]])
        return Examples(lambda: chain(self.texts(), self.valid_texts), targets, (), self.valid_targets[:0], self.kind)


@dataclass(frozen=True)
class Contribution:
    """An n-gram of a text, and what it adds to the output of each label."""

    ngram: str
    begin: int
    """Where it begins in the text's normal form, from 0."""
    end: int
    weights: tuple[float, ...]


class LinearNgrams(Model):
    """Outputs z = W x + b of a text's n-grams."""

    Config = LinearConfig
    count_based = True
    papers = "logistic regression over n-grams (Wang & Manning 2012)"

    def __init__(self, config: LinearConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.orders = NgramOrders(config.words, config.min_characters, config.characters)
        self.num_labels = vocabularies.tgt_size
        self.arrays: dict[str, NDArray[Any]] = {}
        self.kind = "label"
        self.held_out_outputs: Tensor | None = None

    # --- estimation -------------------------------------------------------------------------------------

    def estimate(self, examples: Examples) -> None:
        """Choose the features, their scaling and C, and fit the weights.

        If validation texts are held out, `held_out_outputs` has the outputs for them before they are fitted too.
        """
        self._fit(examples)
        self.held_out_outputs = None
        if examples.held_out and examples.valid_texts:
            self.held_out_outputs = self.logits(examples.valid_texts)
            self._fit(examples.joined(), (self.facts["scaling"], self.facts["strength"]))

    def _fit(self, examples: Examples, choice: tuple[str, float] | None = None) -> None:
        """Fit the weights with the scaling and C of `choice`, or with the best ones."""
        self.kind = examples.kind
        self.orders = self._fitting_orders(examples)
        ngrams = NgramBlocks(self.orders)
        most = min(self.config.max_features, MAX_WEIGHTS // examples.targets.shape[1])
        vocabularies = ngrams.count(examples.texts(), self.config.min_count, most)
        blocks, names = ngrams.incidences(examples.texts(), vocabularies)
        features = Features(blocks)
        self._hold(vocabularies, blocks, names, torch.zeros(sum(features.sizes) + 1, examples.targets.shape[1]))
        scaling, strength, start = (*choice, None) if choice else self._select(examples, features)
        best = fit(features, examples.targets, self.link, strength, self._prior(features, examples, scaling), start)
        self._set_weights(best, scaling, strength)

    def _fitting_orders(self, examples: Examples) -> NgramOrders:
        """The longest n-grams of the config, or the longest shorter ones that are not too many for the memory."""
        config = self.config
        sample = list(islice(examples.texts(), _SAMPLE))
        shorter = [order for order in (4, 3) if config.min_characters <= order < config.characters]
        characters = [config.characters, *shorter, 0]
        choices = [NgramOrders(config.words, config.min_characters, order) for order in characters]
        for orders in (*choices, NgramOrders(1, config.min_characters, 0)):
            if NgramBlocks(orders).number(sample) * len(examples.targets) <= MAX_ENTRIES * len(sample):
                break
        return orders

    def _select(self, examples: Examples, features: Features) -> tuple[str, float, Tensor | None]:
        """Scaling and C with the best likelihood on validation data, and weights to start from."""
        config = self.config
        scalings = [config.scaling] if config.scaling != "auto" else ["tfidf", "naive_bayes"]
        if self.kind == "number":
            scalings = ["tfidf"]
        strengths = [config.strength] if config.strength else STRENGTHS
        if len(scalings) == len(strengths) == 1 or not examples.valid_texts:
            return scalings[0], strengths[0] if config.strength else 10.0, None
        valid = self.features(examples.valid_texts)
        best: tuple[float, str, float, Tensor | None] = (math.inf, scalings[0], 10.0, None)
        for scaling in scalings:
            prior, start, worse = self._prior(features, examples, scaling), None, 0
            lowest = math.inf
            for strength in strengths:
                start = fit(features, examples.targets, self.link, strength, prior, start, _ROUGH).weights
                outputs = self.link.full(valid.times(start))
                loss = tempered_loss(self.link, outputs, examples.valid_targets)
                worse = 0 if loss < lowest else worse + 1
                lowest = min(lowest, loss)
                if loss < best[0]:
                    best = loss, scaling, strength, start
                if worse == 2:
                    break
        return best[1:]

    def _prior(self, features: Features, examples: Examples, scaling: str) -> Tensor | None:
        """The prior scale of each weight: |r| of Naive Bayes, or None for equal ones."""
        if scaling == "tfidf":
            return None
        positive = examples.targets
        ratios = [_log_count_ratios(block, positive) for block in features.blocks]
        return torch.cat([*ratios, positive.new_ones(1, positive.shape[1])])

    # --- use --------------------------------------------------------------------------------------------

    @property
    def link(self) -> Link:
        """The link from outputs to answers."""
        return LINKS[self.kind]

    @property
    def weights(self) -> Tensor:
        """Weights of all features, and the bias [J1, C]."""
        return torch.from_numpy(self.arrays["weights"])

    def features(self, texts: Sequence[Texts]) -> Features:
        """The features of some texts."""
        at = range(self.num_blocks)
        scales = [torch.from_numpy(self.arrays[f"{block}.scale"]) for block in at]
        return NgramBlocks(self.orders).features(texts, [self._vocabulary(block) for block in at], scales)

    def logits(self, texts: Sequence[Texts]) -> Float[Tensor, "N K"]:
        """An output for each label; a number's, in units of its standard deviation."""
        return self.link.full(self.features(texts).times(self.weights))

    def contributions(self, texts: Texts) -> list[Contribution]:
        """What each distinct known n-gram of a text adds to the outputs, without the bias."""
        weights = torch.split(self.weights[:-1], [len(self._vocabulary(at)) for at in range(self.num_blocks)])
        result = []
        for at, (found, ngrams) in enumerate(NgramBlocks(self.orders).of([texts])):
            places = columns_of(found.hashes, self._vocabulary(at))
            scale = torch.from_numpy(self.arrays[f"{at}.scale"])
            columns, first, counts = np.unique(places, return_index=True, return_counts=True)
            known = columns >= 0
            columns, first, counts = columns[known], first[known], counts[known]
            if not len(columns):
                continue
            entries = scale[columns] * torch.from_numpy(1 + np.log(np.minimum(counts, MAX_COUNT))).float()
            values = self.link.full(weights[at][columns] * (entries / entries.norm())[:, None])
            begin = int(ngrams.beginnings[0])
            for place, value in zip(first.tolist(), values.tolist(), strict=True):
                b, e = int(found.begin[place]), int(found.end[place])
                result.append(Contribution(ngrams.joined[b:e].strip("\n"), b - begin, e - begin, tuple(value)))
        return result

    def top_ngrams(self, label: int, number: int) -> list[tuple[str, float]]:
        """The n-grams with the largest weights for a label, each times its inverse document frequency."""
        scales = torch.cat([torch.from_numpy(self.arrays[f"{at}.scale"]) for at in range(self.num_blocks)])
        values = self.link.full(self.weights[:-1])[:, label]
        if self.weights.shape[1] == 1 and self.kind == "label" and label == 0:
            values = -self.weights[:-1, 0]
        values = values * scales
        best = values.topk(min(number, len(values)))
        names = self._names()
        return [(names(at), value) for value, at in zip(best.values.tolist(), best.indices.tolist(), strict=True)]

    @property
    def num_blocks(self) -> int:
        """Number of blocks of features: two kinds of each text, and for pairs of what both have."""
        return sum(name.endswith(".scale") for name in self.arrays)

    @property
    def facts(self) -> dict[str, Any]:
        """What was chosen: number of features, scaling, C, and the certificate of the optimum."""
        how = self.arrays["how"].tolist()
        return {
            "features": len(self.weights) - 1,
            "words": self.orders.words,
            "characters": self.orders.characters,
            "scaling": "naive_bayes" if how[0] else "tfidf",
            "strength": how[1],
            "relative_gradient": how[2],
        }

    # --- the arrays -------------------------------------------------------------------------------------

    def _vocabulary(self, at: int) -> Hashes:
        return self.arrays[f"{at}.hashes"].view(np.uint64)

    def _names(self) -> Callable[[int], str]:
        """The name of a feature, by its number over all blocks."""
        sizes = [len(self._vocabulary(at)) for at in range(self.num_blocks)]

        def name(number: int) -> str:
            at = 0
            while number >= sizes[at]:
                number, at = number - sizes[at], at + 1
            begin, end = self.arrays[f"{at}.name_ends"][number : number + 2].tolist()
            return self.arrays[f"{at}.names"][begin:end].tobytes().decode(errors="replace").strip("\n")

        return name

    def _hold(
        self, vocabularies: Sequence[Hashes], blocks: Sequence[Incidence],
        names: Sequence[tuple[NDArray[np.uint8], NDArray[np.int64]]], weights: Tensor,
    ) -> None:  # fmt: skip
        self.arrays = {"weights": weights.numpy(), "how": np.zeros(7)}
        for at, (hashes, block, (text, ends)) in enumerate(zip(vocabularies, blocks, names, strict=True)):
            self.arrays[f"{at}.hashes"] = hashes.view(np.int64)
            self.arrays[f"{at}.scale"] = block.scale[:, 0].numpy()
            self.arrays[f"{at}.names"] = text
            self.arrays[f"{at}.name_ends"] = ends

    def _set_weights(self, best: Optimum, scaling: str, strength: float) -> None:
        self.arrays["weights"] = np.ascontiguousarray(best.weights.numpy())
        kind = list(LINKS).index(self.kind)
        orders = self.orders.words, self.orders.characters
        self.arrays["how"] = np.array(
            [scaling == "naive_bayes", strength, best.relative_gradient, kind, *orders, _VERSION]
        )

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The arrays as tensors."""
        return {name: torch.from_numpy(np.array(array)) for name, array in self.arrays.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned."""
        self.arrays = {name: tensor.numpy() for name, tensor in state_dict.items()}
        kind, words, characters, *version = (int(value) for value in self.arrays["how"][3:])
        if version not in ([], [_VERSION]):
            raise DataError(f"its arrays have version {version[0]}, but this version of heed reads {_VERSION}.")
        self.kind = list(LINKS)[kind]
        self.orders = NgramOrders(words, self.config.min_characters, characters, cut_at_marks=not version)


def tempered_loss(link: Link, outputs: Float[Tensor, "N K"], targets: Float[Tensor, "N K"]) -> float:
    """-log p (nats) summed over the rows, with the best of some temperatures."""
    if not len(outputs):
        return 0.0
    return min(float(link.full_loss(outputs * scale, targets)) for scale in np.geomspace(0.1, 10, 41).tolist())


def _log_count_ratios(block: Incidence, positive: Float[Tensor, "N C"]) -> Tensor:
    """|r|: log of the ratio of an n-gram's share with a label to that without it, with one more count of each."""
    counts = block.sums(positive) + 1
    others = block.sums(1 - positive) + 1
    ratio = (counts / counts.sum(0)).log() - (others / others.sum(0)).log()
    return ratio.abs()
