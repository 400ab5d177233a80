"""WordPiece (Schuster & Nakajima 2012), as BERT uses it (Devlin et al. 2019): the greedy longest match from the left.

Text is cleaned of control characters and split at white space, around each punctuation mark and around each Chinese
character; uncased models read lower case without accents. A word is cut into the longest piece that it begins with, the
longest one that the rest begins with, and so on; pieces inside a word are written `##ing`. A word that cannot be cut
so, or has more than 100 characters, is unknown. Decoded text has spaces around punctuation marks.

The `tokenizers` library cuts words, and learns pieces by merging the most frequent pairs, as BPE does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from heed.core.errors import DataError
from heed.text.tokenizers.hugging_face import OfLibrary, Parts
from heed.text.tokenizers.tokenizer import TokenizerOptions, checked_for_training, words_of_characters
from heed.text.vocabulary import SPECIAL_PIECES, UNK_ID, Vocabulary, spelled_tag

INSIDE = "##"
"""Begins a piece that is not the first of its word."""
MAX_CHARACTERS = 100
"""Characters of a word that is not unknown."""
WORDS_AT_ONCE = 1000
"""Words of a line of the text that pieces are learned from."""
BERT_PIECES = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
"""BERT's names of the special pieces."""
BERT_MASK = "[MASK]"


class WordPiece(OfLibrary):
    """Words of a text, and pieces of the rarer ones."""

    model = "WordPiece"
    restores: ClassVar[bool] = False

    def _take(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        pieces = enumerate(vocabulary.text_pieces, start=len(SPECIAL_PIECES))
        self._bytes = {id: _spelled(piece).encode() for id, piece in pieces}
        self._bytes[UNK_ID] = _spelled(SPECIAL_PIECES[UNK_ID]).encode()
        self.uncased = self._library.normalizer.lowercase

    @classmethod
    def own_parts(cls, document: dict[str, Any]) -> Parts:
        model = document["model"]
        types = {name: (document[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "decoder")}
        return {
            "normalizer": (types["normalizer"], "BertNormalizer"),
            "pre-tokenizer": (types["pre_tokenizer"], "BertPreTokenizer"),
            "decoder": (types["decoder"], "WordPiece"),
            "unknown piece": (model.get("unk_token"), SPECIAL_PIECES[UNK_ID]),
            "mark of pieces inside a word": (model.get("continuing_subword_prefix"), INSIDE),
        }

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return len(SPECIAL_PIECES) + 2, "4 special pieces, and a character alone and inside words"

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        library = _library({}, normalizers.BertNormalizer(lowercase=options.uncased))
        words = _counted(library, checked_for_training(lines))
        alphabet = _alphabet(words, (options.vocab_size - len(SPECIAL_PIECES)) // 2)
        trainer = trainers.WordPieceTrainer(
            vocab_size=options.vocab_size,
            min_frequency=options.min_frequency,
            special_tokens=[*SPECIAL_PIECES, *alphabet, *(INSIDE + character for character in alphabet)],
            show_progress=False,
        )
        library.train_from_iterator(_repeated(words, {*alphabet}), trainer)
        ids = library.get_vocab()
        pieces = sorted(ids, key=lambda piece: ids[piece])
        return cls.of_pieces(pieces[len(SPECIAL_PIECES) :], library.normalizer)

    @classmethod
    def of_pieces(
        cls, text_pieces: Sequence[str], normalizer: normalizers.Normalizer, tags: Sequence[str] = ()
    ) -> Self:
        """The tokenizer of these pieces of text, in the order of their ids. Raises DataError for a repeated one."""
        pieces = Vocabulary(text_pieces, tags).pieces[: len(SPECIAL_PIECES) + len(text_pieces)]
        library = _library({piece: id for id, piece in enumerate(pieces)}, normalizer)
        library.add_special_tokens([*SPECIAL_PIECES, *map(spelled_tag, tags)])
        return cls(library.to_str(pretty=True) + "\n")

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return [text.removeprefix(" ") for text in super().decode(sequences)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id) for id in ids]

    def word_ids(self, line: str) -> list[int | None]:
        words = words_of_characters(line)
        spans = self._library.encode(line).offsets
        return [next((word for word in words[begin:end] if word is not None), None) for begin, end in spans]


def _spelled(piece: str) -> str:
    """A piece in decoded text, in which a space precedes each word."""
    return piece[len(INSIDE) :] if piece.startswith(INSIDE) and piece != INSIDE else f" {piece}"


def _library(vocab: dict[str, int], normalizer: Any) -> Library:
    """A tokenizer of the library as BERT's."""
    model = models.WordPiece(vocab, unk_token=SPECIAL_PIECES[UNK_ID], max_input_chars_per_word=MAX_CHARACTERS)
    library = Library(model)
    library.normalizer = normalizer
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix=INSIDE)
    return library


def _counted(library: Library, lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    split, clean = library.pre_tokenizer.pre_tokenize_str, library.normalizer.normalize_str
    return Counter(word for line in lines for word, _ in split(clean(line)))


def _alphabet(words: Mapping[str, int], most: int) -> list[str]:
    """The `most` most frequent characters.

    They are in the vocabulary alone and inside words, in this order; else the library would number them by chance.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return sorted(counts, key=lambda character: (-counts[character], character))[:most]


def _repeated(words: Mapping[str, int], alphabet: set[str]) -> Iterator[str]:
    """A text with those of the words that the alphabet spells."""
    for word, count in words.items():
        if not alphabet.issuperset(word):
            continue
        for begin in range(0, count, WORDS_AT_ONCE):
            yield " ".join([word] * min(WORDS_AT_ONCE, count - begin))


def from_bert(pieces: Sequence[str], normalizer: normalizers.Normalizer) -> tuple[WordPiece, list[int]]:
    """A tokenizer with the pieces of a BERT vocabulary, and for each of its ids that of BERT.

    heed's special pieces come first, and the mask comes last. Raises DataError if BERT's special pieces are not there.
    """
    place = {piece: id for id, piece in enumerate(pieces)}
    if missing := [piece for piece in (*BERT_PIECES, BERT_MASK) if piece not in place]:
        raise DataError(f"its vocabulary has no {missing[0]}, which a BERT needs.")
    text = [piece for piece in pieces if piece not in (*BERT_PIECES, BERT_MASK)]
    tokenizer = WordPiece.of_pieces(text, normalizer, ["mask"])
    return tokenizer, [place[piece] for piece in (*BERT_PIECES, *text, BERT_MASK)]
