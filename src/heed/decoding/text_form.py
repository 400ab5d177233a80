"""How do a prompt and the tokens behind it make a text, where an output may have several lines?

A model of lines that stand alone says one line. A model of a stream or of windows goes on behind the end of a line;
where that is a token, the next one is read behind the begin of sentence, as in training.
"""

from __future__ import annotations

import codecs
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from heed.decoding.hypothesis import Hypothesis
from heed.text.line_ends import LineEnd, encode_ended
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

EOS_ID = Vocabulary.eos_id


@dataclass(frozen=True)
class TextForm:
    """A tokenizer, and what ends a line of the model's text; None: an output is one line."""

    tokenizer: Tokenizer
    line_end: LineEnd | None = None

    @property
    def never(self) -> tuple[int, ...]:
        """Tokens that a model of this text has never had to say, and is not asked for."""
        ids = Vocabulary
        ends = () if self.line_end in (None, "eos") else (ids.eos_id,)
        return (ids.pad_id, ids.bos_id, ids.unk_id, *ends, *self.tokenizer.vocabulary.tag_ids.values())

    @property
    def read_for_end(self) -> int | None:
        """What is read in the place of an end of sentence; None where the text ends with it."""
        return None if self.line_end is None else Vocabulary.bos_id

    @property
    def spaced(self) -> bool:
        """Whether each word is spelled with a space behind it, which the last one of a line does not have."""
        return self.tokenizer.bytes_of([Vocabulary.unk_id])[0].endswith(b" ")

    def gap(self, before: str, text: str) -> str:
        """What stands between a text and what was said behind it: a space, where no word brings one of its own."""
        needed = self.spaced and before and text and not before[-1].isspace() and not text[0].isspace()
        return " " if needed else ""

    def behind(self, before: str, found: Hypothesis) -> Hypothesis:
        """A hypothesis whose text reads right behind another."""
        return replace(found, text=self.gap(before, found.text) + found.text)

    @cached_property
    def spelled(self) -> list[bytes]:
        """What each token adds to a text; behind a word a space, also at the end of a line."""
        pieces = self.tokenizer.bytes_of(range(len(self.tokenizer.vocabulary)))
        if self.line_end is None:
            return [piece.replace(b"\n", b" ") for piece in pieces]
        pieces[EOS_ID] = b"\n"
        return pieces

    def read(self, prompt: str, normaliser: Normaliser) -> list[int]:
        """The ids that a model reads, behind the begin of sentence, before it goes on from a prompt."""
        if self.line_end is None:
            return self.tokenizer.encode([normaliser.apply(prompt)])[0]
        *lines, last = map(normaliser.apply, prompt.split("\n"))
        ended = [Vocabulary.bos_id if id == EOS_ID else id for ids in self._ended(lines) for id in ids]
        return ended + self.tokenizer.encode([last])[0]

    def _ended(self, lines: Sequence[str]) -> list[list[int]]:
        assert self.line_end is not None
        return encode_ended(self.tokenizer, lines, self.line_end)

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence."""
        if self.line_end is None:
            return [text.replace("\n", " ") for text in self.tokenizer.decode(sequences)]
        return ["\n".join(self.tokenizer.decode(_split(ids))) for ids in sequences]

    def so_far(self, ids: Sequence[int]) -> str:
        """The text of tokens that others follow: without the first bytes of a character that is not complete."""
        [text] = self.texts([ids])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(b"".join(self.spelled[id] for id in ids))
        return text.removesuffix("\ufffd") if decoder.getstate()[0] else text


def _split(ids: Sequence[int]) -> list[list[int]]:
    """What stands between the ends of sentences."""
    lines: list[list[int]] = [[]]
    for is_end, group in groupby(ids, lambda id: id == EOS_ID):
        if is_end:
            lines.extend([] for _ in group)
        else:
            lines[-1].extend(group)
    return lines


def without_what_was_cut(form: TextForm, hypothesis: Hypothesis) -> Hypothesis:
    """Only the tokens of the text, and their probability: a stop cuts it in the middle of its tokens.

    The score stays: it is that of all that was said, in which a stop counts as the end of a sentence does.
    """
    ids, text = hypothesis.ids, hypothesis.text
    behind = " " if form.spaced else ""

    def has_all(number: int) -> bool:
        return (form.texts([ids[:number]])[0] + behind).startswith(text)

    number = bisect_left(range(len(ids)), True, key=has_all)
    if form.texts([ids])[0] == text or number == len(ids):
        return hypothesis
    kept = hypothesis.token_log_probs[:number]
    return replace(hypothesis, ids=ids[:number], token_log_probs=kept, log_prob=math.fsum(kept))
