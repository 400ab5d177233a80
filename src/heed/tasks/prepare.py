"""From a corpus to a prepared run: held-out lines, tokenizers, and the token store.

Everything is streamed: the corpus is read once for the tokenizers and once for the store. Which lines are held
out depends on their source text alone (a hash of it), so a sentence never stands on both sides of the split.
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

from heed.core.errors import DataError, MissingInputError
from heed.core.own_files import LARGE
from heed.core.progress import message
from heed.core.run_files import RunFiles
from heed.data.line_hashes import LineHasher, LineHashes
from heed.data.store import TokenStore, write_store
from heed.metrics.word_frequency import WordCounts
from heed.nn.device import give_memory_back
from heed.text.hashing import hash_text
from heed.text.readers import FileFingerprint
from heed.text.tokenizers import Tokenizer, TokenizerConfig, save_in_run, train_tokenizer

Row = tuple[str, ...]
T = TypeVar("T")
_CHUNK = 4096
MAX_SUBWORD_ROWS = 500_000
"""Rows that subwords are learned from at most: a trainer takes about 1.2 KB for every distinct word.

Pairs of 14 words a side give a vocabulary of 32,000 pieces 440 words a piece. With 130 a piece, subwords of 8,000
pieces cut unseen text into 0.03 % (Tatoeba, English and French) to 0.2 % (WikiText-2) more tokens than with twice that.
"""

VALID, LINES_SEEN, WORDS_SEEN = "data/valid.jsonl", "data/hashes", "data/words.json"
"""Where a run folder keeps its validation lines, the hashes of its training lines, and its training words."""
CORPUS, DIAGNOSIS = "data/corpus.json", "data/diagnosis.txt"
"""Where it keeps the facts of its corpus, and what the data doctor saw."""


@dataclass(frozen=True)
class Corpus:
    """What a run was trained on: kept in the run folder and printed in the report."""

    num_rows: int
    num_valid: int
    dropped: Mapping[str, int]
    files: Mapping[str, object]
    valid_files: Mapping[str, object] = field(default_factory=dict)
    """Empty where validation data was held out."""
    num_repeated: int = 0
    """Number of rows that are repetitions."""
    init: str = ""
    """Name of the run whose weights training started from; empty for fresh ones."""
    tokenizer_of: str = ""
    """Name of the run whose tokenizers were taken; empty for new ones."""
    num_by_part: Sequence[int] = ()
    """For each part of a parallel corpus, the number of distinct pairs that are trained on."""


def is_held_out(text: str, num_rows: int, hold_out: int, seed: int) -> bool:
    """Whether a line belongs to the held-out part: a share `hold_out / num_rows` of all texts."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little") < (1 << 64) * hold_out // max(num_rows, 1)


def split_rows(rows: Iterable[Row], num_rows: int, hold_out: int, seed: int, held: bool) -> Iterator[Row]:
    """The held-out rows, or the others. Raises DataError when too few would be left to train on."""
    require_enough(num_rows, hold_out)
    return (row for row in rows if is_held_out(row[0], num_rows, hold_out, seed) == held)


def split_end(rows: Iterable[Row], num_rows: int, hold_out: int, held: bool) -> Iterator[Row]:
    """The last `hold_out` rows, or those before: of a text in which one line follows from another.

    Raises DataError when too few would be left to train on.
    """
    require_enough(num_rows, hold_out)
    waiting: deque[Row] = deque()
    for row in rows:
        waiting.append(row)
        if len(waiting) > hold_out:
            first = waiting.popleft()
            if not held:
                yield first
    if held:
        yield from waiting


