"""`heed score`: log-probabilities of texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.cluster import ClusterFlags, refuse_with_ray
from heed.cli.options import BadBytes, Compute, Json, Quiet, RunFolder, Tag, warn_if_not_usable
from heed.core.errors import DataError, UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.decoding.scoring import TokenScores
    from heed.run import Run


def score(
    *,
    run: RunFolder,
    src: Annotated[Path | None, typer.Option(help="Source of each line, for a translation run.")] = None,
    tag: Tag = None,
    json_lines: Json = False,
    cluster: ClusterFlags,
    src_column: Annotated[str | None, typer.Option(help="With --ray: the column of the sources.")] = None,
    errors: BadBytes = "strict",
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Print the log-probability (in nats) of each line of stdin.

    Perplexities and bits per byte of the whole text go to stderr. A language model reads the lines as in training:
    each separately, or all as one text. With --ray, a corpus is scored into Parquet files, which get the columns
    `log_prob` and `num_tokens`.

    Examples:

      heed score runs/bigram < text.txt

      heed score runs/en-de --src in.en < out.de

      heed score runs/en-de --ray --input 'pairs/*.parquet' --column de --src-column en --output scored
    """
    if cluster.is_used:
        refuse_with_ray({"--src": src, "--json": json_lines})
        folder = run.absolute()
        opening = partial(_open_corpus, folder, tag, src_column is not None)
        columns = [] if src_column is None else [src_column]
        cluster.run("score", opening, {"--tag": tag}, compute, [folder], errors, quiet, columns)
        return
    if src_column is not None:
        raise UsageError("--src-column needs --ray.")
    from heed.cli.stdio import flush, groups_as_they_come, write_line
    from heed.decoding.scoring import prefix_of
    from heed.metrics import score_likelihoods
    from heed.metrics.likelihood import TextLikelihood
    from heed.tasks.generation import likelihoods_of
    from heed.text.readers import read_lines

    loaded = compute.load(run, tag=tag, engine="torch")
    loaded.require("score")
    if loaded.can("translate") != (src is not None):
        raise UsageError(f"--src is for translation runs, and {run} is not one." if src else f"{run} needs --src F.")
    warn_if_not_usable(loaded, quiet)
    sources = None if src is None else read_lines(src, errors)
    scorer = loaded.scorer() if src is None else None
    num_lines = 0
    total = TextLikelihood()
    for lines in groups_as_they_come(errors):
        if scorer is not None:
            scored = scorer.score(lines)
            tokens, likelihoods = scored.token_scores(), scored.likelihoods()
        else:
            own = None if sources is None else _sources_of(sources, lines, num_lines, src)
            tokens = loaded.translator.score(lines, own)
            likelihoods = likelihoods_of(lines, tokens)
        num_lines += len(lines)
        total = sum(likelihoods, start=total)
        for line, scores in zip(lines, tokens, strict=True):
            write_line(_record(loaded.run, line, scores) if json_lines else f"{scores.log_prob:.4f}")
        flush()
    if sources is not None and (more := sum(1 for _ in sources)):
        raise DataError(f"{src} has {num_lines + more:,} lines, stdin has {num_lines:,}. They must be parallel.")
    if num_lines:
        how = scorer.signature if scorer else ""
        for measure in score_likelihoods([total], intervals=0, how=how, prefix=prefix_of(how)).values():
            message(measure.render(), quiet)


def _open_corpus(run: Path, tag: str | None, has_sources: bool, compute: Compute) -> Callable[..., Mapping[str, Any]]:
    """What scores the texts of a corpus in a worker."""
    import pyarrow

    loaded = compute.load(run, tag=tag, engine="torch")
    loaded.require("score")
    if loaded.can("translate") != has_sources:
        needs = "needs --src-column NAME" if loaded.can("translate") else "has no sources: leave out --src-column"
        raise UsageError(f"{run} {needs}.")
    if not has_sources and getattr(loaded.run.recipe.data, "text_as", "lines") != "lines":
        raise UsageError(f"{run} reads all lines as one text, which cannot be scored in parts: leave out --ray.")

    def scored(texts: Sequence[str], sources: Sequence[str] | None = None) -> Mapping[str, Any]:
        tokens = loaded.score(texts, sources)
        return {
            "log_prob": pyarrow.array([each.log_prob for each in tokens], pyarrow.float64()),
            "num_tokens": pyarrow.array([len(each.ids) for each in tokens], pyarrow.int64()),
        }

    return scored


def _sources_of(sources: Iterator[str], lines: list[str], num_before: int, src: Path | None) -> list[str]:
    """The next sources, one for each line."""
    own = list(islice(sources, len(lines)))
    if len(own) < len(lines):
        raise DataError(f"{src} has {num_before + len(own):,} lines, stdin has more. They must be parallel.")
    return own


def _record(run: Run, line: str, tokens: TokenScores) -> str:
    pieces = run.tokenizers[run.sides[-1]].pieces(tokens.ids)
    parts = [{"piece": piece, "log_prob": lp} for piece, lp in zip(pieces, tokens.log_probs, strict=True)]
    return json.dumps({"text": line, "log_prob": tokens.log_prob, "tokens": parts}, ensure_ascii=False)
