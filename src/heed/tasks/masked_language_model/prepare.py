"""Preparation of the text of a masked language model: held-out lines, tokenizer with a mask, and encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.masking import equal_parts
from heed.tasks import prepare
from heed.tasks.masked_language_model.data import MaskedTextData
from heed.text.readers import fingerprint_file, read_text
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

    def rows(held: bool, title: str) -> Iterator[prepare.Row]:
        lines = watched(_lines_of(data, data.text), title, "lines", quiet)
        if data.valid_text:
            return _lines_of(data, data.valid_text) if held else lines
        return prepare.split_rows(lines, num_lines, data.num_held_out, recipe.seed, held)

    valid = [*islice(prepare.distinct(rows(True, "holding out")), data.max_valid)]
    prepare.write_valid(folder, valid)
    tokenizers = reuse or prepare.train_tokenizers(
        recipe.tokenizer, SIDES, lambda: rows(False, "reading for the tokenizer"), num_lines, folder, (MASK,), quiet
    )
    dropped: Counter[str] = Counter()
    seen = prepare.SeenRows(folder)
    ids = _encoded(rows(False, "encoding"), tokenizers["src"], data.max_tokens, dropped, seen)
    files = {"text": fingerprint_file(data.resolve(data.text))}
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    seen.write()
    valid_files = {"text": fingerprint_file(data.resolve(data.valid_text))} if data.valid_text else {}
    corpus = prepare.Corpus(len(store), len(valid), dict(dropped), files, valid_files)
    prepare.write_corpus(folder, corpus)
    return corpus


def require_text(data: MaskedTextData) -> None:
    """Raise UsageError without a text."""
    if not data.text:
        raise UsageError("data.text is missing: give --text F.")


def _lines_of(data: MaskedTextData, path: str) -> Iterator[prepare.Row]:
    """The normalised lines of a text that are not blank."""
    lines = (data.normaliser.apply(line) for line in read_text(data.resolve(path), data.errors))
    return ((line,) for line in lines if line.strip())


def _encoded(
    rows: Iterable[prepare.Row], tokenizer: Tokenizer, most: int, dropped: Counter[str], seen: prepare.SeenRows
) -> Iterator[tuple[list[int], ...]]:
    """The parts of each line with at most `most` tokens; lines without known pieces are dropped and counted."""
    for chunk in prepare.chunks(rows):
        for row, ids in zip(chunk, tokenizer.encode([line for (line,) in chunk]), strict=True):
            seen.add(row)
            for part in cut(ids, most):
                if any(id != UNK_ID for id in part):
                    yield (list(part),)
                else:
                    dropped["no known tokens"] += 1


def cut(ids: Sequence[int], most: int) -> list[Sequence[int]]:
    """A line as equal parts of at most `most` tokens."""
    return [ids[begin:end] for begin, end in equal_parts(len(ids), most)]
