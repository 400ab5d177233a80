"""How time and memory grow: training, translating, serving, aligning and counting, each against one size at a time.

    python benchmarks/scaling.py --run runs/benchmark-translator --only train,align
    python benchmarks/scaling.py --report --plot docs/pictures

A part varies one size and measures each of its values in a new process: seconds and the largest resident memory, with
the part of it that was there before the work began. Seconds are the processor time of the work, which other programs
change little, and wall time in the parts `*-threads` and `*-processes`; the median of several repetitions. Results are
kept in `--out`, one line for each value, and are not measured again, so the parts can be made one after the other (each
takes at most four minutes). The exponent of a part is the slope of a least-squares line through the logarithms, with
its standard error; "at the end" is that of the two largest values, where fixed costs matter least. Memory is read from
Linux's /proc.

Prepared, aligned, counted and served text is real: the data sets of `--data` (KFTT ja-en, Tatoeba en-fr, Multi30k),
truncated to the first lines. Updates of a training and searches of the parts `search-*` use random token ids and random
weights, so that sizes are exact; their outputs are as long as their sources.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MB = 1 << 20
PUBLISHED = {"inner": 4, "layers": 6, "vocabulary": 32_000}
"""Sizes of Transformer base and big (Vaswani et al. 2017), with a smaller vocabulary."""
T = TypeVar("T")
Clock = Callable[[], float]
Measured = dict[str, float]
"""`seconds` of one unit of work, their `least` and `most`, bytes `before` and at the `peak`, and `amount`, what was
processed in these seconds."""


# --- measuring ------------------------------------------------------------------------------------------


def memory(name: str) -> int:
    """A number of bytes of /proc/self/status: VmRSS is resident now, VmHWM was the most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def begin_memory() -> int:
    """Forget the peak so far. Returns the resident bytes."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return memory("VmRSS")


def repeated(
    work: Callable[[], object], amount: float, before: int, clock: Clock = time.process_time, least: int = 2,
    seconds: float = 1.0,
) -> Measured:  # fmt: skip
    """Repeat the work, after a first time that does not count, at least `least` times and for `seconds`."""
    work()
    times: list[float] = []
    while len(times) < least or sum(times) < seconds:
        begin = clock()
        work()
        times.append(clock() - begin)
    return measured(times, amount, before)


def once(work: Callable[[], T], amount: float) -> tuple[Measured, T]:
    """Do work that takes long. Returns its processor time and memory, and its result."""
    before, begin = begin_memory(), time.process_time()
    result = work()
    return measured([time.process_time() - begin], amount, before), result


def measured(times: Sequence[float], amount: float, before: int) -> Measured:
    """The record of some repetitions."""
    return {
        "seconds": statistics.median(times), "least": min(times), "most": max(times), "amount": amount,
        "before": before, "peak": memory("VmHWM"),
    }  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where data, a trained translator and temporary files are."""

    data: Path
    run: Path


# --- training -------------------------------------------------------------------------------------------


