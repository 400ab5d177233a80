"""Translators and language models in the format of CTranslate2, for its users and for heed's own engine.

A folder has CTranslate2's files (`model.bin`, `config.json`, a vocabulary for each side), the run's tokenizers, and
`heed.json`, which names the weights that it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from heed.core.environment import num_cpus
from heed.core.errors import UsageError
from heed.core.files import atomic_folder, remove_folder, storage_errors
from heed.core.run_files import WEIGHTS
from heed.decoding.detokenizer import Detokenizer
from heed.export.rounding import PRECISIONS, measure_rounding
from heed.inference.converted_model import DESCRIPTION, FOLDER, Conversion, describe
from heed.inference.ctranslate2_engine import CTranslate2Engine
from heed.inference.ctranslate2_generator import CTranslate2Generator
from heed.inference.sentences import MAX_TOKENS
from heed.models import GenerativeModel
from heed.nn.packing import has_rounded_products
from heed.run import Run
from heed.text.tokenizers import MAX_BYTES
from heed.text.vocabulary import BOS_ID, EOS_ID, UNK_ID, Vocabulary


def num_positions(run: Run) -> int:
    """Positions that suffice for the longest line that is translated at once, and for its longest output.

    Those of a language model's own table.
    """
    if run.sides == ("tgt",):
        return run.recipe.model.max_positions or MAX_TOKENS
    return max(MAX_TOKENS, run.recipe.decoding.limit(MAX_TOKENS)) + 1


def export_ctranslate2(run: Run, folder: Path, measures: bool = True) -> Conversion:
    """Write a run's model in the format of CTranslate2, and return its description.

    `measures`: compare a translator's int8 with float32 on validation data, which takes up to half a minute.
    Raises UsageError for a model that CTranslate2 does not have, and StorageError.
    """
    if not run.predictor.abilities & {"translate", "generate"}:
        raise UsageError(f"{run.folder}: only translators and language models can be converted to CTranslate2.")
    positions, vocabularies = num_positions(run), _vocabularies(run)
    model = run.unpacked(torch.device("cpu")).model
    with storage_errors("write the model", path=folder), atomic_folder(folder) as new:
        write_model(model, vocabularies, positions, new)
        conversion = describe(new, run.folder / WEIGHTS, vocabularies, positions)
        if measures and len(vocabularies) == 2:
            engines = {precision: _engine(run, new, conversion, num_cpus(), precision) for precision in PRECISIONS}
            conversion = conversion.model_copy(update={"rounding": measure_rounding(run, engines)})
        (new / DESCRIPTION).write_text(conversion.model_dump_json(indent=1) + "\n", encoding="utf-8")
        for path in sorted(run.folder.glob("tokenizer*.json")):
            (new / path.name).write_bytes(run.files.read(path.name, MAX_BYTES))
    return conversion


def _vocabularies(run: Run) -> list[Vocabulary]:
    return [run.tokenizers[side].vocabulary for side in run.sides]


def _engine(run: Run, folder: Path, conversion: Conversion, num_workers: int, compute_type: str) -> CTranslate2Engine:
    if run.sides == ("tgt",):
        detokenizer = run.predictor.detokenizer
        return CTranslate2Generator(folder, conversion.num_positions, detokenizer, num_workers, compute_type)
    never = Detokenizer(run.tokenizers["tgt"]).never
    return CTranslate2Engine(
        folder, conversion.num_positions, _vocabularies(run), never, num_workers, compute_type
    )  # fmt: skip


def write_model(
    model: GenerativeModel, vocabularies: Sequence[Vocabulary], num_positions: int, folder: Path,
    adds_end: bool = False, end_bias: float = 0.0,
) -> None:  # fmt: skip
    """Write a model into an empty folder. Raises UsageError for a model that CTranslate2 does not have.

    `adds_end`: CTranslate2 ends the sources; heed's own have their ends. `end_bias`: added to the logit of the end.
    """
    model.require_ctranslate2()
    *sources, target = vocabularies
    spec = model.ctranslate2_specification(num_positions)
    if sources:
        spec.register_source_vocabulary(list(sources[0].pieces))
        spec.register_target_vocabulary(list(target.pieces))
        spec.config.add_source_eos, spec.config.decoder_start_token = adds_end, target.piece(BOS_ID)
    else:
        spec.register_vocabulary(list(target.pieces))
    if end_bias:
        output = spec.decoder.projection
        present = isinstance(output.bias, np.ndarray)
        output.bias = output.bias.copy() if present else np.zeros(len(target), np.float32)
        output.bias[EOS_ID] += end_bias
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = map(target.piece, (BOS_ID, EOS_ID, UNK_ID))
    spec.validate()
    spec.save(str(folder))


def is_convertible(run: Run) -> bool:
    """Whether CTranslate2 is installed and has such a model."""
    try:
        run.blank_model.require_ctranslate2()
    except UsageError:
        return False
    return find_spec("ctranslate2") is not None


def usable_conversion(run: Run) -> Conversion | None:
    """The description of the converted model in a run folder; None without one that is whole and of its weights."""
    conversion = Conversion.read(run.folder / FOLDER)
    return conversion if conversion and conversion.is_usable(run.folder / WEIGHTS, _vocabularies(run)) else None


def open_engine(run: Run, is_possible: bool, needs: str) -> CTranslate2Engine | None:
    """The engine that a run may use; None if PyTorch searches.

    `is_possible`: whether it fits the task. `needs`: what it needs for that. Raises UsageError if the run must use
    CTranslate2 and cannot.
    """
    engine: CTranslate2Engine | None = None
    is_possible = is_possible and run.device.type == "cpu" and run.precision in PRECISIONS
    if run.engine != "torch" and is_possible and is_convertible(run):
        engine = _converted(run, run.num_workers or num_cpus(), run.precision)
    if run.engine == "ctranslate2" and engine is None:
        run.blank_model.require_ctranslate2()  # names what CTranslate2 lacks
        raise UsageError(
            f"{run.folder}: CTranslate2 cannot search with this run. It needs the package ctranslate2, a CPU, "
            f"float32 or int8, {needs}."
        )
    if engine is not None and run.precision == "int8" and not has_rounded_products():
        run.pytorch_precision = "float32"  # for whatever CTranslate2 cannot do
    return engine


def _converted(run: Run, num_workers: int, compute_type: str) -> CTranslate2Engine:
    """The engine of a run, which is converted in a temporary folder unless its folder has the converted model."""
    if conversion := usable_conversion(run):
        return _engine(run, run.folder / FOLDER, conversion, num_workers, compute_type)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / FOLDER
        conversion = export_ctranslate2(run, folder, measures=False)
        return _engine(run, folder, conversion, num_workers, compute_type)


def convert(run: Run) -> None:
    """Convert a run's model for its own use, in place of an earlier conversion. Raises as `export_ctranslate2`."""
    folder = run.folder / FOLDER
    if folder.exists() or folder.is_symlink():
        with storage_errors("replace the converted model", path=folder):
            remove_folder(folder)
    export_ctranslate2(run, folder)
