"""Change-over: a running server takes other weights for its models, and loses no request.

The runs are looked up again by the names that they were given by, which may be links that lead to other folders now. A
model that has changed is loaded and run once while the old one serves. From then on new requests get it. Requests that
were admitted before finish with the old one, which is freed after the last of them.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from heed.core.errors import DataError, HeedError
from heed.serve.engine.catalogue import Catalogue, ServedModel, served
from heed.serve.engine.worker import Worker
from heed.serve.telemetry import Log
from heed.tasks.predictor import Predictor

Load = Callable[[Path], Predictor]
LONGEST_USE = 60
"""Seconds for which a model that was replaced is watched: its last requests have ended by then."""


class ChangeOver:
    """Changes the models of one server when asked."""

    def __init__(self, catalogue: Catalogue, folders: Mapping[str, Path], load: Load, worker: Worker, log: Log) -> None:
        """`folders`: where the run of each model is looked up, by the model's name."""
        self._catalogue = catalogue
        self._folders = folders
        self._load = load
        self._worker = worker
        self._log = log
        self._requested = threading.Event()
        self._running = threading.Lock()

    def start(self) -> None:
        """Look for changed runs in a thread. Returns at once; a change-over that is running looks again at its end."""
        self._requested.set()
        threading.Thread(target=self._main, name="heed change-over", daemon=True).start()

    def _main(self) -> None:
        while self._requested.is_set() and self._running.acquire(blocking=False):
            try:
                self._requested.clear()
                self.run()
            finally:
                self._running.release()

    def run(self) -> None:
        """Change the models whose runs have changed. One that cannot be used stays as it was, and the log says why."""
        old = list(self._catalogue.models.values())
        models = [self._current(model) for model in old]
        replaced = {each.name: weakref.ref(each) for each, new in zip(old, models, strict=True) if each is not new}
        self._catalogue.replace(models)
        self._log.event("models_changed", models=", ".join(replaced))
        del old, models
        if replaced:
            _free(replaced.values())

    def _current(self, old: ServedModel) -> ServedModel:
        """The model of the run that has a model's name now, which may be the same."""
        try:
            folder = self._folders[old.name].resolve()
            if folder == old.run.folder and old.is_current():
                return old
            new = served(old.name, self._load(folder), self._catalogue.guide)
            _check_replaces(old, new)
            self._worker.call(new.warm_up).result()
        except HeedError as error:
            self._log.error("model_kept", model=old.name, reason=str(error))
            return old
        except Exception as error:  # whatever is wrong with a new model must not end the service of the old one
            self._log.error("model_kept", error, model=old.name)
            return old
        return new


def _free(models: Iterable[weakref.ref[ServedModel]]) -> None:
    """Free models that nobody uses any more. The server has frozen what it loaded (`heed.serve.server`)."""
    gc.unfreeze()
    for _ in range(LONGEST_USE):
        gc.collect()
        if all(model() is None for model in models):
            break
        time.sleep(1)
    gc.freeze()


def _check_replaces(old: ServedModel, new: ServedModel) -> None:
    """Raise DataError for a model that answers other requests than the old one."""
    if new.abilities != old.abilities:
        raise DataError(f"{new.run.folder} is a model of another kind. Restart the server to use it.")
    pairs = [{(each.source, each.target) for each in model.directions} for model in (old, new)]
    if pairs[0] != pairs[1]:
        raise DataError(f"{new.run.folder} translates other languages. Restart the server to use it.")
