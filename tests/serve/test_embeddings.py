"""OpenAI's embeddings API, as called by its client: the vectors of `heed embed`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
from openai import OpenAI
from serving import Live, serving
from toy import unchecked_shapes, write_lines
from toy_tags import tiny_tagger

import heed
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

TEXTS = ["ba ce", "di", "ba ce di ba ce di ba ce di", "ba"]


def client_of(live: Live) -> OpenAI:
    """The official client."""
    return OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[OpenAI]:
    """A client of a server of two translators and a language model that counts."""
    with client_of(live) as client:
        yield client


def test_vectors_are_those_of_embed_for_any_number_of_texts(client: OpenAI, loaded: list[Predictor]) -> None:
    for texts in (TEXTS, TEXTS * 5):
        answer = client.embeddings.create(model="en-de", input=texts)
        assert [each.index for each in answer.data] == [*range(len(texts))]
        np.testing.assert_allclose([each.embedding for each in answer.data], loaded[0].embed(texts), atol=1e-6)
        assert answer.model == "en-de" and answer.object == "list"
        number = sum(len(each.tokens) for each in loaded[0].token_vectors(texts))
        assert answer.usage.prompt_tokens == answer.usage.total_tokens == number
    one = client.embeddings.create(model="en-de", input=TEXTS[0]).data
    np.testing.assert_allclose(one[0].embedding, loaded[0].embed(TEXTS[0]), atol=1e-6)


def test_base64_has_the_same_numbers(live: Live, loaded: list[Predictor]) -> None:
    """The official client asks for base64 by itself and decodes it; here both forms are seen as they are sent."""
    body = {"model": "de-fr", "input": TEXTS[:2]}
    numbers = live.post("/v1/embeddings", body).json["data"]
    coded = live.post("/v1/embeddings", {**body, "encoding_format": "base64"}).json["data"]
    for row, other in zip(numbers, coded, strict=True):
        decoded = np.frombuffer(base64.b64decode(other["embedding"]), dtype="<f4")
        assert decoded.tolist() == row["embedding"]
        assert row["object"] == other["object"] == "embedding"
    size = len(numbers[0]["embedding"])
    assert live.post("/v1/embeddings", {**body, "dimensions": size}).json["data"] == numbers


@pytest.mark.parametrize(
    ("changes", "status", "param", "message"),
    [
        ({"model": "lm"}, 400, "model", "'lm' cannot embed"),
        ({"model": "fr-de"}, 404, "model", "does not exist"),
        ({"input": ""}, 400, "input", "is empty"),
        ({"input": ["ba", ""]}, 400, "input", "is empty"),
        ({"input": []}, 400, "input", "a list of at most 128 texts"),
        ({"input": ["ba"] * 129}, 400, "input", "a list of at most 128 texts"),
        ({"input": [1, 2]}, 400, "input", "token ids"),
        ({"input": [[1, 2], [3]]}, 400, "input", "token ids"),
        ({"input": None}, 400, "input", "expected a text"),
        ({"input": "ba " * 4000}, 400, "input", "exceeds text limit"),
        ({"input": "ba " * 3000}, 400, "input", "tokens; the limit is 1,024"),
        ({"dimensions": 7}, 400, "dimensions", "32 dimensions"),
        ({"dimensions": 0}, 400, "dimensions", "greater than or equal to 1"),
        ({"encoding_format": "int8"}, 400, "encoding_format", "float"),
    ],
)
def test_invalid_requests_are_refused(
    live: Live, changes: dict[str, object], status: int, param: str, message: str
) -> None:
    answer = live.post("/v1/embeddings", {"model": "en-de", "input": "ba", **changes})
    error = answer.json["error"]
    assert (answer.status, error["param"]) == (status, param)
    assert message in error["message"] and error["type"] == "invalid_request_error"


def test_keys_are_required_where_the_server_has_some(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["secret"]) as live, client_of(live) as client:
        with pytest.raises(openai.AuthenticationError) as error:
            client.embeddings.create(model="en-de", input="ba")
        assert error.value.code == "invalid_api_key"
        assert client.with_options(api_key="secret").embeddings.create(model="en-de", input="ba").data


def test_every_reader_with_vectors_is_served(tmp_path: Path) -> None:
    """Classifiers of pairs, taggers, masked language models and word vectors; a linear model has no vectors."""
    few = {"training.max_steps": 2, "training.eval_every": 2, "training.save_every": 2, "training.warmup_steps": 1}
    pairs = write_lines(
        tmp_path / "pairs.tsv", ["text\ttext2\tlabel", *(f"a film {n}\ta plot\t{n % 2}" for n in range(60))]
    )
    text = write_lines(tmp_path / "text", [f"the {a} sees the {b} of {a}" for a in "abcdefgh" for b in "ijklmnop"])
    columns = {"task": "classification", "data.table": str(pairs), "data.text_column": ["text", "text2"]}
    small = {"model.d_model": 8, "tokenizer.vocab_size": 300, **few}
    encoder = {**small, "model.num_layers": 1, "model.d_ff": 16, "model.num_heads": 2, "data.text": str(text)}
    recipes = {
        "pairs": {**columns, "model.kind": "cnn", "model.num_filters": 4, **small},
        "linear": {**columns, "model.kind": "linear"},
        "masked": {"task": "masked-language-model", **encoder},
        "words": {"task": "word-vectors", "data.text": str(text), "model.kind": "ppmi_svd", "model.d_model": 8},
    }
    with unchecked_shapes():
        runs = [heed.train(keys, tmp_path / name, device="cpu", quiet=True) for name, keys in recipes.items()]
        runs.append(tiny_tagger(tmp_path, training__max_steps=2))
    lines = {"pairs": ["a film\ta plot", "a\tb"], "run": ["Ann met New York.", "Oslo"]}
    with serving(runs, Limits(characters=1000)) as live, client_of(live) as client:
        assert [each.id for each in client.models.list()] == ["pairs", "masked", "words", "run"]
        for run in runs:
            name = Path(run.run.folder).name
            if name == "linear":
                continue
            texts = lines.get(name, ["the a sees", "the b"])
            answer = client.embeddings.create(model=name, input=texts)
            found = np.array([each.embedding for each in answer.data])
            np.testing.assert_allclose(found, [run.embed(text) for text in texts], atol=1e-6)
            assert found.any()
        with pytest.raises(openai.BadRequestError, match="expected 2 texts"):
            client.embeddings.create(model="pairs", input="only one")
