"""`heed tokenizer train|encode|decode`: train a tokenizer, or use one as a filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.flags import add_verb
from heed.cli.options import BadBytes, Quiet, require_writable
from heed.core.errors import DataError
from heed.core.files import storage_errors
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.text.tokenizers import Tokenizer

app = typer.Typer(help="Train a tokenizer, or use one as a filter.", no_args_is_help=True, rich_markup_mode=None)
File = Annotated[Path, typer.Argument(metavar="TOKENIZER.json", help="A tokenizer.json, or a run folder.")]


def train(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Text, one sentence per line.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    kind: Annotated[
        str,
        typer.Option(help="bpe, unigram, sentencepiece, wordpiece, word, open-word, character, byte or char-bigram."),
    ] = "bpe",
    vocab_size: Annotated[int, typer.Option(help="Maximum number of pieces.")] = 8000,
    shortlist: Annotated[int, typer.Option(help="char-bigram: number of words kept whole.")] = 0,
    uncased: Annotated[bool, typer.Option("--uncased", help="wordpiece: lower case without accents.")] = False,
    errors: BadBytes = "strict",
    quiet: Quiet = False,
) -> None:
    """Train a tokenizer on text.

    Example:

      heed tokenizer train train.en train.de --vocab-size 8000 --out tokenizer.json
    """
    from heed.core.config import Document, build
    from heed.text.readers import read_lines
    from heed.text.tokenizers import TokenizerConfig, save, train_tokenizer

    require_writable(out)
    config = build(
        TokenizerConfig, Document({"kind": kind, "vocab_size": vocab_size, "shortlist": shortlist, "uncased": uncased})
    )
    tokenizer = train_tokenizer(config, (line for path in files for line in read_lines(path, errors)))
    with storage_errors("write the tokenizer", path=out):
        save(tokenizer, out)
    message(f"{out}: {len(tokenizer.vocabulary):,} pieces", quiet)


def encode(
    tokenizer: File,
    ids: Annotated[bool, typer.Option("--ids", help="Ids instead of pieces.")] = False,
    errors: BadBytes = "strict",
) -> None:
    """Split text from stdin into pieces, separated by spaces.

    Example:

      heed tokenizer encode runs/en-de < text.txt
    """
    from heed.cli.stdio import flush, groups_as_they_come, write_line

    loaded = _loaded(tokenizer)
    for lines in groups_as_they_come(errors):
        for encoded in loaded.encode(lines):
            write_line(" ".join(str(i) if ids else _shown(loaded.vocabulary.piece(i)) for i in encoded))
        flush()


def decode(
    tokenizer: File,
    ids: Annotated[bool, typer.Option("--ids", help="Ids instead of pieces.")] = False,
    errors: BadBytes = "strict",
) -> None:
    """Join pieces from stdin, as `encode` writes them, to text.

    Example:

      heed tokenizer encode runs/a < a.txt | heed tokenizer decode runs/a
    """
    from heed.cli.stdio import flush, groups_as_they_come, write_line

    loaded = _loaded(tokenizer)
    ids_of = {_shown(piece): i for i, piece in reversed(list(enumerate(loaded.vocabulary.pieces)))}
    number = 0
    for lines in groups_as_they_come(errors):
        for line in lines:
            number += 1
            words = line.split()
            if ids and not all(word.isdecimal() for word in words):
                raise DataError(
                    f"stdin, line {number}: --ids expects token ids, whole numbers separated by spaces. Decode pieces "
                    "without --ids."
                )
            sequence = [_id(word) if ids else ids_of.get(word, loaded.vocabulary.unk_id) for word in words]
            write_line(loaded.decode([sequence])[0])
        flush()


def _id(word: str) -> int:
    """The id in decimal digits; -1, which is never an id, for a number with more digits than any id."""
    return int(word) if len(word) < 19 else -1


def _shown(piece: str) -> str:
    """A piece with its white space replaced, because white space separates pieces."""
    return "".join("▁" if character.isspace() else character for character in piece)


def _loaded(given: Path) -> Tokenizer:
    """The tokenizer of a run, or in a file."""
    from heed.core.run_files import RunFiles
    from heed.text.tokenizers import load_from_run, load_tokenizer

    return load_from_run(RunFiles(given), "tokenizer.json") if given.is_dir() else load_tokenizer(given)


add_verb(app, "train", train)
add_verb(app, "encode", encode)
add_verb(app, "decode", decode)
