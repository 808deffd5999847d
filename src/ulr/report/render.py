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
from ulr.files import atomic_file, check_destination
from ulr.jobs import Pairs, Result, sorted_pairs
from ulr.report.data import ReportData

# In the order of their imports.
_MODULES = tuple("dom colors store view paint map flow charts table controls report".split())
_STATIC = files("ulr.report") / "static"
_MOST_CONFUSION_LABELS = 20
_MOST_CONFUSED = 30
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Report:
    """A report with its `data`, shown by notebooks and written to a file."""

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


def check_report_path(path: str | Path, force: bool, how: str = "--force") -> None:
    """Raise if a report could not be written; called before the long part of a job.

    `how` is what replaces an existing file, for the message.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is an HTML file; {str(path)!r} must end in .html.")
    check_destination(Path(path), force, InputError, how)


def render(data: ReportData) -> str:
    """The HTML page of a report."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("ulr.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": "{:,}".format, "percent": _percent}
    script, style = bundled_script(), (_STATIC / "report.css").read_text("utf-8")
    payload = data.as_dict()
    if payload["result"]["comparison"] is not None:
        for figures in ("before", "after"):  # the scripts need no confusion, which may be large
            del payload["result"]["comparison"][figures]
    return environment.get_template("report.html").render(
        data=data,
        notes=_notes(data.result),
        confusions=_confusions(data.result),
        policy=content_security_policy(script, style),
        script=_raw(script),
        style=_raw(style),
        payload=_raw(as_json(payload)),
    )


def _notes(result: Result) -> list[str]:
    """Sentences about what took part beside documents and labels."""
    counts = {
        "labelled examples took part.": result.examples,
        "further texts took part in the refinement.": result.extra_texts,
        "further labels took part in the refinement.": result.extra_labels,
        "documents were truncated by the encoder.": result.truncated_documents,
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]


def _confusions(result: Result) -> list[tuple[str, list[list[int]] | None, Pairs]]:
    """Title, matrix and most confused pairs, after and before; no matrix of very many labels."""
    if result.comparison is None:
        return []
    found = []
    for title, figures in (
        ("Refined", result.comparison.after),
        ("By name", result.comparison.before),
    ):
        matrix = figures.confusion.tolist()
        errors = {
            (true, predicted): count
            for true, row in enumerate(matrix)
            for predicted, count in enumerate(row)
            if count and true != predicted
        }
        few = len(matrix) <= _MOST_CONFUSION_LABELS
        found.append((title, matrix if few else None, sorted_pairs(errors)[:_MOST_CONFUSED]))
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
