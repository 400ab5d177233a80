"""Contents of `report.md`: model, data, training, scores with intervals, weaknesses, use and citation."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors.torch import load_file
from toy import (
    prepared,
    tiny_keys,
    trainer_of,
    unchecked_shapes,
    with_weights,
    without_shape_checks,
    write_lines,
    write_pairs,
)

from heed.core.config import Document
from heed.core.run_files import WEIGHTS
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.leakage import Leakage
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.score_log import log_scores
from heed.evaluation.test_set import HeldOut
from heed.execute import prepare_run
from heed.metrics.metric import Score
from heed.nn.weight_file import save_weights
from heed.planner import Planner, TrainOptions, tokenizer_of
from heed.report.model_card import _front_matter
from heed.report.page import REPORT, finish_report, refresh_report, write_report
from heed.report.validation import VALIDATION, analyse
from heed.run import Run
from heed.training.metrics_log import read_metrics

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A translation run that was trained for 20 updates, with its report."""
    folder = tmp_path_factory.mktemp("finished")
    write_pairs(folder, "valid", 40, seed=5)
    with unchecked_shapes():
        run = prepared(
            folder, data__valid_src=str(folder / "valid.aa"), data__valid_tgt=str(folder / "valid.bb"),
            data__src_lang="aa", data__tgt_lang="bb",
        )  # fmt: skip
        trainer_of(run).run()
        finish_report(Run(run.folder), quiet=True)
    return Run(run.folder)


@pytest.fixture
def copied(finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of that run, whose reports have no curves, which take longest."""
    monkeypatch.setattr("heed.report.page.draw_curves", lambda folder, train, validations: "")
    shutil.copytree(finished.folder, tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, `base` and `other`, to start another one from."""
    folder = tmp_path_factory.mktemp("others")
    for name in ("base", "other"):
        with_weights(prepared(folder, name))
    return folder


def text_of(run: Run) -> str:
    """The report."""
    return (run.folder / REPORT).read_text(encoding="utf-8")


def test_the_summary_has_model_data_training_machine_and_quality(finished: Run) -> None:
    title, usability, summary = text_of(finished).split("\n\n")[:3]
    assert re.fullmatch(
        r"\*\*BLEU \d\.\d on validation: not usable yet\.\*\* Train longer, or on more data\.", usability
    )
    assert re.findall(r"^- \*\*(\w+)\*\*: ", summary, re.MULTILINE) == ["Model", "Data", "Training", "Quality"]
    assert title == "# Translation aa → bb: run"
    assert "a Transformer encoder-decoder (" in summary
    assert "1 + 1 layers, 16 features, 2 heads" in summary
    assert re.search(r"byte-pair encoding, \d+ pieces for both sides; [\d,]+ parameters\.", summary)
    assert "300 sentence pairs of `train.aa` and `train.bb`" in summary
    assert re.search(r"Ended after 20 updates and \d:\d\d, at a median of [\d,]+ target tokens/s: reached 20", summary)
    assert re.search(r"On (1 of )?\d+ CPU cores? \(.+\), \d+ GiB of memory, in float32\.", summary)
    assert re.search(r"\*\*BLEU [\d.]+ \[[\d.]+, [\d.]+\]\*\*, \*\*chrF2 .*\*\* on 40 validation lines\.", summary)
    assert "synthetic" not in text_of(finished)


def test_scores_have_signatures_intervals_and_search_options(finished: Run) -> None:
    text = text_of(finished)
    step = [event for event in read_metrics(finished.folder) if event.get("best")][-1]["step"]
    assert f"The weights of update {step}, 40 lines, beam 2, length_penalty 1.5, length_norm mean." in text
    for name in ("BLEU", "chrF2", "TER", "perplexity per token"):
        assert re.search(rf"^\| {name} \| [\d.]+ \[[\d.]+, [\d.]+\] \| `[^|]*(\\\|[^|]*)+` \|$", text, re.MULTILINE)


def test_the_data_section_has_fingerprints_counts_and_the_diagnosis(finished: Run) -> None:
    text = text_of(finished)
    sha256 = finished.corpus["files"]["src"]["sha256"][:16]
    assert re.search(rf"\| `train.aa` \| training \| 300 \| [\d,]+ \| `{sha256}…` \|", text)
    assert re.search(r"\| `valid.bb` \| validation \| 40 \| [\d,]+ \| `[0-9a-f]{16}…` \|", text)
    assert "300 sentence pairs to train on, 40 to validate." in text
    assert "The data doctor's diagnosis:\n\n```\ntrain: 300 pairs" in text
    assert str(finished.folder.parent) not in text


def test_samples_are_sorted_by_chrf_and_show_it(finished: Run) -> None:
    text = text_of(finished)
    kinds = re.findall(r"^\*\*([\w ]+)\*\*$", text, re.MULTILINE)
    assert kinds == ["Among the best", "In the middle", "Among the worst", "The worst"]
    values = [int(value) for value in re.findall(r"- output \(chrF2 (\d+)\)", text)]
    assert len(values) == 7
    assert values == sorted(values, reverse=True)


def test_weaknesses_commands_and_citation_are_included(finished: Run) -> None:
    text = text_of(finished)
    assert "There are only 40 validation lines" in text
    assert "By length of the source:" in text
    assert "By frequency of words in the training data:" in text
    assert "heed translate run < in.txt > out.txt" in text
    assert (
        "heed train recipe.toml --data.src=FOLDER/train.aa --data.tgt=FOLDER/train.bb --data.valid_src=FOLDER/valid.aa "
        "--data.valid_tgt=FOLDER/valid.bb --out NEW"
    ) in text
    assert "the Transformer (Vaswani et al. 2017); byte-pair encoding (Sennrich et al. 2016); sacreBLEU" in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Training", "Scores", "Samples", "Known weaknesses", "Data", "Use it", "Reproduce it", "Cite it",
    ]  # fmt: skip


