"""Tests of runs with several parts and tags, by the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import TINY, flags, other_weights, pairs, unchecked_shapes, write_lines, write_pairs

import heed
from heed.cli.train import parse_part
from heed.core.errors import UsageError
from heed.evaluation.outputs import tags_for
from heed.memory.store import TranslationMemory
from heed.report.page import write_report
from heed.run import Run
from heed.serve.engine.catalogue import served

FEW = flags({**TINY, "training.max_steps": 12, "training.eval_every": 12, "data.hold_out": 8, "data.src_lang": "aa"})


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained to say the same words in another order with another tag."""
    folder = tmp_path_factory.mktemp("multilingual")
    src, tgt = write_pairs(folder)
    write_lines(folder / "same.aa", [src for src, _ in pairs(200, seed=3)])
    write_lines(folder / "same.cc", [src.upper() for src, _ in pairs(200, seed=3)])
    more = f"src={folder / 'same.aa'},tgt={folder / 'same.cc'},tag=2cc,tgt_lang=cc,repeat=2"
    with unchecked_shapes():
        result = call(
            "train", "--src", src, "--tgt", tgt, "--tgt-lang", "bb", "--tag", "2bb", "--part", more,
            "--out", folder / "run", *FEW,
        )  # fmt: skip
    assert result.code == 0, result.err
    assert "part 1 (<2cc>): 200 pairs" in result.err
    return folder / "run"


def test_the_recipe_has_tags_and_parts_and_can_be_reused(multilingual: Path, tmp_path: Path) -> None:
    data = Run(multilingual).recipe.data
    assert (data.tag, [(part.tag, part.repeat) for part in data.parts]) == ("2bb", [("2cc", 2)])
    result = call(
        "train", multilingual / "recipe.toml", "--out", tmp_path / "again", "--training.max_steps=1", "--quiet"
    )
    assert result.code == 0, result.err
    again = tmp_path / "again" / "data" / "train"
    assert (again / "src.tok").read_bytes() == (multilingual / "data" / "train" / "src.tok").read_bytes()


def test_a_tag_must_be_given_and_valid(multilingual: Path) -> None:
    result = call("translate", multilingual, stdin="ba ce\n")
    assert (result.code, result.out) == (2, "")
    assert "choose one with --tag (2bb, 2cc)" in result.err
    assert "the tags of the run are 2bb, 2cc" in call("translate", multilingual, "--tag", "2xx", stdin="ba\n").err
    result = call("translate", multilingual, "--tag", "2cc", stdin="ba ce\n\n")
    assert (result.code, len(result.lines)) == (0, 2)


def test_report_and_info_show_the_tags(multilingual: Path) -> None:
    report = (multilingual / "report.md").read_text(encoding="utf-8")
    assert "heed translate run --tag 2bb < in.txt" in report
    told = call("info", multilingual).out
    assert "tags             2bb, 2cc" in told
    corpus = Run(multilingual).corpus
    assert corpus["num_repeated"] > 0
    assert f"trained on       {corpus['num_rows'] - corpus['num_repeated']}" in told


