"""Masked sentences: a third of the words are gone, the others stay in order, and validation sentences are new."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heed.tasks.translation import restoring
from heed.tasks.translation.restoring import MASK, masked, write_masked


def write(folder: Path, texts: Sequence[str]) -> tuple[int, list[tuple[str, str]], list[tuple[str, str]]]:
    """The number of sentences, and the rows for training and for validation, of texts in two files."""
    files = [folder / "one", folder / "other"]
    for number, path in enumerate(files):
        path.write_text("".join(f"{text}\n" for text in texts[number::2]), encoding="utf-8")
    paths = [folder / name for name in ("masks", "texts", "valid_masks", "valid_texts")]
    found = write_masked(files, *paths)
    columns = [path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else [] for path in paths]
    return found, list(zip(*columns[:2], strict=True)), list(zip(*columns[2:], strict=True))


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


@pytest.mark.parametrize(
    ("word", "units"),
    [("新しいiPhone ", ["新", "し", "い", "iPhone "]), ("น้ำ", ["น้", "ำ"]), ("don't ", ["don't "]), ("日 ", ["日 "])],
)
def test_other_words_and_marks_stay_whole_in_a_script_without_spaces(word: str, units: list[str]) -> None:
    assert restoring._units(word) == units


def test_validation_sentences_are_not_trained_on_and_each_copy_is_masked_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"sentence number {n} with some more words {n * n}" for n in range(200)]
    number, train, valid = write(tmp_path, [*texts, "", *texts[:9], "one", "word"])
    assert 15 <= len(valid) <= 20 and not {tgt for _, tgt in valid} & {tgt for _, tgt in train}
    assert not {src for src, _ in valid} & {src for src, _ in train}
    copies = Counter(tgt for _, tgt in train)
    assert number == len(copies) and {*copies} <= {*texts} and max(copies.values()) == restoring.MOST_COPIES
    assert len({*train}) == len(train) and all(MASK in src for src, _ in train + valid)
    assert write(tmp_path, [*texts, "", *texts[:9], "one", "word"]) == (number, train, valid)
    monkeypatch.setattr(restoring, "MOST_ROWS", 400)
    assert max(Counter(tgt for _, tgt in write(tmp_path, texts)[1]).values()) == 2
    monkeypatch.setattr(restoring, "MOST_LINES", 60)
    assert write(tmp_path, texts)[0] == 108, "of 60 lines of each file, a tenth is for validation"


@pytest.mark.parametrize("texts", [[], ["a b c"], [f"word{n}" for n in range(500)], [f"a b {n}" for n in range(30)]])
def test_nothing_is_written_for_too_few_sentences(tmp_path: Path, texts: list[str]) -> None:
    assert write(tmp_path, texts) == (0, [], [])
