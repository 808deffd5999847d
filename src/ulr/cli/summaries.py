"""Reports of jobs as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulr.cli.console import new_console, plain_table, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from ulr.encoders import EncoderKind
    from ulr.encoders.cache import CacheEntry
    from ulr.jobs import EvaluationReport, JobReport, ShownDocument
    from ulr.metrics import Evaluation
    from ulr.model import Predictions

_MOST_CONFUSION_LABELS = 12


def print_summary(report: JobReport) -> None:
    """Print the report of a job."""
    console = new_console()
    _print_headline(console, report)
    console.print(_counts(report))
    console.print()
    if report.moved_documents:
        console.print("Moved by refinement, the most certain first:", style="bold")
        _print_documents(console, report.moved_documents, with_unrefined=True)
    if report.least_certain:
        console.print("Least certain:", style="bold")
        _print_documents(console, report.least_certain, with_unrefined=False)
    if report.output is None:
        console.print("Nothing was written; add -o OUT.csv to keep the labels.")
    elif report.output != "-":
        console.print(f"Written: {report.output}")


def print_evaluation(report: EvaluationReport) -> None:
    """Print the figures of an evaluation."""
    console = new_console()
    _print_headline(console, report.job)
    if report.without_truth:
        console.print(f"Documents without a true label, not counted: {report.without_truth:,}.")
    if report.folded_truth:
        console.print(
            f"{report.folded_truth:,} true labels equal a name only if case and blanks are ignored."
        )
    for table in (
        _overall(report),
        _per_label(report),
        _confusion(report.before, "by name: true"),
        _confusion(report.after, "refined: true"),
    ):
        console.print(table)
        console.print()
    if report.job.moved_documents:
        console.print("Moved by refinement, the most certain first:", style="bold")
        _print_documents(console, report.job.moved_documents, with_unrefined=True)


def print_predictions(names: Any, predictions: Predictions, as_json: bool) -> None:
    """Print the labels of texts from the command line, with their probabilities."""
    for label, probabilities, empty in zip(
        predictions.labels, predictions.probabilities, predictions.empty, strict=True
    ):
        order = (-probabilities).argsort(kind="stable")
        ranked = {str(names[i]): round(float(probabilities[i]), 4) for i in order}
        if as_json:
            print_json({"label": str(names[label]), "probabilities": ranked})
        elif empty:
            print("no label: the text has no word that the encoder knows.")
        else:
            for name, probability in ranked.items():
                print(f"{probability:.2f}  {name}")


def print_encoders(kinds: dict[str, EncoderKind]) -> None:
    """Print the encoders."""
    table = plain_table(
        "encoder", ">dims", ">MB", "licence", "languages", "available", "what it is"
    )
    for name, kind in kinds.items():
        there = "yes" if kind.installed else "download" if kind.needs_download else kind.install
        figures = (f"{figure:,}" if figure else "" for figure in (kind.n_dims, kind.megabytes))
        ways = "\n".join(kind.specs(name))
        n_languages = len(kind.languages)
        languages = ", ".join(kind.languages) if n_languages < 5 else f"{n_languages} languages"
        table.add_row(ways, *figures, kind.licence, languages, there, kind.about)
    console = new_console()
    console.print(table)
    lacking = [kind for kind in kinds.values() if kind.needs_download and not kind.installed]
    if lacking:
        console.print("\nDownload models with:", *(kind.install for kind in lacking), sep="\n  ")


def print_cache(entries: list[CacheEntry], cleared: bool) -> None:
    """Print the content of a cache."""
    from rich.text import Text

    table = plain_table(">texts", ">dims", ">MB", ">damaged MB", "encoder")
    for entry in entries:
        figures = f"{entry.megabytes:,.1f}", f"{entry.damaged_megabytes:,.1f}"
        dims = str(entry.dimensions or "")
        table.add_row(f"{entry.texts:,}", dims, *figures, Text(entry.encoder))
    new_console().print(table if entries else "The cache is empty.")
    if entries and cleared:
        new_console().print("All of it was removed.")


def _print_headline(console: Console, report: JobReport) -> None:
    """Print what was done, and warnings."""
    console.print("; ".join(_headline(report)) + ".")
    for line in _notes(report):
        console.print(line)
    warnings = () if report.diagnosis is None else report.diagnosis.warnings
    for warning in warnings:
        console.print(f"Warning: {warning}", style="yellow")
    console.print()


def _headline(report: JobReport) -> list[str]:
    documents = "document" if report.documents == 1 else "documents"
    parts = [f"{report.documents:,} {documents}, {len(report.labels)} labels"]
    if report.encoder not in (None, "static"):
        parts.append(f"encoder {report.encoder}")
    if report.moved is not None and report.iterations is not None and report.method != "none":
        parts.append(
            f"refinement ({report.method}) moved {report.moved:,} "
            f"({report.moved / report.documents:.1%}) in {report.iterations} passes"
        )
        if report.method == "ulr" and not report.converged:
            parts.append("stopped at the limit of passes before it converged")
    if report.phrasings is not None:
        sets = f"an ensemble of {report.phrasings:,} phrasings"
        if report.possible_phrasings != report.phrasings:
            sets += f", drawn from {report.possible_phrasings:,}"
        parts.append(sets)
    for count, what in (
        (report.examples, "labelled examples"),
        (report.extra_texts, "extra texts"),
        (report.extra_labels, "extra labels"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    parts.append(f"{report.seconds:.1f} s")
    return parts


def _notes(report: JobReport) -> list[str]:
    notes = []
    if report.method_reason:
        notes.append(f"Method {report.method} was used, since {report.method_reason}.")
    # Documents that take no part are not in the number of fitted ones either.
    used = report.documents - report.empty_documents - report.unknown_documents
    if report.fitted_documents is not None and report.fitted_documents < used:
        notes.append(f"The labels were refined on {report.fitted_documents:,} of the documents.")
    if report.empty_documents:
        notes.append(f"Empty documents, which got no label: {report.empty_documents:,}.")
    if report.unknown_documents:
        notes.append(
            "Documents without a word that the encoder knows, which got no label: "
            f"{report.unknown_documents:,}."
        )
    if report.without_label is not None:
        notes.append(f"Documents similar to none of the labels: {report.without_label:,}.")
    if report.truncated_documents:
        notes.append(f"Documents truncated by the encoder: {report.truncated_documents:,}.")
    if report.malformed_lines:
        notes.append(
            f"{report.malformed_lines:,} malformed lines of the word vectors were skipped."
        )
    return notes


def _counts(report: JobReport) -> RichTable:
    from rich.text import Text

    refined = report.moved is not None
    figures = [">by name", ">refined"] if refined else [">documents"]
    table = plain_table("label", *figures, "")
    most = max(each.after for each in report.labels) or 1
    for each in report.labels:
        bar = "█" * round(24 * each.after / most)
        before = [f"{each.before:,}"] if refined else []
        table.add_row(Text(each.label), *before, f"{each.after:,}", bar)
    return table


def _print_documents(
    console: Console, documents: tuple[ShownDocument, ...], with_unrefined: bool
) -> None:
    for each in documents:
        change = f"{each.unrefined} → {each.label}" if with_unrefined else each.label
        console.print(f"  row {each.row}, {change} ({each.confidence:.2f}): {each.text}")


def _overall(report: EvaluationReport) -> RichTable:
    table = plain_table("", ">by name", ">refined", ">gain")
    for name, before, after in (
        ("accuracy", report.before.accuracy, report.after.accuracy),
        ("macro-F1", report.before.macro_f1, report.after.macro_f1),
    ):
        gain = f"{100 * (after - before):+.1f}"
        table.add_row(name, f"{100 * before:.1f} %", f"{100 * after:.1f} %", gain)
    table.add_row("calibration error", "", f"{100 * report.calibration_error:.1f} %", "")
    return table


def _per_label(report: EvaluationReport) -> RichTable:
    from rich.text import Text

    table = plain_table("label", ">documents", ">precision", ">recall", ">F1", ">F1 by name")
    for before, after in zip(report.before.labels, report.after.labels, strict=True):
        figures = (after.precision, after.recall, after.f1, before.f1)
        shown = (f"{100 * figure:.1f}" for figure in figures)
        table.add_row(Text(after.label), f"{after.documents:,}", *shown)
    return table


def _confusion(evaluation: Evaluation, corner: str) -> RichTable:
    """True labels in rows, predicted ones in columns; only the worst pairs of many labels."""
    from rich.text import Text

    names = [each.label for each in evaluation.labels]
    if len(names) > _MOST_CONFUSION_LABELS:
        return _worst_pairs(evaluation, names, corner)
    table = plain_table(f"{corner} \\ predicted")
    for name in names:
        table.add_column(Text(name), justify="right", max_width=12, overflow="fold")
    for i, name in enumerate(names):
        cells = [
            Text(f"{count:,}", style="bold" if i == j else "")
            for j, count in enumerate(evaluation.confusion[i].tolist())
        ]
        table.add_row(Text(name), *cells)
    return table


def _worst_pairs(evaluation: Evaluation, names: list[str], corner: str) -> RichTable:
    from rich.text import Text

    table = plain_table(f"most confused {corner}", "predicted", ">documents")
    pairs = sorted(
        (-int(evaluation.confusion[i, j]), i, j)
        for i in range(len(names))
        for j in range(len(names))
        if i != j and evaluation.confusion[i, j]
    )
    for count, i, j in pairs[:_MOST_CONFUSION_LABELS]:
        table.add_row(Text(names[i]), Text(names[j]), f"{-count:,}")
    return table
