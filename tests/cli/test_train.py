"""Tests of `heed train`: its options, and the refusal of what would lose or ruin something."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import zstandard
from command import Result, call
from toy import TINY, events, flags, pairs, unchecked_shapes, write_lines, write_pairs

from heed import execute
from heed.cli.train import recipe_and_flags
from heed.core.errors import DataError, UsageError
from heed.core.files import is_claimed
from heed.data.validation import read_valid
from heed.run import Run

SHORT = {**TINY, "training.max_steps": 2, "training.eval_every": 2, "data.hold_out": 8}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `train.aa`, `train.bb`, which is the current one."""
    write_pairs(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEED_DATA", raising=False)
    return tmp_path


def train(*words: object, keys: dict[str, Any] = SHORT, out: str = "run") -> Result:
    """A short training."""
    return call("train", *words, "--out", out, *flags(keys), "--quiet")


FILES = ("--task", "translation", "--src", "train.aa", "--tgt", "train.bb")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two updates on that corpus."""
    folder = tmp_path_factory.mktemp("finished")
    write_pairs(folder)
    with chdir(folder), unchecked_shapes():
        result = train(*FILES)
    assert result.code == 0, result.err
    return folder / "run"


@pytest.fixture
def run(corpus: Path, finished: Path) -> Path:
    """A copy of the finished run, `run` in the current folder."""
    return shutil.copytree(finished, corpus / "run")


def test_names_that_are_not_utf_8_are_refused_before_anything_is_trained(corpus: Path) -> None:
    broken = os.fsdecode(b"b\xff.aa")
    shutil.copy(corpus / "train.aa", corpus / broken)
    for result in (train(*FILES[:2], "--src", broken, "--tgt", "train.bb"), train(*FILES, out=broken)):
        assert result.code == 2
        assert result.err.splitlines()[-1] == (
            r"error: 'b\udcff.aa' is not UTF-8 text. If it is the name of a file or folder, rename that."
        )
    assert not (corpus / "run").exists()


def test_without_a_recipe_every_choice_is_made_printed_and_written(corpus: Path) -> None:
    result = call("train", *FILES, "--out", "run", *flags(SHORT))
    assert result.code == 0, result.err
    assert result.stdout == b""
    for told in ("train: 300 pairs", "machine: ", "chosen (written to recipe.toml", "expected: ", " GiB of memory",
                 "rows for training", "validation at update 2", "reached 2 updates", "run: run   report:"):  # fmt: skip
        assert told in result.err
    recipe = (corpus / "run" / "recipe.toml").read_text()
    assert "d_model = 16\n" in recipe  # said, so without a reason
    assert re.search(r"^patience = 1000 # validations without", recipe, re.MULTILINE)
    for name in ("tokenizer.json", "model.safetensors", "metrics.jsonl", "report.md", "checkpoints", "data"):
        assert (corpus / "run" / name).exists()
    again = call("train", "run/recipe.toml", "--out", "again", "--quiet")
    assert again.code == 0, again.err
    assert (corpus / "run/model.safetensors").read_bytes() == (corpus / "again/model.safetensors").read_bytes()
    assert Run(corpus / "again").recipe == Run(corpus / "run").recipe


def test_the_task_is_inferred_from_the_files(corpus: Path) -> None:
    assert train("--src", "train.aa", "--tgt", "train.bb").code == 0
    assert Run(corpus / "run").recipe.task == "translation"
    assert call("train", "--text", "train.aa", "--model.kind=bigram", "--out", "text", "--quiet").code == 0
    assert Run(corpus / "text").recipe.task == "language-model"


def test_languages_are_inferred_from_the_names_of_the_files(corpus: Path) -> None:
    write_lines(corpus / "train.de.txt", [tgt for _, tgt in pairs()])
    german = ("--task", "translation", "--src", "train.aa", "--tgt", "train.de.txt")
    assert train(*german, "--src-lang", "hau").code == 0
    data = Run(corpus / "run").recipe.data
    assert (data.src_lang, data.tgt_lang) == ("hau", "de")
    assert train(*FILES, out="other").code == 0
    assert Run(corpus / "other").recipe.data.tgt_lang == "bb"


@pytest.mark.parametrize(
    ("words", "recipe", "rest"),
    [
        ([], None, []),
        (["a.toml"], "a.toml", []),
        (["--training.lr=1"], None, ["--training.lr=1"]),
        (["--training.lr", "1"], None, ["--training.lr", "1"]),
        (["--training.lr", "1", "a.toml", "--seed=2"], "a.toml", ["--training.lr", "1", "--seed=2"]),
        (["a.toml", "--training.lr"], "a.toml", ["--training.lr"]),
    ],
)
def test_the_recipe_is_distinguished_from_keys_and_their_values(
    words: list[str], recipe: str | None, rest: list[str]
) -> None:
    assert recipe_and_flags(words) == (Path(recipe) if recipe else None, rest)


def test_two_recipes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"expected one recipe, got a\.toml and b\.toml"):
        recipe_and_flags(["a.toml", "b.toml"])


def test_keys_may_be_given_before_and_after_a_recipe_with_and_without_an_equals_sign(run: Path) -> None:
    result = call(
        "train", "--training.max_steps", "1", "run/recipe.toml", "--training.lr=0.125", "--out", "again", "--quiet",
        "--max-time", "2h", "--precision", "bfloat16", "--seed", "3", "--errors", "replace",
    )  # fmt: skip
    assert result.code == 0, result.err
    recipe = Run("again").recipe
    assert (recipe.training.max_steps, recipe.training.lr, recipe.training.max_minutes) == (1, 0.125, 120.0)
    assert (recipe.training.precision, recipe.seed, recipe.data.errors) == ("bfloat16", 3, "replace")


def test_settings_for_an_export_are_chosen_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.setattr("heed.cli.train.run_training", lambda recipe, keys, *_, **__: seen.append(keys))
    files = ("--src", "a.en", "--tgt", "a.de", "--dry-run")
    assert call("train", *files, "--for", "argos", "--tokenizer.joint=false").code == 0
    assert call("train", *files, "--for", "marian").code == 0
    assert [key for key in seen[0] if key.startswith("tokenizer")] == ["tokenizer.kind", "tokenizer.joint"]
    assert (seen[0]["tokenizer.kind"], seen[0]["tokenizer.joint"]) == ("sentencepiece", False)
    assert seen[1]["model.norm"] == "post"


def test_data_paths_of_a_recipe_follow_its_folder_the_variable_and_the_flag(
    run: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    recipe, corpus = run / "recipe.toml", run.parent
    missing = call("train", recipe, "--dry-run", "--quiet")
    assert missing.code == 66
    assert "train.aa does not exist" in missing.err
    flag = call("train", recipe, "--data.dir", corpus, "--dry-run", "--quiet")
    assert flag.code == 0, flag.err
    monkeypatch.setenv("HEED_DATA", str(corpus))
    assert call("train", recipe, "--out", "variable", "--quiet").code == 0
    assert Run("variable").recipe.data.dir == str(corpus)
    monkeypatch.delenv("HEED_DATA")
    named = Path("recipe.toml")  # one that names a folder
    named.write_text(recipe.read_text().replace('\ndir = ""', '\ndir = "elsewhere"'))
    assert "elsewhere" in call("train", named, "--dry-run", "--quiet").err
    monkeypatch.setenv("HEED_DATA", str(corpus))
    assert call("train", named, "--dry-run", "--quiet").code == 0, "the variable comes before the recipe's folder"
    monkeypatch.setenv("HEED_DATA", "nowhere")
    assert call("train", recipe, "--data.dir", corpus, "--dry-run", "--quiet").code == 0


def test_files_on_the_command_line_are_relative_to_the_current_folder_despite_the_variable(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_DATA", "nowhere")
    assert call("train", *FILES, "--dry-run", *flags(SHORT), "--quiet").code == 0


def test_a_dry_run_prints_the_plan_and_writes_nothing(corpus: Path) -> None:
    before = sorted(corpus.rglob("*"))
    for words in (FILES, (*FILES, "--out", "run")):
        result = call("train", *words, "--dry-run", *flags(SHORT))
        assert result.code == 0, result.err
        assert "expected: " in result.err
        assert "target tokens/s" in result.err
    assert sorted(corpus.rglob("*")) == before


def test_a_plan_advises_on_threads_unless_their_number_was_given(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("command.COMPUTING", ())  # which get --threads 1
    monkeypatch.setattr("heed.cli.train.use_threads", lambda threads: None)
    monkeypatch.setattr("heed.planner.speeds_with_fewer_threads", lambda *_: {1: 3.0})
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    advice = "advice: 1 thread makes 3.0 times the updates of 2 here: --threads 1 is faster."
    assert advice in call("train", *FILES, "--dry-run", *flags(SHORT)).err
    assert "advice:" not in call("train", *FILES, "--dry-run", "--threads", "2", *flags(SHORT)).err
    monkeypatch.setattr("heed.planner.LONG_UPDATE", 0.0)
    assert "advice:" not in call("train", *FILES, "--dry-run", *flags(SHORT)).err, "each would take too long"


def test_an_existing_run_is_neither_continued_nor_replaced_without_a_flag(run: Path) -> None:
    weights = (run / "model.safetensors").read_bytes()
    again = train(*FILES, "--seed", "2")
    assert again.code == 2
    assert "run already holds a run whose newest checkpoint is step-0000002" in again.err
    assert "heed train --resume run" in again.err
    assert "--overwrite" in again.err
    assert (run / "model.safetensors").read_bytes() == weights
    assert train(*FILES, "--overwrite", "--seed", "2").code == 0
    assert (run / "model.safetensors").read_bytes() != weights


def test_overwrite_does_not_touch_a_folder_that_is_not_a_run(corpus: Path) -> None:
    (corpus / "letters").mkdir()
    (corpus / "letters" / "love").touch()
    result = train(*FILES, "--overwrite", out="letters")
    assert result.code == 2
    assert "is not empty and is not a run folder, so nothing was removed" in result.err
    assert (corpus / "letters" / "love").exists()


def test_overwrite_keeps_the_old_run_when_the_new_one_cannot_start(run: Path) -> None:
    for wrong, code in (
        (("--valid-src", "nowhere", "--valid-tgt", "nowhere"), 66),
        (("--model.norm=both",), 2),
        (("--init", "nowhere"), 66),
    ):
        assert train(*FILES, "--overwrite", *wrong).code == code
        assert (run / "model.safetensors").exists()


def test_no_other_process_may_write_while_a_run_is_prepared(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(plan: Any, folder: Path, *rest: Any) -> None:
        raise DataError("claimed" if is_claimed(folder) else "free")

    monkeypatch.setattr(execute, "prepare_run", prepare)
    result = train(*FILES)
    assert result.code == 65 and "error: claimed" in result.err
    assert not (corpus / "run").exists()


def test_overwrite_keeps_the_data_that_the_training_reads(run: Path) -> None:
    for name in ("train.aa", "train.bb"):
        shutil.copy(name, run / name)
    refused = train("--src", "run/train.aa", "--tgt", "run/train.bb", "--overwrite")
    assert refused.code == 2 and "replacing run would remove run/train.aa, which this training needs" in refused.err
    assert (run / "train.aa").exists() and (run / "model.safetensors").exists()


def test_a_run_of_another_task_gives_a_part_of_its_weights(finished: Path, corpus: Path) -> None:
    result = call("train", "--task", "language-model", "--text", "train.aa", "--init", finished, "--out", "lm")
    assert result.code == 2 and "Traceback" not in result.err
    assert "is a run of the task translation" in result.err and "--init-parts encoder" in result.err


def test_fine_tuning_starts_from_the_weights_and_tokenizer_of_a_run(corpus: Path, finished: Path) -> None:
    write_pairs(corpus, "more", 150, seed=9)
    result = call(
        "train", "--task", "translation", "--src", "more.aa", "--tgt", "more.bb", "--init", finished, "--out", "run",
        "--training.max_steps=1", "--training.warmup_steps=1000000", "--training.average=none", "--quiet",
        "--training.tokens_per_batch=256", "--precision", "float32",
    )  # fmt: skip
    assert result.code == 0, result.err
    base, run = Run(finished), Run(corpus / "run")
    assert run.recipe.model.model_dump() | {"dropout": 0} == base.recipe.model.model_dump() | {"dropout": 0}
    assert (corpus / "run/tokenizer.json").read_bytes() == (finished / "tokenizer.json").read_bytes()
    pairs_of_weights = zip(base.model.parameters(), run.model.parameters(), strict=True)
    assert max(float((one - other).abs().max()) for one, other in pairs_of_weights) < 1e-4
    assert "as in --init" in (corpus / "run/recipe.toml").read_text()


def test_fine_tuning_refuses_a_model_of_another_size(corpus: Path, finished: Path) -> None:
    result = train(*FILES, "--init", finished, keys={**SHORT, "model.d_ff": 48})
    assert result.code == 2
    assert "its model differs from the recipe's (d_ff 32 there, 48 here)" in result.err
    assert not (corpus / "run").exists()


def test_data_that_would_ruin_the_run_stops_it_unless_forced(corpus: Path) -> None:
    write_lines(corpus / "train.bb", [src for src, _ in pairs()])
    result = train(*FILES)
    assert result.code == 65
    assert "this data would ruin the run" in result.err
    assert "--force" in result.err
    assert not (corpus / "run").exists()
    assert train(*FILES, "--force").code == 0


def as_tsv(folder: Path) -> tuple[str, ...]:
    write_lines(folder / "c.tsv", [f"{i}\t{tgt}\t{src}" for i, (src, tgt) in enumerate(pairs())])
    return ("--pairs", "c.tsv", "--data.src_column=3", "--data.tgt_column=2")


def as_jsonl(folder: Path) -> tuple[str, ...]:
    lines = [json.dumps({"en": src, "de": tgt}) for src, tgt in pairs()]
    (folder / "c.jsonl.zst").write_bytes(zstandard.compress("\n".join(lines).encode()))
    return ("--pairs", "c.jsonl.zst", "--data.src_field=en", "--data.tgt_field=de")


def as_parquet(folder: Path) -> tuple[str, ...]:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    src, tgt = zip(*pairs(), strict=True)
    parquet.write_table(pyarrow.table({"src": list(src), "tgt": list(tgt)}), folder / "c.parquet")
    return ("--pairs", "c.parquet")


def as_csv(folder: Path) -> tuple[str, ...]:
    rows = "".join(f'{i};"{tgt}";"{src}"\r\n' for i, (src, tgt) in enumerate(pairs()))
    (folder / "c.csv").write_text(f"id;bb;aa\r\n{rows}", "utf-8-sig", newline="")
    return ("--pairs", "c.csv", "--src-column", "aa", "--tgt-column", "2")


def as_tmx(folder: Path) -> tuple[str, ...]:
    units = "".join(
        f'<tu><tuv xml:lang="BB"><seg>{tgt}</seg></tuv><tuv xml:lang="aa-XX"><seg>{src}</seg></tuv></tu>'
        for src, tgt in pairs()
    )
    (folder / "c.tmx.gz").write_bytes(gzip.compress(f"<tmx><header/><body>{units}</body></tmx>".encode()))
    return ("--pairs", "c.tmx.gz", "--src-lang", "aa", "--tgt-lang", "bb")


def as_compressed(folder: Path) -> tuple[str, ...]:
    (folder / "c.aa.gz").write_bytes(gzip.compress((folder / "train.aa").read_bytes()))
    (folder / "c.bb.xz").write_bytes(lzma.compress((folder / "train.bb").read_bytes()))
    return ("--src", "c.aa.gz", "--tgt", "c.bb.xz")


ONE_UPDATE = {**SHORT, "training.max_steps": 1, "training.average": "none"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one update on two plain files."""
    folder = tmp_path_factory.mktemp("plain")
    write_pairs(folder)
    with chdir(folder), unchecked_shapes():
        assert train(*FILES, keys=ONE_UPDATE).code == 0
    return folder / "run"


@pytest.mark.parametrize("write", [as_tsv, as_csv, as_jsonl, as_parquet, as_tmx, as_compressed])
def test_every_form_of_input_trains_the_same_model(corpus: Path, plain: Path, write: Any) -> None:
    result = train("--task", "translation", *write(corpus), keys=ONE_UPDATE)
    assert result.code == 0, result.err
    assert (plain / "model.safetensors").read_bytes() == (corpus / "run/model.safetensors").read_bytes()
    assert read_valid(plain) == read_valid(corpus / "run")


@pytest.mark.parametrize("kind", ["word", "character", "byte", "unigram", "char-bigram"])
def test_every_kind_of_tokenizer_trains_translates_and_evaluates(corpus: Path, kind: str) -> None:
    keys = {**SHORT, "tokenizer.kind": kind, "tokenizer.vocab_size": 300}
    assert train(*FILES, keys=keys).code == 0
    result = call("translate", "run", stdin="ba ce\n\nzzz\n")
    assert (result.code, len(result.lines)) == (0, 3)
    write_pairs(corpus, "test", 20)
    assert call("evaluate", "run", "--src", "test.aa", "--ref", "test.bb", "--beam", "1").code == 0


def test_other_models_are_used_by_the_same_verbs(recurrent: Path, bigram: Path) -> None:
    """Trained without a recipe by `heed train` (see the fixtures), then used by the same verbs."""
    assert (recurrent / "report.md").exists()
    assert call("translate", recurrent, "--nbest", "2", stdin="ba ce\n").lines[0].startswith("0 ||| ")
    assert call("evaluate", recurrent, "--src", recurrent.parent / "train.aa", "--ref", recurrent.parent / "train.bb",
                "--beam", "1").code == 0  # fmt: skip
    assert call("score", recurrent, "--src", "/dev/null", stdin="").code == 0
    assert "Estimated from the data, without gradient descent." in (bigram / "report.md").read_text()
    assert [event["event"] for event in events(bigram)] == ["counted", "validation", "end"]
    resumed = call("train", "--resume", bigram)
    assert resumed.code == 2
    assert "is count-based and cannot be resumed. Train it again with --overwrite." in resumed.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "nothing to train: give --task translation --src F --tgt F, or the path of a recipe"),
        (("--task", "translate"), 2, "expected one of 'translation', 'language-model', 'masked-language-model'"),
        (("--task", "translation"), 2, "data.src and data.tgt (or data.pairs) are missing"),
        (("--task", "translation", "--src", "train.aa"), 2, "data.src and data.tgt (or data.pairs) are missing"),
        (("--task", "language-model"), 2, "data.text is missing"),
        (("nowhere.toml",), 66, "nowhere.toml: no such file"),
        (("train.aa",), 2, "train.aa is not a recipe: its name must end in .toml. Give data with flags: --src F"),
        (("train.aa", "train.bb"), 2, "expected one recipe, got train.aa and train.bb. Give data with flags: --src"),
        (("train.toml",), 2, "train.toml:1: not valid TOML"),
        ((*FILES, "--training.lrr=1"), 2, "unknown key 'training.lrr'. Did you mean 'training.lr'?"),
        (
            (*FILES, "--model.kind=phrase_based", "--model.num_heads=2"), 2,
            "It is only for model.kind = 'transformer'. Here model.kind = 'phrase_based'.",
        ),
        ((*FILES, "--tsak=translation"), 2, "unknown option --tsak. Did you mean --task?"),
        ((*FILES, "--training.lr=fast"), 2, "--training.lr: expected a number above 0, got 'fast'"),
        ((*FILES, "--training.lr"), 2, "--training.lr: needs a value"),
        ((*FILES, "--max-time", "soon"), 2, "--max-time takes a duration such as 90s, 30m or 2h, got 'soon'"),
        ((*FILES, "--training.max_steps=5", "--max-steps", "7"), 2, "--training.max_steps and the option for the same"),
        ((*FILES, "--model.num_heads=3"), 2, "num_heads"),
        ((*FILES, "--model.kind=bigram"), 2, "got 'bigram'. 'bigram' is for task 'language-model'."),
        (("--src", "nowhere.aa", "--tgt", "train.bb"), 66, "nowhere.aa does not exist"),
        ((*FILES, "--src", "more.aa"), 2, "--src was given twice; it takes one value. More training data is "),
        (("--pairs", "a.tmx", "--pairs", "b.tmx"), 2, "--pairs was given twice; it takes one value. More training "),
        (("--src", "a.tmx", "--tgt", "b.tmx"), 2, "a.tmx is a file of pairs, not plain text: give it alone"),
        (("--src", "a.csv", "--tgt", "b.csv"), 2, "If it holds only one side, save that as plain text"),
        ((*FILES, "--valid", "val.aa", "val.bb"), 2, "unknown option --valid. Use --valid-src F --valid-tgt F, --va"),
        ((*FILES, "--valid=val.aa"), 2, "unknown option --valid. Use --valid-src F --valid-tgt F, --valid-pairs F"),
        ((*FILES, "--valid-src", "train.aa"), 2, "give both data.valid_src and data.valid_tgt"),
        ((*FILES, "--data.hold_out=200"), 65, "would hold out more than half of the 300 rows"),
        (("--task", "translation", "--src", "-", "--tgt", "train.bb"), 2, "standard input cannot be read twice"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_before_anything_is_trained(
    corpus: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    (corpus / "train.toml").write_text("ba ce\n")
    result = call("train", *words, "--out", "run", "--quiet", stdin="ba\n")
    assert result.code == code, result.err
    assert message in result.err
    assert result.err.count("\n") <= 3
    assert not (corpus / "run/model.safetensors").exists()


def test_without_a_folder_nothing_is_trained(corpus: Path) -> None:
    result = call("train", *FILES)
    assert result.code == 2
    assert "--out is missing" in result.err


def test_a_folder_that_cannot_be_created_is_reported(corpus: Path) -> None:
    result = train(*FILES, out="train.aa/run")
    assert result.code == 74
    assert result.err.startswith("error: cannot write the run: a part of its path is not a folder")


@pytest.mark.parametrize("words", [("a.toml",), ("--out", "b"), ("--init", "b"), ("--overwrite",)])
def test_resume_refuses_options_that_it_would_ignore(corpus: Path, words: tuple[str, ...]) -> None:
    result = call("train", "--resume", "run", *words)
    assert result.code == 2
    assert "--resume uses run/recipe.toml and cannot be combined with " in result.err


@pytest.mark.parametrize("words", [("--seed", "2"), ("--training.lr=1", "--max-steps", "9")])
def test_resume_refuses_changes_of_anything_but_limits(translator: Path, words: tuple[str, ...]) -> None:
    before = (translator / "recipe.toml").read_bytes()
    result = call("train", "--resume", translator, *words)
    assert result.code == 2
    assert f"--resume uses {translator}/recipe.toml and cannot change " in result.err
    assert (translator / "recipe.toml").read_bytes() == before


def test_resume_continues_after_a_limit_was_raised_in_the_recipe(corpus: Path) -> None:
    keys = {**SHORT, "training.average": "none"}
    assert train(*FILES, keys=keys).code == 0
    recipe = corpus / "run/recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 2", "max_steps = 6"))
    result = call("train", "--resume", "run")
    assert result.code == 0, result.err
    assert "reached 6 updates" in result.err
    assert train(*FILES, keys={**keys, "training.max_steps": 6}, out="straight").code == 0
    assert (corpus / "run/model.safetensors").read_bytes() == (corpus / "straight/model.safetensors").read_bytes()


