"""The BiLSTM equals PyTorch's, character features equal their definitions, and only singletons become unknown."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from heed.core.errors import UsageError
from heed.models.bilstm import BiGru, BiGruConfig, BiLstm, BiLstmConfig
from heed.nn.affixes import AFFIX_BITS, AFFIXES, AffixVectors, rows_of
from heed.nn.characters import CHARACTERS, CharacterCnn, CharacterLstm
from heed.nn.contract import Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.word_source import WordSource

WORDS = Vocabularies(20, 5, num_characters=9, num_marks=3, num_singletons=4)
FULL: dict[str, Any] = {"d_model": 6, "hidden_size": 5, "case_size": 3, "mark_size": 2, "character_features": 4}


def words(lengths: tuple[int, ...] = (3, 5, 1)) -> WordSource:
    """Random words of one or two pieces, with the end of the sentence."""
    generator = torch.Generator().manual_seed(0)
    longest = max(lengths) + 1
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None] + 1
    inside = mask & (torch.arange(longest) < torch.tensor(lengths)[:, None])

    def drawn(low: int, high: int, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=generator)

    characters = drawn(1, 9, (7, 4)) * (torch.arange(4) < torch.tensor([0, 1, 2, 3, 4, 2, 1])[:, None])
    starts = torch.arange(max(lengths)).expand(len(lengths), -1)
    shape = tuple(mask.shape)
    return WordSource(
        drawn(4, 20, shape) * mask, mask, starts * inside[:, :-1], inside[:, :-1], drawn(1, 7, shape) * inside,
        characters, drawn(1, 8, shape) * inside, drawn(0, 4, shape) * inside,
    )  # fmt: skip


@pytest.mark.parametrize(("model", "config", "oracle"), [(BiLstm, BiLstmConfig, nn.LSTM), (BiGru, BiGruConfig, nn.GRU)])
def test_both_directions_are_those_of_pytorch(model: Any, config: Any, oracle: Any) -> None:
    reader = model(config(d_model=6, hidden_size=5, num_layers=2), Vocabularies(20, 5))
    twin = oracle(6, 5, 2, batch_first=True, bidirectional=True)
    for layer, pair in enumerate(reader.layers):
        for suffix, cell in (("", pair.left_to_right), ("_reverse", pair.right_to_left)):
            for name, linear in (("ih", cell.input), ("hh", cell.recurrent)):
                getattr(twin, f"weight_{name}_l{layer}{suffix}").data = linear.weight.data
                getattr(twin, f"bias_{name}_l{layer}{suffix}").data = linear.bias.data
    source = words()
    packed = nn.utils.rnn.pack_padded_sequence(
        nn.functional.embedding(source.ids, reader.embedding),
        source.mask.sum(1),
        batch_first=True,
        enforce_sorted=False,
    )
    expected, _ = nn.utils.rnn.pad_packed_sequence(twin(packed)[0], batch_first=True)
    features = reader.read(source)
    torch.testing.assert_close(features[source.mask], expected[source.mask])


@pytest.mark.parametrize("characters", ["none", "lstm", "cnn"])
@pytest.mark.parametrize("with_dropout", [False, True])
def test_neighbours_and_padding_do_not_change_words(characters: Any, with_dropout: bool) -> None:
    given = FULL | {"characters": characters, "num_layers": 2, "affix_size": 2}
    reader, source = BiLstm(BiLstmConfig(**given), WORDS), words()
    torch.nn.init.normal_(reader.affixes.weight)
    keys = DropoutKeys.for_step(1, 2, torch.arange(3)) if with_dropout else None
    together = source.of_words(reader.read(source, keys))
    for row in range(3):
        alone = source.part(slice(row, row + 1))
        features = alone.of_words(reader.read(alone, keys and keys.select(torch.tensor([row]))))
        torch.testing.assert_close(together[row : row + 1, : alone.words.shape[1]], features)


def test_a_source_of_words_repeats_its_rows_and_has_keys() -> None:
    source = words()
    twice = source.repeat(2).to(torch.device("cpu"))
    assert len(twice) == 6 and twice.key(3) == source.key(0) == source.part(slice(0, 1)).key(0)
    assert len({source.key(row) for row in range(3)}) == 3


def test_the_character_cnn_is_the_maximum_of_a_convolution() -> None:
    cnn, characters = CharacterCnn(9, 5, 4), words().characters
    features = cnn(characters)
    for word, row in zip(characters, features, strict=True):
        letters = cnn.weight[word[word > 0]]
        if not len(letters):
            assert not row.any()
            continue
        weight = cnn.filters.weight.view(4, 3, 5).transpose(1, 2)
        scores = nn.functional.conv1d(letters.T[None], weight, cnn.filters.bias, padding=1)
        torch.testing.assert_close(row, scores.amax(-1)[0])


def test_the_character_lstm_ends_with_the_last_character_in_both_directions() -> None:
    lstm, characters = CharacterLstm(9, 5, 4), words().characters
    features = lstm(characters)
    twin = nn.LSTM(5, 2, bidirectional=True, batch_first=True)
    for suffix, cell in (("", lstm.lstm.left_to_right), ("_reverse", lstm.lstm.right_to_left)):
        for name, linear in (("ih", cell.input), ("hh", cell.recurrent)):
            getattr(twin, f"weight_{name}_l0{suffix}").data = linear.weight.data
            getattr(twin, f"bias_{name}_l0{suffix}").data = linear.bias.data
    assert not features[0].any()
    for word, row in zip(characters[1:], features[1:], strict=True):
        _, (last, _) = twin(lstm.weight[word[word > 0]][None])
        torch.testing.assert_close(row, last[:, 0].flatten())


@pytest.mark.parametrize("kind", CHARACTERS)
def test_padding_does_not_change_the_features_of_characters(kind: str) -> None:
    network, characters = CHARACTERS[kind](9, 5, 4), words().characters
    torch.testing.assert_close(network(nn.functional.pad(characters, (0, 3))), network(characters))


def test_only_words_that_occur_once_become_unknown() -> None:
    reader = BiLstm(BiLstmConfig(**FULL), WORDS)
    ids, keys = torch.arange(20).expand(500, -1), DropoutKeys.for_step(1, 2, torch.arange(500))
    changed = reader._some_unknown(ids, keys) != ids
    assert not changed[:, :16].any()
    assert changed[:, 16:].float().mean() == pytest.approx(0.5, abs=0.05)
    assert (reader._some_unknown(ids, keys)[changed] == WORDS.unk_id).all()
    assert reader._some_unknown(ids, None).equal(ids)


def test_any_word_is_read_as_unknown_with_its_probability() -> None:
    config = BiLstmConfig(d_model=4, hidden_size=4, unknown_dropout=0.0, word_dropout=0.25)
    reader = BiLstm(config, WORDS)
    ids = torch.randint(4, WORDS.src_size, (40, 200))
    ids[:, ::10] = WORDS.eos_id
    read = reader._some_unknown(ids, DropoutKeys.for_step(1, 1, torch.arange(40)))
    words = ids != WORDS.eos_id
    assert (read == ids)[~words].all() and (read[read != ids] == WORDS.unk_id).all()
    assert float((read != ids)[words].float().mean()) == pytest.approx(0.25, abs=0.02)
    assert reader._some_unknown(ids, None).equal(ids)


def test_inputs_that_the_data_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match=r"model.characters, model.case_size: this task has no characters of words"):
        BiLstm(BiLstmConfig(characters="cnn", case_size=3), Vocabularies(20, 5))
    with pytest.raises(UsageError, match=r"model.mark_size: the data has no marks"):
        BiLstm(BiLstmConfig(mark_size=3), Vocabularies(20, 5, num_characters=4))


def test_affixes_are_rows_of_a_table_for_the_first_and_last_characters() -> None:
    affixes = AffixVectors(3)
    torch.nn.init.normal_(affixes.weight)
    spelled = torch.tensor([[0, 0, 0, 0, 0], [5, 6, 0, 0, 0], [4, 5, 6, 0, 0], [4, 5, 6, 7, 8], [9, 5, 6, 7, 8]])
    vectors = affixes(spelled).view(5, 2, len(AFFIXES), 3)
    assert not vectors[0].any()
    for length, prefix, suffix in zip(AFFIXES, *vectors[2:].movedim(2, 0).unbind(2), strict=True):
        assert prefix[0].equal(prefix[1]) == (length < 4) and not prefix[1].equal(prefix[2])
        assert suffix[1].equal(suffix[2]) and not suffix[0].equal(suffix[1])
    of_short = vectors[1:3, 1, 0]
    assert of_short[0].equal(of_short[1]), "the last two characters of both words"
    assert vectors[1, 0, 1].equal(affixes.weight[1, rows_of(torch.tensor([[5, 6, 0]]))[0]])
    torch.testing.assert_close(affixes(nn.functional.pad(spelled, (0, 3))), affixes(spelled))


def test_affixes_hardly_ever_share_a_row() -> None:
    letters = torch.cartesian_prod(*[torch.arange(2, 28)] * 2)
    assert len(rows_of(letters).unique()) > 0.95 * len(letters)
    assert int(rows_of(letters).min()) >= 0 and int(rows_of(letters).max()) < 1 << AFFIX_BITS


def test_affixes_that_training_has_not_seen_add_nothing() -> None:
    reader = BiLstm(BiLstmConfig(**FULL, affix_size=4), WORDS)
    assert reader.affixes is not None and not reader.affixes(words().characters).any()
    features = reader.read(words())
    torch.nn.init.normal_(reader.affixes.weight)
    assert not torch.allclose(features, reader.read(words()))
