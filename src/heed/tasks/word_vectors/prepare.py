"""Preparation of a text for word vectors: held-out lines, vocabulary, and encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.validation import Row, read_valid, write_valid
from heed.tasks import prepare
from heed.tasks.word_vectors.data import WordText
from heed.text.readers import fingerprint_file, read_text
from heed.text.tokenizers import Tokenizer, TokenizerConfig

SIDES = ("tgt",)


def prepare_words(
    data: WordText, tokenizer: TokenizerConfig, seed: int, folder: Path, num_lines: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> prepare.Corpus:  # fmt: skip
    """Hold out validation lines, count the vocabulary (or `reuse` one) and encode, into the run folder."""
    if not data.text:
        raise UsageError("data.text is missing: give --text F.")

    def rows(held: bool, title: str) -> Iterator[Row]:
        if held and data.valid_text:
            return _lines(data, data.valid_text)
        lines = watched(_lines(data, data.text), title, "lines", quiet)
        return lines if data.valid_text else prepare.split_rows(lines, num_lines, data.num_held_out, seed, held)

    write_valid(folder, [*islice(prepare.distinct(rows(True, "holding out")), data.max_valid)])
    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, lambda: rows(False, "counting words"), num_lines, folder, quiet=quiet
    )
    dropped, seen = Counter[str](), prepare.SeenRows(folder)
    ids = prepare.encode_rows(rows(False, "encoding"), [tokenizers["tgt"]], data.max_tokens, dropped, seen)
    files = {"text": fingerprint_file(data.resolve(data.text))}
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    seen.write()
    valid_files = {"text": fingerprint_file(data.resolve(data.valid_text))} if data.valid_text else {}
    corpus = prepare.Corpus(len(store), len(read_valid(folder)), dict(dropped), files, valid_files)
    prepare.write_corpus(folder, corpus)
    return corpus


def _lines(data: WordText, path: str) -> Iterator[Row]:
    lines = (data.normaliser.apply(line) for line in read_text(data.resolve(path), data.errors))
    return ((line,) for line in lines if line.strip())
