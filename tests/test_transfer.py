"""Transfer: parts of another run's weights as the beginning of a training; frozen, unfrozen layer by layer, slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from command import call
from random_models import READER_CONFIGS, VOCABULARIES, model_of, random_source
from toy import WORDS, prepared, trained, trainer_of, unchecked_shapes, with_weights, write_lines
from trainings import content

import heed
from heed.core.errors import UsageError
from heed.core.run_files import WEIGHTS
from heed.models import build_model
from heed.models.transfer import READER, embedding_name, reader_config, reader_weights
from heed.models.transformer import TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import read_weights
from heed.run import Run, load_weights
from heed.tasks import task_type
from heed.tasks.defaults import CorpusStats, Machine
from heed.training.config import TrainingConfig
from heed.training.layers import from_the_top, trained_names
from heed.transfer import Transfer

__all__ = ["trained"]

QUICK = ("--training.max_steps=4", "--training.precision=float32", "--training.warmup_steps=2", "--quiet", "--force")
SMALL = ("--model.d_model=16", "--model.num_layers=1", "--tokenizer.kind=word", "--tokenizer.min_frequency=1")
TAGGED = "".join(f"the O\n{a} B-X\nsees O\n{b} B-Y\n\n" for a in WORDS for b in WORDS.values())
LABELLED = "".join(f"{a} sees {b}{' the' * n},{n % 2}\n" for a in WORDS for b in WORDS.values() for n in range(4))
TEXT = [f"the {a} sees {b}" for a in WORDS for b in WORDS.values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model, a forward and a backward language model, and tagged sentences."""
    folder = tmp_path_factory.mktemp("transfer")
    text = write_lines(folder / "text", TEXT)
    (folder / "tagged").write_text(TAGGED)
    (folder / "table.csv").write_text("text,label\n" + LABELLED)
    masked = ("--task", "masked-language-model", "--model.d_ff=32", "--model.num_heads=2")
    recurrent = ("--task", "language-model", "--model.kind=rnn", "--model.hidden_size=16", "--data.text_as=lines",
                 "--data.keep_blank_lines=false")  # fmt: skip
    with unchecked_shapes():
        for name, words in {
            "masked": masked,
            "forward": recurrent,
            "gpt": (
                "--task",
                "language-model",
                "--model.kind=gpt",
                "--model.max_len=12",
                "--model.num_heads=2",
                "--model.d_ff=32",
                "--data.text_as=lines",
                "--data.keep_blank_lines=false",
            ),
            "backward": (*recurrent, "--data.backward=true", "--tokenizer-of", folder / "forward"),
        }.items():
            small = SMALL if "--tokenizer-of" not in words else SMALL[:2]
            result = call("train", *words, "--text", text, "--out", folder / name, *small, *QUICK)
            assert result.code == 0, result.err
    return folder


def tag(folder: Path, out: Path, *words: object, steps: int = 4) -> Any:
    """Train a tagger from parts of a run."""
    keys = (f"--training.max_steps={steps}", "--training.eval_every=2", "--training.save_every=2", *QUICK[1:])
    return call("train", "--task", "tagging", "--conll", folder / "tagged", "--out", out, *keys, *words)


def classify(folder: Path, out: Path, *words: object, steps: int = 4) -> Any:
    """Train a classifier from parts of a run."""
    keys = (f"--training.max_steps={steps}", "--training.eval_every=2", "--training.save_every=2", *QUICK[1:])
    held = ("--data.hold_out=20", "--head.linear=false")
    return call(
        "train", "--task", "classification", "--table", folder / "table.csv", *held, "--out", out, *keys, *words
    )


TASKS = {"tagging": tag, "classification": classify}
every_task = pytest.mark.parametrize("train", TASKS.values(), ids=TASKS)


def part(run: Path, prefix: str = READER) -> dict[str, torch.Tensor]:
    """The weights of a run with this prefix."""
    return {name: each for name, each in read_weights(run / WEIGHTS).items() if name.startswith(prefix)}


def test_a_frozen_encoder_stays_as_it_was(folder: Path, tmp_path: Path) -> None:
    frozen = ("--init", folder / "masked", "--init-parts", "encoder", "--training.freeze=reader")
    result = tag(folder, tmp_path / "run", *frozen)
    assert result.code == 0, result.err
    before, after = part(folder / "masked"), part(tmp_path / "run")
    assert before.keys() == after.keys()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    recipe = Run(tmp_path / "run").recipe
    assert recipe.model.kind == "encoder" and recipe.tokenizer.kind == "word"
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (folder / "masked" / "tokenizer.json").read_bytes()


