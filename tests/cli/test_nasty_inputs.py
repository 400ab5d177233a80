"""Tests of wrong input: the message and the exit code of each verb.

One table of inputs for all verbs that read files, and one of what each verb alone can be given.
"""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import struct
import zlib
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard
from command import Result, call
from toy import TINY, WORDS, flags, pairs, unchecked_shapes, write_lines

from heed.data.validation import read_valid
from heed.run import Run

SHORT = flags(
    {**TINY, "training.max_steps": 1, "training.eval_every": 1, "training.average": "none", "data.hold_out": 8}
)
NUM_PAIRS = 120


def write_both(folder: Path, number: int = NUM_PAIRS) -> None:
    """Toy pairs in two files."""
    for name, side in (("x.aa", 0), ("x.bb", 1)):
        write_lines(folder / name, [pair[side] for pair in pairs(number)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `x.aa` and `x.bb`, which is the current one, so that messages show the bare names."""
    write_both(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*words: object, out: str = "run") -> Result:
    """One update of a tiny model."""
    return call("train", "--task", "translation", *words, "--out", out, *SHORT, "--quiet")


def evaluate(translator: Path, src: str, ref: str, *words: object) -> Result:
    """Greedy search; the translations are written to `out`."""
    return call("evaluate", translator, "--src", src, "--ref", ref, "--beam", "1", "--out", "out", "--quiet", *words)


def score(translator: Path, src: str, tgt: str) -> Result:
    """Score the target file on stdin."""
    return call("score", translator, "--src", src, "--quiet", stdin=Path(tgt).read_bytes())


def replace_line(content: bytes, number: int, line: bytes) -> bytes:
    """The content with another line in the place of `number`, counted from 1."""
    lines = content.split(b"\n")
    return b"\n".join([*lines[: number - 1], line, *lines[number:]])


def lines_of(path: str) -> list[str]:
    """The lines of a file; only a line feed ends one."""
    return Path(path).read_bytes().decode().removesuffix("\n").split("\n")


# Inputs that are odd and good


SAME: dict[str, Callable[[bytes], bytes]] = {
    "byte-order mark": lambda text: b"\xef\xbb\xbf" + text,
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "no final line end": lambda text: text[:-1],
}
"""Changes that make no difference."""
FEW = 20
"""Pairs that are enough for all but a training."""


def results(translator: Path) -> list[object]:
    """The results for `x.aa` and `x.bb`: translations, scores, a table and a diagnosis."""
    checked = json.loads(call("data", "check", "x.aa", "x.bb", "--json").out)
    return [
        call("translate", translator, "--beam", "1", stdin=Path("x.aa").read_bytes()).out,
        score(translator, "x.aa", "x.bb").out,
        evaluate(translator, "x.aa", "x.bb").out,
        (checked["num_pairs"], [f["check"] for f in checked["findings"] if f["check"] != "crlf"]),
    ]


@pytest.fixture(scope="module")
def plain_results(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The results of the plain files."""
    folder = tmp_path_factory.mktemp("plain")
    write_both(folder, FEW)
    with chdir(folder), unchecked_shapes():
        return results(translator)


@pytest.mark.parametrize("kind", SAME)
def test_marks_and_line_ends_make_no_difference(
    kind: str, here: Path, translator: Path, plain_results: list[object]
) -> None:
    write_both(here, FEW)
    for name in ("x.aa", "x.bb"):
        Path(name).write_bytes(SAME[kind](Path(name).read_bytes()))
    assert results(translator) == plain_results


def test_marks_and_line_ends_make_no_difference_to_a_training(here: Path) -> None:
    assert train("--src", "x.aa", "--tgt", "x.bb", out="plain").code == 0
    for change in reversed(SAME.values()):  # the line end goes before the others change
        for name in ("x.aa", "x.bb"):
            Path(name).write_bytes(change(Path(name).read_bytes()))
    assert train("--src", "x.aa", "--tgt", "x.bb").code == 0
    assert Path("run/model.safetensors").read_bytes() == Path("plain/model.safetensors").read_bytes()


ODD: dict[str, bytes] = {
    "NUL": b"ba\x00 ce",
    "lone CR": b"ba\rce",
    "U+2028": "ba\u2028ce".encode(),
    "U+0085": "ba\u0085ce".encode(),
    "form feed and vertical tab": b"ba\x0bce\x0cdi",
    "an empty line": b"",
    "only spaces": b"   ",
    "a byte-order mark inside": "ba \ufeffce".encode(),
    "control tokens": b"</s> <pad> ba",
}
"""Lines that are still one line each."""

MEGABYTE = b"ba ce di fo " * 85_000


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_line_is_one_line(kind: str, here: Path, translator: Path) -> None:
    Path("x.aa").write_bytes(replace_line(Path("x.aa").read_bytes(), 3, ODD[kind]))
    checked = call("data", "check", "x.aa", "x.bb", "--json")
    assert (checked.code, json.loads(checked.out)["num_pairs"]) == (0, NUM_PAIRS), checked.err
    translated = call("translate", translator, "--beam", "1", stdin=Path("x.aa").read_bytes())
    assert (translated.code, len(translated.lines)) == (0, NUM_PAIRS), translated.err


def test_a_corpus_with_every_odd_line_trains_and_tests(here: Path, translator: Path) -> None:
    content = Path("x.aa").read_bytes()
    for number, line in enumerate(ODD.values(), start=3):
        content = replace_line(content, number, line)
    Path("x.aa").write_bytes(content)
    trained = train("--src", "x.aa", "--tgt", "x.bb")
    assert trained.code == 0, trained.err
    num_empty = 2
    assert Run("run").corpus["dropped"] == {"empty": num_empty}
    assert Run("run").corpus["num_rows"] + Run("run").corpus["num_valid"] == NUM_PAIRS - num_empty
    translated = call("translate", translator, "--beam", "1", stdin=content)
    evaluated = evaluate(translator, "x.aa", "x.bb")
    assert evaluated.code == 0, evaluated.err
    assert lines_of("out") == translated.lines
    scored = score(translator, "x.aa", "x.bb")
    assert (scored.code, len(scored.lines)) == (0, NUM_PAIRS), scored.err


@pytest.mark.parametrize("line", [MEGABYTE[:200_000], pytest.param(MEGABYTE * 10, marks=pytest.mark.slow)], ids=len)
def test_a_very_long_line_is_one_line(line: bytes, here: Path, translator: Path) -> None:
    content = replace_line(Path("x.aa").read_bytes(), 3, line)
    Path("x.aa").write_bytes(content)
    trained = train("--src", "x.aa", "--tgt", "x.bb")
    assert trained.code == 0, trained.err
    assert Run("run").corpus["dropped"] == {"too long": 1}
    translated = call("translate", translator, "--beam", "1", stdin=content)
    assert (translated.code, len(translated.lines)) == (0, NUM_PAIRS), translated.err


@pytest.mark.slow
def test_a_test_line_of_ten_megabytes_is_scored(here: Path, translator: Path) -> None:
    Path("x.aa").write_bytes(replace_line(Path("x.aa").read_bytes(), 3, MEGABYTE * 10))
    evaluated = evaluate(translator, "x.aa", "x.bb")
    assert evaluated.code == 0, evaluated.err
    assert len(lines_of("out")) == NUM_PAIRS


def test_a_line_that_is_too_long_to_be_scored_is_refused(here: Path, translator: Path, bigram: Path) -> None:
    long = b"ba ce di fo " * 10_000 + b"\nba\n"
    result = call("score", translator, "--src", "x.aa", stdin=long)
    assert result.code == 65
    assert "tokens, but at most 10,000 can be scored at once: split it into sentences" in result.err
    assert len(call("score", bigram, "--quiet", stdin=long).lines) == 2, "a model that counts takes any length"


def test_a_validation_line_of_a_megabyte_is_left_out(here: Path) -> None:
    unseen = pairs(NUM_PAIRS, seed=7, longest=9)
    write_lines(here / "v.aa", [MEGABYTE.decode(), *(src for src, _ in unseen)])
    write_lines(here / "v.bb", ["kan", *(tgt for _, tgt in unseen)])
    result = train("--src", "x.aa", "--tgt", "x.bb", "--valid-src", "v.aa", "--valid-tgt", "v.bb")
    assert result.code == 0, result.err
    assert len(read_valid(Path("run"))) == NUM_PAIRS


# Inputs that are wrong

PARTED = (
    "but line k of one must be the translation of line k of the other. Find where they diverge (`paste` shows both "
    "side by side), or export both again."
)
LATIN = (
    "If the file is Windows-1252, convert it with `iconv -f WINDOWS-1252 -t UTF-8`; otherwise pass --errors replace."
)
CUT = "ends unexpectedly in its first line. The archive is damaged or incomplete: copy or create it again."


@dataclass(frozen=True)
class Wrong:
    """A source file that is wrong, with the exit code and the message."""

    code: int
    message: str
    name: str = "x.aa"
    make: Callable[[bytes], bytes | None] = bytes
    """Turns the good content into the bad one; None: there is no file."""


def cut_off(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The first bytes of an archive."""
    return lambda text: compress(text)[:30]


WRONG = {
    "invalid UTF-8": Wrong(
        65, f"x.aa:3: byte 3 is not valid UTF-8 (0xE4). {LATIN}", make=lambda text: replace_line(text, 3, b"ba\xe4")
    ),
    "UTF-16": Wrong(
        65,
        "x.aa:1: byte 1 is not valid UTF-8 (0xFF). The file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
        make=lambda text: text.decode().encode("utf-16"),
    ),
    "a spreadsheet": Wrong(
        65,
        'x.aa is not text but a zip archive or a spreadsheet: unzip it, or save the sheet as "CSV UTF-8".',
        make=lambda text: b"PK\x03\x04\x14\x00\xff" + text,
    ),
    "an archive without its ending": Wrong(
        65, "x.aa is not text but a .gz archive: give it a name that ends in .gz, and heed decompresses it.",
        make=gzip.compress,
    ),
    "no archive": Wrong(65, "x.aa.gz is not a .gz archive. If it is plain text, remove .gz from its name.", "x.aa.gz"),
    "a .gz cut off": Wrong(65, f"x.aa.gz {CUT}", "x.aa.gz", cut_off(gzip.compress)),
    "an .xz cut off": Wrong(65, f"x.aa.xz {CUT}", "x.aa.xz", cut_off(lzma.compress)),
    "a .zst cut off": Wrong(65, f"x.aa.zst {CUT}", "x.aa.zst", cut_off(zstandard.compress)),
    "a line less": Wrong(
        65, f"x.aa has 119 lines, x.bb has 120, {PARTED}", make=lambda text: text[: text.rindex(b"\n", 0, -1) + 1]
    ),
    "a line more": Wrong(65, f"x.aa has 121 lines, x.bb has 120, {PARTED}", make=lambda text: text + b"ba\n"),
    "an empty file": Wrong(65, f"x.aa has 0 lines, x.bb has 120, {PARTED}", make=lambda text: b""),
    "no file": Wrong(66, "y.aa does not exist. Did you mean x.aa?", "y.aa", lambda text: None),
    "a folder": Wrong(66, "folder is a folder; give a file.", "folder", lambda text: None),
}  # fmt: skip


def prepare(wrong: Wrong) -> None:
    """Put the wrong file in its place."""
    Path("folder").mkdir()
    content = wrong.make(Path("x.aa").read_bytes())
    if content is not None:
        Path(wrong.name).write_bytes(content)


@pytest.mark.parametrize("kind", WRONG)
def test_train_refuses_a_wrong_file_and_makes_no_run(kind: str, here: Path) -> None:
    wrong = WRONG[kind]
    prepare(wrong)
    result = train("--src", wrong.name, "--tgt", "x.bb")
    before = "The training data cannot be read to its end. " if wrong.code == 65 else ""
    assert (result.code, result.err) == (wrong.code, f"error: {before}{wrong.message}\n")
    assert not Path("run").exists()
    assert train("--src", wrong.name, "--tgt", "x.bb", "--force").err == result.err, "force reads nothing either"


@pytest.mark.parametrize("kind", WRONG)
def test_evaluate_refuses_a_wrong_file(kind: str, here: Path, translator: Path) -> None:
    wrong = WRONG[kind]
    prepare(wrong)
    result = evaluate(translator, wrong.name, "x.bb")
    assert (result.code, result.err, result.out) == (wrong.code, f"error: {wrong.message}\n", "")


@pytest.mark.parametrize("kind", WRONG)
def test_data_check_reports_a_wrong_file(kind: str, here: Path) -> None:
    wrong = WRONG[kind]
    prepare(wrong)
    result = call("data", "check", wrong.name, "x.bb", "--json")
    assert result.code == wrong.code
    if wrong.code == 66:
        assert (result.err, result.out) == (f"error: {wrong.message}\n", "")
    else:
        first = json.loads(result.out)["findings"][0]
        assert first["message"] == f"The training data cannot be read to its end. {wrong.message}"
        assert [f["check"] for f in json.loads(result.out)["findings"] if f["severity"] == "stop"] == ["unreadable"]


@pytest.mark.parametrize("kind", [kind for kind in WRONG if "line" not in kind and kind != "an empty file"])
def test_score_refuses_a_wrong_file(kind: str, here: Path, translator: Path) -> None:
    wrong = WRONG[kind]
    prepare(wrong)
    result = score(translator, wrong.name, "x.bb")
    assert (result.code, result.err) == (wrong.code, f"error: {wrong.message}\n")


@pytest.mark.parametrize(
    ("num_sources", "message"),
    [
        (119, "x.aa has 119 lines, stdin has more"),
        (121, "x.aa has 121 lines, stdin has 120"),
        (0, "x.aa has 0 lines, "),
    ],
)
def test_score_requires_a_source_for_each_line(num_sources: int, message: str, here: Path, translator: Path) -> None:
    write_lines(here / "x.aa", ["ba"] * num_sources)
    result = score(translator, "x.aa", "x.bb")
    assert result.code == 65
    assert result.err.startswith(f"error: {message}")
    assert result.err.endswith(". They must be parallel.\n")


@pytest.mark.parametrize("verb", ["translate", "score"])
def test_invalid_utf8_on_stdin_is_reported_after_the_lines_before_it(verb: str, translator: Path, bigram: Path) -> None:
    result = call(verb, translator if verb == "translate" else bigram, stdin=b"ba\nce\nd\xffi\nfo\n")
    assert (result.code, len(result.lines)) == (65, 2)
    assert result.err == f"error: standard input:3: byte 2 is not valid UTF-8 (0xFF). {LATIN}\n"
    utf16 = call(verb, translator if verb == "translate" else bigram, stdin="ba\nce\n".encode("utf-16"))
    assert (utf16.code, utf16.out) == (65, "")
    assert "The file is UTF-16" in utf16.err


def test_invalid_utf8_is_replaced_on_request(here: Path, translator: Path) -> None:
    Path("x.aa").write_bytes(replace_line(Path("x.aa").read_bytes(), 3, b"ba\xe4"))
    replaced = ("--errors", "replace")
    assert train("--src", "x.aa", "--tgt", "x.bb", *replaced).code == 0
    assert Run("run").recipe.data.errors == "replace"
    assert evaluate(translator, "x.aa", "x.bb", *replaced).code == 0
    assert call("score", translator, "--src", "x.aa", *replaced, stdin=Path("x.bb").read_bytes()).code == 0
    checked = call("data", "check", "x.aa", "x.bb", *replaced, "--json")
    assert checked.code == 0
    assert "damaged" in {finding["check"] for finding in json.loads(checked.out)["findings"]}


def test_a_file_without_permission_is_reported(here: Path, translator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated, because tests may run as root, who may read everything."""
    plain = Path.open

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "x.aa":
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    expected = (66, "error: x.aa: permission denied. Check the access rights of the file and its folder.\n")
    for result in (
        train("--src", "x.aa", "--tgt", "x.bb"),
        evaluate(translator, "x.aa", "x.bb"),
        call("data", "check", "x.aa", "x.bb"),
        score(translator, "x.aa", "x.bb"),
    ):
        assert (result.code, result.err) == expected


def test_two_empty_files_are_reported(here: Path, translator: Path) -> None:
    for name in ("x.aa", "x.bb"):
        Path(name).write_bytes(b"")
    trained = train("--src", "x.aa", "--tgt", "x.bb")
    assert trained.code == 65
    assert (
        "There are 0 pairs to train on; a model learns nothing from fewer than 100. Provide more data." in trained.err
    )
    assert evaluate(translator, "x.aa", "x.bb").code == 65
    assert call("data", "check", "x.aa", "x.bb").code == 65
    for verb in ("translate", "score"):
        words = ("--src", "x.aa") if verb == "score" else ()
        result = call(verb, translator, *words, stdin=b"")
        assert (result.code, result.out, result.err) == (0, "", "")


RECORDS: dict[str, tuple[str, bytes, str]] = {
    "a TSV row without its columns": (
        "r.tsv", b"ba\tkan\nce\n",
        "r.tsv:2: 1 column, but the source is column 1 and the target column 2. "
        "Fields are separated by one tab each.",
    ),
    "a CSV row without its columns": (
        "r.csv", b"ba,kan\nce\n",
        "r.csv:2: 1 column, but the source is column 1 and the target column 2. "
        "Fields are separated by commas here.",
    ),
    "a CSV quote without end": (
        "r.csv", b'ba,kan\n"ce,ler\n',
        "r.csv:2: not CSV (unexpected end of data). Quote fields that contain a delimiter or a line break, and double "
        "any quote inside quotes.",
    ),
    "a bad JSONL line": (
        "r.jsonl", b'{"src": "ba", "tgt": "kan"}\n{"src": "ce", "tgt"\n',
        "r.jsonl:2: not JSON (Expecting ':' delimiter). Each line must be one JSON object.",
    ),
    "a JSONL line without a field": (
        "r.jsonl", b'{"src": "ba", "target": "kan"}\n', "r.jsonl:1: no field 'tgt'; it has 'src', 'target'. "
        "Name the fields: --src-column NAME --tgt-column NAME.",
    ),
    "a JSONL field that is no text": (
        "r.jsonl", b'{"src": "ba", "tgt": 7}\n', "r.jsonl:1: field 'tgt' is a number; it must be a string.",
    ),
    "a TMX that is no XML": (
        "r.tmx", b"<tmx><body><tu>\n</body>", "r.tmx:2: not well-formed XML (mismatched tag). Export the memory again.",
    ),
    "a TMX without the languages": (
        "r.tmx", b"<tmx><tu><tuv lang='fr'><seg>a</seg></tuv></tu></tmx>",
        "r.tmx: no unit has both aa and bb; its units are in fr (1).",
    ),
    "a Parquet file that is none": (
        "r.parquet", b"PAR1",
        "r.parquet: not a readable Parquet file (Parquet file size is 4 bytes, smaller than the minimum file footer (8 "
        "bytes)).",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RECORDS)
def test_records_that_are_wrong_are_refused_by_every_verb(kind: str, here: Path, translator: Path) -> None:
    name, content, message = RECORDS[kind]
    Path(name).write_bytes(content)
    languages = ("--src-lang", "aa", "--tgt-lang", "bb")
    trained = train("--pairs", name, *languages)
    assert (trained.code, trained.err) == (65, f"error: The training data cannot be read to its end. {message}\n")
    checked = call("data", "check", name, *languages, "--json")
    assert checked.code == 65
    first = json.loads(checked.out)["findings"][0]
    assert first["message"] == f"The training data cannot be read to its end. {message}"
    evaluated = call("evaluate", translator, "--pairs", name, "--quiet")
    assert (evaluated.code, evaluated.err) == (65, f"error: {message}\n")


# The wrong way round

ENGLISH = [
    "the dog is in the house and it sees you", "we are on the street but they have no water",
    "this is a man with his cat",
]  # fmt: skip
GERMAN = [
    "der Hund ist im Haus und er sieht dich", "wir sind auf der Straße aber sie haben kein Wasser",
    "das ist ein Mann mit der Katze",
]  # fmt: skip


def write_languages(*names: str) -> None:
    """Two files with many English and German lines."""
    for name, sentences in zip(names, (ENGLISH, GERMAN), strict=True):
        lines = [f"{sentences[i % 3]} {' '.join(list(WORDS)[j] for j in (i % 12, i // 12))}" for i in range(NUM_PAIRS)]
        write_lines(Path(name), lines)


EXCHANGED = (
    "The source looks like en and the target like de, but the opposite was given. "
    "Swap the two sides, or give --src-lang en --tgt-lang de."
)


WRONG_CONLL: dict[str, tuple[str, list[str], int, str]] = {
    "ragged rows": (
        "Ann I-PER\nmet\n\n", [], 65,
        "The training data cannot be read to its end. x.conll:2: the row has 1 column ('met'), the rows before it 2. "
        "Each row is a token and its tags, separated by spaces or tabs; a blank line ends a sentence.",
    ),
    "no tags": (
        "Ann\nmet\n\n", [], 65,
        "The training data cannot be read to its end. x.conll: the rows have one column ('Ann'), so there are no tags. "
        "Each row is a token and its tags, separated by spaces or tabs.",
    ),
    "an empty file": (
        "", [], 65,
        "The training data cannot be read to its end. x.conll has no tokens. Each row is a token and its tags; a blank "
        "line ends a sentence.",
    ),
    "one tag": (
        "Ann O\nmet O\n\n" * 30, [], 65,
        "this data would ruin the run:\n  All tokens have the same tag, O: there is nothing to learn. Is it the right "
        "column? Name another one with --tag-column.\nFix it, or continue with --force.",
    ),
    "few sentences": (
        "Ann I-PER\nmet O\n\n" * 3, [], 65,
        "this data would ruin the run:\n  There are 3 sentences; a model learns nothing from fewer than 20. Provide "
        "more data.\nFix it, or continue with --force.",
    ),
    "no blank lines": (
        "Ann I-PER\nmet O\n" * 400 + "\n" + "Ann I-PER\nmet O\n\n" * 30, [], 65,
        "this data would ruin the run:\n  1 of 31 training sentences (3.2 %) have more than 256 words (93.0 % of the "
        "words). They are left out of training (data.max_tokens). A blank line ends a sentence.\n"
        "Fix it, or continue with --force.",
    ),
    "no blank line at all": (
        "Ann I-PER\nmet O\n" * 400, [], 65,
        "this data would ruin the run:\n  1 of 1 training sentences (100.0 %) have more than 256 words (100.0 % of the "
        "words). They are left out of training (data.max_tokens). A blank line ends a sentence.\n  There are 1 "
        "sentences; a model learns nothing from fewer than 20. Provide more data.\nFix it, or continue with --force.",
    ),
    "no such column": (
        "Ann I-PER\n\n", ["--tag-column", "5"], 65,
        "The training data cannot be read to its end. x.conll has 2 columns, and no column 5. Name the column of the "
        "tags, counted from 1: --tag-column 2 (in CoNLL-U: upos, xpos, ...).",
    ),
    "no such name": (
        "Ann I-PER\n\n", ["--tag-column", "upos"], 65,
        "The training data cannot be read to its end. x.conll has no column 'upos': its columns have no names. Name "
        "the column of the tags, counted from 1: --tag-column 2 (in CoNLL-U: upos, xpos, ...).",
    ),
    "the tokens as tags": (
        "Ann I-PER\n\n", ["--tag-column", "1"], 2,
        "x.conll: column 1 cannot be both the token and the tag. Name the column of the tags, counted from 1: "
        "--tag-column 2 (in CoNLL-U: upos, xpos, ...).",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG_CONLL)
def test_train_refuses_a_wrong_conll_file_and_makes_no_run(kind: str, here: Path) -> None:
    content, more, code, message = WRONG_CONLL[kind]
    Path("x.conll").write_text(content)
    result = call("train", "--conll", "x.conll", "--out", "run", *more, "--quiet")
    assert (result.code, result.err) == (code, f"error: {message}\n")
    assert not Path("run").exists()


def test_sides_that_are_exchanged_stop_train_and_data_check(here: Path) -> None:
    write_languages("x.en", "x.de")
    for name in ("x.en", "x.de"):
        shutil.copy(name, name.replace("x.", "y_"))
    said = ("--src-lang", "de", "--tgt-lang", "en")
    for files in (("x.en", "x.de", *said), ("y_en", "y_de", *said)):
        checked = call("data", "check", *files, "--json")
        assert checked.code == 65
        first = json.loads(checked.out)["findings"][0]
        assert f"{first['message']} {first['advice']}" == EXCHANGED
        trained = train("--src", files[0], "--tgt", files[1], *said)
        assert trained.code == 65
        assert EXCHANGED in trained.err
    assert call("data", "check", "x.en", "x.de").code == 0
    assert train("--src", "x.en", "--tgt", "x.de", *said, "--force").code == 0


def test_a_test_set_with_exchanged_sides_is_refused(here: Path, translator: Path) -> None:
    files = "x.bb and x.aa"
    exchanged = evaluate(translator, "x.bb", "x.aa")
    assert (exchanged.code, exchanged.out) == (65, "")
    assert exchanged.err == (
        f"error: {files}: the source looks like the target language of {translator}, and the reference like its source "
        "language. Swap the two sides.\n"
    )
    same = evaluate(translator, "x.aa", "x.aa")
    assert (same.code, same.out) == (65, "")
    assert same.err == (
        "error: x.aa and x.aa: source and reference seem to be in the same language. The reference must be the "
        f"translation into the target language of {translator}.\n"
    )


def test_a_run_without_its_data_recognises_exchanged_sides_by_its_languages(here: Path, translator: Path) -> None:
    write_languages("x.en", "x.de")
    copy = shutil.copytree(translator, here / "copy", ignore=shutil.ignore_patterns("data", "checkpoints"))
    recipe = copy / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('src_lang = "aa"', 'src_lang = "en"').replace('"bb"', '"de"'))
    assert "Swap the two sides." in evaluate(copy, "x.de", "x.en").err
    assert "seem to be in the same language" in evaluate(copy, "x.de", "x.de").err
    assert evaluate(copy, "x.en", "x.de").code == 0


# What is not data


def test_a_tokenizer_of_another_model_is_refused(here: Path, translator: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(translator, tmp_path / "copy")
    other = train("--src", "x.bb", "--tgt", "x.aa", "--tokenizer.vocab_size=290", out="other")
    assert other.code == 0, other.err
    shutil.copy("other/tokenizer.json", copy / "tokenizer.json")
    result = call("translate", copy, stdin="ba\n")
    assert (result.code, result.out) == (65, "")
    assert result.err == (
        f"error: {copy}/tokenizer.json was changed after heed wrote it: manifest.json lists another SHA-256. Restore "
        "the run's original file.\n"
    )
    (copy / "manifest.json").unlink()  # as in a folder of an older heed
    for result in (call("translate", copy, stdin="ba\n"), evaluate(copy, "x.aa", "x.bb")):
        assert (result.code, result.out) == (65, "")
        assert result.err == (
            f"error: {copy}/tokenizer.json is not the tokenizer that model.safetensors was trained with: the "
            "vocabularies differ. Put the run's own tokenizer back.\n"
        )


def test_all_mistakes_of_a_recipe_are_reported_at_once_with_their_lines(here: Path) -> None:
    Path("r.toml").write_text(
        'task = "translation"\n[data]\nsrc = "x.aa"\ntgt = 7\n\n[training]\nlrr = 1e-3\nlr = "fast"\n'
        "label_smoothing = 1.5\n"
        '[model]\nkind = "transformer"\nd_model = 0\n[decodin]\nbeam_size = 2\n'
    )
    result = call("train", "r.toml", "--out", "run", "--training.warmup_steps=-1")
    assert result.code == 2
    assert result.err.splitlines() == [
        """error: r.toml:4: data.tgt: expected text, got 7. Text needs quotes: "7" (in a shell '"7"')""",
        "r.toml:7: unknown key 'training.lrr'. Did you mean 'training.lr'?",
        "r.toml:8: training.lr: expected a number above 0, got 'fast'",
        "r.toml:9: training.label_smoothing: expected a number at least 0 and below 1, got 1.5",
        "r.toml:12: model.d_model: expected a whole number at least 2, got 0",
        "r.toml:13: unknown key 'decodin'. Did you mean 'decoding'?",
        "--training.warmup_steps: expected a whole number at least 0, got -1",
    ]


def test_stdout_contains_only_data(here: Path, translator: Path, bigram: Path) -> None:
    assert train("--src", "x.aa", "--tgt", "x.bb").stdout == b""
    text = Path("x.aa").read_bytes()
    assert len(call("translate", translator, stdin=text).lines) == NUM_PAIRS
    assert all(float(line) <= 0 for line in call("score", bigram, stdin=text).lines)
    json.loads(evaluate(translator, "x.aa", "x.bb", "--json").out)


# Tables of texts with labels

FINE = [f"{label} text {i}\t{label}" for i in range(20) for label in ("pos", "neg")]
TABLES = {
    "empty": ([], 65, "error: t.tsv: the table has no rows.\n"),
    "without a column": (["one", "two"], 2, "error: t.tsv: no column of labels (columns: 'one'). Name it "
                         "with --label-column, or what the table is for with --task.\n"),
    "one label": (["text\tlabel", *(f"a text {i}\tpos" for i in range(600))], 65, (
        "error: this data would ruin the run:\n  All rows have the same label: 'pos'. Give a table with two labels or "
        "more, or another column with --label-column.\nFix it, or continue with --force.\n")),
    "ragged": (["text\tlabel", *FINE, "only a text"], 65, (
        "error: The training data cannot be read to its end. t.tsv:42: 1 columns, but column 2 is needed.\n")),
    "classes": (["text\tlabel", *(f"a text {i}\tlabel {i}" for i in range(10_000))], 65, (
        "error: this data would ruin the run:\n  10,000 different labels in 10,000 rows: this column does not hold "
        "classes. Choose another one with --label-column.\nFix it, or continue with --force.\n")),
    "few": (["text\tlabel", *FINE[:10]], 65, (
        "error: this data would ruin the run:\n  Only 10 labelled texts can be used. Label at least 500.\nFix it, or "
        "continue with --force.\n")),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_cannot_be_learned_are_refused(name: str, here: Path) -> None:
    lines, code, message = TABLES[name]
    Path("t.tsv").write_text("".join(f"{line}\n" for line in lines))
    result = call("train", "--table", "t.tsv", "--out", "run", "--model.kind=linear", "--quiet")
    assert (result.code, result.err) == (code, message)
    assert not Path("run").exists()


def test_a_table_that_does_not_exist_or_has_another_format_is_refused(here: Path) -> None:
    missing = call("train", "--table", "none.csv", "--out", "run")
    assert missing.code == 66
    sheet = call("train", "--table", "t.xlsx", "--out", "run")
    assert (sheet.code, "save the sheet as" in sheet.err) == (2, True)
    assert call("data", "check").code == 2


# Images with captions

CAPTIONED = 60
"""Enough images for a training."""


def write_images(last: Callable[[bytes], bytes] = bytes, further: str = "") -> None:
    """Toy scenes with another content of the last image, and perhaps a further member of the archive."""
    from toy_images import encoded, scenes, write_scenes, write_tar

    write_scenes(Path(), CAPTIONED)
    pictures = [(name, encoded(image)) for name, image, _ in scenes(CAPTIONED)]
    name, picture = pictures.pop()
    write_tar(Path("images.tar"), [*pictures, (name, last(picture)), *[(further, picture)] * bool(further)])


def hundred_megapixels(picture: bytes) -> bytes:
    """The picture with another size in its header, which nothing but a decoder of its pixels would notice."""
    header = b"IHDR" + struct.pack(">II", 10_000, 10_000) + picture[24:29]
    return picture[:12] + header + struct.pack(">I", zlib.crc32(header)) + picture[33:]


IMAGES: dict[str, tuple[Callable[[], None], str]] = {
    "no image": (
        lambda: write_images(lambda picture: b"text"),
        "059.png is not an image in a format that heed reads (JPEG, PNG, GIF, WEBP, BMP, TIFF, PPM).",
    ),
    "truncated": (lambda: write_images(lambda picture: picture[:-40]), "059.png is damaged or incomplete"),
    "100 megapixels": (
        lambda: write_images(hundred_megapixels),
        "059.png has 10,000 × 10,000 pixels, more than the 50 million that heed decodes. Make it smaller first.",
    ),
    "a path that climbs out": (
        lambda: write_images(further="../up.png"),
        "the member '../up.png' points outside the archive; nothing was read.",
    ),
}
"""Archives that cannot be read, with the message after the name of the archive."""


@pytest.mark.parametrize("kind", IMAGES)
def test_images_that_cannot_be_read_are_refused(kind: str, here: Path) -> None:
    toy_images = pytest.importorskip("toy_images", reason="images need the package pillow")
    write, message = IMAGES[kind]
    write()
    words = flags(toy_images.TINY)
    result = call("train", "--captions", "captions.tsv", "--images", "images.tar", "--out", "run", *words, "--quiet")
    assert (result.code, f"error: images.tar: {message}" in result.err) == (65, True), result.err


def test_captions_of_missing_images_are_refused(here: Path) -> None:
    toy_images = pytest.importorskip("toy_images", reason="images need the package pillow")
    toy_images.write_scenes(here, CAPTIONED)
    with (here / "captions.tsv").open("a") as file:
        file.write("gone.png\ta red square\n")
    result = call("train", "--captions", "captions.tsv", "--images", "images.tar", "--out", "run", "--quiet")
    assert result.code == 65
    assert "captions.tsv names 1 image that images.tar does not have: 'gone.png'. It has 60, such as" in result.err
    alone = call("train", "--captions", "captions.tsv", "--out", "run", "--quiet")
    assert (alone.code, "data.images is missing: give --images F, a folder or a .tar." in alone.err) == (2, True)
