"""How does a text become a translation: sentences, models on the way, terms, placeholders, markup?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from heed.core.errors import UsageError
from heed.decoding.alignment import word_links
from heed.decoding.gaps import written
from heed.decoding.glossary import Glossary
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.long_lines import shortened
from heed.decoding.options import SearchOptions
from heed.decoding.request import Constraints, Request
from heed.decoding.translator import ModelTranslator
from heed.documents.html_spans import parse
from heed.documents.inline_tags import Links, carry, without_placeholders
from heed.documents.placeholders import are_kept
from heed.documents.spans import Part, Stretch, write_stretch
from heed.text.sentences import Piece, split_long

MAX_SENTENCE = 1000
"""Characters; what is longer is cut at a space."""
LINKED_AT_ONCE = 8
"""Sentences that are aligned between two steps of the searches."""


T = TypeVar("T")
Watch = Callable[[Request, list[int]], None]
"""Sees the best tokens so far of a request, after each step of its search."""


@dataclass(frozen=True)
class Step:
    """One model on the way from a language to another."""

    name: str
    """What the model is called."""
    translator: ModelTranslator
    options: SearchOptions
    """How it searches unless something else is wanted."""
    src_lang: str
    """The code of what it reads; empty: not known."""


class Searcher(Protocol):
    """Who makes the searches: this thread, or one that makes those of others too."""

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """What a model makes of each text."""

    def call(self, work: Callable[[], T]) -> T:
        """Something else done with a model, and its outcome."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for beside the text."""

    nbest: int = 1
    beam_size: int | None = None
    length_penalty: float | None = None
    prefix: str = ""
    """How the only sentence of the text begins."""
    glossary: Mapping[str, str] = field(default_factory=dict)
    """Terms, and what they become."""
    keep: Sequence[str] = ()
    """Terms that stay as they are."""

    def options(self, usual: SearchOptions, is_last: bool = True) -> SearchOptions:
        """The search of one model: only that of the last is the client's.

        A single hypothesis has nothing to differ from, and terms that must stand in the output are for a plain beam.
        """
        changes: dict[str, object] = {"nbest": self.nbest if is_last else 1}
        if is_last:
            beam_size = max(self.beam_size or usual.beam_size, self.nbest)
            changes |= usual.of_beam(beam_size) if self.beam_size else {"beam_size": beam_size}
            changes["length_penalty"] = usual.length_penalty if self.length_penalty is None else self.length_penalty
        if self.glossary or self.keep:
            changes |= {"diversity": 0.0, "sample": False}
        elif changes["nbest"] == 1 and not changes.get("mbr", usual.mbr):
            changes["diversity"] = 0.0
        return usual.model_copy(update=changes)


@dataclass(frozen=True)
class Sentence:
    """A sentence on its way: what it is in each language, and what the last model found."""

    texts: tuple[str, ...]
    """In the source's language, those on the way, and the target's."""
    hypothesis: Hypothesis | None = None
    """None for what no model has to say anything about: signs, numbers, or a text in its own language."""
    start: int = 0
    """Its first character in the text."""

    @property
    def alternatives(self) -> list[str]:
        """All outputs, the best first."""
        found = self.hypothesis
        return [self.texts[-1], *(other.text for other in found.alternatives)] if found else [self.texts[-1]]


@dataclass(frozen=True)
class Translation:
    """A whole text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """The next best, each once, without the best."""
    sentences: tuple[Sentence, ...] = ()


class Partial:
    """Tells how a sentence is beginning to read: (number of the sentence, its source, the text so far)."""

    def __init__(self, tell: Callable[[int, str, str], None]) -> None:
        self.tell = tell
        self.numbers: dict[Request, list[int]] = {}
        self._told: dict[Request, str] = {}

    def watch(self, step: Step, sentences: Sequence[str]) -> Watch:
        """For the sentences that a model translates."""

        def see(request: Request, ids: list[int]) -> None:
            text = step.translator.roles.form.so_far(ids)
            if self._told.get(request) != text:
                self._told[request] = text
                for number in self.numbers.get(request, ()):
                    self.tell(number, sentences[number], text)

        return see


class _Document:
    """A marked-up text, its stretches cut into sentences."""

    def __init__(self, parts: Sequence[Part], cut: Callable[[str], list[Piece]]) -> None:
        self.parts = [(part, cut(part.plain) if isinstance(part, Stretch) else []) for part in parts]
        self.sources = [piece.text for _, pieces in self.parts for piece in pieces if piece.is_sentence]

    @property
    def has_marks(self) -> list[bool]:
        """Whether there are marks in each sentence."""
        return [
            any(start <= mark.place <= end for mark in part.marks)
            for part, pieces in self.parts
            if isinstance(part, Stretch)
            for start, end in _places(pieces)
        ]

    def written(self, sentences: Sequence[Sentence], links: Sequence[Links], rank: int) -> str:
        """The text with each sentence's output of this rank; the links are those of the best."""
        out, first = "", 0
        for part, pieces in self.parts:
            if isinstance(part, str):
                out += part
                continue
            last = first + sum(piece.is_sentence for piece in pieces)
            texts = [sentence.alternatives for sentence in sentences[first:last]]
            of_part = links[first:last] if not rank else [()] * (last - first)
            out += write_stretch(part, pieces, [each[min(rank, len(each) - 1)] for each in texts], of_part)
            first = last
        return out


