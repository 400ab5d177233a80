"""The translation memory: what is added is found again, exactly and nearly, by every process and after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Barrier, Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import DataError, MissingInputError, StorageError, UsageError
from heed.memory import store
from heed.memory.shared import SharedMemory
from heed.memory.store import TranslationMemory, memory_of, pair_of, similarity, word_differences

EN_DE = ("en", "de")


@pytest.fixture
def memory(tmp_path: Path) -> TranslationMemory:
    return TranslationMemory(tmp_path / "team.memory", EN_DE, create=True)


def test_the_latest_unit_of_a_source_is_the_exact_match_and_an_approved_one_comes_first(
    memory: TranslationMemory,
) -> None:
    assert memory.add([("A dog.", "Ein Hund.", "Hund."), ("A cat.", "Eine Katze.", "")]) == 2
    assert memory.add([("A dog.", "Ein Dackel.", "")]) == 1
    found = memory.exact("A dog.")
    assert found is not None and (found.target, found.state, found.machine) == ("Ein Dackel.", "new", "")
    assert memory.add([("A dog.", "Ein Hund.", "")], "approved") == 0, "known, and approved now"
    found = memory.exact("A dog.")
    assert found is not None and (found.target, found.state, found.machine) == ("Ein Hund.", "approved", "Hund.")
    assert memory.set_state([found.id], "rejected") == 1
    assert memory.exact("A dog.").target == "Ein Dackel."  # type: ignore[union-attr]
    assert memory.exact("a dog.") is None
    assert [unit.target for unit in memory.units("rejected")] == ["Ein Hund."]
    assert len(memory) == 3


def test_near_matches_are_like_the_source_and_the_most_similar_come_first(memory: TranslationMemory) -> None:
    sources = ["Press the green button.", "Press the red button.", "Open the door.", 'Press "OK" now.']
    memory.add([(source, source.upper(), "") for source in sources])
    near = memory.near("Press the green button twice.")
    assert [match.unit.source for match in near] == sources[:2]
    assert near[0].similarity == similarity("Press the green button twice.", sources[0]) > near[1].similarity > 0.7
    assert memory.near(sources[0], number=1)[0].unit.source == sources[1], "an equal source is no near match"
    assert memory.near('Press "OK" now!')[0].unit.source == sources[3]
    assert memory.near("OK") == memory.near("") == memory.near("Quite another sentence.") == []
    memory.add([("緑のボタンを押してください。", "x", "")])
    assert [match.unit.target for match in memory.near("赤のボタンを押してください。")] == ["x"]
    memory.set_state([1], "rejected")
    assert [match.unit.source for match in memory.near("Press the green button twice.")] == sources[1:2]


def test_units_are_found_by_their_ids_and_those_added_later(memory: TranslationMemory) -> None:
    memory.add([("a", "b", ""), ("c", "d", "")])
    TranslationMemory(memory.path, ("en", "fr")).add([("a", "f", "")])
    memory.add([("e", "f", "")])
    memory.set_state([2], "rejected")
    assert [(unit.id, unit.state) for unit in memory.added_after(1)] == [(2, "rejected"), (4, "new")]
    assert memory.added_after(4) == []
    assert sorted(unit.source for unit in memory.with_ids([4, 1, 99])) == ["a", "e"]
    assert memory.with_ids([]) == []


def test_what_was_added_later_is_found_without_reading_the_rest(memory: TranslationMemory) -> None:
    """By SQLite's virtual machine, whose instructions do not depend on how busy the computer is."""
    instructions: list[None] = []
    memory._connection.set_progress_handler(lambda: instructions.append(None), 1)

    def cost(last: int) -> int:
        instructions.clear()
        assert memory.added_after(last) == []
        return len(instructions)

    memory.add([("a", "b", "")])
    before = cost(1)
    memory.add([(f"a {number}", "b", "") for number in range(500)])
    assert cost(501) < 2 * before


def test_a_suggestion_that_is_known_becomes_the_latest_unless_somebody_has_decided(memory: TranslationMemory) -> None:
    for target in ("Ein Hund.", "Ein Dackel.", "Ein Hund."):
        memory.suggest("A dog.", target)
    assert [unit.target for unit in memory.exact_matches("A dog.")] == ["Ein Hund.", "Ein Dackel."]
    assert [match.unit.target for match in memory.near("A dog!")] == ["Ein Hund.", "Ein Dackel."]
    first, latest = memory.units()
    memory.set_state([first.id], "approved")
    memory.set_state([latest.id], "rejected")
    memory.suggest("A dog.", first.target)
    memory.suggest("A dog.", latest.target)
    assert [(unit.id, unit.state) for unit in memory.units()] == [(first.id, "approved"), (latest.id, "rejected")]


