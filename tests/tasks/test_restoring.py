"""Masked sentences: a third of the words are gone, the others stay in order, and validation sentences are new."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from heed.tasks.translation import restoring
from heed.tasks.translation.restoring import MASK, masked, write_masked


def columns(files: dict[str, str], prefix: str) -> list[tuple[str, str]]:
    src, tgt = (Path(files[f"{prefix}{side}"]).read_text().splitlines() for side in ("src", "tgt"))
    return list(zip(src, tgt, strict=True))


def test_spans_of_words_become_one_mask_each_until_35_percent_are_gone() -> None:
    rng = np.random.default_rng(7)
    text = " ".join(f"w{number}" for number in range(40))
    lengths = Counter[int]()
    for _ in range(300):
        found = masked(text, rng)
        kept = [word for word in found.split() if word != MASK]
        assert kept == sorted(kept, key=lambda word: int(word[1:]))
        assert len({*kept}) == len(kept)
        assert 40 - len(kept) <= round(0.35 * 40), "a mask within a later span counts as a word of it"
        assert 40 - len(kept) >= round(0.35 * 40) - found.count(MASK) * 2
        words = iter(text.split())
        for part in re.split(rf"{MASK} ?", found):
            assert part == "" or part.split()[0] in words
        lengths[found.count(MASK)] += 1
    assert 3 <= np.average(list(lengths), weights=list(lengths.values())) <= 7, "14 words in spans of about three"


@pytest.mark.parametrize("text", ["Hello.", "Two words", "  a   b  c "])
def test_a_text_keeps_its_spaces_and_a_short_one_at_most_one_mask(text: str) -> None:
    found = masked(text, np.random.default_rng(1))
    assert found.count(MASK) == round(0.35 * len(text.split()))
    rest = re.escape(found).replace(re.escape(MASK), r"\S+")
    assert re.fullmatch(rf"\s*{rest}", text)


def test_characters_of_a_script_without_spaces_are_masked() -> None:
    text = "昨日は図書館で日本語の本を読みました。"
    found = masked(text, np.random.default_rng(1))
    assert MASK in found and len(found) > len(text) / 2
    assert re.fullmatch(re.escape(found).replace(MASK, ".+"), text)


def test_validation_sentences_are_not_trained_on_and_each_copy_is_masked_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"sentence number {n} with some more words {n * n}" for n in range(200)]
    files = write_masked([*texts, "", *texts[:9]], tmp_path)
    train, valid = columns(files, ""), columns(files, "valid_")
    assert 15 <= len(valid) <= 20 and not {tgt for _, tgt in valid} & {tgt for _, tgt in train}
    assert not {src for src, _ in valid} & {src for src, _ in train}
    copies = Counter(tgt for _, tgt in train)
    assert len(copies) == 180 and max(copies.values()) == restoring.MOST_COPIES
    assert len({*train}) == len(train)
    monkeypatch.setattr(restoring, "MOST_ROWS", 400)
    assert max(Counter(tgt for _, tgt in columns(write_masked(texts, tmp_path), "")).values()) == 2
    assert write_masked(texts, tmp_path) == files
