"""Exporting a run in the format of another program: written, verified in that program, and described.

A folder appears when all of that has succeeded, with `verification.json` and a model card in it. A single file gets a
file of findings next to it, and the card inside if the format has a place for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from heed.core.errors import UsageError
from heed.core.files import atomic_folder, atomic_write, storage_errors
from heed.export.argos import Argos, add_card, export_argos, tune_argos
from heed.export.arpa import export_arpa
from heed.export.bert import export_bert
from heed.export.ctranslate2 import export_ctranslate2
from heed.export.gpt2 import export_gpt2
from heed.export.marian import export_marian
from heed.export.marian_tokenizer import written_tag
from heed.export.onnx import export_onnx
from heed.export.programs import Bert, Gpt2, Kenlm, Marian, OnnxRuntime, ctranslate2_program
from heed.export.verification import FILE, Findings, missing, verify
from heed.report.model_card import CARD, model_card
from heed.run import Run


@dataclass(frozen=True)
class Format:
    """A format of another program."""

    title: str
    """What the user gets."""
    write: Callable[[Run, Path], Any]
    """Writes the model to a path that does not exist yet."""
    program: Callable[[Path, Run], Any]
    """Opens what was written in the other program."""
    packages: tuple[str, ...]
    """Packages that the other program needs."""
    built_with: tuple[str, ...] = ()
    """Packages that writing needs."""
    is_file: bool = False
    """Whether the model is a single file."""
    tune: Callable[[Run, Path, Findings], Findings] | None = None
    """Fits a verified model to the search of the other program."""
    add_card: Callable[[Path, str, str], None] | None = None
    """Puts a text with a name into a single file that has a place for a model card."""
    needs: str = ""
    """Ability that the run must have."""
    pipeline: str = ""
    """The task of the model in Hugging Face's terms."""
    use: tuple[str, ...] = ()
    """Lines of a program that uses it."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a recipe whose run the format can hold, where heed's defaults cannot."""


_SENTENCE = "A sentence."
"""The source in the programs of cards."""
_HUB = ("transformers",)
_MARIAN_USE = (
    "from transformers import AutoTokenizer, MarianMTModel",
    "",
    'tokenizer, model = AutoTokenizer.from_pretrained("FOLDER"), MarianMTModel.from_pretrained("FOLDER")',
    'written = model.generate(**tokenizer(["A sentence."], return_tensors="pt"))',
    "print(tokenizer.batch_decode(written, skip_special_tokens=True))",
)
_ARGOS_USE = (
    "from argostranslate import package, translate",
    "",
    'package.install_from_path("FILE.argosmodel")',
    'print(translate.translate("A sentence.", "FROM", "TO"))  # codes of languages',
)
FORMATS = {
    "gpt2": Format(
        "a GPT-2 for Hugging Face transformers", export_gpt2, Gpt2, _HUB, needs="generate", pipeline="text-generation"
    ),
    "bert": Format("a BERT for Hugging Face transformers", export_bert, Bert, _HUB, pipeline="fill-mask"),
    "marian": Format(
        "a Marian for Hugging Face transformers",
        export_marian,
        Marian,
        _HUB,
        pipeline="translation",
        use=_MARIAN_USE,
        keys={"model.norm": "post"},
    ),
    "ctranslate2": Format(
        "a model for CTranslate2, with its tokenizers", export_ctranslate2, ctranslate2_program, ("ctranslate2",)
    ),
    "onnx": Format(
        "an encoder and a decoder step for ONNX Runtime",
        export_onnx,
        OnnxRuntime,
        ("onnxruntime",),
        built_with=("onnx",),
    ),
    "argos": Format(
        "a package for Argos Translate and LibreTranslate",
        export_argos,
        Argos,
        ("ctranslate2",),
        built_with=("ctranslate2", "sentencepiece"),
        is_file=True,
        tune=tune_argos,
        add_card=add_card,
        use=_ARGOS_USE,
        keys={"tokenizer.kind": "sentencepiece", "tokenizer.joint": True},
    ),
    "arpa": Format("n-grams for KenLM and SRILM", export_arpa, Kenlm, ("kenlm",), is_file=True, needs="generate"),
}


