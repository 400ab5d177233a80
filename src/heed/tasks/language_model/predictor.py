"""What users do with a trained language model: generate and score text, alone or as an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from heed.core.config import Document, build
from heed.core.errors import UsageError
from heed.data.store import TokenStore
from heed.data.text_stream import TextStream
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import USUAL_LENGTH, SearchOptions
from heed.decoding.scoring import TextScorer, TokenScores, make_reader
from heed.decoding.translator import ModelTranslator
from heed.nn.contract import Autoregressive
from heed.run import Run
from heed.tasks.generation import combined_model, require_vocabularies
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.dynamic_evaluation import DynamicOptions, make_dynamic_reader
from heed.tasks.language_model.report import analyse
from heed.tasks.predictor import ALONE, Combination, Predictor
from heed.text.vocabulary import Vocabulary


class LanguageModelPredictor(Predictor):
    """A trained language model, alone or in an ensemble."""

    abilities = frozenset({"generate", "score", "inspect", "compress"})
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

    @property
    def data(self) -> TextData:
        """The run's `[data]` table."""
        return cast(TextData, self.run.recipe.data)

    # --- what users call --------------------------------------------------------------------------------

    def generate(self, prompt: str = "", options: SearchOptions | None = None) -> list[str]:
        """Continue a prompt: `options.nbest` samples, or at most so many of a beam; without options one sample."""
        return [hypothesis.text for hypothesis in self.continuations(prompt, options)]

    def continuations(self, prompt: str = "", options: SearchOptions | None = None) -> list[Hypothesis]:
        """Continue a prompt, and return scores and tokens too. Without `max_tokens` the limit is 200 tokens."""
        if options is None:
            options = self.run.recipe.decoding.of_text(sample=True)
        elif not options.max_tokens:
            options = options.model_copy(update={"max_tokens": max(USUAL_LENGTH, options.min_tokens)})
        return self.translator.generate([prompt], options)[0]

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Return the log-probabilities (nats) of each line's tokens."""
        if sources is not None:
            raise UsageError("a language model scores texts without sources.")
        return self.scorer(model=self.translator.model).score(targets).token_scores()

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        return analyse(self.run)

    def commands(self, name: str) -> Sequence[str]:
        return [f'heed generate {name} --prompt "..."', f"heed score {name} < text"]

    # --- search and scoring -----------------------------------------------------------------------------

    @cached_property
    def translator(self) -> ModelTranslator:
        """The model, or all models of an ensemble, with tokenizer and normaliser."""
        model, _ = combined_model(self.run, self.combined)
        line_end = None if self.data.text_as == "lines" else self.data.line_end
        tokenizer = self.run.tokenizers["tgt"]
        return ModelTranslator(model, None, tokenizer, self.data.normaliser, self.run.device, line_end=line_end)

    def scorer(self, stride: int = 0, model: Any = None) -> TextScorer:
        """Scores a whole text from its beginning, read as in training.

        `stride`: new tokens in each window, for a model that reads windows (0: half of them). `model`: another one that
        reads in its place, such as an ensemble.
        """
        data, run = self.data, self.run
        reader = make_reader(data.text_as, model or self.model, run.device, run.recipe.training.context, stride)
        return TextScorer(reader, run.tokenizers["tgt"], data.normaliser, data.line_end)

    def adapting_scorer(self, options: Mapping[str, Any]) -> TextScorer:
        """Scores a whole text with a copy of the model that adapts to it; `options` are those of `DynamicOptions`.

        The weights must not be packed. Raises UsageError for a count-based model.
        """
        built = build(DynamicOptions, Document(options))
        reader = make_dynamic_reader(self.run.model, self.run.device, built, self.training_text)
        return TextScorer(reader, self.run.tokenizers["tgt"], self.data.normaliser, self.data.line_end)

    def training_text(self) -> TextStream:
        """The text that the model was trained on. Raises MissingInputError where the folder no longer has it."""
        store = TokenStore.open(self.run.folder / "data" / "train")
        if self.data.text_as != "lines":
            return TextStream.of_store(store)
        return TextStream.of_lines([[*store.row("tgt", i).tolist(), Vocabulary.eos_id] for i in range(len(store))])

    @property
    def model(self) -> Autoregressive:
        """The run's own model."""
        return cast(Autoregressive, self.run.model)
