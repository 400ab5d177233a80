"""Tags of template languages: `{{ name }}` and `{% if %}` of Jinja, Django, Liquid and Vue, `<%= %>` of ERB, PHP.

Each pattern stops where another tag of its kind begins, so that a search takes time in proportion to the text.
"""

from __future__ import annotations

import re

BRACES = (
    r"\{\{\{(?:(?!\{\{|\}\}\})[^\0]){0,2000}\}\}\}|\{\{(?:(?!\{\{|\}\})[^\0]){0,2000}\}\}"
    r"|\{%(?:(?!\{%|%\})[^\0]){0,2000}%\}"
)
"""Of expressions and statements."""
COMMENTS = r"\{#(?:(?!\{#|#\})[^\0]){0,4000}#\}"
ANGLES = r"<%(?:(?!<%|%>)[^\0]){0,4000}%>|<\?(?:=|php\b)(?:(?!<\?(?:=|php\b)|\?>)[^\0]){0,8000}\?>"
IN_TAG = (
    r"\{\{(?:(?!\{\{|\}\}|<[a-zA-Z/!])[^\0]){0,500}\}\}|\{%(?:(?!\{%|%\}|<[a-zA-Z/!])[^\0]){0,500}%\}"
    rf"|{ANGLES}"
)
"""Inside an opening tag of HTML, where text with HTML is a sign that what looks like the end belongs to another one."""
TEMPLATE = re.compile(f"{BRACES}|{COMMENTS}|{ANGLES}")
OUTPUTS = ("{{", "<%=", "<?=")
"""Beginnings of those that stand for a text."""
BRANCH = re.compile(
    r"(?:\{%[-+~]?|\{\{~?|<%-?|<\?php)\s*\}?\s*(?:else|elif|elsif|elseif|when|case|empty|plural|pluralize)\b"
)
"""Between two texts of which one is shown."""
