"""Predictor of a translation run: translating and scoring, alone or combined with other runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, overload

import torch

from heed.core.environment import num_cpus
from heed.core.errors import DataError, UsageError
from heed.core.own_scorer import SCORER, scores_sentence, verdict_of
from heed.core.progress import warn
from heed.core.run_files import WEIGHTS, resume_command
from heed.data.validation import VALID, read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.scoring import TokenScores
from heed.evaluation.test_set import HeldOut
from heed.export.ctranslate2 import convert, is_convertible, open_engine, usable_conversion
from heed.inference.alignment import links_of_pairs
from heed.inference.ctranslate2_engine import CTranslate2Engine
from heed.inference.deriving_translator import DerivingTranslator
from heed.inference.engine_contract import Engine
from heed.inference.line_translator import LineTranslator
from heed.inference.rescoring import RescoredDerivations, with_second_score
from heed.inference.target_scorer import ConvertedScorer, Scorer
from heed.inference.translator import ModelTranslator
from heed.models import MODELS
from heed.nn.contract import Autoregressive
from heed.report.markdown import plain
from heed.report.usability import usability
from heed.run import Run
from heed.statistical.derivation import Derivation, Derives
from heed.tasks.arguments import require_top, several_texts
from heed.tasks.embedding import TokenAttention, TokenVectors, encoder_attention, encoder_vectors
from heed.tasks.generation import combined_model, require_vocabularies
from heed.tasks.predictor import ALONE, Combination, Prediction, Predictor
from heed.tasks.translation.calibration import Calibration, calibrate
from heed.tasks.translation.compatibility import (
    in_opposite_direction,
    require_direction,
    scorer_of,
    warn_about_test_set,
)
from heed.tasks.translation.converted import write_settings
from heed.tasks.translation.corrections import Lesson, split
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.distillation import BackTranslation, Distillation
from heed.tasks.translation.improving import Improvement, Tools, Train
from heed.tasks.translation.monolingual import source_text
from heed.tasks.translation.neighbours import open_memory, with_memory
from heed.tasks.translation.report import analyse
from heed.tasks.translation.synthetic_pairs import plain_search, text_part
from heed.tasks.translation.translating import Translating
from heed.text.tokenizers import Tokenizer


class TranslationPredictor(Translating, Predictor):
    """A trained translator, alone or in a `Combination`."""

    abilities = frozenset({"translate", "distill", "score", "derive", "inspect", "predict", "embed"})
    run: Run

    def __init__(self, run: Run, combined: Combination = ALONE) -> None:
        super().__init__(run, _with_own_scorer(run, combined))
        self._require_matching()

    @property
    def folder(self) -> Path:
        return self.run.folder

    @property
    def tag(self) -> str | None:
        return self.run.tag

    @property
    def data(self) -> TranslationData:
        return cast(TranslationData, self.run.recipe.data)

    @property
    def decoding(self) -> SearchOptions:
        return self.run.recipe.decoding

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return self.run.tokenizers

    @property
    def not_usable(self) -> str:
        return usability(self.run)

    # --- public methods ---------------------------------------------------------------------------------

    @overload
    def translate(self, texts: str, options: SearchOptions | None = None) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def translate(self, texts: Sequence[str], options: SearchOptions | None = None) -> list[str]: ...
    def translate(self, texts: str | Sequence[str], options: SearchOptions | None = None) -> str | list[str]:
        """Translate a string to a string, or a list of strings to a list."""
        if isinstance(texts, str):
            return self.translate([texts], options)[0]
        translator = self.line_translator(with_tokens=False)
        return [best.text for best in translator.translate(several_texts(texts), options or self.decoding)]

    def hypotheses(self, texts: Sequence[str], options: SearchOptions | None = None) -> list[Hypothesis]:
        """Translate several texts, and return scores, tokens and alternatives too."""
        return self.line_translator(True).translate(several_texts(texts), options or self.decoding)

    def word_links(self, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        return links_of_pairs(self.translator, pairs)

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Return the log-probabilities (nats) of each target's tokens given its source."""
        if sources is None:
            raise UsageError("a translator scores targets given their sources: pass both.")
        self.require("score")
        targets, sources = several_texts(targets), several_texts(sources)
        if len(sources) != len(targets):
            raise DataError(f"{len(targets)} targets with {len(sources)} sources: each target needs its source.")
        return cast(ModelTranslator, self.translator).score(targets, sources)

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """Return the best translations of each text."""
        require_top(top)
        options = self.decoding
        if top > 1:
            options = options.model_copy(update={"nbest": top, "beam_size": max(top, options.beam_size)})
        return [
            [Prediction(each.text, each.confidence) for each in (hypothesis, *hypothesis.alternatives)][:top]
            for hypothesis in self.hypotheses(inputs, options)
        ]

    def require_probabilities(self) -> None:
        if self.checks.confidence is not None:
            return
        folder, tag = self.run.folder, self.data.tag_of_validation
        if self._derives:
            raise UsageError(f"{folder}: a translator that searches over whole derivations has no probabilities.")
        if self.source_tag != tag:
            raise UsageError(f"{folder} has probabilities for translations with the tag of its validation data alone.")
        raise UsageError(
            f"{folder} does not know the probability that a translation is good, since its confidence is not "
            f"calibrated: `heed evaluate {folder} --calibrate` does it."
        )

    def derivations(self, text: str, width: int, number: int) -> list[Derivation]:
        self.require("derive")
        return cast(DerivingTranslator, self.translator).derivations(text, width, number)

    def derivation_weights(self) -> Mapping[str, float]:
        self.require("derive")
        weights = cast(Derives, self.run.model).weights_by_name()
        return with_second_score(weights) if self._scorers else weights

    def can(self, ability: str) -> bool:
        if not super().can(ability):
            return False
        if ability in ("derive", "score"):
            return self._derives == (ability == "derive")
        return ability != "embed" or _reads(self.run.blank_model)

    def _cannot(self, ability: str, by: str = "") -> UsageError:
        error, scorer = super()._cannot(ability, by), self.run.scorer
        if scorer is None or not scorer.predictor.can(ability):
            return error
        return UsageError(f"{error} Its scorer can: name {scorer.folder}.")

    @property
    def can_avoid_loops(self) -> bool:
        return not self._derives

    @property
    def _derives(self) -> bool:
        """Whether the model derives translations by its own search."""
        return _derives(self.run)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The features of the encoder at each token of each source."""
        self.require("embed")
        sources = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        return encoder_vectors(cast(Any, self.run.model).encoder, self.run.tokenizers["src"], sources, self.run.device)

    def self_attention(self, texts: Sequence[str], random_weights: bool = False) -> list[TokenAttention]:
        """The self-attention of the encoder between the tokens of each source."""
        model: Any = self.run.new_model() if random_weights else self.run.model
        if not _reads(model):
            raise self._cannot("inspect", "self-attention")
        device = self.run.device
        sources = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        return encoder_attention(model.encoder.to(device), self.run.tokenizers["src"], sources, device)

    def distill(
        self, data: TranslationData, folder: Path, options: SearchOptions, quiet: bool = False, overwrite: bool = False,
        text: Sequence[Path] = (), force: bool = False, reverse: tuple[Any, Path] | None = None,
    ) -> Mapping[str, object]:  # fmt: skip
        if data.share < 1:
            raise UsageError(
                f"data.share = {data.share:g} would leave out translations after the teachers have made them. With "
                "--data.share=1, the student learns from all pairs and their translations."
            )
        work = [Distillation(self, data, folder, options, quiet)]
        if reverse is not None:
            opposite = in_opposite_direction(reverse[0], self)
            back = BackTranslation(opposite, data, reverse[1], plain_search(opposite.decoding), quiet, teacher=self)
            back.warn_about_text()
            work.append(back)
        for each in work:
            each.check(overwrite)
        lines = source_text(self, data, text, force) if text else None  # what is wrong with it is found before
        parts = [*data.parts, *(part for each in work for part in each.run(overwrite))]
        if lines is not None:
            parts.append(text_part(self, data, lines, folder, options, quiet, overwrite))
        return {"data.parts": [part.model_dump(exclude_defaults=True) for part in parts]}

    def improve(
        self, out: Path, mono: Mapping[str, Sequence[Path]], reverse: Path | None, load: Callable[[Path], Any],
        train: Train, max_minutes: float | None, quiet: bool = False, force: bool = False, init: Path | None = None,
        restore: bool = False,
    ) -> bool:  # fmt: skip
        tools = Tools(load, train)
        return Improvement(self.run, out, mono, reverse, tools, quiet, force, init, restore).improve(max_minutes)

    def lesson(self, corrections: Sequence[tuple[str, str]]) -> Lesson:
        normalise = self.data.normaliser.apply
        pairs = [(normalise(src), normalise(tgt)) for src, tgt in corrections]
        return split((src, tgt) for src, tgt in pairs if src.strip() and tgt.strip())

    def calibrate(self, options: SearchOptions) -> Calibration:
        """Learn the confidence of translations from the validation data, and write it into the run folder."""
        self.require("score", "calibration")
        return calibrate(self.run, options)

    def check_test(self, test: HeldOut, quiet: bool = False) -> None:
        """Raise DataError for a test set with exchanged sides or other languages; warn about other differences."""
        require_direction(self, test)
        warn_about_test_set(self, test, quiet)

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        return analyse(self.run, quiet)

    def commands(self, name: str) -> Sequence[str]:
        name += f" --tag {self.data.tags[0]}" if self.data.requires_tag else ""
        evaluate = f"heed evaluate {name} --src test.src --ref test.tgt --worst 10"
        return [f"heed translate {name} < in.txt > out.txt", evaluate]

    def facts(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"tags": ", ".join(self.data.tags)} if self.data.tags else {}
        if not self.run.files.has(WEIGHTS):
            return facts
        if self._derives:
            facts["weights"] = {name: round(value, 4) for name, value in self.derivation_weights().items()}
            if (scorer := self.run.scorer) is not None and (verdict := verdict_of(self.run.folder)) is not None:
                scores = scores_sentence(self.run.folder, verdict)
                facts["scored by"] = f"{SCORER} ({scorer.num_parameters:,} parameters): {scores}"
            return facts
        if rounding := self._rounding():
            facts["int8"] = rounding
        return {**facts, "engine": "CTranslate2" if self._is_convertible else "PyTorch"}

    def remarks(self) -> Sequence[str]:
        corpus, rounding = self.run.corpus, self._rounding()
        quality = plain(str(corpus.get("expected_quality", "")))
        remarks = [f"**Expected before the training**: {quality}."] if quality else []
        remarks += [f"**With `--precision int8`**: {rounding}."] if rounding else []
        if corpus.get("characters_per_row"):
            known = self.run.task_type.similar_corpora(self.run.num_rows, corpus["characters_per_row"])
            remarks += [f"**{known[0]}**: {'; '.join(known[1:])}."] if known else []
        if MODELS[self.run.recipe.model.kind].proposes_several and not self.run.recipe.training.scorer:
            remarks.append(
                "**Perhaps better with a Transformer**: train one on the same data (`--model.kind=transformer`), and "
                f"let it score what this run proposes: `heed translate {self.folder.resolve().name} --ensemble OTHER`."
            )
        return remarks

    def _rounding(self) -> str:
        """What int8 costs and gains, as measured when the run was converted; empty if it was not."""
        conversion = usable_conversion(self.run) if self._is_convertible else None
        return conversion.rounding.render() if conversion and conversion.rounding else ""

    # --- languages and tags -----------------------------------------------------------------------------

    def of_validation(self) -> Run:
        """The run with the tag of its validation data."""
        tag = self.data.tag_of_validation
        return self.run if not self.data.tags or self.run.tag == tag else self.run.with_tag(tag)

    # --- the search -------------------------------------------------------------------------------------

    def open(self) -> None:
        if self.engine is None or self._derives:
            super().open()
        if self.tag is not None:
            _ = self.source_tag  # that the run has it
        if isinstance(self.combined.memory, Path):
            _ = self.translator  # opens the memory
        if self.run.awaits_scorer:
            warn(
                f"{self.run.folder}: only the phrases translate, since the training of their scorer is not finished. "
                f"Finish it with: {resume_command(self.run.folder)}"
            )

    def convert(self) -> None:
        if self._is_convertible:
            convert(self.run)
            write_settings(self)

    def line_translator(self, with_tokens: bool) -> LineTranslator:
        if self._derives:
            return cast(DerivingTranslator, self.translator)
        if self.engine is not None:
            return self.translator_with(self.engine, self._search_with_pytorch, with_tokens)
        translator: ModelTranslator = self.translator
        return translator.searched_by(translator.search_in_batches, self._num_searches)

    @property
    def _num_searches(self) -> int:
        """Batches that PyTorch searches at the same time, with its number of threads for each."""
        on_cpu = self.run.device.type == "cpu"
        return max(1, (self.run.num_workers or num_cpus()) // torch.get_num_threads()) if on_cpu else 1

    def _search_with_pytorch(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        return cast(ModelTranslator, self.translator).search_in_batches(requests, options)

    @property
    def _is_convertible(self) -> bool:
        return self.run.tokenizers["tgt"].seldom_unknown and not self._derives and is_convertible(self.run)

    @cached_property
    def engine(self) -> Engine | None:
        """The model's own search, or CTranslate2 with it; None if PyTorch alone can search for this predictor."""
        run = self.run
        if self._derives and run.engine != "ctranslate2":
            return cast(Engine, self.translator.engine)
        needs = (
            "a single Transformer with multi-head attention and without --lm or --memory, and a tokenizer that can "
            "write any text (bpe, unigram, sentencepiece, open-word or byte)"
        )
        return open_engine(run, not self.combined and self._is_convertible, needs)

    @property
    def target_scorer(self) -> Scorer:
        """What scores given targets, with the fastest engine."""
        if isinstance(self.engine, CTranslate2Engine):
            return ConvertedScorer(self.line_translator(with_tokens=False), self.engine)
        return cast(ModelTranslator, self.translator)

    @cached_property
    def translator(self) -> Any:
        """The model, or all models of an ensemble, with tokenizers, normaliser and output checks."""
        src, tgt = self.run.tokenizers["src"], self.run.tokenizers["tgt"]
        checks = replace(self.checks, confidence=None) if self.combined else self.checks  # it is the model's own
        if self._derives:
            derives = cast(Derives, self.run.model)
            if self._scorers:
                scorers = [each.target_scorer for each in self._scorers]
                derives = RescoredDerivations(derives, src, tgt, scorers, self.run.num_workers or num_cpus())
            return DerivingTranslator(derives, src, tgt, self.data.normaliser, checks)
        model, lm = combined_model(self.run, self.combined)
        limits = [run.recipe.model.max_positions for run in (self.run, *self.combined.others)]
        most = min(filter(None, limits), default=None)

        def translator_of(model: Autoregressive) -> ModelTranslator:
            return ModelTranslator(
                model, src, tgt, self.data.normaliser, self.run.device, checks, self.before_source, lm=lm,
                max_positions=most,
            )  # fmt: skip

        if self.combined.memory is None:
            return translator_of(model)
        memory = self.combined.memory
        if isinstance(memory, Path):
            memory = open_memory(memory, self.languages)
        return translator_of(with_memory(translator_of(model), memory, self._validation))

    @property
    def _validation(self) -> list[tuple[str, str]]:
        """Validation pairs of this direction; empty if there are none, or if they were removed."""
        has_pairs = self.run.files.has(VALID) and self.source_tag == self.data.tag_of_validation
        return [(row[0], row[1]) for row in read_valid(self.run.folder)] if has_pairs else []

    def _require_matching(self) -> None:
        if self._derives:
            self._require_scorers()
            return
        if self.combined.memory is not None and self.combined.lm is not None:
            raise UsageError("--memory cannot be combined with --lm: leave one of them out.")
        for other in self.combined.others:
            other.predictor.require("translate", "an ensemble with a translator")
            if _derives(other):
                raise UsageError(
                    f"{other.folder}: a translator that searches over whole derivations gives no probability of the "
                    f"next word. Name it first, so that {self.run.folder} scores its translations."
                )
            require_vocabularies(self.run, other)
        if (lm := self.combined.lm) is not None:
            lm.predictor.require("generate", "--lm")
            lm.recipe.data.require_forward()
            require_vocabularies(self.run, lm)
            if lm.recipe.data.line_end != "eos":
                raise UsageError(
                    f"--lm {lm.folder}: it did not learn where sentences end (data.line_end = "
                    f'"{lm.recipe.data.line_end}"), so outputs would not end. Train it with --data.text_as=lines.'
                )

    def _require_scorers(self) -> None:
        """Raise UsageError unless the other runs can score the derivations of this one, and nothing else is added."""
        if self.combined.lm is not None or self.combined.memory is not None:
            raise UsageError(
                f"{self.run.folder}: a translator that searches over whole derivations cannot be combined with --lm or "
                "--memory, since it gives no probability of the next word."
            )
        if self.combined.others and not MODELS[self.run.recipe.model.kind].proposes_several:
            raise UsageError(
                f"{self.run.folder} proposes a single translation of each line, so the others have nothing to choose "
                "from. Begin the ensemble with phrases, or with a translator that generates word by word."
            )
        for other in self.combined.others:
            other.predictor.require("translate", "an ensemble with a translator")
            if _derives(other):
                raise UsageError(
                    f"{self.run.folder} and {other.folder}: of an ensemble, only the first run may search over whole "
                    "derivations; the others score its translations."
                )
        _ = self._scorers

    @cached_property
    def _scorers(self) -> list[Any]:
        """The predictors of the other runs, which score derivations. Raises UsageError if they cannot."""
        return [scorer_of(self, other.predictor) for other in self.combined.others]


def _with_own_scorer(run: Run, combined: Combination) -> Combination:
    """The combination with the run's own scorer, if it has one, before the others."""
    scorer = run.scorer
    if scorer is None or any(scorer.folder.resolve() == other.folder.resolve() for other in combined.others):
        return combined
    return replace(combined, others=(scorer, *combined.others))


def _derives(run: Run) -> bool:
    return MODELS[run.recipe.model.kind].derives


def _reads(model: Any) -> bool:
    """Whether a translator has an encoder with features of each position."""
    return hasattr(getattr(model, "encoder", None), "read")
