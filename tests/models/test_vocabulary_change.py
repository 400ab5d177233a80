"""Vocabulary transfer: the first weights of new pieces."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from tokenizer_kinds import KINDS
from torch import Tensor

from heed.core.errors import UsageError
from heed.models import build_model
from heed.models.rnn_attention import RecurrentAttentionConfig
from heed.models.rnn_lm import RecurrentConfig
from heed.models.transformer import TransformerConfig
from heed.models.vocabulary_change import spellings, vocabulary_weights, with_vocabularies
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import shapes_of
from heed.text.tokenizers import Tokenizer, TokenizerConfig, train_tokenizer

OLD = ["the dog sees the dogs", "a dog barks at the cat", "dog, cat and é"] * 4
NEW = ["der Hund sieht the dog", "ein Hund bellt , dogmatic ñ", "Hund und Katze"] * 4
SMALL = TransformerConfig(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
CONFIGS = {
    **{f"transformer, tie {tie}": SMALL.model_copy(update={"tie": tie}) for tie in ("all", "target", "none")},
    "transformer, no bias": SMALL.model_copy(update={"output_bias": False}),
    **{
        f"rnn_attention, tie {tie}": RecurrentAttentionConfig.model_validate(
            {"d_model": 6, "hidden_size": 5, "attention_size": 4, "tie": tie}
        )
        for tie in ("all", "target", "none")
    },
}


@functools.cache
def tokenizer(kind: str, lines: Sequence[str], tags: tuple[str, ...] = (), size: int = 300) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": size, "min_frequency": 1, "shortlist": 3})
    return train_tokenizer(config, lines, tags)


def pair(old_tags: tuple[str, ...] = (), new_tags: tuple[str, ...] = ()) -> tuple[Tokenizer, Tokenizer]:
    return tokenizer("bpe", tuple(OLD), old_tags), tokenizer("bpe", tuple(NEW), new_tags)


def weights_of(config: Any, sizes: Vocabularies) -> dict[str, Tensor]:
    torch.manual_seed(3)
    model = build_model(config, sizes)
    return {name: torch.randn_like(parameter) for name, parameter in model.named_parameters()}


def sizes(sides: Mapping[str, Tokenizer]) -> Vocabularies:
    return Vocabularies(len(sides["src"].vocabulary), len(sides["tgt"].vocabulary))


@pytest.mark.parametrize("name", CONFIGS)
def test_pieces_of_both_keep_their_rows_exactly_and_nothing_else_changes(name: str) -> None:
    config, (old, new) = CONFIGS[name], pair()
    before = {"src": old, "tgt": old}
    after = {"src": new, "tgt": new}
    weights = weights_of(config, sizes(before))
    found = with_vocabularies(weights, config, before, after)
    expected = shapes_of(dict(build_model(config, sizes(after)).named_parameters()))
    assert shapes_of(found) == expected
    changed = vocabulary_weights(config, one_vocabulary=True)
    both = [(i, old.vocabulary.id(p)) for i, p in enumerate(new.vocabulary.pieces) if p in old.vocabulary.pieces]
    assert 260 < len(both) < len(new.vocabulary)
    for weight, tensor in found.items():
        if weight in changed:
            for new_id, old_id in both:
                assert torch.equal(tensor[new_id], weights[weight][old_id])
        else:
            assert tensor is weights[weight]


@pytest.mark.parametrize(
    ("kind", "piece", "begins_as"),
    [
        ("character", "é", (b"\xc3", b"\xa9")),  # a byte-level vocabulary writes the byte 0xE9 so
        ("character", "d", (b"d",)),
        ("word", "dog", (b" dog",)),
    ],
)
def test_pieces_are_the_same_if_they_represent_the_same_text(
    kind: str, piece: str, begins_as: tuple[bytes, ...]
) -> None:
    old, new = tokenizer("bpe", tuple(OLD * 3)), tokenizer(kind, tuple(OLD))
    found = spellings(new, old)[new.vocabulary.id(piece)]
    assert b"".join(old.bytes_of(found)) == b"".join(begins_as)


def test_a_new_piece_is_the_mean_of_the_old_ones_that_spell_it() -> None:
    old, new = pair()
    spelled = spellings(new, old)
    place = new.vocabulary.id("ĠHund")
    assert place != new.vocabulary.unk_id
    assert old.decode([spelled[place]]) == [" Hund"]
    assert len(spelled[place]) > 1
    sides = {"src": old, "tgt": old}, {"src": new, "tgt": new}
    weights = weights_of(SMALL, sizes(sides[0]))
    found = with_vocabularies(weights, SMALL, *sides)
    for name in ("encoder.embedding.weight", "head.bias"):
        torch.testing.assert_close(found[name][place], weights[name][spelled[place]].mean(0))


def test_with_separate_vocabularies_each_side_has_its_own_rows() -> None:
    old = {"src": tokenizer("bpe", tuple(OLD)), "tgt": tokenizer("bpe", tuple(OLD), (), 270)}
    new = {"src": tokenizer("bpe", tuple(NEW)), "tgt": tokenizer("bpe", tuple(NEW), (), 275)}
    for config in (CONFIGS["transformer, tie target"], CONFIGS["rnn_attention, tie none"]):
        weights = weights_of(config, sizes(old))
        found = with_vocabularies(weights, config, old, new)
        assert shapes_of(found) == shapes_of(dict(build_model(config, sizes(new)).named_parameters()))
        for name, side in vocabulary_weights(config, one_vocabulary=False).items():
            for new_id, ids in enumerate(spellings(new[side], old[side])):
                torch.testing.assert_close(found[name][new_id], weights[name][ids].mean(0))


def test_tags_keep_their_rows_and_a_new_tag_starts_as_the_mean_of_the_others() -> None:
    old, new = pair(("2de", "2fr"), ("2fr", "2es"))
    spelled = spellings(new, old)
    ids = old.vocabulary.tag_ids
    assert spelled[-2:] == [[ids["2fr"]], [ids["2de"], ids["2fr"]]]
    without, _ = pair()
    text = spellings(new, without)[-1]
    assert text == list(range(4, 4 + len(without.vocabulary.text_pieces)))


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_piece_of_every_kind_has_a_start(kind: str, to: str) -> None:
    old, new = tokenizer(kind, tuple(OLD)), tokenizer(to, tuple(NEW))
    spelled = spellings(new, old)
    assert len(spelled) == len(new.vocabulary)
    assert all(spelled)
    assert max(map(max, spelled)) < len(old.vocabulary)
    assert spelled[:4] == [[0], [1], [2], [3]]


def test_the_same_vocabulary_changes_nothing() -> None:
    old, _ = pair()
    sides = {"src": old, "tgt": old}
    weights = weights_of(SMALL, sizes(sides))
    found = with_vocabularies(weights, SMALL, sides, sides)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in found.items())


def test_an_adaptive_softmax_belongs_to_its_vocabulary() -> None:
    config = RecurrentConfig(d_model=6, hidden_size=5, tie=False, cutoffs=(20, 50))
    old, new = pair()
    weights = weights_of(config, Vocabularies(0, len(old.vocabulary)))
    with pytest.raises(UsageError, match="cannot change its vocabulary"):
        with_vocabularies(weights, config, {"tgt": old}, {"tgt": new})
