"""`heed improve`: steps are done once, a model is kept only if a test says so, and inputs that changed are refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import Result, call
from toy import TINY, tiny_keys, write_lines, write_pairs

from heed.cli.distill import recipe_like
from heed.cli.train import run_training
from heed.core.config import Document
from heed.core.errors import DataError, UsageError
from heed.core.run_files import RECIPE, RunFiles
from heed.data.validation import read_valid, write_valid
from heed.execute import prepare_run
from heed.metrics.significance import Comparison
from heed.planner import Planner, TrainOptions
from heed.run import RESTORING, Run
from heed.tasks.prepare import CORPUS
from heed.tasks.translation import improvement_plan, improving, restoring, synthetic_pairs
from heed.tasks.translation.corrections import Decision, old_pairs
from heed.tasks.translation.data import PartConfig, TranslationData
from heed.tasks.translation.improvement_checks import require_possible
from heed.tasks.translation.improving import decide
from heed.tasks.translation.synthetic_pairs import Texts, with_synthetic
from heed.text.hashing import hash_text
from heed.text.readers import fingerprint_file

FIRST = f"out.improve/{RESTORING}"
SHORT = {"training.max_steps": 2, "training.eval_every": 2, "training.save_every": 2}


@pytest.fixture
def mono(translator: Path, tmp_path: Path) -> Path:
    """Text in the target language, some lines of which are in the validation data or repeated."""
    lines = (translator.parent / "test.bb").read_text().splitlines()
    held = [tgt for _, tgt in read_valid(translator)][:3]
    return write_lines(tmp_path / "mono.bb", [*lines, *held, lines[0]])


def improve(run: Path, out: Path, *words: Any) -> Result:
    return call("improve", run, "--out", out, "--threads", "1", *words)


def copying(monkeypatch: pytest.MonkeyPatch, translator: Path) -> dict[str, Any]:
    """Train nothing: each new run is a copy of the translator. Returns the keys of the new runs, by name."""
    trained: dict[str, Any] = {}

    def copy(recipe: Any, keys: Any, options: Any, **_: Any) -> None:
        trained[f"{options.out.parent.name}/{options.out.name}"] = keys
        shutil.rmtree(options.out, ignore_errors=True)
        shutil.copytree(translator, options.out)

    monkeypatch.setattr("heed.cli.improve.run_training", copy)
    return trained


def blank(translator: Path, folder: Path) -> improving.Improvement:
    """An improvement that has not begun."""
    tools = improving.Tools(lambda _: None, lambda *_: None)
    return improving.Improvement(Run(translator), folder / "out", {"src": [], "tgt": []}, None, tools, quiet=True)


def tags_of(keys: Any) -> dict[str, str]:
    """The tag of each synthetic part, by the folder of its translations."""
    return {Path(part["src"]).parent.name: part.get("tag", "") for part in keys.get("data.parts", ())}


def accepting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improving, "decide", lambda _: Decision(True, "so it is"))


def test_an_equal_model_is_not_kept_and_nothing_is_done_twice(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore")
    assert result.code == 3, result.err
    assert not (tmp_path / "out").exists()
    assert list(trained) == [FIRST, "round-1/reverse", "round-1/candidate"]
    record = json.loads((tmp_path / "out.improve" / improving.RECORD).read_text())
    assert [trial["kept"] for trial in record["trials"]] == [False]
    assert "is unchanged" in result.err

    again = improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore")
    assert again.code == 3
    assert len(trained) == 3


def test_a_better_model_becomes_the_run_and_its_report_says_how(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)
    accepting(monkeypatch)
    monkeypatch.setattr(improvement_plan, "MOST_ROUNDS", 2)
    monkeypatch.setattr(improving, "add_section", lambda run, text: (run.folder / "section").write_text(text))
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert result.code == 0, result.err
    assert list(trained) == ["round-1/reverse", "round-1/candidate", "round-2/reverse", "round-2/candidate"]
    forward = {"forward-pairs": ""}
    assert tags_of(trained["round-1/candidate"]) == {**forward, "back-pairs": "bt", "back-mono": "bt"}
    assert tags_of(trained["round-1/reverse"]) == {}
    assert not {"data.tag", "data.valid_tag", "data.errors"} & {*trained["round-1/reverse"]}, "heed chooses the rest"
    assert tags_of(trained["round-2/reverse"]) == dict.fromkeys(forward, "bt")
    assert Run(tmp_path / "out").shapes == Run(translator).shapes
    assert "| 2 | translator |" in (tmp_path / "out" / "section").read_text()


def test_an_interrupted_improvement_translates_nothing_again(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(improving.Improvement, "_beginning", interrupted)
        assert improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore").code == 130
    with monkeypatch.context() as patch:
        patch.setattr(improving.Improvement, "_new_reverse", interrupted)
        assert improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore").code == 130
    assert list(trained) == [FIRST]
    text = tmp_path / "out.improve" / "round-1" / "forward-pairs" / "pairs.tgt"
    before = text.stat().st_mtime_ns
    assert improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore").code == 3
    assert text.stat().st_mtime_ns == before
    assert list(trained) == [FIRST, "round-1/reverse", "round-1/candidate"]


def test_changed_text_is_refused(translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying(monkeypatch, translator)
    improve(translator, tmp_path / "out", "--mono-tgt", mono)
    with mono.open("a") as file:
        file.write("another line\n")
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono)
    assert result.code == 65
    assert f"--mono-tgt {mono} changed" in result.err


def test_text_that_the_data_has_is_left_out(translator: Path, mono: Path, tmp_path: Path) -> None:
    run = Run(translator)
    texts = Texts(tmp_path / "text", run.recipe.data)
    dropped = texts.write(run, {"src": [], "tgt": [mono]})
    assert dropped["tgt"]["in the validation data"] == 3
    assert dropped["tgt"]["repeated, or in the training pairs"] >= 1
    kept = texts.path("mono", "tgt").read_text().splitlines()
    assert kept
    assert not set(kept) & {tgt for _, tgt in read_valid(translator)}
    assert not set(texts.path("pairs", "src").read_text().splitlines()) & {src for src, _ in read_valid(translator)}


def test_text_of_the_other_side_is_refused(translator: Path, tmp_path: Path) -> None:
    result = improve(translator, tmp_path / "out", "--mono-tgt", translator.parent / "test.aa")
    assert result.code == 2
    assert "does not look like the target language" in result.err
    assert "If it is the right text, continue with --force." in result.err


def test_text_that_looks_like_the_other_side_can_be_forced(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying(monkeypatch, translator)
    result = improve(translator, tmp_path / "out", "--mono-tgt", translator.parent / "test.aa", "--force")
    assert result.code == 3, result.err
    assert "does not look like the target language" in result.err
    assert re.search(r"--mono-tgt: \d+ lines are used", result.err)


def test_a_part_has_only_pairs_with_a_translation(tmp_path: Path) -> None:
    for side, lines in (("src", ["a", "b", "c"]), ("tgt", ["A", "", "C"])):
        write_lines(tmp_path / f"0.{side}", lines)
    assert synthetic_pairs.keep_translated(tmp_path) == 2
    assert (tmp_path / "pairs.src").read_text() == "a\nc\n"
    assert (tmp_path / "pairs.tgt").read_text() == "A\nC\n"


def test_the_time_is_divided_among_rounds() -> None:
    for restores, minutes in ((False, 0.0), (True, 60.0)):
        plan = improvement_plan.plan_for(180 + minutes, 40, 5, has_reverse=False, restores=restores)
        assert (plan.rounds, plan.restoring) == (2, minutes)
        assert plan.reverse is not None and plan.candidate is not None
        assert plan.rounds * (plan.reverse + plan.candidate + plan.translating) == pytest.approx(180)
    assert improvement_plan.plan_for(30, 40, 100, has_reverse=True, restores=False).share == pytest.approx(0.09)
    for restores, minutes in ((False, 0.0), (True, None)):
        plan = improvement_plan.plan_for(None, 40, 5, has_reverse=True, restores=restores)
        assert (plan.rounds, plan.restoring) == (improvement_plan.MOST_ROUNDS, minutes)


def test_a_later_round_begins_if_half_of_its_time_is_left(translator: Path, tmp_path: Path) -> None:
    improvement = blank(translator, tmp_path)
    plan = improvement_plan.plan_for(240, 40, 5, has_reverse=False, restores=True)
    for spent, has_time in ((60 + 90 + 44, True), (60 + 90 + 46, False)):
        improvement.record = improvement_plan.Record(made_from={}, plan=plan, left_out={}, minutes={"all": spent})
        assert improvement._has_time() == has_time


def test_a_candidate_is_trained_with_the_recipe_and_the_validation_data_of_the_run(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepting(monkeypatch)
    monkeypatch.setattr(improvement_plan, "MOST_ROUNDS", 1)

    def shortly(recipe: Any, keys: dict[str, Any], options: Any, **more: Any) -> None:
        run_training(recipe, {**keys, **({} if recipe else TINY), **SHORT}, options, **more)

    monkeypatch.setattr("heed.cli.improve.run_training", shortly)
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore")
    assert result.code == 0, result.err
    new, old = Run(tmp_path / "out"), Run(translator)
    assert (new.recipe.model, new.recipe.tokenizer) == (old.recipe.model, old.recipe.tokenizer)
    assert list(read_valid(new.folder)) == list(read_valid(old.folder))
    reverse = Run(tmp_path / "out.improve/round-1/reverse").recipe.data
    assert (reverse.src_lang, reverse.tgt_lang) == ("bb", "aa")
    first = Run(tmp_path / "out.improve" / RESTORING)
    assert first.recipe.training.stop_metric == "perplexity"
    assert "expected quality" not in result.err and "similar corpora" not in result.err
    assert new.corpus["init"] == Run(tmp_path / "out.improve/round-1/reverse").corpus["init"] == RESTORING
    assert "began by restoring masked sentences" in (tmp_path / "out/report.md").read_text(encoding="utf-8")
    assert "## How it was improved" in (tmp_path / "out/report.md").read_text(encoding="utf-8")


def test_too_few_sentences_to_restore_are_refused(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = copying(monkeypatch, translator)
    monkeypatch.setattr(restoring, "FEWEST_ROWS", 1_000_000)
    result = improve(translator, tmp_path / "out", "--mono-tgt", mono, "--restore")
    assert (result.code, "--restore: the pairs and the text have too few sentences" in result.err) == (65, True)
    assert not trained


def test_a_run_that_began_with_restoring_is_improved_without_naming_that_run(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(translator, tmp_path / "begun")
    corpus = tmp_path / "begun" / CORPUS
    corpus.write_text(json.dumps({**json.loads(corpus.read_text()), "init": RESTORING}))
    RunFiles(tmp_path / "begun").accept(CORPUS)
    trained = copying(monkeypatch, translator)
    assert improve(tmp_path / "begun", tmp_path / "out", "--restore").code == 3
    assert list(trained) == [FIRST, "round-1/reverse", "round-1/candidate"]
    assert recipe_like(Run(tmp_path / "begun"), {}) == (tmp_path / "begun" / RECIPE, {})
    result = improve(tmp_path / "begun", tmp_path / "other", "--init", translator)
    assert (result.code, "leave out --init" in result.err) == (2, True)
    result = improve(tmp_path / "begun", tmp_path / "without")
    assert (result.code, "began with restoring sentences, and candidates will not" in result.err) == (3, True)


def test_candidates_for_a_student_begin_with_random_weights_and_heed_says_so(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(translator, tmp_path / "student")
    corpus = tmp_path / "student" / CORPUS
    facts = {**json.loads(corpus.read_text()), "init": "teacher", "tokenizer_of": "teacher"}
    begins: list[Path | None] = []

    def copy(recipe: Any, keys: Any, options: Any, **_: Any) -> None:
        begins.append(options.init)
        shutil.copytree(translator, options.out)

    monkeypatch.setattr("heed.cli.improve.run_training", copy)
    for is_student, code in ((False, 2), (True, 3)):
        corpus.write_text(json.dumps({**facts, "is_student": is_student}))
        RunFiles(tmp_path / "student").accept(CORPUS)
        result = improve(tmp_path / "student", tmp_path / "out")
        assert (result.code, "a student that began with the weights of teacher" in result.err) == (code, is_student)
    assert begins == [None, None]  # of the reverse model and the candidate


def test_changed_training_data_is_refused(translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, copy, data = copying(monkeypatch, translator), tmp_path / "copy", Run(translator).recipe.data
    shutil.copytree(translator, copy)
    src, tgt = write_pairs(tmp_path, seed=3)
    (copy / RECIPE).write_text((copy / RECIPE).read_text().replace(data.src, str(src)).replace(data.tgt, str(tgt)))
    result = improve(copy, tmp_path / "out")
    assert (result.code, "is not the file that" in result.err, list(trained)) == (65, True, [])


def test_a_changed_validation_file_is_refused_before_any_work(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(improving.Improvement, "_do_rounds", interrupted)
    copy, rows = shutil.copytree(translator, tmp_path / "copy"), list(read_valid(translator))
    src, tgt = (write_lines(tmp_path / f"valid.{side}", [row[side] for row in rows]) for side in (0, 1))
    recipe = (copy / RECIPE).read_text()
    for side, path in (("src", src), ("tgt", tgt)):
        recipe = recipe.replace(f'valid_{side} = ""', f'valid_{side} = "{path}"')
    (copy / RECIPE).write_text(recipe)
    record = json.loads((copy / CORPUS).read_text())
    files = {"src": fingerprint_file(src), "tgt": fingerprint_file(tgt)}
    (copy / CORPUS).write_text(json.dumps({**record, "valid_files": files}))
    RunFiles(copy).accept(CORPUS)
    assert improve(copy, tmp_path / "out").code == 130
    write_lines(tgt, [tgt for _, tgt, *_ in rows[::-1]])
    for out in ("out", "other"):
        result = improve(copy, tmp_path / out)
        assert (result.code, f"{tgt.name} is not the file that {copy} was validated on" in result.err) == (65, True)


def test_a_candidate_with_other_validation_data_is_not_noted_as_finished(translator: Path, tmp_path: Path) -> None:
    improvement = blank(translator, tmp_path)
    plan = improvement_plan.plan_for(None, 40, 5, has_reverse=True, restores=False)
    improvement.record = improvement_plan.Record(made_from={}, plan=plan, left_out={})
    pairs = improvement.texts.path("pairs", "src")
    pairs.parent.mkdir(parents=True)
    write_lines(pairs, ["ba ce"])
    candidate = shutil.copytree(translator, tmp_path / "candidate")
    write_valid(candidate, [("ba", "kan")])
    with pytest.raises(DataError, match="so they cannot be compared"):
        improvement._candidate(1, tmp_path, translator, [], None)
    assert not improvement.record.minutes


def test_the_pairs_are_read_where_heed_data_says(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(improving.Improvement, "_do_rounds", lambda _: None)
    copy, data = shutil.copytree(translator, tmp_path / "copy"), Run(translator).recipe.data
    there = tmp_path / "there"
    there.mkdir()
    for path in map(Path, (data.src, data.tgt)):
        shutil.copy(path, there)
        (copy / RECIPE).write_text((copy / RECIPE).read_text().replace(str(path), path.name))
    monkeypatch.setenv("HEED_DATA", str(there))
    assert improve(copy, tmp_path / "out").code == 3
    write_pairs(there, seed=3)
    result = improve(copy, tmp_path / "other")
    assert (result.code, "is not the file that" in result.err) == (65, True)


def test_wrong_calls_are_refused(
    translator: Path, bigram: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = improve(translator, tmp_path / "out", "--reverse", translator)
    assert (result.code, "Give a translator from bb to aa" in result.err) == (2, True)
    assert improve(bigram, tmp_path / "out").code == 2
    (tmp_path / "out").mkdir()
    result = improve(translator, tmp_path / "out")
    assert (result.code, f"{tmp_path / 'out'} already exists" in result.err) == (2, True)
    monkeypatch.setattr("heed.cli.improve.distributed", lambda: SimpleNamespace(world_size=2))
    result = improve(translator, tmp_path / "out")
    assert (result.code, "improve runs in one process" in result.err) == (2, True)


def test_a_phrase_based_translator_reads_the_text_itself_and_can_be_the_reverse_model(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, phrases = Run(translator).recipe.data, tmp_path / "phrases"
    files = ("--src", data.tgt, "--tgt", data.src, "--src-lang", "bb", "--tgt-lang", "aa", "--data.hold_out=30")
    assert call("train", *files, "--model.kind=phrase_based", "--out", phrases, "--quiet").code == 0
    for words, message in (
        (("--mono-src", mono), "--mono-src is for models that learn from synthetic pairs"),
        (("--mono-tgt", mono, "--restore"), "--restore is for models that are trained by gradients"),
        (("--reverse", translator), "--reverse is for models that learn from synthetic pairs"),
        ((), "give text in the target language with --mono-tgt"),
    ):
        result = improve(phrases, tmp_path / "out", *words)
        assert (result.code, message in result.err) == (2, True)
    result = improve(phrases, tmp_path / "out", "--mono-tgt", translator.parent / "test.aa")
    assert result.code in (0, 3), result.err
    assert "advice: with text of the same kind, a Transformer may become better than phrases" in result.err
    [part] = Run(tmp_path / "out.improve/round-1/candidate").recipe.data.parts
    assert (part.src, Path(part.tgt).name) == ("", "mono.tgt")
    trained = copying(monkeypatch, translator)
    result = improve(translator, tmp_path / "other", "--reverse", phrases)
    assert (result.code, list(trained)) == (3, ["round-1/candidate"]), result.err


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model.kind": "rule_based"}, "does not read tags"),
        ({**TINY, "tokenizer.kind": "byte", "tokenizer.joint": False, "model.tie": "all"}, "shares one embedding"),
    ],
)
def test_a_run_that_cannot_have_the_tag_of_synthetic_sources_is_refused(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    own = {key: value for key, value in tiny_keys(tmp_path).items() if key.startswith(("task", "data."))}
    options = TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    run = prepare_run(Planner(Document(), {**own, **changes}, options).plan(), options.out, quiet=True)
    with pytest.raises(UsageError, match=f"(?s)Train another model on the same pairs.*{reason}"):
        require_possible(run, {"src": [], "tgt": []}, None, None, False, lambda _: None, quiet=True)


@pytest.mark.parametrize(
    "bleu, p, chrf, p_chrf, accepted",
    [
        (1.0, 0.01, 0.5, 0.01, True),
        (1.0, 0.01, -0.1, 0.6, True),
        (1.0, 0.2, 0.5, 0.01, False),
        (-1.0, 0.01, 0.5, 0.01, False),
        (1.0, 0.01, -0.5, 0.01, False),
        (9.0, None, 9.0, None, False),
    ],
)
def test_the_decision_asks_for_a_gain_in_bleu_and_no_loss_in_chrf(
    bleu: float, p: float | None, chrf: float, p_chrf: float | None, accepted: bool
) -> None:
    assert decide({"bleu": Comparison(bleu, p, 1.0), "chrf": Comparison(chrf, p_chrf, 1.0)}).accepted == accepted


def test_real_pairs_are_half_of_an_epoch_and_a_tagged_run_needs_no_tag_afterwards(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    made = PartConfig(src=str(src), tgt=str(tgt), tag="bt")
    own = (PartConfig(src="b.src", tgt="b.tgt", repeat=2), PartConfig(src="c.src", tgt="c.tgt", tag="2cc"))
    keys = with_synthetic(TranslationData(src="a", tgt="b", parts=own), [made], 100)
    assert keys["data.repeat"] == 3
    assert [part.get("repeat", 1) for part in keys["data.parts"]] == [6, 1, 1]
    assert "data.repeat" not in with_synthetic(TranslationData(src="a", tgt="b"), [made], 3000)
    assert with_synthetic(TranslationData(src="a", tgt="b", tag="2bb"), [made], 100)["data.default_tag"] == "2bb"


def test_exchanged_pairs_have_exchanged_languages() -> None:
    forward = PartConfig(src="a", tgt="b", src_lang="en", tgt_lang="de", by_model=True)
    backward = PartConfig(
        src="b", tgt="a", src_lang="de", tgt_lang="en", tag="bt", by_model=True, back_translated=True
    )  # fmt: skip
    assert synthetic_pairs.mirrored(forward) == backward


def test_pairs_that_a_model_wrote_are_not_taken_for_real_ones_by_the_next_improvement(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    number = len(src.read_text(encoding="utf-8").splitlines())
    made = PartConfig(src=str(src), tgt=str(tgt), by_model=True)
    real = TranslationData(src=str(src), tgt=str(tgt))
    improved = real.model_copy(update={"parts": (made,), "repeat": 2})
    assert len(list(old_pairs(improved, set()))) == 2 * len(list(old_pairs(improved, set(), synthetic=False)))
    keys = with_synthetic(improved, [made, made, made], number)
    assert keys["data.repeat"] == 4  # as many as the four synthetic parts, and not twice as many again
    assert [part.get("repeat", 1) for part in keys["data.parts"]] == [1, 1, 1, 1]


def fine_tuned(translator: Path, folder: Path, *words: Any) -> Path:
    """A run that began with the translator's weights, after two updates."""
    return trained(folder, "--init", translator, *words)


