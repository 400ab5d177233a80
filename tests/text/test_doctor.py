"""The data doctor: each problem is counted, graded and shown, and healthy data has none."""

from __future__ import annotations

import gzip
import json
import random
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messy import messy_pairs
from pydantic import TypeAdapter

from heed.core.errors import MissingInputError
from heed.text.doctor.diagnose import diagnose, diagnose_text, unknown_pieces
from heed.text.doctor.examination import PairExamination, TextExamination
from heed.text.doctor.files import diagnose_files, diagnose_text_files, with_parts
from heed.text.doctor.findings import Diagnosis, Finding
from heed.text.doctor.lines import EvenSample
from heed.text.doctor.pairs import LengthCorrelation
from heed.text.doctor.tags import diagnose_conll
from heed.text.language.scripts import language_by_script
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig
from heed.text.readers import CorpusFiles, read_pairs
from heed.text.readers.conll import TaggedSentence
from heed.text.vocabulary import UNK_ID

Pair = tuple[str, str]

WORDS = {
    "the": "der",
    "a": "ein",
    "man": "Mann",
    "woman": "Frau",
    "dog": "Hund",
    "house": "Haus",
    "street": "Straße",
    "sees": "sieht",
    "walks": "geht",
    "behind": "hinter",
    "three": "drei",
    "young": "junge",
    "people": "Leute",
    "two": "zwei",
    "children": "Kinder",
    "water": "Wasser",
}


def healthy(num: int = 400, seed: int = 1) -> list[Pair]:
    """Distinct pairs without a fault: random words, translated one by one."""
    return list(_healthy(num, seed))


@cache
def _healthy(num: int, seed: int) -> list[Pair]:
    rng = random.Random(seed)
    pairs = []
    for number in range(num):
        words = rng.choices(list(WORDS), k=rng.randint(3, 25))
        src, tgt = " ".join(words), " ".join(WORDS[word] for word in words)
        pairs.append((f"{src}, {seed} {number}.", f"{tgt}, {seed} {number}."))
    return pairs


def spoilt(share: float, spoil: Callable[[str, str], Pair], num: int = 400) -> list[Pair]:
    """Healthy pairs of which the first `share` went through `spoil`."""
    pairs = healthy(num)
    bad = round(share * num)
    return [spoil(*pair) for pair in pairs[:bad]] + pairs[bad:]


def only(diagnosis: Diagnosis, check: str) -> Finding:
    found = [finding for finding in diagnosis.findings if finding.check == check]
    assert len(found) == 1, f"{check}: {[finding.check for finding in diagnosis.findings]}"
    return found[0]


def checks(diagnosis: Diagnosis) -> set[str]:
    """The names of the findings except "few", which every small corpus has."""
    return {finding.check for finding in diagnosis.findings} - {"few"}


def test_healthy_data_has_no_findings() -> None:
    diagnosis = diagnose(healthy(10_000), healthy(100, seed=2), healthy(100, seed=3))
    assert diagnosis.findings == ()
    assert diagnosis.num_pairs == diagnosis.statistics["num_kept"] == 10_000
    assert diagnosis.render().endswith("No problems found.")


# Faults that a share of the pairs has. (name, what spoils a pair, shares for note, warning and stop)

NEVER = None
FAULTS: list[tuple[str, Callable[[str, str], Pair], tuple[float, float | None, float | None]]] = [
    ("empty", lambda src, _: (src, " "), (0.01, 0.1, 0.11)),
    ("copy", lambda src, _: (src, src), (0.01, 0.5, 0.51)),
    ("length-ratio", lambda src, tgt: (src[:20], f"{tgt[:10]} " * 20), (0.01, 0.02, NEVER)),
    ("long", lambda src, tgt: (src + " a" * 500, tgt + " a" * 500), (0.01, 0.02, NEVER)),
    ("damaged", lambda src, tgt: (src, tgt + " fÃ¼r"), (0.01, 0.05, 0.06)),
    ("nul", lambda src, tgt: (src + "\0", tgt), (0.01, 0.02, NEVER)),
    ("control", lambda src, tgt: ("\x07" + src, tgt), (0.01, 0.02, NEVER)),
    ("carriage-return", lambda src, tgt: (src + "\r", tgt), (0.01, 0.02, NEVER)),
    ("line-separator", lambda src, tgt: (src, tgt + "\u2028a"), (0.01, 0.02, NEVER)),
    ("byte-order-mark", lambda src, tgt: (src, "\ufeff" + tgt), (0.01, 0.02, NEVER)),
    ("markup", lambda src, tgt: (src + "<br/>", tgt), (0.01, 0.02, NEVER)),
    ("not-nfc", lambda src, tgt: (src, tgt + " u\u0308ber"), (0.9, NEVER, NEVER)),
    ("other-script", lambda _, tgt: (f"Он видит {tgt[-4:]}", tgt), (0.01, 0.02, NEVER)),
    ("mixed-word", lambda src, tgt: (src + " cаt", tgt), (0.01, 0.02, NEVER)),
    ("upper-case", lambda src, tgt: (src.upper(), tgt), (0.9, NEVER, NEVER)),
]


