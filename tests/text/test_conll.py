"""CoNLL files: columns, sentences, lines that are not tokens, marks, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heed.core.errors import DataError, HeedError, UsageError
from heed.text.readers.conll import Columns, read_conll, tags_of_spans

THREE = "EU NNP B-ORG\nrejects VBZ O\n\n-DOCSTART- -X- O\n\nPeter NNP B-PER\n"
CONLL_U = (
    "# sent_id = 1\n# text = It doesn't\n1\tIt\tit\tPRON\tPRP\t_\t3\tnsubj\t_\t_\n"
    "2-3\tdoesn't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tdoes\tdo\tAUX\tVBZ\t_\t0\troot\t_\t_\n3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_\n3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
MARKED = (
    "# sent_id = 1\n0\tHe\tPRP\t-\t-\t(ARG0*)\t*\n1\tsaid\tVBD\tsay\tsay.01\t(V*)\t*\n"
    "2\tshe\tPRP\t-\t-\t(ARG1*\t(ARG1*)\n3\tleft\tVBD\tleave\tleave.01\t*)\t(V*)\n\n0\tOh\tUH\t-\t-\n\n"
)


def read(folder: Path, text: str | bytes, name: str = "x.conll", columns: Columns | None = None) -> list[list[str]]:
    """The sentences of a file with this content, each as `token/tag` with `/mark`, if there is one."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    sentences = read_conll(path, columns or Columns())
    return [
        [
            "/".join((token, tag, *([sentence.marks[at]] if sentence.marks else [])))
            for at, (token, tag) in enumerate(zip(sentence.tokens, sentence.tags, strict=True))
        ]
        for sentence in sentences
    ]


OF_THREE = [["EU/B-ORG", "rejects/O"], ["Peter/B-PER"]]
SAME = {
    "plain": THREE,
    "CRLF": THREE.replace("\n", "\r\n"),
    "byte-order mark": "\ufeff" + THREE,
    "tabs": THREE.replace(" ", "\t"),
    "runs of blanks": THREE.replace(" ", "   "),
    "blanks at the ends": THREE.replace("\n", " \n"),
    "blank lines with tabs": THREE.replace("\n\n", "\n\t\n \n\n"),
    "no last line end": THREE[:-1],
    "comments": "# document 1 of 2\n" + THREE,
}


@pytest.mark.parametrize("kind", SAME)
def test_marks_blanks_and_line_ends_make_no_difference(kind: str, tmp_path: Path) -> None:
    assert read(tmp_path, SAME[kind]) == OF_THREE


def test_compressed_files_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(THREE.encode()), "x.conll.gz") == OF_THREE


def test_columns_are_chosen_by_number(tmp_path: Path) -> None:
    assert read(tmp_path, THREE, columns=Columns(tag=2))[0] == ["EU/NNP", "rejects/VBZ"]
    assert read(tmp_path, THREE, columns=Columns(token=2, tag=3))[0] == ["NNP/B-ORG", "VBZ/O"]
    assert read(tmp_path, THREE, columns=Columns(mark=2))[0] == ["EU/B-ORG/NNP", "rejects/O/VBZ"]


def test_tokens_may_begin_with_a_hash(tmp_path: Path) -> None:
    assert read(tmp_path, "#\tO\n#yes\tB-X\n\n# O\tO\n") == [["#/O", "#yes/B-X"], ["# O/O"]]
    assert read(tmp_path, "# O\nx O\n") == [["#/O", "x/O"]]


def test_only_blanks_and_tabs_separate_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "10\u00a0000 CD\nfoo NN\n") == [["10\u00a0000/CD", "foo/NN"]]
    assert read(tmp_path, "a\u2028b NN\n") == [["a\u2028b/NN"]]


def test_conll_u_has_names_and_lines_without_tokens(tmp_path: Path) -> None:
    assert read(tmp_path, CONLL_U) == [["It/PRON", "does/AUX", "n't/PART"]]
    assert read(tmp_path, CONLL_U, columns=Columns(token="lemma", tag="xpos")) == [["it/PRP", "do/VBZ", "not/RB"]]


def test_columns_have_the_names_of_the_first_line_of_conll_u_plus(tmp_path: Path) -> None:
    text = "# global.columns = ID FORM NER\n1\tEU\tB-ORG\n\n1\tPeter\tB-PER\n"
    assert read(tmp_path, text) == [["EU/B-ORG"], ["Peter/B-PER"]]


