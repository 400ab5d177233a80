"""The five laws of generators (`heed.nn.contract`), and the rest of their contract, for every model."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest
import random_models
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_models import CONFIGS, NAMES, VOCABULARIES, random_rows, random_targets, row_of, source_for, together
from torch import Tensor

from heed.models import MODELS, GenerativeModel
from heed.nn.contract import Autoregressive, Smoothing, Source, State, TokenSource, Trace
from heed.nn.dropout_keys import DropoutKeys

every_model = pytest.mark.parametrize("name", NAMES)
model_of = functools.cache(random_models.model_of)  # no test changes a model
# In float32, products of few and of many rows round differently.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
PREDICTIVE = "encoder_decoder, input feeding"
"""A model with predictive local attention, whose weights sum to at most one."""
ONE_PLACE = "encoder_decoder, RCTM II"
"""A model whose attention is to one position at each step."""


def dropout_keys_of(rows: list[int]) -> DropoutKeys:
    """Dropout keys of one update, for these rows of a corpus."""
    return DropoutKeys.for_step(7, 3, torch.tensor(rows))


def in_chunks(model: Autoregressive, ids: Tensor, sizes: list[int], state: State) -> Tensor:
    """The features of `ids`, read in pieces of these sizes."""
    pieces = []
    for chunk in ids.split(sizes, dim=1):
        features, state = model.advance(chunk, state)
        pieces.append(features)
    return torch.cat(pieces, dim=1)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors of a state."""
    if isinstance(value, Tensor):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_in(item)


def test_every_model_of_the_registry_is_tested() -> None:
    assert {config.kind for config in CONFIGS.values()} == {
        kind for kind, model in MODELS.items() if issubclass(model, GenerativeModel)
    }


# Law 1


@every_model
@torch.no_grad()
def test_the_target_may_be_cut_into_any_chunks(name: str) -> None:
    """A reserve of 4 is too small for 7 tokens, so the state grows."""
    model, ids = model_of(name), random_targets(3, 7)
    source = source_for(model, [5, 2, 9])
    whole, _ = model.advance(ids, model.start(source))
    for reserve in (None, 4, 7):
        for sizes in ([1] * 7, [3, 4], [1, 5, 1]):
            features = in_chunks(model, ids, sizes, model.start(source, reserve=reserve))
            torch.testing.assert_close(features, whole, **CLOSE)


@every_model
@torch.no_grad()
def test_dropout_does_not_depend_on_the_chunks_either(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 7)
    source = source_for(model, [5, 2])
    dropout_keys = dropout_keys_of([8, 9])
    whole, _ = model.advance(ids, model.start(source, dropout_keys=dropout_keys))
    torch.testing.assert_close(
        in_chunks(model, ids, [1, 4, 2], model.start(source, dropout_keys=dropout_keys)), whole, **CLOSE
    )


@pytest.mark.parametrize("name", [name for name in NAMES if not model_of(name).count_based])
def test_gradients_do_not_depend_on_the_chunks(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [5, 2])
    parameters = list(model.parameters())
    gradients = []
    for sizes in ([6], [1, 3, 2]):
        features = in_chunks(model, ids, sizes, model.start(source, dropout_keys=dropout_keys_of([8, 9])))
        loss, _ = model.head.loss(features, ids, ids > 0, Smoothing())
        gradients.append(torch.autograd.grad(loss, parameters))
    for whole, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(cut, whole, rtol=1e-3, atol=1e-4)


# Law 2


@every_model
@pytest.mark.parametrize("noisy", [False, True])
@torch.no_grad()
def test_padding_and_neighbours_do_not_change_a_row(name: str, noisy: bool) -> None:
    model, ids = model_of(name), random_targets(4, 5)
    source = source_for(model, [3, 11, 1, 6])
    together, _ = model.advance(ids, model.start(source, dropout_keys=dropout_keys_of([4, 5, 6, 7]) if noisy else None))
    for row in range(4):
        state = model.start(row_of(source, row), dropout_keys=dropout_keys_of([4 + row]) if noisy else None)
        alone, _ = model.advance(ids[row : row + 1], state)
        torch.testing.assert_close(together[row : row + 1], alone, **CLOSE)


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(model_of(name), "source", "tokens") == "tokens"])
@torch.no_grad()
def test_the_ids_of_padding_do_not_matter(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 5)
    source = source_for(model, [3, 8])
    garbage = TokenSource(torch.where(source.mask, source.ids, 5), source.mask)
    torch.testing.assert_close(
        model.advance(ids, model.start(garbage))[0], model.advance(ids, model.start(source))[0], **CLOSE
    )


