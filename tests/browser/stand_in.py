"""A fake server: the real page and scripts, with answers that a test defines.

Requests never leave the browser. The answers have the form of docs/serving.md, and may be hostile.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import heed
from heed.decoding.options import SearchOptions
from heed.inspect import PAGE, DerivationInspection, Inspection, inspect_text, inspect_translation
from heed.inspect.derivation import ShownDerivation, ShownStep

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Route

ROOT = Path(__file__).resolve().parent.parent.parent
SERVED = ROOT / "src" / "heed" / "serve" / "page"
RUNS = ROOT / "tests" / "fixtures" / "run-v1"
URL = "http://page.test/"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SEE_EACH_TEXT = """() => { window.texts = []; const output = document.querySelector(".output");
    const set = Object.getOwnPropertyDescriptor(Node.prototype, "textContent").set;
    Object.defineProperty(output, "textContent", {set(text) { texts.push(text); set.call(this, text); }}); }"""
"""Records in `texts` each text of the translation, even if it is replaced before it is drawn."""
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)
"""The policy that the server sends."""

Answer = tuple[int, Any]
Json = dict[str, Any]

LANGUAGES = [
    {"code": "en", "name": "Aaish", "direction": "ltr", "targets": ["de"]},
    {"code": "de", "name": "Beeish", "direction": "ltr", "targets": ["en"]},
]
REPORT = """# Translation en → de: toy

- **Model**: a *small* one with `code` and a \\| bar.
  - of two lists

## Training

![curves](curves.png)

## Scores

### On news

| test | BLEU |
| --- | ---: |
| `news` | 12.3 |

