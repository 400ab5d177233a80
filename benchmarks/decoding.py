"""Translation speed of heed, `transformers`' generate and CTranslate2 with the same weights.

All sides translate lines to lines with the same tokenizer: split into pieces, search sorted by length with at most 60
new tokens, join. All sides compare the hypotheses of a beam by their mean log-probability (heed: "mean", α = 1). The
weights are those of `--run`, if that is a Marian model, or of one that is trained for `--train-minutes` and kept in
`--cache`. Prints, never asserts.

The beams stop by different rules. heed stops when as many hypotheses have ended as the beam is wide. `generate` by
default stops only when no open hypothesis scores better than the worst of those, so it searches longer; with
early_stopping it stops like heed. CTranslate2 stops when the best hypothesis has ended. So a few outputs differ;
greedy ones must agree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
import torch

import heed
from heed.core.config import Document
from heed.core.environment import num_cpus
from heed.core.errors import HeedError
from heed.core.run_files import RECIPE, WEIGHTS
from heed.decoding.options import SearchOptions
from heed.execute import execute
from heed.inference.translator import ModelTranslator
from heed.metrics import score_outputs
from heed.nn.device import choose_device
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

MAX_TOKENS = 59  # plus the end of sentence; a peer may put a 60th token in its place, which is cut off
TEST = "test_2016_flickr"


@dataclass(frozen=True)
class Variant:
    """One way to translate: the side, its precision, and its other options."""

    side: str
    precision: str
    option: str = ""

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.side} {self.precision}" + (f", {self.option}" if self.option else "")


@dataclass(frozen=True)
class Setting:
    """What is translated, with which search."""

    beam: int
    batch: int
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in the table."""
        how = f"{self.batch} at a time" if self.batch > 1 else "one at a time"
        return f"beam {self.beam}, {how}"


@dataclass(frozen=True)
class Answer:
    """A side's result in a setting: translations in order, and times."""

    texts: list[str]
    num_tokens: int
    """Generated tokens, including the ends of sentences."""
    seconds: float
    latencies: list[float]
    """Seconds of each call."""


Translate = Callable[[list[str]], tuple[list[str], int]]
"""A function from lines to translations and the number of generated tokens."""
Job = tuple[Variant, Setting]


def timed(translate: Translate, setting: Setting) -> Answer:
    """Translate all lines in one call, which makes its own batches; or each line in its own call."""
    groups = [list(setting.lines)] if setting.batch > 1 else [[line] for line in setting.lines]
    texts, num_tokens, latencies = [], 0, []
    begin = time.perf_counter()
    for group in groups:
        before = time.perf_counter()
        found, count = translate(group)
        latencies.append(time.perf_counter() - before)
        texts += found
        num_tokens += count
    return Answer(texts, num_tokens, time.perf_counter() - begin, latencies)


# --- heed -----------------------------------------------------------------------------------------------


def heed_side(folder: Path, threads: int, device: torch.device) -> Callable[[Job], Answer]:
    """The run's own translator."""
    translators = {
        precision: heed.load(folder, precision=precision, device=str(device)).run.predictor.translator
        for precision in ("float32", "bfloat16")
    }

    def do(job: Job) -> Answer:
        variant, setting = job
        options = SearchOptions(
            beam_size=setting.beam, batch_size=setting.batch, length_norm="mean", length_penalty=1.0,
            max_tokens=MAX_TOKENS, guard=False,  # the peers return every output unchecked, and so must heed here
        )  # fmt: skip
        return timed(lambda lines: heed_translate(translators[variant.precision], lines, options), setting)

    return do


def heed_translate(translator: ModelTranslator, lines: list[str], options: SearchOptions) -> tuple[list[str], int]:
    """As `heed translate` does."""
    found = translator.translate(lines, options)
    return [hypothesis.text for hypothesis in found], sum(len(hypothesis.ids) + 1 for hypothesis in found)


