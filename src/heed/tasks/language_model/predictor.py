"""Predictor of a language model's run: generating and scoring text, alone or in an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from heed.core.config import Document, build
from heed.core.errors import UsageError
from heed.data.text_stream import TextStream
from heed.data.validation import read_valid
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import USUAL_LENGTH, Request, SearchOptions, validated
from heed.decoding.scoring import TextScorer, TokenScores, make_reader
from heed.evaluation.likelihoods import evaluate_texts, read_by
from heed.evaluation.test_set import HeldOut
from heed.export.ctranslate2 import convert, is_convertible, open_engine
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.inference.engine_contract import Engine
from heed.inference.translator import ModelTranslator
from heed.report.usability import usability
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.arguments import several_texts
from heed.tasks.embedding import TokenAttention, TokenVectors, generator_attention, generator_vectors
from heed.tasks.generation import combined_model, require_vocabularies
from heed.tasks.language_model.converted import write_settings
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.dynamic_evaluation import DynamicOptions, DynamicReader
from heed.tasks.predictor import ALONE, Combination, Predictor
from heed.tasks.prepare import open_tokens
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import UNK_ID, Vocabulary


class LanguageModelPredictor(Predictor):
    """A trained language model, alone or in an ensemble."""

    abilities = frozenset({"generate", "score", "inspect", "compress", "embed"})
    run: Run

    def __init__(self, run: Run, combined: Combination = ALONE) -> None:
        super().__init__(run, combined)
        if combined.lm is not None:
            raise UsageError(f"{run.folder} is a language model: --lm is for translation runs.")
        for other in combined.others:
            other.predictor.require("generate", "an ensemble with a language model")
            require_vocabularies(run, other)
            if other.recipe.data.line_end != self.data.line_end:
                raise UsageError(f"{run.folder} and {other.folder} end a line in different ways (data.line_end).")
            if other.recipe.data.backward != self.data.backward:
                raise UsageError(f"{run.folder} and {other.folder} read text in opposite directions (data.backward).")

    @property
    def data(self) -> TextData:
        """The run's `[data]` table."""
        return cast(TextData, self.run.recipe.data)

    @property
    def not_usable(self) -> str:
        """Why the model is not usable yet, by its perplexity on the validation text; empty for a usable one."""
        return usability(self.run)

    @property
    def decoding(self) -> SearchOptions:
        """The run's `[decoding]` table."""
        return self.run.recipe.decoding

    # --- public methods ---------------------------------------------------------------------------------

    def generate(self, prompt: str = "", options: SearchOptions | None = None) -> list[str]:
        """Continue a prompt; without options, with one sample.

        With options, `options.nbest` samples if `options.sample`, otherwise as many hypotheses of a beam.
        """
        return [hypothesis.text for hypothesis in self.continuations(prompt, options)]

    def continuations(self, prompt: str = "", options: SearchOptions | None = None) -> list[Hypothesis]:
        """Continue a prompt, and return scores and tokens too. The default limit is 200 tokens."""
        self.data.require_forward()
        if not isinstance(prompt, str):
            raise UsageError(f"a prompt is one text, got {type(prompt).__name__}: call generate for each prompt.")
        options = self.decoding.of_text(sample=True) if options is None else validated(options)
        if not options.max_tokens:
            options = options.model_copy(update={"max_tokens": max(USUAL_LENGTH, options.min_tokens)})
        return self.translator.generate([prompt], options)[0]

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Return the log-probabilities (nats) of each line's tokens."""
        if sources is not None:
            raise UsageError("a language model scores texts without sources.")
        return self.scorer(model=self.translator.model).score(several_texts(targets)).token_scores()

    def can(self, ability: str) -> bool:
        return super().can(ability) and not (ability == "embed" and self.run.blank_model.count_based)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The features of the model after each token of each text, which it reads by itself, in the text's order."""
        self.require("embed")
        normalised = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        read = generator_vectors(self.run.model, self._reading, normalised, self.run.device)
        return [TokenVectors(each.tokens[::-1], each.vectors[::-1]) for each in read] if self.data.backward else read

    def self_attention(self, texts: Sequence[str], random_weights: bool = False) -> list[TokenAttention]:
        """The self-attention between the tokens of each text."""
        self.require("embed", "self-attention")
        model: Any = self.run.new_model().to(self.run.device) if random_weights else self.run.model
        normalised = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        return generator_attention(model, self._reading, normalised, self.run.device)

    @property
    def _reading(self) -> Tokenizer:
        return self.data.reading(self.run.tokenizers["tgt"])

    def are_unknown(self, words: Sequence[str]) -> Sequence[bool]:
        encoded = self.run.tokenizers["tgt"].encode([f" {word}" for word in words])
        return [UNK_ID in ids for ids in encoded]

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        """Evaluate the validation text as a whole, read in the same way as users' texts."""
        test = HeldOut(("text",), read_valid(self.run.folder))
        [evaluation] = evaluate_texts(test, [read_by(self.run, test, self.scorer())])
        return measured(evaluation)

    def facts(self) -> Mapping[str, Any]:
        return {"engine": "CTranslate2 for greedy search, else PyTorch" if is_convertible(self.run) else "PyTorch"}

    def commands(self, name: str) -> Sequence[str]:
        return [f'heed generate {name} --prompt "..."', f"heed score {name} < text"]

    # --- search and scoring -----------------------------------------------------------------------------

    def convert(self) -> None:
        if is_convertible(self.run):
            convert(self.run)
            write_settings(self.run.folder, self.data, self.decoding, self.not_usable)

    @cached_property
    def engine(self) -> Engine | None:
        """CTranslate2 with the run's model for greedy search; None if PyTorch makes all searches."""
        return open_engine(self.run, not self.combined, 'and a single model of kind "gpt"')

    @property
    def detokenizer(self) -> Detokenizer:
        """Prompts to tokens, and tokens to text."""
        return self.data.detokenizer(self.run.tokenizers["tgt"])

    @cached_property
    def translator(self) -> ModelTranslator:
        """The model, or all models of an ensemble, with tokenizer and normaliser, and the engine for its searches."""
        model, _ = combined_model(self.run, self.combined)
        line_end, tokenizer = self.detokenizer.line_end, self.run.tokenizers["tgt"]
        translator = ModelTranslator(model, None, tokenizer, self.data.normaliser, self.run.device, line_end=line_end)
        with_pytorch = translator.search_in_batches

        def search(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
            if options.width > 1 or options.sample or self.engine is None:
                return with_pytorch(requests, options)
            return searcher_with_fallback(self.engine, translator.best_of, with_pytorch, True)(requests, options)

        return translator.searched_by(search)

    def scorer(self, stride: int = 0, model: Any = None) -> TextScorer:
        """A scorer of whole texts, which are read as in training.

        `stride`: number of new tokens per window, for a model that reads windows (0: half of a window). `model`: a
        model to use instead of the run's, such as an ensemble.
        """
        data, run = self.data, self.run
        reader = make_reader(data.text_as, model or run.model, run.device, run.recipe.training.context, stride)
        return TextScorer(reader, self._reading, data.normaliser, data.line_end)

    def adapting_scorer(self, options: Mapping[str, Any]) -> TextScorer:
        """A scorer with a copy of the model that adapts to the text (`options`: see `DynamicOptions`).

        The weights must not be packed. Raises UsageError for a count-based model.
        """
        built = build(DynamicOptions, Document(options))
        reader = DynamicReader(self.run.model, self.run.device, built, self.training_text)
        return TextScorer(reader, self._reading, self.data.normaliser, self.data.line_end)

    def training_text(self) -> TextStream:
        """The training text. Raises MissingInputError if it was removed from the run folder."""
        store = open_tokens(self.run.folder)
        if self.data.text_as != "lines":
            return TextStream.of_store(store)
        return TextStream.of_lines([[*store.row("tgt", i).tolist(), Vocabulary.eos_id] for i in range(len(store))])
