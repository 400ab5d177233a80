"""The targets of speed and what heed reaches, in one table: translating, serving, busy machines, training.

    python benchmarks/targets.py                      # what `make bench` runs
    python benchmarks/targets.py --only bulk,start --run runs/en-de --fast runs/fast

heed and its peer take turns on the same lines, and the peers' outputs are compared with heed's. Each result is the
median over at least five turns, with the smallest and the largest. Parts: `start` (a cold start), `bulk` (4,000 lines
from a cold start), `fast` (the same with a small student, if `--fast` names one), `sentence` (one at a time), `server`
(64 clients), `busy` (with two other programs), `training` and `decoding` (compared with `transformers`). Results are
kept in `--out`, so parts can be measured one after the other; the table has all of them. Without `--run`, heed trains a
translator of Multi30k with its defaults first, and keeps it in `runs/benchmark-translator`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import peers

BENCHMARKS = Path(__file__).resolve().parent
TEST = "test_2016_flickr"
ONE = "Two dogs are playing in the snow."
Row = list[str]
"""What was measured, its peer, the target, the stretch, and the result."""


@dataclass(frozen=True)
class Bench:
    """What all parts need."""

    run: Path
    fast: Path | None
    data: Path
    turns: int
    num_lines: int

    def lines(self) -> tuple[list[str], list[str], int]:
        """Lines to translate, references, and how many of the first are not training data."""
        parts = [peers.both_sides(self.data, part) for part in ("val", TEST, "train")]
        src, ref = ([line for part in parts for line in part[side]][: self.num_lines] for side in (0, 1))
        return src, ref, min(self.num_lines, sum(len(part[0]) for part in parts[:2]))


def shown(values: Sequence[float], digits: int = 2, unit: str = "") -> str:
    """The median, the smallest and the largest."""
    first = f"**{statistics.median(values):,.{digits}f}{unit}**"
    return f"{first} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@dataclass(frozen=True)
class Timed:
    """Seconds of wall time and of processor time, and the outputs."""

    wall: float
    processor: float
    outputs: list[str]


def command(run: Path, lines: Sequence[str], *flags: str) -> Timed:
    """`heed translate` from a cold start."""
    text = "".join(f"{line}\n" for line in lines)
    words = [sys.executable, "-m", "heed", "translate", str(run), "--quiet", *flags]
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Timed(time.perf_counter() - begin, processor, done.stdout.splitlines())


# --- the sides ------------------------------------------------------------------------------------------


def ctranslate2_side(run: Path, precision: str, workers: int) -> Callable[[Sequence[str]], Timed]:
    """CTranslate2's own calls with a run's weights, tokenizers, beam and length penalty."""
    import ctranslate2
    from engines import own_calls

    import heed
    from heed.export.ctranslate2 import export_ctranslate2

    predictor = heed.load(run, engine="torch")
    options = predictor.run.recipe.decoding
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(predictor.run, Path(folder) / "model")
        peer = ctranslate2.Translator(
            str(Path(folder) / "model"), compute_type=precision, inter_threads=workers, intra_threads=1
        )
    return timed(lambda lines: own_calls(peer, predictor, lines, options))


def heed_side(run: Path) -> Callable[[Sequence[str]], Timed]:
    """heed's Python API."""
    import heed

    return timed(heed.load(run).translate)  # type: ignore[attr-defined]


def timed(translate: Callable[[Sequence[str]], list[str]]) -> Callable[[Sequence[str]], Timed]:
    """A function that is timed."""

    def do(lines: Sequence[str]) -> Timed:
        begin, before = time.perf_counter(), time.process_time()
        outputs = translate(lines)
        return Timed(time.perf_counter() - begin, time.process_time() - before, outputs)

    return do


