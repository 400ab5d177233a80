"""Run folder of an imported model: recipe, tokenizers and weights, without data or checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from heed.core.config import to_toml
from heed.core.files import atomic_folder, storage_errors
from heed.core.run_files import RECIPE, WEIGHTS, RunFiles
from heed.nn.weight_file import save_weights
from heed.recipe import Recipe
from heed.tasks.prepare import vocabulary_digests
from heed.text.tokenizers import Tokenizer, save_in_run


def write_run(
    out: Path, recipe: Recipe, tokenizers: Mapping[str, Tokenizer], weights: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write the run folder `out`, completely or not at all.

    `tokenizers`: that of each side, which may be the same. `metadata`: kept with the weights.
    """
    with storage_errors("write the run", path=out), atomic_folder(out, parents=True) as new:
        files = RunFiles(new)
        with files.write(RECIPE, "w") as file:
            file.write(to_toml(recipe))
        for side, tokenizer in tokenizers.items():
            is_shared = len(set(tokenizers.values())) == 1
            save_in_run(tokenizer, files, "tokenizer.json" if is_shared else f"tokenizer.{side}.json")
        save_weights(new / WEIGHTS, weights, {**(metadata or {}), **vocabulary_digests(tokenizers)})
