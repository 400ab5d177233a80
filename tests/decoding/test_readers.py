"""Each reader gives a token the probability that the model gives it in the context of its signature."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_language import TinyRecurrent, prepared_text, text, tiny_model

from heed.core.errors import DataError
from heed.data.text_stream import TextStream
from heed.decoding import scoring
from heed.decoding.scoring import LineReader, Reader, StreamReader, TextScorer, WindowReader, make_reader, score_rows
from heed.models.ngram import Ngram, NgramConfig
from heed.nn.contract import Vocabularies
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TextAs, TokenizerConfig, encode_ended, train_tokenizer

CPU = torch.device("cpu")
LINES = text(30, seed=5)


@pytest.fixture(scope="module")
def model() -> TinyRecurrent:
    torch.manual_seed(3)
    return TinyRecurrent(Vocabularies(0, 20))


@pytest.fixture(scope="module")
def stream() -> TextStream:
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=20, min_frequency=1), LINES)
    return TextStream.of_lines(encode_ended(tokenizer, LINES, "eos"))


def log_prob(model: TinyRecurrent, stream: TextStream, position: int, first: int) -> float:
    """log P of the token at a position after those from `first` on, one token at a time."""
    read = [1 if i == 0 or stream.ids[i - 1] == 2 else int(stream.ids[i - 1]) for i in range(first, position + 1)]
    state = model.start(None, 1)
    for token in read:
        features, state = model.advance(torch.tensor([[token]]), state)
    return float(model.head.log_probs(features)[0, 0, int(stream.ids[position])].detach())


def begin_of_line(stream: TextStream, position: int) -> int:
    return int(stream.offsets[np.searchsorted(stream.offsets, position, side="right") - 1])


def begin_of_window(context: int, stride: int) -> Callable[[TextStream, int], int]:
    return lambda stream, position: max(0, (position // stride + 1) * stride - context)


@pytest.mark.parametrize(
    ("text_as", "context", "stride", "first", "signature"),
    [
        ("lines", 0, 0, begin_of_line, "context:line"),
        ("stream", 0, 0, lambda stream, position: 0, "context:stream"),
        ("windows", 10, 0, begin_of_window(10, 5), "context:10|stride:5"),
        ("windows", 7, 7, begin_of_window(7, 7), "context:7|stride:7"),
        ("windows", 8, 1, begin_of_window(8, 1), "context:8|stride:1"),
        ("windows", 500, 3, begin_of_window(500, 3), "context:500|stride:3"),
    ],
)
def test_each_token_has_its_probability_given_the_context_of_the_signature(
    model: TinyRecurrent, stream: TextStream, monkeypatch: pytest.MonkeyPatch,
    text_as: TextAs, context: int, stride: int, first: Callable[[TextStream, int], int], signature: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(scoring, "SEGMENT", 11)
    monkeypatch.setattr(scoring, "MAX_SCORED_POSITIONS", 40)
    reader = make_reader(text_as, model, CPU, context, stride)
    assert reader.signature == signature
    actual = reader.read(stream)
    expected = [log_prob(model, stream, position, first(stream, position)) for position in range(len(stream))]
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda model: StreamReader(model, CPU),
        lambda model: WindowReader(model, CPU, 9, 4),
        lambda model: WindowReader(model, CPU, 200, 50),
        lambda model: LineReader(model, CPU),
    ],
    ids=["stream", "short windows", "long windows", "lines"],
)
@pytest.mark.parametrize("cuts", [[1], [3, 4, 17], list(range(1, 30))])
def test_a_text_read_in_parts_has_the_probabilities_of_the_whole(
    model: TinyRecurrent, stream: TextStream, make: Callable[[TinyRecurrent], Reader], cuts: list[int]
) -> None:
    whole = make(model).read(stream)
    reader = make(model)
    lines = np.split(stream.ids, stream.offsets[1:-1])
    parts = [lines[a:b] for a, b in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    actual = np.concatenate([reader.read(TextStream.of_lines([line.tolist() for line in part])) for part in parts])
    np.testing.assert_allclose(actual, whole, rtol=1e-4)


def test_a_stream_split_into_parts_differs_only_at_their_beginnings(model: TinyRecurrent, stream: TextStream) -> None:
    reader = StreamReader(model, CPU, num_streams=3)
    assert reader.signature == "context:stream|streams:3"
    whole, actual = StreamReader(model, CPU).read(stream), reader.read(stream)
    cut = len(stream) // 3
    np.testing.assert_allclose(actual[:cut], whole[:cut], rtol=1e-4)
    assert abs(actual[cut] - whole[cut]) > 1e-6
    np.testing.assert_array_equal(reader.read(stream), actual)


def test_likelihoods_count_the_tokens_words_and_bytes_of_each_line(model: TinyRecurrent) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=9, min_frequency=1), LINES)
    scorer = TextScorer(StreamReader(model, CPU), tokenizer, Normaliser(collapse_spaces=True), "eos")
    scored = scorer.score([" ba   zz ce ", "", "<unk> ba"])
    assert scored.lines == ["ba zz ce", "", "<unk> ba"]
    likelihoods = scored.likelihoods()
    counts = [(t.num_tokens, t.num_words, t.num_characters, t.num_sentences) for t in likelihoods]
    assert counts == [(4, 3, 8, 1), (1, 0, 0, 1), (3, 2, 8, 1)]
    assert [t.num_unknown for t in likelihoods][1:] == [0, 1]
    assert sum(t.log_prob_sum for t in likelihoods) == pytest.approx(float(scored.log_probs.sum()))
    tokens = scored.token_scores()
    assert [len(t.ids) for t in tokens] == [4, 1, 3]
    assert tokens[1].ids == (2,)
    assert [t.log_prob for t in tokens] == pytest.approx([t.log_prob_sum for t in likelihoods])


def test_a_newline_token_counts_as_a_character_and_a_missing_end_does_not(model: TinyRecurrent) -> None:
    tokenizer = train_tokenizer(
        TokenizerConfig(kind="character", vocab_size=20, min_frequency=1), [line + "\n" for line in LINES]
    )
    ends = {}
    for line_end in ("newline", "none"):
        scored = TextScorer(StreamReader(model, CPU), tokenizer, Normaliser(), line_end).score(["ba", "", "ce"])  # type: ignore[arg-type]
        ends[line_end] = [(t.num_tokens, t.num_characters, t.num_sentences) for t in scored.likelihoods()]
    assert ends == {"newline": [(3, 2, 1), (1, 0, 1), (3, 2, 1)], "none": [(2, 2, 0), (0, 0, 0), (2, 2, 0)]}
    assert tokenizer.decode([scored.text.ids.tolist()]) == ["bace"]


def test_a_line_that_is_too_long_is_an_error(model: TinyRecurrent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_SCORED_TOKENS", 5)
    with pytest.raises(DataError, match="a line has 6 tokens, but at most 5"):
        LineReader(model, CPU).read(TextStream.of_lines([[5] * 6]))


def test_a_long_line_needs_little_memory_with_a_cache_of_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [np.random.default_rng(1).integers(4, 20, length).tolist() for length in (1_000, 700, 3)]
    counted = Ngram(NgramConfig(order=2, cache_share=0.3, cache_size=500), Vocabularies(0, 20))
    counted.estimate(lines)
    expected = [token for line in score_rows(counted, lines, CPU) for token in line.log_probs]
    monkeypatch.setattr(scoring, "_MAX_FEATURES", 30_000)
    tracemalloc.start()
    found = LineReader(counted, CPU).read(TextStream.of_lines([[*line, 2] for line in lines]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == pytest.approx(expected, abs=1e-6)
    assert most < 4_000_000  # the caches of the two long lines have 7 million bytes


def test_an_empty_text_has_no_log_probabilities(model: TinyRecurrent) -> None:
    for reader in (LineReader(model, CPU), StreamReader(model, CPU), WindowReader(model, CPU, 5, 2)):
        assert len(reader.read(TextStream.of_lines([]))) == 0
    assert StreamReader(model, CPU, num_streams=3).read(TextStream.of_lines([[], []])).shape == (0,)


def test_validation_reports_the_perplexity_of_the_training_text_too(tmp_path: Path) -> None:
    task = prepared_text(tmp_path)
    validation = task.validate(tiny_model(task), task.metrics)
    assert list(validation.scores)[-1] == "training_perplexity"
    assert "streams:16" in validation.scores["perplexity"].signature
    assert "|text:training|context:stream" in validation.scores["training_perplexity"].signature
    assert validation.value("training_perplexity") == pytest.approx(validation.value("perplexity"), rel=0.3)
