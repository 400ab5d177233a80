"""Translators as packages of Argos Translate and LibreTranslate, `.argosmodel`.

A package is a zip archive with one folder: `metadata.json`, `model` in CTranslate2's format, one SentencePiece model
for both sides, and the model card as `README.md`, which Argos Translate can show. Argos's search is fixed: beam 4, with
log-probabilities divided by length^0.2, under which a model that was tuned for a stronger penalty ends too early. A
bias on the end of sentence, chosen on validation data, is put into the model for that.
"""

from __future__ import annotations

import json
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import torch

from heed.core.errors import UsageError
from heed.core.files import atomic_write, storage_errors
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.test_set import HeldOut
from heed.export.ctranslate2 import num_positions, write_model
from heed.export.programs import CTranslate2, mean_search
from heed.export.verification import Findings, bleu, outputs, validation_rows
from heed.run import Run
from heed.text.language.codes import name_of
from heed.text.tokenizers.sentence_piece import SentencePiece

PACKAGE_VERSION, ARGOS_VERSION = "1.0", "1.9"
BEAM_SIZE, LENGTH_PENALTY = 4, 0.2
"""Argos's search."""
END_BIASES = (0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0)
"""Values that are tried; below, outputs do not end."""
MOST_LINES = 2000
"""Lines of validation text, half to choose the bias and half to measure it."""
LEVEL = 0.05
"""Of the test against no bias."""


def export_argos(run: Run, path: Path, end_bias: float = 0.0) -> None:
    """Write a package. Raises UsageError for a run that a package cannot hold, and StorageError."""
    if run.sides != ("src", "tgt"):
        raise UsageError(f"{run.folder}: Argos Translate only takes translators.")
    src, tgt = run.tokenizers["src"], run.tokenizers["tgt"]
    if not isinstance(src, SentencePiece) or src is not tgt:
        raise UsageError(
            f"{run.folder}: a package of Argos Translate has one SentencePiece model for both sides. Train a run with "
            "--for argos."
        )
    data = run.recipe.data
    if data.requires_tag or data.default_tag or run.predictor.source_tag:
        raise UsageError(
            f"{run.folder}: Argos Translate has no tags before sources, and this run needs one. Train a run for one "
            "language without a tag (--for argos)."
        )
    codes = run.predictor.languages
    if not all(codes):
        raise UsageError(f"{run.folder} does not know its languages: train with --data.src_lang=L --data.tgt_lang=L.")
    name = f"translate-{codes[0]}_{codes[1]}-{PACKAGE_VERSION.replace('.', '_')}"
    metadata = {
        "package_version": PACKAGE_VERSION, "argos_version": ARGOS_VERSION, "from_code": codes[0],
        "from_name": name_of(codes[0]), "to_code": codes[1], "to_name": name_of(codes[1]),
    }  # fmt: skip
    model = run.unpacked(torch.device("cpu")).model
    with storage_errors("write the package", path=path), TemporaryDirectory() as temporary:
        vocabularies = src.vocabulary, tgt.vocabulary
        write_model(model, vocabularies, num_positions(run), Path(temporary), adds_end=True, end_bias=end_bias)
        with atomic_write(path, "wb") as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}/metadata.json", json.dumps(metadata, ensure_ascii=False, indent=1) + "\n")
            archive.writestr(f"{name}/sentencepiece.model", src.model)
            for part in sorted(Path(temporary).iterdir()):
                archive.write(part, f"{name}/model/{part.name}")


def add_card(path: Path, name: str, text: str) -> None:
    """Put a model card into a package, beside its metadata. Raises StorageError."""
    with storage_errors("write the package", path=path):
        packed = BytesIO(path.read_bytes())
        with ZipFile(packed, "a", ZIP_DEFLATED) as archive:
            folder = archive.namelist()[0].partition("/")[0]
            archive.writestr(f"{folder}/{name}", text)
        with atomic_write(path, "wb") as file:
            file.write(packed.getbuffer())


class Argos(CTranslate2):
    """A package, by the calls of CTranslate2 and SentencePiece that Argos Translate makes for one sentence."""

    def __init__(self, path: Path, run: Run) -> None:
        with TemporaryDirectory() as temporary, ZipFile(path) as archive:
            archive.extractall(temporary)
            [folder] = Path(temporary).iterdir()
            super().__init__(folder / "model", run)
            library: Any = import_module("sentencepiece")
            self._pieces = library.SentencePieceProcessor(model_proto=(folder / "sentencepiece.model").read_bytes())
        self.name = f"the calls of Argos Translate in {self.name}"
        self.options = mean_search(BEAM_SIZE, LENGTH_PENALTY)

    def read(self, line: str) -> list[int]:  # type: ignore[override]
        vocabulary = self._run.tokenizers["src"].vocabulary
        return [vocabulary.id(piece) for piece in self._pieces.encode(line, out_type=str)]

    def log_probs(self, source: Any, target: Any) -> list[float]:
        pair = self._tokens("src", source), self._tokens("tgt", target)
        [scored] = self._translator.score_batch([pair[0]], [pair[1]])
        log_probs: list[float] = scored.log_probs
        return log_probs

    def translate(self, lines: Any) -> list[str]:
        results = self._translator.translate_batch(
            self._pieces.encode(list(lines), out_type=str), replace_unknowns=True, max_batch_size=32,
            batch_type="tokens", beam_size=BEAM_SIZE, num_hypotheses=1, length_penalty=LENGTH_PENALTY,
            return_scores=True,
        )  # fmt: skip
        texts = [self._pieces.decode_pieces(result.hypotheses[0]) for result in results]
        return [self.rewritten(text.replace("\u2581", " ")).removeprefix(" ") for text in texts]

    def rewritten(self, text: str) -> str:
        return text.replace("_", " ")


def tune_argos(run: Run, path: Path, findings: Findings) -> Findings:
    """Choose the bias on every other line of the validation text, put it into the package, and measure on the rest.

    The best by BLEU, if it is better than none by more than chance.
    """
    rows, has_references = validation_rows(run, MOST_LINES)
    if not has_references or len(rows) < 2:
        return findings
    names = "validation sources", "validation references"
    chosen_on, measured_on = HeldOut(names, rows[::2]), HeldOut(names, rows[1::2])

    def translated(bias: float, test: HeldOut) -> System:
        export_argos(run, path, bias)
        return System(str(bias), Argos(path, run).translate(list(test.sources)))

    systems = [translated(bias, chosen_on) for bias in END_BIASES]
    gains = [
        each.against_first["bleu"].difference if _is_significant(each) else 0.0
        for each in evaluate_outputs(chosen_on, systems, run.recipe.data.tgt_lang or None, metrics=("bleu",))
    ]
    best = END_BIASES[gains.index(max(gains))]
    there = translated(best, measured_on)
    lines, references = list(measured_on.sources), list(measured_on.references)
    here = bleu(run, [text for text, _ in outputs(run, lines, run.recipe.decoding)], references)[0]
    return findings.model_copy(
        update={
            "end_bias": best, "bleu_here": here, "bleu_there": bleu(run, list(there.outputs), references)[0],
            "num_measured": len(lines),
        }
    )  # fmt: skip


def _is_significant(evaluation: Evaluation) -> bool:
    test = evaluation.against_first.get("bleu")  # none for the first
    return test is not None and test.p_randomisation is not None and test.p_randomisation < LEVEL
