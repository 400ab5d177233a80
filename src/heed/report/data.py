"""What was the run trained on? Files with fingerprints, what was left out, and what the data doctor found."""

from __future__ import annotations

from heed.report.markdown import code, plain, table
from heed.run import Run
from heed.tasks.prepare import DIAGNOSIS


def data_section(run: Run) -> str:
    """The section; files are known by name and SHA-256, not by where they lay."""
    parts = ["## Data"]
    corpus = run.corpus
    if corpus:
        left_out = [f"- left out: {count:,} ({plain(why)})" for why, count in corpus["dropped"].items()]
        trained = f"{training_rows(run)} to train on, {corpus['num_valid']:,} to validate."
        parts += ["\n".join([trained, *([""] if left_out else []), *left_out]), _files(run)]
    if run.files.has(DIAGNOSIS):
        found = (
            run.files.read_anyway(DIAGNOSIS, "The report repeats it.")
            .decode(errors="replace")
            .rstrip()
            .replace("```", "'''")
        )
        parts.append(f"What the data doctor found:\n\n```\n{found}\n```")
    return "\n\n".join(parts) if len(parts) > 1 else ""


def training_rows(run: Run) -> str:
    """`6,000 sentence pairs (24,000 with repetitions)`."""
    rows = f"{run.task_type.row}s"
    num_rows, num_repeated = run.corpus["num_rows"], run.corpus.get("num_repeated", 0)
    repeated = f" ({num_rows:,} with repetitions)" if num_repeated else ""
    return f"{num_rows - num_repeated:,} {rows}{repeated}"


def _use(run: Run, name: str) -> str:
    """What a file of the training data is: `training, part 1 (<bt>), each pair 2 times`."""
    data = run.recipe.data
    use, repeat = "training", getattr(data, "repeat", 1)
    if name.startswith("part_"):
        number = name.partition(".")[0].removeprefix("part_")
        part = data.parts[int(number) - 1]
        use, repeat = f"training, part {number}" + (f" (`<{part.tag}>`)" if part.tag else ""), part.repeat
    return use + (f", each pair {repeat} times" if repeat > 1 else "")


def _files(run: Run) -> str:
    rows = [["file", "used for", "lines", "bytes", "SHA-256"]]
    uses = [(entry, _use(run, name)) for name, entry in run.corpus["files"].items()]
    uses += [(entry, "validation") for entry in run.corpus.get("valid_files", {}).values()]
    for entry, use in uses:
        numbers = [f"{entry['lines']:,}", f"{entry['bytes']:,}"]
        rows.append([code(entry["name"]), use, *numbers, code(entry["sha256"][:16] + "…")])
    return table(rows, right=[2, 3])
