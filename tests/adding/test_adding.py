"""External members work with every command: a task, a model, an attention, a metric, a tokenizer."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command import call
from serving import serving
from toy import events, tiny_keys, unchecked_shapes, without_shape_checks

import heed
from heed import members
from heed.core.errors import UsageError
from heed.metrics import METRICS
from heed.models import MODELS
from heed.nn.attention import ATTENTION
from heed.tasks import TASKS
from heed.text.tokenizers import TOKENIZERS
from heed.text.tokenizers.symbols import Word

__all__ = ["without_shape_checks"]

HERE = Path(__file__).resolve().parent


def imported(name: str) -> ModuleType:
    """A toy's module, which could be any package's."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def toys() -> list[Any]:
    """The members, registered by nobody yet."""
    task, model = imported("toy_task").CountWords, imported("toy_model").SumOfTokens
    share_right = sys.modules["toy_task"].ShareRight
    return [task, model, share_right, imported("toy_attention").Averaging, imported("toy_metric").TooLong]


@contextmanager
def registries_restored() -> Iterator[None]:
    """The registries, as they were when the block ends."""
    kept = [(registry, dict(registry)) for registry in (TASKS, MODELS, ATTENTION, TOKENIZERS, METRICS, members._added)]
    yield
    for registry, content in kept:
        registry.clear()
        registry.update(content)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """The registries, as they were when a test ends."""
    with registries_restored():
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of one to six words."""
    dice, path = random.Random(0), tmp_path_factory.mktemp("text") / "lines.txt"
    lines = [" ".join(dice.choices(["ba", "ce", "di", "fo"], k=dice.randint(1, 6))) for _ in range(2000)]
    path.write_text("".join(line + "\n" for line in dict.fromkeys(lines)), encoding="utf-8")
    return path


KEYS = {
    "task": "count-words", "model.kind": "sum_of_tokens", "tokenizer.kind": "character", "tokenizer.vocab_size": 20,
    "tokenizer.min_frequency": 1, "training.max_steps": 800, "training.eval_every": 200, "training.lr": 1e-2,
    "training.warmup_steps": 1, "training.schedule": "cosine", "training.save_every": 100,
    "training.tokens_per_batch": 512, "training.average": "none", "training.label_smoothing": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def counter(toys: list[Any], text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a trained word counter."""
    run = tmp_path_factory.mktemp("counter") / "run"
    with registries_restored(), unchecked_shapes():
        heed.train(KEYS | {"data.text": str(text)}, run, device="cpu", members=toys, quiet=True)
    return run


