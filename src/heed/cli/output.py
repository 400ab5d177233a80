"""Translations on stdout: plain lines, n-best lists in the format of Moses, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heed.cli.stdio import flush, write_line
from heed.decoding.alignment import word_links
from heed.decoding.hypothesis import Hypothesis
from heed.tasks.predictor import Predictor
from heed.text.vocabulary import Vocabulary


@dataclass
class Output:
    """Writes translations in the chosen format; a line of JSON has everything."""

    loaded: Predictor
    nbest: int
    as_json: bool
    with_scores: bool
    with_alignment: bool
    num_lines: int = 0

    def write(self, sources: Sequence[str], hypotheses: Sequence[Hypothesis], prefixes: Sequence[str] = ()) -> None:
        """Write the translations of some lines; `prefixes`: the required beginning of each, if any was given."""
        for source, best, prefix in zip(sources, hypotheses, prefixes or [""] * len(sources), strict=True):
            if self.as_json:
                write_line(json.dumps(self._record(source, best, prefix), ensure_ascii=False))
            elif self.nbest > 1:
                self._write_nbest(best)
            else:
                write_line(self._plain(source, best))
            self.num_lines += 1
        flush()

    def _plain(self, source: str, best: Hypothesis) -> str:
        score = f"{best.log_prob:.4f}\t" if self.with_scores else ""
        links = f"{self._links(source, best)}\t" if self.with_alignment else ""
        return score + links + best.text

    def _write_nbest(self, best: Hypothesis) -> None:
        for h in (best, *best.alternatives):
            write_line(f"{self.num_lines} ||| {h.text} ||| logprob= {h.log_prob:.4f} ||| {h.score:.4f}")

    def _record(self, source: str, best: Hypothesis, prefix: str) -> dict[str, Any]:
        ids = (*best.ids, Vocabulary.eos_id)[: len(best.token_log_probs)]  # a truncated output has no end
        pieces = self.loaded.run.tokenizers["tgt"].pieces(ids)
        record: dict[str, Any] = {
            "source": source, "translation": best.text, "log_prob": best.log_prob, "score": best.score,
            "finished": best.finished, "flags": best.flags, "fallback": best.fallback,
            "tokens": [{"piece": p, "log_prob": lp} for p, lp in zip(pieces, best.token_log_probs, strict=True)],
        }  # fmt: skip
        if best.confidence is not None:
            record["confidence"] = best.confidence
        if best.lm_log_prob is not None:
            record["lm_log_prob"] = best.lm_log_prob
            record["translation_log_prob"] = best.log_prob - self.loaded.combined.lm_weight * best.lm_log_prob
        if best.alternatives:
            others = [{"text": h.text, "log_prob": h.log_prob, "score": h.score} for h in best.alternatives]
            record["alternatives"] = others
        if self.with_alignment:
            record["alignment"] = self._links(source, best)
        if prefix:
            record["prefix"] = prefix
        return record

    def _links(self, source: str, best: Hypothesis) -> str:
        """Word links by the model's attention, in Pharaoh format."""
        return " ".join(f"{i}-{j}" for i, j in word_links(self.loaded.translator, source, best.text))
