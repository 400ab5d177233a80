"""Plans: settings inherited from other runs, refused settings, and the size of an epoch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy import prepared, tiny_keys, with_weights, write_pairs
from toy_language import language_run

from heed import planner
from heed.core.config import Document, read_toml, to_toml
from heed.core.errors import MissingInputError, UsageError
from heed.execute import prepare_run
from heed.planner import Plan, Planner, TrainOptions, estimate_training
from heed.run import Run
from heed.tasks.defaults import CPU_MINUTES
from heed.tasks.translation import task as translation
from heed.training.cost_estimate import CostEstimate


def plan_for(folder: Path, keys: dict[str, Any], document: Document | None = None, **options: Any) -> Plan:
    """The plan of a run in `folder / "new"`."""
    told = TrainOptions(folder / "new", device="cpu", quiet=True, **options)
    return Planner(document or Document(), keys, told).plan()


def text_keys(folder: Path, **changes: Any) -> dict[str, Any]:
    """No more than the toy text of `language_run`, and `changes`, `__` standing for the dot."""
    keys = {"task": "language-model", "data.text": str(folder / "toy.txt"), "data.hold_out": 40}
    return keys | {name.replace("__", "."): value for name, value in changes.items()}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A recurrent model that reads a stream of characters."""
    run = language_run(
        tmp_path, "stream", "rnn", train=False, data__line_end="newline", data__keep_blank_lines=True,
        data__normaliser__form="nfkc", tokenizer__kind="character", training__context=9, training__num_streams=3,
    )  # fmt: skip
    return with_weights(run).folder


def test_fine_tuning_takes_over_no_streams_from_a_run_that_reads_lines(tmp_path: Path) -> None:
    """Earlier versions wrote a number of streams into such a recipe, where it had no effect."""
    run = with_weights(language_run(tmp_path, "lines", "gpt", train=False, data__text_as="lines"))
    recipe = run.folder / "recipe.toml"
    text = re.sub(r"num_streams = \d+", "num_streams = 32", recipe.read_text())
    assert "num_streams = 32" in text
    recipe.write_text(text)
    plan = plan_for(tmp_path, text_keys(tmp_path), init=run.folder)
    assert (plan.recipe.data.text_as, "training.num_streams" in plan.reasons) == ("lines", False)


