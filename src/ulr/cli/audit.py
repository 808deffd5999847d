"""`ulr audit`: how much the labels depend on their phrases."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, new_console, plain_errors, plain_table, print_json
from ulr.cli.groups import option_groups
from ulr.cli.options import InputOptions, Json

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from ulr.audit import Audit, LabelFinding

_MOST_DOCUMENTS, _MOST_BY_SLOW_ENCODER = 20_000, 4_000


@option_groups
def audit(inputs: InputOptions, classifier: ClassifierOptions, json: Json = False) -> None:
    """Find out how much the labels of the documents depend on the phrases of the labels.

    Every combination of one phrase per label is refined on the documents (a sample of 20,000), and
    up to 1,024 combinations of more. The report says how far they agree before and after
    refinement, which label and which phrase cause disagreement, which documents change their label,
    and which labels compete. No labelled documents are needed.

    [bold]Example[/bold]

    ulr audit news.csv --labels labels.yaml
    """
    with plain_errors():
        from ulr.audit import audit as audit_texts
        from ulr.jobs import draw_sample, excerpt

        with ProgressBar() as progress, inputs.open() as documents:
            settings = classifier.settings(progress)
            most = _MOST_BY_SLOW_ENCODER if settings.may_sample else _MOST_DOCUMENTS
            sample = draw_sample(documents, most, settings.random_state, progress)
            found = audit_texts(sample.texts, settings, progress)
        rows = range(sample.n_rows) if sample.rows is None else sample.rows.tolist()
        unstable = [
            {"row": rows[i] + 1, "labels": labels, "text": excerpt(sample.texts[i])}
            for i, labels in found.unstable
        ]
        if json:
            print_json(asdict(found) | {"unstable": unstable, "rows": sample.n_rows})
        else:
            _print_audit(found, None if sample.rows is None else sample.n_rows, unstable)


def _print_audit(found: Audit, n_rows: int | None, unstable: list[dict[str, Any]]) -> None:
    """What the combinations tell, the most telling first."""
    console = new_console()
    sets = f"{found.sets:,} combinations of phrases"
    if found.possible_sets != found.sets:
        sets += f", drawn from {found.possible_sets:,}"
    documents = f"{found.documents:,} documents"
    if n_rows is not None:
        documents += f", a sample of {n_rows:,}"
    console.print(f"{documents}; {sets}.", end="\n\n")
    console.print(
        f"Two combinations agree on {found.agreement_before:.1%} of the documents by name, on "
        f"{found.agreement_after:.1%} refined; all on {found.unanimous_before:.1%}, then "
        f"{found.unanimous_after:.1%}.",
        end="\n\n",
    )
    console.print(_label_table(found))
    console.print(
        "agreed: when a combination gives a document this label, another does too. its phrases: the "
        "share of the disagreement that they alone make. documents: what the label gets, and the "
        "least and most over the combinations.",
        style="dim",
        end="\n\n",
    )
    worded = sorted(found.labels, key=lambda each: -each.share_of_disagreement)
    if worded[0].share_of_disagreement > 0:
        console.print("Where the disagreement comes from:", style="bold")
        for each in worded[:3]:
            if each.share_of_disagreement > 0:
                console.print(f"  {_cause(each)}")
    if found.competing:
        console.print("Labels that compete:", style="bold")
        for first, second, share in found.competing[:3]:
            console.print(f"  {first} and {second}: {share:.1%} of all disagreement")
    if unstable:
        console.print("Documents that depend most on the phrases:", style="bold")
        for document in unstable[:5]:
            labels = ", ".join(f"{name} {share:.0%}" for name, share in document["labels"][:3])
            console.print(f"  row {document['row']}, {labels}: {document['text']}")


def _label_table(found: Audit) -> RichTable:
    from rich.text import Text

    names = ">agreed by name", ">refined", ">its phrases", ">documents", ">least", ">most", ""
    table = plain_table("label", *names)
    for each in found.labels:
        table.add_row(
            Text(each.label),
            _percent(each.agreement_before),
            _percent(each.agreement_after),
            _percent(each.share_of_disagreement) if len(each.phrases) > 1 else "",
            _percent(each.documents),
            _percent(each.least),
            _percent(each.most),
            f"attracts {each.attracts}" if each.attracts else "",
        )
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _cause(label: LabelFinding) -> str:
    apart = min(label.phrases, key=lambda phrase: phrase.agreement)
    close = max(label.phrases, key=lambda phrase: phrase.agreement)
    return (
        f"{label.label}: its phrases alone make {label.share_of_disagreement:.1%}; combinations "
        f"with {apart.phrase!r} agree with others on {apart.agreement:.1%}, with {close.phrase!r} "
        f"on {close.agreement:.1%}"
    )
