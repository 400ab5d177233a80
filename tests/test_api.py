"""Tests of the Python API: training, opening and using a run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import WORDS, prepared, tiny_keys, trainer_of, without_shape_checks, write_lines
from wrong_arguments import refuses_wrong_tops

import heed
from heed.core.config import to_toml
from heed.core.errors import DataError, HeedError, MissingInputError, UsageError
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.execute import check_folder
from heed.nn.device import best_precision
from heed.planner import TrainOptions
from heed.training.trainer import Trainer

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> heed.api.Predictor:
    folder = tmp_path_factory.mktemp("api")
    keys = tiny_keys(folder, training__max_steps=4, training__eval_every=4)
    return heed.train(keys, folder / "run", quiet=True)


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> heed.api.Predictor:
    folder = tmp_path_factory.mktemp("api")
    text = write_lines(folder / "text", [f"the {a} sees {b} ." for a in WORDS for b in WORDS])
    keys = {"task": "language-model", "data.text": str(text), "model.kind": "bigram"}
    return heed.train(keys, folder / "run", quiet=True)


def test_a_trained_run_translates_as_many_lines_as_it_got(translator: heed.api.Predictor) -> None:
    lines = ["ba ce", "", "  ", "pi"]
    texts = translator.translate(lines)
    assert len(texts) == 4
    assert texts[1:3] == ["", "  "]
    again = heed.load(translator.run.folder)
    assert again.translate(lines) == texts
    best = translator.hypotheses(["ba ce"], SearchOptions(beam_size=3, nbest=2))[0]
    assert len(best.alternatives) == 1


def test_it_scores_translations(translator: heed.api.Predictor) -> None:
    [scored] = translator.score(["mis ler kan"], ["ba ce di"])
    assert len(scored.ids) == len(scored.log_probs)
    assert scored.log_prob < 0


def test_a_language_model_generates_and_scores(language_model: heed.api.Predictor) -> None:
    [text] = language_model.generate("the")
    assert isinstance(text, str)
    texts = language_model.generate("the", SearchOptions(sample=True, nbest=3, seed=5))
    assert len(texts) == 3
    assert texts == language_model.generate("the", SearchOptions(sample=True, nbest=3, seed=5))
    likely, unlikely = language_model.score(["the ba sees pi .", ". ba the sees the"])
    assert likely.log_prob > unlikely.log_prob


def test_methods_that_a_run_does_not_support_are_refused(
    translator: heed.api.Predictor, language_model: heed.api.Predictor
) -> None:
    with pytest.raises(UsageError, match="translate needs a run that can translate"):
        language_model.translate(["a"])
    with pytest.raises(UsageError, match="generate needs a run that can generate"):
        translator.generate("a")
    with pytest.raises(UsageError, match="scores targets given their sources"):
        translator.score(["a"])
    with pytest.raises(UsageError, match="a language model scores texts without sources"):
        language_model.score(["a"], ["b"])
    with pytest.raises(UsageError, match="precision must be float32, bfloat16 or int8, got 'int4'"):
        heed.load(translator.run.folder, precision="int4")
    with pytest.raises(DataError, match="2 targets with 1 sources"):
        translator.score(["a", "b"], ["c"])


def test_a_recipe_file_is_used_with_the_changes(translator: heed.api.Predictor, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(to_toml(translator.run.recipe))
    again = heed.train(recipe, tmp_path / "run", {"training.max_steps": 2}, quiet=True)
    assert again.run.recipe.training.max_steps == 2
    assert again.run.recipe.model == translator.run.recipe.model


def test_limits_that_are_too_tight_for_a_usable_model_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tiny_keys(tmp_path, training__max_steps=1)
    heed.train(keys, tmp_path / "loud", device="cpu")
    assert "the limits allow about 1 update, and" in capsys.readouterr().err
    heed.train(keys, tmp_path / "quiet", device="cpu", quiet=True)
    assert capsys.readouterr().err == ""


def test_keys_may_be_in_tables(tmp_path: Path) -> None:
    keys = tiny_keys(tmp_path, training__max_steps=1)
    tables: dict[str, Any] = {}
    for key, value in keys.items():
        *table, name = key.split(".")
        (tables.setdefault(table[0], {}) if table else tables)[name] = value
    flat, nested = (heed.train(each, tmp_path / name, device="cpu", quiet=True)
                    for name, each in (("flat", keys), ("nested", tables)))  # fmt: skip
    assert flat.run.recipe == nested.run.recipe


def test_wrong_types_and_options_are_refused_in_words(translator: heed.api.Predictor) -> None:
    options = translator.run.recipe.decoding

    def changed(**values: Any) -> Any:
        return translator.translate("ba", options.model_copy(update=values))

    for wrong, message in (
        (lambda: translator.translate(3), "expected a text or a list of texts, got int"),
        (lambda: translator.translate(np.array("ba")), "expected a text or a list of texts, got ndarray"),
        (lambda: translator.translate(["ba", 3]), "got int in the list"),
        (lambda: translator.translate(["ba", None]), "got NoneType in the list"),
        (lambda: translator.translate("ba", {"beam_size": 3}), "options must be a heed.SearchOptions, got dict"),
        (lambda: changed(beamsize=3), "unknown key 'beamsize'. Did you mean 'beam_size'"),
        (lambda: changed(temperature=-1.0), "SearchOptions: temperature: expected a number above 0"),
        (lambda: changed(min_tokens=9, max_tokens=2), "SearchOptions: min_tokens must not be above"),
        (lambda: heed.SearchOptions(max_token=5), "SearchOptions: unknown key 'max_token'. Did you mean 'max_tokens'?"),  # type: ignore[call-arg]
        (lambda: heed.SearchOptions(beam_size=0), "beam_size: expected a whole number from 1 to 1000, got 0"),
        (lambda: heed.load(translator.run.folder, num_workers=-1), "num_workers must be a whole number from 0 on"),
        (lambda: heed.load("x", num_workers="2"), "num_workers must be a whole number from 0 on, got '2'"),  # type: ignore[arg-type]
        (lambda: heed.load("x", num_workers=None), "num_workers must be a whole number from 0 on, got None"),  # type: ignore[arg-type]
        (lambda: heed.load("x", num_workers=1.5), "num_workers must be a whole number from 0 on, got 1.5"),  # type: ignore[arg-type]
        (lambda: heed.load("x", device=None), "device must be auto, cpu, cuda or cuda:N, got None"),  # type: ignore[arg-type]
        (lambda: heed.load("x", device=0), "device must be auto, cpu, cuda or cuda:N, got 0"),  # type: ignore[arg-type]
        (lambda: heed.load("x", members=int), "members must be a list of classes, got <class 'int'>"),  # type: ignore[arg-type]
        (lambda: heed.train({}, "x", 3), "changes must be a mapping of recipe keys, got 3"),  # type: ignore[arg-type]
        (lambda: heed.evaluate([], text="x"), "name at least one run"),
        (lambda: heed.load(None), "folder must be the path of a run folder, as a str or a pathlib.Path; got None"),  # type: ignore[arg-type]
        (lambda: heed.load("x", ensemble=[3]), "ensemble must be the path of a run folder, .* got 3"),  # type: ignore[list-item]
        (lambda: heed.load("x", lm=b"y"), "lm must be the path of a run folder, .* got b'y'"),  # type: ignore[arg-type]
        (lambda: heed.evaluate(3, text="x"), "runs must be the path of a run folder, .* got 3"),  # type: ignore[arg-type]
        (lambda: heed.evaluate("x", src="x", ref=3), "ref must be the path of a file, .* got 3"),  # type: ignore[arg-type]
        (lambda: heed.train(3, "x"), "recipe must be a mapping of recipe keys or the path of a recipe .* got 3"),  # type: ignore[arg-type]
        (lambda: heed.train({}, None), "out must be the path of a run folder, .* got None"),  # type: ignore[arg-type]
        (lambda: heed.train({}, "x", init=3), "init must be the path of a run folder, .* got 3"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=message):
            wrong()
    assert changed(nbest=3, beam_size=2, ban=["ce"]) == changed(nbest=3, beam_size=3, ban=("ce",))
    assert translator.translate(text for text in ("ba ce", "di")) == translator.translate(["ba ce", "di"])


def test_the_number_of_translations_is_checked(translator: heed.api.Predictor) -> None:
    refuses_wrong_tops(translator.predict, ["ba ce"])


def test_errors_of_embed_name_the_line(translator: heed.api.Predictor) -> None:
    with pytest.raises(DataError, match="line 2 has the lone surrogate U"):
        translator.embed(["ba", "ce \ud800"])
    assert translator.embed([]).shape == (0, len(translator.embed("ba")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"new_vocabulary": True}, "--init-vocabulary new needs --init RUN"),
        ({"init_parts": "encoder"}, "--init-parts and --init-backward need --init RUN"),
        ({"init_parts": "decoder"}, "--init-parts must be all, encoder or embeddings, got 'decoder'"),
        ({"init_parts": None}, "--init-parts must be all, encoder or embeddings, got None"),
    ],
)
def test_options_of_a_beginning_without_one_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        heed.train(tiny_keys(tmp_path, training__max_steps=1), tmp_path / "run", quiet=True, **options)


def test_load_refuses_a_tag_and_a_memory_that_do_not_exist(translator: heed.api.Predictor, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--tag xx: the run was trained without tags"):
        heed.load(translator.run.folder, tag="xx")
    with pytest.raises(MissingInputError, match="none"):
        heed.load(translator.run.folder, memory=tmp_path / "none.memory")


def test_a_folder_whose_name_is_too_long_is_refused() -> None:
    with pytest.raises(MissingInputError, match=r"^x{300}: File name too long\."):
        heed.load("x" * 5000)


def test_a_single_further_run_may_be_given_as_a_path(translator: heed.api.Predictor) -> None:
    folder = translator.run.folder
    one, several = heed.load(folder, ensemble=folder), heed.load(folder, ensemble=[folder])
    assert one.translate("ba ce") == several.translate("ba ce")


def test_the_same_recipe_gives_the_same_bytes(translator: heed.api.Predictor, tmp_path: Path) -> None:
    recipe = translator.run.folder / "recipe.toml"
    again = heed.train(recipe, tmp_path / "run", quiet=True)
    one, two = ((run.run.folder / "model.safetensors").read_bytes() for run in (translator, again))
    assert one == two


def test_threads_and_random_numbers_of_the_process_stay_as_they_are(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        random = torch.get_rng_state()
        best_precision(torch.device("cpu"))  # measured once for all tests, and possibly before this one
        keys = tiny_keys(tmp_path, training__max_steps=1, training__eval_every=1, training__max_minutes=5)
        assert heed.train(keys, tmp_path / "run", device="cpu", quiet=True).engine is not None
        heed.load(tmp_path / "run").translate(["ba ce", "di"])
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), random)
    finally:
        torch.set_num_threads(threads)


def test_an_interrupted_training_reports_how_to_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = Trainer.train_step

    def interrupted(self: Trainer, batches: Any) -> None:
        update(self, batches)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "train_step", interrupted)
    with pytest.raises(HeedError, match=r"stopped by SIGINT; continue with: heed train --resume .*run"):
        heed.train(tiny_keys(tmp_path), tmp_path / "run", quiet=True)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    def check(out: Path, **options: Any) -> None:
        check_folder(TrainOptions(out, **options))

    check(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    check(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; a run is a folder"):
        check(tmp_path / "file")
    with pytest.raises(UsageError, match=r"already holds files\. Start again with --overwrite"):
        check(tmp_path)
    with pytest.raises(UsageError, match="is not empty and is not a run folder, so nothing was removed"):
        check(tmp_path, overwrite=True)
    run = prepared(tmp_path)
    with pytest.raises(UsageError, match="already holds a run without checkpoints"):
        check(run.folder)
    trainer_of(run).save()
    with pytest.raises(UsageError, match=r"newest checkpoint is step-0000000\. Continue with `heed train --resume"):
        check(run.folder)
    check(run.folder, overwrite=True)
    for name in ("init", "init_backward", "tokenizer_of"):
        with pytest.raises(UsageError, match=r"would remove .*, which this training needs\. Name another"):
            check(run.folder, overwrite=True, **{name: run.folder})


def test_outputs_that_the_limits_of_the_search_will_cut_off_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    src = write_lines(tmp_path / "a", [f"ba ce w{i}" for i in range(100)])
    tgt = write_lines(tmp_path / "b", [f"kan ler v{i}" + " so so" * (i % 2) for i in range(100)])
    keys = {"data__src": str(src), "data__tgt": str(tgt), "tokenizer__kind": "byte", "decoding__max_extra": 4}
    run = prepared(tmp_path, **keys, decoding__max_ratio=1)
    valid = read_valid(run.folder)
    number = sum(" so" in tgt for _, tgt in valid)
    [warning] = run.task().warnings()
    assert f"{number} of {len(valid)} validation references have more tokens than an output may have" in warning
    raised = prepared(tmp_path, "other", **keys, decoding__max_ratio=2)
    assert 0 < number < len(valid) and not raised.task().warnings()


def test_a_vocabulary_with_many_unknown_words_stops_the_training_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    src = write_lines(tmp_path / "a", [f"ba ce w{i}" for i in range(200)])
    tgt = write_lines(tmp_path / "b", [f"kan ler v{i}" for i in range(200)])
    keys = tiny_keys(tmp_path, data__src=str(src), data__tgt=str(tgt), tokenizer__kind="word", training__max_steps=1)
    keys |= {"tokenizer.min_frequency": 2}
    with pytest.raises(DataError, match=r"validation src tokens \(33\.3 %\) are not in the vocabulary.*--force"):
        heed.train(keys, tmp_path / "run", quiet=True)
    heed.train(keys, tmp_path / "run", overwrite=True, force=True)
    assert "stop: 7 of 21 validation src tokens (33.3 %) are not in the vocabulary" in capsys.readouterr().err
