"""Is a test set the right way round for a run: the source in its source language, the reference in the other?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heed.core.errors import DataError
from heed.core.progress import warn
from heed.evaluation.systems import HeldOut
from heed.run import Run
from heed.tasks.prepare import VALID, read_valid
from heed.text.doctor import Thresholds
from heed.text.doctor.direction import are_crossed, look_exchanged
from heed.text.doctor.language import EvenSample, Profile, likeness, profile
from heed.text.languages import code_of

MIN_LINES = 20
"""Fewer lines tell nothing."""


def require_direction(run: Run, test: HeldOut) -> None:
    """Raise DataError for a test set whose sides are exchanged, or in one language while the run's are in two.

    The sides are compared with the run's validation lines, where its folder still has them, and with the signs of
    the languages that its recipe names.
    """
    data = run.recipe.data
    if run.tag is not None and run.tag != data.tag_of_validation:  # it may be the other direction, with another tag
        return
    src, tgt = _sample(test.sources), _sample(test.references)
    own = profile(src), profile(tgt)
    known = _known(run)
    same = Thresholds().same_language
    if len(test.rows) < MIN_LINES or (known is not None and likeness(*known) > same):
        return
    names = " and ".join(test.files)
    if look_exchanged(src, tgt, data.src_lang, data.tgt_lang) or (known is not None and are_crossed(*own, *known)):
        raise DataError(
            f"{names}: the source looks like the target language of {run.folder}, and the reference like its source "
            f"language. {test.to_exchange}"
        )
    two_languages = known is not None or code_of(data.src_lang) != code_of(data.tgt_lang)
    if two_languages and likeness(*own) > same:
        raise DataError(
            f"{names}: source and reference look like one language. The reference must be the translation into the "
            f"target language of {run.folder}."
        )


def tell_strange(run: Run, lines: Sequence[str], quiet: bool) -> None:
    """Warn of lines to translate that are XML, or more like the target language of a run than like its source's."""
    if any(line.lstrip("\ufeff").lstrip().startswith(("<?xml", "<tmx", "<!DOCTYPE")) for line in lines[:1]):
        warn("the input looks like XML, and its lines are translated as they stand: give plain text.", quiet)
    known = _known(run) if len(lines) >= MIN_LINES and run.tag in (None, run.recipe.data.tag_of_validation) else None
    if known is None or likeness(*known) > Thresholds().same_language:
        return
    here, there = (likeness(profile(_sample(lines)), side) for side in known)
    if there > 1.5 * here:
        warn(f"the input looks like the target language of {run.folder}, not like its source language.", quiet)


def _known(run: Run) -> tuple[Profile, Profile] | None:
    """Profiles of the two sides of the run's own validation lines."""
    if not (run.folder / VALID).exists():
        return None
    rows = read_valid(run.folder)
    return profile(_sample(row[0] for row in rows)), profile(_sample(row[-1] for row in rows))


def _sample(lines: Iterable[str]) -> Sequence[str]:
    sample = EvenSample()
    for line in lines:
        sample.add(line)
    return sample.lines
