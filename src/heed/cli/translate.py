"""`heed translate`: lines from stdin to lines on stdout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.cli.cluster import ClusterFlags, changes_of, refuse_with_ray, with_whole_paths
from heed.cli.flags import given
from heed.cli.options import (
    BadBytes,
    BeamFlags,
    CombinationFlags,
    Compute,
    Glossary,
    Json,
    OnBadBytes,
    Quiet,
    merge_keys,
    search_options,
    warn_if_not_usable,
)
from heed.core.errors import UsageError
from heed.core.progress import warn

if TYPE_CHECKING:
    from heed.cli.constraints import InputLines
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import Constraints, SearchOptions
    from heed.inference.line_translator import LineTranslator
    from heed.text.sentences import Piece

Words = Annotated[list[str], typer.Argument(metavar="RUN", help="A run folder, made by heed train.")]
Measure = Literal["chrf", "bleu"]


@dataclass(frozen=True)
class SearchFlags(BeamFlags):
    """Changes of the search options of the recipe, by their keys."""

    coverage_penalty: Annotated[float | None, typer.Option(help="β of the coverage penalty.", min=0)] = None
    no_repeat: Annotated[int | None, typer.Option(metavar="N", help="Never repeat a sequence of N tokens.", min=0)] = (
        None
    )
    nbest: Annotated[
        int | None, typer.Option(help="Number of hypotheses to print for each line, in Moses' format.", min=1)
    ] = None
    diversity: Annotated[
        float | None, typer.Option(help="With --nbest or --mbr: diversity penalty of the beam (0: none).", min=0)
    ] = None
    mbr: Annotated[
        Measure | None, typer.Option(help="Minimum Bayes risk decoding over --beam (default: 20) candidates.")
    ] = None
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of beam search.")] = False
    temperature: Annotated[float | None, typer.Option(help="With --sample: below 1 is sharper.")] = None
    top_k: Annotated[int | None, typer.Option(help="With --sample: only the k likeliest tokens.", min=0)] = None
    top_p: Annotated[float | None, typer.Option(help="With --sample: nucleus of this probability mass.")] = None
    no_guard: Annotated[bool, typer.Option("--no-guard", help="Skip checks for loops, copies, odd lengths.")] = False
    batch_size: Annotated[
        int | None, typer.Option(help="Lines translated together (8 times as many on a GPU); affects the speed.", min=1)
    ] = None
    seed: Annotated[int | None, typer.Option(help="With --sample: seed of the random numbers.", min=0)] = None

    def keys(self) -> dict[str, Any]:
        """Keys of [decoding] and their values."""
        keys = dict(given(self))
        return keys | {"guard": False} if keys.pop("no_guard", False) else keys


@dataclass(frozen=True)
class ConstraintFlags:
    """Required and forbidden text of the outputs."""

    glossary: Glossary = None
    ban: Annotated[list[str] | None, typer.Option(help="A word or phrase that no output contains.")] = None
    ban_file: Annotated[Path | None, typer.Option(help="File of such words, one per line.")] = None
    prefix_file: Annotated[
        Path | None, typer.Option(help="File with a prefix for each output, one per line (empty: none).")
    ] = None
    json_input: Annotated[
        bool, typer.Option("--json-input", help='Read JSON lines: {"source": "…", "prefix": "…"}.')
    ] = False


@dataclass(frozen=True)
class FusionFlags(CombinationFlags):
    """Models that are combined with the run, including a language model for shallow fusion."""

    lm: Annotated[Path | None, typer.Option(metavar="RUN", help="A language model for shallow fusion.")] = None
    lm_weight: Annotated[float | None, typer.Option(help="Weight of the language model (default: 0.2).", min=0)] = None

    def load(self, run: Path, compute: Compute) -> Any:
        """Open a run together with these models (`load_translator`)."""
        if self.lm is None and self.lm_weight is not None:
            raise UsageError("--lm-weight needs --lm RUN.")
        return load_translator(run, self, compute, needs_pytorch=self.lm is not None)


def load_translator(run: Path, combination: CombinationFlags, compute: Compute, needs_pytorch: bool) -> Any:
    """Open a run with the models of `combination`, without PyTorch where that is enough: its import takes seconds.

    Raises UsageError for a run that is not a translator.
    """
    if not (needs_pytorch or combination.ensemble or combination.memory):
        opened = compute.open_without_pytorch("translate", run, combination.engine, combination.tag)
        if opened is not None:
            return opened
    loaded = compute.load(run, **given(combination))
    loaded.require("translate")
    return loaded


@dataclass(frozen=True)
class OutputFlags:
    """The format of the output."""

    scores: Annotated[bool, typer.Option("--scores", help="Print the log-probability and a tab before each line.")] = (
        False
    )
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Print word links (0-0 1-2) and a tab before each line.")
    ] = False
    paragraphs: Annotated[bool, typer.Option("--paragraphs", help="Split each line into sentences.")] = False
    json_lines: Json = False


def translate(
    *,
    words: Words,
    search: SearchFlags,
    constraints: ConstraintFlags,
    combination: FusionFlags,
    layout: OutputFlags,
    cluster: ClusterFlags,
    errors: BadBytes = "strict",
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Translate stdin to stdout, line by line.

    Each line is translated as it arrives, in order. --nbest prints `line ||| text ||| logprob= -1.23 ||| score` for
    each hypothesis. --paragraphs restores the white space between sentences. Any key of [decoding] in the run's
    recipe.toml is an option too: --decoding.max_ratio=1.5. With --ray, a corpus is translated into Parquet files, which
    get the column `translation`.

    Examples:

      heed translate runs/en-de < in.txt > out.txt

      echo "A dog runs." | heed translate runs/en-de --glossary terms.tsv --json

      heed translate runs/en-de --ray --input 'corpus/*.parquet' --output translated
    """
    if constraints.json_input and constraints.prefix_file is not None:
        raise UsageError("--json-input and --prefix-file both give prefixes: leave out --prefix-file.")
    if cluster.is_used:
        _translate_corpus(words, search, constraints, combination, layout, cluster, errors, compute, quiet)
        return
    from heed.cli.output import TranslationOutput
    from heed.cli.stdio import groups_as_they_come

    lines = _Lines(words, search, constraints, combination, layout, errors, quiet, compute)
    output = TranslationOutput(lines.loaded, lines.options.nbest, layout.json_lines, layout.scores, layout.alignment)
    for number, (sources, required) in enumerate(lines.reader.read(groups_as_they_come(errors))):
        if number == 0:
            lines.loaded.check_input(sources, quiet)
            _warn_about_placeholders(sources, quiet)
        prefixes = [constraint.prefix for constraint in required or ()]
        output.write(sources, lines.translated(sources, required), prefixes)


