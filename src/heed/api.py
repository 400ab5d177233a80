"""The Python API: train a run, open a run.

import heed
heed.train("recipes/translation/multi30k-en-de.toml", out="runs/m30k")
heed.load("runs/m30k").translate(["A dog runs."])
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from heed import chooser
from heed.core.config import Document, build, read_toml, to_toml
from heed.core.environment import data_dir, num_threads
from heed.core.errors import DataError, HeedError, UsageError
from heed.core.files import atomic_write, empty_folder, is_claimed, is_debris, storage_errors
from heed.core.progress import message
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.translator import ModelTranslator, TokenScores
from heed.models import Model, build_model
from heed.nn.contract import Vocabularies
from heed.nn.device import choose_device, give_memory_back, set_threads
from heed.nn.packing import pack
from heed.nn.weight_file import save_weights
from heed.recipe import Recipe, require_known_format
from heed.report.page import finish_report
from heed.run import RECIPE, WEIGHTS, Run, load_weights
from heed.tasks.language_modelling import prepare_language_model
from heed.tasks.prepare import add_seen, read_valid
from heed.tasks.task import Corpus, Task
from heed.tasks.translation import prepare_translation
from heed.text.doctor import Diagnosis, Finding, Pieces, diagnose_files, diagnose_text_files, unknown_pieces
from heed.text.vocabulary import Vocabulary
from heed.training.checkpoints import (
    Checkpoint,
    Progress,
    list_checkpoints,
    newest_checkpoint,
    require_room_for,
    tell_other_arithmetic,
)
from heed.training.expectation import Expectation, expect
from heed.training.journal import Journal, require_tensorboard, validation_event
from heed.training.ranks import ALONE, Ranks, joined
from heed.training.trainer import Outcome, Trainer


class Loaded:
    """A run, ready to use. `heed.load` makes it."""

    def __init__(self, run: Run, others: Sequence[Run] = (), lm: Run | None = None, lm_weight: float = 0.0) -> None:
        self.run = run
        self.others = others
        self.lm = lm
        self.lm_weight = lm_weight

    @cached_property
    def translator(self) -> ModelTranslator:
        """The run's, or that of all the runs together."""
        if self.others or self.lm:
            return self.run.translator_with(self.others, self.lm, self.lm_weight)
        return self.run.translator

    def translate(self, lines: Sequence[str], options: SearchOptions | None = None) -> list[str]:
        """One translation for each line."""
        return [hypothesis.text for hypothesis in self.hypotheses(lines, options)]

    def hypotheses(self, lines: Sequence[str], options: SearchOptions | None = None) -> list[Hypothesis]:
        """The same with scores, tokens and alternatives."""
        self.run.require("translation", "translate")
        return self.translator.translate(lines, options or self.run.recipe.decoding)

    def generate(self, prompt: str = "", options: SearchOptions | None = None) -> list[str]:
        """Continuations of a prompt, `options.nbest` of them; one drawn continuation when there are no options."""
        return [hypothesis.text for hypothesis in self.continuations(prompt, options)]

    def continuations(self, prompt: str = "", options: SearchOptions | None = None) -> list[Hypothesis]:
        """The same with scores and tokens."""
        self.run.require("language-model", "generate")
        return self.run.translator.generate([prompt], options or SearchOptions(sample=True))[0]

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Log-probabilities (nats) of each text's tokens, given its source where the run is a translator."""
        if (sources is None) == (self.run.recipe.task == "translation"):
            raise UsageError("a translation run scores targets with their sources, a language model without any.")
        if sources is not None and len(sources) != len(targets):
            raise DataError(f"{len(targets)} targets with {len(sources)} sources: each target needs its source.")
        return self.translator.score(targets, sources)


def load(
    folder: str | Path, device: str = "cpu", threads: int = 0, precision: str = "float32", *,
    ensemble: Sequence[str | Path] = (), lm: str | Path | None = None, lm_weight: float = 0.2,
) -> Loaded:  # fmt: skip
    """Open a run folder. `threads`: how many CPU threads this process computes with (0: as many as there are).

    `ensemble`: further runs, whose probabilities are averaged with this one's. `lm`: a language model's run, whose
    log-probability times `lm_weight` is added (shallow fusion). All must have this run's vocabulary.
    Raises MissingInputError or DataError when it is no run, or damaged.
    """
    if precision not in ("float32", "bfloat16"):
        raise UsageError(f"precision is float32 or bfloat16, got {precision!r}.")
    set_threads(threads or num_threads())
    run, *others = (Run(path, choose_device(device)) for path in (folder, *ensemble))
    of_text = Run(lm, choose_device(device)) if lm is not None else None
    for each in (run, *others, *([of_text] if of_text else [])):
        if precision == "bfloat16":
            each.model.to(torch.bfloat16)
        pack(each.model)
    return Loaded(run, others, of_text, lm_weight)


