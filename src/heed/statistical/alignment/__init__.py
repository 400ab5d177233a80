"""Word alignment: which words of two sentences correspond, estimated from sentence pairs alone.

    from heed.statistical.alignment import align
    links = align([["the", "house"], ["the", "book"]], [["das", "haus"], ["das", "buch"]])

| file            | contents                                                    |
|-----------------|-------------------------------------------------------------|
| pairs.py        | sentence pairs as numbers, in blocks of equal lengths       |
| lexicon.py      | the table t(target word | source word)                      |
| smoothing.py    | how the lexicon follows from expected counts                |
| digamma.py      | the function that variational smoothing needs               |
| related.py      | spelling as evidence about the lexicon                      |
| aligner.py      | what all aligners share: expectation maximisation and links |
| ibm1.py, ...    | one aligner each                                            |
| table.py        | tables of their distributions, with numbered entries        |
| fertility.py    | sums over some alignments, for Models 3 to 5                |
| classes.py      | word classes, for Models 4 and 5                            |
| symmetrise.py   | links of both directions combined                           |
| training.py     | from two texts to a pair of trained aligners                |
| run_folder.py   | a pair of trained aligners as a run folder                  |
"""

from __future__ import annotations

from heed.statistical.alignment.training import ALIGNERS, align

__all__ = ["ALIGNERS", "align"]
