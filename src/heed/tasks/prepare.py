"""Preparation of a corpus for training: held-out rows, tokenizers, and the token store.

The corpus is streamed once for the tokenizers and once for the store. Whether a row is held out depends on a hash of
its source text, so equal sources are never split between training and validation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from heed.core.allocator import give_memory_back
from heed.core.errors import DataError
from heed.core.own_files import own_folder
from heed.core.progress import message
from heed.core.run_files import RunFiles
from heed.data.line_hashes import LineHasher, LineHashes
from heed.data.store import TRAIN, TokenStore, write_store
from heed.data.validation import VALID, Row
from heed.metrics.word_frequency import WordCounts
from heed.tasks.data import DataConfig
from heed.text.hashing import hash_text
from heed.text.readers import FileFingerprint, fingerprint_file, read_text
from heed.text.tokenizers import Tokenizer, TokenizerConfig, save_in_run, train_tokenizer

T = TypeVar("T")
_CHUNK = 4096
MAX_SUBWORD_ROWS = 500_000
"""Maximum number of rows that subwords are learned from: a trainer takes about 1.2 KB for each distinct word.

For pairs with 14 words per side and 32,000 pieces, these are 440 words per piece. With 130 words per piece, 8,000
pieces split unseen text into only 0.03 % (Tatoeba, English and French) to 0.2 % (WikiText-2) more tokens than with
twice that.
"""

LINES_SEEN, WORDS_SEEN = "data/hashes", "data/words.json"
"""Files of a run folder: hashes of the training rows, and counts of the training words."""
CORPUS, DIAGNOSIS = "data/corpus.json", "data/diagnosis.txt"
"""Further files: facts about the training data, and the data doctor's diagnosis."""


@dataclass(frozen=True)
class Corpus:
    """Facts about the training data, stored in the run folder and printed in the report."""

    num_rows: int
    num_valid: int
    dropped: Mapping[str, int]
    files: Mapping[str, object]
    valid_files: Mapping[str, object] = field(default_factory=dict)
    """Empty if validation data was held out."""
    num_repeated: int = 0
    """Number of rows that are repetitions."""
    init: str = ""
    """Name of the run whose weights training starts from; empty for random weights."""
    init_parts: str = "all"
    """The parts of these weights: "all", "encoder" or "embeddings"."""
    init_backward: str = ""
    """Name of the backward language model whose weights an encoder has besides; empty for none."""
    tokenizer_of: str = ""
    """Name of the run whose tokenizers are used; empty for new ones."""
    is_student: bool = False
    """Whether it learns from teachers, at the rate of a training that begins with random weights."""
    num_by_part: Sequence[int] = ()
    """Number of distinct training pairs in each part of a parallel corpus."""
    characters_per_row: float = 0.0
    """Mean number of characters of the longer side of a sentence pair; 0 if it was not counted."""
    expected_quality: str = ""
    """The score that was expected before the training, with its spread; empty if it was not known."""


def read_rows(data: DataConfig, path: str, keep_blank_lines: bool = False) -> Iterator[Row]:
    """The normalised lines of a text, without blank ones unless these are kept."""
    lines = (data.normaliser.apply(line) for line in read_text(data.resolve(path), data.errors))
    return ((line,) for line in lines if keep_blank_lines or line.strip())


