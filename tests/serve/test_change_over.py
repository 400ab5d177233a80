"""Change-over of a running server: other weights, the same requests."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from serving import REQUEST, Live, Runs, held, serving, until
from toy import other_weights

import heed
from heed.serve.engine.catalogue import Catalogue, names_of
from heed.serve.engine.change_over import ChangeOver
from heed.tasks.predictor import Predictor

PAIR = {"source": "en", "target": "de"}


@dataclass
class Served:
    """A server of the link `current`, which leads to the run `old`; `new` has other weights."""

    live: Live
    link: Path
    old: Path
    new: Path
    change_over: ChangeOver

    def answer(self, text: str = "ba ce di") -> str:
        answer = self.live.post("/translate", {"q": text, **PAIR})
        assert answer.status == 200
        assert answer.json["model"] == "current"
        return str(answer.json["translatedText"])

    def lead_to(self, folder: Path) -> None:
        self.link.unlink()
        self.link.symlink_to(folder)


def load(folder: Path) -> Predictor:
    return heed.load(folder)


@pytest.fixture
def served(runs: Runs, tmp_path: Path) -> Iterator[Served]:
    link = tmp_path / "current"
    link.symlink_to(runs.translator)
    catalogue = Catalogue.of_runs([load(link.resolve())], names_of([link]))
    with serving(catalogue) as live:
        change_over = ChangeOver(catalogue, {"current": link}, load, live.service.worker, live.service.log)
        yield Served(live, link, runs.translator, other_weights(runs.translator, tmp_path / "new"), change_over)


def test_new_requests_get_the_new_model_and_none_is_lost(served: Served) -> None:
    before = served.answer()
    after = heed.load(served.new).translate("ba ce di")
    assert before != after
    served.change_over.run()
    assert served.answer() == before  # nothing has changed yet
    with ThreadPoolExecutor(3) as clients:
        done = [clients.submit(served.answer) for _ in range(15)]
        served.lead_to(served.new)
        served.change_over.start()
        done += [clients.submit(served.answer) for _ in range(15)]
    assert {each.result() for each in done} <= {before, after}
    until(lambda: served.answer() == after)
    assert served.live.get("/api/models").json["models"][0]["name"] == "current"
    assert '"event": "models_changed", "models": "current"' in served.live.log.getvalue()


def test_a_request_in_progress_finishes_with_its_own_model(runs: Runs, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(runs.translator)
    loaded, model = held(link.resolve())
    expected = heed.load(runs.translator, engine="torch").translate("ba ce di")
    catalogue = Catalogue.of_runs([loaded], ["current"])
    with serving(catalogue) as live, ThreadPoolExecutor(1) as clients:
        change_over = ChangeOver(catalogue, {"current": link}, load, live.service.worker, live.service.log)
        with model.shut():
            waiting = clients.submit(live.post, "/translate", REQUEST)
            until(lambda: model.is_held)
            link.unlink()
            link.symlink_to(other_weights(runs.translator, tmp_path / "new"))
            change_over.start()
        assert waiting.result().json["translatedText"] == expected
        until(lambda: catalogue.models["current"].loaded is not loaded)


def test_the_old_model_is_freed_though_the_server_has_frozen_it(runs: Runs, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(runs.translator)
    catalogue = Catalogue.of_runs([load(link.resolve())], ["current"])
    old = weakref.ref(catalogue.models["current"].loaded)
    with serving(catalogue) as live:
        live.post("/translate", REQUEST)
        gc.freeze()
        link.unlink()
        link.symlink_to(other_weights(runs.translator, tmp_path / "new"))
        ChangeOver(catalogue, {"current": link}, load, live.service.worker, live.service.log).run()
        assert old() is None


def test_weights_that_differ_only_after_their_beginning_are_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.serve.engine.catalogue.fingerprint_of", lambda run: "the same")
    served.lead_to(served.new)
    served.change_over.run()
    before = served.answer()
    shutil.copyfile(served.old / "model.safetensors", served.new / "other")
    (served.new / "other").replace(served.new / "model.safetensors")
    served.change_over.run()
    assert served.answer() != before


def test_a_link_to_a_copy_of_the_run_is_followed(served: Served) -> None:
    copy = served.new.with_name("copy")
    shutil.copytree(served.old, copy)
    served.lead_to(copy)
    served.change_over.run()
    assert served.live.service.catalogue.models["current"].run.folder == copy.resolve()


def other_languages(served: Served) -> None:
    recipe = served.new / "recipe.toml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace('"de"', '"fr"'), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda served: (served.new / "model.safetensors").write_bytes(b"nothing"), "model.safetensors"),
        (lambda served: shutil.rmtree(served.new), "no such run folder"),
        (other_languages, "translates other languages. Restart the server to use it."),
    ],
)
def test_a_model_that_cannot_be_used_changes_nothing(
    served: Served, damage: Callable[[Served], None], reason: str
) -> None:
    before = served.answer()
    served.lead_to(served.new)
    damage(served)
    served.change_over.run()
    assert served.answer() == before
    assert '"event": "model_kept", "model": "current"' in served.live.log.getvalue()
    assert reason in served.live.log.getvalue()


def test_a_model_of_another_kind_is_refused(served: Served, runs: Runs) -> None:
    served.lead_to(runs.language_model)
    served.change_over.run()
    assert "is a model of another kind" in served.live.log.getvalue()


def test_models_are_named_after_the_link_to_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run")
    (tmp_path / "link").symlink_to("run")
    folders = [tmp_path / "link", Path(), Path("below/.."), tmp_path / "run", tmp_path / "link"]
    assert names_of(folders) == ["link", "run", "run-2", "run-3", "link-2"]


def test_no_two_models_have_one_name() -> None:
    folders = ["a/lm", "a/lm-3", "b/lm", "c/lm", "c/lm-2", "d/lm-3"]
    assert names_of([Path(each) for each in folders]) == ["lm", "lm-3", "lm-2", "lm-4", "lm-2-2", "lm-3-2"]


def test_an_ensemble_is_served_and_follows_the_weights_of_every_member(runs: Runs, tmp_path: Path) -> None:
    first, member = tmp_path / "first", other_weights(runs.translator, tmp_path / "member")
    shutil.copytree(runs.translator, first)
    (first / "report.md").write_text("Report", encoding="utf-8")

    def load_both(folder: Path) -> Predictor:
        return heed.load(folder, ensemble=member)

    def expected() -> str:
        predictor: Any = load_both(first)
        return str(predictor.translate("ba ce di"))

    catalogue = Catalogue.of_runs([load_both(first)])
    alone = Catalogue.of_runs([load(first)]).models["first"]
    with serving(catalogue) as live:
        answer = live.post("/api/translate", {"text": "ba ce di"}).json
        assert answer["text"] == expected() != heed.load(first).translate("ba ce di")
        [card] = live.get("/api/models").json["models"]
        assert card["parameters"] == 2 * alone.num_parameters
        assert card["description"] == f"2 models together; the first is {alone.description}"
        before = weakref.ref(catalogue.models["first"])  # a change-over waits for whoever holds the old model
        assert catalogue.models["first"].fingerprint != alone.fingerprint
        change_over = ChangeOver(catalogue, {"first": first}, load_both, live.service.worker, live.service.log)
        change_over.run()
        assert catalogue.models["first"] is before()  # nothing has changed yet
        shutil.copyfile(first / "model.safetensors", member / "other")
        (member / "other").replace(member / "model.safetensors")
        change_over.run()
        after = catalogue.models["first"]
        assert before() is None
        translation = live.post("/api/translate", {"text": "ba ce di"}).json["text"]
        assert translation == expected() != answer["text"]
        shutil.rmtree(member)
        change_over.run()
        assert catalogue.models["first"] is after
        assert '"event": "model_kept"' in live.log.getvalue()
        assert after.read_report() == "Report"  # that of the first run, which is as it was
        assert live.post("/api/translate", {"text": "ba ce di"}).json["text"] == translation
