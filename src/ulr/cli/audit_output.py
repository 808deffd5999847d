"""The report of an audit as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ulr.cli.console import new_console, plain_table

if TYPE_CHECKING:
    from ulr.audit import LabelFinding, SetFinding
    from ulr.jobs import AuditReport


def print_audit(report: AuditReport) -> None:
    """What the phrasings tell, the most telling first."""
    console, found = new_console(), report.found
    sets = f"{report.n_sets:,} sets of names"
    if report.possible_sets != report.n_sets:
        sets += f", drawn from {report.possible_sets:,}"
    if report.resumed_sets:
        sets += f", {report.resumed_sets:,} of them done before"
    console.print(f"{report.documents:,} documents, {sets}; {report.seconds:.1f} s.", end="\n\n")
    console.print(
        f"Two sets agree on {found.agreement_before:.1%} of the documents by name, on "
        f"{found.agreement_after:.1%} refined; all sets on {found.unanimous_before:.1%}, then "
        f"{found.unanimous_after:.1%}.",
        end="\n\n",
    )
    console.print(_labels(report))
    console.print(
        "agreed: when a set gives a document this label, another does too. its phrasing: the share "
        "of the disagreement that it alone makes. documents: what the label gets, and the least "
        "and most over the sets.",
        style="dim",
        end="\n\n",
    )
    _print_causes(console, report)
    _print_documents(console, report)
    if report.truth is not None:
        console.print(_truth(report))
        console.print()
    console.print("Recommended:", style="bold", end=" ")
    console.print(Text("; ".join(found.recommendation.phrases)))
    console.print(f"  {found.recommendation.reason}.")
    if report.picture is not None:
        console.print(f"Drawn: {report.picture}")


def _labels(report: AuditReport) -> RichTable:
    table = plain_table(
        "label",
        ">agreed by name",
        ">refined",
        ">its phrasing",
        ">documents",
        ">least",
        ">most",
        "",
    )
    for each in report.found.labels:
        table.add_row(
            Text(each.label),
            _percent(each.agreement_before),
            _percent(each.agreement_after),
            _percent(each.share_of_disagreement) if len(each.phrases) > 1 else "",
            _percent(each.documents_after),
            _percent(each.least),
            _percent(each.most),
            f"attracts {each.attracts}" if each.attracts else "",
        )
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _print_causes(console: Console, report: AuditReport) -> None:
    """The labels whose phrasing matters, with their phrases, and the labels that compete."""
    worded = [each for each in report.found.labels if len(each.phrases) > 1]
    worded.sort(key=lambda each: -each.share_of_disagreement)
    if worded and worded[0].share_of_disagreement > 0:
        console.print("Where the disagreement comes from:", style="bold")
        for each in worded[:3]:
            console.print(Text(f"  {_cause(each)}"))
    if report.found.competing:
        console.print("Labels that compete:", style="bold")
        for pair in report.found.competing[:3]:
            console.print(
                Text(f"  {pair.first} and {pair.second}: {pair.share:.1%} of all disagreement")
            )


def _cause(label: LabelFinding) -> str:
    apart = min(label.phrases, key=lambda phrase: phrase.agreement_after)
    close = max(label.phrases, key=lambda phrase: phrase.agreement_after)
    return (
        f"{label.label}: its phrasing alone makes {label.share_of_disagreement:.1%}; sets with "
        f"{apart.phrase!r} agree with others on {apart.agreement_after:.1%}, with "
        f"{close.phrase!r} on {close.agreement_after:.1%}"
    )


def _print_documents(console: Console, report: AuditReport) -> None:
    if not report.unstable:
        return
    console.print("Documents that depend most on the phrasing:", style="bold")
    for each in report.unstable[:5]:
        labels = ", ".join(f"{name} {share:.0%}" for name, share in each.labels[:3])
        console.print(Text(f"  row {each.row}, {labels}: {each.text}"))
    console.print()


def _truth(report: AuditReport) -> RichTable:
    truth, sets = report.truth, report.sets
    assert truth is not None
    table = plain_table("accuracy", ">by name", ">refined", ">gain", "")
    for name, before, after, note in (
        ("mean of the sets", truth.mean_before, truth.mean_after, ""),
        _of_set("best set, refined", sets, truth.best),
        _of_set("worst set, refined", sets, truth.worst),
        ("most sets say", truth.majority_before, truth.majority_after, ""),
        ("recommended set", truth.recommended_before, truth.recommended_after, ""),
    ):
        gain = f"{100 * (after - before):+.1f}"
        table.add_row(name, _percent(before), _percent(after), gain, Text(note))
    improved = f"{truth.improved:,} of {report.n_sets:,}"
    table.add_row("sets that improve", "", improved, f"{truth.improved / report.n_sets:.1%}", "")
    return table


def _of_set(name: str, sets: tuple[SetFinding, ...], number: int) -> tuple[str, float, float, str]:
    one = sets[number - 1]
    return name, one.accuracy_before or 0.0, one.accuracy_after or 0.0, "; ".join(one.phrases)
