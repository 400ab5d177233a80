"""Examination of tagged sentences: their scheme, broken spans, rare tags like frequent ones, repeated sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from heed.core.progress import watched
from heed.text.doctor.examination import until_error
from heed.text.doctor.files import of_plain_files
from heed.text.doctor.findings import Check, Diagnosis, Finding, Tally, Thresholds, share, sorted_findings
from heed.text.hashing import hash_text
from heed.text.normalise import Normaliser
from heed.text.readers.conll import USUAL, Columns, TaggedSentence, read_conll
from heed.text.readers.lines import Errors
from heed.text.tag_schemes import OUTSIDE, Scheme, SchemeCounts, broken, spans, split_tag

MIN_SENTENCES: Final = 20
"""Fewer training sentences than this stop the training."""
LONG_SENTENCE: Final = 256
"""Words above which a sentence is left out of training (`data.max_tokens`)."""
STOP_LONG: Final = 0.5
"""Share of the words in too long sentences that stops the training: a file without blank lines."""
MAX_TYPOS: Final = 3
"""A label that occurs more often than this is not a typo."""
TYPO_RATIO: Final = 20
"""A typo occurs at least this many times less often than the label that was meant."""
UNBALANCED: Final = 0.95
"""Share of the most frequent tag above which accuracy says little."""
SCHEMES: Mapping[Scheme, str] = {
    "iob1": "IOB1 (B- only between touching spans)", "iob2": "IOB2 (B- begins each span)",
    "iobes": "IOBES (E- ends a span, S- is one token)", "bilou": "BILOU (L- ends a span, U- is one token)",
    "bmes": "BMES (M- inside, E- ends a span, S- is one token)", "plain": "plain tags, without spans",
}  # fmt: skip

BROKEN = Check(
    "broken-spans", "do not fit the tag before them",
    "They are read as by conlleval, the script of the CoNLL shared tasks: such a tag begins a span.", warn=0.0,
)  # fmt: skip
LEAKED = Check(
    "leaked", "are in the training data too", "Scores on them say nothing: remove them from one of the two.",
    stop=0.5, warn=Thresholds.stop_leaked,
)  # fmt: skip
REPEATED = Check(
    "duplicate", "repeat an earlier one", "Equal sentences are never split between training and validation.",
    warn=Thresholds.warn_repeated,
)  # fmt: skip
CONTRADICTING = Check(
    "contradicting", "repeat an earlier one with other tags", "Decide on one of the taggings.", warn=0.01
)


class TagScan:
    """Counts over the sentences of one file."""

    def __init__(self, name: str, normaliser: Normaliser | None = None) -> None:
        self.name = name
        self._normaliser = normaliser or Normaliser()
        self.num_sentences = self.num_tokens = self.num_characters = self.num_spans = self.num_long_tokens = 0
        self.tags: Counter[str] = Counter()
        self.first_line: dict[str, int] = {}
        """The first line of each tag."""
        self.types: Counter[str] = Counter()
        self.long, self.repeated, self.contradicting = Tally(), Tally(), Tally()
        self.hashes: dict[int, int] = {}
        """Hashes of the tags of each sentence, by that of its words."""
        self.breaks: dict[Scheme, Tally] = defaultdict(Tally)
        self._counts = SchemeCounts()

    def add(self, sentence: TaggedSentence) -> None:
        """Examine a sentence."""
        self.num_sentences += 1
        self.num_tokens += len(sentence.tokens)
        self.num_characters += sum(map(len, sentence.tokens)) + len(sentence.tokens) - 1
        self._counts.add(sentence.tags)
        for index, tag in enumerate(sentence.tags):
            self.tags[tag] += 1
            self.first_line.setdefault(tag, sentence.line + index)
        for span in spans(sentence.tags):
            self.types[span.type] += 1
            self.num_spans += 1
        self._look_for_breaks(sentence)
        self._look_for_repeats(sentence)
        if len(sentence.tokens) > LONG_SENTENCE:
            self.long.add(sentence.line, " ".join(sentence.tokens))
            self.num_long_tokens += len(sentence.tokens)

    def _look_for_breaks(self, sentence: TaggedSentence) -> None:
        schemes: tuple[Scheme, ...] = ("iob1", "iob2", "iobes")
        for scheme in schemes:
            for index in broken(sentence.tags, scheme):
                near = slice(max(0, index - 1), index + 1)
                shown = (
                    f"{token} {tag}" for token, tag in zip(sentence.tokens[near], sentence.tags[near], strict=True)
                )
                line = sentence.line + min(index, len(sentence.tokens) - 1)
                self.breaks[scheme].add(line, " / ".join(shown))

    def _look_for_repeats(self, sentence: TaggedSentence) -> None:
        text = " ".join(sentence.tokens)
        words = self._normaliser.apply(text)
        key, tags = hash_text("\n".join([words, *sentence.marks])), hash_text(" ".join(sentence.tags))
        if self.hashes.setdefault(key, tags) != tags:
            self.contradicting.add(sentence.line, text)
        elif len(self.hashes) + self.repeated.count + self.contradicting.count < self.num_sentences:
            self.repeated.add(sentence.line, text)

    @property
    def scheme(self) -> Scheme:
        """The scheme of the tags."""
        return self._counts.scheme

    @property
    def broken(self) -> Tally:
        """The tags that do not fit the scheme."""
        scheme = self.scheme
        return Tally() if scheme == "plain" else self.breaks["iobes" if scheme in ("bilou", "bmes") else scheme]

    def findings(self) -> Iterator[Finding]:
        """The findings of this file alone."""
        yield from BROKEN.findings(self.broken, self.num_tokens, f"{self.name} tags")
        yield from REPEATED.findings(self.repeated, self.num_sentences, f"{self.name} sentences")
        yield from CONTRADICTING.findings(self.contradicting, self.num_sentences, f"{self.name} sentences")
        yield from self._too_long()

    def _too_long(self) -> Iterator[Finding]:
        part = self.num_long_tokens / max(self.num_tokens, 1)
        what = f"have more than {LONG_SENTENCE} words ({share(self.num_long_tokens, self.num_tokens)} of the words)"
        advice = "They are left out of training (data.max_tokens). A blank line ends a sentence."
        check = Check("long", what, advice, warn=0.0, stop=0.0 if part > STOP_LONG else 1.0)
        yield from check.findings(self.long, self.num_sentences, f"{self.name} sentences")

    def of_training(self) -> Iterator[Finding]:
        """The findings of the training file: few sentences, one tag, likely typos, unbalanced tags."""
        if self.num_sentences < MIN_SENTENCES:
            message = (
                f"There are {self.num_sentences:,} sentences; a model learns nothing from fewer than {MIN_SENTENCES}."
            )
            yield Finding("few", "stop", self.num_sentences, self.num_sentences, message, "Provide more data.")
        if len(self.tags) == 1:
            message = f"All tokens have the same tag, {next(iter(self.tags))}: there is nothing to learn."
            advice = "Is it the right column? Name another one with --tag-column."
            yield Finding("one-tag", "stop", self.num_tokens, self.num_tokens, message, advice)
        yield from self._typos()
        yield from self._unbalanced()

    def _typos(self) -> Iterator[Finding]:
        """Rare labels that are spelled almost like a frequent one: PRE and PER."""
        kind = "tag" if self.scheme == "plain" else "type"
        labels = self.tags if kind == "tag" else self.types
        for rare, count in sorted(labels.items()):
            likely = [other for other in labels if labels[other] >= TYPO_RATIO * count and is_typo_of(rare, other)]
            if count <= MAX_TYPOS and likely:
                meant = max(likely, key=lambda label: labels[label])
                line = min(at for tag, at in self.first_line.items() if rare in (tag, split_tag(tag)[1]))
                message = (
                    f"The {kind} {rare} occurs {_times(count)} (line {line:,}), the similar {meant} "
                    f"{_times(labels[meant])}: probably a typo."
                )
                advice = "Correct it: it would be a label of its own."
                yield Finding("label-typo", "warn", count, labels.total(), message, advice)

    def _unbalanced(self) -> Iterator[Finding]:
        tag, count = self.most_frequent
        if len(self.tags) > 1 and count > UNBALANCED * self.num_tokens:
            percent = share(count, self.num_tokens)
            message = f"{percent} of the tokens have the tag {tag}: accuracy says little, look at F1 of the others."
            yield Finding("unbalanced", "note", count, self.num_tokens, message, "")

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The most frequent tag and its number."""
        return self.tags.most_common(1)[0] if self.tags else ("", 0)

    def summary(self) -> Iterator[str]:
        """Lines of text about the file."""
        words = self.num_tokens / max(self.num_sentences, 1)
        yield f"{self.name}: {self.num_sentences:,} sentences, {self.num_tokens:,} tokens ({words:.1f} per sentence)."
        yield f"tags: {SCHEMES[self.scheme]}; {self._labels()}."
        tag, count = self.most_frequent
        yield f"the most frequent tag, {tag}, is right for {share(count, self.num_tokens)} of the tokens."

    def _labels(self) -> str:
        """The number of labels, and the most frequent ones."""
        plain = self.scheme == "plain"
        labels = self.tags if plain else self.types
        listed = ", ".join(f"{name or 'without a type'} {number:,}" for name, number in labels.most_common(8))
        more = ", …" * (len(labels) > 8)
        return (
            f"{len(labels)} tags: {listed}{more}"
            if plain
            else (f"{self.num_spans:,} spans of {len(labels)} types: {listed}{more}")
        )


