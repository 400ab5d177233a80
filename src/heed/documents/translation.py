"""Data of a translation: the models on its path, its options, and its sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.documents.inline_tags import Links

if TYPE_CHECKING:
    from heed.inference.line_translator import LineTranslator

Watch = Callable[[Request, list[int]], None]
"""Gets a request and its best tokens so far, after each step of its search."""


@dataclass(frozen=True)
class Step:
    """One model on the path from one language to another."""

    name: str
    translator: LineTranslator
    options: SearchOptions
    """Its default search."""
    src_lang: str
    """The code of its source language; empty if unknown."""
    engine: Any = None
    """The engine that searches instead of the translator where it can; None without one."""


class Searcher(Protocol):
    """Runs models: in this thread, or in one that batches the searches of several requests."""

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Translate texts with one model."""

    def links(self, step: Step, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """Word links between texts and one model's translations; none from a model without attention."""

    def check(self) -> None:
        """Raise if nobody waits for the translation any more. Whatever reads a text calls it again and again."""


@dataclass(frozen=True)
class TranslateOptions:
    """Options of a translation."""

    nbest: int = 1
    beam_size: int | None = None
    length_penalty: float | None = None
    prefix: str = ""
    """Beginning of the translation of a single sentence."""
    glossary: Mapping[str, str] = field(default_factory=dict)
    """Terms and their translations."""
    keep: Sequence[str] = ()
    """Terms that are not translated."""

    def search_options(self, default: SearchOptions, is_last: bool = True) -> SearchOptions:
        """The options of one model's search. Those of a client apply to the last model.

        Diversity needs several hypotheses, and required terms need a plain beam search.
        """
        changes: dict[str, object] = {"nbest": self.nbest if is_last else 1}
        if is_last:
            beam_size = max(self.beam_size or default.beam_size, self.nbest)
            changes |= default.of_beam(beam_size) if self.beam_size else {"beam_size": beam_size}
            changes["length_penalty"] = default.length_penalty if self.length_penalty is None else self.length_penalty
        if self.glossary or self.keep:
            changes |= {"diversity": 0.0, "sample": False}
        elif changes["nbest"] == 1 and not changes.get("mbr", default.mbr):
            changes["diversity"] = 0.0
        return default.model_copy(update=changes)


@dataclass(frozen=True)
class Sentence:
    """A sentence in each language on the path, and the output of the last model."""

    texts: tuple[str, ...]
    """In the source language, the intermediate ones, and the target language."""
    hypothesis: Hypothesis | None = None
    """None for text that no model translates: punctuation, numbers, or a text already in the target language."""
    links: tuple[Links | None, ...] = ()
    """Word links of each model's output to the text before it, where its search has linked them."""
    start: int = 0
    """Its first character in the text."""

    @property
    def alternatives(self) -> list[str]:
        """All outputs, the best first."""
        others = self.hypothesis.alternatives if self.hypothesis else ()
        return [self.texts[-1], *(other.text for other in others)]

    def ranked(self, rank: int) -> str:
        """The output of a rank, or the last one."""
        outputs = self.alternatives
        return outputs[min(rank, len(outputs) - 1)]


def num_ranks(sentences: Sequence[Sentence]) -> int:
    """The largest number of outputs of a sentence."""
    return max((len(sentence.alternatives) for sentence in sentences), default=1)


@dataclass(frozen=True)
class Translation:
    """The translation of a text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """The next best texts, without duplicates."""
    sentences: tuple[Sentence, ...] = ()


class Partial:
    """Reports sentences while they grow: `notify(number of the sentence, its source, its text so far)`."""

    def __init__(self, notify: Callable[[int, str, str], None]) -> None:
        self.notify = notify
        self.numbers: dict[Request, list[int]] = {}
        self._last: dict[Request, str] = {}

    def watch(self, step: Step, sentences: Sequence[str]) -> Watch:
        """The watch of one model's searches for these sentences."""

        def see(request: Request, ids: list[int]) -> None:
            text = step.translator.detokenizer.partial_text(ids)
            if self._last.get(request) != text:
                self._last[request] = text
                for number in self.numbers.get(request, ()):
                    self.notify(number, sentences[number], text)

        return see

    def renumbered(self, numbers: Mapping[int, int]) -> Partial:
        """For a part of the sentences: `numbers` maps their numbers to those of all sentences."""
        return Partial(lambda number, source, text: self.notify(numbers[number], source, text))
