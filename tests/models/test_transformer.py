"""Transformer: equal to Marian in `transformers`, and its options."""

from __future__ import annotations

import pytest
import torch
from random_models import SMALL, random_source, random_targets
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from heed.core.errors import UsageError
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.attention import AdditiveAttention, MultiHeadAttention
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.dropout_keys import DropoutKeys

VOCAB_SIZE = 19
JOINT = Vocabularies(VOCAB_SIZE, VOCAB_SIZE)
MARIAN = TransformerConfig(
    d_model=24, d_ff=40, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, norm="post", activation="relu",
    positions="half_split", tie="all", output_bias=True,
)  # fmt: skip


def build(config: TransformerConfig, vocabularies: Vocabularies = JOINT) -> Transformer:
    """The model with random weights, none of them 0 or 1."""
    torch.manual_seed(10)
    model = Transformer(config, vocabularies)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def attention_weights(name: str, ours: MultiHeadAttention) -> dict[str, Tensor]:
    """An attention's weights under the names of `transformers`."""
    parts = {
        "q_proj": (ours.query.weight, ours.query.bias),
        "k_proj": (ours.key_value.weight.chunk(2)[0], ours.key_value.bias.chunk(2)[0]),
        "v_proj": (ours.key_value.weight.chunk(2)[1], ours.key_value.bias.chunk(2)[1]),
        "out_proj": (ours.output.weight, ours.output.bias),
    }
    return {
        f"{name}.{part}.{kind}": tensor
        for part, pair in parts.items()
        for kind, tensor in zip(("weight", "bias"), pair, strict=True)
    }


def marian_of(ours: Transformer) -> MarianMTModel:
    """Marian with the weights of our model."""
    config = ours.config
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=VOCAB_SIZE, d_model=config.d_model, max_position_embeddings=64, scale_embedding=True,
            encoder_layers=config.num_encoder_layers, decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads, decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff, activation_function="relu",
            pad_token_id=0, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
        )
    )  # fmt: skip
    weights = {"model.shared.weight": ours.head.weight, "final_logits_bias": ours.head.bias[None]}
    for side, blocks in (("encoder", ours.encoder.blocks), ("decoder", ours.blocks)):
        for index, block in enumerate(blocks):
            layer = f"model.{side}.layers.{index}"
            modules = {"fc1": block.feed_forward.expand, "fc2": block.feed_forward.contract,
                       "final_layer_norm": block.feed_forward_residual.norm}  # fmt: skip
            if side == "encoder":
                modules["self_attn_layer_norm"] = block.attention_residual.norm
                weights |= attention_weights(f"{layer}.self_attn", block.attention)
            else:
                modules["self_attn_layer_norm"] = block.self_residual.norm
                modules["encoder_attn_layer_norm"] = block.cross_residual.norm
                weights |= attention_weights(f"{layer}.self_attn", block.self_attention)
                weights |= attention_weights(f"{layer}.encoder_attn", block.cross_attention)
            for name, module in modules.items():
                weights |= {f"{layer}.{name}.{kind}": getattr(module, kind) for kind in ("weight", "bias")}
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected
    tied_or_fixed = ("embed_tokens.weight", "embed_positions.weight", "lm_head.weight")
    assert all(name.endswith(tied_or_fixed) for name in missing)
    return theirs.eval()


def random_ids(num_rows: int, length: int) -> Tensor:
    """Real tokens of the joint vocabulary."""
    return torch.randint(3, VOCAB_SIZE, (num_rows, length), generator=torch.Generator().manual_seed(11))


@torch.no_grad()
def test_the_whole_model_equals_marian_with_the_same_weights() -> None:
    ours = build(MARIAN)
    theirs = marian_of(ours)
    ids, tgt_in = random_ids(3, 9), random_ids(3, 7)
    mask = torch.arange(9) < torch.tensor([[9], [4], [1]])
    source = TokenSource(ids.masked_fill(~mask, 0), mask)
    features, _ = ours.advance(tgt_in, ours.start(source))
    expected = theirs(input_ids=source.ids, attention_mask=mask.long(), decoder_input_ids=tgt_in).logits
    torch.testing.assert_close(ours.head.logits(features), expected, rtol=1e-5, atol=1e-5)


def test_its_gradients_equal_those_of_marian() -> None:
    ours = build(MARIAN)
    theirs = marian_of(ours)
    ids, tgt_in = random_ids(2, 6), random_ids(2, 5)
    source = TokenSource(ids, torch.ones_like(ids, dtype=torch.bool))
    features, _ = ours.advance(tgt_in, ours.start(source))
    logits = theirs(input_ids=ids, decoder_input_ids=tgt_in).logits
    for scores in (ours.head.logits(features), logits):
        (scores.softmax(-1) ** 2).sum().backward()
    # One embedding serves three times: its gradient has a part from each.
    torch.testing.assert_close(
        ours.head.weight.grad, theirs.model.shared.weight.grad, rtol=1e-3, atol=1e-4
    )  # fmt: skip


@torch.no_grad()
def test_dropout_of_zero_is_no_dropout() -> None:
    model = build(SMALL.model_copy(update={"dropout": 0.0, "attention_dropout": 0.0}))
    source, ids = random_source([4, 6], vocabularies=JOINT), random_targets(2, 5)
    noisy, _ = model.advance(ids, model.start(source, dropout_keys=DropoutKeys.for_step(1, 1, torch.arange(2))))
    plain, _ = model.advance(ids, model.start(source))
    torch.testing.assert_close(noisy, plain)


