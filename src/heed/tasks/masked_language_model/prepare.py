"""Preparation of the text of a masked language model: held-out lines, tokenizer with a mask, and encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from heed.core.progress import watched
from heed.data.masking import equal_parts
from heed.data.next_sentence import BEGINS
from heed.data.validation import Row, write_valid
from heed.tasks import prepare
from heed.tasks.masked_language_model.data import MaskedTextData
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import UNK_ID

SIDES = ("src",)
MASK = "mask"
"""Name of the tag that stands for a masked piece: no text becomes it."""


def prepare_text(
    recipe: Any, folder: Path, num_lines: int, reuse: Mapping[str, Tokenizer] | None, quiet: bool
) -> prepare.Corpus:
    """Hold out validation lines, train a tokenizer (or `reuse` one) and encode, into the run folder."""
    data: MaskedTextData = recipe.data

    def rows(held: bool, title: str, dropped: Counter[str]) -> Iterator[Row]:
        lines = watched(_lines_of(data, data.text), title, "lines", quiet)
        if data.valid_text:
            lines_of_pairs = _lines_of(data, data.valid_text)
            if not held:
                return lines
            return _of_pairs(lines_of_pairs, lambda text: True, True, dropped) if data.next_sentence else lines_of_pairs
        if not data.next_sentence:
            return prepare.split_rows(lines, num_lines, data.num_held_out, recipe.seed, held)
        prepare.require_enough(num_lines, data.num_held_out)
        number = data.num_held_out // 2  # each with its next line
        return _of_pairs(lines, lambda text: prepare.is_held_out(text, num_lines, number, recipe.seed), held, dropped)

    if data.next_sentence:
        pairs = islice(prepare.distinct(rows(True, "holding out", Counter())), data.max_valid // 2)
        valid: list[Row] = [(text,) for pair in pairs for text in pair]
    else:
        valid = [*islice(prepare.distinct(rows(True, "holding out", Counter())), data.max_valid)]
    write_valid(folder, valid)

    def texts() -> Iterator[Row]:
        return (row[:1] for row in rows(False, "reading for the tokenizer", Counter()))

    tokenizers = reuse or prepare.train_tokenizers(recipe.tokenizer, SIDES, texts, num_lines, folder, (MASK,), quiet)
    dropped: Counter[str] = Counter()
    seen = prepare.SeenRows(folder)
    ids = _encoded(rows(False, "encoding", dropped), tokenizers["src"], most_tokens(data), dropped, seen)
    files = prepare.fingerprints(data, "text")
    if data.next_sentence:
        store = prepare.write_tokens(folder, (*SIDES, BEGINS), ids, tokenizers, files, {BEGINS: 2})
    else:
        store = prepare.write_tokens(folder, SIDES, (row[:1] for row in ids), tokenizers, files)
    return prepare.finish(data, "text", seen, len(store), len(valid), dropped, files)


def most_tokens(data: MaskedTextData) -> int:
    """Most tokens of a text: two of a pair have an end between them."""
    return max(1, (data.max_tokens - 1) // 2) if data.next_sentence else data.max_tokens


def _lines_of(data: MaskedTextData, path: str) -> Iterator[Row]:
    """The lines of a text that are not blank; for next sentences each with the line that follows it, or ""."""
    if not data.next_sentence:
        return prepare.read_rows(data, path)
    lines = (line for (line,) in prepare.read_rows(data, path, keep_blank_lines=True))
    followed = pairwise(chain(lines, [""]))
    return ((line, following if following.strip() else "") for line, following in followed if line.strip())


def _of_pairs(
    rows: Iterable[Row], is_held_out: Callable[[str], bool], held: bool, dropped: Counter[str]
) -> Iterator[Row]:
    """The held-out lines, each with its next line, of which none is in two pairs; or all other lines.

    Held-out lines that none follows are left out of both, and counted.
    """
    is_second = False
    for row in rows:
        is_first = not is_second and is_held_out(row[0])
        if is_first and not row[-1]:
            dropped["chosen for validation, but without a next line"] += 1
        elif is_first == held and not is_second:
            yield row
        is_second = is_first and bool(row[-1])


def _encoded(
    rows: Iterable[Row], tokenizer: Tokenizer, most: int, dropped: Counter[str], seen: prepare.SeenRows
) -> Iterator[tuple[list[int], list[int]]]:
    """The parts of each line with at most `most` tokens, and whether each does not follow the one before it.

    Lines without known pieces are dropped and counted.
    """
    awaited = ""
    for chunk in prepare.chunks(rows):
        for row, ids in zip(chunk, tokenizer.encode([row[0] for row in chunk]), strict=True):
            seen.add(row[:1])
            begins = int(row[0] != awaited)
            for part in cut(ids, most):
                if any(id != UNK_ID for id in part):
                    yield list(part), [begins]
                    begins = 0
                else:
                    dropped["no known tokens"] += 1
                    begins = 1
            awaited = "" if begins else row[-1]


def cut(ids: Sequence[int], most: int) -> list[Sequence[int]]:
    """A line as equal parts of at most `most` tokens."""
    return [ids[begin:end] for begin, end in equal_parts(len(ids), most)]
