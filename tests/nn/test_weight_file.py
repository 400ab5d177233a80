"""Weight files: exact round trips, and refusal of hostile or damaged files before memory is allocated."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from heed.core.errors import DataError, MissingInputError
from heed.core.formats import NewerFormatError
from heed.core.weight_file import read_header
from heed.nn import weight_file
from heed.nn.weight_file import digest, read_weights, save_weights, shapes_of


def tensors() -> dict[str, Tensor]:
    """Of several types and shapes, one of them empty and one a single number."""
    return {
        "a": torch.arange(6, dtype=torch.float32).reshape(2, 3), "b.c": torch.ones(4, dtype=torch.bfloat16),
        "n": torch.tensor(7), "none": torch.empty(0, 5), "flags": torch.tensor([True, False]),
    }  # fmt: skip


def write(path: Path, header: Any, data: bytes = b"") -> Path:
    """A file with this header, well-formed or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> Mapping[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_weights_and_metadata_are_restored_bit_for_bit(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", tensors(), {"step": "7"})
    found = read_weights(tmp_path / "w", shapes_of(tensors()))
    assert digest(found) == digest(tensors())
    header = read_header(tmp_path / "w")
    assert header.shapes == shapes_of(tensors())
    assert header.num_parameters == 10, "whole numbers and flags are not learned"
    assert {**header.metadata, "sha256": ""} == {"step": "7", "format": "1", "sha256": ""}
    assert load_file(tmp_path / "w").keys() == tensors().keys(), "any program that knows the format reads them"


def test_files_of_other_programs_are_read_too(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "plain")
    save_file(tensors(), tmp_path / "said", {"format": "pt"})
    assert digest(read_weights(tmp_path / "plain")) == digest(read_weights(tmp_path / "said")) == digest(tensors())


def test_the_digest_does_not_depend_on_strides() -> None:
    for number in (0, 1, 3):
        one_value = torch.tensor(2.0).expand(number)
        assert digest({"a": one_value}) == digest({"a": one_value.clone()})
    assert digest({"a": torch.tensor([2.0, 5.0]).as_strided((1,), (0,))}) == digest({"a": torch.tensor([2.0])})


def test_the_digest_sees_names_types_shapes_and_numbers_but_not_their_order() -> None:
    one = torch.arange(4, dtype=torch.float32)
    variants = [
        {"a": one}, {"b": one}, {"a": one.reshape(2, 2)}, {"a": one.int()}, {"a": one + 1}, {"a": one, "b": one[:0]},
    ]  # fmt: skip
    assert len({digest(variant) for variant in variants}) == len(variants)
    assert digest({"a": one, "b": one + 1}) == digest({"b": one + 1, "a": one})


@pytest.mark.parametrize("bit", [0, 6, *(pytest.param(bit, marks=pytest.mark.slow) for bit in (1, 2, 3, 4, 5, 7))])
def test_every_single_flipped_bit_is_noticed(tmp_path: Path, bit: int) -> None:
    """In the header or in the numbers, except bits that change nothing (a space, heed's metadata)."""
    path = tmp_path / "w"
    save_weights(path, {"a": torch.arange(5, dtype=torch.float32)}, {})
    whole = path.read_bytes()
    for position in range(len(whole)):
        content = bytearray(whole)
        content[position] ^= 1 << bit
        path.write_bytes(content)
        try:
            weights = read_weights(path, {"a": (5,)})
        except DataError:
            continue
        assert digest(weights) == digest({"a": torch.arange(5, dtype=torch.float32)})


@pytest.mark.parametrize("length", [0, 7, 8, 40, -1])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    save_weights(tmp_path / "w", tensors(), {})
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[:length])
    with pytest.raises(DataError, match="w is damaged or not a safetensors file: "):
        read_weights(tmp_path / "w")


HOSTILE = {
    "a header longer than the file": (
        struct.pack("<Q", 1 << 60) + b"{}",
        "its header claims 1152921504606846976 bytes, but the file has 10",
    ),
    "a pickle": (b"\x80\x04\x95" + bytes(50), "its header claims"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    content, message = HOSTILE[name]
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_weights(tmp_path / "w")


def test_no_code_of_a_pickle_is_run(tmp_path: Path) -> None:
    import pickle

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "it ran"),)

    (tmp_path / "pickle").write_bytes(pickle.dumps(Bomb()))
    torch.save({"w": Bomb()}, tmp_path / "torch")
    for name in ("pickle", "torch"):
        with pytest.raises(DataError, match="is damaged or not a safetensors file"):
            read_weights(tmp_path / name)
    assert not (tmp_path / "it ran").exists()


def test_a_huge_header_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "w"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 10**10))
        file.truncate(10**10 + 8)  # a file of zeros that takes no room
    with pytest.raises(DataError, match="its header has 10 GB, more than the limit of 16 MB"):
        read_weights(path)


