"""Typed settings: strict reading, and all mistakes at once with their lines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator, model_validator

from heed.core.config import ChosenBy, Config, Document, build, keys, parse_overrides, read_toml, to_toml
from heed.core.errors import UsageError


class Transformer(Config):
    kind: Literal["transformer"] = "transformer"
    """Attention is all it has."""
    num_heads: int = Field(8, ge=1, le=64)
    """Heads of each attention."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the units that are dropped."""
    norm: Literal["pre", "post"] = "post"
    """Where the layer norms are."""


class Bigram(Config):
    kind: Literal["bigram"] = "bigram"
    """Counts pairs."""
    smoothing: float
    """Added to every count."""


MODELS: dict[str, type[Config]] = {"transformer": Transformer, "bigram": Bigram}


class Schedule(Config):
    steps: Annotated[int, Field(gt=0)] | Literal["auto"] = "auto"
    """How long."""
    factors: tuple[float, ...] = ()
    """Of the learning rate."""


class Training(Config):
    lr: float = Field(1e-3, gt=0)
    """The learning rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's decay rates."""
    ema: float | None = None
    """Decay of the moving average of the weights."""
    stages: tuple[Schedule, ...] = ()
    """One after the other."""
    warmup: Schedule | None = None
    """Before the first stage."""


class Data(Config):
    src: Path | None = None
    """The source side."""
    names: str | list[str] = "all"
    """Which columns to read."""
    fields: list[str] = Field(default_factory=list)
    """Names of the columns."""
    weights: dict[str, float] = Field(default_factory=dict)
    """Of the files."""

    @field_validator("fields")
    @classmethod
    def _distinct(cls, fields: list[str]) -> list[str]:
        if len(set(fields)) < len(fields):
            raise ValueError("the columns must be distinct")
        return fields


class Recipe(Config):
    seed: int
    """Of every random choice."""
    title: str = ""
    """What people call it."""
    quick: bool = False
    """Whether to stop early."""
    model: Annotated[Transformer | Bigram, ChosenBy("kind", lambda: MODELS)] = Transformer(num_heads=4)
    """What is trained."""
    data: Data = Data()
    """What it is trained on."""
    training: Training = Training()
    """How it is trained."""


def document(text: str) -> Document:
    return Document(tomllib.loads(text), text, "recipe.toml")


