"""Encoder-decoders: each published system equals its equations, step by step, or PyTorch's modules."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from random_models import (
    BIGRU,
    CONFIGS,
    DECODER,
    ENCODER,
    READER_CONFIGS,
    RNN_READER,
    VOCABULARIES,
    random_source,
    random_targets,
    row_of,
    translator,
)
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from heed.core.config import Document, build
from heed.core.errors import UsageError
from heed.models import MODELS
from heed.models.encoder import EncoderConfig
from heed.models.encoder_decoder import DECODERS, EncoderDecoder, EncoderDecoderConfig, encoders
from heed.models.recurrent_decoder import RecurrentDecoderConfig
from heed.models.rnn_attention import RecurrentAttention
from heed.models.transformer import DECODER_MIXING, Transformer, TransformerConfig
from heed.models.transformer_decoder import TransformerDecoderConfig
from heed.nn.contract import TokenSource
from heed.nn.dropout_keys import DropoutKeys
from heed.recipe import build_recipe

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LENGTHS = [5, 3]
D = 12
SCALE = D**0.5


def made(name: str) -> EncoderDecoder:
    """The model with random weights, of larger size than initial ones so that no gate is idle."""
    config = CONFIGS[name]
    assert isinstance(config, EncoderDecoderConfig)
    torch.manual_seed(11)
    model = EncoderDecoder(config, VOCABULARIES)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def features(model: EncoderDecoder, ids: Tensor) -> Tensor:
    found, _ = model.advance(ids, model.start(random_source(LENGTHS)))
    return found


def lstm_of(cells: Any) -> nn.LSTM:
    """PyTorch's LSTM with the weights of these cells."""
    lstm = nn.LSTM(cells[0].input.in_features, cells[0].hidden_size, len(cells), batch_first=True)
    lstm.load_state_dict({
        f"{kind}_{part}_l{layer}": getattr(linear, kind)
        for layer, cell in enumerate(cells)
        for part, linear in (("ih", cell.input), ("hh", cell.recurrent))
        for kind in ("weight", "bias")
    })  # fmt: skip
    return lstm


@torch.no_grad()
def test_thought_vectors_are_two_lstms_of_which_the_second_begins_with_the_last_states_of_the_first() -> None:
    model, ids, source = made("encoder_decoder, thought"), random_targets(2, 4), random_source(LENGTHS)
    encoder: Any = model.encoder
    vectors = encoder.embedding.weight[source.ids] * encoder.config.d_model**0.5
    backward = torch.zeros_like(vectors)  # right to left
    for row, length in enumerate(source.mask.sum(1).tolist()):
        backward[row, :length] = vectors[row, :length].flip(0)
    packed = pack_padded_sequence(backward, source.mask.sum(1), batch_first=True, enforce_sorted=False)
    _, last = lstm_of(encoder.layers)(packed)
    expected, _ = lstm_of(model.decoder.layers)(model.embedding.weight[ids] * SCALE, last)
    torch.testing.assert_close(features(model, ids), expected, **CLOSE)


@torch.no_grad()
def test_with_the_same_choices_it_equals_the_recurrent_model_with_additive_attention() -> None:
    """A bidirectional GRU, a GRU that attends before each step, a tanh layer over state, context and word."""
    decoder_config = DECODER.model_copy(update={"hidden_size": 10, "start": "right_to_left"})
    config = translator(BIGRU.model_copy(update={"hidden_size": 10}), decoder_config)
    torch.manual_seed(5)
    other = RecurrentAttention(CONFIGS["rnn_attention"], VOCABULARIES)  # type: ignore[arg-type]
    model: Any = EncoderDecoder(config, VOCABULARIES)
    model.encoder.embedding.data = other.src_embedding * SCALE
    model.encoder.layers[0].load_state_dict(other.encoder.state_dict())
    decoder = model.decoder
    decoder.initial.load_state_dict(other.initial.state_dict())
    decoder.attention.load_state_dict(other.attention.state_dict())
    decoder.layers[0].load_state_dict(other.cell.state_dict())
    decoder.readout.load_state_dict(other.readout.state_dict())
    model.embedding.weight.data = other.embedding.data
    source, ids = random_source(LENGTHS), random_targets(2, 6)
    expected, _ = other.advance(ids, other.start(source))
    found, _ = model.advance(ids, model.start(source))
    torch.testing.assert_close(found, expected, **CLOSE)