def test_a_header_of_too_many_tensors_is_refused(tmp_path: Path) -> None:
    header = {f"t{number}": entry([], 4 * number, 4 * number + 4) for number in range(50_001)}
    path = write(tmp_path / "w", header, bytes(200_004))
    with pytest.raises(DataError, match="at most 50000 items"):
        read_weights(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"not JSON", "its header is not JSON"),
        (b"[" * 100_000, "its header is not JSON"),
        ([1, 2], "its header is wrong at 'tensors'"),
        ({"a": entry([2], 0, 8), "__metadata__": {"heed": '{"n": 1}'}}, "its header is wrong at 'metadata.n'"),
        ({"a": entry([2], 0, 8), "__metadata__": {"heed": 1}}, "its header is not JSON"),
        ({"a": entry([2], 0, 8), "__metadata__": [1]}, "its header is wrong at 'metadata'"),
        ({"a": entry([2], 0, 9)}, "'a' has 9 bytes, but its shape needs 8"),
        ({"a": entry([3], 0, 12)}, "'a' is outside the file"),
        ({"a": entry([2], 1 << 62, (1 << 62) + 8)}, "'a' is outside the file"),
        ({"a": entry([2], 8, 0)}, "'a' has -8 bytes, but its shape needs 8"),
        ({"a": entry([-2], 0, 8)}, "'tensors.a.shape.0': Input should be greater than or equal to 0"),
        ({"a": entry([10**9, 10**9, 10**9], 0, 8)}, "its shape needs 4000000000000000000000000000"),
        ({"a": entry([1] * 9, 0, 4)}, "tensors.a.shape"),
        ({"a": entry([2], 0, 8, "PY")}, "tensors.a.dtype"),
        ({"a": {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}}, "tensors.a.shape"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "tensors.a.data_offsets"),
        ({"a": entry([2], 0, 8), "b": entry([1], 4, 8)}, "damaged or not a safetensors file"),
        ({"b" * 1000: entry([2], 0, 9)}, "'bbb"),
    ],
)  # fmt: skip
def test_a_wrong_header_is_refused_in_one_line(tmp_path: Path, header: Any, message: str) -> None:
    path = write(tmp_path / "w", header, bytes(8))
    with pytest.raises(DataError) as refused:
        read_weights(path)
    assert message in str(refused.value)
    assert len(str(refused.value)) < len(str(path)) + 400


def test_shapes_of_another_model_are_refused_before_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_weights(tmp_path / "w", tensors(), {})
    monkeypatch.setattr(weight_file, "load_file", lambda path: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"'a' has the shape \[2, 3\], the recipe's model has \[2, 4\]"):
        read_weights(tmp_path / "w", {**shapes_of(tensors()), "a": (2, 4)})
    with pytest.raises(DataError, match=r"do not fit the recipe's model: only one of the two has 'z'"):
        read_weights(tmp_path / "w", {**shapes_of(tensors()), "z": (1,)})


def test_a_newer_format_requires_a_newer_heed(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "newer", {"heed": '{"format": "2"}'})
    with pytest.raises(NewerFormatError, match=r"newer has format 2, written by a newer version of heed.*Update heed"):
        read_weights(tmp_path / "newer")
    save_file(tensors(), tmp_path / "nonsense", {"heed": '{"format": "one"}'})
    with pytest.raises(DataError, match="the format must be a whole number from 1 to 1, got 'one'"):
        read_weights(tmp_path / "nonsense")


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="nothing does not exist"):
        read_weights(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(DataError, match="is not a regular file"):
            read_weights(path)
