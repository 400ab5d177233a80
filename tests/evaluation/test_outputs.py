"""Evaluation of outputs, compared with sacreBLEU and counts by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from random_models import model_of
from sacrebleu.metrics import BLEU, CHRF, TER
from toy import pairs, prepared, without_shape_checks

from heed.core.errors import DataError, UsageError
from heed.data.validation import read_valid
from heed.evaluation.outputs import System, evaluate_outputs, ranked, read_finished, samples, worst_sentences
from heed.evaluation.test_set import HeldOut, read_monolingual, read_parallel, read_records
from heed.inference.translator import ModelTranslator
from heed.metrics import output_metric
from heed.metrics.significance import compare
from heed.metrics.word_frequency import by_frequency
from heed.run import Run
from heed.tasks.prepare import WORDS_SEEN, WordCounts
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

__all__ = ["without_shape_checks"]

REFERENCES = ["the small dog runs home", "a man sleeps in a green park", "a dog", "people stand in the street"] * 5
GOOD = ["the small cat runs home", "a man sleeps in the green park", "a dog", "people stand on the street"] * 5
POOR = ["the cat", "a man in a park", "dog a", "stand people street in the"] * 5
TEST = HeldOut(("test.aa", "test.bb"), [(f"source number {i}", line) for i, line in enumerate(REFERENCES)])


def test_empty_references_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in (("src", "a\nb\n \n"), ("ref", "x\n \n\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    assert len(read_parallel(tmp_path / "src", tmp_path / "ref").rows) == 3
    told = capsys.readouterr().err
    assert "warning: 1 of 3 test pairs have one empty side" in told
    assert "1 lines are empty on both sides and change no score" in told


def test_words_of_references_are_normalised_as_in_training(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    words = WordCounts("13a", Counter({"café": 3}))
    words.write(run.files, WORDS_SEEN)
    test = HeldOut(("a", "b"), [("x", "cafe\u0301")])
    [found] = evaluate_outputs(test, [System("s", ["café"], run)])
    assert found.unigram_f1["unseen"].num_reference == 0
    assert found.unigram_f1["all"].f1 == 1
    assert found.words_as.startswith("words as split by tok:13a; rare: not among the 50,000")


def test_a_letter_may_be_written_as_two_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = prepared(tmp_path)
    WordCounts("13a", Counter({"café": 3})).write(run.files, WORDS_SEEN)
    composed, apart = "ein café am see ist schön", "ein cafe\u0301 am see ist scho\u0308n"
    test = HeldOut(("a", "b"), [("x", apart), ("y", composed)])
    both = [System("s", [composed, composed], run), System("file", [apart, apart])]
    for found in evaluate_outputs(test, both):
        assert [round(score.value, 6) for score in found.scores.values()] == [100, 100, 0]
        assert found.unigram_f1["all"].f1 == 1
    note = "b: 1 references are not in Unicode's form NFC; they are converted to it for scoring."
    assert note in capsys.readouterr().err


def test_a_single_sentence_has_neither_interval_nor_comparison() -> None:
    test = HeldOut(("a", "b"), [("x", "a cat sat on the mat")])
    _, found = evaluate_outputs(test, [System("s", ["a cat sat on a mat"]), System("t", ["a dog sat on the mat"])])
    assert found.against_first == {}
    assert all(score.low is None and "bs:" not in score.signature for score in found.scores.values())


def test_lines_that_are_empty_on_both_sides_are_not_the_worst() -> None:
    test = HeldOut(("a", "b"), [("", " "), ("x", "a cat"), ("y", "a dog")])
    [found] = evaluate_outputs(test, [System("s", ["", "a cat", "a dot"])], num_worst=3)
    assert [sentence.line for sentence in found.worst] == [3, 2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A prepared translation run."""
    return prepared(tmp_path_factory.mktemp("scoring"))


