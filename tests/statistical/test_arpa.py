"""ARPA files: written and read as other programs do."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statistical.ngram_oracle import BOS, perplexity
from statistical.ngram_texts import model_of_words, pieces_of, scored, words_of
from statistical.test_estimation import FIXTURES, SMOOTHINGS, table

from heed.core.errors import DataError, MissingInputError, StorageError
from heed.statistical import arpa
from heed.statistical.arpa import read_arpa, write_arpa
from heed.statistical.backoff import BackoffModel

SMALL = """\
\\data\\
ngram 1=5
ngram 2=2
ngram 3=1

\\1-grams:
-0.9\t<unk>
-99\t<s>\t-0.3
-0.5\t</s>
-0.6\ta\t-0.25
-0.7\tb

\\2-grams:
-0.2\t<s> a\t-0.1
-0.3\ta b

\\3-grams:
-0.05\t<s> a b

\\end\\
"""


def write(folder: Path, text: str) -> Path:
    """A file of this text."""
    path = folder / "model.arpa"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_by_its_definition(tmp_path: Path) -> None:
    model, vocabulary = read_arpa(write(tmp_path, SMALL))
    assert vocabulary.pieces == ("<pad>", "<s>", "</s>", "<unk>", "a", "b")
    ids = {"a": 4, "b": 5}
    [line] = scored(model, ids, [["a", "b", "a", "odd"]])
    expected = [-0.2, -0.05, -0.6, -0.25 - 0.9, -0.5]  # <s> a; <s> a b; b a backs off; a odd backs off; end
    assert (line / math.log(10)).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("options", SMOOTHINGS.values(), ids=SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_model_is_restored_from_its_file(tmp_path: Path, options: dict[str, Any], order: int) -> None:
    lines = words_of(FIXTURES / "text")
    model, ids = model_of_words(lines, order, **options)
    write_arpa(tmp_path / "model.arpa", model, pieces_of(ids))
    again, vocabulary = read_arpa(tmp_path / "model.arpa")
    ours, theirs = table(model, pieces_of(ids)), table(again, vocabulary.pieces)
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(list(theirs.values()), [ours[ngram] for ngram in theirs], rtol=2e-6, atol=2e-6)
    unseen = [*lines[:5], ["zebra", "never", "the", "zebra"]]
    their_ids = {piece: id for id, piece in enumerate(vocabulary.pieces)}
    for a, b in zip(scored(model, ids, unseen), scored(again, their_ids, unseen), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_format_is_what_lmplz_writes(tmp_path: Path) -> None:
    model, ids = model_of_words([["a", "b"]], 2)
    write_arpa(tmp_path / "model.arpa", model, pieces_of(ids))
    text = (tmp_path / "model.arpa").read_text(encoding="utf-8").split("\n")
    assert text[:6] == ["\\data\\", "ngram 1=5", "ngram 2=3", "", "\\1-grams:", text[5]]
    assert text[5].startswith("0\t<s>\t-")
    assert text[-3:] == ["", "\\end\\", ""]
    assert [line.count("\t") for line in text if "\t" in line] == [2] * 5 + [1] * 3


def spelled(value: float) -> str:
    """A natural logarithm as the file has it."""
    value = float(value) / math.log(10)
    return "-99" if not math.isfinite(value) else f"{value:.7f}" if value else "0"


def written_plainly(model: BackoffModel, pieces: list[str]) -> str:
    """The file of a model of which all words but padding are listed, one line at a time."""
    starts, text = model.level_starts, "\\data\\\n"
    for n, size in enumerate(model.num_ngrams, start=1):
        text += f"ngram {n}={size - (n == 1)}\n"
    for n in range(1, model.order + 1):
        text += f"\n\\{n}-grams:\n"
        for node in range(starts[n] + (n == 1), starts[n + 1]):
            words, place = [], node
            while place:
                words.append(pieces[model.words[place - 1]])
                place = model.parents[place - 1]
            log_prob = 0.0 if node == BOS + 1 else model.log_probs_of[node - 1]
            weight = [spelled(model.backoffs[node])] if n < model.order else []
            text += "\t".join([spelled(log_prob), " ".join(reversed(words)), *weight]) + "\n"
    return text + "\n\\end\\\n"


ODD = [0.0, -0.0, -1e-30, -1e-8, -23.025, -23.02585, -23.02586, -100.5, -1e9, 1e-9, 0.5, 31.25, 12345.5, -np.inf]
"""Natural logarithms near the limits of what is spelled in two halves, and far outside."""


@pytest.mark.parametrize("block", [1, 7, 8192])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_file_has_the_bytes_of_one_written_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: int, block: int
) -> None:
    words = ["a", "1234567", "12345678", "é" * 4, "word" * 9, "日本語" * 7, "x" * 1000, "\u2028", "\ufeff"]
    rng = np.random.default_rng(order)
    model, ids = model_of_words([rng.choice(words, 6).tolist() for _ in range(60)], order)
    log_probs, backoffs = model.log_probs_of.copy(), model.backoffs.copy()
    log_probs[3::5] = rng.choice([odd for odd in ODD if odd > -np.inf or order > 1], len(log_probs[3::5]))
    backoffs[1::3] = rng.choice(ODD, len(backoffs[1::3]))
    log_probs[1:] = np.where(rng.random(len(log_probs) - 1) < 0.2, -9.9999999 * math.log(10), log_probs[1:])
    model = replace(model, log_probs_of=log_probs, backoffs=backoffs)
    monkeypatch.setattr(arpa, "_BLOCK", block)
    write_arpa(tmp_path / "model.arpa", model, pieces_of(ids))
    assert (tmp_path / "model.arpa").read_bytes() == written_plainly(model, pieces_of(ids)).encode()


def test_a_suffix_may_be_missing(tmp_path: Path) -> None:
    """SRILM prunes so that an n-gram is there and what it ends with is not: the next shorter one is taken."""
    model, _ = read_arpa(write(tmp_path, SMALL.replace("ngram 2=2", "ngram 2=1").replace("-0.3\ta b\n", "")))
    [line] = scored(model, {"a": 4, "b": 5}, [["a", "b", "b"]])
    assert (line / math.log(10)).tolist() == pytest.approx([-0.2, -0.05, -0.7, -0.5], abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("\\data\\", "data", "is not an ARPA file"),
        ("ngram 2=2", "ngram 3=2", "expected 'ngram 2='"),
        ("ngram 2=2", "ngram 2=two", "expected 'ngram 2=' and a number"),
        ("ngram 2=2", "ngram 2=" + "9" * 16, "expected 'ngram 2=' and a number"),
        ("ngram 2=2", "ngram 2=" + "9" * 5000, "expected 'ngram 2=' and a number"),
        ("ngram 2=2", "ngram 2=3", r"got '' \(the header declares 3 n-grams of 2 words"),
        ("ngram 2=2", "ngram 2=1", r"expected '\\3-grams:', got '-0.3"),
        ("ngram 3=1", "ngram 3=9", "the header declares 9 n-grams of 3 words"),
        ("\\2-grams:", "\\4-grams:", r"expected '\\2-grams:', got '\\\\4-grams:'"),
        ("-0.3\ta b", "x\ta b", "a log10 probability, a tab and words"),
        ("-0.3\ta b", "-0.3 a b", "a log10 probability, a tab and words"),
        ("-0.3\ta b", "-0.3\ta c", "'a c' is not an n-gram of 2"),
        ("-0.3\ta b", "-0.3\ta", "'a' is not an n-gram of 2"),
        ("-0.3\ta b", "-0.3\t<s> a", "an n-gram of 2 words is repeated"),
        ("-0.7\tb", "-0.7\ta", "a word is repeated"),
        ("-0.3\ta b", "nan\ta b", "a log10 probability, a tab and words, got 'nan"),
        ("-0.3\ta b", "-0.3\ta b\tnan", "a log10 probability, a tab and words, got '-0.3"),
        ("-0.3\ta b", "-0.3\ta b\tinf", "a log10 probability, a tab and words, got '-0.3"),
        ("<s> a b", "b a b", "the first words of an n-gram are not an n-gram"),
        ("\\end\\\n", "", "ends before"),
        ("\\end\\", "\\4-grams:", "expected 1 n-grams and then"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        read_arpa(write(tmp_path, SMALL.replace(old, new)))


def test_a_file_that_is_not_text_or_damaged_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\\data\\\n\xe9\n")
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_arpa(tmp_path / "latin")
    whole = (FIXTURES / "o3.arpa.xz").read_bytes()
    (tmp_path / "cut.arpa.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.arpa\.xz"):
        read_arpa(tmp_path / "cut.arpa.xz")
    with pytest.raises(MissingInputError):
        read_arpa(tmp_path / "nothing")


def test_pieces_with_blanks_cannot_be_written(tmp_path: Path) -> None:
    model, ids = model_of_words([["a", "b"]], 2)
    with pytest.raises(DataError, match="the piece ' ' contains white space"):
        write_arpa(tmp_path / "model.arpa", model, [*pieces_of(ids)[:-1], " "])
    assert not (tmp_path / "model.arpa").exists()


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    model, ids = model_of_words([["a", "b"]], 2)
    with pytest.raises(StorageError, match="cannot write the ARPA file"):
        write_arpa(tmp_path / "nowhere" / "model.arpa", model, pieces_of(ids))


@pytest.mark.parametrize("order", [2, 3, 5])
def test_kenlm_scores_a_written_file_identically(tmp_path: Path, order: int) -> None:
    kenlm = pytest.importorskip("kenlm", reason="the package kenlm is not installed: pip install kenlm")
    lines = words_of(FIXTURES / "text")
    model, ids = model_of_words(lines[:-20], order)
    write_arpa(tmp_path / "model.arpa", model, pieces_of(ids))
    theirs = kenlm.Model(str(tmp_path / "model.arpa"))
    assert theirs.order == order
    test = [*lines[-20:], ["zebra", "the", "never", "seen"], []]
    for line, ours in zip(test, scored(model, ids, test), strict=True):
        full = [log_prob for log_prob, _, _ in theirs.full_scores(" ".join(line))]
        np.testing.assert_allclose(ours / math.log(10), full, atol=1e-5)


# --- the perplexities that KenLM gives the texts of its README --------------------------------------------

PUBLISHED = {
    ("ptb", 3): (157.76525525845207, 148.2814995024931),
    ("ptb", 5): (148.00739620632564, 141.1862070921484),
    ("wikitext2", 3): (247.65628098372468, 230.88634388997374),
    ("wikitext2", 5): (239.98401839596673, 224.81159125434064),
}
FILES = {"ptb": "ptb.{}.txt.xz", "wikitext2": "wiki.{}.tokens.xz"}


@pytest.mark.slow
@pytest.mark.parametrize(("corpus", "order"), PUBLISHED, ids=[f"{name} {order}" for name, order in PUBLISHED])
def test_perplexities_equal_those_of_kenlm_to_a_hundredth_of_a_percent(
    shared_data: Path, corpus: str, order: int
) -> None:
    files = {part: shared_data / corpus / FILES[corpus].format(part) for part in ("train", "valid", "test")}
    model, ids = model_of_words(words_of(files["train"]), order, discount_fallback=False)
    actual = [
        perplexity(np.concatenate(scored(model, ids, words_of(files[part]))).tolist()) for part in ("valid", "test")
    ]
    assert actual == pytest.approx(PUBLISHED[corpus, order], rel=1e-4)


@pytest.mark.slow
def test_lines_are_scored_as_by_kenlms_query(shared_data: Path) -> None:
    """The 5-gram of the Penn Treebank; total log10 probabilities of 200 lines."""
    model, ids = model_of_words(words_of(shared_data / "ptb" / "ptb.train.txt.xz"), 5, discount_fallback=False)
    test = words_of(shared_data / "ptb" / "ptb.test.txt.xz")[:200]
    reference = (shared_data / "kenlm_reference" / "ptb.train.o5.test-head200.scores").read_text(encoding="utf-8")
    totals = [float(line.split()[1]) for line in reference.splitlines() if line.startswith("Total:")]
    assert len(totals) == 200
    actual = [line.sum() / math.log(10) for line in scored(model, ids, test)]
    np.testing.assert_allclose(actual, totals, rtol=1e-4)


def test_begin_of_sentence_is_never_predicted(tmp_path: Path) -> None:
    model, _ = read_arpa(write(tmp_path, SMALL.replace("-99\t<s>", "-1\t<s>")))
    assert np.isneginf(model.log_probs(np.array([[0]]))[0, BOS])


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    assert read_arpa(write(tmp_path, "\ufeff" + SMALL)).vocabulary.pieces[4:] == ("a", "b")


def test_an_unknown_word_in_upper_case_is_the_unknown_word(tmp_path: Path) -> None:
    expected, vocabulary = read_arpa(write(tmp_path, SMALL))
    model, again = read_arpa(write(tmp_path, SMALL.replace("<unk>", "<UNK>")))
    assert again.pieces == vocabulary.pieces
    assert model.log_probs_of.tolist() == expected.log_probs_of.tolist()
    both = SMALL.replace("1=5", "1=6").replace("-0.9\t<unk>", "-0.9\t<unk>\n-0.8\t<UNK>")
    assert read_arpa(write(tmp_path, both)).vocabulary.pieces[4:] == ("<UNK>", "a", "b")


def test_a_file_without_an_end_of_sentence_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no </s> among the words"):
        read_arpa(write(tmp_path, SMALL.replace("</s>", "c")))