def test_the_analysis_uses_the_kept_weights_and_the_search_of_the_recipe(finished: Run) -> None:
    event = json.loads((finished.folder / VALIDATION).read_text())
    rows = read_valid(finished.folder)
    outputs = [
        h.text for h in finished.predictor.translator.translate([src for src, _ in rows], finished.recipe.decoding)
    ]
    test = HeldOut(("a", "b"), rows)
    [expected] = evaluate_outputs(test, [System("", outputs)], "bb")
    assert event["scores"][:3] == [score.to_json() for score in expected.scores.values()]
    assert event["by_length"] == [bucket.to_json() for bucket in expected.by_length]
    assert event["num_parameters"] == sum(p.numel() for p in finished.model.parameters())
    assert sum(band["num_reference"] for band in event["by_frequency"]) == sum(len(tgt.split()) for _, tgt in rows)


def test_test_scores_are_listed_with_date_files_intervals_and_how_often(copied: Run) -> None:
    rows = [("ba ce", "ler kan"), ("di fo", "not mis")]
    [found] = evaluate_outputs(HeldOut(("test.aa", "test.bb"), rows), [System("run", ["ler kan", "x"], copied)])
    assert "On test data" not in text_of(copied)
    for time in ("2026-11-21T08:00:00+00:00", "2026-11-22T08:00:00+00:00"):
        log_scores(copied, found, time)
        refresh_report(copied)
    text = text_of(copied)
    assert "earlier weights" not in text
    [first, second] = re.findall(r"^\| (\d{4}-\d\d-\d\d.*) \|$", text, re.MULTILINE)
    assert re.match(r"\d{4}-\d\d-\d\d \| `test.aa` `test.bb` \| 2 \| .*\[[\d.]+, [\d.]+\]", first)
    assert re.match(r"\d{4}-\d\d-\d\d \(time 2\) \| `test.aa`", second)
    assert re.search(r"^- chrF2: `nrefs:1", text, re.MULTILINE)
    assert text.index("### On validation data") < text.index("### On test data") < text.index("## Samples")
    save_weights(copied.folder / WEIGHTS, load_file(copied.folder / WEIGHTS), {"made": "again"})
    refresh_report(copied)
    assert text_of(copied).count("| earlier weights |") == 2


def test_search_options_that_differ_from_the_defaults_are_listed(copied: Run) -> None:
    test, options = (
        HeldOut(("a", "b"), [("ba ce", "ler kan")]),
        SearchOptions(beam_size=3, length_penalty=2.0, ban=("x",)),
    )
    [found] = evaluate_outputs(test, [System("run", ["ler kan"], copied, options)])
    log_scores(copied, found, "2026-11-22T08:00:00+00:00")
    refresh_report(copied)
    assert "| beam 3, length_penalty 2.0, ban ['x'] |" in text_of(copied)


def test_scores_without_lines_seen_in_training_and_the_arithmetic_are_listed(copied: Run) -> None:
    score = Score("BLEU", 30.05, "tok:13a", 26.7, 33.43)
    clean = Score("BLEU", 21.61, "tok:13a", 18.9, 24.31)
    leakage = Leakage(40, {"pair": 3}, 5, (1, 2, 3), 40)
    test = HeldOut(("test.aa", "test.bb"), [("ba ce", "ler kan")] * 40)
    found = Evaluation(
        "run", test, copied, {"bleu": score}, {"search": {"beam_size": 5}, "precision": "int8"}, leakage=leakage,
        without_leaked={"bleu": clean}, num_clean=37,
    )  # fmt: skip
    log_scores(copied, found, "2026-11-22T08:00:00+00:00")
    refresh_report(copied)
    text = text_of(copied)
    assert "| 40 | beam 5, int8 | 30.05 [26.70, 33.43] | 3; 5 in validation |" in text
    assert "| without lines in the training data of any run in the command | 37 |  | 21.61 [18.90, 24.31] |  |" in text