# --- the peers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """Conversion from lines to ids and back, the same for the peers as for heed."""

    tokenizer: Tokenizer
    normaliser: Normaliser

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids with the end of sentence."""
        encoded = self.tokenizer.encode([self.normaliser.apply(line) for line in lines])
        return [[*ids, Vocabulary.eos_id] for ids in encoded]

    @staticmethod
    def of(run: Run) -> Text:
        """The text conversion of a run."""
        return Text(run.tokenizers["src"], run.recipe.data.normaliser)


def longest_first(ids: Sequence[Sequence[int]]) -> list[int]:
    """An order of the lines in which batches need little padding."""
    return sorted(range(len(ids)), key=lambda index: -len(ids[index]))


def marian_side(folder: Path, threads: int, device: torch.device) -> Callable[[Job], Answer]:
    """`generate` of a Marian model."""
    torch.set_num_threads(threads)
    run = Run(folder)
    config: Any = run.recipe.model
    models = {}
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        model = peers.marian(config, run.vocabularies.tgt_size, 0.0, 0.0).eval()
        peers.give_weights_to_marian(run.model, model)
        models[precision] = model.to(device, dtype)
    text = Text.of(run)

    def do(job: Job) -> Answer:
        variant, setting = job
        model, early = models[variant.precision], variant.option == "early stopping"
        return timed(lambda lines: marian_translate(model, text, lines, setting, early), setting)

    return do


@torch.inference_mode()
def marian_translate(
    model: Any, text: Text, lines: list[str], setting: Setting, early_stopping: bool
) -> tuple[list[str], int]:
    """Translate batches of similar length with `generate`."""
    ids = text.ids(lines)
    order = longest_first(ids)
    out: list[list[int]] = [[] for _ in lines]
    for begin in range(0, len(order), setting.batch):
        rows = order[begin : begin + setting.batch]
        longest = len(ids[rows[0]])
        src = torch.tensor([ids[row] + [Vocabulary.pad_id] * (longest - len(ids[row])) for row in rows])
        src = src.to(model.device)
        found = model.generate(
            input_ids=src, attention_mask=(src != Vocabulary.pad_id).long(), num_beams=setting.beam, do_sample=False,
            max_new_tokens=MAX_TOKENS + 1, length_penalty=1.0,
            early_stopping=early_stopping if setting.beam > 1 else None,
        )  # fmt: skip
        for row, generated in zip(rows, found[:, 1:].tolist(), strict=True):
            end = generated.index(Vocabulary.eos_id) if Vocabulary.eos_id in generated else MAX_TOKENS
            out[row] = generated[:end]
    return text.tokenizer.decode(out), sum(len(generated) + 1 for generated in out)


def ctranslate2_precisions() -> list[str]:
    """The compute type that CTranslate2 uses on this processor."""
    import ctranslate2

    able = ctranslate2.get_supported_compute_types("cpu")
    return [kind for kind in ("float32", "bfloat16", "int8_float32") if kind in able]


def ctranslate2_layouts(threads: int) -> dict[str, tuple[int, int]]:
    """Number of workers and threads per worker: one worker with all threads, or as many workers as threads."""
    layouts = [(1, threads), (threads, 1)] if threads > 1 else [(1, 1)]
    return {f"{workers} x {each}": (workers, each) for workers, each in layouts}


def ctranslate2_side(folder: Path, threads: int, device: torch.device) -> Callable[[Job], Answer]:
    """CTranslate2's own search."""
    import ctranslate2

    run = Run(folder)
    text = Text.of(run)
    vocabulary = text.tokenizer.vocabulary
    # Kept as long as this process lives, because it reads the folder when it creates a translator.
    place = tempfile.TemporaryDirectory()
    translators: dict[tuple[str, str], Any] = {}
    for quantization in (None, "int8"):
        peers.save_for_ctranslate2(
            run.model, vocabulary.pieces, Path(place.name) / (quantization or "float32"), quantization
        )  # fmt: skip

    def make(precision: str, layout: str) -> Any:
        kind = "int8" if precision.startswith("int8") else "float32"
        workers, each = ctranslate2_layouts(threads)[layout]
        return ctranslate2.Translator(
            str(Path(place.name) / kind), compute_type=precision, inter_threads=workers, intra_threads=each
        )

    def do(job: Job) -> Answer:
        variant, setting = job
        key = variant.precision, variant.option
        translator = translators.get(key) or translators.setdefault(key, make(*key))
        return timed(lambda lines: ctranslate2_translate(translator, text, lines, setting), setting)

    return do


