"""`heed distill`: a student's data are its teachers' translations, however often the translating was interrupted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from command import Result, call

import heed
from heed.run import Run
from heed.tasks.prepare import vocabulary_digests
from heed.tasks.translation import distillation

KEYS = (
    "--model.num_encoder_layers=2", "--model.num_decoder_layers=1", "--max-steps", "2", "--training.eval_every=2",
    "--training.save_every=2", "--beam", "1", "--threads", "1", "--quiet",
)  # fmt: skip


def distill(teacher: Path, out: Path, *words: Any) -> Result:
    return call("distill", teacher, "--out", out, *KEYS, *words)


def translations(out: Path) -> tuple[list[str], list[str]]:
    folder = out.with_name(f"{out.name}.distilled")
    src, tgt = ((folder / name).read_text("utf-8").splitlines() for name in ("0.src", "0.tgt"))
    return src, tgt


@pytest.fixture(scope="module")
def student(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("students") / "student"
    result = distill(translator, out)
    assert result.code == 0, result.err
    return out


def test_the_student_learns_from_the_pairs_and_from_the_translations(translator: Path, student: Path) -> None:
    sources, targets = translations(student)
    data = Run(translator).recipe.data
    references = dict(
        zip(*(Path(data.resolve(path)).read_text().splitlines() for path in (data.src, data.tgt)), strict=True)
    )
    options = Run(translator).recipe.decoding.model_copy(update={"beam_size": 1})
    outputs = heed.load(translator).hypotheses(sources, options)
    expected = [references[src] if best.flags else best.text for src, best in zip(sources, outputs, strict=True)]
    assert targets == expected
    assert any(target != references[src] for src, target in zip(sources, targets, strict=True))
    assert len(sources) == len(set(sources))
    run = Run(student)
    assert [part.tgt for part in run.recipe.data.parts] == [f"{student}.distilled/0.tgt"]
    assert (run.recipe.model.num_encoder_layers, run.recipe.model.num_decoder_layers) == (2, 1)
    assert run.recipe.model.d_model == Run(translator).recipe.model.d_model
    assert vocabulary_digests(run.tokenizers) == vocabulary_digests(Run(translator).tokenizers)


def test_held_out_sentences_are_not_translated(translator: Path, student: Path) -> None:
    held = {text for row in distillation.read_valid(translator) for text in row}
    sources, _ = translations(student)
    assert held and held.isdisjoint(sources)


def test_an_interrupted_distillation_continues_where_it_was(
    translator: Path, student: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, out = translations(student), tmp_path / "student"
    folder = tmp_path / "student.distilled"
    shutil.copytree(student.with_name("student.distilled"), folder)
    for name, lines in (("0.src", 30), ("0.tgt", 25)):
        content = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(content[:lines]) + content[lines][:3])  # ends within a line
    monkeypatch.setattr(distillation, "AT_ONCE", 7)
    translated: list[str] = []
    append = distillation._append

    def watched(files: Any, sources: list[str], targets: list[str]) -> None:
        translated.extend(sources)
        append(files, sources, targets)

    monkeypatch.setattr(distillation, "_append", watched)
    assert distill(translator, out).code == 0
    assert translations(out) == expected
    assert translated == expected[0][25:]


def test_translations_by_other_teachers_or_another_search_are_refused(
    translator: Path, student: Path, tmp_path: Path
) -> None:
    shutil.copytree(student.with_name("student.distilled"), tmp_path / "student.distilled")
    result = distill(translator, tmp_path / "student", "--length-penalty", "0.3")
    assert (result.code, "by other teachers, of other text or by another search" in result.err) == (65, True)
    assert not (tmp_path / "student").exists()


@pytest.mark.parametrize(
    "words, message",
    [
        (("--model.d_model=8",), "name the teachers before any keys of the recipe"),
        (("RUN", "--model.d_model=8", "recipe.toml"), "name the teachers before any keys of the recipe"),
    ],
)
def test_wrong_calls_are_refused(translator: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    called = [str(translator) if word == "RUN" else word for word in words]
    result = call("distill", *called, "--out", tmp_path / "student", "--quiet")
    assert result.code != 0
    assert message in result.err


def test_only_translators_teach(bigram: Path, student: Path, tmp_path: Path) -> None:
    result = distill(bigram, tmp_path / "student")
    assert (result.code, "distill" in result.err) == (2, True)
    assert f"{student} already holds a run" in distill(student, student).err