@contextmanager
def without_ctranslate2() -> Iterator[None]:
    """Programs that start here do not find CTranslate2, so heed translates with PyTorch."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text("import sys\nsys.modules['ctranslate2'] = None\n")
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([before] if before else [])])
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


# --- the parts ------------------------------------------------------------------------------------------


def start(bench: Bench) -> list[Row]:
    """One line from a cold start."""
    command(bench.run, [ONE])
    seconds = [command(bench.run, [ONE]).wall for _ in range(2 * bench.turns)]
    return [["cold start, one line", "–", "≤ 1.0 s", "0.5 s", shown(seconds, 2, " s")]]


def bulk(bench: Bench) -> list[Row]:
    """Thousands of lines: heed's command from a cold start, and CTranslate2's calls with a loaded model."""
    rows = []
    src, ref, num_new = bench.lines()
    for precision, target in (("int8", ["≥ 0.9x", "1.0x"]), ("float32", ["", ""])):
        ours, theirs = against_ctranslate2(bench, bench.run, precision, "--precision", precision)
        scores = [bleu(each[-1].outputs[:num_new], ref[:num_new]) for each in (ours, theirs)]
        same = sum(a == b for a, b in zip(ours[-1].outputs, theirs[-1].outputs, strict=True))
        rows.append([
            f"`heed translate --precision {precision}`, {len(src):,} lines from a cold start",
            f"CTranslate2's own calls, {precision}, {speed(theirs)} lines/s",
            *target,
            f"{ratios(theirs, ours)}; {speed(ours)} lines/s; BLEU {scores[0]:.2f} and "
            f"{scores[1]:.2f}; same text {same:,} of {len(src):,}",
        ])  # fmt: skip
    return rows


def against_ctranslate2(bench: Bench, run: Path, precision: str, *flags: str) -> tuple[list[Timed], list[Timed]]:
    """Turns of heed's command with a run, and of CTranslate2's calls with the full model, loaded before."""
    src = bench.lines()[0]
    peer = peers.Side(ctranslate2_side, bench.run, precision, num_cpus())
    peer.run(src[:64])
    turns = [(command(run, src, *flags), peer.run(src)) for _ in range(bench.turns)]
    return [ours for ours, _ in turns], [theirs for _, theirs in turns]


def speed(turns: Sequence[Timed]) -> str:
    """Lines a second, the median."""
    return f"{statistics.median(len(each.outputs) / each.wall for each in turns):,.0f}"


def ratios(theirs: Sequence[Timed], ours: Sequence[Timed]) -> str:
    """How many times as fast we are, in wall time and in processor time."""
    wall = peers.ratio([each.wall for each in theirs], [each.wall for each in ours])
    return f"{wall}, in processor time {peers.ratio([e.processor for e in theirs], [e.processor for e in ours])}"


def fast(bench: Bench) -> list[Row]:
    """The small student, searched greedily, and the full model by CTranslate2 with the recipe's beam."""
    what = "the same with a fast student, at ≤ 0.3 BLEU less"
    peer, target = "CTranslate2's own calls, int8, the full model and its beam", ["≥ 4x", "6x"]
    if bench.fast is None:
        return [[what, peer, *target, "not measured: no student given (`--fast RUN`)"]]
    src, ref, num_new = bench.lines()
    full = bleu(command(bench.run, src).outputs[:num_new], ref[:num_new])
    rows = []
    for flags in ((), ("--precision", "int8")):
        ours, theirs = against_ctranslate2(bench, bench.fast, "int8", "--beam", "1", *flags)
        score = bleu(ours[-1].outputs[:num_new], ref[:num_new])
        found = f"{ratios(theirs, ours)}; {speed(ours)} and {speed(theirs)} lines/s"
        rows.append([" ".join((what, *flags)), peer, *target, f"{found}; BLEU {score:.2f}, full model {full:.2f}"])
    return rows


