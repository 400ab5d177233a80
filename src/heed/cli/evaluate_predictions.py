"""Test sets of runs that predict: tables, tagged words, word vectors, attention heads and captions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.flags import flags_given
from heed.cli.options import Compute, OnBadBytes
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation
    from heed.tasks.predictor import Predictor


@dataclass(frozen=True)
class PredictionTests:
    """The test set of one kind of run."""

    table: Annotated[
        Path | None, typer.Option(help="Table of inputs with the right answers, for runs that predict.")
    ] = None
    conll: Annotated[Path | None, typer.Option(help="CoNLL file, for taggers; columns as in training.")] = None
    similarity: Annotated[list[Path] | None, typer.Option(help="Word pairs with similarity ratings (repeatable).")] = (
        None
    )
    analogies: Annotated[Path | None, typer.Option(help="Word analogies, four words per line.")] = None
    trees: Annotated[Path | None, typer.Option(help="Treebank to compare attention heads with.")] = None
    captions: Annotated[Path | None, typer.Option(help="Table of captions, for captioning runs.")] = None
    images: Annotated[Path | None, typer.Option(help="Images of --captions: a folder or a .tar.")] = None

    @property
    def kind(self) -> str:
        """What the given flags are for, as a sentence; empty without flags. Raises UsageError for several kinds."""
        given = flags_given(self)
        kinds = {why: [flag for flag in flags if flag in given] for flags, why in _KINDS.items()}
        if len(chosen := {why: flags for why, flags in kinds.items() if flags}) > 1:
            raise UsageError(f"{', '.join(given)} are test sets of different runs: give one kind at a time.")
        return next(iter(chosen), "")

    def evaluate(
        self, folders: Sequence[Path], errors: OnBadBytes, compute: Compute, quiet: bool
    ) -> list[list[Evaluation]]:
        """The evaluations of each test set."""
        if self.table is not None:
            return [_of_table(_opened(folders, compute), self.table, errors)]
        if self.conll is not None:
            return [_of_tags(folders, self.conll, errors, compute)]
        if self.similarity or self.analogies is not None:
            return self._of_vectors(folders, errors, compute)
        if self.captions is None or self.images is None:
            raise UsageError("give --captions F and --images F together.")
        first, *others = _opened(folders, compute, "caption", "--captions")
        return [first.evaluate_captions(self.captions, self.images, others, quiet, errors)]

    def _of_vectors(self, folders: Sequence[Path], errors: OnBadBytes, compute: Compute) -> list[list[Evaluation]]:
        from heed.evaluation.word_similarity import evaluate_analogies, evaluate_similarity

        loaded = _opened(folders, compute, "embed", "--similarity" if self.similarity else "--analogies")
        evaluated = [evaluate_similarity(path, loaded, errors) for path in self.similarity or ()]
        return evaluated + ([evaluate_analogies(self.analogies, loaded, errors)] if self.analogies else [])


_KINDS = {
    ("--table",): "--table is for runs that predict answers such as labels",
    ("--conll",): "--conll is for taggers",
    ("--similarity", "--analogies"): "--similarity and --analogies are for word vectors",
    ("--trees",): "--trees is for attention heads",
    ("--captions", "--images"): "--captions and --images are for runs that caption images",
}


def print_heads(folders: Sequence[Path], trees: Path, errors: OnBadBytes, as_json: bool, compute: Compute) -> None:
    """Print the agreement of each run's attention heads with trees."""
    from heed.evaluation.heads import evaluate_heads

    reports = {str(folder): evaluate_heads(compute.load(folder), trees, errors) for folder in folders}
    if as_json:
        print(json.dumps([{"run": run, **report.to_json()} for run, report in reports.items()], ensure_ascii=False))
    else:
        print("\n\n".join(f"{run}, {trees.name}, {report.render()}" for run, report in reports.items()))


def _opened(folders: Sequence[Path], compute: Compute, ability: str = "", flag: str = "") -> list[Predictor]:
    """The runs. Raises UsageError unless each has the ability that a flag needs."""
    predictors = [compute.load(folder) for folder in folders]
    for predictor in predictors if ability else ():
        predictor.require(ability, flag)
    return predictors


def _compared(evaluations: list[Evaluation]) -> list[Evaluation]:
    """The evaluations with tests against the first, and with scores on the rows that no run was trained on."""
    from heed.evaluation.evaluation import compared, with_clean_scores

    return with_clean_scores(compared(evaluations))


def _of_table(predictors: Sequence[Predictor], table: Path, errors: OnBadBytes) -> list[Evaluation]:
    """The evaluations of the runs, and of the methods that they are compared with."""
    if taggers := [each.folder for each in predictors if each.can("annotate")]:
        raise UsageError(f"{taggers[0]} is a tagger, which is scored on tagged words: give --conll F.")
    evaluations = [predictor.evaluate(table, errors) for predictor in predictors]
    return _compared([*evaluations, *predictors[0].baselines(table, errors)])


def _of_tags(folders: Sequence[Path], conll: Path, errors: OnBadBytes, compute: Compute) -> list[Evaluation]:
    from heed.text.archives import is_stream

    if len(folders) > 1 and is_stream(conll):
        raise UsageError(f"{conll} cannot be read twice, for several runs: write it to a file first.")
    predictors = _opened(folders, compute, "annotate", "--conll")
    return _compared([predictor.evaluate(conll, errors) for predictor in predictors])
