"""Checks of single lines: encoding, control characters, scripts, markup, tokenisation."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from heed.text.doctor.findings import Finding, Tally, Thresholds, fault
from heed.text.language.scripts import main_script, mixed_word
from heed.text.readers.lines import UTF_16_BE, UTF_16_LE, utf_16_of


@dataclass(frozen=True)
class LineCheck:
    """A problem that a pattern detects."""

    name: str
    pattern: re.Pattern[str]
    what: str
    advice: str


# What the bytes 0x80 to 0xBF of UTF-8 become when they are read as Windows-1252 or Latin-1.
_TAIL = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_DAMAGE = re.compile(
    rf"\ufffd|[\u0080-\u0084\u0086-\u009f]|Ã{_TAIL}|Â[\u0080-\u00bf]|â€{_TAIL}|ð[Ÿ\u009f]{_TAIL}|ï»¿"
    rf"|(?<=[a-z])[ÄÅÐÑ]{_TAIL}|(?:[Ä-ß]{_TAIL}){{3}}|(?:[à-ï]{_TAIL}{{2}}){{2}}"
)
_TAGS = "a|b|i|u|em|br|hr|p|div|span|font|strong|table|td|tr|li|ul|ol|h[1-6]|img|ref|sup|sub|script|style"
_MARKUP = re.compile(rf"&(?:[a-z]{{2,8}}|#\d{{1,6}}|#x[0-9a-f]{{1,5}});|</?(?:{_TAGS})\b[^<>]{{0,200}}>", re.IGNORECASE)

ASCII_CHECKS = (
    LineCheck(
        "nul",
        re.compile("\0"),
        "contain a NUL character",
        "The normaliser removes it. If most lines contain one, the file is UTF-16: convert it with "
        f"`iconv -f {UTF_16_LE} -t UTF-8`.",
    ),
    LineCheck(
        "control",
        re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f]"),
        "contain control characters",
        "The normaliser removes them; find out where they come from.",
    ),
    LineCheck(
        "carriage-return",
        re.compile("[\r\n]"),
        "contain a carriage return or a line feed",
        "Replace it with a space, or split the line there on both sides.",
    ),
    LineCheck("markup", _MARKUP, "contain HTML", "Remove tags and decode entities such as &amp; before training."),
)
UNICODE_CHECKS = (
    LineCheck(
        "damaged",
        _DAMAGE,
        "are damaged by a wrong encoding (such as “Ã¤” for “ä”, or U+FFFD)",
        "Create the text again from its source, read in the right encoding.",
    ),
    LineCheck(
        "byte-order-mark",
        re.compile("\ufeff"),
        "contain a byte-order mark inside",
        "The normaliser removes it; it comes from concatenating files.",
    ),
    LineCheck(
        "line-separator",
        re.compile("[\x85\u2028\u2029]"),
        "contain U+0085, U+2028 or U+2029, which heed does not treat as line ends",
        "Make sure that the tool that wrote the file did not either.",
    ),
)
_CSV_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SUSPECT = re.compile("[\0-\x08\n-\x1f\x7f&<]")
_ASCII_LETTER = re.compile("[A-Za-z]")
RETURNS_PER_LINE = 10
"""A text with more carriage returns per line than this uses them as its line ends."""
_STOP = re.compile(r"\w(?P<space> ?)(?:[.,](?: |\Z)|[。、，])")


class EvenSample:
    """Lines spread evenly over a stream of unknown length: between `size` and 2 x `size` of a long one."""

    MAX_CHARACTERS = 500

    def __init__(self, size: int = 2500) -> None:
        self.lines: list[str] = []
        self.step = 1
        """Their distance in the stream."""
        self._size = size
        self._seen = 0

    def add(self, line: str) -> None:
        """Add the next line of the stream."""
        if self._seen % self.step == 0:
            self.lines.append(line[: self.MAX_CHARACTERS])
            if len(self.lines) == 2 * self._size:
                del self.lines[1::2]
                self.step *= 2
        self._seen += 1


class LineScan:
    """Counts the problems in the lines of one side; `side` is its name in messages: "source", "validation target"."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.num_lines = 0
        self.num_characters = 0
        self.num_words = 0
        self.sample = EvenSample()
        self._utf_16 = ""
        """The variety of UTF-16 that the first line looks like; empty: none."""
        self._num_returns = 0
        self._num_with_stop = 0
        self._num_with_quote = 0
        self._num_with_doubled = 0
        self._tallies: dict[str, Tally] = defaultdict(self._tally)
        self._scripts: dict[str, Tally] = defaultdict(self._tally)

    def _tally(self) -> Tally:
        return Tally()

    def add(self, number: int, line: str) -> None:
        """Examine line `number`, counted from 1."""
        self.num_lines += 1
        self.num_characters += len(line)
        self.num_words += len(line.split())
        self.sample.add(line)
        if number == 1:
            self._utf_16 = utf_16_of(line.encode("latin-1", "replace"))
        if _SUSPECT.search(line):
            self._match(ASCII_CHECKS, number, line)
            self._num_returns += line.count("\r")
        if not line.isascii():
            self._look_beyond_ascii(number, line)
        elif _ASCII_LETTER.search(line):
            self._scripts["Latin"].add(number, line)
        if '"' in line:
            self._look_at_quotes(number, line)
        if line.isupper() and len(line) > 10:
            self._tallies["upper-case"].add(number, line)
        if stop := _STOP.search(line):
            self._num_with_stop += 1
            if stop["space"]:
                self._tallies["tokenised"].add(number, line, stop.start())

    def _match(self, checks: tuple[LineCheck, ...], number: int, line: str) -> None:
        for check in checks:
            if match := check.pattern.search(line):
                self._tallies[check.name].add(number, line, match.start())

    def _look_beyond_ascii(self, number: int, line: str) -> None:
        self._match(UNICODE_CHECKS, number, line)
        if not unicodedata.is_normalized("NFC", line):
            self._tallies["not-nfc"].add(number, line)
        if script := main_script(line):
            self._scripts[script].add(number, line)
        if (at := mixed_word(line)) is not None:
            self._tallies["mixed-word"].add(number, line, at)

    def _look_at_quotes(self, number: int, line: str) -> None:
        self._num_with_quote += 1
        if _CSV_QUOTED.fullmatch(line):
            self._tallies["csv-quotes"].add(number, line)
            self._num_with_doubled += '""' in line[1:-1]

    @property
    def is_csv_quoted(self) -> bool:
        """Whether quotes are as CSV writes them: almost only around whole lines, with inner ones doubled."""
        count = self._tallies["csv-quotes"].count
        return count > 0.9 * self._num_with_quote and (self._num_with_doubled > 0 or 2 * count > self.num_lines)

    @property
    def tokenised_share(self) -> float | None:
        """Of the lines with a comma or full stop, the share with a space before it; None if there are too few."""
        if self._num_with_stop * 5 < self.num_lines or not self.num_lines:
            return None
        return self._tallies["tokenised"].count / self._num_with_stop

    def findings(self, opposite: LineScan | None = None) -> Iterator[Finding]:
        """The findings. `opposite`: the other side, which may be in the same file."""
        stops = {"damaged": Thresholds.stop_damaged, "nul": Thresholds.stop_nul}
        is_old_mac = self._num_returns > RETURNS_PER_LINE * self.num_lines
        if is_old_mac:
            advice = "Convert them to line feeds: `tr '\\r' '\\n' < F > G`."
            message = f"The {self.side} lines end in carriage returns, as on old Macs: {self._num_returns:,} of them."
            yield Finding("old-mac", "stop", self._num_returns, self._num_returns, message, advice)
        for check in (*ASCII_CHECKS, *UNICODE_CHECKS):
            if not (is_old_mac and check.name == "carriage-return"):
                stop = stops.get(check.name, 1.0)
                advice = check.advice.replace(UTF_16_LE, self._utf_16_with(opposite))
                yield from self._fault(check.name, check.what, advice, stop=stop, warn=Thresholds.warn)
        yield from self._fault(
            "mixed-word",
            "have a word that mixes Latin letters with Cyrillic or Greek lookalikes",
            "Correct the words or remove the lines: a model cannot learn such words.",
            warn=Thresholds.warn,
        )
        yield from self._fault("not-nfc", "are not in Unicode normal form C", "The normaliser corrects that.")
        yield from self._fault(
            "upper-case", "are all in upper case", "To a model such lines are almost another language."
        )
        if self.is_csv_quoted:
            what = "are in quotes as CSV writes them, which are read as part of the text"
            advice = (
                "If this is a table, give it a name that ends in .csv (tabs may separate its columns; heed train also "
                "accepts --data.format=csv); otherwise remove the quotes."
            )
            yield from self._fault("csv-quotes", what, advice, warn=Thresholds.warn)
        if (self.tokenised_share or 0.0) > Thresholds.tokenised:
            what = "have a space before a comma or full stop: the text is tokenised"
            advice = "Train on plain text if you can: scores on tokenised text cannot be compared with others."
            yield from self._fault("tokenised", what, advice)
        yield from self._other_scripts()

    def _utf_16_with(self, opposite: LineScan | None) -> str:
        """The variety of UTF-16 that the file may be in; after the tab of a table UTF-16LE starts with a NUL too."""
        kinds = {self._utf_16, opposite._utf_16 if opposite else ""} - {""}
        return UTF_16_BE if kinds == {UTF_16_BE} else UTF_16_LE

    def _fault(self, name: str, what: str, advice: str, stop: float = 1.0, warn: float = 1.0) -> Iterator[Finding]:
        of = f"{self.side} lines"
        return fault(name, self._tallies[name], self.num_lines, of, what, advice, stop=stop, warn=warn)

    def _other_scripts(self) -> Iterator[Finding]:
        main, *others = sorted(self._scripts, key=lambda name: -self._scripts[name].count) or [""]
        tally = self._tallies["other-script"] = self._tally()
        for name in others:
            tally.count += self._scripts[name].count
            tally.examples += self._scripts[name].examples
        tally.examples = sorted(tally.examples)[: Thresholds.num_examples]
        counts = ", ".join(f"{name} {self._scripts[name].count:,}" for name in others[:3])
        what = f"are not in the main script of this side, {main} ({counts})"
        yield from self._fault("other-script", what, "Remove them unless you expect such input.", warn=Thresholds.warn)