@pytest.mark.parametrize(("check", "spoil", "shares"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_problem_is_counted_graded_and_shown(
    check: str, spoil: Callable[[str, str], Pair], shares: Sequence[float | None]
) -> None:
    for severity, share in zip(("note", "warn", "stop"), shares, strict=True):
        if share is not None:
            diagnosis = diagnose(spoilt(share, spoil))
            finding = only(diagnosis, check)
            assert (finding.count, finding.total) == (round(share * 400), 400)
            assert finding.severity == severity
            assert f"{finding.count} of 400 " in finding.message
            assert [number for number, _ in finding.examples] == [1, 2, 3]
            assert (finding in diagnosis.stops) == (severity == "stop")
            others = {"empty": {"filter"}, "length-ratio": {"filter"}}.get(check, set())
            assert checks(diagnosis) - {check} == others


@pytest.mark.parametrize(
    "text",
    [
        "MÃ¤dchen",
        "itâ€™s",
        "Ã‰cole",
        "na\ufffdve",
        "Â© 2020",
        "5Â\u00a0km",
        "itâ\x80\x99s",
        "It\x92s",
        "ÐŸÑ€Ð¸Ð²ÐµÑ‚",
        "ä¸­æ–‡",
        "ã\x81“ã‚“",
        "ðŸ˜€",
        "ï»¿Hallo",
        "koÅ›ciÃ³Å‚",
        "FrÃ¼hstÃ¼ck",
        "Ã…ngstrÃ¶m",
        "le CÃ”TÃ‰",
        "LÃ\u00a0, oÃ¹",
    ],
)
def test_text_read_in_the_wrong_encoding_is_recognised(text: str) -> None:
    assert only(diagnose_text([text] * 400), "damaged").count == 400


@pytest.mark.parametrize(
    "text",
    [
        "Mädchen, naïve, Ærøskøbing, „Spaß“ – ça va « là » !",
        "« J’ai visité l’hôtel… à Genève »",
        "NÃO, SÃO PAULO, Ângela, ÂMBAR, Été",
        "Привет, Їжак, Ελλάδα, 日本語「はい」, ελληνικά",
        "Sveřepý Ďábel, Łódź, ĂÂÎȘȚ, 5\u00a0km, © 2020, § 3, ½",
        "Đặng Văn Ã, Trần",
        "Hoje: AMANHÃ DE MANHÃ…",
        "một “CÂU ĐÃ” và «ĐÃ»",
        "😀 👩‍👩‍👧 μm, ‘quoted’ “text”",
        "AT&T; R&D <3 a < b > c &c.",
    ],
)
def test_intact_text_in_any_language_is_not_reported_as_damaged(text: str) -> None:
    found = checks(diagnose_text([text] * 400)) - {"duplicate"}
    assert found == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ОНА ЧИТАЕТ КНИГУ", True), ("ISBN 4140019735", True), ("THE 日本 HOUSE OF", True), ("ΤΟ ΣΠΙΤΙ ΜΟΥ", True),
        ("美川 圭『白河法皇―中世をひらいた帝王』 ISBN 4140019735", False), ("यह BBC की खबर है", False),
        ("ข่าวของ BBC วันนี้", False), ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏓᏅᏙ", False), ("ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ᲐᲠᲘᲡ", False),
    ],
)  # fmt: skip
def test_lines_of_scripts_without_case_are_not_in_upper_case(text: str, found: bool) -> None:
    assert ("upper-case" in checks(diagnose_text([text] * 400))) == found


def test_duplicates_and_sources_with_several_targets_are_distinguished() -> None:
    pairs = healthy()
    extra = [
        pairs[4],
        (f" {pairs[5][0]}", pairs[5][1]),
        (pairs[6][0], "etwas anderes ganz"),
        ("etwas anderes ganz", pairs[7][1]),
    ]
    diagnosis = diagnose(pairs + extra)
    duplicate, several = only(diagnosis, "duplicate"), only(diagnosis, "several-targets")
    assert (duplicate.count, several.count) == (2, 1)
    assert [number for number, _ in duplicate.examples] == [401, 402]
    assert several.examples[0][0] == 403
    assert diagnosis.dropped == {"duplicate": 2}
    assert only(diagnose(pairs * 2), "duplicate").severity == "warn"


def test_empty_pairs_are_not_duplicates() -> None:
    assert checks(diagnose([*healthy(), ("", ""), ("", "")])) == {"empty", "filter"}


def test_the_filter_finding_follows_the_settings_of_the_filter() -> None:
    pairs = [*healthy(), *healthy()[:10], ("", "leer"), ("copy", "copy")]
    finding = only(diagnose(pairs), "filter")
    assert finding.message == "The filter drops 11 of 412 pairs (2.7 %): 10 duplicate, 1 empty."
    diagnosis = diagnose(pairs, pair_filter=PairFilterConfig(drop_duplicates=False, drop_copies=True))
    assert diagnosis.dropped == {"empty": 1, "copy": 1}
    assert diagnosis.statistics["num_kept"] == 410


