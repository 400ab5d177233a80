"""Other programs with a model that heed has exported (`heed.export.verification.Program`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from heed.core.json_text import parse_json
from heed.decoding.options import SearchOptions
from heed.export.bert import BEGIN
from heed.export.marian_tokenizer import written_tag
from heed.export.onnx import DECODER, ENCODER
from heed.export.verification import Program
from heed.run import Run
from heed.text.archives import open_bytes, plain_name
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, Vocabulary

MAX_OUTPUT = 100
"""Tokens of an output in both programs."""


def mean_search(beam_size: int, length_penalty: float) -> SearchOptions:
    """How other programs search: hypotheses are ranked by their mean, and their limit does not depend on the source."""
    return SearchOptions(
        beam_size=beam_size, length_penalty=length_penalty, length_norm="mean", max_tokens=MAX_OUTPUT, guard=False
    )


def _read_by_heed(run: Run, lines: Sequence[str]) -> list[list[int]]:
    """The ids of sources by heed's tokenizer, with the tag before each and without ends."""
    predictor = run.predictor
    ids = run.tokenizers["src"].encode([predictor.data.normaliser.apply(line) for line in lines])
    return [[*predictor.before_source, *each] for each in ids]


def _gathered(log_probs: torch.Tensor, ids: Sequence[int]) -> list[float]:
    chosen: list[float] = log_probs.gather(1, torch.tensor([ids]).T)[:, 0].tolist()
    return chosen


class _Transformers(Program):
    """A model of Hugging Face transformers."""

    options: SearchOptions | None = None
    auto = "AutoModelForCausalLM"
    _before = ""

    def __init__(self, folder: Path, run: Run) -> None:
        library: Any = import_module("transformers")
        self.name = f"transformers {library.__version__}"
        self._library = library
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice about packages that nothing here needs
            self._model = getattr(library, self.auto).from_pretrained(folder).eval()
            has_tokenizer = (folder / "tokenizer_config.json").is_file()
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(folder) if has_tokenizer else None
        if self._tokenizer is not None and not self._tokenizer.split_special_tokens:
            self.special = tuple(self._tokenizer.get_added_vocab())
        self._config = parse_json((folder / "config.json").read_text(encoding="utf-8"))

    def read(self, line: str) -> list[int] | None:
        if self._tokenizer is None:
            return None
        ids: list[int] = self._tokenizer(self._before + line, add_special_tokens=False)["input_ids"]
        return ids

    def translate(self, lines: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def _log_probs(self, *inputs: Any, **named: Any) -> torch.Tensor:
        with torch.inference_mode():
            log_probs: torch.Tensor = self._model(*inputs, **named).logits[0].log_softmax(-1)
        return log_probs


class Gpt2(_Transformers):
    """A GPT-2."""

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        return _gathered(self._log_probs(torch.tensor([[BOS_ID, *target]])), [*target, EOS_ID])


class Bert(_Transformers):
    """A BERT."""

    auto = "AutoModelForMaskedLM"

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        begin = [BOS_ID] * self._config.get(BEGIN, True)
        log_probs = self._log_probs(torch.tensor([[*begin, *target, EOS_ID]]))
        return _gathered(log_probs[len(begin) :], [*target, EOS_ID])


class Marian(_Transformers):
    """A MarianMTModel, with its generation config and its tokenizers: those of heed if it has none."""

    auto = "MarianMTModel"

    def __init__(self, folder: Path, run: Run) -> None:
        super().__init__(folder, run)
        self._run = run
        generation = self._model.generation_config
        self.options = mean_search(generation.num_beams, generation.length_penalty)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target = folder / "target"
            self._writer = self._library.AutoTokenizer.from_pretrained(target) if target.is_dir() else self._tokenizer
        tag = run.predictor.source_tag
        self._before = written_tag(run, tag) if tag else ""

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        begun = torch.tensor([[BOS_ID, *target]])
        log_probs = self._log_probs(torch.tensor([[*source, EOS_ID]]), decoder_input_ids=begun)
        return _gathered(log_probs, [*target, EOS_ID])

    def translate(self, lines: Sequence[str]) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(lines), 20):
            batch = lines[start : start + 20]
            texts += self._with_heeds_ids(batch) if self._tokenizer is None else self._translated(batch)
        return texts

    def _translated(self, lines: Sequence[str]) -> list[str]:
        batch = [self._before + line for line in lines]
        written = self._generated(**self._tokenizer(batch, return_tensors="pt", padding=True))
        return [self._writer.decode(ids, skip_special_tokens=True) for ids in written]

    def _with_heeds_ids(self, lines: Sequence[str]) -> list[str]:
        sources = [torch.tensor([*ids, EOS_ID]) for ids in _read_by_heed(self._run, lines)]
        read = pad_sequence(sources, batch_first=True, padding_value=PAD_ID)
        written = self._generated(input_ids=read, attention_mask=(read != PAD_ID).long())
        ids = [[id for id in row if id not in (PAD_ID, BOS_ID, EOS_ID)] for row in written.tolist()]
        return self._run.tokenizers["tgt"].decode(ids)

    def _generated(self, **read: Any) -> torch.Tensor:
        with torch.inference_mode():
            written: torch.Tensor = self._model.generate(**read, max_new_tokens=MAX_OUTPUT, max_length=None)
        return written


