"""Tokenizers: training, saving and loading, and the kinds that a recipe can name by `tokenizer.kind`.

    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=8000), lines)
    save(tokenizer, "tokenizer.json")
    ids = load_tokenizer("tokenizer.json").encode(["two sentences", "at once"])

| file            | kinds                                                          |
|-----------------|----------------------------------------------------------------|
| byte_level.py   | byte, and the base of the lossless kinds                       |
| hugging_face.py | bpe, unigram                                                   |
| wordpiece.py    | wordpiece, BERT's                                              |
| dropout.py      | reproducible BPE-dropout                                       |
| open_word.py    | open-word: words, and bytes for unknown ones                   |
| symbols.py      | word, character, char-bigram: closed lists with `<unk>`        |
| sentence_piece.py | sentencepiece, of OPUS-MT and Argos Translate                |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from heed.core.config import KeyOf
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write, format_bytes
from heed.core.json_text import parse_json
from heed.core.own_files import read_own
from heed.core.run_files import RunFiles
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.hugging_face import Bpe, Unigram
from heed.text.tokenizers.open_word import OpenWord
from heed.text.tokenizers.sentence_piece import SentencePiece
from heed.text.tokenizers.symbols import Character, CharBigram, Word
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions
from heed.text.tokenizers.wordpiece import WordPiece
from heed.text.vocabulary import Vocabulary

__all__ = [
    "MAX_BYTES", "SPELLED", "TOKENIZERS", "LineEnd", "TextAs", "Tokenizer", "TokenizerConfig", "encode_ended",
    "load_from_run", "load_tokenizer", "load_tokenizers", "parse_tokenizer", "require_trainable", "save", "save_in_run",
    "train_tokenizer",
]  # fmt: skip

TOKENIZERS: dict[str, type[Tokenizer]] = {
    "bpe": Bpe,
    "unigram": Unigram,
    "sentencepiece": SentencePiece,
    "wordpiece": WordPiece,
    "word": Word,
    "open-word": OpenWord,
    "character": Character,
    "byte": Byte,
    "char-bigram": CharBigram,
}


class TokenizerConfig(TokenizerOptions):
    """The tokenizer of a model."""

    kind: Annotated[str, KeyOf(TOKENIZERS)] = "bpe"
    """Kind of tokenizer. bpe, unigram, open-word and byte restore any text exactly, the others only text in their
    vocabulary, and wordpiece with spaces around punctuation."""


def train_tokenizer(config: TokenizerConfig, lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizer:
    """Train a tokenizer of the kind in `config`; the same lines give the same file, byte for byte.

    The tags are added to its vocabulary beyond `vocab_size`. Raises UsageError when `vocab_size` is too small for the
    kind, and DataError when the lines are empty or one of them is not valid Unicode.
    """
    require_trainable(config)
    tokenizer = TOKENIZERS[config.kind].train(config, lines)
    return tokenizer.with_tags(tags) if tags else tokenizer


def require_trainable(config: TokenizerConfig) -> None:
    """Raise UsageError when `vocab_size` is too small for the kind, whatever the lines are."""
    minimum, why = TOKENIZERS[config.kind].min_vocab_size(config)
    if config.vocab_size < minimum:
        raise UsageError(
            f"vocab_size = {config.vocab_size} is too small for a {config.kind} tokenizer: "
            f"it needs at least {minimum} ({why})."
        )


MAX_BYTES = 64_000_000
"""Of `tokenizer.json`: twice as many as the largest public ones have, with 260,000 pieces and 510,000 merges."""


def save(tokenizer: Tokenizer, path: str | Path) -> None:
    """Write `tokenizer.json`: the kinds of the Hugging Face library in its format, the others in heed's.

    Raises UsageError where it would be too large to be read again.
    """
    with atomic_write(path, "wb") as file:
        file.write(_content_of(tokenizer))


def _content_of(tokenizer: Tokenizer) -> bytes:
    content = tokenizer.to_json().encode()
    if len(content) > MAX_BYTES:
        raise UsageError(
            f"the tokenizer has {len(tokenizer.vocabulary):,} pieces and takes {format_bytes(len(content))}, but heed "
            f"reads at most {format_bytes(MAX_BYTES)}. Lower tokenizer.vocab_size."
        )
    return content


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read what `save` wrote, from any folder. Raises MissingInputError or DataError."""
    where = Path(path).resolve()
    return _tokenizer_in(read_own(where.parent, where.name, MAX_BYTES), path)


def save_in_run(tokenizer: Tokenizer, files: RunFiles, name: str) -> None:
    """Write a tokenizer as a file of a run. Raises what `save` raises."""
    with files.write(name) as file:
        file.write(_content_of(tokenizer))


def load_from_run(files: RunFiles, name: str) -> Tokenizer:
    """Read what `save_in_run` wrote. Raises MissingInputError or DataError."""
    return _tokenizer_in(files.read(name, MAX_BYTES), files.folder / name)


def _tokenizer_in(content: bytes, path: str | Path) -> Tokenizer:
    try:
        return parse_tokenizer(content.decode())
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file. Give a tokenizer.json written by heed.") from error
    except DataError as error:
        raise DataError(f"{path}: {error} Give a tokenizer.json written by heed.") from error


def load_tokenizers(folder: Path, sides: tuple[str, ...]) -> dict[str, Tokenizer]:
    """The tokenizer of each side of a run: `tokenizer.json` for all, or `tokenizer.SIDE.json`.

    Raises MissingInputError or DataError.
    """
    files = RunFiles(folder)
    if files.has("tokenizer.json"):
        return dict.fromkeys(sides, load_from_run(files, "tokenizer.json"))
    return {side: load_from_run(files, f"tokenizer.{side}.json") for side in sides}


def parse_tokenizer(text: str) -> Tokenizer:
    """The tokenizer whose JSON this is. Raises ValueError, or DataError for any other JSON."""
    return TOKENIZERS[_kind(parse_json(text))].from_json(text)


def _kind(document: object) -> str:
    """The kind of tokenizer in a file, by heed's header or the library's type of model."""
    match document:
        case {"heed": {"tokenizer": str(kind)}} if kind in TOKENIZERS:
            return kind
        case {"model": {"type": Bpe.model}}:
            return "bpe"
        case {"model": {"type": Unigram.model}}:
            return "unigram"
        case {"model": {"type": WordPiece.model}}:
            return "wordpiece"
    raise DataError("not a tokenizer of a kind that heed reads.")


TextAs = Literal["lines", "stream", "windows"]
"""The context of a token in a language model: its line; everything before it; or a window of fixed size."""

LineEnd = Literal["eos", "newline", "none"]
"""Prediction of a language model after each line: the end-of-sentence token, a line break, or nothing."""

SPELLED: dict[LineEnd, str] = {"eos": "", "newline": "\n", "none": ""}
"""The text that the tokenizer sees after a line."""


def encode_ended(tokenizer: Tokenizer, lines: Sequence[str], line_end: LineEnd) -> list[list[int]]:
    """The ids of each line, with its line end."""
    end = [Vocabulary.eos_id] if line_end == "eos" else []
    return [ids + end for ids in tokenizer.encode([line + SPELLED[line_end] for line in lines])]
