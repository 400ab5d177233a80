"""What is a score? A number that says how it was computed and how far chance alone could have moved it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Score:
    """One number with its provenance, so that two of them can be compared or be seen not to be comparable."""

    name: str
    """As papers write it: `BLEU`, `chrF2`, `perplexity per word`."""
    value: float
    signature: str
    """What has to be equal for two scores to be comparable: `nrefs:1|case:mixed|eff:no|tok:13a|...`."""
    low: float | None = None
    """Lower end of the 95 % interval; None when no interval was asked for."""
    high: float | None = None

    def render(self) -> str:
        """The score on one line: `BLEU 34.21 [33.10, 35.30]  nrefs:1|bs:1000|...`."""
        interval = "" if self.low is None or self.high is None else f" [{_number(self.low)}, {_number(self.high)}]"
        return f"{self.name} {_number(self.value)}{interval}  {self.signature}"

    def to_json(self) -> dict[str, str | float | None]:
        """The fields as a dictionary that `json` can write; `Score(**fields)` is the score again."""
        return asdict(self)


def _number(value: float) -> str:
    """Two decimals, or three below 10, where bits per byte differ in the third."""
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"
