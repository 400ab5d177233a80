"""HTML document of one file, whose content security policy allows its own style and script alone."""

from __future__ import annotations

import base64
import hashlib
import html


def html_document(title: str, style: str, body: str, script: str = "", data_images: bool = False) -> str:
    """A whole page. `script` is a module that the body contains; `data_images`: the page has images of its own."""
    policy = ["default-src 'none'", f"style-src '{_hash(style)}'", "base-uri 'none'", "form-action 'none'"]
    policy += [f"script-src '{_hash(script)}'"] * bool(script) + ["img-src data:"] * data_images
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
