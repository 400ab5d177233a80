"""Weight files of models in PyTorch (`heed.core.weight_file`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from heed.core.files import atomic_write, storage_errors
from heed.core.formats import FORMAT
from heed.core.weight_file import METADATA_KEY, Shapes, digest_of, read_tensors


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def read_weights(path: Path, shapes: Shapes | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file; see `heed.core.weight_file.read_tensors`."""
    return read_tensors(path, load_file, digest, shapes)


def save_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write weights as one safetensors file, atomically. Raises StorageError."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    described = {**metadata, "format": str(FORMAT), "sha256": digest(tensors)}
    blob = save(tensors, {METADATA_KEY: json.dumps(described, sort_keys=True)})
    with storage_errors("write the weights", len(blob), path.parent), atomic_write(path) as file:
        file.write(blob)


def digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values, independent of the layout of a file."""
    return digest_of(
        (name, str(tensor.dtype), tensor.shape, _bytes_of(tensor).numpy().data) for name, tensor in tensors.items()
    )


def _bytes_of(tensor: Tensor) -> Tensor:
    """The bytes of the values in order. A single value may have a stride of 0, which `view` refuses."""
    return tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
