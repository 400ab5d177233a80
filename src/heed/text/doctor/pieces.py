"""How much of a text does the vocabulary not know?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from heed.text.doctor.findings import Finding, Tally, fault
from heed.text.doctor.thresholds import Thresholds


@dataclass(frozen=True)
class Pieces:
    """A tokenizer, as far as the doctor needs it."""

    encode: Callable[[Sequence[str]], list[list[int]]]
    unk_id: int


def unknown_pieces(
    side: str, lines: Sequence[str], pieces: Pieces, thresholds: Thresholds | None = None
) -> Iterator[Finding]:
    """The finding that tokens of these lines are unknown, or none. Examples count lines from 1."""
    limits = thresholds or Thresholds()
    tally = Tally(limits.num_examples)
    total = 0
    for number, (line, ids) in enumerate(zip(lines, pieces.encode(lines), strict=True), start=1):
        total += len(ids)
        if unknown := ids.count(pieces.unk_id):
            tally.add(number, line, times=unknown)
    what = f"are unknown to the vocabulary (in {len(lines):,} sampled lines)"
    advice = "Train the tokenizer on text of this language and script, or use a byte-level one."
    return fault("unknown", tally, total, f"{side} tokens", what, advice, stop=limits.stop_unknown, warn=limits.warn)
