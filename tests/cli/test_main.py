"""Tests of exit codes, error messages and help."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command import Result, call

from heed.cli import info, main
from heed.cli.main import app
from heed.core.errors import DataError

VERBS = [
    ("memory", "import"), ("memory", "export"), ("memory", "review"), ("memory", "find"),
    ("train",), ("demo",), ("learn",), ("improve",),
    ("translate",), ("translate-file",), ("generate",), ("score",), ("predict",),
    ("embed",), ("neighbours",), ("evaluate",), ("align",), ("distill",),
    ("average",), ("info",), ("compress",), ("decompress",), ("inspect",), ("report",), ("serve",),
    ("export",), ("import",), ("data", "check"), ("data", "curve"), ("data", "deduplicate"),
    ("tokenizer", "train"), ("tokenizer", "encode"), ("tokenizer", "decode"),
]  # fmt: skip


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *flags: str) -> Result:
    """The result of a verb in which this error is raised."""

    def fail(folder: object) -> None:
        raise error

    monkeypatch.setattr("heed.run.Run", fail)
    return call("info", "somewhere", *flags)


def test_every_verb_of_the_command_line_is_listed_here() -> None:
    group = typer.main.get_command(app)
    context = typer.Context(group)
    found = set()
    for name in group.list_commands(context):  # type: ignore[attr-defined]
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {(name, sub) for sub in inner} if inner else {(name,)}
    assert found == set(VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_an_example_that_calls_the_verb_and_fits_two_screens(verb: tuple[str, ...]) -> None:
    result = call(*verb, "--help")
    assert result.code == 0
    assert re.search(rf"Examples?:\n\n    (.*\| )?heed {' '.join(verb)} ", result.out)
    assert len(result.lines) <= 88  # two of 44 lines
    assert max(map(len, result.lines)) <= 80
    assert "--debug" in result.out
    assert result.err == ""


def test_help_of_every_verb_imports_nothing_heavy() -> None:
    """In one program for all verbs, since each start costs time."""
    program = (
        "import sys, heed.cli.main as m, typer\n"
        f"for verb in {VERBS!r}:\n"
        "    try: m.app([*verb, '--help'], prog_name='heed')\n"
        "    except SystemExit as e: assert not e.code\n"
        "print('heavy:', *{'torch', 'numpy', 'sacrebleu', 'tokenizers'} & set(sys.modules))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "heavy:"


def test_a_verb_imports_no_other_verb() -> None:
    program = (
        "import sys, heed.cli.main as m\n"
        "for words in (['--help'], ['info', '--help']):\n"
        "    try: m.app(words, prog_name='heed')\n"
        "    except SystemExit: pass\n"
        "    print('verbs:', *{v.module for v in m.VERBS.values() if f'heed.cli.{v.module}' in sys.modules})\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.findall("^verbs:.*", result.stdout, re.MULTILINE) == ["verbs:", "verbs: info"]


def test_the_list_of_verbs_begins_as_their_own_help() -> None:
    listed = call("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(main.VERBS)
    for name, verb in main.VERBS.items():
        assert main.command_of(name).help.split()[:3] == verb.summary.split()[:3], name
        assert len(verb.summary) <= 60, "a line of 80 columns has no room for more"


def test_an_error_of_a_verbs_module_is_not_an_unknown_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise KeyError("HOME")

    monkeypatch.setattr("heed.cli.main.command_of", fail)
    result = call("info", "run")
    assert (result.code, result.err.splitlines()[0]) == (1, "error: KeyError: 'HOME'")


def test_the_version_names_heed_python_and_torch() -> None:
    result = call("--version")
    assert result.code == 0
    assert re.fullmatch(r"heed \S+  python \S+  torch \S+\n", result.out)


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("translate",),
        ("translate", "run", "--nonsense"),
        ("translate", "run", "--beam", "0"),
        ("translate", "run", "--beam", "two"),
        ("translate", "run", "--errors", "ignore"),
        ("score", "run", "--precision", "float16"),
        ("average", "run"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_2_and_a_message_on_stderr(words: tuple[str, ...]) -> None:
    result = call(*words)
    assert result.code == 2
    assert result.stdout == b""
    assert "rror: " in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("verb", ["translate", "score", "generate", "info", "average"])
def test_a_missing_run_ends_with_66(verb: str, tmp_path: Path) -> None:
    more = ("--out", tmp_path / "out") if verb == "average" else ()
    result = call(verb, tmp_path / "nothing", *more)
    assert (result.code, result.stdout) == (66, b"")
    assert result.err == (f"error: {tmp_path / 'nothing'}: no such run folder. `heed train --out` creates one.\n")


def test_an_error_is_one_message_and_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing(monkeypatch, DataError("the line is wrong."))
    assert (result.code, result.err) == (65, "error: the line is wrong.\n")


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="the line is wrong"):
        failing(monkeypatch, DataError("the line is wrong."), "--debug")


def test_an_internal_error_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing(monkeypatch, ZeroDivisionError("division by zero"))
    assert result.code == 1
    assert result.err.startswith("error: ZeroDivisionError: division by zero\n")
    assert result.err.endswith("Internal error. Rerun with --debug and report it.\n")


def test_interruption_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing(monkeypatch, KeyboardInterrupt())
    assert (result.code, result.err) == (130, "")


def test_a_failure_of_the_system_ends_with_74(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.cli.main._discard_stdout", lambda: None)
    result = failing(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "f"))
    assert (result.code, result.err) == (74, "error: reading or writing failed: No space left on device (f).\n")


def test_a_reader_that_has_gone_ends_with_141(monkeypatch: pytest.MonkeyPatch) -> None:
    discarded = []
    monkeypatch.setattr("heed.cli.main._discard_stdout", lambda: discarded.append(True))
    result = failing(monkeypatch, BrokenPipeError())
    assert (result.code, result.err, discarded) == (141, "", [True])


def test_info_needs_a_run() -> None:
    assert info.info.__doc__
    assert call("info").code == 2
