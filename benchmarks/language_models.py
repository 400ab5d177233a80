"""Speed of training and running language models, compared with the loops of other libraries.

    python benchmarks/language_models.py lstm --data FOLDER
    python benchmarks/language_models.py adaptive gpt generation greedy

`lstm`: one update of an LSTM language model of 2 x 650 with tied weights and dropout of 0.5 on the Penn Treebank (20
streams of 35 words, SGD, gradients clipped at 5). The peer is `torch.nn.LSTM` in the loop of PyTorch's own
word-language-model example, in float32 and with autocast to bfloat16. heed's step is that of its trainer.

`adaptive`: one update of an LSTM of 256 whose vocabulary has 300,000 words, with and without the adaptive softmax.

`gpt`: one update of a decoder-only Transformer (6 layers of 384, 6 heads, 16 windows of 256 characters, dropout 0.2
everywhere, AdamW with a rate of 1e-3, gradients clipped at 1). The peer is `transformers`' GPT-2 in a plain loop with
its faster attention. `generation`: the same model continues 1 and 16 prompts of 32 tokens by 200, sampled from the 20
likeliest; the peer is `generate` with its cache. `greedy`: the likeliest token each time, which heed searches with
CTranslate2 in float32 and in int8.

Prints, never asserts.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import peers
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.core.environment import data_dir, num_cpus
from heed.data.batch import Batch
from heed.data.text_stream import StreamLoader, TextStream
from heed.decoding.options import SearchOptions
from heed.export.ctranslate2 import write_model
from heed.export.gpt2 import gpt2_config, to_gpt2
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.inference.ctranslate2_generator import CTranslate2Generator
from heed.inference.translator import ModelTranslator
from heed.models.gpt import Gpt, GptConfig
from heed.models.rnn_lm import Recurrent, RecurrentConfig
from heed.nn.contract import Smoothing, State, Vocabularies
from heed.nn.device import set_threads
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.packing import pack
from heed.tasks.generation import chain_rule_loss
from heed.tasks.task import Loss
from heed.text.normalise import Normaliser
from heed.text.readers import read_lines
from heed.text.tokenizers.symbols import Character
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary
from heed.training.config import TrainingConfig
from heed.training.trainer import Trainer

SEED = 1
CPU = torch.device("cpu")
DEFAULT_PTB = peers.ROOT.parent / "shared" / "data" / "ptb"
PRECISIONS = ("float32", "bfloat16")
Job = tuple[str, int]
"""(precision, number of the batch)."""


# --- data -----------------------------------------------------------------------------------------------


def penn_treebank(given: Path | None) -> Path:
    """The file of the training words, in the given folder, HEED_DATA, or `shared/data/ptb` next to the checkout."""
    folder = given or data_dir() or DEFAULT_PTB
    for name in ("ptb.train.txt", "ptb.train.txt.xz"):
        if (folder / name).exists():
            return folder / name
    sys.exit(f"{folder} has no ptb.train.txt (or .xz): pass its folder with --data DIR.")


def words_of(path: Path) -> tuple[TextStream, int]:
    """The words of a text as ids in order of appearance, with an end after each line, and the number of ids."""
    ids: dict[str, int] = {}
    lines = [
        [ids.setdefault(word, len(SPECIAL_PIECES) + len(ids)) for word in line.split()] + [Vocabulary.eos_id]
        for line in read_lines(path)
    ]
    return TextStream.of_lines(lines), len(SPECIAL_PIECES) + len(ids)


# --- LSTM training --------------------------------------------------------------------------------------

ROWS, STEPS, SIZE, DROPOUT, CLIP = 20, 35, 650, 0.5, 5.0
LSTM = RecurrentConfig(d_model=SIZE, hidden_size=SIZE, num_layers=2, dropout=DROPOUT)


class OnlyALoss:
    """The part of a task that a training step needs."""

    replayable = True

    def loss(self, model: Any, batch: Batch, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        return chain_rule_loss(model, batch, Smoothing(), dropout_keys, carried)


def heed_lstm(
    batches: Sequence[Batch], vocab_size: int, threads: int, shape: RecurrentConfig = LSTM
) -> Callable[[Job], float]:
    """Seconds of one update by heed's trainer."""
    set_threads(threads)

    def make(precision: str) -> Trainer:
        torch.manual_seed(SEED)
        config = TrainingConfig(
            precision=precision, optimizer="sgd", lr=1.0, schedule="constant", warmup_steps=0, clip_norm=CLIP,
            average="none", context=STEPS, num_streams=ROWS, label_smoothing=0.0,
        )  # fmt: skip
        model, nowhere = Recurrent(shape, Vocabularies(0, vocab_size)), Path(tempfile.gettempdir())
        return Trainer(config, model, OnlyALoss(), nowhere, SEED, CPU, shape.d_model, quiet=True)

    trainers = {precision: make(precision) for precision in PRECISIONS}

    def step(job: Job) -> float:
        precision, number = job
        begin = time.perf_counter()
        trainers[precision].train_step([batches[number]])
        return time.perf_counter() - begin

    return step


