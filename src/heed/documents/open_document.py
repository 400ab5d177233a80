"""Text documents of LibreOffice and others (OpenDocument Text): translates paragraphs, headings, cells and notes.

Formatted words and links are pairs of inline tags, as in HTML. Fields, bookmarks and pictures are single tags. A tab or
a line break separates two texts. A space that is written as an element (`<text:s/>`) after a word is text. Notes,
comments, the texts of frames and the descriptions of images are texts of their own, and what a tracked change has
deleted stays. odfpy writes all XML anew; here only text and the places of tags change.
"""

from __future__ import annotations

import re
from typing import ClassVar

from heed.documents.packed_format import PackedFormat, PartReader, is_no_description
from heed.documents.spans import PartsBuilder
from heed.documents.xml_tokens import XmlToken

_PAIRS = frozenset(("text:span", "text:a", "text:meta"))
_BREAKS = frozenset(("text:tab", "text:line-break"))
_RUBY = frozenset(("text:ruby", "text:ruby-base"))
"""Words with a reading above them. A translation has neither the reading nor these elements."""
_DESCRIPTIONS = frozenset(("svg:title", "svg:desc"))
_COUNT = re.compile(r"""(?<=["'])\d{1,9}(?=["'])""")
"""The number of spaces in the element for several."""


class OpenDocumentReader(PartReader):
    """Reads the XML of a part."""

    names: ClassVar = {
        "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text",
        "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0": "svg",
    }
    paragraphs = frozenset(("text:p", "text:h", *_DESCRIPTIONS))
    left_alone = frozenset(("text:tracked-changes",))
    keeps_space = False

    def paragraph(self, builder: PartsBuilder, opening: XmlToken) -> None:
        """Read a paragraph after its opening tag, through its closing tag."""
        if self.name_of(opening) in _DESCRIPTIONS:
            self.plain(builder, is_no_description)
            return
        opened: list[int | None] = []
        is_after_space = True
        for token in self.tokens:
            name = self.name_of(token)
            if token.kind == "text":
                text = self.characters_of(token)
                builder.add_text(text)
                is_after_space = text[-1:].isspace()
            elif token.kind == "close":
                if not opened:
                    builder.add_markup(token.raw)
                    return
                if (pair := opened.pop()) is not None:
                    builder.close_tag(token.raw, pair)
            elif token.kind == "open" and name in _PAIRS and not token.is_empty:
                opened.append(builder.open_tag(token.raw))
            elif token.kind == "open" and name in _RUBY:
                opened.append(None)
            elif token.kind == "open" and name == "text:ruby-text":
                self.opaque(token)
            elif token.kind == "open" and name in _BREAKS:
                builder.add_markup(self.opaque(token))
                is_after_space = True
            elif token.kind == "open" and name == "text:s":
                spaces = self.opaque(token)
                if not is_after_space:
                    builder.add_text(" ")
                    spaces = _without_first(spaces)
                if spaces:
                    builder.single_tag(spaces)
                is_after_space = True
            else:
                builder.single_tag(self.opaque(token) if token.kind == "open" else token.raw)


def _without_first(written: str) -> str:
    """The element for spaces with one space fewer; empty for a single one."""
    count = _COUNT.search(written)
    num_left = int(count[0]) - 1 if count else 0
    return _COUNT.sub(str(num_left), written) if num_left > 0 else ""


TEXT_DOCUMENT = PackedFormat(is_markup=True, main=r"content\.xml", others=r"styles\.xml", reader=OpenDocumentReader)
