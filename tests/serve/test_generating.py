"""Does a client get the tokens of the text that it gets, no fewer and no more?"""

from __future__ import annotations

import pytest

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.text_form import TextForm
from heed.serve.generating import _without_what_was_cut
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.vocabulary import Vocabulary


@pytest.mark.parametrize("kind", ["word", "character"])
@pytest.mark.parametrize(("text", "num_kept"), [("a\nb\n\nI", 6), ("a\nb\n", 4), ("a\nb", 3), ("a", 1), ("", 0)])
def test_only_what_a_stop_cut_off_is_left_out(kind: str, text: str, num_kept: int) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 20, "min_frequency": 1})
    tokenizer = train_tokenizer(config, ["a b I"])
    a, b, i = (tokenizer.encode([word])[0][0] for word in "abI")
    ids = (a, Vocabulary.eos_id, b, Vocabulary.eos_id, Vocabulary.eos_id, i)
    form = TextForm(tokenizer, "eos")
    assert form.texts([ids]) == ["a\nb\n\nI"]
    found = _without_what_was_cut(form, Hypothesis(ids, -6.0, -6.0, token_log_probs=(-1.0,) * 6, text=text))
    assert len(found.ids) == len(found.token_log_probs) == num_kept
