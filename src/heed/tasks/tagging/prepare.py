"""Preparation of tagged sentences: held-out sentences, labels, vocabulary of words, and the token store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from heed.core.progress import watched
from heed.core.run_files import RunFiles
from heed.data.store import write_store
from heed.data.validation import Row, write_valid
from heed.nn.word_source import FIRST_CHARACTER, NUM_CASES
from heed.tasks import prepare
from heed.tasks.tagging.data import TagData
from heed.tasks.tagging.labels import FIRST_MARK, TagLabels, collect_labels
from heed.tasks.words import COLUMNS, WordEncoder, Words, looked_up, normalised, num_singletons
from heed.text.readers.conll import TaggedSentence, layout_of
from heed.text.tag_schemes import SchemeCounts
from heed.text.tokenizers import Tokenizer, TokenizerConfig

SIDES = ("src",)


def row_of(sentence: TaggedSentence) -> Row:
    """A sentence as a row of text: its tokens, its tags and, if there are any, its marks, separated by blanks."""
    tokens = " ".join("_".join(token.split()) for token in sentence.tokens)
    marks = (" ".join(mark or "_" for mark in sentence.marks),) if sentence.marks else ()
    return tokens, " ".join(sentence.tags), *marks


def words_of(row: Row) -> Words:
    """The tokens and marks of a row that `row_of` made."""
    marks = ["" if mark == "_" else mark for mark in row[2].split(" ")] if len(row) > 2 else []
    return Words(row[0].split(" "), marks)


def prepare_tagging(
    data: TagData, tokenizer: TokenizerConfig, seed: int, folder: Path, num_rows: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> prepare.Corpus:  # fmt: skip
    """Hold out validation sentences, list the labels, train a tokenizer (or `reuse` one) and encode.

    Equal sentences are held out together.
    """

    def sentences(held: bool, title: str = "") -> Iterator[TaggedSentence]:
        if data.valid_conll:
            return data.read(data.valid_conll) if held else watched(data.read(data.conll), title, "sentences", quiet)
        read = watched(data.read(data.conll), title, "sentences", quiet)
        held_out = data.num_held_out
        return (s for s in read if prepare.is_held_out(row_of(s)[0], num_rows, held_out, seed) == held)

    valid = [row_of(sentence) for sentence in islice(sentences(True, "holding out"), data.max_valid)]
    write_valid(folder, valid)
    counts = SchemeCounts()
    for sentence in sentences(False):
        counts.add(sentence.tags)
    layout = layout_of(data.resolve(data.conll), data.columns, data.errors)
    labels = collect_labels(sentences(False), counts.scheme, data.inner_scheme(counts.scheme)).model_copy(
        update={"num_columns": layout.num_columns, "by_mark": layout.has_spans}
    )

    def lines() -> Iterator[Row]:
        for sentence in sentences(False, "reading for the tokenizer"):
            yield (" ".join(looked_up(normalised(token, data), data) for token in sentence.tokens),)

    tokenizers = reuse or prepare.train_tokenizers(tokenizer, SIDES, lines, num_rows, folder, quiet=quiet)
    words = tokenizers["src"]
    if tokenizer.kind == "word" and not reuse:  # the words of another vocabulary are not in the order of these counts
        labels = labels.model_copy(update={"num_singletons": num_singletons(words, lines())})
    labels.write(RunFiles(folder))
    seen, dropped = prepare.SeenRows(folder), Counter[str]()
    encoder = WordEncoder(data, words, labels)
    rows = _encoded(sentences(False, "encoding"), encoder, data.max_tokens, dropped, seen)
    files = prepare.fingerprints(data, "conll")
    store = _write_store(folder, rows, encoder, data.max_tokens, files)
    prepare.require_trainable(store)
    return prepare.finish(data, "conll", seen, len(store), len(valid), dropped, files)


def _encoded(
    sentences: Iterable[TaggedSentence], encoder: WordEncoder[TagLabels], max_tokens: int, dropped: Counter[str],
    seen: prepare.SeenRows,
) -> Iterator[tuple[list[int], ...]]:  # fmt: skip
    """The columns of each sentence, and its tags; sentences of too many pieces are dropped and counted."""
    ids, labels = encoder.labels.tag_ids, encoder.labels
    normalise = encoder.data.normaliser.apply
    for chunk in prepare.chunks(sentences):
        columns = encoder.columns([Words(sentence.tokens, sentence.marks) for sentence in chunk])
        for sentence, *of_words in zip(chunk, *(columns[name] for name in COLUMNS), strict=True):
            if len(of_words[0]) > max_tokens:
                dropped[f"longer than {max_tokens} tokens (data.max_tokens)"] += 1
                continue
            seen.add(tuple(map(normalise, row_of(sentence)[:2])))
            yield *of_words, [ids[tag] for tag in labels.of_file(sentence.tags)]


def _write_store(
    folder: Path,
    rows: Iterable[tuple[list[int], ...]],
    encoder: WordEncoder[TagLabels],
    max_tokens: int,
    files: Mapping[str, Any],
) -> Any:
    labels = encoder.labels
    sizes = {
        "src": len(encoder.tokenizer.vocabulary), "starts": max_tokens + 1,
        "chars": len(labels.characters) + FIRST_CHARACTER, "cases": NUM_CASES,
        "marks": len(labels.marks) + FIRST_MARK, "tags": len(labels.labels),
    }  # fmt: skip
    fingerprint: dict[str, Any] = {"files": {name: dict(file) for name, file in files.items()}}
    fingerprint |= prepare.vocabulary_digests({"src": encoder.tokenizer})
    return write_store(folder / "data" / "train", [*sizes], rows, [*sizes.values()], fingerprint)
