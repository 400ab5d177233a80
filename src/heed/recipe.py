"""What is a complete run? The configs of its parts, put together; what `recipe.toml` holds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from heed.core.config import Config, Document
from heed.core.formats import FORMAT, require_format
from heed.decoding.options import SearchOptions
from heed.models import MODELS, AnyConfig
from heed.models.transformer import TransformerConfig
from heed.tasks.config import DataConfig
from heed.text.tokenizers import TokenizerConfig
from heed.training.config import TrainingConfig

SOURCE_MODELS = tuple(kind for kind, model in MODELS.items() if model.needs_source)


class Recipe(Config):
    """Everything a run needs to be made again."""

    format: int = Field(default=FORMAT, ge=1, le=FORMAT)
    """Of the run folder; a newer heed may write a higher one."""
    task: Literal["translation", "language-model"]
    """What is learned."""
    seed: int = Field(default=1, ge=0)
    """Initial weights, data order, dropout and subword dropout follow from it."""
    data: DataConfig = DataConfig()
    """Files."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes tokens."""
    model: AnyConfig = TransformerConfig()
    """The model."""
    training: TrainingConfig = TrainingConfig()
    """How it is trained."""
    decoding: SearchOptions = SearchOptions()
    """How it is searched."""

    @model_validator(mode="after")
    def _check(self) -> Recipe:
        if (self.task == "translation") != (self.model.kind in SOURCE_MODELS):
            others = tuple(kind for kind in MODELS if kind not in SOURCE_MODELS)
            fitting = SOURCE_MODELS if self.task == "translation" else others
            raise ValueError(f"task {self.task!r} needs a model.kind of {', '.join(fitting)}, got {self.model.kind!r}")
        if self.task == "language-model" and self.training.stop_metric != "perplexity":
            raise ValueError('a language model is stopped by perplexity: training.stop_metric = "perplexity"')
        if self.data.line_end == "newline" and self.tokenizer.kind in ("word", "char-bigram"):
            raise ValueError('data.line_end = "newline" needs a tokenizer that keeps line breaks: bpe, byte, character')
        if self.task == "language-model" and (self.data.parts or self.data.tags_used != [""]):
            raise ValueError("data.parts and data.tag are about sentence pairs: leave them out of a language model")
        if not self._is_of_a_run and (other := self._files_of_another_task()):
            raise ValueError(f"data.{other} is not read for task {self.task!r}: leave it out")
        if self.tokenizer.dropout and not (self._cuts_anew or self._is_of_a_run):
            raise ValueError('tokenizer.dropout is for a translation with tokenizer.kind = "bpe": set it to 0')
        if self.training.label_smoothing and self.model.model_dump().get("cutoffs"):
            raise ValueError("an adaptive softmax (model.cutoffs) has no label smoothing: training.label_smoothing = 0")
        if self.training.r_drop and not self._drops:
            raise ValueError("training.r_drop compares two passes with different dropout: set model.dropout")
        if self.training.r_drop and self.task == "language-model":
            raise ValueError("training.r_drop is for translation; a language model is trained without it")
        return self

    def _files_of_another_task(self) -> str:
        """The first file of `[data]` that this task does not read."""
        of_text = ("text", "valid_text", "vocabulary_text")
        of_pairs = ("src", "tgt", "pairs", "valid_src", "valid_tgt", "valid_pairs")
        names = of_text if self.task == "translation" else of_pairs
        return next((name for name in names if getattr(self.data, name)), "")

    @property
    def _cuts_anew(self) -> bool:
        """Whether subword dropout does anything."""
        return self.task == "translation" and self.tokenizer.kind == "bpe"

    @property
    def _is_of_a_run(self) -> bool:
        """Whether it is a run's, which alone says its format: there may be in it what an older heed ignored."""
        return "format" in self.model_fields_set

    @property
    def _drops(self) -> bool:
        """Whether the model has any dropout."""
        return any(value for name, value in self.model.model_dump().items() if "dropout" in name)


def require_known_format(document: Document) -> None:
    """Say that a recipe is a newer heed's, before its keys are found to be unknown ones. Raises DataError."""
    require_format(document.values.get("format", FORMAT), document.name)
