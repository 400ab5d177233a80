"""The GPU of tests that compare it with the CPU; they are skipped where PyTorch sees none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

GPU = torch.device("cuda:0")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: PyTorch sees no CUDA device")


def assert_all_close(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], tolerance: float) -> None:
    """Tensors of a GPU equal those of a CPU up to a share of the largest value in each."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].device.type == "cuda", name
        difference = (found[name].cpu().float() - value.float()).abs().max()
        assert difference <= tolerance * value.float().abs().max().clamp(min=1e-3), f"{name}: {difference:.2g}"
