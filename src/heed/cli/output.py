"""Translations and generated texts on stdout: plain lines, n-best lists in the format of Moses, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heed.cli.stdio import flush, write_line, write_text
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.text.vocabulary import Vocabulary

SEPARATOR = "---"
"""Printed between generated texts that may have several lines each."""


@dataclass
class TranslationOutput:
    """Writes translations in the chosen format; a line of JSON has everything."""

    loaded: Any
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
        record: dict[str, Any] = {
            "source": source, "translation": best.text, "log_prob": best.log_prob, "score": best.score,
            "finished": best.finished, "flags": best.flags, "fallback": best.fallback,
            "tokens": _tokens(self.loaded, best),
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
        """Word links of the derivation or by the model's attention, in Pharaoh format."""
        links: Sequence[tuple[int, int]] | None = best.links
        if links is None:
            from heed.inference.alignment import word_links  # imports PyTorch

            links = word_links(self.loaded.translator, source, best.text)
        return " ".join(f"{i}-{j}" for i, j in links)


@dataclass
class TextOutput:
    """Writes continuations to stdout."""

    loaded: Any
    options: SearchOptions
    as_json: bool
    num_prompts: int = 0
    num_texts: int = 0

    def write(self, prompts: Sequence[str]) -> None:
        """Write the complete continuations of some prompts."""
        continued = self.loaded.translator.generate(prompts, self.options, self.num_prompts)
        self.num_prompts += len(prompts)
        for prompt, hypotheses in zip(prompts, continued, strict=True):
            for hypothesis in hypotheses:
                if self.as_json:
                    write_line(json.dumps(self._record(prompt, hypothesis), ensure_ascii=False))
                else:
                    self._separate()
                    write_line(prompt + hypothesis.text)
        flush()

    def show(self, prompts: Sequence[str]) -> None:
        """Write the continuation of each prompt piece by piece."""
        for prompt in prompts:
            self._separate()
            write_text(prompt)
            for piece in self.loaded.translator.stream(prompt, self.options, self.num_prompts):
                write_text(piece)
                flush()
            write_line("")
            flush()
            self.num_prompts += 1

    def _separate(self) -> None:
        if self.num_texts and self.loaded.data.text_as != "lines":
            write_line(SEPARATOR)
        self.num_texts += 1

    def _record(self, prompt: str, hypothesis: Hypothesis) -> dict[str, Any]:
        return {
            "prompt": prompt, "text": hypothesis.text, "log_prob": hypothesis.log_prob, "finished": hypothesis.finished,
            "tokens": _tokens(self.loaded, hypothesis),
        }  # fmt: skip


def _tokens(loaded: Any, hypothesis: Hypothesis) -> list[dict[str, Any]]:
    """Each token with its log-probability."""
    ids = (*hypothesis.ids, Vocabulary.eos_id)[: len(hypothesis.token_log_probs)]  # a truncated output has no end
    pieces = loaded.tokenizers["tgt"].pieces(ids)
    tokens = zip(pieces, hypothesis.token_log_probs, strict=True)
    return [{"piece": piece, "log_prob": log_prob} for piece, log_prob in tokens]
