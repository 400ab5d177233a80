"""Which tokenizers are there, and how is one trained, saved and loaded?

    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=8000), lines)
    save(tokenizer, "tokenizer.json")
    ids = load_tokenizer("tokenizer.json").encode(["two sentences", "at once"])

| file            | kinds                                                          |
|-----------------|----------------------------------------------------------------|
| byte_level.py   | byte, and what the lossless kinds share                        |
| hugging_face.py | bpe, unigram                                                   |
| dropout.py      | BPE-dropout with a key                                         |
| symbols.py      | word, character, char-bigram: closed lists with `<unk>`        |
| own_format.py   | `tokenizer.json` of the kinds that are no more than their list |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from heed.core.errors import DataError, MissingInputError
from heed.core.files import atomic_write
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.hugging_face import Bpe, Unigram
from heed.text.tokenizers.symbols import Character, CharBigram, Word
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerConfig

__all__ = [
    "TOKENIZERS", "Tokenizer", "TokenizerConfig", "load_tokenizer", "parse_tokenizer", "require_trainable", "save",
    "train_tokenizer",
]  # fmt: skip

TOKENIZERS: dict[str, type[Bpe | Unigram | Word | Character | Byte | CharBigram]] = {
    "bpe": Bpe,
    "unigram": Unigram,
    "word": Word,
    "character": Character,
    "byte": Byte,
    "char-bigram": CharBigram,
}


def train_tokenizer(config: TokenizerConfig, lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizer:
    """Learn a tokenizer of the kind that `config` names; the same lines give the same file, byte for byte.

    Its vocabulary has the tags beyond the size that is asked for. Raises UsageError when `vocab_size` is below what the
    kind needs, and DataError when the lines are empty or one of them is not valid Unicode.
    """
    require_trainable(config)
    tokenizer: Tokenizer = TOKENIZERS[config.kind].train(config, lines)
    return tokenizer.with_tags(tags) if tags else tokenizer


def require_trainable(config: TokenizerConfig) -> None:
    """Raise UsageError when `vocab_size` is below what the kind needs, whatever the lines are."""
    TOKENIZERS[config.kind].check(config)


def save(tokenizer: Tokenizer, path: str | Path) -> None:
    """Write `tokenizer.json`: of bpe and unigram in the format of the Hugging Face library, else in our own."""
    with atomic_write(path, "wb") as file:
        file.write(tokenizer.to_json().encode())


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read what `save` wrote. Raises MissingInputError or DataError."""
    try:
        return parse_tokenizer(Path(path).read_bytes().decode())
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{path}: this is no JSON file. Give the tokenizer.json that heed wrote.") from error
    except DataError as error:
        raise DataError(f"{path}: {error} Give the tokenizer.json that heed wrote.") from error


def parse_tokenizer(text: str) -> Tokenizer:
    """The tokenizer that gave this text as its JSON. Raises JSONDecodeError or DataError when none did."""
    return TOKENIZERS[_kind(json.loads(text))].from_json(text)


def _kind(document: object) -> str:
    """Which of TOKENIZERS a file holds: by our header, or by the library's type of model."""
    match document:
        case {"heed": {"tokenizer": str(kind)}} if kind in TOKENIZERS:
            return kind
        case {"model": {"type": Bpe.model}}:
            return "bpe"
        case {"model": {"type": Unigram.model}}:
            return "unigram"
    raise DataError("this is no tokenizer of heed's.")
