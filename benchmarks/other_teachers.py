"""A translator that learns from synthetic pairs of two other translators, one for each direction.

    python benchmarks/other_teachers.py runs/phrases-en-ha runs/phrases-ha-en --mono-src news.en --mono-tgt news.ha \\
        --init runs/en-sw --updates 8000 --out runs/candidate

Like a round of `heed improve`, whose forward translator is the run that it improves. Here the first run, of any kind,
translates its training sources and the text in its source language, and the second one the training targets and the
text in the other language. The new Transformer learns from all of them and from the pairs. `--init`: a run with whose
weights it begins, with a vocabulary of its own. Interrupted translations continue; finished trainings are not repeated.
After `--` come recipe keys.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from variants import split_keys

import heed
from heed.core.config import flattened
from heed.nn.device import set_threads
from heed.run import Run
from heed.tasks.translation.synthetic_pairs import (
    SIDES,
    Texts,
    keep_translated,
    synthetic_part,
    translate_pairs,
    translate_text,
    with_synthetic,
)


def main() -> None:
    """Translate and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forward", type=Path, metavar="RUN", help="its data and recipe are those of the new run")
    parser.add_argument("back", type=Path, metavar="REVERSE")
    parser.add_argument("--mono-src", action="append", default=[], type=Path, metavar="F")
    parser.add_argument("--mono-tgt", action="append", default=[], type=Path, metavar="F")
    parser.add_argument("--init", type=Path, metavar="RUN")
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    words, own = split_keys(sys.argv[1:])
    given = parser.parse_args(words)
    set_threads(1)
    run, folder = Run(given.forward), given.out.with_name(f"{given.out.name}.texts")
    texts = Texts(folder, run.recipe.data)
    texts.write(run, {"src": given.mono_src, "tgt": given.mono_tgt})
    parts = []
    for teacher, side, is_forward in ((given.forward, SIDES[0], True), (given.back, SIDES[1], False)):
        predictor: Any = heed.load(teacher).of_validation().predictor
        for name, translate in (("pairs", translate_pairs), ("mono", translate_text)):
            if lines := texts.num_lines(name, side):
                place = folder / f"{'forward' if is_forward else 'back'}-{name}"
                place.mkdir(parents=True, exist_ok=True)
                translate(predictor, texts, is_forward, lines, place, False)
                if keep_translated(place):
                    parts.append(synthetic_part(place, is_forward, run.recipe.data))
    if (given.out / "report.md").is_file():
        return
    data = flattened(run.recipe.data.model_dump(mode="json", exclude_defaults=True), "data.")
    keys: dict[str, Any] = {
        "task": "translation", "model.kind": "transformer", **data,
        **with_synthetic(run.recipe.data, parts, texts.num_lines("pairs", "src")),
        "training.max_steps": given.updates, "training.max_minutes": 0, "training.patience": 0,
        **own,
    }  # fmt: skip
    heed.train(keys, given.out, init=given.init, new_vocabulary=given.init is not None, device="cpu", overwrite=True)


if __name__ == "__main__":
    main()
