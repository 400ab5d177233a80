"""Comparison of an exported model with heed's: both compute the validation text, and what was found is written down.

Each token of the target has a log-probability in both programs, and translators search both with the same options. An
export that differs is refused. Where the other program is not installed, the file says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from heed.core.config import Config
from heed.core.errors import DataError
from heed.data.batch import source_from_ids
from heed.data.validation import VALID, read_valid
from heed.decoding.options import SearchOptions
from heed.decoding.scoring import score_rows
from heed.metrics import score_outputs
from heed.models import MODELS
from heed.run import Run
from heed.text.vocabulary import EOS_ID, PAD_ID

FILE = "verification.json"
NUM_LINES = 200
MAX_TOKENS = 100
"""Tokens of a text that are compared."""
LARGEST_DIFFERENCE = 1e-3
"""Of the log-probabilities of a token, in nats. Sums in another order differ by some 1e-5."""
FEWEST_EQUAL = 0.95
"""Share of outputs that both programs write alike; hypotheses of nearly the same score may change places."""
WITHOUT_VALIDATION = ("This is a test.", "Two dogs are running on the beach.", "He said: 'No, not before 8.30!'")
"""Lines for runs without validation data, such as imported ones."""


class Findings(Config):
    """The contents of `verification.json`."""

    format: str
    """The exported format."""
    program: str
    """The other program, with its version."""
    verified: bool
    """Whether the other program has computed the text."""
    reason: str = ""
    """Why it has not."""
    num_lines: int = 0
    """Lines of validation text."""
    num_spelling: int = 0
    """Lines that spell a piece that the other program reads as special: only their probabilities were compared."""
    num_tokens: int = 0
    """Tokens whose log-probabilities were compared."""
    largest_difference: float | None = None
    """The largest difference of the log-probabilities of a token, in nats."""
    num_ended: int = 0
    """Outputs that ended before the limit."""
    equal_outputs: float | None = None
    """Share of them that are the same with the same search."""
    search: str = ""
    """That search."""
    bleu_here: float | None = None
    """BLEU of heed's outputs with the run's own search."""
    bleu_there: float | None = None
    """BLEU of the other program's outputs."""
    signature: str = ""
    """Of BLEU."""
    num_measured: int | None = None
    """Lines that BLEU was measured on, if the others were needed to choose the bias."""
    end_bias: float | None = None
    """Added to the log-probability of the end of sentence, where the other program's search needs it."""

    def summary(self) -> str:
        """One line for the user."""
        if not self.verified:
            return f"not verified: {self.reason}"
        parts = [f"{self.num_lines:,} lines"]
        if self.equal_outputs is not None:
            parts.append(f"{self.equal_outputs:.1%} of the outputs are equal")
        if self.bleu_there is not None:
            where = f" on {self.num_measured:,} lines" if self.num_measured else ""
            parts.append(f"BLEU {self.bleu_here:.2f} in heed, {self.bleu_there:.2f} there{where}")
        if self.end_bias:
            parts.append(f"a bias of {self.end_bias:g} is added to the end of sentence there")
        if self.num_spelling:
            parts.append(
                f"{self.num_spelling:,} of the lines spell a special piece, such as </s>, which is text in heed and "
                "that piece there, so that their pieces were not compared"
            )
        parts.append(f"log-probabilities differ by at most {self.largest_difference:.1e}")
        return f"verified with {self.program}: {', '.join(parts)}"


class Program(Protocol):
    """Another program with an exported model."""

    name: str
    """Its name and version."""
    options: SearchOptions | None
    """The options of its search; None if it does not translate."""
    special: tuple[str, ...] = ()
    """Pieces that its own tokenizer reads as such where a text spells them."""

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> Sequence[float]:
        """The log-probability of each token of a target and of its end. Ids are heed's, without ends."""
        ...

    def read(self, line: str) -> Sequence[int] | None:
        """The ids of a source or text by the program's own tokenizer, without ends; None if it has none."""
        ...

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translations by the program's own tokenizer and search."""
        ...

    def rewritten(self, text: str) -> str:
        """An output of heed with the characters that the program writes for others, as it does whatever the model."""
        return text


def missing(packages: Sequence[str]) -> str:
    """Why a program cannot be opened; empty if all its packages are installed."""
    absent = [package for package in packages if find_spec(package) is None]
    return f"not installed: {', '.join(absent)} (pip install {' '.join(absent)})" if absent else ""


