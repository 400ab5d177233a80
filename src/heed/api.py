"""The Python API: train a run, open a run.

import heed
heed.train("recipes/translation/multi30k-en-de.toml", out="runs/m30k")
heed.load("runs/m30k").translate(["A dog runs."])
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from heed.core.config import Document, read_toml, to_toml
from heed.core.environment import num_threads
from heed.core.errors import DataError, HeedError, UsageError
from heed.core.files import atomic_write, empty_folder, is_claimed, is_debris, storage_errors
from heed.core.progress import message, warn
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import USUAL_LENGTH, SearchOptions
from heed.decoding.translator import ModelTranslator, TokenScores
from heed.models import GenerativeModel
from heed.nn.device import choose_device, give_memory_back, set_threads
from heed.nn.packing import pack
from heed.nn.weight_file import save_weights
from heed.planner import Plan, Planner, TrainOptions, check_diagnosis, tokenizer_of
from heed.report.page import finish_report
from heed.run import RECIPE, WEIGHTS, Run, first_model
from heed.tasks.language_modelling import prepare_language_model
from heed.tasks.prepare import add_seen, read_valid, require_enough, write_corpus
from heed.tasks.task import Corpus, Task
from heed.tasks.translation import TranslationTask, prepare_translation
from heed.text.doctor import (
    Finding,
    Pieces,
    unknown_pieces,
)
from heed.text.vocabulary import Vocabulary
from heed.training.checkpoints import (
    Checkpoint,
    Progress,
    list_checkpoints,
    newest_checkpoint,
    require_room_for,
    tell_other_arithmetic,
)
from heed.training.journal import Journal, validation_event
from heed.training.ranks import ALONE, Ranks, joined
from heed.training.trainer import Outcome, Trainer

__all__ = [
    "Loaded", "Plan", "Planner", "TrainOptions", "check_folder", "execute", "follow", "load", "prepare_run", "resume",
    "train",
]  # fmt: skip

LM_WEIGHT = 0.2
"""Of a language model beside a translation model, where nothing is said."""


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
        """Continuations of a prompt: `options.nbest` draws, or at most so many of a beam; without options one draw."""
        return [hypothesis.text for hypothesis in self.continuations(prompt, options)]

    def continuations(self, prompt: str = "", options: SearchOptions | None = None) -> list[Hypothesis]:
        """The same with scores and tokens. Without `max_tokens` there are 200 at most, whatever the prompt."""
        self.run.require("language-model", "generate")
        if options is None:
            options = self.run.recipe.decoding.of_text(sample=True)
        elif not options.max_tokens:
            options = options.model_copy(update={"max_tokens": max(USUAL_LENGTH, options.min_tokens)})
        return self.translator.generate([prompt], options)[0]

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Log-probabilities (nats) of each text's tokens, given its source where the run is a translator."""
        if (sources is None) == (self.run.recipe.task == "translation"):
            raise UsageError("a translation run scores targets with their sources, a language model without any.")
        if sources is not None and len(sources) != len(targets):
            raise DataError(f"{len(targets)} targets with {len(sources)} sources: each target needs its source.")
        if sources is None:
            return self.run.scorer(model=self.translator.model).score(targets).token_scores()
        return self.translator.score(targets, sources)