# Law 3


@every_model
@torch.no_grad()
def test_later_tokens_never_change_earlier_features(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    before, _ = model.advance(ids, model.start(source))
    for position in range(1, 6):
        changed = ids.clone()
        changed[:, position:] = (changed[:, position:] - 2) % 9 + 3  # every later token becomes another one
        after, _ = model.advance(changed, model.start(source))
        torch.testing.assert_close(after[:, :position], before[:, :position], **CLOSE)
        if name != "lz78":  # which has no context at the end of a phrase
            assert not torch.allclose(after[:, position].float(), before[:, position].float()), (
                "the token itself matters"
            )


# Law 4


@dataclass
class Rows:
    """A state, and the source and the tokens of each of its rows."""

    state: State
    sources: list[Source]
    tokens: list[list[int]]

    @staticmethod
    def start(model: Autoregressive, width: int, reserve: int | None, seed: int) -> Rows:
        """Two new sources with `width` rows each."""
        source = source_for(model, [1 + seed % 5, 4], seed)
        sources = [row_of(source, row // width) for row in range(2 * width)]
        return Rows(model.start(source, width, reserve), sources, [[] for _ in sources])

    def advance(self, model: Autoregressive, length: int, seed: int) -> Tensor:
        """Continue each row with tokens of its own; returns the features."""
        new = random_rows([length] * len(self.tokens), VOCABULARIES.tgt_size, seed)
        self.tokens = [[*old, *ids] for old, ids in zip(self.tokens, new, strict=True)]
        features, self.state = model.advance(torch.tensor(new), self.state)
        return features

    def select(self, rows: list[int]) -> None:
        """Keep these rows, in this order."""
        self.state = self.state.select(torch.tensor(rows, dtype=torch.long))
        self.sources, self.tokens = [self.sources[row] for row in rows], [self.tokens[row] for row in rows]

    def join(self, other: Rows) -> None:
        """Append the rows of another batch."""
        self.state = self.state.join(other.state)
        self.sources, self.tokens = self.sources + other.sources, self.tokens + other.tokens

    def check(self, model: Autoregressive, features: Tensor) -> None:
        """The last features are those of each row recomputed from its start, in batches of rows of equal length."""
        for length in {len(tokens) for tokens in self.tokens}:
            rows = [row for row, tokens in enumerate(self.tokens) if len(tokens) == length]
            source = together([self.sources[row] for row in rows])
            ids = torch.tensor([self.tokens[row] for row in rows])
            recomputed, _ = model.advance(ids, model.start(source))
            torch.testing.assert_close(features[rows], recomputed[:, -features.shape[1] :], **CLOSE)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(1, 3), st.integers(0, 99)),
        st.tuples(st.just("select"), st.integers(0, 99), st.integers(1, 6)),
        st.tuples(st.just("join"), st.integers(1, 3), st.integers(0, 99)),
    ),
    min_size=1,
    max_size=6,
)


@every_model
@settings(max_examples=12, phases=[Phase.generate])  # examples are short, and shrinking them takes minutes
@given(width=st.integers(1, 3), reserve=st.sampled_from([None, 2, 30]), steps=steps)
@torch.no_grad()
def test_select_and_join_equal_recomputing(
    name: str, width: int, reserve: int | None, steps: list[tuple[str, int, int]]
) -> None:
    model = model_of(name)
    rows = Rows.start(model, width, reserve, seed=1)
    for what, a, b in steps:
        if what == "advance":
            rows.check(model, rows.advance(model, length=a, seed=b))
        elif what == "select":
            generator = torch.Generator().manual_seed(a)
            rows.select(torch.randint(len(rows.tokens), (b,), generator=generator).tolist())
        else:
            arriving = Rows.start(model, a, reserve, seed=b)
            if b % 3:
                arriving.advance(model, length=b % 3, seed=b)
            rows.join(arriving)
    rows.check(model, rows.advance(model, length=2, seed=0))


@every_model
@torch.no_grad()
def test_rows_of_one_source_stay_together_through_beam_search(name: str) -> None:
    """Rows are reordered within the group of their source, and sources end, as in beam search."""
    model = model_of(name)
    rows = Rows.start(model, 3, 20, seed=4)
    rows.check(model, rows.advance(model, length=1, seed=1))
    rows.select([2, 2, 0, 3, 5, 4])
    rows.check(model, rows.advance(model, length=1, seed=2))
    rows.select([4, 3, 3])
    rows.check(model, rows.advance(model, length=1, seed=3))
    rows.select([])
    assert rows.tokens == []