def update(
    place: Place, value: int, axis: str = "", precision: str = "bfloat16", **fixed: int
) -> Measured:  # fmt: skip
    """One update of the default model on random ids. `axis` names the size that has the value."""
    import torch
    from training import OnlyALoss

    from heed.data.batch import collate
    from heed.models.transformer import Transformer, TransformerConfig
    from heed.nn.contract import Vocabularies
    from heed.nn.device import set_threads
    from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
    from heed.training.config import TrainingConfig
    from heed.training.trainer import Trainer

    sizes = {
        "batch": 2048, "length": 16, "vocabulary": 4000, "layers": 4, "width": 128, "inner": 2, "threads": 1, **fixed,
        axis: value,
    }  # fmt: skip
    set_threads(sizes["threads"])
    dice = np.random.default_rng(1)
    num_rows = max(1, sizes["batch"] // sizes["length"])
    src, tgt = dice.integers(4, sizes["vocabulary"], (2, num_rows, sizes["length"] - 1)).tolist()
    batch = collate(src, tgt, list(range(num_rows)), BOS_ID, EOS_ID, PAD_ID)
    torch.ones(64, 64) @ torch.ones(64, 64)
    before = begin_memory()
    width = sizes["width"]
    model = Transformer(
        TransformerConfig(
            d_model=width, d_ff=sizes["inner"] * width, num_heads=max(1, width // 64), dropout=0.1, norm="pre",
            num_encoder_layers=sizes["layers"], num_decoder_layers=sizes["layers"], tie="target",
        ),
        Vocabularies(sizes["vocabulary"], sizes["vocabulary"]),
    )  # fmt: skip
    config = TrainingConfig(precision=precision, average="ema", label_smoothing=0.1)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        task: Any = OnlyALoss(config.smoothing)
        trainer = Trainer(config, model, task, Path(folder), 1, torch.device("cpu"), width, quiet=True)
        clock = time.perf_counter if axis == "threads" else time.process_time
        found = repeated(lambda: trainer.train_step([batch]), num_rows * sizes["length"], before, clock)
    return {**found, "parameters": sum(parameter.numel() for parameter in model.parameters())}


def processes(place: Place, value: int) -> Measured:
    """An update of each of several processes that train one model, with one thread each (`heed train --nproc N`)."""
    from heed.training.metrics_log import read_metrics

    multi30k = place.data / "multi30k"
    files = {"src": "train.en.gz", "tgt": "train.de.gz", "valid-src": "val.en.gz", "valid-tgt": "val.de.gz"}
    flags = [f"--{name}={multi30k / file}" for name, file in files.items()]
    flags += ["--training.log_every=5", "--training.eval_every=1000000", "--training.max_minutes=5"]
    flags += ["--training.tokens_per_batch=2048", "--tokenizer.vocab_size=4000", "--model.d_model=128"]
    rates: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "heed", "train", "--task=translation", "--quiet", "--threads=1", *flags]
        with subprocess.Popen([*command, f"--nproc={value}", f"--out={run}"], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and len(rates) < 12:
                time.sleep(1)
                lines = read_metrics(run) if (run / "metrics.jsonl").exists() else []
                rates = [float(line["tokens_per_second"]) for line in lines if "tokens_per_second" in line]
            process.terminate()
    return measured([2048 * value / rate for rate in rates[2:]], 2048 * value, 0)


def prepare(place: Place, value: int) -> Measured:
    """The data doctor, the tokenizer and the token store for the first pairs of KFTT."""
    from heed.core.config import Document
    from heed.execute import prepare_run
    from heed.planner import Planner, TrainOptions

    with tempfile.TemporaryDirectory() as folder:
        keys: dict[str, object] = {"task": "translation"}
        for side, language in (("src", "ja"), ("tgt", "en")):
            path = Path(folder) / f"train.{language}"
            path.write_text(
                "".join(line + "\n" for line in first_lines(place, f"kftt_ja-en/train.{language}.xz", value))
            )
            keys[f"data.{side}"] = str(path)
        options = TrainOptions(Path(folder) / "run", device="cpu", quiet=True, force=True)
        plan = Planner(Document(), keys, options).plan
        return once(lambda: prepare_run(plan(), options.out, quiet=True), value)[0]


def first_lines(place: Place, name: str, number: int) -> list[str]:
    """The first lines of a file of the data sets."""
    from heed.text.readers import read_lines

    lines = list(islice(read_lines(place.data / name), number))
    if len(lines) < number:
        raise SystemExit(f"{place.data / name} has only {len(lines):,} lines; {number:,} are needed")
    return lines


# --- translating ----------------------------------------------------------------------------------------


def translating(place: Place, value: int, axis: str, engine: str) -> Measured:
    """Lines of Multi30k by a trained translator, with its recipe's search."""
    import torch

    import heed
    from heed.nn.device import set_threads

    sizes = {"lines": 128, "batch": 64, "beam": 5, "threads": 1, axis: value}
    set_threads(sizes["threads"])
    lines = first_lines(place, "multi30k/train.en.gz", sizes["lines"])
    predictor = heed.load(place.run, engine=engine, num_workers=sizes["threads"])
    torch.set_num_threads(sizes["threads"])
    changes = {"beam_size": sizes["beam"], "batch_size": sizes["batch"]}
    options = predictor.run.recipe.decoding.model_copy(update=changes)
    predictor.translate(lines[:1], options)  # type: ignore[attr-defined]
    before = begin_memory()
    clock = time.perf_counter if axis == "threads" else time.process_time
    return repeated(lambda: predictor.translate(lines, options), len(lines), before, clock)  # type: ignore[attr-defined]


def searching(place: Place, value: int, axis: str, engine: str) -> Measured:
    """A beam of five over rows of random ids by a model with random weights, and outputs as long as the sources."""
    import torch

    from heed.models.transformer import Transformer, TransformerConfig
    from heed.nn.contract import Vocabularies
    from heed.nn.device import set_threads

    sizes = {"rows": 32, "length": 16, "vocabulary": 4000, "layers": 4, "width": 128, axis: value}
    set_threads(1)
    torch.manual_seed(1)
    width, length = sizes["width"], sizes["length"]
    config = TransformerConfig(
        d_model=width, d_ff=2 * width, num_heads=max(1, width // 64), num_encoder_layers=sizes["layers"],
        num_decoder_layers=sizes["layers"], norm="pre", tie="target",
    )  # fmt: skip
    model = Transformer(config, Vocabularies(sizes["vocabulary"], sizes["vocabulary"])).requires_grad_(False)
    rows = np.random.default_rng(1).integers(4, sizes["vocabulary"], (sizes["rows"], length - 1)).tolist()
    search = by_pytorch if engine == "torch" else by_ctranslate2
    work = search(model, sizes["vocabulary"], rows, length)
    before = begin_memory()
    return repeated(work, len(rows), before)


def by_pytorch(model: Any, vocab_size: int, rows: Sequence[Sequence[int]], length: int) -> Callable[[], object]:
    """heed's own search."""
    from heed.decoding.options import Request, SearchOptions
    from heed.inference.translator import ModelTranslator
    from heed.nn.packing import pack
    from heed.text.normalise import Normaliser
    from heed.text.tokenizers import TokenizerConfig, train_tokenizer
    from heed.text.vocabulary import SPECIAL_PIECES

    words = " ".join(f"w{number}" for number in range(vocab_size - len(SPECIAL_PIECES)))
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=vocab_size, min_frequency=1), [words])
    if len(tokenizer.vocabulary) != vocab_size:
        raise SystemExit(f"the vocabulary has {len(tokenizer.vocabulary)} words, not {vocab_size}")
    pack(model, rounded=False)
    translator = ModelTranslator(model, tokenizer, tokenizer, Normaliser())
    options = SearchOptions(length_norm="mean", length_penalty=1.0, min_tokens=length, max_tokens=length, guard=False)
    requests = [Request(tuple(row)) for row in rows]
    return lambda: translator.search_in_batches(requests, options)


def by_ctranslate2(model: Any, vocab_size: int, rows: Sequence[Sequence[int]], length: int) -> Callable[[], object]:
    """CTranslate2's own calls with heed's weights, one worker of one thread; heed's engine cannot fix a length."""
    import ctranslate2

    from heed.export.ctranslate2 import write_model
    from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary

    vocabulary = Vocabulary(f"w{number}" for number in range(vocab_size - len(SPECIAL_PIECES)))
    with tempfile.TemporaryDirectory() as folder:
        write_model(model, (vocabulary, vocabulary), 4 * length, Path(folder))
        translator = ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=1)
    sources = [[*map(vocabulary.piece, row), "</s>"] for row in rows]
    return lambda: translator.translate_batch(
        sources, beam_size=5, min_decoding_length=length, max_decoding_length=length, max_input_length=0
    )


