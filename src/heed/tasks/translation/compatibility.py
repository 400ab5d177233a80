"""Compatibility of texts with a translation run: direction, language, tokenisation and letter case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from heed.core.errors import DataError, UsageError
from heed.core.progress import warn
from heed.core.run_files import RunFiles
from heed.data.validation import VALID, read_valid
from heed.text.doctor.findings import Thresholds
from heed.text.doctor.lines import EvenSample, LineScan
from heed.text.language.codes import code_of, name_of
from heed.text.language.identify import Profile, are_crossed, look_exchanged, profile, similarity
from heed.text.language.scripts import language_by_script, main_script

if TYPE_CHECKING:
    from heed.evaluation.test_set import HeldOut
    from heed.tasks.translation.data import TranslationData

MIN_LINES = 20
"""Minimum number of lines for a check."""
MOST, HARDLY_ANY = 0.5, 0.02
"""Shares of lines with capital letters."""
ANOTHER_LANGUAGE, ENOUGH_LINES = 0.35, 100
"""Similarity below which this number of lines in the same script are in different languages (see `similarity`).

Fewer lines in one language are often less similar, and so is text in scripts without spaces between words.
"""


class TranslationRun(Protocol):
    """What is compared of a run."""

    @property
    def folder(self) -> Path: ...
    @property
    def source_tag(self) -> str: ...
    @property
    def data(self) -> TranslationData: ...


def require_direction(run: TranslationRun, test: HeldOut) -> None:
    """Raise DataError for a test set with exchanged sides, or with one language where the run has two.

    The sides are compared with the run's validation lines, if its folder still has them, and with typical text of the
    languages in its recipe.
    """
    data = run.data
    if not _has_validation_tag(run):  # the direction may differ
        return
    src, tgt = _sample(test.sources), _sample(test.references)
    sides = profile(src), profile(tgt)
    run_sides = _profiles(_validation_sample(run))
    same = Thresholds.same_language
    if len(test.rows) < MIN_LINES or (run_sides is not None and similarity(*run_sides) > same):
        return
    names = " and ".join(test.files)
    if look_exchanged(src, tgt, data.src_lang, data.tgt_lang) or (run_sides and are_crossed(*sides, *run_sides)):
        raise DataError(
            f"{names}: the source looks like the target language of {run.folder}, and the reference like its source "
            f"language. {test.to_exchange}"
        )
    two_languages = run_sides is not None or code_of(data.src_lang) != code_of(data.tgt_lang)
    if two_languages and similarity(*sides) > same:
        raise DataError(
            f"{names}: source and reference seem to be in the same language. The reference must be the translation "
            f"into the target language of {run.folder}."
        )


def in_opposite_direction(reverse: Any, predictor: Any) -> Any:
    """The translator `reverse`, with the tag for the opposite direction of `predictor` if it has several.

    Raises UsageError for a run that does not translate, or not in this direction.
    """
    reverse.require("translate", "--reverse")
    found = with_languages(reverse, predictor.languages[::-1])
    require_opposite(found, predictor)
    return found


def with_languages(predictor: Any, wanted: tuple[str, str]) -> Any:
    """The translator with its tag for these languages, if it has several; else with that of its validation data."""
    first = predictor.of_validation()
    tags = predictor.data.tags
    runs = [first, *(predictor.run.with_tag(tag) for tag in tags if tag != predictor.data.tag_of_validation)]
    same = [run for run in runs if run.predictor.languages == wanted]
    fitting = [run for run in runs if fit(run.predictor.languages, wanted)]
    return [*same, *fitting, first][0].predictor


def require_opposite(reverse: Any, predictor: Any) -> None:
    """Raise UsageError unless `reverse` is another translator than `predictor`, with its languages exchanged."""
    theirs, ours = reverse.languages, predictor.languages
    if not fit(theirs, ours[::-1]):
        raise UsageError(
            f"--reverse {reverse.folder} translates from {_named(theirs)}, and {predictor.folder} from {_named(ours)}. "
            f"Give a translator from {_named(ours[::-1])}, or leave out --reverse."
        )
    if reverse.folder.resolve() == predictor.folder.resolve() and reverse.source_tag == predictor.source_tag:
        raise UsageError(
            f"--reverse names the translator itself, {reverse.folder}. Give one for the opposite direction."
        )


def scorer_of(translator: Any, other: Any) -> Any:
    """The translator `other`, with its tag for the languages of `translator`, whose outputs it is to score.

    Raises UsageError for a translator of other languages or of another kind of text, and for one that does not know
    every word.
    """
    scorer = other if other.tag else with_languages(other, translator.languages)
    pair = f"{scorer.folder} cannot score the translations of {translator.folder}"
    if not fit(scorer.languages, translator.languages):
        theirs, ours = _named(scorer.languages), _named(translator.languages)
        raise UsageError(f"{pair}: it translates from {theirs}, and the other from {ours}.")
    if scorer.data.tokenised != translator.data.tokenised:
        which = "it was trained on tokenised text, and the other was not"
        if translator.data.tokenised:
            which = "the other was trained on tokenised text, and it was not"
        raise UsageError(f"{pair}: {which} (data.tokenised).")
    if translator.data.normaliser.lowercase and not scorer.data.normaliser.lowercase:
        raise UsageError(f"{pair}: these are in lower case, and its own are not (data.normaliser.lowercase).")
    if not scorer.tokenizers["tgt"].seldom_unknown:
        raise UsageError(
            f"{pair}: it has a single token for all words that it does not know. Train it with a tokenizer that can "
            "write any text (bpe)."
        )
    return scorer


def fit(languages: tuple[str, str], others: tuple[str, str]) -> bool:
    """Whether languages are the same as others; those that are not named fit all."""
    return all(
        not (one and other) or (code_of(one) or one) == (code_of(other) or other)
        for one, other in zip(languages, others, strict=True)
    )


def _named(languages: tuple[str, str]) -> str:
    return " to ".join(language or "?" for language in languages)


def warn_about_input(run: TranslationRun, lines: Sequence[str], quiet: bool) -> None:
    """Warn about lines to translate that are XML, differ from the run's text, or are in its target language."""
    if any(line.lstrip("\ufeff").lstrip().startswith(("<?xml", "<tmx", "<!DOCTYPE")) for line in lines[:1]):
        warn("the input looks like XML, and its lines are translated as plain text: extract the text first.", quiet)
    sample = _validation_sample(run) if len(lines) >= MIN_LINES and _has_validation_tag(run) else None
    run_sides = _profiles(sample)
    if sample is None or run_sides is None:
        return
    for difference in differences(sample[0], lines):
        warn(f"the input {difference} {run.folder}: expect wrong translations.", quiet)
    if similarity(*run_sides) > Thresholds.same_language:
        return
    to_source, to_target = (similarity(profile(_sample(lines)), side) for side in run_sides)
    if to_target > 1.5 * to_source:
        warn(f"the input looks like the target language of {run.folder}, not like its source language.", quiet)


