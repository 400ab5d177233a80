"""Preparation of a text for word vectors: held-out lines, vocabulary, and encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from heed.core.progress import watched
from heed.data.validation import Row, read_valid, write_valid
from heed.tasks import prepare
from heed.tasks.word_vectors.data import WordText
from heed.text.tokenizers import Tokenizer, TokenizerConfig

SIDES = ("tgt",)


def prepare_words(
    data: WordText, tokenizer: TokenizerConfig, seed: int, folder: Path, num_lines: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> prepare.Corpus:  # fmt: skip
    """Hold out validation lines, count the vocabulary (or `reuse` one) and encode, into the run folder."""

    def rows(held: bool, title: str) -> Iterator[Row]:
        if held and data.valid_text:
            return prepare.read_rows(data, data.valid_text)
        lines = watched(prepare.read_rows(data, data.text), title, "lines", quiet)
        return lines if data.valid_text else prepare.split_rows(lines, num_lines, data.num_held_out, seed, held)

    write_valid(folder, [*islice(prepare.distinct(rows(True, "holding out")), data.max_valid)])
    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, lambda: rows(False, "counting words"), num_lines, folder, quiet=quiet
    )
    dropped, seen = Counter[str](), prepare.SeenRows(folder)
    ids = prepare.encode_rows(rows(False, "encoding"), [tokenizers["tgt"]], data.max_tokens, dropped, seen)
    files = prepare.fingerprints(data, "text")
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    return prepare.finish(data, "text", seen, len(store), len(read_valid(folder)), dropped, files)
