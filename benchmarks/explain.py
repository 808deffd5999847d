"""Whether the words that an explanation names matter: the label's probability without them.

    python -m benchmarks.explain --data DIR [--encoder static] [--encoder minilm+use-multilingual]
        [--cache VECTORS] [--documents 300] [--write docs/explain.md]

A classifier is fitted on 2,000 documents of each of the paper's four datasets. From a random sample of
them, the five words that spoke most for the label are removed, and as many words at random; texts of at
least 15 different words are used, so that something is left. No true label is used.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish, shown, timed
from reproduction.datasets import DATASETS
from reproduction.documents import Documents, read_documents
from reproduction.names import label_set
from ulr.classifier import Explanation, Settings, explain, fit

FITTED, WORDS, FEWEST_WORDS = 2_000, 5, 15


def without(text: str, spans: list[tuple[int, int]]) -> str:
    """A text without some parts of it."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def without_named(text: str, explanation: Explanation) -> str:
    """A text without the words that spoke for its label."""
    return without(text, [span for word in explanation.for_label for span in word.spans])


def without_random(text: str, n: int, draw: np.random.Generator) -> str:
    """A text without all occurrences of some random words."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for found in re.finditer(r"\w\S*\w|\w", text):
        spans.setdefault(found.group().casefold(), []).append(found.span())
    words = [list(spans)[i] for i in draw.permutation(len(spans))[:n]]
    return without(text, [span for word in words for span in spans[word]])


def measure(documents: Documents, encoder: str, cache: str | None, n: int) -> list[str]:
    """One row of the table."""
    draw = np.random.default_rng(0)
    rows = draw.permutation(documents.rows)[:FITTED].tolist()
    texts = [documents.texts[row] for row in rows]
    settings = Settings(label_set(documents.dataset.name), encoder=encoder, cache=cache)
    fitted = fit(texts, settings)
    if cache is not None:  # shorter texts are not worth keeping
        fitted = fitted.with_settings(cache=None)
    long = [text for text in texts if len(set(text.casefold().split())) >= FEWEST_WORDS][:n]
    explained = []
    taken = timed(lambda: explained.extend(explain(fitted, long, WORDS)))
    named = [without_named(text, each) for text, each in zip(long, explained, strict=True)]
    others = [
        without_random(text, len(each.for_label), draw)
        for text, each in zip(long, explained, strict=True)
    ]
    whole = fitted.predict(long)
    labels, places = whole.labels, np.arange(len(long))
    cells = [f"{whole.probabilities[places, labels].mean():.3f}"]
    changed = []
    for shorter in (named, others):
        found = fitted.predict(shorter)
        cells.append(f"{found.probabilities[places, labels].mean():.3f}")
        changed.append(f"{100 * (found.labels != labels).mean():.1f} %")
    exact = np.mean([each.exact for each in explained])
    cells += [*changed, f"{100 * exact:.0f} %", f"{1000 * taken.cpu / len(long):.1f}"]
    return [f"`{encoder}`", documents.dataset.title, str(len(long)), *cells]


def table(data: Path, encoders: list[str], cache: str | None, n: int) -> str:
    """One row per encoder and dataset."""
    columns = (
        "encoder",
        "dataset",
        "documents",
        "probability of the label",
        "without the words named",
        "without random ones",
        "label changes, named",
        "random",
        "exact",
        "CPU ms",
    )
    rows = (
        measure(read_documents(name, data), encoder, cache, n)
        for encoder in encoders
        for name in DATASETS
    )
    return markdown(columns, shown(rows))


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--documents", type=int, default=300)
    options = parser.parse_args()
    encoders = options.encoder or ["static"]
    report = table(options.data, encoders, options.cache, options.documents)
    publish(report, options.write, "faithfulness")


if __name__ == "__main__":
    main()
