"""The Python API: load, evaluate and train runs.

import heed

translator = heed.load("runs/en-de")
translator.translate("A dog runs.")  # a string
translator.translate(["A dog runs.", "It sleeps."])  # a list of strings
heed.train({"task": "translation", "data.src": "a.en", "data.tgt": "a.de"}, "runs/b")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.config import Document, flattened, read_toml
from heed.core.errors import HeedError, UsageError
from heed.core.progress import warn
from heed.core.run_files import resume_command
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.likelihoods import evaluate_texts, read_by, read_test
from heed.evaluation.outputs import evaluate_outputs, translated
from heed.evaluation.test_set import read_parallel
from heed.execute import check_folder, execute, follow
from heed.members import register
from heed.nn.device import choose_device
from heed.planner import InitParts, Planner, TrainOptions
from heed.run import Run
from heed.tasks.predictor import LM_WEIGHT, Combination, Predictor
from heed.training.ranks import joined

RUN_FOLDER = "the path of a run folder"


def load(
    folder: str | Path, device: str = "cpu", precision: str = "float32", *,
    ensemble: str | Path | Sequence[str | Path] = (),
    lm: str | Path | None = None, lm_weight: float = LM_WEIGHT, memory: str | Path | None = None,
    tag: str | None = None, members: Iterable[Any] = (), engine: str = "auto", num_workers: int = 0,
) -> Predictor:  # fmt: skip
    """Load a run folder as a predictor: a translator, a language model, ...

    Args:
        folder: The run folder.
        device: "cpu", "cuda", "cuda:1" or "auto".
        precision: "float32", "bfloat16" or, on a CPU, "int8" (8-bit weights).
        ensemble: A further run or several, whose probabilities are averaged with those of this one. If this one
            translates by phrases, the others score its translations instead.
        lm: The run of a language model, whose log-probability times `lm_weight` is added (shallow fusion).
        lm_weight: The weight of `lm`.
        memory: A translation memory (`heed memory`), in whose translations a translator looks its next words up.
        tag: The tag before each source, for a run trained with tags; None for the default of its recipe.
        members: External models, tasks, attentions, tokenizers and metrics that the run needs.
        engine: What translates or generates: "auto" (CTranslate2 where it can, else PyTorch), "torch", "ctranslate2".
        num_workers: Threads that translate (0: one for each CPU). CTranslate2 uses one for a batch, PyTorch as many as
            `torch.get_num_threads()`.

    The runs of an ensemble, and `lm`, must have this run's vocabulary, except those that score phrases. The number of
    CPU threads is PyTorch's own (`torch.set_num_threads`).

    Raises:
        MissingInputError, DataError: It is not a run folder, or it is damaged.
        UsageError: The runs cannot be combined.
    """
    register(*_members(members))
    if precision not in ("float32", "bfloat16", "int8"):
        raise UsageError(f"precision must be float32, bfloat16 or int8, got {precision!r}.")
    if engine not in ("auto", "torch", "ctranslate2"):
        raise UsageError(f"engine must be auto, torch or ctranslate2, got {engine!r}.")
    if not isinstance(num_workers, int) or isinstance(num_workers, bool) or num_workers < 0:
        raise UsageError(f"num_workers must be a whole number from 0 on, got {num_workers!r:.80}.")
    folders = [_path(folder, "folder", RUN_FOLDER), *_paths(ensemble, "ensemble", RUN_FOLDER)]
    lm = None if lm is None else _path(lm, "lm", RUN_FOLDER)
    run, *others = (Run(path, choose_device(device), tag) for path in folders)
    language_model = Run(lm, choose_device(device)) if lm is not None else None
    for each in (run, *others, *([language_model] if language_model else [])):
        each.precision, each.packs, each.engine, each.num_workers = precision, True, engine, num_workers
    memory = None if memory is None else _path(memory, "memory", "the path of a translation memory")
    predictor = run.task_type.predictor(run, Combination(others, language_model, lm_weight, memory))
    predictor.open()
    return predictor


def evaluate(
    runs: str | Path | Sequence[str | Path], *, src: str | Path | None = None, ref: str | Path | None = None,
    text: str | Path | None = None, device: str = "cpu",
) -> list[Evaluation]:  # fmt: skip
    """Score runs on a test set, with significance tests of each run against the first.

    Args:
        runs: One run folder, or several.
        src, ref: Source and reference file for translation runs, with the same number of lines.
        text: Test text for language models.
        device: "cpu", "cuda", "cuda:1" or "auto".

    Returns:
        An evaluation of each run: scores with 95 % intervals and signatures, significance tests, leakage.

    Raises:
        UsageError: The files do not fit the tasks of the runs.
        DataError: src and ref differ in their number of lines.
    """
    folders = _paths(runs, "runs", RUN_FOLDER)
    src, ref, text = (
        None if path is None else _path(path, name, "the path of a file")
        for name, path in (("src", src), ("ref", ref), ("text", text))
    )
    if not folders:
        raise UsageError("name at least one run.")
    loaded = [load(folder, device) for folder in folders]
    if text is not None:
        if src is not None or ref is not None:
            raise UsageError("pass src and ref, or text, not both.")
        for predictor in loaded:
            predictor.require_text("text=")
        test = read_test(text, [each.run for each in loaded])
        return evaluate_texts(test, [read_by(each.run, test, each.scorer()) for each in loaded])
    if src is None or ref is None:
        raise UsageError("pass src and ref for translation runs, or text for language models.")
    for predictor in loaded:
        predictor.require("translate", "src= and ref=")
    test = read_parallel(src, ref)
    systems = [translated(each.run, test, each.run.recipe.decoding, quiet=True) for each in loaded]
    language = loaded[0].languages[1] or None
    return evaluate_outputs(test, systems, language, tokenised=loaded[0].run.recipe.data.tokenised)


def train(
    recipe: str | Path | Mapping[str, object], out: str | Path, changes: Mapping[str, object] | None = None, *,
    init: str | Path | None = None, overwrite: bool = False, force: bool = False, device: str = "auto",
    quiet: bool = False, new_vocabulary: bool = False, init_parts: InitParts = "all",
    tokenizer_of: str | Path | None = None, members: Iterable[Any] = (),
) -> Predictor:  # fmt: skip
    """Train a model into the run folder `out`, and load it.

    Args:
        recipe: A complete recipe file, or recipe keys, dotted or in tables; heed chooses the settings that these leave
            open.
        out: The run folder to create.
        changes: Keys that override those of a recipe file, such as {"training.lr": 3e-4}.
        init: A run whose weights training starts from.
        overwrite: Replace the run in `out`.
        force: Train even if the data doctor finds errors that would stop the training.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1".
        quiet: Print nothing, and do not estimate whether the limits allow a usable model.
        new_vocabulary: With `init`, train a new vocabulary; pieces in both vocabularies keep their weights.
        init_parts: With `init`, for another task: "encoder" or "embeddings" start from its reader or token vectors.
        tokenizer_of: A run whose vocabulary is used, so that scores and models can be combined.
        members: External models, tasks, attentions, tokenizers and metrics that the recipe names.

    Examples:
        heed.train("m30k.toml", "runs/a", {"training.lr": 3e-4})
        heed.train({"task": "translation", "data.src": "a.en", "data.tgt": "a.de"}, "runs/b")

    Raises:
        HeedError: A signal stopped the training.
    """
    register(*_members(members))
    if changes is not None and not isinstance(changes, Mapping):
        raise UsageError(f"changes must be a mapping of recipe keys, got {changes!r:.80}.")
    options = TrainOptions(
        _path(out, "out", RUN_FOLDER), overwrite, force, _path(init, "init", RUN_FOLDER) if init else None, device,
        quiet, new_vocabulary=new_vocabulary, init_parts=init_parts,
        tokenizer_of=_path(tokenizer_of, "tokenizer_of", RUN_FOLDER) if tokenizer_of else None,
    )  # fmt: skip
    if not isinstance(recipe, Mapping):
        recipe = _path(recipe, "recipe", "a mapping of recipe keys or the path of a recipe file")
    with joined(choose_device(device)) as ranks:
        if ranks.is_first:
            document, keys = (Document(), flattened(recipe)) if isinstance(recipe, Mapping) else (read_toml(recipe), {})
            check_folder(options)
            plan = Planner(document, {**keys, **flattened(changes or {})}, options).plan()
            if not quiet and plan.warning:
                warn(plan.warning)
            outcome = execute(plan, options, ranks)
        else:
            outcome = follow(options, ranks)
    if outcome.interrupted_by is not None:
        raise HeedError(f"{outcome.reason}; continue with: {resume_command(Path(out))}")
    return load(out)


def _members(members: Iterable[Any]) -> Iterable[Any]:
    """The argument `members`. Raises UsageError for a single member, or anything else that is no list."""
    if not isinstance(members, Iterable):
        raise UsageError(f"members must be a list of classes, got {members!r:.80}.")
    return members


def _path(value: object, name: str, what: str) -> Path:
    """The argument called `name` as a path. Raises UsageError for anything but a path."""
    if not isinstance(value, str | Path):
        raise UsageError(f"{name} must be {what}, as a str or a pathlib.Path; got {value!r:.80}.")
    return Path(value)


def _paths(values: object, name: str, what: str) -> list[Path]:
    """An argument that may be one path or several."""
    several = values if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
    return [_path(each, name, what) for each in several]
