"""Predictor of a masked language model's run: words at masks, and pseudo-log-likelihoods of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, cast

import torch

from heed.core.errors import UsageError
from heed.data.batch import source_from_ids
from heed.data.validation import read_valid
from heed.decoding.scoring import TextScorer, TokenScores
from heed.evaluation.likelihoods import evaluate_texts, read_by
from heed.evaluation.test_set import HeldOut
from heed.nn.reader_heads import ReaderWithHead
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.arguments import one_text, require_top, several_texts
from heed.tasks.embedding import TokenAttention, TokenVectors, encoder_attention, encoder_vectors
from heed.tasks.masked_language_model.data import MaskedTextData
from heed.tasks.masked_language_model.prepare import MASK
from heed.tasks.masked_language_model.pseudo_likelihood import PseudoReader
from heed.tasks.masked_language_model.reading import read, text_log_probs
from heed.tasks.predictor import Prediction, Predictor
from heed.tasks.reading import Reading
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID, PAD_ID

_MASKS = re.compile(r"(\s?)(?:<mask>|\[mask\])", re.IGNORECASE)  # a normaliser may have put it into lower case
MAX_ANALYSED = 50_000
"""Positions that are computed for the pseudo-perplexity in the report: a line of n tokens takes n (n + 1)."""


class MaskedLanguageModelPredictor(Predictor):
    """A trained masked language model."""

    abilities = frozenset({"predict", "score", "read", "embed"})
    run: Run

    @property
    def data(self) -> MaskedTextData:
        """The run's `[data]` table."""
        return cast(MaskedTextData, self.run.recipe.data)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.run.tokenizers["src"]

    @property
    def model(self) -> ReaderWithHead:
        """The encoder with its head."""
        return cast(ReaderWithHead, self.run.model)

    def warm_up(self) -> None:
        self.predict([f"<{MASK}>"])

    # --- public methods ---------------------------------------------------------------------------------

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """Return the `top` most probable words at the masks of each input, best first.

        A mask is written `<mask>` or `[MASK]`. Words at several masks are separated by spaces; their probability is the
        product, because the model predicts each mask by itself.
        """
        require_top(top)
        return [self._filled(line, top) for line in several_texts(inputs)]

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Return the pseudo-log-likelihoods (nats) of each line's tokens (Salazar et al. 2020)."""
        if sources is not None:
            raise UsageError("a masked language model scores texts without sources.")
        return self.scorer().score(several_texts(targets)).token_scores()

    def scorer(self, stride: int = 0, model: Any = None) -> TextScorer:
        """A scorer by pseudo-log-likelihood."""
        reader = PseudoReader(self.model, self.mask_id, self.data.max_tokens, self.run.device)
        return TextScorer(reader, self.tokenizer, self.data.normaliser, "none")

    def read(self, text: str) -> Reading:
        """The words of a text, what else is likely at each of them (see `reading.py`), and the attention over it."""
        ids = self.ids_with_masks(one_text(text))
        return read(self.model, self.tokenizer, ids, self.mask_id, self.run.device)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The features of the encoder at each token of each text."""
        normalised = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        return encoder_vectors(self.model.reader, self.tokenizer, normalised, self.run.device)

    def self_attention(self, texts: Sequence[str], random_weights: bool = False) -> list[TokenAttention]:
        """The self-attention of the encoder between the tokens of each text."""
        model: Any = self.run.new_model() if random_weights else self.model
        normalised = [self.data.normaliser.apply(text) for text in several_texts(texts)]
        return encoder_attention(model.to(self.run.device).reader, self.tokenizer, normalised, self.run.device)

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        """Scores at the masks of the validation text, and the pseudo-perplexity of its first lines."""
        analysis = dict(super().analyse(quiet))
        rows = [row[:1] for row in read_valid(self.run.folder)]
        lengths = (len(ids) for ids in self.tokenizer.encode([line for (line,) in rows]))
        computed = accumulate(length * (length + 1) for length in lengths)
        number = sum(positions <= MAX_ANALYSED for positions in computed)
        test = HeldOut(("text",), rows[: max(1, number)])
        [evaluation] = evaluate_texts(test, [read_by(self.run, test, self.scorer())])
        pseudo = measured(evaluation)["scores"]
        return {**analysis, "scores": [*analysis["scores"], *pseudo]}

    def commands(self, name: str) -> Sequence[str]:
        return [f'echo "The weather is <mask> today." | heed predict {name} --top 5', f"heed score {name} < text"]

    # --- words at masks ---------------------------------------------------------------------------------

    @property
    def mask_id(self) -> int:
        """The id of a masked piece."""
        return self.tokenizer.vocabulary.tag_ids[MASK]

    def masked_ids(self, line: str) -> list[int]:
        """The ids of a line with masks. Raises UsageError without any, or for a line that is too long."""
        ids = self.ids_with_masks(line)
        if self.mask_id not in ids:
            raise UsageError(f"{line!r:.60} has no mask: write <{MASK}> (or [MASK]) for each word to predict.")
        return ids

    def ids_with_masks(self, line: str) -> list[int]:
        """The ids of a line that may have masks. Raises UsageError for a line that is too long."""
        parts = _MASKS.split(self.data.normaliser.apply(line))
        ids: list[int] = []
        for text, space in zip(parts[::2], [*parts[1::2], None], strict=True):
            ids += self.tokenizer.encode([text + (space or "" if self._spaces_are_pieces else "")])[0]
            ids += [] if space is None else [self.mask_id]
        if len(ids) > self.data.max_tokens:
            most = self.data.max_tokens
            raise UsageError(f"{line!r:.60} has {len(ids):,} tokens, but the model reads {most:,}: shorten it.")
        return ids

    @property
    def _spaces_are_pieces(self) -> bool:
        """Whether a space is always a piece of its own, so that a masked word does not include the one before it."""
        return self.run.recipe.tokenizer.kind in ("byte", "character")

    @torch.inference_mode()
    def log_probs_at_masks(self, ids: Sequence[int]) -> torch.Tensor:
        """Log-probabilities [M, V] of pieces of text at the masks of a line; others have minus infinity."""
        source = source_from_ids([ids], EOS_ID, PAD_ID).to(self.run.device)
        features = self.model.read(source)[0]
        return text_log_probs(self.model, features[source.ids[0] == self.mask_id], self.tokenizer)

    def _filled(self, line: str, top: int) -> list[Prediction]:
        best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        log_probs = self.log_probs_at_masks(self.masked_ids(line))
        values, pieces = log_probs.topk(min(top, log_probs.shape[1]))
        for row in zip(values.tolist(), pieces.tolist(), strict=True):
            longer = [(lp + value, (*ids, id)) for lp, ids in best for value, id in zip(*row, strict=True)]
            best = sorted(longer, key=lambda pair: -pair[0])[:top]
        probabilities = torch.tensor([lp for lp, _ in best]).exp().tolist()
        texts = (" ".join(self.tokenizer.decode([[id]])[0].strip() for id in ids) for _, ids in best)
        return [Prediction(text, probability) for text, probability in zip(texts, probabilities, strict=True)]