def gru_reset_before(cell: Any, x: Tensor, h: Tensor) -> Tensor:
    """r, z = σ(W x + U h + b), n = tanh(W_n x + U_n (r ⊙ h) + b_n), h' = (1 - z) n + z h."""
    r_x, z_x, n_x = (cell.input.weight @ x + cell.input.bias).chunk(3)
    r_h, z_h = (cell.recurrent.weight @ h).chunk(2)
    r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
    return (1 - z) * torch.tanh(n_x + cell.recurrent_new.weight @ (r * h)) + z * h


@torch.no_grad()
def test_input_feeding_equals_the_equations_of_luong() -> None:
    """h_t = f(h_{t-1}, [e(y_{t-1}); h̃_{t-1}]), c_t = attention(h_t), h̃_t = tanh(W [c_t; h_t])."""
    model, ids = made("encoder_decoder, input feeding"), random_targets(2, 5)
    encoder: Any = model.encoder
    decoder, found = model.decoder, features(model, ids)
    for row in range(2):
        alone = row_of(random_source(LENGTHS), row)
        h = torch.zeros(D)
        states = []
        for word in alone.ids[0]:
            h = gru_reset_before(encoder.layers[0], encoder.embedding.weight[word] * 7**0.5, h)
            states.append(h)
        memory, fed = torch.stack(states), torch.zeros(D)
        for t, word in enumerate(ids[row]):
            h = gru_reset_before(decoder.layers[0], torch.cat((model.embedding.weight[word] * SCALE, fed)), h)
            context = decoder.attention(h[None, None], decoder.attention.project(memory[None]))[0, 0]
            fed = torch.tanh(decoder.readout.weight @ torch.cat((context, h)) + decoder.readout.bias)
            torch.testing.assert_close(found[row, t], fed, **CLOSE)


@torch.no_grad()
def test_maxout_equals_the_equations_of_bahdanau() -> None:
    """t_i = max over pairs of U s_{i-1} + C c_i + V e(y_{i-1}), with the state that attended; s_0 from the mean h."""
    model, ids = made("encoder_decoder, maxout"), random_targets(2, 4)
    decoder, found = model.decoder, features(model, ids)
    for row in range(2):
        alone = row_of(random_source(LENGTHS), row)
        memory = model.encoder.read(alone)[0]
        first = torch.tanh(decoder.initial.weight @ memory.mean(0) + decoder.initial.bias)
        h, c = ([first[:12], first[24:36]], [first[12:24], first[36:]])
        for t, word in enumerate(ids[row]):
            keys = memory @ decoder.attention.key.weight.T
            context = (keys @ h[1]).softmax(0) @ memory  # the window of local attention holds so few positions
            e = model.embedding.weight[word] * SCALE
            inner = decoder.readout.weight @ torch.cat((h[1], context, e)) + decoder.readout.bias
            expected = torch.stack([torch.maximum(inner[2 * j], inner[2 * j + 1]) for j in range(D)])
            torch.testing.assert_close(found[row, t], expected, **CLOSE)
            x = torch.cat((e, context))
            for layer, cell in enumerate(decoder.layers):
                gates = cell.input.weight @ x + cell.input.bias + cell.recurrent.weight @ h[layer] + cell.recurrent.bias
                i, f, g, o = gates.chunk(4)
                c[layer] = torch.sigmoid(f) * c[layer] + torch.sigmoid(i) * torch.tanh(g)
                x = h[layer] = torch.sigmoid(o) * torch.tanh(c[layer])


