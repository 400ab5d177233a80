"""The flags with which a verb works on a corpus with Ray instead of on stdin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from heed.cli.flags import flags_given, given
from heed.cli.options import Compute, OnBadBytes
from heed.core.errors import UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.cluster.corpus import Compute as Computing

Group = TypeVar("Group", bound=Any)

Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Process a corpus with Ray, on this machine or on the cluster at ADDRESS (auto or HOST:PORT).",
    ),
]


@dataclass(frozen=True)
class ClusterFlags:
    """A corpus, and the cluster that works on it."""

    ray: Ray = None
    input: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="GLOB", help="With --ray: Parquet, JSON lines, or one text per line."),
    ] = None
    output: Annotated[Path | None, typer.Option(metavar="DIR", help="With --ray: the folder of the results.")] = None
    column: Annotated[str | None, typer.Option(help="With --ray: the column of the texts (default: text).")] = None

    @property
    def is_used(self) -> bool:
        """Whether the verb works on a corpus. Raises UsageError for flags without those that they need."""
        if self.ray is None and (others := flags_given(self)):
            raise UsageError(f"{others[0]} needs --ray.")
        if self.ray is not None and not (self.input and self.output):
            raise UsageError("--ray needs --input FILES and --output DIR.")
        return self.ray is not None

    def run(
        self, verb: str, opening: Callable[[Compute], Computing], options: Mapping[str, Any], compute: Compute,
        needs: Sequence[Path | None], errors: OnBadBytes, quiet: bool, other_columns: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Compute the corpus.

        Args:
            verb: The name of the verb.
            opening: Loads the model with a worker's threads, and returns what computes the new columns of the texts.
            options: What the results depend on.
            compute: Device, threads (0: one) and arithmetic of a worker.
            needs: Runs and files that the results depend on; None for one that was not given.
            errors: What to do about bytes that are not UTF-8.
            quiet: Print no progress.
            other_columns: Further columns of texts that are computed with.
        """
        from heed.cluster.corpus import Work, compute_corpus
        from heed.cluster.parts import input_files, text_column
        from heed.cluster.ray_cluster import Cluster

        assert self.output is not None
        gpus = {"cpu": 0, "cuda": 1}.get(compute.device)
        if gpus is None:
            raise UsageError(f"--ray takes --device cpu or cuda, of which each worker gets one; got {compute.device}.")
        cluster = Cluster(self.ray or "", quiet)
        files, column = input_files(self.input or (), self.column, quiet)
        for name in other_columns:
            for file in files:
                text_column(file, name)
        own = replace(compute, threads=compute.threads or 1)
        if not gpus:
            opening(own)  # what is wrong with the run or the options is found here, before the cluster starts
        work = Work(
            verb, partial(opening, own), (column, *other_columns),
            _as_json({"--precision": compute.precision, "--errors": errors, **options}),
            tuple(path.absolute() for path in needs if path is not None), errors, own.threads, gpus,
        )  # fmt: skip
        compute_corpus(work, files, self.output, cluster, quiet)
        message(f"results: {self.output}", quiet)


def refuse_with_ray(flags: Mapping[str, object]) -> None:
    """Raise UsageError for a flag that was given, as its value says, and has no meaning for a corpus."""
    if found := [flag for flag, value in flags.items() if value]:
        raise UsageError(f"{found[0]} cannot be combined with --ray.")


def changes_of(*groups: Any) -> dict[str, Any]:
    """The options that were given, by their flags, from groups of flags."""
    return {
        flag: value for group in groups for flag, value in zip(flags_given(group), given(group).values(), strict=True)
    }


def with_whole_paths(group: Group) -> Group:
    """The same flags with absolute paths, as a worker may run in another folder."""
    paths = {
        name: value.absolute() if isinstance(value, Path) else [path.absolute() for path in value]
        for name, value in given(group).items()
        if isinstance(value, Path) or (isinstance(value, list) and isinstance(value[0], Path))
    }
    return replace(group, **paths)


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [str(each) for each in value] if isinstance(value, (list, tuple)) else
        str(value) if isinstance(value, Path) else value
        for name, value in options.items()
    }  # fmt: skip
