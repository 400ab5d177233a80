"""`heed translate`: lines from stdin to lines on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heed.cli.options import (
    BadBytes,
    Debug,
    Device,
    Json,
    Precision,
    Quiet,
    Seed,
    Tag,
    Threads,
    search_options,
    use_threads,
)  # fmt: skip
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.cli.constraints import InputLines
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import SearchOptions
    from heed.tasks.predictor import Predictor
    from heed.text.sentences import Piece

Words = Annotated[list[str], typer.Argument(metavar="RUN", help="A run folder, made by heed train.")]
Measure = Literal["chrf", "bleu"]


def translate(
    words: Words,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy (default: the recipe's).", min=1)] = None,
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.", min=0)] = None,
    coverage_penalty: Annotated[float | None, typer.Option(help="β of the coverage penalty.", min=0)] = None,
    no_repeat: Annotated[int | None, typer.Option(metavar="N", help="No N tokens in a row come twice.", min=0)] = None,
    nbest: Annotated[int | None, typer.Option(help="Hypotheses for each line, in the form of Moses.", min=1)] = None,
    diversity: Annotated[float | None, typer.Option(help="With --nbest: how much they differ.", min=0)] = None,
    mbr: Annotated[Measure | None, typer.Option(help="Of 20 (or --beam) the output most like the others.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of search.")] = False,
    temperature: Annotated[float | None, typer.Option(help="With --sample: sharper below 1.")] = None,
    top_k: Annotated[int | None, typer.Option(help="With --sample: only the k likeliest tokens.", min=0)] = None,
    top_p: Annotated[float | None, typer.Option(help="With --sample: the likeliest tokens of this share.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="TSV of source terms and the terms they demand.")] = None,
    ban: Annotated[list[str] | None, typer.Option(help="A word or phrase that no output holds.")] = None,
    ban_file: Annotated[Path | None, typer.Option(help="Such words, one a line.")] = None,
    prefix_file: Annotated[Path | None, typer.Option(help="How each output begins, a line for each.")] = None,
    tag: Tag = None,
    ensemble: Annotated[list[Path] | None, typer.Option(metavar="RUN", help="Another run to decide with.")] = None,
    lm: Annotated[Path | None, typer.Option(metavar="RUN", help="A language model to decide with.")] = None,
    lm_weight: Annotated[float | None, typer.Option(help="Its weight beside the translation's (0.2).", min=0)] = None,
    no_guard: Annotated[bool, typer.Option("--no-guard", help="Do not look for loops, copies, odd lengths.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Log-probability and a tab before each line.")] = False,
    alignment: Annotated[bool, typer.Option("--alignment", help="Word links (0-0 1-2) and a tab before it.")] = False,
    paragraphs: Annotated[bool, typer.Option("--paragraphs", help="Translate the sentences of a line apart.")] = False,
    json_input: Annotated[bool, typer.Option("--json-input", help='Lines are {"source": "", "prefix": ""}.')] = False,
    errors: BadBytes = "strict",
    batch_size: Annotated[int | None, typer.Option(help="Lines at once; it changes the speed.", min=1)] = None,
    precision: Precision = "float32",
    seed: Seed = None,
    json_lines: Json = False,
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate stdin to stdout: as many lines as came, in their order, as they come.

    --nbest prints `line ||| text ||| logprob= -1.23 ||| score`, a line for each hypothesis. --paragraphs puts the
    white space between sentences back as it was. Any key that [decoding] has in the run's recipe.toml is a flag too:
    --decoding.max_ratio=1.5.

    Examples:

      heed translate runs/en-de < in.txt > out.txt

      echo "A dog runs." | heed translate runs/en-de --glossary terms.tsv --json
    """
    import heed
    from heed.cli.constraints import InputLines, read_ban
    from heed.cli.output import Output
    from heed.cli.stdio import groups_as_they_come
    from heed.decoding.sentences import split_if_long, split_sentences
    from heed.evaluation.compatibility import warn_about_input
    from heed.tasks.predictor import LM_WEIGHT

    if lm is None and lm_weight is not None:
        raise UsageError("--lm-weight is that of a language model: give --lm too.")
    if json_input and prefix_file is not None:
        raise UsageError("--json-input has the prefix in each line: leave out --prefix-file.")
    run, keys = split_words(words)
    others = ensemble or ()
    weight = LM_WEIGHT if lm_weight is None else lm_weight
    use_threads(threads)
    loaded = heed.load(run, device, precision, ensemble=others, lm=lm, lm_weight=weight, tag=tag)
    loaded.require("translate")
    banned = read_ban(ban or (), ban_file, errors)
    flags = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "no_repeat": no_repeat, "nbest": nbest, "diversity": diversity, "mbr": mbr, "sample": sample or None,
        "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "guard": False if no_guard else None, "seed": seed, "batch_size": batch_size,
    }  # fmt: skip
    said = once(keys, flags)
    options = search_options(loaded.run.recipe.decoding, said)
    options = search_options(options, {"ban": (*options.ban, *banned)})
    if not options.sample and {"temperature", "top_k", "top_p"} & said.keys():
        raise UsageError("--temperature, --top-k and --top-p are about drawing: give --sample too.")
    if options.sample and "beam_size" in said:
        raise UsageError("--sample draws in the place of a search: leave out --beam.")
    wanted = InputLines(json_input, prefix_file, glossary, loaded.run.recipe.data.normaliser.apply, errors)
    _check(options, paragraphs, (scores or alignment) and not json_lines, prefix_file, json_input, glossary)
    loaded.translator.factory.require_allowed(options.ban, wanted.target_terms)
    output = Output(loaded, options.nbest, json_lines, scores, alignment)
    for number, group in enumerate(groups_as_they_come(errors)):
        sources, constraints = wanted.read(group)
        if number == 0:
            warn_about_input(loaded.run, sources, quiet)
        prefixes = [kept_to.prefix for kept_to in constraints or ()]
        if paragraphs:
            language = loaded.run.recipe.data.src_lang or None
            count = loaded.translator.num_source_tokens
            pieces = [split_sentences(line, count, language=language) for line in sources]
            found = _in_pieces(loaded, pieces, prefixes, options, wanted)
        elif glossary is not None:
            pieces = [split_if_long(line, loaded.translator.num_source_tokens) for line in sources]
            found = _in_pieces(loaded, pieces, prefixes, options, wanted)
        else:
            found = loaded.translator.translate(sources, options, constraints)
        output.write(sources, found, prefixes)
    wanted.finish()