def test_a_first_column_of_numbers_is_not_the_tokens(tmp_path: Path) -> None:
    assert read(tmp_path, "1 EU NNP\n2 rejects VBZ\n") == [["EU/NNP", "rejects/VBZ"]]
    short = "1 Hello UH\n2 . PU\n\n1 Yes UH\n\n1 The DT\n2 dog NN\n3 . PU\n"
    assert read(tmp_path, short) == [["Hello/UH", "./PU"], ["Yes/UH"], ["The/DT", "dog/NN", "./PU"]]
    gap = "".join(f"{number} a{number} NN\n" for number in range(1, 20) if number != 9)
    assert read(tmp_path, gap)[0][:2] == ["a1/NN", "a2/NN"], "a missing row"


@pytest.mark.parametrize("numbers", [("1", "1", "1"), ("1", "2", "4"), ("2", "3", "4"), ("1", "2", "x")])
def test_a_first_column_that_does_not_count_is_the_tokens(numbers: tuple[str, ...], tmp_path: Path) -> None:
    rows = "".join(f"{number} a NN\n" for number in numbers)
    assert read(tmp_path, rows) == [[f"{number}/NN" for number in numbers]]


def test_each_marked_token_gives_a_sentence_with_its_own_spans(tmp_path: Path) -> None:
    assert read(tmp_path, MARKED, columns=Columns(mark=4)) == [
        ["He/B-ARG0/", "said/O/V", "she/B-ARG1/", "left/I-ARG1/"],
        ["He/O/", "said/O/", "she/B-ARG1/", "left/O/V"],
    ]


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(THREE)
    assert [sentence.line for sentence in read_conll(tmp_path / "x")] == [1, 6]


WRONG: dict[str, tuple[str, Columns, type[HeedError], str]] = {
    "ragged": ("EU B-ORG\nrejects\n", Columns(), DataError, r"x.conll:2: the row has 1 column \('rejects'\), the rows"),
    "ragged later": ("a O\n\nb NN O\n", Columns(), DataError, "x.conll:3: the row has 3 columns"),
    "one column": ("EU\nrejects\n", Columns(), DataError, r"x.conll: the rows have one column \('EU'\), so there are"),
    "empty": ("\n\n", Columns(), DataError, "x.conll has no tokens"),
    "no such number": ("a O\n", Columns(tag=5), DataError, "x.conll has 2 columns, and no column 5. Name the column"),
    "no such name": ("a O\n", Columns(tag="upos"), DataError, "no column 'upos': its columns have no names"),
    "unknown name": (CONLL_U, Columns(tag="pos"), DataError, "no column 'pos': the names are id, form, lemma, upos"),
    "token and tag": ("a O\n", Columns(tag=1), UsageError, "column 1 cannot be both the token and the tag"),
    "empty tag": ("a\t\tb\n", Columns(tag=2), DataError, "x.conll:1: the tag is ''"),
    "empty token": ("\tO\tb\n", Columns(tag=2), DataError, "x.conll:1: the token is empty"),
    "too few spans": (MARKED.replace("\t-\t-\t", "\tx\tx\t"), Columns(mark=4), DataError, "x.conll:2: 4 tokens are"),
    "no span": (MARKED.replace("(ARG1*)", "ARG1"), Columns(mark=4), DataError, "x.conll:2: 'ARG1' is not a part of a"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_files_are_refused_with_the_line(kind: str, tmp_path: Path) -> None:
    text, columns, error, message = WRONG[kind]
    with pytest.raises(error, match=message):
        read(tmp_path, text, columns=columns)


def test_a_parenthesis_as_a_mark_is_no_span(tmp_path: Path) -> None:
    assert read(tmp_path, "( ( O\nx NN B-X\n", columns=Columns(mark=2)) == [["(/O/(", "x/B-X/NN"]]


def test_nested_parentheses_are_refused() -> None:
    with pytest.raises(DataError, match="is not a part of a span"):
        tags_of_spans(["(A(", "*"], "x:1")


DATA = Path(__file__).resolve().parents[2] / "../shared/data"
COUNTS = {
    "conll2000/train.txt.xz": (8936, 211_727),
    "wnut17/dev.conll.xz": (1009, 15_733),
    "ud_english_ewt/en_ewt-ud-dev.conllu.xz": (2001, 25_147),
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_files_have_their_published_sizes(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip("the published data is not on this machine")
    sentences = [*read_conll(DATA / name)]
    assert (len(sentences), sum(len(sentence.tokens) for sentence in sentences)) == COUNTS[name]
