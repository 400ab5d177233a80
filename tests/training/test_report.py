"""Does `report.md` say what was trained on what, and how well?"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from heed.training.journal import Journal
from heed.training.report import sparkline, write_report

CORPUS = {
    "num_rows": 1234, "num_valid": 56, "dropped": {"duplicate": 7},
    "files": {"src": {"name": "a.en", "lines": 1241, "bytes": 99, "sha256": "ab" * 32}},
}  # fmt: skip


def fill(folder: Path) -> None:
    """A journal of two log lines and two validations."""
    with Journal(folder) as log:
        for step, loss in ((10, 5.0), (20, 3.0)):
            log.write("train", step, {"loss": loss, "tokens_per_second": 100.0 * step, "seconds": step})
            scores = {"bleu": 1.5 * step, "perplexity": None, "seconds": 61.0 * step, "best": step == 10}
            signatures = {"bleu": "nrefs:1|tok:13a", "perplexity": "unit:token"}
            samples = [{"src": f"source {step}", "output": "out", "reference": "ref"}]
            log.write("validation", step, {**scores, "signatures": signatures, "samples": samples})


def test_a_report_names_data_scores_signatures_samples_and_the_way_to_make_it_again(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "diagnosis.txt").write_text("No faults found.\n")
    text = write_report(tmp_path, "reached 20 updates", corpus=CORPUS).read_text()
    assert text.startswith(f"# Training report: {tmp_path.name}\n")
    assert "It ended after 20 updates and 20:20, 2,000 target tokens/s in the median: reached 20 updates." in text
    assert "1,234 rows to train on, 56 to validate." in text
    assert "- left out: 7 (duplicate)" in text
    assert "| a.en | 1,241 | 99 | `abababababababab…` |" in text
    assert "No faults found." in text
    assert "Of the weights that were kept, from update 10." in text
    assert r"| bleu | 15.00 | `nrefs:1\|tok:13a` |" in text
    assert "| perplexity | infinite |" in text
    assert "- source: source 20" in text
    assert "heed train recipe.toml" in text
    assert "synthetic" not in text


def test_curves_are_drawn_where_matplotlib_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    fill(tmp_path)
    assert "![curves](curves.png)" in write_report(tmp_path, "done").read_text()
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_curves_are_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    fill(tmp_path)
    text = write_report(tmp_path, "done").read_text()
    assert re.search(r"training loss\s+█▁\s+5 → 3", text)
    assert "pip install 'heed[plot]'" in text


def test_every_score_on_the_built_in_corpus_is_called_synthetic(tmp_path: Path) -> None:
    fill(tmp_path)
    assert "**synthetic**" in write_report(tmp_path, "done", synthetic=True).read_text()


def test_a_run_that_ended_at_once_has_a_report(tmp_path: Path) -> None:
    assert "It ended: no data." in write_report(tmp_path, "no data").read_text()


def test_a_sparkline_is_as_high_as_its_values() -> None:
    assert sparkline([0.0, 7.0, 3.5]) == "▁█▅"
    assert sparkline([]) == ""
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert [len(sparkline([1.0] * number, width=50)) for number in (50, 51, 99, 1000)] == [50, 26, 50, 50]
