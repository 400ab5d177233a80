"""Isolated translation of a file: a process that reads and writes the file, while another one has the models.

    python -m heed.documents.isolated DESCRIPTOR MEMORY

Files from strangers are read here, so that a server can end the reading at any moment, and so that its memory and its
interpreter stay free for others. Both sides send JSON, one message in each frame of a connection
(`heed.serve.engine.document_processes` is the other side). MEMORY is the number of bytes, beyond those of the process
at its start, that a file may take.

The process gets a document: a message, then the file. It may ask for the tokens of a line, for translations and for
links, and gets an answer to each question. Last it sends the translated file, or an error.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from heed.core.errors import HeedError
from heed.core.json_text import parse_json
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, SearchOptions
from heed.documents.file_format import FileContext
from heed.documents.formats import translate_file
from heed.documents.inline_tags import Links
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Step, TranslateOptions, Watch
from heed.inference.sentences import MAX_TOKENS, most_tokens
from heed.text.normalise import Normaliser
from heed.text.readers.columns import Sides

KEPT_MEMORY = 64 << 20
"""Bytes by which a process may have grown and still read another file."""
CPU_SECONDS = 600
"""Time of computing for a file. The other process ends this one much earlier if nobody waits."""
_Terms = tuple[tuple[str, ...], tuple[str, ...]]
"""Required terms, and what they translate."""
_Text = tuple[str, _Terms]
TEXTS_AT_ONCE = 1024
"""Texts of one question."""
PRIORITY = 10
"""Steps of priority below that of the other process."""
FIRST_TO_END = "1000"
"""Linux's `oom_score_adj` of a process that is ended before all others when memory runs out."""


def send(connection: Connection, message: Any) -> None:
    """Send a message of JSON."""
    connection.send_bytes(json.dumps(message).encode())


class _Models:
    """The models on the path, which another process has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, question: str, step: int, **fields: Any) -> Any:
        """The answer to a question about one step of the path."""
        send(self._connection, {"question": question, "step": step, **fields})
        return parse_json(self._connection.recv_bytes())

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """The best hypotheses, with texts and links alone."""
        terms: list[_Terms] = (
            [(each.terms, each.sources) for each in constraints] if constraints else [((), ())] * len(texts)
        )
        keys = [*zip(texts, terms, strict=True)]
        distinct, outputs = [*dict.fromkeys(keys)], dict[_Text, Hypothesis]()
        for first in range(0, len(distinct), TEXTS_AT_ONCE):
            some = distinct[first : first + TEXTS_AT_ONCE]
            answer = self.ask(
                "translate", int(step.name), texts=[key[0] for key in some], terms=[key[1] for key in some]
            )
            for key, (text, links) in zip(some, answer, strict=True):
                word_links = None if links is None else tuple((i, j) for i, j in links)
                outputs[key] = Hypothesis((), 0.0, 0.0, text=text, links=word_links)
        return [outputs[key] for key in keys]

    def links(self, step: Step, pairs: Sequence[tuple[str, str]]) -> list[Links]:
        """Word links between texts and one model's translations."""
        return [[(i, j) for i, j in links] for links in self.ask("links", int(step.name), pairs=pairs)]

    def check(self) -> None:
        """Nothing: the other process ends this one."""


def _step(models: _Models, number: int, src_lang: str, normaliser: Normaliser) -> Step:
    """A step of the path whose translator counts tokens in the other process. Its name is its number."""
    translator: Any = SimpleNamespace(normaliser=normaliser, num_source_tokens=_Counter(models, number, normaliser))
    return Step(str(number), translator, SearchOptions(), src_lang)


class _Counter:
    """Counts the tokens of lines as far as it matters: whether there are too many to translate them at once."""

    def __init__(self, models: _Models, step: int, normaliser: Normaliser) -> None:
        self._models = models
        self._step = step
        self._normaliser = normaliser

    def __call__(self, line: str) -> int:
        """The number of tokens, or a larger one if even that is allowed. Most lines need no question."""
        most = most_tokens(self._normaliser.apply(line))
        return most if most <= MAX_TOKENS else int(self._models.ask("tokens", self._step, line=line))


def translate(connection: Connection, document: dict[str, Any], data: bytes) -> bytes:
    """The translated file of a document."""
    models = _Models(connection)
    path = [
        _step(models, number, src_lang, Normaliser.model_validate(normaliser))
        for number, (src_lang, normaliser) in enumerate(document["path"])
    ]
    translator = TextTranslator(models, path, TranslateOptions(**document["options"]))
    sides, most = Sides(**document["sides"]), document["most_unpacked"]
    return translate_file(data, translator, FileContext(document["name"], sides, most_unpacked=most))


def _outcome(connection: Connection, document: dict[str, Any], data: bytes) -> tuple[str, bytes]:
    """What became of a document: `file`, `error` or `failure`, and the file or text that belongs to it."""
    try:
        return "file", translate(connection, document, data)
    except HeedError as error:
        return "error", str(error).encode()
    except MemoryError:
        return "error", f"{document['name']} needs more memory than the server allows for reading a file.".encode()
    except (EOFError, BrokenPipeError):
        raise
    except Exception:
        return "failure", traceback.format_exc().encode()


def serve(connection: Connection) -> None:
    """Translate documents until the other process goes, or until one of them has left too much in memory."""
    before = _pages()[1]
    is_fit = True
    while is_fit:
        document, data = parse_json(connection.recv_bytes()), connection.recv_bytes()
        _limit(resource.RLIMIT_CPU, int(time.process_time()) + CPU_SECONDS)
        kind, content = _outcome(connection, document, data)
        gc.collect()
        is_fit = _pages()[1] - before < KEPT_MEMORY
        send(connection, {"outcome": kind, "is_fit": is_fit})
        connection.send_bytes(content)


def _pages() -> tuple[int, int]:
    """Bytes of the addresses in use and of the memory in use; zeros where the system does not tell."""
    try:
        with Path("/proc/self/statm").open(encoding="ascii") as file:
            addresses, memory, *_ = (int(pages) * resource.getpagesize() for pages in file.read().split())
    except OSError:
        return 0, 0
    return addresses, memory


def _limit(kind: int, most: int) -> None:
    """Lower a limit of this process where the system has it."""
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def main() -> None:
    """The process."""
    os.nice(PRIORITY)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_END, encoding="ascii")
    gc.disable()  # while a file is read, all of it is in use
    descriptor, memory = map(int, sys.argv[1:])
    if addresses := _pages()[0]:
        _limit(resource.RLIMIT_AS, addresses + memory)
    with suppress(EOFError, OSError):
        serve(Connection(descriptor))


if __name__ == "__main__":
    main()