def test_too_few_pairs_stop() -> None:
    assert only(diagnose(healthy(99)), "few").severity == "stop"
    assert only(diagnose(healthy(100)), "few").severity == "warn"
    assert only(diagnose(healthy(9_999)), "few").severity == "warn"
    assert only(diagnose(healthy(60) * 2), "few").severity == "stop", "what the filter drops does not count"
    assert [finding.check for finding in diagnose([]).stops] == ["few"]
    assert [finding.check for finding in diagnose_text([]).stops] == ["few"]


def test_too_few_pairs_because_of_the_filter_are_reported_as_such() -> None:
    copies = PairFilterConfig(drop_copies=True)
    pairs = [(f"same {number}", f"same {number}") for number in range(150)]
    found = only(diagnose([*pairs, ("", "x")], pair_filter=copies), "few")
    assert found.severity == "stop"
    assert found.message == "The filter keeps 0 of 151 pairs to train on; it drops 150 copy, 1 empty."
    assert found.advice == "Check that these are the right files and columns."
    one = diagnose([*pairs, ("a", "b")], pair_filter=copies)
    both = only(with_parts(one, {"part 1": diagnose(pairs[:9] * 2)}), "few")
    assert both.message == "The filter keeps 10 of 169 pairs to train on; it drops 150 copy, 9 duplicate."
    assert only(diagnose(healthy(60) * 2), "few").advice == "Provide more data."
    alone = diagnose([("a", "b")])
    assert only(alone, "few").message == "There is 1 pair to train on; a model learns nothing from fewer than 100."
    assert alone.summary[0].startswith("train: 1 pair; a line has")


def test_the_number_of_pairs_is_judged_for_all_parts_together() -> None:
    small, other = diagnose(healthy(90)), diagnose(healthy(60, seed=2) * 2)
    enough = with_parts(small, {"part 1": diagnose(healthy(9920, seed=2))})
    assert not [finding for finding in enough.findings if finding.check == "few"]
    few = only(with_parts(small, {"part 1": other}), "few")
    assert (few.severity, few.count, few.total) == ("warn", 150, 210)
    assert only(with_parts(diagnose(healthy(9)), {"part 1": other}), "few").severity == "stop"
    assert only(with_parts(small, {}), "few").severity == "stop"


def out_of_step(num: int, start: int) -> Diagnosis:
    """The diagnosis of `num` pairs, of which the target `start` is missing."""
    src, tgt = (list(side) for side in zip(*healthy(num), strict=True))
    return diagnose(list(zip(src, [*tgt[:start], *tgt[start + 1 :], "Ende."], strict=True)))


def test_misaligned_files_are_detected_with_their_line() -> None:
    finding = only(out_of_step(6000, 5000), "misaligned")
    assert (finding.severity, finding.count, finding.total) == ("warn", 4, 24)
    assert "start at line 5,001, 5,251, 5,501, 5,751)" in finding.message
    assert only(out_of_step(6000, 0), "misaligned").severity == "stop"
    finding = only(out_of_step(3001, 1700), "misaligned")
    assert (finding.severity, finding.count, finding.total) == ("stop", 5, 12)


@pytest.mark.parametrize(
    ("begin", "end", "severity", "line"),
    [
        (1800, 3000, "stop", "1,801"), (1000, 1300, "warn", "901"), (0, 600, "warn", "1"), (2850, 3000, None, ""),
        (0, 3000, None, ""),
    ],
)  # fmt: skip
def test_an_exchanged_part_is_reported_with_its_first_line(
    begin: int, end: int, severity: str | None, line: str
) -> None:
    pairs = [pair[::-1] if begin <= number < end else pair for number, pair in enumerate(healthy(3000))]
    diagnosis = diagnose(pairs)
    if severity is None:
        assert "partly-swapped" not in checks(diagnosis)
    else:
        finding = only(diagnosis, "partly-swapped")
        assert finding.severity == severity
        assert finding.message.startswith(f"From about line {line} on, the two sides seem to be swapped")
        assert "same-language" not in checks(diagnosis)


@pytest.mark.parametrize("head", [("", ""), ("417", "417")])
def test_an_exchanged_part_is_detected_when_the_first_part_cannot_be_judged(head: tuple[str, str]) -> None:
    pairs = [pair[::-1] if number >= 1800 else pair for number, pair in enumerate(healthy(3000))]
    finding = only(diagnose([head] * 400 + pairs), "partly-swapped")
    assert finding.severity == "stop"


def test_parts_of_numbers_are_not_judged() -> None:
    """The exchanged part, the first that can be judged, is one of seven."""
    pairs = [pair[::-1] if number < 100 else pair for number, pair in enumerate(healthy(700))]
    finding = only(diagnose([("417", "417")] * 300 + pairs), "partly-swapped")
    assert (finding.severity, finding.count, finding.total) == ("warn", 1, 7)
    assert finding.message.startswith("From about line 301 on")


def test_two_directions_with_a_tag_each_are_a_warning() -> None:
    pairs = [
        (f"<2en> {tgt}", src) if number >= 1500 else (f"<2de> {src}", tgt)
        for number, (src, tgt) in enumerate(healthy(3000))
    ]
    finding = only(diagnose(pairs), "partly-swapped")
    assert finding.severity == "warn"
    assert "start with <2en>, elsewhere with <2de>." in finding.message