def warn_about_test_set(run: TranslationRun, test: HeldOut, quiet: bool) -> None:
    """Warn about a test set that differs from the run's validation lines, or has references in another language."""
    sample = _validation_sample(run) if len(test.rows) >= MIN_LINES and _has_validation_tag(run) else None
    if sample is None:
        return
    for side, run_lines, lines in (("source", sample[0], test.sources), ("reference", sample[1], test.references)):
        for difference in differences(run_lines, lines):
            warn(f"the {side} {difference} {run.folder}: the scores mean little.", quiet)
    if is_another_language(sample[1], _sample(test.references)):
        language = name_of(run.data.tgt_lang) or "target language"
        warn(f"the reference does not look like the {language} of {run.folder}. Check the file.", quiet)


def differences(run_lines: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """Differences of some lines from those of a run, in tokenisation and letter case."""
    shares = [_tokenised_share(sample) for sample in (run_lines, _sample(lines))]
    if None not in shares and abs(shares[0] - shares[1]) > Thresholds.tokenised:  # type: ignore[operator]
        yield "is not tokenised, unlike the text of" if shares[0] > shares[1] else "is tokenised, unlike the text of"  # type: ignore[operator]
    capitals = [sum(line != line.lower() for line in text) / len(text) for text in (run_lines, lines)]
    have_case = all(any(line != line.upper() for line in text) for text in (run_lines, lines))
    if have_case and capitals[0] <= HARDLY_ANY and capitals[1] >= MOST:
        yield "has capital letters, unlike the text of"
    if have_case and capitals[1] <= HARDLY_ANY and capitals[0] >= MOST:
        yield "has no capital letters, unlike the text of"


def is_another_language(run_lines: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether the scripts and letters of two texts indicate different languages."""
    scripts = [Counter(map(main_script, text)).most_common(1)[0][0] for text in (run_lines, lines)]
    if scripts[0] != scripts[1] or language_by_script(run_lines):
        return scripts[0] != scripts[1] or language_by_script(run_lines) != language_by_script(lines)
    enough = min(len(run_lines), len(lines)) >= ENOUGH_LINES
    return enough and similarity(profile(run_lines), profile(lines)) < ANOTHER_LANGUAGE


def _tokenised_share(lines: Sequence[str]) -> float | None:
    scan = LineScan("")
    for number, line in enumerate(lines, start=1):
        scan.add(number, line)
    return scan.tokenised_share


def _profiles(sample: tuple[Sequence[str], Sequence[str]] | None) -> tuple[Profile, Profile] | None:
    return (profile(sample[0]), profile(sample[1])) if sample is not None else None


def _has_validation_tag(run: TranslationRun) -> bool:
    return run.source_tag == run.data.tag_of_validation


def _validation_sample(run: TranslationRun) -> tuple[Sequence[str], Sequence[str]] | None:
    """A sample of each side of the run's validation lines, if its folder has them."""
    rows = read_valid(run.folder) if RunFiles(run.folder).has(VALID) else []
    return (_sample(row[0] for row in rows), _sample(row[-1] for row in rows)) if rows else None


def _sample(lines: Iterable[str]) -> Sequence[str]:
    sample = EvenSample()
    for line in lines:
        sample.add(line)
    return sample.lines
