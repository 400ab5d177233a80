"""Phrase tables in the text format of Moses.

    a man ||| ein Mann ||| 0.5 0.25 0.4 0.2 ||| 0-0 1-1 ||| 5 4 2

A line has a source and a target phrase, the probabilities of `TABLE_FEATURES` in this order, the links between their
words, and the counts of the target phrase, the source phrase and the pair. Words are written without the space before
them. Of the two forms of a word, with and without it, the likelier one in the language model is meant; the other one is
marked by JOINED if it has no space, by SPACED if it has one. Moses' escapes of special characters are used.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from heed.core.errors import DataError
from heed.statistical.phrases.phrase_ids import PhraseTree, number_phrases
from heed.statistical.phrases.table import MOST_LINKED, MOST_OCCURRENCES, NUM_ORIENTATIONS, TABLE_FEATURES, PhraseTable
from heed.statistical.predictor import Floats, Ints, starts

SEPARATOR = " ||| "
_NUM_PARTS = 5
"""Those of a line that are read."""
JOINED, SPACED = "\uffed", "\uffee"
_ESCAPED = str.maketrans({
    "&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class WordForms:
    """The tokens of V words as words of a table, and back."""

    texts: Sequence[str]
    """[V]: each token as text, with the space before it; empty for what no table can have."""
    log_probs: Floats
    """[V]: how likely each is; decides between two forms."""

    @cached_property
    def id_of(self) -> dict[str, int]:
        """The token of each text."""
        return {text: id for id, text in enumerate(self.texts) if text.strip() and " " not in text.strip()}

    @cached_property
    def words(self) -> list[str]:
        """[V]: each token as it is written; empty for what cannot be."""
        return [self._word(id, text) if self.id_of.get(text) == id else "" for id, text in enumerate(self.texts)]

    def _word(self, id: int, text: str) -> str:
        bare = text.strip().translate(_ESCAPED)
        if self.id(bare) == id:
            return bare
        return (SPACED if text.startswith(" ") else JOINED) + bare

    def id(self, word: str) -> int | None:
        """The token that a word means; None if the vocabulary does not have it."""
        mark, bare = (word[0], word[1:]) if word[:1] in (JOINED, SPACED) else ("", word)
        text = html.unescape(bare)
        forms = [self.id_of.get(f" {text}"), self.id_of.get(text)]
        if mark:
            return forms[mark == JOINED]
        known = [form for form in forms if form is not None]
        return max(known, key=lambda form: self.log_probs[form], default=None)


def table_lines(table: PhraseTable, forms: WordForms) -> Iterator[str]:
    """The lines of a table, sorted by source phrase. Pairs with a word that cannot be written are left out."""
    of_target = np.bincount(table.tgt_nodes, table.counts).astype(np.int64)
    of_source = np.bincount(table.src_nodes, table.counts).astype(np.int64)
    words = forms.words
    for row in range(len(table)):
        src_node, tgt_node = int(table.src_nodes[row]), int(table.tgt_nodes[row])
        target_ids = table.target(tgt_node)
        source = [words[id] for id in table.sources.words(src_node)]
        target = [words[id] for id in target_ids]
        if not all(source) or not all(target):
            continue
        scores = " ".join(f"{math.exp(value):.7g}" for value in table.features[row].tolist())
        links = " ".join(f"{i}-{j}" for i, j in table.links_of(row, len(target)))
        counts = f"{of_target[tgt_node]} {of_source[src_node]} {table.counts[row]}"
        yield SEPARATOR.join([" ".join(source), " ".join(target), scores, links, counts])


@dataclass
class _Rows:
    """The rows of a table as it is read."""

    sources: list[tuple[int, ...]]
    targets: list[tuple[int, ...]]
    features: list[list[float]]
    links: list[int]
    counts: list[int]
    pairs: set[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=set)


def read_table(lines: Iterable[str], forms: WordForms, name: str) -> tuple[PhraseTable, int]:
    """A table from its lines, and the number of pairs left out because the vocabulary lacks a word.

    Orientations, which Moses keeps in another file, are equally likely. Raises DataError for another format.
    """
    rows = _Rows([], [], [], [], [])
    num_unknown = 0
    for number, line in enumerate(lines, start=1):
        try:
            num_unknown += not _add(line, forms, rows)
        except ValueError as error:
            raise DataError(
                f"{name}:{number}: not a line of a phrase table: {error}, in {line!r:.80}. Expected source ||| target "
                f"||| four probabilities above 0 ||| links ||| counts, with phrases of at most {MOST_LINKED} words."
            ) from error
    if not rows.sources:
        raise DataError(f"{name} has no phrase pair with words of the run's vocabulary.")
    return _table(rows, len(forms.texts)), num_unknown


def _add(line: str, forms: WordForms, rows: _Rows) -> bool:
    """Add a line; returns whether the vocabulary has all its words. Raises ValueError for another format."""
    source, target, scores, links, counts, *_ = (*(part.strip() for part in line.split("|||")), *[""] * _NUM_PARTS)
    ids = [[forms.id(word) for word in side.split()] for side in (source, target)]
    if not all(0 < len(side) <= MOST_LINKED for side in ids):
        raise ValueError(f"phrases of {len(ids[0])} and {len(ids[1])} words")
    features = [math.log(_number(score)) for score in scores.split()[: len(TABLE_FEATURES)]]
    if len(features) != len(TABLE_FEATURES):
        raise ValueError(f"{len(features)} probabilities")
    linked = [_link(link, len(ids[0]), len(ids[1])) for link in links.split()]
    count = max(1, round(_number(counts.split()[2], may_be_0=True))) if len(counts.split()) > 2 else 1
    if count > MOST_OCCURRENCES:
        raise ValueError(f"the pair's count is {count:.3g}, and at most {MOST_OCCURRENCES:,} is allowed")
    known = [tuple(id for id in side if id is not None) for side in ids]
    if list(map(len, known)) != list(map(len, ids)):
        return False
    if (known[0], known[1]) in rows.pairs:
        raise ValueError("a pair of phrases that an earlier line has")
    rows.pairs.add((known[0], known[1]))
    rows.sources.append(known[0])
    rows.targets.append(known[1])
    rows.features.append(features)
    rows.links.append(sum({1 << (MOST_LINKED * i + j) for i, j in linked}))
    rows.counts.append(count)
    return True


def _number(text: str, may_be_0: bool = False) -> float:
    """A finite number above 0. Raises ValueError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < math.inf or (may_be_0 and value == 0)):
        raise ValueError(f"{text!r:.20} is not a number {'of at least' if may_be_0 else 'above'} 0")
    return value


