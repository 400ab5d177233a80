"""Answers without a model: the sliding window, and the nearest candidate.

The sliding window with distances (Richardson, Burges & Renshaw 2013, "MCTest", algorithms 1 and 2; on SQuAD as in
Rajpurkar et al. 2016, section 5.1) scores a candidate A for the question Q by the best match of A ∪ Q with as many
words of the context P in a row, rare ones counting more,

    max_j Σ_i IC(P_{j+i}) [P_{j+i} ∈ A ∪ Q],    IC(w) = log(1 + 1 / C(w)),

less the distance between A and the words of Q, as a share of the context. Only candidates of the sentences that share
most words and pairs of words with the question are compared. Rajpurkar et al. take the constituents of a parser as
candidates; here they are the longest runs of words between function words and punctuation, without those that only
repeat the question.

Where candidates are given and a word is marked, the answer is the candidate with the fewest characters between them
(the token distance of Webster et al. 2018, section 5.1, on the names that are given).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from heed.tasks.span.words import Cell, SplitQuestion
from heed.text.readers.questions import Answer, Question

WINDOW, NEAREST = "sliding window", "nearest candidate"
_LISTED = """
    a about after all also although an and any are as at be because been before being between both but by can
    could did do does during each for from had has have he her him his how i if in into is it its just many
    may me might more most much must no nor not of off on once one only or other our out over own s shall she
    should so some such than that the their them then there these they this those through to too under until
    up us very was we were what when where which while who whom whose why will with would you your
"""
FUNCTION_WORDS = frozenset(_LISTED.split())
ENDS = (".", "!", "?")


def baseline_name(questions: Sequence[Question]) -> str:
    """The baseline for these questions."""
    return NEAREST if all(each.candidates and each.mark is not None for each in questions) else WINDOW


def baseline_answer(question: Question) -> str:
    """The answer of the nearest candidate or of the sliding window."""
    if question.candidates and question.mark is not None:
        return nearest_candidate(question)
    split = SplitQuestion.of(question)
    if question.candidates:
        return max(question.candidates, key=lambda each: _score(split, split.cell(each) or (0, 0))).text
    cell = sliding_window(split)
    start, end = split.text(cell) if cell else (0, 0)
    return question.context[start:end]


def nearest_candidate(question: Question) -> str:
    """The candidate with the fewest characters between it and the marked word."""
    mark = question.mark or 0

    def distance(candidate: Answer) -> float:
        found = candidate.found_in(question.context)
        if found is None or found.start is None:
            return math.inf
        return mark - found.start - len(found.text) if found.start < mark else found.start - mark

    return min(question.candidates, key=distance).text


def sliding_window(split: SplitQuestion) -> Cell | None:
    """The best candidate; None for a context without any."""
    words, asked = _folded(split)
    best: list[Cell] = []
    most = -1
    for begin, end in _sentences(words):
        cells = [cell for cell in _candidates(words, begin, end) if not {*_inside(words, cell)} <= asked]
        overlap = _overlap(words[begin:end], [word.text.casefold() for word in split.asked])
        if cells and overlap >= most:
            best = cells if overlap > most else [*best, *cells]
            most = overlap
    return max(best, key=lambda cell: _score(split, cell)) if best else None


def _folded(split: SplitQuestion) -> tuple[list[str], set[str]]:
    return [word.text.casefold() for word in split.words], {word.text.casefold() for word in split.asked}


def _inside(words: Sequence[str], cell: Cell) -> Sequence[str]:
    return words[cell[0] : sum(cell) + 1]


def _sentences(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first word of each sentence, and the one after its last."""
    ends = [at + 1 for at, word in enumerate(words) if word in ENDS and at + 1 < len(words)]
    return pairwise([0, *ends, len(words)])


def _candidates(words: Sequence[str], begin: int, end: int) -> Iterator[Cell]:
    """The longest runs of content words between two places."""
    is_content = [any(map(str.isalnum, word)) and word not in FUNCTION_WORDS for word in words[begin:end]]
    for content, run in groupby(range(begin, end), key=lambda at: is_content[at - begin]):
        if content:
            places = [*run]
            yield places[0], len(places) - 1


def _overlap(sentence: Sequence[str], asked: Sequence[str]) -> int:
    """The words and pairs of neighbouring words of a question that a sentence has."""
    return len({*sentence} & {*asked}) + len({*pairwise(sentence)} & {*pairwise(asked)})


def _score(split: SplitQuestion, cell: Cell) -> float:
    """The best match of question and candidate with a window of the context, less the distance between them."""
    words, asked = _folded(split)
    counts = Counter(words)
    target = asked | {*_inside(words, cell)}
    values = [math.log(1 + 1 / counts[word]) if word in target else 0.0 for word in words]
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    size = min(len(target), len(words))
    window = max(sums[end] - sums[end - size] for end in range(size, len(words) + 1))
    return window - _distance(words, asked, {*_inside(words, cell)})


def _distance(words: Sequence[str], asked: set[str], answer: set[str]) -> float:
    """The fewest words from one of the answer to one of the question, as a share of the context; 1 without either."""
    of_question = asked & {*words} - FUNCTION_WORDS
    of_answer = answer - asked - FUNCTION_WORDS
    last: dict[bool, int] = {}
    nearest = len(words)
    for at, word in enumerate(words):
        for mine, group in ((True, of_question), (False, of_answer)):
            if word in group:
                last[mine] = at
                nearest = min(nearest, at - last.get(not mine, -len(words)))
    return min(1.0, nearest / max(1, len(words) - 1))
