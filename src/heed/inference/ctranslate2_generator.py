"""CTranslate2 engine of a language model: greedy search, with the hypotheses of heed's own search.

The tokens that no output may contain are forbidden; the log-probabilities are those without that. Where a text
continues after the end of a line, the model reads that end as the begin of the next line (`heed.models.ctranslate2`),
as in heed's search.

Sampling is left to PyTorch: CTranslate2's random numbers depend on threads and neighbours, and heed promises the same
text for the same seed. So are beams: many reach the longest allowed length, which PyTorch would have to search again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.inference.ctranslate2_engine import Begun, CTranslate2Engine, alike, batch_size
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID


class CTranslate2Generator(CTranslate2Engine):
    """A language model in CTranslate2's format with its vocabulary."""

    def __init__(
        self, folder: Path, num_positions: int, detokenizer: Detokenizer, num_workers: int = 1,
        compute_type: str = "float32",
    ) -> None:  # fmt: skip
        """`num_positions`: the longest text with its prompt, in tokens. Others: see `CTranslate2Engine`."""
        vocabulary = detokenizer.tokenizer.vocabulary
        super().__init__(folder, num_positions, [vocabulary], detokenizer.never, num_workers, compute_type)
        self._continues = detokenizer.token_after_eos is not None

    def _opened(self, folder: str, **how: Any) -> Any:
        import ctranslate2

        return ctranslate2.Generator(folder, **how)

    def can_search(self, options: SearchOptions) -> bool:
        return super().can_search(options) and options.width == 1 and not options.no_repeat

    def _begun(self, rows: Sequence[Request], options: SearchOptions, num_batches: int) -> dict[Request, Begun]:
        return {}  # a prompt is not part of the output

    def _searched(
        self, rows: Sequence[Request], begun: Mapping[Request, Begun], options: SearchOptions, alpha: float,
        num_batches: int,
    ) -> list[list[tuple[list[str], float]]]:  # fmt: skip
        """Prompts of one length are searched together: CTranslate2 counts the rest of a longer one as output."""
        end, pending = self._targets[PAD_ID if self._continues else EOS_ID], dict[int, Any]()
        for numbers in alike(rows, lambda request: len(request.prefix)):
            results = self._model.generate_batch(
                [self._read(rows[number].prefix) for number in numbers], beam_size=1, length_penalty=alpha,
                max_length=options.limit(0), end_token=[end],
                suppress_sequences=[[piece] for piece in sorted(self._never)], include_prompt_in_result=False,
                return_scores=True, asynchronous=True, max_batch_size=batch_size(len(numbers), num_batches, options),
            )  # fmt: skip
            pending |= zip(numbers, results, strict=True)
        found = [pending[number].result() for number in range(len(rows))]
        return [[*zip(result.sequences, result.scores, strict=True)] for result in found]

    def _limit(self, request: Request, options: SearchOptions) -> int:
        return options.limit(0)

    def _scored(self, pairs: Sequence[tuple[Request, Hypothesis]], most: int) -> list[list[float]]:
        texts = [self._read((*request.prefix, *hypothesis.ids, EOS_ID)) for request, hypothesis in pairs]
        scored = self._model.score_batch(texts, max_input_length=0, max_batch_size=most)
        return [result.log_probs[len(request.prefix) :] for (request, _), result in zip(pairs, scored, strict=True)]

    def _fits(self, request: Request, options: SearchOptions) -> bool:
        return len(request.prefix) + self._limit(request, options) <= self.num_positions

    def _read(self, ids: Sequence[int]) -> list[str]:
        return [self._targets[BOS_ID], *self._target(ids)]