def cold(place: Place, value: int) -> Measured:
    """The processor time of `heed translate` from a cold start."""
    lines = first_lines(place, "multi30k/train.en.gz", value)
    text = "".join(f"{line}\n" for line in lines).encode()
    command = [sys.executable, "-m", "heed", "translate", str(place.run), "--quiet"]
    times = []
    for _ in range(3):
        before = of_children()
        subprocess.run(command, input=text, stdout=subprocess.DEVNULL, check=True)
        times.append(of_children() - before)
    return measured(times, value, 0)


def of_children() -> float:
    """Processor time of the ended processes that this one started."""
    times = os.times()
    return times.children_user + times.children_system


def clients(place: Place, value: int) -> Measured:
    """The server's processor time for a sentence of one of several clients that each wait for their answers."""
    import serving

    texts = first_lines(place, "multi30k/train.en.gz", 1000)
    with serving.serving(place.run, 1) as server:
        serving.ask(server, texts[:32], min(value, 8))
        stat = Path(f"/proc/{server.process.pid}/stat")
        before, number = server.megabytes(0.5) * MB, 64 if value == 1 else 256
        times, seen = [], serving.Seen()
        for turn in range(3):
            begin = processor_time(stat)
            serving.ask(server, texts[32 + turn * number : 32 + (turn + 1) * number], value, seen)
            times.append((processor_time(stat) - begin) / number)
        peak = server.megabytes(0) * MB
    if set(seen.statuses) != {"200"}:
        raise SystemExit(f"requests failed: {serving.shown(seen.statuses)}")
    return {**measured(times, 1, int(before)), "peak": peak}


