r"""ARPA files of n-gram models, the format of SRILM, KenLM and others.

    \data\
    ngram 1=3
    ngram 2=2

    \1-grams:
    -1.2<tab>word<tab>-0.3         log10 probability, n-gram, log10 back-off weight (0 if omitted)
    ...
    \end\

`<s>` and `</s>` are the begin and end of a sentence, `<unk>` (or `<UNK>`) any word that is not in the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from io import TextIOWrapper
from itertools import islice, repeat
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import numpy as np

from heed.core.errors import DataError
from heed.core.files import storage_errors
from heed.statistical.backoff import BackoffModel
from heed.statistical.byte_columns import Column, Texts, joined
from heed.statistical.predictor import Bools, Floats, Ints
from heed.text.archives import MAX_LINE_BYTES, open_bytes, open_output, shown_name
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary

_NEVER = "-99"
"""log10 of a probability of 0 in this format."""
_LN10 = math.log(10)
_HALF = 10_000
"""The numbers of four digits."""
_BLOCK = 8192
"""Lines that are written at once: their columns fit into the processor's cache."""
_OTHER_UNK = "<UNK>"
"""How some programs spell `<unk>`."""
_SIZE = re.compile(r"[ \t]*\d{1,15}[ \t]*", re.ASCII)
"""A number of n-grams in the header, of which nobody has more."""
_BLANKS = frozenset(" \t\r\n\0")


def write_arpa(path: str | Path, model: BackoffModel, pieces: Sequence[str]) -> list[int]:
    """Write a model whose word i is `pieces[i]`; returns the number of n-grams of each length.

    Words without a probability that are in no longer n-gram are left out. Raises DataError for a piece that the format
    cannot represent.
    """
    if odd := [piece for piece in pieces if not piece or not _BLANKS.isdisjoint(piece)]:
        raise DataError(
            f"the piece {odd[0]!r} contains white space, which separates words in an ARPA file. Only a model of words "
            "(or of pieces without white space) can be written."
        )
    with storage_errors("write the ARPA file", path=Path(path)), open_output(path) as file:
        return _write(file, model, pieces)


def _write(file: IO[bytes], model: BackoffModel, pieces: Sequence[str]) -> list[int]:
    bounds = model.level_starts
    listed = np.flatnonzero(_listed(model)) + 1
    sizes = [len(listed), *model.num_ngrams[1:]]
    header = "".join(f"ngram {n}={size}\n" for n, size in enumerate(sizes, start=1))
    file.write(b"\\data\\\n" + header.encode())
    words = [piece.encode() for piece in pieces]
    begun, ended = (Texts.of([word + end for word in words]) for end in (b" ", b"\t"))
    for n in range(1, model.order + 1):
        if n == model.order:
            ended = Texts.of([word + b"\n" for word in words])
        file.write(f"\n\\{n}-grams:\n".encode())
        nodes = listed if n == 1 else np.arange(bounds[n], bounds[n + 1])
        for first in range(0, len(nodes), _BLOCK):
            block = nodes[first : first + _BLOCK]
            ngrams = [Column(ended if k == n else begun, ids) for k, ids in enumerate(_words(model, n, block), start=1)]
            file.write(joined(_columns(model, n, block, ngrams)))
    file.write(b"\n\\end\\\n")
    return sizes


def _listed(model: BackoffModel) -> Bools:
    """Mask of the words that are written: those that can be predicted, and those of longer n-grams."""
    listed = np.isfinite(model.log_probs_of[: model.vocab_size])
    listed |= np.diff(model.offsets)[1 : model.vocab_size + 1] > 0 if model.order > 1 else False
    listed[model.words[model.vocab_size :]] = True
    listed[model.bos_id] = True
    return listed


def _words(model: BackoffModel, n: int, nodes: Ints) -> list[Ints]:
    """The first, second, ... word of n-grams."""
    words = []
    for _ in range(n):
        words.append(model.words[nodes - 1].astype(np.int64))
        nodes = model.parents[nodes - 1]
    return words[::-1]


