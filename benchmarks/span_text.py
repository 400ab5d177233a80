"""Text for the word vectors of a reader of questions: WikiText-2 and the training questions, as it looks words up.

    python benchmarks/span_text.py wiki.train.tokens.xz train.jsonl.xz > text.txt

Each line is a paragraph, a context or a question: its words in lower case with digits read as 0, separated by blanks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from heed.tasks.span.data import SpanData
from heed.tasks.words import looked_up, normalised
from heed.text.readers.lines import read_lines
from heed.text.readers.questions import QuestionTable
from heed.text.words import split_words

DATA = SpanData(lower_case=True, zero_digits=True)
JOINED = {" @-@ ": "-", " @,@ ": ",", " @.@ ": "."}
"""How WikiText-2 splits numbers and words with hyphens."""


def texts(wiki: str, questions: str) -> Iterator[str]:
    """The paragraphs of WikiText-2, then each context and its questions."""
    for line in read_lines(wiki):
        for split, joined in JOINED.items():
            line = line.replace(split, joined)
        yield line.replace("<unk>", "unk")
    before = None
    for question in QuestionTable(questions):
        if question.context != before:
            yield question.context
        before = question.context
        yield question.question


def main() -> None:
    """Print the text."""
    for text in texts(*sys.argv[1:3]):
        words = [looked_up(normalised(word.text, DATA), DATA) for word in split_words(text)]
        if len(words) > 3:
            print(" ".join(words))


if __name__ == "__main__":
    main()
