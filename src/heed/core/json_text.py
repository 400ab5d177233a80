"""JSON texts from anywhere: whatever is wrong with one is a ValueError.

The standard library raises RecursionError for a text that is nested too deeply, which nobody expects.
"""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError (JSONDecodeError where the place is known) for anything else."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
