"""Subword tokenizers: byte-level BPE and Unigram of the Hugging Face `tokenizers` library, stored in its format.

Text is first split at spaces and between letters, digits and punctuation, and no piece crosses such a boundary. That is
one reason why no text becomes the piece `</s>` or a tag; the other is `encode_special_tokens`, which is not part of the
file and is set on every load.

The library's own dropout cannot be seeded and would be written into the file; heed's is in dropout.py.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers, trainers

from heed.core.config import show
from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.text.tokenizers.byte_level import BYTE_SYMBOLS, ByteLevel
from heed.text.tokenizers.dropout import MergeDropout
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions, checked, checked_for_training
from heed.text.tokenizers.unambiguous import require_unambiguous
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary, spelled_tag

LINES_AT_ONCE = 10_000
MANY_LINES = 1000
"""Lines in one call from which caching the pieces of words pays (1.5 instead of 2.0 seconds for 29,000 lines)."""
SCORE_DIGITS = 5

Parts = Mapping[str, tuple[Any, Any]]
"""What a file has, and what heed needs there."""
_SPLITTER = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


class OfLibrary(Tokenizer):
    """A tokenizer of the library, from the text of its `tokenizer.json`."""

    model: ClassVar[str]
    """The type of the model in the file."""

    def __init__(self, text: str) -> None:
        self._text = text
        require_unambiguous(parse_json(text).get("model"))
        self._library = parsed(text)
        self._library.encode_special_tokens = True
        document = parse_json(self._library.to_str())
        _refuse_foreign(document, self.model, self.own_parts(document))
        ids = self._library.get_vocab()
        pieces = sorted(ids, key=ids.__getitem__)
        tags = [token["content"][1:-1] for token in document["added_tokens"][len(SPECIAL_PIECES) :]]
        self._take(Vocabulary(pieces[len(SPECIAL_PIECES) : len(pieces) - len(tags)], tags))

    @abstractmethod
    def _take(self, vocabulary: Vocabulary) -> None:
        """Keep the vocabulary and the text of its pieces."""

    @classmethod
    @abstractmethod
    def own_parts(cls, document: dict[str, Any]) -> Parts:
        """What the file has, and what heed needs there: the parts that differ between kinds."""

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._text,)  # the library's own pickle loses encode_special_tokens

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(text)

    def to_json(self) -> str:
        return self._text

    def with_tags(self, tags: Sequence[str]) -> Self:
        library = parsed(self._text)
        library.add_special_tokens([*map(spelled_tag, tags)])
        return type(self)(library.to_str(pretty=True) + "\n")

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = []
        lines = list(checked(lines))
        library = self._library if len(lines) >= MANY_LINES else self._library_for_few
        for start in range(0, len(lines), LINES_AT_ONCE):  # the library's results take much memory
            batch = library.encode_batch_fast(lines[start : start + LINES_AT_ONCE])
            ids += [encoding.ids for encoding in batch]
        return ids

    @cached_property
    def _library_for_few(self) -> Library:
        """Encodes a few lines at a time, possibly in many threads."""
        return self._library


class HuggingFace(OfLibrary, ByteLevel):
    """A tokenizer of the library whose pieces are bytes."""

    def _take(self, vocabulary: Vocabulary) -> None:
        ByteLevel.__init__(self, vocabulary)

    @classmethod
    def own_parts(cls, document: dict[str, Any]) -> Parts:
        splitter, decoder = document["pre_tokenizer"] or {}, document["decoder"] or {}
        return {
            "normalizer": (document["normalizer"], None),
            "pre-tokenizer": (splitter.get("type"), "ByteLevel"),
            "add_prefix_space": (splitter.get("add_prefix_space"), False),
            "use_regex": (splitter.get("use_regex"), True),
            "decoder": (decoder.get("type"), "ByteLevel"),
            "dropout": (document["model"].get("dropout"), None),
            "ignore_merges": (document["model"].get("ignore_merges", False), False),
        }


class Bpe(HuggingFace):
    """Byte pair encoding (Sennrich et al. 2016) of bytes: repeatedly makes the most frequent pair a piece."""

    model = "BPE"

    @cached_property
    def _dropout(self) -> MergeDropout:
        model = parse_json(self._library.to_str())["model"]
        return MergeDropout(model["vocab"], model["merges"], self._bytes, _words)

    @cached_property
    def _library_for_few(self) -> Library:
        """The library without its cache, which keeps up to 10,000 words for each thread that has ever encoded.

        In a server with many threads that memory grows with every request (docs/reliability.md).
        """
        library = parsed(self._text)
        library.encode_special_tokens = True
        model = parse_json(library.to_str())["model"]
        library.model = models.BPE(model["vocab"], [(*merge,) for merge in model["merges"]], cache_capacity=0)
        return library

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        trainer = trainers.BpeTrainer(
            vocab_size=options.vocab_size,
            min_frequency=options.min_frequency,
            special_tokens=list(SPECIAL_PIECES),
            initial_alphabet=BYTE_SYMBOLS,
            show_progress=False,
        )
        return cls(_train(models.BPE(), trainer, lines))

    def encode_with_dropout(self, ids: Sequence[int], p: float, key: tuple[int, int, int]) -> list[int]:
        return self._dropout.cut(ids, p, key) if p else list(ids)


class Unigram(HuggingFace):
    """The most probable segmentation under a unigram model of pieces of bytes (Kudo 2018)."""

    model = "Unigram"

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return len(SPECIAL_PIECES) + 257, "256 bytes, 4 special pieces and one to learn"

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        trainer = trainers.UnigramTrainer(
            vocab_size=options.vocab_size,
            special_tokens=list(SPECIAL_PIECES),
            unk_token=SPECIAL_PIECES[Vocabulary.unk_id],
            initial_alphabet=BYTE_SYMBOLS,
            show_progress=False,
        )
        return cls(_repeatable(_train(models.Unigram(), trainer, lines)))


def _words(text: str) -> list[str]:
    """The words that a text is split into before it is cut into pieces, each byte written as its symbol."""
    return [word for word, _ in _SPLITTER.pre_tokenize_str(text)]


def _train(model: models.Model, trainer: trainers.Trainer, lines: Iterable[str]) -> str:
    """Train and return the text of `tokenizer.json`."""
    library = Library(model)
    library.pre_tokenizer = _SPLITTER
    library.decoder = decoders.ByteLevel()
    library.train_from_iterator(checked_for_training(lines), trainer)
    return library.to_str(pretty=True) + "\n"


def _repeatable(text: str) -> str:
    """A Unigram model that is the same, byte for byte, in every run.

    The library sums in an order that changes from run to run, and in that order ranks the bytes that the text did not
    need, in steps of 0.0001 above the lowest score. Here scores are rounded by far more than the sums differ, these
    bytes all get the lowest score, and equal scores are sorted alphabetically.
    """
    document = parse_json(text)
    model = document["model"]
    special, pieces = model["vocab"][: len(SPECIAL_PIECES)], model["vocab"][len(SPECIAL_PIECES) :]
    lowest = min(score for _, score in pieces)
    unneeded = {piece for piece, score in pieces if len(piece) == 1 and score < lowest + 256 * 0.0001}
    scores = {piece: round(lowest if piece in unneeded else score, SCORE_DIGITS) for piece, score in pieces}
    model["vocab"] = special + sorted(([*entry] for entry in scores.items()), key=lambda entry: (-entry[1], entry[0]))
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def parsed(text: str) -> Library:
    """The library's tokenizer. Raises DataError."""
    try:
        return Library.from_str(text)
    except Exception as error:  # the library raises no more specific type
        raise DataError(f"the tokenizers library cannot read it: {error}.") from error


def _refuse_foreign(document: dict[str, Any], model: str, own: Parts) -> None:
    """Raise DataError for a tokenizer that would change text, or has other special pieces than heed's."""
    special, tags = document["added_tokens"][:4], document["added_tokens"][4:]
    size = len(document["model"]["vocab"])
    parts: Parts = {
        "model": (document["model"]["type"], model),
        "special pieces": ([token["content"] for token in special], list(SPECIAL_PIECES)),
        "ids of the special pieces": ([token["id"] for token in special], [0, 1, 2, 3]),
        "tags": ([tag["content"] for tag in tags], [f"<{tag['content'][1:-1]}>" for tag in tags]),
        "ids of the tags": ([token["id"] for token in tags], [size + place for place in range(len(tags))]),
        "post-processor": (document["post_processor"], None),
        **own,
    }
    for part, (got, needed) in parts.items():
        if got != needed:
            raise DataError(f"its {part}: got {show(got)}, but heed reads only {show(needed)}.")
