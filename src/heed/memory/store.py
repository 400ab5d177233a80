"""Translation memory: sentences with translations by people, in one SQLite file.

A unit is a source, its translation, and what a model had translated where the unit corrects that. Each has a state:
"new" until somebody has looked at it, then "approved" or "rejected". A memory may hold several pairs of languages.

The file is in SQLite's write-ahead mode: an addition is complete or absent after a kill or a loss of power, readers do
not wait for a writer, and several processes may add at once.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

from heed.core.errors import DataError, MissingInputError, StorageError, UsageError
from heed.core.progress import message
from heed.text.language.codes import same_script
from heed.text.language.scripts import is_joined
from heed.text.words import split_words

State = Literal["new", "approved", "rejected"]
Change = Literal["both", "memory", "text"]
"""Where a piece is: in both a text and a source of the memory, or in one of them."""
_PAIRS = """
WITH RECURSIVE pair (src, tgt) AS (
    SELECT * FROM (SELECT src_lang, tgt_lang FROM unit ORDER BY 1, 2 LIMIT 1)
    UNION ALL
    SELECT src_lang, tgt_lang FROM pair JOIN unit ON id = coalesce(
        (SELECT id FROM unit WHERE src_lang = src AND tgt_lang > tgt ORDER BY src_lang, tgt_lang LIMIT 1),
        (SELECT id FROM unit WHERE src_lang > src ORDER BY src_lang, tgt_lang LIMIT 1)
    )
)
SELECT src, tgt FROM pair
"""
"""The pairs of languages in order. DISTINCT would read all units; this looks for the next pair in their index."""
FORMAT = 1
"""Version of the file's tables, SQLite's `user_version`."""
APPLICATION = 0x68656564
"""SQLite's `application_id`: "heed"."""
WAIT = 10.0
"""Seconds to wait for another process that writes."""
NUM_CANDIDATES = 40
"""Usable units with most trigrams of a source, among which near matches are looked for."""
MOST_ASKED = 1000
"""Units with most trigrams of which it is asked whether they can be used."""
MAX_TRIGRAMS = 120
MAX_EXACT = 16
"""Translations of one source among which one is looked for that does not look wrong."""
NEAR = 0.7
"""Least similarity of a near match."""

_TABLES = f"""
CREATE TABLE unit (
    id INTEGER PRIMARY KEY, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    machine TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN {get_args(State)}), created TEXT NOT NULL,
    UNIQUE (src_lang, tgt_lang, source, target)
);
CREATE VIRTUAL TABLE source_trigrams USING fts5 (source, content='unit', content_rowid='id', tokenize='trigram');
CREATE TRIGGER unit_added AFTER INSERT ON unit BEGIN
    INSERT INTO source_trigrams (rowid, source) VALUES (new.id, new.source);
END;
CREATE TRIGGER unit_deleted AFTER DELETE ON unit BEGIN
    INSERT INTO source_trigrams (source_trigrams, rowid, source) VALUES ('delete', old.id, old.source);
END;
PRAGMA user_version = {FORMAT};
PRAGMA application_id = {APPLICATION};
"""
_COLUMNS = "id, source, target, machine, state, created"


@dataclass(frozen=True)
class Unit:
    """A translation in a memory."""

    id: int
    source: str
    target: str
    machine: str
    """What a model had translated; empty if the unit corrects nothing."""
    state: State
    created: str
    """ISO 8601, in UTC."""


@dataclass(frozen=True)
class NearMatch:
    """A unit whose source is like a text."""

    unit: Unit
    similarity: float
    """Of the two sources, from 0 to 1: twice the characters in common, divided by those of both."""


class UnreadableMemoryError(DataError, StorageError):
    """A file that is not a memory, or is damaged: the data is wrong, and in a server, its storage has failed."""


