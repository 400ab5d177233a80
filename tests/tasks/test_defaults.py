"""Default settings: they fit the corpus and the machine, and respect the user's."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from heed.core.config import Document
from heed.models import MODELS, build_model
from heed.nn.contract import Vocabularies
from heed.planner import fine_tuned
from heed.recipe import Recipe, build_recipe
from heed.tasks import TASKS, task_type
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.language_model.defaults import choose_language_model
from heed.tasks.language_model.task import LanguageModelTask
from heed.tasks.translation.defaults import SIZES, WORD_CLASSES, choose_translation, size_for
from heed.tasks.translation.task import TranslationTask
from heed.text.doctor.diagnose import diagnose

CPU = Machine("cpu", 2, 8 << 30, "bfloat16", 2.5)
GPU = Machine("cuda", 16, 80 << 30, "bfloat16", 9.0)


@pytest.mark.parametrize(
    ("precision", "gain", "told"), [("bfloat16", 0.5, True), ("bfloat16", 2.0, False), ("float32", 0.5, False)]
)
def test_a_precision_that_costs_time_causes_a_warning(precision: str, gain: float, told: bool) -> None:
    advice = Machine("cpu", 2, 8 << 30, "float32", gain).advice(precision)
    assert ("--training.precision=float32" in advice) == told


CHARACTERS = 60.0
NEURAL = {"decoding.seed": 1}
"""A setting that phrases do not have."""


def choose(num_rows: int = 29_000, machine: Machine = CPU, **given: Any) -> Choices:
    keys = {name.replace("__", "."): value for name, value in given.items()}
    return choose_translation(CorpusStats(num_rows, CHARACTERS), machine, {**NEURAL, **keys})


def recipe(choices: Choices, task: str = "translation", **given: Any) -> Recipe:
    keys = {name.replace("__", "."): value for name, value in given.items()}
    return build_recipe(Document(), {"task": task, **choices.values, **keys})


@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("num_rows", [1, 100, 10_000, 10_001, 250_000, 10_000_000])
def test_every_corpus_on_every_machine_gets_a_valid_recipe_with_a_reason_for_each_choice(
    num_rows: int, machine: Machine
) -> None:
    choices = choose(num_rows, machine)
    assert choices.values.keys() == choices.reasons.keys()
    assert all(choices.reasons.values())
    assert recipe(choices).training.precision == "bfloat16"


@pytest.mark.parametrize(("num_rows", "line"), [(1, 0), (10_000, 0), (10_001, 1), (1 << 40, -1)])
def test_the_size_is_that_of_the_corpus(num_rows: int, line: int) -> None:
    assert size_for(num_rows) == SIZES[line]


def test_larger_corpora_get_larger_vocabularies_and_less_dropout() -> None:
    found = [choose(rows, GPU).values for rows in (5_000, 50_000, 500_000, 5_000_000)]
    assert [v["tokenizer.vocab_size"] for v in found] == sorted(v["tokenizer.vocab_size"] for v in found)
    assert [v["model.dropout"] for v in found] == sorted((v["model.dropout"] for v in found), reverse=True)


def test_a_model_of_another_width_keeps_its_proportions_and_gets_its_own_rate() -> None:
    wide = choose(29_000, model__d_model=256).values
    assert (wide["model.d_ff"], wide["model.num_heads"], wide["training.lr"]) == (512, 4, 2e-3)
    assert choose(5_000_000, GPU, model__d_model=64).values["model.d_ff"] == 256


@pytest.mark.parametrize("num_rows", [29_000, 163_000, 5_000_000])
def test_a_cpu_gets_a_smaller_model_that_needs_no_more_dropout(num_rows: int) -> None:
    cpu, gpu = (choose(num_rows, machine).values for machine in (CPU, GPU))
    assert cpu["model.d_model"] < gpu["model.d_model"]
    assert cpu["model.dropout"] <= gpu["model.dropout"]
    assert cpu["training.lr"] > gpu["training.lr"]


@pytest.mark.parametrize(
    ("kind", "growth", "ratio"),
    [
        ("bpe", 3.0, None),
        ("character", 0.5, None),
        ("character", 1.1, 3.0),
        ("character", 2.8, 7.0),
        ("byte", 1.0, 4.0),
    ],
)
def test_an_output_may_be_as_much_longer_than_its_source_as_the_target_is(
    kind: str, growth: float, ratio: float | None
) -> None:
    survey = CorpusStats(6000, 60.0, growth=growth)
    assert choose_translation(survey, CPU, {"tokenizer.kind": kind}).values.get("decoding.max_ratio") == ratio


def test_a_machine_without_a_gpu_gets_a_small_model_and_a_limit_of_time() -> None:
    cpu, gpu = choose(5_000_000, CPU), choose(5_000_000, GPU)
    assert cpu.values["model.d_model"] <= 256 < gpu.values["model.d_model"]
    assert "small, to train fast on a CPU" in cpu.reasons["model.d_model"]
    assert cpu.values["training.max_minutes"] < 60
    assert "training.max_minutes" not in gpu.values


def test_settings_of_the_user_are_not_chosen() -> None:
    choices = choose(model__d_model=128, training__lr=1e-4)
    assert not {"model.d_model", "training.lr"} & choices.values.keys()


@pytest.mark.parametrize(("d_model", "num_heads"), [(16, 1), (64, 1), (100, 1), (200, 2), (320, 5), (512, 8)])
def test_the_number_of_heads_divides_the_given_size(d_model: int, num_heads: int) -> None:
    choices = choose(model__d_model=d_model)
    assert choices.values["model.num_heads"] == num_heads
    recipe(choices, model__d_model=d_model)


def test_another_kind_of_model_keeps_its_own_defaults() -> None:
    choices = choose(5_000, model__kind="rnn_attention")
    assert not [key for key in choices.values if key.startswith("model.")]
    assert recipe(choices, model__kind="rnn_attention").model.kind == "rnn_attention"


def test_repeated_rows_lengthen_an_epoch_but_do_not_enlarge_the_corpus() -> None:
    given = {"training.tokens_per_batch": 2048}
    once, often = (choose_translation(CorpusStats(6000, 60.0, 0, more), CPU, given).values for more in (0, 3 * 6000))
    assert often["training.eval_every"] == pytest.approx(4 * once["training.eval_every"], rel=0.05)
    assert often["tokenizer.vocab_size"] == once["tokenizer.vocab_size"]
    assert often["data.hold_out"] == once["data.hold_out"]


ANY_TOKENIZER = sorted({*TASKS} - {"word-vectors", "tagging", "span"})
"""Tasks that are not only for words."""


@pytest.mark.parametrize("task", sorted({*ANY_TOKENIZER} - {"captioning"}))  # whose epochs are counted in images
def test_the_length_of_an_epoch_depends_on_the_tokenizer(task: str) -> None:
    stats, defaults = CorpusStats(20_000, 60.0), task_type(task).defaults
    bpe, byte = (
        defaults(stats, CPU, {"tokenizer.kind": kind, "training.tokens_per_batch": 2048}).values["training.eval_every"]
        for kind in ("bpe", "byte")
    )
    assert byte > 2.5 * bpe


@pytest.mark.parametrize(
    ("num_rows", "machine", "batch"),
    [(100, CPU, 1024), (7_239, CPU, 1024), (29_000, CPU, 1024), (163_000, CPU, 4096), (10_000_000, CPU, 4096),
     (7_239, GPU, 1024), (50_000, GPU, 2048), (10_000_000, GPU, 16384)],
)  # fmt: skip
def test_a_small_corpus_has_enough_updates(num_rows: int, machine: Machine, batch: int) -> None:
    assert choose(num_rows, machine).values["training.tokens_per_batch"] == batch


def test_validation_comes_about_once_an_epoch() -> None:
    tokens = 29_000 * (CHARACTERS / 3.8 + 1)
    assert choose().values["training.eval_every"] in range(round(tokens / 1024) - 30, round(tokens / 1024) + 60)
    half = choose(training__tokens_per_batch=512).values["training.eval_every"]
    assert half == pytest.approx(2 * choose().values["training.eval_every"], rel=0.02)
    assert (
        choose(training__accumulate=2, training__tokens_per_batch=512).values["training.eval_every"]
        == (choose().values["training.eval_every"])
    )
    assert choose(100).values["training.eval_every"] == 20
    assert choose(10_000_000).values["training.eval_every"] == 1000


def test_a_large_validation_set_is_read_less_often_than_once_an_epoch() -> None:
    def every(num_rows: int, num_validation: int) -> int:
        stats = CorpusStats(num_rows, CHARACTERS, measured={"num_validation": num_validation})
        return int(choose_translation(stats, CPU, NEURAL).values["training.eval_every"])

    epoch = every(6000, 0)
    assert every(6000, 500) == epoch
    assert every(6000, 1000) == pytest.approx(2 * epoch, abs=1)
    assert every(6000, 1_000_000) == 1000
    assert every(0, 10) > 0  # which another check refuses


@pytest.mark.parametrize(("eval_every", "patience"), [(20, 100), (150, 14), (200, 10), (1000, 10)])
def test_patience_covers_the_span_of_the_moving_average(eval_every: int, patience: int) -> None:
    assert choose(training__eval_every=eval_every).values["training.patience"] == patience


@pytest.mark.parametrize("num_rows", [100, 5_000, 29_000, 10_000_000])
def test_patience_fits_the_validations_that_are_chosen(num_rows: int) -> None:
    chosen = choose(num_rows).values
    assert chosen["training.patience"] == max(10, math.ceil(2000 / chosen["training.eval_every"]))


@pytest.mark.parametrize(("num_rows", "held_out"), [(40, 10), (100, 20), (400, 20), (2000, 100), (1_000_000, 1000)])
def test_the_number_of_held_out_rows_leaves_enough_for_training(num_rows: int, held_out: int) -> None:
    assert choose(num_rows).values["data.hold_out"] == held_out


@pytest.mark.parametrize("part", ["src", "pairs", "text"])
def test_nothing_is_held_out_where_validation_data_is_given(part: str) -> None:
    given = {f"data.valid_{part}": "file"}
    for task in TASKS:
        assert "data.hold_out" not in task_type(task).defaults(CorpusStats(1000, 60.0), CPU, given).values


def test_invalid_settings_are_left_to_the_check_of_the_recipe() -> None:
    choose(model__d_model="many", training__tokens_per_batch=-5)


def choose_text(num_rows: int = 40_000, machine: Machine = CPU, **given: Any) -> Choices:
    keys = {name.replace("__", "."): value for name, value in given.items()}
    return choose_language_model(CorpusStats(num_rows, 120.0), machine, keys)


@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("num_rows", [1, 100, 50_000, 500_000, 5_000_000, 100_000_000])
def test_every_text_on_every_machine_gets_a_decoder_only_transformer_with_reasons(
    num_rows: int, machine: Machine
) -> None:
    choices = choose_text(num_rows, machine)
    assert choices.values.keys() == choices.reasons.keys()
    assert all(choices.reasons.values())
    found = recipe(choices, "language-model")
    assert (found.model.kind, found.data.text_as) == ("gpt", "windows")
    assert found.model.model_dump()["max_len"] == found.training.context
    assert found.training.label_smoothing == 0.0
    assert (found.training.max_minutes > 0) == (machine is CPU)


@pytest.mark.parametrize("kind", sorted(kind for kind in MODELS if LanguageModelTask.fits(MODELS[kind])))
def test_every_kind_of_language_model_gets_fitting_settings(kind: str) -> None:
    choices = choose_text(model__kind=kind)
    found = recipe(choices, "language-model", model__kind=kind)
    with torch.device("meta"):
        counted = build_model(found.model, Vocabularies(0, 100)).count_based
    assert (found.data.text_as == "lines") == counted
    assert (found.tokenizer.kind in ("word", "byte")) == counted


@pytest.mark.parametrize("reads", ["lines", "stream", "windows"])
def test_an_unlisted_neural_model_gets_the_settings_of_a_neural_model(
    monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    unlisted = type("Unlisted", (MODELS["one_layer"],), {"reads": reads})
    monkeypatch.setitem(MODELS, "one_layer", unlisted)
    values = choose_text(model__kind="one_layer").values
    assert (values["tokenizer.kind"], values["training.average"]) == ("bpe", "ema")
    assert (values["data.text_as"], values["data.keep_blank_lines"]) == (reads, reads != "lines")
    assert values["model.max_len"] == values["training.context"]
    found = recipe(choose_text(model__kind="one_layer"), "language-model", model__kind="one_layer")
    assert found.data.text_as == reads


def test_independent_lines_can_be_used_with_any_model() -> None:
    found = recipe(choose_text(data__text_as="lines"), "language-model", data__text_as="lines")
    assert not found.data.keep_blank_lines
    recurrent = choose_text(data__text_as="lines", model__kind="rnn")
    assert "training.num_streams" not in recurrent.values
    assert recurrent.values["training.tokens_per_batch"] == 2048


def test_a_stream_can_be_used_with_a_model_of_windows() -> None:
    given = {"data__text_as": "stream", "model__kind": "gpt"}
    found = recipe(choose_text(**given), "language-model", **given)
    assert (found.data.text_as, found.training.num_streams) == ("stream", 32)


def test_a_very_short_time_limit_selects_a_count_based_model() -> None:
    assert choose_text(training__max_minutes=1.0).values["model.kind"] == "ngram"
    assert choose_text(training__max_minutes=5.0).values["model.kind"] == "gpt"


def test_given_sizes_of_a_language_model_are_kept_and_the_others_fit_them() -> None:
    choices = choose_text(model__d_model=320, training__context=32, training__num_streams=8, model__kind="rnn")
    assert choices.values["model.hidden_size"] == 640
    tokens = 40_000 * (120 / 3.8 + 1)
    assert choices.values["training.eval_every"] == min(1000, round(tokens / (8 * 32)))
    found = recipe(choose_text(model__d_model=200, training__context=32), "language-model", model__d_model=200)
    assert found.model.model_dump()["num_heads"] == 2


def test_fine_tuning_inherits_kind_of_tokenizer_and_model_and_lowers_the_rate() -> None:
    trained = recipe(choose(1_000_000), training__lr=8e-4, tokenizer__kind="unigram").model_dump()
    choices = fine_tuned(TranslationTask, CorpusStats(500, 60.0), CPU, trained, {"model.dropout": 0.4})
    found = recipe(choices, model__dropout=0.4)
    assert found.tokenizer.kind == "unigram"
    assert found.tokenizer.vocab_size == choose(500).values["tokenizer.vocab_size"]
    assert {**found.model.model_dump(), "dropout": 0.1} == {**trained["model"], "dropout": 0.1}
    assert found.model.model_dump()["dropout"] == 0.4
    assert found.training.lr == pytest.approx(2e-4)
    assert choices.reasons["model.d_model"] == "as in --init"


def test_a_machine_is_described_in_one_line() -> None:
    assert CPU.render() == "2 CPU cores, 8 GiB, bfloat16 2.5 times as fast as float32"
    assert GPU.render().startswith("cuda, 80 GiB")


def test_fine_tuning_inherits_the_settings_that_the_rate_depends_on() -> None:
    sgd = {"training__optimizer": "sgd", "training__lr": 20.0, "training__schedule": "epochs", "training__clip_norm": 5}
    trained = recipe(choose_text(model__kind="rnn"), "language-model", model__kind="rnn", **sgd).model_dump()
    found = fine_tuned(LanguageModelTask, CorpusStats(500, 60.0), CPU, trained, {})
    training = recipe(found, "language-model").training
    assert (training.optimizer, training.lr, training.schedule, training.clip_norm) == ("sgd", 5.0, "epochs", 5)
    assert found.reasons["training.optimizer"] == "as in --init"
    other = fine_tuned(LanguageModelTask, CorpusStats(500, 60.0), CPU, trained, {"training.optimizer": "adam"})
    assert other.values["training.lr"] < 0.1, "20 is no rate for Adam"
    assert "training.schedule" not in other.values


def test_a_fine_tuned_run_gets_the_dropout_for_its_own_data() -> None:
    trained = recipe(choose(100_000), model__attention_dropout=0.05).model_dump()
    found = fine_tuned(TranslationTask, CorpusStats(5_865, 60.0), CPU, trained, {})
    assert trained["model"]["dropout"] == 0.1
    assert found.values["model.dropout"] == choose(5_865).values["model.dropout"] == 0.2
    assert found.reasons["model.dropout"] == choose(5_865).reasons["model.dropout"]
    assert found.values["model.attention_dropout"] == 0.05


def test_fine_tuning_with_the_noam_schedule_keeps_the_warm_up() -> None:
    trained = recipe(choose(500), training__schedule="noam", training__lr=1.0, training__warmup_steps=4000).model_dump()
    found = fine_tuned(TranslationTask, CorpusStats(500, 60.0), CPU, trained, {})
    assert (found.values["training.lr"], found.values["training.warmup_steps"]) == (0.25, 4000)


@pytest.mark.parametrize("task", ["translation", "language-model", "masked-language-model", "tagging", "classification",
                                  "span", "captioning", "word-vectors"])  # fmt: skip
def test_the_noam_schedule_has_the_published_rate_unless_another_factor_is_given(task: str) -> None:
    stats, noam = CorpusStats(29_000, 60.0), {**NEURAL, "training.schedule": "noam"}
    choices = task_type(task).defaults(stats, CPU, noam)
    assert choices.values["training.lr"] == 1
    assert "factor" in choices.reasons["training.lr"]
    assert "training.lr" not in task_type(task).defaults(stats, CPU, {**noam, "training.lr": 0.5}).values
    assert task_type(task).defaults(stats, CPU, {**noam, "training.schedule": "cosine"}).values["training.lr"] < 0.1


@pytest.mark.parametrize("kind", ["transformer", "rnn_attention"])
def test_each_side_with_a_vocabulary_of_its_own_has_an_embedding_of_its_own(kind: str) -> None:
    for apart in (choose(5_000, tokenizer__joint=False, model__kind=kind), choose(29_000, model__kind=kind)):
        assert apart.values["model.tie"] == "target"
        assert apart.reasons["model.tie"]
        assert recipe(apart, model__kind=kind).model.model_dump()["tie"] == "target"
    assert "model.tie" not in choose(5_000, model__kind=kind).values
    assert "model.tie" not in choose(tokenizer__joint=False, tokenizer__kind="byte").values
    assert choose(tokenizer__joint=False, tokenizer__kind="byte", data__tag="2de").values["model.tie"] == "target"
    assert "model.tie" not in choose(tokenizer__joint=False, model__tie="none").values


@pytest.mark.parametrize(("machine", "most"), [(CPU, 1_000_000), (GPU, 250_000)], ids=["cpu", "gpu"])
def test_a_corpus_of_middle_size_has_a_vocabulary_for_each_side(machine: Machine, most: int) -> None:
    for num_rows, joint in ((10_000, True), (10_001, False), (most, False), (most + 1, True)):
        found = recipe(choose(num_rows, machine))
        assert (found.tokenizer.joint, found.model.model_dump()["tie"]) == (joint, "all" if joint else "target")


@pytest.mark.parametrize(
    "given",
    [
        {"tokenizer.joint": True},
        {"model.tie": "all"},  # one embedding for both sides
        {"data.tag": "2de"},  # of several target languages, which share what they have in common
        {"tokenizer.kind": "byte"},
    ],
)
def test_a_joint_vocabulary_is_kept_where_it_is_required(given: dict[str, Any]) -> None:
    choices = choose_translation(CorpusStats(29_000, 60.0), CPU, given)
    found = build_recipe(Document(), {"task": "translation", **choices.values, **given})
    assert (found.tokenizer.joint, found.model.model_dump()["tie"]) == (True, "all")


@pytest.mark.parametrize("task", ANY_TOKENIZER)
@pytest.mark.parametrize(("kind", "least", "most"), [("word", 20_000, 50_000), ("byte", 260, 260)])
def test_the_size_of_the_vocabulary_is_that_of_its_kind(task: str, kind: str, least: int, most: int) -> None:
    values = task_type(task).defaults(CorpusStats(1000, 60.0), CPU, {"tokenizer.kind": kind}).values
    assert least <= values["tokenizer.vocab_size"] <= most


def test_several_processes_make_an_update_together() -> None:
    three = Machine("cpu", 8, 8 << 30, "bfloat16", 2.5, num_processes=3)
    one, several = (choose(100_000, machine, training__tokens_per_batch=4096) for machine in (CPU, three))
    assert one.values["training.eval_every"] == pytest.approx(3 * several.values["training.eval_every"], rel=0.02)
    assert choose(150_000, three).values["training.tokens_per_batch"] == 2048
    assert choose(200_000).values["training.tokens_per_batch"] == 4096
    assert choose_text(machine=three, model__kind="rnn").values["training.num_streams"] == 33


def test_a_share_of_the_rows_has_the_settings_of_a_corpus_of_this_size() -> None:
    whole, drawn = CorpusStats(40_000, 60.0, 1_000, 500), CorpusStats(8_000, 60.0, 200, 100)
    assert whole.of_share(0.2) == drawn
    assert whole.of_share(1.0) == whole
    assert whole.of_share(1e-9).num_rows == 1  # a plan needs some rows; an empty draw is reported later


NEWS = CorpusStats(
    30_000, 120.0, measured={"src_words": 18, "src_characters": 110, "tgt_words": 19, "tgt_characters": 120}
)


SHORT_JAPANESE = diagnose([("今日はいい天気です。", "It is fine today."), ("はい。", "Yes.")] * 200).statistics
"""Of lines that count as one word."""


def kind_of(stats: CorpusStats, machine: Machine = CPU, **given: Any) -> str:
    keys = {name.replace("__", "."): value for name, value in given.items()}
    return str({**choose_translation(stats, machine, keys).values, **keys}["model.kind"])


def test_few_pairs_of_long_sentences_are_translated_by_phrases_on_a_cpu() -> None:
    assert kind_of(NEWS) == "phrase_based"
    assert kind_of(NEWS, training__max_minutes=90.0) == "phrase_based"
    assert recipe(choose_translation(NEWS, CPU, {})).model.kind == "phrase_based"


def test_short_lines_of_words_get_phrases_and_so_do_segmented_ones() -> None:
    for line in ("Speichern", "今日 は いい 天気 です 。", "วันนี้ อากาศ ดี มาก", "Abc かな Wörter", "12"):
        pairs = [(line, "Words that are here."), (f"{line} 2", "Others.")] * 200
        assert kind_of(CorpusStats(400, 30.0, measured=diagnose(pairs).statistics)) == "phrase_based"


@pytest.mark.parametrize(
    "line", ["保存", "วันนี้อากาศดีมาก", "ဒီနေ့ ရာသီဥတု သာယာပါတယ်။", "ថ្ងៃនេះអាកាសធាតុល្អ", "今日はいい天気です。 NHK"]
)
def test_scripts_without_spaces_get_a_transformer(line: str) -> None:
    for pair in ((line, "It is fine today."), ("It is fine today.", line)):
        assert kind_of(CorpusStats(400, 30.0, measured=diagnose([pair] * 400).statistics)) == "transformer"


def test_their_scorer_shares_the_time_limit_and_is_chosen_only_with_them() -> None:
    chosen = recipe(choose_translation(NEWS, CPU, {})).training
    assert (chosen.scorer, chosen.max_minutes) == ("transformer", 45.0)
    limited = choose_translation(NEWS, CPU, {"training.max_minutes": 90.0})
    assert limited.values["training.scorer"] == "transformer"
    assert "training.max_minutes" not in limited.values  # as it was given
    named = choose_translation(NEWS, CPU, {"model.kind": "phrase_based", "training.scorer": "transformer"})
    assert named.values["training.max_minutes"] == 45.0
    assert choose_translation(NEWS, CPU, {"training.scorer": ""}).values["model.kind"] == "phrase_based"
    assert "training.max_minutes" not in choose_translation(NEWS, CPU, {"training.scorer": ""}).values
    captions = replace(NEWS, characters_per_row=70.0)
    assert kind_of(captions, training__scorer="transformer") == "phrase_based"
    for kind in ("phrase_based", "transformer"):
        assert "training.scorer" not in choose_translation(NEWS, CPU, {"model.kind": kind}).values


@pytest.mark.parametrize(
    ("stats", "machine", "given"),
    [
        (NEWS, GPU, {}),
        (NEWS, replace(CPU, num_processes=2), {}),
        (NEWS, CPU, {"model__d_model": 128}),
        (NEWS, CPU, {"training__max_steps": 100}),
        (NEWS, CPU, {"data__tag": "2sw"}),
        (NEWS, CPU, {"data__parts": [{"src": "a", "tgt": "b", "tag": "bt"}]}),
        (NEWS, CPU, {"model__kind": "transformer"}),
        (replace(NEWS, characters_per_row=70.0), CPU, {}),
        (replace(NEWS, num_rows=2_000_000), CPU, {}),
        (replace(NEWS, measured={**NEWS.measured, "tgt_words": 1.2}), CPU, {}),
        (CorpusStats(400, 30.0, measured=SHORT_JAPANESE), CPU, {}),
    ],
    ids=["GPU", "processes", "model", "training", "tag", "part", "given", "captions", "many", "no spaces", "short"],
)
def test_all_else_gets_a_transformer(stats: CorpusStats, machine: Machine, given: dict[str, Any]) -> None:
    assert kind_of(stats, machine, **given) == "transformer"


def test_the_most_similar_corpora_are_named_and_none_for_one_that_is_unlike_all() -> None:
    heading, news, captions = TranslationTask.similar_corpora(30_000, 120.0)
    assert heading.startswith("BLEU of similar corpora")
    assert "Swahili: 12.4 with a Transformer, 20.3 by phrases" in news
    assert "captions" in captions
    assert not TranslationTask.similar_corpora(1, 1.0)


def test_few_pairs_by_phrases_have_two_aligners() -> None:
    for num_rows, aligner in ((10_000, "hmm"), (10_001, "none")):
        assert (
            recipe(choose(num_rows, model__kind="phrase_based"), model__kind="phrase_based").model.second_aligner
            == aligner
        )
    given = {"model__kind": "phrase_based", "model__second_aligner": "none"}
    assert "model.second_aligner" not in choose(5_000, **given).values
    assert "model.second_aligner" not in choose(5_000, model__kind="phrase_based", model__aligner="hmm").values
    assert "model.second_aligner" not in choose(5_000, model__kind="rule_based").values


def test_few_pairs_by_phrases_have_a_model_of_word_classes() -> None:
    for num_rows, number in ((WORD_CLASSES, 100), (WORD_CLASSES + 1, 0)):
        chosen = choose(num_rows, model__kind="phrase_based")
        assert recipe(chosen, model__kind="phrase_based").model.word_classes == number
    assert "model.word_classes" not in choose(5_000, model__kind="phrase_based", model__word_classes=0).values
    assert "model.word_classes" not in choose(5_000, model__kind="rule_based").values


@pytest.mark.parametrize("task", ["tagging", "span"])
def test_every_reader_of_words_gets_a_vocabulary_of_words_and_characters(task: str) -> None:
    for kind in (kind for kind, model in MODELS.items() if task_type(task).fits(model)):
        values = task_type(task).defaults(CorpusStats(5000, CHARACTERS), CPU, {"model.kind": kind}).values
        chosen = values.get("tokenizer.kind") == "word", "model.characters" in values
        assert chosen == (MODELS[kind].reads_words, "characters" in MODELS[kind].Config.model_fields)


def test_phrases_are_explained_by_similar_corpora_only_if_some_are_shown() -> None:
    reasons = [choose_translation(CorpusStats(n, 36.0), CPU, {}).reasons["model.kind"] for n in (400, 10_000)]
    assert reasons == ["better with so few pairs (measured)", "better on similar corpora, see below"]
