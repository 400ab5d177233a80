"""Unusual inputs: a run's outputs for inputs that break translation models, and the flags of the output checks.

    python benchmarks/odd_inputs.py runs/en-de

Inputs that users of other toolkits report: single words, capitals, digits, addresses, emoji, another language, a
thousand words. Each line is translated alone and together with all others, which must give the same result. Prints a
Markdown table with the best hypothesis, its confidence if the run has learned one (`heed evaluate RUN --calibrate`),
and, if the output checks flagged it, its replacement.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from heed.api import load
from heed.core.environment import num_cpus
from heed.decoding.hypothesis import Hypothesis
from heed.nn.device import set_threads
from heed.tasks.predictor import Predictor

SENTENCE = "A man in a blue shirt is standing on a ladder cleaning a window."
INPUTS = {
    "a sentence": SENTENCE,
    "one word": "dog",
    "one word, capital": "Yes",
    "one letter": "a",
    "two words": "Thank you",
    "all capitals": SENTENCE.upper(),
    "no capitals, no full stop": "two dogs are playing in the snow",
    "digits": "1234567890",
    "a sum": "12.5 + 7.25 = 19.75",
    "a telephone number": "+49 30 1234 5678",
    "a URL": "https://example.org/a/b?c=d&e=f",
    "an e-mail address": "jane.doe@example.org",
    "a sentence with a URL": "See https://example.org for more.",
    "emoji": "🙂🙂🙂",
    "a sentence with emoji": "Two dogs 🐕🐕 are playing in the snow ❄️.",
    "French": "Un homme se tient debout sur une échelle et nettoie une fenêtre.",
    "German": "Ein Mann steht auf einer Leiter und putzt ein Fenster.",
    "Russian": "Две собаки играют в снегу.",
    "Japanese": "二匹の犬が雪の中で遊んでいます。",
    "a word many times": "dog " * 50,
    "a letter many times": "a" * 200,
    "signs": "?!... --- ***",
    "quotes": '"',
    "HTML": "<p>A <b>dog</b> runs.</p>",
    "code": "for (int i = 0; i < n; i++) { sum += a[i]; }",
    "a list of names": "John Smith, Mary Jones, Paul Brown, New York",
    "a thousand words": " ".join([SENTENCE] * 80)[:5200],
    "nothing": "",
    "spaces": "   ",
}  # fmt: skip


def row(name: str, source: str, plain: Hypothesis, guarded: Hypothesis, same: bool) -> str:
    """A row of the table."""
    flags = ", ".join(guarded.flags) + (" → next" if guarded.fallback else "")
    sure = "" if plain.confidence is None else f"{plain.confidence:.3f}"
    cells = [name, _shown(source), _shown(plain.text), sure, flags, _shown(guarded.text) if guarded.fallback else ""]
    return f"| {' | '.join(cells)} |" + ("" if same else " differs alone!")


def _shown(text: str) -> str:
    short = text if len(text) <= 60 else f"{text[:56]} … ({len(text):,} characters)"
    return short.replace("|", "\\|").replace("<", "&lt;") or "(empty)"


def table(loaded: Predictor, inputs: dict[str, str]) -> Sequence[str]:
    """Translate all inputs with and without output checks, together and alone."""
    options = loaded.run.recipe.decoding
    lines = list(inputs.values())
    plain = loaded.hypotheses(lines, options.model_copy(update={"guard": False}))
    guarded = loaded.hypotheses(lines, options)
    assert len(plain) == len(guarded) == len(lines)
    alone = [loaded.hypotheses([line], options)[0] for line in lines]
    rows = [
        row(name, source, p, g, a.text == g.text)
        for (name, source), p, g, a in zip(inputs.items(), plain, guarded, alone, strict=True)
    ]
    return ["| input | | best hypothesis | confidence | flags | replacement |", f"|{' --- |' * 6}", *rows]


def main() -> None:
    """Read the arguments, translate, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    set_threads(given.threads or num_cpus())
    print("\n".join(table(load(given.run), INPUTS)))


if __name__ == "__main__":
    main()
