"""How the refinements compare in many situations, with the labels of four datasets as the truth.

    python benchmarks/scenarios.py --data DIR [--encoder static] [--encoder minilm]
        [--cache VECTORS] [--quick] [--write docs/refinement.md]

These are the scenarios that the constants of ``method="mixture"`` were chosen on: AG News, DBpedia,
Yahoo Answers and 20 Newsgroups as they are; under ten other wordings of the labels; with few
documents; with skewed classes; with labels that have no documents; several datasets at once; and
with one name that does not fit. DIR is laid out as `four_datasets.py` says. All draws are seeded,
and a scenario's figure is the mean over its draws.

- "one step" gives every document the nearest label, then the nearest mean of these groups
- "BERTopic" is its zero-shot `transform` by formula, not by its package: the nearest mean of the
  documents whose cosine with their nearest label is above 0.3; further topics are left out
- "KMeans" is scikit-learn's on unit vectors, started at the labels
- "two-stage" is a plain version of the anchored clustering that ``mixture`` grew out of

`--quick` cuts a scenario to 1,000 documents and one draw, to try the script out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from ulr.encoders import CachedEncoder, Encoder, encode_texts, load_encoder
from ulr.experiments import DATASETS, Dataset, read_documents
from ulr.experiments.wordings import MAIN_NAMES
from ulr.metrics import calibration_error
from ulr.refine import calibrate, nearest, refine
from wordings import UNFITTING, ten_wordings

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

QUICK = 1_000
PAPER, OURS = "paper's ULR", "ours"
UNIONS = (
    ("DBpedia", "Yahoo Answers"),
    ("AG News", "20 Newsgroups"),
    ("Yahoo Answers", "20 Newsgroups"),
    ("DBpedia", "20 Newsgroups"),
    ("DBpedia", "Yahoo Answers", "20 Newsgroups"),
)
PLAIN = "as they are"


@dataclass(frozen=True, eq=False)
class Scenario:
    """One draw of a scenario: vectors of documents and of labels, and the label of each document.

    Attributes
    ----------
    group, name
        What kind of scenario, and on what; draws of one scenario share both.
    documents, labels
        (n_documents, n_dims) and (n_labels, n_dims).
    truth
        (n_documents,) label indices.
    """

    group: str
    name: str
    documents: Vectors
    labels: Vectors
    truth: Labels

    def only(self, rows: Labels, group: str) -> Scenario:
        """The same labels over some of the documents, in their order."""
        rows = np.sort(rows)
        return replace(self, group=group, documents=self.documents[rows], truth=self.truth[rows])


@dataclass(frozen=True)
class Outcome:
    """What came out of a scenario, in percent.

    Attributes
    ----------
    group, name, encoder
        Which scenario.
    accuracy
        Of each method.
    surest
        Accuracy of ours on the 80 % of the documents that it is surest of.
    error, raw_error
        Calibration error of ours, and of its posterior as it is; NaN where ours fell back.
    """

    group: str
    name: str
    encoder: str
    accuracy: dict[str, float]
    surest: float
    error: float
    raw_error: float


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Rows at length one; zero ones stay zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def memberships(labels: Labels, n_labels: int) -> Floats:
    """(n_documents, n_labels) with 1 where a document has a label."""
    return np.eye(n_labels)[labels]


# --- The methods


def nearest_label(documents: Vectors, labels: Vectors) -> Labels:
    """By cosine."""
    return nearest(documents, labels)[0]


def one_step(documents: Vectors, labels: Vectors, least: float = -1.0) -> Labels:
    """Nearest mean of the documents that the nearest label takes, if nearer than the least."""
    x, e = unit(documents), unit(labels)
    cosines = x @ e.T
    taken = memberships(cosines.argmax(axis=1), len(e)) * (cosines >= least)
    sums = taken.T @ x
    empty = ~sums.any(axis=1)
    if least > -1.0 and not empty.all():
        return np.where(empty, -np.inf, x @ unit(sums).T).argmax(axis=1)
    return (x @ unit(np.where(empty[:, None], e, sums)).T).argmax(axis=1)


def bertopic(documents: Vectors, labels: Vectors) -> Labels:
    """BERTopic's zero-shot transform by its formula; a label that nothing is near has no topic."""
    return one_step(documents, labels, least=0.3)


