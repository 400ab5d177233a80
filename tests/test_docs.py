"""The documentation site: it builds without a warning, its references have all that the code has, and it is offline."""

from __future__ import annotations

import html
import re
import runpy
import warnings
from pathlib import Path

import pytest

import heed

sphinx = pytest.importorskip("sphinx.cmd.build", reason="needs the extra [docs]")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")

from heed_docs.mathml import mathml  # noqa: E402
from heed_docs.recipes import is_inside_model, recipe_keys  # noqa: E402
from heed_docs.routes import description  # noqa: E402
from heed_docs.verbs import page_of, verbs  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent / "docs"
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|object)\b[^>]*?\b(?:src|data)=\"([^\"]+)\"|<link\b([^>]*)>", re.S
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A warning, such as a broken link or an expression that is not LaTeX, fails the build."""
    folder = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of Sphinx's own extensions
        warnings.simplefilter("ignore", DeprecationWarning)
        assert sphinx.main(["-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]) == 0
    return folder


def text_of(page: Path) -> str:
    """The text of a page, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def words_of(page: Path) -> set[str]:
    """The words of a page, such as flags and keys."""
    return set(re.findall(r"[\w.\[\]-]+", text_of(page)))


def test_every_verb_has_a_page_with_its_flags(site: Path) -> None:
    missing = [
        f"{name}: {flag}"
        for name, command in verbs().items()
        for words in [words_of((site / page_of(name)).with_suffix(".html"))]
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if parameter.param_type_name == "option" and flag != "--help" and flag not in words
    ]
    assert not missing


def test_every_page_of_commands_is_that_of_a_verb() -> None:
    assert {path.name for path in (DOCS / "commands").iterdir()} == {Path(page_of(name)).name for name in verbs()}


def test_pages_of_commands_name_only_flags_that_exist() -> None:
    known = {flag for command in verbs().values() for parameter in command.params for flag in parameter.opts}
    for page in [DOCS / "commands.md", *(DOCS / "commands").iterdir()]:
        named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*(?![\w.-])", page.read_text(encoding="utf-8")))
        assert named <= {*known, "--help"}, page.name


def test_every_key_of_a_recipe_is_in_the_reference(site: Path) -> None:
    pages = [site / "recipes.html", *(site / "recipes").glob("*.html")]
    words = set().union(*map(words_of, pages))
    keys = {key.key for _, key in recipe_keys() if not is_inside_model(key)}
    assert len(keys) > 100
    assert {key.key for _, key in recipe_keys() if key.key.startswith("model.decoder.")} <= keys
    assert not [key for key in sorted(keys) if key not in words]


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    anchors = set(re.findall(r'id="(heed\.\w+)"', (site / "api.html").read_text(encoding="utf-8")))
    assert anchors >= {f"heed.{name}" for name in heed.__all__ if name != "__version__"}


def test_every_route_is_in_the_reference(site: Path) -> None:
    text = text_of(site / "http.html")
    routes = [f"{method.upper()} {path}" for path, methods in description()["paths"].items() for method in methods]
    assert len(routes) > 20
    assert not [route for route in routes if route not in text]


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        for source, link in LOADED.findall(page.read_text(encoding="utf-8")):
            assert not re.search(r"(?:https?:)?//", source or link), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_mathematics_is_mathml() -> None:
    assert re.search(r"<math.*<mfrac>", mathml(r"\frac{1}{2}"), re.S)
    assert 'display="block"' in mathml("x^2", as_block=True)
    with pytest.raises(ValueError, match=r"cannot convert to MathML: '\\\\unknown'"):
        mathml(r"\unknown")


def test_the_plot_of_the_results_is_drawn_from_their_tables() -> None:
    drawing = runpy.run_path(str(DOCS / "pictures" / "bleu_by_minutes.py"))
    page = (DOCS / "results" / "translation.md").read_text(encoding="utf-8")
    assert [len(seeds) for seeds in drawing["curves"](page).values()] == [3, 3]
    assert drawing["draw"](page) == (DOCS / "pictures" / "bleu-by-minutes.svg").read_text(encoding="utf-8")
