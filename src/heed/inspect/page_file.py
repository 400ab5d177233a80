"""Page of an inspection: one HTML file that loads nothing from the network and runs only its own script.

The inspection is in the file as JSON, and becomes text of the page, never markup. The Content-Security-Policy allows
only the hashes of the script and of the style sheet, so nothing in the data can run code or load anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from heed.core.environment import library_versions
from heed.inspect.derivation import DerivationInspection
from heed.inspect.html_document import html_document
from heed.inspect.image import ImageInspection
from heed.inspect.inspection import Inspection
from heed.inspect.reader import ReaderInspection
from heed.report.description import model_sentence
from heed.run import Run

PAGE = Path(__file__).parent / "page"
"""Folder of the scripts and the style sheet."""
SCRIPTS = (
    "dom.js", "weights.js", "sentence.js", "heat_map.js", "choices.js", "alternatives.js", "tree.js", "view.js",
    "glances.js", "derivation.js", "answers.js", "entities.js", "lattice.js", "spans.js", "reader.js", "file.js",
)  # fmt: skip
"""Concatenated in this order: each imports only from those before it."""
STYLE = "view.css"

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@dataclass(frozen=True)
class Languages:
    """Language codes; empty if unknown."""

    source: str
    target: str


@dataclass(frozen=True)
class ModelCard:
    """The model, as the page introduces it."""

    name: str
    description: str
    languages: Languages

    @staticmethod
    def of(run: Run) -> ModelCard:
        """The card of a run."""
        return ModelCard(run.folder.resolve().name, model_sentence(run), Languages(*run.predictor.languages))


def render(inspection: Inspection | ReaderInspection | ImageInspection | DerivationInspection, model: ModelCard) -> str:
    """The page as HTML."""
    script = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in SCRIPTS)
    document = {
        "model": asdict(model), "inspection": inspection.to_json(), "made_by": f"heed {library_versions()['heed']}",
    }  # fmt: skip
    data = json.dumps(document, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    body = f"""<header></header>
<main><noscript>This page needs JavaScript. The numbers are in its source, as JSON.</noscript></main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>"""
    title = f"heed inspect: {model.name}"
    return html_document(title, _read(STYLE), body, script, data_images=isinstance(inspection, ImageInspection))


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
