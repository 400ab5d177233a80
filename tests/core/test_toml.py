"""Reading TOML: lines of keys, overrides and values."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import MissingInputError, UsageError
from heed.core.toml import MAX_DEPTH, KeyPath, key_lines, parse_overrides, parse_toml, read_toml

LINES = """\
# a comment with [brackets] = and "quotes
seed = 1
[model]
kind = "a#b"   # = [x]
text = \"\"\"
[not.a.table]
key = \"\" \\\\\"\"\"
list = [
  "]",  # ]
  [1, 2],
]
after = 3
inline = { a = 1, b = { c = [1] } }
dotted.deep.key = 4
"quoted key"."x.y" = '5'
'literal' = '''
[nor.this]
''''
[ outer . "in.ner" ]

last = 1.5
[[stages]]
lr = 1
[stages.sub]
x = 1
[[stages]]
[[stages.steps]]
[[stages.steps]]
y = 2
[model.late]
z = 1
"""


def test_each_key_has_its_line() -> None:
    expected: dict[KeyPath, int] = {
        ("seed",): 2,
        ("model",): 3,
        ("model", "kind"): 4,
        ("model", "text"): 5,
        ("model", "list"): 8,
        ("model", "after"): 12,
        ("model", "inline"): 13,
        ("model", "dotted"): 14,
        ("model", "dotted", "deep"): 14,
        ("model", "dotted", "deep", "key"): 14,
        ("model", "quoted key"): 15,
        ("model", "quoted key", "x.y"): 15,
        ("model", "literal"): 16,
        ("outer",): 19,
        ("outer", "in.ner"): 19,
        ("outer", "in.ner", "last"): 21,
        ("stages",): 22,
        ("stages", 0): 22,
        ("stages", 0, "lr"): 23,
        ("stages", 0, "sub"): 24,
        ("stages", 0, "sub", "x"): 25,
        ("stages", 1): 26,
        ("stages", 1, "steps"): 27,
        ("stages", 1, "steps", 0): 27,
        ("stages", 1, "steps", 1): 28,
        ("stages", 1, "steps", 1, "y"): 29,
        ("model", "late"): 30,
        ("model", "late", "z"): 31,
    }
    tomllib.loads(LINES)
    assert key_lines(LINES) == expected


def test_the_line_of_a_table_is_that_of_its_header() -> None:
    assert key_lines("[a.b]\nx = 1\n[a]\ny = 2")[("a",)] == 3


def quoted(key: str) -> str:
    return '"' + "".join(f"\\U{ord(char):08X}" for char in key) + '"'


bare_keys = st.from_regex(r"[A-Za-z0-9_-]{1,5}", fullmatch=True)
written_keys = st.one_of(
    bare_keys.map(lambda key: (key, key)),
    st.text(max_size=4).map(lambda key: (quoted(key), key)),
    bare_keys.map(lambda key: (f"'{key}#[='", f"{key}#[=")),
)
values = st.sampled_from(
    [
        "1",
        "-1.5e-3",
        "'#'",
        '"\\"[="',
        "'''\n'' [a]\n\n'''",
        '"""\nx = 1 \\"""\n""""',
        "[]",
        "[\n1, # ]\n'['\n]",
        "{ a = [1, 2] }",
    ]
)
noise = st.sampled_from(["", "\n", "# [a] = 'b\n", "  \t\n\n"])
entries = st.lists(st.tuples(written_keys, values, noise), max_size=4)


@given(st.lists(st.tuples(written_keys, noise, entries), max_size=4))
def test_lines_are_those_of_a_text_written_with_known_lines(
    tables: list[tuple[tuple[str, str], str, list[tuple[tuple[str, str], str, str]]]],
) -> None:
    text = ""
    expected: dict[KeyPath, int] = {}
    for (written, name), before, rows in tables:
        if (name,) in expected:
            continue
        text += before
        expected[(name,)] = text.count("\n") + 1
        text += f"  [{written}] # comment\n"
        for (written_key, key), value, gap in rows:
            if (name, key) not in expected:
                text += gap
                expected[(name, key)] = text.count("\n") + 1
                text += f"{written_key} = {value}\n"
    tomllib.loads(text)
    lines = key_lines(text)  # it has the keys of inline tables too
    assert {path: lines[path] for path in expected} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = transformer\n", ':2: not valid TOML: invalid value. Text needs quotes: key = "value".'),
        ("a = 1\na = 2\n", ":2: 'a' is already defined on line 1."),
        ("a = 1\nb = 1\n[t]\nx = 1\ny = [\n1,\n2]\nx = [\n3]\n", ":8: 't.x' is already defined on line 4."),
        ("[t]\nx = 1\n\n[u]\n[t]\n", ":5: 't' is already defined on line 1."),
        ("t.x = 1\n[t]\ny = 1\n", ":2: 't' is already defined on line 1."),
        ("t = {x = 1}\n[t]\n", ":2: 't' is already defined on line 1."),
        ("t = 1\nt.x = 2\n", ":2: 't' is already defined on line 1."),
        ("t = 1\n[t.x]\n", ":2: 't' is already defined on line 1."),
        ("[[t]]\nx = 1\n[[t]]\nx = 2\nx = 3\n", ":5: 't[1].x' is already defined on line 4."),
        ("a = 1\n[t]\n'b c' = 1\na = 2\n\"b c\" = 2\n", """:5: 't."b c"' is already defined on line 3."""),
        ("x = {a = 1, a = 2}\n", ":1: not valid TOML: duplicate inline table key 'a'."),
        ("[a\n", ":1: not valid TOML: expected ']' at the end of a table declaration."),
        ("a = 1\n\nb = [1,\n", ":3: not valid TOML: "),
        ("a = " + 10_000 * "[", ": nested too deeply."),
    ],
)
def test_a_text_that_is_not_toml_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_toml(path)
    assert str(refused.value).startswith(f"{path}{message}")


