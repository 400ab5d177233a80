"""Does a run folder stay whole and usable in whatever order it is resumed, averaged, scored and pruned?"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from command import call
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from toy import prepared, trainer_of, without_shape_checks, write_pairs

from heed.integrity import verify
from heed.run import Run

__all__ = ["without_shape_checks"]

OPTIONAL = ["data/hashes", "data/words.json", "scores.jsonl", "validation.json", "report.md", "metrics.jsonl"]
"""What may be removed from a run that is then still used and resumed."""


class RunFolder(RuleBasedStateMachine):
    """A run, and what a user does to it."""

    @initialize()
    def train(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.steps, self.resumable = 2, True
        run = prepared(self.folder, training__max_steps=2, training__eval_every=2, training__save_every=1)
        trainer_of(run).run()
        self.run = run.folder
        self.test = write_pairs(self.folder, "test", 10)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @precondition(lambda self: self.resumable)
    @rule(by_hand=st.booleans())
    def resume(self, by_hand: bool) -> None:
        self.steps += 1
        words = ["train", "--resume", self.run]
        if by_hand:
            recipe = self.run / "recipe.toml"
            text = recipe.read_text(encoding="utf-8")
            recipe.write_text(
                text.replace(f"max_steps = {self.steps - 1}", f"max_steps = {self.steps}"), encoding="utf-8"
            )
        else:
            words.append(f"--training.max_steps={self.steps}")
        result = call(*words)
        assert result.code == 0, result.err
        assert ("was changed after heed wrote it" in result.err) == by_hand

    @precondition(lambda self: self.resumable)
    @rule()
    def average(self) -> None:
        out = self.folder / f"average-{len(list(self.folder.iterdir()))}"
        result = call("average", self.run, "--last", "2", "--out", out)
        assert result.code == 0, result.err
        self.run, self.resumable = out, False

    @rule()
    def evaluate(self) -> None:
        result = call("evaluate", self.run, "--src", self.test[0], "--ref", self.test[1])
        assert result.code == 0, result.err
        assert "was changed" not in result.err

    @rule(name=st.sampled_from(OPTIONAL))
    def remove(self, name: str) -> None:
        path = self.run / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    @rule()
    def move(self) -> None:
        self.run = self.run.rename(self.run.with_name(f"{self.run.name}x"))

    @invariant()
    def is_whole_and_usable(self) -> None:
        assert not [each for each in verify(Run(self.run)) if each.is_damaged]
        result = call("translate", self.run, stdin="ba ce\n")
        assert (result.code, len(result.lines)) == (0, 1), result.err
        assert "was changed" not in result.err


TestRunFolder = RunFolder.TestCase
TestRunFolder.settings = settings(max_examples=3, stateful_step_count=5, deadline=None)