def test_an_external_task_and_model_work_with_every_command(toys: list[Any], counter: Path, text: Path) -> None:
    loaded = heed.load(counter, members=toys)
    assert [answer.text for [answer] in loaded.predict(["ba ce", "ba ce fo di"])] == ["2", "4"]
    best = [event for event in events(counter) if event["event"] == "validation" and event["best"]]
    assert best[-1]["share_right"] > 0.9
    answers = call("predict", counter, "--probabilities", stdin="ba ce\nfo di ba ce\n")
    assert [line.split("\t")[0] for line in answers.lines] == ["2", "4"], answers.err
    assert "count-words" in call("info", counter).out
    report = (counter / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# Word counter") and "share right" in report and "heed predict run" in report
    table = call("evaluate", counter, "--table", text)
    assert table.code == 0 and "share right" in table.out, table.err


def test_lines_of_many_words_have_one_answer_and_all_answers_can_be_asked_for(
    toys: list[Any], counter: Path, text: Path, tmp_path: Path
) -> None:
    lines = [*text.read_text().splitlines()[:100], *(" ".join(["ba"] * number) for number in range(9, 60))]
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    keys = KEYS | {"data.text": str(path), "training.max_steps": 2, "training.eval_every": 2}
    with unchecked_shapes():
        heed.train(keys, tmp_path / "run", device="cpu", members=toys, quiet=True)
    table = call("evaluate", counter, "--table", path)
    assert table.code == 0, table.err
    result = call("predict", counter, "--top", 20, stdin="ba ce\n")
    assert result.code == 0, result.err
    [answers] = result.lines
    assert set(answers.split("\t")) == {*map(str, range(10)), "10 or more"}


def test_other_commands_know_an_external_task(toys: list[Any], counter: Path, tmp_path: Path) -> None:
    heed.load(counter, members=toys)
    assert call("report", counter).out.startswith("# Word counter")
    assert "sum_of_tokens" in call("info", counter).out
    assert call("report", counter, "--html", tmp_path / "report.html").code == 0
    assert "Word counter" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert call("average", counter, "--out", tmp_path / "mean").code == 0
    assert call("predict", tmp_path / "mean", stdin="ba ce\n").lines == ["2"]


@pytest.mark.parametrize(
    "words",
    [
        ("translate",), ("generate", "--prompt", "ba"), ("score",), ("embed",), ("inspect",), ("compress",),
        ("export", "--to", "onnx", "--out"), ("export", "--to", "gpt2", "--out"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_that_an_external_task_lacks_says_so(
    toys: list[Any], counter: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    heed.load(counter, members=toys)
    verb, *others = words
    result = call(verb, counter, *others, *([tmp_path / "out"] if others[-1:] == ["--out"] else []), stdin="ba\n")
    assert result.code == 2 and result.err.startswith("error: "), result.err
    assert "internal error" not in result.err.lower() and not (tmp_path / "out").exists()


def test_an_external_task_and_model_are_served(toys: list[Any], counter: Path) -> None:
    with serving([heed.load(counter, members=toys)]) as live:
        assert live.get("/health").json == live.get("/ready").json == {"status": "ok"}
        [card] = live.get("/api/models").json["models"]
        assert (card["name"], card["task"], card["kind"]) == ("run", "count-words", "sum_of_tokens")
        assert card["abilities"] == ["predict"]
        answer = live.post("/api/predict", {"inputs": ["ba ce", "ba ce fo di"], "top": 2}).json
        assert [ranked[0]["text"] for ranked in answer["outputs"]] == ["2", "4"]
        assert all(0 <= each["probability"] <= 1 for ranked in answer["outputs"] for each in ranked)
        assert live.get("/api/models/run/report").body.decode().startswith("# Word counter")
        assert live.post("/api/generate", {"prompt": "ba"}).status == 404
        assert live.post("/translate", {"q": "ba", "source": "en", "target": "de"}).status == 400
        assert live.get("/").status == 200


def test_an_external_training_is_resumed_bit_for_bit(toys: list[Any], text: Path, tmp_path: Path) -> None:
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    keys = KEYS | {"data.text": str(text), "training.schedule": "constant", "training.max_steps": 200}
    keys |= {"training.eval_every": 100}
    heed.train(keys, whole, device="cpu", members=toys, quiet=True)
    heed.train(keys | {"training.max_steps": 100}, halves, device="cpu", quiet=True)
    resumed = call("train", "--resume", halves, "--max-steps", 200)
    assert resumed.code == 0, resumed.err
    assert "max_steps = 200" in (halves / "recipe.toml").read_text(encoding="utf-8")
    assert (halves / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_run_names_the_members_that_it_needs(toys: list[Any], text: Path, tmp_path: Path) -> None:
    heed.train(KEYS | {"data.text": str(text), "training.max_steps": 1}, tmp_path / "run", members=toys, quiet=True)
    for registry in (TASKS, MODELS, members._added):
        for key in ("count-words", "sum_of_tokens"):
            registry.pop(key, None)
    result = call("predict", tmp_path / "run", stdin="ba\n")
    assert result.code == 2
    assert "needs toy_task:CountWords, toy_model:SumOfTokens" in result.err and "members=[...]" in result.err
    assert heed.load(tmp_path / "run", members=toys).can("predict")


def test_an_external_attention_and_metric_work_in_a_translator(toys: list[Any], tmp_path: Path) -> None:
    """Trained, resumed, evaluated, reported, and served."""
    keys = tiny_keys(tmp_path, model__attention="averaging", training__stop_metric="too_long")
    keys |= {"data.src_lang": "aa", "data.tgt_lang": "bb", "training.eval_every": 1}
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    run = heed.train(keys | {"training.max_steps": 2}, whole, device="cpu", members=toys, quiet=True)
    assert run.run.recipe.members == ("toy_attention:Averaging", "toy_metric:TooLong")
    heed.train(keys | {"training.max_steps": 1}, halves, device="cpu", quiet=True)
    assert call("train", "--resume", halves, "--max-steps", 2).code == 0
    assert (halves / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    scores = [event["too_long"] for event in events(whole) if event["event"] == "validation"]
    assert len(scores) == 2
    assert "| too long | " in (whole / "report.md").read_text(encoding="utf-8")
    table = call("evaluate", whole, "--src", tmp_path / "train.aa", "--ref", tmp_path / "train.bb")
    assert table.code == 0 and "too long" in table.out, table.err
    told = call("translate", whole, stdin="ba ce\n")
    with serving([heed.load(whole, members=toys)]) as live:
        answer = live.post("/translate", {"q": "ba ce", "source": "aa", "target": "bb"}).json
    assert told.code == 0 and [answer["translatedText"]] == told.lines


def test_an_external_attention_works_in_a_recurrent_decoder(toys: list[Any], tmp_path: Path) -> None:
    keys = tiny_keys(tmp_path, model__kind="encoder_decoder", model__decoder__attention="averaging")
    run = heed.train(keys | {"training.max_steps": 1}, tmp_path / "run", device="cpu", members=toys, quiet=True)
    assert run.run.recipe.members == ("toy_attention:Averaging",)


class LowerCase(Word):
    """Words in lower case."""

    name = kind = "lower_case"

    def _cut(self, line: str) -> list[str]:
        return line.lower().split()


def test_a_run_names_its_external_tokenizer(toys: list[Any], text: Path, tmp_path: Path) -> None:
    keys = KEYS | {"data.text": str(text), "training.max_steps": 1, "tokenizer.kind": "lower_case"}
    run = heed.train(keys, tmp_path / "run", members=[*toys[:2], LowerCase], quiet=True)
    assert run.run.recipe.members is not None and run.run.recipe.members[-1].endswith(":LowerCase")
    assert run.predict(["ba CE"]) == run.predict(["ba ce"])


def test_a_key_belongs_to_one_member(toys: list[Any]) -> None:
    members.register(*toys)
    members.register(*toys)
    task = type("Other", (toys[0],), {})
    with pytest.raises(UsageError, match="'count-words' is already the name of"):
        members.register(task)
    with pytest.raises(UsageError, match="is not a class of a task, a model, an attention, a tokenizer or a metric"):
        members.register("gpt")


class Entry:
    """An entry point of an installed package."""

    def __init__(self, member: Any) -> None:
        self.load = lambda: member


def test_installed_packages_name_members_as_entry_points(
    toys: list[Any], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "entry_points", lambda group: map(Entry, toys) if group == "heed.members" else [])
    members.register_installed.cache_clear()
    keys = ("--model.kind=sum_of_tokens", "--tokenizer.kind=character", "--training.max_steps=3")
    result = call("train", "--task", "count-words", "--text", text, *keys, "--dry-run", "--out", tmp_path / "run")
    assert result.code == 0 and "share_right  the only score" in result.err, result.err
    assert MODELS["sum_of_tokens"] is toys[1]
