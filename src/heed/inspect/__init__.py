"""What happens inside a model that translates a sentence or reads a text? Views of it, as plain values and as a page.

`inspect_translation` and `inspect_text` give an `Inspection`; `PAGE` is the folder with the code that draws one.
"""

from heed.inspect.inspection import Inspection, inspect_text, inspect_translation, likely_words
from heed.inspect.page_file import PAGE, ModelCard, render
from heed.inspect.tokens import Choice

__all__ = [
    "PAGE", "Choice", "Inspection", "ModelCard", "inspect_text", "inspect_translation", "likely_words", "render",
]  # fmt: skip