def load(
    folder: str | Path, device: str = "cpu", threads: int = 0, precision: str = "float32", *,
    ensemble: Sequence[str | Path] = (), lm: str | Path | None = None, lm_weight: float = LM_WEIGHT,
    tag: str | None = None,
) -> Loaded:  # fmt: skip
    """Open a run folder. `threads`: how many CPU threads this process computes with (0: as many as there are).

    `precision`: "float32"; "bfloat16"; or "int8", on a CPU, with weights of eight bits and the rest in bfloat16.

    `ensemble`: further runs, whose probabilities are averaged with this one's. `lm`: a language model's run, whose
    log-probability times `lm_weight` is added (shallow fusion). All must have this run's vocabulary. `tag`: what stands
    before each source, where the run was trained with tags (None: its recipe's default, which it may lack):

        heed.load("runs/en-defr", tag="2fr").translate(["A dog runs."])

    Raises MissingInputError or DataError when it is no run, or damaged.
    """
    if precision not in ("float32", "bfloat16", "int8"):
        raise UsageError(f"precision is float32, bfloat16 or int8, got {precision!r}.")
    set_threads(threads or num_threads())
    run, *others = (Run(path, choose_device(device), tag) for path in (folder, *ensemble))
    if tag is not None:
        run.require("translation", "--tag")
    of_text = Run(lm, choose_device(device)) if lm is not None else None
    for each in (run, *others, *([of_text] if of_text else [])):
        if precision != "float32":
            each.model.to(torch.bfloat16)
        pack(each.model, rounded=precision == "int8")
        each.precision = precision
    return Loaded(run, others, of_text, lm_weight)


def train(
    recipe: str | Path | Mapping[str, object], out: str | Path, changes: Mapping[str, object] | None = None, *,
    init: str | Path | None = None, overwrite: bool = False, force: bool = False, device: str = "auto",
    threads: int = 0, quiet: bool = False, new_vocabulary: bool = False,
) -> Loaded:  # fmt: skip
    """Train into the folder `out`, and open what was trained.

    `recipe` is a recipe file, obeyed but for the keys in `changes`; or the keys themselves, and heed chooses the rest:

        heed.train("m30k.toml", "runs/a", {"training.lr": 3e-4})
        heed.train({"task": "translation", "data.src": "a.en", "data.tgt": "a.de"}, "runs/b")

    The other arguments are the flags of `heed train`. Raises HeedError when a signal stopped the training.
    """
    begin = Path(init) if init else None
    options = TrainOptions(Path(out), overwrite, force, begin, device, threads, quiet, new_vocabulary=new_vocabulary)
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
    for flag, needed in (("--init", options.init), ("--tokenizer-of", options.tokenizer_of)):
        if needed is not None and needed.resolve() == out.resolve():
            raise UsageError(f"{flag} {needed} is the run that --overwrite would remove: name another --out.")


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
    if plan.recipe.data.holds_out:
        require_enough(plan.diagnosis.num_pairs, plan.recipe.data.num_held_out)
    check_folder(options)
    init = Run(options.init) if options.init else None
    with storage_errors("write the run", path=options.out):
        run = prepare_run(plan, options.out, init, options.quiet, tokenizer_of(options, init))
    check_pieces(run, options.force, options.quiet)
    tell_short_limits(run, options.quiet)
    ranks.wait()
    return _learn(run, first_model(run, init, options.quiet), None, options.quiet, ranks)


def follow(options: TrainOptions, ranks: Ranks) -> Outcome:
    """Train with the first rank, when it has prepared the run folder: what the other ranks do."""
    set_threads(options.threads or num_threads())
    try:
        ranks.wait()
    except HeedError as error:
        raise HeedError("the first process ended before the training began: its error tells why.") from error
    run = Run(options.out, choose_device(options.device))
    init = Run(options.init) if options.init else None
    return _learn(run, first_model(run, init, quiet=True), None, options.quiet, ranks)


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


def tell_short_limits(run: Run, quiet: bool) -> None:
    """Say when the search ends outputs before what people wrote has ended, as it may with characters and bytes."""
    task, decoding = run.task(), run.recipe.decoding
    if not isinstance(task, TranslationTask) or (number := task.num_beyond_reach()) <= len(task.valid) / 100:
        return
    limit = f"decoding.max_tokens = {decoding.max_tokens}"
    if not decoding.max_tokens:
        limit = f"{decoding.max_ratio:g} for each of the source and {decoding.max_extra} more: decoding.max_ratio"
    warn(
        f"{number:,} of {len(task.valid):,} validation references have more tokens than an output may have "
        f"({limit}). Outputs like these will be cut off: raise the limit.", quiet,
    )  # fmt: skip


