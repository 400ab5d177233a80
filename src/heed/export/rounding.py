"""Measurement of int8: BLEU and speed of a converted translator on validation data, compared with float32.

Both formats translate the same batches in turns. Lines that CTranslate2 leaves to PyTorch do not count, and outputs are
not checked, so that only the products differ.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from heed.core.environment import num_cpus
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.export.verification import validation_rows
from heed.inference.converted_model import Rounding
from heed.inference.ctranslate2_engine import CTranslate2Engine
from heed.inference.line_translator import LineTranslator
from heed.metrics import output_statistics
from heed.metrics.significance import FEWEST_ROWS, paired_bootstrap
from heed.run import Run

PRECISIONS = ("float32", "int8")
MAX_LINES = 1000
MAX_SECONDS = 20.0


def measure_rounding(run: Run, engines: Mapping[str, CTranslate2Engine]) -> Rounding | None:
    """Translate validation lines with the engine of each of the `PRECISIONS`.

    None without validation data, or for a recipe whose search CTranslate2 does not have.
    """
    run, options = run.predictor.of_validation(), run.recipe.decoding
    rows, has_references = validation_rows(run, MAX_LINES)
    if not has_references or not all(engine.can_search(options) for engine in engines.values()):
        return None
    src, tgt, data = run.tokenizers["src"], run.tokenizers["tgt"], run.recipe.data
    translator = LineTranslator(src, tgt, data.normaliser, _nothing, before_source=run.predictor.before_source)
    requests = translator.requests([row[0] for row in rows], None)
    texts, seconds = _in_turns(requests, options, engines, translator)
    both = [number for number, request in enumerate(requests) if all(request in of for of in texts.values())]
    if not both:
        return None
    language, references = run.predictor.languages[1] or None, [rows[number][-1] for number in both]
    exact, rounded = (
        output_statistics(
            [texts[precision][requests[number]] for number in both], references, language, ["bleu"],
            tokenised=data.tokenised,
        )["bleu"]
        for precision in PRECISIONS
    )  # fmt: skip
    difference, p = paired_bootstrap(exact, rounded)
    score = exact.score(0)
    return Rounding(
        num_lines=len(both), beam_size=options.width, bleu=score.value,
        difference=difference, p=p if len(both) >= FEWEST_ROWS else None, signature=score.signature,
        lines_per_second=(len(texts["float32"]) / seconds["float32"], len(texts["int8"]) / seconds["int8"]),
        num_cpus=num_cpus(),
    )  # fmt: skip


def _in_turns(
    requests: list[Request], options: SearchOptions, engines: Mapping[str, CTranslate2Engine],
    translator: LineTranslator,
) -> tuple[dict[str, dict[Request, str]], dict[str, float]]:  # fmt: skip
    """The texts and the seconds of each engine, for as many batches as there is time for."""
    texts: dict[str, dict[Request, str]] = {precision: {} for precision in PRECISIONS}
    seconds = dict.fromkeys(PRECISIONS, 0.0)
    distinct, size = [*dict.fromkeys(filter(lambda request: request.source, requests))], options.batch_size * num_cpus()
    for turn, first in enumerate(range(0, len(distinct), size)):
        for precision in PRECISIONS if turn % 2 else PRECISIONS[::-1]:
            begin = time.perf_counter()
            found = engines[precision].search(distinct[first : first + size], options, with_tokens=False)
            seconds[precision] += time.perf_counter() - begin
            texts[precision].update((each, translator.best_of(best, options).text) for each, best in found.items())
        if sum(seconds.values()) > MAX_SECONDS:
            break
    return texts, seconds


def _nothing(requests: object, options: object) -> dict[Request, Hypothesis]:
    return {}