def ctranslate2_translate(translator: Any, text: Text, lines: list[str], setting: Setting) -> tuple[list[str], int]:
    """Pieces in, pieces out."""
    ids, vocabulary = text.ids(lines), text.tokenizer.vocabulary
    order = longest_first(ids)
    found = translator.translate_batch(
        [[vocabulary.piece(token) for token in ids[row]] for row in order], beam_size=setting.beam,
        max_batch_size=setting.batch, max_decoding_length=MAX_TOKENS + 1, length_penalty=1.0,
    )  # fmt: skip
    out: list[list[int]] = [[] for _ in lines]
    for row, result in zip(order, found, strict=True):
        out[row] = [vocabulary.id(piece) for piece in result.hypotheses[0][:MAX_TOKENS]]
    return text.tokenizer.decode(out), sum(len(generated) + 1 for generated in out)


# --- the weights ----------------------------------------------------------------------------------------


def marian_run(given: argparse.Namespace, data: Path, device: torch.device) -> Path:
    """The run folder whose weights are used: the given one, the cached one, or a new one."""
    folder: Path = given.run or given.cache
    if given.run is None and not (folder / WEIGHTS).exists():
        train(data, folder, given.train_minutes, device)
    if not (folder / RECIPE).exists():
        sys.exit(f"{folder} is not a run folder: it has no {RECIPE}.")
    problem = peers.why_not_marian(Run(folder).recipe.model)
    if problem:
        sys.exit(f"{folder} cannot be given to Marian: {problem}. Without --run, a suitable model is trained.")
    return folder


def train(data: Path, folder: Path, minutes: float, device: torch.device) -> None:
    """A small Marian model, trained by heed long enough for outputs of a natural length, not for a good score."""
    print(f"Training a Marian model for {minutes:g} minutes into {folder}", file=sys.stderr)
    keys: dict[str, object] = {
        "task": "translation", "data.dir": str(data), "data.src": "train.en.gz", "data.tgt": "train.de.gz",
        "data.valid_src": "val.en.gz", "data.valid_tgt": "val.de.gz", "data.tgt_lang": "de",
        "tokenizer.vocab_size": peers.VOCAB_SIZE, "training.max_minutes": minutes, "training.lr": 1e-3,
        "training.warmup_steps": 400, "training.eval_every": 1_000_000, "training.save_every": 1_000_000,
        "training.ema_decay": 0.99,
    }  # fmt: skip
    keys.update({f"model.{name}": value for name, value in peers.MODEL.model_dump().items()})
    options = TrainOptions(folder, overwrite=True, device=str(device))
    execute(Planner(Document(), keys, options).plan(), options)


# --- the comparison -------------------------------------------------------------------------------------


def start(folder: Path, threads: int, device: torch.device) -> dict[str, peers.Side]:
    """A process for each installed side; heed uses CTranslate2 on a CPU only."""
    sides = {"heed": peers.Side(heed_side, folder, threads, device)}
    if peers.installed("transformers"):
        sides["transformers"] = peers.Side(marian_side, folder, threads, device)
    if device.type == "cpu" and peers.installed("ctranslate2"):
        sides["ctranslate2"] = peers.Side(ctranslate2_side, folder, threads, device)
    return sides


def variants_for(sides: dict[str, peers.Side], beam: int, threads: int) -> list[Variant]:
    """The variants to measure in a setting, heed's and the peers' in turn."""
    out: list[Variant] = []
    for precision in ("float32", "bfloat16"):
        out.append(Variant("heed", precision))
        if "transformers" in sides:
            options = ("", "early stopping") if beam > 1 else ("",)
            out += [Variant("transformers", precision, option) for option in options]
    if "ctranslate2" in sides:
        layouts = ctranslate2_layouts(threads)
        out += [Variant("ctranslate2", kind, layout) for kind in ctranslate2_precisions() for layout in layouts]
    return out


def measure(
    sides: dict[str, peers.Side], setting: Setting, repeats: int, threads: int
) -> dict[Variant, list[Answer]]:  # fmt: skip
    """The results of all variants, in turn, `repeats` times after a warm-up on a few lines."""
    variants = variants_for(sides, setting.beam, threads)
    for variant in variants:
        sides[variant.side].run((variant, Setting(setting.beam, setting.batch, setting.lines[:16])))
    answers: dict[Variant, list[Answer]] = {variant: [] for variant in variants}
    for number in range(repeats):
        for variant in variants if number % 2 == 0 else variants[::-1]:
            answers[variant].append(sides[variant.side].run((variant, setting)))
    return answers


