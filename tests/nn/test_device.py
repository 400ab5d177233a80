"""Choice of device, and errors about devices that are not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from heed.core.errors import UsageError
from heed.nn import device
from heed.nn.device import best_precision, choose_device, matmul_rates, set_threads

CPU = torch.device("cpu")


@pytest.fixture
def no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def gpu_settings() -> Iterator[None]:
    """PyTorch's own settings for GPUs, those of before at the end."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cudnn.allow_tf32 = before[0]
    torch.backends.cuda.enable_cudnn_sdp(before[1])


def test_auto_uses_a_gpu_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, no_accelerator: None, gpu_settings: None
) -> None:
    assert choose_device("auto") == CPU
    used: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", used.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto") == torch.device("cuda:0")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert used == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert not torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    assert not torch.backends.cudnn.allow_tf32
    with pytest.raises(UsageError, match="cuda:2 does not exist: PyTorch sees 2 CUDA devices here, numbered from 0"):
        choose_device("cuda:2")
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(UsageError, match="cuda:3 does not exist"):
        choose_device("auto")


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_an_unavailable_device_is_refused_with_advice(name: str, no_accelerator: None) -> None:
    with pytest.raises(UsageError, match=f"--device {name}: PyTorch sees no .* Use --device cpu"):
        choose_device(name)


@pytest.mark.parametrize("name", ["gpu", "cpu:x", "cuda:x", "cuda:-1", "cuda:01", "cuda:1000", "cuda:"])
def test_an_unknown_device_is_refused_with_the_allowed_ones(name: str) -> None:
    with pytest.raises(UsageError, match=f"auto, cpu, cuda or cuda:N, got '{name}'"):
        choose_device(name)


def test_the_number_of_threads_is_set() -> None:
    before = torch.get_num_threads()
    try:
        set_threads(2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.processor
@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({128: 1.0, 512: 1.2}, ("float32", 1.2)),
        ({128: 0.8, 512: 2.0}, ("bfloat16", 2.0)),
        ({128: 0.02}, ("float32", 0.02)),
    ],
    ids=["gains too little", "gains", "is emulated: large matrices are not tried"],
)
def test_bfloat16_is_chosen_if_it_is_a_third_faster(
    gains: dict[int, float], expected: tuple[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "matmul_rates", lambda dtypes, where, size: [gains[size], 1.0])
    assert best_precision(CPU) == expected


@pytest.mark.processor
def test_a_rate_is_measured() -> None:
    assert min(matmul_rates((torch.float32, torch.bfloat16), CPU, size=32)) > 0
