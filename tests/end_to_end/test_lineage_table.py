"""Script of the table of translators: it trains the missing runs, keeps their translations, and prints all of them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from toy import pairs

SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "lineage.py"


def run(data: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--data", str(data), "--out", str(out), "--threads", "1", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_table_is_made_in_slices(tmp_path: Path) -> None:
    for number, (part, size) in enumerate({"train": 300, "val": 20, "test_2016_flickr": 20}.items()):
        for side, code in enumerate(("en", "de")):
            with gzip.open(tmp_path / f"{part}.{code}.gz", "wt") as file:
                file.writelines(f"{pair[side]}\n" for pair in pairs(size, seed=number, longest=14))
    flags = ("--updates", "2", "--seeds", "1,2", "--only", "score dot; RCTM I")
    first = run(tmp_path, tmp_path / "runs", *flags[:-1], "score dot")
    assert first.returncode == 0, first.stderr
    weights = tmp_path / "runs" / "score-dot--seed-2" / "model.safetensors"
    trained = weights.stat().st_mtime_ns
    second = run(tmp_path, tmp_path / "runs", *flags, "--test", "--plot", str(tmp_path / "lineage.png"))
    assert second.returncode == 0, second.stderr
    assert weights.stat().st_mtime_ns == trained
    rows = [line.split(" | ")[0] for line in second.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["| system", "| ---", "| score dot", "| RCTM I"]
    assert (tmp_path / "lineage.png").read_bytes().startswith(b"\x89PNG")
    wrong = run(tmp_path, tmp_path / "runs", "--only", "score of dots")
    assert wrong.returncode == 1 and "no system is called score of dots. There are: RCTM I;" in wrong.stderr
