"""Which recipe fits this corpus and this machine, and why?

Rules by size of the corpus, device and measured speed of bfloat16. What is chosen is written into
`recipe.toml` with its reason, so that reruns and resumes obey the file and the machine is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping

from heed.chooser.facts import Choices, Chooser, Machine, Survey
from heed.chooser.fine_tuning import fine_tuned
from heed.chooser.language_models import choose_language_model
from heed.chooser.shared import characters_per_token
from heed.chooser.translation import choose_translation

CHOOSERS: Mapping[str, Chooser] = {"translation": choose_translation, "language-model": choose_language_model}

__all__ = [
    "CHOOSERS",
    "Choices",
    "Chooser",
    "Machine",
    "Survey",
    "characters_per_token",
    "choose_language_model",
    "choose_translation",
    "fine_tuned",
]