def processor_time(stat: Path) -> float:
    """Seconds that a process has used, of its /proc/PID/stat."""
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- word alignment and counting ------------------------------------------------------------------------


def words_of(line: str) -> list[str]:
    """The words and punctuation marks of a line in lower case."""
    return re.findall(r"\w+|[^\w\s]", line.lower())


def tatoeba(place: Place, number: int) -> tuple[list[list[str]], list[list[str]]]:
    """The words of the first pairs of Tatoeba English-French, in an order that mixes short and long ones."""
    from heed.text.readers import read_lines

    lines = list(read_lines(place.data / "tatoeba_eng-fra" / "train.tsv.xz"))
    chosen = np.random.default_rng(1).permutation(len(lines))[:number].tolist()
    pairs = [lines[index].split("\t")[:2] for index in chosen]
    return [words_of(src) for src, _ in pairs], [words_of(tgt) for _, tgt in pairs]


def align(place: Place, value: int, kind: str) -> Measured:
    """Aligners of both directions for the first pairs of Tatoeba, and their links."""
    from heed.statistical.alignment.training import train_pair

    pairs = tatoeba(place, value)
    return once(lambda: train_pair(kind, *pairs).own_links("grow-diag-final-and"), value)[0]


def align_length(place: Place, value: int, kind: str) -> Measured:
    """Aligners of both directions for 40,000 words a side, in pairs of `value` words a side."""
    from heed.statistical.alignment.training import train_pair

    sides = tatoeba(place, 12_000)
    num_pairs = 40_000 // value
    cut = []
    for side in sides:
        words = [word for line in side for word in line][: num_pairs * value]
        cut.append([words[begin : begin + value] for begin in range(0, len(words), value)])
    return once(lambda: train_pair(kind, *cut).own_links("grow-diag-final-and"), num_pairs * value)[0]


def count(place: Place, value: int, axis: str) -> Measured:
    """Count n-grams and estimate modified Kneser-Ney, of the English side of KFTT."""
    from heed.statistical.estimation import estimate, open_vocabulary
    from heed.statistical.ngram_counts import NgramCounts
    from heed.statistical.smoothing import SmoothingConfig
    from heed.text.readers import read_lines

    sizes = {"words": 1_200_000, "order": 5, axis: value}
    ids: dict[str, int] = {}
    text: list[list[int]] = []
    num_words = 0
    for line in read_lines(place.data / "kftt_ja-en" / "train.en.xz"):
        text.append([ids.setdefault(word, len(ids) + 4) for word in words_of(line)])
        num_words += len(text[-1])
        if num_words >= sizes["words"]:
            break

    def model() -> Any:
        counts = NgramCounts.of(text, sizes["order"], len(ids) + 4, 1, 2, 0)
        return estimate(counts, SmoothingConfig(), open_vocabulary(counts, 3))

    found, estimated = once(model, num_words)
    return {**found, "ngrams": sum(estimated.num_ngrams)}


# --- the parts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One size and its values, with what is measured at each."""

    size: str
    values: tuple[int, ...]
    work: Callable[[Place, int], Measured]
    unit: str
    """What the seconds are for."""
    amount: str
    """What is processed in them."""
    setting: str


DEFAULT = "128/256, 4 + 4 layers, 4,000 pieces a side, bfloat16, one thread"
SEARCHED = "random weights, beam 5, 32 rows, sources and outputs of 16 tokens, 128/256, 4 + 4 layers, one thread"
TRANSLATED = "a trained translator (128/256, 4 + 4 layers), 128 lines of Multi30k, beam 5, 64 at a time, one thread"

