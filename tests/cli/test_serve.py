"""Tests of `heed serve`: start, address, refusals and end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import call

from heed.core.errors import UsageError
from heed.memory.store import TranslationMemory
from heed.serve.engine.catalogue import Catalogue
from heed.serve.engine.languages import Language


def test_help_shows_an_example() -> None:
    result = call("serve", "--help")
    assert result.code == 0
    assert "heed serve runs/en-de runs/de-fr --port 8000" in result.out


def test_a_port_in_use_is_reported(bigram: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = call("serve", bigram, "--port", str(port), "--threads", "1")
    assert result.code == 1
    assert result.err.startswith(f"error: cannot listen on 127.0.0.1, port {port}: ")
    assert "Choose another address with --host and --port." in result.err


def test_an_empty_host_is_not_all_networks(bigram: Path) -> None:
    """As of a variable that is not set: the system would listen on all networks."""
    result = call("serve", bigram, "--port", "0", "--host", "")
    assert (result.code, result.err.startswith("error: --host is empty.")) == (2, True)


def test_an_origin_that_no_browser_sends_is_reported(bigram: Path) -> None:
    result = call("serve", bigram, "--port", "0", "--cors-origin", "https://page.example/")
    assert (result.code, "--cors-origin https://page.example/: give an origin" in result.err) == (2, True)


def test_missing_runs_and_missing_keys_are_reported(bigram: Path, tmp_path: Path) -> None:
    assert call("serve", tmp_path / "nothing", "--port", "0").code == 66
    assert call("serve", "--port", "0").code == 2
    assert call("serve", bigram, "--port", "0", "--api-keys", tmp_path / "nothing").code == 66
    (tmp_path / "keys").write_text("# none\n\n", encoding="utf-8")
    result = call("serve", bigram, "--port", "0", "--api-keys", tmp_path / "keys")
    assert (result.code, "the file has no keys" in result.err) == (2, True)


def test_an_ensemble_is_of_one_run(bigram: Path) -> None:
    result = call("serve", bigram, bigram, "--ensemble", bigram, "--port", "0")
    assert (result.code, "--ensemble combines other runs with a single RUN" in result.err) == (2, True)


def test_an_ensemble_is_loaded_at_the_start_and_at_a_change_over(bigram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change_over(catalogue: Catalogue, folders: dict[str, Path], load: Callable[[Path], Any], *_: object) -> None:
        members = [model.loaded.combined.others for model in catalogue.models.values()]
        members.append(load(folders[bigram.name]).combined.others)
        assert [[run.folder for run in others] for others in members] == [[bigram], [bigram]]
        raise UsageError("enough")

    monkeypatch.setattr("heed.serve.engine.change_over.ChangeOver", change_over)
    result = call("serve", bigram, "--ensemble", bigram, "--port", "0", "--threads", "1")
    assert result.err.endswith("error: enough\n")


def test_a_memory_guides_only_where_it_can(bigram: Path, tmp_path: Path) -> None:
    result = call("serve", bigram, "--port", "0", "--guide")
    assert (result.code, "--guide needs the translation memory" in result.err) == (2, True)
    result = call("serve", bigram, "--port", "0", "--guide", "--memory", tmp_path / "team.memory", "--threads", "1")
    assert (result.code, "none of these runs is one" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("pair", "said"),
    [(("en", "de"), ""), (("en-GB", "de_AT"), "its translations from en-GB to de_AT are used\n"),
     (("en", "fr-CA"), "its translations from en to fr-CA are used\n"),
     (("fr", "en"), "has translations from fr to en, but none for a pair of languages of these runs")],
)  # fmt: skip
def test_it_is_said_which_languages_of_a_memory_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str], said: str
) -> None:
    """Of models from English to German, and on to French."""
    memory = tmp_path / "team.memory"
    TranslationMemory(memory, pair, create=True).add([("A dog.", "Ein Hund.", "")])
    english, german, french = map(Language, ("en", "de", "fr"))
    models: list[Any] = [
        SimpleNamespace(name="model", directions=(SimpleNamespace(source=source, target=target),))
        for source, target in ((english, german), (german, french))
    ]

    def enough(*_: object) -> None:
        raise UsageError("enough")

    monkeypatch.setattr("heed.cli.serve._opened", lambda *_: Catalogue(models))
    monkeypatch.setattr("heed.serve.service.make_service", enough)
    lines = call("serve", "run", "--memory", memory, "--port", "0").err.removesuffix("error: enough\n")
    assert said in lines and bool(said) == bool(lines)


def test_models_run_only_in_threads_that_end_before_they_are_served(
    bigram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compute threads of any other thread would slow down those of the worker."""
    threads: list[threading.Thread] = []

    def of_runs(*_: object) -> None:
        threads.append(threading.current_thread())
        raise UsageError("enough")

    monkeypatch.setattr(Catalogue, "of_runs", of_runs)
    assert call("serve", bigram, "--port", "0", "--threads", "1").err == "error: enough\n"
    [thread] = threads
    assert thread is not threading.main_thread()
    assert not thread.is_alive()


@pytest.mark.slow
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_the_program_serves_until_a_signal_ends_it_well(translator: Path, bigram: Path, name: signal.Signals) -> None:
    command = [sys.executable, "-m", "heed", "serve", str(translator), str(bigram), "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        ready = program.stderr.readline()
        url = ready.partition(" at ")[2].split()[0]
        with urllib.request.urlopen(f"{url}/languages", timeout=30) as answer:
            assert [language["code"] for language in json.load(answer)] == ["aa", "bb"]
        program.send_signal(signal.SIGUSR1)
        for line in program.stderr:
            if "models_changed" in line:
                break
        else:
            pytest.fail("the program ended")
        program.send_signal(name)
        assert program.wait(30) == 0
        assert '"draining"' in program.stderr.read()


@pytest.mark.slow
def test_more_connections_than_the_system_allows_files_do_no_harm(bigram: Path) -> None:
    limit = f"ulimit -n 200; exec {sys.executable} -m heed serve {bigram} --port 0 --threads 1"
    with subprocess.Popen(["/bin/sh", "-c", limit], stderr=subprocess.PIPE, text=True) as program, ExitStack() as held:
        assert program.stderr is not None
        url = program.stderr.readline().partition(" at ")[2].split()[0]
        for _ in range(250):
            client = held.enter_context(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))))
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-")
        with urllib.request.urlopen(f"{url}/health", timeout=30) as answer:
            assert json.load(answer) == {"status": "ok"}
        program.terminate()
        assert program.wait(30) == 0
        assert "Too many open files" not in program.stderr.read()
