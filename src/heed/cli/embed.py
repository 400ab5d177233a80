"""`heed embed` and `heed neighbours`: vectors of texts, and the words nearest to a word."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.cli.cluster import ClusterFlags, refuse_with_ray
from heed.cli.options import BadBytes, Compute, Json, Quiet, RunFolder
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.tasks.predictor import Predictor

PoolingKind = Literal["mean", "max", "first", "last"]


def embed(
    *,
    run: RunFolder,
    pooling: Annotated[
        PoolingKind, typer.Option(help="A text's vector: mean, max, first or last of its tokens' vectors.")
    ] = "mean",
    per_token: Annotated[
        bool, typer.Option("--per-token", help="JSON lines with the tokens of each text and their vectors.")
    ] = False,
    cluster: ClusterFlags,
    errors: BadBytes = "strict",
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Compute a vector for each line of stdin.

    Writes a float32 array in NumPy's format (.npy), one row per line, in order. The vectors come from the known words
    of a line, for word vectors (their mean; zeros if there are none); from the encoder, for translators and masked
    language models; from the features after each token, for language models; and from the encoder below the head, for
    classifiers and taggers. With --ray, the vectors of a corpus are written to Parquet files, in the column `vector`.

    Examples:

      heed embed runs/vectors < in.txt > vectors.npy

      heed embed runs/en-de --pooling max < in.txt > vectors.npy

      heed embed runs/gpt --per-token < in.txt > vectors.jsonl

      heed embed runs/vectors --ray --input 'corpus/*.parquet' --output vectors
    """
    if cluster.is_used:
        refuse_with_ray({"--per-token": per_token})
        folder = run.absolute()
        opening = partial(_open_corpus, folder, pooling)
        cluster.run("embed", opening, {"--pooling": pooling}, compute, [folder], errors, quiet)
        return
    from heed.cli.stdio import groups_as_they_come

    if per_token and pooling != "mean":
        raise UsageError("--per-token prints the vector of each token: leave out --pooling.")
    loaded = compute.load(run)
    loaded.require("embed")
    groups = groups_as_they_come(errors)
    if per_token:
        _write_tokens(loaded, groups)
    else:
        _write_array(loaded, groups, pooling)


def _open_corpus(run: Path, pooling: PoolingKind, compute: Compute) -> Callable[..., Mapping[str, Any]]:
    """What embeds the texts of a corpus in a worker."""
    import pyarrow

    loaded = compute.load(run)
    loaded.require("embed")
    size = loaded.embed("").shape[0]

    def embedded(texts: Sequence[str]) -> Mapping[str, Any]:
        vectors = loaded.embed(texts, pooling)
        return {"vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), size)}

    return embedded


def _write_array(predictor: Predictor, groups: Iterator[list[str]], pooling: PoolingKind) -> None:
    from heed.core.npy import NpyWriter

    with NpyWriter(sys.stdout.buffer, predictor.embed("").shape[0]) as array:
        for lines in groups:
            array.add(predictor.embed(lines, pooling))


def _write_tokens(predictor: Predictor, groups: Iterator[list[str]]) -> None:
    from heed.cli.stdio import flush, write_line

    for lines in groups:
        for line, found in zip(lines, predictor.token_vectors(lines), strict=True):
            vectors = [[float(f"{x:.7g}") for x in row] for row in found.vectors.tolist()]
            record = {"input": line, "tokens": list(found.tokens), "vectors": vectors}
            write_line(json.dumps(record, ensure_ascii=False))
        flush()


def neighbours(
    *,
    run: RunFolder,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words, or a sum: king - man + woman.")],
    top: Annotated[int, typer.Option(help="Number of neighbours.", min=1)] = 10,
    json_lines: Json = False,
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Print the words nearest to a word, by the cosine of their vectors.

    The words are those of the run's vocabulary; with a vocabulary of subwords, the pieces that are whole words.

    Examples:

      heed neighbours runs/vectors river

      heed neighbours runs/vectors --top 3 king - man + woman
    """
    from heed.cli.stdio import write_line
    from heed.tasks.embedding import expressions

    loaded = compute.load(run)
    loaded.require("embed", "neighbours")
    queries = expressions(words)
    for number, query in enumerate(queries):
        nearest = loaded.neighbours(str(query), top)
        if json_lines:
            found = [{"word": word, "cosine": round(cosine, 6)} for word, cosine in nearest]
            write_line(json.dumps({"query": str(query), "neighbours": found}, ensure_ascii=False))
            continue
        if len(queries) > 1:
            write_line(f"{'' if number == 0 else chr(10)}{query}")
        for word, cosine in nearest:
            write_line(f"{cosine:.3f}  {word}")
