"""Opening a run and training one do not import PyTorch's compiler, which takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
COMPILER = """
print(*sorted({"sympy", "torch._dynamo", "torch._inductor"} & set(sys.modules)))
"""
OPENING = """
import sys
import torch
from random_models import CONFIGS, VOCABULARIES
import heed
from heed.models import build_model

assert len(heed.load(sys.argv[1]).translate(["ba"])) == 1
for config in CONFIGS.values():
    with torch.device("meta"):
        build_model(config, VOCABULARIES)
"""
TRAINING = """
import sys
from pathlib import Path
import heed
from toy import tiny_keys
from heed.training.optimizers import OPTIMIZERS

for optimizer in OPTIMIZERS:
    keys = tiny_keys(Path(sys.argv[1]), training__optimizer=optimizer, training__max_steps=4)
    heed.train(keys, Path(sys.argv[1]) / optimizer, quiet=True)
"""


def modules_of_the_compiler(program: str, argument: Path) -> str:
    """Those that are imported after a program."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, "-c", program + COMPILER, str(argument)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_opening_any_run_and_translating_imports_no_compiler() -> None:
    assert modules_of_the_compiler(OPENING, TESTS / "fixtures" / "run-v1" / "translation") == ""


def test_training_and_saving_with_any_optimiser_imports_no_compiler(tmp_path: Path) -> None:
    assert modules_of_the_compiler(TRAINING, tmp_path) == ""
