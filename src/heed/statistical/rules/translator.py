"""Rule-based translator: a dictionary from alignments, the rules of a file, and the forms of first words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.derivation import Bitext, Derivation, DerivationStep, Forced, by_words, every_link
from heed.statistical.phrases.aligned import AlignedBitext
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.predictor import Ints, starts
from heed.statistical.rules.dictionary import Dictionary, count_dictionary, count_evidence
from heed.statistical.rules.rule_file import MAX_BYTES, RuleFile, parse_rules
from heed.statistical.rules.transfer import Candidates, Written, transferred

WEIGHTS: Mapping[str, float] = {"dictionary": 1.0}
"""The score of a derivation is the log-probability of its words in the dictionary."""
_SMOOTHING = Smoothing()
"""Of the aligner's table."""


@dataclass(frozen=True, eq=False)
class RuleTranslator:
    """Everything that a translation follows from."""

    rules_text: str
    texts: Sequence[str]
    """[V]: each token as text, with the space before it; empty for a part of a character."""
    case: SentenceCase
    dictionary: Dictionary
    evidence: Mapping[str, Ints]
    """For each feature with evidence in the rules: its value for each token [V], by number, or -1."""
    byte_ids: Ints
    """[256]: the token of each byte, by which unknown words are spelled."""

    @cached_property
    def rules(self) -> RuleFile:
        """The rules."""
        return parse_rules(self.rules_text, "rules of the run")

    @cached_property
    def _id_of(self) -> dict[str, int]:
        return {text: id for id, text in enumerate(self.texts) if text}

    @cached_property
    def _byte_of(self) -> dict[int, int]:
        return {id: byte for byte, id in enumerate(self.byte_ids.tolist())}

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """The translation of a source, alone in a list."""
        words, begins, capital = self.case.enter_with_places(source)
        if not words:
            return []
        spelled = [self._text(word) for word in words]
        candidates = [self._candidates(word, text) for word, text in zip(words, spelled, strict=True)]
        written = transferred([text.strip().lower() for text in spelled], candidates, self._features_of, self.rules)
        for part in by_words(forced, begins):
            text = b"".join(self.texts[id].encode() or bytes([self._byte_of[id]]) for id in part.ids).decode().strip()
            for word in written:
                if part.begin <= word.place < part.end:
                    word.text, word.log_prob = text if word.place == part.begin else "", 0.0
        return [self._derivation(written, spelled, begins, capital)]

    def _text(self, word: tuple[int, ...]) -> str:
        if len(word) == 1:
            return self.texts[word[0]]
        return bytes(self._byte_of[id] for id in word).decode(errors="replace")

    def _candidates(self, word: tuple[int, ...], text: str) -> Candidates:
        entries = self.dictionary.entries(word[0]) if len(word) == 1 else []
        found = [(self.texts[id].strip(), log_prob) for id, log_prob in entries if self.texts[id].strip()]
        return found or [(text.strip(), 0.0)]

    def _features_of(self, target: str) -> dict[str, str]:
        id = self._id_of.get(f" {target}", -1)
        values = {name: list(self.rules.evidence[name]) for name in self.evidence}
        known = {name: int(numbers[id]) if id >= 0 else -1 for name, numbers in self.evidence.items()}
        return {name: values[name][number] for name, number in known.items() if number >= 0}

    def _derivation(
        self, written: Sequence[Written], spelled: Sequence[str], begins: list[int], capital: bool
    ) -> Derivation:
        ids: list[int] = []
        steps: list[DerivationStep] = []
        links: list[tuple[int, int]] = []
        for word in written:
            begin = len(ids)
            space = " " * spelled[word.place].startswith(" ")
            for part in word.text.split():
                tokens = self._tokens(space + part)
                ids += tokens if ids else self.case.leave(tokens, capital)
                space = " "
            source = begins[word.place], begins[word.place + 1]
            features = {"dictionary": word.log_prob} if word.log_prob else {}
            steps.append(DerivationStep(source, (begin, len(ids)), features, ", ".join(word.rules)))
            links += every_link(source, begin, len(ids))
        score = sum(word.log_prob for word in written)
        return Derivation(tuple(ids), score, tuple(steps), tuple(sorted(links)))

    def _tokens(self, text: str) -> tuple[int, ...]:
        known = self._id_of.get(text)
        return tuple(self.byte_ids[list(text.encode())].tolist()) if known is None else (known,)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        spelled = [text.encode() for text in self.texts]
        case = {f"case.{name}": array for name, array in self.case.arrays().items()}
        evidence = {f"evidence.{name}": array for name, array in self.evidence.items()}
        return {
            "byte_ids": self.byte_ids, "rules": np.frombuffer(self.rules_text.encode(), dtype=np.uint8),
            "texts": np.frombuffer(b"".join(spelled), dtype=np.uint8),
            "text_bounds": starts(np.array([len(text) for text in spelled])),
            "offsets": self.dictionary.offsets, "targets": self.dictionary.targets,
            "log_probs": self.dictionary.log_probs, **case, **evidence,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], num_words: int) -> RuleTranslator:
        """Read what `arrays` returned. Raises DataError for anything else."""
        names = ("rules", "texts", "text_bounds", "offsets", "targets", "log_probs", "byte_ids")
        if missing := [name for name in names if name not in arrays]:
            raise DataError(f"not a rule-based translator: {missing[0]!r} is missing.")
        bounds, offsets, targets = (np.asarray(arrays[name]).astype(np.int64) for name in names[2:5])
        text, log_probs = np.asarray(arrays["texts"]).astype(np.uint8).tobytes(), np.asarray(arrays["log_probs"])
        evidence = {
            name.removeprefix("evidence."): np.asarray(array).astype(np.int64)
            for name, array in arrays.items()
            if name.startswith("evidence.")
        }
        _require_consistent(num_words, len(text), bounds, offsets, targets, log_probs, evidence)
        byte_ids = np.asarray(arrays["byte_ids"]).astype(np.int64)
        if byte_ids.shape != (256,) or ((byte_ids < 0) | (byte_ids >= num_words)).any():
            raise DataError("not a rule-based translator of this vocabulary: it cannot spell words.")
        if len(arrays["rules"]) > MAX_BYTES:
            raise DataError(f"the rules have more than {MAX_BYTES:,} bytes.")
        spans = zip(bounds.tolist(), bounds[1:].tolist(), strict=False)
        case = {name.removeprefix("case."): array for name, array in arrays.items() if name.startswith("case.")}
        return cls(
            np.asarray(arrays["rules"]).astype(np.uint8).tobytes().decode(errors="replace"),
            [text[begin:end].decode(errors="replace") for begin, end in spans],
            SentenceCase.from_arrays(case, num_words),
            Dictionary(offsets, targets, log_probs.astype(np.float64)), evidence, byte_ids,
        )  # fmt: skip


