"""Translators whose first words are written as inside a sentence: what they read, write and refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call
from toy import flags, pairs, prepared, tiny_keys, trainer_of, unchecked_shapes, without_shape_checks, write_lines

import heed
from heed.core.errors import UsageError

__all__ = ["without_shape_checks"]

SOURCES = ["Ba ce di.", "Ce.", "Lu gu.", "ba ce"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of sentences that begin with a capital, which has learned a little."""
    folder = tmp_path_factory.mktemp("truecased")
    for side, name in enumerate(("train.aa", "train.bb")):
        write_lines(folder / name, [f"{pair[side].capitalize()}." for pair in pairs(400, longest=3)])
    with unchecked_shapes():
        trainer_of(
            prepared(folder, tokenizer__kind="truecased-bpe", training__max_steps=150, training__eval_every=150)
        ).run()
    return folder / "run"


def test_its_sentences_begin_with_a_capital(run: Path) -> None:
    outputs = heed.load(run).translate(SOURCES)
    assert all(text[:1].isupper() for text in outputs), outputs
    assert heed.load(run, engine="torch").translate(SOURCES) == outputs


@pytest.mark.parametrize("prefix", ["Kan", "kan", "K", "Ler mis"])
def test_a_translation_begins_with_the_required_prefix(run: Path, prefix: str) -> None:
    result = call("translate", run, "--prefix-file", write_lines(run.parent / "prefixes", [prefix]), stdin="Ba ce.\n")
    assert result.out.startswith(prefix)


@pytest.mark.parametrize("term", ["Neuwort", "neuwort"])
def test_a_term_of_a_glossary_is_written_exactly(run: Path, term: str) -> None:
    glossary = write_lines(run.parent / "terms.tsv", [f"ba\t{term}"])
    assert term in call("translate", run, "--glossary", glossary, stdin="Ba.\n").out


def test_a_banned_word_does_not_begin_a_translation(run: Path) -> None:
    first = heed.load(run).translate("Ba ce di.").split()[0].strip(".")
    banned = call("translate", run, "--ban", first, stdin="Ba ce di.\n").out
    assert banned.split()[0].strip(".") != first


@pytest.mark.parametrize("task", ["language-model", "masked-language-model"])
def test_other_tasks_refuse_it(tmp_path: Path, task: str) -> None:
    text = write_lines(tmp_path / "text", ["Ba ce di."] * 30)
    keys = {"task": task, "data.text": str(text), "tokenizer.kind": "truecased-bpe"}
    with pytest.raises(UsageError, match='"truecased-bpe" requires task = "translation"'):
        heed.train(keys, tmp_path / "run", quiet=True)


def test_a_phrase_based_translator_refuses_it(tmp_path: Path) -> None:
    keys = tiny_keys(tmp_path, model__kind="phrase_based", tokenizer__kind="truecased-bpe")
    keys = {key: value for key, value in keys.items() if not key.startswith(("model.d", "model.n", "training"))}
    result = call("train", *flags(keys), "--out", tmp_path / "run")
    assert 'set tokenizer.kind to "open-word"' in result.err
