"""Copies of the weights during training: working precision, float32 and averages.

The optimiser updates float32 weights. In bfloat16 training the model computes with a bfloat16 copy, whose gradients are
accumulated in float32; in float32 training the model's own weights are optimised. Replicas of the model compute with
the same weights in other threads.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

from heed.training.config import TrainingConfig
from heed.training.sharding import shard, shared_like


class Weights:
    """Float32 weights by name (`master`), and the model that computes with them in the configured precision.

    With a `mesh`, each of its ranks keeps a part of every weight.
    """

    def __init__(self, model: nn.Module, precision: str, mesh: DeviceMesh | None = None) -> None:
        if mesh is not None:
            shard(model, precision, mesh)
            precision = "float32"  # of the parts in memory
        self.model = model
        self.sparse: bool = getattr(model, "sparse_gradients", False)
        self._working = dict(model.named_parameters())
        self.master: dict[str, Tensor] = {}
        for name, parameter in self._working.items():
            if precision == "float32":
                self.master[name] = parameter
            else:
                self.master[name] = parameter.detach().float().clone()
                self.master[name].grad = torch.zeros_like(self.master[name])
        self._copies = precision != "float32"
        self.fixed = False
        """Whether gradients, once they exist, stay where they are in memory, as `heed.training.replay` needs."""
        self._is_clear = True
        if self._copies:
            model.to(torch.bfloat16)
        self._replicas: list[dict[str, nn.Parameter]] = []

    def parameters(self) -> list[Tensor]:
        """The tensors that the optimiser updates, in a fixed order."""
        return list(self.master.values())

    def replica(self) -> nn.Module:
        """A model that computes with the same weights in memory, and has gradients of its own."""
        model = copy.deepcopy(self.model)
        parameters = dict(model.named_parameters())
        for name, parameter in parameters.items():
            parameter.data = self._working[name].data
        self._replicas.append(parameters)
        return model

    def collect_gradients(self) -> None:
        """Add the gradients of the model and its replicas to the float32 ones, in a fixed order, and clear them.

        Where the model's own weights are optimised, its gradients are the float32 ones. Sparse ones stay with it.
        """
        if self.fixed:
            self._collect_in_place()
            return
        if not self._copies:
            for parameter in self._working.values():
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.coalesce()
        for parameters in [self._working] * self._copies + self._replicas:
            for name, parameter in parameters.items():
                total, grad = self.master[name], parameter.grad
                if grad is not None and total.grad is not None:
                    total.grad.add_(grad)
                elif grad is not None:
                    total.grad = grad
                parameter.grad = None

    def _collect_in_place(self) -> None:
        """Add the model's gradients to the float32 ones; the first ones of an update are copied by a single kernel."""
        if not self._copies:
            return
        named = [(self.master[name].grad, parameter.grad) for name, parameter in self._working.items()]
        pairs = [(total, grad) for total, grad in named if total is not None and grad is not None]
        totals, grads = [total for total, _ in pairs], [grad for _, grad in pairs]
        if not pairs:
            return
        if self._is_clear:
            torch._foreach_copy_(totals, grads)
        else:
            torch._foreach_add_(totals, grads)
        torch._foreach_zero_(grads)
        self._is_clear = False

    def clear_gradients(self) -> None:
        """Clear all gradients."""
        self._is_clear = True
        if self.fixed:
            for weights in (self.master, self._working)[: 1 + self._copies]:  # one kernel for all of one type
                if grads := [weight.grad for weight in weights.values() if weight.grad is not None]:
                    torch._foreach_zero_(grads)
            return
        for parameters in (self._working, *self._replicas):
            for parameter in parameters.values():
                parameter.grad = None
        if self._copies:
            torch._foreach_zero_(self.gradients())

    def gradients(self, dense: bool = False) -> list[Tensor]:
        """The accumulated float32 gradients; `dense`: without sparse ones, which become dense."""
        for weight in self.master.values():
            if dense and weight.grad is not None and weight.grad.is_sparse:
                weight.grad = weight.grad.to_dense()
        return [weight.grad for weight in self.master.values() if weight.grad is not None]

    def train_only(self, names: Collection[str]) -> None:
        """Compute gradients for these weights and for no others, which the optimiser then leaves as they are."""
        for name, parameter in self._working.items():
            for parameters in (self._working, *self._replicas):
                parameters[name].requires_grad_(name in names)
            master = self.master[name]
            if name not in names:
                parameter.grad = master.grad = None
            elif self._copies and master.grad is None:
                master.grad = torch.zeros_like(master)

    @torch.no_grad()
    def publish(self) -> None:
        """Copy the updated float32 weights into the model."""
        if self._copies:
            torch._foreach_copy_([p.data for p in self._working.values()], list(self.master.values()))

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace the weights."""
        for name, tensor in self.master.items():
            tensor.copy_(shared_like(tensors[name], tensor))
        self.publish()


class MovingAverage:
    """Exponential moving average of the weights (Polyak & Juditsky 1992): a ← d a + (1 - d) w.

    The decay d is (1 + n) / (10 + n) after n updates until it reaches `decay`, so that the initial weights soon lose
    their influence.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.num_updates = 0
        self.tensors = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def newest_share(self) -> float:
        """Share of the newest weights in the average: 1 - d."""
        return 1 - min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))

    @torch.no_grad()
    def update(self, weights: Mapping[str, Tensor]) -> None:
        """Add the weights after an update."""
        self.num_updates += 1
        newest = [weights[name] for name in self.tensors]
        torch._foreach_lerp_(list(self.tensors.values()), newest, self.newest_share())

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor], num_updates: int) -> None:
        """Restore the average of a checkpoint."""
        self.num_updates = num_updates
        for name, tensor in self.tensors.items():
            tensor.copy_(shared_like(tensors[name], tensor))


