"""A folder is a model: its recipe, tokenizers, weights and history. How is one opened, and used?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from heed.core.config import build, read_toml
from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.files import first_foreign
from heed.core.progress import message
from heed.data.store import TokenStore
from heed.data.text_stream import TextStream
from heed.decoding.confidence import Confidence
from heed.decoding.guard import Guard
from heed.decoding.reading import make_reader
from heed.decoding.text_scorer import TextScorer
from heed.decoding.translator import Judgement, ModelTranslator
from heed.models import GenerativeModel, build_model
from heed.models.ensemble import Ensemble, ShallowFusion
from heed.models.vocabulary_change import same_pieces, with_vocabularies
from heed.nn.contract import Autoregressive, Vocabularies
from heed.nn.weight_file import Shapes, read_header, read_weights, require_shapes, shapes_of
from heed.recipe import Recipe, require_known_format
from heed.tasks.language_modelling import LanguageModellingTask
from heed.tasks.parts import tag_to_use
from heed.tasks.prepare import read_valid, vocabulary_digests
from heed.tasks.translation import TranslationTask, tag_ids
from heed.text.tokenizers import Tokenizer, load_tokenizer
from heed.text.vocabulary import Vocabulary

RECIPE, WEIGHTS = "recipe.toml", "model.safetensors"


def load_tokenizers(folder: Path, sides: tuple[str, ...]) -> dict[str, Tokenizer]:
    """The tokenizer of each side: `tokenizer.json` for all, or `tokenizer.SIDE.json`."""
    if (folder / "tokenizer.json").exists():
        return dict.fromkeys(sides, _load_tokenizer(folder / "tokenizer.json"))
    return {side: _load_tokenizer(folder / f"tokenizer.{side}.json") for side in sides}


def _load_tokenizer(path: Path) -> Tokenizer:
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no regular file.")
    return load_tokenizer(path)


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model; names and shapes must be its own."""
    parameters = dict(model.named_parameters())
    if not parameters:  # a counting model: its counts are whatever was counted
        model.load_state_dict(tensors)
        return
    require_shapes(shapes_of(tensors), shapes_of(parameters), where)
    for name, parameter in parameters.items():
        parameter.data.copy_(tensors[name])


