"""Detokenizer: prompts to tokens, tokens to text of one or several lines, and text as it is streamed.

A model of separate lines generates one line. A model of a stream or of windows continues after the end of a line; where
that end is a token, the next token is read after begin of sentence, as in training.
"""

from __future__ import annotations

import codecs
import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from heed.decoding.hypothesis import Hypothesis
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd, Tokenizer, encode_ended
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

_AROUND_END = re.compile(" *\n *")


@dataclass(frozen=True)
class Detokenizer:
    """A tokenizer, and how the lines of the model's text end; None: an output is one line."""

    tokenizer: Tokenizer
    line_end: LineEnd | None = None

    @property
    def never(self) -> tuple[int, ...]:
        """Tokens that are never generated, since the model was never trained to generate them."""
        ends = () if self.line_end in (None, "eos") else (EOS_ID,)
        return (PAD_ID, BOS_ID, UNK_ID, *ends, *self.tokenizer.vocabulary.tag_ids.values())

    @property
    def token_after_eos(self) -> int | None:
        """Token that the model reads in place of an end of sentence; None if the text ends with it."""
        return None if self.line_end is None else BOS_ID

    @property
    def space_after_words(self) -> bool:
        """Whether the tokens of words include a space after them, which the text drops at the end of a line."""
        [unknown] = self.tokenizer.bytes_of([UNK_ID])
        return unknown.endswith(b" ") and not unknown.startswith(b" ")

    @cached_property
    def space_before_words(self) -> bool:
        """Whether the tokens of words include a space before them, which the text drops at the start of a line."""
        word = next((id for id, piece in enumerate(self.token_bytes) if piece[:1] == b" " != piece), None)
        return word is not None and not self.tokenizer.decode([[word]])[0].startswith(" ")

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes that each token adds to a text, with the space after a word even at the end of a line."""
        pieces = self.tokenizer.bytes_of(range(len(self.tokenizer.vocabulary)))
        if self.line_end is None:
            return [piece.replace(b"\n", b" ") for piece in pieces]
        pieces[EOS_ID] = b"\n"
        return pieces

    def space_between(self, before: str, text: str, first: bytes = b"") -> str:
        """Separator of a text and its continuation: a space, unless the text includes its own.

        `first`: the bytes of the first token of the continuation.
        """
        is_word = self.space_after_words or (first.startswith(b" ") and self.space_before_words)
        needed = is_word and before and text and not before[-1].isspace() and not text[0].isspace()
        return " " if needed else ""

    def continuation(self, before: str, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with a text that can be appended to another one."""
        first = b"".join(self.token_bytes[id] for id in hypothesis.ids[:1])
        return replace(hypothesis, text=self.space_between(before, hypothesis.text, first) + hypothesis.text)

    def encode_prompt(self, prompt: str, normaliser: Normaliser) -> list[int]:
        """The tokens of a prompt, as read after begin of sentence."""
        if self.line_end is None:
            return self.tokenizer.encode([normaliser.apply(prompt)])[0]
        *lines, last = map(normaliser.apply, prompt.split("\n"))
        ended = encode_ended(self.tokenizer, lines, self.line_end)
        return [BOS_ID if id == EOS_ID else id for ids in ended for id in ids] + self.tokenizer.encode([last])[0]

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        if self.line_end is None:
            return [text.replace("\n", " ") for text in self.tokenizer.decode(sequences)]
        return ["\n".join(self.tokenizer.decode(_split_at_eos(ids))) for ids in sequences]

    def partial_text(self, ids: Sequence[int]) -> str:
        """The text of tokens that others will follow, without the first bytes of an incomplete character."""
        [text] = self.texts([ids])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(b"".join(self.token_bytes[id] for id in ids))
        return text.removesuffix("\ufffd") if decoder.getstate()[0] else text

    def with_texts(self, hypotheses: Sequence[Hypothesis], stop: Sequence[str] = ()) -> list[Hypothesis]:
        """The hypotheses with their texts; each is cut before the first stop text."""
        texts = self.texts([hypothesis.ids for hypothesis in hypotheses])
        cut = [replace(h, text=cut_at_stop(text, stop)) for h, text in zip(hypotheses, texts, strict=True)]
        return [self.drop_after_stop(hypothesis) for hypothesis in cut] if stop else cut

    def drop_after_stop(self, hypothesis: Hypothesis) -> Hypothesis:
        """Only the tokens of the text and their log-probabilities, where a stop text has cut it.

        The score is unchanged: it includes the stop text, which counts like an end of sentence.
        """
        ids, text = hypothesis.ids, hypothesis.text
        space = " " if self.space_after_words else ""

        def has_all(number: int) -> bool:
            return (self.texts([ids[:number]])[0] + space).startswith(text)

        number = bisect_left(range(len(ids)), True, key=has_all)
        if self.texts([ids])[0] == text or number == len(ids):
            return hypothesis
        kept = hypothesis.token_log_probs[:number]
        return replace(hypothesis, ids=ids[:number], token_log_probs=kept, log_prob=math.fsum(kept))