class WordLanguageModel(nn.Module):
    """The model of PyTorch's example: embedding, `nn.LSTM`, linear layer with the embedding's weight; time first."""

    def __init__(self, vocab_size: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocab_size, SIZE)
        self.rnn = nn.LSTM(SIZE, SIZE, 2, dropout=dropout)
        self.decoder = nn.Linear(SIZE, vocab_size)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, ids: Tensor, hidden: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Logits `[T, B, V]` and the state."""
        out, hidden = self.rnn(self.drop(self.encoder(ids)), hidden)
        return self.decoder(self.drop(out)), hidden


def mean_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy per token."""
    return F.cross_entropy(logits.float().flatten(0, 1), batch.tgt_out.t().flatten())


class PlainLoop:
    """The example's loop: detach, forward, backward, clip, SGD."""

    def __init__(self, vocab_size: int, precision: str) -> None:
        torch.manual_seed(SEED)
        self.model = WordLanguageModel(vocab_size, DROPOUT)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.half = precision == "bfloat16"
        self.hidden: tuple[Tensor, Tensor] | None = None

    def step(self, batch: Batch) -> None:
        """One update."""
        with torch.autocast("cpu", torch.bfloat16) if self.half else contextlib.nullcontext():
            before = None if self.hidden is None else (self.hidden[0].detach(), self.hidden[1].detach())
            logits, self.hidden = self.model(batch.tgt_in.t(), before)
        mean_loss(logits, batch).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()


def plain_lstm(batches: Sequence[Batch], vocab_size: int, threads: int) -> Callable[[Job], float]:
    """Seconds of one update of the plain loop."""
    torch.set_num_threads(threads)
    loops = {precision: PlainLoop(vocab_size, precision) for precision in PRECISIONS}

    def step(job: Job) -> float:
        precision, number = job
        begin = time.perf_counter()
        loops[precision].step(batches[number])
        return time.perf_counter() - begin

    return step


@torch.no_grad()
def same_lstm_loss(batch: Batch, vocab_size: int) -> str:
    """heed's loss and the example's on one batch with the same weights and no dropout."""
    torch.manual_seed(SEED)
    model, peer = Recurrent(LSTM, Vocabularies(0, vocab_size)), WordLanguageModel(vocab_size, 0.0)
    nn.init.normal_(model.head.bias)
    peer.encoder.weight.copy_(model.embedding)
    peer.decoder.bias.copy_(model.head.bias)
    theirs = dict(peer.rnn.named_parameters())
    for number, layer in enumerate(model.layers):
        for ours, linear in (("ih", layer.input), ("hh", layer.recurrent)):
            theirs[f"weight_{ours}_l{number}"].copy_(linear.weight)
            theirs[f"bias_{ours}_l{number}"].copy_(linear.bias)
    loss = chain_rule_loss(model, batch, Smoothing(), None)
    a, b = float(loss.loss_sum) / batch.num_targets, float(mean_loss(peer(batch.tgt_in.t(), None)[0], batch))
    verdict = "equal to 1e-4" if abs(a - b) < 1e-4 else "NOT EQUAL"
    return f"Loss with the same weights, no dropout, float32: heed {a:.6f}, torch.nn.LSTM {b:.6f}: {verdict}."


def lstm_training(given: argparse.Namespace) -> None:
    """The comparison `lstm`."""
    text, vocab_size = words_of(penn_treebank(given.data))
    loader = StreamLoader(text, num_streams=ROWS, context=STEPS, seed=SEED)
    batches = [batch for _, batch in islice(loader.batches_from(), given.warm_up + given.steps)]
    print(f"LSTM 2 x {SIZE}, {len(text):,} tokens, {vocab_size:,} words; {ROWS} x {STEPS} an update", flush=True)
    print(same_lstm_loss(batches[0], vocab_size), flush=True)
    sides = {
        "heed": peers.Side(heed_lstm, batches, vocab_size, given.threads),
        "torch.nn.LSTM": peers.Side(plain_lstm, batches, vocab_size, given.threads),
    }
    report(speeds_of(sides, batches, given.warm_up), "one update, tokens/s")