@pytest.mark.parametrize("more", [{}, {"training__max_minutes": 1.0}], ids=["any time", "very short"])
def test_a_fine_tuned_language_model_inherits_how_text_is_read(
    stream: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    plan = plan_for(tmp_path, text_keys(tmp_path, **more), init=stream)
    theirs, ours = Run(stream).recipe, plan.recipe
    assert ours.model == theirs.model
    for name in ("text_as", "line_end", "keep_blank_lines", "normaliser"):
        assert getattr(ours.data, name) == getattr(theirs.data, name)
        assert plan.reasons[f"data.{name}"] == "as in --init"
    assert (ours.training.context, ours.training.num_streams) == (9, 3)
    assert to_toml(ours, plan.reasons).count("# as in --init") > 10, "no reason for a setting that is not written"
    epoch = plan.stats.num_rows * (plan.stats.characters_per_row + 1) / (3 * 9)
    assert ours.training.eval_every == round(epoch), "it goes by what is read at once"


def test_keys_of_the_text_that_are_given_take_precedence_over_init(stream: Path, tmp_path: Path) -> None:
    said = {"data.text_as": "windows", "data.line_end": "eos", "training.context": 5, "data.normaliser.form": "nfc"}
    recipe = plan_for(tmp_path, text_keys(tmp_path) | said, init=stream).recipe
    assert (recipe.data.text_as, recipe.data.line_end, recipe.training.context) == ("windows", "eos", 5)
    assert recipe.data.normaliser.form == "nfc"
    assert recipe.data.keep_blank_lines
    alone = plan_for(tmp_path, text_keys(tmp_path, data__text_as="lines"), init=stream).recipe.data
    assert (alone.line_end, alone.keep_blank_lines) == ("eos", False)


def test_a_share_of_the_pairs_is_planned_as_a_corpus_of_its_size(tmp_path: Path) -> None:
    whole, half = (plan_for(tmp_path, tiny_keys(tmp_path, data__share=share)) for share in (1.0, 0.5))
    assert half.stats.num_rows == whole.stats.num_rows / 2
    epochs = [
        estimate.seconds_per_epoch * estimate.tokens_per_second
        for estimate in map(estimate_training, (whole, half))
        if estimate
    ]
    assert epochs[1] == pytest.approx(epochs[0] / 2)


def test_a_fine_tuned_translator_inherits_the_normaliser(tmp_path: Path) -> None:
    init = with_weights(prepared(tmp_path, model__kind="rnn_attention", data__normaliser__form="nfkc"))
    keys = {"task": "translation", "data.src": str(tmp_path / "train.aa"), "data.tgt": str(tmp_path / "train.bb")}
    plan = plan_for(tmp_path, keys, init=init.folder)
    assert plan.recipe.model == init.recipe.model
    assert plan.recipe.data.normaliser == init.recipe.data.normaliser
    assert plan.recipe.tokenizer == init.recipe.tokenizer
    assert plan.reasons["tokenizer.vocab_size"] == "as in --init"


def test_fine_tuning_may_change_dropout_in_an_encoder_but_not_its_size(tmp_path: Path) -> None:
    init = with_weights(prepared(tmp_path, model__kind="encoder_decoder"))
    keys = {"task": "translation", "data.src": str(tmp_path / "train.aa"), "data.tgt": str(tmp_path / "train.bb")}
    plan = plan_for(tmp_path, keys | {"model.encoder.dropout": 0.5}, init=init.folder)
    assert plan.recipe.model == init.recipe.model.model_copy(
        update={"encoder": init.recipe.model.encoder.model_copy(update={"dropout": 0.5})}
    )
    with pytest.raises(UsageError, match=r"differs from the recipe's \(encoder\.hidden_size 16 there, 24 here\)"):
        plan_for(tmp_path, keys | {"model.encoder.hidden_size": 24}, init=init.folder)


@pytest.mark.parametrize("kind", ["bigram", "class_ngram", "lz78"])
def test_a_count_based_model_cannot_be_fine_tuned(tmp_path: Path, kind: str) -> None:
    more = {"model__num_classes": 3} if kind == "class_ngram" else {}
    init = language_run(tmp_path, "counted", kind, train=False, **more)
    with pytest.raises(UsageError, match=rf"its model \({kind}\) is count-based.* Count both texts together"):
        plan_for(tmp_path, text_keys(tmp_path), init=init.folder)
    assert plan_for(tmp_path, text_keys(tmp_path), tokenizer_of=init.folder).recipe.model.kind == "gpt"


def test_the_recipe_describes_the_tokenizers_of_the_other_run(tmp_path: Path) -> None:
    smaller = prepared(tmp_path, "smaller", tokenizer__vocab_size=280)
    keys = tiny_keys(tmp_path, tokenizer__vocab_size=280, tokenizer__dropout=0.1)
    plan = plan_for(tmp_path, keys, tokenizer_of=smaller.folder)
    assert plan.recipe.tokenizer == smaller.recipe.tokenizer.model_copy(update={"dropout": 0.1})
    assert plan.reasons["tokenizer.kind"] == "as in --tokenizer-of"
    of_characters = prepared(tmp_path, "characters", tokenizer__kind="character")
    document = read_toml(smaller.folder / "recipe.toml")
    assert plan_for(tmp_path, {}, document, tokenizer_of=of_characters.folder).recipe.tokenizer.kind == "character"


def test_an_estimated_epoch_includes_the_repetitions_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = write_pairs(tmp_path, "more", 40, 7)
    parts = [{"src": str(src), "tgt": str(tgt), "repeat": 3}]
    monkeypatch.setattr(planner, "estimate_cost", lambda config, model, task, batch, num_tokens, *others: num_tokens)
    once = plan_for(tmp_path, tiny_keys(tmp_path))
    often = plan_for(tmp_path, tiny_keys(tmp_path, data__repeat=4, data__parts=parts))
    assert (once.stats.num_in_epoch, often.stats.num_in_epoch) == (300, 4 * 300 + 3 * 40)
    held = once.recipe.data.num_held_out
    times = (1320 - 4 * held) / (300 - held)
    assert estimate_training(often) == pytest.approx(estimate_training(once) * times)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"tokenizer__vocab_size": 200}, UsageError, "too small for a bpe tokenizer"),
        ({"tokenizer__joint": False, "model__tie": "all"}, UsageError, 'set model.tie = "target"'),
        (
            {"tokenizer__joint": False, "model__tie": "all", "tokenizer__kind": "byte", "data__tag": "2de"},
            UsageError,
            'set model.tie = "target"',
        ),
        ({"data__text": "more.txt"}, UsageError, "data.text is not read for task 'translation'"),
        ({"data__valid_text": "more.txt"}, UsageError, "data.valid_text is not read"),
    ],
)
def test_invalid_settings_are_refused_before_the_data_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], error: type[Exception], message: str
) -> None:
    monkeypatch.setattr(translation, "diagnose_files", lambda *_, **__: pytest.fail("the data was read"))
    with pytest.raises(error, match=message):
        plan_for(tmp_path, tiny_keys(tmp_path, **keys))