def test_scores_are_sacrebleus_and_systems_are_tested_against_the_first() -> None:
    first, second = evaluate_outputs(TEST, [System("good", GOOD), System("poor", POOR)])
    for evaluation, outputs in ((first, GOOD), (second, POOR)):
        for name, oracle in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
            assert evaluation.scores[name].value == oracle.corpus_score(outputs, [REFERENCES]).score
            assert "bs:1000|" in evaluation.scores[name].signature
    assert first.against_first == {}
    for name in ("bleu", "chrf", "ter"):
        statistics = [output_metric(name).statistics(outputs, REFERENCES) for outputs in (GOOD, POOR)]
        assert second.against_first[name] == compare(*statistics)
    assert second.against_first["chrf"].difference == pytest.approx(
        second.scores["chrf"].value - first.scores["chrf"].value
    )
    assert (first.length_ratio, second.length_ratio) == (1.0, pytest.approx(14 / 19))


def test_a_system_without_a_run_has_neither_leakage_nor_frequencies() -> None:
    [found] = evaluate_outputs(TEST, [System("file", GOOD)])
    assert (found.leakage, found.by_frequency, found.without_leaked, found.synthetic) == (None, (), {}, False)
    assert sum(bucket.num_sentences for bucket in found.by_length) == 20


def test_lines_that_any_run_was_trained_on_are_left_out_for_all(run: Run) -> None:
    seen = [row for row in pairs() if row not in read_valid(run.folder)][:3]
    rows = [*seen, *((f"unseen {i}", f"never {i} before") for i in range(9))]
    outputs = [row[1] for row in rows[:3]] + [f"never {i} again" for i in range(9)]
    found = evaluate_outputs(HeldOut(("a", "b"), rows), [System("run", outputs, run), System("file", outputs)])
    assert found[0].leakage is not None and found[0].leakage.lines == (1, 2, 3)
    for evaluation in found:
        alone = CHRF().corpus_score(outputs[3:], [[row[1] for row in rows[3:]]]).score
        assert evaluation.without_leaked["chrf"].value == alone < evaluation.scores["chrf"].value


def test_without_a_mix_of_seen_and_unseen_lines_there_is_no_second_score(run: Run) -> None:
    seen = [row for row in pairs() if row not in read_valid(run.folder)][:3]
    for rows in (seen, [("unseen", "ungesehen")]):
        [found] = evaluate_outputs(HeldOut(("a", "b"), rows), [System("run", [row[1] for row in rows], run)])
        assert found.without_leaked == {}


def test_frequencies_are_those_of_the_first_run_with_word_counts(run: Run) -> None:
    outputs = ["kan ler zz"] * 20
    _, found = evaluate_outputs(TEST, [System("file", POOR), System("run", outputs, run)])
    training = WordCounts.read(run.files, WORDS_SEEN)
    assert training is not None
    assert list(found.by_frequency) == by_frequency(outputs, REFERENCES, training)
    assert {band.label: band.num_output for band in found.by_frequency}["never"] == 20


def test_the_worst_lines_are_those_with_the_lowest_chrf() -> None:
    outputs = [*REFERENCES[:3], "xyz", *REFERENCES[4:9], "", *REFERENCES[10:]]
    [found] = evaluate_outputs(TEST, [System("file", outputs)], num_worst=3)
    assert [(it.line, it.chrf, it.output) for it in found.worst[:2]] == [(10, 0.0, ""), (4, 0.0, "xyz")][::-1]
    assert found.worst[0].reference == REFERENCES[3]
    assert found.worst[0].source == "source number 3"
    assert {it.alignment for it in found.worst} == {""}
    assert len(found.worst) == 3


