"""Declaration of verbs: groups of options as dataclasses, and checks that apply to every verb.

@dataclass(frozen=True)
class Compute:
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 0

def score(run: RunFolder, compute: Compute) -> None: ...

add_verb(app, "score", score)
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from itertools import zip_longest
from typing import Annotated, Any, cast, get_type_hints

import typer
from typer.core import TyperCommand

from heed.core.errors import UsageError

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def add_verb(app: typer.Typer, name: str, verb: Callable[..., None], has_recipe_keys: bool = False) -> None:
    """Add a verb, with --debug, which `main` reads.

    `has_recipe_keys`: options that the verb does not declare are left for it to read, as keys of a recipe.
    """
    settings = {"ignore_unknown_options": has_recipe_keys}
    app.command(name, cls=Verb, context_settings=settings)(_with_groups(verb))


_REPEATED = {"--src": "src=F,tgt=F", "--tgt": "src=F,tgt=F", "--pairs": "pairs=F"}
"""For options of `train` that take one value: the `--part` that adds more data."""
_INSTEAD = {"--valid": "Use --valid-src F --valid-tgt F, --valid-pairs F or --valid-text F."}
"""For options that do not exist: what to use."""


class Verb(TyperCommand):
    """A verb that refuses unknown options, and options that are given twice but take one value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check the options before typer reads them. Raises UsageError."""
        args = self._with_values(args)
        if not ctx.resilient_parsing and "--help" not in args:
            parser = self.make_parser(ctx)
            parser.ignore_unknown_options = True
            values, words, options = parser.parse_args(args=list(args))
            for argument in self.params:
                if argument.param_type_name == "argument" and isinstance(values.get(str(argument.name)), tuple):
                    words = [*words, *values[str(argument.name)]]
            if "--" not in args:
                self._refuse_unknown(words, has_recipe_keys=ctx.ignore_unknown_options)
            _refuse_repeated(options, is_train=self.name == "train")
        return super().parse_args(ctx, args)

    def _with_values(self, args: list[str]) -> list[str]:
        """Give an option whose value may be left out, which its metavar in brackets says, an empty one."""
        names = [name for p in self.params for name in p.opts if str(getattr(p, "metavar", "")).startswith("[")]
        return [
            f"{word}=" if word in names and (following is None or following.startswith("-")) else word
            for word, following in zip_longest(args, args[1:])
        ]

    def _refuse_unknown(self, words: Sequence[str], has_recipe_keys: bool) -> None:
        """`has_recipe_keys`: an option with a dot in its name is the key of a recipe."""
        names = [name for option in self.params for name in (*option.opts, *option.secondary_opts)]
        for word in words:
            flag = word.partition("=")[0]
            if not isinstance(word, str) or not flag.startswith("--") or (has_recipe_keys and "." in flag):
                continue
            similar = difflib.get_close_matches(flag, [name for name in names if name.startswith("--")], n=1)
            advice = f"Did you mean {similar[0]}?" if similar else f"See heed {self.name} --help."
            raise UsageError(f"unknown option {flag}. {_INSTEAD.get(flag, advice)}")


def _refuse_repeated(options: Sequence[Any], is_train: bool) -> None:
    """Raise UsageError for an option that is given twice and takes one value."""
    for option in options:
        takes_several = option.multiple or option.nargs == -1 or getattr(option, "is_flag", False)
        if options.count(option) > 1 and not takes_several:
            name, times = option.opts[0], options.count(option)
            often = "twice" if times == 2 else f"{times} times"
            part = (
                f" More training data is added with --part {_REPEATED[name]}." if name in _REPEATED and is_train else ""
            )
            raise UsageError(f"{name} was given {often}; it takes one value.{part}")


def _with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb whose parameters that are dataclasses are replaced by their fields, as typer needs it."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))
    parameters.append(inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug))

    @wraps(verb)
    def expanded(**values: Any) -> None:
        values.pop("debug")  # read by `main`
        for name, group in groups.items():
            values[name] = cast(Any, group)(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded


def _parameters_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]  # fmt: skip


def given(group: Any) -> Mapping[str, Any]:
    """The fields of a group that differ from their defaults, by name."""
    return {field.name: value for field in fields(group) if (value := getattr(group, field.name)) != field.default}


def flags_given(group: Any) -> list[str]:
    """The flags of the fields that differ from their defaults, such as `--beam`."""
    names = given(group)
    return [_flag(group, field) for field in fields(group) if field.name in names]


def _flag(group: Any, field: Field[Any]) -> str:
    hint = get_type_hints(type(group), include_extras=True)[field.name]
    names = [option.default for option in hint.__metadata__ if isinstance(option.default, str)]
    return names[0].strip(" /") if names else "--" + field.name.replace("_", "-")
