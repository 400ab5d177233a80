"""Predictor contract: the methods of a trained run, independent of its task.

`heed.load` returns a predictor. Commands, server and report depend on its abilities ("translate", ...), not its task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.scoring import TextScorer, TokenScores
from heed.inference.translator import ModelTranslator
from heed.statistical.derivation import Derivation
from heed.tasks.arguments import require_top, several_texts
from heed.tasks.embedding import (
    Neighbourhood,
    Pooling,
    TokenAttention,
    TokenVectors,
    expressions,
    require_known,
    require_pooling,
    unit,
    whole_words,
)
from heed.text.readers.lines import Errors

LM_WEIGHT = 0.2
"""Default weight of a language model in shallow fusion."""


@dataclass(frozen=True)
class Combination:
    """Other runs that are combined with a run, and a translation memory that helps it."""

    others: Sequence[Any] = ()
    """Further runs of an ensemble: their probabilities are averaged with the run's, or score what it derives."""
    lm: Any = None
    """The run of a language model, for shallow fusion."""
    lm_weight: float = LM_WEIGHT
    memory: Any = None
    """A `TranslationMemory`, or the path of one that is not empty, in which a translator looks its next tokens up."""

    def __bool__(self) -> bool:
        return bool(self.others) or self.lm is not None or self.memory is not None


ALONE = Combination()


@dataclass(frozen=True)
class Prediction:
    """One answer to one input."""

    text: str
    """The label, number, tags or text, as printed."""
    probability: float | None = None
    """Probability of the answer, if available."""


@dataclass(frozen=True)
class AnswerOptions:
    """What `heed predict` reads from a stream and writes."""

    input: Literal["auto", "conll", "text"] = "auto"
    """Rows of tokens, sentences, or whichever the first lines look like."""
    json: bool = False
    """An object for each sentence, with its entities."""
    probabilities: bool = False
    """The probability of each tag after it."""
    top: int = 1
    """Number of taggings of each sentence."""
    quiet: bool = False


@dataclass(frozen=True)
class Weighted:
    """A word or an n-gram of an input, and how much it speaks for an answer (negative: against it)."""

    text: str
    weight: float


@dataclass(frozen=True)
class AttendedSentence:
    """A sentence of a text, and the attention of a hierarchical reader to it and to its words."""

    weight: float
    """Share of the sentence; those of a text sum to one."""
    words: tuple[Weighted, ...]
    """Its words with their shares, which sum to one."""


@dataclass(frozen=True)
class Explanation:
    """What an answer to an input rests on."""

    answer: str
    """The answer that the weights are for: the most probable one."""
    words: tuple[Weighted, ...]
    """The words of the input, in their order: how far the log-odds of the answer fall without each of them."""
    ngrams: tuple[Weighted, ...] = ()
    """The n-grams of the linear model with the largest part in the log-odds, for and against; may be empty."""
    sentences: tuple[AttendedSentence, ...] = ()
    """The attention to sentences and words; empty for models without it."""


@dataclass(frozen=True)
class Glance:
    """A word of a caption, and where the model looked when it wrote it."""

    text: str
    """The word, or empty for the end of the caption."""
    probability: float
    weights: tuple[float, ...]
    """The attention over the patches of the image, row by row from the top left; they sum to one."""


@dataclass(frozen=True)
class SeenCaption:
    """A caption of an image, with what the model looked at."""

    text: str
    words: tuple[Glance, ...]
    rows: int
    columns: int
    """Of the patches."""
    alternatives: tuple[str, ...] = ()
    """The next best captions."""


