"""Of which parts is a corpus of pairs made, and which tag stands before a source?

Tagged back-translation (Caswell et al. 2019) marks synthetic sources, so that the model does not take them for real
ones; a tag for the target language makes one model of several (Johnson et al. 2017). A tag is a piece of the
vocabulary that no text becomes (see `heed.text.vocabulary`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.text.readers import CorpusFiles


class PartConfig(Config):
    """More training data, beside that of `[data]` itself. Paths are relative to `data.dir`."""

    src: str = ""
    """Source side, one sentence a line."""
    tgt: str = ""
    """Target side."""
    pairs: str = ""
    """In place of src and tgt: one file of pairs, in the form of `data.pairs`."""
    tag: str = ""
    """Stands before each source of this part, such as "bt" or "2de"; empty: nothing does."""
    repeat: int = Field(default=1, ge=1)
    """How often each pair comes in an epoch."""
    src_lang: str = ""
    """Language of the source; empty: as in `[data]`."""
    tgt_lang: str = ""
    """Language of the target; empty: as in `[data]`."""


@dataclass(frozen=True)
class Part:
    """A part of a training corpus as it is read; the first is that of `[data]` itself."""

    number: int
    """0 for the first."""
    files: CorpusFiles
    tag: str
    repeat: int

    @property
    def label(self) -> str:
        """`part 1`, `part 2 (<bt>)`."""
        return f"part {self.number}" + (f" (<{self.tag}>)" if self.tag else "")

    @property
    def prefix(self) -> str:
        """What comes before its names where those of all parts stand together; nothing for the first."""
        return f"part_{self.number}." if self.number else ""


def with_tag(rows: Iterable[tuple[list[int], ...]], tag_ids: Sequence[int]) -> Iterator[tuple[list[int], ...]]:
    """Rows of ids, source first, with the tag before the source."""
    return (([*tag_ids, *src], *others) for src, *others in rows)


def tag_to_use(used: Sequence[str], default: str, known: Sequence[str], said: str | None) -> str:
    """The tag before the sources that are to be translated; empty for none.

    `used`: that of each part of the training data. `known`: all of the vocabulary. Raises UsageError for an unknown
    one, and where each part had a tag and nobody says which of them is meant.
    """
    if said is not None:
        if said and said not in known:
            knows = f"the run knows {listed(known)}" if known else "the run was trained without tags"
            raise UsageError(f"--tag {said}: {knows}.")
        return said
    if default or not all(used):
        return default
    if len({*used}) == 1:
        return used[0]
    raise UsageError(
        f"this run was trained with a tag before each source: say which with --tag ({listed(used)}); from Python with "
        f'heed.load(RUN, tag="{used[0]}").'
    )


def listed(tags: Iterable[str]) -> str:
    """Each once: `2de, 2fr`."""
    return ", ".join(dict.fromkeys(tag for tag in tags if tag))
