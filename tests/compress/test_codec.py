"""Compression with language models: exact, and close to the entropy of the model."""

from __future__ import annotations

import math
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_speakers import BYTES_OF_LINES, CHARACTERS, LINES, WORDS_OF_STREAM, train_speaker
from toy import unchecked_shapes

pytest.importorskip("constriction", reason="constriction is not installed")

import heed
from heed.compress import codec, container
from heed.compress.codec import compress, decompress
from heed.core.errors import DataError, UsageError
from heed.tasks.predictor import Predictor

PIECES_OF_LINES = {"data.text_as": "lines", "tokenizer.kind": "wordpiece", "tokenizer.vocab_size": 60}
RUNS = {"characters": CHARACTERS, "words": WORDS_OF_STREAM, "bytes": BYTES_OF_LINES, "pieces": PIECES_OF_LINES}


@pytest.fixture(scope="module")
def predictors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Predictor]:
    """A tiny GPT for each kind of text, and a bigram."""
    predictors = {}
    with unchecked_shapes():
        for name, keys in RUNS.items():
            predictors[name] = heed.load(train_speaker(tmp_path_factory.mktemp(name), keys))
        counted = {"task": "language-model", "data.hold_out": 8, "tokenizer.kind": "word", "model.kind": "bigram",
                   "training.stop_metric": "perplexity"}  # fmt: skip
        folder = tmp_path_factory.mktemp("bigram")
        (folder / "text").write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
        heed.train({**counted, "data.text": str(folder / "text")}, folder / "run", quiet=True)
        predictors["bigram"] = heed.load(folder / "run")
    return predictors


@pytest.fixture(scope="module")
def blob(predictors: dict[str, Predictor]) -> bytes:
    """TEXT compressed by the GPT of bytes."""
    return compress(predictors["bytes"], TEXT).blob


NAMES = [*RUNS, "bigram"]
TEXT = "".join(line + "\n" for line in random.Random(3).choices(LINES, k=8)).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_restored_from_parts_coded_in_parallel(name: str, predictors: dict[str, Predictor]) -> None:
    result = compress(predictors[name], TEXT, rows=4)
    assert decompress(predictors[name], result.blob) == TEXT
    assert result.num_payload_bytes < len(TEXT) / 2


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_restored_and_takes_its_entropy_under_the_model(name: str, predictors: dict[str, Predictor]) -> None:
    """At most 1 % and 64 bits more than the entropy of the text as one stream, or of its lines."""
    loaded = predictors[name]
    result = compress(loaded, TEXT)
    assert decompress(loaded, result.blob) == TEXT
    assert result.num_payload_bytes < len(TEXT) / 2
    lines = TEXT.decode().removesuffix("\n").split("\n")
    if name in ("characters", "words"):  # generation and compression read windows as models/limited_context.py does
        nats = entropy_of_stream(loaded, TEXT.decode())
    else:
        nats = -sum(tokens.log_prob for tokens in loaded.score(lines))
    bits = nats / math.log(2)
    assert 8 * result.num_payload_bytes <= 1.01 * bits + 64


def entropy_of_stream(loaded: Predictor, text: str) -> float:
    """-log P (nats) of a running text, in one call of the model."""
    import torch

    form = loaded.translator.detokenizer
    lines = text.split("\n")[:-1]
    ended = form.line_end == "newline"
    ids = [id for line in lines for id in form.tokenizer.encode([line + "\n" * ended])[0] + [2] * (not ended)]
    read = torch.tensor([[1, *[1 if id == 2 else id for id in ids[:-1]]]])
    model = loaded.translator.model
    with torch.inference_mode():
        features, _ = model.advance(read, model.start(None, 1))
        return -float(model.head.log_prob(features, torch.tensor([ids])).sum())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"x", b"the ba", b"\n\nthe", bytes(range(256)), b"\xff" * 50, "é\r\n".encode()]
)
def test_odd_texts_are_restored(name: str, data: bytes, predictors: dict[str, Predictor]) -> None:
    assert decompress(predictors[name], compress(predictors[name], data, rows=1 + len(data) % 3).blob) == data


