"""SentencePiece (Kudo & Richardson 2018): the tokenizer of OPUS-MT, Argos Translate and many other models.

Its own library reads the model, so that text is normalised and cut exactly as in other programs. A model that is
trained here changes nothing of the text but white space, and spells rare characters as bytes. One that was trained
elsewhere may number its pieces in another order, and may lack characters.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, Self

from heed.core.errors import DataError, UsageError
from heed.core.json_text import parse_json
from heed.text.tokenizers.byte_level import words_of_pieces
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions, checked, checked_for_training
from heed.text.vocabulary import SPECIAL_PIECES, UNK_ID, Vocabulary, dump_pieces, load_pieces, spelled_tag

KIND = "sentencepiece"
SPACE = "▁"
"""Stands for a space in pieces."""
UNKNOWN = " \u2047 "
"""The text of an unknown piece."""
MAX_LINE_BYTES = 1 << 20
"""Longest line that pieces are learned from."""


class SentencePiece(Tokenizer):
    """The pieces of a SentencePiece model, unigram or BPE."""

    def __init__(self, model: bytes, text_pieces: Sequence[str] | None = None, tags: Sequence[str] = ()) -> None:
        """A tokenizer with a model.

        `text_pieces`: the pieces of text in the order of their ids; None: all that the model has. A piece that only the
        model has is unknown, and characters that it lacks may be a piece of the list, as in OPUS-MT. Raises UsageError
        without the library, and DataError for anything but a model.
        """
        self.model = model
        """The file of SentencePiece."""
        self._processor = _processor(model)
        pieces = [self._processor.id_to_piece(id) for id in range(self._processor.get_piece_size())]
        if text_pieces is None:
            reserved = {*SPECIAL_PIECES, *map(spelled_tag, tags)}
            text_pieces = [piece for id, piece in enumerate(pieces) if self._is_text(id) and piece not in reserved]
        self.vocabulary = Vocabulary(text_pieces, tags)
        numbers = {piece: id for id, piece in enumerate(text_pieces, start=len(SPECIAL_PIECES))}
        self._ids = numbers
        bytes_of = {piece: self._bytes_of(id, piece) for id, piece in enumerate(pieces) if self._is_text(id)}
        self._bytes = {id: bytes_of.get(piece) or _spelled(piece) for piece, id in numbers.items()}
        self._bytes[UNK_ID] = UNKNOWN.encode()

    def _is_text(self, id: int) -> bool:
        return not (self._processor.is_control(id) or self._processor.is_unknown(id) or self._processor.is_unused(id))

    def _bytes_of(self, id: int, piece: str) -> bytes:
        return bytes([int(piece[3:5], 16)]) if self._processor.is_byte(id) else _spelled(piece)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.vocabulary.text_pieces, self.vocabulary.tags)

    @property
    def seldom_unknown(self) -> bool:
        return True

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return len(SPECIAL_PIECES) + 257, "256 bytes, 4 special pieces and one to learn"

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        library, model, refused = _library(), BytesIO(), list[DataError]()
        try:
            library.SentencePieceTrainer.train(
                sentence_iterator=_learnable(lines, refused), model_writer=model, model_type="unigram",
                vocab_size=options.vocab_size, hard_vocab_limit=False, byte_fallback=True, pad_id=Vocabulary.pad_id,
                bos_id=Vocabulary.bos_id, eos_id=Vocabulary.eos_id, unk_id=UNK_ID, normalization_rule_name="identity",
                max_sentence_length=MAX_LINE_BYTES, minloglevel=2,
            )  # fmt: skip
        except RuntimeError as error:  # the library raises no more specific type
            if refused:
                raise refused[0] from error
            raise UsageError(
                f"SentencePiece cannot learn {options.vocab_size:,} pieces from this text: {error}. Choose another "
                "tokenizer.vocab_size, or tokenizer.kind = bpe."
            ) from error
        return cls(model.getvalue())

    @classmethod
    def from_json(cls, text: str) -> Self:
        text_pieces, tags = load_pieces(text, KIND)
        try:
            return cls(base64.b64decode(parse_json(text)["model"], validate=True), text_pieces, tags)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise DataError("its 'model' is not a SentencePiece model in Base64.") from error

    def to_json(self) -> str:
        document = parse_json(dump_pieces(KIND, self.vocabulary))
        document["model"] = base64.b64encode(self.model).decode()
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    def with_tags(self, tags: Sequence[str]) -> Self:
        reserved = {*map(spelled_tag, tags)}
        return type(self)(self.model, [piece for piece in self.vocabulary.text_pieces if piece not in reserved], tags)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        ids = self._ids
        cut = self._processor.encode(list(checked(lines)), out_type=str, num_threads=1)
        return [[ids.get(piece, UNK_ID) for piece in pieces] for pieces in cut]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return [text.strip(" ") for text in super().decode(sequences)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id) for id in ids]

    def word_ids(self, line: str) -> list[int | None]:
        [ids] = self.encode([line])
        last = len(line.split()) - 1  # normalising may add a space
        words = words_of_pieces([b"?" if id == UNK_ID else self._bytes[id] for id in ids])
        return [None if word is None else min(word, last) for word in words]


def _spelled(piece: str) -> bytes:
    return piece.replace(SPACE, " ").encode()


def _library() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise UsageError(
            "SentencePiece models need the package sentencepiece: pip install 'heed[exchange]'."
        ) from error
    return sentencepiece


def _processor(model: bytes) -> Any:
    library = _library()
    try:
        return library.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, ValueError, TypeError) as error:
        raise DataError("not a model of SentencePiece.") from error


def _learnable(lines: Iterable[str], refused: list[DataError]) -> Iterator[str]:
    """The lines without NUL, which ends a text in the library, and without empty ones.

    The error of a line that is refused is added to `refused`, since the library keeps only its text.
    """
    try:
        yield from filter(None, (line.replace("\0", "") for line in checked_for_training(lines)))
    except DataError as error:
        refused.append(error)
        raise