# --- a large vocabulary ---------------------------------------------------------------------------------

WORDS, CUTOFFS = 300_000, (20_000, 100_000)
LARGE = RecurrentConfig(d_model=256, hidden_size=256, num_layers=1, dropout=0.0, tie=False)


def zipfian(num_batches: int) -> list[Batch]:
    """Random words with Zipf's law: the n-th most frequent is n times as rare as the first."""
    generator = torch.Generator().manual_seed(SEED)
    chances = 1.0 / torch.arange(1, WORDS - len(SPECIAL_PIECES) + 1)
    words = torch.multinomial(chances, num_batches * ROWS * (STEPS + 1), replacement=True, generator=generator)
    ids = (words + len(SPECIAL_PIECES)).view(num_batches, ROWS, STEPS + 1)
    mask, rows = torch.ones(ROWS, STEPS, dtype=torch.bool), torch.arange(ROWS)
    return [
        Batch(None, one[:, :-1].contiguous(), one[:, 1:].contiguous(), mask, rows, mask.numel(), 0) for one in ids
    ]  # fmt: skip


def adaptive_softmax(given: argparse.Namespace) -> None:
    """The comparison `adaptive`."""
    batches = zipfian(given.warm_up + given.steps)
    print(f"LSTM of {LARGE.hidden_size}, {WORDS:,} words; {ROWS} x {STEPS} an update", flush=True)
    adaptive = LARGE.model_copy(update={"cutoffs": CUTOFFS})
    sides = {
        "adaptive softmax": peers.Side(heed_lstm, batches, WORDS, given.threads, adaptive),
        "softmax": peers.Side(heed_lstm, batches, WORDS, given.threads, LARGE),
    }
    report(speeds_of(sides, batches, given.warm_up), "one update, tokens/s")


# --- decoder-only training and generation ---------------------------------------------------------------

WINDOWS, WINDOW, PROMPT, NEW, TOP_K = 16, 256, 32, 200, 20
GPT = GptConfig(
    d_model=384, d_ff=1536, num_heads=6, num_layers=6, max_len=WINDOW, dropout=0.2, attention_dropout=0.2
)  # fmt: skip
CHARACTERS = Vocabularies(0, 65)
ATTENTIONS = ("sdpa", "eager")


def windows_of(num_batches: int) -> list[Batch]:
    """Random characters; the time of an update does not depend on them."""
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(
        len(SPECIAL_PIECES), CHARACTERS.tgt_size, (num_batches, WINDOWS, WINDOW + 1), generator=generator
    )
    mask, rows = torch.ones(WINDOWS, WINDOW, dtype=torch.bool), torch.arange(WINDOWS)
    return [
        Batch(None, one[:, :-1].contiguous(), one[:, 1:].contiguous(), mask, rows, mask.numel(), 0) for one in ids
    ]  # fmt: skip


def gpt2_of(model: Gpt, attention: str) -> Any:
    """The `transformers` model with the same weights."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils.logging import set_verbosity_error

    set_verbosity_error()
    sizes = gpt2_config(model.config, CHARACTERS) | {"eos_token_id": None}
    peer = GPT2LMHeadModel(GPT2Config(**sizes, attn_implementation=attention))
    peer.load_state_dict(to_gpt2(dict(model.named_parameters()), model.config.num_layers), strict=False)
    return peer


def new_gpt(max_len: int = WINDOW) -> Gpt:
    """The model with its initial weights."""
    torch.manual_seed(SEED)
    return Gpt(GPT.model_copy(update={"max_len": max_len}), CHARACTERS)


def heed_gpt(batches: Sequence[Batch], threads: int) -> Callable[[Job], float]:
    """Seconds of one update by heed's trainer."""
    set_threads(threads)
    nowhere = Path(tempfile.gettempdir())

    def make(precision: str) -> Trainer:
        config = TrainingConfig(precision=precision, optimizer="adamw", average="none", label_smoothing=0.0)
        return Trainer(config, new_gpt(), OnlyALoss(), nowhere, SEED, CPU, GPT.d_model, quiet=True)

    trainers = {precision: make(precision) for precision in PRECISIONS}

    def step(job: Job) -> float:
        precision, number = job
        begin = time.perf_counter()
        trainers[precision].train_step([batches[number]])
        return time.perf_counter() - begin

    return step


