"""`heed align RUN` of a translator: links from its attention, by forced decoding in one direction or in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.core.errors import UsageError
from heed.core.progress import Progress, message

if TYPE_CHECKING:
    from heed.statistical.alignment.pairs import Links
    from heed.text.readers.links import GoldLinks
    from heed.text.readers.tokenised import TokenisedPairs

SHOWN = 5
"""Heads that `--heads` lists."""


@dataclass(frozen=True)
class Attention:
    """Which attention of translators is read."""

    reverse: Annotated[
        Path | None, typer.Option(metavar="RUN", help="A translator for the opposite direction, to link in both.")
    ] = None
    head: Annotated[
        str | None, typer.Option(metavar="B.H", help="Block and head to read (default: the mean of the upper half).")
    ] = None
    reverse_head: Annotated[str | None, typer.Option(metavar="B.H", help="The same for --reverse.")] = None
    heads: Annotated[bool, typer.Option("--heads", help="Compare the heads with --gold, on development data.")] = False


def require_other_direction(attention: Attention, symmetrise: str | None) -> None:
    """Raise UsageError for options of a translator for the opposite direction, which was not given."""
    flag = "--symmetrise" if symmetrise is not None else "--reverse-head" if attention.reverse_head is not None else ""
    if attention.reverse is None and flag:
        raise UsageError(f"{flag} needs a translator for the opposite direction: name it with --reverse RUN.")


def attention_links(
    run: Path, pairs: TokenisedPairs, attention: Attention, symmetrise: str, gold: Sequence[GoldLinks] | None,
    quiet: bool,
) -> list[Links]:  # fmt: skip
    """The links of the pairs by one translator, or by two symmetrised."""
    from heed.statistical.alignment.symmetrise import AGREEMENT, SYMMETRISATIONS

    if symmetrise == AGREEMENT:
        raise UsageError("--symmetrise agreement needs the posteriors of an aligner; a translator has links only.")
    if attention.heads and gold is None:
        raise UsageError("--heads compares heads with links that people made: give them with --gold F.")
    words = list(zip(pairs.sources, pairs.targets, strict=True))
    forward = _links_of(run, words, attention.head, gold if attention.heads else None, quiet)
    if attention.reverse is None:
        return forward
    turned = [(tgt, src) for src, tgt in words]
    turned_gold = None if gold is None or not attention.heads else [_turned(each) for each in gold]
    backward = _links_of(attention.reverse, turned, attention.reverse_head, turned_gold, quiet)
    both = zip(forward, backward, strict=True)
    return [SYMMETRISATIONS[symmetrise](ours, frozenset((i, j) for j, i in theirs)) for ours, theirs in both]


def _links_of(
    run: Path,
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
    head: str | None,
    gold: Sequence[GoldLinks] | None,
    quiet: bool,
) -> list[Links]:
    """The links of the words of each pair by one translator; with `gold`, the best heads are listed."""
    import heed
    from heed.inference.alignment import head_links, word_links

    loaded = heed.load(run)
    loaded.require("translate", "heed align")
    if loaded.can("derive"):
        raise UsageError(
            f"{run} has no attention: it links its own translations only (`heed translate {run} --alignment`). Link "
            "other pairs with an aligner, such as `heed align hmm --src F --tgt F`."
        )
    translator = loaded.translator
    chosen = None if head is None else _parsed(head)
    by_head: list[dict[tuple[int, int], Links]] = []
    links: list[Links] = []
    with Progress(len(pairs), "pairs", "aligning", quiet) as progress:
        for done, pair in enumerate(pairs, start=1):
            source, target = (" ".join(words) for words in pair)
            owners = tuple(_owners(words, translator.normaliser.apply) for words in pair)
            found_by_head = {} if chosen is None and gold is None else head_links(translator, source, target)
            of_heads = {place: _renumbered(found, *owners) for place, found in found_by_head.items()}
            if chosen is not None and chosen not in of_heads:
                blocks, heads = (max(place[part] for place in of_heads) for part in (0, 1))
                sizes = (f"{each} {name}{'s' * (each > 1)}" for each, name in ((blocks, "block"), (heads, "head")))
                raise UsageError(f"{run} has {' of '.join(sizes)} in its decoder; got {head}.")
            links.append(
                _renumbered(word_links(translator, source, target), *owners) if chosen is None else of_heads[chosen]
            )
            by_head.append(of_heads)
            progress.update(done)
    if gold is not None:
        _list_heads(run, by_head, gold)
    return links


def _owners(words: Sequence[str], normalise: Callable[[str], str]) -> list[int]:
    """The word to which each word of a translator belongs, for which every white space ends one, no-break ones too."""
    return [number for number, word in enumerate(words) for _ in normalise(word).split()]


def _renumbered(links: Iterable[tuple[int, int]], src_owners: Sequence[int], tgt_owners: Sequence[int]) -> Links:
    return frozenset((src_owners[i], tgt_owners[j]) for i, j in links)


def _parsed(head: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d{0,3})\.([1-9]\d{0,3})", head, re.ASCII)
    if match is None:
        raise UsageError(f"--head takes a block and a head, counted from 1, such as 3.2; got {head!r}.")
    return int(match[1]), int(match[2])


def _list_heads(run: Path, by_head: Sequence[dict[tuple[int, int], Links]], gold: Sequence[GoldLinks]) -> None:
    """Write the alignment error rates of the best heads to stderr."""
    from heed.metrics.alignment import AlignmentErrorRate
    from heed.text.readers.links import render_gold, render_links

    references = [render_gold(each) for each in gold]
    rates = {
        place: AlignmentErrorRate().score([render_links(pair[place]) for pair in by_head], references).value
        for place in by_head[0]
    }
    for (block, head), rate in sorted(rates.items(), key=lambda item: item[1])[:SHOWN]:
        message(f"{run}, head {block}.{head}: AER {rate:.2f}")


def _turned(gold: GoldLinks) -> GoldLinks:
    """The links of the other direction."""
    return type(gold)(*(frozenset((j, i) for i, j in links) for links in gold))