def trained(folder: Path, *words: Any) -> Path:
    """A run after two updates."""
    folder.mkdir(exist_ok=True)
    src, tgt = write_pairs(folder, seed=4)
    files = ("--task", "translation", "--src", src, "--tgt", tgt, "--src-lang", "aa", "--tgt-lang", "bb")
    short = (f"--{key}={value}" for key, value in SHORT.items())
    run = folder / "tuned"
    result = call("train", *files, "--data.hold_out=30", *words, *short, "--out", run, "--quiet")
    assert result.code == 0, result.err
    return run


@pytest.mark.parametrize("words", [(), ("--restore",)])
def test_candidates_of_a_fine_tuned_run_begin_with_the_same_weights(
    translator: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    accepting(monkeypatch)
    monkeypatch.setattr(improvement_plan, "MOST_ROUNDS", 1)
    tuned = fine_tuned(translator, tmp_path, "--init-vocabulary", "new", "--training.lr=1e-30")

    def shortly(recipe: Any, keys: dict[str, Any], options: Any, **more: Any) -> None:
        run_training(recipe, {**keys, **({} if recipe else TINY), **SHORT}, options, **more)

    monkeypatch.setattr("heed.cli.improve.run_training", shortly)
    result = improve(tuned, tmp_path / "out", "--mono-tgt", mono, "--init", translator, *words)
    assert result.code == 0, result.err
    new, old = Run(tmp_path / "out"), Run(tuned)
    restoring_from = f"{RESTORING}-from-{translator.name}"
    first = Run(tmp_path / "out.improve" / restoring_from) if words else new
    assert new.corpus["init"] == (restoring_from if words else translator.name)
    assert new.is_fine_tuned, "its recipe has the rate of a fine-tuned run"
    assert first.corpus["init"] == old.corpus["init"] == translator.name
    assert new.recipe.training == old.recipe.training
    assert new.tokenizers["src"].vocabulary.tags == ("bt",)
    weight = next(name for name in new.weights() if "feed_forward" in name or "attention" in name)
    assert np.allclose(new.weights()[weight], Run(translator).weights()[weight])  # the rate is zero


def test_how_a_fine_tuned_run_began_is_required(translator: Path, tmp_path: Path) -> None:
    tuned = fine_tuned(translator, tmp_path)
    own = fine_tuned(translator, tmp_path / "own", "--init-vocabulary", "new")
    wide = trained(tmp_path / "wide", *(f"--{key}={value}" for key, value in {**TINY, "model.d_ff": 48}.items()))
    for run, words, message in (
        (own, (), f"began with the weights of {translator.name}: give that run with --init"),
        (own, ("--init", wide), "its model differs from the recipe's"),
        (translator, ("--init", tuned), "was not fine-tuned from another run: leave out --init"),
        (tuned, (), "lacks the tag of synthetic sources"),
        (tuned, ("--init", translator), "lacks the tag of synthetic sources"),
    ):
        result = improve(run, tmp_path / "out", *words)
        assert (result.code, message in result.err) == (2, True), result.err
    assert not (tmp_path / "out.improve").exists()


def test_a_missing_text_is_named(translator: Path, tmp_path: Path) -> None:
    result = improve(translator, tmp_path / "out", "--mono-tgt", tmp_path / "missing.txt")
    assert "missing.txt" in result.err
    assert not (tmp_path / "out.improve").exists()


def test_a_candidate_gets_the_time_that_the_reverse_model_left(translator: Path, tmp_path: Path) -> None:
    improvement = blank(translator, tmp_path)
    plan = improvement_plan.plan_for(30, 40, 1, has_reverse=False, restores=False)
    assert plan.candidate is not None and plan.reverse is not None
    for taken, spare in ((2.0, plan.reverse - 2.0), (plan.reverse + 1.0, 0.0)):
        improvement.record = improvement_plan.Record(
            made_from={}, plan=plan, left_out={}, minutes={"round 1: reverse model": taken}
        )
        assert improvement._minutes_of_candidate(1) == pytest.approx(plan.candidate + spare)
    plan = improvement_plan.plan_for(40, 40, 1, has_reverse=True, restores=True)
    assert (plan.restoring, plan.reverse) == (10.0, 0.0) and plan.candidate is not None
    improvement.record = improvement_plan.Record(
        made_from={}, plan=plan, left_out={}, minutes={improving.RESTORED: 4.0}
    )
    assert improvement._minutes_of_candidate(1) == pytest.approx(plan.candidate + 6.0)
    assert improvement._minutes_of_candidate(2) == plan.candidate


def test_text_beyond_two_lines_for_each_pair_is_counted_and_left_out(translator: Path, tmp_path: Path) -> None:
    lines = (translator.parent / "test.bb").read_text().splitlines()
    mono = write_lines(tmp_path / "mono.bb", sorted({f"{one} {other}" for one in lines for other in lines}))
    run = Run(translator)
    texts = Texts(tmp_path / "text", run.recipe.data)
    dropped = texts.write(run, {"src": [], "tgt": [mono]})["tgt"]
    kept = texts.path("mono", "tgt").read_text().splitlines()
    assert len(kept) == 2 * texts.num_lines("pairs", "src")
    assert kept == sorted(kept, key=hash_text)
    assert len(kept) + dropped.total() == len(mono.read_text().splitlines())
    assert dropped["more than 2 lines for each training pair"] > 0
    assert texts.path("text", "tgt").read_text().splitlines() == kept
    texts.write(run, {"src": [], "tgt": [mono]}, most=3)
    more = texts.path("text", "tgt").read_text().splitlines()
    assert len(more) == 3 * texts.num_lines("pairs", "src") and more[: len(kept)] == kept
    assert texts.path("mono", "tgt").read_text().splitlines() == kept