class PlainGpt2Loop:
    """Forward, backward, clip, fused AdamW."""

    def __init__(self, precision: str, attention: str) -> None:
        self.model = gpt2_of(new_gpt(), attention).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.half = precision == "bfloat16"

    def step(self, batch: Batch) -> None:
        """One update."""
        with torch.autocast("cpu", torch.bfloat16) if self.half else contextlib.nullcontext():
            logits = self.model(input_ids=batch.tgt_in, use_cache=False).logits
        F.cross_entropy(logits.float().flatten(0, 1), batch.tgt_out.flatten()).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def plain_gpt2(batches: Sequence[Batch], threads: int) -> Callable[[Job], float]:
    """Seconds of one update of the plain loop, with the attention that is faster on the first batch."""
    torch.set_num_threads(threads)

    def seconds(loop: PlainGpt2Loop, number: int) -> float:
        begin = time.perf_counter()
        loop.step(batches[number])
        return time.perf_counter() - begin

    def best(precision: str) -> PlainGpt2Loop:
        loops = [PlainGpt2Loop(precision, attention) for attention in ATTENTIONS]
        return min(loops, key=lambda loop: min(seconds(loop, 0) for _ in range(2)))

    loops = {precision: best(precision) for precision in PRECISIONS}
    return lambda job: seconds(loops[job[0]], job[1])


@torch.no_grad()
def same_gpt_loss(batch: Batch) -> str:
    """heed's loss and GPT-2's on one batch with the same weights and no dropout."""
    model = new_gpt()
    loss = chain_rule_loss(model, batch, Smoothing(), None)
    logits = gpt2_of(model, "eager").eval()(input_ids=batch.tgt_in).logits
    a, b = (
        float(loss.loss_sum) / batch.num_targets,
        float(F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten())),
    )
    verdict = "equal to 1e-4" if abs(a - b) < 1e-4 else "NOT EQUAL"
    return f"Loss with the same weights, no dropout, float32: heed {a:.6f}, GPT-2 {b:.6f}: {verdict}."


def gpt_training(given: argparse.Namespace) -> None:
    """The comparison `gpt`."""
    if not peers.installed("transformers"):
        return
    batches = windows_of(given.warm_up + given.steps)
    print(f"Decoder-only 6 x 384, {WINDOWS} x {WINDOW} an update, dropout 0.2", flush=True)
    print(same_gpt_loss(batches[0]), flush=True)
    sides = {
        "heed": peers.Side(heed_gpt, batches, given.threads),
        "transformers": peers.Side(plain_gpt2, batches, given.threads),
    }
    report(speeds_of(sides, batches, given.warm_up), "one update, tokens/s")


def heed_generation(num_rows: int, threads: int, sample: bool) -> Callable[[Job], float]:
    """Seconds of one generation, as in `heed generate`."""
    set_threads(threads)
    letters = [chr(ord("!") + place) for place in range(CHARACTERS.tgt_size - len(SPECIAL_PIECES))]
    tokenizer = Character(letters)
    options = SearchOptions(sample=sample, top_k=TOP_K, beam_size=1, max_tokens=NEW)

    def translator(precision: str) -> ModelTranslator:
        dtype = torch.float32 if precision == "float32" else torch.bfloat16
        model = new_gpt(512).requires_grad_(False).to(dtype)
        folder = tempfile.TemporaryDirectory()
        if not sample and precision != "bfloat16":
            write_model(model, [tokenizer.vocabulary], 0, Path(folder.name))
        pack(model, rounded=precision == "int8")
        translator = ModelTranslator(model, None, tokenizer, Normaliser(), line_end="newline")
        if sample or precision == "bfloat16":
            return translator
        engine = CTranslate2Generator(Path(folder.name), 512, translator.detokenizer, threads, precision)
        with_pytorch = translator.search_in_batches
        return translator.searched_by(searcher_with_fallback(engine, translator.best_of, with_pytorch, True))

    translators = {precision: translator(precision) for precision in (*PRECISIONS, "int8")}

    def generate(job: Job) -> float:
        begin = time.perf_counter()
        found = translators[job[0]].generate(["".join(letters[:PROMPT])] * num_rows, options)
        seconds = time.perf_counter() - begin
        assert [len(hypothesis.ids) for [hypothesis] in found] == [NEW] * num_rows
        return seconds

    return generate