def kmeans(documents: Vectors, labels: Vectors) -> Labels:
    """Scikit-learn's KMeans from the labels."""
    found = KMeans(len(labels), init=unit(labels), n_init=1).fit(unit(documents)).labels_
    return np.asarray(found, dtype=np.intp)


def paper(documents: Vectors, labels: Vectors) -> Labels:
    """The paper's refinement."""
    return refine(documents, labels, method="ulr").predictions


def two_stage(documents: Vectors, labels: Vectors) -> Labels:
    """Clusters anchored at the names, then Gaussians with one covariance, tied to the clusters."""
    x, e = unit(documents), unit(labels)
    added = 0.1 * len(x) / len(e) + 40.0

    def log_prior(sizes: Floats) -> Floats:
        return np.log((sizes + added) / (len(x) + added * len(e)))

    found = (x @ e.T).argmax(axis=1)
    for _ in range(30):
        scores, sizes = anchored_scores(x, e, found)
        best = np.partition(scores, -2, axis=1)[:, -2:]
        lead = float((best[:, 1] - best[:, 0]).mean())
        before, found = found, (scores + 0.2 * lead * log_prior(sizes)).argmax(axis=1)
        if (found != before).mean() < 1e-3:
            break
    return tied_gaussians(x, memberships(found, len(e)), log_prior)


def anchored_scores(x: Floats, e: Floats, found: Labels) -> tuple[Floats, Floats]:
    """Cosines with the mean of cluster and name, and sizes; no document is in its own cluster."""
    taken = memberships(found, len(e))
    sizes, sums, rows = taken.sum(axis=0), taken.T @ x, np.arange(len(x))
    scores = x @ unit(np.where(sizes[:, None] > 0, unit(sums) + e, e)).T
    with_name, with_sum = (x @ e.T)[rows, found], (x @ sums.T)[rows, found]
    squares = np.einsum("ij,ij->i", x, x)
    lengths = np.sqrt(np.maximum((sums**2).sum(axis=1)[found] - 2 * with_sum + squares, 1e-9))
    towards_name = ((sums * e).sum(axis=1)[found] - with_name) / lengths
    blended = (with_sum - squares) / lengths + with_name
    without = blended / np.sqrt(np.maximum(2.0 + 2.0 * towards_name, 1e-9))
    scores[rows, found] = np.where(sizes[found] <= 1, with_name, without)
    return scores, sizes


def tied_gaussians(x: Floats, shares: Floats, log_prior: Callable[[Floats], Floats]) -> Labels:
    """Five steps of expectation and maximisation from given shares, (n_documents, n_labels)."""
    (n, n_dims), n_labels = x.shape, shares.shape[1]
    x = x - x.mean(axis=0)
    moments, strength = x.T @ x, n / n_labels
    tied = shares.T @ x / np.maximum(shares.sum(axis=0), 1.0)[:, None]
    for _ in range(5):
        sizes, sums = shares.sum(axis=0), shares.T @ x
        means = (sums + strength * tied) / (sizes + strength)[:, None]
        cross = sums.T @ means
        spread = (moments - cross - cross.T + (means.T * sizes) @ means) / n
        spread = 0.7 * spread + 0.3 * np.trace(spread) / n_dims * np.eye(n_dims)
        slopes = np.linalg.solve(spread, means.T)
        scores = x @ slopes - 0.5 * (means.T * slopes).sum(axis=0) + log_prior(sizes)
        shares = softmax(scores, axis=1)
    return shares.argmax(axis=1)


RIVALS: dict[str, Callable[[Vectors, Vectors], Labels]] = {
    "nearest label": nearest_label,
    "one step": one_step,
    "BERTopic": bertopic,
    "KMeans": kmeans,
    PAPER: paper,
    "two-stage": two_stage,
}


# --- The scenarios


def as_it_is(dataset: Dataset, data: Path, encoder: Encoder) -> tuple[Scenario, tuple[str, ...]]:
    """The whole of a dataset under the paper's names, and these names."""
    documents = read_documents(dataset.name, data)
    names = MAIN_NAMES[dataset.name]
    return Scenario(
        PLAIN,
        dataset.title,
        encode_texts(encoder, documents.texts),
        encode_texts(encoder, names),
        documents.truth,
    ), names


