"""Clipping, optimisers and averages: equal to the published ones, and resumed bit for bit."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import model_of
from torch import Tensor, nn
from toy_language import trainer_for
from trainings import content, interrupt_after

from heed.training.checkpoints import newest_checkpoint
from heed.training.config import TrainingConfig
from heed.training.optimizers import OPTIMIZERS, build_optimizer, clip_gradients, kept_quantities, orthogonalised
from heed.training.weights import IterateMean, Trigger

CPU = torch.device("cpu")


# Clipping


def some_gradients() -> list[Tensor]:
    """Their common norm is 13."""
    return [torch.tensor([3.0, 0.0]), torch.tensor([[4.0], [12.0]])]


def test_gradients_over_the_limit_are_projected_onto_it() -> None:
    """n g / ‖g‖, and not n g / (‖g‖ + 1e-6)."""
    gradients = some_gradients()
    assert clip_gradients(gradients, 6.5) == pytest.approx(13.0)
    for found, before in zip(gradients, some_gradients(), strict=True):
        torch.testing.assert_close(found, before * 0.5, rtol=0, atol=0)
    tiny = [torch.tensor([3e-6, 4e-6])]
    clip_gradients(tiny, 1e-6)
    torch.testing.assert_close(tiny[0], torch.tensor([6e-7, 8e-7]), rtol=1e-6, atol=0)


@pytest.mark.parametrize("limit", [13.0, 20.0, 0.0])
def test_gradients_within_the_limit_are_not_changed_and_zero_means_no_limit(limit: float) -> None:
    gradients = some_gradients()
    clip_gradients(gradients, limit)
    assert all(torch.equal(*pair) for pair in zip(gradients, some_gradients(), strict=True))


def test_a_norm_that_is_not_finite_is_returned_and_gradients_are_not_scaled() -> None:
    gradients = [torch.tensor([1.0, math.inf])]
    assert not math.isfinite(clip_gradients(gradients, 1.0))
    assert gradients[0][0] == 1.0


# Optimisers and averages


def quadratic(optimizer: torch.optim.Optimizer, weight: Tensor, num_steps: int, after: Any = lambda: None) -> None:
    """Some updates on a noisy quadratic."""
    torch.manual_seed(1)
    for _ in range(num_steps):
        weight.grad = weight.detach() * torch.tensor([1.0, 5.0, 20.0]) + torch.randn(3)
        optimizer.step()
        after()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_equals_pytorchs(name: str) -> None:
    config = TrainingConfig(optimizer=name, lr=0.02, weight_decay=0.1)
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}.get(name, torch.optim.AdamW)  # Muon has it for vectors
    adaptive = {} if name == "sgd" else {"betas": (config.beta1, config.beta2), "eps": config.epsilon}
    ours, theirs = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    quadratic(build_optimizer(config, {"w": ours}, CPU), ours, 10)
    quadratic(kind([theirs], lr=0.02, weight_decay=0.1, **adaptive), theirs, 10)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 20)])
def test_muon_equals_pytorchs_for_matrices(shape: tuple[int, int]) -> None:
    """PyTorch's works in bfloat16."""
    config = TrainingConfig(optimizer="muon", lr=0.02, weight_decay=0.1)
    ours, theirs, other = (nn.Parameter(torch.ones(shape)) for _ in range(3))
    mine = build_optimizer(config, {"a.weight": ours, "embedding.weight": other}, CPU)
    published = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    torch.manual_seed(1)
    for _ in range(10):
        ours.grad = torch.randn(shape)
        theirs.grad, other.grad = ours.grad.clone(), ours.grad.clone()
        mine.step()
        published.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0.004)
    assert (ours - other).abs().max() > 0.05


@pytest.mark.parametrize("name", ["encoder_decoder, RCTM I", "rnn", "gpt", "encoder", "bag"])
def test_muon_moves_the_matrices_of_linear_layers_and_no_table_or_kernel(name: str) -> None:
    """Rows of the other weights with two axes belong to a token, a position, a segment, a hash or a place."""
    model = model_of(name)
    kept = kept_quantities(TrainingConfig(optimizer="muon"), dict(model.named_parameters()))
    linear = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert {name for name, quantities in kept.items() if "momentum" in quantities} == linear


def test_muon_does_not_move_the_vectors_of_characters() -> None:
    names = ("characters.weight", "characters.filters.weight")
    weights = {f"reader.{name}": nn.Parameter(torch.ones(5, 3)) for name in names}
    kept = kept_quantities(TrainingConfig(optimizer="muon"), weights)
    assert {name for name, each in kept.items() if "momentum" in each} == {"reader.characters.filters.weight"}


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_orthogonalised_matrices_keep_their_directions_and_have_singular_values_near_one(
    dtype: torch.dtype, error: float
) -> None:
    torch.manual_seed(1)
    for shape in ((3, 6, 6), (2, 5, 12), (2, 12, 5)):
        matrices = torch.randn(shape)
        left, _, right = torch.linalg.svd(matrices, full_matrices=False)
        lengths = left.mT @ orthogonalised(matrices, dtype) @ right.mT
        own = lengths.diagonal(dim1=1, dim2=2)
        torch.testing.assert_close(lengths, torch.diag_embed(own), rtol=0, atol=error)
        assert ((own > 0.3) & (own < 1.25)).all()


