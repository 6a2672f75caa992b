"""How Sphinx makes a site of these pages: `make docs`, then open out/docs/index.html."""

from __future__ import annotations

import re
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

project = "hockeystick"
author = "the hockeystick authors"
version = release = installed("hockeystick")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
root_doc = "index"
exclude_patterns = ["README.md", "decisions/README.md", "site"]
default_role = "code"  # in docstrings, single backquotes are names

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

autosummary_generate = True
templates_path = ["site/templates"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Guarantee"]

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}  # named, or the theme says on a first visit that it is none
html_title = "hockeystick"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "hockeystick"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 9,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start": [], "choose": [], "gallery": [], "glossary": [], "changelog": []}

_ROOT = Path(__file__).parent.parent
_ABOVE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+(?!docs/)[A-Za-z][^)#]*)(#[^)]*)?\)")


def _keep_inside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let links to files that are no pages name them instead; the list of pages becomes the front page."""

    def named(found: re.Match[str]) -> str:
        page = ((Path(app.srcdir) / docname).parent / found[2]).resolve()
        if page.is_relative_to(Path(app.srcdir).resolve()):
            return found[0]
        name = f"`{page.relative_to(_ROOT.resolve())}`"
        return name if found[1] == name else f"{found[1]} ({name})"

    source[0] = _ABOVE.sub(named, source[0].replace("](README.md)", "](index.md)"))


def _mathml(self: Any, node: nodes.Element) -> None:
    """Formulas as MathML, which browsers show by themselves: the site needs no script and no network for them."""
    block = isinstance(node, nodes.math_block)
    markup = convert(node.astext(), display="block" if block else "inline")
    self.body.append(f'<div class="formula">{markup}</div>' if block else markup)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add both."""
    app.connect("source-read", _keep_inside)
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))


html_math_renderer = "mathml"