```
what the doctor found
```
"""


@cache
def inspection(source: str, target: str | None) -> Json:
    """An inspection of the tiny translation run."""
    translator = heed.load(RUNS / "translation").translator
    return sent(inspect_translation(translator, source, target, SearchOptions(beam_size=3, nbest=3)))


@cache
def inspection_of_text(text: str) -> Json:
    """An inspection of the tiny language model."""
    return sent(inspect_text(heed.load(RUNS / "bigram").translator, text))


def derivations(text: str) -> Json:
    """An inspection of a translator that derives, with this translation as the best one."""
    steps = (
        ShownStep("ba", text, (0, 1), -1.0, {"words": 2.0, "language model": -2.0}, ""),
        ShownStep("ce", "", (1, 2), 0.25, {"words": 0.5}, "rule"),
        ShownStep("", "", (2, 2), -0.5, {"language model": -0.5}, ""),
    )
    shown = (ShownDerivation(text, -1.25, steps), ShownDerivation("kan", -2.0, steps[:1]))
    return sent(DerivationInspection("ba ce", {"words": 0.5, "language model": 1.0}, shown))


def sent(inspected: Inspection | DerivationInspection) -> Json:
    """An inspection as a client receives it."""
    answer: Json = json.loads(json.dumps(inspected.to_json()))
    return answer


def model(name: str, task: str = "translation", **more: Any) -> Json:
    """An entry of /api/models."""
    aa, bb = ({key: each[key] for key in ("code", "name", "direction")} for each in LANGUAGES)
    is_translator = task == "translation"
    return {
        "name": name, "task": task, "kind": "transformer", "parameters": 12_345,
        "source": aa if is_translator else None, "target": bb,
        "directions": [{"source": aa, "target": bb, "tag": ""}] if is_translator else [],
        "attends": True, "guided": False, "confidence": False,
        "abilities": ["inspect", "score", "translate" if is_translator else "generate"],
        "report": True, "decoding": {"beam_size": 5, "length_penalty": 0.6},
        "drawing": None if is_translator else {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_tokens": 64}, **more,
    }  # fmt: skip


def hypothesis(text: str) -> Json:
    """An entry of the answer of /api/translate."""
    tokens = [{"text": word, "log_prob": -0.5} for word in text.split()]
    return {
        "text": text, "score": -1.0, "log_prob": -2.0, "confidence": 0.8, "flags": [], "fallback": False,
        "finished": True, "tokens": tokens,
    }  # fmt: skip


def translated(body: Json) -> Json:
    """The answer of /api/translate: a sentence for each line, translated by the tiny run."""
    sentences = []
    for line in body["text"].split("\n"):
        best = inspection(line, None)["alternatives"][0]["text"]
        text = f"{body['prefix']} steered" if body.get("prefix") else best
        sentences.append({"start": 0, "end": len(line), "source": line, "hypotheses": [hypothesis(text)]})
    return {
        "text": "\n".join(each["hypotheses"][0]["text"] for each in sentences), "source": "en", "target": "de",
        "detected": {"language": "en", "confidence": 97.1} if body["source"] == "auto" else None, "path": ["toy"],
        "sentences": sentences,
    }  # fmt: skip


def continuation(number: int) -> Json:
    """An entry of the answer of /api/generate."""
    tokens = [{"text": " sees", "log_prob": -1.0}, {"text": f" {number}", "log_prob": -0.5}]
    return {"text": f" sees {number}", "log_prob": -1.5, "finished": False, "tokens": tokens}


def events(partials: list[Json], done: Json, name: str = "partial") -> str:
    """A stream of partial answers and the final one."""
    parts = [*((name, each) for each in partials), ("done", done)]
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in parts)


@dataclass
class StandIn:
    """The server. `answers` maps a path to an answer, a pair of status and answer, or a function of the body."""

    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, Json]] = field(default_factory=list)
    """Paths and bodies."""
    changed: Callable[[Any], Any] = lambda answer: answer
    """Changes each answer before it is sent."""

    def __post_init__(self) -> None:
        self.answers = {
            "/frontend/settings": {"keyRequired": False},
            "/api/models": {
                "models": [model("toy")], "languages": LANGUAGES, "files": [".txt", ".csv"],
                "limits": {"characters": 500, "beam_size": 16, "nbest": 10, "max_tokens": 100},
            },
            "/api/models/toy/report": REPORT,
            "/api/translate": translated,
            "/api/inspect": lambda body: (
                inspection_of_text(body["text"]) if "text" in body else inspection(body["source"], body["target"])
            ),
            "/api/next": lambda body: {
                "tokens": [
                    {"id": 5, "text": " ba", "log_prob": -0.1, "probability": 0.9},
                    {"id": 2, "text": "", "log_prob": -2.3, "probability": 0.1, "end": True},
                ]
            },
            "/api/generate": lambda body: {
                "continuations": [continuation(number) for number in range(body["samples"])], "seed": 17,
            },
            **self.answers,
        }  # fmt: skip

    def on(self, context: BrowserContext) -> StandIn:
        """Answer all requests of the pages of a context."""
        context.route("**/*", self.answer)
        return self

    def answer(self, route: Route) -> None:
        """Send a file of the page, or an entry of `answers`."""
        path = urlsplit(route.request.url).path
        if (file := file_of(path)) is not None:
            headers = {"Content-Type": TYPES[file.suffix], "Content-Security-Policy": POLICY}
            route.fulfill(status=200, headers=headers, body=file.read_text(encoding="utf-8"))
            return
        body = route.request.post_data_json or {}
        self.requests.append((path, body))
        answer = self.answers.get(path, (404, {"error": {"message": "There is no such page.", "code": "not_found"}}))
        if answer is None:
            route.abort()
            return
        answer = answer(body) if callable(answer) else answer
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        answer = self.changed(answer) if status == 200 else answer
        self._send(route, status, answer, bool(body.get("stream")) and status == 200)

    def _send(self, route: Route, status: int, answer: Any, is_streamed: bool) -> None:
        headers = {"Content-Type": "text/markdown" if isinstance(answer, str) else "application/json"}
        text = answer if isinstance(answer, str) else json.dumps(answer)
        if is_streamed:
            headers = {"Content-Type": "text/event-stream"}
            text = answer if isinstance(answer, str) else events([], answer)
        if status == 503:
            headers["Retry-After"] = "7"
        route.fulfill(status=status, headers=headers, body=text)

    def hold(self, context: BrowserContext, path: str) -> list[Route]:
        """Requests to a path from now on, which wait until their `fallback` is called."""
        waiting: list[Route] = []
        context.route(f"**{path}", lambda route: waiting.append(route))
        return waiting

    def bodies(self, path: str) -> list[Json]:
        """The bodies of the requests to a path."""
        return [body for requested, body in self.requests if requested == path]


def file_of(path: str) -> Path | None:
    """The file at a path of the page."""
    if path == "/":
        return SERVED / "index.html"
    name = path.removeprefix("/page/")
    files = [folder / name for folder in (SERVED, PAGE) if "/" not in name and (folder / name).is_file()]
    return files[0] if files else None
