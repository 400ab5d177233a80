"""Does every file come back bit for bit, in about the bits that the model's probabilities ask for?"""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_speakers import BYTES_OF_LINES, CHARACTERS, LINES, WORDS_OF_STREAM, train_speaker
from toy import trained, unchecked_shapes, without_shape_checks

pytest.importorskip("constriction", reason="constriction is not installed")

import heed
from heed.compress import container
from heed.compress.codec import compress, decompress
from heed.core.errors import DataError, UsageError
from heed.tasks.predictor import Predictor

__all__ = ["trained", "without_shape_checks"]

SPEAKERS = {"characters": CHARACTERS, "words": WORDS_OF_STREAM, "bytes": BYTES_OF_LINES}


@pytest.fixture(scope="module")
def speakers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Predictor]:
    """A tiny GPT of each kind of text, and a bigram."""
    found = {}
    with unchecked_shapes():
        for name, keys in SPEAKERS.items():
            found[name] = heed.load(train_speaker(tmp_path_factory.mktemp(name), keys))
        counted = {"task": "language-model", "data.hold_out": 8, "tokenizer.kind": "word", "model.kind": "bigram",
                   "training.stop_metric": "perplexity"}  # fmt: skip
        folder = tmp_path_factory.mktemp("bigram")
        (folder / "text").write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
        heed.train({**counted, "data.text": str(folder / "text")}, folder / "run", quiet=True)
        found["bigram"] = heed.load(folder / "run")
    return found


NAMES = [*SPEAKERS, "bigram"]
TEXT = "".join(line + "\n" for line in random.Random(3).choices(LINES, k=8)).encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [1, 4])
def test_a_text_comes_back_and_takes_few_bits(name: str, rows: int, speakers: dict[str, Predictor]) -> None:
    found = compress(speakers[name], TEXT, rows)
    assert decompress(speakers[name], found.blob) == TEXT
    assert found.num_payload_bytes < len(TEXT) / 2


@pytest.mark.parametrize("name", NAMES)
def test_the_size_is_the_models_entropy(name: str, speakers: dict[str, Predictor]) -> None:
    """At most 1 % and 64 bits above it: that of the text as one stream, or of its lines."""
    loaded = speakers[name]
    lines = TEXT.decode().removesuffix("\n").split("\n")
    if (
        name == "characters" or name == "words"
    ):  # the windows of generation and compression: those of models/limited_context.py
        nats = entropy_of_stream(loaded, TEXT.decode())
    else:
        nats = -sum(tokens.log_prob for tokens in loaded.score(lines))
    bits = nats / math.log(2)
    assert 8 * compress(loaded, TEXT).num_payload_bytes <= 1.01 * bits + 64


def entropy_of_stream(loaded: Predictor, text: str) -> float:
    """-log P (nats) of a running text, all at once."""
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
def test_odd_texts_come_back(name: str, data: bytes, speakers: dict[str, Predictor]) -> None:
    for rows in (1, 3):
        assert decompress(speakers[name], compress(speakers[name], data, rows).blob) == data


@pytest.mark.parametrize("name", ["characters", "bytes"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=30))
def test_any_bytes_come_back(name: str, data: bytes, speakers: dict[str, Predictor]) -> None:
    assert decompress(speakers[name], compress(speakers[name], data).blob) == data


def test_what_a_model_cannot_shorten_is_kept_as_it_is(speakers: dict[str, Predictor]) -> None:
    data = random.Random(1).randbytes(400)
    found = compress(speakers["bytes"], data)
    header, payload = container.read(found.blob)
    assert not header.coded
    assert payload == data
    assert decompress(speakers["bytes"], found.blob) == data


def test_the_same_text_gives_the_same_file(speakers: dict[str, Predictor]) -> None:
    assert compress(speakers["words"], TEXT).blob == compress(speakers["words"], TEXT).blob


def rewritten(blob: bytes, **changes: object) -> bytes:
    """The file with another header."""
    header, payload = container.read(blob)
    return container.written(header.model_copy(update=changes), payload)


def test_a_file_of_another_model_is_refused(speakers: dict[str, Predictor]) -> None:
    blob = compress(speakers["bytes"], TEXT).blob
    with pytest.raises(DataError, match="compressed with another model than"):
        decompress(speakers["words"], blob)


def test_a_header_of_an_older_heed_that_counts_processes_is_read(speakers: dict[str, Predictor]) -> None:
    blob = compress(speakers["bytes"], TEXT).blob
    older = {"processes": "1", **container.read(blob)[0].arithmetic}
    assert decompress(speakers["bytes"], rewritten(blob, arithmetic=older)) == TEXT


@pytest.mark.parametrize(
    ("fact", "value"),
    [("torch", "9.9.9"), ("instructions", "of no processor"), ("threads", "64"), ("precision", "bfloat16")],
)
def test_a_file_of_other_arithmetic_is_refused(fact: str, value: str, speakers: dict[str, Predictor]) -> None:
    blob = compress(speakers["bytes"], TEXT).blob
    arithmetic = {**container.read(blob)[0].arithmetic, fact: value}
    with pytest.raises(DataError, match=rf"compressed with {fact} {value}, here is {fact} "):
        decompress(speakers["bytes"], rewritten(blob, arithmetic=arithmetic))


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_that_differ_never_give_another_text(name: str, speakers: dict[str, Predictor]) -> None:
    """As if the arithmetic had changed and nobody had noticed: the code is of another model's making."""
    blob = compress(speakers[name], TEXT).blob
    header, payload = container.read(blob)
    for place in (0, len(payload) // 2, len(payload) - 1):
        wrong = payload[:place] + bytes([payload[place] ^ 4]) + payload[place + 1 :]
        try:
            assert decompress(speakers[name], container.written(header, wrong)) == TEXT, (
                "where the last bits say nothing"
            )
        except DataError as error:
            assert re.search(r"is not what was compressed|has no end", str(error))


def test_a_header_of_another_kind_of_model_is_refused(speakers: dict[str, Predictor]) -> None:
    blob = compress(speakers["bytes"], TEXT).blob
    with pytest.raises(DataError, match="a model of this kind"):
        decompress(speakers["bytes"], rewritten(blob, lengths=(3,)))
    with pytest.raises(DataError, match="more tokens than its text can have"):
        decompress(speakers["bytes"], rewritten(blob, num_lines=10**12))


def test_only_language_models_compress(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(UsageError, match="compressing needs a run that can compress"):
        compress(heed.load(trained), b"text")