def test_missing_weights_are_reported_before_the_data_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init = prepared(tmp_path, "init")
    monkeypatch.setattr(translation, "diagnose_files", lambda *_, **__: pytest.fail("the data was read"))
    with pytest.raises(MissingInputError, match=r"has no model.safetensors"):
        plan_for(tmp_path, tiny_keys(tmp_path), init=init.folder)


def test_a_missing_vocabulary_text_is_reported(tmp_path: Path) -> None:
    stream = language_run(tmp_path, "any", "rnn", train=False)
    with pytest.raises(MissingInputError, match=r"words.txt"):
        plan_for(tmp_path, text_keys(tmp_path, data__vocabulary_text="words.txt"), tokenizer_of=stream.folder)


def test_a_translator_may_use_the_tokenizer_of_a_language_model(tmp_path: Path) -> None:
    lm = language_run(tmp_path, "lm", "rnn", train=False)
    keys = {name: value for name, value in tiny_keys(tmp_path).items() if not name.startswith("tokenizer.")}
    plan = plan_for(tmp_path, keys, tokenizer_of=lm.folder)
    run = prepare_run(plan, tmp_path / "new", None, True, lm)
    assert run.tokenizers["src"] is run.tokenizers["tgt"]
    assert run.tokenizers["src"].vocabulary.sha256 == lm.tokenizers["tgt"].vocabulary.sha256


