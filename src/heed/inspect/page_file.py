"""How does a view become a file: one page that needs nothing else, asks no host, and runs only the code in it?

What is shown stands in the file as JSON and is put on the page by `textContent`. The policy in its head names the
hashes of the one script and the one style sheet, so nothing in the data can run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from heed.core.environment import library_versions
from heed.inspect.inspection import Inspection
from heed.report.description import model_sentence
from heed.run import Run

PAGE = Path(__file__).parent / "page"
"""The folder with the scripts and the style sheet of the views."""
SCRIPTS = (
    "dom.js", "weights.js", "sentence.js", "heat_map.js", "choices.js", "alternatives.js", "tree.js", "view.js",
    "file.js",
)  # fmt: skip
"""Each imports only from those before it."""
STYLE = "view.css"

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@dataclass(frozen=True)
class Languages:
    """Codes; empty where they are not known."""

    source: str
    target: str


@dataclass(frozen=True)
class ModelCard:
    """What a page says of the model."""

    name: str
    description: str
    languages: Languages

    @staticmethod
    def of(run: Run) -> ModelCard:
        """From the run's folder and recipe."""
        return ModelCard(run.folder.resolve().name, model_sentence(run), Languages(*run.predictor.languages))


def render(inspection: Inspection, model: ModelCard) -> str:
    """The page."""
    script = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in SCRIPTS)
    style = _read(STYLE)
    document = {
        "model": asdict(model), "inspection": inspection.to_json(), "made_by": f"heed {library_versions()['heed']}",
    }  # fmt: skip
    data = json.dumps(document, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>heed inspect: {html.escape(model.name)}</title>
<style>{style}</style>
</head>
<body>
<header></header>
<main><noscript>This page draws its views with JavaScript; the numbers stand in its source.</noscript></main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
