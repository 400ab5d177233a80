"""Recipes: complete, read back unchanged, and refused if contradictory."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import tiny_keys, without_shape_checks

from heed.core.config import Document, keys, read_toml, to_toml
from heed.core.errors import UsageError
from heed.core.toml import parse_toml
from heed.models import MODELS
from heed.planner import Planner, TrainOptions
from heed.recipe import Recipe, build_recipe, recipe_type, require_trainable_together
from heed.tasks import TASKS
from heed.text.tokenizers import TOKENIZERS

__all__ = ["without_shape_checks"]


@pytest.mark.parametrize("kind", ["transformer", "rnn_attention"])
def test_a_written_recipe_contains_reasons_and_reads_back_equal(tmp_path: Path, kind: str) -> None:
    tiny_keys(tmp_path)
    said = {
        "task": "translation", "data.src": str(tmp_path / "train.aa"), "data.tgt": str(tmp_path / "train.bb"),
        "model.kind": kind, "training.lr": 1e-5,
    }  # fmt: skip
    plan = Planner(Document(), said, TrainOptions(tmp_path / "run", device="cpu")).plan()
    text = to_toml(plan.recipe, plan.reasons)
    (tmp_path / "recipe.toml").write_text(text)
    assert build_recipe(read_toml(tmp_path / "recipe.toml")) == plan.recipe
    assert "lr = 1e-05\n" in text
    assert "vocab_size = 4000 # 300 pairs: more pieces for a larger corpus\n" in text
    written = {line.split(" = ")[0] for line in text.splitlines() if " = " in line}
    complete = {
        field.key.split(".")[-1]
        for field in keys(recipe_type("translation"))
        if field.only_for in ("", f"model.kind = '{kind}'") and "[]" not in field.key  # there are no parts
    }
    assert complete - {"members"} <= written


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"task": "language-model"}, "got 'transformer'. 'transformer' is for task 'translation'."),
        (
            {"task": "translation", "model.kind": "bag"},
            "expected one of 'transformer', 'rnn_attention', 'phrase_based', 'rule_based', 'encoder_decoder', got "
            "'bag'. 'bag' is for tasks 'tagging', 'classification', 'span'.",
        ),
        ({"task": "translation", "model.kind": "foo"}, "'rule_based', 'encoder_decoder', got 'foo'"),
        ({"task": "language-model", "model.kind": "gru"}, 'set model.kind = "rnn" and model.cell = "gru_reset_after".'),
        (
            {"task": "classification", "model.kind": "linear", "model.dropout": 0.2},
            " more have it). Here model.kind = 'linear'.",
        ),
        ({"task": "language-model", "model.kind": "bigram"}, 'training.stop_metric = "perplexity"'),
        (
            {
                "task": "language-model",
                "model.kind": "rnn",
                "model.tie": False,
                "model.cutoffs": [4],
                "training.stop_metric": "perplexity",
            },
            "(model.cutoffs) has no label smoothing",
        ),
        ({"task": "translation", "decoding.unknown": "keep"}, 'set tokenizer.kind = "word"'),
        ({"task": "poetry"}, f"expected one of {', '.join(map(repr, TASKS))}, got 'poetry'"),
        ({}, "missing key 'task'"),
        ({"task": "translation", "seed": 1 << 64}, "--seed: expected a whole number at least 0 and below 1844674407"),
        ({"task": "translation", "model.kind": "tranformer"}, "Did you mean 'transformer'?"),
        (
            {"task": "translation", "tokenizer.kind": "unigramm"},
            "expected one of 'bpe', 'unigram', 'sentencepiece', 'wordpiece', 'word', 'open-word', 'character', 'byte', "
            "'char-bigram', got 'unigramm'. "
            "Did you mean 'unigram'?",
        ),
        ({"task": "translation", "training.lr": "fast", "training.patience": -1}, "--training.lr: expected a number"),
    ],
)
def test_contradictory_settings_are_refused(said: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        build_recipe(Document({"model": {"kind": "transformer"}}), said)
    assert message in str(refused.value)


def test_sharded_training_is_refused_for_models_that_do_not_write_token_by_token() -> None:
    told = {"training.parallel": "sharded", "training.label_smoothing": 0.0}
    recipes = {
        kind: build_recipe(Document(), {"task": task, "model.kind": kind, "training.stop_metric": metric, **told})
        for task, kind, metric in (
            ("classification", "bag", "accuracy"), ("masked-language-model", "encoder", "masked_perplexity"),
            ("translation", "transformer", "bleu"),
        )
    }  # fmt: skip
    for kind in ("bag", "encoder"):
        require_trainable_together(recipes[kind], num_processes=1)  # it shards nothing
        with pytest.raises(UsageError, match=f'"{kind}" is not one: set training.parallel = "data"'):
            require_trainable_together(recipes[kind], num_processes=2)
    require_trainable_together(recipes["transformer"], num_processes=2)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_says_whether_it_writes_token_by_token(kind: str) -> None:
    assert MODELS[kind].generates == hasattr(MODELS[kind], "advance")


def test_a_recipe_without_a_kind_of_model_names_those_of_its_task() -> None:
    with pytest.raises(UsageError, match=r"task 'language-model' needs a model\.kind of rnn, .*, got 'transformer'"):
        build_recipe(Document(), {"task": "language-model"})


def test_a_cell_is_advised_only_where_a_kind_of_model_has_cells() -> None:
    with pytest.raises(UsageError) as refused:
        build_recipe(Document(), {"task": "translation", "model.kind": "gru"})
    assert str(refused.value).endswith("'encoder_decoder', got 'gru'")


def dropping(kind: str, **said: object) -> Recipe:
    """A recipe with subword dropout."""
    model = {"kind": "transformer" if said["task"] == "translation" else "bigram"}
    keys = {"tokenizer.kind": kind, "tokenizer.dropout": 0.1, "training.stop_metric": "perplexity"}
    return build_recipe(Document({**said, "model": model}), keys)


@pytest.mark.parametrize("task", ["translation", "language-model"])
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_subword_dropout_is_refused_where_it_has_no_effect(task: str, kind: str) -> None:
    if (task, kind) == ("translation", "bpe"):
        assert dropping(kind, task=task).tokenizer.dropout == 0.1
        return
    of_task = 'task = "translation" and ' if task != "translation" else ""
    with pytest.raises(UsageError, match=f'tokenizer.dropout requires {of_task}tokenizer.kind = "bpe": set it to 0'):
        dropping(kind, task=task)


@pytest.mark.parametrize("key", ["training.r_drop", "tokenizer.dropout"])
@pytest.mark.parametrize(
    ("task", "kind", "metric"),
    [
        ("captioning", "show_attend_tell", "cider"), ("word-vectors", "skip_gram", "negative_sampling"),
        ("classification", "bag", "accuracy"), ("tagging", "bilstm", "tag_accuracy"), ("span", "encoder", "answer_f1"),
    ],
)  # fmt: skip
def test_settings_of_translation_are_refused_where_they_have_no_effect(
    task: str, kind: str, metric: str, key: str
) -> None:
    model = {"kind": kind, "dropout": 0.1} if kind != "skip_gram" else {"kind": kind}
    keys = {"training.stop_metric": metric, "training.label_smoothing": 0.0, "tokenizer.kind": "word", key: 0.1}
    with pytest.raises(UsageError, match=f'{key} requires task = "translation"|r_drop compares two passes'):
        build_recipe(Document({"task": task, "model": model}), keys)


def test_an_old_run_with_ineffective_subword_dropout_is_still_read() -> None:
    assert dropping("word", task="language-model", format=1).tokenizer.dropout == 0.1


def test_every_key_of_a_recipe_is_documented() -> None:
    assert not [field.key for task in TASKS for field in keys(recipe_type(task)) if not field.docstring]


def test_a_table_of_another_task_is_refused_unless_it_changes_nothing() -> None:
    text = (
        b'task = "language-model"\nmodel.kind = "gpt"\ntraining.stop_metric = "perplexity"\n[data]\ntext = "a.txt"\n'
        b"[data.filter]\nmax_characters = 100\n"
    )
    with pytest.raises(UsageError, match=r"data\.filter is not read for task 'language-model'"):
        build_recipe(parse_toml(text, "recipe.toml"))
    as_default = text.replace(b"= 100", b"= 5000")
    assert build_recipe(parse_toml(as_default, "recipe.toml")).data.text == "a.txt"
    assert build_recipe(parse_toml(b"format = 1\n" + text, "run/recipe.toml")).data.text == "a.txt", "an old run"


def test_a_key_of_another_task_is_refused_with_its_line() -> None:
    document = parse_toml(b'task = "translation"\n[data]\ntext = "a.txt"\n', "recipe.toml")
    with pytest.raises(UsageError, match=r"^recipe\.toml:3: data\.text is not read for task 'translation': leave it"):
        build_recipe(document)


@pytest.mark.parametrize(
    ("training", "flags"),
    [
        (b'schedule = "noam"', {}),
        (b"lr = 3e-3", {"training.schedule": "noam"}),  # the rate of another schedule
        (b"", {"training.schedule": "noam"}),
    ],
)
def test_a_recipe_with_the_noam_schedule_has_to_set_its_factor(training: bytes, flags: dict[str, object]) -> None:
    document = parse_toml(b'task = "translation"\n[training]\n' + training, "recipe.toml")
    with pytest.raises(UsageError, match=r"recipe\.toml: .* training\.lr is a factor on the published rate: set it"):
        build_recipe(document, flags)
    assert build_recipe(document, {**flags, "training.lr": 1.0}).training.lr == 1
    factor = parse_toml(b'task = "translation"\n[training]\nschedule = "noam"\nlr = 0.5', "recipe.toml")
    assert build_recipe(factor, flags).training.lr == 0.5
