"""Translators that derive: the settings that they can follow, and what they are estimated from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heed.core.errors import UsageError
from heed.data.store import TokenStore
from heed.inference.deriving_translator import require_derivable
from heed.statistical.derivation import Bitext
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.prepare import target_lines
from heed.text.tokenizers import Tokenizer


def require_derivable_recipe(recipe: Any, needs_words: bool) -> None:
    """Raise ValueError for settings of a recipe that a translator which derives cannot have.

    `needs_words`: whether each token must be a word.
    """
    kind = f'model.kind = "{recipe.model.kind}"'
    if recipe.data.tags:
        raise ValueError(f"{kind} does not read tags: leave out data.tag and the tags of data.parts")
    if not recipe.tokenizer.joint:
        raise ValueError(f"{kind} copies unknown words, so both sides need one vocabulary: set tokenizer.joint = true")
    if recipe.tokenizer.kind not in ("open-word", "bpe", "unigram"):
        raise ValueError(
            f"{kind} needs a tokenizer of words or pieces that can write any text: set tokenizer.kind to "
            '"open-word", "bpe" or "unigram"'
        )
    if needs_words and recipe.tokenizer.kind != "open-word":
        raise ValueError(f'{kind} has rules about whole words: set tokenizer.kind = "open-word"')
    try:
        require_derivable(recipe.decoding)
    except UsageError as error:
        raise ValueError(error) from error  # with the file that it is in


def bitext(
    store: TokenStore, valid: Sequence[Sequence[str]], tokenizers: Mapping[str, Tokenizer], data: TranslationData
) -> Bitext:
    """The training pairs of a token store, the validation pairs that have words, and text in the target language."""
    src, tgt = tokenizers["src"], tokenizers["tgt"]
    pairs = [(store.row("src", row).tolist(), store.row("tgt", row).tolist()) for row in range(len(store))]
    sources, references = ([data.normaliser.apply(row[side]) for row in valid] for side in (0, 1))
    encoded = zip(src.encode(sources), tgt.encode(references), strict=True)
    lines: dict[int, list[str]] = {}
    for number, line in target_lines(data, {*sources, *references}, Counter()):
        lines.setdefault(number, []).append(line)
    languages = data.src_lang, data.tgt_lang
    texts = [list(filter(None, tgt.encode(text))) for text in lines.values()]
    return Bitext(pairs, [pair for pair in encoded if all(pair)], tgt, texts=texts, languages=languages)