def test_suggestions_that_look_wrong_hide_no_near_match(memory: TranslationMemory) -> None:
    memory.add([("Press the red button now", f"https://spam.example/{number}", "") for number in range(50)])
    memory.add([("Press the red button, now!", f"Drücke {number}", "") for number in range(50)], "approved")
    memory.add([("Press the blue buttons.", "Drücke die blauen Knöpfe.", "")], "approved")
    shared = SharedMemory(memory.path)
    found = shared.matches(*EN_DE, "Press the red button, now!", lambda: None)
    assert [match.unit.target for match in found] == ["Drücke 49", "Drücke die blauen Knöpfe."]


def test_near_matches_of_texts_with_null_characters_and_of_long_ones(memory: TranslationMemory) -> None:
    memory.add([("Press the green button.", "x", ""), ("abc " * 600, "y", "")])
    assert [match.unit.target for match in memory.near("Press the green\0button.")] == ["x"]
    assert memory.near("a\0b") == memory.near("\0\0\0\0") == []

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        memory.near("abc " * 500, check=stop)


def test_similarity_is_twice_what_is_in_common_over_both_lengths() -> None:
    assert similarity("abcd", "abxd") == 2 * 3 / 8
    assert (similarity("", ""), similarity("ab", ""), similarity("ab", "ab")) == (1.0, 0.0, 1.0)
    assert (similarity("abcd", "abxd", 0.7), similarity("abcd", "dcba", 0.7)) == (2 * 3 / 8, 2 / 8)