def test_without_freezing_the_encoder_is_fine_tuned(folder: Path, tmp_path: Path) -> None:
    result = tag(folder, tmp_path / "run", "--init", folder / "masked", "--init-parts", "encoder")
    assert result.code == 0, result.err
    before, after = part(folder / "masked"), part(tmp_path / "run")
    assert not before["reader.blocks.0.feed_forward.expand.weight"].equal(
        after["reader.blocks.0.feed_forward.expand.weight"]
    )
    assert "lr = 0.0005" in (tmp_path / "run" / "recipe.toml").read_text()
    report = (tmp_path / "run" / "report.md").read_text()
    assert "**Origin**: initialised with the encoder of `masked`, with its vocabulary." in report
    assert " --init masked --init-parts encoder --out NEW" in report


def test_a_transferred_encoder_with_the_noam_schedule_has_its_factor_and_no_peak_rate(folder: Path) -> None:
    transfer, machine = Transfer(Run(folder / "masked"), "encoder"), Machine("cpu", 2, 8 << 30, "float32", 1.0)
    for schedule, rate in (("noam", 1.0), ("cosine", 5e-4)):
        given = {"training.schedule": schedule}
        choices = transfer.choices(task_type("tagging"), CorpusStats(500, 60.0), machine, given)
        assert choices.values["training.lr"] == rate


def test_vectors_of_tokens_alone_can_be_taken(folder: Path, tmp_path: Path) -> None:
    words = ("--init", folder / "masked", "--init-parts", "embeddings", "--training.freeze=embeddings")
    result = tag(folder, tmp_path / "run", *words, "--model.kind=bilstm", "--model.hidden_size=8")
    assert result.code == 0, result.err
    before = part(folder / "masked")["reader.embedding.weight"]
    assert part(tmp_path / "run")["reader.embedding"].equal(before)
    other = ("--model.kind=bilstm", "--model.d_model=12")
    assert "shape" in tag(folder, tmp_path / "other", *words, *other).err


def test_a_backward_language_model_reads_text_from_its_end_and_continues_none(folder: Path) -> None:
    backward, text = heed.load(folder / "backward"), "the dog sees the cat"
    ids = backward.run.tokenizers["tgt"].encode([text])[0]
    assert len(ids) == 5
    features, _ = backward.run.model.advance(torch.tensor([[1, *ids[::-1]]]), backward.run.model.start(None, 1))
    [found] = backward.token_vectors([text])
    torch.testing.assert_close(torch.tensor(found.vectors.copy()), features[0, 1:].flip(0))
    assert found.tokens == [*backward.run.tokenizers["tgt"].pieces(ids)]
    for words in (("compress", folder / "backward"), ("inspect", folder / "backward", "--text", text)):
        refused = call(*words, stdin=f"{text}\n")
        assert refused.code == 2 and "reads text from its end" in refused.err
    with pytest.raises(UsageError, match="in opposite directions"):
        heed.load(folder / "forward", ensemble=[folder / "backward"])


def test_elmo_takes_a_forward_and_a_backward_language_model(folder: Path, tmp_path: Path) -> None:
    words = ("--init", folder / "forward", "--init-backward", folder / "backward", "--init-parts", "encoder")
    result = tag(folder, tmp_path / "run", *words, "--training.freeze=reader")
    assert result.code == 0, result.err
    after = part(tmp_path / "run")
    for direction in ("forward", "backward"):
        for name, tensor in read_weights(folder / direction / WEIGHTS).items():
            if not name.startswith("head."):
                assert after[f"reader.{direction}_lm.{name}"].equal(tensor)
    assert after["reader.mix.weights"].any()  # the mixture is trained
    report = (tmp_path / "run" / "report.md").read_text()
    assert "initialised with the encoder of `forward` and `backward`, with its vocabulary" in report
    assert " --init forward --init-parts encoder --init-backward backward --out NEW" in report
    swapped = ("--init", folder / "backward", "--init-backward", folder / "forward", "--init-parts", "encoder")
    assert "--data.backward=true" in tag(folder, tmp_path / "other", *swapped).err