def _link(text: str, num_src: int, num_tgt: int) -> tuple[int, int]:
    """A link such as 0-1. Raises ValueError for another form, and for one that leads out of the phrases."""
    link = re.fullmatch(r"(\d)-(\d)", text, re.ASCII)
    if link is None or int(link[1]) >= num_src or int(link[2]) >= num_tgt:
        raise ValueError(f"{text!r:.20} is not a link i-j between {num_src} and {num_tgt} words counted from 0")
    return int(link[1]), int(link[2])


def _table(rows: _Rows, num_words: int) -> PhraseTable:
    sources, src_nodes = _numbered(rows.sources, num_words)
    targets, tgt_nodes = _numbered(rows.targets, num_words)
    order = np.lexsort([tgt_nodes, src_nodes])
    same = np.full((len(order), 2 * NUM_ORIENTATIONS), -math.log(NUM_ORIENTATIONS), dtype=np.float32)
    return PhraseTable(
        sources, targets, starts(np.bincount(src_nodes, minlength=len(sources))), tgt_nodes[order],
        np.array(rows.features, dtype=np.float32)[order], same, np.array(rows.links, dtype=np.int64)[order],
        np.array(rows.counts, dtype=np.int64)[order],
    )  # fmt: skip


def _numbered(phrases: Sequence[tuple[int, ...]], num_words: int) -> tuple[PhraseTree, Ints]:
    bounds = starts(np.array([len(phrase) for phrase in phrases]))
    words = np.array([id for phrase in phrases for id in phrase], dtype=np.int64)
    return number_phrases(words, bounds[:-1], bounds[1:], num_words)