@torch.no_grad()
def test_the_encoder_and_the_first_state_equal_the_equations_of_bahdanau() -> None:
    """→h_j and ←h_j by the GRU with reset before the product, h_j = [→h_j; ←h_j], s_0 = tanh(W_s ←h_1)."""
    model: Any = made("encoder_decoder, Bahdanau")
    encoder, decoder = model.encoder, model.decoder
    state = model.start(random_source(LENGTHS))
    for row in range(2):
        alone = row_of(random_source(LENGTHS), row)
        words = [encoder.embedding[word] for word in alone.ids[0]]
        directions = []
        for cell, order in ((encoder.layers[0].left_to_right, 1), (encoder.layers[0].right_to_left, -1)):
            h, states = torch.zeros(cell.hidden_size), []
            for x in words[::order]:
                h = gru_reset_before(cell, x, h)
                states.append(h)
            directions.append(torch.stack(states[::order]))
        torch.testing.assert_close(encoder.read(alone)[0], torch.cat(directions, 1), **CLOSE)
        first = torch.tanh(decoder.initial.weight @ directions[1][0] + decoder.initial.bias)
        torch.testing.assert_close(state.layers[0][0][row], first, **CLOSE)


def test_a_start_from_right_to_left_needs_an_encoder_that_reads_so() -> None:
    decoder = DECODER.model_copy(update={"start": "right_to_left"})
    with pytest.raises(UsageError, match=r'"right_to_left" needs an encoder that reads in both directions'):
        EncoderDecoder(translator(ENCODER, decoder), VOCABULARIES)


@torch.no_grad()
def test_maxout_without_attention_reads_the_word_that_was_just_read() -> None:
    decoder = RecurrentDecoderConfig(
        hidden_size=12, start="thought", attention="none", readout="maxout", readout_of=("state",)
    )
    torch.manual_seed(1)
    model = EncoderDecoder(translator(RNN_READER, decoder, tie="none"), VOCABULARIES)
    found = features(model, torch.tensor([[1, 7], [1, 8]]))
    assert not torch.allclose(found[0, 1], found[1, 1])


def test_the_positions_of_the_encoder_are_those_of_the_translator() -> None:
    encoder = EncoderConfig(d_model=12, num_heads=2, max_len=16)
    assert EncoderDecoderConfig(d_model=12, encoder=encoder).max_positions == encoder.max_positions == 16
    keys = {"task": "translation", "model.kind": "encoder_decoder", "model.encoder.kind": "encoder"}
    keys |= {"model.encoder.max_len": 16, "data.src": "a", "data.tgt": "b"}
    with pytest.raises(UsageError, match=r"data.max_tokens = 256 and the end of a source need 257 positions"):
        build_recipe(Document(), keys)
    assert build_recipe(Document(), {**keys, "data.max_tokens": 15})
    with pytest.raises(UsageError, match=r"= 15, a tag and the end of a source need 17 positions"):
        build_recipe(Document(), {**keys, "data.max_tokens": 15, "data.tag": "2de"})


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"task": "translation", "model.kind": "encoder_decoder", "data.src": "a", "data.tgt": "b"}, "model.encoder"),
        ({"task": "tagging", "training.stop_metric": "entity_f1", "head.kind": "softmax", "data.conll": "a"}, "model"),
    ],
)
def test_too_few_positions_are_named_by_the_keys_that_set_them(keys: dict[str, Any], place: str) -> None:
    keys = {**keys, f"{place}.kind": "elmo", f"{place}.forward.kind": "gpt", f"{place}.backward.kind": "gpt"}
    keys |= {f"{place}.forward.max_len": 16, "data.max_tokens": 256}
    for length, named in ((257, ["forward"]), (256, ["forward", "backward"])):
        with pytest.raises(UsageError) as refused:
            build_recipe(Document(), {**keys, f"{place}.backward.max_len": length})
        expected = " and ".join(f"{place}.{direction}.max_len" for direction in named)
        assert str(refused.value).rstrip(")").endswith((f"({expected}", f"raise {expected}"))