def row_of(variant: Variant, setting: Setting, answers: list[Answer], exact: Answer, refs: list[str]) -> list[str]:
    """One row of the table. `exact` is heed's float32 result with the same beam, for as many lines or more."""
    seconds = statistics.median(answer.seconds for answer in answers)
    latencies = sorted(1000 * latency for answer in answers for latency in answer.latencies)
    first = answers[0]
    alike = sum(text == other for text, other in zip(first.texts, exact.texts, strict=False)) / len(first.texts)
    one_by_one = setting.batch == 1
    middle, late = (latencies[int(len(latencies) * share)] for share in (0.5, 0.95))
    return [
        setting.name, variant.name, f"{len(first.texts) / seconds:,.1f}", f"{first.num_tokens / seconds:,.0f}",
        f"{middle:.1f} / {late:.1f}" if one_by_one else "",
        "" if one_by_one else f"{score_outputs(first.texts, refs, 'de', ['bleu'], intervals=0)[0].value:.2f}",
        f"{alike:.1%}",
    ]  # fmt: skip


def ratio_rows(setting: Setting, answers: dict[Variant, list[Answer]]) -> list[list[str]]:
    """heed against `generate`: each in its better precision, and both in the same."""
    speeds = {variant: [1 / answer.seconds for answer in found] for variant, found in answers.items()}

    def best(side: str, precision: str, option: str) -> Variant:
        able = [v for v in speeds if v.side == side and v.precision.startswith(precision) and v.option == option]
        return max(able, key=lambda v: statistics.median(speeds[v]))

    rows = []
    for option in sorted({variant.option for variant in answers if variant.side == "transformers"}):
        row = [setting.name + (f", {option}" if option else "")]
        for precision in ("", "float32", "bfloat16"):
            ours, theirs = best("heed", precision, ""), best("transformers", precision, option)
            which = "" if precision else f" {ours.precision} / {theirs.precision}"
            row.append(peers.ratio(speeds[ours], speeds[theirs]) + which)
        rows.append(row)
    return rows


def settings_of(lines: Sequence[str], given: argparse.Namespace) -> list[Setting]:
    """Batched and one at a time, beam 1 and 5."""
    alone = tuple(lines[: given.alone])
    return [s for beam in (1, 5) for s in (Setting(beam, given.batch, tuple(lines)), Setting(beam, 1, alone))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of Multi30k's raw .gz files")
    parser.add_argument("--run", type=Path, help="a heed run with a Marian model")
    parser.add_argument(
        "--cache", type=Path, default=peers.ROOT / "runs" / "benchmark-marian", help="where a trained model is cached"
    )
    parser.add_argument("--train-minutes", type=float, default=5.0, help="how long a model is trained (default 5)")
    parser.add_argument("--sentences", type=int, default=1000, help=f"lines of {TEST} (default all 1,000)")
    parser.add_argument("--alone", type=int, default=60, help="lines to translate one at a time (default 60)")
    parser.add_argument("--batch", type=int, default=64, help="sentences per batch (default 64)")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of each measurement (default 3)")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    given = parser.parse_args()
    device = choose_device(given.device)
    data = peers.multi30k(given.data)
    src, refs = (side[: given.sentences] for side in peers.both_sides(data, TEST))
    try:
        folder = marian_run(given, data, device)
    except HeedError as error:
        sys.exit(f"error: {error}")
    sides = start(folder, given.threads, device)
    print(peers.machine_line(given.threads, [name for name in sides if name != "heed"], device))
    print(f"Model: {Run(folder).recipe.model.model_dump()}", flush=True)
    rows, ratios = [], []
    exact: dict[int, Answer] = {}
    for setting in settings_of(src, given):
        print(
            f"  {setting.name}: {len(setting.lines):,} lines, each way {given.repeats} times",
            file=sys.stderr,
            flush=True,
        )
        answers = measure(sides, setting, given.repeats, given.threads)
        exact.setdefault(setting.beam, answers[Variant("heed", "float32")][0])
        rows += [row_of(variant, setting, found, exact[setting.beam], refs) for variant, found in answers.items()]
        ratios += ratio_rows(setting, answers)
    header = ["search", "engine", "sentences/s", "tokens/s", "p50 / p95 ms", "BLEU", "same as heed float32"]
    print(f"\n{peers.table(header, rows)}")
    if ratios:
        print(f"\n{peers.table(['heed / transformers', 'better precision of each', 'float32', 'bfloat16'], ratios)}")


if __name__ == "__main__":
    main()