def sentence(bench: Bench) -> list[Row]:
    """One line at a time: heed in Python, its server with one client, and CTranslate2."""
    from serving import Client, serving

    src = bench.lines()[0]
    ours, peer = peers.Side(heed_side, bench.run), peers.Side(ctranslate2_side, bench.run, "float32", 1)
    names = ("heed", "server", "CTranslate2")
    times: dict[str, list[float]] = {name: [] for name in names}
    middle: dict[str, list[float]] = {name: [] for name in names}
    late: dict[str, list[float]] = {name: [] for name in names}
    with serving(bench.run, 1) as server:
        client = Client(server)

        def ask(line: str) -> float:
            begin = time.perf_counter()
            if (status := client.translate(line)) != "200":
                sys.exit(f"the server answered {status}")
            return time.perf_counter() - begin

        for turn in range(bench.turns + 1):
            for name in names:
                found = []
                for line in src[turn * 60 : (turn + 1) * 60]:
                    if name == "server":
                        found.append(ask(line))
                    else:
                        found.append((ours if name == "heed" else peer).run([line]).wall)
                if turn:  # the first warms up
                    times[name] += found
                    middle[name].append(quantile(found, 0.5))
                    late[name].append(quantile(found, 0.95))
    quantiles = {name: tuple(1000 * quantile(times[name], share) for share in (0.5, 0.95)) for name in names}
    text = {name: f"{first:.1f} and {second:.1f} ms" for name, (first, second) in quantiles.items()}
    both = f"{peers.ratio(middle['heed'], middle['CTranslate2'])} and {peers.ratio(late['heed'], late['CTranslate2'])}"
    more = [[1000 * (a - b) for a, b in zip(which["server"], which["heed"], strict=True)] for which in (middle, late)]
    peer_text = f"CTranslate2 alone, float32: {text['CTranslate2']}"
    return [
        ["one sentence, p50 and p95, Python", peer_text, "≤ 1.2x", "1.05x", f"{both}; {text['heed']}"],
        [
            "one sentence, p50 and p95, the server", f"heed in Python: {text['heed']}", "+ 3 ms", "",
            f"+ {shown(more[0], 1, ' ms')} and + {shown(more[1], 1, ' ms')}; {text['server']}",
        ],
    ]  # fmt: skip


def server(bench: Bench) -> list[Row]:
    """Sentences a second of 64 clients, with and without CTranslate2."""
    from contextlib import ExitStack

    from serving import Seen, ask, serving
    from serving import shown as counted

    src = bench.lines()[0]
    rates: dict[str, list[float]] = {"default": [], "PyTorch": []}
    seen = {name: Seen() for name in rates}
    with ExitStack() as stack:
        servers = {"default": stack.enter_context(serving(bench.run, num_cpus()))}
        with without_ctranslate2():
            servers["PyTorch"] = stack.enter_context(serving(bench.run, num_cpus()))
        for turn in range(bench.turns + 1):
            for name, one in servers.items():
                number = 512 if turn else 128  # the first warms up
                part = [src[(turn * 512 + index) % len(src)] for index in range(number)]
                begin = time.perf_counter()
                ask(one, part, 64, seen[name])
                if turn:
                    rates[name].append(number / (time.perf_counter() - begin))
    failed = {name: counted(found.statuses) for name, found in seen.items() if set(found.statuses) != {"200"}}
    return [[
        "server, 64 clients, sentences/s", f"heed without CTranslate2: {statistics.median(rates['PyTorch']):,.0f}",
        "≥ 3x", "4x", f"{peers.ratio(rates['default'], rates['PyTorch'])}; {shown(rates['default'], 0)}, p95 "
        f"{1000 * seen['default'].percentile(0.95):,.0f} ms" + (f"; FAILED {failed}" if failed else ""),
    ]]  # fmt: skip


def busy(bench: Bench) -> list[Row]:
    """The share of the processors that translating and serving keep while two programs want all of them."""
    found = tables_of("neighbours.py", "--run", str(bench.run), "--seconds", "5", "--repeat", str(bench.turns))
    return [
        [f"{row[0]}, with two busy programs", "fair share", "≥ 0.8", "0.95", row[3]]
        for row in found
        if row[0].startswith(("translating", "serving"))
    ]


def training(bench: Bench) -> list[Row]:
    """An update, compared with a plain loop around `transformers`."""
    rows = tables_of("training.py", "--data", str(bench.data))
    ratio = next((row[1] for row in rows if row[0].startswith("heed / transformers, each")), "not measured")
    return [["training, an update, each in its better precision", "`transformers`, a plain loop", "≥ 1.8x", "", ratio]]