@every_model
@torch.no_grad()
def test_many_rows_of_a_source_equal_the_source_repeated(name: str) -> None:
    model, ids = model_of(name), random_targets(4, 5)
    source = source_for(model, [3, 7])
    dropout_keys = dropout_keys_of([2, 3])
    repeated = together([row_of(source, row // 2) for row in range(4)])
    for few, many in ((None, None), (dropout_keys, dropout_keys.repeat(2))):
        shared, _ = model.advance(ids, model.start(source, 2, dropout_keys=few))
        apart, _ = model.advance(ids, model.start(repeated, dropout_keys=many))
        torch.testing.assert_close(shared, apart, **CLOSE)


# Law 5


# The scores of shallow fusion are not a distribution; tests/models/test_ensemble.py computes them by hand.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "shallow fusion"])
@torch.no_grad()
def test_probabilities_sum_to_one(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    features, _ = model.advance(ids, model.start(source))
    log_probs = model.head.log_probs(features)
    assert log_probs.shape == (2, 6, VOCABULARIES.tgt_size)
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2, 6))


# The head


@every_model
@torch.no_grad()
def test_the_probability_of_a_single_token_is_that_of_the_whole_row(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    features, _ = model.advance(ids, model.start(source))
    tokens = torch.randint(2, VOCABULARIES.tgt_size, (2, 6), generator=torch.Generator().manual_seed(5))
    gathered = model.head.log_probs(features).gather(-1, tokens[..., None]).squeeze(-1)
    torch.testing.assert_close(model.head.log_prob(features, tokens), gathered)


@every_model
@torch.no_grad()
def test_a_subset_is_the_whole_row_normalised_over_it(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    features, _ = model.advance(ids, model.start(source))
    subset = torch.tensor([7, 2, 5])
    expected = model.head.log_probs(features)[..., subset].log_softmax(-1)
    torch.testing.assert_close(model.head.log_probs(features, subset), expected)


@every_model
def test_the_loss_is_the_sum_of_log_probabilities_over_real_tokens(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    tgt_out = ids.masked_fill(ids == 1, 4)  # begin of sentence is never predicted
    features, _ = model.advance(ids, model.start(source))
    loss_sum, nll_sum = model.head.loss(features, tgt_out, mask, Smoothing())
    expected = -model.head.log_prob(features, tgt_out)[mask].sum()
    torch.testing.assert_close(loss_sum, expected)
    torch.testing.assert_close(nll_sum, expected.detach())


# States and traces


@every_model
def test_a_detached_state_has_equal_values_and_no_graph(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 6)
    source = source_for(model, [4, 6])
    _, state = model.advance(ids[:, :3], model.start(source))
    detached = state.detach()
    assert not any(tensor.requires_grad for tensor in tensors_in(detached))
    only_ids = model.count_based or name == "one_layer, last"
    assert only_ids or any(tensor.requires_grad for tensor in tensors_in(state)), "there is a graph to detach"
    expected, _ = model.advance(ids[:, 3:], state)
    found, _ = model.advance(ids[:, 3:], detached)
    torch.testing.assert_close(found, expected)


@every_model
@torch.no_grad()
def test_traced_attention_sums_to_one_over_real_source_positions(name: str) -> None:
    model, ids = model_of(name), random_targets(4, 5)
    source = source_for(model, [4, 6])
    trace = Trace()
    _, state = model.advance(ids[:, :3], model.start(source, rows_per_source=2), trace)
    model.advance(ids[:, 3:], state, trace)
    real = source.mask.repeat_interleave(2, 0)
    for attention, pieces in trace.weights.items():
        assert [piece.shape[2] for piece in pieces if attention.endswith("self")] in ([], [3, 2])
        if attention.endswith("cross"):
            weights = torch.cat(pieces, dim=2)
            assert weights.shape[0] == 4
            assert weights.shape[2:] == (5, source.mask.shape[1])
            assert (weights.sum(-1) < 1.0001).all()
            if name != PREDICTIVE:
                torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
            seen = real[:, None, None].expand_as(weights)
            assert ((weights > 0) <= seen).all() if name == ONE_PLACE else (weights > 0).equal(seen)


@every_model
@torch.no_grad()
def test_tracing_changes_nothing(name: str) -> None:
    model, ids = model_of(name), random_targets(2, 5)
    source = source_for(model, [4, 6])
    traced, _ = model.advance(ids, model.start(source), Trace())
    untraced, _ = model.advance(ids, model.start(source))
    torch.testing.assert_close(traced, untraced, **CLOSE)