@pytest.mark.slow
def test_real_data_is_neither_exchanged_nor_misaligned(shared_data: Path) -> None:
    two = {"multi30k": ("train.en.gz", "train.fr.gz"), "small_parallel_enja": ("train.en.xz", "train.ja.xz")}
    two |= {f"lafand_en-{code}": ("train.en.xz", f"train.{code}.xz") for code in ("swa", "hau")}
    corpora = [CorpusFiles(*(shared_data / folder / name for name in names)) for folder, names in two.items()]
    for files in (*corpora, CorpusFiles(pairs=shared_data / "tatoeba_eng-vie" / "train.tsv.xz")):
        assert not checks(diagnose_files(files)) & {"misaligned", "partly-swapped", "swapped"}


def test_lengths_that_hardly_vary_are_not_judged() -> None:
    lengths = LengthCorrelation()
    rng = random.Random(1)
    for _ in range(1500):
        lengths.add("x" * 20, "y" * rng.randint(5, 80))
    lengths.close()
    assert (lengths.num_judged, lengths.unrelated) == (0, [])


def test_a_validation_set_that_is_in_training_stops() -> None:
    train, fresh = healthy(), healthy(100, seed=2)
    few = diagnose(train, [*fresh, train[7]])
    assert [finding.severity for finding in few.findings if finding.check == "leaked"] == ["note"]
    assert only(few, "leaked").examples == ((8, f"(validation line 101) {train[7][0]}"),)
    many = diagnose(train, fresh, [*fresh[:88], *train[:6], *train[:6]])
    finding = only(many, "leaked")
    assert finding.severity == "stop"
    assert finding.message == "12 of 100 test pairs (12.0 %) are in the training data."
    assert (
        "validation: 100 pairs. In the training data: 0 (0.0 %) of the pairs, 0 (0.0 %) of the sources, "
        "0 (0.0 %) of the targets." in many.summary
    )


def test_a_validation_source_with_another_target_in_training_is_a_warning() -> None:
    train, fresh = healthy(), healthy(100, seed=2)
    finding = only(
        diagnose(train, [*fresh[:50], *((src, tgt) for (src, _), (_, tgt) in zip(train, fresh[50:], strict=False))]),
        "leaked",
    )
    assert finding.severity == "warn"
    assert finding.message == "50 of 100 validation sources (50.0 %) are in the training data."


def decomposed(lines: Sequence[str]) -> list[str]:
    return [unicodedata.normalize("NFD", line) for line in lines]


def vietnamese(num: int = 400) -> list[Pair]:
    """Distinct pairs with Vietnamese targets, in NFC."""
    return [(src, f"Tiếng Việt: {tgt}") for src, tgt in healthy(num)]


def test_lines_are_compared_as_training_compares_them() -> None:
    train = vietnamese()
    others = [(src, unicodedata.normalize("NFD", tgt)) for src, tgt in train]
    leaked = [finding for finding in diagnose(train, others[:50], others[50:60]).stops if finding.check == "leaked"]
    assert [finding.message.split(" are ")[0] for finding in leaked] == [
        "50 of 50 validation pairs (100.0 %)", "10 of 10 test pairs (100.0 %)"
    ]  # fmt: skip
    repeated = diagnose([*train, *others])
    assert only(repeated, "duplicate").count == repeated.dropped["duplicate"] == 400
    assert "several-targets" not in checks(repeated)
    as_they_are = diagnose([*train, *others], normaliser=Normaliser(form="none"))
    assert only(as_they_are, "several-targets").count == 400 and not as_they_are.dropped
    capitals = [(src.upper(), tgt) for src, tgt in train]
    assert only(diagnose([*train, *capitals], normaliser=Normaliser(lowercase=True)), "duplicate").count == 400


def test_texts_are_compared_as_training_compares_them(tmp_path: Path) -> None:
    train = [tgt for _, tgt in vietnamese()]
    others = decomposed(train)
    assert only(diagnose_text(train, others[:50]), "leaked").count == 50
    assert only(diagnose_text([*train, *others]), "duplicate").count == 400
    files = [write(tmp_path / name, lines) for name, lines in (("nfc", train), ("nfd", others))]
    assert only(diagnose_text_files(*files), "leaked").count == 400
    as_they_are = Normaliser(form="none")
    assert "leaked" not in checks(diagnose_text_files(*files, normaliser=as_they_are))


def test_tagged_sentences_are_compared_as_training_compares_them() -> None:
    composed = [tuple(tgt.split()) for _, tgt in vietnamese()]
    train, others = (
        [TaggedSentence(tokens, ("O",) * len(tokens)) for tokens in sentences]
        for sentences in (composed, [tuple(decomposed(tokens)) for tokens in composed])
    )
    found = diagnose_conll([*train[:300], *others[200:]], others[:50])
    assert only(found, "duplicate").count == 100
    assert only(found, "leaked").count == 50


def test_validation_targets_that_were_translated_back_for_training_are_a_warning() -> None:
    train, fresh = healthy(), healthy(100, seed=2)
    back = [(f"{src} back", tgt) for src, (_, tgt) in zip((src for src, _ in train), fresh[:40], strict=False)]
    finding = only(diagnose([*train, *back], fresh), "leaked")
    assert finding.severity == "warn"
    assert finding.message == "40 of 100 validation targets (40.0 %) are in the training data."


