"""Preparation of captioned images: held-out images, tokenizer, captions as ids and images as pixels.

The validation images are other images than those of training: images are held out with all their captions, and an image
of the training data with the pixels of a validation image is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.image_store import ImageStore, write_images
from heed.data.validation import write_valid
from heed.images.decode import Pixels, decode, digest_of
from heed.images.files import ImageFiles, open_images
from heed.tasks import prepare
from heed.tasks.captioning.batches import joined
from heed.tasks.captioning.data import Captioned, CaptioningData
from heed.text.readers import FileFingerprint, fingerprint_file
from heed.text.readers.corpus import format_of
from heed.text.tokenizers import Tokenizer, TokenizerConfig

SIDES = ("tgt",)
TRAIN_IMAGES, VALID_IMAGES = "data/train-images", "data/valid-images"
"""Image stores of a run folder."""
UNUSABLE = "the image is in the validation data too"


@dataclass(frozen=True)
class Division:
    """The training and the validation images."""

    train: Sequence[Captioned]
    valid: Sequence[Captioned]
    valid_images: str
    """The folder or archive of the validation images."""
    has_own_file: bool


def divide(data: CaptioningData, seed: int) -> Division:
    """The training and validation images, as the files, the column of parts or a random choice divide them."""
    if not data.captions or not data.images:
        missing = "data.captions is missing: give --captions F." if data.images else "give --captions F --images F."
        raise UsageError(
            missing if not data.captions else "data.images is missing: give --images F, a folder or a .tar."
        )
    table = data.table(data.captions)
    train = list(table.parts.get("train", ()))
    if data.valid_captions:
        own = data.table(data.valid_captions)
        valid = own.parts.get("valid") or [c for part in ("train", "test") for c in own.parts.get(part, ())]
        return Division(train, valid[: data.max_valid], data.valid_images or data.images, True)
    if valid := table.parts.get("valid", ()):
        return Division(train, valid[: data.max_valid], data.images, False)
    prepare.require_enough(len(train), data.num_held_out)
    is_held = [prepare.is_held_out(each.image, len(train), data.num_held_out, seed) for each in train]
    kept = [each for each, held in zip(train, is_held, strict=True) if not held]
    held = [each for each, held in zip(train, is_held, strict=True) if held]
    return Division(kept, held[: data.max_valid], data.images, False)


def prepare_captioning(
    data: CaptioningData, tokenizer: TokenizerConfig, seed: int, folder: Path,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> prepare.Corpus:  # fmt: skip
    """Divide the images, train a tokenizer (or `reuse` one), and write captions and pixels into the run folder."""
    division = divide(data, seed)
    write_valid(folder, [each.captions for each in division.valid])
    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, lambda: ((text,) for each in division.train for text in each.captions),
        sum(len(each.captions) for each in division.train), folder, quiet=quiet,
    )  # fmt: skip
    dropped: Counter[str] = Counter()
    encoded = _encoded(division.train, tokenizers["tgt"], data.max_tokens, dropped)
    with open_images(data.resolve(division.valid_images)) as files:
        valid = _write(folder / VALID_IMAGES, files, division.valid, data, quiet)
        valid_fingerprint = _fingerprint(files)
    known = {digest_of(image) for image in valid.pixels(range(len(valid)))}
    seen = prepare.SeenRows(folder)
    with open_images(data.resolve(data.images)) as files:
        train = _write(folder / TRAIN_IMAGES, files, [each for each, _ in encoded], data, quiet, known, seen)
        fingerprints = {
            "captions": fingerprint_file(data.resolve(data.captions), format_of(Path(data.captions))),
            "images": _fingerprint(files),
        }
    kept = set(train.names)
    dropped[UNUSABLE] += sum(each.image not in kept for each, _ in encoded)
    rows = ((joined(ids),) for each, ids in encoded if each.image in kept)
    store = prepare.write_tokens(folder, SIDES, rows, tokenizers, fingerprints)
    seen.write()
    valid_files: dict[str, FileFingerprint] = {}
    if division.has_own_file:
        captions = fingerprint_file(data.resolve(data.valid_captions), format_of(Path(data.valid_captions)))
        valid_files = {"captions": captions, "images": valid_fingerprint}
    corpus = prepare.Corpus(len(store), len(valid), dict(+dropped), fingerprints, valid_files)
    prepare.write_corpus(folder, corpus)
    return corpus


def _encoded(
    train: Iterable[Captioned], tokenizer: Tokenizer, max_tokens: int, dropped: Counter[str]
) -> list[tuple[Captioned, list[list[int]]]]:
    """The training images with the ids of their captions that are short enough; others are dropped and counted."""
    encoded = []
    for each in train:
        ids = [caption for caption in tokenizer.encode(list(each.captions)) if 0 < len(caption) <= max_tokens]
        if num_long := len(each.captions) - len(ids):
            dropped[f"captions without tokens or longer than {max_tokens} tokens (data.max_tokens)"] += num_long
        if ids:
            encoded.append((each, ids))
    return encoded


def _write(
    folder: Path, files: ImageFiles, captioned: Sequence[Captioned], data: CaptioningData, quiet: bool,
    known: Collection[int] = (), seen: prepare.SeenRows | None = None,
) -> ImageStore:  # fmt: skip
    """Write the pixels of the images, without those whose digest is `known`; the others are added to `seen`."""
    names = files.require([each.image for each in captioned], data.captions)

    def images() -> Iterator[tuple[str, Pixels]]:
        paired = zip(captioned, names, strict=True)
        for each, name in watched(paired, "decoding", "images", quiet):
            pixels = decode(files.read(name), files.shown(name), data.image_size)
            if (digest := digest_of(pixels)) not in known:
                if seen is not None:
                    seen.add((f"{digest:032x}",))
                yield each.image, pixels

    return write_images(folder, data.image_size, images())


def _fingerprint(files: ImageFiles) -> FileFingerprint:
    """The identity of a folder or archive of images; its lines are the images."""
    num_bytes, sha256 = files.identity()
    return FileFingerprint(name=files.place.name, bytes=num_bytes, sha256=sha256, lines=len(files.names), crlf_lines=0)
