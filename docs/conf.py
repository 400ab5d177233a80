"""Configuration of the documentation site (Sphinx): `make docs` builds it into build/docs."""

from importlib.metadata import version as version_of

project = "heed"
author = "the heed developers"
version = release = version_of("heed")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "heed"
html_theme_options = {"sidebar_hide_name": False}