def require_enough(num_rows: int, hold_out: int) -> None:
    """Raise DataError when more would be held out than is left to train on."""
    if 2 * hold_out > num_rows:
        raise DataError(
            f"data.hold_out = {hold_out:,} would hold out more than half of the {num_rows:,} lines. "
            "Lower it, or give validation data of its own (--valid-src and --valid-tgt, or --valid-text)."
        )


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows whose first side was not seen before."""
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
    """At most `most` of so many rows: one of each group of neighbours, a hash of the group's number says which.

    The seed has no part in it, so that runs with other seeds have the same vocabulary and can be put together.
    """
    size = -(-num_rows // most)
    for number, group in enumerate(chunks(rows, size)):
        place = hash_text(str(number)) % size
        yield from group[place : place + 1]


def train_tokenizers(
    config: TokenizerConfig, sides: Sequence[str], all_rows: Callable[[], Iterable[Row]], num_rows: int, folder: Path,
    tags: Sequence[str] = (), quiet: bool = True,
) -> dict[str, Tokenizer]:  # fmt: skip
    """A tokenizer for each side, one for all where they are joint; written into the run folder.

    The first side's has the tags. `all_rows` gives the rows anew at each call, so that separate tokenizers need not
    keep the corpus in memory. Subwords of a large corpus are learned from a sample of it (`MAX_SUBWORD_ROWS`), which
    is told unless quiet; words and characters are counted in all of it.
    """
    samples = config.kind in ("bpe", "unigram") and num_rows > MAX_SUBWORD_ROWS
    if samples:
        said = f"a sample of {MAX_SUBWORD_ROWS:,} of the {num_rows:,} rows, which is enough"
        message(f"the tokenizer learns its subwords from {said}", quiet)

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
    rows: Iterable[Row], tokenizers: Sequence[Tokenizer], max_tokens: int, dropped: Counter[str], seen: Seen
) -> Iterator[tuple[list[int], ...]]:
    """The ids of each row; rows with an empty or an over-long side are dropped and counted, the others are `seen`."""
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


class Seen:
    """What a run remembers of the rows it is trained on: hashes of the lines and, of pairs, the target's words."""

    def __init__(self, folder: Path, words: WordCounts | None = None) -> None:
        """`folder`: the run's, whose disk has room."""
        self._folder = folder
        self._lines = LineHasher(folder)
        self._words = words

    def add(self, row: Row) -> None:
        """A row that is trained on."""
        self._lines.add(row)
        if self._words is not None:
            self._words.add(row[-1])

    def write(self) -> None:
        """Write them into the run folder."""
        files = RunFiles(self._folder)
        self._lines.write(files, LINES_SEEN)
        if self._words is not None:
            self._words.write(files, WORDS_SEEN)


def copy_what_was_seen(run: Path, folder: Path) -> None:
    """Give weights that were made from a run's what the run remembers of its data: they have seen no other."""
    theirs, ours = RunFiles(run), RunFiles(folder)
    hashes = [f"{LINES_SEEN}/{path.name}" for path in sorted((run / LINES_SEEN).glob("*.npy"))]
    for name in (VALID, *hashes, WORDS_SEEN):
        if theirs.has(name):
            theirs.copy(name, ours)


def add_seen(folder: Path, init: Path) -> None:
    """A model that is fine-tuned has seen what the run `init` was trained on too; where that is unknown, so is this."""
    ours, theirs = RunFiles(folder), RunFiles(init)
    lines, lines_before = LineHashes.open(ours, LINES_SEEN), LineHashes.open(theirs, LINES_SEEN)
    if lines is not None and lines_before is not None:
        lines.united(lines_before).write(ours, LINES_SEEN)
    else:
        ours.remove(LINES_SEEN)
    words, words_before = WordCounts.read(ours, WORDS_SEEN), WordCounts.read(theirs, WORDS_SEEN)
    if words is not None and words_before is not None and words.tokenizer == words_before.tokenizer:
        WordCounts(words.tokenizer, words.counts + words_before.counts).write(ours, WORDS_SEEN)
    else:
        ours.remove(WORDS_SEEN)


