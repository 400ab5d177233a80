"""Inspection of a model: attention, probabilities and beam of one translation or text, as values and as a page.

`inspect_translation` and `inspect_text` return an `Inspection`. `render` writes it as a page; `PAGE` is the folder of
the page's scripts.
"""

from heed.inspect.inspection import Inspection, inspect_text, inspect_translation, likely_words
from heed.inspect.page_file import PAGE, ModelCard, render
from heed.inspect.words import Choice

__all__ = [
    "PAGE", "Choice", "Inspection", "ModelCard", "inspect_text", "inspect_translation", "likely_words", "render",
]  # fmt: skip
