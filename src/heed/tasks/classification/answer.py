"""Combination of a classifier's linear and neural part, chosen on validation data.

The outputs of the combination are Σ_m s_m z_m. The factors s_m ≥ 0 are those with the best likelihood of the validation
data: they weigh the parts, and calibrate the probabilities too (for one part, s is an inverse temperature; Guo et al.
2017). Each part alone and both together are scored, and the simplest one that no other beats is kept.

Where the answers to all validation rows are right, the likelihood has no maximum: it grows with the factors, and the
probabilities with it. So the factors are fitted as if one more row were there, of which nothing is known: each target
is (N y + u) / (N + 1), where u are the targets of an output of 0 (compare Platt 1999, "Probabilistic outputs for
support vector machines", section 2.2).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heed.core.errors import DataError, MissingInputError
from heed.core.json_text import parse_json
from heed.core.run_files import RESTORE, RunFiles
from heed.nn.links import Identity, Link

ANSWER = "answer.json"
PARTS = ("linear", "neural")
BOTH = "both"


@dataclass(frozen=True)
class Combination:
    """Factors of the outputs of each part; a part without one is not used."""

    name: str
    """"linear", "neural" or "both"."""
    factors: Mapping[str, float]

    def outputs(self, parts: Mapping[str, Tensor]) -> Tensor:
        """The combined outputs [N, K]."""
        return torch.stack([factor * parts[name] for name, factor in self.factors.items()]).sum(0)

    def write(self, files: RunFiles) -> None:
        """Write the combination into a run folder."""
        with files.write(ANSWER, "w") as file:
            json.dump(asdict(self), file, indent=1)

    @staticmethod
    def read(files: RunFiles) -> Combination | None:
        """The combination of a run folder; None before the first validation. Raises MissingInputError or DataError."""
        if files.has_lost(ANSWER):
            raise MissingInputError(f"{files.folder / ANSWER} is missing. {RESTORE}")
        if not files.has(ANSWER):
            return None
        try:
            fields = parse_json(files.read(ANSWER))
            factors = {name: float(factor) for name, factor in fields["factors"].items() if name in PARTS}
            return Combination(str(fields["name"]), factors)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise DataError(f"{files.folder / ANSWER} is damaged ({error}). {RESTORE}") from error


def fit_factors(link: Link, parts: Sequence[Float[Tensor, "N K"]], targets: Float[Tensor, "N K"]) -> list[float]:
    """The factors s ≥ 0 with the least -log p, by Newton's method; a part whose factor is negative gets 0."""
    factors = torch.full((len(parts),), 1 / len(parts), dtype=torch.float64)
    z = torch.stack(list(parts)).double()
    y = targets.double()
    active = list(range(len(parts)))

    def loss(s: Tensor) -> Tensor:
        return link.full_loss(torch.tensordot(s, z[active], 1), y)

    for _ in range(50):
        s = factors[active].requires_grad_()
        [gradient] = torch.autograd.grad(loss(s), s)
        hessian = torch.autograd.functional.hessian(loss, s.detach())  # type: ignore[no-untyped-call]
        ridge = 1e-6 * (1 + hessian.diagonal().mean()) * torch.eye(len(active), dtype=torch.float64)
        step = -torch.linalg.solve(hessian + ridge, gradient)
        length, before = 1.0, float(loss(s.detach()))
        while length > 1e-6 and not float(loss(s.detach() + length * step)) <= before:
            length /= 2
        factors[active] = s.detach() + length * step
        if float((length * step).abs().max()) < 1e-8:
            break
    if bool((factors < 0).any()) and len(active) > 1:
        kept = [at for at in active if factors[at] > 0] or [int(factors.argmax())]
        inner = fit_factors(link, [parts[at] for at in kept], targets)
        factors = torch.zeros_like(factors)
        factors[kept] = torch.tensor(inner, dtype=torch.float64)
    return [max(0.0, float(factor)) for factor in factors]


def combinations(
    link: Link, parts: Mapping[str, Float[Tensor, "N K"]], targets: Float[Tensor, "N K"]
) -> list[Combination]:
    """Each part alone, and both together; the simplest first."""
    if not isinstance(link, Identity):  # the likelihood of numbers has a maximum
        unknown = link.probabilities(torch.zeros_like(targets))
        targets = (len(targets) * targets + unknown) / (len(targets) + 1)
    alone = [Combination(name, {name: fit_factors(link, [parts[name]], targets)[0]}) for name in PARTS if name in parts]
    if len(alone) < 2:
        return alone
    factors = fit_factors(link, [parts[name] for name in PARTS], targets)
    return [*alone, Combination(BOTH, dict(zip(PARTS, factors, strict=True)))]