class _Lines:
    """A loaded run and the options of a call, which translate lines."""

    def __init__(
        self, words: Sequence[str], search: SearchFlags, constraints: ConstraintFlags, combination: FusionFlags,
        layout: OutputFlags, errors: OnBadBytes, quiet: bool, compute: Compute,
    ) -> None:  # fmt: skip
        """Raises UsageError for options that cannot be combined."""
        from heed.cli.constraints import InputLines, read_ban

        names, keys = names_and_keys(words)
        self.loaded = combination.load(_only_run(names), compute)
        warn_if_not_usable(self.loaded, quiet)
        changes = merge_keys(keys, search.keys(), "decoding.")
        options = search_options(self.loaded.decoding, changes)
        banned = read_ban(constraints.ban or (), constraints.ban_file, errors)
        self.options = search_options(options, {"ban": (*options.ban, *banned)})
        _check(self.options, changes, constraints, layout)
        self.reader = InputLines(
            constraints.json_input, constraints.prefix_file, constraints.glossary, self.loaded.data.normaliser.apply,
            errors,
        )  # fmt: skip
        with_tokens = layout.json_lines or layout.scores or self.options.nbest > 1
        self.translator: LineTranslator = self.loaded.line_translator(with_tokens=with_tokens)
        self.translator.require_allowed(self.options.ban, self.reader.target_terms)
        self._paragraphs = layout.paragraphs

    def translated(self, sources: Sequence[str], required: Sequence[Constraints] | None) -> list[Hypothesis]:
        """The hypotheses of some lines. `required`: the constraints of each, if there are any."""
        from heed.inference.sentences import split_sentences

        count = self.translator.num_source_tokens
        prefixes = [constraint.prefix for constraint in required or ()]
        if self._paragraphs:
            language = self.loaded.data.src_lang or None
            pieces = [split_sentences(line, count, language=language) for line in sources]
            return _by_sentence(self.translator, pieces, self.reader, prefixes, self.options)
        return self.translator.translate(sources, self.options, required)


def _translate_corpus(
    words: Sequence[str], search: SearchFlags, constraints: ConstraintFlags, combination: FusionFlags,
    layout: OutputFlags, cluster: ClusterFlags, errors: OnBadBytes, compute: Compute, quiet: bool,
) -> None:  # fmt: skip
    """Translate a corpus with Ray."""
    refuse_with_ray({
        "--nbest": search.nbest, "--json": layout.json_lines, "--alignment": layout.alignment,
        "--json-input": constraints.json_input, "--prefix-file": constraints.prefix_file,
    })  # fmt: skip
    names, keys = names_and_keys(words)
    if keys.get("nbest", 1) != 1:
        raise UsageError("with --ray, each row gets one translation: leave out --decoding.nbest.")
    run = _only_run(names).absolute()
    search = with_whole_paths(search)
    constraints, combination = with_whole_paths(constraints), with_whole_paths(combination)
    own_words = [word for word in words if word.startswith("-")]
    if "nbest" not in keys:
        own_words.append("--decoding.nbest=1")  # whatever the recipe has
    opening = partial(
        _open_corpus, [str(run), *own_words], search, constraints, combination, layout, errors, quiet
    )  # fmt: skip
    needs = [
        run, *(combination.ensemble or ()), combination.lm, combination.memory, constraints.glossary,
        constraints.ban_file, search.dictionary,
    ]  # fmt: skip
    options = {**keys, **changes_of(search, constraints, combination, layout)}
    cluster.run("translate", opening, options, compute, needs, errors, quiet)


