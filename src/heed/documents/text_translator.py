"""Translation of texts along a path of models: sentences, required terms, placeholders, inline tags."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, SearchOptions
from heed.decoding.phrases import Glossary
from heed.documents.codes import are_kept, has_words
from heed.documents.html_language import SourceLanguage
from heed.documents.html_spans import parse
from heed.documents.inline_tags import Links, insert_tags, without_placeholders
from heed.documents.spans import Part, Span, write_span
from heed.documents.translation import Partial, Searcher, Sentence, Step, TranslateOptions, Translation, num_ranks
from heed.inference.sentences import join_sentences, split_sentences
from heed.text.sentences import Piece, split_long

T = TypeVar("T")

MAX_SENTENCE = 1000
"""Characters. A longer sentence is split at a space."""
ALIGNED_AT_ONCE = 8
"""Sentences that are aligned between two steps of the searches."""


class _Document:
    """A marked-up text, its spans split into sentences."""

    def __init__(self, parts: Sequence[Part], split: Callable[[str], list[Piece]]) -> None:
        self.parts = [(part, split(part.plain) if isinstance(part, Span) else []) for part in parts]
        self.sources = [piece.text for _, pieces in self.parts for piece in pieces if piece.is_sentence]

    @property
    def has_tags(self) -> list[bool]:
        """Whether there are tags in each sentence."""
        flags = []
        for part, pieces in self.parts:
            if isinstance(part, Span):
                places = [tag.place for tag in part.tags]
                for start, end in _ranges(pieces):
                    first = bisect_left(places, start)
                    flags.append(first < len(places) and places[first] <= end)
        return flags

    def written(self, sentences: Sequence[Sentence], links: Sequence[Links], rank: int) -> str:
        """The text with each sentence's output of this rank. `links` belong to the best outputs."""
        out, first = [], 0
        for part, pieces in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            last = first + sum(piece.is_sentence for piece in pieces)
            of_span = links[first:last] if not rank else [()] * (last - first)
            out.append(write_span(part, pieces, [each.ranked(rank) for each in sentences[first:last]], of_span))
            first = last
        return "".join(out)