def test_pairs_of_languages_are_apart_and_the_only_one_need_not_be_named(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    TranslationMemory(path, EN_DE, create=True).add([("A dog.", "Ein Hund.", "")])
    assert TranslationMemory(path).languages == EN_DE
    french = TranslationMemory(path, ("en", "fr"))
    assert french.exact("A dog.") is None and len(french) == 0
    assert french.set_state([1], "approved") == 0
    french.add([("A dog.", "Un chien.", "")])
    with pytest.raises(UsageError, match="has en to de, en to fr: name the languages"):
        TranslationMemory(path)


def test_the_memory_of_a_run_may_name_its_regions(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    TranslationMemory(path, ("en-GB", "de_AT"), create=True).add([("A dog.", "Ein Hund.", "")])
    assert memory_of(path, EN_DE).languages == ("en-GB", "de_AT")
    assert memory_of(path, ("", "de")).languages == ("en-GB", "de_AT")
    with pytest.raises(UsageError, match="no translation from en to fr; it has en-GB to de_AT"):
        memory_of(path, ("en", "fr"))
    TranslationMemory(path, ("en-US", "de")).add([("A dog.", "Ein Hund.", "")])
    with pytest.raises(UsageError, match="no translation from en to de; it has en-GB to de_AT, en-US to de"):
        memory_of(path, EN_DE)
    TranslationMemory(path, EN_DE).add([("A cat.", "Eine Katze.", "")])
    assert memory_of(path, EN_DE).languages == EN_DE
    assert len(memory_of(tmp_path / "team.memory", EN_DE)) == 1


def test_a_server_uses_the_memory_of_other_regions_and_adds_to_it(tmp_path: Path) -> None:
    """Otherwise its first suggestion would hide all others from whoever opens the memory for the server's languages."""
    path = tmp_path / "team.memory"
    imported = TranslationMemory(path, ("en-US", "de-DE"), create=True)
    imported.add([("A dog.", "Ein Hund.", ""), ("A small dog.", "Ein kleiner Hund.", "")])
    shared = SharedMemory(path)
    assert shared.translation(*EN_DE, "A dog.") == "Ein Hund."
    assert [match.unit.source for match in shared.matches(*EN_DE, "A smart dog.", lambda: None)] == ["A small dog."]
    assert shared.to_read(*EN_DE).languages == ("en-US", "de-DE")
    shared.suggest(*EN_DE, "A cat.", "Eine Katze.")
    assert shared.translation(*EN_DE, "A cat.") == "Eine Katze."
    assert imported.pairs() == [("en-US", "de-DE")] and len(imported) == 3
    assert shared.translation("de", "en", "A dog.") is None
    shared.suggest("de", "en", "Ein Hund.", "A dog.")
    assert imported.pairs() == [("de", "en"), ("en-US", "de-DE")]


def test_corrections_within_one_language_are_used(tmp_path: Path) -> None:
    shared = SharedMemory(tmp_path / "team.memory")
    wrong, right = "The man are walking his dog.", "The man is walking his dog."
    for languages in (("en", "en"), EN_DE):
        shared.suggest(*languages, wrong, right)
        shared.suggest(*languages, right, right)
    assert [shared.translation("en", "en", text) for text in (wrong, right)] == [right, right]
    found = shared.matches("en", "en", "The man are walking his dogs.", lambda: None)
    assert [match.unit.source for match in found] == [wrong, right]
    assert shared.translation(*EN_DE, wrong) is None
    assert shared.matches(*EN_DE, wrong, lambda: None) == []


def test_a_server_uses_and_adds_to_what_is_imported_while_it_runs(tmp_path: Path) -> None:
    shared = SharedMemory(tmp_path / "team.memory")
    assert shared.translation(*EN_DE, "A cat.") is None
    imported = TranslationMemory(tmp_path / "team.memory", ("en-US", "de-DE"))
    imported.add([("A cat.", "Eine Katze.", "")])
    assert shared.translation(*EN_DE, "A cat.") == "Eine Katze."
    shared.suggest(*EN_DE, "A dog.", "Ein Hund.")
    assert shared.translation(*EN_DE, "A dog.") == "Ein Hund."
    assert imported.pairs() == [("en-US", "de-DE")]


def test_a_model_without_named_languages_has_a_pair_of_its_own_in_a_server(tmp_path: Path) -> None:
    shared = SharedMemory(tmp_path / "team.memory")
    shared.suggest(*EN_DE, "A dog.", "Ein Hund.")
    shared.suggest("", "", "A cat.", "Eine Katze.")
    assert shared.pairs() == [("", ""), EN_DE]
    assert shared.translation("", "", "A dog.") is shared.translation(*EN_DE, "A cat.") is None


def test_a_language_that_is_known_must_be_that_of_the_memory() -> None:
    assert pair_of(("", ""), [EN_DE]) == pair_of(("", "de"), [EN_DE]) == EN_DE
    assert pair_of(("en", ""), [("fr", "de")]) is None


def test_all_pairs_of_languages_are_listed_in_order(tmp_path: Path) -> None:
    pairs = [("", ""), ("de", "en"), ("en", "de"), ("en", "fr"), ("zz", "aa")]
    for languages in reversed(pairs):
        memory = TranslationMemory(tmp_path / "team.memory", languages, create=True)
        assert memory.pairs() == pairs[pairs.index(languages) + 1 :]
        memory.add([("a", "b", ""), ("c", "d", "")])
        assert memory.pairs() == pairs[pairs.index(languages) :]


def test_another_script_is_another_language(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    TranslationMemory(path, ("en", "sr-Latn-RS"), create=True).add([("A dog.", "Pas.", "")])
    assert memory_of(path, ("en", "sr")).languages == ("en", "sr-Latn-RS")
    with pytest.raises(UsageError, match="no translation from en to sr-Cyrl; it has en to sr-Latn-RS"):
        memory_of(path, ("en", "sr-Cyrl"))


def test_a_full_disk_is_named_and_leaves_the_memory_usable(memory: TranslationMemory) -> None:
    memory.add([("kept", "kept", "")])
    memory._connection.execute("PRAGMA max_page_count = 1")  # SQLite takes no less than what the file has
    with pytest.raises(StorageError, match="database or disk is full"):
        memory.add([("lost", "x" * 1_000_000, "")])
    memory._connection.execute("PRAGMA max_page_count = 1000000")
    assert memory.add([("later", "later", "")]) == 1
    assert [unit.source for unit in memory.units()] == ["kept", "later"]


def test_several_connections_add_at_once_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    memories = [TranslationMemory(path, EN_DE, create=True) for _ in range(4)]

    def add(number: int) -> int:
        return memories[number % 4].add([(f"source {number}", f"target {number}", "")])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(80))) == 80
    assert {unit.source for unit in memories[0].units()} == {f"source {n}" for n in range(80)}


def test_several_may_create_one_memory_at_once(tmp_path: Path) -> None:
    start = Barrier(4)

    def create(number: int) -> int:
        start.wait()
        return TranslationMemory(tmp_path / "team.memory", EN_DE, create=True).add([(f"source {number}", "x", "")])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(create, range(4))) == [1] * 4
    assert len(TranslationMemory(tmp_path / "team.memory")) == 4


def test_creation_waits_for_another_process_that_writes_to_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "team.memory"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as patch:
        patch.setattr(store, "WAIT", 0.05)
        with pytest.raises(StorageError, match="database is locked"):
            TranslationMemory(path, EN_DE, create=True)
    timer = Timer(0.2, other.close)
    timer.start()
    memory = TranslationMemory(path, EN_DE, create=True)
    timer.join()
    assert memory.add([("a", "b", "")]) == 1