@dataclass(frozen=True)
class TrainOptions:
    """What is said about one training beside its recipe."""

    out: Path
    overwrite: bool = False
    force: bool = False
    init: Path | None = None
    device: str = "auto"
    threads: int = 0
    quiet: bool = False
    tokenizer_of: Path | None = None
    """A run whose tokenizers are taken, so that its models and this one can work together."""


def train(
    recipe: str | Path | Mapping[str, object], out: str | Path, changes: Mapping[str, object] | None = None, *,
    init: str | Path | None = None, overwrite: bool = False, force: bool = False, device: str = "auto",
    threads: int = 0, quiet: bool = False,
) -> Loaded:  # fmt: skip
    """Train into the folder `out`, and open what was trained.

    `recipe` is a recipe file, obeyed but for the keys in `changes`; or the keys themselves, and heed chooses the rest:

        heed.train("m30k.toml", "runs/a", {"training.lr": 3e-4})
        heed.train({"task": "translation", "data.src": "a.en", "data.tgt": "a.de"}, "runs/b")

    The other arguments are the flags of `heed train`. Raises HeedError when a signal stopped the training.
    """
    options = TrainOptions(Path(out), overwrite, force, Path(init) if init else None, device, threads, quiet)
    with joined(choose_device(device)) as ranks:
        if ranks.is_first:
            document, keys = (Document(), dict(recipe)) if isinstance(recipe, Mapping) else (read_toml(recipe), {})
            check_folder(options)
            outcome = execute(Planner(document, {**keys, **(changes or {})}, options).plan(), options, ranks)
        else:
            outcome = follow(options, ranks)
    if outcome.interrupted_by is not None:
        raise HeedError(f"{outcome.reason}; go on with: heed train --resume {out}")
    return load(out, threads=threads)


@dataclass(frozen=True)
class Plan:
    """A recipe that is complete, what was found in its data, and why what was chosen."""

    recipe: Recipe
    reasons: Mapping[str, str]
    diagnosis: Diagnosis
    machine: chooser.Machine
    device: torch.device


class Planner:
    """From what the user said to a complete recipe."""

    def __init__(self, document: Document, overrides: Mapping[str, object], options: TrainOptions) -> None:
        require_known_format(document)
        self.document = document
        self.overrides = dict(overrides)
        self.quiet = options.quiet
        self.init = Run(options.init) if options.init else None
        self.device = choose_device(options.device)
        set_threads(options.threads or num_threads())
        if document.name and data_dir() is not None:
            self.overrides = {"data.dir": str(data_dir()), **self.overrides}

    def plan(self) -> Plan:
        """Examine the data and the machine; choose what the user left open when there is no recipe file."""
        machine = chooser.Machine.here(self.device)
        draft, reasons = self._recipe(chooser.Survey(1, 1.0), machine)  # every mistake is told before the data is read
        if draft.training.tensorboard:
            require_tensorboard()
        diagnosis = _examine(draft, self.quiet)
        survey = chooser.Survey(diagnosis.num_pairs, characters_per_row(diagnosis))
        recipe, reasons = self._recipe(survey, machine)
        if self.init is not None:
            _require_like(self.init, recipe)
        return Plan(recipe, reasons, diagnosis, machine, self.device)

    def _recipe(self, survey: chooser.Survey, machine: chooser.Machine) -> tuple[Recipe, Mapping[str, str]]:
        """The recipe for such a corpus, and the reasons for what was chosen."""
        if self.document.name:
            return build(Recipe, self.document, self.overrides), {}
        choose = chooser.CHOOSERS.get(str(self.overrides.get("task")), chooser.choose_translation)
        choices = choose(survey, machine, self.overrides)
        if self.init is not None:
            choices = chooser.fine_tuned(choices, self.init.recipe.model_dump(), self.overrides)
        return build(Recipe, Document(_nested(choices.values)), self.overrides), choices.reasons


def _examine(recipe: Recipe, quiet: bool) -> Diagnosis:
    data = recipe.data
    if recipe.task == "translation":
        files = data.train_files(), data.valid_files()
        return diagnose_files(*files, errors=data.errors, pair_filter=data.filter, quiet=quiet)
    if not data.text:
        raise UsageError("data.text is missing: give --text F.")
    valid = data.resolve(data.valid_text) if data.valid_text else None
    return diagnose_text_files(data.resolve(data.text), valid, errors=data.errors, quiet=quiet)


