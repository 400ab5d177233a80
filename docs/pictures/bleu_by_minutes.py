"""Draw bleu-by-minutes.svg, next to this file, from the tables of docs/results/translation.md."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 56, 24, 46, 48
MINUTES, BLEU = 52, 42
TITLE = "Multi30k en→de, validation, greedy: BLEU by minutes of one core"
COLOURS = {"default": "#0b62c4", "wide": "#b3541e"}


def cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading that has minutes."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        cells(line)
        for line in section.splitlines()
        if re.match(r"\| (minutes|seed \d: minutes|seed \d|BLEU) \| [\d.]+ \|", line)
    ]


def points(minutes: list[str], scores: list[str]) -> list[tuple[float, float]]:
    """Pairs of minutes and BLEU."""
    return [(float(x), float(y)) for x, y in zip(minutes[1:], scores[1:], strict=True)]


def curves(page: str) -> dict[str, list[list[tuple[float, float]]]]:
    """The three seeds of the default recipe, and those of the wider model."""
    minutes, *seeds = rows_of(page, "Multi30k en→de: the default recipe, three seeds")
    wide = rows_of(page, "Multi30k en→de: a wider model, three seeds")
    return {
        "default": [points(minutes, seed) for seed in seeds],
        "wide": [points(wide[place], wide[place + 1]) for place in range(0, len(wide), 2)],
    }


def x_of(minutes: float) -> float:
    """The place of a time on the horizontal axis."""
    return LEFT + minutes / MINUTES * (WIDTH - LEFT - RIGHT)


def y_of(bleu: float) -> float:
    """The place of a score on the vertical axis."""
    return HEIGHT - BOTTOM - bleu / BLEU * (HEIGHT - TOP - BOTTOM)


def draw(page: str) -> str:
    """The picture. It has its own light ground, so that it can be read in dark mode, too."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>BLEU on validation by minutes of one core</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fbfbfb"/>',
        f'<text x="{LEFT}" y="24" fill="#222" font-size="14">{TITLE}</text>',
    ]
    for bleu in range(0, BLEU, 10):
        y = y_of(bleu)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{bleu}</text>')
    for minutes in range(0, MINUTES, 10):
        x, y = x_of(minutes), HEIGHT - BOTTOM + 20
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle" fill="#444">{minutes}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" text-anchor="end" fill="#444">minutes</text>')
    names = {
        "default": "what heed chooses today: 2.35 M parameters, three seeds",
        "wide": "the wider model before: 6.56 M parameters, three seeds",
    }
    for place, (name, seeds) in enumerate(curves(page).items()):
        for seed in seeds:
            line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in seed)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.8"/>')
        y = HEIGHT - BOTTOM - 50 + 22 * place
        parts.append(f'<path d="M{LEFT + 200} {y}h26" stroke="{COLOURS[name]}" stroke-width="3"/>')
        parts.append(f'<text x="{LEFT + 234}" y="{y + 4}" fill="#222">{names[name]}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    text = (HERE.parent / "results" / "translation.md").read_text(encoding="utf-8")
    (HERE / "bleu-by-minutes.svg").write_text(draw(text), encoding="utf-8")