def _columns(model: BackoffModel, n: int, nodes: Ints, ngrams: list[Column]) -> list[Column]:
    """Probabilities, n-grams and, except for the longest, back-off weights."""
    log_probs = model.log_probs_of[nodes - 1].astype(np.float64) / _LN10
    if n == 1:
        log_probs[nodes == model.bos_id + 1] = 0.0  # as lmplz writes it; begin of sentence is never predicted
    columns = [*_numbers(log_probs, b"\t"), *ngrams]
    if n < model.order:
        columns += _numbers(model.backoffs[nodes].astype(np.float64) / _LN10, b"\n")
    return columns


def _numbers(values: Floats, end: bytes) -> list[Column]:
    """Numbers with seven decimals, each with `end` after it; those like `-1.2345678` are looked up in two halves."""
    first_halves, second_halves = _halves(end)
    plain = (values < 0) & (values > -9.9999999)
    units = np.rint(np.where(plain, -values, 0) * 1e7).astype(np.int64)
    first = units // _HALF
    second = units - first * _HALF
    second[~plain] = _HALF
    first[values == 0], first[~np.isfinite(values)] = _HALF, _HALF + 1
    others = np.flatnonzero(~plain & np.isfinite(values) & (values != 0))
    if len(others):
        first[others] = np.arange(len(others)) + _HALF + 2
        first_halves += Texts.of([f"{value:.7f}".encode() for value in values[others].tolist()])
    return [Column(first_halves, first), Column(second_halves, second)]


@cache
def _halves(end: bytes) -> tuple[Texts, Texts]:
    """`-0.000` to `-9.999`, then 0 and the logarithm of 0; `0000` to `9999` and nothing, each with `end` after it."""
    first = [b"-%d.%03d" % divmod(number, 1000) for number in range(_HALF)]
    second = [b"%04d" % number + end for number in range(_HALF)]
    return Texts.of([*first, b"0", _NEVER.encode()]), Texts.of([*second, end])


class Arpa(NamedTuple):
    """The content of a file."""

    model: BackoffModel
    vocabulary: Vocabulary


def read_arpa(path: str | Path) -> Arpa:
    """Read a file, possibly compressed, in which the first n - 1 words of every n-gram must be an n-gram too.

    `<s>` is never predicted, whatever its probability in the file. Raises what `read_lines` raises, and DataError, with
    the line, for a malformed file.
    """
    return _Reader(path).arpa()


def _lines_of(path: str | Path) -> Iterator[str]:
    """The lines with their line ends, in pieces where one is longer than any n-gram; a file has millions."""
    try:
        with open_bytes(path) as file, TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
            yield from iter(partial(text.readline, MAX_LINE_BYTES), "")
    except UnicodeDecodeError as error:
        what = " A .npz file holds arrays; give the folder of its model." if str(path).endswith(".npz") else ""
        raise DataError(f"{shown_name(path)}: not UTF-8 text, so not an ARPA file: {error.reason}.{what}") from error


class _Section(NamedTuple):
    """The n-grams of one length, in the order of the file."""

    ids: Ints
    """[M, n]"""
    log_probs: Floats
    """Natural logarithms."""
    backoffs: Floats


