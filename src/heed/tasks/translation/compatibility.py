"""Compatibility of texts with a run: translation direction, language, and how the text is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from heed.core.errors import DataError
from heed.core.progress import warn
from heed.evaluation.test_set import HeldOut
from heed.run import Run
from heed.tasks.prepare import VALID, read_valid
from heed.text.doctor import Thresholds
from heed.text.doctor.lines import EvenSample, LineScan
from heed.text.language.codes import code_of, name_of
from heed.text.language.identify import Profile, are_crossed, look_exchanged, profile, similarity
from heed.text.language.scripts import language_by_script, main_script

MIN_LINES = 20
"""Fewer lines are not checked."""
MOST, HARDLY_ANY = 0.5, 0.02
"""Shares of lines."""
ANOTHER_LANGUAGE, ENOUGH_LINES = 0.35, 100
"""Below this likeness so many lines in one script are in two languages, see `similarity`.

Fewer lines of one language are often as unlike, and so is text in scripts without blanks between words.
"""


def require_direction(run: Run, test: HeldOut) -> None:
    """Raise DataError for a test set whose sides are exchanged, or are in one language while the run's are in two.

    The sides are compared with the run's validation lines, if its folder still has them, and with what is typical of
    the languages that its recipe names.
    """
    data = run.recipe.data
    if run.tag is not None and run.tag != data.tag_of_validation:  # the direction may be another one
        return
    src, tgt = _sample(test.sources), _sample(test.references)
    own = profile(src), profile(tgt)
    known = _known(run)
    same = Thresholds.same_language
    if len(test.rows) < MIN_LINES or (known is not None and similarity(*known) > same):
        return
    names = " and ".join(test.files)
    if look_exchanged(src, tgt, data.src_lang, data.tgt_lang) or (known is not None and are_crossed(*own, *known)):
        raise DataError(
            f"{names}: the source looks like the target language of {run.folder}, and the reference like its source "
            f"language. {test.to_exchange}"
        )
    two_languages = known is not None or code_of(data.src_lang) != code_of(data.tgt_lang)
    if two_languages and similarity(*own) > same:
        raise DataError(
            f"{names}: source and reference look like one language. The reference must be the translation into the "
            f"target language of {run.folder}."
        )


def warn_about_input(run: Run, lines: Sequence[str], quiet: bool) -> None:
    """Warn of lines to translate that are XML, unlike the run's text, or in its target language."""
    if any(line.lstrip("\ufeff").lstrip().startswith(("<?xml", "<tmx", "<!DOCTYPE")) for line in lines[:1]):
        warn("the input looks like XML, and its lines are translated as plain text: extract the text first.", quiet)
    own = _own_lines(run) if len(lines) >= MIN_LINES and run.tag in (None, run.recipe.data.tag_of_validation) else None
    if own is None:
        return
    for difference in differences(own[0], lines):
        warn(f"the input {difference} {run.folder}: expect wrong translations.", quiet)
    known = profile(own[0]), profile(own[1])
    if similarity(*known) > Thresholds.same_language:
        return
    here, there = (similarity(profile(_sample(lines)), side) for side in known)
    if there > 1.5 * here:
        warn(f"the input looks like the target language of {run.folder}, not like its source language.", quiet)


def warn_about_test_set(run: Run, test: HeldOut, quiet: bool) -> None:
    """Warn of a test set that is unlike the run's validation lines, or whose references are in another language."""
    own = _own_lines(run) if len(test.rows) >= MIN_LINES else None
    if own is None or run.tag not in (None, run.recipe.data.tag_of_validation):
        return
    for side, ours, lines in (("source", own[0], test.sources), ("reference", own[1], test.references)):
        for difference in differences(ours, lines):
            warn(f"the {side} {difference} {run.folder}: the scores mean little.", quiet)
    if is_another_language(own[1], _sample(test.references)):
        language = name_of(run.recipe.data.tgt_lang) or "target language"
        warn(f"the reference does not look like the {language} of {run.folder}: is it the right file?", quiet)


def differences(own: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """How some lines differ from a run's: in tokenisation, in capital letters."""
    shares = [_tokenised_share(sample) for sample in (own, _sample(lines))]
    if None not in shares and abs(shares[0] - shares[1]) > Thresholds.tokenised:  # type: ignore[operator]
        yield "is not tokenised, unlike the text of" if shares[0] > shares[1] else "is tokenised, unlike the text of"  # type: ignore[operator]
    capitals = [sum(line != line.lower() for line in them) / len(them) for them in (own, lines)]
    have_case = all(any(line != line.upper() for line in them) for them in (own, lines))
    if have_case and capitals[0] <= HARDLY_ANY and capitals[1] >= MOST:
        yield "has capital letters, unlike the text of"
    if have_case and capitals[1] <= HARDLY_ANY and capitals[0] >= MOST:
        yield "has no capital letters, unlike the text of"


def is_another_language(own: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether `lines` seem to be in another language than `own`, judged by scripts and letters."""
    scripts = [Counter(map(main_script, them)).most_common(1)[0][0] for them in (own, lines)]
    if scripts[0] != scripts[1] or language_by_script(own):
        return scripts[0] != scripts[1] or language_by_script(own) != language_by_script(lines)
    return min(len(own), len(lines)) >= ENOUGH_LINES and similarity(profile(own), profile(lines)) < ANOTHER_LANGUAGE


def _tokenised_share(lines: Sequence[str]) -> float | None:
    scan = LineScan("")
    for number, line in enumerate(lines, start=1):
        scan.add(number, line)
    return scan.tokenised_share


def _known(run: Run) -> tuple[Profile, Profile] | None:
    """Profiles of the two sides of the run's own validation lines."""
    own = _own_lines(run)
    return None if own is None else (profile(own[0]), profile(own[1]))


def _own_lines(run: Run) -> tuple[Sequence[str], Sequence[str]] | None:
    """A sample of each side of the run's validation lines."""
    rows = read_valid(run.folder) if run.files.has(VALID) else []
    return (_sample(row[0] for row in rows), _sample(row[-1] for row in rows)) if rows else None


def _sample(lines: Iterable[str]) -> Sequence[str]:
    sample = EvenSample()
    for line in lines:
        sample.add(line)
    return sample.lines
