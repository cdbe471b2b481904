"""Sphinx settings."""

from __future__ import annotations

from importlib import metadata

project = "dice-envs"
author = "the dice-envs contributors"
copyright = author
release = metadata.version("dice-envs")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
exclude_patterns = ["_build"]
default_role = "code"  # single backticks in docstrings
autodoc_inherit_docstrings = False  # methods without their own docstring are left out
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_use_ivar = True
# Builds fetch nothing, so names of other projects stay plain text.
intersphinx_mapping: dict[str, tuple[str, None]] = {}
linkcheck_ignore = [r"http://localhost.*", r"http://127\.0\.0\.1.*"]

html_theme = "furo"
html_title = "dice-envs"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_theme_options = {"source_repository": "", "navigation_with_keys": True}