class IterateMean(MovingAverage):
    """Mean of the weights after each update (Polyak & Juditsky 1992), which turns SGD into ASGD."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__(weights, decay=1.0)

    def newest_share(self) -> float:
        return 1 / self.num_updates


def running_average(config: TrainingConfig, weights: Mapping[str, Tensor]) -> MovingAverage | None:
    """The configured average over updates, if any."""
    if config.average == "ema":
        return MovingAverage(weights, config.ema_decay)
    return IterateMean(weights) if config.average in ("asgd", "nt_asgd") else None


@dataclass
class Trigger:
    """Start of averaging in NT-ASGD (Merity, Keskar & Socher 2018, algorithm 1)."""

    losses: list[float] = field(default_factory=list)
    """Validation losses before averaging starts; lower is better."""
    pulled: bool = False

    def update(self, loss: float, nonmonotone: int) -> None:
        """Start averaging if the loss is worse than the best of those at least `nonmonotone` validations ago."""
        if not self.pulled:
            self.pulled = loss > min(self.losses[:-nonmonotone], default=loss)
            self.losses.append(loss)


def mean_of(collection: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, computed in float64."""
    names = collection[0].keys()
    return {
        name: (sum(weights[name].double() for weights in collection) / len(collection)).to(collection[0][name].dtype)  # type: ignore[union-attr]
        for name in names
    }


def flattened(collection: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Several sets of weights as one, under the names `index/name`."""
    return {f"{index}/{name}": tensor for index, weights in enumerate(collection) for name, tensor in weights.items()}


def unflattened(tensors: Mapping[str, Tensor], master: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
    """The inverse of `flattened`, on the devices and with the sharding of the weights `master`."""
    indices = sorted({name.split("/")[0] for name in tensors}, key=int)
    return [
        {name: shared_like(tensors[f"{index}/{name}"], weight).to(weight.device) for name, weight in master.items()}
        for index in indices
    ]
