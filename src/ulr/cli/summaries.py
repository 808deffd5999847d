"""Reports of jobs as text for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ulr.cli.console import new_console, plain_table, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from ulr.classifier import Drift, Explanation
    from ulr.encoders import CacheEntry, EncoderKind
    from ulr.jobs import Comparison, Result
    from ulr.metrics import Evaluation, MultilabelFigures

_MOST_CONFUSION_LABELS = 12
# What a problem of the diagnosis can be corrected or examined with.
_OPTIONS = {
    "unreliable": "--labels, --encoder, --examples",
    "regrouped": "--method none",
    "overturned": "ulr audit",
    "expected_accuracy": "ulr encoders",
    "rare": "--fit-sample",
}


def print_summary(result: Result) -> None:
    """Print the result of a job."""
    console = new_console()
    _print_headline(console, result)
    console.print(_nodes(result) if result.nodes else _counts(result))
    console.print()
    _print_moved(console, result)
    if result.least_certain:
        console.print("Least certain:", style="bold")
        for each in result.least_certain:
            console.print(f"  row {each.row}, {each.label} ({each.confidence:.2f}): {each.text}")
    if result.output is None:
        console.print("Nothing was written; add -o OUT.csv to keep the labels.")
    elif result.output != "-":
        console.print(f"Written: {result.output}")


def print_drift(drift: Drift, model: str | None) -> None:
    """Print how new documents differ from those of a model, and where the updated one is."""
    console, table = new_console(), plain_table("label", ">then", ">now", "")
    for each in drift.labels:
        note = "changed" if each.changed else ""
        table.add_row(each.label, f"{each.before:.1%}", f"{each.after:.1%}", note)
    console.print(table)
    console.print()
    lines = [f"Unlike the documents of their label: {drift.unlike:.1%} (5.0% are usual)."]
    before, now = drift.confidence_before, drift.confidence
    lines.append(f"Mean confidence: {before:.2f} then, {now:.2f} now.")
    if drift.unknown_words is not None and drift.unknown_words_before is not None:
        lines.append(
            f"Words without weight: {drift.unknown_words_before:.1%} then, "
            f"{drift.unknown_words:.1%} now."
        )
    for line in lines:
        console.print(line)
    for warning in drift.warnings:
        console.print(f"Warning: {warning}", style="yellow")
    if not drift.changed:
        console.print("Nothing has changed by more than chance.")
    console.print("The model was not written." if model is None else f"Updated model: {model}")
    console.print()


def print_evaluation(result: Result) -> None:
    """Print the comparison with true labels."""
    console, compared = new_console(), result.comparison
    _print_headline(console, result)
    if result.multilabel is not None:
        console.print(_label_sets(result.multilabel))
    if compared is None:
        return
    without = compared.without_truth
    if compared.other_truth:
        values, meaning = ", ".join(map(repr, compared.other_values)), "none of the labels"
        if result.without_label is None:
            without, meaning = without - compared.other_truth, "not counted"
        console.print(
            f"Documents whose true value is no label, such as {values}, {meaning}: "
            f"{compared.other_truth:,}."
        )
    if without:
        console.print(f"Documents without a true label, not counted: {without:,}.")
    if compared.folded_truth:
        console.print(
            f"{compared.folded_truth:,} true labels equal a name only if case and blanks are "
            "ignored."
        )
    if compared.levels:
        console.print(_levels(compared))
        console.print("\nThe most probable leaf of each document:", style="bold")
    for table in (
        _overall(compared),
        _per_label(compared),
        _confusion(compared.before, "by name: true"),
        _confusion(compared.after, "refined: true"),
    ):
        console.print(table)
        console.print()
    _print_moved(console, result)


def print_predictions(
    names: Any,
    labels: Iterable[Any],
    probabilities: Any,
    empty: Iterable[bool],
    as_json: bool,
    explanations: list[Explanation] | None = None,
) -> None:
    """Print the labels of texts from the command line, with the probabilities of all, and why.

    A label is a name, which may be a node of a tree, or several names.
    """
    for row, (label, own, is_empty) in enumerate(zip(labels, probabilities, empty, strict=True)):
        why = None if explanations is None else explanations[row]
        order = (-own).argsort(kind="stable")
        ranked = {str(names[i]): round(float(own[i]), 4) for i in order}
        several = isinstance(label, tuple)
        if as_json:
            found: dict[str, Any] = {"labels": list(label)} if several else {"label": str(label)}
            given = {} if why is None else {"why": asdict(why)}
            print_json({**found, "probabilities": ranked, **given})
        elif is_empty:
            print("no label: the text has no word that the encoder knows.")
        else:
            if several:
                print(f"labels: {'; '.join(label) or 'none'}")
            elif str(label) not in ranked:
                print(f"label: {label}")
            for name, probability in ranked.items():
                print(f"{probability:.2f}  {name}")
            if why is not None:
                _print_words(why)


def _print_words(why: Explanation) -> None:
    """Print the words of an explanation, with the log odds that each adds."""
    for name, words in ((why.label, why.for_label), (why.runner_up, why.for_runner_up)):
        found = ", ".join(f"{each.word} {each.weight:.2f}" for each in words)
        print(f"for {name}: {found or 'no word'}")
    if not why.exact:
        print("Each word was left out in turn; its weight is what the log odds fall by.")


def print_encoders(kinds: dict[str, EncoderKind]) -> None:
    """Print the encoders."""
    table = plain_table(
        "encoder", ">dims", ">MB", "licence", "languages", "available", "what it is"
    )
    for name, kind in kinds.items():
        there = "yes" if kind.installed else f"extra {kind.extra}" if kind.extra else "download"
        figures = (f"{figure:,}" if figure else "" for figure in (kind.n_dims, kind.megabytes))
        ways = "\n".join(kind.specs(name))
        n_languages = len(kind.languages)
        languages = ", ".join(kind.languages) if n_languages < 5 else f"{n_languages} languages"
        table.add_row(ways, *figures, kind.licence, languages, there, kind.about)
    console = new_console()
    console.print(table)
    lacking = [kind.install for kind in kinds.values() if kind.install and not kind.installed]
    if lacking:
        console.print("\nMake the others available with:", *dict.fromkeys(lacking), sep="\n  ")


def print_cache(entries: list[CacheEntry], cleared: bool) -> None:
    """Print the content of a cache."""
    table = plain_table(">texts", ">dims", ">MB", ">damaged MB", "encoder")
    for entry in entries:
        figures = f"{entry.megabytes:,.1f}", f"{entry.damaged_megabytes:,.1f}"
        dims = str(entry.dimensions or "")
        table.add_row(f"{entry.texts:,}", dims, *figures, entry.encoder)
    new_console().print(table if entries else "The cache is empty.")
    if entries and cleared:
        new_console().print("All of it was removed.")


def _print_headline(console: Console, result: Result) -> None:
    """Print what was done, and warnings."""
    console.print("; ".join(_headline(result)) + ".")
    for line in _notes(result):
        console.print(line)
    if result.diagnosis is not None:
        for kind, sentence in result.diagnosis.problems.items():
            option = f" ({_OPTIONS[kind]})" if kind in _OPTIONS else ""
            console.print(f"Warning: {sentence}{option}", style="yellow")
        for note in result.diagnosis.notes:
            console.print(f"Warning: {note}", style="yellow")
    if result.advice is not None:
        for line in result.advice.sentences:
            console.print(line)
    console.print()


def _headline(result: Result) -> list[str]:
    documents = "document" if result.documents == 1 else "documents"
    parts = [f"{result.documents:,} {documents}, {len(result.labels)} labels"]
    parts.append(f"encoder {result.encoder}")
    if result.moved is not None and result.iterations is not None and result.method != "none":
        parts.append(
            f"refinement ({result.method}) moved {result.moved:,} "
            f"({result.moved / result.documents:.1%}) in {result.iterations} passes"
        )
        if result.method == "ulr" and not result.converged:
            parts.append("stopped at the limit of passes before it converged")
    for count, what in (
        (result.examples, "labelled examples"),
        (result.extra_texts, "extra texts"),
        (result.extra_labels, "extra labels"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    parts.append(f"{result.seconds:.1f} s")
    return parts


def _notes(result: Result) -> list[str]:
    notes = []
    if result.method_reason:
        notes.append(f"Method {result.method} was used, since {result.method_reason}.")
    # Documents that take no part are not in the number of fitted ones either.
    used = result.documents - result.empty_documents - result.unknown_documents
    if result.fitted_documents is not None and result.fitted_documents < used:
        notes.append(f"The labels were refined on {result.fitted_documents:,} of the documents.")
    if result.student_documents:
        n_read = result.documents - result.student_documents
        notes.append(
            f"The encoder read {n_read:,} of the documents; a student of it labelled the others "
            "(--strong-share)."
        )
    if result.empty_documents:
        notes.append(f"Empty documents, which got no label: {result.empty_documents:,}.")
    if result.unknown_documents:
        notes.append(
            "Documents without a word that the encoder knows, which got no label: "
            f"{result.unknown_documents:,}."
        )
    if result.without_label is not None:
        notes.append(f"Documents similar to none of the labels: {result.without_label:,}.")
    if (several := result.label_sets) is not None:
        notes.append(
            f"Labels a document: {several.mean:.2f} on average; {several.without:,} documents have "
            f"none. About {several.expected_precision:.0%} of these labels are expected to be right."
        )
    if result.truncated_documents:
        notes.append(f"Documents truncated by the encoder: {result.truncated_documents:,}.")
    if result.malformed_lines:
        notes.append(
            f"{result.malformed_lines:,} malformed lines of the word vectors were skipped."
        )
    return notes


def _counts(result: Result) -> RichTable:
    refined = result.moved is not None
    figures = [">by name", ">refined"] if refined else [">documents"]
    several = result.label_sets
    table = plain_table("label", *figures, *([">given"] if several else []), "")
    most = max(each.after for each in result.labels) or 1
    for number, each in enumerate(result.labels):
        bar = "█" * round(24 * each.after / most)
        before = [f"{each.before:,}"] if refined else []
        given = [f"{several.documents[number]:,}"] if several else []
        table.add_row(each.label, *before, f"{each.after:,}", *given, bar)
    return table


def _label_sets(figures: MultilabelFigures) -> RichTable:
    table = plain_table("several labels a document", "")
    for name, figure in (
        ("micro-F1", figures.micro_f1),
        ("macro-F1", figures.macro_f1),
        ("subset accuracy", figures.subset_accuracy),
        ("precision", figures.precision),
        ("recall", figures.recall),
    ):
        table.add_row(name, f"{100 * figure:.1f} %")
    table.add_row("documents", f"{figures.documents:,}")
    table.add_row("true labels a document", f"{figures.mean_true:.2f}")
    table.add_row("labels a document", f"{figures.mean_predicted:.2f}")
    return table


def _nodes(result: Result) -> RichTable:
    """Documents of the nodes of a tree; those that stayed above the leaves are in a column."""
    table = plain_table("label", ">documents", ">stayed here", "")
    parents = {
        each.path for one, each in pairwise(reversed(result.nodes)) if one.level > each.level
    }
    most = max(each.documents for each in result.nodes) or 1
    for each in result.nodes:
        name = "  " * each.level + each.path.rpartition(" > ")[2]
        bar = "█" * round(24 * each.documents / most)
        stayed = f"{each.stayed:,}" if each.path in parents else ""
        table.add_row(name, f"{each.documents:,}", stayed, bar)
    return table


def _levels(compared: Comparison) -> RichTable:
    """Figures of the levels of a tree."""
    table = plain_table("level", ">documents", ">placed", ">right of these", ">accuracy")
    for each in compared.levels:
        figures = (f"{100 * x:.1f} %" for x in (each.reached, each.precision, each.accuracy))
        table.add_row(str(each.level + 1), f"{each.documents:,}", *figures)
    return table


def _print_moved(console: Console, result: Result) -> None:
    """Print some documents whose label refinement changed."""
    if result.moved_documents:
        console.print("Moved by refinement, the most certain first:", style="bold")
    for each in result.moved_documents:
        change = f"{each.unrefined} → {each.label}"
        console.print(f"  row {each.row}, {change} ({each.confidence:.2f}): {each.text}")


def _overall(compared: Comparison) -> RichTable:
    table = plain_table("", ">by name", ">refined", ">gain")
    for name, before, after in (
        ("accuracy", compared.before.accuracy, compared.after.accuracy),
        ("macro-F1", compared.before.macro_f1, compared.after.macro_f1),
    ):
        gain = f"{100 * (after - before):+.1f}"
        table.add_row(name, f"{100 * before:.1f} %", f"{100 * after:.1f} %", gain)
    table.add_row("calibration error", "", f"{100 * compared.calibration_error:.1f} %", "")
    return table


def _per_label(compared: Comparison) -> RichTable:
    table = plain_table("label", ">documents", ">precision", ">recall", ">F1", ">F1 by name")
    for before, after in zip(compared.before.labels, compared.after.labels, strict=True):
        figures = (after.precision, after.recall, after.f1, before.f1)
        shown = (f"{100 * figure:.1f}" for figure in figures)
        table.add_row(after.label, f"{after.documents:,}", *shown)
    return table


def _confusion(evaluation: Evaluation, corner: str) -> RichTable:
    """True labels in rows, predicted ones in columns; only the worst pairs of many labels."""
    names = [each.label for each in evaluation.labels]
    if len(names) > _MOST_CONFUSION_LABELS:
        return _worst_pairs(evaluation, names, corner)
    table = plain_table(f"{corner} \\ predicted")
    for name in names:
        table.add_column(name, justify="right", max_width=12, overflow="fold")
    for name, counts in zip(names, evaluation.confusion.tolist(), strict=True):
        table.add_row(name, *(f"{count:,}" for count in counts))
    return table


def _worst_pairs(evaluation: Evaluation, names: list[str], corner: str) -> RichTable:
    table = plain_table(f"most confused {corner}", "predicted", ">documents")
    pairs = sorted(
        (-int(evaluation.confusion[i, j]), i, j)
        for i in range(len(names))
        for j in range(len(names))
        if i != j and evaluation.confusion[i, j]
    )
    for count, i, j in pairs[:_MOST_CONFUSION_LABELS]:
        table.add_row(names[i], names[j], f"{-count:,}")
    return table
