"""Preparation of a parallel corpus: which pairs are trained on, held out or dropped, and how they become ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.subword_dropout import SIDES
from heed.decoding.scoring import MAX_SCORED_TOKENS
from heed.metrics.translation import bleu_tokenizer
from heed.metrics.word_frequency import WordCounts
from heed.tasks import prepare
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.parts import Part, listed, with_tag
from heed.text.pair_filter import PairFilter
from heed.text.readers import CorpusFiles, fingerprint, read_pairs
from heed.text.tokenizers import Tokenizer, TokenizerConfig

_MAX_VALID_TOKENS = MAX_SCORED_TOKENS - 10
"""Leaves room for the end of a line and the tag of a source."""


def normalised_pairs(data: TranslationData, files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """The pairs of some files, normalised."""
    return ((data.normaliser.apply(src), data.normaliser.apply(tgt)) for src, tgt in read_pairs(files, data.errors))


def filtered_pairs(data: TranslationData, files: CorpusFiles, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Training pairs, normalised, without those that the filter drops."""
    pair_filter = PairFilter(data.filter)
    for row in normalised_pairs(data, files):
        reason = pair_filter.reason_to_drop(*row)
        if reason is None:
            yield row
        else:
            dropped[reason] += 1


class TrainingPairs:
    """The training pairs of each part, without what is held out for validation. Read as often as is asked."""

    def __init__(self, data: TranslationData, seed: int, num_pairs: int, quiet: bool) -> None:
        """`num_pairs`: those of the first part."""
        self.data = data
        self.seed = seed
        self.num_pairs = num_pairs
        self.quiet = quiet
        self.parts = data.train_parts()
        self.held: frozenset[str] = frozenset()
        """The sentences of both sides of the validation data, once they are known."""

    def held_out(self) -> Iterator[prepare.Row]:
        """The validation data: of its own files, or some pairs of the first part."""
        if files := self.data.valid_files():
            return normalised_pairs(self.data, files)
        return self._split(self._kept(self.parts[0], Counter(), "holding out"), held=True)

    def of(self, part: Part, dropped: Counter[str], title: str) -> Iterator[prepare.Row]:
        """The training pairs of a part."""
        pairs = self._kept(part, dropped, title)
        if self.data.valid_files():
            return pairs
        return self._without_held(pairs if part.number else self._split(pairs, held=False), dropped)

    def all(self, title: str) -> Iterator[prepare.Row]:
        """Those of all parts, each once."""
        return chain.from_iterable(self.of(part, Counter(), title) for part in self.parts)

    def _kept(self, part: Part, dropped: Counter[str], title: str) -> Iterator[prepare.Row]:
        title += f" {part.label}" if part.number else ""
        return watched(filtered_pairs(self.data, part.files, dropped), title, "pairs", self.quiet)

    def _split(self, pairs: Iterable[prepare.Row], held: bool) -> Iterator[prepare.Row]:
        return prepare.split_rows(pairs, self.num_pairs, self.data.num_held_out, self.seed, held)

    def _without_held(self, pairs: Iterable[prepare.Row], dropped: Counter[str]) -> Iterator[prepare.Row]:
        """Without either side of what was held out: it may stand in another part, or have several translations."""
        for row in pairs:
            if not self.held.isdisjoint(row):
                dropped["held out for validation"] += 1
            else:
                yield row


def prepare_translation(
    data: TranslationData, tokenizer: TokenizerConfig, seed: int, folder: Path, num_pairs: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True, num_in_parts: int = 0,
) -> prepare.Corpus:  # fmt: skip
    """Hold out, train tokenizers (or `reuse` those of a run that is fine-tuned), encode; all into the run folder.

    `num_pairs`: those of the files of `data` itself, without its further parts, which have `num_in_parts`.
    """
    pairs = TrainingPairs(data, seed, num_pairs, quiet)
    valid = prepare.cap_valid(pairs.held_out(), data.max_valid, data.filter.max_characters, quiet)
    prepare.require_valid(valid)
    pairs.held = frozenset(chain.from_iterable(valid))
    of_parts = [fingerprint(part.files) for part in pairs.parts]
    text = partial(pairs.all, "reading for the tokenizer")
    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, text, num_pairs + num_in_parts, folder, data.tags, quiet
    )
    valid = prepare.readable(valid, [tokenizers["src"], tokenizers["tgt"]], _MAX_VALID_TOKENS, quiet)
    prepare.write_valid(folder, valid)
    seen = prepare.Seen(folder, WordCounts(bleu_tokenizer(data.tgt_lang or None, data.tokenised)))
    dropped = {part: Counter[str]() for part in pairs.parts}
    num_distinct = Counter[Part]()
    ids = (_encoded(pairs, part, tokenizers, dropped[part], seen, num_distinct) for part in pairs.parts)
    files = {
        f"{part.prefix}{side}": file
        for part, of_part in zip(pairs.parts, of_parts, strict=True)
        for side, file in of_part.items()
    }
    store = prepare.write_tokens(folder, SIDES, chain.from_iterable(ids), tokenizers, files)
    seen.write()
    valid_files = data.valid_files()
    valid_fingerprint = fingerprint(valid_files) if valid_files else {}
    num_repeated = len(store) - num_distinct.total()
    corpus = prepare.Corpus(
        len(store), len(valid), _by_reason(dropped), files, valid_fingerprint, num_repeated,
        num_by_part=[num_distinct[part] for part in pairs.parts],
    )  # fmt: skip
    prepare.write_corpus(folder, corpus)
    return corpus


def require_tags(tokenizer: Tokenizer, data: TranslationData) -> None:
    """Raise UsageError where the vocabulary, which another run brought, lacks a tag."""
    known = tokenizer.vocabulary.tags
    if missing := [tag for tag in data.tags if tag not in known]:
        knows = f"it has {listed(known)}" if known else "it has none"
        raise UsageError(
            f"the vocabulary of the other run does not have the tag {listed(missing)} ({knows}). Give sources tags "
            "that it has, or train a new vocabulary: with --init that is --init-vocabulary new."
        )


def _encoded(
    pairs: TrainingPairs, part: Part, tokenizers: Mapping[str, Tokenizer], dropped: Counter[str], seen: prepare.Seen,
    num_distinct: Counter[Part],
) -> Iterator[tuple[list[int], ...]]:  # fmt: skip
    """The ids of a part, with its tag and as often as it comes; each pair is counted once."""
    sides = [tokenizers[side] for side in SIDES]
    rows = pairs.of(part, dropped, "encoding")
    ids = prepare.encode_rows(rows, sides, pairs.data.max_tokens, dropped, seen)
    for row in with_tag(ids, tag_ids(tokenizers["src"], part.tag)):
        num_distinct[part] += 1
        yield from (row,) * part.repeat


def tag_ids(tokenizer: Tokenizer, tag: str) -> tuple[int, ...]:
    """The ids before a source with this tag; none where there is no tag."""
    return (tokenizer.vocabulary.tag_ids[tag],) if tag else ()


def _by_reason(dropped: Mapping[Part, Counter[str]]) -> dict[str, int]:
    """How many pairs were left out and why; of further parts with their name."""
    return {
        f"{part.label}: {reason}" if part.number else reason: count
        for part, reasons in dropped.items()
        for reason, count in reasons.items()
    }