PARTS: dict[str, Part] = {
    "prepare-corpus": Part(
        "pairs", (12_500, 25_000, 50_000), prepare, "doctor, tokenizer, token store", "pairs",
        "KFTT ja-en",
    ),
    "train-batch": Part(
        "tokens a batch", (256, 512, 1024, 2048, 4096, 8192), partial(update, axis="batch"), "an update",
        "target tokens", f"{DEFAULT}, rows of 16 tokens",
    ),
    "train-length": Part(
        "tokens a row", (8, 32, 128, 512), partial(update, axis="length", batch=4096), "an update",
        "target tokens", f"{DEFAULT}, 4,096 tokens a batch",
    ),
    "train-vocabulary": Part(
        "pieces a side", (1000, 8000, 32_000), partial(update, axis="vocabulary"), "an update",
        "target tokens", "128/256, 4 + 4 layers, bfloat16, one thread, 2,048 tokens a batch",
    ),
    "train-layers": Part(
        "layers a side", (1, 4, 8), partial(update, axis="layers"), "an update", "target tokens",
        "128/256, 4,000 pieces a side, bfloat16, one thread, 2,048 tokens a batch",
    ),
    "train-width": Part(
        "features", (64, 128, 256, 512), partial(update, axis="width"), "an update", "target tokens",
        "4 + 4 layers, twice as many inner features, heads of 64, 4,000 pieces a side, bfloat16, one thread, 2,048 "
        "tokens a batch",
    ),
    "train-threads": Part(
        "threads", (1, 2), partial(update, axis="threads"), "an update", "target tokens",
        "128/256, 4 + 4 layers, 4,000 pieces a side, bfloat16, 2,048 tokens a batch",
    ),
    "train-threads-wide": Part(
        "threads", (1, 2), partial(update, axis="threads", width=512), "an update", "target tokens",
        "512/1,024, 4 + 4 layers, 4,000 pieces a side, bfloat16, 2,048 tokens a batch",
    ),
    "train-processes": Part(
        "processes", (1, 2), processes, "an update of all", "target tokens",
        "`heed train --nproc N`, Multi30k, 128/256, 4 + 4 layers, one thread each, 2,048 tokens a process",
    ),
    "train-wmt": Part(
        "features", (512, 1024), partial(update, axis="width", batch=1024, **PUBLISHED),
        "an update", "target tokens", "Transformer base and big: 6 + 6 layers, inner 4 x, 32,000 pieces a side, "
        "1,024 tokens a batch, bfloat16, one thread",
    ),
    "train-base": Part(
        "tokens a batch", (2816,), partial(update, axis="batch", width=512, **PUBLISHED),
        "an update", "target tokens", "Transformer base, a batch near the limit of 4 GB",
    ),
    "translate-start": Part(
        "lines", (1, 250, 1000), cold, "the command", "lines",
        "`heed translate RUN` from a cold start: the default engine and the recipe's beam of 5",
    ),
    "serve-clients": Part(
        "clients", (1, 8, 64), clients, "a sentence", "sentences",
        "`heed serve RUN --threads 1`: the default engine and the recipe's beam of 5",
    ),
    "align-corpus-diagonal": Part(
        "pairs", (8000, 16_000, 32_000), partial(align, kind="diagonal"), "both directions, 5 iterations",
        "pairs", "Tatoeba en-fr",
    ),
    "align-corpus-hmm": Part(
        "pairs", (8000, 16_000, 32_000), partial(align, kind="hmm"), "both directions", "pairs",
        "Tatoeba en-fr",
    ),
    "align-length-diagonal": Part(
        "words a sentence", (8, 16, 32), partial(align_length, kind="diagonal"),
        "both directions, 5 iterations", "words", "40,000 words a side of Tatoeba, cut into rows",
    ),
    "align-length-hmm": Part(
        "words a sentence", (8, 16, 32), partial(align_length, kind="hmm"), "both directions", "words",
        "40,000 words a side of Tatoeba, cut into rows",
    ),
    "count-corpus": Part(
        "words", (600_000, 1_200_000, 2_400_000, 4_800_000, 9_600_000), partial(count, axis="words"),
        "counting and estimating", "words", "order 5, English side of KFTT",
    ),
    "count-order": Part(
        "order", (1, 2, 3, 4, 5, 6), partial(count, axis="order"), "counting and estimating", "words",
        "1.2 million words of the English side of KFTT",
    ),
}  # fmt: skip
for _engine, _name in (("torch", "PyTorch"), ("ctranslate2", "CTranslate2")):
    for _axis, _size, _values in (
        ("lines", "lines", (64, 128, 256)), ("batch", "lines at a time", (1, 8, 64)),
        ("beam", "beam", (1, 2, 5, 10)), ("threads", "threads", (1, 2)),
    ):  # fmt: skip
        PARTS[f"translate-{_axis}-{_engine}"] = Part(
            _size, _values, partial(translating, axis=_axis, engine=_engine), "all lines", "lines",
            f"{_name}; {TRANSLATED}",
        )  # fmt: skip
    for _axis, _size, _values in (
        ("length", "tokens", (8, 32, 128)), ("vocabulary", "pieces", (1000, 8000, 32_000)),
        ("layers", "layers a side", (1, 4, 8)), ("width", "features", (64, 128, 256)),
    ):  # fmt: skip
        PARTS[f"search-{_axis}-{_engine}"] = Part(
            _size, _values, partial(searching, axis=_axis, engine=_engine), "32 rows", "rows",
            f"{_name}; {SEARCHED}",
        )  # fmt: skip