def test_resume_reports_damage_and_strict_refuses_it(corpus: Path) -> None:
    assert train(*FILES, keys={**SHORT, "training.save_every": 1}).code == 0
    newest = corpus / "run/checkpoints/step-0000002"
    content = bytearray((newest / "optimizer.safetensors").read_bytes())
    content[-1] ^= 1
    (newest / "optimizer.safetensors").write_bytes(content)
    strict = call("train", "--resume", "run", "--strict")
    assert strict.code == 65
    assert "checkpoint step-0000002 is damaged: optimizer.safetensors" in strict.err
    mended = call("train", "--resume", "run")
    assert mended.code == 0, mended.err
    assert "warning: checkpoint step-0000002 is damaged: optimizer.safetensors" in mended.err


def test_resume_without_prepared_data_is_refused(run: Path) -> None:
    (run / "data/corpus.json").unlink()
    result = call("train", "--resume", "run")
    assert result.code == 65
    assert "has no prepared data" in result.err
    assert call("train", "--resume", "nowhere").code == 66


def test_tensorboard_files_are_written_on_request(corpus: Path) -> None:
    pytest.importorskip("tensorboard")
    assert train(*FILES, "--training.tensorboard=true").code == 0
    assert list((corpus / "run/tensorboard").glob("events.out.tfevents.*"))
