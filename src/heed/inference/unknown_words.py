"""Unknown words in the outputs of a model of whole words, and what replaces them.

Each is replaced by the source word with the most attention in that step, as a dictionary translates it, or by a copy of
it if the dictionary does not (Jean et al. 2015, section 3.3; Luong et al. 2015, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from heed.decoding.hypothesis import Hypothesis
from heed.text.vocabulary import UNK_ID


@dataclass(frozen=True)
class UnknownWords:
    """Replaces the unknown words in texts of hypotheses; their ids and scores stay those of the search."""

    attended: Callable[[str, Sequence[int]], Sequence[int]]
    """For a source and the tokens of an output, the number of the source word that each attended to most."""
    normalise: Callable[[str], str]
    """Normalises a source, as the model reads it."""
    dictionary: Mapping[str, str]
    """Source words and their translations; may be empty."""

    def replaced(self, line: str, hypothesis: Hypothesis) -> Hypothesis:
        """A hypothesis of a line and its alternatives without unknown words."""
        words = hypothesis.text.split(" ")  # one for each token
        if UNK_ID in hypothesis.ids:
            src_words = self.normalise(line).split()
            for place, number in enumerate(self.attended(line, hypothesis.ids)):
                if hypothesis.ids[place] == UNK_ID:
                    words[place] = self.dictionary.get(src_words[number], src_words[number])
        alternatives = tuple(self.replaced(line, each) for each in hypothesis.alternatives)
        return replace(hypothesis, text=" ".join(words), alternatives=alternatives)