class TextTranslator:
    """From one language to another along a path of models."""

    def __init__(self, searcher: Searcher, path: Sequence[Step], wanted: Wanted) -> None:
        self.searcher = searcher
        self.path = path
        self.wanted = wanted
        self._glossary = _glossary(wanted.glossary, path)
        self._kept = _glossary({term: term for term in wanted.keep}, path)

    # --- texts ---------------------------------------------------------------------------------------

    def text(self, text: str, partial: Partial | None = None) -> Translation:
        """A text, its white space, lines and paragraphs as they were."""
        return self.texts([text], partial)[0]

    def texts(self, texts: Sequence[str], partial: Partial | None = None) -> list[Translation]:
        """Several texts at once."""
        pieces = [self._pieces(text) for text in texts]
        places = [_places(of_text) for of_text in pieces]
        sources = [text[start:end] for text, of_text in zip(texts, places, strict=True) for start, end in of_text]
        self._require_one(len(sources))
        found = iter(self._sentences(sources, partial))
        return [
            self._restored(of_text, [replace(next(found), start=start) for start, _ in starts])
            for of_text, starts in zip(pieces, places, strict=True)
        ]

    def _require_one(self, num_sentences: int) -> None:
        """Where there is a prefix."""
        if self.wanted.prefix and num_sentences != 1:
            raise UsageError(f"A prefix is for one sentence; the text has {num_sentences}.")

    def _restored(self, pieces: Sequence[Piece], sentences: Sequence[Sentence]) -> Translation:
        outputs = [sentence.alternatives for sentence in sentences]
        return self._ranked(
            [
                written(pieces, [texts[min(rank, len(texts) - 1)] for texts in outputs])
                for rank in range(max(map(len, outputs), default=1))
            ],
            sentences,
        )

    def _ranked(self, texts: Sequence[str], sentences: Sequence[Sentence] = ()) -> Translation:
        """The best text, and the others once each."""
        others = tuple(dict.fromkeys(other for other in texts if other != texts[0]))
        return Translation(texts[0], others[: self.wanted.nbest - 1], tuple(sentences))

    def html(self, text: str) -> Translation:
        """An HTML text, its markup as it was."""
        return self.htmls([text])[0]

    def htmls(self, texts: Sequence[str]) -> list[Translation]:
        """Several HTML texts at once."""
        return self.documents([parse(text) for text in texts])

    def documents(self, texts: Sequence[Sequence[Part]]) -> list[Translation]:
        """Several marked-up texts at once, each in its parts."""
        documents = [_Document(parts, self._pieces) for parts in texts]
        sources = [source for document in documents for source in document.sources]
        self._require_one(len(sources))
        found = self._sentences(sources, None)
        marked = [number for number, has in enumerate(has for each in documents for has in each.has_marks) if has]
        linked = dict(zip(marked, self._links([found[number] for number in marked]), strict=True))
        out, first = [], 0
        for document in documents:
            sentences = found[first : first + len(document.sources)]
            links = [linked.get(first + number, ()) for number in range(len(sentences))]
            ranks = range(max((len(sentence.alternatives) for sentence in sentences), default=1))
            out.append(self._ranked([document.written(sentences, links, rank) for rank in ranks]))
            first += len(sentences)
        return out

    def lines(self, texts: Sequence[str]) -> list[str]:
        """The best translations of many short texts at once: cells, subtitles."""
        return [translation.text for translation in self.texts(texts)]

    def _pieces(self, text: str) -> list[Piece]:
        if not self.path:
            return split_long(text, MAX_SENTENCE)
        first = self.path[0]
        return shortened(split_long(text, MAX_SENTENCE, first.src_lang or None), first.translator.num_source_tokens)

    # --- sentences -----------------------------------------------------------------------------------

    def _sentences(self, sources: Sequence[str], partial: Partial | None) -> list[Sentence]:
        """Each sentence through all models; what has no letter stays as it is."""
        found = [Sentence((source,)) for source in sources]
        spoken = [number for number, source in enumerate(sources) if any(map(str.isalpha, source))]
        for step in self.path:
            is_last = step is self.path[-1]
            texts = [found[number].texts[-1] for number in spoken]
            terms = [self._terms(found[number].texts, is_last) for number in spoken]
            numbers = dict(enumerate(spoken))
            hypotheses = self._through(step, texts, terms, is_last, partial and _renumbered(partial, numbers))
            for number, hypothesis in zip(spoken, hypotheses, strict=True):
                found[number] = Sentence((*found[number].texts, hypothesis.text), hypothesis)
        return found

    def _terms(self, texts: tuple[str, ...], is_last: bool) -> tuple[str, ...]:
        """What the next output must hold: what is kept, and at last what the glossary wants of the source."""
        normalise = self.path[-1].translator.normaliser.apply  # as the terms are
        wanted = self._kept.stretches_of(normalise(texts[-1])) if self._kept else ()
        if is_last and self._glossary:
            wanted += self._glossary.terms_for(normalise(texts[0]))
        return tuple(dict.fromkeys(wanted))

    def _through(
        self, step: Step, texts: Sequence[str], terms: Sequence[tuple[str, ...]], is_last: bool,
        partial: Partial | None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Through one model, placeholders included."""
        options = self.wanted.options(step.options, is_last)
        prefix = self.wanted.prefix if is_last else ""
        constraints = [Constraints(prefix, each) for each in terms] if prefix or any(terms) else None
        found = self._translate(step, texts, options, constraints, partial if is_last else None)
        broken = [n for n, h in enumerate(found) if not are_kept(texts[n], h.text)]
        if broken:
            wanted = constraints and [constraints[n] for n in broken]
            mended = self._around_placeholders(step, [texts[n] for n in broken], options, wanted)
            for number, hypothesis in zip(broken, mended, strict=True):
                found[number] = hypothesis
        return found

    def _translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions,
        constraints: Sequence[Constraints] | None, partial: Partial | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        watch = None
        if partial is not None:
            for number, request in enumerate(step.translator.requests(texts, constraints)):
                partial.numbers.setdefault(request, []).append(number)
            watch = partial.watch(step, texts)
        return self.searcher.translate(step, texts, options, constraints, watch)

    def _around_placeholders(
        self, step: Step, texts: Sequence[str], options: SearchOptions,
        constraints: Sequence[Constraints] | None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Translated without the placeholders, which are then put where the words beside them went."""
        parts = [without_placeholders(text) for text in texts]
        found = self._translate(step, [plain for plain, _ in parts], options, constraints)
        pairs = [(plain, hypothesis.text) for (plain, _), hypothesis in zip(parts, found, strict=True)]
        links = self._links_of(step, pairs)
        return [
            replace(hypothesis, text=carry(marks, plain, hypothesis.text, of_pair), alternatives=())
            for (plain, marks), hypothesis, of_pair in zip(parts, found, links, strict=True)
        ]

    # --- alignment -----------------------------------------------------------------------------------

    def _links(self, sentences: Sequence[Sentence]) -> list[Links]:
        """From the first to the last text of each sentence, through those on the way."""
        steps = [
            self._links_of(step, [_pair(sentence.texts, number) for sentence in sentences])
            for number, step in enumerate(self.path)
        ]
        if not steps:
            return [_to_itself(sentence.texts[0]) for sentence in sentences]
        links = steps[0]
        for further in steps[1:]:
            links = [_composed(a, b) for a, b in zip(links, further, strict=True)]
        return links

    def _links_of(self, step: Step, pairs: Sequence[tuple[str, str]]) -> list[Links]:
        found: list[Links] = []
        for begin in range(0, len(pairs), LINKED_AT_ONCE):
            part = pairs[begin : begin + LINKED_AT_ONCE]
            found += self.searcher.call(lambda part=part: [_aligned(step, *pair) for pair in part])  # type: ignore[misc]
        return found


def _aligned(step: Step, source: str, target: str) -> Links:
    """Without links for a model without attention, and for what it has nothing to say about."""
    if source == target:
        return _to_itself(source)
    try:
        return word_links(step.translator, source, target) if source.strip() and target.strip() else ()
    except UsageError:
        return ()


def _to_itself(text: str) -> Links:
    return [(number, number) for number in range(len(text.split()))]


def _pair(texts: tuple[str, ...], number: int) -> tuple[str, str]:
    """The texts before and after a model; a sentence that no model was asked about has but one."""
    return texts[min(number, len(texts) - 1)], texts[min(number + 1, len(texts) - 1)]


def _composed(first: Links, second: Links) -> Links:
    return sorted({(of, to) for of, middle in first for begin, to in second if begin == middle})


def _glossary(terms: Mapping[str, str], path: Sequence[Step]) -> Glossary | None:
    """The terms as the last model's text is written."""
    if not terms or not path:
        return None
    normalise = path[-1].translator.normaliser.apply
    plain = {normalise(source).strip(): normalise(target).strip() for source, target in terms.items()}
    if not all(source and target for source, target in plain.items()):
        raise UsageError("A term of the glossary or of what is kept is empty.")
    return Glossary(plain)


def _places(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """(first character, the one behind the last) of each sentence."""
    places, start = [], 0
    for piece in pieces:
        if piece.is_sentence:
            places.append((start, start + len(piece.text)))
        start += len(piece.text)
    return places


def _renumbered(partial: Partial, numbers: Mapping[int, int]) -> Partial:
    """Tells the numbers of all sentences, where only some are translated."""
    return Partial(lambda number, source, text: partial.tell(numbers[number], source, text))
