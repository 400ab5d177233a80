"""`heed align`: links between the words of sentence pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from heed.cli.align_attention import Attention, attention_links, require_other_direction
from heed.cli.flags import flags_given
from heed.cli.options import BadBytes, OnBadBytes, Quiet, require_writable
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write, remove_folder, storage_errors
from heed.core.progress import message, warn
from heed.core.run_files import RECIPE, RunFiles

if TYPE_CHECKING:
    from heed.statistical.alignment.smoothing import Smoothing
    from heed.statistical.alignment.training import AlignerPair, Direction, Iteration
    from heed.text.readers.links import GoldLinks
    from heed.text.readers.tokenised import TokenisedPairs

SmoothingKind = Literal["none", "variational", "collapsed"]
Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final-and", "agreement"]
USUAL: Final = "grow-diag-final-and"
DRAWS = 1000
"""Bootstrap draws of the intervals."""
SHOWN = 10
"""Target words of a word's row in the lexical table."""


@dataclass(frozen=True)
class Estimation:
    """How an aligner is estimated, and where it is kept."""

    iterations: Annotated[
        int | None,
        typer.Option(
            help="Iterations of the aligner (default: 5; hmm 10; ibm3 to ibm5 and hmm_ibm3 3).", min=1, max=1000
        ),
    ] = None
    smoothing: Annotated[
        SmoothingKind | None,
        typer.Option(help="Smoothing of the lexical table: none, variational or collapsed (default).", metavar="KIND"),
    ] = None
    alpha: Annotated[
        float | None, typer.Option(help="Dirichlet prior of the smoothing (default: 0.005; variational 0.01).")
    ] = None
    out: Annotated[Path | None, typer.Option(help="Run folder to create.")] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False

    def require_place(self) -> None:
        """Raise UsageError unless a run can be written to --out."""
        from heed.statistical.alignment.run_folder import is_aligner_run

        if self.out is None or not self.out.exists():
            return
        if not self.overwrite:
            raise UsageError(f"--out {self.out} exists. Replace it with --overwrite, or name another folder.")
        if not is_aligner_run(self.out):
            raise UsageError(f"--out {self.out} is not the run of an aligner, so nothing was removed.")

    def chosen_smoothing(self) -> Smoothing:
        """The smoothing that was asked for. Raises UsageError for a prior that is not a number above 0."""
        from heed.statistical.alignment.smoothing import ALPHAS, NONE, Smoothing

        if self.alpha is not None and not 0 < self.alpha < math.inf:
            raise UsageError(f"--alpha must be a number above 0, got {self.alpha}; --smoothing none has no prior.")
        if self.smoothing == "none":
            if self.alpha is not None:
                raise UsageError("--smoothing none has no prior: leave out --alpha.")
            return NONE
        kind = self.smoothing or "collapsed"
        return Smoothing(kind, ALPHAS[kind] if self.alpha is None else self.alpha)


