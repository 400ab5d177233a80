"""Rule-based translator: a dictionary from alignments, the rules of a file, and the forms of first words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.core.run_files import RESTORE
from heed.core.toml import Document, parse_toml
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.derivation import Bitext, Derivation, DerivationStep, Forced, by_words, every_link
from heed.statistical.phrases.aligned import AlignedBitext
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.predictor import Ints, starts
from heed.statistical.rules.dictionary import Dictionary, count_dictionary, count_evidence
from heed.statistical.rules.rule_file import RuleFile, parse_rules
from heed.statistical.rules.transfer import Candidates, Written, transferred
from heed.statistical.saved_arrays import Arrays, named, part_of, read_bounds, read_numbers

_SMOOTHING = Smoothing("collapsed", 0.01)
"""Of the aligner's table."""


@dataclass(frozen=True, eq=False)
class RuleTranslator:
    """Everything that a translation follows from."""

    rules_text: str
    """As their file has them."""
    rules: RuleFile
    texts: Sequence[str]
    """[V]: each token as text, with the space before it; empty for a part of a character."""
    case: SentenceCase
    dictionary: Dictionary
    evidence: Mapping[str, Ints]
    """For each feature with evidence in the rules: its value for each token [V], by number, or -1."""
    byte_ids: Ints
    """[256]: the token of each byte, by which unknown words are spelled."""

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
        parts = by_words(forced, words, begins)
        for part in parts:
            text = b"".join(self.texts[id].encode() or bytes([self._byte_of[id]]) for id in part.ids).decode().strip()
            for word in written:
                if part.begin <= word.place < part.end:
                    word.text, word.log_prob = text if word.place == part.begin else "", 0.0
        return [self._derivation(written, spelled, begins, capital, {part.begin: part.end for part in parts})]

    def weights_by_name(self) -> dict[str, float]:
        """The weight of its one feature: the score of a derivation is the log-probability of its words."""
        return {"dictionary": 1.0}

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
        self, written: Sequence[Written], spelled: Sequence[str], begins: list[int], capital: bool,
        required: Mapping[int, int],
    ) -> Derivation:  # fmt: skip
        """`required`: the first word of each part with a required translation, and the word after its last."""
        ids: list[int] = []
        steps: list[DerivationStep] = []
        links: list[tuple[int, int]] = []
        for word in written:
            begin = len(ids)
            space = " " * spelled[word.place].startswith(" ")
            for part in word.text.split():
                tokens = self._tokens(space + part)
                ids += tokens if ids else self.case.leave(tokens, capital and word.place not in required)
                space = " "
            source = begins[word.place], begins[word.place + 1]
            features = {"dictionary": word.log_prob} if word.log_prob else {}
            steps.append(DerivationStep(source, (begin, len(ids)), features, ", ".join(word.rules)))
            end = required.get(word.place, word.place + 1)
            links += every_link(begins[word.place : end + 1], begin, len(ids))
        score = sum(word.log_prob for word in written)
        return Derivation(tuple(ids), score, tuple(steps), tuple(sorted(links)))

    def _tokens(self, text: str) -> tuple[int, ...]:
        known = self._id_of.get(text)
        return tuple(self.byte_ids[list(text.encode())].tolist()) if known is None else (known,)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        spelled = [text.encode() for text in self.texts]
        parts = named({"case": self.case.arrays(), "evidence": self.evidence})
        return {
            "byte_ids": self.byte_ids, "rules": np.frombuffer(self.rules_text.encode(), dtype=np.uint8),
            "texts": np.frombuffer(b"".join(spelled), dtype=np.uint8),
            "text_bounds": starts(np.array([len(text) for text in spelled])),
            "offsets": self.dictionary.offsets, "targets": self.dictionary.targets,
            "log_probs": self.dictionary.log_probs, **parts,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_words: int) -> RuleTranslator:
        """Read what `arrays` returned. Raises DataError for anything else."""
        what = "a rule-based translator of this vocabulary"
        rules_text = read_numbers(arrays, "rules", what, 256).astype(np.uint8).tobytes()
        try:
            document = parse_toml(rules_text, "rules of the run")
            rules = parse_rules(document)
        except UsageError as error:
            raise DataError(f"not {what}: {error}") from error
        text = read_numbers(arrays, "texts", what, 256).astype(np.uint8).tobytes()
        spans = pairwise(read_bounds(arrays, "text_bounds", what, num_words, len(text)).tolist())
        targets = read_numbers(arrays, "targets", what, num_words)
        log_probs = np.asarray(arrays.get("log_probs", np.zeros(())), dtype=np.float64)
        if log_probs.shape != targets.shape or not ((log_probs > -np.inf) & (log_probs <= 0)).all():
            raise DataError(f"not {what}: 'log_probs' is missing or has unexpected values. {RESTORE}")
        return cls(
            document.text, rules, [text[begin:end].decode(errors="replace") for begin, end in spans],
            SentenceCase.from_arrays(part_of(arrays, "case"), num_words),
            Dictionary(read_bounds(arrays, "offsets", what, num_words, len(targets)), targets, log_probs),
            {
                name: read_numbers(arrays, f"evidence.{name}", what, len(values), num_words, begin=-1)
                for name, values in rules.evidence.items()
            },
            read_numbers(arrays, "byte_ids", what, num_words, 256),
        )  # fmt: skip


def estimate_rule_translator(bitext: Bitext, document: Document, aligner: str) -> RuleTranslator:
    """Align the words of the pairs, and count the dictionary and the evidence that the rules ask for."""
    size = len(bitext.tokenizer.vocabulary)
    rules = parse_rules(document)
    case = SentenceCase.of(bitext.tokenizer, [side for pair in bitext.pairs for side in pair], bitext.languages)
    aligned = AlignedBitext.of(bitext, case, aligner, _SMOOTHING)
    texts = bitext.tokenizer.texts()
    evidence = {name: count_evidence(aligned.targets, weights, texts) for name, weights in rules.evidence.items()}
    dictionary = count_dictionary(zip(aligned.sources, aligned.targets, strict=True), aligned.links, size)
    id_of = {spelled: id for id, spelled in enumerate(bitext.tokenizer.bytes_of(range(size))) if len(spelled) == 1}
    byte_ids = np.array([id_of[bytes([byte])] for byte in range(256)])
    return RuleTranslator(document.text, rules, texts, case, dictionary, evidence, byte_ids)