def test_readers_of_a_shared_memory_wait_for_no_suggestion_and_find_it_afterwards(memory: TranslationMemory) -> None:
    """A suggestion waits for other programs that write, such as an import."""
    memory.add([("Press the button.", "Drücke den Knopf.", "")])
    shared = SharedMemory(memory.path)
    with ThreadPoolExecutor(2) as pool, shared.of(*EN_DE)._transaction():
        translation = pool.submit(shared.translation, *EN_DE, "Press the button.")
        matches = pool.submit(shared.matches, *EN_DE, "Press the buttons.", lambda: None)
        assert not wait([translation, matches], timeout=30).not_done
    assert translation.result() == "Drücke den Knopf."
    assert [match.unit.target for match in matches.result()] == ["Drücke den Knopf."]
    shared.suggest(*EN_DE, "Press the button.", "Drück den Knopf.")
    assert shared.translation(*EN_DE, "Press the button.") == "Drück den Knopf."
    assert shared.matches(*EN_DE, "Press the button.", lambda: None)[0].unit.target == "Drück den Knopf."


def test_a_kill_within_an_addition_leaves_what_was_added_before(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    TranslationMemory(path, EN_DE, create=True).add([("kept", "kept", "")])
    child = os.fork()
    if child == 0:
        memory = TranslationMemory(path, EN_DE)
        with memory._transaction() as connection:
            for n in range(1000):
                values = (*EN_DE, f"lost {n}", "x", "", "new", "")
                connection.execute(
                    "INSERT INTO unit (src_lang, tgt_lang, source, target, machine, state, created) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)", values,
                )  # fmt: skip
            os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    memory = TranslationMemory(path)
    assert [unit.source for unit in memory.units()] == ["kept"]
    assert memory.near("lost 17") == []
    assert memory.add([("after", "after", "")]) == 1


def test_other_files_are_refused_and_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingInputError, match="heed memory import"):
        TranslationMemory(tmp_path / "none", EN_DE)
    assert not (tmp_path / "none").exists()
    text = tmp_path / "notes.txt"
    text.write_text("not a database, " * 100)
    with pytest.raises(DataError, match="not a translation memory"):
        TranslationMemory(text, EN_DE)
    assert text.read_text() == "not a database, " * 100
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    with pytest.raises(DataError, match="of another program"):
        TranslationMemory(tmp_path / "other.db", EN_DE)
    path = tmp_path / "later.memory"
    TranslationMemory(path, EN_DE, create=True).close()
    monkeypatch.setattr(store, "FORMAT", 0)
    with pytest.raises(DataError, match="later version"):
        TranslationMemory(path, EN_DE)


def test_a_memory_that_stays_locked_is_an_error_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WAIT", 0.1)
    path = tmp_path / "team.memory"
    first = TranslationMemory(path, EN_DE, create=True)
    second = TranslationMemory(path, EN_DE)
    with first._transaction(), pytest.raises(StorageError, match="locked"):
        second.add([("a", "b", "")])
    assert second.add([("a", "b", "")]) == 1


@pytest.mark.parametrize(
    ("text", "source", "pieces"),
    [
        ("the cow  sees", "the dog  sees", [("the ", "both"), ("dog", "memory"), ("cow", "text"), ("  sees", "both")]),
        ("वह हिन्दू है।", "वह हिन्दी है।", [("वह ", "both"), ("हिन्दी", "memory"), ("हिन्दू", "text"), (" है।", "both")]),
        (" آب می\u200cخورد ", " آب می\u200cخرد ",
         [(" آب ", "both"), ("می\u200cخرد", "memory"), ("می\u200cخورد", "text"), (" ", "both")]),
        ("ที่นี่", "ที่นี้", [("ที่", "both"), ("นี้", "memory"), ("นี่", "text")]),
        ("👩\u200d👧", "👩\u200d👦", [("👩\u200d👦", "memory"), ("👩\u200d👧", "text")]),
    ],
)  # fmt: skip
def test_differences_are_of_whole_words(text: str, source: str, pieces: list[tuple[str, str]]) -> None:
    assert word_differences(text, source) == pieces


@given(texts=st.tuples(*[st.text("ab हिी\u0301ท\u0e35\u200d👩 \n.,'@", max_size=12)] * 2))
def test_the_pieces_of_differences_are_the_texts(texts: tuple[str, str]) -> None:
    found = word_differences(*texts)
    for text, left_out in zip(texts, ("memory", "text"), strict=True):
        assert "".join(piece for piece, where in found if where != left_out) == text
