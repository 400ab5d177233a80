"""Diagnosis of tables of questions with their answers in a text, before a model is trained to find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from heed.core.errors import DataError
from heed.core.progress import watched
from heed.text.doctor.files import fingerprints_of_table
from heed.text.doctor.findings import Check, Diagnosis, Finding, Severity, Tally, sorted_findings
from heed.text.doctor.lines import LineScan
from heed.text.hashing import hash_text
from heed.text.normalise import Normaliser
from heed.text.readers.questions import Answer, Question, QuestionTable
from heed.text.words import split_words

MIN_QUESTIONS = 20
"""Fewer answered questions than this stop the training."""
FEW_QUESTIONS = 5000
"""Fewer questions than this are a warning, unless answers are chosen among candidates."""
LONG_ANSWER = 0.99
"""The share of answers that the longest answer of a model should reach."""
A_LITTLE = 10
"""An answer is off by a little up to this number of characters."""

EMPTY = Check("empty", "have no question or no context, and are left out", "Fill them in, or remove them.", stop=0.5)
LOST = Check(
    "not-in-context", "have an answer that is not in their context, and cannot be trained on",
    "Answers must be copied from the context, letter for letter.", stop=0.5,
)  # fmt: skip
OFF = Check(
    "off-by-a-little", f"have an answer up to {A_LITTLE} characters from where `start` puts it",
    "It is read where it really is. Count characters from 0, in the text as it is written.",
)  # fmt: skip
ELSEWHERE = Check(
    "misplaced", "have an answer that is not at `start`, but elsewhere in the context",
    "The nearest place is used. Count characters, not bytes or words, from 0.",
)  # fmt: skip
CUT = Check(
    "cut-word",
    "have an answer that begins or ends inside a word",
    "For training, it is extended to whole words.",
    warn=0.05,
)
REPEATED = Check("duplicate", "repeat an earlier question about the same context", "One of each is enough.", warn=0.2)
NO_CHOICE = Check(
    "no-candidate", "have an answer that is not among their candidates, and are left out", "Add it to them.", stop=0.5
)


@dataclass
class QuestionScan:
    """What is counted over questions."""

    normaliser: Normaliser = field(default_factory=Normaliser)
    num_questions: int = 0
    num_usable: int = 0
    num_unanswered: int = 0
    num_chosen: int = 0
    """Questions with candidates."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    """Hashes of questions with their contexts."""
    contexts: set[int] = field(default_factory=set)
    answer_words: Counter[int] = field(default_factory=Counter)
    context_words: int = 0

    def add(self, question: Question) -> bool:
        """Count a question; returns whether it can be trained on."""
        self.num_questions += 1
        if not (question.question.strip() and question.context.strip()):
            self._tally(EMPTY, question)
            return False
        key, context = self.keys(question)
        if key in self.seen:
            self._tally(REPEATED, question)
        self.seen.add(key)
        self.contexts.add(context)
        self.context_words += len(question.context.split())
        self.num_unanswered += not question.answers
        self.num_chosen += bool(question.candidates)
        usable = self._look_at_answers(question)
        self.num_usable += usable
        return usable

    def keys(self, question: Question) -> tuple[int, int]:
        """Hashes of a question with its context, and of the context, both normalised."""
        text, context = map(self.normaliser.apply, (question.question, question.context))
        return hash_text(f"{text}\t{context}"), hash_text(context)

    def _look_at_answers(self, question: Question) -> bool:
        """Count what is wrong with the answers, the worst of each question; returns whether one can be found."""
        answers = question.answers or ()
        found = [place for answer in answers if (place := answer.found_in(question.context))]
        if answers and not found:
            self._tally(LOST, question)
            return False
        if question.candidates and not {each.text for each in found} <= {each.text for each in question.candidates}:
            self._tally(NO_CHOICE, question)
            return False
        moved = [_moved(answer, question.context) for answer in answers]
        if any(moved):
            self._tally(OFF if max(moved) <= A_LITTLE else ELSEWHERE, question)
        for number in {len(split_words(each.text)) for each in (*found, *question.candidates)}:
            self.answer_words[number] += 1
        if found and _cuts_word(found[0], question.context):
            self._tally(CUT, question)
        return True

    def _tally(self, check: Check, question: Question) -> None:
        text = f"{question.question} → {', '.join(dict.fromkeys(question.texts))}"
        self.tallies.setdefault(check.name, Tally()).add(question.number, text)

    @property
    def longest_answer(self) -> int:
        """Words that all but a hundredth of the answers have at most; all, if they are chosen among candidates."""
        left = (1.0 if self.num_chosen else LONG_ANSWER) * self.answer_words.total()
        for words, count in sorted(self.answer_words.items()):
            left -= count
            if left <= 0:
                return max(1, words)
        return 1

    def findings(self) -> Iterator[Finding]:
        """Findings about questions and answers."""
        for check in (EMPTY, LOST, OFF, ELSEWHERE, CUT, REPEATED, NO_CHOICE):
            yield from check.findings(self.tallies.get(check.name, Tally()), self.num_questions, "questions")
        answered = self.num_usable - self.num_unanswered
        if (self.num_usable < FEW_QUESTIONS and not self.num_chosen) or answered < MIN_QUESTIONS:
            severity: Severity = "stop" if answered < MIN_QUESTIONS else "warn"
            have = "question has" if answered == 1 else "questions have"
            message = f"Only {answered:,} {have} an answer that can be trained on."
            yield Finding("few", severity, answered, self.num_questions, message, f"Give at least {FEW_QUESTIONS:,}.")


def _moved(answer: Answer, context: str) -> int:
    """How many characters an answer is from where it should be; 0 if no place was given, or it is nowhere."""
    found = answer.found_in(context)
    if answer.start is None or found is None or found.start is None:
        return 0
    return abs(found.start - answer.start)


def _cuts_word(answer: Answer, context: str) -> bool:
    start = answer.start or 0
    end = start + len(answer.text)
    before, after = context[max(0, start - 1) : start + 1], context[end - 1 : end + 1]
    return any(len(pair) == 2 and pair.isalpha() and pair.isascii() for pair in (before, after))


def diagnose_questions(
    train: QuestionTable, valid: QuestionTable | None = None, test: QuestionTable | None = None, *,
    normaliser: Normaliser | None = None, quiet: bool = True,
) -> Diagnosis:  # fmt: skip
    """Examine a table of questions, and look for the questions of a validation and a test table in it."""
    scan, lines, problems = QuestionScan(normaliser or Normaliser()), LineScan("context"), list[Finding]()
    try:
        for question in watched(iter(train), "examining", "questions", quiet):
            scan.add(question)
            lines.add(question.number, f"{question.question} {' '.join(question.context.split())}")
    except DataError as error:
        if not scan.num_questions:
            raise
        problems.append(
            Finding("unreadable", "stop", 1, 1, f"The training data cannot be read to its end. {error}", "")
        )
    summary = [_summary(scan)]
    fingerprints = {"train": fingerprints_of_table(train.path)}
    for name, other in (("validation", valid), ("test", test)):
        if other is not None:
            found, text = _held_out(name, other, scan)
            problems += found
            summary.append(text)
            fingerprints[name] = fingerprints_of_table(other.path)
    of_lines = [each for each in lines.findings() if each.check not in ("empty", "few")]
    return Diagnosis(
        findings=sorted_findings([*problems, *of_lines, *scan.findings()]),
        num_pairs=scan.num_usable,
        statistics={
            "text_words": lines.mean_words, "text_characters": lines.mean_characters,
            "answer_words": scan.longest_answer, "num_unanswered": scan.num_unanswered,
            "num_contexts": len(scan.contexts), "num_chosen": scan.num_chosen,
        },
        fingerprints=fingerprints,
        summary=tuple(summary),
    )  # fmt: skip


def _summary(scan: QuestionScan) -> str:
    unanswered = f"without an answer: {scan.num_unanswered:,}; " * (scan.num_unanswered > 0)
    choice = f"with candidates: {scan.num_chosen:,}; " * (scan.num_chosen > 0)
    words = scan.context_words / max(1, scan.num_questions)
    share = "all" if scan.num_chosen else "99 % of the"
    number = len(scan.contexts)
    contexts = f"{number:,} context{'s' * (number != 1)} of {words:.0f} words on average"
    return (
        f"train: {scan.num_usable:,} questions about {contexts}; "
        f"{unanswered}{choice}{share} answers have at most {scan.longest_answer} words."
    )


def _held_out(name: str, table: QuestionTable, train: QuestionScan) -> tuple[list[Finding], str]:
    """Findings about a validation or test table, and its summary."""
    same, context = Tally(), Tally()
    number = 0
    for question in table:
        number += 1
        key, its_context = train.keys(question)
        if key in train.seen:
            same.add(question.number, question.question)
        elif its_context in train.contexts:
            context.add(question.number, question.question)
    leak = Check(
        f"{name}-leak", "are in the training data too", "Remove them from the training data.", warn=0.01, stop=0.5
    )
    shared = Check(
        f"{name}-context", "are about a context of the training data", "Divide data by contexts, not by questions."
    )
    findings = [
        *leak.findings(same, number, f"{name} questions"),
        *shared.findings(context, number, f"{name} questions"),
    ]
    return findings, f"{name}: {number:,} questions."