def memory_of(path: Path, languages: tuple[str, str]) -> TranslationMemory:
    """The memory for the languages of a run, which are empty where they are unknown.

    Without units in exactly these languages, it is that of the only pair that differs from them in its regions: "en-GB"
    for "en", which is said. Raises UsageError if it has other languages only, and what opening a memory raises.
    """
    if not all(languages):
        return TranslationMemory(path)
    memory = TranslationMemory(path, languages)
    pairs = memory.pairs()
    pair = pair_of(languages, pairs)
    if pair == languages or not pairs:
        return memory
    memory.close()
    if pair is None:
        raise UsageError(
            f"{path} has no translation from {languages[0]} to {languages[1]}; it has {listed_pairs(pairs)}. Import "
            f"translations with --src-lang {languages[0]} --tgt-lang {languages[1]}."
        )
    message(f"{path}: its translations from {pair[0]} to {pair[1]} are used")
    return TranslationMemory(path, pair)


def pair_of(languages: tuple[str, str], pairs: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Those of the pairs of languages of a memory that are the languages of a run.

    It is exactly these languages or else the only pair that differs from them in its regions. A language of the run
    that is unknown, and so empty, may be any. None without such a pair.
    """
    if languages in pairs:
        return languages
    similar = [
        pair
        for pair in pairs
        if all(not own or _differ_in_region(other, own) for other, own in zip(pair, languages, strict=True))
    ]
    return similar[0] if len(similar) == 1 else None


def _differ_in_region(one: str, other: str) -> bool:
    """Whether two codes are one language in one script: `en` and `en_GB`, but not `sr-Latn` and `sr-Cyrl`."""
    first, second = (re.split("[-_]", code.lower())[0] for code in (one, other))
    return first == second and same_script(one, other)


def listed_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """`de to en, en to de`."""
    return ", ".join(f"{src} to {tgt}" for src, tgt in pairs)


class TranslationMemory:
    """An open memory for one pair of languages. Several threads may use it."""

    def __init__(self, path: Path, languages: tuple[str, str] | None = None, create: bool = False) -> None:
        """Open a memory, or create one.

        Without `languages`, they are those of its units. Raises UsageError if that is not one pair; MissingInputError;
        DataError for a file that is not a memory, or that a later version wrote; and StorageError.
        """
        self.path = path
        if not create and not path.is_file():
            raise MissingInputError(f"{path} does not exist. heed memory import makes a translation memory.")
        self._lock = Lock()
        with self._errors():
            self._connection = sqlite3.connect(
                path, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=False
            )
            try:
                self._begin(create)
                self.languages = languages or self._only_languages()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __len__(self) -> int:
        """Units of the pair of languages, in any state."""
        return int(self._one("SELECT count(*) FROM unit WHERE src_lang = ? AND tgt_lang = ?", self.languages)[0])

    def add(self, units: Iterable[tuple[str, str, str]], state: State = "new") -> int:
        """Add units (source, target, what a model had translated) and return how many are new.

        A pair that is known stays as it is, except that an approval of it counts (see `suggest`).
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [(*self.languages, source, target, machine, state, now) for source, target, machine in units]
        with self._transaction() as connection:
            added = 0
            for row in rows:
                is_new = _insert(connection, row)
                added += is_new
                if not is_new and state == "approved":
                    connection.execute(
                        "UPDATE unit SET state = 'approved' "
                        "WHERE src_lang = ? AND tgt_lang = ? AND source = ? AND target = ?", row[:4],
                    )  # fmt: skip
        return added

    def suggest(self, source: str, target: str, machine: str = "") -> None:
        """Add a unit that becomes the latest of its source, even if it is known and nobody has looked at it yet."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM unit "
                "WHERE src_lang = ? AND tgt_lang = ? AND source = ? AND target = ? AND state = 'new'",
                (*self.languages, source, target),
            )  # fmt: skip
            _insert(connection, (*self.languages, source, target, machine, "new", now))

    def set_state(self, ids: Sequence[int], state: State) -> int:
        """Approve or reject units, and return how many there are with these ids."""
        with self._transaction() as connection:
            return sum(
                connection.execute(
                    "UPDATE unit SET state = ? WHERE id = ? AND src_lang = ? AND tgt_lang = ?",
                    (state, id, *self.languages),
                ).rowcount
                for id in ids
            )  # fmt: skip

    def units(self, *states: State) -> Iterator[Unit]:
        """The units in these states (none given: in all), in the order in which they were added."""
        chosen = states or get_args(State)
        marks = ", ".join("?" * len(chosen))
        query = f"SELECT {_COLUMNS} FROM unit WHERE src_lang = ? AND tgt_lang = ? AND state IN ({marks}) ORDER BY id"
        yield from (_unit(row) for row in self._all(query, (*self.languages, *chosen)))

    def added_after(self, id: int) -> list[Unit]:
        """The units with greater ids, in any state: those that were added later."""
        # With a plus, no index of the languages is used, which would read all of their units.
        query = f"SELECT {_COLUMNS} FROM unit WHERE id > ? AND +src_lang = ? AND +tgt_lang = ? ORDER BY id"
        return [_unit(row) for row in self._all(query, (id, *self.languages))]

    def with_ids(self, ids: Sequence[int]) -> list[Unit]:
        """The units with these ids, in any order."""
        marks = ", ".join("?" * len(ids))
        return [_unit(row) for row in self._all(f"SELECT {_COLUMNS} FROM unit WHERE id IN ({marks})", ids)]

    def exact(self, source: str) -> Unit | None:
        """The latest unit of a source that was not rejected; an approved one comes before a new one."""
        return next(iter(self.exact_matches(source, 1)), None)

    def exact_matches(self, source: str, number: int = MAX_EXACT) -> list[Unit]:
        """The units of a source that were not rejected, the approved ones first, and of these the latest."""
        rows = self._all(
            f"SELECT {_COLUMNS} FROM unit WHERE src_lang = ? AND tgt_lang = ? AND source = ? AND state != 'rejected' "
            f"ORDER BY state = 'approved' DESC, id DESC LIMIT {number}",
            (*self.languages, source),
        )
        return list(map(_unit, rows))

    def near(
        self, source: str, number: int = 3, at_least: float = NEAR, check: Callable[[], None] = lambda: None,
        usable: Callable[[Unit], bool] = lambda unit: True,
    ) -> list[NearMatch]:  # fmt: skip
        """Usable units whose sources are like a text but not equal to it, the most similar first.

        `check` is called now and then, and ends the search by raising: for long texts it takes seconds.
        """
        pieces = dict.fromkeys(source[i : i + 3] for i in range(len(source) - 2))
        trigrams = [piece for piece in pieces if "\0" not in piece]
        step = -(-len(trigrams) // MAX_TRIGRAMS) or 1
        if not trigrams:
            return []
        query = " OR ".join(f'"{each.replace(chr(34), chr(34) * 2)}"' for each in trigrams[::step])
        columns = ", ".join(f"unit.{name}" for name in _COLUMNS.split(", "))
        rows = self._all(
            f"SELECT {columns} FROM source_trigrams JOIN unit ON unit.id = source_trigrams.rowid "
            "WHERE source_trigrams MATCH ? AND src_lang = ? AND tgt_lang = ? AND state != 'rejected' "
            f"ORDER BY rank LIMIT {MOST_ASKED}",
            (query, *self.languages),
        )  # fmt: skip
        near, num_compared = list[NearMatch](), 0
        for unit in map(_unit, rows):
            check()
            if unit.source == source or not usable(unit):
                continue
            if (ratio := similarity(source, unit.source, at_least)) >= at_least:
                near.append(NearMatch(unit, ratio))
            num_compared += 1
            if num_compared == NUM_CANDIDATES:
                break
        return sorted(near, key=lambda match: (-match.similarity, -match.unit.id))[:number]

    # --- SQLite --------------------------------------------------------------------------------------------

    def _begin(self, create: bool) -> None:
        """Set the modes, and create the tables of a new file. Raises DataError for one that is not to be created."""
        is_new = self._is_new()
        if is_new and not create:
            raise DataError(f"{self.path} is empty, not a translation memory. heed memory import makes one.")
        self._write_ahead()
        self._connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            with self._transaction() as connection:
                for statement in _statements(_TABLES) if self._is_new() else ():  # nobody else was faster
                    connection.execute(statement)

    def _write_ahead(self) -> None:
        """Set the write-ahead mode, once no other process writes to a file that does not have it yet.

        SQLite itself need not wait here, since two connections that both read and want to write could do so for ever.
        """
        deadline = time.monotonic() + WAIT
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # the rest says why
                if not is_busy or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _is_new(self) -> bool:
        """Whether the file has no tables yet. Raises DataError for one that is not a memory of this version."""
        version, application, tables = self._connection.execute(
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_user_version, pragma_application_id"
        ).fetchone()  # in one statement, as another process may create the tables
        if tables and application != APPLICATION:
            raise DataError(f"{self.path} is a database of another program, not a translation memory of heed.")
        if version > FORMAT:
            raise DataError(f"{self.path} was written by a later version of heed. Update heed to use it.")
        return not tables

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of languages of all units."""
        return [(src, tgt) for src, tgt in self._all(_PAIRS, ())]

    def _only_languages(self) -> tuple[str, str]:
        pairs = self.pairs()
        if len(pairs) != 1:
            listed = listed_pairs(pairs) or "no language"
            raise UsageError(f"{self.path} has {listed}: name the languages with --src-lang and --tgt-lang.")
        return pairs[0]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk, for instance, has already ended it
                    self._connection.execute("ROLLBACK")
                raise

    def _all(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._errors(), self._lock:
            return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, values: Sequence[object]) -> tuple[Any, ...]:
        return self._all(query, values)[0]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"{self.path}: {error}.") from error
        except sqlite3.DatabaseError as error:
            message = f"{self.path} is not a translation memory, or is damaged: {error}."
            raise UnreadableMemoryError(message) from error
        except UnicodeEncodeError as error:  # a lone surrogate, as which an argument has a byte that is not UTF-8
            raise DataError(f"{error.object[:60]!a} is not valid UTF-8, as all texts of {self.path} are.") from error