def is_held_out(text: str, num_rows: int, hold_out: int, seed: int) -> bool:
    """Whether a text is held out, which a share `hold_out / num_rows` of all texts is."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little") < (1 << 64) * hold_out // max(num_rows, 1)


def split_rows(rows: Iterable[Row], num_rows: int, hold_out: int, seed: int, held: bool) -> Iterator[Row]:
    """The held-out rows, or the others. Raises DataError if too few would remain for training."""
    require_enough(num_rows, hold_out)
    return (row for row in rows if is_held_out(row[0], num_rows, hold_out, seed) == held)


def split_end(rows: Iterable[Row], num_rows: int, hold_out: int, held: bool) -> Iterator[Row]:
    """The last `hold_out` rows, or the others: for a continuous text.

    Raises DataError if too few would remain for training.
    """
    require_enough(num_rows, hold_out)
    last: deque[Row] = deque()
    for row in rows:
        last.append(row)
        if len(last) > hold_out:
            first = last.popleft()
            if not held:
                yield first
    if held:
        yield from last


def require_enough(num_rows: int, hold_out: int) -> None:
    """Raise DataError if more than half of the rows would be held out."""
    if 2 * hold_out > num_rows:
        raise DataError(
            f"data.hold_out = {hold_out:,} would hold out more than half of the {num_rows:,} rows. "
            "Lower it, or give separate validation data with the flags that begin with --valid."
        )


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """The first row with each source."""
    seen: set[str] = set()
    for row in rows:
        if row[0] not in seen:
            seen.add(row[0])
            yield row


def chunks(items: Iterable[T], size: int = _CHUNK) -> Iterator[list[T]]:
    """Lists of at most `size` items."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def sampled(rows: Iterable[Row], num_rows: int, most: int) -> Iterator[Row]:
    """Sample at most `most` of `num_rows` rows: one of each group of neighbours, by a hash of the group's number.

    It does not depend on the seed, so that runs with different seeds share a vocabulary and can be combined.
    """
    size = -(-num_rows // most)
    for number, group in enumerate(chunks(rows, size)):
        index = hash_text(str(number)) % size
        yield from group[index : index + 1]


def train_tokenizers(
    config: TokenizerConfig, sides: Sequence[str], all_rows: Callable[[], Iterable[Row]], num_rows: int, folder: Path,
    tags: Sequence[str] = (), quiet: bool = True,
) -> dict[str, Tokenizer]:  # fmt: skip
    """Train a tokenizer for each side, or a joint one, and write it into the run folder.

    The tags are added to the first side. `all_rows` returns a new iterator at each call, so that the corpus need not be
    in memory. Subwords of a large corpus are learned from a sample (`MAX_SUBWORD_ROWS`); words and characters are
    counted in the whole corpus.
    """
    samples = config.kind in ("bpe", "unigram", "sentencepiece", "wordpiece") and num_rows > MAX_SUBWORD_ROWS
    if samples:
        sample = f"a sample of {MAX_SUBWORD_ROWS:,} of the {num_rows:,} rows, which is enough"
        message(f"the tokenizer learns its subwords from {sample}", quiet)

    def rows() -> Iterable[Row]:
        return sampled(all_rows(), num_rows, MAX_SUBWORD_ROWS) if samples else all_rows()

    if config.joint or len(sides) == 1:
        tokenizer = train_tokenizer(config, (text for row in rows() for text in row), tags)
        save_in_run(tokenizer, RunFiles(folder), "tokenizer.json")
        give_memory_back()
        return dict.fromkeys(sides, tokenizer)
    tokenizers: dict[str, Tokenizer] = {}
    for index, side in enumerate(sides):
        tokenizers[side] = train_tokenizer(config, (row[index] for row in rows()), () if index else tags)
        save_in_run(tokenizers[side], RunFiles(folder), f"tokenizer.{side}.json")
        give_memory_back()
    return tokenizers


def encode_rows(
    rows: Iterable[Row], tokenizers: Sequence[Tokenizer], max_tokens: int, dropped: Counter[str], seen: SeenRows
) -> Iterator[tuple[list[int], ...]]:
    """The ids of each row; rows with an empty or too long side are dropped and counted, the others added to `seen`."""
    for chunk in chunks(rows):
        columns = [tokenizer.encode([row[index] for row in chunk]) for index, tokenizer in enumerate(tokenizers)]
        for row, *ids in zip(chunk, *columns, strict=True):
            if any(len(side) == 0 for side in ids):
                dropped["no tokens"] += 1
            elif any(len(side) > max_tokens for side in ids):
                dropped[f"longer than {max_tokens} tokens (data.max_tokens)"] += 1
            else:
                seen.add(row)
                yield tuple(ids)


class SeenRows:
    """Record of the training rows in the run folder: hashes of the rows and, for pairs, counts of the target words."""

    def __init__(self, folder: Path, words: WordCounts | None = None) -> None:
        self.folder = folder
        self._lines = LineHasher(folder)
        self._words = words

    def add(self, row: Row) -> None:
        """Add a training row."""
        self._lines.add(row)
        if self._words is not None:
            self._words.add(row[-1])

    def write(self) -> None:
        """Write the record."""
        files = RunFiles(self.folder)
        self._lines.write(files, LINES_SEEN)
        if self._words is not None:
            self._words.write(files, WORDS_SEEN)


def copy_seen(run: Path, folder: Path) -> None:
    """Copy the validation rows and the record of the training rows to a folder with weights made from the run's."""
    theirs, ours = RunFiles(run), RunFiles(folder)
    hashes = [f"{LINES_SEEN}/{path.name}" for path in sorted((run / LINES_SEEN).glob("*.npy"))]
    for name in (VALID, *hashes, WORDS_SEEN):
        if theirs.has(name):
            theirs.copy(name, ours)


def add_seen(folder: Path, init: Path) -> None:
    """Add the training rows of the run `init` to those of a fine-tuned run; without a record of them, delete both.

    A run of texts that begins from a translator has seen both sides of its pairs: the encoder read one, and was
    trained to predict the other.
    """
    ours, theirs = RunFiles(folder), RunFiles(init)
    lines, lines_before = LineHashes.open(ours, LINES_SEEN), LineHashes.open(theirs, LINES_SEEN)
    if lines is not None and lines_before is not None:
        lines.united(lines_before.as_read_by(lines)).write(ours, LINES_SEEN)
    else:
        ours.remove(LINES_SEEN)
    words, words_before = WordCounts.read(ours, WORDS_SEEN), WordCounts.read(theirs, WORDS_SEEN)
    if words is not None and words_before is not None and words.tokenizer == words_before.tokenizer:
        WordCounts(words.tokenizer, words.counts + words_before.counts).write(ours, WORDS_SEEN)
    else:
        ours.remove(WORDS_SEEN)


def write_tokens(
    folder: Path, sides: Sequence[str], rows: Iterable[tuple[list[int], ...]], tokenizers: Mapping[str, Tokenizer],
    files: Mapping[str, FileFingerprint], other_sizes: Mapping[str, int] = {},
) -> TokenStore:  # fmt: skip
    """Write the token store `data/train` of a run, with fingerprints of its files and vocabularies.

    `other_sizes`: the number of values of each column that is not text.
    """
    vocab_sizes = [other_sizes[side] if side in other_sizes else len(tokenizers[side].vocabulary) for side in sides]
    fingerprint: dict[str, Any] = {"files": {name: dict(file) for name, file in files.items()}}
    fingerprint |= vocabulary_digests({side: tokenizers[side] for side in sides if side not in other_sizes})
    store = write_store(folder / TRAIN, sides, rows, vocab_sizes, fingerprint)
    require_trainable(store)
    return store


def require_trainable(store: TokenStore) -> None:
    """Raise DataError if no training data is left."""
    if len(store) == 0:
        raise DataError("no training data is left after filtering. `heed data check` on the files shows why.")


def open_tokens(folder: Path, verify: bool = False) -> TokenStore:
    """The token store of a run folder. Raises what `TokenStore.open` raises, and DataError where a link leads to it."""
    return TokenStore.open(own_folder(folder, TRAIN), verify)


def vocabulary_digests(tokenizers: Mapping[str, Tokenizer]) -> dict[str, str]:
    """Fingerprint of the vocabulary of each side, which identifies the ids and weights that belong to it."""
    return {f"vocabulary_{side}": tokenizer.vocabulary.sha256 for side, tokenizer in tokenizers.items()}


def finish(
    data: DataConfig, key: str, seen: SeenRows, num_rows: int, num_valid: int, dropped: Mapping[str, int],
    files: Mapping[str, FileFingerprint],
) -> Corpus:  # fmt: skip
    """Write the record of the training rows and the facts about the data, and return these.

    `files`: those of training. The validation file is that of `data.valid_KEY`.
    """
    seen.write()
    corpus = Corpus(num_rows, num_valid, dict(dropped), files, fingerprints(data, f"valid_{key}"))
    write_corpus(seen.folder, corpus)
    return corpus


def fingerprints(data: DataConfig, key: str) -> dict[str, FileFingerprint]:
    """The fingerprint of the file of a key, under the key without `valid_`; empty if it names none."""
    path = getattr(data, key)
    return {key.removeprefix("valid_"): fingerprint_file(data.resolve(path))} if path else {}


def write_corpus(folder: Path, corpus: Corpus) -> None:
    """Write `data/corpus.json`."""
    with RunFiles(folder).write(CORPUS, "w") as file:
        json.dump(asdict(corpus), file, ensure_ascii=False, indent=1)


def short_enough(valid: Sequence[Row], tokenizers: Sequence[Tokenizer], most: int, quiet: bool = True) -> list[Row]:
    """The validation rows with at most `most` tokens on each side; the number of others is reported.

    The sides are the first ones, as many as there are tokenizers. Raises DataError if all rows are too long.
    """
    sides = zip(*valid, strict=True)
    fits = [
        [len(ids) <= most for ids in tokenizer.encode(texts)]
        for tokenizer, texts in zip(tokenizers, sides, strict=False)
    ]
    short = [row for row, *fit in zip(valid, *fits, strict=bool(valid)) if all(fit)]
    if valid and not short:
        raise DataError(
            f"all {len(valid):,} validation lines have more than {most:,} tokens. Split them into sentences."
        )
    if num_dropped := len(valid) - len(short):
        message(f"left out of validation: {num_dropped:,} (more than {most:,} tokens)", quiet)
    return short


def limit_valid(rows: Iterable[Row], most_rows: int, most_characters: int, quiet: bool = True) -> list[Row]:
    """At most `most_rows` validation pairs with distinct sources, each at most `most_characters` long.

    The numbers of others are reported. Raises DataError if all pairs are too long.
    """
    too_long = f"longer than {most_characters:,} characters (data.filter.max_characters)"
    valid: dict[str, Row] = {}
    dropped: Counter[str] = Counter()
    for row in rows:
        if max(map(len, row)) > most_characters:
            dropped[too_long] += 1
        elif row[0] in valid:
            dropped["repeated source"] += 1
        else:
            valid[row[0]] = row
            if len(valid) == most_rows:
                break
    if dropped and not valid:
        number = dropped.total()
        raise DataError(
            f"all {number:,} validation pairs are {too_long}. Split them into sentences, or raise the limit."
        )
    for reason, count in dropped.items():
        message(f"left out of validation: {count:,} ({reason})", quiet)
    return [*valid.values()]
