"""Writes a report as one HTML file without any external part."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from ulr.errors import InputError
from ulr.files import atomic_file, refuse_existing
from ulr.report.data import Pairs, ReportData

# In the order of their imports.
_MODULES = tuple("dom colors store view paint map flow charts table controls report".split())
_STATIC = files("ulr.report") / "static"
_MOST_CONFUSION_LABELS = 20
_MOST_CONFUSED = 30
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Report:
    """A report, shown by notebooks and written to a file.

    Attributes
    ----------
    data
        What it shows.
    """

    data: ReportData

    @cached_property
    def html(self) -> str:
        """The whole page."""
        return render(self.data)

    def write(self, path: str | Path) -> None:
        """Write the page to a file, complete or not at all; an existing one is replaced."""
        with atomic_file(Path(path)) as file:
            # A text may hold half of a surrogate pair, which no encoding has.
            file.write(self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{page}" '
            'style="width:100%;height:800px;border:0"></iframe>'
        )


def refuse_report(path: str | Path, force: bool, how: str = "--force") -> None:
    """Refuse a file that could not be written, before the long part of a job.

    Parameters
    ----------
    path
        Where the report will be.
    force
        Whether an existing file may be replaced.
    how
        What replaces an existing file, for the message.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is an HTML file; {str(path)!r} must end in .html.")
    refuse_existing(Path(path), force, InputError, how)


def render(data: ReportData) -> str:
    """The HTML page of a report."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("ulr.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": "{:,}".format, "percent": _percent}
    script, style = bundled_script(), (_STATIC / "report.css").read_text("utf-8")
    return environment.get_template("report.html").render(
        data=data,
        confusions=_confusions(data),
        policy=content_security_policy(script, style),
        script=_raw(script),
        style=_raw(style),
        payload=_raw(as_json(data.as_dict())),
    )


def _confusions(data: ReportData) -> list[tuple[str, list[list[int]] | None, Pairs]]:
    """Title, matrix and most confused pairs, before and after; no matrix of very many labels."""
    if data.comparison is None:
        return []
    n_labels = len(data.labels)
    found = []
    for title, pairs in (
        ("Refined", data.comparison.confusion),
        ("By name", data.comparison.confusion_before),
    ):
        matrix = None
        if n_labels <= _MOST_CONFUSION_LABELS:
            matrix = [[0] * n_labels for _ in range(n_labels)]
            for true, predicted, count in pairs:
                matrix[true][predicted] = count
        errors = [pair for pair in pairs if pair[0] != pair[1]]
        found.append((title, matrix, tuple(errors[:_MOST_CONFUSED])))
    return found


def bundled_script() -> str:
    """All modules as one script: without imports and exports, in the order of `_MODULES`."""
    parts = [(_STATIC / f"{name}.js").read_text("utf-8") for name in _MODULES]
    script = re.sub(r"^import [^;]*;\n", "", "\n".join(parts), flags=re.MULTILINE)
    return re.sub(r"^export ", "", script, flags=re.MULTILINE)


def content_security_policy(script: str, style: str) -> str:
    """A policy that allows one script and one style, and no request at all."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def as_json(value: Any) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{share:.{digits}%}"


def _raw(text: str) -> Any:
    from markupsafe import Markup

    # Only for own files, and for JSON with every special character escaped.
    return Markup(text)
