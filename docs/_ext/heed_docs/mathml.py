"""Mathematics as MathML, which browsers draw by themselves: no script is loaded, and nothing comes from the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_log = logging.getLogger(__name__)


def mathml(latex: str, as_block: bool = False) -> str:
    """The MathML of an expression. Raises ValueError for one that cannot be converted."""
    try:
        return tex2mathml(latex, as_block=as_block)
    except MathError as error:
        raise ValueError(f"cannot convert to MathML: {latex!r} ({error})") from error


def _written(translator: Any, node: nodes.Element, as_block: bool) -> None:
    try:
        translator.body.append(mathml(node.astext(), as_block))
    except ValueError as error:
        _log.warning(str(error), location=node, type="mathml")
        translator.body.append(translator.encode(node.astext()))
    raise nodes.SkipNode


def _visit_inline(translator: Any, node: nodes.Element) -> None:
    _written(translator, node, as_block=False)


def _visit_block(translator: Any, node: nodes.Element) -> None:
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    _written(translator, node, as_block=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, which `html_math_renderer = "mathml"` chooses."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
