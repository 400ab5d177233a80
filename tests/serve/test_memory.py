"""The server's translation memory: what people suggest is used at once, unless it looks wrong, and marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Live, Runs, serving
from toy import pairs

import heed
from heed.core.errors import StorageError
from heed.memory import store
from heed.memory.shared import SharedMemory
from heed.memory.store import TranslationMemory
from heed.serve.engine.catalogue import Catalogue
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

PAIR = {"source": "en", "target": "de"}
FAILED = "The server's translation memory cannot be used now. If this lasts, contact the server operator."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.memory"


@pytest.fixture
def remembering(loaded: list[Predictor], path: Path) -> Iterator[Live]:
    with serving(loaded, memory=SharedMemory(path)) as server:
        yield server


def test_a_suggestion_is_the_translation_from_then_on_and_marked(remembering: Live, path: Path) -> None:
    before = remembering.post("/translate", {"q": ["ba ce", "ba di"], **PAIR}).json
    assert before["fromMemory"] == [False, False]
    answer = remembering.post("/suggest", {"q": "ba ce", "s": "von Hand", **PAIR})
    assert (answer.status, answer.json) == (200, {"success": True})
    after = remembering.post("/translate", {"q": ["ba ce", "ba di"], **PAIR}).json
    assert after["translatedText"] == ["von Hand", before["translatedText"][1]]
    assert after["fromMemory"] == [True, False]
    one = remembering.post("/translate", {"q": "ba ce", "source": "auto", "target": "de", "format": "html"}).json
    assert (one["fromMemory"], one["translatedText"]) == (False, before["translatedText"][0])
    [unit] = TranslationMemory(path).units()
    assert (unit.source, unit.target, unit.state) == ("ba ce", "von Hand", "new")
    own = remembering.post("/api/translate", {"text": "ba ce", **PAIR}).json
    assert (own["text"], own["from_memory"], own["path"]) == ("von Hand", True, [])
    own = remembering.post("/api/translate", {"text": "ba ce", "nbest": 2, **PAIR}).json
    assert (own["from_memory"], own["text"]) == (False, before["translatedText"][0])
    assert remembering.get("/frontend/settings").json["suggestions"] is True


@pytest.fixture
def guided(runs: Runs, path: Path) -> Iterator[Live]:
    memory = SharedMemory(path)
    loaded = [heed.load(folder) for folder in (runs.translator, runs.language_model)]
    with serving(Catalogue.of_runs(loaded, guide=memory), memory=memory) as server:
        yield server


def test_corrections_guide_the_translations_of_similar_texts_at_once(guided: Live, path: Path, runs: Runs) -> None:
    """A word is translated otherwise in the memory than in the training data."""
    lines = [src for src, _ in pairs(40, seed=1) if "ba" in src][:8]

    def translated() -> list[str]:
        answer = guided.post("/translate", {"q": lines, **PAIR})
        assert (answer.status, set(answer.json["fromMemory"])) == (200, {False})
        return list(answer.json["translatedText"])

    before = translated()
    assert before == heed.load(runs.translator).translate(lines)
    memory = TranslationMemory(path, ("en", "de"))
    memory.add([(src, tgt.replace("kan", "zil"), "") for src, tgt in pairs(150) if src not in lines])
    assert sum("zil" in line for line in translated()) > sum("zil" in line for line in before)
    memory.set_state([unit.id for unit in memory.units()], "rejected")
    assert translated() == before
    models = guided.get("/api/models").json["models"]
    assert [model["guided"] for model in models] == [True, False]


def test_searches_do_not_wait_for_suggestions(guided: Live) -> None:
    """A suggestion waits for other programs that write, such as an import."""
    fields = {"q": "ba ce", "alternatives": 1, **PAIR}  # not compared with the memory as a whole
    before = guided.post("/translate", fields)
    assert guided.service.memory is not None
    with guided.service.memory.of("en", "de")._transaction():
        during = guided.post("/translate", fields)
    assert (during.status, during.json) == (200, before.json)


def test_similar_sentences_are_shown_with_what_differs(remembering: Live, path: Path) -> None:
    with_units = TranslationMemory(path, ("en", "de"))
    with_units.add(
        [("the dog sees the cat.", "Der Hund sieht die Katze.", ""), ("fo gu", "kauf https://spam.example", "")]
    )
    near, exact, spam = (
        remembering.post("/api/matches", {"text": text, **PAIR}).json["matches"]
        for text in ("the cow sees the cat.", "the dog sees the cat.", "fo gu")
    )
    assert [[match["target"] for match in each] for each in (near, exact, spam)] == [
        ["Der Hund sieht die Katze."], ["Der Hund sieht die Katze."], [],
    ]  # fmt: skip
    [near], [exact] = near, exact
    assert 0.7 < near["similarity"] < 1 == exact["similarity"]
    assert [(piece["text"], piece["found_in"]) for piece in near["pieces"]] == [
        ("the ", "both"), ("dog", "memory"), ("cow", "text"), (" sees the cat.", "both"),
    ]  # fmt: skip
    assert [piece["found_in"] for piece in exact["pieces"]] == ["both"]


def test_what_looks_wrong_is_used_only_when_somebody_approved_it(remembering: Live, path: Path) -> None:
    spam = "kauf hier ein https://spam.example"
    assert remembering.post("/suggest", {"q": "ba ce", "s": spam, **PAIR}).status == 200
    assert remembering.post("/translate", {"q": "ba ce", **PAIR}).json["fromMemory"] is False
    memory = TranslationMemory(path)
    memory.set_state([unit.id for unit in memory.units()], "approved")
    assert remembering.post("/translate", {"q": "ba ce", **PAIR}).json["translatedText"] == spam


def test_what_looks_wrong_hides_no_other_translation(remembering: Live, path: Path) -> None:
    similar = [f"the dog sees the cat {end}." for end in ("now", "here", "there", "again")]
    with_units = TranslationMemory(path, ("en", "de"))
    with_units.add([("the dog sees the cat.", "Der Hund sieht die Katze.", "")])
    with_units.add([(source, "kauf https://spam.example", "") for source in similar])
    with_units.add([("the dog sees the cat.", "kauf https://spam.example", "")])
    for text, similarity in (("the dog sees the cat.", 1), ("the dog sees the cats.", 0.9)):
        [match] = remembering.post("/api/matches", {"text": text, **PAIR}).json["matches"]
        assert match["target"] == "Der Hund sieht die Katze."
        assert match["similarity"] >= similarity
    answer = remembering.post("/translate", {"q": "the dog sees the cat.", **PAIR}).json
    assert (answer["translatedText"], answer["fromMemory"]) == ("Der Hund sieht die Katze.", True)


def test_the_translation_that_was_suggested_last_is_used(remembering: Live) -> None:
    for target in ("von Hand", "zu Fuß", "von Hand"):
        assert remembering.post("/suggest", {"q": "ba ce", "s": target, **PAIR}).status == 200
        assert remembering.post("/translate", {"q": "ba ce", **PAIR}).json["translatedText"] == target


def test_a_request_for_something_special_is_left_to_the_model(remembering: Live) -> None:
    assert remembering.post("/suggest", {"q": "ba ce", "s": "von Hand", **PAIR}).status == 200
    for fields in ({"alternatives": 1}, {"glossary": {"ba": "Kahn"}}, {"keep": ["ba"]}, {"format": "html"}):
        answer = remembering.post("/translate", {"q": "ba ce", **PAIR, **fields}).json
        assert answer["fromMemory"] is False, fields
    assert remembering.post("/translate", {"q": "ba ce", **PAIR}).json["fromMemory"] is True


def test_any_text_can_be_looked_up(remembering: Live) -> None:
    for text in ("a\0b", "\0a\0b\0", '"""', "AND OR", "*"):
        assert remembering.post("/api/matches", {"text": text, **PAIR}).json == {"matches": []}