class Predictor:
    """A trained run, ready to use. The predictor of each task overrides the methods of its abilities."""

    abilities: ClassVar[frozenset[str]] = frozenset({"predict"})
    """Names of the supported operations, each with a method of the same name."""

    engine: Any = None
    """The engine that searches instead of PyTorch, if there is one."""

    def __init__(self, run: Any, combined: Combination = ALONE) -> None:
        if combined and not self.abilities & {"translate", "generate"}:
            raise UsageError(f"{run.folder}: ensembles, --lm and --memory require runs that generate text.")
        if (run.tag is not None or combined.memory is not None) and not self.can("translate"):
            raise UsageError(f"{run.folder}: --{'memory' if combined.memory else 'tag'} requires a translation run.")
        self.run: Any = run
        self.combined = combined

    def __repr__(self) -> str:
        recipe = self.run.recipe
        return f"<{type(self).__name__} {str(self.run.folder)!r}: {recipe.task}, {recipe.model.kind}>"

    @property
    def tokenizers(self) -> Mapping[str, Any]:
        """The tokenizer of each side."""
        return cast(Mapping[str, Any], self.run.tokenizers)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return cast(Path, self.run.folder)

    @property
    def not_usable(self) -> str:
        """Why the model is not usable yet; empty for a usable one, and for tasks whose metrics have no such limit."""
        return ""

    def can(self, ability: str) -> bool:
        """Whether the run has this ability."""
        return ability in self.abilities

    def require(self, ability: str, by: str = "") -> None:
        """Raise UsageError unless the run has this ability, which `by` (a command, a flag) needs."""
        if not self.can(ability):
            raise self._cannot(ability, by)

    def require_text(self, by: str) -> None:
        """Raise UsageError unless the run can score texts without sources, which `by` (a flag) needs."""
        if not self.can("score") or self.can("translate"):
            raise self._cannot("generate", by)

    def require_probabilities(self) -> None:
        """Raise UsageError unless the answers of `predict` and `caption` have probabilities."""

    def open(self) -> None:
        """Read the weights now instead of on first use. Raises MissingInputError or DataError if they are damaged.

        Raises UsageError if the run must use CTranslate2 and cannot.
        """
        if self.run.engine == "ctranslate2" or self.run.precision == "int8":
            _ = self.engine  # first: it decides what PyTorch computes with
        _ = self.run.model

    def warm_up(self) -> None:
        """Run the model once, for runs that do not generate text from text."""
        if self.can("predict"):
            self.predict(["1"])
        elif self.can("embed"):
            self.token_vectors(["1"])

    def convert(self) -> None:
        """Write the files that make later use faster into the run folder."""

    def line_translator(self, with_tokens: bool) -> Any:
        """Return the `LineTranslator` with the fastest engine; `with_tokens`: with log-probabilities of tokens."""
        raise self._cannot("translate")

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """Return the `top` most probable answers to each input, best first. A single string is one input."""
        raise self._cannot("predict")

    def annotate(self, groups: Iterable[Sequence[str]], options: AnswerOptions) -> Iterator[list[str]]:
        """Tag a stream of lines, rows of tokens or sentences, which come in groups; yields the lines of output."""
        raise self._cannot("annotate")

    def extract(self, questions: Any, top: int = 1) -> Any:
        """Return the `top` most probable answers to each `heed.text.readers.questions.Question`, best first."""
        raise self._cannot("extract")

    def explain(self, text: str) -> Explanation:
        """What the answer to an input is based on."""
        raise self._cannot("explain")

    def attend(self, text: str) -> tuple[AttendedSentence, ...]:
        """The attention of the answer to the sentences of a text and to their words; empty for models without it."""
        return ()

    def read(self, text: str) -> Any:
        """Read a text; returns a `heed.tasks.reading.Reading`, with the answer and what it rests on."""
        raise self._cannot("read")

    def predict_table(
        self, table: Path, top: int = 1, probabilities: bool = False, errors: Errors = "strict"
    ) -> Iterator[str]:
        """The lines of a table with columns for the `top` answers to each row, and their probabilities."""
        raise UsageError(f"--table needs a run that reads tables; {self.run.folder} does not.")

    def caption(self, images: Sequence[Any], top: int = 1) -> list[list[Prediction]]:
        """Return the `top` best captions of each image, given as a path or as the bytes of a file."""
        raise self._cannot("caption")

    def look(self, image: Any, top: int = 1) -> SeenCaption:
        """Return the best caption of an image with the attention for each word, and `top - 1` alternatives."""
        raise self._cannot("caption")

    def image_pixels(self, image: bytes, name: str, max_pixels: int) -> Any:
        """Decode an image file for `caption` and `look`. Raises DataError, with `name`, for what cannot be decoded."""
        raise self._cannot("caption")

    def caption_files(self, place: Path, top: int = 1) -> Iterator[tuple[str, list[Prediction]]]:
        """The name and the `top` best captions of each image of a folder, an archive or a single file."""
        raise self._cannot("caption")

    def translate(self, texts: Any, options: SearchOptions | None = None) -> Any:
        """Translate a text (to a text) or several texts (to a list)."""
        raise self._cannot("translate")

    def hypotheses(self, texts: Sequence[str], options: SearchOptions | None = None) -> list[Hypothesis]:
        """Translate several texts, and return scores, tokens and alternatives too."""
        raise self._cannot("translate")

    def derivations(self, text: str, width: int, number: int) -> list[Derivation]:
        """The best derivations of a text, by a translator that derives, with `width` active hypotheses."""
        raise self._cannot("derive")

    def derivation_weights(self) -> Mapping[str, float]:
        """The weight of each feature of derivations."""
        raise self._cannot("derive")

    def generate(self, prompt: str = "", options: SearchOptions | None = None) -> list[str]:
        """Continue a prompt."""
        raise self._cannot("generate")

    def continuations(self, prompt: str = "", options: SearchOptions | None = None) -> list[Hypothesis]:
        """Continue a prompt, and return scores and tokens too."""
        raise self._cannot("generate")

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Return the log-probabilities (nats) of each text's tokens, given its source if the run is a translator."""
        raise self._cannot("score")

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the vector of each token of each text."""
        raise self._cannot("embed")

    def self_attention(self, texts: Sequence[str], random_weights: bool = False) -> list[TokenAttention]:
        """Return the self-attention between the tokens of each text; `random_weights`: of an untrained model."""
        raise self._cannot("inspect")

    def embed(self, texts: str | Sequence[str], pooling: Pooling = "mean") -> NDArray[np.float32]:
        """Return a vector [D] of a text, or the vectors [N, D] of several; zeros for a text without a known token.

        `pooling`: the "mean" or the maximum ("max") of the tokens' vectors, or the "first" or "last" of them.
        """
        require_pooling(pooling)
        if isinstance(texts, str):
            return np.asarray(self.embed([texts], pooling)[0])
        return np.stack([vectors.pooled(pooling) for vectors in self.token_vectors([*several_texts(texts), ""])])[:-1]

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The words of the vocabulary, among which `neighbours` searches."""
        words = whole_words(self.run.tokenizers[self.run.sides[0]])
        return Neighbourhood(words, self.word_vectors(words))

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors [N, D] of words, as they are after a blank: subwords at the beginning of a text differ."""
        return self.embed([f" {word}" for word in several_texts(words)])

    def are_unknown(self, words: Sequence[str]) -> Sequence[bool]:
        """Whether each word has no vector of its own, but that of all unknown words; empty if none can be so."""
        return ()

    def neighbours(self, query: str, top: int = 10) -> list[tuple[str, float]]:
        """Return the words nearest to a word, or to a sum such as `king - man + woman`, with their cosines, best first.

        The vectors of a sum have length 1, and its words are left out (Mikolov et al. 2013). Raises UsageError for
        several words without + or -, and DataError for an unknown word.
        """
        require_top(top)
        if not isinstance(query, str):
            raise UsageError(f"neighbours takes a word or a sum of words, got {type(query).__name__}.")
        found = expressions([query])
        if len(found) > 1:
            raise UsageError(f"{query!r} is not one word or a sum of words, such as king - man + woman.")
        normaliser = self.run.recipe.data.normaliser
        words = [normaliser.apply(word) for word in found[0].words]
        vectors = self.word_vectors(words)
        require_known(words, vectors, self.are_unknown(words))
        return self.neighbourhood.nearest(np.asarray(found[0].signs, np.float32) @ unit(vectors), top, words)

    @property
    def translator(self) -> ModelTranslator:
        """The search engine of a run that generates text."""
        raise self._cannot("generate")

    def scorer(self, stride: int = 0, model: Any = None) -> TextScorer:
        """A scorer of whole texts, which are read as in training."""
        raise self._cannot("score")

    def adapting_scorer(self, options: Mapping[str, Any]) -> TextScorer:
        """A scorer with a model that adapts to the text; the weights must not be packed."""
        raise self._cannot("generate", "--dynamic")

    def distill(
        self, data: Any, folder: Path, options: SearchOptions, quiet: bool = False, overwrite: bool = False,
        text: Sequence[Path] = (), force: bool = False, reverse: tuple[Any, Path] | None = None,
    ) -> Mapping[str, object]:  # fmt: skip
        """Translate the sources of a `[data]` table into a folder, and return the keys that add them to a recipe.

        `overwrite`: replace other translations; `text`: files of more sources, of any language with `force`; `reverse`:
        a predictor of the opposite direction, which translates the targets back, and the folder for that.
        """
        raise self._cannot("distill")

    def improve(
        self, out: Path, mono: Mapping[str, Sequence[Path]], reverse: Path | None, load: Callable[[Path], Any],
        train: Callable[..., None], max_minutes: float | None, quiet: bool = False, force: bool = False,
        init: Path | None = None, restore: bool = False,
    ) -> bool:  # fmt: skip
        """Improve the run with text in one language and its own translations; whether `out` is a better run.

        `mono`: files of text, by side, of any language with `force`; `reverse`: a run of the other direction; `init`:
        the one that this run began with; `restore`: let new models begin with one that restores masked sentences;
        `load` opens a run; `train` trains one, like another.
        """
        raise self._cannot("distill", "improving with synthetic pairs")

    def lesson(self, corrections: Sequence[tuple[str, str]]) -> Any:
        """Divide corrections, each a source and an output, into those to learn from and those to judge by."""
        raise self._cannot("distill", "learning from corrections")

    def calibrate(self, options: SearchOptions) -> Any:
        """Learn the confidence of outputs from the validation data, and write it into the run folder."""
        raise self._cannot("translate")

    def check_test(self, test: Any, quiet: bool = False) -> None:
        """Raise DataError for a test set (a `HeldOut`) that does not fit the run; warn about differences."""

    def check_input(self, lines: Sequence[str], quiet: bool = False) -> None:
        """Warn about lines that differ from the training data."""

    @property
    def languages(self) -> tuple[str, str]:
        """Language codes of source and target, empty if unknown."""
        return ("", "")

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        """Results on the validation data for the report: `num_lines`, `scores`, and others by task."""
        task = self.run.task()
        validation = task.validate(self.run.model, task.metrics)
        return {"num_lines": task.num_valid, "scores": [score.to_json() for score in validation.scores.values()]}

    def evaluate(self, table: Path, errors: Errors = "strict") -> Any:
        """Score the run on a file of inputs and answers; returns a `heed.evaluation.evaluation.Evaluation`."""
        raise UsageError(f"--table needs a run that learned from a table; {self.run.folder} did not.")

    def baselines(self, table: Path, errors: Errors = "strict") -> Sequence[Any]:
        """The `Evaluation` of each simple method that the run is compared with on a file of inputs and answers."""
        return ()

    def evaluate_captions(
        self, captions: Path, images: Path, others: Sequence[Any] = (), quiet: bool = False, errors: Errors = "strict"
    ) -> list[Any]:
        """Score this run, other runs and baselines on captioned images; returns an `Evaluation` of each."""
        raise self._cannot("caption")

    def commands(self, name: str) -> Sequence[str]:
        """Example shell commands that use the run `name`."""
        return [f"heed predict {name} < in.txt"]

    def facts(self) -> Mapping[str, Any]:
        """Facts about the run that `heed info` shows in addition to those of all runs."""
        return {}

    def remarks(self) -> Sequence[str]:
        """Lines of Markdown for the summary in the run's report."""
        return ()

    def _cannot(self, ability: str, by: str = "") -> UsageError:
        return UsageError(
            f"{by or ability} needs a run that can {ability}; {self.run.folder} is a {self.run.recipe.task} run, "
            f"which can {', '.join(sorted(filter(self.can, self.abilities)))}."
        )
