"""Does a command that is killed leave everything whole, and work when it is repeated?"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command import call
from rank_processes import FORKS
from toy import unchecked_shapes, write_lines, write_pairs

from heed.core.files import is_debris
from heed.core.run_files import RunFiles
from heed.data.validation import VALID
from heed.integrity import verify
from heed.run import Run

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir")
COMMANDS: dict[str, tuple[list[str], str]] = {
    "average": (["average", "run", "--out", "average"], "average"),
    "export": (["export", "run", "--to", "ctranslate2", "--out", "converted"], "converted"),
    "calibrate": (["evaluate", "run", "--calibrate"], "run/confidence.json"),
    "evaluate": (["evaluate", "run", "--src", "test.aa", "--ref", "test.bb"], "run/scores.jsonl"),
    "translate-file": (
        ["translate-file", "run", "text.txt", "--out", "text.out.txt", "--threads", "1"],
        "text.out.txt",
    ),
    "resume": (["train", "--resume", "run", "--max-steps", "151"], "run/report.md"),
}
"""Words of commands that write, and what each creates."""
HUNG_UP = "translate-file"
"""The command that gets SIGHUP, too, whose handler is that of SIGTERM."""
MOMENTS = int(os.environ.get("HEED_KILLS", "1"))
"""Moments at which each command is killed by each signal; `HEED_KILLS=20` for more."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts file operations as Linux has them")


def kill_at(words: Sequence[str], moment: int, number: int, folder: str, counted: Any) -> None:
    """Run a command, and get a signal at so many changes of files in a folder (never for 0)."""

    def watch(event: str, details: tuple[Any, ...]) -> None:
        is_change = event in CHANGES or (event == "open" and details[2] & WRITING)
        if is_change and str(Path(str(details[0])).absolute()).startswith(folder):
            counted.value += 1
            if counted.value == moment:
                os.kill(os.getpid(), number)

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have started the tests
    os.chdir(folder)
    os.environ["PYTHONWARNINGS"] = "ignore"
    with unchecked_shapes():
        sys.addaudithook(watch)
        result = call(*words)
    sys.stderr.write(result.err)
    sys.exit(result.code)


def run_and_kill(words: Sequence[str], folder: Path, moment: int, number: int) -> tuple[int | None, int]:
    """The exit code, and the number of changes that were made or begun."""
    counted = multiprocessing.get_context("forkserver").Value("i", 0)
    process = FORKS.Process(target=kill_at, args=(words, moment, number, str(folder), counted))
    process.start()
    process.join(120)
    return process.exitcode, counted.value


@pytest.fixture(scope="module")
def place(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints, and files for it."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(translator, folder / "run")
    write_pairs(folder, "test", 3)
    src, tgt = write_pairs(folder, "valid", 60, seed=1)
    lines = zip(src.read_text().splitlines(), tgt.read_text().splitlines(), strict=True)
    with RunFiles(folder / "run").write(VALID, "w") as file:  # as many as are needed to calibrate
        file.writelines(f"{json.dumps(pair)}\n" for pair in lines)
    write_lines(folder / "text.txt", ["ba ce", "di"])
    return folder


def whole(folder: Path) -> set[str]:
    """The names of all files but those that were left unfinished."""
    paths = [path.relative_to(folder) for path in folder.rglob("*")]
    return {str(path) for path in paths if not any(is_debris(Path(part)) for part in path.parts)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "resume" else ()) for name in COMMANDS]
)
def test_a_command_that_is_killed_leaves_everything_whole_and_works_again(
    name: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, made = COMMANDS[name]
    if name == "export" and find_spec("ctranslate2") is None:
        pytest.skip("ctranslate2 is not installed")
    shutil.copytree(place, tmp_path / "never")
    code, total = run_and_kill(words, tmp_path / "never", 0, 0)
    assert code == 0
    complete = whole(tmp_path / "never")
    hangup = [signal.SIGHUP] if name == HUNG_UP else []
    for number in (signal.SIGTERM, signal.SIGKILL, *hangup):
        for turn in range(MOMENTS):
            folder = tmp_path / f"{number.name} {turn}"
            shutil.copytree(place, folder)
            moment = 1 + (2 * turn + 1) * total // (2 * MOMENTS)
            code, _ = run_and_kill(words, folder, moment, number)
            if number == signal.SIGKILL:
                assert code == -number
            else:
                assert code == 128 + number or (code == 0 and name == "resume"), "its last update may have ended it"
                assert not any(map(is_debris, folder.rglob("*")))
            assert whole(folder) <= complete | whole(place)
            expect_whole(folder, words, made, complete, monkeypatch)


def expect_whole(
    folder: Path, words: Sequence[str], made: str, complete: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is damaged; what was made is complete; the command can be repeated."""
    assert not [each for each in verify(Run(folder / "run")) if each.is_damaged]
    inside = {path for path in complete if path == made or path.startswith(f"{made}/")}
    if (folder / made).exists():
        assert inside <= whole(folder)
        if made == words[-1] and (folder / made).is_dir():  # only a folder is not replaced
            return
    monkeypatch.chdir(folder)
    result = call(*words)
    assert result.code == 0, result.err
    assert inside <= whole(folder)
    assert not [path for path in folder.iterdir() if is_debris(path)]
