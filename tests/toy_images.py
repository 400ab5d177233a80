"""Toy images for captioning: a coloured shape, with captions that name it."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

PIL = pytest.importorskip("PIL", reason="images need the package pillow")
from PIL import Image, ImageDraw  # noqa: E402  # after the check

COLOURS = {"red": (220, 30, 30), "blue": (30, 60, 220), "green": (20, 160, 40)}
SHAPES = ("square", "circle")
SIZE = 16

Thing = tuple[str, str]
"""A colour and a shape."""


def draw(thing: Thing, dice: random.Random) -> Image.Image:
    """The thing at a random place, on white."""
    colour, shape = thing
    image = Image.new("RGB", (SIZE, SIZE), "white")
    pencil = ImageDraw.Draw(image)
    left, top = dice.randint(1, 4), dice.randint(1, 4)
    (pencil.rectangle if shape == "square" else pencil.ellipse)((left, top, left + 10, top + 10), fill=COLOURS[colour])
    return image


def captions_of(thing: Thing) -> tuple[str, str]:
    """Two captions of the same image."""
    colour, shape = thing
    return f"a {colour} {shape}", f"this {shape} is {colour}"


def scenes(number: int, seed: int = 0) -> Iterator[tuple[str, Image.Image, tuple[str, str]]]:
    """(name, image, captions) of random scenes."""
    dice = random.Random(seed)
    things = list(product(COLOURS, SHAPES))
    for index in range(number):
        thing = dice.choice(things)
        yield f"{index:03}.png", draw(thing, dice), captions_of(thing)


def encoded(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    """The bytes of an image file."""
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def write_tar(path: Path, members: Sequence[tuple[str, bytes]]) -> Path:
    """An archive with these files."""
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def write_scenes(folder: Path, number: int, seed: int = 0, parts: Sequence[str] = ()) -> Path:
    """`captions.tsv` and `images.tar` in a folder; `parts`: those of the images in turn, if there is such a column."""
    rows, members = [], []
    for index, (name, image, captions) in enumerate(scenes(number, seed)):
        part = [parts[index % len(parts)]] if parts else []
        rows += ["\t".join([name, *part, caption]) for caption in captions]
        members.append((f"images/{name}", encoded(image)))
    heading = "\t".join(["image", *["split"] * bool(parts), "caption"])
    (folder / "captions.tsv").write_text("\n".join([heading, *rows]) + "\n")
    write_tar(folder / "images.tar", members)
    return folder


TINY = {
    "task": "captioning", "data.image_size": 16, "data.max_shift": 1, "data.hold_out": 12,
    "tokenizer.kind": "word", "tokenizer.vocab_size": 40, "tokenizer.min_frequency": 1,
    "model.kind": "show_attend_tell", "model.channels": [8, 8, 16], "model.num_blocks": 0, "model.d_model": 16,
    "model.hidden_size": 24, "model.attention_size": 8, "model.dropout": 0.1,
    "training.precision": "float32", "training.lr": 2e-2, "training.warmup_steps": 5, "training.tokens_per_batch": 256,
    "training.max_steps": 60, "training.eval_every": 30, "training.save_every": 10, "training.average": "none",
    "training.label_smoothing": 0.0, "training.stop_metric": "perplexity", "decoding.beam_size": 2,
}  # fmt: skip
"""Recipe keys of a tiny captioning run, without its files."""


def keys_of(folder: Path) -> dict[str, object]:
    """The recipe keys of a run on the scenes in a folder."""
    return {**TINY, "data.captions": str(folder / "captions.tsv"), "data.images": str(folder / "images.tar")}