def test_scores_of_one_command_count_once_and_are_followed_by_their_signatures(copied: Run) -> None:
    test = HeldOut(("text.aa",), [("ba ce",), ("di fo",)])
    for value, reads in ((90.0, "context:stream"), (80.0, "context:stream|dynamic:sgd")):
        score = Score("perplexity per token", value, reads, value - 1, value + 1)
        log_scores(copied, Evaluation("run", test, copied, {"perplexity": score}), "2026-11-22T08:00:00+00:00")
    refresh_report(copied)
    text = text_of(copied)
    assert "(time 2)" not in text
    assert text.index("90.0") < text.index("`context:stream`") < text.index("80.0") < text.index("|dynamic:sgd`")


def test_only_an_existing_report_is_refreshed_and_links_are_not_followed(copied: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (copied.folder / REPORT).unlink()
    refresh_report(copied)
    assert not (copied.folder / REPORT).exists()
    (copied.folder / REPORT).symlink_to(elsewhere)
    refresh_report(copied)
    assert elsewhere.read_text() == "precious"


def test_a_picture_that_is_a_link_is_not_overwritten(finished: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(finished.folder, tmp_path / "run"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (copied.folder / "curves.png").unlink(missing_ok=True)
    (copied.folder / "curves.png").symlink_to(elsewhere)
    assert "curves.png" not in write_report(copied).read_text()
    assert elsewhere.read_text() == "precious"


def test_a_run_of_an_older_heed_has_a_report_with_greedy_scores(copied: Run) -> None:
    (copied.folder / VALIDATION).unlink()
    shutil.rmtree(copied.folder / "data")
    text = write_report(Run(copied.folder)).read_text()
    assert "greedy search" in text
    assert "## Samples of the last validation (greedy)" in text
    assert re.search(r"^\| bleu \| [\d.]+ \| `nrefs:1", text, re.MULTILINE)
    assert "Known weaknesses" not in text
    assert "## Data" not in text


def test_an_analysis_of_other_weights_is_not_shown(copied: Run) -> None:
    path = copied.folder / "metrics.jsonl"
    kept = next(event for event in reversed(read_metrics(copied.folder)) if event.get("best"))
    with path.open("a") as file:
        file.write(json.dumps({**kept, "step": 999}) + "\n")
    assert "The weights of update 999, greedy search." in write_report(copied).read_text()


@pytest.mark.parametrize("damage", ["", "{", "[]", "3", '{"step": 20}', '{"step": 20, "scores": [{}], "num_lines": 4}'])
def test_a_damaged_analysis_is_ignored(copied: Run, damage: str) -> None:
    (copied.folder / VALIDATION).write_text(damage)
    assert "greedy search" in write_report(copied).read_text()


def test_markup_in_the_data_is_escaped(copied: Run) -> None:
    path = copied.folder / VALIDATION
    text = path.read_text().replace('"source": "', '"source": "<script>*x* ')
    path.write_text(text)
    assert r"\<script\>\*x\* " in write_report(copied).read_text()


def test_a_run_that_ended_at_once_has_a_report(tmp_path: Path) -> None:
    text = finish_report(prepared(tmp_path), quiet=True).read_text()
    assert "Ended: nothing was trained." in text
    assert "## Data" in text
    assert "## Scores" not in text


def test_commands_can_be_pasted_whatever_the_name_of_the_folder(tmp_path: Path) -> None:
    folder = prepared(tmp_path).folder.rename(tmp_path / "en & de")
    text = write_report(Run(folder)).read_text()
    assert "heed translate 'en & de' < in.txt" in text


def test_scores_on_the_built_in_corpus_are_marked_synthetic(tmp_path: Path) -> None:
    assert "**synthetic**" in write_report(prepared(tmp_path, data__synthetic=True)).read_text()


@pytest.mark.parametrize(
    ("options", "origin", "flags"),
    [
        ({"init": "base"}, "fine-tuned from `base`, with its vocabulary", "--init base"),
        (
            {"init": "base", "new_vocabulary": True},
            "fine-tuned from `base`, with a new vocabulary",
            "--init base --init-vocabulary new",
        ),
        (
            {"init": "base", "tokenizer_of": "other"},
            "fine-tuned from `base`, with the vocabulary of `other`",
            "--init base --tokenizer-of other",
        ),
        ({"tokenizer_of": "other"}, "trained from scratch, with the vocabulary of `other`", "--tokenizer-of other"),
    ],
)
def test_the_origin_names_the_runs_that_gave_weights_and_tokenizers(
    others: Path, tmp_path: Path, options: dict[str, Any], origin: str, flags: str
) -> None:
    wanted = TrainOptions(
        tmp_path / "run", device="cpu", quiet=True,
        **{name: others / value if isinstance(value, str) else value for name, value in options.items()},
    )  # fmt: skip
    init = Run(wanted.init) if wanted.init else None
    plan = Planner(Document(), tiny_keys(tmp_path), wanted).plan()
    run = prepare_run(plan, wanted.out, init, True, tokenizer_of(wanted, init))
    text = write_report(run).read_text()
    assert f"- **Origin**: {origin}.\n" in text
    assert re.search(rf"^heed train recipe\.toml .* {flags} --out NEW$", text, re.MULTILINE)
    assert str(tmp_path) not in text
    assert str(others) not in text


def test_the_command_to_reproduce_a_run_quotes_the_names_of_files(copied: Run) -> None:
    path = copied.folder / "recipe.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("train.aa", "my $texts.aa"), encoding="utf-8")
    copied.files.accept("recipe.toml")
    assert " --data.src=FOLDER/'my $texts.aa' " in write_report(Run(copied.folder)).read_text()


def test_a_model_card_names_norwegian_and_not_a_truth_value() -> None:
    yaml = pytest.importorskip("yaml")
    run: Any = SimpleNamespace(recipe=SimpleNamespace(data=SimpleNamespace(src_lang="no", tgt_lang="en")))
    facts = next(yaml.safe_load_all(_front_matter(run, "translation")))
    assert facts["language"] == ["no", "en"]


def test_a_run_trained_from_scratch_and_one_of_an_older_heed_have_no_origin(copied: Run) -> None:
    assert "Origin" not in text_of(copied)
    path = copied.folder / "data" / "corpus.json"
    corpus = json.loads(path.read_text())
    path.write_text(json.dumps({key: corpus[key] for key in ("num_rows", "num_valid", "dropped", "files")}))
    copied.files.accept("data/corpus.json")
    text = write_report(Run(copied.folder)).read_text()
    assert "Origin" not in text
    assert "heed train recipe.toml --data.src=FOLDER/train.aa" in text
    assert "300 sentence pairs of `train.aa`" in text


def test_pairs_are_counted_once_and_their_repetitions_are_reported(tmp_path: Path) -> None:
    run = prepared(tmp_path, data__repeat=4, data__valid_src=str(write_pairs(tmp_path)[0]),
                   data__valid_tgt=str(tmp_path / "train.bb"))  # fmt: skip
    text = write_report(run).read_text()
    assert "- **Data**: 300 sentence pairs (1,200 with repetitions) of `train.aa` and `train.bb`." in text
    assert "300 sentence pairs (1,200 with repetitions) to train on, 300 to validate." in text
    assert "| `train.aa` | training, each pair 4 times | 300 |" in text
    assert "| `train.aa` | validation | 300 |" in text


def test_the_corpora_that_are_shown_have_as_many_pairs_without_repetitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepared(tmp_path, data__repeat=4)
    known = staticmethod(lambda num_rows, characters: (f"like {num_rows} pairs", "20 BLEU"))
    monkeypatch.setattr(run.task_type, "similar_corpora", known)
    assert run.corpus["num_rows"] == 4 * run.num_rows
    assert f"**like {run.num_rows} pairs**: 20 BLEU." in write_report(run).read_text()


def test_separate_tokenizers_and_other_models_are_described(tmp_path: Path) -> None:
    run = prepared(tmp_path, model__kind="rnn_attention", tokenizer__joint=False, tokenizer__kind="character")
    text = write_report(run).read_text()
    assert "a recurrent encoder-decoder with additive attention: GRUs of 16 features, embeddings of 16; " in text
    assert re.search(r"\d+ pieces \(src\) and \d+ pieces \(tgt\)", text)
    assert "attention over a recurrent encoder (Bahdanau et al. 2015)" in text


def test_a_counted_language_model_is_analysed(tmp_path: Path) -> None:
    lines = [f"the {noun} {verb} ." for noun in ("dog", "cat", "man") for verb in ("runs", "sleeps")] * 40
    keys = {"task": "language-model", "data.text": str(write_lines(tmp_path / "text", lines)), "data.hold_out": 90,
            "model.kind": "bigram"}  # fmt: skip
    options = TrainOptions(tmp_path / "lm", device="cpu", quiet=True)
    run = prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)
    model = run.new_model()
    model.estimate(run.task().sequences())  # type: ignore[union-attr]
    save_weights(run.folder / WEIGHTS, model.state_dict(), {})
    found = analyse(run)
    assert [score["name"] for score in found["scores"]][:2] == ["perplexity per token", "perplexity per word"]
    assert found["by_length"] == []