class TextTranslator:
    """Translates from one language to another along a path of models."""

    def __init__(self, searcher: Searcher, path: Sequence[Step], options: TranslateOptions) -> None:
        self.searcher = searcher
        self.path = path
        self.options = options
        self._glossary = _glossary(options.glossary, path)
        self._kept = _glossary({term: term for term in options.keep}, path)

    @property
    def src_lang(self) -> str:
        """The code of the language that the first model translates; empty if unknown."""
        return self.path[0].src_lang if self.path else ""

    def checked(self, items: Iterable[T]) -> Iterator[T]:
        """The items of a document as they are read, as long as anybody waits for its translation."""
        for item in items:
            self.searcher.check()
            yield item

    # --- texts ---------------------------------------------------------------------------------------

    def text(self, text: str, partial: Partial | None = None) -> Translation:
        """Translate a text. Its white space, lines and paragraphs stay."""
        return self.texts([text], partial)[0]

    def texts(self, texts: Sequence[str], partial: Partial | None = None) -> list[Translation]:
        """Translate several texts at once."""
        pieces = [self._pieces(text) for text in texts]
        ranges = [_ranges(of_text) for of_text in pieces]
        sources = [text[start:end] for text, of_text in zip(texts, ranges, strict=True) for start, end in of_text]
        translated = iter(self._sentences(sources, partial))
        out = []
        for of_text, starts in zip(pieces, ranges, strict=True):
            sentences = [replace(next(translated), start=start) for start, _ in starts]
            ranks = range(num_ranks(sentences))
            ranked = [join_sentences(of_text, [each.ranked(rank) for each in sentences]) for rank in ranks]
            out.append(self._translation(ranked, sentences))
        return out

    def lines(self, texts: Sequence[str]) -> list[str]:
        """The best translations of several short texts: cells, subtitles."""
        return [translation.text for translation in self.texts(texts)]

    def html(self, text: str) -> Translation:
        """Translate HTML. Its markup stays, and so do elements in other languages."""
        return self.htmls([text])[0]

    def htmls(self, texts: Sequence[str]) -> list[Translation]:
        """Translate several HTML texts at once."""
        check = self.searcher.check
        return self.documents([parse(text, check, language=SourceLanguage(self.src_lang)) for text in texts])

    def documents(self, texts: Sequence[Sequence[Part]]) -> list[Translation]:
        """Translate several marked-up texts at once, each given in its parts."""
        documents = [_Document(parts, self._pieces) for parts in texts]
        sentences = self._sentences([source for document in documents for source in document.sources], None)
        flags = [flag for document in documents for flag in document.has_tags]
        tagged = [number for number, has_tags in enumerate(flags) if has_tags]
        links = dict(zip(tagged, self._links([sentences[number] for number in tagged]), strict=True))
        out, first = [], 0
        for document in documents:
            last = first + len(document.sources)
            of_document, its_links = sentences[first:last], [links.get(number, ()) for number in range(first, last)]
            ranks = range(num_ranks(of_document))
            out.append(self._translation([document.written(of_document, its_links, rank) for rank in ranks]))
            first = last
        return out

    def _translation(self, ranked: Sequence[str], sentences: Sequence[Sentence] = ()) -> Translation:
        """The translation, given the text of each rank."""
        others = tuple(dict.fromkeys(other for other in ranked if other != ranked[0]))
        return Translation(ranked[0], others[: self.options.nbest - 1], tuple(sentences))

    def _pieces(self, text: str) -> list[Piece]:
        self.searcher.check()
        if not self.path:
            return split_long(text, MAX_SENTENCE)
        first = self.path[0]
        return split_sentences(text, first.translator.num_source_tokens, MAX_SENTENCE, first.src_lang or None)

    # --- sentences -----------------------------------------------------------------------------------

    def _sentences(self, sources: Sequence[str], partial: Partial | None) -> list[Sentence]:
        """Translate each sentence with all models in turn. One without words stays as it is."""
        if self.options.prefix and len(sources) != 1:
            raise UsageError(f"A prefix requires a text of one sentence; this text has {len(sources)}.")
        sentences = [Sentence((source,)) for source in sources]
        with_words = [number for number, source in enumerate(sources) if has_words(source)]
        for step in self.path:
            is_last = step is self.path[-1]
            texts = [sentences[number].texts[-1] for number in with_words]
            terms = [self._terms(sentences[number].texts, is_last) for number in with_words]
            of_step = partial.renumbered(dict(enumerate(with_words))) if partial and is_last else None
            hypotheses = self._through(step, texts, terms, is_last, of_step)
            for number, hypothesis in zip(with_words, hypotheses, strict=True):
                before = sentences[number]
                links = (*before.links, hypothesis.links)
                sentences[number] = Sentence((*before.texts, hypothesis.text), hypothesis, links)
        return sentences

    def _terms(self, texts: tuple[str, ...], is_last: bool) -> list[tuple[str, str]]:
        """What is translated, and what the next output must contain for it.

        These are kept terms, and in the last output the glossary's translations.
        """
        self.searcher.check()
        normalise = self.path[-1].translator.normaliser.apply  # as the terms are
        kept = dict(self._kept.pairs_for(normalise(texts[-1]))) if self._kept else {}
        pairs = self._glossary.pairs_for(normalise(texts[0])) if is_last and self._glossary else ()
        return [*((term, term) for term in kept), *(pair for pair in pairs if pair[1] not in kept)]

    def _through(
        self, step: Step, texts: Sequence[str], terms: Sequence[Sequence[tuple[str, str]]], is_last: bool,
        partial: Partial | None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Translate with one model, again without placeholders where some were lost."""
        options = self.options.search_options(step.options, is_last)
        prefix = self.options.prefix if is_last else ""
        constraints = None
        if prefix or any(terms):
            constraints = [Constraints.of(prefix, pairs) for pairs in terms]
        outputs = self._translate(step, texts, options, constraints, partial)
        broken = [n for n, hypothesis in enumerate(outputs) if not are_kept(texts[n], hypothesis.text)]
        if broken:
            of_broken = constraints and [constraints[n] for n in broken]
            repaired = self._around_placeholders(step, [texts[n] for n in broken], options, of_broken)
            for number, hypothesis in zip(broken, repaired, strict=True):
                outputs[number] = hypothesis
        return outputs

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
        """Translate without the placeholders, then insert them next to the words that they were next to."""
        parts = [without_placeholders(text) for text in texts]
        outputs = self._translate(step, [plain for plain, _ in parts], options, constraints)
        pairs = [(plain, hypothesis.text) for (plain, _), hypothesis in zip(parts, outputs, strict=True)]
        links = self._links_of(step, pairs, [hypothesis.links for hypothesis in outputs])
        return [
            replace(hypothesis, text=insert_tags(tags, plain, hypothesis.text, of_pair), links=None, alternatives=())
            for (plain, tags), hypothesis, of_pair in zip(parts, outputs, links, strict=True)
        ]

    # --- alignment -----------------------------------------------------------------------------------

    def _links(self, sentences: Sequence[Sentence]) -> list[Links]:
        """Word links from the first to the last text of each sentence, through the intermediate ones."""
        if not self.path:
            return [_identity(sentence.texts[0]) for sentence in sentences]
        links, *others = (
            self._links_of(
                step,
                [_texts_around(sentence.texts, number) for sentence in sentences],
                [sentence.links[number] if sentence.links else None for sentence in sentences],
            )
            for number, step in enumerate(self.path)
        )
        for following in others:
            links = [_composed(a, b) for a, b in zip(links, following, strict=True)]
        return links

    def _links_of(self, step: Step, pairs: Sequence[tuple[str, str]], known: Sequence[Links | None]) -> list[Links]:
        """Word links of texts and one model's translations, where they are not known from its search."""
        unknown = [pair for pair, links in zip(pairs, known, strict=True) if links is None]
        found: list[Links] = []
        for begin in range(0, len(unknown), ALIGNED_AT_ONCE):
            found += self.searcher.links(step, unknown[begin : begin + ALIGNED_AT_ONCE])
        rest = iter(found)
        return [next(rest) if links is None else links for links in known]


def _identity(text: str) -> Links:
    return [(number, number) for number in range(len(text.split()))]


def _texts_around(texts: tuple[str, ...], number: int) -> tuple[str, str]:
    """The texts before and after a model. A sentence that no model translated has only one."""
    return texts[min(number, len(texts) - 1)], texts[min(number + 1, len(texts) - 1)]


def _composed(first: Links, second: Links) -> Links:
    return sorted({(of, to) for of, middle in first for begin, to in second if begin == middle})


def _glossary(terms: Mapping[str, str], path: Sequence[Step]) -> Glossary | None:
    """The terms, normalised as the last model's text is."""
    if not terms or not path:
        return None
    normalise = path[-1].translator.normaliser.apply
    plain = {normalise(source).strip(): normalise(target).strip() for source, target in terms.items()}
    if not all(source and target for source, target in plain.items()):
        raise UsageError("A term of the glossary or of the terms to keep is empty.")
    return Glossary(plain)


def _ranges(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """The first character of each sentence, and the one after its last."""
    ranges, start = [], 0
    for piece in pieces:
        if piece.is_sentence:
            ranges.append((start, start + len(piece.text)))
        start += len(piece.text)
    return ranges