def test_a_language_that_is_not_given_is_inferred_from_its_script(tmp_path: Path) -> None:
    rows = [f"the dog has {number} bones\t犬は骨を{number}本持っている" for number in range(100)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    keys = {"task": "translation", "data.pairs": str(path), "training.max_minutes": 0.0}
    plan = plan_for(tmp_path, keys)
    assert (plan.recipe.data.src_lang, plan.recipe.data.tgt_lang) == ("", "ja")
    assert plan.reasons["data.tgt_lang"] == "by the name of its column, or its script"
    named = plan_for(tmp_path, {**keys, "data.tgt_lang": "jpn"})
    assert named.recipe.data.tgt_lang == "jpn"


@pytest.mark.parametrize("taken", ["init", "tokenizer_of"])
def test_tokenizer_keys_that_contradict_a_kept_vocabulary_are_refused(tmp_path: Path, taken: str) -> None:
    other = with_weights(prepared(tmp_path, "other"))
    size = other.recipe.tokenizer.vocab_size
    options: dict[str, Any] = {taken: other.folder}
    plan = plan_for(tmp_path, tiny_keys(tmp_path, tokenizer__vocab_size=size, tokenizer__dropout=0.1), **options)
    assert (plan.recipe.tokenizer.vocab_size, plan.recipe.tokenizer.dropout) == (size, 0.1)
    keys = tiny_keys(tmp_path, tokenizer__vocab_size=size + 1, tokenizer__kind="nonsense")
    said = rf"keeps that run's vocabulary: leave out --tokenizer.kind=nonsense, --tokenizer.vocab_size={size + 1}"
    with pytest.raises(UsageError, match=said):
        plan_for(tmp_path, keys, **options)


def test_an_estimate_includes_the_processes(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, tiny_keys(tmp_path, training__max_epochs=3))
    together = replace(plan, machine=replace(plan.machine, num_processes=1000))
    one, many = estimate_training(plan), estimate_training(together)
    assert one is not None
    assert many is not None
    assert many.seconds_per_epoch < one.seconds_per_epoch / 50


def test_an_estimate_leaves_out_what_is_held_out(tmp_path: Path) -> None:
    few, many = (plan_for(tmp_path, tiny_keys(tmp_path, data__hold_out=number)) for number in (10, 60))
    epochs = [
        found.seconds_per_epoch * found.tokens_per_second for plan in (few, many) if (found := estimate_training(plan))
    ]
    assert epochs[1] / epochs[0] == pytest.approx((few.stats.num_rows - 60) / (few.stats.num_rows - 10))


@pytest.mark.parametrize("taken", ["init", "tokenizer_of"])
def test_the_estimated_number_of_parameters_is_exact_if_the_vocabulary_is_known(tmp_path: Path, taken: str) -> None:
    other = with_weights(prepared(tmp_path, "other", tokenizer__vocab_size=5000))
    assert len(other.tokenizers["tgt"].vocabulary) < 1000, "these few words have fewer pieces than the recipe allows"
    options: dict[str, Any] = {taken: other.folder}
    keys = {name: value for name, value in tiny_keys(tmp_path).items() if not name.startswith("tokenizer.")}
    plan = plan_for(tmp_path, keys, **options)
    known, new = estimate_training(plan), estimate_training(replace(plan, vocabularies=None))
    assert known is not None
    assert new is not None
    assert known.num_parameters == sum(tensor.numel() for tensor in other.model.parameters())
    assert new.num_parameters > known.num_parameters
    assert plan_for(tmp_path, tiny_keys(tmp_path)).vocabularies is None


def limited(
    folder: Path, patch: pytest.MonkeyPatch, updates: int, keys: dict[str, Any], document: Document | None = None,
    **options: Any,
) -> Plan:  # fmt: skip
    """The plan of a training whose time limit of a minute allows this number of updates."""
    estimate = CostEstimate(1, 1, 1, 1, 60 / updates, {"at most a minute": 60.0})
    patch.setattr(planner, "estimate_training", lambda plan: estimate)
    return plan_for(folder, {**keys, "training.max_minutes": 1.0}, document, **options)


def pair_keys(folder: Path, **changes: Any) -> dict[str, Any]:
    """The files of toy pairs, the kind of model, which would be phrases, and `changes`."""
    files = {key: value for key, value in tiny_keys(folder).items() if key in ("task", "data.src", "data.tgt")}
    return files | {"model.kind": "transformer"} | {name.replace("__", "."): value for name, value in changes.items()}


def schedule(plan: Plan) -> tuple[str, float, int]:
    """The optimiser, its peak rate and the warm-up."""
    training = plan.recipe.training
    return training.optimizer, training.lr, training.warmup_steps


ADAM = ("adam", 4e-3, 800)


@pytest.mark.parametrize(
    ("updates", "chosen"),
    [
        (100, ("muon", 6.5e-3, 25)), (300, ("muon", 6.5e-3, 50)), (400, ("muon", 6.5e-3, 100)),
        (1200, ("muon", 6.5e-3, 100)), (1201, ("muon", 6.5e-3, 300)), (2500, ("muon", 6.5e-3, 300)),
        (2600, ("adam", 4e-3, 400)), (3300, ADAM),
    ],
)  # fmt: skip
def test_the_schedule_of_a_translator_fits_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: int, chosen: tuple[str, float, int]
) -> None:
    plan = limited(tmp_path, monkeypatch, updates, pair_keys(tmp_path))
    assert schedule(plan) == chosen
    assert ("training.optimizer" in plan.reasons) == (chosen[0] == "muon")
    tables = [key.split(".")[0] for key in plan.reasons]
    assert tables == sorted(tables, key=["data", "tokenizer", "model", "training", "decoding"].index)


def test_heeds_own_limit_of_time_counts_as_one_that_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = CostEstimate(1, 1, 1, 1, 60 * CPU_MINUTES / 1000, {"at most 45 minutes": 60.0 * CPU_MINUTES})
    monkeypatch.setattr(planner, "estimate_training", lambda plan: estimate)
    plan = plan_for(tmp_path, pair_keys(tmp_path))
    assert (plan.recipe.training.max_minutes, schedule(plan)) == (CPU_MINUTES, ("muon", 6.5e-3, 100))
    assert not plan.warning