def is_typo_of(label: str, other: str) -> bool:
    """Whether one edit separates two labels: other case, two letters exchanged, or a letter more, less or changed.

    Labels of two characters, and those that differ in a digit, are often different on purpose.
    """
    a, b = label.upper(), other.upper()
    shorter, longer = sorted((a, b), key=len)
    apart = [at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b):
        less = (longer[:at] + longer[at + 1 :] for at in range(len(longer)) if not longer[at].isdigit())
        return len(shorter) > 2 and shorter in less
    if len(apart) == 1:
        [at] = apart
        return len(a) > 2 and not a[at].isdigit() and not b[at].isdigit()
    exchanged = len(apart) == 2 and [a[at] for at in apart] == [b[at] for at in reversed(apart)]
    return label != other and (not apart or (exchanged and apart[1] == apart[0] + 1))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def diagnose_conll(
    train: Iterable[TaggedSentence],
    valid: Iterable[TaggedSentence] | None = None,
    test: Iterable[TaggedSentence] | None = None,
    normaliser: Normaliser | None = None,
) -> Diagnosis:
    """Examine tagged sentences; each iterable is read once. A DataError that one raises becomes a finding."""
    problems: list[Finding] = []
    scan = _scanned("training", train, problems, normaliser)
    findings = [*scan.findings(), *([] if problems else scan.of_training())]
    held_out = [
        _scanned(name, sentences, problems, normaliser)
        for name, sentences in (("validation", valid), ("test", test)) if sentences is not None
    ]  # fmt: skip
    summary = [*scan.summary()]
    for held in held_out:
        findings += [*held.findings(), *_against(scan, held)]
        summary.append(next(held.summary()))
    sentences = max(scan.num_sentences, 1)
    statistics = {
        "src_words": scan.num_tokens / sentences, "src_characters": scan.num_characters / sentences,
        "spans": 0.0 if scan.scheme == "plain" else scan.num_spans / sentences, "num_tags": float(len(scan.tags)),
        "is_iob1": float(scan.scheme == "iob1"), "num_tokens": float(scan.num_tokens),
    }  # fmt: skip
    return Diagnosis(sorted_findings([*problems, *findings]), scan.num_sentences, statistics, summary=tuple(summary))


