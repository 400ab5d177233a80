"""Script of the Penn Treebank table: it trains the missing runs and prints all of them."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from toy_language import text

SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "ptb.py"


def run(data: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--data", str(data), "--out", str(out), "--threads", "1", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_table_is_made_in_slices(tmp_path: Path) -> None:
    for number, part in enumerate(("train", "valid", "test")):
        with lzma.open(tmp_path / f"ptb.{part}.txt.xz", "wt") as file:
            file.writelines(f" {line} \n" for line in text(200, seed=number))
    first = run(tmp_path, tmp_path / "runs", "--only", "unigram")
    assert first.returncode == 0, first.stderr
    trained = (tmp_path / "runs" / "unigram" / "model.safetensors").stat().st_mtime_ns
    second = run(tmp_path, tmp_path / "runs", "--only", "unigram,kn3", "--test", "--", "--compressors")
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "runs" / "unigram" / "model.safetensors").stat().st_mtime_ns == trained
    assert second.stdout.index("ptb.valid.txt.xz, 200 lines") < second.stdout.index("ptb.test.txt.xz, 200 lines")
    for row in ("unigram", "kn3", "xz"):
        assert second.stdout.count(f"{row} ") >= 2
    wrong = run(tmp_path, tmp_path / "runs", "--only", "kn33")
    assert wrong.returncode == 1
    assert "no recipe is called kn33. There are: " in wrong.stderr