def align(
    *,
    model: Annotated[
        str,
        typer.Argument(
            metavar="KIND|RUN",
            help="ibm1 to ibm5, diagonal, hmm or hmm_ibm3, or a run folder of an aligner or translator.",
        ),
    ],
    src: Annotated[Path | None, typer.Option(help="Source text, a tokenised sentence per line.")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target text, line by line its translation.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Links to compare with: i-j sure, i?j possible.")] = None,
    symmetrise: Annotated[
        Symmetrisation | None, typer.Option(help="Align in both directions and combine them.", metavar="HOW")
    ] = None,
    estimation: Estimation,
    attention: Attention,
    lexicon: Annotated[str | None, typer.Option(metavar="WORD", help="Show the translations of a word.")] = None,
    dictionary: Annotated[
        Path | None, typer.Option(metavar="F", help="Write linked words and their shares, for heed translate.")
    ] = None,
    page: Annotated[Path | None, typer.Option(metavar="F", help="Draw the first pairs in an HTML page.")] = None,
    errors: BadBytes = "strict",
    quiet: Quiet = False,
) -> None:
    """Link the words of sentence pairs.

    With a KIND, an aligner is estimated from the pairs and links them; --out keeps it as a run folder, which can align
    other text. Prints a line for each pair: `0-0 1-2` links the first words, and the second source word with the third
    target word. Words are separated by spaces and compared in lower case. The RUN of a translator links them by its
    attention.

    Examples:

      heed align diagonal --src a.en --tgt a.de --symmetrise grow-diag-final-and > links

      heed align hmm --src a.en --tgt a.de --symmetrise grow-diag --out runs/links > links

      heed align runs/links --src test.en --tgt test.de --gold test.gold > links

      heed align runs/links --lexicon house

      heed align diagonal --src a.en --tgt a.de --dictionary en-de.tsv > links
    """
    from heed.statistical.alignment import ALIGNERS
    from heed.statistical.alignment.run_folder import is_aligner_run
    from heed.text.readers.links import read_links, render_links

    require_writable(page, "--page")
    require_writable(dictionary, "--dictionary")
    estimation.require_place()
    is_trained = model not in ALIGNERS
    by_attention = is_trained and not is_aligner_run(Path(model)) and RunFiles(Path(model)).has(RECIPE)
    _require_fitting(model, is_trained, by_attention, estimation, attention, symmetrise)
    if lexicon is not None:
        texts = {"--src": src, "--tgt": tgt, "--symmetrise": symmetrise} if is_trained else {}
        _require_alone(by_attention, model, {**texts, "--gold": gold, "--dictionary": dictionary, "--page": page})
    trained = _open(model, symmetrise) if is_trained and not by_attention else None
    if trained is not None and lexicon is not None:
        _show(trained, lexicon)
        return
    if src is None or tgt is None:
        raise UsageError("give both texts: --src F --tgt F.")
    pairs = _read(src, tgt, errors)
    made = None if gold is None else list(read_links(gold, pairs.lengths, errors))
    if by_attention:
        links = attention_links(Path(model), pairs, attention, symmetrise or USUAL, made, quiet)
        lines = [*map(render_links, links)]
    else:
        _warn_of_long(pairs, quiet)
        trained = trained or _train(model, pairs, symmetrise, estimation, quiet)
        if lexicon is not None:
            _show(trained, lexicon)
            return
        lines = _lines(trained, pairs, symmetrise)
    _output(lines, made)
    if dictionary is not None:
        _write_dictionary(dictionary, pairs, lines)
    if page is not None:
        _draw(page, pairs, lines, made, quiet)


def _require_fitting(
    model: str, is_trained: bool, by_attention: bool, estimation: Estimation, attention: Attention,
    symmetrise: str | None,
) -> None:  # fmt: skip
    """Raise UsageError for flags of training with a run, for those of attention without a translator, and for a
    symmetrisation without a translator for the other direction."""
    if is_trained and (given := flags_given(estimation)):
        raise UsageError(f"{given[0]} is for training; {model} is trained already.")
    if not by_attention and (given := flags_given(attention)):
        raise UsageError(f"{given[0]} is for the runs of translators.")
    if by_attention:
        require_other_direction(attention, symmetrise)


def _require_alone(by_attention: bool, model: str, others: Mapping[str, object]) -> None:
    """Raise UsageError for `--lexicon` of a translator, or with an option that links are printed for."""
    if by_attention:
        raise UsageError(f"--lexicon needs an aligner, which has a table of words; {model} is a translator.")
    if given := [flag for flag, value in others.items() if value is not None]:
        raise UsageError(f"--lexicon shows the translations of a word in place of links: leave out {given[0]}.")


def _warn_of_long(pairs: TokenisedPairs, quiet: bool) -> None:
    """Say how many pairs are left out because of their length."""
    from heed.statistical.alignment.pairs import MAX_WORDS

    if num := sum(max(lengths) > MAX_WORDS for lengths in pairs.lengths):
        warn(
            f"left out, without links: {num:,} of {len(pairs.sources):,} pairs, which have more than {MAX_WORDS:,} "
            "words on a side. Split them into sentences.",
            quiet,
        )


def _lines(trained: AlignerPair, pairs: TokenisedPairs, symmetrise: str | None) -> list[str]:
    """The links of the pairs; a run of both directions combines them unless it is asked otherwise."""
    from heed.statistical.alignment.pairs import SentencePairs
    from heed.text.readers.links import render_links

    how = symmetrise or (USUAL if len(trained.aligners) > 1 else None)
    numbered = trained.own or SentencePairs.of(*pairs, trained.src_words, trained.tgt_words)
    lines = [""] * len(numbered)
    for row, links in trained.each_links(numbered, how):
        lines[row] = render_links(links)
    return lines


def _read(src: Path, tgt: Path, errors: OnBadBytes) -> TokenisedPairs:
    from heed.text.readers.tokenised import read_tokenised

    return read_tokenised(src, tgt, errors)


def _train(
    kind: str, pairs: TokenisedPairs, symmetrise: str | None, estimation: Estimation, quiet: bool
) -> AlignerPair:
    """Estimate an aligner, and write its run folder."""
    from heed.statistical.alignment.run_folder import AlignerFacts, write_run
    from heed.statistical.alignment.training import train_pair

    last: dict[Direction, float] = {}

    def report(done: Iteration) -> None:
        last[done.direction] = done.log_likelihood / done.num_targets
        step = f"{done.direction}, {done.aligner}, iteration {done.number}"
        message(f"{step}: log-likelihood per target word {last[done.direction]:.4f}", quiet)

    smoothing, both = estimation.chosen_smoothing(), symmetrise is not None
    trained = train_pair(kind, *pairs, estimation.iterations, smoothing, both, report, lowercase=True)
    if (out := estimation.out) is not None:
        facts = AlignerFacts(
            kind=kind, smoothing=smoothing.kind, alpha=smoothing.alpha, num_pairs=len(pairs.sources),
            log_likelihood_per_word=last, directions=list(trained.aligners),
        )  # fmt: skip
        estimation.require_place()  # the training took time
        if out.exists():
            remove_folder(out)
        write_run(out, trained, facts)
        message(f"{out}: use it with `heed align {out} --src F --tgt F`.", quiet)
    return trained


def _open(model: str, symmetrise: str | None) -> AlignerPair:
    from heed.statistical.alignment import ALIGNERS
    from heed.statistical.alignment.run_folder import is_aligner_run, read_run

    if not is_aligner_run(Path(model)):
        raise UsageError(
            f"{model} is neither a run folder of an aligner or a translator, nor an aligner ({', '.join(ALIGNERS)})."
        )
    trained = read_run(Path(model)).trained
    if symmetrise is not None and len(trained.aligners) < 2:
        raise UsageError(f"{model} aligns in one direction; train it again with --symmetrise {symmetrise}.")
    return trained


def _show(trained: AlignerPair, word: str) -> None:
    """Print the likeliest translations of a word in each direction that knows it."""
    from heed.cli.stdio import write_line

    lines = trained.translations(word.lower(), SHOWN)
    if not lines:
        raise DataError(f"{word!r} is not a word of the training text.")
    for direction, target, prob in lines:
        write_line(f"{direction}\t{target}\t{prob:.4f}")


def _output(lines: list[str], gold: list[GoldLinks] | None) -> None:
    """Print the links and, on stderr, the scores against links that people made."""
    from heed.cli.stdio import write_line
    from heed.metrics.alignment import LINK_METRICS
    from heed.text.readers.links import render_gold

    for line in lines:
        write_line(line)
    if gold is not None:
        references = [render_gold(each) for each in gold]
        for metric in LINK_METRICS:
            message(metric().score(lines, references, intervals=DRAWS).render())


def _write_dictionary(path: Path, pairs: TokenisedPairs, lines: list[str]) -> None:
    """Write the words that are linked, each pair once with its share of the source word's links."""
    from heed.text.archives import open_text_output
    from heed.text.readers.dictionary import dictionary_lines
    from heed.text.readers.links import parse_links

    linked = (
        (src[i], tgt[j])
        for src, tgt, line in zip(pairs.sources, pairs.targets, lines, strict=True)
        for i, j in parse_links(line).possible
    )
    with storage_errors("write the dictionary", path=path), open_text_output(path) as file:
        file.writelines(f"{line}\n" for line in dictionary_lines(linked))


def _draw(page: Path, pairs: TokenisedPairs, lines: list[str], gold: list[GoldLinks] | None, quiet: bool) -> None:
    """Write the page of grids."""
    from heed.inspect.alignment_page import render_alignments
    from heed.text.readers.links import parse_links

    links = [parse_links(line).possible for line in lines]
    with storage_errors("write the page", path=page), atomic_write(page, "w") as file:
        file.write(render_alignments(pairs, links, gold))
    message(f"{page}: open it in a browser.", quiet)
