"""`heed evaluate`: how good is a run on a test set?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import Debug, Device, Json, Precision, Quiet, Threads, search_options
from heed.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from heed.metrics.score import Score
    from heed.run import Run


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One run, or several to compare.")],
    src: Annotated[Path | None, typer.Option(help="Source of the test set.")] = None,
    ref: Annotated[Path | None, typer.Option(help="Reference translations.")] = None,
    text: Annotated[Path | None, typer.Option(help="Test text of language models.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size (default: the recipe's).", min=1)] = None,
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.", min=0)] = None,
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokenised: BLEU with tok:none.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the translations to this file (one run).")] = None,
    json_output: Json = False,
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score runs on a test set: BLEU, chrF and TER, or perplexities, with signatures and 95 % intervals.

    Several runs are compared with the first by paired bootstrap tests.

    Examples:

      heed evaluate runs/en-de --src test.en --ref test.de

      heed evaluate runs/a runs/b --src test.en --ref test.de --json
    """
    import heed

    if (text is None) == (src is None) or (src is None) != (ref is None):
        raise UsageError("give --src F --ref F for translation runs, or --text F for language models.")
    if out is not None and (len(runs) > 1 or text is not None):
        raise UsageError("--out is for the translations of one run.")
    opened = [heed.load(folder, device, threads, precision).run for folder in runs]
    if src is not None and ref is not None:
        said = {"beam_size": beam, "length_penalty": length_penalty, "nbest": 1}
        results = _translations(opened, src, ref, said, tokenised, out)
    elif text is not None:
        results = _likelihoods(opened, text)
    _print(results, json_output)


def _likelihoods(runs: list[Run], text: Path) -> list[dict[str, Any]]:
    from heed.metrics.likelihood import evaluate_likelihood
    from heed.tasks.task import likelihood
    from heed.text.readers import read_text

    for run in runs:
        run.require("language-model", "evaluate --text")
    lines = [line for line in read_text(text) if line.strip()]
    return [_entry(run, evaluate_likelihood(likelihood(run.translator, lines))) for run in runs]


def _entry(run: Run, scores: list[Score]) -> dict[str, Any]:
    return {"run": str(run.folder), "synthetic": run.recipe.data.synthetic, "scores": scores}


def _translations(
    runs: list[Run], src: Path, ref: Path, said: dict[str, int | float | None], tokenised: bool, out: Path | None
) -> list[dict[str, Any]]:
    from heed.metrics.translation import evaluate_translations
    from heed.text.readers import read_lines

    for run in runs:
        run.require("translation", "evaluate --src")
    sources, references = list(read_lines(src)), list(read_lines(ref))
    if len(sources) != len(references):
        raise DataError(f"{src} has {len(sources):,} lines and {ref} {len(references):,}: they must be parallel.")
    language = runs[0].recipe.data.tgt_lang or None
    results: list[dict[str, Any]] = []
    baseline: list[str] = []
    for run in runs:
        options = search_options(run.recipe.decoding, said)
        outputs = [hypothesis.text for hypothesis in run.translator.translate(sources, options)]
        entry = _entry(run, evaluate_translations(outputs, references, language, tokenised=tokenised))
        if results:
            entry["against_first"] = _paired(baseline, outputs, references, language, tokenised)
        else:
            baseline = outputs
        results.append(entry)
    if out is not None:
        _write(out, baseline)
    return results


def _paired(
    baseline: list[str], outputs: list[str], references: list[str], language: str | None, tokenised: bool
) -> dict[str, Any]:
    from heed.metrics.translation import paired_bootstrap

    tests = {}
    for name in ("bleu", "chrf"):
        delta, p_value = paired_bootstrap(name, baseline, outputs, references, language=language, tokenised=tokenised)
        tests[name] = {"difference": delta, "p_value": p_value}
    return tests


def _write(path: Path, lines: list[str]) -> None:
    from heed.core.files import atomic_write, storage_errors

    with storage_errors("write the translations", path=path), atomic_write(path, "w") as file:
        file.writelines(line + "\n" for line in lines)


def _print(results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([{**r, "scores": [s.to_json() for s in r["scores"]]} for r in results], ensure_ascii=False))
        return
    for result in results:
        print(result["run"] + ("  (synthetic data)" if result["synthetic"] else ""))
        for score in result["scores"]:
            print("  " + score.render())
        for name, test in result.get("against_first", {}).items():
            tested = f"paired bootstrap, p = {test['p_value']:.3f}"
            print(f"  {name} against the first: {test['difference']:+.2f} ({tested})")