def decoding(bench: Bench) -> list[Row]:
    """Searches by PyTorch, compared with `generate` of `transformers`."""
    rows = tables_of(
        "decoding.py", "--data", str(bench.data), "--repeats", str(bench.turns), "--sentences", "500", "--alone", "40"
    )
    wanted = [row for row in rows if len(row) == 4 and row[0].startswith("beam")]
    found = [[f"PyTorch's search, {row[0]}, float32", "`transformers`, `generate`", "", "", row[2]] for row in wanted]
    return found or [["PyTorch's search", "`transformers`, `generate`", "", "", "not measured"]]


PARTS: dict[str, Callable[[Bench], list[Row]]] = {
    "start": start, "bulk": bulk, "fast": fast, "sentence": sentence, "server": server, "busy": busy,
    "training": training, "decoding": decoding,
}  # fmt: skip


def tables_of(script: str, *flags: str) -> list[Row]:
    """Run another script, show its output, and return the rows of its tables."""
    words = [sys.executable, str(BENCHMARKS / script), *flags]
    printed = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    print(printed, file=sys.stderr, flush=True)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("| ")]


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """BLEU."""
    from heed.metrics import score_outputs

    return score_outputs(list(outputs), list(references), "de", ["bleu"], intervals=0)[0].value


def num_cpus() -> int:
    """Processors that this process may use."""
    from heed.core.environment import num_cpus as available

    return available()


# --- the command ----------------------------------------------------------------------------------------


def train(folder: Path, data: Path, minutes: float) -> None:
    """What `heed train` makes of Multi30k without a recipe."""
    if (folder / "model.safetensors").exists():
        return
    print(f"Training a translator for {minutes:g} minutes into {folder}", file=sys.stderr, flush=True)
    files = {"src": "train.en.gz", "tgt": "train.de.gz", "valid-src": "val.en.gz", "valid-tgt": "val.de.gz"}
    flags = [f"--{name}={data / file}" for name, file in files.items()]
    words = [sys.executable, "-m", "heed", "train", *flags, f"--max-time={minutes:g}m", f"--out={folder}"]
    subprocess.run([*words, "--overwrite", "--quiet"], stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of Multi30k's raw .gz files")
    parser.add_argument("--run", type=Path, help="a translator from English to German (default: one is trained)")
    parser.add_argument("--train-minutes", type=float, default=8.0, help="how long one is trained (default 8)")
    parser.add_argument("--fast", type=Path, help="a small student of it, with a shallow decoder")
    parser.add_argument("--out", type=Path, default=peers.ROOT / "runs" / "targets", help="where results are kept")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts to measure, of {', '.join(PARTS)}")
    parser.add_argument("--turns", type=int, default=5, help="turns of each part (default 5)")
    parser.add_argument("--lines", type=int, default=4000, help="lines of bulk and fast (default 4,000)")
    given = parser.parse_args()
    wanted = [name for name in given.only.split(",") if name]
    if unknown := sorted({*wanted} - {*PARTS}):
        parser.error(f"--only: there is no part {', '.join(unknown)}. The parts are {', '.join(PARTS)}.")
    data, begin = peers.multi30k(given.data), time.perf_counter()
    if not peers.installed("ctranslate2"):
        wanted = [name for name in wanted if name in ("start", "busy", "training", "decoding")]
    run = given.run or peers.ROOT / "runs" / "benchmark-translator"
    if given.run is None and wanted:
        train(run, data, given.train_minutes)
    given.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(run, given.fast, data, given.turns, given.lines)
    for name in wanted:
        print(f"  {name}", file=sys.stderr, flush=True)
        rows = PARTS[name](bench)
        (given.out / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    there = [name for name in ("transformers", "ctranslate2") if peers.installed(name)]
    print(peers.machine_line(num_cpus(), there))
    files = [given.out / f"{name}.json" for name in PARTS]
    rows = [row for file in files if file.exists() for row in json.loads(file.read_text(encoding="utf-8"))]
    print(f"\n{peers.table(['', 'peer', 'target', 'stretch', 'result'], rows)}")
    print(f"\n{(time.perf_counter() - begin) / 60:.1f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
