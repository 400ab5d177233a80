"""Improving a translator in rounds: synthetic pairs, a new model, and a test on the validation data that decides.

A round has five steps, each of which is done once, however often the work is interrupted:

1. The best translator so far translates the training sources and the text in the source language.
2. A reverse model is trained on the exchanged pairs. From the second round on it learns from the synthetic pairs, too,
   and replaces the earlier one if it is better (iterative back-translation, Hoang et al. 2018). A reverse model that
   the user gives is used in all rounds.
3. The reverse model translates the training targets and the text in the target language.
4. A candidate is trained on the real and the synthetic pairs, with the recipe of the run.
5. Both translate the validation data, and the better one is kept.

A round that is not kept is the last one: another would differ from it by chance only.

Candidates begin with random weights, or for a fine-tuned run with those with which it began; reverse models begin with
random weights. On request, a model that begins like the candidates first learns to restore masked sentences of both
languages (`restoring.py`), and all others begin with its weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

from pydantic import ValidationError

from heed.core.config import flattened
from heed.core.environment import data_dir
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_folder, atomic_write, is_debris, sole_writer, storage_errors
from heed.core.own_scorer import SCORER
from heed.core.progress import format_minutes, message, warn
from heed.data.validation import read_valid
from heed.evaluation.outputs import compare_runs, score_changes
from heed.evaluation.score_log import weights_of
from heed.evaluation.test_set import HeldOut
from heed.report.page import refresh_report
from heed.report.validation import add_section
from heed.run import RESTORING, Run
from heed.tasks.translation.data import PartConfig, TranslationData
from heed.tasks.translation.improvement_checks import require_possible
from heed.tasks.translation.improvement_plan import Plan, Record, Trial, decide, plan_for, values
from heed.tasks.translation.monolingual import SIDES, reasons
from heed.tasks.translation.synthetic_pairs import (
    MOST_RESTORED,
    MOST_TEXT,
    Texts,
    keep_translated,
    mirrored,
    num_kept,
    plain_search,
    synthetic_part,
    translate_pairs,
    translate_text,
    with_synthetic,
)
from heed.text.readers import fingerprint_file
from heed.training.metrics_log import read_metrics

RECORD = "improvement.json"
"""What the improvement was made from, its plan, and the steps and tests so far."""
RESTORED = "restoring sentences"
"""The name of this step."""
TIMED = 32
"""Lines that are translated to measure the speed."""


Train = Callable[[Run | None, Mapping[str, Any], Path, Path | None, bool], None]


@dataclass(frozen=True)
class Tools:
    """What the caller does: open a run folder as a predictor, and train a run.

    `train(like, keys, folder, init, translates)` trains with the recipe of the run `like`, or with heed's own settings,
    until the run in the folder is complete, and continues an interrupted training. It begins with the weights of the
    run `init`, or with random ones. `translates`: whether it is a translator; if not, nothing is said about its data
    and what to expect of it, and nothing in the data stops it.
    """

    load: Callable[[Path], Any]
    train: Train


class Improvement:
    """The improvement of a translator, in the folder `OUT.improve`; its outcome is the run folder `out`."""

    def __init__(
        self, run: Run, out: Path, mono: Mapping[str, Sequence[Path]], reverse: Path | None, tools: Tools, quiet: bool,
        force: bool = False, init: Path | None = None, restore: bool = False,
    ) -> None:  # fmt: skip
        """`mono`: files of text in one language, by side; `reverse`: a translator for the opposite direction.

        `force`: use text that looks like the other language; `init`: the run whose weights the run began with;
        `restore`: let new models begin with one that restores masked sentences of the pairs and the text.
        """
        self.run = run
        self.out = out
        self.mono = mono
        self.reverse = reverse
        self.tools = tools
        self.quiet = quiet
        self.force = force
        self.init = init
        self.folder = out.with_name(f"{out.name}.improve")
        data: TranslationData = run.recipe.data
        self.data = data.model_copy(update={"dir": str(data_dir() or data.dir)})  # where candidates read it
        self.texts = Texts(self.folder / "text", self.data)
        self.record: Record
        self._reads_text = run.blank_model.reads_target_text
        """Whether the model learns from text in the target language, and needs no synthetic pairs."""
        self.restore = restore

    def improve(self, max_minutes: float | None) -> bool:
        """Do what is left to do; whether there is a better translator, in `out`. Raises HeedError."""
        require_possible(self.run, self.mono, self.reverse, self.init, self.restore, self.tools.load, self.quiet)
        made_from = self._inputs(max_minutes)
        with storage_errors("write the improvement", path=self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with sole_writer(self.folder, "improving in"):
                self._begin(max_minutes, made_from)
                if not self.record.finished:
                    self._do_rounds()
                    self._note(finished=True)
                return self._finish()

    # --- the beginning ----------------------------------------------------------------------------------

    def _begin(self, max_minutes: float | None, made_from: dict[str, str]) -> None:
        """Read the record, or examine the data and plan. Raises DataError for a record of other inputs."""
        path = self.folder / RECORD
        if path.exists():
            try:
                self.record = Record.model_validate_json(path.read_bytes())
            except ValidationError as error:
                raise DataError(f"{path} is damaged. Remove {self.folder}, or name another --out.") from error
            if changed := sorted(
                name for name in {*made_from, *self.record.made_from}
                if made_from.get(name) != self.record.made_from.get(name)
            ):  # fmt: skip
                raise DataError(
                    f"{self.folder} was made from something else: {', '.join(changed)} changed. Give the same files "
                    "and options to continue, or remove the folder, or name another --out."
                )
            if not self.record.finished:
                self.data.require_unchanged(self.run.corpus, self.run.folder)
            steps = len(self.record.minutes)
            message(f"continuing in {self.folder}: {steps} steps were finished before", self.quiet)
            return
        if self.out.exists():
            raise UsageError(f"--out {self.out} already exists. Name another one, or remove it first.")
        if not all(is_debris(each) or each.name == "text" for each in self.folder.iterdir()):
            raise UsageError(f"{self.folder} is not empty and was not made by heed improve. Name another --out.")
        self.data.require_unchanged(self.run.corpus, self.run.folder)
        left_out = self.texts.write(self.run, self.mono, self.force, MOST_RESTORED if self.restore else MOST_TEXT)
        for side, dropped in left_out.items():
            if self.mono[side]:
                kept, translated = (self.texts.num_lines(name, side) for name in ("text", "mono"))
                some = f", and {translated:,} of them are translated" if translated < kept else ""
                left = f"; left out: {reasons(dropped)}" if dropped else ""
                message(f"--mono-{side}: {kept:,} lines are used{some}{left}", self.quiet)
        if self.restore and not self.texts.write_restoring():
            raise DataError("--restore: the pairs and the text have too few sentences in which words can be masked.")
        plan = self._plan(max_minutes)
        self.record = Record(made_from=made_from, plan=plan, left_out={k: dict(v) for k, v in left_out.items()})
        self._show_plan()
        self._note()

    def _inputs(self, max_minutes: float | None) -> dict[str, str]:
        inputs = {"RUN": weights_of(self.run)}
        for flag, folder in (("--reverse", self.reverse), ("--init", self.init)):
            if folder is not None:
                inputs[flag] = weights_of(Run(folder))
        if self.restore:
            inputs["--restore"] = "given"
        for side, paths in self.mono.items():
            inputs |= {f"--mono-{side} {path.resolve()}": fingerprint_file(path)["sha256"] for path in paths}
        return inputs | {"--max-time": f"{max_minutes or 0:g} minutes"}

    def _plan(self, max_minutes: float | None) -> Plan:
        has_reverse = self.reverse is not None or self._reads_text
        if self._reads_text:
            plan = plan_for(None, 0, 0, True, False)
            return plan.model_copy(update={"rounds": 1, "max_minutes": max_minutes, "candidate": max_minutes})
        forward, back = (
            sum(self.texts.num_lines(name, side) for name in ("pairs", "mono")) for side in SIDES
        )  # fmt: skip
        speed = self._seconds_per_line(self.run.predictor.of_validation().predictor, "src")
        of_reverse = speed
        if self.reverse is not None:
            of_reverse = self._seconds_per_line(self.tools.load(self.reverse).of_validation().predictor, "tgt")
        translating = (forward * speed + back * of_reverse) / 60
        return plan_for(max_minutes, self._run_minutes(), translating, has_reverse, self.restore)

    def _seconds_per_line(self, predictor: Any, side: str) -> float:
        lines = self.texts.path("pairs", side).read_text(encoding="utf-8").splitlines()[:TIMED]
        translator, options = predictor.line_translator(with_tokens=False), plain_search(predictor.decoding)
        translator.translate(lines[:1], options)  # the first call prepares the model
        begin = time.monotonic()
        translator.translate(lines, options)
        return (time.monotonic() - begin) / max(len(lines), 1)

    def _run_minutes(self) -> float:
        """How long the run was trained; 0 if that is not known."""
        folders = [self.run.folder, *([self.run.folder / SCORER] if self.run.recipe.training.scorer else [])]
        logs = map(read_metrics, folders)
        return sum(max((event.get("seconds", 0.0) for event in log), default=0.0) for log in logs) / 60

    def _show_plan(self) -> None:
        plan, known = self.record.plan, self._run_minutes()
        like_run = f"about {format_minutes(round(known, 1))}, as {self.run.folder}" if known else "not known"
        lines = [f"plan: up to {plan.rounds} rounds, as long as each is better" if plan.rounds > 1 else "plan: 1 round"]
        if not self._reads_text:
            some = f" ({plan.share:.0%} of the lines)" if plan.share < 1 else ""
            if plan.restoring != 0:
                restoring = like_run if plan.restoring is None else _at_most(plan.restoring)
                lines.append(f"  restoring masked sentences, with which the others begin: {restoring}")
            reverse = like_run if plan.reverse is None else _at_most(plan.reverse)
            lines += [
                f"  reverse model: {reverse}" if self.reverse is None else f"  reverse model: {self.reverse}",
                f"  translating, forward and back{some}: about {format_minutes(round(plan.translating, 1))}",
            ]
        candidate = like_run if plan.candidate is None else _at_most(plan.candidate)
        lines.append(f"  candidate: {candidate}")
        lines.append(f"  test: {self.texts.num_lines('valid', 'src'):,} validation lines, twice")
        for line in lines:
            message(line, self.quiet)
        if self._reads_text:
            message(
                "advice: with text of the same kind, a Transformer may become better than phrases, even with 10,000 "
                "pairs: train one too (heed train --model.kind=transformer), and improve that run.", self.quiet,
            )  # fmt: skip
        if plan.candidate is not None and plan.candidate < known:
            like = f"{self.run.folder} had {format_minutes(round(known, 1))}"
            warn(f"a candidate may have less time than {like}, and more to learn: give a longer --max-time", self.quiet)

    # --- rounds -----------------------------------------------------------------------------------------

    def _do_rounds(self) -> None:
        begin = self._beginning()
        best, reverse, back = self.run.folder, self.reverse, self.folder / "round-1"
        for number in range(1, self.record.plan.rounds + 1):
            place = self.folder / f"round-{number}"
            if number > 1 and not self._has_time():
                message(f"no time is left for round {number}", self.quiet)
                return
            if self._reads_text:
                parts = [PartConfig(tgt=str(self.texts.path("mono", "tgt").absolute()))]
            else:
                forward = self._translate(number, place, best, is_forward=True)
                if self.reverse is None and self._new_reverse(number, place, reverse, forward, begin):
                    reverse, back = place / "reverse", place
                assert reverse is not None
                made_before = back != place and number > 1
                backward = self._parts(back, False) if made_before else self._translate(number, back, reverse, False)
                parts = [*forward, *backward]
            if not self._candidate(number, place, best, parts, begin):
                return
            best = place / "candidate"

    def _has_time(self) -> bool:
        """Whether half of a round would still fit."""
        plan = self.record.plan
        if plan.max_minutes is None:
            return True
        of_round = (plan.max_minutes - (plan.restoring or 0.0)) / plan.rounds
        return sum(self.record.minutes.values()) <= plan.max_minutes - of_round / 2

    def _beginning(self) -> Path | None:
        """The run whose weights candidates begin with: the user's, or one that restores masked sentences; or None."""
        plan = self.record.plan
        if plan.restoring == 0:
            return self.init
        name = RESTORING if self.init is None else f"{RESTORING}-from-{self.init.resolve().name}"
        folder = self.folder / name
        keys = {**_data_keys(self.texts.restoring()), "training.stop_metric": "perplexity"}
        keys |= self._limit(plan.restoring)
        self._once(RESTORED, lambda: self.tools.train(self.run, keys, folder, self.init, False), folder)
        return folder

    def _translate(self, number: int, place: Path, model: Path, is_forward: bool) -> list[PartConfig]:
        """Translate the pairs and the text with a model, and return the parts with these translations."""
        direction = "forward" if is_forward else "back"

        def work() -> None:
            predictor = self.tools.load(model).of_validation().predictor
            for name, translate in (("pairs", translate_pairs), ("mono", translate_text)):
                if lines := self._num_translated(name, is_forward):
                    where = place / f"{direction}-{name}"
                    message(f"round {number}: translating {lines:,} lines {direction} with {model}", self.quiet)
                    where.mkdir(parents=True, exist_ok=True)
                    translate(predictor, self.texts, is_forward, lines, where, self.quiet)
                    if not keep_translated(where):
                        message(f"round {number}: no translation passed the output checks", self.quiet)

        self._once(f"round {number}: translations {direction}", work)
        return self._parts(place, is_forward)

    def _num_translated(self, name: str, is_forward: bool) -> int:
        lines = self.texts.num_lines(name, SIDES[0] if is_forward else SIDES[1])
        return min(lines, max(1, round(self.record.plan.share * lines)))

    def _parts(self, place: Path, is_forward: bool) -> list[PartConfig]:
        direction = "forward" if is_forward else "back"
        names = [name for name in ("pairs", "mono") if self._num_translated(name, is_forward)]
        folders = [place / f"{direction}-{name}" for name in names]
        return [synthetic_part(folder, is_forward, self.data) for folder in folders if num_kept(folder)]

    def _new_reverse(
        self, number: int, place: Path, old: Path | None, forward: Sequence[PartConfig], begin: Path | None
    ) -> bool:
        """Train a reverse model, and whether it replaces the old one.

        It is like the run where it can begin with weights that know both languages, else what heed chooses for the
        exchanged pairs.
        """
        exchanged = self.texts.table("tgt", "src")
        like = self.run if self.record.plan.restoring != 0 else None
        keys: dict[str, Any] = _data_keys(exchanged, are_defaults_left_out=like is None)
        if like is None:
            minutes = self.run.recipe.training.max_minutes
            keys |= {"task": self.run.recipe.task, "seed": self.run.recipe.seed}
            keys |= {"training.max_minutes": minutes} if minutes else {}
        keys |= self._limit(self.record.plan.reverse)
        if old is not None:
            keys |= with_synthetic(exchanged, [*map(mirrored, forward)], self.texts.num_lines("pairs", "src"))
            if Run(old).blank_model.count_based:
                return False
        name = f"round {number}: reverse model"
        init = begin if like else None
        self._once(name, lambda: self.tools.train(like, keys, place / "reverse", init, True), place / "reverse")
        return old is None or self._test(number, "reverse model", old, place / "reverse", "", exchanged=True)

    def _candidate(self, number: int, place: Path, best: Path, parts: Sequence[PartConfig], begin: Path | None) -> bool:
        """Train a candidate, and whether it is better than the best translator so far."""
        num_real = self.texts.num_lines("pairs", "src")
        keys = {**with_synthetic(self.data, parts, num_real), **self._limit(self._minutes_of_candidate(number))}
        folder = place / "candidate"

        def work() -> None:
            self.tools.train(self.run, keys, folder, begin, True)
            if list(read_valid(folder)) != list(read_valid(self.run.folder)):
                raise DataError(
                    f"{folder} has other validation data than {self.run.folder}, so they cannot be compared. Remove "
                    f"{folder}, and give the same command again."
                )

        self._once(f"round {number}: candidate", work, folder)
        pairs = f"{num_real:,} real"
        for part in parts:
            path = Path(part.src or part.tgt)
            pairs += f", {fingerprint_file(path)['lines']:,} {path.parent.name}"
        return self._test(number, "translator", best, folder, pairs)

    def _minutes_of_candidate(self, number: int) -> float | None:
        """Its time, with what the reverse model and, in the first round, restoring left of their own."""
        plan = self.record.plan
        if plan.candidate is None:
            return None
        steps = [(plan.reverse, f"round {number}: reverse model")]
        if number == 1:
            steps.append((plan.restoring, RESTORED))
        left = (planned - self.record.minutes.get(name, 0.0) for planned, name in steps if planned)
        return plan.candidate + sum(max(0.0, minutes) for minutes in left)

    def _limit(self, minutes: float | None) -> dict[str, Any]:
        return {} if minutes is None else {"training.max_minutes": round(minutes, 2)}

    def _test(self, number: int, model: str, old: Path, new: Path, pairs: str, exchanged: bool = False) -> bool:
        """Whether a new model is better than the old one on the validation data; the first time, by a test."""
        known = [trial for trial in self.record.trials if (trial.round, trial.model) == (number, model)]
        if not known:
            rows = [row[1::-1] if exchanged else row[:2] for row in read_valid(self.run.folder)]
            first, second = (self.tools.load(folder).of_validation() for folder in (old, new))
            test = HeldOut(("validation.src", "validation.tgt"), rows)
            before, after = compare_runs(first, second, test)
            decision = decide(after.against_first)
            verdict = "kept" if decision.accepted else "not kept"
            message(
                f"round {number}, {model}: {score_changes(before, after)}; {verdict}: {decision.reason}", self.quiet
            )
            minutes = self.record.minutes[f"round {number}: {'candidate' if model == 'translator' else model}"]
            known = [
                Trial(
                    round=number, model=model, before=values(before), after=values(after),
                    p=after.against_first["bleu"].p_bootstrap, kept=decision.accepted, pairs=pairs, minutes=minutes,
                )
            ]  # fmt: skip
            self._note(trials=[*self.record.trials, *known])
        return known[0].kept

    def _once(self, name: str, work: Callable[[], None], trained: Path | None = None) -> None:
        """Do a step unless it is finished, and note how long it took; a training that continued, all of it."""
        if name in self.record.minutes:
            return
        begin = time.monotonic()
        work()
        seconds = time.monotonic() - begin
        if trained is not None:
            seconds = max(seconds, *(event.get("seconds", 0.0) for event in read_metrics(trained)))
        self._note(minutes={**self.record.minutes, name: seconds / 60})

    def _note(self, **changes: Any) -> None:
        """Write the record, with changes."""
        self.record = self.record.model_copy(update=changes)
        with atomic_write(self.folder / RECORD, "w") as file:
            file.write(self.record.model_dump_json(indent=1) + "\n")

    # --- the end ----------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        """Copy the best run to `out`, with a table of what was tried, and print that table."""
        kept = [trial for trial in self.record.trials if trial.model == "translator" and trial.kept]
        text = self.record.render(self.run.folder.resolve().name, self.texts.num_lines("valid", "src"))
        if kept and not self.out.exists():
            best = self.folder / f"round-{kept[-1].round}" / "candidate"
            with atomic_folder(self.out) as new:
                copytree(best, new, dirs_exist_ok=True, ignore=ignore_patterns("checkpoints"))
                add_section(Run(new), f"## How it was improved\n\n{text}")
        if kept:
            refresh_report(Run(self.out))
        message(text, self.quiet)
        return bool(kept)


def _data_keys(data: TranslationData, are_defaults_left_out: bool = False) -> dict[str, Any]:
    """The keys of a `[data]` table: all, to override those of a recipe, or those that heed does not choose."""
    return data.given_keys() if are_defaults_left_out else flattened(data.model_dump(mode="json"), "data.")


def _at_most(minutes: float) -> str:
    return f"at most {format_minutes(round(minutes, 1))}"
