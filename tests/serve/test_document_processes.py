"""Documents in processes of their own: the same translations and errors, and an end at any moment."""

from __future__ import annotations

import io
import os
import signal
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from heed.core.errors import DataError, HeedError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, SearchOptions
from heed.documents import isolated
from heed.documents.file_format import FileContext
from heed.documents.formats import translate_file
from heed.documents.inline_tags import Links
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Step, TranslateOptions, Watch
from heed.serve.engine.document_processes import (
    MOST_IDLE,
    MOST_PROCESSES,
    DocumentProcess,
    DocumentProcesses,
    files_at_once,
)
from heed.text.normalise import Normaliser
from heed.text.readers.columns import Sides

SIDES = Sides("en", "de")
TMX = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>One <ph/>two</seg></tuv></tu></body>'
    "</tmx>"
)
DOCUMENTS = {
    "a.txt": "One two. Three!\n\n  Four\u2028five\n12\nOne two.",
    "a.html": "<p>One <b>two</b> three. <i>Four</i></p><code>kept</code><p>Five &amp; {name}</p>",
    "a.csv": 'id,en,de\n1,"One, two",\n2,Three,Drei\n',
    "a.tsv": "en\tde\nOne\t\n",
    "a.tmx": TMX,
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nOne <i>two</i>\n",
    "long.txt": "word " * 3000,
}


class Upper:
    """Searches that write capitals, and in the last step the terms that they must contain; these have links."""

    def __init__(self) -> None:
        self.num_checks = 0
        self.stops_after = 1 << 30

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """The hypotheses."""
        terms = [" ".join(each.terms) for each in constraints] if constraints else [""] * len(texts)
        assert options.nbest == 1
        out = [f"{step.name}:{text.upper()}{each}" for text, each in zip(texts, terms, strict=True)]
        links = [
            tuple((0, n) for n in range(len(text.split()))) if term else None
            for text, term in zip(out, terms, strict=True)
        ]
        return [Hypothesis((), 0.0, 0.0, text=text, links=own) for text, own in zip(out, links, strict=True)]

    def links(self, _step: Step, pairs: Sequence[tuple[str, str]]) -> list[Links]:
        """Each word to the one before it."""
        return [[(n, max(n - 1, 0)) for n in range(len(source.split()))] for source, _ in pairs]

    def check(self) -> None:
        """Raise when enough is enough."""
        self.num_checks += 1
        if self.num_checks > self.stops_after:
            raise KeyboardInterrupt


