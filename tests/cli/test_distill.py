"""`heed distill`: a student's data are its teachers' translations, however often the translating was interrupted."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command import Result, call
from toy import TINY, other_weights, write_lines

import heed
from heed.cli.options import Compute
from heed.core.errors import DataError, UsageError
from heed.core.run_files import RECIPE
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.models.transfer import without_dropout
from heed.report.description import origin
from heed.run import Run
from heed.tasks.prepare import vocabulary_digests
from heed.tasks.translation import distillation
from heed.tasks.translation.compatibility import in_opposite_direction
from heed.tasks.translation.data import PartConfig, TranslationData
from heed.tasks.translation.distillation import BackTranslation, Distillation
from heed.tasks.translation.predictor import TranslationPredictor

KEYS = (
    "--model.num_encoder_layers=2", "--model.num_decoder_layers=1", "--max-steps", "2", "--training.eval_every=2",
    "--training.save_every=2", "--beam", "1", "--threads", "1", "--quiet",
)  # fmt: skip


class Echo:
    """Translates each line to itself in upper case, and marks lines of more than 20 characters as doubtful."""

    longest = 20
    """Characters of a line that is not marked."""

    def translate(self, lines: list[str], options: SearchOptions) -> list[Hypothesis]:
        return [
            Hypothesis((), 0.0, 0.0, text=line.upper(), flags=("loop",) * (len(line) > self.longest)) for line in lines
        ]


def echoing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let translators echo, which is quick."""
    monkeypatch.setattr(TranslationPredictor, "line_translator", lambda self, with_tokens: Echo())