def export(run: Run, out: Path, to: str) -> tuple[Any, Findings]:
    """Export a run, and return what its writer returned and what was found. A file of that name is replaced at the end.

    Raises UsageError for a model that the format does not have, DataError for an export that differs, and StorageError.
    """
    chosen = FORMATS[to]
    if getattr(run.recipe.data, "backward", False):
        raise UsageError(f"{run.folder} reads text from its end (data.backward), which no other program does.")
    if len(run.sides) == 2:
        run = run.predictor.of_validation()  # what is compared, with its tag
    if chosen.needs:
        run.predictor.require(chosen.needs, "export")
    if reason := missing(chosen.built_with):
        raise UsageError(f"--to {to} needs a package that is {reason}.")
    with _naming_scorer(run):
        return (_export_file if chosen.is_file else _export_folder)(run, out, to, chosen)


@contextmanager
def _naming_scorer(run: Run) -> Iterator[None]:
    """Add to a UsageError that the scorer of a run of phrases is a run, too."""
    try:
        yield
    except UsageError as error:
        if run.scorer is None:
            raise
        raise UsageError(f"{error} To export its scorer, name {run.scorer.folder}.") from error


def _export_folder(run: Run, out: Path, to: str, chosen: Format) -> tuple[Any, Findings]:
    with storage_errors("write the model", path=out), atomic_folder(out, parents=True) as new:
        path = new / out.name
        written = chosen.write(run, path)
        findings = _findings(run, path, to, chosen)
        with atomic_write(path / CARD, "w") as file:
            file.write(_card(run, chosen, findings, has_tokenizer=written is not False))
        _write_findings(path / FILE, findings)
        for part in sorted(path.iterdir()):
            part.rename(new / part.name)
        path.rmdir()
    return written, findings


def _export_file(run: Run, out: Path, to: str, chosen: Format) -> tuple[Any, Findings]:
    with storage_errors("write the model", path=out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(out) as file, TemporaryDirectory(dir=out.parent, prefix=".heed-") as folder:
            path = Path(folder) / out.name
            written = chosen.write(run, path)
            findings = _findings(run, path, to, chosen)
            if chosen.add_card:
                chosen.add_card(path, CARD, _card(run, chosen, findings))
            with path.open("rb") as whole:
                copyfileobj(whole, file)
    with storage_errors("write the findings", path=out):
        _write_findings(out.with_name(f"{out.name}.{FILE}"), findings)
    return written, findings


def _findings(run: Run, path: Path, to: str, chosen: Format) -> Findings:
    if reason := missing(chosen.packages):
        return Findings(format=to, program=chosen.packages[0], verified=False, reason=reason)
    findings = verify(run, chosen.program(path, run), to)
    return chosen.tune(run, path, findings) if chosen.tune else findings


def _card(run: Run, chosen: Format, findings: Findings, has_tokenizer: bool = True) -> str:
    use = chosen.use if has_tokenizer else ()  # the program reads text
    tag = run.predictor.source_tag if len(run.sides) == 2 else ""
    if tag and use:
        use = tuple(line.replace(_SENTENCE, f"{written_tag(run, tag)}{_SENTENCE}") for line in use)
    advice = _tags(run, bool(use)) if tag else ""
    return model_card(run, chosen.title, use, findings.summary(), chosen.pipeline, advice)


def _tags(run: Run, as_text: bool) -> str:
    """What the card says about tags. `as_text`: the other program reads them in the text of a source."""
    data, vocabulary = run.recipe.data, run.tokenizers["src"].vocabulary
    names = [run.predictor.source_tag, *data.tags] if all(data.tags_used) else [run.predictor.source_tag]
    shown = []
    for name in dict.fromkeys(names):
        tag_id, language = vocabulary.tag_ids[name], data.languages(name)[1]
        form = written_tag(run, name).strip() if as_text else vocabulary.piece(tag_id)
        facts = [*([] if as_text else [f"id {tag_id}"]), *([f"into {language}"] if language else [])]
        shown.append(f"`{form}`" + f" ({', '.join(facts)})" * bool(facts))
    where = "Write {} before each source." if as_text else "Put the piece {} before the pieces of each source."
    return where.format(" or ".join(shown))


def _write_findings(path: Path, findings: Findings) -> None:
    with atomic_write(path, "w") as file:
        file.write(findings.model_dump_json(indent=1) + "\n")
