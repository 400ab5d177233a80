"""What is a score? A number that says how it was computed and how far chance alone could have moved it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


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
        return f"{self.name} {self.numbers}  {self.signature}"

    @property
    def numbers(self) -> str:
        """The value and its interval: `34.21 [33.10, 35.30]`; of bits per byte the third decimal counts too."""
        decimals = 3 if " per " in self.name and abs(self.value) < 10 else 2
        form = f".{decimals}f" if abs(self.value) < 1e7 else ".3g"
        value, *ends = (format(x, form) for x in (self.value, self.low, self.high) if x is not None)
        return f"{value} [{', '.join(ends)}]" if ends else value

    def to_json(self) -> dict[str, str | float | None]:
        """The fields as a dictionary that `json` can write; it has no infinity, which is null there."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Score:
        """What `to_json` gave. Raises TypeError for something else."""
        value = math.inf if fields.get("value") is None else fields["value"]
        is_endless = fields.get("low") is not None and fields.get("high") is None
        return cls(**{**fields, "value": value, **({"high": math.inf} if is_endless else {})})