class _Reader:
    """Reads one file."""

    def __init__(self, path: str | Path) -> None:
        self.name = shown_name(path)
        self.lines = _lines_of(path)
        self.number = 0  # of the last line read
        self.ids: dict[str, int] = {piece: id for id, piece in enumerate(SPECIAL_PIECES)}
        self.pieces = [*SPECIAL_PIECES]

    def fail(self, problem: str, number: int = 0) -> NoReturn:
        raise DataError(f"{self.name}:{number or self.number}: {problem} Give a complete ARPA file.")

    def next_line(self) -> str:
        """The next line that is not empty."""
        for line in self.lines:
            self.number += 1
            if line.strip():
                return line.rstrip("\r\n ")
        self.fail("the file ends before \\end\\.")

    def begin(self) -> None:
        """Go on to the header. Raises DataError for a file without one."""
        for line in self.lines:
            self.number += 1
            if line.removeprefix("\ufeff").rstrip("\r\n ") == "\\data\\":  # with a byte-order mark
                return
        raise DataError(
            f"{self.name} is not an ARPA file, which has the line \\data\\, nor one of word vectors, which begins with "
            "the numbers of words and dimensions: add that line to vectors of GloVe. For a phrase table, give "
            "--into RUN."
        )

    def arpa(self) -> Arpa:
        self.begin()
        sizes: list[int] = []
        while (line := self.next_line()).startswith("ngram "):
            length, _, number = line.removeprefix("ngram ").partition("=")
            if length.strip() != str(len(sizes) + 1) or not _SIZE.fullmatch(number):
                self.fail(f"expected 'ngram {len(sizes) + 1}=' and a number of n-grams, got {line!r:.80}.")
            sizes.append(int(number))
        tree = _Tree()
        for n, size in enumerate(sizes, start=1):
            if line != f"\\{n}-grams:":
                self.fail(f"expected '\\{n}-grams:', got {line!r:.80}.")
            section = self.section(n, size)
            try:
                tree.add_words(section, len(self.pieces)) if n == 1 else tree.add(section)
            except ValueError as error:
                self.fail(str(error))
            line = self.next_line()
        if line != "\\end\\" or not sizes:
            self.fail(f"expected {sizes[-1] if sizes else 0:,} n-grams and then \\end\\, got {line!r:.80}.")
        return Arpa(tree.model(), Vocabulary(self.pieces[len(SPECIAL_PIECES) :]))

    def section(self, n: int, size: int) -> _Section:
        first = self.number + 1
        lines = [line.rstrip("\r\n") for line in islice(self.lines, size)]
        self.number += len(lines)
        try:
            log_probs, ngrams, backoffs = _columns_of(lines)
        except (ValueError, IndexError):
            odd = next(place for place, line in enumerate(lines) if not _is_entry(line))
            problem = f"expected a log10 probability, a tab and words, got {lines[odd]!r:.80}"
            self.fail(f"{problem} (the header declares {size:,} n-grams of {n} words).", first + odd)
        if len(lines) < size:
            self.fail(f"the header declares {size:,} n-grams, but there are {len(lines):,}.")
        words = " ".join(ngrams).split(" ") if ngrams else []
        if n == 1:
            self.add_words(words)
        ids = np.fromiter(map(self.ids.get, words, repeat(-1)), np.int64, len(words))
        if len(words) != n * size or (ids < 0).any():
            odd = next(place for place, ngram in enumerate(ngrams) if not self.has_words(ngram.split(" "), n))
            self.fail(f"{ngrams[odd]!r} is not an n-gram of {n} of the file's words.", first + odd)
        return _Section(ids.reshape(-1, n), _natural(np.minimum(log_probs, 0)), _natural(backoffs))

    def add_words(self, words: list[str]) -> None:
        """Number the words of the file. Raises DataError without an end of sentence."""
        if SPECIAL_PIECES[Vocabulary.eos_id] not in words:
            self.fail("no </s> among the words, so that no sentence can end.")
        names = dict.fromkeys(words)
        if is_upper := _OTHER_UNK in names and SPECIAL_PIECES[Vocabulary.unk_id] not in names:
            del names[_OTHER_UNK]
        for word in names:
            self.ids.setdefault(word, len(self.ids))
        self.pieces = [*self.ids]
        if is_upper:
            self.ids[_OTHER_UNK] = Vocabulary.unk_id

    def has_words(self, words: list[str], n: int) -> bool:
        """Whether these are n words of the file."""
        return len(words) == n and all(word in self.ids for word in words)


