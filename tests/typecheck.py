"""Checks of shapes while tests run.

Every function of the instrumented packages whose signature has a shape is checked at each call: its tensors have the
types and shapes that the signature says, with one size for each letter. Left to mypy: signatures without shapes, and
functions inside functions.

`jaxtyping` has an import hook of its own. It checks arguments twice and binds them twice more, and checks functions
without shapes, too: two thirds of the time of the tests of searches.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Annotated, Any, Self, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.vale import Is

# Not `Any` or `object`: beartype replaces a hint inside a union only by one that it has to check.
_ANYTHING = Annotated[object, Is[lambda value: True]]

_DECORATOR = "__checked__"


def instrument(packages: Sequence[str]) -> None:
    """Check these packages, which nothing has imported yet, and their modules."""
    imported = [name for name in packages if name in sys.modules]
    assert not imported, f"imported too early to be checked: {imported}"
    sys.meta_path.insert(0, _Finder(packages))


def checked(target: Any) -> Any:
    """A function or data class whose shapes are checked at every call, unless jaxtyping is disabled."""
    if isinstance(target, type):
        if is_dataclass(target) and "__init__" in vars(target):
            target.__init__ = checked(target.__init__)  # type: ignore[misc]
        return target
    return _checked(target) if _has_shapes(target) else target


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Made at the first call: by then all names of the signature are defined, and many functions are never called."""
    verified = functools.cache(lambda: _verified(function))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if jaxtyping.config.jaxtyping_disable:
            return function(*args, **kwargs)
        with jaxtyping.jaxtyped("context"):  # what a letter stands for
            return verified()(*args, **kwargs)

    return call


def _verified(function: Callable[..., Any]) -> Callable[..., Any]:
    """Checked by beartype, but for `Self`, which it knows only in classes that it decorates, and protocols."""
    function.__annotations__ = get_type_hints(function, include_extras=True)
    hints = [part for hint in function.__annotations__.values() for part in _parts(hint)]
    unchecked = {hint: _ANYTHING for hint in hints if hint is Self or getattr(hint, "_is_protocol", False)}
    return beartype(function, conf=BeartypeConf(hint_overrides=FrozenDict(unchecked)))


def _has_shapes(function: Callable[..., Any]) -> bool:
    """Whether a part of the signature is an array of jaxtyping."""
    hints = function.__annotations__.values()
    return not inspect.isgeneratorfunction(function) and any(_has_shape(hint, function.__globals__) for hint in hints)


def _has_shape(hint: Any, names: dict[str, Any]) -> bool:
    """Also true of one that uses a name not defined yet: the first call fails if it is not defined then either."""
    try:
        known = eval(hint, names) if isinstance(hint, str) else hint
    except NameError:
        return "[Tensor," in hint
    return any(isinstance(part, type) and issubclass(part, jaxtyping.AbstractArray) for part in _parts(known))


def _parts(hint: Any) -> Iterator[Any]:
    """A type and all types inside its brackets or unions."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


class _Finder(MetaPathFinder):
    """Finds the modules of the packages."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As Python does, with another loader."""
        if not any(name == package or name.startswith(f"{package}.") for package in self.packages):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Compiles modules with decorators, and keeps no bytecode: that of the module itself has the same file's name."""

    def get_code(self, fullname: str) -> CodeType:
        """The module, with a decorator at every function and class."""
        tree = _Decorators().visit(ast.parse(self.get_data(self.path), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Define the decorator first."""
        setattr(module, _DECORATOR, checked)
        super().exec_module(module)


class _Decorators(ast.NodeTransformer):
    """The decorator nearest to each function, which has the signature, and after those that make data classes."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Without the functions inside: they are made anew at each call, and so would be their checks."""
        node.decorator_list.append(ast.Name(_DECORATOR, ast.Load()))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """With its methods."""
        self.generic_visit(node)
        node.decorator_list.insert(0, ast.Name(_DECORATOR, ast.Load()))
        return node
