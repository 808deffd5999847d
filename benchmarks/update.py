"""What a model that meets later documents gains, loses and notices.

    python -m benchmarks.update --data DIR [--encoder static] [--cache VECTORS] [--write docs/update.md]

The old month is one half of a dataset, at most 4,000 documents; later months are batches of the
other half, of AG News, DBpedia and 20 Newsgroups of the test set, so that the 20 Newsgroups of later
months are posts of a later date. The truth draws documents and reports, never chooses.

- accuracy on batches whose label shares are as before, or drawn from a Dirichlet distribution, with the
  model kept, updated, and fitted from nothing on the batch
- ten months of 300 documents, where one class that was hidden from the fit has a sixth of the documents
  from the fifth month on: how often each month is the first with an alarm; with each class hidden
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.four_datasets import data_parser
from reproduction.documents import read_documents
from reproduction.names import label_set
from reproduction.pages import replace_part
from ulr.classifier import EncodedTexts, Settings, encode_documents, fit, resolve, update

SETS = ("agnews", "dbpedia14", "yahoo", "20newsgroups")
OLD, MONTH, MONTHS, APPEARS, SHARE = 4_000, 300, 10, 5, 1 / 6
MOST_HIDDEN = 8  # classes of a dataset that are hidden, one at a time
DRAWS = 5
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Months:
    """Encoded documents of the old month and of later ones."""

    settings: Settings
    old: EncodedTexts
    old_truth: Labels
    new: EncodedTexts
    new_truth: Labels


def read_months(name: str, data: Path, encoder: str, cache: str | None) -> Months:
    """The old and the later documents of a dataset."""
    settings = Settings(label_set(name), encoder=encoder, strong_share=1.0, cache=cache)
    settings = resolve(settings)
    documents = read_documents(name, data)
    draw = np.random.default_rng(5).permutation(len(documents.texts))
    texts, truth = documents.texts, documents.truth
    if name in ("dbpedia14", "yahoo"):  # their other sets are of another form
        old, new = draw[: len(draw) // 2], draw[len(draw) // 2 :]
        earlier, earlier_truth = [texts[i] for i in old], truth[old]
        texts, truth = [texts[i] for i in new], truth[new]
    else:
        train = read_documents(name, data, split="train", at_most=OLD)
        earlier, earlier_truth = train.texts, train.truth
    encoded = (encode_documents(each, settings) for each in (earlier, texts))
    return Months(settings, next(encoded), earlier_truth, next(encoded), truth)


def batches(truth: Labels, n_labels: int) -> dict[str, list[Labels]]:
    """Rows of batches, as before and with other shares of the labels."""
    draw, found = np.random.default_rng(1), dict[str, list[Labels]]()
    for size in (150, 600):
        found[f"as before, {size}"] = [draw.permutation(len(truth))[:size] for _ in range(DRAWS)]
    found["as before, all"] = [np.arange(len(truth))]
    for concentration, kind in ((5.0, "mild shift"), (1.0, "strong shift")):
        for size in (300, 1_200):
            for _ in range(DRAWS):
                shares = draw.dirichlet(np.full(n_labels, concentration))
                weights = (shares / np.bincount(truth, minlength=n_labels))[truth] + 1e-12
                rows = draw.choice(len(truth), size, replace=False, p=weights / weights.sum())
                found.setdefault(f"{kind}, {size}", []).append(rows)
    return found


def accuracies(months: Months) -> dict[str, list[tuple[float, float, float]]]:
    """Accuracy of each batch with the model kept, updated, and fitted on the batch."""
    old, found = fit(months.old, months.settings), dict[str, list[tuple[float, float, float]]]()
    for kind, draws in batches(months.new_truth, old.n_labels).items():
        for rows in draws:
            texts, truth = months.new.rows(rows), months.new_truth[rows]
            updated, _ = update(old, texts)
            scratch = fit(texts, months.settings).predictions
            kept = old.predict(texts.texts, texts.vectors)
            assert updated.predictions is not None
            assert scratch is not None
            each = (float((p.labels == truth).mean()) for p in (kept, updated.predictions, scratch))
            found.setdefault(kind, []).append((next(each), next(each), next(each)))
    return found


def first_alarms(months: Months) -> Counter[int]:
    """First month with an alarm, 0 for none, with each of some classes hidden from the fit."""
    found, labels = Counter[int](), months.settings.label_set
    for hidden in range(0, len(labels), -(-len(labels) // MOST_HIDDEN)):
        others = {each.name: each.phrases for i, each in enumerate(labels) if i != hidden}
        settings = Settings(
            others, encoder=months.settings.encoder, strong_share=1.0, cache=months.settings.cache
        )
        model = fit(months.old.rows(np.flatnonzero(months.old_truth != hidden)), settings)
        draw = np.random.default_rng(hidden)
        usual = draw.permutation(np.flatnonzero(months.new_truth != hidden))
        unusual = draw.permutation(np.flatnonzero(months.new_truth == hidden))
        size = min(MONTH, len(usual) // MONTHS)
        alarm = 0
        for month in range(1, MONTHS + 1):
            n_unusual = round(SHARE * size) if month >= APPEARS else 0
            rows = np.append(usual[: size - n_unusual], unusual[:n_unusual])
            usual, unusual = usual[size - n_unusual :], unusual[n_unusual:]
            model, drift = update(model, months.new.rows(rows))
            if drift.changed:
                alarm = month
                break
        print("hidden", labels.names[hidden], "month", alarm, drift, flush=True)
        found[alarm] += 1
    return found


def report(name: str, months: Months) -> tuple[list[str], list[str]]:
    """Rows of the two tables."""
    gains = []
    for kind, values in accuracies(months).items():
        kept, updated, scratch = 100 * np.array(values).T
        gains.append(
            f"| {name} | {kind} | {kept.mean():.1f} | {(updated - kept).mean():+.1f} "
            f"({(updated - kept).min():+.1f}) | {(scratch - kept).mean():+.1f} |"
        )
        print(gains[-1], flush=True)
    alarms = first_alarms(months)
    early = sum(count for month, count in alarms.items() if 0 < month < APPEARS)
    late = sum(count for month, count in alarms.items() if month > APPEARS)
    alarm = f"| {name} | {alarms.total()} | {early} | {alarms[APPEARS]} | {late} | {alarms[0]} |"
    print(alarm, flush=True)
    return gains, [alarm]


def main() -> None:
    """Print the tables, and write them."""
    parser: argparse.ArgumentParser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--only", nargs="*", choices=SETS, default=SETS)
    options = parser.parse_args()
    gains = [
        "| set | batch | kept | updated (worst) | fitted from nothing |",
        "|---|---|--:|--:|--:|",
    ]
    alarms = ["| set | classes hidden | before | fifth month | later | never |"]
    alarms += ["|---|--:|--:|--:|--:|--:|"]
    for name in options.only:
        more, others = report(name, read_months(name, options.data, options.encoder, options.cache))
        gains += more
        alarms += others
    if options.write is not None:
        replace_part(options.write, f"gains {options.encoder}", "\n".join(gains))
        replace_part(options.write, f"alarms {options.encoder}", "\n".join(alarms))


if __name__ == "__main__":
    main()