def test_one_language_model_is_a_reader_too(folder: Path, tmp_path: Path) -> None:
    words = ("--init", folder / "forward", "--init-parts", "encoder", "--model.layers=last")
    result = tag(folder, tmp_path / "run", *words)
    assert result.code == 0, result.err
    model = Run(tmp_path / "run").recipe.model
    assert model.kind == "elmo" and model.model_dump()["backward"] is None
    again = call(
        "train", tmp_path / "run" / "recipe.toml", "--tokenizer-of", folder / "forward", "--out", tmp_path / "b"
    )
    assert again.code == 0, again.err


def test_a_backward_language_model_reads_reversed_lines(folder: Path) -> None:
    run = Run(folder / "backward")
    ids = run.task().loader(64, seed=1).batches_from()
    row = next(ids)[1].tgt_out[0].tolist()
    assert run.tokenizers["tgt"].pieces(row)[-2] == "the"
    forward = Run(folder / "forward").predictor.score(["the ba"])[0]
    assert run.predictor.score(["the ba"])[0].ids[:2] == forward.ids[1::-1]
    with pytest.raises(UsageError, match="reads text from its end"):
        run.predictor.generate("the")
    result = call("generate", folder / "backward", "--prompt", "the")
    assert result.code == 2
    assert "reads text from its end" in result.err


@torch.no_grad()
def test_the_encoder_of_a_translator_is_a_reader(trained: Path) -> None:
    """CoVe (McCann et al. 2017): the same features as the translator computes."""
    run = Run(trained)
    config = reader_config(run.recipe.model)
    size = len(run.tokenizers["src"].vocabulary)
    reader = build_model(config, Vocabularies(size, 3))
    load_weights(reader, reader_weights(run.recipe.model, run.weights()), trained)
    source = random_source([4, 7])
    torch.testing.assert_close(reader.read(source), run.model.encoder.read(source))


@pytest.mark.parametrize("attention", ["same", "rotary", "projected_heads", "scaled_dot"])
@torch.no_grad()
def test_the_encoder_keeps_its_own_attention(attention: Any) -> None:
    config = TransformerConfig(d_model=8, d_ff=8, num_heads=2, encoder_attention=attention, tie="target")
    model: Any = build_model(config, VOCABULARIES).eval()
    weights = reader_weights(config, dict(model.named_parameters()))
    reader: Any = build_model(reader_config(config), VOCABULARIES)
    assert weights.keys() == dict(reader.named_parameters()).keys()
    reader.load_state_dict(weights)
    source = random_source([4, 7])
    torch.testing.assert_close(reader.eval().read(source), model.encoder.read(source))


@every_task
@pytest.mark.parametrize("begin", ["masked", "gpt", "elmo", "translator"])
def test_every_reader_task_begins_with_every_trained_reader(
    begin: str, train: Any, folder: Path, trained: Path, tmp_path: Path
) -> None:
    """Frozen, the reader keeps all weights but those of ELMo's mixture; fine-tuned, it does not."""
    init = {"elmo": folder / "forward", "translator": trained}.get(begin, folder / begin)
    words = ("--init", init, "--init-parts", "encoder")
    words += ("--init-backward", folder / "backward") if begin == "elmo" else ()
    with unchecked_shapes():
        results = [train(folder, tmp_path / "frozen", *words, "--training.freeze=reader"),
                   train(folder, tmp_path / "tuned", *words, "--training.layer_decay=0.5")]  # fmt: skip
    assert [result.code for result in results] == [0, 0], results[0].err + results[1].err
    recipe, theirs = Run(tmp_path / "frozen").recipe, Run(init)
    before = {READER + name: each for name, each in reader_weights(theirs.recipe.model, theirs.weights()).items()}
    frozen, tuned = part(tmp_path / "frozen"), part(tmp_path / "tuned")
    assert all(tensor.equal(frozen[name]) for name, tensor in before.items() if "mix" not in name)
    assert before and not all(tensor.equal(tuned[name]) for name, tensor in before.items())
    assert recipe.model.kind == ("elmo" if begin in ("elmo", "gpt") else "encoder")
    most = recipe.model.max_positions
    assert most is None or recipe.data.max_tokens < most
    evaluation = heed.load(tmp_path / "tuned").evaluate(folder / ("tagged" if train is tag else "table.csv"))
    assert evaluation.num_rows > 10 and evaluation.leakage
    output = heed.load(tmp_path / "tuned").predict([" ".join(["the"] * 30)])  # more tokens than positions
    assert len(output) == 1


