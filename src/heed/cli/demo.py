"""`heed demo`: train a translator on the built-in corpus, evaluate it and translate with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Device, Quiet, Threads, use_threads
from heed.cli.train import TrainingFlags, finish
from heed.core.progress import message

MINUTES = 3.0
"""Time limit of the training."""
SENTENCES = (
    "Because Anna was tired, she did not tidy up the kitchen.",
    "My old uncle will give the guitar to the musician on May 3rd.",
    "The friendly waiter will call the children who play football.",
)


def demo(
    *,
    out: Annotated[Path, typer.Option(help="The run folder to create.")] = Path("runs/demo"),
    training: TrainingFlags,
    pairs: Annotated[int, typer.Option(help="Sentence pairs to generate.", min=1000)] = 20_000,
    corpus_only: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the corpus into this folder, and train nothing.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option(help="Replace an existing run in --out, and other files of its corpus.")
    ] = False,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a small English-German translator on a synthetic corpus, evaluate it and translate a few sentences.

    The training ends after three minutes, unless --max-time sets another limit.

    Examples:

      heed demo --out runs/demo

      heed demo --corpus-only runs/corpus
    """
    from heed.core.config import Document
    from heed.decoding.options import SearchOptions
    from heed.execute import check_folder, execute
    from heed.metrics import score_outputs
    from heed.planner import Planner, TrainOptions
    from heed.run import Run
    from heed.text.synthetic import build_corpus, write_corpus

    options = TrainOptions(out, overwrite, device=device, quiet=quiet)
    if corpus_only is None:
        use_threads(threads)
        check_folder(options)
    message(f"generating {pairs:,} synthetic English-German pairs", quiet)
    corpus = build_corpus(num_train=pairs, num_valid=min(500, pairs // 20), num_test=min(500, pairs // 20))
    texts = corpus_only or out.with_name(out.name + "-corpus")
    texts.mkdir(parents=True, exist_ok=True)
    write_corpus(texts, corpus, overwrite)
    if corpus_only is not None:
        return
    keys = {
        "task": "translation", "data.dir": str(texts.resolve()), "data.src": "train.en", "data.tgt": "train.de",
        "data.valid_src": "valid.en", "data.valid_tgt": "valid.de", "data.src_lang": "en", "data.tgt_lang": "de",
        "data.synthetic": True, "tokenizer.vocab_size": 2000, "tokenizer.joint": True,
        "model.kind": "transformer", "model.d_model": 128, "model.d_ff": 512, "model.num_heads": 4,
        "model.num_encoder_layers": 2, "model.num_decoder_layers": 2, "model.dropout": 0.1, "model.norm": "pre",
        "training.optimizer": "muon", "training.lr": 6.5e-3, "training.warmup_steps": 200,
        "training.tokens_per_batch": 2048,
        "training.max_minutes": MINUTES, **training.keys(),
    }  # fmt: skip
    finish(out, execute(Planner(Document(), keys, options).plan(), options), quiet)
    run = Run(out)
    run.num_workers = threads
    translator = run.predictor.line_translator(with_tokens=False)
    for name, held_out in (("unseen sentences", corpus.test), ("unseen combinations", corpus.combinations)):
        outputs = [hypothesis.text for hypothesis in translator.translate([p.src for p in held_out], SearchOptions())]
        references = [pair.tgt for pair in held_out]
        exact = sum(a == b for a, b in zip(outputs, references, strict=True)) / len(references)
        print(f"\n{name} (synthetic), {len(references)} sentences, {exact:.0%} identical to the reference")
        for score in score_outputs(outputs, references, "de", ("bleu", "chrf")):
            print(f"  synthetic {score.render()}")
    print()
    for sentence, hypothesis in zip(SENTENCES, translator.translate(SENTENCES, SearchOptions()), strict=True):
        print(f"{sentence}\n  → {hypothesis.text}")
    print(f'\nTry it: echo "The old man sees the small dog." | {sys.argv[0]} translate {out}')
    print(f"It knows only the words and the kinds of sentences of its corpus: see {texts / 'train.en'}")