def test_the_worst_lines_of_a_model_without_attention_have_no_links() -> None:
    words = Word("abcdefgh")
    translator = ModelTranslator(model_of("encoder_decoder, thought"), words, words, Normaliser())
    data, predictor = SimpleNamespace(normaliser=Normaliser()), SimpleNamespace(translator=translator)
    run: Any = SimpleNamespace(recipe=SimpleNamespace(data=data), predictor=predictor)
    test = HeldOut(("src", "ref"), [("a b", "c d"), ("c", "d")])
    [worst] = worst_sentences(System("run", ["e f", "d"], run), test, [0.0, 1.0], 1)
    assert (worst.line, worst.output, worst.alignment, worst.links) == (1, "e f", "", "")


def test_samples_are_taken_at_fixed_ranks_from_good_to_worst() -> None:
    chrf = [float(i) for i in range(100)][::-1]
    test = HeldOut(("a", "b"), [(str(i), str(i)) for i in range(100)])
    picked = samples(ranked(test, [str(i) for i in range(100)], chrf))
    assert [(kind, it.chrf) for kind, it in picked] == [
        ("good", 95), ("good", 85), ("middle", 55), ("middle", 45), ("bad", 15), ("bad", 5), ("worst", 0),
    ]  # fmt: skip
    assert [kind for kind, _ in samples(ranked(HeldOut((), [("a", "b")]), ["c"], [1.0]))] == ["worst"]
    assert samples([]) == []


def test_an_evaluation_can_be_written_as_json(run: Run) -> None:
    evaluations = [
        *evaluate_outputs(TEST, [System("a", GOOD, run), System("b", POOR)]),
        *evaluate_outputs(TEST, [System("c", GOOD)], num_worst=1),
    ]
    first, second, third = json.loads(json.dumps([evaluation.to_json() for evaluation in evaluations]))
    assert (first["system"], first["run"], second["run"]) == ("a", str(run.folder), None)
    assert [file["name"] for file in first["test"]] == ["test.aa", "test.bb"]
    assert [score["name"] for score in first["scores"]] == ["BLEU", "chrF2", "TER"]
    assert second["against_first"]["bleu"].keys() == {"difference", "p_bootstrap", "p_randomisation"}
    assert first["leakage"]["num_lines"] == 20
    assert third["worst"][0].keys() >= {"line", "chrf", "source", "output", "reference", "alignment"}


def test_the_fingerprint_of_a_test_set_ignores_compression(tmp_path: Path) -> None:
    import gzip

    for name, text in (("t.aa", "one\ntwo\n"), ("t.bb", "eins\nzwei\n")):
        (tmp_path / name).write_text(text)
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(text)
    plain = read_parallel(tmp_path / "t.aa", tmp_path / "t.bb")
    packed = read_parallel(tmp_path / "t.aa.gz", tmp_path / "t.bb.gz")
    assert plain.label == "t.aa and t.bb, 2 lines"
    assert [f["sha256"] for f in plain.fingerprint()] == [f["sha256"] for f in packed.fingerprint()]
    assert Counter(f["lines"] for f in plain.fingerprint()) == {2: 2}


def test_rows_of_a_file_of_pairs_are_called_pairs(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('source,target\n"two\nlines",zwei\none,eins\n')
    test = read_records(tmp_path / "t.csv", ("source", "target"), ("aa", "bb"))
    assert (test.label, test.unit) == ("t.csv (source) and t.csv (reference), 2 pairs", "pair")


def test_files_that_are_not_a_test_set_are_refused(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("one\ntwo\n")
    (tmp_path / "one").write_text("one\n")
    (tmp_path / "none").write_text("\n \n")
    with pytest.raises(DataError, match=r"two has 2 lines, .*one has 1, but line k of one must be the translation"):
        read_parallel(tmp_path / "two", tmp_path / "one")
    with pytest.raises(DataError, match="has no text to score"):
        read_monolingual(tmp_path / "none")
    with pytest.raises(
        DataError, match=r"one has 1 lines and test\.aa 20: there must be one translation for each line"
    ):
        read_finished(f"other={tmp_path / 'one'}", TEST)
    for named in ("other", "=file", "other="):
        with pytest.raises(UsageError, match="--hyp takes NAME=FILE"):
            read_finished(named, TEST)
