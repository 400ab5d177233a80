"""Tests of `heed align`: links of texts, run folders of aligners, scores against a reference, and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Result, call
from safetensors.numpy import load_file, save_file
from toy import write_lines

from heed.statistical.alignment import ALIGNERS
from heed.statistical.alignment.training import train_pair
from heed.text.readers.dictionary import dictionary_lines, read_dictionary

SRC = ["the house", "the book", "a Book"]
TGT = ["das Haus", "das Buch", "ein Buch"]
Align = Callable[..., Result]


@pytest.fixture
def align(tmp_path: Path) -> Align:
    """`heed align MODEL` on the texts of the example, or on others."""

    def run(model: object, *words: object, src: list[str] = SRC, tgt: list[str] = TGT) -> Result:
        files = write_lines(tmp_path / "a.en", src), write_lines(tmp_path / "a.de", tgt)
        return call("align", model, "--src", files[0], "--tgt", files[1], *words)

    return run


@pytest.fixture
def trained(align: Align, tmp_path: Path) -> Path:
    """A run folder of an aligner of both directions."""
    folder = tmp_path / "run"
    assert align("ibm1", "--symmetrise", "grow-diag", "--iterations", 8, "--out", folder).code == 0
    return folder


def test_links_are_on_stdout_and_the_likelihood_is_on_stderr(align: Align) -> None:
    result = align("ibm1", "--iterations", 8)
    assert result.lines == ["0-0 1-1"] * 3
    found = re.findall(r"^forward, ibm1, iteration (\d): log-likelihood per target word (-\d\.\d+)$", result.err, re.M)
    assert [int(number) for number, _ in found] == list(range(1, 9))
    assert align("ibm1", "--quiet").err == ""


def test_a_run_folder_aligns_other_text_as_it_aligned_its_own(align: Align, trained: Path) -> None:
    assert align(trained).lines == ["0-0 1-1"] * 3
    assert align(trained, src=["A house"], tgt=["ein haus"]).lines == ["0-0 1-1"]
    assert align(trained, "--symmetrise", "intersection", src=["a new house"], tgt=["ein Haus"]).lines == ["0-0 2-1"]


@pytest.mark.parametrize("how", ["intersection", "union", "grow-diag", "grow-diag-final-and", "agreement"])
def test_both_directions_are_combined(align: Align, how: str) -> None:
    assert align("hmm", "--symmetrise", how, "--smoothing", "none", "--iterations", 8).lines == ["0-0 1-1"] * 3


def test_info_knows_the_run(trained: Path) -> None:
    result = call("info", trained)
    assert result.code == 0
    assert "IBM Model 1 (Brown et al. 1993)" in result.out
    assert "forward, backward" in result.out
    assert json.loads(call("info", trained, "--json").out)["trained on"] == 3
    assert "forward.safetensors" in call("info", trained, "--verify").out
    assert call("info", trained, trained).code == 2


def test_the_lexicon_shows_the_translations_of_a_word(trained: Path) -> None:
    rows = [line.split("\t") for line in call("align", trained, "--lexicon", "Book").lines]
    assert rows[0][:2] == ["forward", "buch"]
    assert float(rows[0][2]) > 0.8
    assert call("align", trained, "--lexicon", "haus").lines[0].startswith("backward\thouse\t")
    missing = call("align", trained, "--lexicon", "tree")
    assert missing.code == 65
    assert missing.err == "error: 'tree' is not a word of the training text.\n"


def test_a_changed_table_is_refused(align: Align, trained: Path) -> None:
    table = trained / "forward.safetensors"
    table.write_bytes(table.read_bytes()[:-1] + b"\1")
    result = align(trained)
    assert result.code == 65
    assert "was changed after heed wrote it" in result.err
    assert call("info", trained, "--verify").code == 65


@pytest.mark.parametrize(
    ("name", "content"),
    [("forward.safetensors", b"{}"), ("words.src.json", b"[1]"), ("words.tgt.json", b'["a"]'), ("aligner.json", b"{}")],
)
def test_a_damaged_run_without_a_manifest_is_refused(align: Align, trained: Path, name: str, content: bytes) -> None:
    (trained / "manifest.json").unlink()
    (trained / name).write_bytes(content)
    result = align(trained)
    assert result.code == 65
    assert result.err.startswith(f"error: {trained}/")


def test_gold_links_give_the_scores_with_intervals(align: Align, tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "gold", ["0-0 1-1", "0-0 1?1", "1-1"])
    result = align("ibm1", "--iterations", 8, "--gold", gold)
    assert result.lines == ["0-0 1-1"] * 3
    scores = dict(re.findall(r"^(\w+) (\d+\.\d\d) \[.*\]  links:och-ney\|bs:1000\|seed:12345$", result.err, re.M))
    assert scores == {"precision": "83.33", "recall": "100.00", "F1": "90.91", "AER": "10.00"}


def test_the_page_has_a_grid_for_each_pair(align: Align, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    gold = write_lines(tmp_path / "gold", ["0-0 1-1", "0-0 1?1", "1-1"])
    align("ibm1", "--page", page, "--gold", gold, src=["the <b>", "the book", "a book"])
    text = page.read_text(encoding="utf-8")
    assert text.count("<table>") == 3
    assert "&lt;b&gt;" in text and "<b>" not in text
    assert 'class="link sure"' in text


def test_the_page_of_a_run_folder_has_its_links(align: Align, trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    both = ("--symmetrise", "intersection")
    result = align(trained, *both, "--page", page, src=["the book", "a new house"], tgt=["das Buch", "ein Haus"])
    assert result.lines == ["0-0 1-1", "0-0 2-1"]
    grids = page.read_text(encoding="utf-8").split("<table>")[1:]
    rows = [re.findall(r"<tr><th scope=row>(.*?)</th>(.*?)</tr>", grid) for grid in grids]
    drawn = [[(word, ['class="link"' in cell for cell in cells.split("<td")[1:]]) for word, cells in of] for of in rows]
    assert drawn == [
        [("the", [True, False]), ("book", [False, True])],
        [("a", [True, False]), ("new", [False, False]), ("house", [False, True])],
    ]


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"src": SRC[:2]}, 65, "a.en has 2 lines, {folder}/a.de has 3, but line k of one must be the translation of"),
        ({"src": ["the house", " ", "a book"]}, 65, "a.en:2: the line has no words, so there is nothing to align."),
        ({"gold": ["0-0", "1-1", "2-0"]}, 65, "gold:3: the link 2-0 is outside its pair, which has 2 source and 2"),
        ({"gold": ["0-0", "0:1", "0-0"]}, 65, "gold:2: '0:1' is not a link; write i-j, or i?j for a possible one"),
        ({"gold": ["0-0"]}, 65, "gold has 1 lines, but the texts have 3: each pair needs its line."),
        (
            {"model": "ibm9"},
            2,
            "ibm9 is neither a run folder of an aligner or a translator, nor an aligner (ibm1,",
        ),
    ],
)
def test_bad_input_is_named_with_its_line(
    align: Align, tmp_path: Path, given: dict[str, list[str] | str], code: int, message: str
) -> None:
    words = ["--gold", write_lines(tmp_path / "gold", list(given.pop("gold")))] if "gold" in given else []
    result = align(given.pop("model", "ibm1"), *words, "--quiet", **given)
    assert result.code == code
    assert message.format(folder=tmp_path) in result.err
    assert result.out == "" and result.err.count("\n") == 1


def test_a_run_is_replaced_on_demand_and_nothing_else(align: Align, tmp_path: Path) -> None:
    out, other = tmp_path / "run", tmp_path / "other"
    other.mkdir()
    assert align("ibm1", "--out", out).code == 0
    assert align("diagonal", "--out", out, "--overwrite").code == 0
    assert json.loads((out / "aligner.json").read_text())["kind"] == "diagonal"
    refused = align("ibm1", "--out", other, "--overwrite")
    assert (refused.code, refused.err) == (
        2, f"error: --out {other} is not the run of an aligner, so nothing was removed.\n"
    )  # fmt: skip
    assert other.exists()


def test_a_folder_that_appears_during_the_training_is_kept(
    align: Align, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"

    def train(*words: Any, **options: Any) -> Any:
        out.mkdir()
        (out / "mine").touch()
        return train_pair(*words, **options)

    monkeypatch.setattr("heed.statistical.alignment.training.train_pair", train)
    assert align("ibm1", "--out", out).code == 2
    assert (out / "mine").exists()


def test_options_that_do_not_fit_are_refused(align: Align, trained: Path, tmp_path: Path) -> None:
    assert (
        align(trained, "--iterations", 3).err == f"error: --iterations is for training; {trained} is trained already.\n"
    )
    exists = f"error: --out {trained} exists. Replace it with --overwrite, or name another folder.\n"
    assert align("ibm1", "--out", trained).err == exists
    assert call("align", "ibm1").err == "error: give both texts: --src F --tgt F.\n"
    one = tmp_path / "one"
    assert align("ibm1", "--out", one).code == 0
    assert "aligns in one direction; train it again with --symmetrise union." in align(one, "--symmetrise", "union").err


@pytest.mark.parametrize("alpha", ["0", "-1", "inf", "nan"])
def test_a_prior_that_is_no_number_above_0_is_refused(align: Align, alpha: str) -> None:
    result = align("ibm1", f"--alpha={alpha}")
    assert result.code == 2
    assert f"--alpha must be a number above 0, got {float(alpha)}" in result.err
    assert result.out == ""


@pytest.mark.parametrize(("kind", "alpha"), [("collapsed", 0.005), ("variational", 0.01), ("none", 0.0)])
def test_each_smoothing_has_its_own_prior(align: Align, tmp_path: Path, kind: str, alpha: float) -> None:
    assert align("ibm1", "--smoothing", kind, "--out", tmp_path / kind).code == 0
    assert json.loads((tmp_path / kind / "aligner.json").read_text())["alpha"] == alpha


def test_a_prior_without_smoothing_is_refused(align: Align) -> None:
    result = align("ibm1", "--smoothing", "none", "--alpha", 0.1)
    assert (result.code, result.err) == (2, "error: --smoothing none has no prior: leave out --alpha.\n")


def test_a_dictionary_has_the_words_that_were_linked_as_they_are_written(align: Align, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    assert align("ibm1", "--iterations", 8, "--dictionary", path).lines == ["0-0 1-1"] * 3
    assert path.read_text(encoding="utf-8").splitlines() == [
        "Book\tBuch\t1", "a\tein\t1", "book\tBuch\t1", "house\tHaus\t1", "the\tdas\t1",
    ]  # fmt: skip
    assert read_dictionary(path, str)["the"] == "das"
    packed = tmp_path / "words.tsv.gz"
    align("ibm1", "--iterations", 8, "--dictionary", packed)
    assert read_dictionary(packed, str) == read_dictionary(path, str)
    shares = list(dictionary_lines([("the", "die"), ("the", "das"), ("the", "das"), ("a", "ein")]))
    assert shares == ["a\tein\t1", "the\tdas\t0.6667", "the\tdie\t0.3333"]
    assert "--dictionary" in align("ibm1", "--dictionary", tmp_path / "none" / "words.tsv").err


@pytest.mark.parametrize("flag", ["--src", "--tgt", "--symmetrise", "--gold", "--dictionary", "--page"])
def test_the_lexicon_of_a_run_is_shown_alone(trained: Path, flag: str) -> None:
    value = "union" if flag == "--symmetrise" else trained.parent / "file"
    result = call("align", trained, "--lexicon", "book", flag, value)
    expected = f"error: --lexicon shows the translations of a word in place of links: leave out {flag}.\n"
    assert (result.code, result.out, result.err) == (2, "", expected)


def test_the_lexicon_of_a_new_aligner_needs_its_texts_and_no_links(align: Align) -> None:
    assert align("ibm1", "--lexicon", "book", "--quiet").lines[0].startswith("forward\tbuch\t")
    assert "in place of links: leave out --page." in align("ibm1", "--lexicon", "book", "--page", "p.html").err


def test_translators_have_no_lexicon(translator: Path) -> None:
    result = call("align", translator, "--lexicon", "book")
    expected = f"error: --lexicon needs an aligner, which has a table of words; {translator} is a translator.\n"
    assert (result.code, result.out, result.err) == (2, "", expected)


def test_scores_are_printed_also_with_quiet(align: Align, tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "gold", ["0-0 1-1"] * 3)
    lines = align("ibm1", "--iterations", 8, "--gold", gold, "--quiet").err.splitlines()
    assert [line.split()[0] for line in lines] == ["precision", "recall", "F1", "AER"]


def test_pairs_of_too_many_words_are_left_out_and_counted(align: Align, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.statistical.alignment.pairs.MAX_WORDS", 2)
    result = align("ibm1", src=[*SRC, "the book is long"], tgt=[*TGT, "das Buch"])
    assert result.lines == ["0-0 1-1"] * 3 + [""]
    warning = (
        "left out, without links: 1 of 4 pairs, which have more than 2 words on a side. Split them into sentences."
    )
    assert f"warning: {warning}\n" in result.err


def test_the_help_names_the_iterations_of_each_aligner() -> None:
    text = " ".join(re.sub("[│\\n]", " ", call("align", "--help").out).split())
    pattern = r"Iterations of the aligner \(default: (\d+); hmm (\d+); ibm3 to ibm5 and hmm_ibm3 (\d+)\)"
    groups = re.search(pattern, text)
    assert groups is not None
    others, of_hmm, of_fertile = map(int, groups.groups())
    for name, aligner in ALIGNERS.items():
        expected = of_hmm if name == "hmm" else of_fertile if name in ("ibm3", "ibm4", "ibm5", "hmm_ibm3") else others
        assert aligner.iterations == expected


@pytest.mark.parametrize("kind", ["ibm2", "ibm3"])
def test_lengths_that_do_not_fit_the_tables_are_refused_before_memory_is_taken(
    align: Align, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / kind
    assert align(kind, "--out", folder).code == 0
    (folder / "manifest.json").unlink()
    arrays = load_file(folder / "forward.safetensors")
    arrays["lengths"][0, 0] = 200_000
    save_file(arrays, folder / "forward.safetensors")
    result = align(folder)
    assert result.code == 65
    expected = "'lengths' do not fit the tables of positions. Restore the run's original file."
    assert result.err == f"error: {folder}/forward.safetensors: {expected}\n"


def test_other_verbs_name_the_verb_of_aligners(trained: Path) -> None:
    result = call("inspect", trained, "--src", "the book")
    assert result.code == 2
    assert result.err.startswith(f"error: {trained} is the run of an aligner: use it with `heed align {trained} --src")


def test_a_translator_that_derives_is_refused(tmp_path: Path) -> None:
    texts = write_lines(tmp_path / "a", SRC), write_lines(tmp_path / "b", TGT)
    files = ["--src", texts[0], "--tgt", texts[1]]
    run = tmp_path / "rules"
    valid = ["--valid-src", texts[0], "--valid-tgt", texts[1]]
    trained = call("train", *files, *valid, "--model.kind=rule_based", "--out", run, "--quiet", "--force")
    assert trained.code == 0, trained.err
    result = call("align", run, *files)
    assert (result.code, result.out) == (2, "")
    assert (
        f"{run} has no attention: it links its own translations only (`heed translate {run} --alignment`)."
        in result.err
    )


def test_a_translator_links_words_by_its_attention(translator: Path, tmp_path: Path) -> None:
    """As `translate --alignment` does; one head, and both directions."""
    texts = [translator.parent / name for name in ("test.aa", "test.bb")]
    files = ["--src", texts[0], "--tgt", texts[1]]
    page = tmp_path / "page.html"
    mean = call("align", translator, *files, "--page", page)
    assert len(mean.lines) == 40
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<table>") == 40 and drawn.count('class="link"') == sum(len(line.split()) for line in mean.lines)
    of_head = call("align", translator, *files, "--head", "1.1").lines
    gold = write_lines(tmp_path / "gold", of_head)
    listed = call("align", translator, *files, "--gold", gold, "--heads").err
    assert f"{translator}, head 1.1: AER 0.00" in listed
    scored = call("align", translator, *files, "--head", "1.1", "--gold", gold).err
    assert re.search(r"^AER 0.00 ", scored, re.M)
    assert "has 1 block of 2 heads in its decoder" in call("align", translator, *files, "--head", "9.1").err
    assert "such as 3.2; got '3'" in call("align", translator, *files, "--head", "3").err
    assert call("align", translator, *files, "--heads").code == 2
    assert call("align", translator, *files, "--symmetrise", "agreement").code == 2


def test_a_word_with_a_no_break_space_has_one_number(translator: Path, tmp_path: Path) -> None:
    """The tokenizers of translators have two words there, and `--gold` and the page one."""
    both = [(translator.parent / name).read_text().splitlines()[0].split() for name in ("test.aa", "test.bb")]
    files = [write_lines(tmp_path / f"{n}", [" ".join(["\u00a0".join(w[:2]), *w[2:]])]) for n, w in enumerate(both)]
    for options in ((), ("--head", "1.1")):
        line = call("align", translator, "--src", files[0], "--tgt", files[1], *options).out
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert {target for _, target in links} == set(range(len(both[1]) - 1))
        assert max(source for source, _ in links) < len(both[0]) - 1


def test_two_translators_are_symmetrised(translator: Path) -> None:
    """A translator and itself on a text and its copy: the links of both directions are those of one, turned."""
    text = translator.parent / "test.aa"
    one = call("align", translator, "--src", text, "--tgt", text).lines
    both = call("align", translator, "--src", text, "--tgt", text, "--reverse", translator, "--symmetrise", "union")
    assert len(one) == 40
    for ours, joined in zip(one, both.lines, strict=True):
        links = {tuple(map(int, link.split("-"))) for link in ours.split()}
        assert {tuple(map(int, link.split("-"))) for link in joined.split()} == links | {(j, i) for i, j in links}
