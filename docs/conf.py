"""Configuration of the documentation site (Sphinx): `make docs` builds it into build/docs.

The extensions in _ext/ write the references from the code. The site loads nothing from the network.
"""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "heed"
author = "the heed developers"
version = release = version_of("heed")
extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "heed_docs.mathml", "heed_docs.reference"
]  # fmt: skip
exclude_patterns = ["_ext"]
autodoc_member_order = "bysource"
default_role = "code"
smartquotes_action = "D"  # dashes only
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "heed"
html_theme_options = {"sidebar_hide_name": False}
html_show_sphinx = html_show_copyright = html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["heed.css"]
