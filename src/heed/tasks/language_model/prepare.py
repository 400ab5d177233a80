"""Preparation of a language model's text: held-out lines, tokenizer, and encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from heed.core.progress import watched
from heed.data.validation import Row, write_valid
from heed.decoding.scoring import MAX_SCORED_TOKENS
from heed.tasks import prepare
from heed.tasks.language_model.data import TextData
from heed.text.readers import fingerprint_file
from heed.text.tokenizers import SPELLED, Tokenizer, TokenizerConfig, encode_ended

SIDES = ("tgt",)


def prepare_language_model(
    data: TextData, tokenizer: TokenizerConfig, seed: int, folder: Path, num_lines: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> prepare.Corpus:  # fmt: skip
    """Hold out validation lines, train a tokenizer (or `reuse` one) and encode, into the run folder."""
    dropped: Counter[str] = Counter()
    read = partial(prepare.read_rows, data, keep_blank_lines=data.keep_blank_lines)

    def rows(held: bool, title: str) -> Iterator[Row]:
        lines = watched(read(data.text), title, "lines", quiet)
        if data.valid_text:
            return read(data.valid_text) if held else lines
        if data.text_as == "lines":
            return prepare.split_rows(lines, num_lines, data.num_held_out, seed, held)
        return prepare.split_end(lines, num_lines, data.num_held_out, held)

    held_out = rows(True, "holding out")
    if data.text_as == "lines" and not data.valid_text:  # equal lines are held out together
        held_out = prepare.distinct(held_out)
    valid = [*islice(held_out, data.max_valid)]

    def spelled() -> Iterator[Row]:
        of_training = not data.vocabulary_text
        lines = rows(False, "reading for the tokenizer") if of_training else read(data.vocabulary_text)
        return ((line + SPELLED[data.line_end],) for (line,) in lines)

    num_spelled = sum(1 for _ in read(data.vocabulary_text)) if data.vocabulary_text else num_lines
    tokenizers = reuse or prepare.train_tokenizers(tokenizer, SIDES, spelled, num_spelled, folder, quiet=quiet)
    if data.text_as == "lines":
        valid = prepare.short_enough(
            valid, [tokenizers["tgt"]], MAX_SCORED_TOKENS - 1, quiet
        )  # and the end of the line
    write_valid(folder, valid)
    seen = prepare.SeenRows(folder)
    ids = _encoded(rows(False, "encoding"), data.reading(tokenizers["tgt"]), data, dropped, seen)
    files = prepare.fingerprints(data, "text")
    if data.vocabulary_text:
        files["vocabulary"] = fingerprint_file(data.resolve(data.vocabulary_text))
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    return prepare.finish(data, "text", seen, len(store), len(valid), dropped, files)


def _encoded(
    rows: Iterable[Row], tokenizer: Tokenizer, data: TextData, dropped: Counter[str], seen: prepare.SeenRows
) -> Iterator[tuple[list[int], ...]]:
    """The ids of each line, in a stream or windows with its end."""
    if data.text_as == "lines":
        yield from prepare.encode_rows(rows, [tokenizer], data.max_tokens, dropped, seen)
        return
    for chunk in prepare.chunks(rows):
        for row in chunk:
            seen.add(row)
        yield from ((ids,) for ids in encode_ended(tokenizer, [line for (line,) in chunk], data.line_end))
