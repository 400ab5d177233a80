"""`heed score`: how likely does a model find a text?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.options import BadBytes, Debug, Device, Json, Precision, Quiet, RunFolder, Tag, Threads, use_threads
from heed.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from heed.decoding.scoring import TokenScores
    from heed.run import Run


def score(
    run: RunFolder,
    src: Annotated[Path | None, typer.Option(help="The source of each line, for a translation run.")] = None,
    tag: Tag = None,
    json_lines: Json = False,
    errors: BadBytes = "strict",
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Log-probability (nats) of each line of stdin; on stderr the perplexities and bits per byte of all of them.

    A language model reads the lines as it did in training: each alone, or all as one text.

    Examples:

      heed score runs/bigram < text.txt

      heed score runs/en-de --src in.en < out.de
    """
    import heed
    from heed.cli.stdio import flush, groups_as_they_come, write_line
    from heed.core.progress import message
    from heed.metrics.likelihood import TextLikelihood
    from heed.metrics.scoring import score_likelihoods
    from heed.tasks.generation import likelihoods_of
    from heed.text.readers import read_lines

    use_threads(threads)
    loaded = heed.load(run, device, precision, tag=tag)
    opened = loaded.run
    if loaded.can("translate") != (src is not None):
        raise UsageError("--src is for translation runs." if src else "a translation run needs --src F.")
    sources = None if src is None else read_lines(src, errors)
    scorer = loaded.scorer() if src is None else None
    num_lines = 0
    total = TextLikelihood()
    for lines in groups_as_they_come(errors):
        if scorer is not None:
            scored = scorer.score(lines)
            tokens, likelihoods = scored.token_scores(), scored.likelihoods()
        else:
            given = None if sources is None else _as_many(sources, lines, num_lines, src)
            tokens = opened.predictor.translator.score(lines, given)
            likelihoods = likelihoods_of(lines, tokens)
        num_lines += len(lines)
        total = sum(likelihoods, start=total)
        for line, found in zip(lines, tokens, strict=True):
            write_line(_record(opened, line, found) if json_lines else f"{found.log_prob:.4f}")
        flush()
    if sources is not None and (more := sum(1 for _ in sources)):
        raise DataError(f"{src} has {num_lines + more:,} lines, stdin {num_lines:,}: they must be parallel.")
    if num_lines:
        for measure in score_likelihoods([total], intervals=0, how=scorer.signature if scorer else "").values():
            message(measure.render(), quiet)


def _as_many(sources: Iterator[str], lines: list[str], num_before: int, src: Path | None) -> list[str]:
    """The next sources, one for each line."""
    found = list(islice(sources, len(lines)))
    if len(found) < len(lines):
        raise DataError(f"{src} has {num_before + len(found):,} lines, stdin has more: they must be parallel.")
    return found


def _record(run: Run, line: str, tokens: TokenScores) -> str:
    pieces = run.tokenizers["tgt"].pieces(tokens.ids)
    parts = [{"piece": piece, "log_prob": lp} for piece, lp in zip(pieces, tokens.log_probs, strict=True)]
    return json.dumps({"text": line, "log_prob": tokens.log_prob, "tokens": parts}, ensure_ascii=False)
