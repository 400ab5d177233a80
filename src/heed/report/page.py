"""The report of a run, `report.md`: model, data, training, scores, weaknesses, and how to use and reproduce it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from heed.core.environment import library_versions
from heed.core.files import is_plain_file, sha256_file, storage_errors
from heed.core.progress import format_seconds, warn
from heed.core.run_files import RECIPE
from heed.metrics.metric import Score
from heed.report.curves import draw_curves
from heed.report.description import directions, methods, model_sentence, origin, parts, validated_on
from heed.report.markdown import code, plain, table
from heed.report.scores import sample_section, score_section
from heed.report.usability import kept_validation, usability, usability_of
from heed.report.validation import read_analysis, write_analysis
from heed.report.weaknesses import weaknesses
from heed.run import Run
from heed.tasks.prepare import DIAGNOSIS
from heed.training.metrics_log import read_metrics

REPORT = "report.md"
MAX_BYTES = 8 << 20
"""Of a report, and of its picture."""
COUNTED = "counted"
"""The reason that a count-based model logs for its end."""
Event = Mapping[str, Any]


def finish_report(run: Run, quiet: bool = False) -> Path:
    """Analyse the weights that a finished training kept, and write the report. Raises StorageError."""
    kept = kept_validation(read_metrics(run.folder))
    if kept:
        write_analysis(run, kept["step"], quiet)
    path = write_report(run)
    if not_usable := usability(run):
        warn(f"{run.folder}: {not_usable}. {_remedy(run)}", quiet)
    return path


def refresh_report(run: Run) -> None:
    """Rewrite the report if the run has one. Raises StorageError."""
    if is_plain_file(run.folder / REPORT):
        write_report(run)


def write_report(run: Run) -> Path:
    """Write `report.md`, and `curves.png` if matplotlib is installed, from the files in the run folder."""
    train, validations, reason = _events(run)
    kept = kept_validation(validations)
    analysis = read_analysis(run, kept["step"]) if kept else {}
    path = run.folder / REPORT
    with storage_errors("write the report", path=path):
        curves = draw_curves(run.folder, train, validations)
        sections = [
            f"# {_title(run)}",
            _usability(run, kept),
            "Trained on heed's built-in corpus: every score here is **synthetic**." * run.recipe.data.synthetic,
            _summary(run, analysis, train, validations, reason),
            curves and f"## Training\n\n{curves}",
            score_section(run, analysis, kept),
            *analysis.get("sections", ()),
            sample_section(analysis, validations),
            weaknesses(analysis, validations, reason),
            data_section(run),
            _use_section(run),
        ]
        with run.files.write_page(REPORT, "w") as file:
            file.write("\n\n".join(section for section in sections if section) + "\n")
    return path


def _events(run: Run) -> tuple[Sequence[Event], Sequence[Event], str]:
    """The events of a training with the losses of updates, those with validation scores, and why it ended."""
    events = read_metrics(run.folder)
    train, validations, ends = (
        [event for event in events if event["event"] == kind] for kind in ("train", "validation", "end")
    )
    return train, validations, ends[-1]["reason"] if ends else COUNTED if validations else "nothing was trained"


def report_text(run: Run) -> str:
    """The report as it is. Raises MissingInputError for a run without one, and DataError."""
    return run.files.read(REPORT, MAX_BYTES).decode(errors="replace")


def _title(run: Run) -> str:
    title = f"{run.task_type.title} {plain(directions(run))}: {plain(run.folder.resolve().name)}"
    return title.replace(" :", ":")


def _usability(run: Run, kept: Event | None) -> str:
    not_usable = usability_of(run, kept) if kept else ""
    return f"**{plain(not_usable)}.** {_remedy(run)}" if not_usable else ""


def _remedy(run: Run) -> str:
    """What to do about a model that is not usable yet."""
    return "Train on more data." if run.blank_model.count_based else "Train longer, or on more data."


def _summary(run: Run, analysis: Event, train: Sequence[Event], validations: Sequence[Event], reason: str) -> str:
    """Model, data, training and quality, one line each."""
    parameters = f"; {analysis['num_parameters']:,} parameters" if analysis.get("num_parameters") else ""
    lines = [f"- **Model**: {model_sentence(run)}{parameters}."]
    if text := origin(run):
        lines.append(f"- **Origin**: {text}.")
    if run.corpus:
        lines += _data_lines(run)
    machine = f" On {analysis['machine']}, in {run.recipe.training.precision}." if analysis.get("machine") else ""
    lines.append(f"- **Training**: {_training(run.task_type.targets, train, validations, reason)}{machine}")
    if run.scorer is not None:
        lines.append(f"- **Training of the scorer**: {_training('target tokens', *_events(run.scorer))}")
    names, scores = run.task_type.headline, analysis.get("scores", ())
    headline = [Score.from_json(score) for score in scores if not names or score["name"] in names]
    if headline:
        values = ", ".join(f"**{score.name} {score.numbers}**" for score in headline)
        part = validated_on(run, code, plain)
        lines.append(
            f"- **Quality**: {values} on {analysis['num_lines']:,} validation lines{f' ({part})' if part else ''}."
        )
    return "\n".join([*lines, *(f"- {remark}" for remark in run.predictor.remarks())])


def _data_lines(run: Run) -> list[str]:
    """The training data in a line, and one more for each of several parts."""
    if several := parts(run):
        head = f"- **Data**: {_training_rows(run)} of {len(several)} parts:"
        return [head, *(f"  - {part.render(code, plain)}." for part in several)]
    files = " and ".join(code(entry["name"]) for entry in run.corpus["files"].values())
    return [f"- **Data**: {_training_rows(run)} of {files}."]


def _training_rows(run: Run) -> str:
    """`6,000 sentence pairs (24,000 with repetitions)`."""
    repeated = f" ({run.corpus['num_rows']:,} with repetitions)" if run.corpus.get("num_repeated") else ""
    return f"{run.num_rows:,} {run.task_type.row}s{repeated}"


def _training(targets: str, train: Sequence[Event], validations: Sequence[Event], reason: str) -> str:
    """How a training ended, and at which speed; `targets`: what the speed counts."""
    if not train and not validations:
        return f"Ended: {reason}."
    if not train and reason == COUNTED:
        return "Estimated from the data, without gradient descent."
    last = (validations or train)[-1]
    speeds = sorted(event["tokens_per_second"] for event in train)
    speed = f", at a median of {speeds[len(speeds) // 2]:,.0f} {targets}/s" if speeds else ""
    updates = f"{last['step']:,} update{'s' * (last['step'] != 1)}"
    return f"Ended after {updates} and {format_seconds(last['seconds'])}{speed}: {reason}."


def data_section(run: Run) -> str:
    """Files with fingerprints, what was left out, and the diagnosis; empty for a run without these records.

    Files are identified by name and SHA-256, without their folders.
    """
    parts = ["## Data"]
    corpus = run.corpus
    if corpus:
        left_out = [f"- left out: {count:,} ({plain(why)})" for why, count in corpus["dropped"].items()]
        counts = f"{_training_rows(run)} to train on, {corpus['num_valid']:,} to validate."
        parts += ["\n".join([counts, *([""] if left_out else []), *left_out]), _file_table(run)]
    if run.files.has(DIAGNOSIS):
        content = run.files.read_anyway(DIAGNOSIS, "The report repeats it.")
        text = content.decode(errors="replace").rstrip().replace("```", "'''")
        parts.append(f"The data doctor's diagnosis:\n\n```\n{text}\n```")
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _file_table(run: Run) -> str:
    rows = [["file", "used for", "lines", "bytes", "SHA-256"]]
    uses = [(entry, _use_of_file(run, name)) for name, entry in run.corpus["files"].items()]
    uses += [(entry, "validation") for entry in run.corpus.get("valid_files", {}).values()]
    for entry, use in uses:
        numbers = [f"{entry['lines']:,}", f"{entry['bytes']:,}"]
        rows.append([code(entry["name"]), use, *numbers, code(entry["sha256"][:16] + "…")])
    return table(rows, right=[2, 3])


def _use_of_file(run: Run, name: str) -> str:
    """The use of a file of the training data: `training, part 1 (<bt>), each pair 2 times`."""
    data = run.recipe.data
    use, repeat = "training", getattr(data, "repeat", 1)
    if name.startswith("part_"):
        number = name.partition(".")[0].removeprefix("part_")
        part = data.parts[int(number) - 1]
        use, repeat = f"training, part {number}" + (f" (`<{part.tag}>`)" if part.tag else ""), part.repeat
    return use + (f", each pair {repeat} times" if repeat > 1 else "")


def _use_section(run: Run) -> str:
    """Commands that use the run, the command that reproduces it, and what to cite."""
    versions = library_versions()
    digest = sha256_file(run.files.path(RECIPE))[:16]
    is_elsewhere = any(path.is_absolute() for path in _paths_of_parts(run))
    absolute = " Set the absolute paths of its `[[data.parts]]` in the file itself." if is_elsewhere else ""
    commands = "\n".join(run.predictor.commands(quote(run.folder.resolve().name)))
    sections = [
        "## Use it",
        f"```\n{commands}\n```",
        "## Reproduce it",
        f"`recipe.toml` in this folder is complete. Replace FOLDER with the folder of the files above.{absolute}",
        f"```\nheed train recipe.toml {' '.join([*_data_flags(run), *_init_flags(run)])} --out NEW\n```",
        f"Made with {', '.join(f'{library} {version}' for library, version in versions.items())}.",
        "## Cite it",
        f"heed {versions['heed']}, recipe with the SHA-256 `{digest}…`, seed {run.recipe.seed}; "
        f"{methods(run)}. Scores are comparable only with their signatures: give them too.",
    ]
    return "\n\n".join(sections)


def _data_flags(run: Run) -> list[str]:
    """The flags for the data: one folder for relative paths, each file for absolute ones."""
    data = run.recipe.data
    paths = {name: Path(getattr(data, name)) for name in data.path_keys if getattr(data, name)}
    absolute = [f"--data.{name}=FOLDER/{quote(path.name)}" for name, path in paths.items() if path.is_absolute()]
    has_relative_parts = any(not path.is_absolute() for path in _paths_of_parts(run))
    return absolute if len(absolute) == len(paths) and not has_relative_parts else ["--data.dir=FOLDER", *absolute]


def _paths_of_parts(run: Run) -> list[Path]:
    parts = getattr(run.recipe.data, "parts", ())
    return [Path(file) for part in parts for file in (part.src, part.tgt, part.pairs) if file]


def _init_flags(run: Run) -> list[str]:
    """The flags for the runs that gave the weights and the tokenizers."""
    init, tokenizer_of = run.corpus.get("init", ""), run.corpus.get("tokenizer_of", "")
    flags = [f"--init {quote(init)}"] if init else []
    if (parts := run.corpus.get("init_parts", "all")) != "all":
        flags.append(f"--init-parts {parts}")
    if backward := run.corpus.get("init_backward", ""):
        flags.append(f"--init-backward {quote(backward)}")
    if tokenizer_of == init:
        return flags
    return [*flags, f"--tokenizer-of {quote(tokenizer_of)}" if tokenizer_of else "--init-vocabulary new"]