def path_of(*names: str) -> list[Step]:
    reads: Any = SimpleNamespace(normaliser=Normaliser(form="nfkc"), num_source_tokens=lambda line: len(line) // 2)
    return [Step(name, reads, SearchOptions(), "en") for name in names]


@pytest.fixture(scope="module")
def processes() -> Iterator[DocumentProcesses]:
    """Processes; tests must leave them working."""
    processes = DocumentProcesses(most=2)
    processes.start()
    yield processes
    processes.close()


OPTIONS = TranslateOptions(glossary={"one": "eins", "Four": "vier"}, keep=["two"])


@pytest.mark.parametrize("options", [TranslateOptions(), OPTIONS], ids=["plain", "terms"])
@pytest.mark.parametrize("path", [path_of("a"), path_of("a", "b"), []], ids=["one model", "two models", "none"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_process_translates_a_file_as_this_one_does(
    name: str, path: list[Step], options: TranslateOptions, processes: DocumentProcesses
) -> None:
    data = DOCUMENTS[name].encode()
    expected = translate_file(data, TextTranslator(Upper(), path, options), FileContext(name, SIDES))
    assert processes.translate(name, data, Upper(), path, options, SIDES) == expected


def test_a_process_reads_office_documents_within_the_limit_of_uploads(processes: DocumentProcesses) -> None:
    def document(body: str) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("content.xml", body)
        return out.getvalue()

    text = '<t:p xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0">one{}</t:p>'
    done = processes.translate("a.odt", document(text), Upper(), path_of("a"), TranslateOptions(), SIDES)
    with zipfile.ZipFile(io.BytesIO(done)) as archive:
        assert archive.read("content.xml").decode() == text.replace("one{}", "a:ONE{}")
    with pytest.raises(HeedError, match=r"a\.odt: its text unpacks to more than 17 MB"):
        large = document(text.replace("{}", " " * (17 << 20)))
        processes.translate("a.odt", large, Upper(), path_of("a"), TranslateOptions(), SIDES)


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("a.txt", b"\xff\xfe\xff", TranslateOptions()),
        ("a.csv", b"a,b\n1,2,3\n", TranslateOptions()),
        ("a.tmx", b"<tmx>", TranslateOptions()),
        ("a.doc", b"", TranslateOptions()),
        ("a.txt", b"a", TranslateOptions(glossary={"a": ""})),
    ],
)
def test_a_process_gives_the_errors_that_this_one_gives(
    name: str, data: bytes, options: TranslateOptions, processes: DocumentProcesses
) -> None:
    with pytest.raises(HeedError) as here:
        translate_file(data, TextTranslator(Upper(), path_of("a"), options), FileContext(name, SIDES))
    with pytest.raises(HeedError) as there:
        processes.translate(name, data, Upper(), path_of("a"), options, SIDES)
    assert str(there.value) == str(here.value)


def test_many_lines_are_translated_in_parts_and_repeated_ones_once(processes: DocumentProcesses) -> None:
    class Counted(Upper):
        sizes: ClassVar[list[int]] = []

        def translate(self, step: Step, texts: Sequence[str], *rest: Any, **named: Any) -> list[Hypothesis]:
            self.sizes.append(len(texts))
            return super().translate(step, texts, *rest, **named)

    searcher, text = Counted(), "".join(f"line {n % 2000}\n" for n in range(6000))
    processes.translate("a.txt", text.encode(), searcher, path_of("a"), TranslateOptions(), SIDES)
    assert searcher.sizes == [1024, 976]


def pid_of(process: DocumentProcess) -> int:
    return process._process.pid


def test_a_process_is_ended_when_nobody_waits_for_its_file(processes: DocumentProcesses) -> None:
    searcher = Upper()
    searcher.stops_after = 0
    with pytest.raises(KeyboardInterrupt), processes._process(lambda: None) as process:
        process.translate("a.html", b"<b> </b> " * 100_000, searcher, path_of("a"), TranslateOptions(), SIDES)
    assert process._process.poll() == -signal.SIGKILL
    assert processes.translate("a.txt", b"a", Upper(), path_of("m"), TranslateOptions(), SIDES) == b"m:A"


def test_a_file_that_ends_its_process_is_refused_and_the_next_one_is_translated(processes: DocumentProcesses) -> None:
    class Deadly(Upper):
        def translate(self, *_: Any, **__: Any) -> list[Hypothesis]:
            os.kill(pid_of(process), signal.SIGKILL)
            return []

    with processes._process(lambda: None) as process, pytest.raises(DataError, match="too much time or memory"):
        process.translate("a.txt", b"a", Deadly(), path_of("a"), TranslateOptions(), SIDES)
    assert not process.is_fit
    assert processes.translate("a.txt", b"a", Upper(), path_of("m"), TranslateOptions(), SIDES) == b"m:A"


def test_a_waiting_process_that_was_ended_is_replaced(processes: DocumentProcesses) -> None:
    """As by the system when memory runs out: the next file is not at fault."""
    processes.start()
    for process in processes._idle:
        os.kill(pid_of(process), signal.SIGKILL)
        process._process.wait()
    assert processes.translate("a.txt", b"a", Upper(), path_of("m"), TranslateOptions(), SIDES) == b"m:A"


def test_files_wait_for_a_process_as_long_as_somebody_waits_for_them(processes: DocumentProcesses) -> None:
    with processes._process(lambda: None), processes._process(lambda: None):
        searcher = Upper()
        searcher.stops_after = 1
        with pytest.raises(KeyboardInterrupt):
            processes.translate("a.txt", b"a", searcher, path_of("a"), TranslateOptions(), SIDES)
    assert searcher.num_checks == 2


def test_no_more_files_are_read_at_once_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (1 << 29, 2 << 30, (4 << 30) - 1, 4 << 30, 64 << 30)
    assert [files_at_once(size) for size in sizes] == [1, 1, 2, 3, MOST_PROCESSES]
    monkeypatch.setattr("heed.serve.engine.document_processes.memory_bytes", lambda: 3 << 30)
    processes = DocumentProcesses()
    try:
        with processes._process(lambda: None):
            assert processes._places.acquire(blocking=False), "a second file"
            assert not processes._places.acquire(blocking=False), "a third one"
            processes._places.release()
    finally:
        processes.close()


def test_processes_are_used_again_and_few_are_kept(processes: DocumentProcesses) -> None:
    def used() -> int:
        with processes._process(lambda: None) as process:
            process.translate("a.txt", b"a", Upper(), path_of("a"), TranslateOptions(), SIDES)
        return pid_of(process)

    assert len({used() for _ in range(3 * MOST_IDLE)}) <= MOST_IDLE
    assert len(processes._idle) <= MOST_IDLE


def test_closing_ends_the_processes_that_wait_and_later_those_that_read() -> None:
    processes = DocumentProcesses(most=2)
    processes.start()
    with processes._process(lambda: None) as process:
        waiting = [*processes._idle]
        processes.close()
        assert waiting
        assert all(each._process.poll() is not None for each in waiting)
        assert process._process.poll() is None
        process.translate("a.txt", b"a", Upper(), path_of("a"), TranslateOptions(), SIDES)
    assert process._process.poll() is not None


def outcome(document: dict[str, Any], data: bytes) -> tuple[str, bytes]:
    nobody: Any = None
    return isolated._outcome(nobody, document, data)


def test_a_lack_of_memory_is_an_error_of_the_file_and_a_mistake_of_heed_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, processes: DocumentProcesses
) -> None:
    def raised(error: Exception) -> tuple[str, bytes]:
        def translate(*_: object) -> bytes:
            raise error

        monkeypatch.setattr(isolated, "translate", translate)
        return outcome({"name": "a.txt"}, b"")

    assert raised(MemoryError()) == ("error", b"a.txt needs more memory than the server allows for reading a file.")
    kind, text = raised(ValueError("surprise"))
    assert kind == "failure"
    assert b"surprise" in text
    bad: Any = SimpleNamespace(src_lang="en", translator=SimpleNamespace(normaliser=SimpleNamespace(model_dump=dict)))
    bad.translator.normaliser.model_dump = lambda: {"form": "no such form"}
    with pytest.raises(RuntimeError, match="form"):
        processes.translate("a.txt", b"a", Upper(), [bad], TranslateOptions(), SIDES)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the addresses of a process")
def test_the_memory_of_a_process_is_limited() -> None:
    process = DocumentProcess(memory=32 << 20)
    try:
        assert process.translate("a.txt", b"a", Upper(), path_of("m"), TranslateOptions(), SIDES) == b"m:A"
        with pytest.raises(DataError, match="memory"):
            process.translate("a.tsv", b"\t\n" * 450_000, Upper(), path_of("m"), TranslateOptions(), SIDES)
    finally:
        process.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose its place")
def test_the_system_ends_the_processes_of_files_before_the_server_when_memory_runs_out() -> None:
    """Together they may take more than the machine has."""
    process = DocumentProcess()
    try:
        process.translate("a.txt", b"a", Upper(), path_of("m"), TranslateOptions(), SIDES)
        assert int(Path(f"/proc/{pid_of(process)}/oom_score_adj").read_text()) == 1000
    finally:
        process.end()