def _require_like(init: Run, recipe: Recipe) -> None:
    """Weights fit only a model of the same kind, shape and choices; what may differ is dropout."""
    theirs, ours = (
        {name: value for name, value in config.model_dump().items() if "dropout" not in name}
        for config in (init.recipe.model, recipe.model)
    )
    if theirs != ours:
        names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
        said = ", ".join(f"{name} {theirs.get(name, 'none')} there, {ours.get(name, 'none')} here" for name in names)
        raise UsageError(f"--init {init.folder}: its model is another one than the recipe's ({said}).")


def characters_per_row(diagnosis: Diagnosis) -> float:
    """Characters of the longer side of a row, on average."""
    found = diagnosis.statistics
    return max((found[name] for name in found if name.endswith("_characters")), default=1.0)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        table, name = key.split(".")
        tables.setdefault(table, {})[name] = value
    return tables


def expectation(plan: Plan) -> Expectation | None:
    """Time and memory of the training, from a few updates with random tokens; None for a counting model.

    The vocabulary is not learned yet, so its size is the recipe's, and tokens are estimated from characters.
    """
    recipe = plan.recipe
    sizes = recipe.tokenizer.vocab_size
    vocabularies = Vocabularies(sizes, sizes)
    model = build_model(recipe.model, vocabularies)
    if model.counted:
        return None
    characters = characters_per_row(plan.diagnosis)
    length = characters / chooser.characters_per_token(sizes) + 1
    return expect(recipe.training, model, vocabularies, plan.diagnosis.num_pairs * length, round(length), plan.device)


def check_diagnosis(diagnosis: Diagnosis, force: bool) -> None:
    """Stop before a training that its data would ruin."""
    require_readable(diagnosis)
    if diagnosis.stops and not force:
        reasons = "\n".join(f"  {finding.message} {finding.advice}" for finding in diagnosis.stops)
        raise DataError(f"this data would ruin the run:\n{reasons}\nMend it, or go on all the same with --force.")


def require_readable(diagnosis: Diagnosis) -> None:
    """Stop before a training whose data cannot be read to its end: that cannot be forced."""
    if unreadable := [finding.message for finding in diagnosis.stops if finding.check == "unreadable"]:
        raise DataError("\n".join(unreadable))


def check_folder(options: TrainOptions) -> None:
    """The run folder must be new, or given up explicitly: a silent restart would lose a run. Changes nothing."""
    out = options.out
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; a run is a folder.")
    if not out.is_dir() or all(map(is_debris, out.iterdir())):
        return
    if not options.overwrite:
        raise UsageError(_what_is_there(out))
    if not (out / RECIPE).exists():
        raise UsageError(f"--overwrite: {out} is not empty and no run folder; it is left alone.")
    if is_claimed(out):
        raise UsageError(f"--overwrite: another process is training in {out}. Stop it first.")
    if options.init is not None and options.init.resolve() == out.resolve():
        raise UsageError(f"--init {options.init} is the run that --overwrite would remove: name another --out.")


def _what_is_there(out: Path) -> str:
    checkpoints = list_checkpoints(out / "checkpoints")
    if checkpoints:
        newest = f"{out} already holds a run whose newest checkpoint is {checkpoints[-1].name}."
        return f"{newest} Go on with `heed train --resume {out}`, or start anew with --overwrite."
    found = "a run without checkpoints" if (out / RECIPE).exists() else "files"
    return f"{out} already holds {found}. Start anew with --overwrite, or name another --out."


def execute(plan: Plan, options: TrainOptions, ranks: Ranks = ALONE) -> Outcome:
    """Prepare the data, train, and write everything into the run folder; what the first of several ranks does."""
    check_diagnosis(plan.diagnosis, options.force)
    check_folder(options)
    init = Run(options.init) if options.init else None
    with storage_errors("write the run", path=options.out):
        tokenizer_of = Run(options.tokenizer_of) if options.tokenizer_of else init
        run = prepare_run(plan, options.out, init, options.quiet, tokenizer_of)
    check_pieces(run, options.force, options.quiet)
    ranks.wait()
    return _learn(run, _first_model(run, init), None, options.quiet, ranks)


def follow(options: TrainOptions, ranks: Ranks) -> Outcome:
    """Train with the first rank, when it has prepared the run folder: what the other ranks do."""
    set_threads(options.threads or num_threads())
    ranks.wait()
    run = Run(options.out, choose_device(options.device))
    init = Run(options.init) if options.init else None
    return _learn(run, _first_model(run, init), None, options.quiet, ranks)


def _first_model(run: Run, init: Run | None) -> Model:
    """The model before its first update."""
    model = run.new_model()
    if init is not None:
        load_weights(model, init.weights(), init.folder / WEIGHTS)
    return model


