"""Tests of exchanged sides and of columns by name, in files of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Result, call
from toy import TINY, WORDS, flags, pairs, write_lines

from heed.data.validation import read_valid

SHORT = flags(
    {**TINY, "training.max_steps": 1, "training.eval_every": 1, "training.average": "none", "data.hold_out": 8}
)

ENGLISH = ("the dog is in the house and it sees you", "we are on the street but they have no water")
GERMAN = ("der Hund ist im Haus und er sieht dich", "wir sind auf der Straße aber sie haben kein Wasser")
NAMES = list(WORDS)
ROWS = [
    (f"{ENGLISH[i % 2]} {NAMES[i % 12]} {NAMES[i // 12]}", f"{GERMAN[i % 2]} {NAMES[i % 12]} {NAMES[i // 12]}")
    for i in range(120)
]
"""English and German."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*words: object) -> Result:
    """One update of a tiny model."""
    return call("train", *words, *SHORT, "--out", "run", "--overwrite", "--quiet")


def write_table(path: Path, *names: str, mark: str = ",") -> None:
    """English and German under these names, with numbers before them where there are three."""
    head = [mark.join(names)] if names else []
    before = [f"{i}{mark}" if len(names) > 2 else "" for i in range(len(ROWS))]
    write_lines(path, head + [number + mark.join(row) for number, row in zip(before, ROWS, strict=True)])


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("x.csv", ("de", "en"), ()), ("x.csv", ("n", "German", "English"), ()), ("x.tsv", (), ("de", "en")),
        ("x.jsonl", (), ("de", "en")),
    ],
)  # fmt: skip
def test_the_advice_for_exchanged_sides_of_one_file_helps(
    name: str, names: tuple[str, ...], said: tuple[str, ...], here: Path
) -> None:
    if name == "x.jsonl":
        write_lines(here / name, [json.dumps({"src": src, "tgt": tgt}) for src, tgt in ROWS])
    else:
        write_table(here / name, *names, mark="," if name == "x.csv" else "\t")
    languages = [word for pair in zip(("--src-lang", "--tgt-lang"), said, strict=False) for word in pair]
    checked = call("data", "check", name, *languages, "--json")
    assert checked.code == 65
    advice = json.loads(checked.out)["findings"][0]["advice"]
    assert advice.startswith("Swap the columns: --src-column ")
    assert advice.endswith(" --src-lang de --tgt-lang en.")
    assert advice in train("--pairs", name, *languages).err
    words = advice.removesuffix(".").split(": ")[1].split()
    assert call("data", "check", name, *words).code == 0
    assert train("--pairs", name, *words).code == 0
    assert read_valid(Path("run"))[0][1].startswith(("the dog", "we are"))


def test_exchanged_languages_of_a_memory_must_be_corrected(here: Path) -> None:
    unit = "<tu><tuv lang='de'><seg>{}</seg></tuv><tuv lang='en'><seg>{}</seg></tuv></tu>"
    (here / "x.tmx").write_text(f"<tmx><body>{''.join(unit.format(*row) for row in ROWS)}</body></tmx>")
    checked = call("data", "check", "x.tmx", "--src-lang", "de", "--tgt-lang", "en", "--json")
    assert checked.code == 65
    first = json.loads(checked.out)["findings"][0]
    assert first["check"] == "swapped"
    assert first["advice"].startswith("The languages are swapped in the file: correct xml:lang")


def test_a_test_table_with_exchanged_columns_is_refused_with_advice(here: Path, translator: Path) -> None:
    write_lines(here / "x.csv", [f"{i},{tgt},{src}" for i, (src, tgt) in enumerate(pairs(100))])
    test = ("evaluate", translator, "--pairs", "x.csv", "--quiet")
    refused = call(*test, "--src-column", 2, "--tgt-column", 3)
    assert refused.code == 65
    assert refused.err.endswith(" Swap the columns: --src-column 3 --tgt-column 2.\n")
    assert call(*test, "--src-column", 3, "--tgt-column", 2).code == 0


@pytest.mark.parametrize("has_recipe", [False, True])
def test_validation_columns_have_the_names_of_the_training_columns(has_recipe: bool, here: Path) -> None:
    write_table(here / "x.csv", "en", "de")
    unseen = [f"{number};{tgt} neu;{src} new" for number, (src, tgt) in enumerate(ROWS[:40])]
    write_lines(here / "v.csv", ["id;German;English", *unseen])
    checked = call("data", "check", "x.csv", "--valid", "v.csv", "--test", "v.csv")
    assert checked.code == 0, checked.out
    write_lines(here / "r.toml", ['task = "translation"', "[data]", 'pairs = "x.csv"', 'valid_pairs = "v.csv"'])
    result = train("r.toml") if has_recipe else train("--pairs", "x.csv", "--valid-pairs", "v.csv")
    assert result.code == 0, result.err
    assert read_valid(Path("run"))[0] == (f"{ROWS[0][0]} new", f"{ROWS[0][1]} neu")