def _require_consistent(
    num_words: int, size: int, bounds: Ints, offsets: Ints, targets: Ints, log_probs: NDArray[np.generic],
    evidence: Mapping[str, Ints],
) -> None:  # fmt: skip
    """Raise DataError for arrays that do not fit together."""
    ragged = [(bounds, size), (offsets, len(targets))]
    fits = all(
        each.shape == (num_words + 1,) and each[0] == 0 and each[-1] == last and (np.diff(each) >= 0).all()
        for each, last in ragged
    )
    fits = fits and len(targets) == len(log_probs) and bool(((targets >= 0) & (targets < num_words)).all())
    if not fits or any(array.shape != (num_words,) for array in evidence.values()):
        raise DataError("not a rule-based translator of this vocabulary: its sizes and numbers are inconsistent.")


def estimate_rule_translator(bitext: Bitext, rules_text: str, aligner: str) -> RuleTranslator:
    """Align the words of the pairs, and count the dictionary and the evidence that the rules ask for."""
    size = len(bitext.tokenizer.vocabulary)
    rules = parse_rules(rules_text, "rules")
    case = SentenceCase.of(bitext.tokenizer, [side for pair in bitext.pairs for side in pair])
    aligned = AlignedBitext.of(bitext, case, aligner, _SMOOTHING)
    texts = bitext.tokenizer.texts()
    evidence = {name: count_evidence(aligned.targets, weights, texts) for name, weights in rules.evidence.items()}
    dictionary = count_dictionary(zip(aligned.sources, aligned.targets, strict=True), aligned.links, size)
    id_of = {spelled: id for id, spelled in enumerate(bitext.tokenizer.bytes_of(range(size))) if len(spelled) == 1}
    byte_ids = np.array([id_of[bytes([byte])] for byte in range(256)])
    return RuleTranslator(rules_text, texts, case, dictionary, evidence, byte_ids)