@pytest.mark.parametrize("name", ["characters", "bytes"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=30))
def test_any_bytes_are_restored(name: str, data: bytes, predictors: dict[str, Predictor]) -> None:
    assert decompress(predictors[name], compress(predictors[name], data).blob) == data


def test_a_text_that_the_model_cannot_shorten_is_stored_unchanged(predictors: dict[str, Predictor]) -> None:
    data = random.Random(1).randbytes(400)
    blob = compress(predictors["bytes"], data).blob
    header, payload = container.unpack(blob)
    assert not header.coded
    assert payload == data
    assert decompress(predictors["bytes"], blob) == data


def rewritten(blob: bytes, **changes: object) -> bytes:
    """The file with another header."""
    header, payload = container.unpack(blob)
    return container.pack(header.model_copy(update=changes), payload)


def test_the_same_text_gives_the_same_file(predictors: dict[str, Predictor], blob: bytes) -> None:
    assert compress(predictors["bytes"], TEXT).blob == blob


def test_a_file_of_another_model_is_an_error(predictors: dict[str, Predictor], blob: bytes) -> None:
    with pytest.raises(DataError, match="compressed with another model than"):
        decompress(predictors["words"], blob)


def test_an_older_header_with_the_number_of_processes_is_read(predictors: dict[str, Predictor], blob: bytes) -> None:
    older = {"processes": "1", **container.unpack(blob)[0].arithmetic}
    assert decompress(predictors["bytes"], rewritten(blob, arithmetic=older)) == TEXT


@pytest.mark.parametrize(
    ("fact", "value"),
    [("torch", "9.9.9"), ("instructions", "of no processor"), ("threads", "64"), ("precision", "bfloat16")],
)
def test_a_file_of_other_arithmetic_is_an_error(
    fact: str, value: str, predictors: dict[str, Predictor], blob: bytes
) -> None:
    arithmetic = {**container.unpack(blob)[0].arithmetic, fact: value}
    with pytest.raises(DataError, match=rf"compressed with {fact} {value}, but this machine has {fact} "):
        decompress(predictors["bytes"], rewritten(blob, arithmetic=arithmetic))


@pytest.mark.parametrize("name", ["words", "bytes", "bigram"])
def test_different_probabilities_never_give_another_text(name: str, predictors: dict[str, Predictor]) -> None:
    """A changed code simulates arithmetic that differs without being noticed."""
    blob = compress(predictors[name], TEXT).blob
    header, payload = container.unpack(blob)
    for place in (0, len(payload) // 2, len(payload) - 1):
        wrong = payload[:place] + bytes([payload[place] ^ 4]) + payload[place + 1 :]
        try:
            restored = decompress(predictors[name], container.pack(header, wrong))
            assert restored == TEXT, "allowed where the last bits are unused"
        except DataError as error:
            assert re.search(r"differs from the original|does not end", str(error))


def test_a_header_of_another_kind_of_model_is_an_error(predictors: dict[str, Predictor], blob: bytes) -> None:
    with pytest.raises(DataError, match="another kind of model"):
        decompress(predictors["bytes"], rewritten(blob, lengths=(3,)))
    with pytest.raises(DataError, match="more tokens than its text can have"):
        decompress(predictors["bytes"], rewritten(blob, num_lines=10**12))


@pytest.mark.parametrize("rows", [0, codec.MAX_ROWS + 1])
def test_more_parts_than_a_header_can_list_are_refused(rows: int, predictors: dict[str, Predictor]) -> None:
    with pytest.raises(UsageError, match=r"--rows must be from 1 to 16,384"):
        compress(predictors["characters"], TEXT, rows)
    most = container.unpack(compress(predictors["characters"], TEXT).blob)[0].model_copy(
        update={"rows": codec.MAX_ROWS, "lengths": (10**9,) * codec.MAX_ROWS}
    )
    assert container.unpack(container.pack(most, b""))[0] == most


def test_a_text_of_short_lines_may_have_more_tokens_than_bytes(predictors: dict[str, Predictor]) -> None:
    for data in (b"a\n" * 40, b"t", b"t\n"):
        assert decompress(predictors["pieces"], compress(predictors["pieces"], data).blob) == data