def prepare_run(
    plan: Plan, folder: Path, init: Run | None = None, quiet: bool = False, reused: Run | None = None
) -> Run:
    """The folder with everything but a model: recipe, tokenizers, prepared data.

    The tokenizers are those of `reused`, if given; what `init` was trained on counts as seen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    give_memory_back()  # what the data doctor took
    empty_folder(folder, last=RECIPE)
    with atomic_write(folder / RECIPE, "w") as file:
        file.write(to_toml(plan.recipe, plan.reasons))
    (folder / "data").mkdir()
    with atomic_write(folder / "data" / "diagnosis.txt", "w") as file:
        file.write(plan.diagnosis.render() + "\n")
    for path in sorted(reused.folder.glob("tokenizer*.json")) if reused else []:
        shutil.copy(path, folder / path.name)
    recipe = plan.recipe
    reuse = Run(folder).tokenizers if reused else None
    num_rows, num_in_parts = plan.diagnosis.num_pairs, plan.diagnosis.num_in_parts
    made_from = (recipe.data, recipe.tokenizer, recipe.seed, folder, num_rows, reuse, quiet)
    if recipe.task == "translation":
        corpus = prepare_translation(*made_from, num_in_parts)
    else:
        corpus = prepare_language_model(*made_from)
    if init is not None:
        add_seen(folder, init.folder)
    if init is not None or reused is not None:
        write_corpus(folder, replace(corpus, init=_name(init), tokenizer_of=_name(reused)))
    _tell(corpus, quiet)
    return Run(folder, plan.device)


def _name(run: Run | None) -> str:
    """The name of its folder, wherever that lies; nothing for no run."""
    return run.folder.resolve().name if run else ""


def _tell(corpus: Corpus, quiet: bool) -> None:
    message(f"{corpus.num_rows:,} rows to train on, {corpus.num_valid:,} to validate", quiet)
    for reason, count in corpus.dropped.items():
        message(f"  left out: {count:,} ({reason})", quiet)


def _learn(run: Run, model: GenerativeModel, checkpoint: Checkpoint | None, quiet: bool, ranks: Ranks) -> Outcome:
    """Train the model of a prepared run folder, by counting or by gradients, and write its report."""
    task = run.task()
    quiet = quiet or not ranks.is_first
    if model.count_based:
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
    begin = time.perf_counter()
    model.estimate(task.sequences())
    save_weights(run.folder / WEIGHTS, model.state_dict(), {"counted": "true", **task.vocabularies})
    validation = task.validate(model, task.metrics)
    seconds = round(time.perf_counter() - begin, 1)
    with Journal(run.folder) as journal:
        journal.write("validation", 1, {**validation_event(validation), "seconds": seconds, "epoch": 1, "best": True})
        journal.write("end", 1, {"reason": "counted", "seconds": seconds})
    for score in validation.scores.values():
        message(f"validation: {score.render()}", quiet)
    return Outcome("counted", Progress(step=1))


def resume(options: TrainOptions, strict: bool = False, ranks: Ranks = ALONE) -> Outcome:
    """Go on with the interrupted training in `options.out`; its recipe.toml is obeyed, and its limits may be edited."""
    set_threads(options.threads or num_threads())
    folder = options.out
    run = Run(folder, choose_device(options.device))
    run.require_prepared()
    if run.blank_model.count_based:
        raise UsageError(f"{folder} was counted, there is nothing to resume. Count again with --overwrite.")
    run.require_resumable()
    checkpoint = newest_checkpoint(folder / "checkpoints", strict, run.shapes)
    if ranks.is_first:
        require_room_for(folder / "checkpoints", checkpoint)
    tell_other_arithmetic(checkpoint, run.device, options.quiet or not ranks.is_first)
    return _learn(run, run.new_model(), checkpoint, options.quiet, ranks)
