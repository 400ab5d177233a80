"""Word alignment: which words of two sentences correspond, estimated from sentence pairs alone.

    from heed.statistical.alignment import align
    links = align([["the", "house"], ["the", "book"]], [["das", "haus"], ["das", "buch"]])

| file            | contents                                                    |
|-----------------|-------------------------------------------------------------|
| pairs.py        | sentence pairs as numbers, in blocks of equal lengths       |
| lexicon.py      | the table t(target word | source word)                      |
| aligner.py      | what all aligners share: expectation maximisation and links |
| ibm1.py, ...    | one aligner each                                            |
| symmetrise.py   | links of both directions combined                           |
| training.py     | from two texts to a pair of trained aligners                |
"""

from __future__ import annotations

from heed.statistical.alignment.training import ALIGNERS, align

__all__ = ["ALIGNERS", "align"]
