"""Word vectors from a text to neighbours: training, resuming, counted vectors, n-grams, and the command line."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call as command
from toy import write_lines
from trainings import content, gradients

import heed
from heed.core.errors import DataError, UsageError
from heed.execute import resume
from heed.planner import TrainOptions
from heed.run import Run
from heed.training.config import TrainingConfig
from heed.training.trainer import Trainer

QUICK = {
    "task": "word-vectors", "training.max_steps": 150, "training.eval_every": 75, "training.save_every": 75,
    "model.d_model": 12, "model.window": 2, "training.tokens_per_batch": 60, "training.lr": 0.1,
    "model.subsample": 0.0,
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "skip_gram": {}, "cbow": {"model.kind": "cbow"}, "ngrams": {"model.max_ngram": 4, "model.buckets": 500},
    "ppmi_svd": {"model.kind": "ppmi_svd"},
}  # fmt: skip


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in which animals and colours have different neighbours."""
    choose = random.Random(1)
    kinds = {"The": ["cat", "dog", "cow"], "paint": ["red", "blue", "green"]}
    lines = []
    for _ in range(400):
        first, words = choose.choice([*kinds.items()])
        rest = {"The": "sleeps and eats", "paint": "dries on walls"}[first]
        lines.append(f"{first} {choose.choice(words)} {rest} {choose.randrange(10**6)}")
    return write_lines(tmp_path_factory.mktemp("text") / "text.txt", lines)


