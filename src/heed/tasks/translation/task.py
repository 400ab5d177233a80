"""Translation: sentence pairs are read, the cross-entropy of the target is minimised, BLEU and chrF are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.data.subword_dropout import SIDES, SubwordDropout
from heed.decoding.options import SearchOptions
from heed.decoding.output_checks import CONFIDENCE
from heed.decoding.translator import ModelTranslator
from heed.metrics import METRICS, score_outputs
from heed.metrics.metric import Score
from heed.nn.contract import Autoregressive, Smoothing, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.generation import chain_rule_loss, perplexity_per_token, random_batch, text_batch
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loss, RecipeTables, Sample, Task, Validation
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.defaults import choose_translation
from heed.tasks.translation.parts import Part
from heed.tasks.translation.predictor import TranslationPredictor
from heed.tasks.translation.prepare import prepare_translation, require_tags, tag_ids
from heed.tasks.translation.r_drop import r_drop_loss
from heed.text.doctor import Diagnosis, diagnose_files, how_to_exchange_part, with_parts
from heed.text.tokenizers import Tokenizer


class TranslationTask(Task):
    """Sentence pairs: from a source text to a target text."""

    name = "translation"
    title = "Translation"
    row = "sentence pair"
    Data = TranslationData
    sides = SIDES
    metrics = ("bleu", "chrf", "perplexity")
    headline = ("BLEU", "chrF2")
    tie_breaker = "perplexity"
    chosen_anew = ("model.dropout",)

    # --- from a user's words to a prepared run folder ---------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return hasattr(model, "advance") and bool(model.needs_source)

    @classmethod
    def measures(cls, metric: str) -> bool:
        return metric in METRICS and METRICS[metric].needs == "outputs"

    @classmethod
    def check(cls, recipe: RecipeTables, is_new: bool) -> None:
        if is_new and recipe.tokenizer.dropout and recipe.tokenizer.kind != "bpe":
            raise ValueError('tokenizer.dropout is for a translation with tokenizer.kind = "bpe": set it to 0')

    @classmethod
    def require_new_tokenizers(cls, recipe: RecipeTables) -> None:
        """Piece 500 of one vocabulary has nothing to do with piece 500 of another: they cannot share an embedding."""
        alike = recipe.tokenizer.kind == "byte" and not recipe.data.tags  # a tag is a piece of the source side alone
        if not recipe.tokenizer.joint and not alike and getattr(recipe.model, "tie", "") == "all":
            raise UsageError(
                'tokenizer.joint = false makes a vocabulary for each side, and model.tie = "all" one embedding for '
                'both: set model.tie = "target", or tokenizer.joint = true.'
            )

    @classmethod
    def examine(cls, data: TranslationData, quiet: bool) -> Examination:
        parts = [(part, _examine_part(part, data, quiet)) for part in data.train_parts()]
        num_repeated = sum((part.repeat - 1) * diagnosis.num_pairs for part, diagnosis in parts)
        to_exchange = {part.label: how_to_exchange_part(part.files, data.errors) for part, _ in parts[1:]}
        further = {part.label: diagnosis for part, diagnosis in parts[1:]}
        return Examination(with_parts(parts[0][1], further, to_exchange), num_repeated)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_translation(stats, machine, given)

    @classmethod
    def prepare(
        cls,
        recipe: RecipeTables,
        folder: Path,
        diagnosis: Diagnosis,
        reuse: Mapping[str, Tokenizer] | None,
        quiet: bool,
    ) -> prepare.Corpus:
        return prepare_translation(
            recipe.data,
            recipe.tokenizer,
            recipe.seed,
            folder,
            diagnosis.num_pairs,
            reuse,
            quiet,
            diagnosis.num_in_parts,
        )

    @classmethod
    def require_tokenizers(cls, tokenizers: Mapping[str, Tokenizer], data: TranslationData) -> None:
        require_tags(tokenizers.get("src", tokenizers["tgt"]), data)  # a language model has only one

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def data(self) -> TranslationData:
        """The `[data]` table."""
        data: TranslationData = self.recipe.data
        return data

    @cached_property
    def valid(self) -> list[tuple[str, ...]]:
        """The validation pairs."""
        return prepare.read_valid(self.folder)

    @property
    def _store(self) -> TokenStore:
        return TokenStore.open(self.folder / "data" / "train")

    def loader(
        self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0
    ) -> BatchLoader[Batch]:
        """Batches of pairs; with subword dropout, cut into subwords anew in every epoch."""
        p = self.recipe.tokenizer.dropout
        return BatchLoader(
            self._store, text_batch, tokens_per_batch=tokens_per_batch, seed=seed,
            subword_dropout=SubwordDropout(self.tokenizers, p, self.recipe.seed) if p else None,
            rank=rank, world_size=world_size, workers=workers,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        """A pair of the training data, with its tag."""
        ids = {side: self._store.row(side, row).tolist() for side in SIDES}
        src, tgt = (self.tokenizers[side].decode([ids[side]])[0] for side in SIDES)
        tags = "".join(self.tokenizers["src"].pieces(ids["src"][: self._num_tags(ids["src"])]))
        return f"{tags}{src!r} → {tgt!r}"

    def _num_tags(self, src_ids: Sequence[int]) -> int:
        """Number of tags in front of a source: one or none."""
        tags = self.tokenizers["src"].vocabulary.tag_ids.values()
        return sum(id in tags for id in src_ids[:1])

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training target."""
        store = self._store
        return (store.row("tgt", index).tolist() for index in range(len(store)))

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys | None,
        before: State | None = None,
    ) -> Loss:  # fmt: skip
        """Cross-entropy of the target given the source, under teacher forcing. Pairs are independent of each other."""
        alpha = self.recipe.training.r_drop
        if alpha and dropout_keys is not None:
            return r_drop_loss(model, batch, smoothing, dropout_keys, alpha)
        return chain_rule_loss(model, batch, smoothing, dropout_keys)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> Batch:
        tokens_per_batch = self.recipe.training.tokens_per_batch
        tokens = max(2, min(round(length), tokens_per_batch))
        return random_batch(max(1, tokens_per_batch // tokens), tokens, vocabularies)

    def weights_changed(self) -> None:
        (self.folder / CONFIDENCE).unlink(missing_ok=True)

    def warnings(self) -> Sequence[str]:
        """Warn when the search would cut off outputs as long as those that people wrote: common with characters."""
        decoding = self.recipe.decoding
        if (number := self.num_beyond_reach()) <= len(self.valid) / 100:
            return ()
        limit = f"decoding.max_tokens = {decoding.max_tokens}"
        if not decoding.max_tokens:
            limit = f"decoding.max_ratio = {decoding.max_ratio:g} per source token, and {decoding.max_extra} more"
        return [
            f"{number:,} of {len(self.valid):,} validation references have more tokens than an output may have "
            f"({limit}). Translations of such length will be cut off: raise the limit."
        ]

    def translator(self, model: Autoregressive) -> ModelTranslator:
        """The model with this run's tokenizers, for validation data."""
        before = tag_ids(self.tokenizers["src"], self.data.tag_of_validation)
        sides = self.tokenizers["src"], self.tokenizers["tgt"]
        return ModelTranslator(model, *sides, self.data.normaliser, self.device, before_source=before)

    def num_beyond_reach(self) -> int:
        """Number of validation references with more tokens than the recipe's search may output for their source."""
        src, tgt = (
            self.tokenizers[side].encode([row[place] for row in self.valid]) for place, side in enumerate(SIDES)
        )
        num_tags = len(tag_ids(self.tokenizers["src"], self.data.tag_of_validation))
        pairs = zip(src, tgt, strict=True)
        return sum(len(theirs) >= self.recipe.decoding.limit(num_tags + len(ours)) for ours, theirs in pairs)

    def validate(
        self, model: Autoregressive, metrics: Sequence[str], options: SearchOptions | None = None
    ) -> Validation:
        """BLEU and chrF of greedy translations (or of `options`), and perplexity of the references.

        Greedy outputs are as long at most as those of the recipe's search.
        """
        translator = self.translator(model)
        sources, references = [row[0] for row in self.valid], [row[1] for row in self.valid]
        hypotheses = translator.translate(sources, options or self.recipe.decoding.greedy())
        outputs = [hypothesis.text for hypothesis in hypotheses]
        names = [name for name in metrics if name != "perplexity"]
        scores: dict[str, Score] = {}
        if names:
            _, language = self.data.languages(self.data.tag_of_validation)
            measured = score_outputs(
                outputs, references, language or None, names, intervals=0, tokenised=self.data.tokenised
            )
            scores.update(zip(names, measured, strict=True))
        if "perplexity" in metrics:
            scores["perplexity"] = perplexity_per_token(translator, references, sources)
        picks = sample_rows(len(sources))
        return Validation(scores, [Sample(sources[i], outputs[i], references[i]) for i in picks])

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> TranslationPredictor:
        return TranslationPredictor(run, combined)


def _examine_part(part: Part, data: TranslationData, quiet: bool) -> Diagnosis:
    """Examine a part, together with the validation data if that has the same languages."""
    same_languages = (part.files.src_lang, part.files.tgt_lang) == (data.src_lang, data.tgt_lang)
    valid = data.valid_files() if same_languages else None
    return diagnose_files(part.files, valid, errors=data.errors, pair_filter=data.filter, quiet=quiet)


def sample_rows(num_rows: int, num_samples: int = 4) -> list[int]:
    """Rows spread over the validation data."""
    return sorted({num_rows * k // num_samples for k in range(num_samples)}) if num_rows else []