class CTranslate2(Program):
    """A converted model in CTranslate2, with heed's tokenizers and search options."""

    def __init__(self, folder: Path, run: Run) -> None:
        library: Any = import_module("ctranslate2")
        self.name = f"ctranslate2 {library.__version__}"
        decoding = run.recipe.decoding
        is_mean = decoding.length_norm == "mean"
        self.options = mean_search(decoding.beam_size, decoding.length_penalty if is_mean else 1.0)
        self._translator = library.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1)
        self._run = run

    def _tokens(self, side: str, ids: Sequence[int]) -> list[str]:
        vocabulary: Vocabulary = self._run.tokenizers[side].vocabulary
        return [vocabulary.piece(id) for id in ids]

    def read(self, line: str) -> None:
        return None  # heed's own tokenizers

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        pair = self._tokens("src", [*source, EOS_ID]), self._tokens("tgt", target)
        [scored] = self._translator.score_batch([pair[0]], [pair[1]])
        log_probs: list[float] = scored.log_probs
        return log_probs

    def translate(self, lines: Sequence[str]) -> list[str]:
        sources = [self._tokens("src", [*ids, EOS_ID]) for ids in _read_by_heed(self._run, lines)]
        results = self._translator.translate_batch(
            sources, beam_size=self.options.beam_size, length_penalty=self.options.length_penalty,
            max_decoding_length=MAX_OUTPUT, max_batch_size=32,
        )  # fmt: skip
        return _texts(self._run.tokenizers["tgt"], [result.hypotheses[0] for result in results])


class CTranslate2Text(Program):
    """A converted language model in CTranslate2, with heed's tokenizer."""

    options: SearchOptions | None = None

    def __init__(self, folder: Path, run: Run) -> None:
        library: Any = import_module("ctranslate2")
        self.name = f"ctranslate2 {library.__version__}"
        self._generator = library.Generator(str(folder), device="cpu", compute_type="float32", intra_threads=1)
        self._vocabulary: Vocabulary = run.tokenizers["tgt"].vocabulary

    def read(self, line: str) -> None:
        return None  # heed's own tokenizer

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        [scored] = self._generator.score_batch([[self._vocabulary.piece(id) for id in (BOS_ID, *target, EOS_ID)]])
        log_probs: list[float] = scored.log_probs
        return log_probs

    def translate(self, lines: Sequence[str]) -> list[str]:
        raise NotImplementedError


def ctranslate2_program(folder: Path, run: Run) -> CTranslate2 | CTranslate2Text:
    """CTranslate2 with a converted translator or language model."""
    return CTranslate2(folder, run) if len(run.sides) == 2 else CTranslate2Text(folder, run)


def _texts(tokenizer: Tokenizer, outputs: Sequence[Sequence[str]]) -> list[str]:
    ids = {piece: id for id, piece in enumerate(tokenizer.vocabulary.pieces)}
    return tokenizer.decode([[ids[piece] for piece in pieces] for pieces in outputs])


class Kenlm(Program):
    """An ARPA file in KenLM."""

    options: SearchOptions | None = None

    def __init__(self, path: Path, run: Run) -> None:
        self.name = "kenlm"
        if (plain := Path(plain_name(path))) != path:  # KenLM may have been built without decompression
            with open_bytes(path) as packed, plain.open("wb") as file:
                copyfileobj(packed, file)
            path = plain
        self._model = import_module("kenlm").Model(str(path))
        self._vocabulary: Vocabulary = run.tokenizers["tgt"].vocabulary

    def read(self, line: str) -> None:
        return None

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        text = " ".join(map(self._vocabulary.piece, target))
        return [math.log(10) * scored[0] for scored in self._model.full_scores(text, bos=True, eos=True)]

    def translate(self, lines: Sequence[str]) -> list[str]:
        raise NotImplementedError


class OnnxRuntime(Program):
    """The two graphs of a translator in ONNX Runtime, with a greedy search in NumPy."""

    def __init__(self, folder: Path, run: Run) -> None:
        library: Any = import_module("onnxruntime")
        self.name = f"onnxruntime {library.__version__}"
        self.options: SearchOptions | None = mean_search(1, 0.0)
        settings = library.SessionOptions()
        settings.intra_op_num_threads = 1
        self._encoder, self._decoder = (
            library.InferenceSession(str(folder / name), settings, providers=["CPUExecutionProvider"])
            for name in (ENCODER, DECODER)
        )
        self._config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
        self._run = run

    def read(self, line: str) -> None:
        return None  # heed's own tokenizers

    def _start(self, source: Sequence[int]) -> dict[str, Any]:
        ids = np.array([[*source, EOS_ID]])
        mask = np.ones(ids.shape, bool)
        keys, values = self._encoder.run(["keys", "values"], {"ids": ids, "mask": mask})
        config = self._config
        past = np.zeros((config["num_layers"], 1, config["num_heads"], 0, config["head_size"]), np.float32)
        return {"mask": mask, "keys": keys, "values": values, "past_keys": past, "past_values": past}

    def _step(self, token: int, state: dict[str, Any]) -> Any:
        """The log-probabilities of the next token; the state is advanced."""
        log_probs, state["past_keys"], state["past_values"] = self._decoder.run(
            ["log_probs", "new_keys", "new_values"], {"ids": np.array([token]), **state}
        )
        return log_probs[0]

    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        state = self._start(source)
        pairs = zip((BOS_ID, *target), (*target, EOS_ID), strict=True)
        return [float(self._step(token, state)[following]) for token, following in pairs]

    def translate(self, lines: Sequence[str]) -> list[str]:
        written = [self._greedy(ids) for ids in _read_by_heed(self._run, lines)]
        return self._run.tokenizers["tgt"].decode(written)

    def _greedy(self, source: Sequence[int]) -> list[int]:
        state, written = self._start(source), [BOS_ID]
        while len(written) <= MAX_OUTPUT and written[-1] != EOS_ID:
            log_probs = self._step(written[-1], state)
            log_probs[self._config["never"]] = -np.inf
            written.append(int(log_probs.argmax()))
        return [id for id in written[1:] if id != EOS_ID]