# --- fits and tables ------------------------------------------------------------------------------------


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float, float]:
    """The slope of a line through the logarithms, its standard error, and the slope between the last two points."""
    x, y = np.log(sizes), np.log(costs)
    last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    if len(x) < 3:
        return last, math.nan, last
    (slope, constant), residual = np.polyfit(x, y, 1), len(x) - 2
    error = np.sum((y - slope * x - constant) ** 2) / residual / np.sum((x - x.mean()) ** 2)
    return float(slope), float(math.sqrt(error)), last


def shown_exponent(sizes: Sequence[float], costs: Sequence[float]) -> str:
    """The exponent for people; a dash where there is nothing to measure."""
    if len(sizes) < 2 or min(costs) <= 0:
        return "–"
    slope, error, last = exponent(sizes, costs)
    spread = "" if math.isnan(error) else f" ± {error:.2f}"
    return f"{slope:.2f}{spread} (at the end {last:.2f})"


def shown_seconds(seconds: float) -> str:
    """Seconds or milliseconds, with three digits."""
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def row_of(value: int, found: Measured) -> list[str]:
    """One row of a part's table."""
    seconds = shown_seconds(found["seconds"])
    if found["least"] < found["most"]:
        seconds += f" ({shown_seconds(found['least'])} to {shown_seconds(found['most'])})"
    bytes_used = (found["peak"] - found["before"], found["peak"]) if found["before"] else ()
    rate = f"{found['amount'] / found['seconds']:,.0f}"
    return [f"{value:,}", seconds, rate, *(f"{number / MB:,.0f}" for number in bytes_used)]


def report(name: str, results: dict[int, Measured]) -> str:
    """The table of a part and its exponents."""
    from peers import table

    part, sizes = PARTS[name], sorted(results)
    has_memory = all(results[size]["before"] for size in sizes)
    header = [part.size, part.unit, f"{part.amount}/s", *(["memory of the work, MiB", "peak, MiB"] * has_memory)]
    fits = f"Exponent of time: {shown_exponent(sizes, [results[size]['seconds'] for size in sizes])}"
    if has_memory:
        fits += (
            f"; of memory: {shown_exponent(sizes, [results[size]['peak'] - results[size]['before'] for size in sizes])}"
        )
    rows = [row_of(size, results[size]) for size in sizes]
    return f"### {name}\n\n{part.setting}\n\n{table(header, rows)}\n\n{fits}\n"


FITTED = ("batch", "vocabulary", "layers", "width")
"""The parts of training that its costs are fitted to."""
GIGABYTES = (4, 8, 24)
MODELS = {
    "the default: 128/256, 4 + 4 layers, 4,000 pieces": {"width": 128, "inner": 2, "layers": 4, "vocabulary": 4000},
    "Transformer base: 512/2,048, 6 + 6 layers, 32,000 pieces": {"width": 512, **PUBLISHED},
    "Transformer big: 1,024/4,096, 6 + 6 layers, 32,000 pieces": {"width": 1024, **PUBLISHED},
}
"""Models whose largest batches are computed."""


