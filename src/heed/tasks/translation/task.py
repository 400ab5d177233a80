"""Translation task: sentence pairs, cross-entropy of the target given the source, BLEU and chrF."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.core.environment import guide
from heed.core.errors import DataError, UsageError
from heed.core.run_files import RunFiles
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.subword_dropout import SIDES, SubwordDropout
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.inference.deriving_translator import DerivingTranslator
from heed.inference.output_checks import CONFIDENCE
from heed.inference.translator import ModelTranslator
from heed.metrics import METRICS, output_metric, score_outputs
from heed.metrics.metric import Score
from heed.models import MODELS
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.defaults import Choices, Chosen, CorpusStats, Machine
from heed.tasks.generation import GenerationTask, perplexity_per_token
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loss, Sample, Validation
from heed.tasks.translation.data import Part, TranslationData
from heed.tasks.translation.defaults import choose_schedule, choose_translation, has_spaces
from heed.tasks.translation.deriving import bitext, require_derivable_recipe
from heed.tasks.translation.expectation import expected
from heed.tasks.translation.measured import similar
from heed.tasks.translation.minimum_risk import Risk, minimum_risk_loss
from heed.tasks.translation.predictor import TranslationPredictor
from heed.tasks.translation.prepare import prepare_translation, require_tags, tag_ids
from heed.text.doctor.direction import how_to_exchange_part
from heed.text.doctor.files import diagnose_files, with_parts
from heed.text.doctor.findings import Diagnosis
from heed.text.readers import read_text
from heed.text.tokenizers import Tokenizer


class TranslationTask(GenerationTask):
    """Translation of sentences, learned from sentence pairs."""

    name = "translation"
    title = "Translation"
    row = "sentence pair"
    Data = TranslationData
    sides = SIDES
    metrics = ("bleu", "chrf", "perplexity")
    headline = ("BLEU", "chrF2")
    can_read_own = True
    chosen_anew = ("model.dropout",)

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        writes = model.generates or model.derives
        return writes and bool(model.needs_source) and model.source == "tokens"

    @classmethod
    def measures(cls, metric: str) -> bool:
        return metric in METRICS and METRICS[metric].needs == "outputs"

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        if is_new and recipe.tokenizer.dropout and recipe.tokenizer.kind != "bpe":
            raise ValueError('tokenizer.dropout requires tokenizer.kind = "bpe": set it to 0')
        model: Any = MODELS[recipe.model.kind]
        if (texts := recipe.data.target_texts()) and not model.reads_target_text:
            raise ValueError(
                f'data.parts, number {min(texts)}, has no src, and model.kind = "{recipe.model.kind}" learns from '
                "pairs: give --model.kind=phrase_based, whose language model reads this text, or translate it with a "
                f"model for the opposite direction first ({guide('more-data.md')})"
            )
        if is_new and (named := [number for number in texts if recipe.data.parts[number - 1].src_lang]):
            raise ValueError(f"data.parts, number {named[0]}, has no src, and so no language of it: leave out src_lang")
        most, longest, has_tag = recipe.model.max_positions, recipe.data.max_tokens, bool(recipe.data.tags)
        needed = longest + 1 + has_tag
        if is_new and most is not None and needed > most:
            keys = " and ".join(f"model.{key}" for key in recipe.model.keys_below(needed))
            added = ", a tag and the end of a source" if has_tag else " and the end of a source"
            raise ValueError(
                f"data.max_tokens = {longest}{added} need {needed} positions, but the encoder has {most}: lower "
                f"data.max_tokens or raise {keys}"
            )
        if model.derives:
            require_derivable_recipe(recipe, is_new and model.needs_words)
            if is_new:
                model.require_usable(recipe.model)

    @classmethod
    def require_new_tokenizers(cls, recipe: Any) -> None:
        """Raise UsageError if the two sides would share an embedding without sharing a vocabulary."""
        same = recipe.tokenizer.kind == "byte" and not recipe.data.tags  # only the source side has tags
        if not recipe.tokenizer.joint and not same and getattr(recipe.model, "tie", "") == "all":
            raise UsageError(
                'tokenizer.joint = false makes a vocabulary for each side, but model.tie = "all" shares one embedding: '
                'set model.tie = "target", or tokenizer.joint = true.'
            )

    @classmethod
    def examine(cls, data: TranslationData, quiet: bool) -> Examination:
        parts = [(part, _examine_part(part, data, quiet)) for part in data.train_parts()]
        for number, path in data.target_texts().items():  # before an earlier run is replaced
            if not sum(1 for line in read_text(path, data.errors) if line.strip()):
                raise DataError(f"data.parts, number {number}: {path} has no lines to learn from. Leave it out.")
        num_repeated = sum((part.repeat - 1) * diagnosis.num_pairs for part, diagnosis in parts)
        to_exchange = {part.label: how_to_exchange_part(part.files, data.errors) for part, _ in parts[1:]}
        further = {part.label: diagnosis for part, diagnosis in parts[1:]}
        return Examination(with_parts(parts[0][1], further, to_exchange), num_repeated)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_translation(stats, machine, given)

    @classmethod
    def schedule_for(cls, recipe: Any, num_updates: float, free: Collection[str]) -> Chosen:
        return choose_schedule(recipe, num_updates, free)

    @classmethod
    def similar_corpora(cls, num_rows: int, characters_per_row: float) -> Sequence[str]:
        known = [corpus.render() for corpus in similar(num_rows, characters_per_row)]
        heading = "BLEU of similar corpora on their validation data, after at most 45 minutes on one CPU core"
        return [heading, *known] if known else []

    @classmethod
    def expected_quality(cls, recipe: Any, stats: CorpusStats, machine: Machine) -> str:
        is_one_core = machine.device == "cpu" and machine.num_processes == 1
        is_one_corpus = not recipe.data.parts and not recipe.data.synthetic
        if not (is_one_core and is_one_corpus and has_spaces(stats)):
            return ""
        found = expected(recipe.model.kind, stats.num_all, stats.characters_per_row)
        if found is not None and recipe.training.scorer == "transformer":
            found = found.scored()
        return found.render() if found else ""

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        num_pairs, num_in_parts = diagnosis.num_pairs, diagnosis.num_in_parts
        characters = max(diagnosis.statistics.get(f"{side}_characters", 0.0) for side in cls.sides)
        return prepare_translation(
            recipe.data, recipe.tokenizer, recipe.seed, folder, num_pairs, reuse, quiet, num_in_parts, characters,
            recipe.model.max_positions,
        )  # fmt: skip

    @classmethod
    def require_tokenizers(cls, tokenizers: Mapping[str, Tokenizer], data: TranslationData) -> None:
        require_tags(tokenizers.get("src", tokenizers["tgt"]), data)  # a language model's run has no source side

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def data(self) -> TranslationData:
        """The `[data]` table."""
        data: TranslationData = self.recipe.data
        return data

    @cached_property
    def valid(self) -> list[tuple[str, ...]]:
        """The validation pairs."""
        return read_valid(self.folder)

    def loader(
        self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0
    ) -> BatchLoader[Batch]:
        """Batches of pairs. With subword dropout, they are encoded anew in each epoch."""
        p, most = self.recipe.tokenizer.dropout, self.recipe.model.max_positions
        longest = None if most is None else most - 1  # for the end of a source
        subword_dropout = SubwordDropout(self.tokenizers, p, self.recipe.seed, longest) if p else None
        return self.row_loader(tokens_per_batch, seed, rank, world_size, workers, subword_dropout)

    def loss(self, model: Any, batch: Batch, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        if self.recipe.training.risk == "none" or dropout_keys is None:
            return super().loss(model, batch, dropout_keys, carried)
        return minimum_risk_loss(model, batch, dropout_keys, self._risk)

    @cached_property
    def _risk(self) -> Risk:
        training, decode = self.recipe.training, self.tokenizers["tgt"].decode
        metric = output_metric(training.risk, self._target_language, self.data.tokenised)

        def scores(outputs: Sequence[Sequence[int]], references: Sequence[Sequence[int]]) -> list[float]:
            return [score / 100 for score in metric.sentence_scores(decode(outputs), decode(references))]

        def limit(source_length: int) -> int:
            return self.recipe.decoding.limit(source_length - 1)  # type: ignore[no-any-return]

        return Risk(training.risk_samples, training.risk_sharpness, limit, scores)

    @property
    def _target_language(self) -> str | None:
        """The language of the validation data's target."""
        return self.data.languages(self.data.tag_of_validation)[1] or None

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> Batch | None:
        """As the base class; None for minimum risk training, which scores text and so needs trained tokenizers."""
        return super().trial_batch(vocabularies, length, processes) if self.recipe.training.risk == "none" else None

    def text_of(self, row: int) -> str:
        """A pair of the training data, with its tag."""
        ids = {side: self.store.row(side, row).tolist() for side in SIDES}
        src, tgt = (self.tokenizers[side].decode([ids[side]])[0] for side in SIDES)
        tags = self.tokenizers["src"].vocabulary.tag_ids.values()
        tag = "".join(self.tokenizers["src"].pieces([id for id in ids["src"][:1] if id in tags]))
        return f"{tag}{src!r} → {tgt!r}"

    def weights_changed(self) -> None:
        RunFiles(self.folder).remove(CONFIDENCE)

    def warnings(self) -> Sequence[str]:
        """A warning if the search would cut off outputs as long as the references, which is common with characters."""
        decoding = self.recipe.decoding
        if (number := self.num_over_limit()) <= len(self.valid) / 100:
            return ()
        limit = f"decoding.max_tokens = {decoding.max_tokens}"
        if not decoding.max_tokens:
            limit = f"decoding.max_ratio = {decoding.max_ratio:g} per source token, and {decoding.max_extra} more"
        return [
            f"{number:,} of {len(self.valid):,} validation references have more tokens than an output may have "
            f"({limit}). Translations of this length will be cut off: raise the limit."
        ]

    def estimate(self, model: Any) -> None:
        minutes = self.recipe.training.max_minutes
        if self.recipe.training.scorer:
            minutes /= 2  # the other half is the scorer's
        deadline = time.monotonic() + 60 * minutes if minutes else math.inf
        data = bitext(self.store, self.valid, self.tokenizers, self.data)
        model.estimate(replace(data, is_late=lambda: time.monotonic() >= deadline))

    def translator(self, model: Any) -> Any:
        """The model with this run's tokenizers and the tag of its validation data."""
        sides = self.tokenizers["src"], self.tokenizers["tgt"]
        if model.derives:
            return DerivingTranslator(model, *sides, self.data.normaliser)
        before = tag_ids(self.tokenizers["src"], self.data.tag_of_validation)
        return ModelTranslator(model, *sides, self.data.normaliser, self.device, before_source=before)

    def num_over_limit(self) -> int:
        """Number of validation references with more tokens than the recipe's search may output for their source."""
        sources, references = zip(*self.valid, strict=True)
        src, tgt = (
            self.tokenizers[side].encode(lines) for side, lines in zip(SIDES, (sources, references), strict=True)
        )
        num_tags = bool(self.data.tag_of_validation)
        limit = self.recipe.decoding.limit
        return sum(len(ids) >= limit(num_tags + len(src_ids)) for src_ids, ids in zip(src, tgt, strict=True))

    def validate(self, model: Any, metrics: Sequence[str], options: SearchOptions | None = None) -> Validation:
        """BLEU and chrF of greedy translations (or with `options`), and perplexity of the references.

        Greedy outputs have the length limit of the recipe's search. A model that derives its translations has its own
        search and no perplexity.
        """
        translator, derives = self.translator(model), model.derives
        sources, references = [row[0] for row in self.valid], [row[1] for row in self.valid]
        decoding = self.recipe.decoding
        hypotheses = translator.translate(sources, options or (decoding if derives else decoding.greedy()))
        outputs = [hypothesis.text for hypothesis in hypotheses]
        names = [name for name in metrics if name != "perplexity"]
        scores: dict[str, Score] = {}
        if names:
            language = self._target_language
            tokenised = self.data.tokenised
            measured = score_outputs(outputs, references, language, names, intervals=0, tokenised=tokenised)
            scores.update(zip(names, measured, strict=True))
        if "perplexity" in metrics and not derives:
            scores["perplexity"] = perplexity_per_token(translator, references, sources)
        samples = [Sample(sources[i], outputs[i], references[i]) for i in sample_rows(len(sources))]
        return Validation(scores, samples)

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> TranslationPredictor:
        return TranslationPredictor(run, combined)


def _examine_part(part: Part, data: TranslationData, quiet: bool) -> Diagnosis:
    """Examine a part, and the validation data if it has the same languages."""
    same_languages = (part.files.src_lang, part.files.tgt_lang) == (data.src_lang, data.tgt_lang)
    valid = data.valid_files() if same_languages else None
    return diagnose_files(
        part.files, valid, errors=data.errors, pair_filter=data.filter, normaliser=data.normaliser, quiet=quiet
    )


def sample_rows(num_rows: int) -> list[int]:
    """Indices of at most four rows that are spread over the validation data."""
    return sorted({num_rows * k // 4 for k in range(4)}) if num_rows else []
