"""Inspection of a model: attention, probabilities and beam of one translation or text, as values and as a page.

`inspect_translation` and `inspect_text` return an `Inspection`, `inspect_image` an `ImageInspection`, `inspect_answer`
an `AnswerInspection`. `render` writes it as a page; `PAGE` is the folder of the page's scripts.
"""

from heed.inspect.answer import AnswerInspection, inspect_answer
from heed.inspect.image import ImageInspection, inspect_image
from heed.inspect.inspection import Inspection, inspect_text, inspect_translation, likely_words
from heed.inspect.page_file import PAGE, ModelCard, render
from heed.inspect.words import Choice

__all__ = [
    "PAGE", "AnswerInspection", "Choice", "ImageInspection", "Inspection", "ModelCard", "inspect_answer",
    "inspect_image", "inspect_text", "inspect_translation", "likely_words", "render",
]  # fmt: skip