def verify(run: Run, program: Program, format: str) -> Findings:
    """Compare a program that has opened an exported model with the run. Raises DataError if they differ."""
    rows, has_references = validation_rows(run)
    lines = [row[0] for row in rows]
    spells = [any(piece in run.recipe.data.normaliser.apply(line) for piece in program.special) for line in lines]
    _require_equal_pieces(run, program, [line for line, odd in zip(lines, spells, strict=True) if not odd])
    pairs = [_encoded(run, row) for row in rows]
    largest, num_tokens = 0.0, 0
    for source, target in pairs:
        here, there = _log_probs(run, source, target), program.log_probs(source, target)
        if len(here) != len(there):
            raise DataError(f"{program.name} scores {len(there)} tokens of a text that has {len(here)} in heed.")
        largest = max([largest, *(abs(a - b) for a, b in zip(here, there, strict=True))])
        num_tokens += len(here)
    if not largest <= LARGEST_DIFFERENCE:  # NaN too
        raise DataError(
            f"{program.name} computes different probabilities: the log-probabilities of a token differ by "
            f"{largest:.2g}; at most {LARGEST_DIFFERENCE} is allowed. The export was not kept; please report this."
        )
    facts: dict[str, Any] = {
        "format": format, "program": program.name, "verified": True, "num_lines": len(rows),
        "num_spelling": sum(spells), "num_tokens": num_tokens, "largest_difference": largest,
    }  # fmt: skip
    if program.options is None:
        return Findings(**facts)
    there_texts, here_texts = program.translate(lines), outputs(run, lines, program.options)
    pairs_of_texts = [
        (there, program.rewritten(here))
        for there, (here, ended), odd in zip(there_texts, here_texts, spells, strict=True)
        if ended and not odd
    ]
    facts |= {"num_ended": len(pairs_of_texts), "search": _described(program.options)}
    if pairs_of_texts:
        differing = [pair for pair in pairs_of_texts if pair[0] != pair[1]]
        facts["equal_outputs"] = 1 - len(differing) / len(pairs_of_texts)
        if facts["equal_outputs"] < FEWEST_EQUAL:
            raise DataError(
                f"only {facts['equal_outputs']:.1%} of the outputs of {program.name} equal heed's; the first that "
                f"differs is {differing[0][0]!r:.80} instead of {differing[0][1]!r:.80}. The export was not kept."
            )
    if has_references:
        own_texts = [text for text, _ in outputs(run, lines, run.recipe.decoding)]
        references = [row[-1] for row in rows]
        here_bleu, there_bleu = bleu(run, own_texts, references), bleu(run, there_texts, references)
        facts |= {"bleu_here": here_bleu[0], "bleu_there": there_bleu[0], "signature": there_bleu[1]}
    return Findings(**facts)


def validation_rows(run: Run, most: int = NUM_LINES) -> tuple[list[tuple[str, ...]], bool]:
    """Some rows of a run's validation data, and whether there are any: a run without gets lines of any text.

    Raises DataError for a damaged file.
    """
    if not run.files.has(VALID):
        return [(line, line) for line in WITHOUT_VALIDATION], False
    valid = read_valid(run.folder)
    count = min(most, len(valid))
    return [tuple(map(str, valid[number * len(valid) // count])) for number in range(count)], True


def _require_equal_pieces(run: Run, program: Program, lines: Sequence[str]) -> None:
    """Raise DataError if the program's tokenizer cuts a line in another way."""
    normalise, tokenizer = run.recipe.data.normaliser.apply, run.tokenizers[run.sides[0]]
    before = run.predictor.before_source if len(run.sides) == 2 else ()
    for line in map(normalise, lines):
        here, there = [*before, *tokenizer.encode([line])[0]], program.read(line)
        if there is not None and list(there) != here:
            raise DataError(
                f"the tokenizer in {program.name} cuts {line!r:.80} into {list(there)}, not {here}. The export was "
                "not kept; please report this."
            )


def outputs(run: Run, lines: Sequence[str], options: SearchOptions) -> list[tuple[str, bool]]:
    """The translations of PyTorch's search, and whether each ended before the limit.

    Without the output checks, which no other program has.
    """
    options = options.model_copy(update={"guard": False})
    best = run.predictor.translator.translate(lines, options)
    return [(each.text, each.finished) for each in best]


def bleu(run: Run, texts: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU and its signature."""
    language, tokenised = run.predictor.languages[1] or None, run.recipe.data.tokenised
    [score] = score_outputs(texts, references, language, ["bleu"], 0, tokenised=tokenised)
    return score.value, score.signature


def _described(options: SearchOptions) -> str:
    if options.beam_size == 1:
        return "greedy"
    return f"beam {options.beam_size}, log-probability divided by length^{options.length_penalty:g}"


def _encoded(run: Run, row: Sequence[str]) -> tuple[list[int], list[int]]:
    """The ids of a row: none for a source that the model does not have."""
    normalise = run.recipe.data.normaliser.apply
    most = min(MAX_TOKENS, getattr(run.recipe.model, "max_len", MAX_TOKENS + 2) - 2)
    ids = [run.tokenizers[side].encode([normalise(text)])[0][:most] for side, text in zip(run.sides, row)]  # noqa: B905
    return ([*run.predictor.before_source, *ids[0]], ids[1]) if len(run.sides) == 2 else ([], ids[0])


def _log_probs(run: Run, source: Sequence[int], target: Sequence[int]) -> Sequence[float]:
    """As `Program.log_probs`, by the run. Of a masked language model, of each token of a text without masks."""
    model: Any = run.model
    if MODELS[run.recipe.model.kind].generates:
        return score_rows(model, [target], run.device, [source] if source else None)[0].log_probs
    with torch.inference_mode():
        features = model.read(source_from_ids([target], EOS_ID, PAD_ID))
        log_probs = model.head.logits(features)[0].log_softmax(-1)
    chosen: list[float] = log_probs.gather(1, torch.tensor([[*target, EOS_ID]]).T)[:, 0].tolist()
    return chosen