def test_an_exchanged_validation_set_stops() -> None:
    valid = [(tgt, src) for src, tgt in healthy(30, seed=2)]
    assert only(diagnose(healthy(), valid), "swapped").severity == "stop"
    assert checks(diagnose(healthy(), valid[:19])) == set(), "so few lines tell nothing"


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        (("de", "en"), "The source looks like en and the target like de, but the opposite was given."),
        (("de", ""), "The target looks like de, but that is the language given for the source."),
        (("", "en"), "The source looks like en, but that is the language given for the target."),
        (("en", ""), ""), (("", "de"), ""), (("", ""), ""),
    ],
)  # fmt: skip
def test_exchanged_sides_are_reported_with_the_given_languages(languages: tuple[str, str], message: str) -> None:
    pairs = [("the dog is here and " * 3 + src, "der Hund ist nicht hier und " * 3 + tgt) for src, tgt in healthy()]
    found = [finding for finding in diagnose(pairs, languages=languages).findings if finding.check == "swapped"]
    assert [finding.message for finding in found] == [message] * bool(message)


def test_problems_of_a_validation_set_are_reported_only_when_they_matter() -> None:
    fresh = healthy(100, seed=2)
    diagnosis = diagnose(healthy(), [("", ""), *fresh[:-1]], [(src + "\0", tgt) for src, tgt in fresh])
    assert only(diagnosis, "nul").message.startswith("100 of 100 test source lines (100.0 %)")
    assert only(diagnosis, "empty").message == "1 of 100 validation pairs (1.0 %) have an empty side."


def test_one_language_on_both_sides_is_a_warning() -> None:
    pairs = healthy()
    same = [(src, other) for (src, _), (other, _) in zip(pairs, healthy(seed=2), strict=True)]
    assert only(diagnose(same), "same-language").severity == "warn"


def test_tokenised_text_is_noticed_and_its_mixture_with_plain_text_too() -> None:
    def tokenise(text: str) -> str:
        return text.replace(",", " ,").replace(".", " .")

    pairs = healthy()
    both = diagnose([(tokenise(src), tokenise(tgt)) for src, tgt in pairs])
    assert checks(both) == {"tokenised"}
    one = diagnose([(tokenise(src), tgt) for src, tgt in pairs])
    assert checks(one) == {"tokenised", "tokenised-differently"}
    valid = [(tokenise(src), tokenise(tgt)) for src, tgt in healthy(50, seed=2)]
    assert [finding.check for finding in diagnose(pairs, valid).findings].count("tokenised-differently") == 2


@pytest.mark.parametrize(("line", "is_tokenised"), [("{}時 に 、 犬 を 見た 。", True), ("{}時に、犬を見た。", False)])
def test_tokenised_text_is_noticed_by_the_stops_of_japanese_too(line: str, is_tokenised: bool) -> None:
    found = diagnose([(src, line.format(number)) for number, (src, _) in enumerate(healthy())])
    assert ("tokenised" in checks(found)) == is_tokenised


@pytest.mark.parametrize(
    ("lines", "language"),
    [
        (["犬は水を飲む。", "会議中", "彼はABCで働く。"], "ja"), (["他喜欢猫。", "会议", "DNA是分子。"], "zh"),
        (["สวัสดีครับ"], "th"), (["ສະບາຍດີ"], "lo"), (["សួស្តី"], "km"), (["မင်္ဂလာပါ"], "my"), (["A dog runs."], ""),
        (["Собака бежит."], ""), (["개가 달린다."], ""), (["犬は水を飲む。", "A dog.", "Two dogs."], ""),
        (["12", ""], ""), ([], ""),
    ],
)  # fmt: skip
def test_a_script_without_spaces_identifies_the_language(lines: list[str], language: str) -> None:
    assert language_by_script(lines) == language
    assert diagnose([("A dog.", line) for line in lines]).languages == {"src": "", "tgt": language}


def test_a_table_may_have_rows_that_are_not_translated() -> None:
    rows = [(src, "" if number % 4 == 0 else tgt) for number, (src, tgt) in enumerate(healthy())]
    assert only(diagnose(rows), "empty").severity == "stop"
    found = only(diagnose(rows, in_one_file=True), "empty")
    assert (found.severity, found.advice[:18]) == ("warn", "They are left out.")


