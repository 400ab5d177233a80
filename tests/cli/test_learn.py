"""`heed learn`: a model learns from corrections, is judged by others, and replaces the old one only if it is better."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from command import Result, call
from toy import pairs

from heed.core.errors import DataError, UsageError
from heed.core.run_files import RECIPE
from heed.data.validation import read_valid
from heed.evaluation import outputs
from heed.memory.store import TranslationMemory
from heed.metrics.significance import Comparison
from heed.run import Run
from heed.tasks.translation import corrections
from heed.tasks.translation.corrections import Decision, Lesson, split
from heed.tasks.translation.data import PartConfig
from heed.text.normalise import Normaliser

CORRECTIONS = pairs(200, seed=5, longest=7)


def lines(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text(encoding="utf-8").splitlines()


def learn(run: Path, tmp_path: Path, *words: Any) -> Result:
    memory = TranslationMemory(tmp_path / "team.memory", ("aa", "bb"), create=True)
    memory.add([(src, tgt, "") for src, tgt in CORRECTIONS], "approved")
    memory.add([("a source that nobody approved", "x", "")])
    memory.close()
    limits = ("--max-steps", 2, "--training.eval_every=2", "--training.save_every=2", "--threads", 1)
    return call("learn", run, "--memory", tmp_path / "team.memory", "--out", tmp_path / "new", *limits, *words)


def test_a_model_that_is_not_better_does_not_replace_the_old_one(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translate, workers = outputs.translated, []

    def translated(run: Run, *given: Any, **named: Any) -> outputs.System:
        workers.append(run.num_workers)
        return translate(run, *given, **named)

    monkeypatch.setattr(outputs, "translated", translated)
    result = learn(translator, tmp_path, "--training.lr=1e-9")
    assert result.code == 3, result.err
    assert f"{translator} is unchanged: the new model is not better on the corrections: chrF" in result.err
    assert workers == [1] * 4, "old and new run, on the corrections and on the validation data"
    new, lesson = Run(tmp_path / "new"), tmp_path / "new.lesson"
    assert new.corpus["init"] == translator.name
    assert [part.src for part in new.recipe.data.parts] == [str(lesson / "learned.src")]
    learned, replayed = set(lines(lesson, "learned.src")), set(lines(lesson, "replay.src"))
    judged = {src for src, _ in split(CORRECTIONS).judged_by}
    assert judged and judged.isdisjoint(learned | replayed | set(lines(lesson, "valid.src")))
    assert "a source that nobody approved" not in learned
    old = {src for src, _ in read_valid(translator)} - judged - learned
    assert old and old <= set(lines(lesson, "valid.src"))
    assert replayed <= set(lines(Path(Run(translator).recipe.data.src).parent, "train.aa"))


def test_a_share_of_the_pairs_is_refused_since_corrections_would_be_left_out(translator: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    refused = learn(translator, tmp_path / "other", "--data.parts=[]")
    assert refused.code == 2 and "heed learn chooses data.parts itself" in refused.err
    result = learn(translator, tmp_path, "--data.share=0.5")
    assert result.code == 2
    assert "data.share = 0.5 would leave out corrections, too" in result.err
    run = tmp_path / "run"
    shutil.copytree(translator, run)
    (run / RECIPE).write_text((run / RECIPE).read_text().replace("share = 1.0", "share = 0.5"))
    assert "data.share = 0.5 would leave out" in learn(run, tmp_path).err
    assert not (tmp_path / "new.lesson").exists()
    result = learn(run, tmp_path, "--data.share=1", "--training.lr=1e-9")
    assert result.code == 3, result.err
    assert Run(tmp_path / "new").recipe.data.share == 1


def test_a_limit_that_is_given_as_a_key_is_the_only_one(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[dict[str, object]] = []
    monkeypatch.setattr("heed.cli.learn.run_training", lambda recipe, keys, *_, **__: trained.append(keys))
    memory = TranslationMemory(tmp_path / "team.memory", ("aa", "bb"), create=True)
    memory.add([(src, tgt, "") for src, tgt in CORRECTIONS], "approved")
    memory.close()
    for words in ((), ("--training.max_minutes=60",), ("--max-time", "1h")):
        call("learn", translator, "--memory", tmp_path / "team.memory", "--out", tmp_path / "new", *words)
    assert [keys.get("training.max_epochs") for keys in trained] == [5, None, None]


def test_old_pairs_are_drawn_from_a_large_corpus_in_little_memory() -> None:
    rows = ((f"source {number} {'x' * 200}", "target", "") for number in range(20_000))
    tracemalloc.start()
    drawn = list(corrections._sample(rows, 10, 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(drawn) == 10 and peak < 1_000_000


def test_a_better_model_is_named(translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def accept(*comparisons: Any) -> Decision:
        compared.extend(comparisons)
        return Decision(True, "chrF +9.9")

    monkeypatch.setattr(Lesson, "decide", staticmethod(accept))
    result = learn(translator, tmp_path)
    assert result.code == 0, result.err
    assert f"{tmp_path / 'new'} is better: chrF +9.9" in result.err
    assert [each.keys() for each in compared] == [{"bleu", "chrf"}] * 2


def test_a_source_keeps_its_part_whatever_is_added() -> None:
    first, more = split(CORRECTIONS), split([*pairs(300, seed=6, longest=7), *reversed(CORRECTIONS)])
    for name in ("learned", "chosen_by", "judged_by"):
        assert {*getattr(first, name)} <= {*getattr(more, name)}
    assert len(first.learned) + len(first.chosen_by) + len(first.judged_by) == 200
    assert 20 < len(first.judged_by) < 60
    twice = split([*CORRECTIONS, *((src, "another") for src, _ in CORRECTIONS)])
    assert {src for src, _ in twice.judged_by}.isdisjoint(src for src, _ in twice.learned)
    with pytest.raises(DataError, match="50 sources have an approved translation, and learning from them needs 100"):
        split(CORRECTIONS[:50])


def test_corrections_are_a_quarter_of_an_epoch_and_old_pairs_are_drawn_without_their_order(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, lesson = Run(translator).recipe.data, split(CORRECTIONS)
    monkeypatch.setattr(corrections, "LEAST_REPLAY", 50)
    monkeypatch.setattr(corrections, "REPLAY", 1)
    table = lesson.write(tmp_path / "a", data, translator, seed=1)
    replayed = lines(tmp_path / "a", "replay.src")
    assert len(replayed) == max(50, len(lesson.learned))
    [part] = table["parts"]
    assert part["repeat"] == max(1, round(len(replayed) / 3 / len(lesson.learned)))
    old = [(*row, "") for row in zip(replayed, lines(tmp_path / "a", "replay.tgt"), strict=True)]
    monkeypatch.setattr(corrections, "old_pairs", lambda *_: reversed(old))
    lesson.write(tmp_path / "b", data, translator, seed=1)
    assert lines(tmp_path / "b", "replay.src") == replayed


def test_what_is_learned_does_not_choose_the_weights_nor_decide(translator: Path, tmp_path: Path) -> None:
    data, old = Run(translator).recipe.data, list(read_valid(translator))
    lesson = split([*CORRECTIONS, *old])
    learned = {src for src, _ in lesson.learned}
    assert learned & {src for src, _ in old}
    table = lesson.write(tmp_path / "a", data.model_copy(update={"max_valid": 1}), translator, seed=1)
    valid = lines(tmp_path / "a", "valid.src")
    assert learned.isdisjoint(valid) and {src for src, _ in lesson.chosen_by} <= set(valid)
    assert (table["max_valid"], table["repeat"]) == (len(valid), 1), "all of them are read"
    assert learned.isdisjoint(src for src, _ in lesson.not_learned(old))


def test_the_training_data_of_the_run_is_not_overwritten(translator: Path, tmp_path: Path) -> None:
    run = Run(translator)
    lesson = split(CORRECTIONS)
    table = lesson.write(tmp_path / "new.lesson", run.recipe.data, translator, seed=1)
    trained = run.recipe.data.model_copy(update={"src": table["src"], "tgt": table["tgt"]})
    before = lines(tmp_path / "new.lesson", "replay.src")
    with pytest.raises(UsageError, match=r"new\.lesson has training data of the run"):
        lesson.write(tmp_path / "new.lesson", trained, translator, seed=2)
    assert lines(tmp_path / "new.lesson", "replay.src") == before


def test_corrections_are_normalised_like_the_pairs(translator: Path) -> None:
    run = Run(translator)
    data = run.recipe.data.model_copy(update={"normaliser": Normaliser(lowercase=True)})
    vars(run)["recipe"] = run.recipe.model_copy(update={"data": data})
    lesson = run.predictor.lesson([(src.upper(), tgt.upper()) for src, tgt in CORRECTIONS])
    assert lesson == split([(src.lower(), tgt.lower()) for src, tgt in CORRECTIONS])


@pytest.mark.parametrize("tag", ["", "2bb"])
def test_corrections_have_the_tag_of_the_validation_data_and_old_pairs_keep_theirs(
    translator: Path, tmp_path: Path, tag: str
) -> None:
    data, lesson = Run(translator).recipe.data, split(CORRECTIONS)
    folder = tmp_path / "data"
    folder.mkdir()
    for side, rows in zip(("src", "tgt"), zip(*pairs(80, seed=8), strict=True), strict=True):
        (folder / f"back.{side}").write_text("".join(f"back {row}\n" for row in rows), encoding="utf-8")
    back = PartConfig(src=str(folder / "back.src"), tgt=str(folder / "back.tgt"), tag="bt", tgt_lang="cc")
    tagged = data.model_copy(update={"tag": tag, "parts": (back,)})
    table = lesson.write(tmp_path / "a", tagged, translator, seed=1)
    learned, replayed = table["parts"]
    assert learned.get("tag", "") == tag and Path(learned["src"]).name == "learned.src"
    assert (replayed["tag"], replayed["tgt_lang"]) == ("bt", "cc")
    assert "tgt_lang" not in learned
    assert set(lines(tmp_path / "a", "replay-1.src")) <= set(lines(folder, "back.src"))
    assert set(lines(tmp_path / "a", "replay.src")).isdisjoint(lines(folder, "back.src"))
    other = tagged.model_copy(update={"valid_tag": "bt", "default_tag": "2bb"})
    with pytest.raises(UsageError, match="translates with the tag 2bb, and its validation data has the tag bt"):
        lesson.write(tmp_path / "b", other, translator, seed=1)


@pytest.mark.parametrize(
    "gain, p_gain, change, p_change, accepted, reason",
    [
        (2.0, 0.01, -0.1, 0.6, True, "chrF +2.0 on the corrections, p = 0.010"),
        (2.0, 0.20, 1.0, 0.01, False, "the new model is not better on the corrections: chrF +2.0, p = 0.200"),
        (-2.0, 0.01, 1.0, 0.01, False, "the new model is not better on the corrections: chrF -2.0, p = 0.010"),
        (2.0, 0.01, -1.0, 0.01, False, "the new model is worse on the old validation data: bleu -1.0, p = 0.010"),
        (2.0, None, 0.0, 1.0, False, "the new model is not better on the corrections: chrF +2.0, p = 1.000"),
    ],
)
def test_the_decision_asks_for_a_gain_and_no_loss(
    gain: float, p_gain: float | None, change: float, p_change: float, accepted: bool, reason: str
) -> None:
    on_corrections = {"bleu": Comparison(0.0, None, 1.0), "chrf": Comparison(gain, None, p_gain)}
    on_validation = {"bleu": Comparison(change, None, p_change), "chrf": Comparison(0.0, None, 1.0)}
    assert Lesson.decide(on_corrections, on_validation) == Decision(accepted, reason)


def test_wrong_calls_are_refused(translator: Path, bigram: Path, tmp_path: Path) -> None:
    result = call("learn", "--model.d_model=8", "--memory", tmp_path / "m", "--out", tmp_path / "new")
    assert (result.code, "name the run before any keys" in result.err) == (2, True)
    result = call("learn", translator, "--memory", tmp_path / "none", "--out", tmp_path / "new")
    assert (result.code, "none does not exist" in result.err) == (66, True)
    assert call("learn", bigram, "--memory", tmp_path / "none", "--out", tmp_path / "new").code == 2
    assert not (tmp_path / "new").exists()