def errors(text: str, *arguments: str) -> list[str]:
    with pytest.raises(UsageError) as refused:
        build(Recipe, document(text), parse_overrides(arguments))
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "recipe.toml: missing key 'seed': a whole number"),
        ("seed = 'eight'", "recipe.toml:1: seed: expected a whole number, got 'eight'"),
        ("seed = '8'", "recipe.toml:1: seed: expected a whole number, got '8'"),
        ("seed = 8.0", "recipe.toml:1: seed: expected a whole number, got 8.0"),
        ("seed = true", "recipe.toml:1: seed: expected a whole number, got true"),
        ("seed = 1\nquick = 1", "recipe.toml:2: quick: expected true or false, got 1"),
        ("seed = 1\nquick = 'true'", "recipe.toml:2: quick: expected true or false, got 'true'"),
        (
            "seed = 1\ntitle = 7",
            """recipe.toml:2: title: expected text, got 7. Text needs quotes: "7" (in a shell '"7"')""",
        ),
        (
            "seed = 1\ndata.names = 3",
            "recipe.toml:2: data.names: expected text or a list, each item text, got 3. "
            """Text needs quotes: "3" (in a shell '"3"')""",
        ),
        ("seed = 1\ndata.names = [3]", "recipe.toml:2: data.names: expected text or a list, each item text, got [3]"),
        ("seed = 1\nmodle = 1", "recipe.toml:2: unknown key 'modle'. Did you mean 'model'?"),
        ("seed = 1\nlr = 1", "recipe.toml:2: unknown key 'lr'. Did you mean 'training.lr'?"),
        (
            "seed = 1\n\n[data]\nxyz = 1",
            "recipe.toml:4: unknown key 'data.xyz'. Allowed in data: src, names, fields, weights.",
        ),
        (
            "seed = 1\nzzz = 1",
            "recipe.toml:2: unknown key 'zzz'. Allowed at the top: seed, title, quick, model, data, training.",
        ),
        ("seed = 1\n[trainnig]\nlr = 1", "recipe.toml:2: unknown key 'trainnig'. Did you mean 'training'?"),
        ("seed = 1\ndata = 3", "recipe.toml:2: data: expected a table, got 3"),
        ("seed = 1\nmodel = 3", "recipe.toml:2: model: expected a table, got 3"),
        (
            "seed = 1\n[model]\nkind = 'transformer'\n\ndropuot = 0.1",
            "recipe.toml:5: unknown key 'model.dropuot'. Did you mean 'model.dropout'?",
        ),
        (
            "seed = 1\nmodel = { kind = 'transformer', num_heads = 'eight' }",
            "recipe.toml:2: model.num_heads: expected a whole number from 1 to 64, got 'eight'",
        ),
        (
            "seed = 1\nmodel.kind = 'transformer'\nmodel.num_heads = 65",
            "recipe.toml:3: model.num_heads: expected a whole number from 1 to 64, got 65",
        ),
        (
            "seed = 1\n[model]\nkind = 'transformer'\ndropout = 1",
            "recipe.toml:4: model.dropout: expected a number at least 0 and below 1, got 1",
        ),
        (
            "seed = 1\n[model]\nkind = 'transformer'\nnorm = 'both'",
            "recipe.toml:4: model.norm: expected one of 'pre', 'post', got 'both'",
        ),
        ("seed = 1\n[model]\nkind = 'bigram'", "recipe.toml:2: missing key 'model.smoothing': a number"),
        (
            "seed = 1\n[model]\nnum_heads = 2",
            "recipe.toml:2: missing key 'model.kind': one of 'transformer', 'bigram'",
        ),
        (
            "seed = 1\n[model]\nkind = 'bigrams'",
            "recipe.toml:3: model.kind: expected one of 'transformer', 'bigram', got 'bigrams'. Did you mean 'bigram'?",
        ),
        ("seed = 1\nmodel.kind = 3", "recipe.toml:2: model.kind: expected one of 'transformer', 'bigram', got 3"),
        ("seed = 1\ntraining.lr = 0.0", "recipe.toml:2: training.lr: expected a number above 0, got 0.0"),
        ("seed = 1\ntraining.lr = nan", "recipe.toml:2: training.lr: expected a number above 0, got nan"),
        ("seed = 1\ntraining.ema = 'x'", "recipe.toml:2: training.ema: expected a number, got 'x'"),
        (
            "seed = 1\ntraining.betas = [0.9]",
            "recipe.toml:2: training.betas: expected a list of 2: a number, a number, got [0.9]",
        ),
        (
            "seed = 1\ntraining.betas = [0.9, '1']",
            "recipe.toml:2: training.betas[1]: expected a number, got '1'",
        ),
        (
            "seed = 1\n[data]\nfields = 'en'",
            "recipe.toml:3: data.fields: expected a list, each item text, got 'en'",
        ),
        ("seed = 1\n[data]\nfields = [\n'en',\n'en']", "recipe.toml:3: data.fields: the columns must be distinct"),
        (
            "seed = 1\n[data.weights]\n'a b' = 'x'",
            "recipe.toml:3: data.weights.\"a b\": expected a number, got 'x'",
        ),
        (
            "seed = 1\n[[training.stages]]\nsteps = 3\n[[training.stages]]\nsteps = 0",
            "recipe.toml:5: training.stages[1].steps: expected a whole number above 0 or 'auto', got 0",
        ),
        (
            "seed = 1\n[[training.stages]]\nfactor = [3]",
            "recipe.toml:3: unknown key 'training.stages[0].factor'. Did you mean 'training.stages[0].factors'?",
        ),
        (
            "seed = 1\ntraining.stages = [{}, {factors = [\n1, 'x']}]",
            "recipe.toml:2: training.stages[1].factors[1]: expected a number, got 'x'",
        ),
        (
            "seed = 1\ntraining.warmup.steps = []",
            "recipe.toml:2: training.warmup.steps: expected a whole number above 0 or 'auto', got []",
        ),
    ],
)
def test_each_mistake_is_named_with_its_line_and_what_is_allowed(text: str, message: str) -> None:
    assert errors(text) == [message]


