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

from ulr.errors import InputError
from ulr.files import atomic_file, check_destination
from ulr.jobs import Pairs, Result, sorted_pairs
from ulr.report.data import ReportData

# In the order of their imports.
_MODULES = tuple("dom colors store why view paint map flow charts table controls report".split())
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
        from jinja2 import Environment, PackageLoader
        from markupsafe import Markup

        environment = Environment(
            loader=PackageLoader("ulr.report"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {"number": "{:,}".format, "percent": _percent}
        script, style = _bundled_script(), (_STATIC / "report.css").read_text("utf-8")
        payload = self.data.as_dict()
        if payload["result"]["comparison"] is not None:
            for figures in ("before", "after"):  # the scripts need no confusion; it may be large
                del payload["result"]["comparison"][figures]
        # JSON that can stand inside a script element.
        content = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
        return environment.get_template("report.html").render(
            data=self.data,
            notes=_notes(self.data.result),
            confusions=_confusions(self.data.result),
            policy=_content_security_policy(script, style),
            # Own files, and JSON with every special character escaped.
            script=Markup(script),
            style=Markup(style),
            payload=Markup(content),
        )

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


def _notes(result: Result) -> list[str]:
    """Sentences about what took part beside documents and labels."""
    counts = {
        "labelled examples took part.": result.examples,
        "further texts took part in the refinement.": result.extra_texts,
        "further labels took part in the refinement.": result.extra_labels,
        "documents were truncated by the encoder.": result.truncated_documents,
    }
    notes = [f"{count:,} {what}" for what, count in counts.items() if count]
    return notes if result.advice is None else notes + result.advice.sentences


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


def _bundled_script() -> str:
    """All modules as one script: without imports and exports, in the order of `_MODULES`."""
    parts = [(_STATIC / f"{name}.js").read_text("utf-8") for name in _MODULES]
    script = re.sub(r"^import [^;]*;\n", "", "\n".join(parts), flags=re.MULTILINE)
    return re.sub(r"^export ", "", script, flags=re.MULTILINE)


def _content_security_policy(script: str, style: str) -> str:
    """A policy that allows one script and one style, and no request at all."""
    digests = (hashlib.sha256(part.encode("utf-8")).digest() for part in (script, style))
    of_script, of_style = (base64.b64encode(digest).decode() for digest in digests)
    return (
        f"default-src 'none'; script-src 'sha256-{of_script}'; style-src 'sha256-{of_style}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{share:.{digits}%}"
