"""`heed demo`: corpus, training, scores marked synthetic, translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from heed.cli.demo import SENTENCES, demo
from heed.cli.train import TrainingFlags
from heed.run import Run


def test_the_demo_trains_scores_and_translates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(out=tmp_path / "demo", training=TrainingFlags(max_steps=3), pairs=400, device="cpu", threads=1, quiet=True)
    lines = capsys.readouterr().out.splitlines()
    scores = [line for line in lines if "BLEU" in line or "chrF" in line]
    assert len(scores) == 4
    assert all(line.strip().startswith("synthetic") and "|version:" in line for line in scores)
    assert all(sentence in lines for sentence in SENTENCES)
    assert sum(line.startswith("  → ") for line in lines) == len(SENTENCES)
    recipe = Run(tmp_path / "demo").recipe
    assert recipe.data.synthetic and (recipe.training.max_steps, recipe.training.max_minutes) == (3, 3.0)
    assert "synthetic" in (tmp_path / "demo" / "report.md").read_text(encoding="utf-8")


def test_the_corpus_alone_is_that_of_the_demo(tmp_path: Path) -> None:
    demo(corpus_only=tmp_path / "corpus", training=TrainingFlags(), pairs=1000, quiet=True)
    assert {path.name for path in tmp_path.iterdir()} == {"corpus"}
    for name, lines in (("train", 1000), ("valid", 50), ("test", 50)):
        sides = [
            (tmp_path / "corpus" / f"{name}.{code}").read_text(encoding="utf-8").splitlines() for code in ("en", "de")
        ]
        assert [len(side) for side in sides] == [lines, lines]
