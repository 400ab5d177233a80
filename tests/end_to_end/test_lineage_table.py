"""Script of the table of translators: it trains the missing runs, keeps their translations, and prints all of them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from toy import pairs

from heed.core.toml import read_toml
from heed.recipe import build_recipe

SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "lineage.py"

sys.path.insert(0, str(SCRIPT.parent))
import lineage  # noqa: E402


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


SIDES = (("src", "tgt"), ("valid_src", "valid_tgt"), ("src_lang", "tgt_lang"))


@pytest.mark.parametrize("system", ["phrase-based", "RCTM I", "Bahdanau", "SSRU", "Transformer"])
def test_the_other_direction_exchanges_source_and_target(system: str) -> None:
    path, *flags = lineage.SYSTEMS[system]

    def sides(direction: str) -> list[tuple[object, object]]:
        given = [flag.removeprefix("--").split("=") for flag in (*flags, *lineage.other_way(direction))]
        data = build_recipe(read_toml(Path(path)), dict(given)).data
        return [(getattr(data, src), getattr(data, tgt)) for src, tgt in SIDES]

    forward = sides("en-de")
    assert forward == [("train.en.gz", "train.de.gz"), ("val.en.gz", "val.de.gz"), ("en", "de")]
    assert sides("de-en") == [(tgt, src) for src, tgt in forward]


def test_the_other_direction_is_trained_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both by the same exchange; nothing is trained here."""
    trained, read = [], []
    monkeypatch.setattr(lineage, "train", lambda experiments, *_: trained.extend(experiments))
    monkeypatch.setattr(lineage, "read_parallel", lambda *files: read.append([file.name for file in files]))
    words = ["--data", str(tmp_path), "--out", str(tmp_path / "runs"), "--only", "Luong", "--direction", "de-en"]
    monkeypatch.setattr(sys, "argv", ["lineage.py", *words])
    with pytest.raises(SystemExit, match="no run has finished yet"):
        lineage.main()
    [experiment] = trained
    assert set(lineage.other_way("de-en")) <= set(experiment.flags)
    assert read == [["val.de.gz", "val.en.gz"]]
