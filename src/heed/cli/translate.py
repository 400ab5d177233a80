"""`heed translate`: lines from stdin to lines on stdout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import (
    BadBytes,
    Debug,
    Device,
    Json,
    Precision,
    Quiet,
    RunFolder,
    Seed,
    Threads,
    search_options,
)  # fmt: skip
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import SearchOptions
    from heed.run import Run


def translate(
    run: RunFolder,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy (default: the recipe's).", min=1)] = None,
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.", min=0)] = None,
    nbest: Annotated[int | None, typer.Option(help="Hypotheses for each line, in the form of Moses.", min=1)] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of search.")] = False,
    temperature: Annotated[float | None, typer.Option(help="With --sample: sharper below 1.")] = None,
    top_k: Annotated[int | None, typer.Option(help="With --sample: only the k likeliest tokens.", min=0)] = None,
    top_p: Annotated[float | None, typer.Option(help="With --sample: the likeliest tokens of this share.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Log-probability and a tab before each line.")] = False,
    alignment: Annotated[bool, typer.Option("--alignment", help="Word links (0-0 1-2) and a tab before it.")] = False,
    paragraphs: Annotated[bool, typer.Option("--paragraphs", help="Translate the sentences of a line apart.")] = False,
    errors: BadBytes = "strict",
    batch_size: Annotated[int | None, typer.Option(help="Lines at once; never changes the text.", min=1)] = None,
    precision: Precision = "float32",
    seed: Seed = None,
    json_lines: Json = False,
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate stdin to stdout: as many lines as came, in their order, as they come.

    --nbest prints `line ||| text ||| logprob= -1.23 ||| score`, a line for each hypothesis. --paragraphs puts the
    white space between sentences back as it was.

    Examples:

      heed translate runs/en-de < in.txt > out.txt

      echo "A dog runs." | heed translate runs/en-de --nbest 3
    """
    import heed
    from heed.cli.stdio import flush, groups_as_they_come, write_line

    if not sample and any(value is not None for value in (temperature, top_k, top_p)):
        raise UsageError("--temperature, --top-k and --top-p are about drawing: give --sample too.")
    opened = heed.load(run, device, threads, precision).run
    opened.require("translation", "translate")
    said = {
        "beam_size": beam, "length_penalty": length_penalty, "seed": seed, "nbest": nbest, "sample": sample or None,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "batch_size": batch_size,
    }  # fmt: skip
    options = search_options(opened.recipe.decoding, said)
    if options.nbest > 1 and (paragraphs or ((scores or alignment) and not json_lines)):
        raise UsageError("--nbest has a form of its own: it goes neither with --scores, --alignment nor --paragraphs.")
    number = 0
    for group in groups_as_they_come(errors):
        found = _paragraphs(opened, group, options) if paragraphs else opened.translator.translate(group, options)
        for line, hypothesis in zip(group, found, strict=True):
            if json_lines:
                write_line(json.dumps(_record(opened, line, hypothesis, alignment), ensure_ascii=False))
            elif options.nbest > 1:
                _write_nbest(number, hypothesis)
            else:
                write_line(_plain(opened, line, hypothesis, scores, alignment))
            number += 1
        flush()


def _paragraphs(run: Run, lines: list[str], options: SearchOptions) -> list[Hypothesis]:
    """Each line split into sentences, translated, and put back with the spaces it had."""
    from heed.decoding.hypothesis import Hypothesis
    from heed.text.sentences import restore, split_paragraph

    language = run.recipe.data.src_lang or None
    pieces = [split_paragraph(line, language) for line in lines]
    flat = [piece.text for parts in pieces for piece in parts if piece.is_sentence]
    found = iter(run.translator.translate(flat, options))
    out: list[Hypothesis] = []
    for parts in pieces:
        mine = [next(found) for piece in parts if piece.is_sentence]
        text = restore(parts, [hypothesis.text for hypothesis in mine])
        total = sum(hypothesis.log_prob for hypothesis in mine)
        out.append(Hypothesis((), total, sum(h.score for h in mine), finished=all(h.finished for h in mine), text=text))
    return out


def _plain(run: Run, line: str, best: Hypothesis, scores: bool, alignment: bool) -> str:
    prefix = f"{best.log_prob:.4f}\t" if scores else ""
    return prefix + (_pharaoh(run, line, best.text) + "\t" if alignment else "") + best.text


def _write_nbest(number: int, best: Hypothesis) -> None:
    from heed.cli.stdio import write_line

    for h in (best, *best.alternatives):
        write_line(f"{number} ||| {h.text} ||| logprob= {h.log_prob:.4f} ||| {h.score:.4f}")


def _record(run: Run, line: str, best: Hypothesis, alignment: bool) -> dict[str, Any]:
    from heed.text.vocabulary import Vocabulary

    ids = (*best.ids, Vocabulary.eos_id)[: len(best.token_log_probs)]  # what was cut off has no end
    pieces = run.tokenizers["tgt"].pieces(ids)
    record: dict[str, Any] = {
        "source": line, "translation": best.text, "log_prob": best.log_prob, "score": best.score,
        "finished": best.finished,
        "tokens": [{"piece": p, "log_prob": lp} for p, lp in zip(pieces, best.token_log_probs, strict=True)],
    }  # fmt: skip
    if best.alternatives:
        record["alternatives"] = [{"text": h.text, "log_prob": h.log_prob, "score": h.score} for h in best.alternatives]
    if alignment:
        record["alignment"] = _pharaoh(run, line, best.text)
    return record


def _pharaoh(run: Run, source: str, target: str) -> str:
    from heed.decoding.alignment import word_links

    return " ".join(f"{i}-{j}" for i, j in word_links(run.translator, source, target))