def gpt2_generation(num_rows: int, threads: int, sample: bool) -> Callable[[Job], float]:
    """Seconds of one `generate` with its cache."""
    torch.set_num_threads(threads)
    models = {precision: gpt2_of(new_gpt(512), "sdpa").eval().to(getattr(torch, precision)) for precision in PRECISIONS}
    ids = torch.arange(len(SPECIAL_PIECES), len(SPECIAL_PIECES) + PROMPT).expand(num_rows, -1)

    def generate(job: Job) -> float:
        begin = time.perf_counter()
        with torch.inference_mode():
            found = models[job[0]].generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, min_new_tokens=NEW, do_sample=sample,
                top_k=TOP_K if sample else None, pad_token_id=0,
            )  # fmt: skip
        seconds = time.perf_counter() - begin
        assert found.shape == (num_rows, PROMPT + NEW)
        return seconds

    return generate


def generation(given: argparse.Namespace, sample: bool = True) -> None:
    """The comparison `generation`, and `greedy`."""
    if not peers.installed("transformers"):
        return
    for num_rows in (1, 16):
        sides = {
            "heed": peers.Side(heed_generation, num_rows, given.threads, sample),
            "transformers": peers.Side(gpt2_generation, num_rows, given.threads, sample),
        }
        speeds = speeds_of(sides, [num_rows * NEW] * (1 + given.repeats), 1, more=[("heed", "int8")])
        report(speeds, f"{num_rows} at a time, {NEW} new tokens each, tokens/s")


# --- the comparison itself ------------------------------------------------------------------------------


def speeds_of(
    sides: dict[str, peers.Side], batches: Sequence[Batch | int], warm_up: int, more: Sequence[tuple[str, str]] = ()
) -> dict[tuple[str, str], list[float]]:
    """Tokens per second of each side and precision on each batch (or number of tokens) after the warm-up, in turn.

    `more`: an additional side in its own precision.
    """
    variants = [*((side, precision) for precision in PRECISIONS for side in sides), *more]
    speeds: dict[tuple[str, str], list[float]] = {variant: [] for variant in variants}
    for number, batch in enumerate(batches):
        num_tokens = batch if isinstance(batch, int) else batch.num_tokens
        for side, precision in variants if number % 2 == 0 else variants[::-1]:
            seconds = sides[side].run((precision, number))
            if number >= warm_up:
                speeds[side, precision].append(num_tokens / seconds)
    return speeds


def report(speeds: dict[tuple[str, str], list[float]], title: str) -> None:
    """The table and the ratios: in each precision, and with each side in its better one."""
    middle = {variant: statistics.median(values) for variant, values in speeds.items()}
    rows = [
        [f"{side} {precision}", f"{middle[side, precision]:,.0f}", f"{min(v):,.0f} to {max(v):,.0f}"]
        for (side, precision), v in speeds.items()
    ]
    ours, theirs = dict.fromkeys(side for side, _ in speeds)
    better = [max((value, kind) for (of, kind), value in middle.items() if of == side)[1] for side in (ours, theirs)]
    ratios = [
        [f"{ours} {a} / {theirs} {b}{more}", peers.ratio(speeds[ours, a], speeds[theirs, b])]
        for a, b, more in [(p, p, "") for p in PRECISIONS] + [(*better, ", each in its better precision")]
    ]
    print(peers.table([title, "median", "range"], rows))
    print(f"\n{peers.table(['of the same batches', 'ratio, median (range)'], ratios)}\n", flush=True)


COMPARISONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "lstm": lstm_training, "adaptive": adaptive_softmax, "gpt": gpt_training, "generation": generation,
    "greedy": partial(generation, sample=False),
}  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*COMPARISONS, []], help="which comparisons (default: all)")
    parser.add_argument("--data", type=Path, help="folder of the texts")
    parser.add_argument("--steps", type=int, default=15, help="timed updates of each variant (default 15)")
    parser.add_argument("--repeats", type=int, default=5, help="timed generations of each variant (default 5)")
    parser.add_argument("--warm-up", type=int, default=3, help="warm-up updates (default 3)")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(peers.machine_line(given.threads, []), flush=True)
    for name in given.what or COMPARISONS:
        COMPARISONS[name](given)


if __name__ == "__main__":
    main()