def test_headings_give_the_languages(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Deutsch;Englisch\n" + "".join(f"{t};{s}\n" for s, t in healthy(200)), "utf-8")
    found = diagnose_files(CorpusFiles(pairs=tmp_path / "a.csv"))
    assert found.languages == {"src": "de", "tgt": "en"}
    assert found.summary[1].startswith('translates from German "')
    (tmp_path / "b.csv").write_text("".join(f"{t};{s}\n" for s, t in healthy(200)), "utf-8")
    assert diagnose_files(CorpusFiles(pairs=tmp_path / "b.csv")).languages == {"src": "", "tgt": ""}


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("one.tsv", b"source\na b\nc d\n", (None, None)), ("few.csv", b"en;de\na;b\n", ("en", 7)),
        ("latin.csv", "en;de\ngrün;grün\n".encode("latin-1") * 30, (None, None)),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_a_finding(
    name: str, content: bytes, columns: tuple[str | None, int | None], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    found = diagnose_files(CorpusFiles(pairs=tmp_path / name, src_column=columns[0], tgt_column=columns[1]))
    assert only(found, "unreadable").severity == "stop"


def csv_field(text: str, always: bool) -> str:
    """The text as a table's writer quotes it: always, or only where it holds a quote."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if always or doubled != text else text


@pytest.mark.parametrize(("always", "count"), [(True, 400), (False, 40)])
def test_tsv_that_is_quoted_as_csv_is_a_warning_unless_it_is_read_as_csv(
    tmp_path: Path, always: bool, count: int
) -> None:
    pairs = [
        (f'He said "{src}"', tgt) if number % 10 == 0 else (src, tgt) for number, (src, tgt) in enumerate(healthy())
    ]
    rows = ["\t".join(csv_field(side, always) for side in pair) for pair in pairs]
    table = write(tmp_path / "x.tsv", rows)
    finding = only_of_source(diagnose_files(CorpusFiles(pairs=table)), "csv-quotes")
    assert (finding.severity, finding.count, finding.total) == ("warn", count, 400)
    assert finding.message.endswith("are quoted as in CSV; the quotes are read as part of the text.")
    assert (
        "give it a name that ends in .csv (tabs may separate its columns; heed train also accepts --data.format"
        in finding.advice
    )
    as_csv = CorpusFiles(pairs=table, format="csv")
    assert list(read_pairs(as_csv)) == pairs
    assert "csv-quotes" not in checks(diagnose_files(as_csv))


def only_of_source(diagnosis: Diagnosis, check: str) -> Finding:
    [found] = [it for it in diagnosis.findings if it.check == check and "source" in it.message]
    return found


@pytest.mark.parametrize("spoil", ['"{}"', '"{}" said he.', 'The "{}"', '""{}""'])
def test_quotes_that_belong_to_the_text_are_accepted(spoil: str) -> None:
    assert checks(diagnose(spoilt(0.3, lambda src, tgt: (spoil.format(src), spoil.format(tgt))))) <= {"few"}


def test_unknown_pieces_are_counted_and_stop_above_a_fifth() -> None:
    vocabulary = {word: number for number, word in enumerate(WORDS, start=UNK_ID + 1)}

    def findings(lines: Sequence[str]) -> list[Finding]:
        ids = [[vocabulary.get(word, UNK_ID) for word in line.split()] for line in lines]
        return list(unknown_pieces("target", lines, ids))

    sources, targets = [src.split(",")[0] for src, _ in healthy()], [tgt for _, tgt in healthy()]
    assert findings(sources) == []
    [finding] = findings(targets)
    assert finding.severity == "stop"
    assert finding.total == sum(len(tgt.split()) for tgt in targets)
    assert f"{finding.count:,} of {finding.total:,} target tokens" in finding.message
    [finding] = findings([*(src + " xyz" for src in sources[:40]), *sources[40:]])
    assert (finding.count, finding.severity) == (40, "note")


def test_text_without_a_target_is_examined_too() -> None:
    train = [src for src, _ in healthy()]
    diagnosis = diagnose_text([*train, train[3], "short", "short", "<p>"], [*train[:20], *["short"] * 80])
    assert only(diagnosis, "duplicate").count == 1
    assert only(diagnosis, "markup").examples == ((404, "<p>"),)
    leaked = only(diagnosis, "leaked")
    assert (leaked.count, leaked.total, leaked.severity) == (20, 20, "stop"), "short lines recur in any text"


# Files


def write(path: Path, lines: Sequence[str], end: str = "\n") -> Path:
    data = "".join(f"{line}{end}" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_files_that_cannot_be_read_to_their_end_stop_with_the_message_of_the_reader(tmp_path: Path) -> None:
    src, tgt = zip(*healthy(), strict=True)
    files = CorpusFiles(write(tmp_path / "a.en", src), write(tmp_path / "a.de.gz", tgt[:-1]))
    diagnosis = diagnose_files(files)
    assert diagnosis.num_pairs == 399
    assert "a.en has 400 lines" in only(diagnosis, "unreadable").message
    assert diagnosis.stops[0].check == "unreadable"
    (tmp_path / "a.de.gz").write_bytes((tmp_path / "a.de.gz").read_bytes()[:-20])
    assert "ends unexpectedly" in only(diagnose_files(files), "unreadable").message
    (tmp_path / "a.en").write_bytes(b"gr\xfc\xdfe\n")
    assert (
        "a.en:1: byte 3 is not valid UTF-8"
        in only(diagnose_files(CorpusFiles(tmp_path / "a.en", tmp_path / "a.en")), "unreadable").message
    )
    assert only(diagnose_text_files(tmp_path / "a.en"), "unreadable").severity == "stop"
    assert only(diagnose_text_files(tmp_path / "a.en", errors="replace"), "damaged").count == 1
    with pytest.raises(MissingInputError):
        diagnose_files(files, CorpusFiles(tmp_path / "b.en", tmp_path / "b.de"))


def test_windows_line_ends_are_noted_and_removed(tmp_path: Path) -> None:
    src, tgt = zip(*healthy(), strict=True)
    valid = zip(*healthy(50, seed=2), strict=True)
    diagnosis = diagnose_files(
        CorpusFiles(write(tmp_path / "a.en", src, "\r\n"), write(tmp_path / "a.de", tgt)),
        CorpusFiles(*(write(tmp_path / f"v.{number}", side) for number, side in enumerate(valid))),
    )
    assert checks(diagnosis) == {"crlf"}
    assert only(diagnosis, "crlf").message.startswith("a.en: 400 of 400 lines have Windows line ends (CRLF)")
    assert {name: set(parts) for name, parts in diagnosis.fingerprints.items()} == {
        "train": {"src", "tgt"},
        "validation": {"src", "tgt"},
    }
    assert diagnosis.fingerprints["train"]["tgt"]["lines"] == 400


def test_lines_that_end_as_on_old_macs_stop_with_advice(tmp_path: Path) -> None:
    src, tgt = zip(*healthy(), strict=True)
    old, new = write(tmp_path / "a.en", src, "\r"), write(tmp_path / "a.de", tgt)
    for diagnosis in (
        diagnose_files(CorpusFiles(old, write(tmp_path / "b.de", tgt, "\r"))), diagnose_files(CorpusFiles(old, new)),
        diagnose_text_files(old),
    ):  # fmt: skip
        found = diagnosis.stops[-1] if diagnosis.stops[0].check == "unreadable" else diagnosis.stops[0]
        assert (found.check, found.count) == ("old-mac", 400)
        assert found.message.endswith("lines end in carriage returns, as on old Macs: 400 of them.")
        assert found.advice == "Convert them to line feeds: `tr '\\r' '\\n' < F > G`."
        assert "carriage-return" not in checks(diagnosis)
    paragraphs = [(f"one\rtwo {src}", f"eins\rzwei {tgt}") for src, tgt in healthy()]
    assert checks(diagnose(paragraphs)) == {"carriage-return"}


@pytest.mark.parametrize(("encoding", "rest"), [("UTF-16LE", [""]), ("UTF-16BE", [])])
def test_most_lines_with_nul_characters_mean_utf_16(encoding: str, rest: list[str], tmp_path: Path) -> None:
    src, tgt = zip(*healthy(), strict=True)
    bare = tmp_path / "a.en"
    bare.write_bytes("".join(f"{line}\n" for line in src).encode(encoding))
    found = only(diagnose_files(CorpusFiles(bare, write(tmp_path / "a.de", [*tgt, *rest]))), "nul")
    assert (found.severity, found.count) == ("stop", 400 + len(rest))
    assert f"the file is UTF-16: convert it with `iconv -f {encoding} -t UTF-8`" in found.advice
    assert f"`iconv -f {encoding} -t UTF-8`" in only(diagnose_text_files(bare), "nul").advice
    some = [(f"{src}\0" if number % 3 == 0 else src, tgt) for number, (src, tgt) in enumerate(healthy())]
    assert only(diagnose(some), "nul").severity == "warn"


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
def test_a_table_in_utf_16_is_in_one_encoding(encoding: str, tmp_path: Path) -> None:
    good, table = tmp_path / "good.tsv", tmp_path / "a.tsv"
    text = "".join(f"{src}\t{tgt.replace('ß', 'ss')}\n" for src, tgt in healthy())
    good.write_text(text)
    table.write_bytes(text.encode(encoding))
    for src_column, tgt_column in ((1, 2), (2, 1)):
        files = CorpusFiles(pairs=table, src_column=src_column, tgt_column=tgt_column)
        for diagnosis in (diagnose_files(files), diagnose_files(CorpusFiles(pairs=good), files)):
            advice = [finding.advice for finding in diagnosis.findings if finding.check == "nul"]
            assert [f"`iconv -f {encoding} -t UTF-8`" in text for text in advice] == [True, True]


def test_the_diagnosis_of_multi30k_stops_nothing(shared_data: Path) -> None:
    def files(name: str) -> CorpusFiles:
        return CorpusFiles(*(shared_data / "multi30k" / f"{name}.{language}.gz" for language in ("en", "de")))

    diagnosis = diagnose_files(files("train"), files("val"), files("test_2016_flickr"))
    assert diagnosis.num_pairs == 29_000
    assert {finding.severity for finding in diagnosis.findings} == {"note"}
    assert only(diagnosis, "duplicate").count == 3
    assert diagnosis.statistics["num_kept"] == 28_995
    assert diagnosis.fingerprints["train"]["src"]["bytes"] == 568_929


# How it is shown


def test_the_worst_finding_comes_first_and_examples_show_invisible_characters() -> None:
    pairs = [*spoilt(0.15, lambda src, tgt: ("", tgt)), ("x" * 200 + "\0" + "y" * 200, "z" * 300 + " u\u0308")]
    text = diagnose(pairs).render(width=80)
    lines = text.splitlines()
    assert lines[0].startswith("train: 401 pairs; a line has source ")
    assert any(line.startswith('translates from "') for line in lines[: lines.index("")])
    assert (
        lines[lines.index("") + 1] == "STOP  60 of 401 pairs (15.0 %) have an empty side. Check whether the files are"
    )
    assert f"line 401: …{'x' * 45}<U+0000>{'y' * 44}…" in text
    severities = [line[:4] for line in lines[lines.index("") :] if line[:4].strip()]
    assert severities == sorted(severities, key=["STOP", "warn", "note"].index)


def test_a_diagnosis_becomes_json_and_fits_on_a_screen() -> None:
    rng = random.Random(1)

    def spoil(src: str, tgt: str) -> Pair:
        for _, change, _ in rng.sample(FAULTS, 3):
            src, tgt = change(src, tgt)
        return src, tgt

    diagnosis = diagnose([*spoilt(1.0, spoil), *healthy()[:50] * 2], healthy(100))
    assert len(diagnosis.findings) > 12
    assert len(diagnosis.render().splitlines()) <= 80
    data = json.loads(json.dumps(diagnosis.to_json()))
    assert data["num_pairs"] == 500
    assert [finding["check"] for finding in data["findings"]] == [finding.check for finding in diagnosis.findings]


# The parts


def test_an_even_sample_is_spread_over_the_whole_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EvenSample, "SIZE", 10)
    sample = EvenSample()
    for number in range(1000):
        sample.add(str(number))
    numbers = [int(line) for line in sample.lines]
    assert 10 <= len(numbers) <= 20
    assert {later - earlier for earlier, later in pairwise(numbers)} == {64}
    assert numbers[-1] > 900


@pytest.mark.parametrize(("size", "seed"), [(3, 1), (11, 2)])
def test_counts_of_parts_add_up_to_those_of_the_whole(size: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is read back from JSON; blocks of lengths, samples and examples cross the bounds of parts."""
    monkeypatch.setattr(LengthCorrelation, "BLOCK", 20)
    monkeypatch.setattr(LengthCorrelation, "SMALLEST_BLOCK", 10)
    monkeypatch.setattr(EvenSample, "SIZE", size)
    pairs, valid, test = messy_pairs(500, seed), messy_pairs(30, seed), messy_pairs(40, seed + 9)
    lines = [src for src, _ in pairs]
    bounds = sorted(random.Random(seed).sample(range(1, 500), 12))
    whole = diagnose(pairs, valid, test), diagnose_text(lines, lines[:30], [src for src, _ in test])
    of_pairs: Any = PairExamination(valid, test)
    of_text: Any = TextExamination(lines[:30], [src for src, _ in test])
    for examination, rows, expected in ((of_pairs, pairs, whole[0]), (of_text, lines, whole[1])):
        seen: list[set[int]] = [set() for _ in range(examination.num_keys)]
        parts = []
        for begin, end in pairwise([0, *bounds, 500]):
            counts = examination.begin(begin, 500)
            for number, row in enumerate(rows[begin:end], start=begin + 1):
                keys = examination.keys(row)
                are_new = [key == 0 or key not in its for key, its in zip(keys, seen, strict=True)]
                examination.add(counts, number, row, keys, are_new)
                for key, its in zip(keys, seen, strict=True):
                    its.add(key)
            adapter = TypeAdapter[Any](type(counts))
            parts.append(adapter.validate_json(adapter.dump_json(counts)))
        for part in parts[1:]:
            parts[0].merge(part)
        assert examination.diagnosis(parts[0], to_exchange="Swap the two sides.") == expected
    assert {"misaligned", "leaked", "duplicate", "several-targets"} <= {finding.check for finding in whole[0].findings}


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


@given(pairs=st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=5))
def test_any_text_can_be_diagnosed(pairs: list[Pair]) -> None:
    diagnosis = diagnose(pairs, pairs)
    diagnosis.render().encode()
    assert diagnosis.num_pairs == len(pairs)
    assert all(0 < finding.count <= finding.total or finding.check == "few" for finding in diagnosis.findings)
    assert diagnose_text([src for src, _ in pairs]).num_pairs == len(pairs)


class PlainSet:
    """A plain equivalent of `HashSet`."""

    def __init__(self) -> None:
        self.keys: set[int] = set()

    def add(self, key: int) -> bool:
        new = key not in self.keys
        self.keys.add(key)
        return new


def test_the_findings_are_the_same_with_pythons_own_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """For repeated pairs and sources with several targets, in a corpus large enough for the sets to grow."""
    dice = random.Random(5)
    pairs = healthy(2500)
    pairs += [pairs[dice.randrange(2500)] for _ in range(700)]
    pairs += [(pairs[dice.randrange(2500)][0], f"anders {number}.") for number in range(300)]
    lines = [src for src, _ in pairs]
    dice.shuffle(pairs)
    found = diagnose(pairs), diagnose_text(lines)
    for module in ("heed.text.doctor.diagnose", "heed.text.pair_filter"):
        monkeypatch.setattr(sys.modules[module], "HashSet", PlainSet)
    assert found == (diagnose(pairs), diagnose_text(lines))
    assert {"duplicate", "several-targets"} <= {finding.check for finding in found[0].findings}