def test_all_mistakes_are_reported_in_the_order_of_the_file_and_the_command_line() -> None:
    text = "quick = 2\n[training]\nlr = 'fast'\nl_r = 1\n[model]\nkind = 'transformer'\nnum_heads = 0\n"
    assert errors(text, "--training.betas=3", "--seed=x") == [
        "recipe.toml:1: quick: expected true or false, got 2",
        "recipe.toml:3: training.lr: expected a number above 0, got 'fast'",
        "recipe.toml:4: unknown key 'training.l_r'. Did you mean 'training.lr'?",
        "recipe.toml:7: model.num_heads: expected a whole number from 1 to 64, got 0",
        "--seed: expected a whole number, got 'x'",
        "--training.betas: expected a list of 2: a number, a number, got 3",
    ]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--training.lr=fast", "--training.lr: expected a number above 0, got 'fast'"),
        ("--training.lrr=1", "--training.lrr: unknown key 'training.lrr'. Did you mean 'training.lr'?"),
        ("--trainign.lr=1", "--trainign.lr: unknown key 'trainign'. Did you mean 'training'?"),
        ("--seed.x.y=1", "--seed.x.y: seed is not a table and has no keys"),
        ("--training.betas=[1, 'x']", "--training.betas: training.betas[1]: expected a number, got 'x'"),
        ("--data={src = 3}", """--data: data.src: expected a path, got 3. Text needs quotes: "3" (in a shell '"3"')"""),
        (
            "--model.kind=bigrm",
            "--model.kind: expected one of 'transformer', 'bigram', got 'bigrm'. Did you mean 'bigram'?",
        ),
        ("--model.num_heads=3", "recipe.toml: missing key 'model.kind': one of 'transformer', 'bigram'"),
    ],
)
def test_a_mistake_on_the_command_line_names_the_flag(argument: str, message: str) -> None:
    assert errors("seed = 1\n[training]\nlr = 3\n", argument) == [message]


