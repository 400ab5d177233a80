"""The scorer of a run of phrases: a second model, trained on the same data, which scores what the phrases propose.

It is trained after the phrases, as a run in the folder of the first (`training.scorer`). Then both together translate
the validation data; if the scorer adds too little to phrases whose weights were not tuned on this data, phrases
translate alone. The verdict is written last (`heed.core.own_scorer`): until then, phrases translate alone too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heed.core.config import Document, flattened
from heed.core.environment import data_dir
from heed.core.errors import MissingInputError
from heed.core.own_scorer import SCORER, VERDICT, Verdict, digest_of
from heed.core.progress import message
from heed.core.run_files import resume_command
from heed.limits import LIMITS
from heed.metrics.metric import Score
from heed.planner import Plan, Planner, TrainOptions
from heed.recipe import data_keys
from heed.report.markdown import table
from heed.report.page import write_report
from heed.report.usability import kept_validation
from heed.report.validation import analyse, read_analysis, save_analysis
from heed.run import Run
from heed.training.metrics_log import read_metrics

LEAST, SHORTEST = 0.25, 0.01
"""Share of the time limit that the scorer has, however long phrases took; and its shortest limit, in minutes."""
LEAST_GAIN = 0.5
"""BLEU that a scorer must add on validation data: on new lines, four scorers added 0.2 to 0.6 less than there ("Both in
one run" in docs/results/low-resource.md)."""


def scorer_options(options: TrainOptions) -> TrainOptions:
    """The options of the scorer's training."""
    return TrainOptions(
        options.out / SCORER, overwrite=True, force=options.force, device=options.device, quiet=options.quiet,
        is_part=True,
    )  # fmt: skip


def scorer_limits(run: Run, changes: Mapping[str, object] | None = None) -> dict[str, object]:
    """The limits of the scorer's training: those of the run, and the time that phrases left of its time limit.

    `changes`: new limits of the run.
    """
    training = run.recipe.training
    own = flattened(training.model_dump(mode="json", exclude_defaults=True), "training.")
    own["training.max_minutes"] = training.max_minutes  # 0 is no limit
    limits = {key: value for key, value in {**own, **(changes or {})}.items() if key in LIMITS}
    if minutes := float(str(limits["training.max_minutes"])):
        counted = float(read_metrics(run.folder)[-1]["seconds"]) / 60
        limits["training.max_minutes"] = max(LEAST * minutes, minutes - counted, SHORTEST)
    return limits


def plan_scorer(run: Run, options: TrainOptions) -> Plan:
    """The plan of the scorer's training, with heed's own choices for the data of the run.

    Raises HeedError for data that is no longer there, or is not the same.
    """
    recipe = run.recipe
    keys: dict[str, Any] = {
        "task": recipe.task, "seed": recipe.seed, "model.kind": recipe.training.scorer,
        **data_keys(recipe, recipe.training.scorer), **scorer_limits(run),
    }  # fmt: skip
    if folder := _data_folder(run):
        keys["data.dir"] = folder
    plan = Planner(Document(), keys, scorer_options(options)).plan()
    message(
        f"next: training a second model ({recipe.training.scorer}), to score what the phrases propose", options.quiet
    )
    if not options.quiet and plan.expected is not None:
        message(plan.expected.render(False))
    return plan


def _data_folder(run: Run) -> str:
    """The folder in which the files of the run's data are, unchanged; empty if their paths need none.

    It is that of the recipe, or what HEED_DATA names if they are not there. Raises MissingInputError and DataError.
    """
    data = run.recipe.data
    elsewhere = str(data_dir()) if data.dir and data_dir() else ""
    for folder in dict.fromkeys([data.dir, elsewhere] if elsewhere else [data.dir]):
        try:
            data.model_copy(update={"dir": folder}).require_unchanged(run.corpus, run.folder)
            return str(folder)
        except MissingInputError as error:
            missing = error
    raise MissingInputError(
        f"{missing} {run.folder} is complete but for the model that scores its translations, which learns from the "
        f"same files. Put the file back, and continue with: {resume_command(run.folder)}"
    ) from missing


def judge(run: Run, quiet: bool) -> None:
    """Translate the validation data with both, decide whether the scorer is used, and write the report.

    Raises HeedError.
    """
    both = run.with_scorer()
    assert both.scorer is not None
    together = analyse(both, quiet)
    systems = {
        "phrases alone": _scores_alone(run),
        "the scorer alone": _scores_alone(both.scorer),
        "phrases, scored by it": _by_name(together["scores"]),
    }
    phrases, scorer, scored = (scores["BLEU"].value for scores in systems.values())
    message(
        f"validation: BLEU {scored:.2f} with both, {phrases:.2f} by phrases alone, {scorer:.2f} by the scorer alone",
        quiet,
    )
    gain, weights = _gain(run, scored - phrases), digest_of(both.scorer.folder)
    is_used = gain > LEAST_GAIN
    verdict = Verdict(weights=weights, is_used=is_used, phrases=phrases, scorer=scorer, both=scored, gain=gain)
    verb = "so both translate" if is_used else f"less than {LEAST_GAIN:g}, so phrases translate alone"
    message(f"{_gain_sentence(gain)}, {verb}", quiet)
    if scorer > max(phrases, scored):
        message(f"the scorer is better alone: translate with {run.folder / SCORER}", quiet)
    analysis = together if verdict.is_used else _analysis_alone(run, quiet)
    alone = [score.to_json() for score in systems["phrases alone"].values()]
    own = {
        "step": _kept_step(run),
        "alone": alone,
        "has_scorer": verdict.is_used,
        "sections": [_section(systems, gain)],
    }
    save_analysis(run, {**analysis, **own})
    write_report(run.with_scorer(verdict.is_used))
    run.files.write_as(verdict, VERDICT)


def _gain(run: Run, gain_as_tuned: float) -> float:
    """BLEU that the scorer adds on validation data to phrases whose weights were not tuned on this data.

    Tuning raises the BLEU of phrases alone on its own data, by 2 BLEU with few lines, and hides what a scorer adds.
    `gain_as_tuned`: what it adds with the weights of the run, which tuning may not have changed.
    """
    untuned = run.untuned()
    if untuned.model is run.model:
        return gain_as_tuned
    alone, both = (
        _by_name(analyse(untuned.with_scorer(is_used), quiet=True)["scores"])["BLEU"].value for is_used in (False, True)
    )
    return both - alone


def _gain_sentence(gain: float) -> str:
    return f"with weights that were not tuned on this data, the scorer adds {gain:.2f} BLEU to phrases"


def _kept_step(run: Run) -> int:
    kept = kept_validation(read_metrics(run.folder))
    assert kept is not None, "it was validated"
    return int(kept["step"])


def _scores_alone(run: Run) -> Mapping[str, Score]:
    """The scores of a run without a scorer: those in its report."""
    analysis = read_analysis(run, _kept_step(run)) or analyse(run.with_scorer(is_used=False), quiet=True)
    return _by_name(analysis.get("alone") or analysis["scores"])


def _analysis_alone(run: Run, quiet: bool) -> Mapping[str, Any]:
    """The analysis of a run whose scorer is not used: that of its report, unless it is of both."""
    analysis = read_analysis(run, _kept_step(run))
    is_alone = bool(analysis) and not analysis.get("has_scorer")
    return analysis if is_alone else analyse(run.with_scorer(is_used=False), quiet)


def _by_name(scores: Sequence[Mapping[str, Any]]) -> Mapping[str, Score]:
    return {score.name: score for score in map(Score.from_json, scores)}


def _section(systems: Mapping[str, Mapping[str, Score]], gain: float) -> str:
    """The section of the report that compares them."""
    names = [*next(iter(systems.values()))]
    rows = [[system, *(scores[name].numbers for name in names)] for system, scores in systems.items()]
    head = "## Phrases and their scorer\n\nOn validation data, on which the weights of phrases are tuned:"
    sentence = _gain_sentence(gain)
    end = f"{sentence[:1].upper()}{sentence[1:]}: that decides whether it is used."
    return f"{head}\n\n{table([['', *names], *rows], right=range(1, len(names) + 1))}\n\n{end}"