def test_texts_are_cut_to_the_positions_of_the_reader(folder: Path, tmp_path: Path) -> None:
    words = ("--init", folder / "gpt", "--init-parts", "encoder")
    result = classify(folder, tmp_path / "run", *words)
    assert result.code == 0, result.err
    assert Run(tmp_path / "run").recipe.data.max_tokens == 11
    long = classify(folder, tmp_path / "other", *words, "--data.max_tokens=12")
    assert long.code == 2 and "need 13 positions, but the reader has 12" in long.err


def test_models_without_an_encoder_are_refused(folder: Path, tmp_path: Path) -> None:
    run = with_weights(prepared(tmp_path, model__kind="rnn_attention", model__hidden_size=8, model__attention_size=8))
    result = tag(folder, tmp_path / "tagger", "--init", run.folder, "--init-parts", "encoder")
    assert result.code == 2 and "a model of kind rnn_attention has no encoder" in result.err
    assert "need --init RUN" in tag(folder, tmp_path / "tagger", "--init-parts", "encoder").err


@every_task
def test_gradual_unfreezing_resumes_exactly(train: Any, folder: Path, tmp_path: Path) -> None:
    words = ("--init", folder / "masked", "--init-parts", "encoder", "--training.unfreeze_every=1",
             "--training.layer_decay=0.5", "--training.tokens_per_batch=400")  # fmt: skip
    for out, steps in (("whole", 6), ("parts", 2)):
        result = train(folder, tmp_path / out, *words, "--training.schedule=constant", steps=steps)
        assert result.code == 0, result.err
    assert call("train", "--resume", tmp_path / "parts", "--max-steps", "6", "--quiet").code == 0
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


NAMES = [
    "reader.embedding.weight", "reader.positions", "reader.embedding_norm.weight",
    "reader.blocks.0.attention.query.bias", "reader.blocks.1.attention.query.bias", "reader.norm.weight",
    "head.output.weight",
]  # fmt: skip


def test_layers_are_counted_from_the_head() -> None:
    assert from_the_top(NAMES) == [[NAMES[6]], [NAMES[4], NAMES[5]], [NAMES[3]], NAMES[:3]]
    elmo = ["reader.forward_lm.embedding", "reader.forward_lm.layers.0.cell", "reader.mix.weights", "head.output.bias"]
    assert from_the_top(elmo) == [elmo[2:], elmo[1:2], elmo[:1]]


def test_layers_are_unfrozen_from_the_top() -> None:
    config = TrainingConfig(unfreeze_every=2)
    assert [len(trained_names(config, NAMES, epoch)) for epoch in range(8)] == [1, 1, 3, 3, 4, 4, 7, 7]
    assert trained_names(TrainingConfig(freeze="reader"), NAMES, 5) == {NAMES[6]}
    assert trained_names(TrainingConfig(freeze="embeddings"), NAMES, 0) == {*NAMES[3:]}
    assert trained_names(TrainingConfig(), NAMES, 0) == {*NAMES}


@pytest.mark.parametrize("name", READER_CONFIGS)
def test_frozen_embeddings_are_the_vectors_of_tokens_and_no_layer(name: str) -> None:
    reader: Any = model_of(name)
    parameters = dict(reader.named_parameters())
    assert reader.token_vectors() is None or reader.token_vectors() is parameters[embedding_name(READER_CONFIGS[name])]
    names = [READER + each for each in parameters] + ["head.output.weight"]
    frozen = {*names} - trained_names(TrainingConfig(freeze="embeddings"), names, 0)
    assert READER + embedding_name(READER_CONFIGS[name]) in frozen
    of_tokens = ("embedding", "positions", "segments", "forward_lm.", "backward_lm.")
    assert all(each.startswith(tuple(READER + begin for begin in of_tokens)) for each in frozen)
    assert not any(".layers." in each or ".blocks." in each for each in frozen)


def test_each_layer_has_its_rate(tmp_path: Path) -> None:
    from heed.training.optimizers import build_optimizer, optimised_names

    config = TrainingConfig(layer_decay=0.5)
    weights = {name: torch.zeros(1, requires_grad=True) for name in NAMES}
    groups = build_optimizer(config, weights, torch.device("cpu")).param_groups
    assert [group["scale"] for group in groups] == [1, 0.5, 0.25, 0.125]
    found = [id(each) for group in groups for each in group["params"]]
    assert found == [id(weights[name]) for name in optimised_names(config, NAMES)]


def test_freezing_needs_a_reader_with_a_head(tmp_path: Path) -> None:
    trainer_of(prepared(tmp_path))
    with pytest.raises(UsageError, match=r"training\.layer_decay need a task with a head"):
        prepared(tmp_path, "other", training__freeze="reader")