class Counted(Config):
    title: str = ""
    """Its name."""
    training: Training = Training()
    """How it is trained."""

    @model_validator(mode="after")
    def _check(self) -> Counted:
        if self.training.ema is not None:
            raise ValueError("what is counted has no training.ema")
        return self


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("title = 'x'\n[training]\nema = 0.5", [], "recipe.toml:3: what is counted has no training.ema"),
        ("training = {ema = 0.5}", ["--title=x"], "recipe.toml:1: what is counted has no training.ema"),
        ("", ["--title=x", "--training.ema=0.5"], "--training.ema: what is counted has no training.ema"),
    ],
)
def test_a_mistake_of_the_whole_recipe_is_reported_at_its_key(text: str, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        build(Counted, document(text), parse_overrides(arguments))
    assert str(refused.value) == message


def test_without_a_file_the_message_begins_with_the_key() -> None:
    with pytest.raises(UsageError) as refused:
        build(Recipe, Document({"quick": 3}))
    assert str(refused.value).splitlines() == [
        "missing key 'seed': a whole number",
        "quick: expected true or false, got 3",
    ]


def test_many_mistakes_still_fit_on_one_screen() -> None:
    lines = errors("seed = 1\n" + "".join(f"zzz{number} = 1\n" for number in range(50)))
    assert len(lines) == 21
    assert lines[-1] == "... and 30 more"


def test_overrides_win_over_the_file_and_leave_it_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("seed = 1\n[training]\nlr = 3\nema = 0.5\n[model]\nkind = 'transformer'\n")
    read = read_toml(path)
    recipe = build(Recipe, read, {"training.lr": 0.5, "model": {"kind": "bigram", "smoothing": 1}, "data.src": "a/b"})
    assert recipe.training == Training(lr=0.5, ema=0.5)
    assert recipe.model == Bigram(smoothing=1.0)
    assert recipe.data.src == Path("a/b")
    assert read.values["training"]["lr"] == 3


def test_a_whole_number_is_a_number_and_a_list_a_tuple() -> None:
    recipe = build(Recipe, document("seed = 1\ntraining.lr = 1\ntraining.betas = [0, 1]"))
    assert recipe.training.lr == 1.0 and isinstance(recipe.training.lr, float)
    assert recipe.training.betas == (0.0, 1.0)


def test_a_config_cannot_be_changed_and_refuses_unknown_fields_from_python_too() -> None:
    training = Training()
    with pytest.raises(ValidationError, match="frozen"):
        training.lr = 3.0
    with pytest.raises(ValidationError, match="Extra inputs"):
        Training.model_validate({"lrr": 3.0})


def test_values_given_in_python_are_checked_like_those_of_a_document() -> None:
    given = Recipe(seed=1, model=Transformer(), training=Training(betas=[0, 1]))  # type: ignore[arg-type]
    assert given == build(Recipe, document("seed = 1\ntraining.betas = [0, 1]\nmodel.kind = 'transformer'"))
    assert given.model_fields_set == {"seed", "model", "training"}
    with pytest.raises(UsageError) as refused:
        Recipe(seed="8", model=Transformer(), training=Training(), modle=3)  # type: ignore[arg-type, call-arg]
    assert str(refused.value).split("\n") == [
        "Recipe: seed: expected a whole number, got '8'",
        "Recipe: unknown key 'modle'. Did you mean 'model'?",
    ]


def test_numbers_of_numpy_are_numbers() -> None:
    overrides = {"model.num_heads": np.int64(4), "model.dropout": np.float32(0.5)}
    model = build(Recipe, Document({"seed": 1}), {"model.kind": "transformer", **overrides}).model
    assert model.model_dump() == {"kind": "transformer", "num_heads": 4, "dropout": 0.5, "norm": "post"}


def test_a_field_that_may_be_none_must_be_none_by_default() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.limit may be None, so its default must be None"):

        class Wrong(Config):
            limit: int | None = 3


def test_values_are_written_complete_with_comments_and_tables_in_field_order() -> None:
    recipe = Recipe(seed=3, training=Training(lr=1e-9, stages=(Schedule(steps=5),)))
    text = to_toml(recipe, {"training.lr": "small\nas asked", "training": "how", "seed": "given", "quick": "slow"})
    assert (
        text
        == """\
seed = 3 # given
title = ""
quick = false # slow

[model]
kind = "transformer"
num_heads = 4
dropout = 0.1
norm = "post"

[data]
names = "all"
fields = []

[data.weights]

[training] # how
lr = 1e-09 # small as asked
betas = [0.9, 0.98]

[[training.stages]]
steps = 5
factors = []
"""
    )


numbers = st.floats(allow_nan=False, allow_infinity=False)
schedules = st.builds(
    Schedule, steps=st.integers(1, 10**12) | st.just("auto"), factors=st.lists(numbers, max_size=3).map(tuple)
)
recipes = st.builds(
    Recipe,
    seed=st.integers(),
    title=st.text(),
    quick=st.booleans(),
    model=st.builds(Transformer, num_heads=st.integers(1, 64), norm=st.sampled_from(["pre", "post"]))
    | st.builds(Bigram, smoothing=numbers),
    data=st.builds(
        Data,
        src=st.none() | st.text().map(Path),
        fields=st.lists(st.text(), max_size=3, unique=True),
        weights=st.dictionaries(st.text(), numbers, max_size=3),
    ),
    training=st.builds(
        Training,
        lr=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
        ema=st.none() | numbers,
        stages=st.lists(schedules, max_size=2).map(tuple),
        warmup=st.none() | schedules,
    ),
)


@given(recipes)
def test_written_settings_are_read_back_equal(recipe: Recipe) -> None:
    text = to_toml(recipe, {"seed": "a", "training": "b", "training.lr": "c # d", "model": "e"})
    assert build(Recipe, document(text)) == recipe


class Deeper(Config):
    schedule: Schedule = Schedule(steps=7)
    """With other defaults than its class."""
    model: Annotated[Config, ChosenBy("kind", lambda: MODELS)] = Transformer(num_heads=3)
    """Likewise."""


def test_keys_have_what_they_may_hold_and_the_defaults_of_the_table_around_them() -> None:
    listed = {(key.key, key.only_for): (key.allowed, key.default) for key in keys(Deeper)}
    assert listed["schedule.steps", ""] == ("a whole number above 0 or 'auto'", 7)
    assert listed["schedule.factors", ""] == ("a list, each item a number", [])
    assert listed["model.num_heads", "model.kind = 'transformer'"] == ("a whole number from 1 to 64", 3)
    assert listed["model.smoothing", "model.kind = 'bigram'"] == ("a number", None)


def test_keys_lists_every_key_with_its_docstring() -> None:
    transformer, bigram = "model.kind = 'transformer'", "model.kind = 'bigram'"
    assert [key[:3] for key in keys(Recipe)] == [
        ("seed", "Of every random choice.", ""),
        ("title", "What people call it.", ""),
        ("quick", "Whether to stop early.", ""),
        ("model.kind", "Attention is all it has.", transformer),
        ("model.num_heads", "Heads of each attention.", transformer),
        ("model.dropout", "Share of the units that are dropped.", transformer),
        ("model.norm", "Where the layer norms are.", transformer),
        ("model.kind", "Counts pairs.", bigram),
        ("model.smoothing", "Added to every count.", bigram),
        ("data.src", "The source side.", ""),
        ("data.names", "Which columns to read.", ""),
        ("data.fields", "Names of the columns.", ""),
        ("data.weights", "Of the files.", ""),
        ("training.lr", "The learning rate.", ""),
        ("training.betas", "Adam's decay rates.", ""),
        ("training.ema", "Decay of the moving average of the weights.", ""),
        ("training.stages[].steps", "How long.", ""),
        ("training.stages[].factors", "Of the learning rate.", ""),
        ("training.warmup.steps", "How long.", ""),
        ("training.warmup.factors", "Of the learning rate.", ""),
    ]


class Pairs(Config):
    src: str
    """The source side."""


class Text(Config):
    text: str = ""
    """The text."""
    options: Schedule = Schedule()
    """Of the text."""


class Work(Config):
    task: Literal["pairs", "text"] = "text"
    """What is learned."""
    data: Annotated[Pairs | Text, ChosenBy("task", lambda: {"pairs": Pairs, "text": Text})] = Text()
    """Its data."""


@final
class Wide(Transformer):
    width: int = 8
    """Features of each position.

    A multiple of the heads.
    """
    dropout: float = 0.2


def test_a_field_has_the_docstring_of_the_nearest_class_that_gives_it_one() -> None:
    assert [(key.key, key.docstring) for key in keys(Wide)] == [
        ("kind", "Attention is all it has."),
        ("num_heads", "Heads of each attention."),
        ("dropout", "Share of the units that are dropped."),
        ("norm", "Where the layer norms are."),
        ("width", "Features of each position.\n\nA multiple of the heads."),
    ]


def test_a_class_inside_a_function_and_a_field_with_an_alias_have_their_docstrings() -> None:
    class Inner(Config):
        kind_: int = Field(1, alias="kind")
        """Of what kind
it is."""

    assert [(key.key, key.docstring) for key in keys(Inner)] == [("kind", "Of what kind\nit is.")]


def test_a_class_without_source_has_no_docstrings() -> None:
    names = {"Config": Config, "__name__": "nowhere"}
    exec("class Typed(Config):\n    a: int = 1\n    'Never found.'\n", names)
    assert [(key.key, key.docstring) for key in keys(names["Typed"])] == [("a", "")]  # type: ignore[arg-type]


def test_a_key_around_a_table_chooses_its_class() -> None:
    work = build(Work, document("task = 'pairs'\ndata.src = 'a'"))
    assert work.data == Pairs(src="a") and build(Work, document(to_toml(work))) == work
    assert [(key.key, key.only_for) for key in keys(Work)][1:3] == [
        ("data.src", "task = 'pairs'"),
        ("data.text", "task = 'text'"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data.src = 'a'", "recipe.toml:1: unknown key 'data.src'. It is only for task = 'pairs'."),
        ("data.txt = 'a'", "recipe.toml:1: unknown key 'data.txt'. Did you mean 'data.text'?"),
        (
            "data.options.steps = 0",
            "recipe.toml:1: data.options.steps: expected a whole number above 0 or 'auto', got 0",
        ),
        ("task = 'pairs'\n[data]", "recipe.toml:2: missing key 'data.src': text"),
        (
            "task = 'pair'\n[data]",
            "recipe.toml:1: task: expected one of 'pairs', 'text', got 'pair'. Did you mean 'pairs'?",
        ),
    ],
)
def test_mistakes_in_a_table_whose_class_is_chosen_name_their_key(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        build(Work, document(text))
    assert str(refused.value) == message