def test_report_and_info_show_each_part_and_the_kind_of_validation_data(multilingual: Path) -> None:
    main, more = Run(multilingual).corpus["num_by_part"]
    corpus = Run(multilingual).corpus
    assert (main + 2 * more, more) == (corpus["num_rows"], corpus["num_repeated"])
    report = (multilingual / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# Translation aa → bb, aa → cc: run\n")
    assert (
        f"- **Data**: {main + more} sentence pairs ({main + 2 * more} with repetitions) of 2 parts:\n"
        f"  - `train.aa` and `train.bb`: aa → bb, tag `<2bb>`, {main} pairs, each once in an epoch.\n"
        f"  - `same.aa` and `same.cc`: aa → cc, tag `<2cc>`, {more} pairs, each 2 times in an epoch.\n"
    ) in report
    assert re.search(r"^- \*\*Quality\*\*: .* validation lines \(aa → bb, tag `<2bb>`\)\.$", report, re.MULTILINE)
    told = call("info", multilingual).lines
    assert "languages        aa → bb, aa → cc" in told
    assert f"main part        train.aa and train.bb: aa → bb, tag <2bb>, {main} pairs, each once in an epoch" in told
    assert f"part 1           same.aa and same.cc: aa → cc, tag <2cc>, {more} pairs, each 2 times in an epoch" in told
    assert "validated on     aa → bb, tag <2bb>" in told
    facts = json.loads(call("info", multilingual, "--json").out)
    assert facts["parts"][1] == {
        "files": ["same.aa", "same.cc"], "languages": "aa → cc", "tag": "2cc", "repeat": 2, "pairs": more,
        "is_text": False,
    }  # fmt: skip


def test_parts_of_an_older_run_are_shown_without_their_numbers(multilingual: Path, tmp_path: Path) -> None:
    run = shutil.copytree(multilingual, tmp_path / "run")
    corpus = json.loads((run / "data" / "corpus.json").read_text(encoding="utf-8"))
    del corpus["num_by_part"]
    (run / "data" / "corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    Run(run).files.accept("data/corpus.json")
    assert "  - `same.aa` and `same.cc`: aa → cc, tag `<2cc>`, each 2 times" in write_report(Run(run)).read_text(
        "utf-8"
    )
    facts = json.loads(call("info", run, "--json").out)
    assert [part["pairs"] for part in facts["parts"]] == [None, None]


def test_a_run_without_tags_refuses_a_tag(translator: Path) -> None:
    result = call("translate", translator, "--tag", "2cc", stdin="ba\n")
    assert result.code == 2
    assert "the run was trained without tags" in result.err


def test_the_default_of_the_recipe_is_used(multilingual: Path, tmp_path: Path) -> None:
    run = shutil.copytree(multilingual, tmp_path / "run")
    recipe = (run / "recipe.toml").read_text(encoding="utf-8")
    (run / "recipe.toml").write_text(recipe.replace('default_tag = ""', 'default_tag = "2cc"'), encoding="utf-8")
    said = call("translate", multilingual, "--tag", "2cc", "--scores", stdin="ba ce di\nfo\n").lines
    assert call("translate", run, "--scores", stdin="ba ce di\nfo\n").lines == said
    other = call("translate", multilingual, "--tag", "2bb", "--scores", stdin="ba ce di\nfo\n").lines
    assert said != other


def test_text_that_looks_like_a_tag_is_text(multilingual: Path) -> None:
    plain = call("translate", multilingual, "--tag", "2bb", "--json", stdin="<2cc> ba ce\n")
    [record] = [json.loads(line) for line in plain.lines]
    with_tag = call("translate", multilingual, "--tag", "2cc", "--json", stdin="ba ce\n")
    assert record["log_prob"] != json.loads(with_tag.lines[0])["log_prob"]
    ids = Run(multilingual).tokenizers["src"].encode(["<2cc> ba ce"])[0]
    assert Run(multilingual).tokenizers["src"].decode([ids]) == ["<2cc> ba ce"]


def test_links_count_words_of_the_text_and_not_the_tag(multilingual: Path) -> None:
    [line] = call("translate", multilingual, "--tag", "2bb", "--alignment", stdin="ba ce di\n").lines
    links = line.split("\t")[0].split()
    assert all(0 <= int(link.split("-")[0]) < 3 for link in links)


def test_scoring_and_evaluating_take_the_tag(multilingual: Path, translator: Path, tmp_path: Path) -> None:
    src = write_lines(tmp_path / "t.aa", [src for src, _ in pairs(30, seed=5)])
    ref = write_lines(tmp_path / "t.cc", [src.upper() for src, _ in pairs(30, seed=5)])
    scores = [
        call("score", multilingual, "--src", src, "--tag", tag, stdin=ref.read_bytes()).lines for tag in ("2bb", "2cc")
    ]
    assert scores[0] != scores[1]
    ref = write_lines(tmp_path / "t.bb", [tgt for _, tgt in pairs(30, seed=5)])
    files = ("--src", src, "--ref", ref, "--beam", "1", "--json")
    result = call("evaluate", multilingual, translator, "--tag", "2bb", *files)
    assert result.code == 0, result.err
    assert [it["system"] for it in json.loads(result.out)] == [str(multilingual), str(translator)]
    assert [it.get("tag") for it in json.loads(result.out)] == ["2bb", None]
    table = call("evaluate", multilingual, "--tag", "2bb", *files[:-1])
    assert f"{multilingual} <2bb> " in table.out, table.err
    assert call("evaluate", multilingual, *files).code == 2
    neither = call("evaluate", multilingual, translator, "--tag", "2xx", *files)
    assert (neither.code, neither.err) == (2, "error: --tag 2xx: the runs were trained with 2bb, 2cc.\n")
    assert "the runs were trained without tags" in call("evaluate", translator, "--tag", "2bb", *files).err


def test_several_runs_each_get_the_tag_they_were_trained_with(multilingual: Path, tmp_path: Path) -> None:
    other = shutil.copytree(multilingual, tmp_path / "other")
    text = (other / "recipe.toml").read_text(encoding="utf-8")
    (other / "recipe.toml").write_text(
        text.replace('"2bb"', '"2dd"').replace('default_tag = ""', 'default_tag = "2cc"')
    )
    assert tags_for([multilingual, other], "2bb") == ["2bb", None]
    assert tags_for([multilingual, other], "2cc") == ["2cc", "2cc"]
    assert tags_for([multilingual, other], None) == [None, None]


def test_a_run_with_the_tag_of_its_validation_data_shares_its_model(multilingual: Path) -> None:
    run = heed.load(multilingual, "cpu", "bfloat16", tag="2cc").run
    assert run.predictor.of_validation().model is run.model
    assert run.predictor.of_validation().predictor.source_tag == "2bb"


def test_an_ensemble_adds_a_row(translator: Path, tmp_path: Path) -> None:
    src = write_lines(tmp_path / "t.aa", [src for src, _ in pairs(10, seed=1)])
    ref = write_lines(tmp_path / "t.bb", [tgt for _, tgt in pairs(10, seed=1)])
    copy = shutil.copytree(translator, tmp_path / "copy")
    result = call("evaluate", translator, copy, "--ensemble", "--src", src, "--ref", ref, "--beam", "1", "--json")
    assert result.code == 0, result.err
    first, _, both = json.loads(result.out)
    assert (both["system"], both["run"]) == ("ensemble of 2", None)
    assert both["scores"] == first["scores"], "a run with itself says what it says"
    assert both["against_first"]["bleu"]["difference"] == 0
    alone = call("evaluate", translator, "--ensemble", "--src", src, "--ref", ref)
    assert (alone.code, alone.err) == (2, "error: --ensemble needs two runs or more.\n")


def test_f1_of_rare_and_unseen_words_is_shown(translator: Path) -> None:
    files = ("--src", translator.parent / "test.aa", "--ref", translator.parent / "test.bb")
    result = call("evaluate", translator, *files, "--analysis", "--rare", "3")
    header = next(line for line in result.lines if line.startswith("unigram F1"))
    names = [word for word in header.split() if word.isalpha()]
    assert " ".join(names) == "unigram all words rare words unseen words"
    [found] = json.loads(call("evaluate", translator, *files, "--rare", "3", "--json").out)
    kinds = found["unigram_f1"]
    assert kinds["all"]["num_reference"] > kinds["rare"]["num_reference"] > kinds["unseen"]["num_reference"] == 0


@pytest.mark.parametrize("text", ["", "a.en", "src=a,tgt", "src=", "=a", "src=a,,tgt=b"])
def test_a_part_without_keys_and_values_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--part is KEY=VALUE"):
        parse_part(text)


def test_a_part_is_parsed() -> None:
    found = parse_part("src=a.en, tgt=b=c.de,tag=bt, repeat = 2 ")
    assert found == {"src": "a.en", "tgt": "b=c.de", "tag": "bt", "repeat": 2}


def test_a_part_is_appended_to_those_of_a_recipe(multilingual: Path, tmp_path: Path) -> None:
    there = Run(multilingual).recipe.data
    src, tgt = write_pairs(tmp_path, "more", 20)
    words = ("--part", f"src={src},tgt={tgt},tag=bt", "--data.dir", multilingual.parent, "--training.max_steps=1")
    result = call("train", multilingual / "recipe.toml", *words, "--out", tmp_path / "run", "--quiet")
    assert result.code == 0, result.err
    found = Run(tmp_path / "run").recipe.data
    assert found.parts[:-1] == there.parts
    assert found.parts[-1].tag == "bt"


def test_wrong_keys_of_a_part_are_reported(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    words = ("train", "--src", src, "--tgt", tgt, "--out", tmp_path / "run", "--part")
    assert "unknown key 'data.parts[0].tags'" in call(*words, "src=a,tgt=b,tags=bt").err
    assert "data.parts[0].repeat" in call(*words, "src=a,tgt=b,repeat=x").err


def test_a_run_with_tags_learns_from_corrections(multilingual: Path, tmp_path: Path) -> None:
    """They have the tag of the validation data, with which both models are judged."""
    memory = TranslationMemory(tmp_path / "team.memory", ("aa", "bb"), create=True)
    memory.add([(src, tgt, "") for src, tgt in pairs(200, seed=5, longest=7)], "approved")
    memory.close()
    limits = ("--max-steps", 1, "--training.eval_every=1", "--training.save_every=1", "--threads", 1)
    result = call("learn", multilingual, "--memory", tmp_path / "team.memory", "--out", tmp_path / "new", *limits)
    assert result.code in (0, 3) and "corrections, " in result.err, result.err
    data = Run(tmp_path / "new").recipe.data
    assert [data.tag, *((part.tag, part.tgt_lang) for part in data.parts)] == ["2bb", ("2bb", ""), ("2cc", "cc")]


def test_an_ensemble_is_served_with_each_tag(multilingual: Path, tmp_path: Path) -> None:
    other = other_weights(multilingual, tmp_path / "other")
    model = served("both", heed.load(multilingual, ensemble=other))
    assert [direction.tag for direction in model.directions] == ["2bb", "2cc"]
    for direction in model.directions:
        both: Any = heed.load(multilingual, ensemble=other, tag=direction.tag)
        alone: Any = heed.load(multilingual, tag=direction.tag)
        [output] = direction.translator.translate(["ba ce"], both.decoding)
        [expected], [different] = (each.hypotheses(["ba ce"]) for each in (both, alone))
        assert (output.text, output.score) == (expected.text, pytest.approx(expected.score))
        assert output.score != pytest.approx(different.score)