def test_a_failure_of_the_memory_is_the_servers_and_tells_no_path(
    remembering: Live, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WAIT", 0.1)
    with TranslationMemory(path, ("en", "de"))._transaction():
        answer = remembering.post("/suggest", {"q": "ba ce", "s": "von Hand", **PAIR})
    assert (answer.status, answer.json) == (503, {"error": FAILED})
    assert '"kind": "StorageError"' in remembering.log.getvalue()


def test_a_damaged_memory_is_the_servers_failure_and_tells_no_path(guided: Live, path: Path) -> None:
    assert guided.service.memory is not None
    for connection in (guided.service.memory.of("en", "de"), guided.service.memory.to_read("en", "de")):
        connection._all("PRAGMA wal_checkpoint(TRUNCATE)", ())
    path.write_bytes(b"no memory any more, " * 10_000)
    for name, fields in (("translate", {"q": "ba ce", "alternatives": 1}), ("suggest", {"q": "ba ce", "s": "Hand"})):
        answer = guided.post(f"/{name}", {**fields, **PAIR})
        assert (answer.status, answer.json) == (503, {"error": FAILED}), name
    own = guided.post("/api/translate", {"text": "ba ce", **PAIR})
    assert (own.status, own.json) == (503, {"error": {"message": FAILED, "code": "unavailable"}})
    assert '"kind": "UnreadableMemoryError"' in guided.log.getvalue()


def test_a_memory_that_was_deleted_is_the_servers_failure(tmp_path: Path) -> None:
    shared = SharedMemory(tmp_path / "team.memory")
    (tmp_path / "team.memory").unlink()
    with pytest.raises(StorageError):
        shared.suggest("en", "de", "ba ce", "von Hand")


def test_suggestions_are_checked_like_other_requests(remembering: Live, path: Path) -> None:
    for fields, status in (({"q": "a", **PAIR}, 400), ({"q": "a", "s": "b", "source": "xx", "target": "de"}, 400),
                           ({"q": "a" * 20_000, "s": "b", **PAIR}, 400)):  # fmt: skip
        assert remembering.post("/suggest", fields).status == status
    assert list(TranslationMemory(path, ("en", "de")).units()) == []


def test_a_text_and_its_suggestion_may_each_be_as_long_as_a_text_to_translate(remembering: Live) -> None:
    """Otherwise what was translated could not be corrected."""
    long = "ba ce " * 1600
    assert len(long) < Limits().characters < 2 * len(long)
    assert remembering.post("/translate", {"q": long, **PAIR}).status == 200
    assert remembering.post("/suggest", {"q": long, "s": long, **PAIR}).json == {"success": True}
    for fields in ({"q": "ba", "s": "x" * 10_001}, {"q": "x" * 10_001, "s": "ba"}):
        answer = remembering.post("/suggest", {**fields, **PAIR})
        message = "Invalid request: request (10001) exceeds text limit (10000)"
        assert (answer.status, answer.json) == (400, {"error": message})


def test_a_suggestion_in_the_language_of_its_source_is_refused(remembering: Live, path: Path) -> None:
    german = "Der Hund schläft auf dem Sofa, und die Katze sieht ihm dabei zu."
    for source, advice in (("de", ""), ("auto", " as detected: give the language of the source")):
        answer = remembering.post("/suggest", {"q": german, "s": "Er schläft.", "source": source, "target": "de"})
        message = f"the source and the suggested translation are both in German (de){advice}"
        assert (answer.status, answer.json) == (400, {"error": message})
    assert not path.exists() or list(TranslationMemory(path, ("de", "de")).units()) == []
