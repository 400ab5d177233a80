"""The scorer of a run of phrases: trained after them in the same run, judged with them, and used with them."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from command import call, call_without_pytorch
from serving import serving
from torch import Tensor
from toy import TINY, pairs, tiny_keys, write_lines
from trainings import interrupt_after

import heed
from heed import scorer
from heed.core.config import Document
from heed.core.errors import DataError, HeedError, MissingInputError, UsageError
from heed.core.own_scorer import SCORER, VERDICT, verdict_of
from heed.core.run_files import WEIGHTS, RunFiles
from heed.data.validation import read_valid
from heed.execute import can_continue, execute, is_complete, resume
from heed.integrity import verify
from heed.planner import Planner, TrainOptions
from heed.recipe import data_keys
from heed.report.page import report_text
from heed.report.validation import read_analysis
from heed.run import Run
from heed.scorer import LEAST, judge, plan_scorer, scorer_limits
from heed.statistical.phrases.features import beginning_weights
from heed.tasks import open_without_pytorch
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.deriving_run import DerivingRun
from heed.training.metrics_log import read_metrics
from heed.training.ranks import Ranks
from heed.training.trainer import Trainer

PHRASES: dict[str, Any] = {
    "data.hold_out": 30, "model.kind": "phrase_based", "model.aligner": "ibm1", "model.max_phrase": 2,
    "model.lm_order": 2, "model.tuning_rounds": 1, "model.tuning_width": 3, "decoding.beam_size": 5,
    "training.max_steps": 4, "training.scorer": "transformer",
}  # fmt: skip


TINY_SCORER = {key: value for key, value in TINY.items() if key.startswith("model.")} | {
    "training.stop_metric": "perplexity",  # BLEU stays at 0 for some updates
}


@pytest.fixture(scope="module", autouse=True)
def tiny_scorers() -> Iterator[None]:
    """Scorers with one small layer on each side, which are trained faster than those of heed's own choice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "data_keys", lambda *given: {**data_keys(*given), **TINY_SCORER})
        yield


def keys(folder: Path, **changes: Any) -> dict[str, Any]:
    """The keys of a run of phrases with a scorer of four updates."""
    kept = {key: value for key, value in tiny_keys(folder).items() if key.startswith(("data.", "task"))}
    return {**kept, "data.src_lang": "en", "data.tgt_lang": "de", **PHRASES, **changes}


def trained(folder: Path, **changes: Any) -> Path:
    """Train such a run on toy pairs."""
    options = TrainOptions(folder / "run", device="cpu", quiet=True)
    execute(Planner(Document(), keys(folder, **changes), options).plan(), options)
    return folder / "run"


def judged_as(bleu: float) -> Callable[[Run, bool], dict[str, Any]]:
    """The analysis of a run, in which both together have this BLEU."""
    real = scorer.analyse

    def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
        found = dict(real(run, quiet))
        if run.scorer is not None:
            for score in found["scores"]:
                if score["name"] == "BLEU":
                    score["value"] = bleu
        return found

    return analyse


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose scorer is said to help; tests must not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", judged_as(199.0))
        return trained(tmp_path_factory.mktemp("helped"))


def weights_of_scorer(folder: Path) -> dict[str, Tensor]:
    """The tensors of the scorer, used or not."""
    model = Run(folder).with_scorer().scorer
    assert model is not None
    return model.weights()


def equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    """Whether two models have the same weights."""
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def bleu_of(analysis: dict[str, Any], place: str = "scores") -> float:
    """The BLEU in an analysis."""
    return next(float(score["value"]) for score in analysis[place] if score["name"] == "BLEU")


def test_a_scorer_is_trained_on_the_same_data_and_kept_where_it_helps(helped: Path) -> None:
    run = Run(helped)
    assert run.scorer is not None
    assert run.scorer.recipe.model.kind == "transformer"
    assert read_valid(run.scorer.folder) == read_valid(helped)
    assert run.scorer.corpus["num_rows"] == run.corpus["num_rows"]
    analysis = read_analysis(run, 1)
    assert bleu_of(analysis) == 199.0 != bleu_of(analysis, "alone")
    verdict = verdict_of(helped)
    assert verdict is not None
    assert (verdict.is_used, verdict.both) == (True, 199.0)
    assert verdict.phrases == bleu_of(analysis, "alone")
    report = report_text(run)
    assert "phrases, scored by it | 199.00" in report
    assert "scored by a Transformer" in report
    assert "**Training of the scorer**: Ended after 4 updates" in report
    assert "Perhaps better with a Transformer" not in report
    assert "BLEU 199.00 on validation" in call("info", helped).out


