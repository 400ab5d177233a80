"""Integrity of a run folder: every file that has a checksum, compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from heed.core.errors import HeedError
from heed.core.files import first_foreign
from heed.core.own_scorer import SCORER, VERDICT, Verdict
from heed.core.run_files import RECIPE, WEIGHTS
from heed.core.run_manifest import MANIFEST, read_digests
from heed.data.image_store import PIXELS, ImageStore
from heed.data.store import TRAIN
from heed.inference.converted_model import DESCRIPTION, require_intact
from heed.inference.converted_model import FOLDER as CONVERTED
from heed.run import Run
from heed.tasks.prepare import open_tokens
from heed.training.checkpoints import list_checkpoints, require_whole

WHOLE, MISSING = "as heed wrote it", "missing"
UNLISTED = "not listed: written by an older heed, or removed from the manifest"


@dataclass(frozen=True)
class Checked:
    """A file or folder of a run, and the result of its check."""

    name: str
    state: str
    is_damaged: bool


def verify(run: Run) -> Iterator[Checked]:
    """Check each file and folder of a run against its checksum.

    A listed file that is missing does not count as damage: data and checkpoints may be removed to save space. A run
    without its recipe, tokenizers or weights is reported when it is used.
    """
    listed = read_digests(run.folder)
    if not listed:
        yield Checked(MANIFEST, "missing: a run of an older heed, of which only the parts below have checksums", False)
    if foreign := first_foreign(run.folder):
        yield Checked(str(foreign.relative_to(run.folder)), "a link or a special file", True)
    for name, wrong in run.files.changed().items():
        yield Checked(name, wrong or WHOLE, wrong not in ("", MISSING))
    for name in (RECIPE, *sorted(path.name for path in run.folder.glob("tokenizer*.json"))):
        if listed and name not in listed:
            yield Checked(name, UNLISTED, False)
    if run.files.has(WEIGHTS):
        yield _checked(WEIGHTS, run.weights)
    if run.files.has(TRAIN):
        yield _checked(TRAIN, lambda: open_tokens(run.folder, verify=True))
    for images in sorted(path.parent.name for path in run.folder.glob(f"data/*/{PIXELS}")):
        yield _checked(f"data/{images}", partial(ImageStore.open, run.folder / "data" / images, verify=True))
    if run.files.has(f"{CONVERTED}/{DESCRIPTION}"):
        yield _checked(CONVERTED, lambda: require_intact(run.folder / CONVERTED))
    for path in list_checkpoints(run.folder / "checkpoints"):
        yield _checked(f"checkpoints/{path.name}", partial(require_whole, path))
    yield from _verify_scorer(run)


def _verify_scorer(run: Run) -> Iterator[Checked]:
    """Check the scorer of a run of phrases, whether it is used or not."""
    folder = run.folder / SCORER
    if (folder / RECIPE).exists() and not folder.is_symlink():
        yield from (replace(each, name=f"{SCORER}/{each.name}") for each in verify(Run(folder)))
    if run.files.has(VERDICT) and not (folder / WEIGHTS).exists():
        with suppress(HeedError):  # a damaged verdict is listed, and reported
            if run.files.read_as(Verdict, VERDICT).is_used:
                yield Checked(f"{SCORER}/{WEIGHTS}", MISSING, True)


def _checked(name: str, check: Callable[[], object]) -> Checked:
    try:
        check()
    except (HeedError, OSError) as error:
        return Checked(name, str(error), True)
    return Checked(name, WHOLE, False)
