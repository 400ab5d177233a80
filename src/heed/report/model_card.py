"""The model card of an exported model: what it is, what it learned from, how good it is, and what it is not for.

The facts come from the run's report. What only its maker knows has to be filled in: these places begin with FILL IN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from heed.core.environment import library_versions
from heed.report.description import directions, methods, model_sentence, origin
from heed.report.markdown import plain
from heed.report.page import data_section
from heed.report.scores import score_section
from heed.report.usability import kept_validation, usability_of
from heed.report.validation import read_analysis
from heed.report.weaknesses import weaknesses
from heed.run import Run
from heed.training.metrics_log import read_metrics

CARD = "README.md"


def model_card(run: Run, title: str, use: Sequence[str], verified: str, pipeline: str = "", advice: str = "") -> str:
    """The text of the card.

    `title`: the format. `use`: lines of a program that uses the model. `verified`: what the comparison with the other
    program found. `pipeline`: the task of the model in Hugging Face's terms, if it has one. `advice`: what its input
    must have besides the text.
    """
    events = read_metrics(run.folder)
    validations = [event for event in events if event["event"] == "validation"]
    reason = next((event["reason"] for event in reversed(events) if event["event"] == "end"), "")
    kept = kept_validation(events)
    analysis = read_analysis(run, kept["step"]) if kept else {}
    name = plain(run.folder.resolve().name)
    heading = f"{run.task_type.title} {plain(directions(run))}: {name}".replace(" :", ":")
    program = "```python\n{}\n```".format("\n".join(use)) if use else ""
    not_usable = usability_of(run, kept) if kept else ""
    limits = [
        f"**{plain(not_usable)}.**" if not_usable else "",
        "It repeats the errors and the bias of the text that it learned from, and is less reliable on other kinds of "
        "text. Do not use it without human review where an error can harm someone.",
        _normalised(run),
        "" if analysis else "The run has no analysis of its outputs, so nothing is known of their quality here.",
    ]
    sections = [
        _front_matter(run, pipeline),
        f"# {heading}",
        f"{model_sentence(run)[:1].upper()}{model_sentence(run)[1:]}; {title}.",
        f"Origin: {origin(run)}." if origin(run) else "",
        "\n\n".join(filter(None, ("## Use", program, advice))) if use or advice else "",
        "## Intended use\n\nFILL IN: for whom and for which text.",
        data_section(run) or "## Data\n\nFILL IN: the run has no record of its training data.",
        score_section(run, analysis, kept) or "## Scores\n\nFILL IN: the run has no scores.",
        weaknesses(analysis, validations, reason),
        "## Limits\n\n" + "\n\n".join(filter(None, limits)),
        f"## Comparison with heed\n\nThe exported model is {plain(verified)}.",
        "## Licence\n\nFILL IN: the licence of the model, and those of the texts in Data, which may restrict it.",
        f"Made with heed {library_versions()['heed']}: {methods(run)}.",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _front_matter(run: Run, pipeline: str) -> str:
    """The facts that the hub of Hugging Face reads."""
    data = run.recipe.data
    languages = dict.fromkeys(filter(None, (data.src_lang, data.tgt_lang)))
    lines = [
        *(["language:", *(f"- {json.dumps(language)}" for language in languages)] if languages else []),
        "license: other  # FILL IN",
        *([f"pipeline_tag: {pipeline}", "library_name: transformers"] if pipeline else []),
        "tags:", "- heed",
    ]  # fmt: skip
    return "\n".join(["---", *lines, "---"])


def _normalised(run: Run) -> str:
    """What heed does to text before its tokenizer, which other programs do not."""
    form = run.recipe.data.normaliser
    steps = [
        f"put into Unicode's form {form.form.upper()}" if form.form != "none" else "",
        "put into lower case" if form.lowercase else "", "freed of control characters" if form.strip_control else "",
        "freed of repeated spaces" if form.collapse_spaces else "",
    ]  # fmt: skip
    done = [step for step in steps if step]
    return f"In training, text was {' and '.join(done)} first; do the same to input." if done else ""