@torch.no_grad()
def test_a_query_of_the_word_equals_the_formulas_of_mcallester() -> None:
    """α_s = softmax(e(w_t) · h_s), h̃ = Σ α_s h_s; the next word depends on the thought vector, h_t and h̃."""
    model, ids = made("encoder_decoder, word"), random_targets(2, 4)
    decoder, found = model.decoder, features(model, ids)
    cell = nn.GRUCell(2 * D, D)  # h_t reads the word, and here the thought vector
    cell.load_state_dict({
        "weight_ih": decoder.layers[0].input.weight, "bias_ih": decoder.layers[0].input.bias,
        "weight_hh": decoder.layers[0].recurrent.weight, "bias_hh": decoder.layers[0].recurrent.bias,
    })  # fmt: skip
    for row in range(2):
        memory = model.encoder.read(row_of(random_source(LENGTHS), row))[0]
        thought, h = memory[0], torch.zeros(D)  # right to left: the last state is at the first position
        for t, word in enumerate(ids[row]):
            e = model.embedding.weight[word] * SCALE
            h = cell(torch.cat((e, thought))[None], h[None])[0]
            total = torch.stack([(e @ vector).exp() for vector in memory])
            attended = sum(share * vector for share, vector in zip(total / total.sum(), memory, strict=True))
            assert isinstance(attended, Tensor)
            expected = torch.tanh(decoder.readout.weight @ torch.cat((thought, h, attended)) + decoder.readout.bias)
            torch.testing.assert_close(found[row, t], expected, **CLOSE)


@pytest.mark.parametrize("mixing", DECODER_MIXING)
@torch.no_grad()
def test_a_transformer_encoder_with_a_transformer_decoder_equals_the_transformer(mixing: str) -> None:
    reader = EncoderConfig(
        d_model=D, d_ff=14, num_heads=2, num_layers=2, positions="interleaved", num_segments=0, embedding_norm=False,
        norm="pre", norm_epsilon=1e-5, activation="relu",
    )  # fmt: skip
    decoder = TransformerDecoderConfig(d_ff=14, num_heads=2, num_layers=2, decoder_mixing=mixing)
    model = EncoderDecoder(translator(reader, decoder), VOCABULARIES)
    other = Transformer(
        TransformerConfig(d_model=D, d_ff=14, num_heads=2, num_encoder_layers=2, num_decoder_layers=2, norm="pre",
                          tie="target", decoder_mixing=mixing), VOCABULARIES,
    )  # fmt: skip
    weights = {name.removeprefix("decoder."): weight for name, weight in model.state_dict().items()}
    missing, unexpected = other.load_state_dict(weights, strict=False)
    assert not missing and not unexpected
    source, ids = random_source(LENGTHS), random_targets(2, 6)
    expected, _ = other.advance(ids, other.start(source))
    torch.testing.assert_close(features(model, ids), expected, **CLOSE)


def test_a_transformer_decoder_of_another_size_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a multiple of model\.decoder\.num_heads, got 12 and 5"):
        EncoderDecoder(translator(BIGRU, TransformerDecoderConfig(num_heads=5)), VOCABULARIES)


@pytest.mark.parametrize("kind", ["cnn", "encoder", "bilstm", "bag", "rnn_reader"])
def test_a_recipe_names_any_reader_of_tokens_as_its_encoder(kind: str) -> None:
    table = {"kind": "encoder_decoder", "d_model": D, "encoder": {"kind": kind, "d_model": 8}}
    config = build(EncoderDecoderConfig, Document(table))
    assert {"encoder", "cnn", "rnn_reader", "elmo"} <= encoders().keys() and "hierarchical_attention" not in encoders()
    assert type(EncoderDecoder(config, VOCABULARIES).encoder) is MODELS[kind]


ENCODERS = [name for name, config in READER_CONFIGS.items() if config.kind in encoders()]
DECODER_CONFIGS = {
    "recurrent": DECODER, "transformer": TransformerDecoderConfig(d_ff=14, num_heads=2, num_layers=2),
}  # fmt: skip


