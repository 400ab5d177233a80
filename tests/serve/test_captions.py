"""Captions by a server: the same as without one, and images that it refuses."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Live, serving

import heed

toy_images = pytest.importorskip("toy_images", reason="images need the package pillow")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioning run that has learned little."""
    folder = toy_images.write_scenes(tmp_path_factory.mktemp("captioner"), 60)
    heed.train({**toy_images.keys_of(folder), "training.max_steps": 2}, folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def live(run: Path) -> Iterator[Live]:
    """A server of the run."""
    with serving([heed.load(run)]) as server:
        yield server


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_a_caption_is_that_of_the_run_with_attention_that_sums_to_one(live: Live, run: Path) -> None:
    picture = toy_images.encoded(next(iter(toy_images.scenes(1)))[1])
    answer = live.post("/api/caption", {"image": in_base64(picture), "top": 2})
    assert answer.status == 200, answer.body
    caption, [expected] = answer.json["caption"], heed.load(run).predict([picture], top=2)
    assert [caption["text"], *caption["alternatives"]] == [each.text for each in expected]
    assert " ".join(word["text"] for word in caption["words"]).strip() == caption["text"]
    for word in caption["words"]:
        assert len(word["weights"]) == caption["rows"] * caption["columns"] == 4
        assert sum(word["weights"]) == pytest.approx(1)
        assert 0 < word["probability"] <= 1


def large_png() -> bytes:
    """A PNG of some bytes whose header says 4,000 × 4,000 pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 4000, 4000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))


@pytest.mark.parametrize(
    ("image", "status", "message"),
    [
        ("", 400, "image: String should have at least 1 character"),
        ("?", 400, "The image must be in base64."),
        (in_base64(b"/etc/passwd"), 400, "The image is not an image in a format that heed reads"),
        (
            in_base64(large_png()),
            400,
            "The image has 4,000 × 4,000 pixels, more than the 12 million that heed decodes.",
        ),
        ("A" * (1 << 20), 413, "The body is larger than the limit of 1,048,576 bytes."),
    ],
    ids=["empty", "not base64", "text", "many pixels", "many bytes"],
)
def test_an_image_that_is_wrong_or_too_large_is_refused(live: Live, image: str, status: int, message: str) -> None:
    answer = live.post("/api/caption", {"image": image})
    assert (answer.status, answer.json["error"]["message"].startswith(message)) == (status, True), answer.body


def test_text_is_never_read_as_the_path_of_an_image(live: Live) -> None:
    refused = live.post("/api/predict", {"inputs": ["/etc/hostname"]})
    assert (refused.status, refused.json["error"]["message"]) == (404, "No model of this server can predict.")
    assert live.post("/api/caption", {"image": "A", "path": "/etc/hostname"}).status == 400