def test_muon_orthogonalises_in_the_precision_of_the_training() -> None:
    torch.manual_seed(1)
    gradient, moved = torch.randn(12, 8), {}
    for precision in ("float32", "bfloat16"):
        weights = {"layer.weight": nn.Parameter(torch.zeros(12, 8))}
        config = TrainingConfig.model_validate({"optimizer": "muon", "precision": precision, "lr": 1.0})
        weights["layer.weight"].grad = gradient.clone()
        build_optimizer(config, weights, torch.device("cpu")).step()
        moved[precision] = weights["layer.weight"].detach()
    assert not torch.equal(moved["float32"], moved["bfloat16"])
    torch.testing.assert_close(moved["bfloat16"], moved["float32"], rtol=0.05, atol=0.02)


def test_sgd_with_the_mean_of_its_weights_is_asgd_as_awd_lstm_uses_it() -> None:
    """`ASGD(t0=0, lambd=0)`: its weights, and the mean `ax` that it keeps of all but the first of them."""
    ours, theirs = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    config = TrainingConfig(optimizer="sgd", lr=0.02, weight_decay=0.1)
    iterates: list[Tensor] = []
    quadratic(build_optimizer(config, {"w": ours}, CPU), ours, 25, lambda: iterates.append(ours.detach().clone()))
    mean = IterateMean({"w": ours})
    for weight in iterates[1:]:
        mean.update({"w": weight})
    asgd = torch.optim.ASGD([theirs], lr=0.02, t0=0, lambd=0.0, weight_decay=0.1)
    quadratic(asgd, theirs, 25)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(mean.tensors["w"], asgd.state[theirs]["ax"])


@pytest.mark.parametrize(
    ("losses", "nonmonotone", "pulled_at"),
    [
        ([5, 4, 3, 2, 1], 2, None),
        ([5, 4, 3, 3.5, 3.4, 3.3, 3.2], 2, 6),  # 3.3 is worse than 3, three validations ago
        ([5, 4, 6], 1, 3),
        ([5, 4, 4, 4, 4], 1, None),  # as good is not worse
        ([1, 2], 5, None),  # too early
        ([1, 2, 2, 2, 2, 2, 2], 5, 7),
    ],
)
def test_averaging_starts_when_a_score_is_worse_than_the_best_of_earlier_validations(
    losses: list[float], nonmonotone: int, pulled_at: int | None
) -> None:
    """Against the line of awd-lstm-lm: `len(best_val_loss) > n and val_loss > min(best_val_loss[:-n])`."""
    trigger, theirs, found = Trigger(), [], None
    for number, loss in enumerate(losses, 1):
        expected = len(theirs) > nonmonotone and loss > min(theirs[:-nonmonotone])
        theirs.append(loss)
        trigger.update(loss, nonmonotone)
        assert trigger.pulled == expected or found
        if trigger.pulled and found is None:
            found = number
    assert found == pulled_at


# In a training


def test_nt_asgd_validates_plain_weights_before_averaging_starts_and_their_mean_afterwards(tmp_path: Path) -> None:
    trainer = trainer_for(
        tmp_path, optimizer="sgd", lr=3.0, average="nt_asgd", nonmonotone=1, eval_every=4, max_steps=4
    )
    trainer.run()
    assert not trainer.progress.trigger.pulled
    assert trainer.candidate() is trainer.weights.master
    trainer.progress.trigger.pulled = True
    seen = []
    update = trainer.optimizer.step

    def watched() -> None:
        update()
        seen.append({name: tensor.detach().clone() for name, tensor in trainer.weights.master.items()})

    trainer.optimizer.step = watched  # type: ignore[method-assign]
    trainer.config = trainer.config.model_copy(update={"max_steps": 9})
    trainer.run()
    assert len(seen) == 5
    for name, mean in trainer.candidate().items():
        torch.testing.assert_close(mean, torch.stack([weights[name] for weights in seen]).mean(0))


@pytest.mark.parametrize(
    "keys",
    [
        {"average": "nt_asgd", "nonmonotone": 1, "lr": 8.0, "random_context": True},
        {"average": "asgd", "schedule": "epochs", "decay_after": 1, "lr_decay": 1.5},
        {"average": "none", "schedule": "plateau", "lr": 8.0, "weight_decay": 1e-3},
    ],
)
@pytest.mark.parametrize("stop", [11, 16])
def test_a_training_with_sgd_is_resumed_bit_for_bit(tmp_path: Path, stop: int, keys: dict[str, Any]) -> None:
    keys = {"optimizer": "sgd", "lr": 1.0, "clip_norm": 0.25, "eval_every": 3, **keys}
    straight = trainer_for(tmp_path, "straight", **keys)
    straight.run()
    if keys["average"] == "nt_asgd":
        assert 0 < straight.average.num_updates < 24
    if keys.get("schedule") == "plateau":
        assert straight.progress.rate_scale < 1
    trainer = trainer_for(tmp_path, "stopped", **keys)
    interrupt_after(trainer, stop, signal.SIGTERM)
    trainer.run()
    trainer = trainer_for(tmp_path, "stopped", **keys)
    trainer.restore(newest_checkpoint(tmp_path / "stopped" / "checkpoints"))
    trainer.run()
    assert content(tmp_path / "stopped") == content(tmp_path / "straight")
    assert trainer.progress.trigger == straight.progress.trigger
    assert trainer.progress.rate_scale == straight.progress.rate_scale


def test_the_rate_decays_when_validation_does_not_improve(tmp_path: Path) -> None:
    trainer = trainer_for(tmp_path, optimizer="sgd", lr=2.0, schedule="plateau", lr_decay=4.0, average="none")
    for perplexity in (5.0, 4.0, 4.5, 3.0, 3.0):
        trainer._adapt(perplexity, perplexity)
    assert trainer.rate(10) == pytest.approx(2.0 / 16)