def split_words(words: Sequence[str]) -> tuple[Path, dict[str, object]]:
    """The run, and the keys of its [decoding] that were said as `--decoding.KEY=VALUE`."""
    from heed.core.config import parse_overrides

    for word in words:
        if word.startswith("-") and not (word.startswith("--decoding.") and "=" in word):
            raise typer.BadParameter(f"No such option: {word}")
    runs = [word for word in words if not word.startswith("-")]
    if len(runs) != 1:
        is_file = len(runs) == 2 and Path(runs[1]).is_file()
        into = f": lines come by < {runs[1]}, and whole files are for heed translate-file" if is_file else ""
        raise typer.BadParameter(f"one run is needed, got {', '.join(runs) or 'none'}{into}")
    keys = parse_overrides([word for word in words if word.startswith("-")])
    return Path(runs[0]), {key.removeprefix("decoding."): value for key, value in keys.items()}


def once(keys: Mapping[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """Keys of [decoding] and flags of the same names (None: not said) together; raises UsageError for one in both."""
    said = {name: value for name, value in flags.items() if value is not None}
    if twice := sorted(keys.keys() & said.keys()):
        raise UsageError(f"--decoding.{twice[0]} is said by a flag of its own too: leave one of them out.")
    return {**keys, **said}


def _check(
    options: SearchOptions, paragraphs: bool, before_line: bool, prefix_file: Path | None, json_input: bool,
    glossary: Path | None,
) -> None:  # fmt: skip
    """Raise UsageError for what does not go together."""
    from heed.decoding.factory import require_plain_beam

    if options.nbest > 1 and (paragraphs or before_line):
        raise UsageError("--nbest has a form of its own: it goes neither with --scores, --alignment nor --paragraphs.")
    if paragraphs and (prefix_file is not None or json_input):
        raise UsageError("--prefix-file and --json-input are about one sentence a line: leave out --paragraphs.")
    if glossary is not None:
        require_plain_beam(options)


def _in_pieces(
    loaded: Predictor, lines: Sequence[Sequence[Piece]], prefixes: Sequence[str], options: SearchOptions,
    wanted: InputLines,
) -> list[Hypothesis]:  # fmt: skip
    """The sentences of each line translated, and put back with the spaces it had.

    Each keeps to the terms of its own words, and the first one of a line to the line's prefix.
    """
    from heed.decoding.options import Constraints
    from heed.decoding.sentences import translate_pieces

    def translated(sentences: list[str]) -> list[Hypothesis]:
        if not wanted.constrained:
            return loaded.translator.translate(sentences, options)
        begins = [
            "" if place else prefix
            for pieces, prefix in zip(lines, prefixes, strict=True)
            for place in range(sum(piece.is_sentence for piece in pieces))
        ]
        constraints = map(Constraints, begins, wanted.terms(sentences))
        return loaded.translator.translate(sentences, options, list(constraints))

    return translate_pieces(lines, translated, bool(options.mbr))
