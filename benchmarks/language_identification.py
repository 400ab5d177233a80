"""Accuracy of language identification on real parallel text: exchanged sides, and five words of one line.

python benchmarks/language_identification.py ../shared/data
"""

from __future__ import annotations

import gzip
import lzma
import sys
from itertools import islice
from pathlib import Path

from heed.text.language.identify import FREQUENT_WORDS, LanguageIdentifier, look_exchanged

CORPORA = [
    ("en", "de", "multi30k/train.en.gz", "multi30k/train.de.gz"),
    ("en", "fr", "multi30k/train.en.gz", "multi30k/train.fr.gz"),
    ("de", "cs", "multi30k/train.de.gz", "multi30k/train.cs.gz"),
    ("en", "cs", "multi30k/train.en.gz", "multi30k/train.cs.gz"),
    ("en", "cs", "align_czenali_en-cs/train.en.xz", "align_czenali_en-cs/train.cs.xz"),
    ("en", "fr", "align_hansards_en-fr/train.en.xz", "align_hansards_en-fr/train.fr.xz"),
    ("ro", "en", "align_wpt_ro-en/test.ro", "align_wpt_ro-en/test.en"),
    ("en", "ja", "kftt_ja-en/train.en.xz", "kftt_ja-en/train.ja.xz"),
    ("en", "sw", "lafand_en-swa/train.en.xz", "lafand_en-swa/train.swa.xz"),
    ("en", "ha", "lafand_en-hau/train.en.xz", "lafand_en-hau/train.hau.xz"),
    ("de", "en", "iwslt14_de-en/valid.de.xz", "iwslt14_de-en/valid.en.xz"),
]
NUM_LINES = 4000
SAMPLES = (0, 200, 2000)
"""Lines of each language that the identifier has seen, as a server has seen lines of its runs."""


def read(path: Path) -> list[str]:
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in islice(file, NUM_LINES)]


def main() -> None:
    data = Path(sys.argv[1])
    corpora = [(a, b, read(data / src), read(data / tgt)) for a, b, src, tgt in CORPORA]
    for size in (20, 100, 500):
        blocks = [
            (a, b, src[start : start + size], tgt[start : start + size])
            for a, b, src, tgt in corpora
            for start in range(0, len(src) - size + 1, size)
        ]
        detected = sum(look_exchanged(tgt, src, a, b) for a, b, src, tgt in blocks)
        false_alarms = sum(look_exchanged(src, tgt, a, b) for a, b, src, tgt in blocks)
        print(
            f"blocks of {size} lines: {detected} of {len(blocks)} exchanged ones detected, {false_alarms} false alarms"
        )
    for num_samples in SAMPLES:
        correct = total = 0
        for a, b, *sides in corpora:
            num = min(num_samples, len(sides[0]) // 2)
            named = list(zip((a, b), sides, strict=True))
            words = {code: " ".join(FREQUENT_WORDS.get(code, ())) for code in (a, b)}
            identifier = LanguageIdentifier({code: [words[code], *lines[:num]] for code, lines in named})
            for code, lines in named:
                answers = [identifier.detect(" ".join(line.split()[:5]))[0].language for line in lines[num::8]]
                correct += answers.count(code)
                total += len(answers)
        print(f"five words, {num_samples} lines of samples: {correct / total:.2%} of {total} correct")


if __name__ == "__main__":
    main()