def _split_at_eos(ids: Sequence[int]) -> list[list[int]]:
    lines: list[list[int]] = [[]]
    for is_end, group in groupby(ids, lambda id: id == EOS_ID):
        if is_end:
            lines.extend([] for _ in group)
        else:
            lines[-1].extend(group)
    return lines


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop text."""
    starts = [start for stop in stops if (start := text.find(stop)) >= 0]
    return text[: min(starts)] if starts else text


def partial_stop(text: str, stops: Sequence[str]) -> int:
    """Number of characters at the end of a text that may be the start of a stop text."""
    longest = max(map(len, stops), default=0)
    sizes = range(min(longest - 1, len(text)), 0, -1)
    return next((size for size in sizes if any(stop.startswith(text[-size:]) for stop in stops)), 0)


class StopTexts:
    """Texts that end an output, which is cut before them."""

    def __init__(self, stops: Sequence[str], token_bytes: Sequence[bytes], space_after_words: bool = False) -> None:
        """`token_bytes`, `space_after_words`: as in `Detokenizer`."""
        self._stops = [stop.encode() for stop in stops]
        self._token_bytes = token_bytes
        self._space_after_words = space_after_words
        self._longest = max(map(len, self._stops))

    def reached(self, tokens: Sequence[int]) -> bool:
        """Whether the last token completes one of them."""
        last, tail = self._token_bytes[tokens[-1]], b""
        if not last:
            return False
        for token in reversed(tokens[:-1]):
            if len(self._text(tail)) >= self._longest:
                break
            tail = self._token_bytes[token] + tail
        before, now = len(self._text(tail)), self._text(tail + last)
        return any(now.find(stop, max(0, before - len(stop) + 1)) >= 0 for stop in self._stops)

    def _text(self, data: bytes) -> bytes:
        """The text of these bytes if it ends here."""
        return data.replace(b" \n", b"\n").removesuffix(b" ") if self._space_after_words else data


class TextStreamer:
    """Text to show while it is generated: whole characters, and nothing that a stop text or the end may take back."""

    def __init__(self, detokenizer: Detokenizer, before: str, stop: Sequence[str]) -> None:
        """`before`: the prompt."""
        self._detokenizer = detokenizer
        self._before = before
        self._stop = stop
        self._space_after_words = detokenizer.space_after_words
        self._space_before_words = detokenizer.space_before_words
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._first: bytes | None = None
        self._waiting = ""
        self._num_shown = 0
        self._begins_line = True

    def add(self, token_bytes: bytes) -> str:
        """The text to show after one more token. A space after a word is withheld until another word follows."""
        self._first = token_bytes if self._first is None else self._first
        self._waiting += self._decoder.decode(token_bytes)
        if self._space_after_words:
            self._waiting = self._waiting.replace(" \n", "\n")
        text = self._waiting.removesuffix(" ") if self._space_after_words else self._waiting
        if self._space_before_words:
            if self._detokenizer.line_end == "eos":
                self._waiting = _AROUND_END.sub("\n", self._waiting)
            self._waiting = self._waiting.lstrip(" ") if self._begins_line else self._waiting
            text = self._waiting.rstrip(" ")
        safe = cut_at_stop(text, self._stop)
        new = safe[: len(safe) - partial_stop(safe, self._stop)]
        self._waiting = self._waiting[len(new) :]
        return self._show(new)

    def rest(self, hypothesis: Hypothesis) -> str:
        """The part of the text of the complete hypothesis that has not been shown yet."""
        self._first = b"".join(self._detokenizer.token_bytes[id] for id in hypothesis.ids[:1])
        return self._show(hypothesis.text[self._num_shown :])

    def _show(self, new: str) -> str:
        first = self._first or b""
        space = self._detokenizer.space_between(self._before, new, first) if not self._num_shown else ""
        self._num_shown += len(new)
        if new:
            self._begins_line = new.endswith("\n") and self._detokenizer.line_end == "eos"
        return space + new
