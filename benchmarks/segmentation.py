"""Segmentation: words, characters, character pairs, and BPE for both sides or for each, in one table.

    python benchmarks/segmentation.py --minutes 20 --threads 2 --out runs/segmentation -- --data.tokenised=true \\
        --src train.tok.en --tgt train.tok.de --valid-src val.tok.en --valid-tgt val.tok.de

The table of Sennrich et al. (2016, tables 2 and 3): BLEU, chrF and unigram F1 of all, of rare and of unseen words, on
validation data. Rare words are those beyond the `--rare` most frequent of the training target (theirs: 50,000; by
default as many as the word model has). Unknown words never appear in an output, so a word model must produce another
word.

Words are separated by spaces, so the text has to be tokenised, as theirs was: in plain text, the last word of "a dog,"
differs from that of "a dog." Batches are what heed chooses for the number of tokens: an epoch has 250 updates or more,
or batches have 1,024 tokens. The same command again resumes; `--table` prints the finished experiments.
"""

from __future__ import annotations

import argparse
import sys

from experiments import Flags, Row, add_arguments, budget_of, cells, chosen, compare, machine_line, markdown, train

from heed.run import Run

BASELINE = "bpe-joint"
TOGETHER = ["--tokenizer.joint=true", "--model.tie=all"]
APART = ["--tokenizer.joint=false", "--model.tie=target"]
LONG = ["--data.max_tokens=1024"]
ALL_WORDS = ["--tokenizer.min_frequency=1", "--force"]
"""Take the requested number of words, and do not stop for unknown ones, which are what is measured."""


def tokenizers(num_pieces: int, num_words: int, shortlist: int) -> dict[str, Flags]:
    """The flags that each experiment changes."""
    words = [f"--tokenizer.vocab_size={num_words}"]
    return {
        BASELINE: ["--tokenizer.kind=bpe", f"--tokenizer.vocab_size={num_pieces}", *TOGETHER],
        "bpe-separate": ["--tokenizer.kind=bpe", f"--tokenizer.vocab_size={num_pieces}", *APART],
        "bpe-joint-double": ["--tokenizer.kind=bpe", f"--tokenizer.vocab_size={2 * num_pieces}", *TOGETHER],
        "unigram": ["--tokenizer.kind=unigram", f"--tokenizer.vocab_size={num_pieces}", *TOGETHER],
        "word": ["--tokenizer.kind=word", *words, *APART, *ALL_WORDS],
        "char-bigram": [
            "--tokenizer.kind=char-bigram", f"--tokenizer.shortlist={shortlist}", *words, *APART, *ALL_WORDS,
        ],
        "character": ["--tokenizer.kind=character", "--tokenizer.vocab_size=4000", *TOGETHER, *LONG],
        "byte": ["--tokenizer.kind=byte", "--tokenizer.vocab_size=260", *TOGETHER, *LONG],
    }  # fmt: skip


def report(rows: list[Row]) -> str:
    """The results as a table, with the sizes of the vocabularies."""
    kinds = rows[0].evaluation.unigram_f1
    heads = [f"F1 {kind} ({matches.num_reference:,})" for kind, matches in kinds.items()]
    lines = []
    for row in rows:
        found = [f"{matches.f1:.3f}" for matches in row.evaluation.unigram_f1.values()]
        assert row.evaluation.run is not None
        spent = [f"{row.evaluation.run.recipe.training.tokens_per_batch:,}", f"{row.updates or 0:,}"]
        lines.append([row.name, _sizes(row.evaluation.run), *spent, *cells(row, "bleu"), *cells(row, "chrf"), *found])
    first = ["text as", "pieces", "batch", "updates", "BLEU", "against the first", "chrF2", "against the first"]
    signatures = [score.signature for name, score in rows[0].evaluation.scores.items() if name in ("bleu", "chrf")]
    return "\n".join([markdown([*first, *heads], lines), "", rows[0].evaluation.words_as, *signatures])


def _sizes(run: Run) -> str:
    """The size of the vocabulary, such as `4,000`; or of both, such as `9,870 + 10,000`."""
    sizes = [f"{len(tokenizer.vocabulary):,}" for tokenizer in run.tokenizers.values()]
    return sizes[0] if run.tokenizers["src"] is run.tokenizers["tgt"] else " + ".join(sizes)


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, "runs/segmentation")
    parser.add_argument("--pieces", type=int, default=4000, help="of a subword vocabulary (default 4000)")
    parser.add_argument("--words", type=int, default=10_000, help="of a word vocabulary, per side (default 10000)")
    parser.add_argument("--shortlist", type=int, default=2000, help="whole words in addition to pairs (default 2000)")
    parser.add_argument("--rare", type=int, help="words beyond the N most frequent are rare (default: --words)")
    given = parser.parse_args()
    budget = budget_of(given)
    experiments = chosen(tokenizers(given.pieces, given.words, given.shortlist), given.only, BASELINE)
    if not given.table:
        train(experiments, given.out, given.threads, [*given.train, *budget.flags])
    rows = compare(experiments, given.out, given.threads, num_common=given.words if given.rare is None else given.rare)
    if rows[0].evaluation.run and not rows[0].evaluation.run.recipe.data.tokenised:
        print("warning: the text is not tokenised: to a word model 'dog,' and 'dog.' are two words", file=sys.stderr)
    print(f"{rows[0].evaluation.test.label}; {machine_line(given.threads)}\n\n{report(rows)}")


if __name__ == "__main__":
    main()