def check_pieces(run: Run, force: bool, quiet: bool) -> None:
    """Stop when the vocabulary, which is there only now, does not know much of the validation text."""
    valid = read_valid(run.folder)
    findings: list[Finding] = []
    for index, side in enumerate(run.sides):
        tokenizer = run.tokenizers[side]
        pieces = Pieces(tokenizer.encode, Vocabulary.unk_id)
        findings += unknown_pieces(f"validation {side}", [row[index] for row in valid], pieces)
    for finding in findings:
        if finding.severity == "stop" and not force:
            raise DataError(f"{finding.message} {finding.advice} Or go on all the same with --force.")
        message(f"{finding.severity}: {finding.message}", quiet)


def prepare_run(
    plan: Plan, folder: Path, init: Run | None = None, quiet: bool = False, tokenizer_of: Run | None = None
) -> Run:
    """The folder with everything but a model: recipe, tokenizers, prepared data.

    The tokenizers are those of `tokenizer_of` or `init`, if given.
    """
    tokenizer_of = tokenizer_of or init
    folder.mkdir(parents=True, exist_ok=True)
    give_memory_back()  # what the data doctor took
    empty_folder(folder, last=RECIPE)
    with atomic_write(folder / RECIPE, "w") as file:
        file.write(to_toml(plan.recipe, plan.reasons))
    (folder / "data").mkdir()
    with atomic_write(folder / "data" / "diagnosis.txt", "w") as file:
        file.write(plan.diagnosis.render() + "\n")
    for path in sorted(tokenizer_of.folder.glob("tokenizer*.json")) if tokenizer_of else []:
        shutil.copy(path, folder / path.name)
    recipe = plan.recipe
    prepare = {"translation": prepare_translation, "language-model": prepare_language_model}[recipe.task]
    reuse = Run(folder).tokenizers if tokenizer_of else None
    corpus = prepare(recipe.data, recipe.tokenizer, recipe.seed, folder, plan.diagnosis.num_pairs, reuse, quiet)
    if init is not None:
        add_seen(folder, init.folder)
    _tell(corpus, quiet)
    return Run(folder, plan.device)


def _tell(corpus: Corpus, quiet: bool) -> None:
    message(f"{corpus.num_rows:,} rows to train on, {corpus.num_valid:,} to validate", quiet)
    for reason, count in corpus.dropped.items():
        message(f"  left out: {count:,} ({reason})", quiet)


def _learn(run: Run, model: Model, checkpoint: Checkpoint | None, quiet: bool, ranks: Ranks) -> Outcome:
    """Train the model of a prepared run folder, by counting or by gradients, and write its report."""
    task = run.task()
    quiet = quiet or not ranks.is_first
    if model.counted:
        outcome = _count(run, model, task, quiet) if ranks.is_first else Outcome("counted", Progress(step=1))
    else:
        message(f"model: {sum(parameter.numel() for parameter in model.parameters()):,} parameters", quiet)
        recipe = run.recipe
        d_model = recipe.model.model_dump()["d_model"]
        trainer = Trainer(recipe.training, model, task, run.folder, recipe.seed, run.device, d_model, quiet, ranks)
        if checkpoint is not None:
            trainer.restore(checkpoint)
        outcome = trainer.run()
    if outcome.interrupted_by is None and ranks.is_first:
        with storage_errors("write the report", path=run.folder):
            finish_report(run, quiet)
    return outcome


def _count(run: Run, model: Any, task: Task, quiet: bool) -> Outcome:
    model.estimate(task.sequences())
    save_weights(run.folder / WEIGHTS, model.state_dict(), {"counted": "true", **task.vocabularies})
    validation = task.validate(model, task.metrics)
    with Journal(run.folder) as journal:
        journal.write("validation", 1, {**validation_event(validation), "seconds": 0.0, "epoch": 1, "best": True})
    for score in validation.scores.values():
        message(f"validation: {score.render()}", quiet)
    return Outcome("counted", Progress(step=1))


def resume(options: TrainOptions, strict: bool = False, ranks: Ranks = ALONE) -> Outcome:
    """Go on with the interrupted training in `options.out`; its recipe.toml is obeyed, and its limits may be edited."""
    set_threads(options.threads or num_threads())
    folder = options.out
    run = Run(folder, choose_device(options.device))
    if run.blank_model.counted:
        raise UsageError(f"{folder} was counted, there is nothing to resume. Count again with --overwrite.")
    run.require_resumable()
    checkpoint = newest_checkpoint(folder / "checkpoints", strict, run.shapes)
    if ranks.is_first:
        require_room_for(folder / "checkpoints", checkpoint)
    tell_other_arithmetic(checkpoint, run.device, options.quiet or not ranks.is_first)
    return _learn(run, run.new_model(), checkpoint, options.quiet, ranks)
