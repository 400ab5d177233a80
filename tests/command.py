"""The command `heed` in tests: called in this process, which is quick, or started as a program."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pytest

from heed.cli.main import main

COMPUTING = (
    "train",
    "translate",
    "score",
    "evaluate",
    "generate",
    "inspect",
    "compress",
    "predict",
    "embed",
    "neighbours",
)
"""Verbs that take --threads."""


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command."""

    code: int
    stdout: bytes
    err: str

    @property
    def out(self) -> str:
        """Stdout as text."""
        return self.stdout.decode()

    @property
    def lines(self) -> list[str]:
        """The lines of stdout; only a line feed ends one."""
        return self.out.removesuffix("\n").split("\n") if self.stdout else []


def arguments_of(*words: object) -> list[str]:
    """The words of a call; verbs that compute get one thread."""
    arguments = [str(word) for word in words]
    return [*arguments, "--threads", "1"] if arguments and arguments[0] in COMPUTING else arguments


def call(
    *words: object, stdin: str | bytes = b"", stdout: TextIO | None = None, stderr: TextIO | None = None
) -> Result:
    """Run `heed WORDS` in this process; the streams are captured, except those that are given."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file, pytest.MonkeyPatch.context() as patch:
        file.buffer.write(stdin.encode() if isinstance(stdin, str) else stdin)
        file.seek(0)
        patch.setattr(sys, "argv", ["heed", *arguments_of(*words)])
        patch.setattr(sys, "stdin", file)
        patch.setattr(sys, "stdout", stdout or out)
        patch.setattr(sys, "stderr", stderr or err)
        patch.setattr(sys, "excepthook", sys.excepthook)
        with pytest.raises(SystemExit) as ended:
            main()
    out.flush()
    code = ended.value.code
    assert isinstance(code, int)
    return Result(code, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]


def start(*words: object, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """Start `heed WORDS` as a program, with pipes."""
    program = [sys.executable, "-c", "from heed.cli.main import main; main()", *arguments_of(*words)]
    return subprocess.Popen(program, stdin=-1, stdout=-1, stderr=-1, cwd=cwd)


def run(*words: object, stdin: bytes = b"", timeout: float = 120) -> Result:
    """Run `heed WORDS` as a program to its end."""
    with start(*words) as process:
        out, err = process.communicate(stdin, timeout)
    return Result(process.returncode, out, err.decode())


_WITHOUT_PYTORCH = """
import sys
from heed.cli.main import main
try:
    main()
finally:
    print(*{*SLOW} & set(sys.modules), file=sys.stderr)
"""


def call_without_pytorch(*words: object, stdin: str = "", counts: bool = False) -> Result:
    """Run `heed WORDS` as a program, which must not import PyTorch or other slow packages.

    `counts`: the model is one of counts, which computes with NumPy.
    """
    slow = ["torch", "sacrebleu", "transformers", *([] if counts else ["numpy"])]
    program = [sys.executable, "-c", f"SLOW = {slow}\n{_WITHOUT_PYTORCH}", *map(str, words)]
    done = subprocess.run(program, input=stdin.encode(), capture_output=True)
    err = done.stderr.decode()
    assert err.splitlines()[-1:] == [""], err  # none of these modules
    return Result(done.returncode, done.stdout, err[:-1])