def learning(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Prepare runs and train none; returns the runs and their first models."""
    learned: list[Any] = []
    monkeypatch.setattr("heed.execute._learn", lambda run, model, *_: learned.append((run, model)))
    return learned


def without_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train no student."""
    monkeypatch.setattr("heed.cli.distill.run_training", lambda *_, **__: None)


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


@pytest.fixture(scope="module")
def tuned(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was fine-tuned at a very low rate."""
    out, data = tmp_path_factory.mktemp("tuned") / "tuned", Run(translator).recipe.data
    files = ("--src", data.resolve(data.src), "--tgt", data.resolve(data.tgt))
    limits = ("--training.lr=1e-7", *KEYS[2:6], "--quiet")
    assert call("train", *files, "--init", translator, "--out", out, *limits).code == 0
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


def test_a_fast_student_starts_with_the_layers_of_its_teacher(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    deep = tmp_path / "deep"
    assert call("distill", translator, "--out", deep, "--model.num_decoder_layers=4", *KEYS[2:]).code == 0
    learned = learning(monkeypatch)
    result = call("distill", deep, "--fast", "--out", tmp_path / "fast", *KEYS[2:])
    assert result.code == 0, result.err
    [(run, model)] = learned
    layers = (run.recipe.model.num_encoder_layers, run.recipe.model.num_decoder_layers)
    before = Run(translator).recipe.model.num_encoder_layers
    assert (layers, run.recipe.decoding.beam_size) == ((before + 2, 2), 1)
    assert run.corpus["init"] == "deep"
    teacher = Run(deep).weights()
    for new, old in (
        ("blocks.0.", "blocks.0."),
        ("blocks.1.", "blocks.3."),
        ("encoder.blocks.1.", "encoder.blocks.0."),
    ):
        layer = {name: weight for name, weight in model.named_parameters() if name.startswith(new)}
        assert layer
        assert all(torch.equal(weight, teacher[name.replace(new, old, 1)]) for name, weight in layer.items())


def test_a_student_of_the_same_shape_starts_with_the_weights_of_its_teacher(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    learned = learning(monkeypatch)
    teacher = Run(translator)
    assert teacher.recipe.data.holds_out
    data = teacher.recipe.data
    copied = shutil.copy(data.resolve(data.src), tmp_path / "other.aa")
    for name, key, begins in (
        ("alike", "--model.dropout=0.3", True),
        ("wider", "--model.d_ff=48", False),
        ("judged-by-other-lines", "--data.hold_out=31", False),
        ("of-other-pairs", f"--data.src={copied}", False),
    ):
        result = call("distill", translator, "--out", tmp_path / name, key, *KEYS[2:-1])
        assert (result.code, "hardly be usable" in result.err) == (0, not begins), result.err
        run, model = learned.pop()
        assert run.corpus.get("init", "") == (translator.name if begins else "")
        assert begins == (
            origin(run) == f"a student that began with the weights of `{translator.name}`, with its vocabulary"
        )
        weights = dict(model.named_parameters())
        same = [torch.equal(weight, weights[name]) for name, weight in teacher.weights().items() if "norm" not in name]
        assert all(same) if begins else not all(same)


@pytest.mark.parametrize("words", [KEYS[2:], KEYS], ids=["same shape", "another depth"])
def test_the_student_of_a_fine_tuned_teacher_starts_with_its_weights_at_the_rate_of_a_new_training(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    echoing(monkeypatch)
    learned = learning(monkeypatch)
    result = call("distill", tuned, "--out", tmp_path / "student", *words)
    assert result.code == 0, result.err
    [(run, model)] = learned
    teacher = Run(tuned)
    assert teacher.is_fine_tuned and not run.is_fine_tuned
    assert run.recipe.training.lr > 1e-4
    model_of_teacher, own = (without_dropout(each.recipe.model.model_dump()) for each in (teacher, run))
    depth = {"num_encoder_layers": 2, "num_decoder_layers": 1} if words is KEYS else {}
    assert own == {**model_of_teacher, **depth}
    name = "encoder.embedding.weight"
    assert torch.equal(dict(model.named_parameters())[name], teacher.weights()[name])


def test_only_a_transformer_has_a_fast_student(bigram: Path, tmp_path: Path) -> None:
    result = call("distill", bigram, "--fast", "--out", tmp_path / "fast")
    assert (result.code, "--fast is for Transformers" in result.err) == (2, True)


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

    def watched(paths: Any, sources: list[str], targets: list[str]) -> None:
        translated.extend(sources)
        append(paths, sources, targets)

    monkeypatch.setattr(distillation, "_append", watched)
    assert distill(translator, out).code == 0
    assert translations(out) == expected
    assert translated == expected[0][25:]


def test_translations_by_other_teachers_or_another_search_are_refused(
    translator: Path, student: Path, tmp_path: Path
) -> None:
    shutil.copytree(student.with_name("student.distilled"), tmp_path / "student.distilled")
    result = distill(translator, tmp_path / "student", "--length-penalty", "0.3")
    assert (result.code, "by other models, of other text or by another search" in result.err) == (65, True)
    assert not (tmp_path / "student").exists()


def test_overwrite_replaces_translations_that_do_not_fit_and_keeps_others(
    translator: Path, student: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(student.with_name("student.distilled"), tmp_path / "student.distilled")
    echoing(monkeypatch)
    without_training(monkeypatch)
    sources, targets = translations(student)
    assert distill(translator, tmp_path / "student", "--overwrite").code == 0
    assert translations(tmp_path / "student") == (sources, targets)
    result = distill(translator, tmp_path / "student", "--overwrite", "--length-penalty", "0.3")
    assert result.code == 0, result.err
    again, echoes = translations(tmp_path / "student")
    assert again == sources and echoes != targets
    assert all(echo == src.upper() for src, echo in zip(sources, echoes, strict=True) if len(src) <= 20)


def test_folders_that_are_needed_or_hold_other_files_are_not_emptied(
    translator: Path, student: Path, tmp_path: Path
) -> None:
    result = call("distill", translator, student, "--out", student, *KEYS, "--overwrite")
    assert (result.code, result.err) == (
        2, f"error: replacing {student} would remove {student}, which this training needs. Name another --out.\n"
    )  # fmt: skip
    predictor: Any = heed.load(student)
    data, folder = predictor.data, student.with_name("student.distilled")
    with pytest.raises(UsageError, match=r"student\.distilled has training data of a teacher"):
        Distillation(predictor, data, folder, predictor.decoding, quiet=True).run(overwrite=True)
    (tmp_path / "notes").touch()
    with pytest.raises(UsageError, match="is not empty and has no translations for a student"):
        Distillation(predictor, data, tmp_path, predictor.decoding, quiet=True).run(overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_sources_of_several_parts_are_translated_once(
    student: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    predictor: Any = heed.load(student)
    assert len(predictor.data.train_parts()) == 2, "the second part has the sources of the first"
    [part] = Distillation(predictor, predictor.data, tmp_path, predictor.decoding, quiet=True).run()
    assert part.src == str(tmp_path / "0.src")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.src", "0.tgt", distillation.DESCRIPTION]
    assert Path(part.src).read_bytes() == (student.with_name("student.distilled") / "0.src").read_bytes()


def with_languages(run: Path, folder: Path, src_lang: str, tgt_lang: str) -> Path:
    """A copy of a run whose recipe names other languages."""
    shutil.copytree(run, folder)
    text, data = (folder / RECIPE).read_text(), Run(run).recipe.data
    for name, old, new in (("src", data.src_lang, src_lang), ("tgt", data.tgt_lang, tgt_lang)):
        assert f'{name}_lang = "{old}"\n' in text
        text = text.replace(f'{name}_lang = "{old}"\n', f'{name}_lang = "{new}"\n')
    (folder / RECIPE).write_text(text)
    return folder


class Watched(Echo):
    """Records which run translates what, and with which beam."""

    def __init__(self, run: str, calls: list[tuple[str, int, list[str]]]) -> None:
        self.run = run
        self.calls = calls

    def translate(self, lines: list[str], options: SearchOptions) -> list[Hypothesis]:
        self.calls.append((self.run, options.beam_size, lines))
        return super().translate(lines, options)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, list[str]]]:
    """Let translators echo, and record what they do."""
    calls: list[tuple[str, int, list[str]]] = []
    monkeypatch.setattr(
        TranslationPredictor, "line_translator", lambda self, with_tokens: Watched(self.folder.name, calls)
    )
    return calls


def test_a_reverse_translator_translates_the_targets_back(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, learned = watched(monkeypatch), learning(monkeypatch)
    monkeypatch.setattr(Echo, "longest", 14)
    reverse, out = with_languages(translator, tmp_path / "reverse", "bb", "aa"), tmp_path / "student"
    result = distill(translator, out, "--reverse", reverse)
    assert result.code == 0, result.err
    assert {call[:2] for call in calls} == {(translator.name, 1), ("reverse", 2)}, "--beam is for the teachers"
    [(run, _)] = learned
    forward, back = run.recipe.data.parts
    place = str(tmp_path / "student.distilled")
    assert (forward.src, forward.tgt, forward.back_translated) == (f"{place}/0.src", f"{place}/0.tgt", False)
    assert (back.src, back.tgt) == (f"{place}-back/0.src", f"{place}-back/0.tgt")
    assert back.by_model and back.back_translated
    sources, targets = (Path(name).read_text("utf-8").splitlines() for name in (back.src, back.tgt))
    data = Run(translator).recipe.data
    files = (Path(data.resolve(path)).read_text().splitlines() for path in (data.src, data.tgt))
    pairs = set(zip(*files, strict=True))
    held = {text for row in read_valid(translator) for text in row}
    assert [line for name, _, lines in calls if name == "reverse" for line in lines] == targets
    assert len(targets) == len(set(targets))
    assert set(targets) == {tgt for src, tgt in pairs if not {src, tgt} & held}
    assert {len(tgt) > 14 for tgt in targets} == {True, False}
    for src, tgt in zip(sources, targets, strict=True):
        assert (src, tgt) in pairs if len(tgt) > 14 else src == tgt.upper(), "what is flagged keeps its own source"

    calls.clear()
    assert distill(translator, out, "--reverse", reverse, "--overwrite").code == 0
    assert not calls, "nothing is translated twice"
    assert distill(translator, out, "--reverse", reverse, "--overwrite", "--length-penalty", "0.3").code == 0
    assert {name for name, *_ in calls} == {translator.name}, "back-translations do not depend on the teachers' search"


def test_an_interrupted_back_translation_continues_where_it_was(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = watched(monkeypatch)
    without_training(monkeypatch)
    monkeypatch.setattr(distillation, "AT_ONCE", 7)
    reverse, append = with_languages(translator, tmp_path / "reverse", "bb", "aa"), distillation._append
    written: list[str] = []

    def interrupted(paths: Any, texts: list[str], translations: list[str]) -> None:
        if paths[0].suffix == ".tgt" and written:
            raise KeyboardInterrupt
        written.extend(texts if paths[0].suffix == ".tgt" else [])
        append(paths, texts, translations)

    with monkeypatch.context() as patch:
        patch.setattr(distillation, "_append", interrupted)
        assert distill(translator, tmp_path / "student", "--reverse", reverse).code == 130
    assert len(written) == 7
    calls.clear()
    assert distill(translator, tmp_path / "student", "--reverse", reverse).code == 0
    assert {name for name, *_ in calls} == {"reverse"}
    text = (tmp_path / "student.distilled-back/0.tgt").read_text("utf-8").splitlines()
    assert [line for *_, lines in calls for line in lines] == text[7:]


def test_only_what_people_wrote_is_translated_in_either_direction(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher: Any = heed.load(with_languages(translator, tmp_path / "teacher", "aa", "bb"))
    reverse: Any = heed.load(with_languages(translator, tmp_path / "reverse", "bb", "aa"))
    files = {"src": teacher.data.resolve(teacher.data.src), "tgt": teacher.data.resolve(teacher.data.tgt)}
    parts = [
        PartConfig(**files, by_model=True), PartConfig(**files, by_model=True, back_translated=True),
        PartConfig(**files, src_lang="cc"), PartConfig(**files),
    ]  # fmt: skip
    data = teacher.data.model_copy(update={"parts": tuple(parts)})
    forward = Distillation(teacher, data, tmp_path / "x", teacher.decoding, quiet=True)
    back = BackTranslation(reverse, data, tmp_path / "y", reverse.decoding, quiet=True, teacher=teacher)
    assert [part.number for part in forward.parts] == [0, 1, 3, 4]
    assert [part.number for part in back.parts] == [0, 4], "aa is not what the others were translated from"
    monkeypatch.setattr(TranslationData, "train_parts", lambda self: forward.parts[1:2])
    with pytest.raises(UsageError, match="all targets of the training data are in other languages, or a model wrote"):
        BackTranslation(reverse, data, tmp_path / "y", reverse.decoding, quiet=True, teacher=teacher)


@pytest.mark.parametrize(
    "languages, message",
    [
        (("aa", "bb"), "reverse translates from aa to bb, and"),
        (("aa", ""), "reverse translates from aa to ?, and"),
        (("bb", "cc"), "Give a translator from bb to aa, or leave out --reverse."),
    ],
)
def test_a_reverse_translator_of_other_languages_is_refused(
    translator: Path, tmp_path: Path, languages: tuple[str, str], message: str
) -> None:
    teacher = with_languages(translator, tmp_path / "teacher", "aa", "bb")
    reverse = with_languages(translator, tmp_path / "reverse", *languages)
    result = distill(teacher, tmp_path / "student", "--reverse", reverse)
    assert (result.code, message in result.err) == (2, True), result.err
    assert not list(tmp_path.glob("student*"))


def test_what_cannot_translate_back_is_refused(translator: Path, bigram: Path, tmp_path: Path) -> None:
    result = distill(translator, tmp_path / "student", "--reverse", bigram)
    assert (result.code, "--reverse" in result.err) == (2, True), result.err
    unnamed = with_languages(translator, tmp_path / "unnamed", "", "")
    result = distill(unnamed, tmp_path / "student", "--reverse", unnamed)
    assert (result.code, "--reverse names the translator itself" in result.err) == (2, True), result.err
    assert not list(tmp_path.glob("student*"))


def test_languages_are_compared_by_what_they_name(translator: Path, tmp_path: Path) -> None:
    teacher: Any = heed.load(with_languages(translator, tmp_path / "teacher", "en", "German"))
    reverse: Any = heed.load(with_languages(translator, tmp_path / "reverse", "deu", "en-US"))
    assert in_opposite_direction(reverse, teacher).folder == reverse.folder


def test_a_reverse_translator_of_several_directions_gets_the_tag_for_the_opposite_one(
    translator: Path, tmp_path: Path
) -> None:
    teacher: Any = heed.load(with_languages(translator, tmp_path / "teacher", "en", "pt-BR"))
    reverse: Any = heed.load(with_languages(translator, tmp_path / "reverse", "en", "pt-BR"))
    parts = [
        PartConfig(tag=tag, src_lang=language, tgt_lang="en", src="x", tgt="y")
        for tag, language in (("pt", "pt-PT"), ("br", "pt-BR"))
    ]
    data = reverse.data.model_copy(update={"parts": tuple(parts)})

    def tagged(tag: str) -> Any:
        return SimpleNamespace(folder=reverse.folder, source_tag=tag, languages=data.languages(tag))

    several = SimpleNamespace(
        data=data, folder=reverse.folder, require=lambda *_: None,
        of_validation=lambda: SimpleNamespace(predictor=tagged("")),
        run=SimpleNamespace(with_tag=lambda tag: SimpleNamespace(predictor=tagged(tag))),
    )  # fmt: skip
    assert in_opposite_direction(several, teacher).source_tag == "br", "not the first of the same language"
    teacher = SimpleNamespace(folder=tmp_path, source_tag="", languages=("en", "pt"))
    assert in_opposite_direction(several, teacher).source_tag == "pt"


def test_a_folder_that_cannot_be_used_is_found_before_anything_is_translated(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = watched(monkeypatch)
    reverse = with_languages(translator, tmp_path / "reverse", "bb", "aa")
    (tmp_path / "student.distilled-back").mkdir()
    (tmp_path / "student.distilled-back/notes").touch()
    result = distill(translator, tmp_path / "student", "--reverse", reverse)
    assert (result.code, "student.distilled-back is not empty" in result.err) == (2, True), result.err
    inside = with_languages(translator, tmp_path / "student.distilled-back/run", "bb", "aa")
    result = distill(translator, tmp_path / "student", "--reverse", inside)
    assert (result.code, "the folder of the translations: move it elsewhere" in result.err) == (2, True), result.err
    assert not calls and not (tmp_path / "student.distilled").exists()


def test_the_teachers_also_translate_other_text(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    keys: list[dict[str, Any]] = []
    monkeypatch.setattr("heed.cli.distill.run_training", lambda recipe, own, *_, **__: keys.append(own))
    data, held = Run(translator).recipe.data, next(iter(read_valid(translator)))[0]
    known = Path(data.resolve(data.src)).read_text("utf-8").splitlines()
    lines = dict.fromkeys((translator.parent / "test.aa").read_text("utf-8").splitlines())
    new = [line for line in lines if line not in known and line != held]
    short = [line for line in new if len(line) <= 20]
    marked = " ".join(new[:4])
    assert short and len(marked) > 20
    text = write_lines(tmp_path / "text.aa", [*new, new[0], "", marked, known[0], held])
    result = distill(translator, tmp_path / "student", "--mono-src", text)
    assert result.code == 0, result.err
    folder = tmp_path / "student.distilled"
    assert [Path(part["src"]) for part in keys[0]["data.parts"]] == [folder / "0.src", folder / "text/pairs.src"]
    assert [part.get("by_model") for part in keys[0]["data.parts"]] == [True, True]
    assert (folder / "text/pairs.src").read_text("utf-8").splitlines() == short
    assert (folder / "text/pairs.tgt").read_text("utf-8").splitlines() == [line.upper() for line in short]
    wrong = distill(translator, tmp_path / "wrong", "--mono-src", translator.parent / "test.bb")
    assert (wrong.code, "look like the source language" in wrong.err) == (2, True)
    assert "Give text in the source language. If it is" in wrong.err, "distill has no other flag for text"
    nothing = distill(translator, tmp_path / "wrong", "--mono-src", write_lines(tmp_path / "known.aa", known))
    assert (nothing.code, "nothing is left of --mono-src" in nothing.err) == (65, True)
    assert not (tmp_path / "wrong.distilled").exists(), "found before anything is translated"
    own = distill(translator, tmp_path / "student", "--mono-src", folder / "text.src")
    assert (own.code, "is in" in own.err and "move it elsewhere" in own.err) == (2, True)


def test_a_student_of_phrases_has_a_vocabulary_of_its_own(translator: Path, tmp_path: Path) -> None:
    data, phrases = Run(translator).recipe.data, tmp_path / "phrases"
    files = ("--src", data.src, "--tgt", data.tgt, "--src-lang", "aa", "--tgt-lang", "bb", "--data.hold_out=30")
    words = ("--model.kind=phrase_based", "--part", f"tgt={translator.parent / 'test.bb'}", "--out", phrases, "--quiet")
    assert call("train", *files, *words).code == 0
    tiny = [f"--{key}={value}" for key, value in {**TINY, "training.max_steps": 2}.items()]
    text = translator.parent / "test.aa"
    result = call("distill", phrases, "--mono-src", text, "--out", tmp_path / "student", *tiny, "--quiet")
    assert result.code == 0, result.err
    student = Run(tmp_path / "student").recipe
    assert (student.model.kind, student.tokenizer.kind) == ("transformer", "bpe")
    names = [Path(part.src).name for part in student.data.parts]
    assert names == ["0.src", "pairs.src"], "without the text in the target language, which it cannot read"
    assert call("distill", phrases, "--out", tmp_path / "phrases-again", "--quiet").code == 0
    assert Run(tmp_path / "phrases-again").corpus["init"] == "", "counts have no weights to begin with"
    scorer = other_weights(translator, tmp_path / "scorer")  # so bad that it changes what the phrases find
    assert call("distill", phrases, scorer, "--beam", 5, "--out", tmp_path / "both", *tiny, "--quiet").code == 0
    files = [tmp_path / "both.distilled" / f"0.{side}" for side in ("src", "tgt")]
    lines, taught = (file.read_text(encoding="utf-8").splitlines()[:40] for file in files)
    both: Any = heed.load(phrases, ensemble=scorer)
    alone: Any = heed.load(phrases)
    options = both.decoding.model_copy(update={"beam_size": 5})
    assert taught == both.translate(lines, options) != alone.translate(lines, options)


def test_data_without_translatable_sources_is_refused(student: Path, tmp_path: Path) -> None:
    predictor: Any = heed.load(student)
    folder, options = tmp_path / "student.distilled", predictor.decoding
    tagged = predictor.data.model_copy(update={"tag": "bt", "parts": ()})
    with pytest.raises(UsageError, match=r"no part of the training data has the tag '' \(its tags: bt\)"):
        Distillation(predictor, tagged, folder, options, quiet=True)
    strict = predictor.data.filter.model_copy(update={"max_characters": 1})
    filtered = predictor.data.model_copy(update={"filter": strict})
    with pytest.raises(DataError, match="nothing to translate"):
        Distillation(predictor, filtered, folder, options, quiet=True).run()
    assert not folder.exists()


def test_an_interruption_says_how_far_it_came_and_how_to_continue(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    without_training(monkeypatch)
    monkeypatch.setattr(distillation, "AT_ONCE", 7)
    append, written = distillation._append, list[str]()

    def interrupted(paths: Any, sources: list[str], targets: list[str]) -> None:
        if written:
            raise KeyboardInterrupt
        written.extend(sources)
        append(paths, sources, targets)

    words = ("distill", translator, "--out", tmp_path / "student", "--beam", "1", "--threads", "1")
    with monkeypatch.context() as patch:
        patch.setattr(distillation, "_append", interrupted)
        result = call(*words)
    assert result.code == 130
    folder = tmp_path / "student.distilled"
    assert f"interrupted: the same command continues with the translations in {folder}\n" in result.err
    assert translations(tmp_path / "student")[0] == written
    result = call(*words)
    total = len(translations(tmp_path / "student")[0])
    assert f"7 of {total} sentences were translated before\n" in result.err
    assert f"translating: {total}/{total} sentences (100%), elapsed 0:00, left 0:00\n" in result.err


def test_mistakes_are_found_before_anything_is_translated(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "student"
    result = distill(translator, out, "--model.norm=both")
    assert (result.code, "model.norm" in result.err) == (2, True)
    moved = tmp_path / "moved"
    shutil.copytree(translator, moved)
    text = (moved / RECIPE).read_text()
    src = Run(translator).recipe.data.src
    (moved / RECIPE).write_text(text.replace(src, "/gone/train.aa"))
    result = distill(moved, out)
    assert result.code == 66
    assert "/gone/train.aa" in result.err and f"The teachers translate the training data of {moved}" in result.err
    loaded: list[tuple[Any, ...]] = []

    def load(self: Compute, folder: Path, *, ensemble: list[Path], tag: str | None) -> Any:
        loaded.append((self.device, folder, ensemble, tag))
        raise UsageError("no such device.")

    monkeypatch.setattr(Compute, "load", load)
    assert call("distill", translator, moved, "--out", out, "--device", "cuda", "--tag", "").code == 2
    assert loaded == [("cuda", translator, [moved], "")]  # the empty tag means none, not the recipe's default
    assert not list(tmp_path.glob("student*"))


def test_the_student_is_trained_with_all_threads_next_to_its_translations(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []

    def translate(self: Any, data: Any, folder: Path, *options: Any) -> dict[str, object]:
        folders.append(folder)
        torch.set_num_threads(1)
        return {}

    monkeypatch.setattr(TranslationPredictor, "distill", translate)
    threads: list[int] = []
    monkeypatch.setattr("heed.cli.distill.run_training", lambda *_, **__: threads.append(torch.get_num_threads()))
    (tmp_path / "student").mkdir()
    monkeypatch.chdir(tmp_path / "student")
    assert call("distill", translator, "--out", ".", "--threads", "2", "--quiet").code == 0
    assert (folders, threads) == ([tmp_path / "student.distilled"], [2])


def test_a_student_of_another_kind_has_settings_of_its_own(translator: Path, student: Path, tmp_path: Path) -> None:
    shutil.copytree(student.with_name("student.distilled"), tmp_path / "student.distilled")
    sizes = [f"--model.{name}_size=8" for name in ("hidden", "attention")]
    keys = ("--model.kind=rnn_attention", "--model.d_model=8", *sizes, "--precision", "float32", *KEYS[2:])
    result = call("distill", translator, "--out", tmp_path / "student", *keys)
    assert result.code == 0, result.err
    run, teacher = Run(tmp_path / "student"), Run(translator)
    assert (run.recipe.model.kind, run.recipe.model.d_model) == ("rnn_attention", 8)
    assert vocabulary_digests(run.tokenizers) == vocabulary_digests(teacher.tokenizers)
    assert (run.folder / "data/valid.jsonl").read_bytes() == (translator / "data/valid.jsonl").read_bytes()


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


def test_a_share_of_the_pairs_is_refused_before_anything_is_translated(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoing(monkeypatch)
    without_training(monkeypatch)
    result = distill(translator, tmp_path / "student", "--data.share=0.5")
    assert result.code == 2
    assert "data.share = 0.5 would leave out translations" in result.err
    assert not list(tmp_path.iterdir())
    teacher = tmp_path / "teacher"
    shutil.copytree(translator, teacher)
    (teacher / RECIPE).write_text((teacher / RECIPE).read_text().replace("share = 1.0", "share = 0.5"))
    assert distill(teacher, tmp_path / "student").code == 2
    assert distill(teacher, tmp_path / "student", "--data.share=1").code == 0
