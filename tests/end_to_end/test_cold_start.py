"""Opening a run does not import PyTorch's compiler, which takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
PROGRAM = """
import sys
import torch
from random_models import CONFIGS, VOCABULARIES
import heed
from heed.models import build_model

assert len(heed.load(sys.argv[1]).translate(["ba"])) == 1
for config in CONFIGS.values():
    with torch.device("meta"):
        build_model(config, VOCABULARIES)
print(*sorted({"sympy", "torch._dynamo", "torch._inductor"} & set(sys.modules)))
"""


def test_opening_any_run_and_translating_imports_no_compiler() -> None:
    run = TESTS / "fixtures" / "run-v1" / "translation"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(run)], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
