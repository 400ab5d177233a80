"""The figures and the pictures of the course's chapters, from what their commands left in `runs/course`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLOURS = ("#33658a", "#b5432a", "#4f7a4a", "#8a5fa8", "#c98a1b", "#7a7a7a")


@dataclass(frozen=True)
class Measured:
    """The figures of a chapter by the names that its page gives them, and what draws its picture."""

    figures: Mapping[str, float]
    picture: Callable[[Any], None]
    """Draws into a figure of matplotlib."""


def draw(measured: Measured, path: Path) -> None:
    """Write a picture as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    measured.picture(figure)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=100, format="png", metadata={"Software": None})


def last_score(run: Path, test: str = "") -> dict[str, Any]:
    """The newest entry of `heed evaluate` in a run's `scores.jsonl`, on a test set of this name or any."""
    lines = [json.loads(line) for line in (run / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    newest: dict[str, Any] = [line for line in lines if not test or line["test"][0]["name"] == test][-1]
    return newest


def score(run: Path, name: str, test: str = "") -> float:
    """One of these scores."""
    return float(next(each["value"] for each in last_score(run, test)["scores"] if each["name"] == name))


def bars(axes: Any, values: Mapping[str, float], label: str, digits: int = 2) -> None:
    """Horizontal bars, the first on top, each with its value."""
    places = range(len(values))[::-1]
    drawn = axes.barh(list(places), list(values.values()), color=COLOURS[0], height=0.6)
    axes.bar_label(drawn, fmt=f"%.{digits}f", padding=3, fontsize="small")
    axes.set_yticks(list(places), list(values))
    axes.set_xlabel(label)


def finish(axes: Any, x_label: str, y_label: str) -> None:
    """Label the axes and the curves."""
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def unigrams(runs: Path) -> Measured:
    """Chapter 1: bits per byte of models that see no context, in words, pieces and characters."""
    names = {
        "uniform": "uniform, words", "unigram": "unigrams, words", "pieces": "unigrams, pieces",
        "characters": "unigrams, characters",
    }  # fmt: skip
    values = {title: score(runs / name, "bits per byte") for name, title in names.items()}
    figures = {
        "perplexity per token, unigrams of words": score(runs / "unigram", "perplexity per token"),
        "perplexity per token, unigrams of characters": score(runs / "characters", "perplexity per token"),
        **{f"bits per byte, {title}": value for title, value in values.items()},
    }
    perplexities = {title: score(runs / name, "perplexity per token") for name, title in names.items()}

    def picture(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        bars(left, perplexities, "perplexity per token", 0)
        bars(right, values, "bits per byte")
        left.margins(x=0.15)
        right.margins(x=0.15)

    return Measured(figures, picture)


def ngrams(runs: Path) -> Measured:
    """Chapter 2: perplexity by order and smoothing."""
    orders = (2, 3, 4, 5)
    names = {"kneser-ney": "Kneser-Ney", "additive": "additive"}
    values = {
        title: [score(runs / f"{name}-{order}", "perplexity per word") for order in orders]
        for name, title in names.items()
    }
    figures = {
        f"perplexity, {title}, order {order}": value
        for title, of_title in values.items()
        for order, value in zip(orders, of_title, strict=True)
        if (title, order) not in {("additive", 3), ("additive", 4), ("Kneser-Ney", 4)}
    }
    alone = score(runs / "unigram", "perplexity per word")

    def picture(figure: Any) -> None:
        axes = figure.subplots()
        for (title, of_title), colour in zip(values.items(), COLOURS, strict=False):
            axes.plot([1, *orders], [alone, *of_title], marker="o", color=colour, label=title)
        axes.set_yscale("log")
        axes.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
        axes.minorticks_off()
        axes.set_xticks([1, *orders])
        finish(axes, "order", "perplexity per word")

    return Measured(figures, picture)


def alignment(runs: Path) -> Measured:
    """Chapter 3: translations of a word by iterations of IBM Model 1."""
    from heed.statistical.alignment.run_folder import read_run

    times, words = (1, 2, 5, 20), (".", "hund", "den", "hat")
    tables = {}
    for number in times:
        trained = read_run(runs / f"ibm1-{number}").trained
        tables[number] = {word: prob for _, word, prob in trained.translations("dog", 10_000)}
    shown = ((".", 1), ("hund", 1), ("hund", 2), ("hund", 20), ("den", 20))
    figures = {
        f"t({word} given dog), {number} iteration{'s' if number > 1 else ''}": tables[number][word]
        for word, number in shown
    }

    def picture(figure: Any) -> None:
        axes = figure.subplots()
        for word, colour in zip(words, COLOURS, strict=False):
            axes.plot(
                range(len(times)), [tables[n].get(word, 0.0) for n in times], marker="o", color=colour, label=word
            )
        axes.set_xticks(range(len(times)), [str(n) for n in times])
        finish(axes, "iterations", "t(f | dog)")

    return Measured(figures, picture)


def phrases(runs: Path) -> Measured:
    """Chapter 4: BLEU of a phrase-based translator, and the phrases of one pair."""
    from heed.statistical.phrases.extraction import consistent_spans

    def line(name: str) -> list[str]:
        return (runs / name).read_text(encoding="utf-8").splitlines()[3].split()

    source, target = line("tokens.en"), line("tokens.de")
    pairs = [link.split("-") for link in line("words.links")]
    links = frozenset((int(i), int(j)) for i, j in pairs)
    spans = list(consistent_spans(len(source), len(target), links, longest=5))
    figures = {
        "BLEU, phrase-based": score(runs / "phrases", "BLEU"), "phrase pairs of the fourth sentence pair": len(spans),
    }  # fmt: skip

    def picture(figure: Any) -> None:
        from matplotlib.patches import Rectangle

        figure.set_size_inches(7, 4.4)
        axes = figure.subplots()
        for begin, end, low, high in spans:
            place, size = (low - 0.45, begin - 0.45), (high - low - 0.1, end - begin - 0.1)
            axes.add_patch(Rectangle(place, *size, facecolor=COLOURS[0], alpha=0.12))
            axes.add_patch(Rectangle(place, *size, fill=False, edgecolor=COLOURS[0], linewidth=0.8))
        axes.scatter([j for _, j in links], [i for i, _ in links], color=COLOURS[1], marker="s", zorder=3)
        axes.set_xticks(range(len(target)), target, rotation=30, ha="right")
        axes.set_yticks(range(len(source)), source)
        axes.set_xlim(-0.6, len(target) - 0.4)
        axes.set_ylim(len(source) - 0.4, -0.6)

    return Measured(figures, picture)


def new_pairs(runs: Path) -> Measured:
    """Chapter 5: perplexities on sentences like the training text, and on those with new pairs of words."""
    names = {
        "kneser-ney-3": "Kneser-Ney, order 3", "neural-trigram": "neural trigram", "vanilla": "vanilla RNN",
        "lstm": "LSTM",
    }  # fmt: skip
    tests = {"test": "alike", "combinations": "new pairs"}
    values = {
        (title, label): score(runs / name, "perplexity per word", f"{test}.en")
        for test, label in tests.items()
        for name, title in names.items()
    }
    figures = {f"perplexity, {title}, {label}": value for (title, label), value in values.items()}

    def picture(figure: Any) -> None:
        axes = figure.subplots()
        for number, (label, colour) in enumerate(zip(tests.values(), COLOURS, strict=False)):
            heights = [values[title, label] for title in names.values()]
            drawn = axes.bar(
                [place + 0.4 * number - 0.2 for place in range(len(names))], heights, 0.38, color=colour, label=label
            )
            axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize="small")
        axes.set_xticks(range(len(names)), list(names.values()))
        axes.set_ylabel("perplexity per word")
        axes.legend(frameon=False)

    return Measured(figures, picture)


LENGTHS = {"up to 7": (0, 7), "8–10": (8, 10), "11–13": (11, 13), "14 and more": (14, 10_000)}
"""Words of the source."""


def bleu_by_length(runs: Path, names: Mapping[str, str]) -> dict[str, list[float]]:
    """BLEU of the translations `NAME.de` of the test set, for each range of lengths."""
    from heed.metrics import output_metric

    def lines(path: Path) -> list[str]:
        return path.read_text(encoding="utf-8").splitlines()

    sources, references = (lines(runs / "corpus" / f"test.{side}") for side in ("en", "de"))
    found = {}
    for name, title in names.items():
        outputs = lines(runs / f"{name}.de")
        parts = [
            [n for n, source in enumerate(sources) if low <= len(source.split()) <= high]
            for low, high in LENGTHS.values()
        ]
        bleu = output_metric("bleu", "de", False)
        found[title] = [bleu.score([outputs[n] for n in part], [references[n] for n in part]).value for part in parts]
    return found


def lines_by_length(figure: Any, values: Mapping[str, Sequence[float]]) -> None:
    """BLEU over the length of the source, a line for each system."""
    axes = figure.subplots()
    for (title, of_title), colour in zip(values.items(), COLOURS, strict=False):
        axes.plot(list(LENGTHS), of_title, marker="o", color=colour, label=title)
    axes.set_ylim(0, 100)
    finish(axes, "words of the source", "BLEU")


def thought(runs: Path) -> Measured:
    """Chapter 6: a thought vector, by length."""
    names = {"thought": "thought vector"}
    values = bleu_by_length(runs, names)
    figures = {"BLEU, thought vector": score(runs / "thought", "BLEU")}
    for label, place in (("up to 7 words", 0), ("14 and more words", -1)):
        figures[f"BLEU, {label}"] = values["thought vector"][place]
    return Measured(figures, lambda figure: lines_by_length(figure, values))


def attention(runs: Path) -> Measured:
    """Chapter 7: attention compared with a thought vector, and its weights with the links of a hidden Markov model."""
    names = {"additive": "additive", "dot": "dot product"}
    figures = {f"BLEU, {title}": score(runs / name, "BLEU") for name, title in names.items()}
    gold = links_of(runs / "hmm.links")
    for name, title in names.items():
        figures[f"F1 of links, {title}"] = f1(links_of(runs / f"{name}.links"), gold)
    values = bleu_by_length(runs, {**names, "thought": "thought vector"})
    return Measured(figures, lambda figure: lines_by_length(figure, values))


def links_of(path: Path) -> list[set[str]]:
    """The links of each line."""
    return [set(line.split()) for line in path.read_text(encoding="utf-8").splitlines()]


def f1(links: Sequence[set[str]], gold: Sequence[set[str]]) -> float:
    """Harmonic mean of precision and recall in percent."""
    right = sum(len(a & b) for a, b in zip(links, gold, strict=True))
    return 200 * right / sum(len(a) + len(b) for a, b in zip(links, gold, strict=True))


def beams(runs: Path) -> Measured:
    """Chapter 8: BLEU and length by beam size, by three ways to compare hypotheses."""
    from beam_curse import NORMS

    cells = [
        [re.match(r"([\d.]+)(?: \(([\d.]+))?", cell.strip()) for cell in line.strip("|").split("|")]
        for line in (runs / "beams.txt").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| \d", line)
    ]
    bleu: dict[tuple[str, int], float] = {}
    ratio: dict[tuple[str, int], float] = {}
    sizes = []
    for size, *of_norms, _ in cells:
        assert size is not None
        sizes.append(int(size[1]))
        for norm, cell in zip(NORMS, of_norms, strict=True):
            assert cell is not None
            bleu[norm, sizes[-1]], ratio[norm, sizes[-1]] = float(cell[1]), float(cell[2])
    by_probability, by_mean = "log-probability", "mean per token"
    figures = {
        **{f"BLEU by log-probability, beam {size}": bleu[by_probability, size] for size in (1, 5, 50)},
        "BLEU by mean per token, beam 50": bleu[by_mean, 50],
        "length by log-probability, beam 50": ratio[by_probability, 50],
        "length by mean per token, beam 50": ratio[by_mean, 50],
    }

    def picture(figure: Any) -> None:
        for axes, values, label in zip(
            figure.subplots(1, 2), (bleu, ratio), ("BLEU", "words per word of the reference"), strict=True
        ):
            for norm, colour in zip(NORMS, COLOURS, strict=False):
                axes.plot(sizes, [values[norm, size] for size in sizes], marker="o", color=colour, label=norm)
            axes.set_xscale("log")
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.minorticks_off()
            axes.set_xlabel("beam")
            axes.set_title(label, fontsize="medium")
            axes.grid(alpha=0.3)
        figure.axes[0].legend(frameon=False, fontsize="small")

    return Measured(figures, picture)


def order(runs: Path) -> Measured:
    """Chapter 9: a Transformer with positions and without."""
    names = {"positions-interleaved": "with positions", "positions-none": "without positions"}
    figures = {f"BLEU, {title}": score(runs / name, "BLEU") for name, title in names.items()}
    values = bleu_by_length(runs, names)
    return Measured(figures, lambda figure: lines_by_length(figure, values))


def metrics(run: Path, event: str) -> list[dict[str, Any]]:
    """The lines of a training's log of one kind: `train` or `validation`."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["event"] == event]


def depth(runs: Path) -> Measured:
    """Chapter 10: depth, normalisation and warm-up; and the Transformer compared with a recurrent translator."""
    names = {"pre-norm": "pre-norm", "post-norm": "post-norm"}
    rows = {name: metrics(runs / name, "train") for name in names}
    figures = {
        **{f"training perplexity, {title}": rows[name][-1]["perplexity"] for name, title in names.items()},
        "BLEU, Transformer": score(runs / "transformer", "BLEU"),
    }

    def picture(figure: Any) -> None:
        axes = figure.subplots()
        for (name, title), colour in zip(names.items(), COLOURS, strict=False):
            steps, values = ([row[key] for row in rows[name]] for key in ("step", "perplexity"))
            axes.plot(steps, values, color=colour, label=title)
        axes.set_yscale("log")
        finish(axes, "updates", "training perplexity per token")

    return Measured(figures, picture)


def scale(runs: Path) -> Measured:
    """Chapter 11: perplexity by the number of parameters."""
    sizes = (8, 16, 32)
    values = {size: score(runs / f"gpt-{size}", "perplexity per word", "test.en") for size in sizes}
    figures = {f"perplexity, GPT of {size} features": value for size, value in values.items()}
    counted = score(runs / "kneser-ney-3", "perplexity per word", "test.en")

    def picture(figure: Any) -> None:
        axes = figure.subplots()
        numbers = [last_score(runs / f"gpt-{size}")["parameters"] for size in sizes]
        axes.plot(numbers, list(values.values()), marker="o", color=COLOURS[0], label="GPT")
        axes.axhline(counted, color=COLOURS[1], linestyle="--", label="Kneser-Ney, order 3")
        axes.set_xscale("log")
        finish(axes, "parameters", "perplexity per word")

    return Measured(figures, picture)


def pretraining(runs: Path) -> Measured:
    """Chapter 12: accuracy of a tagger with random and with pretrained weights."""
    names = {"random": "random weights", "pretrained": "pretrained"}
    values = {title: score(runs / name, "accuracy") for name, title in names.items()}
    figures = {
        **{f"accuracy, {title}": value for title, value in values.items()},
        "masked perplexity": metrics(runs / "bert", "validation")[-1]["masked_perplexity"],
    }
    return Measured(
        figures, lambda figure: bars(figure.subplots(), values, "accuracy, percent of the words of 500 sentences", 1)
    )


MEASURES: Mapping[int, Callable[[Path], Measured]] = {
    1: unigrams, 2: ngrams, 3: alignment, 4: phrases, 5: new_pairs, 6: thought, 7: attention, 8: beams, 9: order,
    10: depth, 11: scale, 12: pretraining,
}  # fmt: skip
"""What measures each chapter."""