def _open_corpus(*settings: Any) -> Callable[..., Mapping[str, Any]]:
    """What translates the texts of a corpus in a worker: the settings of `_Lines`."""
    import pyarrow

    lines = _Lines(*settings)
    layout: OutputFlags = settings[4]

    def translated(texts: Sequence[str]) -> Mapping[str, Any]:
        found = [hypotheses for group in lines.reader.read([texts]) for hypotheses in lines.translated(*group)]
        columns = {"translation": pyarrow.array([best.text for best in found], pyarrow.string())}
        if layout.scores:
            columns["log_prob"] = pyarrow.array([best.log_prob for best in found], pyarrow.float64())
        return columns

    return translated


def names_and_keys(words: Sequence[str]) -> tuple[list[str], dict[str, object]]:
    """Return the words that are not options, and the keys of [decoding] that are given as `--decoding.KEY=VALUE`."""
    from heed.core.config import parse_overrides

    options = [word for word in words if word.startswith("-")]
    for word in options:
        if not (word.startswith("--decoding.") and "=" in word):
            raise UsageError(f"unknown option {word}. Keys of the recipe are given as --decoding.KEY=VALUE.")
    keys = {key.removeprefix("decoding."): value for key, value in parse_overrides(options).items()}
    return [word for word in words if not word.startswith("-")], keys


def _only_run(names: Sequence[str]) -> Path:
    """The run folder. Raises UsageError unless it is the only name."""
    if len(names) == 1:
        return Path(names[0])
    advice = ""
    if len(names) == 2 and Path(names[1]).is_file():
        advice = f". Read lines with < {names[1]}, or translate the whole file with heed translate-file"
    raise UsageError(f"expected one run, got {', '.join(names) or 'none'}{advice}.")


def _check(
    options: SearchOptions, changes: Mapping[str, object], constraints: ConstraintFlags, layout: OutputFlags
) -> None:
    """Raise UsageError for options that cannot be combined."""
    from heed.decoding.options import require_plain_beam

    if not options.sample and {"temperature", "top_k", "top_p", "seed"} & changes.keys():
        raise UsageError("--temperature, --top-k, --top-p and --seed need --sample.")
    if options.sample and "beam_size" in changes:
        raise UsageError("--sample replaces beam search: leave out --beam.")
    before_line = (layout.scores or layout.alignment) and not layout.json_lines
    if options.nbest > 1 and (layout.paragraphs or before_line):
        raise UsageError("--nbest cannot be combined with --scores, --alignment or --paragraphs.")
    if layout.paragraphs and (constraints.prefix_file is not None or constraints.json_input):
        raise UsageError("--prefix-file and --json-input expect one sentence per line: leave out --paragraphs.")
    if constraints.glossary is not None:
        require_plain_beam(options)


def _warn_about_placeholders(lines: Sequence[str], quiet: bool) -> None:
    """Warn about codes that a model does not keep by itself."""
    from heed.documents.codes import placeholders

    found = [(line, text) for line in lines for text in placeholders(line)]
    if found:
        number, text = len({line for line, _ in found}), found[0][1]
        lines_have = f"{number:,} line{'s have' if number > 1 else ' has'}"
        warn(
            f"{lines_have} placeholders or addresses such as {text[:40]}, which translating line by line may "
            "damage. heed translate-file keeps them, also in a .txt file.", quiet,
        )  # fmt: skip


def _by_sentence(
    translator: LineTranslator, lines: Sequence[Sequence[Piece]], reader: InputLines, prefixes: Sequence[str],
    options: SearchOptions,
) -> list[Hypothesis]:  # fmt: skip
    """Translate the sentences of each line, and join them with the white space of the source.

    The terms of the glossary apply to the sentence they occur in, the prefix of a line to its first sentence.
    """
    from heed.inference.sentences import translate_pieces

    def translated(sentences: list[str]) -> list[Hypothesis]:
        if not reader.constrained:
            return translator.translate(sentences, options)
        begins = [
            "" if place else prefix
            for pieces, prefix in zip(lines, prefixes, strict=True)
            for place in range(sum(piece.is_sentence for piece in pieces))
        ]
        return translator.translate(sentences, options, reader.required(sentences, begins))

    return translate_pieces(lines, translated, bool(options.mbr))
