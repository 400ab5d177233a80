"""Preparation of a parallel corpus: filtering, held-out pairs, tokenizers, and encoding with tags."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.subword_dropout import SIDES
from heed.data.validation import Row, require_valid, write_valid
from heed.decoding.scoring import MAX_SCORED_TOKENS
from heed.metrics.translation import bleu_tokenizer
from heed.metrics.word_frequency import WordCounts
from heed.tasks import prepare
from heed.tasks.translation.data import Part, TranslationData, listed
from heed.text.pair_filter import PairFilter
from heed.text.readers import CorpusFiles, fingerprint, fingerprint_file, read_pairs, read_text
from heed.text.tokenizers import Tokenizer, TokenizerConfig

_MAX_VALID_TOKENS = MAX_SCORED_TOKENS - 10
"""Leaves room for the end of a sentence and the tag of a source."""


def normalised_pairs(data: TranslationData, files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """The normalised pairs of some files."""
    return ((data.normaliser.apply(src), data.normaliser.apply(tgt)) for src, tgt in read_pairs(files, data.errors))


def filtered_pairs(data: TranslationData, files: CorpusFiles, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """The normalised pairs that pass the filter; the others are counted by reason."""
    pair_filter = PairFilter(data.filter)
    for row in normalised_pairs(data, files):
        reason = pair_filter.reason_to_drop(*row)
        if reason is None:
            yield row
        else:
            dropped[reason] += 1


def target_lines(data: TranslationData, held: Container[str], dropped: Counter[str]) -> Iterator[tuple[int, str]]:
    """The normalised lines of text in the target language alone, with the numbers of their parts.

    Lines that are empty, too long, or in the validation data are left out, and counted by part and reason.
    """
    for number, path in data.target_texts().items():
        for line in map(data.normaliser.apply, read_text(path, data.errors)):
            if not line.strip():
                dropped[f"part {number}: empty"] += 1
            elif len(line) > data.filter.max_characters:
                dropped[f"part {number}: too long"] += 1
            elif line in held:
                dropped[f"part {number}: in the validation data"] += 1
            else:
                yield number, line


class TrainingPairs:
    """The training pairs of each part, without held-out ones. They can be read repeatedly."""

    def __init__(self, data: TranslationData, seed: int, num_pairs: int, quiet: bool) -> None:
        """`num_pairs`: number of pairs in the first part."""
        self.data = data
        self.seed = seed
        self.num_pairs = num_pairs
        self.quiet = quiet
        self.parts = data.train_parts()
        self.held: frozenset[str] = frozenset()
        """The sentences of both sides of the validation data, set once they are read."""

    def held_out(self) -> Iterator[Row]:
        """The validation pairs: from their own files, or held out of the first part."""
        if files := self.data.valid_files():
            return normalised_pairs(self.data, files)
        return self._split(self._kept(self.parts[0], Counter(), "holding out"), held=True)

    def of(self, part: Part, dropped: Counter[str], title: str) -> Iterator[Row]:
        """The training pairs of a part."""
        pairs = self._kept(part, dropped, title)
        if not self.data.valid_files():
            pairs = self._without_held(pairs if part.number else self._split(pairs, held=False), dropped)
        return self._drawn(pairs, part, dropped)

    def all(self, title: str) -> Iterator[Row]:
        """The training pairs of all parts, without repetitions."""
        return chain.from_iterable(self.of(part, Counter(), title) for part in self.parts)

    def target_lines(self, dropped: Counter[str]) -> Iterator[tuple[int, str]]:
        """The text in the target language alone, as `target_lines`."""
        return target_lines(self.data, self.held, dropped)

    def _kept(self, part: Part, dropped: Counter[str], title: str) -> Iterator[Row]:
        title += f" {part.label}" if part.number else ""
        return watched(filtered_pairs(self.data, part.files, dropped), title, "pairs", self.quiet)

    def _split(self, pairs: Iterable[Row], held: bool) -> Iterator[Row]:
        return prepare.split_rows(pairs, self.num_pairs, self.data.num_held_out, self.seed, held)

    def _drawn(self, pairs: Iterable[Row], part: Part, dropped: Counter[str]) -> Iterator[Row]:
        """A random share of the pairs. A pair has the same random number for every share."""
        rng = random.Random(f"{self.seed} {part.number}")
        for row in pairs:
            if rng.random() < self.data.share:
                yield row
            else:
                dropped["not in data.share"] += 1

    def _without_held(self, pairs: Iterable[Row], dropped: Counter[str]) -> Iterator[Row]:
        """Drop pairs with a held-out sentence: it may occur in another part, or have other translations."""
        for row in pairs:
            if not self.held.isdisjoint(row):
                dropped["held out for validation"] += 1
            else:
                yield row


def prepare_translation(
    data: TranslationData, tokenizer: TokenizerConfig, seed: int, folder: Path, num_pairs: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True, num_in_parts: int = 0, characters: float = 0.0,
    max_positions: int | None = None,
) -> prepare.Corpus:  # fmt: skip
    """Hold out validation pairs, train tokenizers (or `reuse` those of another run) and encode, into the run folder.

    `num_pairs`: number of pairs in the files of `data` itself; its further parts have `num_in_parts`. `characters`: the
    mean number of the longer side of a pair. `max_positions`: of the model, which no source may exceed.
    """
    most = None if max_positions is None else max_positions - bool(data.tags) - 1  # a tag and the end are read, too
    if most is not None:  # in a new recipe, data.max_tokens is no higher
        data = data.model_copy(update={"max_tokens": min(data.max_tokens, most)})
    pairs = TrainingPairs(data, seed, num_pairs, quiet)
    valid = prepare.limit_valid(pairs.held_out(), data.max_valid, data.filter.max_characters, quiet)
    require_valid(valid)
    pairs.held = frozenset(chain.from_iterable(valid))
    of_parts = [fingerprint(part.files) for part in pairs.parts]

    def text() -> Iterator[Row]:
        return chain(pairs.all("reading for the tokenizer"), ((line,) for _, line in pairs.target_lines(Counter())))

    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, text, num_pairs + num_in_parts, folder, data.tags, quiet
    )
    valid = prepare.short_enough(valid, [tokenizers["src"], tokenizers["tgt"]], _MAX_VALID_TOKENS, quiet)
    if most is not None:
        valid = prepare.short_enough(valid, [tokenizers["src"]], most, quiet)
    write_valid(folder, valid)
    seen = prepare.SeenRows(folder, WordCounts(bleu_tokenizer(data.tgt_lang or None, data.tokenised)))
    dropped = {part: Counter[str]() for part in pairs.parts}
    num_distinct = Counter[Part]()
    ids = (_encoded(pairs, part, tokenizers, dropped[part], seen, num_distinct) for part in pairs.parts)
    files = {
        f"{part.prefix}{side}": file
        for part, of_part in zip(pairs.parts, of_parts, strict=True)
        for side, file in of_part.items()
    }
    files |= {f"part_{number}.tgt": fingerprint_file(path) for number, path in data.target_texts().items()}
    store = prepare.write_tokens(folder, SIDES, chain.from_iterable(ids), tokenizers, files)
    num_lines, lines_dropped = Counter[int](), Counter[str]()
    for number, line in pairs.target_lines(lines_dropped):
        num_lines[number] += 1
        seen.add((line,))
    seen.write()
    valid_files = data.valid_files()
    valid_fingerprint = fingerprint(valid_files) if valid_files else {}
    num_repeated = len(store) - num_distinct.total()
    num_by_number = num_lines + Counter({part.number: number for part, number in num_distinct.items()})
    corpus = prepare.Corpus(
        len(store), len(valid), _by_reason(dropped) | lines_dropped, files, valid_fingerprint, num_repeated,
        num_by_part=[num_by_number[number] for number, _ in enumerate(data.all_parts)], characters_per_row=characters,
    )  # fmt: skip
    prepare.write_corpus(folder, corpus)
    return corpus


def require_tags(tokenizer: Tokenizer, data: TranslationData) -> None:
    """Raise UsageError if the vocabulary of another run lacks a tag of the data."""
    tags = tokenizer.vocabulary.tags
    if missing := [tag for tag in data.tags if tag not in tags]:
        allowed = f"it has {listed(tags)}" if tags else "it has none"
        raise UsageError(
            f"the vocabulary of the other run does not have the tag {listed(missing)} ({allowed}). Use tags "
            "that it has, or train a new vocabulary: with --init, add --init-vocabulary new."
        )


def _encoded(
    pairs: TrainingPairs, part: Part, tokenizers: Mapping[str, Tokenizer], dropped: Counter[str],
    seen: prepare.SeenRows, num_distinct: Counter[Part],
) -> Iterator[tuple[list[int], ...]]:  # fmt: skip
    """The ids of a part, with its tag and repetitions; `num_distinct` counts them without repetitions."""
    sides = [tokenizers[side] for side in SIDES]
    rows = pairs.of(part, dropped, "encoding")
    tag = tag_ids(tokenizers["src"], part.tag)
    for src, tgt in prepare.encode_rows(rows, sides, pairs.data.max_tokens, dropped, seen):
        num_distinct[part] += 1
        yield from (([*tag, *src], tgt),) * part.repeat


def tag_ids(tokenizer: Tokenizer, tag: str) -> tuple[int, ...]:
    """The id of the tag before a source; empty without a tag."""
    return (tokenizer.vocabulary.tag_ids[tag],) if tag else ()


def _by_reason(dropped: Mapping[Part, Counter[str]]) -> dict[str, int]:
    """Number of dropped pairs by reason, with the labels of further parts."""
    return {
        f"{part.label}: {reason}" if part.number else reason: count
        for part, reasons in dropped.items()
        for reason, count in reasons.items()
    }
