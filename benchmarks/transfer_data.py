"""Texts and tables of the transfer table: text to pretrain on, and tasks of fewer than 10,000 rows.

    python benchmarks/transfer_data.py --data DIR --out DATA

`DIR` has the folders `imdb`, `wikitext2`, `multi30k`, `conll2000`, `sst`, `trec_qc` and `sick`. Written are:

- `english.txt`: paragraphs of IMDB's training reviews, WikiText-2's sentences without `<unk>` and Multi30k's captions,
  in an order that does not depend on the machine; `sentences.txt`: the same, a sentence a line;
- `captions.en` and `captions.de`: Multi30k's training pairs, for a translator, and `captions.valid.*`;
- the training, validation and test table of each task.

Raw text is split into words as in the Penn Treebank, which the other texts already are. Every tenth row of a training
table is validation data where there is no table of its own.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heed.text.sentences import split_paragraph

Rows = list[tuple[str, ...]]
_WORDS = (
    (re.compile(r'(^|[\s(\[])"'), r"\1`` "),
    (re.compile(r'"'), " '' "),
    (re.compile(r"\.\.\.+"), " ... "),
    (re.compile(r"([;@#$%&()\[\]{}<>?!]|--+|[,:](?!\d))"), r" \1 "),
    (re.compile(r"([^.\s])\.(?=['\s]*$)"), r"\1 ."),
    (re.compile(r"(n't|'(?:s|m|d|ll|re|ve))\b", re.IGNORECASE), r" \1"),
)


def words(sentence: str) -> str:
    """A sentence with spaces between its words and marks, as in the Penn Treebank."""
    for pattern, replacement in _WORDS:
        sentence = pattern.sub(replacement, sentence)
    return " ".join(sentence.split())


def sentences(text: str) -> list[str]:
    """The sentences of raw text, split into words."""
    return [words(piece.text) for piece in split_paragraph(text, "en") if piece.is_sentence]


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a packed file."""
    opened = gzip.open if path.suffix == ".gz" else lzma.open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from (line.rstrip("\r\n") for line in file)


# --- text to pretrain on ------------------------------------------------------------------------------------


def english(data: Path) -> Iterator[str]:
    """The lines of all texts, in the order of their hashes."""
    lines = {*reviews(data), *articles(data), *(words(line) for line in lines_of(data / "multi30k" / "train.en.gz"))}
    return iter(sorted(lines, key=lambda line: hashlib.sha256(line.encode()).digest()))


def split_again(lines: Iterable[str]) -> Iterator[str]:
    """The sentences of lines."""
    for line in lines:
        yield from (piece.text for piece in split_paragraph(line, "en") if piece.is_sentence)


def reviews(data: Path) -> Iterator[str]:
    """The paragraphs of the training reviews."""
    for line in lines_of(data / "imdb" / "train.tsv.xz"):
        for paragraph in re.split(r"(?:<br />\s*)+", line.split("\t")[3]):
            yield from filter(None, [" ".join(sentences(paragraph))])


def articles(data: Path) -> Iterator[str]:
    """The sentences of WikiText-2 whose words are all there."""
    for line in lines_of(data / "wikitext2" / "wiki.train.tokens.xz"):
        text = re.sub(r" @(\W)@ ", r"\1", line).replace(' " ', " '' ")
        for piece in split_paragraph(text, "en"):
            if piece.is_sentence and "<unk>" not in piece.text and not piece.text.startswith("="):
                yield piece.text


# --- tasks --------------------------------------------------------------------------------------------------


def sst2(lines: Iterable[str]) -> Rows:
    """Sentences of the Stanford trees whose root is not neutral."""
    rows = ((line[1], " ".join(re.findall(r"\(\d ([^()]+)\)", line))) for line in lines)
    return [("positive" if int(label) > 2 else "negative", text) for label, text in rows if label != "2"]


def trec(lines: Iterable[str]) -> Rows:
    """Questions with their coarse labels."""
    return [(label.split(":")[0], text) for label, _, text in (line.partition(" ") for line in lines)]


def sick(lines: Iterable[str]) -> Rows:
    """Pairs of sentences with their entailment."""
    cells = [line.split("\t") for line in lines][1:]
    return [(row[4], words(row[1]), words(row[2])) for row in cells]


def imdb(lines: Iterable[str]) -> Rows:
    """Reviews with their labels; those with two, as their last word is, are both kept."""
    cells = (line.split("\t") for line in lines)
    return [(row[0], " ".join(sentences(re.sub(r"(?:<br />\s*)+", " ", row[3])))) for row in cells]


def classified(data: Path, out: Path) -> None:
    """The tables of texts and labels."""
    tasks: dict[str, tuple[Callable[[Iterable[str]], Rows], str, str, str]] = {
        "sst2": (sst2, "sst/train.txt.xz", "sst/dev.txt.xz", "sst/test.first1105.txt.xz"),
        "trec": (trec, "trec_qc/train.txt.xz", "", "trec_qc/test.txt.xz"),
        "sick": (sick, "sick/train.txt.xz", "sick/trial.txt.xz", "sick/test.txt.xz"),
        "imdb": (imdb, "imdb/train.tsv.xz", "", "imdb/test_5000.tsv.xz"),
    }
    for name, (read, train, valid, test) in tasks.items():
        rows = read(lines_of(data / train))
        held = read(lines_of(data / valid)) if valid else rows[::10]
        rows = rows if valid else [row for at, row in enumerate(rows) if at % 10]
        for part, each in {"train": rows, "valid": held, "test": read(lines_of(data / test))}.items():
            write_table(out / f"{name}.{part}.csv", each)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A text file."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_table(path: Path, rows: Rows) -> None:
    """A table with a heading."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("label", *(("text",) if len(rows[0]) == 2 else ("text1", "text2"))))
        writer.writerows(rows)


def chunks(data: Path, out: Path) -> None:
    """Sentences of CoNLL-2000 with words and chunk tags: 2,000 for training, 400 for validation, and the test set."""
    for part in ("train", "test"):
        text = "\n".join(lines_of(data / "conll2000" / f"{part}.txt.xz"))
        found = [
            "\n".join(" ".join(line.split()[::2]) for line in sentence.splitlines())
            for sentence in text.strip().split("\n\n")
        ]
        parts = {"test": found}
        if part == "train":
            parts = {"train": found[:2000], "valid": found[2000:2400]}
        for name, each in parts.items():
            (out / f"chunks.{name}.conll").write_text("\n\n".join(each) + "\n", encoding="utf-8")


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    write_lines(options.out / "english.txt", english(options.data))
    write_lines(options.out / "sentences.txt", split_again(english(options.data)))
    for part, name in (("train", "captions"), ("val", "captions.valid")):
        for language in ("en", "de"):
            lines = lines_of(options.data / "multi30k" / f"{part}.{language}.gz")
            write_lines(options.out / f"{name}.{language}", map(words, lines))
    classified(options.data, options.out)
    chunks(options.data, options.out)


if __name__ == "__main__":
    main()