def test_a_file_that_cannot_be_read_is_missing_input(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"none\.toml: no such file"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(MissingInputError, match="is a folder"):
        read_toml(tmp_path)


def test_a_large_file_and_one_that_is_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(UsageError, match="larger than 1 MB"):
        read_toml(path)
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(UsageError, match=r"recipe\.toml:2: not UTF-8"):
        read_toml(path)


def test_windows_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n\r\nb = 'x'\r\n")
    document = read_toml(path)
    assert document.values == {"a": 1, "b": "x"}
    assert document.lines == {("a",): 1, ("b",): 3}


@pytest.mark.parametrize(
    ("arguments", "overrides"),
    [
        (["--training.lr=3e-4"], {"training.lr": 3e-4}),
        (["--training.lr", "3e-4", "--seed", "-1"], {"training.lr": 3e-4, "seed": -1}),
        (["--model.kind=bigram"], {"model.kind": "bigram"}),
        (["--a.b=true", "--a.c=True"], {"a.b": True, "a.c": "True"}),
        (['--data.fields=["a","b"]'], {"data.fields": ["a", "b"]}),
        (["--model={kind='x', n=2}"], {"model": {"kind": "x", "n": 2}}),
        (["--a='2'", '--b="2"'], {"a": "2", "b": "2"}),
        (["--a=", "--b", ""], {"a": "", "b": ""}),
        (["--a=1", "--a=2"], {"a": 2}),
        (["--a=1, b = 2", "--b=1 # x", "--c=1\nd = 2"], {"a": "1, b = 2", "b": "1 # x", "c": "1\nd = 2"}),
        (["--a=x=y", "--b=[1"], {"a": "x=y", "b": "[1"}),
        (["--lang=nan", "--lang2=inf", "--day=2024-01-01"], {"lang": "nan", "lang2": "inf", "day": "2024-01-01"}),
        ([], {}),
    ],
)
def test_an_override_is_a_toml_value_or_else_text(arguments: list[str], overrides: dict[str, object]) -> None:
    parsed = parse_overrides(arguments)
    assert parsed == overrides
    assert [type(value) for value in parsed.values()] == [type(value) for value in overrides.values()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recipe"], "unexpected argument 'recipe'. A recipe key is set with --table.key=value."),
        (["--a=1", "2"], "unexpected argument '2'. A recipe key is set with --table.key=value."),
        (["-a=1"], "unexpected argument '-a=1'. A recipe key is set with --table.key=value."),
        (["--a..b=1"], "unexpected argument '--a..b=1'. A recipe key is set with --table.key=value."),
        (["--"], "unexpected argument '--'. A recipe key is set with --table.key=value."),
        (["--a"], "--a: needs a value: --a=value."),
        (["--a", "--b=1"], "--a: needs a value: --a=value."),
        (["--a=\udcff"], r"--a: '\udcff' is not valid UTF-8."),
    ],
)
def test_a_word_that_is_not_an_override_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_overrides(arguments)
    assert str(refused.value) == message


@given(st.text())
def test_every_text_is_a_valid_override(text: str) -> None:
    value = parse_overrides([f"--key={text}"])["key"]
    assert not isinstance(value, str) or value == text or text.strip(" \t")[0] in "\"'"


@pytest.mark.parametrize(
    "text", ["b = 1\n{key} = 1", "b = 1\n[{key}]", "b = 1\n[[ {key} ]]", "b = 1\nc = {{ d = 1, {key} = 2 }}"]
)
@pytest.mark.parametrize("part", ["a", '"a b"', "'a'"])
def test_a_key_of_too_many_parts_is_refused(text: str, part: str) -> None:
    """`tomllib` takes quadratic time for the parts of a key."""
    parse_toml(text.format(key=" . ".join([part] * MAX_DEPTH)).encode(), "a.toml")
    with pytest.raises(UsageError, match=f"a.toml:2: nested too deeply: a key has more than {MAX_DEPTH} parts"):
        parse_toml(text.format(key=" . ".join([part] * (MAX_DEPTH + 1))).encode(), "a.toml")


def test_the_search_for_the_lines_of_keys_is_bounded() -> None:
    lines = key_lines("a = 1\nb = [\n" + "1, # one\n" * 300 + "]\nc = 1\n")
    assert lines[("a",)] == 1
    assert ("c",) not in lines
