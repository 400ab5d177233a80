"""`heed info`: what is in a run folder?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from heed.cli.options import Debug, Json, RunFolder


def info(run: RunFolder, json_output: Json = False, debug: Debug = False) -> None:
    """Print what a run is: task, languages, sizes, data, best scores, files.

    Example:

      heed info runs/en-de
    """
    from heed.nn.weight_file import read_header
    from heed.report.description import directions, parts, validated_on
    from heed.run import WEIGHTS, Run
    from heed.training.journal import read_journal

    opened = Run(run)
    recipe = opened.recipe
    events = read_journal(opened.folder)
    best = [event for event in events if event["event"] == "validation" and event.get("best")]
    sizes = ", ".join(f"{side} {len(tokenizer.vocabulary):,}" for side, tokenizer in opened.tokenizers.items())
    corpus = opened.corpus
    facts: dict[str, Any] = {
        "run": str(run),
        "task": recipe.task,
        "languages": directions(opened) or " → ".join("?" for _ in opened.sides),
        "synthetic": recipe.data.synthetic,
        "model": recipe.model.model_dump(),
        "tokenizer": f"{recipe.tokenizer.kind}, {sizes}",
        "trained on": corpus["num_rows"] - corpus.get("num_repeated", 0) if "num_rows" in corpus else "?",
    }  # fmt: skip
    several = parts(opened)
    if recipe.data.tags:
        facts["tags"] = ", ".join(recipe.data.tags)
    if several:
        facts["parts"] = [asdict(part) for part in several]
        facts["validated on"] = validated_on(opened)
    if (opened.folder / WEIGHTS).exists():
        facts["parameters"] = read_header(opened.folder / WEIGHTS).num_parameters
    if best:
        names = best[-1]["signatures"]
        facts["best validation"] = {"update": best[-1]["step"], **{name: best[-1][name] for name in names}}
    if json_output:
        print(json.dumps(facts, ensure_ascii=False))
        return
    for name, value in facts.items():
        if name == "parts":
            for number, part in enumerate(several):
                print(f"{f'part {number}' if number else 'main part':16} {part.told()}")
            continue
        if isinstance(value, dict):
            value = "  ".join(f"{k}={v}" for k, v in value.items())
        print(
            f"{name:16} {value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{name:16} {value}"
        )
