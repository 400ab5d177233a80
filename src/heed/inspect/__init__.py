"""Inspection of a model: attention, probabilities and beam of one translation or text, as values and as a page.

`inspect_translation` and `inspect_text` return an `Inspection`, `inspect_reader` a `ReaderInspection`, `inspect_image`
an `ImageInspection`, `inspect_derivation` a `DerivationInspection`. `render` writes it as a page; `PAGE` is the folder
of the page's scripts.
"""

from heed.inspect.derivation import DerivationInspection, inspect_derivation
from heed.inspect.image import ImageInspection, inspect_image
from heed.inspect.inspection import Inspection, inspect_text, inspect_translation, likely_words
from heed.inspect.page_file import PAGE, ModelCard, render
from heed.inspect.reader import ReaderInspection, inspect_reader
from heed.text.token_words import Choice

__all__ = [
    "PAGE", "Choice", "DerivationInspection", "ImageInspection", "Inspection", "ModelCard", "ReaderInspection",
    "inspect_derivation", "inspect_image", "inspect_reader", "inspect_text", "inspect_translation",
    "likely_words", "render",
]  # fmt: skip