def write_tokens(
    folder: Path, sides: Sequence[str], rows: Iterable[tuple[list[int], ...]], tokenizers: Mapping[str, Tokenizer],
    files: Mapping[str, FileFingerprint],
) -> TokenStore:  # fmt: skip
    """The token store `data/train` of a run; it remembers the files and vocabularies that it was made with."""
    vocab_sizes = [len(tokenizers[side].vocabulary) for side in sides]
    fingerprint: dict[str, Any] = {"files": {part: dict(found) for part, found in files.items()}}
    fingerprint |= vocabulary_digests({side: tokenizers[side] for side in sides})
    store = write_store(folder / "data" / "train", sides, rows, vocab_sizes, fingerprint)
    if len(store) == 0:
        raise DataError("no training data is left after filtering. `heed data check` on the files tells why.")
    return store


def vocabulary_digests(tokenizers: Mapping[str, Tokenizer]) -> dict[str, str]:
    """A fingerprint of the vocabulary of each side: ids and weights made with one mean nothing with another."""
    return {f"vocabulary_{side}": tokenizer.vocabulary.sha256 for side, tokenizer in tokenizers.items()}


def write_valid(folder: Path, rows: Sequence[Row]) -> None:
    """The validation lines, kept with the run so that a resumed run validates on the same ones."""
    require_valid(rows)
    with RunFiles(folder).write(VALID, "w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def require_valid(rows: Sequence[Row]) -> None:
    """Raise DataError where there is nothing to validate on."""
    if not rows:
        raise DataError("no validation data. Give a file that has some (--valid-src and --valid-tgt, or --valid-text).")


RESTART = "Start again with --overwrite."


def read_valid(folder: Path) -> list[Row]:
    """What `write_valid` wrote. Raises DataError when it is damaged."""
    try:
        text = RunFiles(folder).read(VALID, LARGE, RESTART).decode()
        return [tuple(json.loads(line)) for line in text.split("\n") if line]
    except (MissingInputError, ValueError, TypeError) as error:
        raise DataError(f"{folder / VALID} is damaged or missing. {RESTART}") from error


def write_corpus(folder: Path, corpus: Corpus) -> None:
    """`data/corpus.json`: what the run was trained on."""
    with RunFiles(folder).write(CORPUS, "w") as file:
        json.dump(asdict(corpus), file, ensure_ascii=False, indent=1)


def readable(valid: Sequence[Row], tokenizers: Sequence[Tokenizer], most: int, quiet: bool = True) -> list[Row]:
    """The validation rows of at most so many tokens on each side; how many are left out is told unless quiet.

    Raises DataError when all of them are.
    """
    sides = zip(*valid, strict=True)
    fits = [
        [len(ids) <= most for ids in tokenizer.encode(texts)]
        for tokenizer, texts in zip(tokenizers, sides, strict=bool(valid))
    ]
    short = [row for row, *fit in zip(valid, *fits, strict=bool(valid)) if all(fit)]
    if valid and not short:
        raise DataError(f"all {len(valid):,} validation lines have more than {most:,} tokens. Cut them into sentences.")
    if left_out := len(valid) - len(short):
        message(f"left out of validation: {left_out:,} (more than {most:,} tokens)", quiet)
    return short


def cap_valid(rows: Iterable[Row], most_rows: int, most_characters: int, quiet: bool = True) -> list[Row]:
    """At most `most_rows` validation pairs with distinct sources, without those that are too long to be training pairs.

    How many are left out is told unless quiet. Raises DataError when all of them are.
    """
    too_long = f"longer than {most_characters:,} characters (data.filter.max_characters)"
    valid: dict[str, Row] = {}
    left_out: Counter[str] = Counter()
    for row in rows:
        if max(map(len, row)) > most_characters:
            left_out[too_long] += 1
        elif row[0] in valid:
            left_out["the source came before"] += 1
        else:
            valid[row[0]] = row
            if len(valid) == most_rows:
                break
    if left_out and not valid:
        number = left_out.total()
        raise DataError(f"all {number:,} validation pairs are {too_long}. Cut them into sentences, or raise the limit.")
    for reason, count in left_out.items():
        message(f"left out of validation: {count:,} ({reason})", quiet)
    return [*valid.values()]
