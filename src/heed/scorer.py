"""The scorer of a run of phrases: a second model, trained on the same data, which scores what the phrases propose.

It is trained after the phrases, as a run in the folder of the first (`training.scorer`). Then both together translate
the validation data; if they are no better than phrases alone, phrases translate alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heed.core.config import Document, flattened
from heed.core.environment import data_dir
from heed.core.progress import message
from heed.metrics.metric import Score
from heed.planner import LIMITS, Plan, Planner, TrainOptions
from heed.report.markdown import table
from heed.report.page import write_report
from heed.report.usability import kept_validation
from heed.report.validation import analyse, read_analysis, save_analysis
from heed.run import SCORER, Run
from heed.training.metrics_log import MetricsLog, read_metrics

LEAST = 0.25
"""Share of the time limit that the scorer has, however long phrases took."""


def scorer_options(options: TrainOptions) -> TrainOptions:
    """The options of the scorer's training."""
    return TrainOptions(
        options.out / SCORER, overwrite=True, force=options.force, device=options.device, quiet=options.quiet,
        is_part=True,
    )  # fmt: skip


def plan_scorer(run: Run, options: TrainOptions, limits: Mapping[str, object]) -> Plan:
    """The plan of the scorer's training, with heed's own choices for the data of the run.

    Its time limit is what phrases left of that of the run. `limits` override those of the run's recipe. Raises
    HeedError for data that is no longer there.
    """
    recipe = run.recipe
    own = flattened(recipe.training.model_dump(mode="json", exclude_defaults=True), "training.")
    keys: dict[str, Any] = {
        "task": recipe.task, "seed": recipe.seed, "model.kind": recipe.training.scorer,
        **flattened(recipe.data.model_dump(mode="json", exclude_defaults=True), "data."),
        **{key: value for key, value in own.items() if key in LIMITS},
    }  # fmt: skip
    if texts := recipe.data.target_texts():  # which only phrases can read
        parts = enumerate(recipe.data.parts, start=1)
        keys["data.parts"] = [part.model_dump(exclude_defaults=True) for number, part in parts if number not in texts]
    if folder := data_dir():
        keys["data.dir"] = str(folder)
    if minutes := recipe.training.max_minutes:
        counted = read_metrics(run.folder)[-1]["seconds"] / 60
        keys["training.max_minutes"] = round(max(LEAST * minutes, minutes - counted), 2)
    plan = Planner(Document(), {**keys, **limits}, scorer_options(options)).plan()
    message(f"next: a second model ({recipe.training.scorer}), which is to score what phrases propose", options.quiet)
    if plan.expected is not None:
        message(plan.expected.render(False), options.quiet)
    return plan


def judge(run: Run, quiet: bool) -> None:
    """Translate the validation data with both, keep the scorer only if that is better, and write the report.

    Raises StorageError.
    """
    assert run.scorer is not None, "it has been trained"
    events, both = read_metrics(run.folder), analyse(run, quiet)
    systems = {
        "phrases alone": _scores_alone(run),
        "the scorer alone": _scores_alone(run.scorer),
        "phrases, scored by it": _by_name(both["scores"]),
    }
    alone, of_scorer, together = (scores["BLEU"].value for scores in systems.values())
    message(
        f"validation: BLEU {together:.2f} with both, {alone:.2f} by phrases alone, {of_scorer:.2f} by the scorer "
        "alone", quiet,
    )  # fmt: skip
    if together <= alone:
        message("phrases will translate alone: the scorer does not help (training.scorer)", quiet)
        run.change_recipe({"training.scorer": ""})
        run = Run(run.folder, run.device)
        both = analyse(run, quiet)
    if of_scorer > max(alone, together):
        message(f"the scorer is better alone: translate with {run.folder / SCORER}", quiet)
    step = 1 + max(event["step"] for event in events)
    with MetricsLog(run.folder) as log:
        log.write("validation", step, {**_event(both), "seconds": events[-1]["seconds"], "best": True})
    scores_alone = [score.to_json() for score in systems["phrases alone"].values()]
    save_analysis(run, {"step": step, **both, "alone": scores_alone, "sections": [_section(systems)]})
    write_report(run)


def _scores_alone(run: Run) -> Mapping[str, Score]:
    """The scores in the report of a run, without a scorer."""
    kept = kept_validation(read_metrics(run.folder))
    assert kept is not None, "it was validated"
    analysis = read_analysis(run, kept["step"])
    return _by_name(analysis.get("alone", analysis["scores"]))


def _by_name(scores: Sequence[Mapping[str, Any]]) -> Mapping[str, Score]:
    return {score.name: score for score in map(Score.from_json, scores)}


def _event(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of an analysis as a validation of the metrics log has them."""
    scores, names = _by_name(analysis["scores"]), {"BLEU": "bleu", "chrF2": "chrf"}
    return {
        **{name: round(scores[title].value, 4) for title, name in names.items()},
        "signatures": {name: scores[title].signature for title, name in names.items()},
        "samples": [],
    }


def _section(systems: Mapping[str, Mapping[str, Score]]) -> str:
    """The section of the report that compares them."""
    names = [*next(iter(systems.values()))]
    rows = [[system, *(scores[name].numbers for name in names)] for system, scores in systems.items()]
    head = "## Phrases and their scorer\n\nOn validation data, on which the weights of the phrases were tuned:"
    return f"{head}\n\n{table([['', *names], *rows], right=range(1, len(names) + 1))}"
