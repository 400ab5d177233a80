"""What would one send to a colleague about a run? `report.md`: the facts first, the doubts beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.environment import library_versions
from heed.core.files import is_plain_file, sha256_file, storage_errors
from heed.core.progress import format_seconds, warn
from heed.metrics.metric import Score
from heed.report.curves import draw_curves
from heed.report.data import data_section, training_rows
from heed.report.description import directions, methods, model_sentence, origin, parts, validated_on
from heed.report.markdown import code, plain
from heed.report.results import sample_section, test_scores, validation_scores
from heed.report.usability import usability, usability_of
from heed.report.validation import read_analysis, write_analysis
from heed.report.weaknesses import weaknesses
from heed.run import RECIPE, Run
from heed.training.journal import read_journal

REPORT = "report.md"
COUNTED = "counted"
Event = Mapping[str, Any]


def finish_report(run: Run, quiet: bool = False) -> Path:
    """When a training has ended: look at the weights that were kept, and write the report. Raises StorageError."""
    kept = _kept(read_journal(run.folder))
    if kept:
        write_analysis(run, kept["step"], quiet)
    path = write_report(run)
    if not_usable := usability(run):
        warn(f"{not_usable}. Train longer, or on more data.", quiet)
    return path


def _kept(events: Sequence[Event]) -> Event | None:
    """The validation of the weights that were kept."""
    best = [event for event in events if event["event"] == "validation" and event.get("best")]
    return best[-1] if best else None


def refresh_report(run: Run) -> None:
    """Write the report anew, where there is one. Raises StorageError."""
    if is_plain_file(run.folder / REPORT):
        write_report(run)


def write_report(run: Run) -> Path:
    """Write `report.md`, and `curves.png` where matplotlib is installed, from what the run folder tells."""
    events = read_journal(run.folder)
    train, validations, ends = (
        [event for event in events if event["event"] == kind] for kind in ("train", "validation", "end")
    )
    kept = _kept(events)
    analysis = read_analysis(run, kept["step"]) if kept else {}
    reason = ends[-1]["reason"] if ends else COUNTED if validations else "nothing was trained"
    path = run.folder / REPORT
    with storage_errors("write the report", path=path):
        curves = draw_curves(run.folder, train, validations)
        parts = [
            f"# {_title(run)}",
            _usability(run, kept),
            _synthetic(run),
            _summary(run, analysis, train, validations, reason),
            curves and f"## Training\n\n{curves}",
            _scores(run, analysis, validations),
            sample_section(analysis, validations),
            weaknesses(analysis, validations, reason),
            data_section(run),
            _use(run),
        ]
        with run.files.write_page(REPORT, "w") as file:
            file.write("\n\n".join(part for part in parts if part) + "\n")
    return path


def _title(run: Run) -> str:
    what = run.task_type.title
    return f"{what} {plain(directions(run))}: {plain(run.folder.resolve().name)}".replace(" :", ":")


def _usability(run: Run, kept: Event | None) -> str:
    not_usable = usability_of(run, kept) if kept else ""
    return f"**{plain(not_usable)}.** Train longer, or on more data." if not_usable else ""


def _synthetic(run: Run) -> str:
    if not run.recipe.data.synthetic:
        return ""
    return "The data is heed's built-in corpus: every score here is **synthetic**."


def _summary(run: Run, analysis: Event, train: Sequence[Event], validations: Sequence[Event], reason: str) -> str:
    """The whole page in a few lines."""
    model = model_sentence(run)
    parameters = f"; {analysis['num_parameters']:,} parameters" if analysis.get("num_parameters") else ""
    lines = [f"- **Model**: {model}{parameters}."]
    if begun_with := origin(run):
        lines.append(f"- **Origin**: {begun_with}.")
    if run.corpus:
        lines += _data(run)
    machine = f" On {analysis['machine']}, in {run.recipe.training.precision}." if analysis.get("machine") else ""
    lines.append(f"- **Training**: {_ending(train, validations, reason)}{machine}")
    names, scores = run.task_type.headline, analysis.get("scores", ())
    headline = [Score.from_json(score) for score in scores if not names or score["name"] in names]
    if headline:
        told = ", ".join(f"**{score.name} {score.numbers}**" for score in headline)
        like = validated_on(run, code, plain)
        lines.append(
            f"- **Quality**: {told} on {analysis['num_lines']:,} validation lines{f' ({like})' if like else ''}."
        )
    return "\n".join(lines)


def _data(run: Run) -> list[str]:
    """The training data in a line; with several parts one more for each."""
    if several := parts(run):
        head = f"- **Data**: {training_rows(run)} of {len(several)} parts:"
        return [head, *(f"  - {part.told(code, plain)}." for part in several)]
    files = " and ".join(code(entry["name"]) for entry in run.corpus["files"].values())
    return [f"- **Data**: {training_rows(run)} of {files}."]


def _ending(train: Sequence[Event], validations: Sequence[Event], reason: str) -> str:
    last = validations[-1] if validations else (train[-1] if train else None)
    if last is None:
        return f"It ended: {reason}."
    if not train and reason == COUNTED:
        return "It was counted in one pass over the data."
    speeds = sorted(event["tokens_per_second"] for event in train)
    speed = f", {speeds[len(speeds) // 2]:,.0f} target tokens/s in the median" if speeds else ""
    return f"It ended after {last['step']:,} updates and {format_seconds(last['seconds'])}{speed}: {reason}."


def _scores(run: Run, analysis: Event, validations: Sequence[Event]) -> str:
    parts = [validation_scores(analysis, validations), test_scores(run)]
    found = [part for part in parts if part]
    return "\n\n".join(["## Scores", *found]) if found else ""


def _use(run: Run) -> str:
    """How to use it, make it again, and what to cite."""
    versions = library_versions()
    digest = sha256_file(run.files.path(RECIPE))[:16]
    is_elsewhere = any(path.is_absolute() for path in _paths_of_parts(run))
    further = ", and the paths of its `[[data.parts]]` are to be set in the file itself" if is_elsewhere else ""
    parts = [
        "## Use it",
        f"```\n{_commands(run)}\n```",
        "## Make it again",
        f"`recipe.toml` in this folder is complete; FOLDER is where the files above lie{further}:",
        f"```\nheed train recipe.toml {' '.join([*_where_data_is(run), *_other_runs(run)])} --out NEW\n```",
        f"Made with {', '.join(f'{library} {version}' for library, version in versions.items())}.",
        "## Cite it",
        f"heed {versions['heed']}, recipe with the SHA-256 `{digest}…`, seed {run.recipe.seed}; "
        f"{methods(run)}. Scores are comparable only with their signatures: give them too.",
    ]
    return "\n\n".join(parts)


def _where_data_is(run: Run) -> list[str]:
    """The flags that say so: one folder for relative paths, each file for absolute ones."""
    data = run.recipe.data
    paths = {name: Path(getattr(data, name)) for name in data.path_keys if getattr(data, name)}
    absolute = [f"--data.{name}=FOLDER/{path.name}" for name, path in paths.items() if path.is_absolute()]
    has_parts = any(not path.is_absolute() for path in _paths_of_parts(run))
    return absolute if len(absolute) == len(paths) and not has_parts else ["--data.dir=FOLDER", *absolute]


def _paths_of_parts(run: Run) -> list[Path]:
    return [
        Path(file)
        for part in getattr(run.recipe.data, "parts", ())
        for file in (part.src, part.tgt, part.pairs)
        if file
    ]


def _other_runs(run: Run) -> list[str]:
    """The flags that name the runs whose weights and tokenizers were taken."""
    init, tokenizer_of = run.corpus.get("init", ""), run.corpus.get("tokenizer_of", "")
    flags = [f"--init {init}"] if init else []
    if tokenizer_of == init:
        return flags
    return [*flags, f"--tokenizer-of {tokenizer_of}" if tokenizer_of else "--init-vocabulary new"]


def _commands(run: Run) -> str:
    return "\n".join(run.predictor.commands(run.folder.resolve().name))
