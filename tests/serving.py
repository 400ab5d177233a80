"""Served models for tests, and servers on a free port."""

from __future__ import annotations

import http.client
import io
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toy import WORDS, prepared, trainer_of, unchecked_shapes, write_lines

import heed
from heed.core.toml import read_toml
from heed.memory.shared import SharedMemory
from heed.serve.app import make_app
from heed.serve.auth import ApiKeys
from heed.serve.engine.catalogue import Catalogue
from heed.serve.limits import Limits
from heed.serve.server import Server, bound_socket, make_server, url_of
from heed.serve.service import Service, make_service
from heed.serve.telemetry import Log
from heed.tasks.predictor import Predictor

SENTENCE = "ba ce di"
REQUEST = {"q": SENTENCE, "source": "en", "target": "de"}


class Held:
    """A model whose steps wait while its gate is shut, or fail while `failure` is set."""

    count_based = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.head = model.head
        self.failure: Exception | None = None
        self.num_steps = 0
        """Steps that have started."""
        self.is_held = False
        """Whether a step waits."""
        self._gate = threading.Event()
        self._gate.set()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Steps within the block wait until `open`, or until its end."""
        self._gate.clear()
        try:
            yield
        finally:
            self.open()

    def open(self) -> None:
        """Continue the waiting steps."""
        self._gate.set()

    def start(self, *args: Any, **kwargs: Any) -> Any:
        """As the model."""
        return self.model.start(*args, **kwargs)

    def advance(self, *args: Any, **kwargs: Any) -> Any:
        """As the model, when the gate is open."""
        self.num_steps += 1
        if not self._gate.is_set():
            self.is_held = True
            try:
                assert self._gate.wait(120), "nobody opened the gate"
            finally:
                self.is_held = False
        if self.failure is not None:
            raise self.failure
        return self.model.advance(*args, **kwargs)


def held(folder: Path) -> tuple[Predictor, Held]:
    """A run whose model can be held, and that model."""
    loaded = heed.load(folder, engine="torch")
    model: Any = Held(loaded.translator.model)
    loaded.translator.model = model
    return loaded, model


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, on however busy a machine."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.02)


@dataclass
class Runs:
    """Runs for a server: English to German, German to French (both in toy languages), and a language model."""

    translator: Path
    second: Path
    language_model: Path


def make_runs(folder: Path) -> Runs:
    """Train them. The translators are trained just enough for short sentences."""
    with unchecked_shapes():
        run = prepared(
            folder, "en-de", model__d_model=32, model__d_ff=64, model__dropout=0.0, training__max_steps=150,
            training__eval_every=150, training__save_every=150, training__lr=1e-2, training__average="none",
            training__label_smoothing=0.0, data__src_lang="en", data__tgt_lang="de",
        )  # fmt: skip
        trainer_of(run).run()
        text = write_lines(folder / "text", [f"the {a} sees the {b} – für {a}." for a in WORDS for b in WORDS])
        keys = {
            "task": "language-model",
            "data.text": str(text),
            "model.kind": "bigram",
            "tokenizer.kind": "bpe",
            "tokenizer.vocab_size": 300,
        }
        heed.train(keys, folder / "lm", quiet=True)
    second = folder / "de-fr"
    shutil.copytree(folder / "en-de", second, ignore=shutil.ignore_patterns("checkpoints"))
    recipe = (second / "recipe.toml").read_text(encoding="utf-8")
    changed = recipe.replace('src_lang = "en"', 'src_lang = "de"').replace('tgt_lang = "de"', 'tgt_lang = "fr"')
    (second / "recipe.toml").write_text(changed.replace('src_lang = "fr"', 'src_lang = "de"'), encoding="utf-8")
    assert read_toml(second / "recipe.toml").values["data"]["tgt_lang"] == "fr"
    return Runs(folder / "en-de", second, folder / "lm")


@dataclass
class Answer:
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Live:
    """A running server."""

    url: str
    service: Service
    server: Server
    thread: threading.Thread
    log: io.StringIO = field(default_factory=io.StringIO)

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.url.rpartition(":")[2])

    def get(self, path: str, **headers: str) -> Answer:
        """GET"""
        return self.ask("GET", path, None, headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """POST of JSON."""
        head = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.ask("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), head)

    def ask(self, method: str, path: str, body: Any, headers: Mapping[str, str], seconds: float = 60) -> Answer:
        """Any request; a body that is an iterator is sent in chunks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, body, dict(headers), encode_chunked=isinstance(body, Iterator))
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


def connected(live: Live, sent: bytes) -> socket.socket:
    """A connection that has sent these bytes."""
    client = socket.create_connection(("127.0.0.1", live.port), timeout=60)
    client.sendall(sent)
    return client


def rest_of(client: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    received = b""
    try:
        while part := client.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass
    return received


@contextmanager
def serving(
    models: Sequence[Predictor] | Catalogue, limits: Limits | None = None, keys: Sequence[str] = (),
    per_minute: int = 0, cors: Sequence[str] = (), memory: SharedMemory | None = None, public_url: str = "",
) -> Iterator[Live]:  # fmt: skip
    """A server of these models on a free port, warm."""
    catalogue = models if isinstance(models, Catalogue) else Catalogue.of_runs(models)
    written = io.StringIO()
    service = make_service(catalogue, limits, ApiKeys(keys), per_minute, Log(stream=written), memory, public_url)
    warm = threading.Event()
    with bound_socket("127.0.0.1", 0) as listener, unchecked_shapes():
        server = make_server(make_app(service, cors), service, warm.set)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            assert warm.wait(60), "the server did not become ready"
            yield Live(url_of(listener), service, server, thread, written)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the server did not stop"
