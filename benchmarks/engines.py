"""Translation speed of a run's two engines, and of CTranslate2's own calls with the same weights and tokenizers.

All sides translate the same lines to lines with the recipe's search, in turns; CTranslate2's own calls are what its
users write: tokenize, `translate_batch` sorted by length in batches of 64, one worker of one thread for each CPU, join.
Also measures lines that come one at a time, and the command from a cold start. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import peers
import torch

import heed
from heed.core.environment import num_cpus
from heed.decoding.options import SearchOptions
from heed.export.ctranslate2 import export_ctranslate2
from heed.metrics import score_outputs
from heed.tasks.predictor import Predictor
from heed.text.readers import read_text

Translate = Callable[[Sequence[str]], list[str]]
BATCH = 64


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a translation run with a Transformer")
    parser.add_argument("src", type=Path, help="lines to translate")
    parser.add_argument("ref", type=Path, help="their references")
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--precision", choices=("float32", "int8"), default="float32")
    given = parser.parse_args()
    lines, references = (list(read_text(path))[: given.lines] for path in (given.src, given.ref))
    print(peers.machine_line(num_cpus(), ["torch", "ctranslate2"]))
    torch.set_num_threads(1)  # what `heed translate` chooses for models of this size
    fast, slow = (heed.load(given.run, precision=given.precision, engine=engine) for engine in ("auto", "torch"))
    assert fast.engine is not None, "CTranslate2 cannot translate with this run"
    with tempfile.TemporaryDirectory() as temporary:
        export_ctranslate2(fast.run, Path(temporary) / "model")
        peer = ctranslate2.Translator(
            str(Path(temporary) / "model"), compute_type=given.precision, inter_threads=num_cpus(), intra_threads=1
        )
        for beam in (1, 5):
            options = fast.run.recipe.decoding.model_copy(update={"beam_size": beam})
            sides: dict[str, Translate] = {
                "heed, CTranslate2": lambda texts, options=options: fast.translate(texts, options),  # type: ignore[misc]
                "heed, PyTorch": lambda texts, options=options: slow.translate(texts, options),  # type: ignore[misc]
                "CTranslate2's own calls": lambda texts, options=options: own_calls(peer, slow, texts, options),  # type: ignore[misc]
            }
            _compare(beam, sides, lines, references, given.repeats)
    _cold_start(given.run, given.repeats)


def own_calls(peer: Any, predictor: Predictor, lines: Sequence[str], options: SearchOptions) -> list[str]:
    """Translate as users of CTranslate2 do, without heed's search, limits and checks."""
    src, tgt = predictor.tokenizers["src"], predictor.tokenizers["tgt"]
    sources = [[*map(src.vocabulary.piece, ids), "</s>"] for ids in src.encode(list(lines))]
    results = peer.translate_batch(
        sources, beam_size=options.beam_size, length_penalty=options.length_penalty, max_batch_size=BATCH,
        max_input_length=0,
    )  # fmt: skip
    ids = {piece: id for id, piece in enumerate(tgt.vocabulary.pieces)}
    return tgt.decode([[ids[piece] for piece in result.hypotheses[0]] for result in results])


def _compare(
    beam: int, sides: dict[str, Translate], lines: Sequence[str], references: Sequence[str], repeats: int
) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    outputs: dict[str, list[str]] = {}
    for translate in sides.values():
        translate(lines[:BATCH])
    for _ in range(repeats):
        for name, translate in sides.items():
            begin = time.perf_counter()
            outputs[name] = translate(lines)
            seconds[name].append(time.perf_counter() - begin)
    alone = {name: _alone(translate, lines[:100]) for name, translate in sides.items()}
    oracle = outputs["heed, PyTorch"]
    rows = []
    for name, times in seconds.items():
        [bleu] = score_outputs(outputs[name], references, None, ["bleu"], intervals=0)
        same = sum(a == b for a, b in zip(outputs[name], oracle, strict=True))
        rows.append([
            name, f"{len(lines) / statistics.median(times):,.0f}", peers.ratio(seconds["heed, PyTorch"], times),
            f"{alone[name][0]:.1f}", f"{alone[name][1]:.1f}", f"{bleu.value:.2f}", f"{same:,} of {len(lines):,}",
        ])  # fmt: skip
    header = ["", "sentences/s", "ratio to PyTorch", "alone: p50 ms", "p95 ms", "BLEU", "same text as PyTorch"]
    print(f"\nbeam {beam}, {len(lines):,} lines, {repeats} turns\n{peers.table(header, rows)}")


def _alone(translate: Translate, lines: Sequence[str]) -> tuple[float, float]:
    """Median and 95th percentile of the milliseconds of a line."""
    times = []
    for line in lines:
        begin = time.perf_counter()
        translate([line])
        times.append(1000 * (time.perf_counter() - begin))
    times.sort()
    return times[len(times) // 2], times[int(0.95 * len(times))]


def _cold_start(run: Path, repeats: int) -> None:
    for engine in ("auto", "torch"):
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            command = [sys.executable, "-m", "heed", "translate", str(run), "--engine", engine, "--quiet"]
            subprocess.run(command, input=b"Two dogs are playing in the snow.\n", capture_output=True, check=True)
            times.append(time.perf_counter() - begin)
        print(f"cold start, one line, --engine {engine}: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    main()