@pytest.mark.parametrize("where", ["dropout", "attention_dropout"])
@torch.no_grad()
def test_each_dropout_changes_what_is_computed(where: str) -> None:
    model = build(SMALL.model_copy(update={"dropout": 0.0, "attention_dropout": 0.0, where: 0.5}))
    source, ids = random_source([4, 6], vocabularies=JOINT), random_targets(2, 5)
    noisy, _ = model.advance(ids, model.start(source, dropout_keys=DropoutKeys.for_step(1, 1, torch.arange(2))))
    plain, _ = model.advance(ids, model.start(source))
    assert not torch.allclose(noisy, plain, atol=0.01)


@torch.no_grad()
def test_concatenated_positions_leave_a_quarter_of_the_features_to_the_position() -> None:
    """McAllester's h_0(t) = [e(w_t); pos(t)] is what goes into the first block; embeddings have 3/4 of D."""
    model = build(SMALL.model_copy(update={"positions": "concatenated", "tie": "none"}))
    assert model.embedding.weight.shape == (VOCAB_SIZE, 12)
    assert model.head.weight.shape == (VOCAB_SIZE, 16)
    vectors = model.encoder.embedding(torch.tensor([[5, 5]]))
    assert vectors.shape == (1, 2, 16)
    assert vectors[0, 0, :12].equal(vectors[0, 1, :12])
    assert not vectors[0, 0, 12:].equal(vectors[0, 1, 12:])


def test_shared_weights_are_one_and_the_same() -> None:
    shared = build(SMALL.model_copy(update={"tie": "all"}))
    assert shared.encoder.embedding.weight is shared.embedding.weight is shared.head.weight
    target = build(SMALL.model_copy(update={"tie": "target"}))
    assert target.embedding.weight is target.head.weight
    assert target.encoder.embedding.weight is not target.head.weight
    none = build(SMALL.model_copy(update={"tie": "none"}))
    assert len({id(w) for w in (none.encoder.embedding.weight, none.embedding.weight, none.head.weight)}) == 3


@pytest.mark.parametrize(
    ("tie", "output_bias", "norm", "expected"),
    [("all", True, "post", 1), ("target", True, "post", 2), ("none", False, "pre", 3)],
)
def test_the_number_of_weights_follows_from_the_sizes(tie: str, output_bias: bool, norm: str, expected: int) -> None:
    d, f, v = 24, 40, VOCAB_SIZE
    config = MARIAN.model_copy(update={"tie": tie, "output_bias": output_bias, "norm": norm})
    attention, feed_forward, normalisation = 4 * (d * d + d), 2 * d * f + d + f, 2 * d
    encoder = 2 * (attention + feed_forward + 2 * normalisation)
    decoder = 2 * (2 * attention + feed_forward + 3 * normalisation)
    last = 2 * normalisation if norm == "pre" else 0
    count = expected * v * d + encoder + decoder + last + (v if output_bias else 0)
    assert sum(parameter.numel() for parameter in build(config).parameters()) == count


def test_the_base_model_of_the_paper_has_65_million_weights() -> None:
    """Vaswani et al. (2017), table 3: 6 + 6 blocks of 512 and 2048, one vocabulary of 37,000."""
    base = TransformerConfig(
        d_model=512, d_ff=2048, num_heads=8, num_encoder_layers=6, num_decoder_layers=6, tie="all", output_bias=False
    )
    with torch.device("meta"):
        model = Transformer(base, Vocabularies(37_000, 37_000))
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    assert millions == pytest.approx(65, abs=2)


def test_one_embedding_for_two_vocabularies_is_refused_with_advice() -> None:
    with pytest.raises(UsageError, match=r"vocabularies differ \(8 and 9 pieces\). Set tokenizer.joint = true"):
        Transformer(SMALL.model_copy(update={"tie": "all"}), Vocabularies(8, 9))


def test_a_translation_model_without_a_source_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a source"):
        build(SMALL).start(None)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"d_model": 10, "num_heads": 4}, "num_heads must divide d_model, got 4 and 10"),
        ({"d_model": 9, "num_heads": 3}, "d_model must be even for sinusoidal positions, got 9"),
        ({"positions": "concatenated"}, 'set tie = "none"'),
        ({"positions": "concatenated", "tie": "none", "d_model": 12}, "must be a multiple of 8"),
    ],
)
def test_incompatible_sizes_are_refused_with_advice(choices: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TransformerConfig(**choices)


def test_an_encoder_without_blocks_is_a_bag_of_positioned_words() -> None:
    model = build(SMALL.model_copy(update={"num_encoder_layers": 0}))
    source = random_source([4], vocabularies=JOINT)
    torch.testing.assert_close(model.encoder.read(source), model.encoder.embedding(source.ids))


def test_embeddings_start_with_unit_variance_after_the_scale() -> None:
    torch.manual_seed(12)
    model = Transformer(SMALL.model_copy(update={"d_model": 64, "num_heads": 4}), Vocabularies(500, 500))
    scaled = model.embedding.weight * model.embedding.scale
    assert scaled.std().item() == pytest.approx(1.0, abs=0.03)


def test_a_summary_names_what_differs_from_the_paper() -> None:
    plain = TransformerConfig().summary()
    assert plain.endswith("feed-forward layers")
    changed = TransformerConfig(encoder_attention="rotary", decoder_mixing="ssru").summary()
    assert changed == f"{plain}, with rotary attention in the encoder and ssru in place of the decoder's self-attention"


def test_another_attention_of_the_encoder_leaves_those_of_the_decoder() -> None:
    model = build(MARIAN.model_copy(update={"encoder_attention": "additive"}))
    kinds = {name: type(module) for name, module in model.named_modules() if name.endswith("attention")}
    assert {kind for name, kind in kinds.items() if name.startswith("encoder")} == {AdditiveAttention}
    assert {kind for name, kind in kinds.items() if not name.startswith("encoder")} == {MultiHeadAttention}
