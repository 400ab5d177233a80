"""Sentence pairs with every kind of fault that the data doctor counts, in a random order."""

from __future__ import annotations

import random

FAULTS = (
    ("", "leer"), ("Kopie bleibt Kopie", "Kopie bleibt Kopie"), ("nul\0 byte here", "NUL"), ("control \x07", "a\rb"),
    ("<b>bold</b> &amp; more", "fett"), ("schÃ¶n damaged", "ok"), ("\ufeffmark", "mark"), ("a\u2028b", "c"),
    ("Latin with \u0430 in a wаrd", "x"), ("e\u0301 not composed", "é"), ("ALL IN UPPER CASE", "ALLES IN GROSS"),
    ('"quoted ""as"" CSV"', '"zitiert"'), ("tokenised , with spaces .", "mit , Leerzeichen ."),
    ("Русский текст без латиницы.", "日本語の文です。"), ("short", "long " * 40), ("x" * 1200, "y" * 1100),
    ("very " * 1300, "long"),
)  # fmt: skip


def messy_pairs(number: int, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs of which a part repeats earlier ones, wholly or on one side."""
    dice = random.Random(seed)
    pairs: list[tuple[str, str]] = []
    for _ in range(number):
        chance = dice.random()
        if chance < 0.1:
            pair = dice.choice(FAULTS)
        elif pairs and chance < 0.2:
            pair = dice.choice(pairs)
        elif pairs and chance < 0.3:
            pair = dice.choice(pairs)[0], f"another {dice.random()}"
        else:
            words = [f"w{dice.randrange(100)}" for _ in range(dice.randint(1, 30))]
            pair = " ".join(words) + " .", " ".join(dice.choices(words, k=len(words) + 2))
        pairs.append(pair)
    return pairs