def test_every_encoder_and_decoder_is_tested() -> None:
    assert {READER_CONFIGS[name].kind for name in ENCODERS} == encoders().keys()
    assert DECODER_CONFIGS.keys() == DECODERS.keys()


@pytest.mark.parametrize("decoder", DECODER_CONFIGS)
@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_any_decoder_reads_every_word_of_any_encoder_and_nothing_else(encoder: str, decoder: str) -> None:
    """Neither padding nor the other row changes features; another word anywhere in the source does."""
    torch.manual_seed(7)
    model = EncoderDecoder(translator(READER_CONFIGS[encoder], DECODER_CONFIGS[decoder]), VOCABULARIES)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    ids, source = random_targets(2, 3), random_source(LENGTHS)
    found = features(model, ids)
    for row in range(2):
        alone, _ = model.advance(ids[row : row + 1], model.start(row_of(source, row)))
        torch.testing.assert_close(found[row : row + 1], alone, **CLOSE)
        for place in range(LENGTHS[row]):
            changed = source.ids.clone()
            changed[row, place] = 3 + (changed[row, place] - 2) % 11
            other, _ = model.advance(ids, model.start(TokenSource(changed, source.mask)))
            assert [torch.allclose(other[n], found[n], **CLOSE) for n in range(2)] == [n != row for n in range(2)]


@torch.no_grad()
def test_dropout_changes_what_is_computed_and_dropout_of_zero_does_not() -> None:
    ids, source = random_targets(2, 4), random_source(LENGTHS)
    keys = DropoutKeys.for_step(1, 1, torch.arange(2))
    for share in (0.0, 0.5):
        encoder = RNN_READER.model_copy(update={"dropout": share})
        model = EncoderDecoder(translator(encoder, DECODER).model_copy(update={"dropout": share}), VOCABULARIES)
        noisy, _ = model.advance(ids, model.start(source, dropout_keys=keys))
        plain, _ = model.advance(ids, model.start(source))
        assert torch.allclose(noisy, plain) == (share == 0.0)


def test_a_thought_vector_of_another_size_is_refused_with_advice() -> None:
    for encoder in (BIGRU, RNN_READER.model_copy(update={"cell": "lstm"})):
        config = translator(encoder, DECODER.model_copy(update={"start": "thought"}))
        with pytest.raises(UsageError, match=r"the encoder's last states.*kind rnn_reader"):
            EncoderDecoder(config, VOCABULARIES)


@pytest.mark.parametrize("reads", [{"feed_thought": True}, {"readout_of": ("state", "thought")}])
def test_a_thought_vector_of_zeros_is_refused(reads: dict[str, Any]) -> None:
    decoder = DECODER.model_copy(update={"start": "zeros", "attends": "before", **reads})
    with pytest.raises(UsageError, match=r'would be zeros: .*rnn_reader or .*model\.decoder\.start = "mean"'):
        EncoderDecoder(translator(BIGRU, decoder), VOCABULARIES)
    EncoderDecoder(translator(RNN_READER, decoder), VOCABULARIES)


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        ({"attention": "none"}, "without attention there is no context"),
        ({"attention": "none", "readout": "none", "hidden_size": 5}, r"hidden_size = model\.d_model: got 5 and 256"),
        (
            {"attention": "none", "readout": "none", "hidden_size": 256, "query": "word"},
            r'without attention there is no query: leave model\.decoder\.query = "word" out',
        ),
        ({"attends": "after", "readout_of": ["state"]}, r'add "context" to model\.decoder\.readout_of'),
        ({"attends": "after", "readout": "none"}, r'only the readout can read the context: .*attends = "before"'),
        ({"attention": "nothing"}, "Input should be multi_head, .*, none"),
    ],
)
def test_choices_that_contradict_each_other_are_refused(decoder: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EncoderDecoderConfig.model_validate({"decoder": {"kind": "recurrent", **decoder}})