@dataclass(frozen=True)
class Update:
    """The sizes of one update."""

    batch: int
    vocabulary: int
    layers: int
    width: int
    inner: int

    @property
    def weights(self) -> int:
        """Numbers that each token of both sides is multiplied with: the blocks and the output layer."""
        blocks = self.layers * self.width * self.width * (12 + 4 * self.inner)
        return blocks + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """The weights, and the vectors of the source."""
        return self.weights + self.vocabulary * self.width

    def memory_terms(self) -> list[float]:
        """What the fit of memory multiplies: a constant, parameters, stored features, tokens, vocabulary."""
        features = self.batch * self.layers * self.width * (1 + self.inner)
        return [1.0, self.parameters, features, self.batch, self.vocabulary]

    def time_terms(self) -> list[float]:
        """What the fit of time multiplies: a constant, products, stored features, parameters."""
        features = self.batch * self.layers * self.width * (1 + self.inner)
        return [1.0, 6.0 * self.weights * self.batch, features, self.parameters]


def fit(rows: Sequence[Sequence[float]], costs: Sequence[float]) -> Any:
    """Coefficients with the least squared relative errors, none below zero."""
    from scipy.optimize import nnls

    weights = 1 / np.array(costs)
    return nnls(np.array(rows) * weights[:, None], np.ones(len(costs)))[0]


def training_fits(out: Path) -> str:
    """Formulas for memory and time of an update, a check on other models, and the batches that fit into memory."""
    from peers import table

    def updates(part: str, **sizes: int) -> list[tuple[Update, Measured]]:
        axis = part.removeprefix("train-")
        known = {"batch": 2048, "vocabulary": 4000, "layers": 4, "width": 128, "inner": 2, **sizes}
        found = stored(out, part)
        return [(Update(**{**known, axis: value} if axis in known else known), each) for value, each in found.items()]

    measured_updates = [each for axis in FITTED for each in updates(f"train-{axis}")]
    if len(measured_updates) < 8:
        return ""
    memory_fit = fit(
        [each.memory_terms() for each, _ in measured_updates], [f["peak"] - f["before"] for _, f in measured_updates]
    )
    time_fit = fit([each.time_terms() for each, _ in measured_updates], [f["seconds"] for _, f in measured_updates])
    lines = [
        "### Fits of training\n",
        f"memory = {memory_fit[0] / MB:.0f} MiB + {memory_fit[1]:.1f} bytes x parameters + {memory_fit[2]:.1f} bytes x "
        f"tokens x layers a side x (features + inner features) + {memory_fit[3]:,.0f} bytes x tokens + "
        f"{memory_fit[4]:,.0f} bytes x pieces a side",
        f"time = {1000 * time_fit[0]:.0f} ms + products / {1e-9 / time_fit[1]:.0f} GFLOP/s + "
        f"{1e9 * time_fit[2]:.1f} ns x tokens x layers a side x (features + inner features) + "
        f"{1e9 * time_fit[3]:.1f} ns x parameters\n",
    ]
    checks = [
        (Update(1024, 32_000, 6, width, 4), found) for width, found in sorted(stored(out, "train-wmt").items())
    ] + [(Update(batch, 32_000, 6, 512, 4), found) for batch, found in stored(out, "train-base").items()]
    rows = [[
        f"{each.width} features, {each.batch:,} tokens", f"{found['parameters'] / 1e6:.1f} M",
        f"{each.memory_terms() @ memory_fit / MB:,.0f} / {(found['peak'] - found['before']) / MB:,.0f} MiB",
        f"{each.time_terms() @ time_fit:.2f} / {found['seconds']:.2f} s",
    ] for each, found in checks]  # fmt: skip
    lines.append(
        table(["not in the fit", "parameters", "memory: computed / measured", "time: computed / measured"], rows)
    )
    before = statistics.median(found["before"] for _, found in measured_updates)
    rows = []
    for name, sizes in MODELS.items():
        of_one = [np.array(Update(batch, **sizes).memory_terms()) @ memory_fit for batch in (0, 1)]
        most = [int((gigabytes * 1e9 - before - of_one[0]) / (of_one[1] - of_one[0])) for gigabytes in GIGABYTES]
        rows.append([name, *(f"{tokens:,}" if tokens > 0 else "does not fit" for tokens in most)])
    header = ["tokens a batch that fit, of each side", *(f"{gigabytes} GB" for gigabytes in GIGABYTES)]
    return "\n".join([*lines, "", table(header, rows), ""])


