"""Directives that put generated references into a page: `verb`, `verbs`, `recipe-keys` and `http-routes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from heed_docs.recipes import recipe_markdown
from heed_docs.routes import routes_markdown
from heed_docs.verbs import verb_list, verb_markdown


class Generated(SphinxDirective):
    """Markdown from the code, by the argument of the directive."""

    optional_arguments = 1
    final_argument_whitespace = True
    markdown: ClassVar[Callable[..., str]]

    def run(self) -> list[nodes.Node]:
        """The parsed Markdown."""
        text = type(self).markdown(*self.arguments)
        return list(self.parse_text_to_nodes(text, allow_section_headings=True))


def _as_written(app: Sphinx, kind: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Undo what would change docstrings.

    Bars, such as those of |y|, are not substitutions, and the words before a colon are not the type of an attribute,
    which napoleon takes them for.
    """
    if kind == "attribute" and lines and lines[-1].startswith(":type: "):
        lines[:] = [f"{lines[-1].removeprefix(':type: ')}: {lines[0]}", *lines[1:-1]]
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, and what autodoc does to docstrings."""
    sources = {
        "verb": verb_markdown, "verbs": verb_list, "recipe-keys": recipe_markdown, "http-routes": routes_markdown
    }  # fmt: skip
    for name, markdown in sources.items():
        app.add_directive(name, type(name, (Generated,), {"markdown": staticmethod(markdown)}))
    app.connect("autodoc-process-docstring", _as_written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
