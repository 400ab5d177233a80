"""What was the run trained on? Files with fingerprints, what was left out, and what the data doctor found."""

from __future__ import annotations

from heed.core.files import is_plain_file
from heed.report.markdown import code, plain, table
from heed.run import Run


def data_section(run: Run) -> str:
    """The section; files are known by name and SHA-256, not by where they lay."""
    parts = ["## Data"]
    corpus = run.corpus
    if corpus:
        rows = "sentence pairs" if run.recipe.task == "translation" else "lines"
        left_out = [f"- left out: {count:,} ({plain(why)})" for why, count in corpus["dropped"].items()]
        trained = f"{corpus['num_rows']:,} {rows} to train on, {corpus['num_valid']:,} to validate."
        parts += ["\n".join([trained, *([""] if left_out else []), *left_out]), _files(run)]
    diagnosis = run.folder / "data" / "diagnosis.txt"
    if is_plain_file(diagnosis):
        found = diagnosis.read_text(encoding="utf-8").rstrip().replace("```", "'''")
        parts.append(f"What the data doctor found:\n\n```\n{found}\n```")
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _part(run: Run, name: str) -> str:
    """How a further part of the training data is used: `, part 1 (<bt>), each pair 2 times`."""
    number = name.partition(".")[0].removeprefix("part_")
    if not name.startswith("part_"):
        return ""
    part = run.recipe.data.parts[int(number) - 1]
    tag = f" (`<{part.tag}>`)" if part.tag else ""
    return f", part {number}{tag}" + (f", each pair {part.repeat} times" if part.repeat > 1 else "")


def _files(run: Run) -> str:
    rows = [["file", "used for", "lines", "bytes", "SHA-256"]]
    for use, files in (("training", run.corpus["files"]), ("validation", run.corpus.get("valid_files", {}))):
        for part, entry in files.items():
            numbers = [f"{entry['lines']:,}", f"{entry['bytes']:,}"]
            rows.append([code(entry["name"]), use + _part(run, part), *numbers, code(entry["sha256"][:16] + "…")])
    return table(rows, right=[2, 3])
