"""Checks of single lines: encoding, control characters, scripts, markup, tokenisation."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from heed.text.doctor.findings import Check, Finding, Tallies, Tally, Thresholds, merge_tallies
from heed.text.language.scripts import UNSPACED_BLOCKS, main_script, mixed_word
from heed.text.readers.lines import UTF_16_BE, UTF_16_LE, utf_16_of

# What the bytes 0x80 to 0xBF of UTF-8 become when they are read as Windows-1252 or Latin-1.
_TAIL = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
# A capital word may also end in "Ã", before a sign that is such a byte, too: MANHÃ…
_CAPITAL_AT_END = "(?<=[A-ZÀ-ÂÄ-ÖØ-ÞĀ-ſƠƯẠ-ỹ]Ã)[…”»](?!\\w)"
_DAMAGE = re.compile(
    rf"\ufffd|[\u0080-\u0084\u0086-\u009f]|Ã(?!{_CAPITAL_AT_END}){_TAIL}|Â[\u0080-\u00bf]|â€{_TAIL}|ð[Ÿ\u009f]{_TAIL}|ï»¿"
    rf"|(?<=[a-z])[ÄÅÐÑ]{_TAIL}|(?:[Ä-ß]{_TAIL}){{3}}|(?:[à-ï]{_TAIL}{{2}}){{2}}"
)
_TAGS = "a|b|i|u|em|br|hr|p|div|span|font|strong|table|td|tr|li|ul|ol|h[1-6]|img|ref|sup|sub|script|style"
_MARKUP = re.compile(rf"&(?:[a-z]{{2,8}}|#\d{{1,6}}|#x[0-9a-f]{{1,5}});|</?(?:{_TAGS})\b[^<>]{{0,200}}>", re.IGNORECASE)

# fmt: off
ASCII_CHECKS = (
    Check("nul", "contain a NUL character",
          "The normaliser removes it. If most lines contain one, the file is UTF-16: convert it with "
          f"`iconv -f {UTF_16_LE} -t UTF-8`.",
          stop=Thresholds.stop_nul, pattern=re.compile("\0")),
    Check("control", "contain control characters",
          "The normaliser removes them. Check the program that wrote the file.",
          pattern=re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f]")),
    Check("carriage-return", "contain a carriage return or a line feed",
          "Replace it with a space, or split the line there on both sides.", pattern=re.compile("[\r\n]")),
    Check("markup", "contain HTML", "Remove tags and decode entities such as &amp; before training.", pattern=_MARKUP),
)
UNICODE_CHECKS = (
    Check("damaged", "are damaged by a wrong encoding (such as “Ã¤” for “ä”, or U+FFFD)",
          "Create the text again from its source, read in the right encoding.",
          stop=Thresholds.stop_damaged, pattern=_DAMAGE),
    Check("byte-order-mark", "contain a byte-order mark inside",
          "The normaliser removes it. It usually comes from concatenating files.", pattern=re.compile("\ufeff")),
    Check("line-separator", "contain U+0085, U+2028 or U+2029, which heed does not treat as line ends",
          "Check that the program that wrote the file does not either.", pattern=re.compile("[\x85\u2028\u2029]")),
)
OTHER_CHECKS = (
    Check("mixed-word", "have a word that mixes Latin letters with Cyrillic or Greek lookalikes",
          "Correct the words or remove the lines: a model cannot learn such words."),
    Check("not-nfc", "are not in Unicode normal form C", "The normaliser corrects this.", warn=1.0),
    Check("upper-case", "are all in upper case", "A model treats such lines almost as another language.", warn=1.0),
    Check("csv-quotes", "are quoted as in CSV; the quotes are read as part of the text",
          "If this is a table, give it a name that ends in .csv (tabs may separate its columns; heed train also "
          "accepts --data.format=csv); otherwise remove the quotes."),
    Check("tokenised", "have a space before a comma or full stop: the text is tokenised",
          "Train on plain text if you can: scores on tokenised text cannot be compared with others.", warn=1.0),
)
# fmt: on
_NEVER_SMALL = re.compile("[\u13a0-\u13f5\u1c90-\u1cbf]")
"""Cherokee, whose small letters are hardly used, and Georgian capitals, which are only used for whole lines."""
_CSV_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SUSPECT = re.compile("[\0-\x08\n-\x1f\x7f&<]")
_ASCII_LETTER = re.compile("[A-Za-z]")
RETURNS_PER_LINE = 10
"""Carriage returns per line above which they are the line ends of the text."""
_STOP = re.compile(r"\w(?P<space> ?)(?:[.,](?: |\Z)|[。、，])")


@dataclass
class EvenSample:
    """Sample of evenly spaced lines of a stream of unknown length: between `SIZE` and 2 x `SIZE` of a long one."""

    SIZE: ClassVar = 2500
    MAX_CHARACTERS: ClassVar = 500

    lines: list[str] = field(default_factory=list)
    step: int = 1
    """Their distance in the stream."""
    num_seen: int = 0
    """Lines of the stream so far."""

    @classmethod
    def of_part(cls, first: int, total: int) -> EvenSample:
        """The sample of a part of a stream of `total` lines, from line `first` on, counted from 0."""
        sample = cls(num_seen=first)
        while -(-total // sample.step) >= 2 * sample.SIZE:
            sample.step *= 2
        return sample

    def add(self, line: str) -> None:
        """Add the next line of the stream."""
        if self.num_seen % self.step == 0:
            self.lines.append(line[: self.MAX_CHARACTERS])
            if len(self.lines) == 2 * self.SIZE:
                del self.lines[1::2]
                self.step *= 2
        self.num_seen += 1

    def merge(self, next_part: EvenSample) -> None:
        """Add the sample of the next part of the same stream."""
        self.lines += next_part.lines
        self.num_seen = next_part.num_seen


@dataclass
class LineScan:
    """Counts the problems in the lines of one side; `side` is its name in messages: "source", "validation target"."""

    side: str
    sample: EvenSample = field(default_factory=EvenSample)
    num_lines: int = 0
    num_characters: int = 0
    num_words: int = 0
    utf_16: str = ""
    """The variety of UTF-16 that the first line looks like; empty: none."""
    num_returns: int = 0
    num_with_stop: int = 0
    num_with_quote: int = 0
    num_with_doubled: int = 0
    tallies: Tallies = field(default_factory=lambda: defaultdict(Tally))
    scripts: Tallies = field(default_factory=lambda: defaultdict(Tally))

    def add(self, number: int, line: str) -> None:
        """Examine line `number`, counted from 1."""
        self.num_lines += 1
        self.num_characters += len(line)
        self.num_words += len(line.split())
        self.sample.add(line)
        if number == 1:
            self.utf_16 = utf_16_of(line.encode("latin-1", "replace"))
        if _SUSPECT.search(line):
            self._match(ASCII_CHECKS, number, line)
            self.num_returns += line.count("\r")
        if not line.isascii():
            self._look_beyond_ascii(number, line)
        elif _ASCII_LETTER.search(line):
            self.scripts["Latin"].add(number, line)
        if '"' in line:
            self._look_at_quotes(number, line)
        if line.isupper() and len(line) > 10 and _is_in_capitals(line):
            self.tallies["upper-case"].add(number, line)
        if stop := _STOP.search(line):
            self.num_with_stop += 1
            if stop["space"]:
                self.tallies["tokenised"].add(number, line, stop.start())

    def _match(self, checks: Iterable[Check], number: int, line: str) -> None:
        for check in checks:
            if check.pattern and (match := check.pattern.search(line)):
                self.tallies[check.name].add(number, line, match.start())

    def _look_beyond_ascii(self, number: int, line: str) -> None:
        self._match(UNICODE_CHECKS, number, line)
        if not unicodedata.is_normalized("NFC", line):
            self.tallies["not-nfc"].add(number, line)
        if script := main_script(line):
            self.scripts[script].add(number, line)
        if (at := mixed_word(line)) is not None:
            self.tallies["mixed-word"].add(number, line, at)

    def _look_at_quotes(self, number: int, line: str) -> None:
        self.num_with_quote += 1
        if _CSV_QUOTED.fullmatch(line):
            self.tallies["csv-quotes"].add(number, line)
            self.num_with_doubled += '""' in line[1:-1]

    def merge(self, next_part: LineScan) -> None:
        """Add the counts of the next part of the lines."""
        self.sample.merge(next_part.sample)
        self.num_lines += next_part.num_lines
        self.num_characters += next_part.num_characters
        self.num_words += next_part.num_words
        self.utf_16 = self.utf_16 or next_part.utf_16
        self.num_returns += next_part.num_returns
        self.num_with_stop += next_part.num_with_stop
        self.num_with_quote += next_part.num_with_quote
        self.num_with_doubled += next_part.num_with_doubled
        merge_tallies(self.tallies, next_part.tallies)
        merge_tallies(self.scripts, next_part.scripts)

    @property
    def mean_words(self) -> float:
        """Words per line."""
        return self.num_words / max(self.num_lines, 1)

    @property
    def mean_characters(self) -> float:
        """Characters per line."""
        return self.num_characters / max(self.num_lines, 1)

    @property
    def unspaced_share(self) -> float:
        """Share of the lines with letters that are in a script without spaces between words."""
        total = sum(tally.count for tally in self.scripts.values())
        return sum(tally.count for name, tally in self.scripts.items() if name in UNSPACED_BLOCKS) / max(total, 1)

    @property
    def is_csv_quoted(self) -> bool:
        """Whether quotes are as CSV writes them: almost only around whole lines, with inner ones doubled."""
        count = self.tallies["csv-quotes"].count
        return count > 0.9 * self.num_with_quote and (self.num_with_doubled > 0 or 2 * count > self.num_lines)

    @property
    def tokenised_share(self) -> float | None:
        """Share of the lines with a comma or full stop that have a space before it; None if there are too few."""
        if self.num_with_stop * 5 < self.num_lines or not self.num_lines:
            return None
        return self.tallies["tokenised"].count / self.num_with_stop

    def findings(self, opposite: LineScan | None = None) -> Iterator[Finding]:
        """The findings. `opposite`: the other side, which may be in the same file."""
        skipped = set()
        if self.num_returns > RETURNS_PER_LINE * self.num_lines:
            skipped.add("carriage-return")
            advice = "Convert them to line feeds: `tr '\\r' '\\n' < F > G`."
            message = f"The {self.side} lines end in carriage returns, as on old Macs: {self.num_returns:,} of them."
            yield Finding("old-mac", "stop", self.num_returns, self.num_returns, message, advice)
        if not self.is_csv_quoted:
            skipped.add("csv-quotes")
        if (self.tokenised_share or 0.0) <= Thresholds.tokenised:
            skipped.add("tokenised")
        nul, *others = ASCII_CHECKS
        nul = replace(nul, advice=nul.advice.replace(UTF_16_LE, self._utf_16_with(opposite)))
        for check in (nul, *others, *UNICODE_CHECKS, *OTHER_CHECKS):
            if check.name not in skipped:
                yield from check.findings(self.tallies[check.name], self.num_lines, f"{self.side} lines")
        yield from self._other_scripts()

    def _utf_16_with(self, opposite: LineScan | None) -> str:
        """The variety of UTF-16 that the file may be in; after the tab of a table UTF-16LE starts with a NUL too."""
        kinds = {self.utf_16, opposite.utf_16 if opposite else ""} - {""}
        return UTF_16_BE if kinds == {UTF_16_BE} else UTF_16_LE

    def _other_scripts(self) -> Iterator[Finding]:
        main, *others = sorted(self.scripts, key=lambda name: -self.scripts[name].count) or [""]
        tally = Tally()
        for name in others:
            tally.count += self.scripts[name].count
            tally.examples += self.scripts[name].examples
        tally.examples = sorted(tally.examples)[: Thresholds.num_examples]
        counts = ", ".join(f"{name} {self.scripts[name].count:,}" for name in others[:3])
        what = f"are not in the main script of this side, {main} ({counts})"
        check = Check("other-script", what, "Remove them unless you expect such input.")
        yield from check.findings(tally, self.num_lines, f"{self.side} lines")


def _is_in_capitals(line: str) -> bool:
    """Whether most letters of a line without small ones are capitals: the others may be of a script without case."""
    capitals = sum(char.isupper() and not _NEVER_SMALL.match(char) for char in line)
    return 2 * capitals > sum(map(str.isalpha, line))
