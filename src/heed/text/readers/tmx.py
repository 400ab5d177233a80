"""Reader of translation memories, TMX (LISA, versions 1.1 to 1.4b).

    <tu>
      <tuv xml:lang="en-US"><seg>A <bpt i="1">{b}</bpt>dog</seg></tuv>
      <tuv xml:lang="de"><seg>Ein Hund</seg></tuv>
    </tu>

A unit is a pair when it has both languages. `en` accepts `en-US`, unless that is the other side, and `eng` if neither
exists. The file is streamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from heed.core.errors import DataError, UsageError
from heed.text.archives import shown_name
from heed.text.language.codes import code_of, same_tag, with_code
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import Errors
from heed.text.readers.tmx_parser import Unit, read_units


def read_tmx(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """The units that have both languages; the others are counted in `left_out`.

    Raises UsageError, with the languages of the file, when the languages were not given; DataError, with file and line,
    for a malformed file, and when no unit has both languages.
    """
    name = shown_name(files.pairs or "")
    units = read_units(files.pairs or "", errors)
    languages: Counter[str] = Counter()
    if not (files.src_lang and files.tgt_lang):
        languages.update(tag for unit in units for tag in _tags(unit))
        advice = "Give the source and the target, such as --src-lang en --tgt-lang de."
        raise UsageError(f"{name}: its units are in {_listed(languages)}. {advice}")
    num_pairs = 0
    src_tag, tgt_tag = (tag_of(language) for language in (files.src_lang, files.tgt_lang))
    for unit in units:
        languages.update(_tags(unit))
        src, tgt = sides_of(unit, src_tag, tgt_tag)
        if src is not None and tgt is not None:
            num_pairs += 1
            yield src, tgt
        else:
            missing = [tag for tag, text in ((files.src_lang, src), (files.tgt_lang, tgt)) if text is None]
            left_out[f"unit(s) without {' and '.join(missing)}"] += 1
    if not languages:
        raise DataError(f"{name}: it has no unit (<tu>) with text. Export the memory again.")
    if not num_pairs:
        raise DataError(
            f"{name}: no unit has both {files.src_lang} and {files.tgt_lang}; its units are in {_listed(languages)}."
        )


def tag_of(language: str) -> str:
    """The tag of a language given by name, `en` for `English`; a tag such as `en-US` or `eng` is returned as it is."""
    return language if len(language) <= 3 or "-" in language or "_" in language else code_of(language) or language


def _tags(unit: Unit) -> set[str]:
    return {tag for tag, _ in unit}


def _listed(languages: Counter[str]) -> str:
    return ", ".join(f"{tag} ({count:,})" for tag, count in languages.most_common(10)) or "no language"


def sides_of(unit: Unit, src_lang: str, tgt_lang: str) -> tuple[str | None, str | None]:
    """The texts in two languages, never from one variant: next to `pt-BR`, `pt` is another variety."""
    if len(tgt_lang) > len(src_lang):
        tgt, src = sides_of(unit, tgt_lang, src_lang)
        return src, tgt
    narrow = variant_of(unit, src_lang)
    wide = variant_of(unit, tgt_lang, taken=narrow)
    return None if narrow is None else unit[narrow][1], None if wide is None else unit[wide][1]


def variant_of(unit: Unit, language: str, taken: int | None = None) -> int | None:
    """The position of the variant in a language: with exactly its tag, else its first variety, else by language code.

    The codes are compared because another file of the corpus may write `en` where this one has `eng`.
    """
    free = [(at, tag) for at, (tag, _) in enumerate(unit) if at != taken]
    exact = (at for at, tag in free if tag.lower() == language.lower())
    varieties = (at for at, tag in free if same_tag(language, tag))
    by_code = (at for at, tag in free if same_tag(with_code(language), with_code(tag)))
    return next(chain(exact, varieties, by_code), None)