@pytest.fixture(scope="session")
def runs(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trained run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    keys = {**QUICK, "data.text": str(text)}
    return {name: heed.train({**keys, **way}, folder / name, quiet=True) for name, way in WAYS.items()}


@pytest.mark.parametrize("name", WAYS)
def test_words_in_the_same_contexts_are_neighbours(runs: dict[str, Any], name: str) -> None:
    for word, others in {"cat": {"dog", "cow"}, "red": {"blue", "green"}}.items():
        top = 3 if name == "ngrams" else 2  # words that share n-grams are near too
        assert others <= {found for found, _ in runs[name].neighbours(word, top=top)}
    [(_, best)] = runs[name].neighbours("CAT", top=1)  # the text is lower-cased, and so is a query
    assert best == runs[name].neighbours("cat")[0][1] <= 1


def test_a_sum_of_words_leaves_them_out(runs: dict[str, Any]) -> None:
    names = [word for word, _ in runs["skip_gram"].neighbours("cat - dog + red", top=100)]
    assert not {"cat", "dog", "red"} & {*names} and {"blue", "green"} <= {*names}
    vectors = runs["skip_gram"].embed(["cat", "dog", "red"])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    query, [blue] = units[0] - units[1] + units[2], runs["skip_gram"].embed(["blue"])
    expected = query @ blue / np.linalg.norm(query) / np.linalg.norm(blue)
    assert dict(runs["skip_gram"].neighbours("cat - dog + red", top=100))["blue"] == pytest.approx(expected, abs=1e-5)


def test_a_text_has_the_mean_of_its_known_words(runs: dict[str, Any]) -> None:
    predictor = runs["skip_gram"]
    cat, sleeps, both, unknown = predictor.embed(["cat", "sleeps", "Cat 17 sleeps", "17"])
    np.testing.assert_allclose(both, (cat + sleeps) / 2, atol=1e-6)
    assert not unknown.any() and predictor.embed("cat").shape == (12,) and predictor.embed([]).shape == (0, 12)
    np.testing.assert_array_equal(predictor.embed("cat sleeps", "max"), np.maximum(cat, sleeps))
    np.testing.assert_array_equal(predictor.embed("cat sleeps", "last"), sleeps)
    with pytest.raises(UsageError, match="pooling must be mean, max, first or last"):
        predictor.embed("cat", "middle")


def test_an_unknown_word_has_the_vector_of_its_ngrams(runs: dict[str, Any]) -> None:
    predictor = runs["ngrams"]
    assert "sleep" not in predictor.words and predictor.embed("sleep").any()
    nearest = [word for word, _ in predictor.neighbours("sleep", top=1)]
    assert nearest == ["sleeps"]
    with pytest.raises(DataError, match="no vector for zebra"):
        runs["skip_gram"].neighbours("zebra")


def test_counted_vectors_do_not_depend_on_the_seed_of_torch(runs: dict[str, Any], text: Path, tmp_path: Path) -> None:
    torch.manual_seed(77)
    again = heed.train({**QUICK, "data.text": str(text), "model.kind": "ppmi_svd"}, tmp_path / "again", quiet=True)
    assert again.run.files.path("model.safetensors").read_bytes() == (
        runs["ppmi_svd"].run.files.path("model.safetensors").read_bytes()
    )


def test_a_resumed_training_gives_the_same_bytes(text: Path, tmp_path: Path, runs: dict[str, Any]) -> None:
    keys = {**QUICK, "data.text": str(text), "training.patience": 3}
    whole = heed.train(keys, tmp_path / "whole", quiet=True).run.folder
    part = heed.train({**keys, "training.max_epochs": 1}, tmp_path / "part", quiet=True).run.folder
    resume(TrainOptions(part, quiet=True), limits={"training.max_epochs": 0})
    kept = [{name: data for name, data in content(run).items() if "step-" in name} for run in (part, whole)]
    assert kept[0] == kept[1] and any("weights" in name for name in kept[0])


def test_the_gradient_is_that_of_the_summed_loss(text: Path, tmp_path: Path, runs: dict[str, Any]) -> None:
    run = Run(runs["skip_gram"].run.folder)
    task, model = run.task(), run.new_model()
    torch.nn.init.normal_(model.outputs)  # type: ignore[arg-type]
    found = {}
    for reduction in ("sum", "mean"):
        config = run.recipe.training.model_copy(update={"reduction": reduction})
        trainer = Trainer(config, model, task, tmp_path, 1, torch.device("cpu"), 12, quiet=True)
        [(_, batch), *_] = [next(task.loader(100, 1).batches_from())]
        found[reduction] = gradients(trainer, [batch])  # type: ignore[list-item]
    for name, gradient in found["sum"].items():
        torch.testing.assert_close(gradient.to_dense(), found["mean"][name].to_dense() * batch.num_targets)


def test_settings_that_sparse_gradients_do_not_allow_are_refused(text: Path, tmp_path: Path) -> None:
    for key, value in {"optimizer": "adam", "precision": "bfloat16", "weight_decay": 0.1}.items():
        with pytest.raises(UsageError, match=f"set training.{key} = "):
            heed.train({**QUICK, "data.text": str(text), f"training.{key}": value}, tmp_path / "run", quiet=True)
    with pytest.raises(UsageError, match=r'need tokenizer.kind = "word"'):
        heed.train({**QUICK, "data.text": str(text), "tokenizer.kind": "bpe"}, tmp_path / "run", quiet=True)
    assert TrainingConfig().reduction == "mean"


def test_a_tiny_vocabulary_is_trained_although_subsampling_may_leave_out_all_words_of_a_batch(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", [f"the {a} sees the {b} of {a}" for a in "abcdefgh" for b in "ijklmnop"])
    few = {"training.max_steps": 4, "training.eval_every": 4, "training.save_every": 4, "training.tokens_per_batch": 40}
    for subsample in (1e-3, 0.0):
        keys = {**QUICK, **few, "data.text": str(text), "model.subsample": subsample}
        trained = heed.train(keys, tmp_path / f"run-{subsample}", quiet=True)
        assert np.isfinite(trained.vectors).all()


def test_embed_writes_an_array_for_all_lines_to_a_pipe(runs: dict[str, Any]) -> None:
    folder = str(runs["skip_gram"].run.folder)
    lines = ["the cat", "", "zzz", "blue walls"]
    done = command("embed", folder, stdin="\n".join(lines) + "\n")
    array = np.load(io.BytesIO(done.stdout))
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, runs["skip_gram"].embed(lines))
    done = command("embed", folder, "--per-token", stdin="the zzz cat\n")
    record = json.loads(done.out)
    assert record["tokens"] == ["the", "cat"] and len(record["vectors"][0]) == 12


def test_neighbours_prints_words_with_their_cosines(runs: dict[str, Any]) -> None:
    folder = str(runs["skip_gram"].run.folder)
    done = command("neighbours", folder, "--top", "2", "cat", "red", "-", "blue", "+", "cow")
    assert done.lines[0] == "cat" and "\n\nred - blue + cow\n" in done.out
    [record] = map(json.loads, command("neighbours", folder, "--json", "cat").lines)
    assert record["query"] == "cat" and {each["word"] for each in record["neighbours"][:2]} == {"dog", "cow"}
    assert command("neighbours", folder, "cat", "-").code == 2
    assert command("neighbours", folder, "zebra").code == 65


def test_vectors_survive_word2vecs_format(runs: dict[str, Any], tmp_path: Path) -> None:
    for name in ("skip_gram", "ngrams"):
        path, out = tmp_path / f"{name}.txt", tmp_path / name
        assert command("export", str(runs[name].run.folder), "--to", "word2vec", "--out", str(path)).code == 0
        assert path.read_text().split("\n")[0] == f"{len(runs[name].words)} 12"
        assert command("import", str(path), "--out", str(out)).code == 0
        again = heed.load(out)
        assert again.words == runs[name].words  # type: ignore[attr-defined]
        np.testing.assert_allclose(again.embed(again.words), runs[name].vectors, rtol=1e-6)  # type: ignore[attr-defined]
    bad = write_lines(tmp_path / "bad.txt", ["2 3", "a 1 2 3", "b 1 2"])
    done = command("import", str(bad), "--out", str(tmp_path / "bad"))
    assert done.code == 65 and "bad.txt, line 3: expected a word and 3 numbers, got 'b 1 2'." in done.err


def test_word_vectors_in_the_binary_format_are_refused_with_the_way_to_write_them_as_text(tmp_path: Path) -> None:
    vector = np.arange(20, dtype=np.float32).tobytes()
    (tmp_path / "vectors.bin").write_bytes(b"2 20\n" + b"a " + vector + b"\nb " + vector + b"\n")
    done = command("import", str(tmp_path / "vectors.bin"), "--out", str(tmp_path / "run"))
    assert done.code == 65 and "is in the binary format of word2vec" in done.err and "save_word2vec_format" in done.err


def test_a_truncated_file_of_word_vectors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("1000 2\na 1 2\nb 3 4\n")
    done = command("import", str(tmp_path / "vectors.txt"), "--out", str(tmp_path / "run"))
    assert done.code == 65 and "the header announces 1,000 words, but there are 2" in done.err
    assert not (tmp_path / "run").exists()


def test_of_repeated_words_the_first_vector_is_kept(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("3 2\na 1 2\nb 3 4\na 5 6\n")
    done = command("import", str(tmp_path / "vectors.txt"), "--out", str(tmp_path / "run"))
    assert done.code == 0 and "left out: 1 row of words that have a vector already" in done.err
    loaded: Any = heed.load(tmp_path / "run")
    assert loaded.vectors.tolist() == [[1, 2], [3, 4]]