PANELS = {
    "training: an update": ("train-batch", "train-length", "train-vocabulary", "train-layers", "train-width"),
    "searching with PyTorch": (
        "translate-beam-torch", "translate-batch-torch", "search-length-torch", "search-vocabulary-torch",
        "search-layers-torch", "search-width-torch",
    ),
    "texts": (
        "prepare-corpus", "align-corpus-diagonal", "align-corpus-hmm", "align-length-hmm", "count-corpus",
        "count-order",
    ),
}  # fmt: skip
"""The panels of the picture."""


def plot(out: Path, path: Path) -> None:
    """Draw how the seconds of the parts grow, each relative to its smallest size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(12, 4.2))
    for panel, (title, names) in zip(axes, PANELS.items(), strict=True):
        most = 1.0
        for name in names:
            results = stored(out, name)
            sizes = sorted(results)
            if len(sizes) < 2:
                continue
            grown = [size / sizes[0] for size in sizes]
            costs = [results[size]["seconds"] / results[sizes[0]]["seconds"] for size in sizes]
            what, _, which = name.removesuffix("-torch").partition("-")
            label = which if what in ("train", "translate", "search") else f"{what}, {which.replace('-', ', ')}"
            panel.loglog(grown, costs, marker="o", markersize=3, label=f"{label} ({exponent(sizes, costs)[0]:.2f})")
            most = max(most, *grown)
        panel.loglog([1, most], [1, most], color="0.7", linestyle=":", linewidth=1)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log", base=2)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            axis.set_minor_formatter(ticker.NullFormatter())
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("size, relative to the smallest")
        panel.legend(fontsize=7)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("time, relative to the smallest")
    figure.tight_layout()
    figure.savefig(path / "scaling.png", dpi=80)


def stored(out: Path, name: str) -> dict[int, Measured]:
    """The results of a part so far."""
    path = out / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {int(found.pop("value")): found for found in map(json.loads, lines)}


# --- the command ----------------------------------------------------------------------------------------


PRELOADED = ("ctranslate2", "heed.training.trainer", "heed.tasks.generation", "heed.inference.translator")
"""Modules that take long to import: the processes of the values are copies of this one and have them already."""


def measure(name: str, given: argparse.Namespace) -> None:
    """Measure the values of a part that have no result yet, smallest first."""
    known = stored(given.out, name)
    left = [value for value in PARTS[name].values if value not in known]
    if left and not name.startswith(("align", "count")):
        for module in PRELOADED:
            import_module(module)
    for value in left:
        begin = time.perf_counter()
        found = in_new_process(PARTS[name].work, Place(given.data, given.run), value)
        load = round(os.getloadavg()[0], 1)
        with (given.out / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"value": value, **found, "load": load}) + "\n")
        taken = time.perf_counter() - begin
        print(f"  {name} {value:,}: {shown_seconds(found['seconds'])} ({taken:.0f} s)", file=sys.stderr, flush=True)


def in_new_process(work: Callable[[Place, int], Measured], place: Place, value: int) -> Measured:
    """Do the work in a copy of this process, so that its memory is its own."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, work, place, value))
    process.start()
    theirs.close()
    try:
        return dict(ours.recv())
    except EOFError:
        sys.exit(f"the measurement at {value:,} failed; see its error above.")
    finally:
        process.join()


def _send(pipe: Connection, work: Callable[[Place, int], Measured], place: Place, value: int) -> None:
    pipe.send(work(place, value))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets")
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "benchmark-translator", help="a trained translator")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "scaling", help="where results are kept")
    parser.add_argument("--only", default="", help="comma-separated names of parts, or their beginnings")
    parser.add_argument("--report", action="store_true", help="measure nothing, print the results so far")
    parser.add_argument("--plot", type=Path, help="folder where the picture is drawn")
    given = parser.parse_args()
    wanted = [start for start in given.only.split(",") if start]
    names = [name for name in PARTS if not wanted or name.startswith(tuple(wanted))]
    if not names:
        parser.error(f"--only: no part begins with {given.only!r}. The parts are {', '.join(PARTS)}.")
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.report:
        for name in names:
            measure(name, given)
    for name in names:
        if results := stored(given.out, name):
            print(report(name, results))
    if any(name.startswith("train-") for name in names):
        print(training_fits(given.out))
    if given.plot:
        plot(given.out, given.plot)


if __name__ == "__main__":
    main()
