"""Golden losses: a training computes the same numbers as when they were recorded.

A change that is not meant to alter numbers leaves these losses as they are, bit for bit where they were made: with the
same PyTorch on the same processor. Elsewhere they agree to 1 in 10,000.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.make import NUM_LOSSES, golden_losses, made_with

GOLDEN = Path(__file__).resolve().parent.parent / "fixtures" / "golden_losses.json"


@pytest.mark.processor
def test_the_first_losses_equal_the_recorded_ones(tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    found = golden_losses(tmp_path)
    assert len(found) == NUM_LOSSES
    assert found == pytest.approx(document["losses"], rel=1e-4)
    if made_with() == document["made_with"]:
        assert found == document["losses"]