def _scanned(
    name: str, sentences: Iterable[TaggedSentence], problems: list[Finding], normaliser: Normaliser | None
) -> TagScan:
    scan = TagScan(name, normaliser)
    for sentence in until_error(sentences, name, problems):
        scan.add(sentence)
    return scan


def _against(train: TagScan, held: TagScan) -> Iterator[Finding]:
    """The findings of a held-out file given those of the training: repeated sentences, other schemes, unknown tags."""
    tally = Tally()
    for key in held.hashes:
        tally.count += key in train.hashes
    yield from LEAKED.findings(tally, len(held.hashes), f"distinct {held.name} sentences")
    if held.num_spans and held.scheme != train.scheme:
        message = f"The {held.name} tags are {SCHEMES[held.scheme]}, the training tags {SCHEMES[train.scheme]}."
        if "plain" in (held.scheme, train.scheme):
            yield Finding("other-scheme", "warn", 1, 1, message, "They are compared as they are written.")
        else:
            advice = f"No score is affected: tags are compared in the scheme of the {held.name} file."
            yield Finding("other-scheme", "note", 1, 1, message, advice)
    unknown = (
        held.types.keys() - train.types.keys() if train.scheme != "plain" else held.tags.keys() - train.tags.keys()
    )
    if unknown - {OUTSIDE, ""}:
        count = sum((held.types if train.scheme != "plain" else held.tags)[label] for label in unknown)
        message = f"{held.name} has labels that training does not have: {', '.join(sorted(unknown)[:8])}."
        yield Finding("unknown-label", "warn", count, held.num_tokens, message, "No model can predict them.")


def diagnose_conll_files(
    train: str | Path, valid: str | Path | None = None, test: str | Path | None = None, *,
    columns: Columns = USUAL, errors: Errors = "strict", normaliser: Normaliser | None = None, quiet: bool = True,
) -> Diagnosis:  # fmt: skip
    """Examine CoNLL files, as `diagnose_conll`. Raises MissingInputError for a file that cannot be read."""
    named = {"train": train, "validation": valid, "test": test}
    given = {name: path for name, path in named.items() if path is not None}
    read = {name: read_conll(path, columns, errors) for name, path in given.items()}
    diagnosis = diagnose_conll(
        watched(read["train"], "examining", "sentences", quiet), read.get("validation"), read.get("test"), normaliser
    )
    return of_plain_files(diagnosis, "conll", given)