class _Tree:
    """The levels read so far, each sorted by parents and words."""

    def __init__(self) -> None:
        self.parents: list[Ints] = []
        self.last: list[Ints] = []
        self.log_probs: list[Floats] = []
        self.backoffs: list[Floats] = []
        self.vocab_size = 0

    def add_words(self, section: _Section, vocab_size: int) -> None:
        """Set the first level; words that are not in the file, such as padding, are never predicted.

        Raises ValueError for repeated words.
        """
        self.vocab_size = vocab_size
        log_probs, backoffs = np.full(vocab_size, -np.inf), np.zeros(vocab_size)
        ids = section.ids[:, 0]
        if len(np.unique(ids)) < len(ids):
            raise ValueError("a word is repeated.")
        log_probs[ids], backoffs[ids] = section.log_probs, section.backoffs
        log_probs[Vocabulary.bos_id] = -np.inf
        self._append(np.zeros(vocab_size, dtype=np.int64), np.arange(vocab_size), log_probs, backoffs)

    def add(self, section: _Section) -> None:
        """Add a level. Raises ValueError for n-grams without a prefix, or repeated ones."""
        above = section.ids[:, 0]
        for parents, words, ids in zip(self.parents[1:], self.last[1:], section.ids.T[1:-1], strict=True):
            keys, prefixes = parents * self.vocab_size + words, above * self.vocab_size + ids
            above = np.minimum(np.searchsorted(keys, prefixes), max(0, len(keys) - 1))
            if len(prefixes) and (not len(keys) or (keys[above] != prefixes).any()):
                raise ValueError("the first words of an n-gram are not an n-gram of the file.")
        keys = above * self.vocab_size + section.ids[:, -1]
        order = np.argsort(keys)
        if (np.diff(keys[order]) == 0).any():
            raise ValueError(f"an n-gram of {section.ids.shape[1]} words is repeated.")
        self._append(above[order], section.ids[order, -1], section.log_probs[order], section.backoffs[order])

    def _append(self, parents: Ints, words: Ints, log_probs: Floats, backoffs: Floats) -> None:
        self.parents.append(parents)
        self.last.append(words)
        self.log_probs.append(log_probs)
        self.backoffs.append(backoffs)

    def model(self) -> BackoffModel:
        return BackoffModel.of_levels(
            self.parents, self.last, self.log_probs, self.backoffs[:-1], Vocabulary.bos_id, Vocabulary.eos_id
        )


def _columns_of(lines: list[str]) -> tuple[Floats, list[str], Floats]:
    """Probabilities, n-grams and back-off weights. Raises ValueError or IndexError for a malformed line."""
    widths = {line.count("\t") for line in lines}
    if widths == {1} or widths == {2}:  # all at once: a list for each line would take twice the time
        step = max(widths) + 1
        flat = "\t".join(lines).split("\t")
        weights = flat[2::step] if step > 2 else ["0"] * len(lines)
        columns = flat[::step], flat[1::step], weights
    else:
        rows = [line.split("\t") for line in lines]
        columns = [row[0] for row in rows], [row[1] for row in rows], [row[2] if len(row) > 2 else "0" for row in rows]
    log_probs, backoffs = (np.fromiter(map(float, values), np.float64, len(lines)) for values in columns[::2])
    if not ((log_probs < np.inf) & (backoffs < np.inf)).all():  # "nan" and "inf" are floats too
        raise ValueError("not a logarithm")
    return log_probs, columns[1], backoffs


def _is_entry(line: str) -> bool:
    """Whether a line has a number, words and optionally another number."""
    try:
        _columns_of([line])
    except (ValueError, IndexError):
        return False
    return True


def _natural(values: Floats) -> Floats:
    """Natural logarithms; the value that means log 0 becomes -inf."""
    return np.where(values <= float(_NEVER), -np.inf, values * _LN10)