def of_each_class(truth: Labels, most: Labels, random: np.random.Generator) -> Labels:
    """At most so many documents of each class, drawn at random."""
    classes = [random.permutation(np.flatnonzero(truth == c))[:n] for c, n in enumerate(most)]
    return np.concatenate(classes)


def small(whole: Scenario, draws: Callable[[int], range]) -> Iterator[Scenario]:
    """Few documents a class, or in all."""
    n_labels = len(whole.labels)
    for most, times in ((15, 10), (40, 6), (300, 1)):
        for draw in draws(times):
            random = np.random.default_rng((500 if most == 300 else 100) + draw)
            rows = of_each_class(whole.truth, np.full(n_labels, most), random)
            yield whole.only(rows, f"{most} documents a class")
    for draw in draws(10):
        rows = np.random.default_rng(200 + draw).permutation(len(whole.truth))[:100]
        yield whole.only(rows, "100 documents in all")


def skewed(whole: Scenario, draws: Callable[[int], range]) -> Iterator[Scenario]:
    """Classes of very different sizes, and labels without documents."""
    n, places = len(whole.labels), np.arange(len(whole.labels))
    weights = {
        "Zipf-skewed classes": 1.0 / (places + 1.0),
        "every other class a tenth": np.where(places % 2 == 0, 1.0, 0.1),
        "half of the labels without documents": np.where(places < n - n // 2, 1.0, 0.0),
        "a quarter of the labels without": np.where(places < n - max(1, n // 4), 1.0, 0.0),
    }
    sizes = np.bincount(whole.truth, minlength=n)
    for group, weight in weights.items():
        for draw in draws(4):
            random = np.random.default_rng(300 + draw)
            share = weight[random.permutation(n)]
            most = np.maximum(np.round(share * np.median(sizes)), np.where(share > 0, 5, 0))
            yield whole.only(of_each_class(whole.truth, most.astype(np.intp), random), group)


def renamed(
    whole: Scenario, names: tuple[str, ...], encoder: Encoder, draws: Callable[[int], range]
) -> Iterator[Scenario]:
    """Other wordings of all labels, and a name that says nothing for one of them."""
    for number, wording in enumerate(ten_wordings(whole.name, names), 1):
        labels = encode_texts(encoder, wording)
        yield replace(whole, group="other wordings", name=f"{whole.name} {number}", labels=labels)
    for draw in draws(4):
        random = np.random.default_rng(400 + draw)
        word = UNFITTING[random.integers(len(UNFITTING))]
        labels = whole.labels.copy()
        labels[random.integers(len(labels))] = encode_texts(encoder, [word])[0]
        yield replace(whole, group="one name that does not fit", labels=labels)


def union(parts: list[Scenario]) -> Scenario:
    """Some documents of several datasets, and all of their labels."""
    rows = [np.random.default_rng(600).permutation(len(part.truth))[:3000] for part in parts]
    some = [part.only(few, PLAIN) for part, few in zip(parts, rows, strict=True)]
    first = np.cumsum([0, *(len(part.labels) for part in some)])
    return Scenario(
        "several datasets at once",
        " + ".join(part.name for part in some),
        np.concatenate([part.documents for part in some]),
        np.concatenate([part.labels for part in some]),
        np.concatenate([part.truth + start for part, start in zip(some, first, strict=False)]),
    )


def scenarios(
    wholes: dict[str, tuple[Scenario, tuple[str, ...]]], encoder: Encoder, quick: bool
) -> Iterator[Scenario]:
    """All scenarios, draw by draw."""

    def draws(times: int) -> range:
        return range(1 if quick else times)

    for whole, names in wholes.values():
        yield whole
        yield from renamed(whole, names, encoder, draws)
        yield from small(whole, draws)
        yield from skewed(whole, draws)
    for datasets in UNIONS:
        yield union([wholes[name][0] for name in datasets])


def cut(scenario: Scenario) -> Scenario:
    """The scenario with no more documents than a quick run has."""
    rows = np.random.default_rng(900).permutation(len(scenario.truth))[:QUICK]
    return scenario.only(rows, scenario.group)


# --- The figures


def measure(scenario: Scenario, encoder: str) -> Outcome:
    """Every method on one scenario, and how well ours knows how sure to be."""
    documents, labels, truth = scenario.documents, scenario.labels, scenario.truth
    accuracy = {
        name: 100.0 * float((method(documents, labels) == truth).mean())
        for name, method in RIVALS.items()
    }
    found = refine(documents, labels, method="mixture")
    right = found.predictions == truth
    accuracy[OURS] = 100.0 * float(right.mean())
    scores = found.scores.astype(np.float64)
    sharpness = calibrate(documents, labels, found, method="mixture")
    sure = softmax(sharpness * scores, axis=1).max(axis=1)
    raw = float("nan")
    if found.rule is not None:
        raw = calibration_error(right, softmax(scores, axis=1).max(axis=1), 15)
    surest = np.argsort(-sure, kind="stable")[: int(0.8 * len(sure))]
    return Outcome(
        scenario.group,
        scenario.name,
        encoder,
        accuracy,
        surest=100.0 * float(right[surest].mean()),
        error=100.0 * calibration_error(right, sure, 15),
        raw_error=100.0 * raw,
    )


def held_back(whole: Scenario) -> dict[str, float]:
    """AUROC of finding the documents of a label without a name, by each basis; mean over labels."""
    found: dict[str, list[float]] = {}
    x, rows = unit(whole.documents), np.arange(len(whole.truth))
    for label in np.unique(whole.truth):
        labels = np.delete(whole.labels, label, axis=0)
        refinement = refine(whole.documents, labels, method="mixture")
        sharpness = calibrate(whole.documents, labels, refinement, method="mixture")
        scores = refinement.scores.astype(np.float64)
        best = np.sort(scores, axis=1)
        cosines = x @ unit(labels).T
        bases = {
            "cosine with the predicted name": cosines[rows, refinement.predictions],
            "cosine with the nearest name": cosines.max(axis=1),
            "confidence": softmax(sharpness * scores, axis=1).max(axis=1),
            "lead over the next label": best[:, -1] - best[:, -2],
        }
        for basis, likeness in bases.items():
            auroc = float(roc_auc_score(whole.truth == label, -likeness))
            found.setdefault(basis, []).append(auroc)
    return {basis: float(np.mean(each)) for basis, each in found.items()}


def over_draws(outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome a scenario: the mean over its draws."""
    together: dict[tuple[str, str, str], list[Outcome]] = {}
    for each in outcomes:
        together.setdefault((each.encoder, each.group, each.name), []).append(each)
    return [
        replace(
            draws[0],
            accuracy={m: mean([each.accuracy[m] for each in draws]) for m in draws[0].accuracy},
            surest=mean([each.surest for each in draws]),
            error=mean([each.error for each in draws]),
            raw_error=mean([each.raw_error for each in draws]),
        )
        for draws in together.values()
    ]


def mean(figures: list[float]) -> float:
    """The mean of those figures that there are."""
    known = [figure for figure in figures if figure == figure]
    return float(np.mean(known)) if known else float("nan")


# --- The report


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def in_groups(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by group, and all of them at the end."""
    groups = list(dict.fromkeys(each.group for each in outcomes))
    parts = {group: [each for each in outcomes if each.group == group] for group in groups}
    named = {f"{group} ({len(part)})": part for group, part in parts.items()}
    return named | {f"**all ({len(outcomes)})**": outcomes}


def accuracy_table(outcomes: list[Outcome]) -> str:
    """Mean accuracy of each method by group, and how it stands to the paper's."""
    methods = [*RIVALS, OURS]
    plain = [each for each in outcomes if each.group == PLAIN]
    single = plain if len({each.encoder for each in outcomes}) == 1 else []
    parts = {each.name: [each] for each in single} | in_groups(outcomes)
    rows = [
        [name, *(f"{mean([each.accuracy[m] for each in part]):.1f}" for m in methods)]
        for name, part in parts.items()
    ]

    def gains(method: str, part: list[Outcome]) -> list[float]:
        return [each.accuracy[method] - each.accuracy[PAPER] for each in part]

    worse = {m: [gain for gain in gains(m, outcomes) if gain < -0.5] for m in methods}
    rows.append([f"gain on {PLAIN}", *(f"{mean(gains(m, plain)):+.1f}" for m in methods)])
    rows.append(["more than 0.5 below the paper's", *(str(len(worse[m])) for m in methods)])
    rows.append(["worst, to the paper's", *(f"{min(gains(m, outcomes)):+.1f}" for m in methods)])
    return markdown(["", *methods], rows)


def confidence_table(outcomes: list[Outcome]) -> str:
    """How well ours knows how sure to be, by group."""
    head = ["", "accuracy", "of the surest 80 %", "calibration error", "of the raw posterior"]
    rows = []
    for name, part in in_groups(outcomes).items():
        figures = [(e.accuracy[OURS], e.surest, e.error, e.raw_error) for e in part]
        rows.append([name, *(f"{mean(list(each)):.1f}" for each in zip(*figures, strict=True))])
    return markdown(head, rows)


def held_back_table(found: dict[str, dict[str, float]]) -> str:
    """AUROC of each basis on each dataset."""
    bases = list(next(iter(found.values())))
    rows = [[name, *(f"{each[b]:.3f}" for b in bases)] for name, each in found.items()]
    means = [f"**{mean([each[b] for each in found.values()]):.3f}**" for b in bases]
    return markdown(["", *bases], [*rows, ["**mean**", *means]])


def report(
    draws: list[Outcome], found: dict[str, dict[str, float]], encoders: list[str], quick: bool
) -> str:
    """All tables, from the outcomes of single draws."""
    scope = f" Quick: at most {QUICK:,} documents, one draw." if quick else ""
    gains = [each.accuracy[OURS] - each.accuracy[PAPER] for each in draws]
    parts = [
        "Accuracy in percent, means over the draws of a scenario; in brackets the number of "
        f"scenarios. Of {len(draws)} single draws, ours is more than 0.5 below the paper's in "
        f"{sum(gain < -0.5 for gain in gains)}, the worst by {-min(gains):.1f}.{scope}"
    ]
    outcomes = over_draws(draws)
    for encoder in encoders:
        own = [each for each in outcomes if each.encoder == encoder]
        parts += [f"### Accuracy with `{encoder}`", accuracy_table(own)]
        parts += [f"### Confidence with `{encoder}`", confidence_table(own)]
    if len(encoders) > 1:
        parts += ["### Accuracy with all encoders", accuracy_table(outcomes)]
        parts += ["### Confidence with all encoders", confidence_table(outcomes)]
    parts += ["### A label without a name: AUROC of finding its documents", held_back_table(found)]
    return "\n\n".join(parts)


def main() -> None:
    """Measure, print, and write the report where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--cache", help="folder to keep vectors in")
    parser.add_argument("--quick", action="store_true", help="few documents, one draw")
    parser.add_argument("--write", type=Path, help="Markdown page whose scenarios are replaced")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    found: dict[str, dict[str, float]] = {}
    encoders = options.encoder or ["static"]
    with threadpool_limits(1):  # so that the rivals' sums do not depend on the machine's cores
        for name in encoders:
            encoder = load_encoder(name)
            if not isinstance(encoder, Encoder):
                raise SystemExit(f"{name} gives no vectors of texts; use an encoder that does.")
            if options.cache:
                encoder = CachedEncoder(encoder, options.cache)
            wholes = {
                each.title: as_it_is(each, options.data, encoder) for each in DATASETS.values()
            }
            for scenario in scenarios(wholes, encoder, options.quick):
                outcomes.append(measure(cut(scenario) if options.quick else scenario, name))
                told = f"{name}: {scenario.group}, {scenario.name}"
                print(told, file=sys.stderr, flush=True)
            for dataset, (whole, _) in wholes.items():
                found[f"{dataset}, {name}"] = held_back(cut(whole) if options.quick else whole)
    text = report(outcomes, found, encoders, options.quick)
    print(text)
    if options.write:
        from ulr.experiments.pages import replace_part

        replace_part(options.write, "scenarios", text)


if __name__ == "__main__":
    main()