def _unit(row: tuple[Any, ...]) -> Unit:
    return Unit(*row)


def _insert(connection: sqlite3.Connection, row: tuple[str, ...]) -> bool:
    """Add a unit; returns whether it is new."""
    cursor = connection.execute(
        "INSERT INTO unit (src_lang, tgt_lang, source, target, machine, state, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row,
    )  # fmt: skip
    return cursor.rowcount > 0


def similarity(a: str, b: str, at_least: float = 0.0) -> float:
    """Twice the characters in common, divided by those of both: from 0 to 1; an upper bound below `at_least`."""
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    bound = min(matcher.real_quick_ratio(), matcher.quick_ratio()) if at_least else 1.0  # far cheaper
    return matcher.ratio() if bound >= at_least else bound


def word_differences(text: str, source: str) -> list[tuple[str, Change]]:
    """A text and a source of the memory as one sequence of pieces, word by word, and where each piece is."""
    ours, theirs = map(_words_and_blanks, (text, source))
    pieces: list[tuple[str, Change]] = []
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(("".join(ours[a:b]), "both"))
            continue
        pieces += [("".join(theirs[c:d]), "memory")] if c < d else []
        pieces += [("".join(ours[a:b]), "text")] if a < b else []
    return pieces


def _words_and_blanks(text: str) -> list[str]:
    """The words of a text and the white space between them. No piece begins with a mark of the one before it."""
    pieces: list[str] = []
    end = 0
    for word in split_words(text):
        if end < word.start:
            pieces.append(text[end : word.start])
        if pieces and end == word.start and is_joined(pieces[-1][-1], word.text[0]):
            pieces[-1] += word.text
        else:
            pieces.append(word.text)
        end = word.end
    return pieces + [text[end:]] * (end < len(text))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