def test_without_a_limit_of_time_the_schedule_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "estimate_training", lambda plan: pytest.fail("not needed"))
    assert schedule(plan_for(tmp_path, pair_keys(tmp_path, training__max_minutes=0.0))) == ADAM
    assert schedule(plan_for(tmp_path, pair_keys(tmp_path, training__max_epochs=5))) == ADAM, "as it was given"
    given = {"training__optimizer": "adam", "training__lr": 0.1, "training__warmup_steps": 7}
    plan = plan_for(tmp_path, pair_keys(tmp_path, training__max_minutes=1.0, **given))
    assert schedule(plan) == ("adam", 0.1, 7)


@pytest.mark.parametrize(("updates", "warm_up"), [(3, 1), (60, 15), (400, 100), (3199, 400), (3200, 800)])
def test_a_limit_of_updates_shortens_the_warm_up_without_timing_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: int, warm_up: int
) -> None:
    monkeypatch.setattr(planner, "estimate_training", lambda plan: pytest.fail("not needed"))
    plan = plan_for(tmp_path, pair_keys(tmp_path, training__max_steps=updates))
    assert schedule(plan) == ("adam", 4e-3, warm_up)
    noam = pair_keys(tmp_path, training__max_steps=updates, training__schedule="noam")
    assert plan_for(tmp_path, noam).recipe.training.warmup_steps == 800, "its peak rate depends on the warm-up"
    given = pair_keys(tmp_path, training__max_steps=updates, training__warmup_steps=700)
    assert schedule(plan_for(tmp_path, given)) == ("adam", 4e-3, 700)


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({"training__optimizer": "adam"}, ("adam", 4e-3, 200)),
        ({"training__lr": 0.001}, ("adam", 0.001, 200)),
        ({"training__schedule": "linear"}, ("adam", 4e-3, 200)),
        ({"training__warmup_steps": 700}, ("adam", 4e-3, 700)),
        ({"model__d_model": 256}, ("adam", 2e-3, 200)),
        ({"model__kind": "encoder_decoder"}, ("adam", 4e-3, 200)),
    ],
)
def test_keys_that_are_given_and_other_models_keep_their_optimiser_and_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], chosen: tuple[str, float, int]
) -> None:
    assert schedule(limited(tmp_path, monkeypatch, 1000, pair_keys(tmp_path, **changes))) == chosen


def test_a_recipe_and_the_optimiser_of_other_weights_are_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = with_weights(prepared(tmp_path, model__d_model=16, training__lr=0.02))
    document = read_toml(init.folder / "recipe.toml")
    written = (init.recipe.training.optimizer, 0.02, init.recipe.training.warmup_steps)
    assert schedule(limited(tmp_path, monkeypatch, 1000, {}, document)) == written
    tuned = limited(tmp_path, monkeypatch, 1000, pair_keys(tmp_path), init=init.folder)
    assert schedule(tuned) == ("adam", 0.005, 200)


def test_new_vocabularies_for_two_sides_do_not_fit_one_embedding(tmp_path: Path) -> None:
    init = with_weights(prepared(tmp_path, "init"))
    keys = tiny_keys(tmp_path, tokenizer__joint=False)
    with pytest.raises(UsageError, match=r'set model.tie = "target"'):
        plan_for(tmp_path, keys, init=init.folder, new_vocabulary=True)


@pytest.mark.parametrize(("tuning_rounds", "named"), [(1, "training.max_steps has"), (0, "training.max_minutes and")])
def test_a_time_limit_has_an_effect_on_phrases_while_their_weights_are_tuned(
    tuning_rounds: int, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {key: value for key, value in tiny_keys(tmp_path).items() if key.startswith(("data.", "task"))}
    own = {"model.kind": "phrase_based", "model.tuning_rounds": tuning_rounds, "training.scorer": ""}
    limits = {"training.max_steps": 9, "training.max_minutes": 5.0}
    Planner(Document(), {**kept, **own, **limits}, TrainOptions(tmp_path / "new", device="cpu")).plan()
    [line] = [each for each in capsys.readouterr().err.splitlines() if "no effect" in each]
    assert named in line
    assert ("max_minutes" in line) == (not tuning_rounds)
