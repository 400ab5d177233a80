"""A translation memory as TMX 1.4, which other translation programs read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from heed.memory.store import Unit
from heed.text.readers.tmx import tag_of

_FORBIDDEN = {code: None for code in range(32) if chr(code) not in "\t\n\r"} | {0xFFFE: None, 0xFFFF: None}
"""Characters that XML cannot contain."""


def tmx_lines(units: Iterable[Unit], languages: tuple[str, str], version: str) -> Iterator[str]:
    """The lines of a TMX file of these units. `version`: of the program that writes it."""
    src, tgt = (quoteattr(tag_of(language)) for language in languages)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<tmx version="1.4">'
    yield (
        f'<header creationtool="heed" creationtoolversion={quoteattr(version)} segtype="sentence" o-tmf="heed" '
        f'adminlang="en" srclang={src} datatype="plaintext"/>'
    )
    yield "<body>"
    for unit in units:
        created = unit.created.replace("-", "").replace(":", "")[:15] + "Z"
        yield f'<tu tuid="{unit.id}" creationdate="{created}"><prop type="state">{unit.state}</prop>'
        for language, text in ((src, unit.source), (tgt, unit.target)):
            yield f"<tuv xml:lang={language}><seg>{escape(text.translate(_FORBIDDEN))}</seg></tuv>"
        yield "</tu>"
    yield "</body>"
    yield "</tmx>"
