"""The documentation site: `make docs` builds it into build/site."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import commands_page  # noqa: E402
from ulr import __version__  # noqa: E402

project, author, release = "ulr", "the authors of ulr", __version__
copyright = "the authors of ulr, MIT licence"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Every link between pages and every name of this package must resolve; those of other packages cannot
# be looked up without a network.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!ulr\.).*")]
default_role = "py:obj"
myst_heading_anchors = 4
nb_execution_mode = (
    "off"  # tests/test_notebooks.py compares the outputs with those of the present code
)

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings state the types that matter
napoleon_google_docstring = False
napoleon_attr_annotations = False

html_theme = "furo"
html_title = "ulr"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
pygments_dark_style = "a11y-dark"
html_show_sphinx = False
html_copy_source = False

# What a browser would fetch while it shows a page; links that a reader follows are fine.
FETCHED = re.compile(
    r"""(<(script|img|iframe|source)\b[^>]*\bsrc=|<link\b[^>]*\bhref=)["'](https?:)?//"""
)
FETCHED_BY_STYLE = re.compile(r"""(@import|url\()\s*["']?(https?:)?//""")


def write_commands(app: Sphinx, name: str, source: list[str]) -> None:
    """Describe the commands as the program itself describes them."""
    if name == "commands":
        source[0] = source[0].replace("<!-- commands -->", commands_page.markdown())


def check_offline(app: Sphinx, error: Exception | None) -> None:
    """Fail if a page needs the network."""
    if error is not None:
        return
    for pattern, kinds in ((FETCHED, ("*.html",)), (FETCHED_BY_STYLE, ("*.html", "*.css"))):
        for path in (path for kind in kinds for path in Path(app.outdir).rglob(kind)):
            if found := pattern.search(path.read_text(encoding="utf-8")):
                raise SphinxError(f"{path} fetches from the network: {found[0]}")


def setup(app: Sphinx) -> None:
    """Connect what this site adds to Sphinx."""
    app.connect("source-read", write_commands)
    app.connect("build-finished", check_offline)
