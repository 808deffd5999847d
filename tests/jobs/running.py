"""Run jobs on files, as the command line does."""

import csv

from ulr.classifier import Settings
from ulr.jobs import NO_SUPPORT, Documents, Output, classify, predict
from ulr.progress import NO_PROGRESS
from ulr.tables import open_table

LABELS = ["sports", "business", "weather"]
DOCUMENTS = [
    ("The striker scored twice before half time", "sports"),
    ("Shares fell after the bank raised interest rates", "business"),
    ("Heavy rain and storms are expected on Sunday", "weather"),
    ("The goalkeeper saved a late penalty", "sports"),
    ("The retailer closed forty shops and cut its profit forecast", "business"),
    ("Fog will clear by noon, with sunshine on the coast", "weather"),
    ("", ""),
    ("Our team lost the final in the rain", "sports"),
    ("Farmers fear for their income as the drought goes on", ""),
    ("Investors bet on a cold winter and higher gas prices", "business"),
]


def write_rows(path, rows, header=("id", "text", "truth")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run_classify(
    source,
    labels,
    output=None,
    progress=NO_PROGRESS,
    *,
    columns=("text",),
    truth=None,
    support=NO_SUPPORT,
    force=False,
    prefix="ulr_",
    stdin=None,
    **settings,
):
    """Classify a file: the fitted classifier and the result."""
    target = Output(None if output is None else str(output), prefix, force)
    with open_table(source if isinstance(source, list) else str(source), stdin=stdin) as table:
        return classify(
            Documents(table, tuple(columns)),
            Settings(labels, **settings),
            target,
            progress,
            support=support,
            truth_column=truth,
        )


def run_predict(source, fitted, output=None, columns=("text",)):
    target = Output(None if output is None else str(output))
    with open_table(str(source)) as table:
        return predict(Documents(table, tuple(columns)), fitted, target)