def test_a_scorer_that_does_not_help_is_not_used(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", judged_as(0.0))
        run = Run(trained(tmp_path))
    assert run.scorer is None
    verdict = verdict_of(run.folder)
    assert verdict is not None
    assert (verdict.is_used, verdict.both) == (False, 0.0)
    analysis = read_analysis(run, 1)
    assert bleu_of(analysis) == bleu_of(analysis, "alone") == verdict.phrases
    assert "phrases, scored by it | 0.00" in report_text(run)
    assert "scored by a Transformer" not in report_text(run)
    assert is_complete(run.folder)
    without: Any = open_without_pytorch("translate", run.folder, None, "float32", "auto", 1)
    in_full: Any = heed.load(run.folder)
    lines = [src for src, _ in pairs(5, seed=5)]
    assert without.line_translator(True).translate(lines, without.decoding) == in_full.hypotheses(lines)


def test_weights_that_were_not_tuned_on_the_data_decide(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    real = scorer.analyse
    bleu = {(True, False): 30.0, (True, True): 29.0, (False, False): 20.0, (False, True): 22.5}

    def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
        model: Any = run.model
        is_tuned = model.translator.weights.tolist() != beginning_weights(model.translator.classes is not None).tolist()
        found = dict(real(run, quiet))
        for score in found["scores"]:
            score["value"] = bleu[is_tuned, run.scorer is not None] if score["name"] == "BLEU" else score["value"]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", analyse)
        judge(Run(folder), quiet=True)
        verdict = verdict_of(folder)
        assert verdict is not None
        assert (verdict.is_used, verdict.both, verdict.gain) == (True, 29.0, 2.5)
        assert "the scorer adds 2.50 BLEU to phrases" in report_text(Run(folder))
        bleu[False, True] = 20.5
        judge(Run(folder), quiet=True)
        verdict = verdict_of(folder)
        assert verdict is not None
        assert (verdict.is_used, verdict.gain) == (False, 0.5), "new lines would gain less, or nothing"
        bleu[False, True] = 19.0
        bleu[True, True] = 31.0
        judge(Run(folder), quiet=True)
    verdict = verdict_of(folder)
    assert verdict is not None
    assert (verdict.is_used, verdict.both, verdict.gain) == (False, 31.0, -1.0)


def test_without_tuning_the_validation_data_is_translated_once_with_both(tmp_path: Path) -> None:
    scored: list[bool] = []
    real = judged_as(199.0)

    def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
        scored.append(run.scorer is not None)
        return real(run, quiet)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", analyse)
        verdict = verdict_of(trained(tmp_path, **{"model.tuning_rounds": 0}))
    assert verdict is not None
    assert verdict.gain == 199.0 - verdict.phrases
    assert scored == [True]


def test_it_translates_as_an_ensemble_with_its_scorer(helped: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(helped, tmp_path / "alone", ignore=shutil.ignore_patterns(SCORER, VERDICT))
    Run(alone).change_recipe({"training.scorer": ""})
    lines = [src for src, _ in pairs(20, seed=5)]
    options = heed.load(helped).run.recipe.decoding.model_copy(update={"nbest": 4})
    ours, theirs, phrases = (
        heed.load(folder, ensemble=others).hypotheses(lines, options)  # type: ignore[attr-defined]
        for folder, others in ((helped, ()), (alone, helped / SCORER), (alone, ()))
    )
    assert ours == theirs
    assert ours != phrases
    assert heed.load(helped, ensemble=helped / SCORER).hypotheses(lines, options) == ours  # type: ignore[attr-defined]
    assert call("translate", helped, stdin="\n".join(lines)).lines == [best.text for best in ours]


def test_it_translates_without_pytorch_as_with_it(helped: Path) -> None:
    lines = [src for src, _ in pairs(20, seed=5)]
    without: Any = open_without_pytorch("translate", helped, None, "float32", "auto", 2)
    assert isinstance(without, DerivingRun)
    options = without.decoding.model_copy(update={"nbest": 4})
    found = without.line_translator(with_tokens=True).translate(lines, options)
    in_full: Any = heed.load(helped, engine="torch")
    for ours, theirs in zip(found, in_full.hypotheses(lines, options), strict=True):
        assert ours.text == theirs.text
        scores = [[best.score, *(each.score for each in best.alternatives)] for best in (ours, theirs)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    call_without_pytorch("translate", helped, stdin="\n".join(lines), counts=True)


def test_several_lines_are_derived_while_others_are_scored_with_the_same_result(helped: Path) -> None:
    lines = [src for src, _ in pairs(20, seed=8)]
    one, two = (heed.load(helped, num_workers=number) for number in (1, 2))
    assert one.hypotheses(lines) == two.hypotheses(lines)  # type: ignore[attr-defined]


def test_an_inspection_adds_up_to_the_score_with_the_scorers_share(helped: Path) -> None:
    predictor: Any = heed.load(helped)
    weights = predictor.derivation_weights()
    [best, *_] = predictor.derivations(pairs(1, seed=6)[0][0], 5, 3)
    steps = [sum(weights[name] * value for name, value in step.features.items()) for step in best.steps]
    assert set(best.steps[-1].features) == {"second score"}
    assert sum(steps) == pytest.approx(best.score, abs=1e-4)


def test_a_logged_score_is_of_both_models(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    src, ref = (write_lines(tmp_path / side, [pair[n] for pair in pairs(10, seed=4)]) for n, side in enumerate("ab"))
    for _ in range(2):
        assert call("evaluate", folder, "--src", src, "--ref", ref).code == 0
    assert "earlier weights" not in report_text(Run(folder))
    assert "Och & Ney 2002" in report_text(Run(folder))
    verdict = verdict_of(folder)
    assert verdict is not None
    RunFiles(folder).write_as(verdict.model_copy(update={"is_used": False}), VERDICT)
    assert call("evaluate", folder, "--src", src, "--ref", ref).code == 0
    rows = [line for line in report_text(Run(folder)).splitlines() if line.startswith("| 20")]
    assert ["earlier weights" in row for row in rows] == [True, True, False]


def test_it_is_served_as_one_model(helped: Path) -> None:
    predictor: Any = heed.load(helped)
    [(source, _)] = pairs(1, seed=7)
    with serving([predictor]) as server:
        answer = server.post("/api/translate", {"text": source}).json
        [model] = server.get("/api/models").json["models"]
    [best] = predictor.hypotheses([source])
    assert answer["sentences"][0]["hypotheses"][0]["score"] == pytest.approx(best.score, abs=1e-3)
    assert "scored by a Transformer" in model["description"]
    assert "models together" not in model["description"]


def test_what_only_its_scorer_can_do_is_refused_with_its_name(helped: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "lines", ["ba ce"])
    for words in (
        ["score", helped, "--src", lines],
        ["embed", helped],
        ["export", helped, "--to", "ctranslate2", "--out", tmp_path / "ct2"],
        ["train", "--src", lines, "--tgt", lines, "--task", "translation", "--init", helped, "--out", tmp_path / "new"],
    ):
        result = call(*words, stdin="ba ce\n")
        assert result.code != 0
        assert f"name {helped / SCORER}" in result.err


def test_an_improvement_is_not_continued_once_the_scorer_has_changed(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    text = write_lines(tmp_path / "text", [tgt for _, tgt in pairs(40, seed=9)])
    words = ["improve", folder, "--mono-tgt", text, "--out", tmp_path / "out", "--force"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.cli.improve.run_training", interrupt)
        assert call(*words).code == 130
    verdict = verdict_of(folder)
    assert verdict is not None
    RunFiles(folder).write_as(verdict.model_copy(update={"is_used": False}), VERDICT)
    result = call(*words)
    assert result.code != 0
    assert "made from something else: RUN changed" in result.err


def test_a_scorer_that_was_not_compared_is_not_used(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    (folder / VERDICT).unlink()
    assert Run(folder).scorer is None
    assert open_without_pytorch("translate", folder, None, "float32", "auto", 1) is None
    result = call("translate", folder, stdin="ba ce\n")
    assert result.code == 0
    assert "only the phrases translate" in result.err
    assert f"heed train --resume {folder}" in result.err


def test_verifying_a_run_verifies_its_scorer(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    assert not any(each.is_damaged for each in verify(Run(folder)))
    weights = folder / SCORER / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])
    assert [each.name for each in verify(Run(folder)) if each.is_damaged] == [f"{SCORER}/{WEIGHTS}"]


def test_a_copy_with_another_phrase_table_has_the_scorer(helped: Path, tmp_path: Path) -> None:
    assert call("export", helped, "--to", "moses", "--out", tmp_path / "table").code == 0
    assert call("import", tmp_path / "table", "--into", helped, "--out", tmp_path / "copy").code == 0
    assert equal(*(weights_of_scorer(each) for each in (tmp_path / "copy", helped)))
    [scores], [own_scores] = (
        [line for line in call("info", run).out.splitlines() if line.startswith("scored by")]
        for run in (tmp_path / "copy", helped)
    )
    assert scores == f"{own_scores}, both with the phrase table before `heed import --into`"


def test_a_copy_of_a_run_that_does_not_use_its_scorer_needs_none(helped: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    assert call("export", helped, "--to", "moses", "--out", table).code == 0
    for name, is_judged in (("unused", True), ("unfinished", False)):
        folder = shutil.copytree(helped, tmp_path / name)
        if is_judged:
            verdict = verdict_of(folder)
            assert verdict is not None
            RunFiles(folder).write_as(verdict.model_copy(update={"is_used": False}), VERDICT)
        else:
            (folder / VERDICT).unlink()
        assert call("import", table, "--into", folder, "--out", tmp_path / f"{name}-copy").code == 0
        copied = Run(tmp_path / f"{name}-copy")
        assert (copied.scorer, copied.awaits_scorer) == (None, False)
        assert call("translate", copied.folder, stdin="ba ce\n").err == ""


def test_a_link_to_a_scorer_elsewhere_is_refused(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    (folder / SCORER).rename(tmp_path / "elsewhere")
    (folder / SCORER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="is a link"):
        heed.load(folder)
    assert "is a link" in call("translate", folder, stdin="ba ce\n").err


def test_a_missing_scorer_is_an_error(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run", ignore=shutil.ignore_patterns(SCORER))
    with pytest.raises(MissingInputError, match="is missing: it scores what"):
        heed.load(folder)
    assert call("translate", folder, stdin="ba ce\n").code != 0
    assert [each.name for each in verify(Run(folder)) if each.is_damaged] == [f"{SCORER}/{WEIGHTS}"]


def interrupt(*arguments: object, **named: object) -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def stopped(folder: Path, place: str) -> None:
    """Train such a run, and press Ctrl-C where this function is called, or stop the scorer after two updates."""
    with pytest.MonkeyPatch.context() as patch:
        if place == "heed.execute.Trainer":
            patch.setattr(place, stopped_trainer)
            trained(folder)
            return
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            trained(folder)


def stopped_trainer(*arguments: Any) -> Trainer:
    """A trainer that gets SIGTERM after two updates."""
    trainer = Trainer(*arguments)
    interrupt_after(trainer, 2, signal.SIGTERM)
    return trainer


@pytest.mark.parametrize(
    "place",
    ["heed.execute._validate_counted", "heed.execute.finish_report", "heed.execute.plan_scorer", "heed.execute.Trainer",
     "heed.scorer.analyse", "heed.scorer.save_analysis", "heed.scorer.write_report"],
)  # fmt: skip
def test_a_training_that_is_interrupted_anywhere_is_resumed(place: str, helped: Path, tmp_path: Path) -> None:
    stopped(tmp_path, place)
    folder = tmp_path / "run"
    assert (can_continue(folder), is_complete(folder)) == (True, False)
    assert Run(folder).scorer is None
    with pytest.raises(UsageError, match="heed train --resume"):
        trained(tmp_path)
    resume(TrainOptions(folder, device="cpu", quiet=True))
    assert (can_continue(folder), is_complete(folder)) == (False, True)
    assert equal(*(weights_of_scorer(each) for each in (folder, helped)))
    mine, yours = verdict_of(folder), verdict_of(helped)
    assert mine is not None and yours is not None
    assert mine.phrases == yours.phrases
    assert "## Phrases and their scorer" in report_text(Run(folder))


def test_the_message_after_an_interrupted_report_of_a_scorer_names_the_run(
    helped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    monkeypatch.setattr("heed.execute.finish_report", interrupt)
    with pytest.raises(KeyboardInterrupt):
        resume(TrainOptions(folder / SCORER, device="cpu", quiet=True))
    assert f"Write it with: heed train --resume {folder}\n" in capsys.readouterr().err


def test_further_training_that_was_interrupted_goes_on(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.execute.Trainer", interrupted_after_five)
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 8})
    assert (can_continue(folder), is_complete(folder)) == (True, False)
    resume(TrainOptions(folder, device="cpu", quiet=True))
    assert is_complete(folder)
    assert read_metrics(folder / SCORER)[-1]["step"] == 8


def interrupted_after_five(*arguments: Any) -> Trainer:
    """A trainer that gets SIGTERM after five updates."""
    trainer = Trainer(*arguments)
    interrupt_after(trainer, 5, signal.SIGTERM)
    return trainer


def test_limits_that_are_refused_change_nothing(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    before = (folder / "recipe.toml").read_bytes(), verdict_of(folder)
    with pytest.raises(UsageError, match="give a higher --max-steps"):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 3})
    assert ((folder / "recipe.toml").read_bytes(), verdict_of(folder)) == before


def test_limits_change_nothing_if_the_scorer_cannot_be_trained_further(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    for weights in (folder / SCORER / "checkpoints").rglob("*.safetensors"):
        weights.write_bytes(b"damaged")
    before = (folder / "recipe.toml").read_bytes(), verdict_of(folder)
    with pytest.raises(HeedError):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 8})
    assert ((folder / "recipe.toml").read_bytes(), verdict_of(folder)) == before
    assert before[1] is not None


def test_a_scorer_that_was_trained_further_by_itself_is_compared_again(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    resume(TrainOptions(folder / SCORER, device="cpu", quiet=True), limits={"training.max_steps": 6})
    assert verdict_of(folder) is None
    resume(TrainOptions(folder, device="cpu", quiet=True))
    assert verdict_of(folder) is not None


def test_phrases_alone_that_were_interrupted_in_their_validation_are_finished(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.execute._validate_counted", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, **{"training.scorer": ""})
    folder = tmp_path / "run"
    assert (can_continue(folder), is_complete(folder)) == (True, False)
    for key in ("training.max_steps", "training.lr"):
        with pytest.raises(UsageError, match=f"cannot be continued with other values of {key}"):
            resume(TrainOptions(folder, device="cpu", quiet=True), limits={key: 5})
    resume(TrainOptions(folder, device="cpu", quiet=True))
    assert is_complete(folder)
    assert "BLEU" in report_text(Run(folder))
    with pytest.raises(UsageError, match="Train it again with --overwrite"):
        resume(TrainOptions(folder, device="cpu", quiet=True))


def test_the_data_is_found_where_the_recipe_says_or_where_heed_data_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    tiny_keys(tmp_path / "here")  # writes the files
    names = {"data.dir": str(tmp_path / "here"), "data.src": "train.aa", "data.tgt": "train.bb"}
    monkeypatch.setenv("HEED_DATA", str(tmp_path / "there"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.execute.plan_scorer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, **names)
    run, options = Run(tmp_path / "run"), TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    assert plan_scorer(run, options).recipe.data.dir == str(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    assert plan_scorer(run, options).recipe.data.dir == str(tmp_path / "there")


def test_an_unfinished_run_refuses_keys_that_are_no_limits_before_it_is_finished(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    (folder / VERDICT).unlink()
    (folder / "report.md").unlink()
    with pytest.raises(UsageError, match="for other changes train it again with --overwrite"):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.lr": 0.1})
    assert not (folder / "report.md").exists()


def test_the_scorers_training_is_resumed_with_new_limits(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    with pytest.raises(UsageError, match="cannot change training"):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.lr": 0.1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", judged_as(198.0))
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 6})
    assert [event["step"] for event in read_metrics(folder / SCORER) if event["event"] == "validation"][-1] == 6
    assert Run(folder).recipe.training.max_steps == 6
    before, after = (read_analysis(Run(place), 1) for place in (helped, folder))
    assert (bleu_of(before), bleu_of(after)) == (199.0, 198.0)
    assert bleu_of(before, "alone") == bleu_of(after, "alone")  # and not those of both after the first training
    assert report_text(Run(folder)).count("## Phrases and their scorer") == 1


def test_a_scorer_that_no_longer_helps_is_no_longer_used(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "analyse", judged_as(0.0))
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 6})
    assert Run(folder).scorer is None
    analysis = read_analysis(Run(folder), 1)
    assert bleu_of(analysis) == bleu_of(analysis, "alone") == bleu_of(read_analysis(Run(helped), 1), "alone")


def test_a_complete_run_is_resumed_only_with_new_limits_and_from_checkpoints(helped: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Give the training of its scorer new limits"):
        resume(TrainOptions(helped, device="cpu", quiet=True))
    folder = shutil.copytree(helped, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(UsageError, match="has no checkpoints"):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 6})
    assert (folder / SCORER / WEIGHTS).exists()


def test_other_data_than_the_phrases_had_is_refused(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.execute.plan_scorer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path)
    folder = tmp_path / "run"
    for name in ("train.aa", "train.bb"):
        lines = (tmp_path / name).read_text().splitlines()
        (tmp_path / name).write_text("\n".join(lines[40:]) + "\n")
    with pytest.raises(DataError, match="is not the file that"):
        resume(TrainOptions(folder, device="cpu", quiet=True))
    (tmp_path / "train.aa").unlink()
    with pytest.raises(MissingInputError, match="Put the file back, and continue with: heed train --resume"):
        resume(TrainOptions(folder, device="cpu", quiet=True))


@pytest.mark.parametrize(("seconds", "minutes"), [(60.0, 9.0), (590.0, LEAST * 10)])
def test_the_scorer_has_what_phrases_left_of_the_time_limit(
    seconds: float, minutes: float, helped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    Run(folder).change_recipe({"training.max_minutes": 10.0})
    monkeypatch.setattr(scorer, "read_metrics", lambda folder: [{"seconds": seconds}])
    assert scorer_limits(Run(folder)) == {"training.max_steps": 4, "training.max_minutes": minutes}


def test_the_scorer_holds_out_the_same_lines_if_their_number_is_that_of_the_default() -> None:
    data = TranslationData(src="a", tgt="b", hold_out=TranslationData().hold_out)
    assert data.given_keys() == {"data.src": "a", "data.tgt": "b", "data.hold_out": 1000}
    assert "data.hold_out" not in data.model_copy(update={"valid_src": "c", "valid_tgt": "d"}).given_keys()


def test_a_run_without_a_time_limit_has_a_scorer_without_one(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    Run(folder).change_recipe({"training.max_minutes": 0.0})
    plan = plan_scorer(Run(folder), TrainOptions(folder, device="cpu", quiet=True))
    assert plan.recipe.training.max_minutes == 0


def test_the_time_of_counting_is_kept_when_the_validation_is_cut_off(tmp_path: Path) -> None:
    stopped(tmp_path, "heed.execute._validate_counted")
    folder = tmp_path / "run"
    [counted] = read_metrics(folder)
    log = folder / "metrics.jsonl"
    log.write_text(log.read_text().replace(f'"seconds": {counted["seconds"]}', '"seconds": 1000.0'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heed.execute.plan_scorer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            resume(TrainOptions(folder, device="cpu", quiet=True))
    assert read_metrics(folder)[-1]["seconds"] >= 1000


def test_text_in_the_target_language_alone_is_left_to_the_phrases(tmp_path: Path) -> None:
    more = [write_lines(tmp_path / f"more.{n}", [pair[n] for pair in pairs(50, seed=9)]) for n in (0, 1)]
    part = {"src": str(more[0]), "tgt": str(more[1])}
    run = Run(trained(tmp_path, **{"data.parts": [{"tgt": str(more[1])}, part]}))
    assert list(run.recipe.data.target_texts()) == [1]
    [kept] = Run(run.folder / SCORER).recipe.data.parts
    assert kept.model_dump(exclude_defaults=True) == part


def test_what_cannot_have_a_scorer_is_refused(tmp_path: Path) -> None:
    for changes, message in (
        ({"model.kind": "rule_based"}, "does not propose several outputs"),
        ({"training.scorer": "rule_based"}, "training.scorer must be one of the kinds transformer"),
        ({"training.scorer": "ngram"}, "training.scorer must be one of the kinds transformer"),
    ):
        wanted = keys(tmp_path, **changes)
        if changes.get("model.kind"):
            wanted = {key: value for key, value in wanted.items() if key == "model.kind" or "model." not in key}
        with pytest.raises(UsageError, match=message):
            Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()
    options = TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    plan = Planner(Document(), keys(tmp_path), options).plan()
    with pytest.raises(UsageError, match="leave out --nproc"):
        execute(plan, options, Ranks(0, 2))


def test_a_started_command_that_is_given_again_goes_on_or_has_nothing_to_do(helped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(helped, tmp_path / "run")
    command = ["train", *(f"--{key}={value}" for key, value in keys(helped.parent).items() if key != "task")]
    again = [*command, "--task", "translation", "--restartable", "--out", folder]
    assert "is complete" in call(*again).err
    further = ["--training.max_steps=6" if word == "--training.max_steps=4" else word for word in again]
    assert call(*further).code == 0
    assert read_metrics(folder / SCORER)[-1]["step"] == 6
    (folder / VERDICT).unlink()
    assert "validation: BLEU" in call(*further).err
    assert verdict_of(folder) is not None
