"""Lexical shortlists in CTranslate2: what it saves to compare a few hundred pieces in place of the whole vocabulary.

    python benchmarks/shortlists.py RUN --train-src F --train-tgt F --src val.en.gz --ref val.de.gz

IBM Model 1 links the pieces of the training pairs. A line may then be translated with the `--each` likeliest target
pieces of each of its source pieces, and the `--always` most frequent pieces; the softmax is over these alone. For lines
of one batch CTranslate2 allows the pieces of all of them, so that a translation depends on its neighbours, but one line
at a time has none. The times are those of the processor, one thread, medians of turns; BLEU is of the raw outputs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import ctranslate2
import peers

import heed
from heed.export.ctranslate2 import export_ctranslate2
from heed.metrics import score_outputs
from heed.statistical.alignment.training import train_pair
from heed.text.readers import read_text

WAYS = {
    "batches of 32": (32, False), "batches of 32, shortlist": (32, True),
    "one line at a time": (1, False), "one line at a time, shortlist": (1, True),
}  # fmt: skip
"""Lines at once, and whether with a shortlist."""


def main() -> None:
    """Write the shortlists, translate in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    for name in ("--train-src", "--train-tgt", "--src", "--ref"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--each", type=int, default=20, help="target pieces for each source piece (default 20)")
    parser.add_argument("--always", type=int, default=100, help="pieces that are always allowed (default 100)")
    parser.add_argument("--precision", choices=("float32", "int8"), default="float32")
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    predictor = heed.load(given.run, engine="torch")
    src, tgt = predictor.tokenizers["src"], predictor.tokenizers["tgt"]
    sources, targets = (
        [[*map(side.vocabulary.piece, ids)] for ids in side.encode(list(read_text(path)))]
        for side, path in ((src, given.train_src), (tgt, given.train_tgt))
    )
    aligners = train_pair("ibm1", sources, targets, both=False)
    allowed = {"": [piece for piece, _ in Counter(chain.from_iterable(targets)).most_common(given.always)]}
    for piece in aligners.src_words:
        allowed[piece] = [other for _, other, _ in aligners.translations(piece, given.each)]
    lines, references = list(read_text(given.src)), list(read_text(given.ref))
    rows = [[*map(src.vocabulary.piece, ids), "</s>"] for ids in src.encode(lines)]
    ids = {piece: id for id, piece in enumerate(tgt.vocabulary.pieces)}
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "model"
        export_ctranslate2(predictor.run, model)
        text = "".join(f"{piece}\t{' '.join(others)}\n" for piece, others in allowed.items())
        (model / "vmap.txt").write_text(text, encoding="utf-8")
        translator = ctranslate2.Translator(str(model), compute_type=given.precision, inter_threads=1, intra_threads=1)

        def translate(beam: int, size: int, shortlist: bool) -> list[str]:
            found: list[Any] = []
            for begin in range(0, len(rows), size):
                found += translator.translate_batch(
                    rows[begin : begin + size], beam_size=beam, use_vmap=shortlist, max_input_length=0,
                    length_penalty=predictor.run.recipe.decoding.length_penalty,
                )  # fmt: skip
            return tgt.decode([[ids[piece] for piece in result.hypotheses[0]] for result in found])

        for beam in (1, 5):
            times: dict[str, list[float]] = {name: [] for name in WAYS}
            outputs: dict[str, list[str]] = {}
            for _ in range(given.repeat):
                for name, (size, shortlist) in WAYS.items():
                    begin = time.process_time()
                    outputs[name] = translate(beam, size, shortlist)
                    times[name].append(time.process_time() - begin)
            full = "one line at a time"
            table = []
            for name, output in outputs.items():
                [bleu] = score_outputs(output, references, None, ["bleu"], intervals=0)
                equal = sum(a == b for a, b in zip(output, outputs[full], strict=True))
                milliseconds = 1000 * statistics.median(times[name]) / len(rows)
                ratio = peers.ratio(times[full], times[name])
                table.append([name, f"{milliseconds:.2f}", ratio, f"{bleu.value:.2f}", f"{equal:,}"])
            header = ["", "ms for a line", "times as fast", "BLEU", f"equal texts of {len(rows):,}"]
            print(f"\nbeam {beam}, {given.precision}\n{peers.table(header, table)}", flush=True)


if __name__ == "__main__":
    main()