class Run:
    """One run folder. `tag`: what stands before each source that it translates (None: as its recipe says)."""

    def __init__(self, folder: str | Path, device: torch.device | None = None, tag: str | None = None) -> None:
        self.folder = Path(folder)
        self.device = device or torch.device("cpu")
        self.tag = tag
        self.precision = "float32"
        """The numbers that its weights were brought to."""
        if not self.folder.is_dir():
            raise MissingInputError(f"{folder}: there is no such run folder. A run is what `heed train --out` makes.")
        if not (self.folder / RECIPE).is_file():
            raise MissingInputError(f"{folder} is no run folder: it has no {RECIPE}.")

    @cached_property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        document = read_toml(self.folder / RECIPE)
        require_known_format(document)
        return build(Recipe, document)

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the data that have a tokenizer."""
        return ("src", "tgt") if self.recipe.task == "translation" else ("tgt",)

    @cached_property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizer of each side."""
        return load_tokenizers(self.folder, self.sides)

    @property
    def vocabularies(self) -> Vocabularies:
        """What the model must know of them."""
        sizes = {side: len(tokenizer.vocabulary) for side, tokenizer in self.tokenizers.items()}
        return Vocabularies(sizes.get("src", 0), sizes["tgt"])

    def new_model(self) -> GenerativeModel:
        """The recipe's model with fresh weights, which follow from the recipe's seed."""
        with torch.random.fork_rng(devices=[]):  # the caller's own random numbers go on as they were
            torch.manual_seed(self.recipe.seed)
            return build_model(self.recipe.model, self.vocabularies)

    @cached_property
    def blank_model(self) -> GenerativeModel:
        """The recipe's model without memory for its weights. Raises DataError for one that no machine can hold."""
        try:
            with torch.device("meta"):
                return build_model(self.recipe.model, self.vocabularies)
        except (RuntimeError, TypeError, OverflowError) as error:  # PyTorch counts bytes in 64 bits
            raise DataError(f"{self.folder / RECIPE}: [model] describes a model that no machine can hold.") from error

    @property
    def shapes(self) -> Shapes:
        """The names and shapes of the weights that are trained; a counting model has none."""
        return shapes_of(dict(self.blank_model.named_parameters()))

    def weights(self) -> dict[str, Tensor]:
        """The tensors of model.safetensors. They are the recipe's model's, or are refused before memory is taken."""
        self.require_weights()
        return read_weights(self.folder / WEIGHTS, self.shapes or None)

    def require_weights(self) -> None:
        """Raise MissingInputError or DataError unless the header of model.safetensors says that it is this run's."""
        path = self.folder / WEIGHTS
        if not path.exists():
            raise MissingInputError(
                f"{self.folder} has no {WEIGHTS}: its training has not got as far as a first validation."
            )
        header = read_header(path)
        for key, digest in vocabulary_digests(self.tokenizers).items():
            if header.metadata.get(key, digest) != digest:
                side = "" if (self.folder / "tokenizer.json").exists() else f".{key.removeprefix('vocabulary_')}"
                raise DataError(
                    f"{self.folder}/tokenizer{side}.json is not the tokenizer that {WEIGHTS} was trained with: its "
                    "vocabulary is another one. Put the run's own tokenizer back."
                )
        if self.shapes:
            require_shapes(header.shapes, self.shapes, path)

    @property
    def num_parameters(self) -> int:
        """Numbers that were learned, or counted."""
        return read_header(self.folder / WEIGHTS).num_parameters

    @cached_property
    def model(self) -> GenerativeModel:
        """The model with its trained weights, without gradients."""
        tensors = self.weights()
        with torch.no_grad():
            model = self.new_model()
            load_weights(model, tensors, self.folder / WEIGHTS)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        return model.to(self.device)

    def task(self) -> TranslationTask | LanguageModellingTask:
        """The recipe's task on the data prepared in this folder."""
        data = self.recipe.data
        if self.recipe.task == "translation":
            return TranslationTask(
                self.folder, data, self.tokenizers["src"], self.tokenizers["tgt"], self.recipe.tokenizer.dropout,
                self.recipe.seed, self.device, self.recipe.training.r_drop, self.recipe.decoding,
            )  # fmt: skip
        training = self.recipe.training
        return LanguageModellingTask(
            self.folder, data, self.tokenizers["tgt"], self.device, training.context, training.num_streams,
            training.random_context,
        )  # fmt: skip

    def scorer(self, stride: int = 0, model: Autoregressive | None = None) -> TextScorer:
        """The language model reading one text from its beginning, as it read in training.

        `stride`: tokens that are new in each window, for a model that reads windows (0: half of them). `model`: another
        one that reads in its place, such as an ensemble.
        """
        data, context = self.recipe.data, self.recipe.training.context
        reader = make_reader(data.text_as, model or cast(Autoregressive, self.model), self.device, context, stride)
        return TextScorer(reader, self.tokenizers["tgt"], data.normaliser, data.line_end)

    def training_text(self) -> TextStream:
        """What a language model was trained on. Raises MissingInputError where the folder has it no more."""
        store = TokenStore.open(self.folder / "data" / "train")
        if self.recipe.data.text_as != "lines":
            return TextStream.of_store(store)
        return TextStream.of_lines([[*store.row("tgt", i).tolist(), Vocabulary.eos_id] for i in range(len(store))])

    @cached_property
    def translator(self) -> ModelTranslator:
        """The model with its tokenizers: translates, generates and scores."""
        return self._translator(cast(Autoregressive, self.model), self.judgement)

    def translator_with(self, others: Sequence[Run], lm: Run | None = None, lm_weight: float = 0.0) -> ModelTranslator:
        """This run and others as one model, a language model having a weighted share in every score.

        Raises UsageError where a vocabulary is not this run's: ids would mean something else.
        """
        for other in others:
            other.require(self.recipe.task, "an ensemble")
            self._require_vocabularies_of(other)
            if other.recipe.data.line_end != self.recipe.data.line_end:
                raise UsageError(f"{self.folder} and {other.folder} end a line in other ways (data.line_end).")
        models = [cast(Autoregressive, run.model) for run in (self, *others)]
        model = cast(Autoregressive, Ensemble(models)) if others else models[0]
        if lm is None:
            return self._translator(model, replace(self.judgement, confidence=None))  # which is that of one model
        lm.require("language-model", "--lm")
        self._require_vocabularies_of(lm)
        if lm.recipe.data.line_end != "eos":
            raise UsageError(
                f"--lm {lm.folder}: it never learned where a sentence ends (data.line_end = "
                f'"{lm.recipe.data.line_end}"), and outputs would not end. Train it with --data.text_as=lines.'
            )
        language_model = cast(Autoregressive, lm.model)
        fused = cast(Autoregressive, ShallowFusion(model, language_model, lm_weight))
        return self._translator(fused, replace(self.judgement, confidence=None, lm=language_model))

    def _require_vocabularies_of(self, other: Run) -> None:
        for side in other.sides:
            if other.tokenizers[side].vocabulary.sha256 != self.tokenizers[side].vocabulary.sha256:
                raise UsageError(
                    f"{other.folder} has another vocabulary than {self.folder} ({side} side), and only runs with the "
                    "same one work together: train one with --tokenizer-of the other."
                )

    def _translator(self, model: Autoregressive, judgement: Judgement) -> ModelTranslator:
        src, tgt, normaliser = self.tokenizers.get("src"), self.tokenizers["tgt"], self.recipe.data.normaliser
        before = tag_ids(src, self.source_tag) if src is not None else ()
        line_end = None if self.recipe.data.text_as == "lines" else self.recipe.data.line_end
        return ModelTranslator(model, src, tgt, normaliser, self.device, judgement, before, line_end)

    @property
    def source_tag(self) -> str:
        """The tag before each source. Raises UsageError for an unknown one, and where one must be said and is not."""
        data, known = self.recipe.data, self.tokenizers["src"].vocabulary.tags
        return tag_to_use(data.tags_used, data.default_tag, known, self.tag)

    def of_validation(self) -> Run:
        """This run with the tag of its validation data."""
        data = self.recipe.data
        tag = data.tag_of_validation
        return self if not data.tags or self.tag == tag else self.with_tag(tag)

    def with_tag(self, tag: str) -> Run:
        """This run with another tag before its sources; the model is in memory once."""
        other = Run(self.folder, self.device, tag)
        other.model, other.precision = self.model, self.precision
        return other

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of source and target, as far as they are known; with several languages those of the tag."""
        data = self.recipe.data
        return data.languages(data.default_tag if self.tag is None else self.tag)

    @cached_property
    def judgement(self) -> Judgement:
        """What is known of this run's outputs: the guard for its language pair, and its confidence."""
        if self.recipe.task != "translation":
            return Judgement()
        src_lang, tgt_lang = self.languages
        like_validation = self.source_tag == self.recipe.data.tag_of_validation
        try:
            valid = read_valid(self.folder) if like_validation else []
        except DataError:  # translating needs none of it; then no length is odd
            valid = []
        guard = Guard.of_pairs([(row[0], row[-1]) for row in valid[:1000]], bool(src_lang) and src_lang == tgt_lang)
        return Judgement(guard, self.confidence if like_validation else None, tgt_lang=tgt_lang)

    @cached_property
    def confidence(self) -> Confidence | None:
        """What was learned by `heed evaluate --calibrate`; nothing where it was not."""
        return Confidence.read(self.folder)

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """What the run was trained on, where the folder still tells."""
        path = self.folder / "data" / "corpus.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}. Delete it; only resuming needs it.") from error
        return found if isinstance(found, dict) else {}

    def require_prepared(self) -> None:
        """Raise DataError unless the folder holds all that is prepared before a training, and that as its own files.

        A training writes into its folder, and a link in it could lead anywhere.
        """
        if path := first_foreign(self.folder):
            raise DataError(
                f"{path} is a link, or no file: a training uses nothing outside its folder. Put a copy there."
            )
        if not (self.folder / "data" / "corpus.json").exists():
            raise DataError(
                f"{self.folder} has no prepared data: it was removed, or preparing it was interrupted. "
                "Start anew with --overwrite."
            )

    def require_resumable(self) -> None:
        """Raise DataError unless the prepared data was made for the tokenizers of the folder."""
        made_with = TokenStore.open(self.folder / "data" / "train", verify=True).manifest.fingerprint
        for key, digest in vocabulary_digests(self.tokenizers).items():
            if made_with.get(key) != digest:
                raise DataError(
                    f"{self.folder}: data/train was not made with this tokenizer ({key.removeprefix('vocabulary_')} "
                    "side). Put the run's own tokenizer back, or start anew with --overwrite."
                )

    def require(self, task: Literal["translation", "language-model"], verb: str) -> None:
        """Refuse a language model where a translator is needed, and the other way round."""
        if self.recipe.task != task:
            raise UsageError(f"{verb} needs a {task} run; {self.folder} is a {self.recipe.task} run.")


def first_model(run: Run, init: Run | None, quiet: bool) -> GenerativeModel:
    """The model of a prepared run before its first update: fresh, or with the weights of `init`."""
    model = run.new_model()
    if init is not None:
        weights = init.weights()
        if vocabulary_digests(run.tokenizers) != vocabulary_digests(init.tokenizers):
            weights = with_vocabularies(weights, run.recipe.model, init.tokenizers, run.tokenizers)
            _tell_kept(init, run, quiet)
        load_weights(model, weights, init.folder / WEIGHTS)
    return model


def _tell_kept(init: Run, run: Run, quiet: bool) -> None:
    """How many pieces of the new vocabularies --init had."""
    for side in {run.tokenizers[side]: side for side in reversed(run.sides)}.values():  # once where both have one
        new = run.tokenizers[side]
        kept = len(same_pieces(new, init.tokenizers[side]))
        share = f"{kept:,} of {len(new.vocabulary):,} pieces keep their weights"
        message(f"{side}: {share}, the others begin as what spells them", quiet)
