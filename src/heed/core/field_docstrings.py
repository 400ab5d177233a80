"""Docstrings of the fields of a class, read from its source."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise


@cache
def field_docstrings(owner: type) -> Mapping[str, str]:
    """The docstring of each annotated field that a class itself declares, if it has one, by the field's name.

    A class whose source cannot be read, such as one typed at a prompt, has none.
    """
    try:
        source = inspect.getsource(owner)
        [tree] = ast.parse(f"if True:\n{source}" if source[0].isspace() else source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    declared = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    docstrings = {}
    for field, after in pairwise(declared.body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = inspect.cleandoc(text)
    return docstrings
