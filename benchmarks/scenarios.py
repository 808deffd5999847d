"""Accuracy, calibration and warnings of the refinement methods in many situations.

    python -m benchmarks.scenarios --data DIR [--encoder static] [--encoder minilm]
        [--encoder static+minilm] [--further FOLDER] [--held-out FOLDER] [--cache VECTORS]
        [--results FILE.jsonl] [--quick] [--constants NAME=VALUE] [--sensitivity]
        [--write docs/scenarios.md]

DIR holds AG News, DBpedia, Yahoo Answers, 20 Newsgroups, Reuters-8, tweet sentiment, and questions
and titles from Stack Exchange and Reddit, in the layout of `read_corpus`. Each dataset is encoded
once. Scenarios are drawn with fixed seeds; the figure of a scenario is the mean over its draws. The
true labels are used to draw documents and to report, never by a method.

- "one step": the nearest label, then the nearest mean of the documents of each label
- "KMeans": scikit-learn's KMeans on unit vectors, started at the labels
- "two-stage": hard clusters anchored at the labels, then Gaussians with one shared covariance
- "default": the default method on vectors alone; "with words": with word counts, as the classifier

FOLDER holds further datasets, one folder each: ``data.jsonl`` with a text and the number of its label
on each line, and ``labels.txt`` with a name, or a name and a phrase, on each line. Nothing was chosen
on those that are held out. docs/scenarios.md says where those come from that were measured.

Results are kept in the file of `--results`, by a digest of the inputs, the versions and the sources
of the methods and the constants, so that a stopped run continues. `--quick` uses at most 1,000
documents and one draw. `--sensitivity` halves and doubles each constant of the default on a reduced
set of scenarios.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import ulr.refinement
from benchmarks.measuring import markdown
from benchmarks.phrasings import UNFITTING, ten_phrasings
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import MAIN_NAMES
from ulr.classifier import count_words
from ulr.encoders import CachedEncoder, Encoder, JoinedEncoder, encode_texts, load_encoder
from ulr.files import atomic_file
from ulr.metrics import calibration_error
from ulr.refinement import METHODS, Diagnosis, Refinement, calibrate, refine
from ulr.refinement.constants import Constants

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Labels = NDArray[np.intp]
Row = dict[str, Any]

QUICK = 1_000
NEAREST, PAPER, DEFAULT, WORDS = "nearest label", "paper's", "default", "with words"
AS_IS, MANY = "as is", "many labels"
OVERTURNED, OTHERS = "called overturned", "others"
FURTHER, HELD_OUT = "further datasets", "held-out datasets"
ORIGINAL = ("AG News", "DBpedia", "Yahoo Answers", "20 Newsgroups")
SIX = (*ORIGINAL, "Reuters-8", "Tweet sentiment")
UNIONS = (
    ("DBpedia", "Yahoo Answers"),
    ("AG News", "20 Newsgroups"),
    ("Yahoo Answers", "20 Newsgroups"),
    ("DBpedia", "20 Newsgroups"),
    ("AG News", "Reuters-8"),
)
LARGE_UNIONS = (
    ("DBpedia", "Yahoo Answers", "20 Newsgroups"),
    ("DBpedia", "Yahoo Answers", "20 Newsgroups", "Reddit, 100"),
)
SUBREDDITS = """
politics gaming atheism canada environment Libertarian science Android comics Music lgbt programming
Economics soccer movies starcraft guns conspiracy energy australia hockey linux apple space books
Health history Anarchism Israel baseball food nba education bicycling scifi nfl Art Fitness
architecture Military feminisms Design law japan web_design india netsec beer Python exmormon
pokemon climateskeptics nyc nature ireland Conservative Scotland motorcycles rpg Seattle
Christianity socialism gadgets gamedev anime Documentaries Frugal cannabis javascript LosAngeles
france PS3 writing psychology vegan texas toronto iphone women Drugs Guitar sex Minecraft
comicbooks biology aviation Metal Autos Buddhism Cricket running math islam photography travel dogs
cats philosophy ruby Cooking fashion horror
""".split()
PER_SUBREDDIT, STACK_EXCHANGE, FURTHER_DOCUMENTS = 60, 3_000, 1_000
MORE_PHRASINGS = {
    "Reuters-8": (
        "acq; crude; earn; grain; interest; money-fx; ship; trade",
        "company takeovers; petroleum; company profits; wheat and corn; central bank interest "
        "rates; currency market; ports and vessels; international trade",
        "merger; oil; quarterly results; agriculture; bank rates; dollar; ships; imports exports",
    ),
    "Tweet sentiment": ("bad; okay; good", "unhappy; matter of fact; happy", "anger; news; joy"),
}
# Per dataset, the number of a label and a related word that means something else.
MISLEADING = {
    "AG News": ((0, "travel"), (2, "politics")),
    "DBpedia": ((3, "stadium"), (11, "concert")),
    "Yahoo Answers": ((2, "food"), (7, "art history")),
    "20 Newsgroups": ((14, "aviation"), (9, "american football")),
    "Reuters-8": ((2, "wages"), (6, "air traffic")),
    "Tweet sentiment": ((1, "boring"), (0, "politics")),
}


@dataclass(frozen=True, eq=False)
class Scenario:
    """Encoded documents and labels, with the true label of each document.

    Attributes
    ----------
    group, name, draw
        The kind of scenario, the dataset, and the number of the draw.
    documents, anchors
        (n_documents, n_dims) and (n_labels, n_dims).
    truth
        (n_documents,) label indices.
    counts
        (n_documents, n_words) word counts.
    """

    group: str
    name: str
    documents: Vectors
    anchors: Vectors
    truth: Labels
    counts: csr_matrix
    draw: int = 0

    def select(self, rows: Labels, group: str, draw: int = 0) -> Scenario:
        """The scenario with some of the documents, in the order given."""
        return replace(
            self,
            group=group,
            documents=self.documents[rows],
            truth=self.truth[rows],
            counts=self.counts[rows],
            draw=draw,
        )

    def at_most(self, n_documents: int) -> Scenario:
        """The scenario with no more than some number of documents."""
        if len(self.truth) <= n_documents:
            return self
        rows = np.random.default_rng(900).permutation(len(self.truth))[:n_documents]
        return self.select(np.sort(rows), self.group, self.draw)

    def digest(self) -> str:
        """A hash of all inputs."""
        found = hashlib.sha256(f"{self.group}/{self.name}/{self.draw}".encode())
        for array in (self.documents, self.anchors, self.truth, self.counts.indices):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:20]


# --- Rival methods


def one_step(documents: Vectors, anchors: Vectors) -> Labels:
    """Nearest mean of the documents that each label is nearest to."""
    x, e = normalize(documents.astype(np.float64)), normalize(anchors.astype(np.float64))
    sums = np.eye(len(e))[(x @ e.T).argmax(axis=1)].T @ x
    return (x @ normalize(np.where(sums.any(axis=1, keepdims=True), sums, e)).T).argmax(axis=1)


def kmeans(documents: Vectors, anchors: Vectors) -> Labels:
    """Scikit-learn's KMeans, started at the labels; one step with fewer documents than labels."""
    if len(documents) < len(anchors):
        return one_step(documents, anchors)
    x, e = normalize(documents.astype(np.float64)), normalize(anchors.astype(np.float64))
    return np.asarray(KMeans(len(e), init=e, n_init=1).fit(x).labels_, dtype=np.intp)


def two_stage(documents: Vectors, anchors: Vectors) -> Labels:
    """Anchored leave-one-out clusters, then Gaussians with one covariance tied to the clusters."""
    x, e = normalize(documents.astype(np.float64)), normalize(anchors.astype(np.float64))
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
    return tied_gaussians(x, np.eye(len(e))[found], log_prior)


def anchored_scores(x: Floats, e: Floats, found: Labels) -> tuple[Floats, Floats]:
    """Leave-one-out cosines with the mean of cluster and anchor, and the cluster sizes."""
    taken = np.eye(len(e))[found]
    sizes, sums, rows = taken.sum(axis=0), taken.T @ x, np.arange(len(x))
    scores = x @ normalize(np.where(sizes[:, None] > 0, normalize(sums) + e, e)).T
    with_name, with_sum = (x @ e.T)[rows, found], (x @ sums.T)[rows, found]
    squares = np.einsum("ij,ij->i", x, x)
    lengths = np.sqrt(np.maximum((sums**2).sum(axis=1)[found] - 2 * with_sum + squares, 1e-9))
    towards_name = ((sums * e).sum(axis=1)[found] - with_name) / lengths
    blended = (with_sum - squares) / lengths + with_name
    without = blended / np.sqrt(np.maximum(2.0 + 2.0 * towards_name, 1e-9))
    scores[rows, found] = np.where(sizes[found] <= 1, with_name, without)
    return scores, sizes


def tied_gaussians(x: Floats, shares: Floats, log_prior: Callable[[Floats], Floats]) -> Labels:
    """Five EM steps from a given posterior, (n_documents, n_labels)."""
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
    NEAREST: lambda documents, anchors: refine(documents, anchors, method="none").predictions,
    "one step": one_step,
    "KMeans": kmeans,
    "two-stage": two_stage,
    PAPER: lambda documents, anchors: refine(documents, anchors, method="ulr").predictions,
}
COLUMNS = (*RIVALS, DEFAULT, WORDS)


# --- Datasets


def read_corpus(title: str, data: Path) -> tuple[list[str], Labels, list[str]]:
    """Texts, true labels and label phrases of a dataset."""
    for dataset in DATASETS.values():
        if dataset.title == title:
            documents = read_documents(dataset.name, data)
            return documents.texts, documents.truth, list(MAIN_NAMES[dataset.name])
    if title.startswith("Reddit"):
        return read_reddit(data / "natcat", SUBREDDITS[: int(title.split()[-1])])
    if title == "Stack Exchange":
        rows = read_lines(data / "natcat" / "stackexchange_questions.jsonl")
        drawn = np.random.default_rng(800).permutation(len(rows))[:STACK_EXCHANGE]
        rows = [rows[place] for place in np.sort(drawn)]
        names = sorted({row["label"] for row in rows})
        phrases = names
    else:
        folder = data / title.lower().replace("-", "").replace(" ", "_")
        rows = read_lines(next(folder.glob("test*.jsonl")))
        lines = (folder / "labels.txt").read_text(encoding="utf-8").split("\n")
        pairs = [line.partition(":") for line in lines if line.strip()]
        names = [name.strip() for name, _, _ in pairs]
        phrases = [(phrase or name).strip() for name, _, phrase in pairs]
    truth = np.array([names.index(row["label"]) for row in rows], dtype=np.intp)
    return [row["text"] for row in rows], truth, phrases


def read_lines(path: Path) -> list[Row]:
    """The objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_reddit(folder: Path, names: Sequence[str]) -> tuple[list[str], Labels, list[str]]:
    """The first titles of each of some subreddits; the phrase is the name, split into words."""
    texts, truth = [], []
    places, taken = {name: place for place, name in enumerate(names)}, Counter[str]()
    for path in sorted(folder.glob("reddit.train.tsv*.data")):
        for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n"):
            name, *_, text = line.split("\t")
            if name in places and taken[name] < PER_SUBREDDIT:
                taken[name] += 1
                texts.append(text)
                truth.append(places[name])
    phrases = [re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower() for name in names]
    return texts, np.array(truth, dtype=np.intp), phrases


# --- Scenarios


def all_scenarios(data: Path, encoder: Encoder, quick: bool) -> Iterator[Scenario]:
    """Every scenario of one encoder, draw by draw."""

    def draws(number: int) -> range:
        return range(1 if quick else number)

    whole: dict[str, Scenario] = {}
    phrases: dict[str, list[str]] = {}
    for title in (*SIX, "Stack Exchange", "Reddit, 50", "Reddit, 100"):
        texts, truth, phrases[title] = read_corpus(title, data)
        vectors, anchors = encode_texts(encoder, texts), encode_texts(encoder, phrases[title])
        group = MANY if title.startswith("Reddit") else AS_IS
        whole[title] = Scenario(group, title, vectors, anchors, truth, count_words(texts))
    yield from whole.values()
    for title in SIX:
        yield from renamed(whole[title], phrases[title], encoder, draws)
        yield from few_documents(whole[title], draws)
        yield from skewed(whole[title], draws)
    for titles in UNIONS:
        yield union([whole[title] for title in titles], "unions of datasets")
    large = [union([whole[title] for title in titles], MANY) for titles in LARGE_UNIONS]
    yield from large
    for scenario in (*large, whole["Reddit, 50"], whole["Reddit, 100"]):
        for draw in draws(5):
            rows = np.random.default_rng(250 + draw).permutation(len(scenario.truth))[:100]
            yield scenario.select(rows, "100 documents over many labels", draw)


def further_datasets(folder: Path, encoder: Encoder, group: str) -> Iterator[Scenario]:
    """At most 1,000 documents of each dataset in a folder."""
    for path in sorted(each for each in folder.iterdir() if each.is_dir()):
        rows = read_lines(path / "data.jsonl")
        drawn = np.random.default_rng(5).permutation(len(rows))[:FURTHER_DOCUMENTS]
        rows = [rows[place] for place in np.sort(drawn)]
        lines = (path / "labels.txt").read_text(encoding="utf-8").split("\n")
        pairs = [line.partition(":") for line in lines if line.strip()]
        phrases = [(phrase or name).strip() for name, _, phrase in pairs]
        texts = [row["text"] for row in rows]
        truth = np.array([row["label"] for row in rows], dtype=np.intp)
        vectors, anchors = encode_texts(encoder, texts), encode_texts(encoder, phrases)
        yield Scenario(group, path.name, vectors, anchors, truth, count_words(texts))


def renamed(
    whole: Scenario, phrases: list[str], encoder: Encoder, draws: Callable[[int], range]
) -> Iterator[Scenario]:
    """Other phrasings of all labels, and one bad phrase."""
    if whole.name in MORE_PHRASINGS:
        sets = [line.split("; ") for line in MORE_PHRASINGS[whole.name]]
    else:
        sets = [list(each) for each in ten_phrasings(whole.name, tuple(phrases))]
    for number, phrasing in enumerate(sets, 1):
        anchors = encode_texts(encoder, phrasing)
        name = f"{whole.name}, set {number}"
        yield replace(whole, group="other phrasings", name=name, anchors=anchors)
    for draw in draws(3):
        random = np.random.default_rng(400 + draw)
        bad = phrases.copy()
        word = UNFITTING[random.integers(len(UNFITTING))]
        bad[random.integers(len(bad))] = word
        anchors = encode_texts(encoder, bad)
        yield replace(whole, group="one unfitting name", anchors=anchors, draw=draw)
    for label, word in MISLEADING[whole.name]:
        bad = [*phrases[:label], word, *phrases[label + 1 :]]
        name = f"{whole.name}, {word} for {phrases[label]}"
        anchors = encode_texts(encoder, bad)
        yield replace(whole, group="one misleading name", name=name, anchors=anchors)


def few_documents(whole: Scenario, draws: Callable[[int], range]) -> Iterator[Scenario]:
    """Random samples of 100, 300 and 1,000 documents."""
    for number, n_draws in ((100, 6), (300, 4), (1_000, 2)):
        for draw in draws(n_draws):
            rows = np.random.default_rng(200 + draw).permutation(len(whole.truth))[:number]
            yield whole.select(np.sort(rows), f"{number:,} documents", draw)


def skewed(whole: Scenario, draws: Callable[[int], range]) -> Iterator[Scenario]:
    """Classes of very different sizes, and labels without documents."""
    n, places = len(whole.anchors), np.arange(len(whole.anchors))
    sizes = np.bincount(whole.truth, minlength=n)
    median = float(np.median(sizes))
    large = np.array([0.5, 1 / 3, *np.full(n - 2, 1 / 6 / (n - 2))])
    weights = {
        "Zipf-skewed classes": median / (places + 1.0),
        "every other class a tenth": median * np.where(places % 2 == 0, 1.0, 0.1),
        "half of the labels without documents": median * (places < n - n // 2),
        "one class half, one a third": large,
    }
    for group, weight in weights.items():
        for draw in draws(3):
            random = np.random.default_rng(300 + draw)
            most = weight[random.permutation(n)]
            if weight is large:
                two = np.argsort(-most)[:2]
                most = most * min(sizes[two] / most[two])
            most = np.maximum(np.round(most), np.where(most > 0, 5, 0)).astype(np.intp)
            drawn = [
                random.permutation(np.flatnonzero(whole.truth == label))[:number]
                for label, number in enumerate(most)
            ]
            yield whole.select(np.sort(np.concatenate(drawn)), group, draw)


def union(parts: list[Scenario], group: str) -> Scenario:
    """At most 3,000 documents of each of several datasets, with all of their labels."""
    some = [part.at_most(3_000) for part in parts]
    first = np.cumsum([0, *(len(part.anchors) for part in some)])
    return Scenario(
        group,
        " + ".join(part.name for part in some),
        np.concatenate([part.documents for part in some]),
        np.concatenate([part.anchors for part in some]),
        np.concatenate([part.truth + start for part, start in zip(some, first, strict=False)]),
        vstack([part.counts for part in some], format="csr"),
    )


# --- Measurements


def percent(right: NDArray[np.bool_]) -> float:
    """Share of correct predictions, in percent."""
    return 100.0 * float(right.mean())


def refine_default(scenario: Scenario, constants: Constants, method: str = WORDS) -> Refinement:
    """The default method on vectors alone or with words."""
    counts = scenario.counts if method == WORDS else None
    return refine(scenario.documents, scenario.anchors, word_counts=counts, constants=constants)


def measure(scenario: Scenario, constants: Constants) -> Row:
    """Accuracy of every method, and calibration and diagnosis of the default with words."""
    x, anchors, truth = scenario.documents, scenario.anchors, scenario.truth
    accuracy = {name: percent(method(x, anchors) == truth) for name, method in RIVALS.items()}
    vectors_alone = refine_default(scenario, constants, DEFAULT)
    found = refine_default(scenario, constants)
    right = found.predictions == truth
    accuracy |= {DEFAULT: percent(vectors_alone.predictions == truth), WORDS: percent(right)}
    temperature = calibrate(x, anchors, found, word_counts=scenario.counts, constants=constants)
    probabilities = softmax(found.scores.astype(np.float64) / temperature, axis=1)
    confidence = np.where(found.predictions < 0, 0.0, probabilities.max(axis=1)).round(4)
    assert found.diagnosis is not None
    expected = float(confidence[confidence > 0].mean())
    diagnosis = replace(found.diagnosis, expected_accuracy=expected)
    return {
        "accuracy": accuracy,
        "error": 100.0 * calibration_error(right, confidence),
        "noise": 100.0 * calibration_noise(confidence),
        "confidence": percent(confidence),
        "trusted": diagnosis.trusted,
        "warnings": list(diagnosis.warnings),
        "fit": diagnosis.fit,
        "overturned": overturned_labels(diagnosis, found.predictions, truth),
        "order": changed_by_order(scenario, constants) if scenario.group == AS_IS else {},
    }


def overturned_labels(
    diagnosis: Diagnosis, predictions: Labels, truth: Labels
) -> dict[str, list[int]]:
    """Labels that the diagnosis calls overturned, and others: how many, and how many are poor.

    Labels of fewer than ten documents are not counted.
    """
    n_labels = len(diagnosis.labels)
    f1 = f1_score(truth, predictions, labels=range(n_labels), average=None, zero_division=0)
    true_sizes = np.bincount(truth, minlength=n_labels)
    poor: dict[str, list[int]] = {OVERTURNED: [], OTHERS: []}
    for label, true_size, score in zip(diagnosis.labels, true_sizes, f1, strict=True):
        if max(true_size, label.after) >= 10:
            named = label.overturned and diagnosis.refined
            poor[OVERTURNED if named else OTHERS].append(score < 0.5)
    return {name: [len(each), int(sum(each))] for name, each in poor.items()}


def calibration_noise(confidence: Floats) -> float:
    """Calibration error that perfect confidences would have by chance, with as many documents."""
    random = np.random.default_rng(700)
    drawn = [random.random(len(confidence)) < confidence for _ in range(20)]
    return mean([calibration_error(right, confidence) for right in drawn])


def changed_by_order(scenario: Scenario, constants: Constants) -> dict[str, int]:
    """Documents whose label depends on the order, on vectors alone and with words."""
    by_class = np.argsort(scenario.truth, kind="stable")
    within = np.concatenate([np.arange(n) for n in np.bincount(scenario.truth)])
    orders = {"sorted": by_class, "interleaved": by_class[np.argsort(within, kind="stable")]}
    changed = {}
    for method in (DEFAULT, WORDS):
        original = refine_default(scenario, constants, method).predictions
        for name, order in orders.items():
            again = refine_default(scenario.select(order, AS_IS), constants, method).predictions
            changed[f"{method}, {name}"] = int((again != original[order]).sum())
    return changed


class Results:
    """Measurements in a JSON Lines file, one per scenario draw."""

    def __init__(self, path: Path | None, constants: Constants) -> None:
        self._path, self._constants = path, constants
        versions = {name: method.version for name, method in METHODS.items()}
        key = hashlib.sha256(f"{versions} {constants}".encode())
        for source in sorted(Path(ulr.refinement.__file__).parent.glob("*.py")):
            key.update(source.read_bytes())  # a version may not have been increased yet
        self._key = key.hexdigest()[:12]
        rows = read_lines(path) if path and path.exists() else []
        self._rows = {row["key"]: row for row in rows}

    def get(self, encoder: str, scenario: Scenario) -> Row:
        """The measurement of a scenario, from the file where it has one."""
        key = f"{self._key}-{encoder}-{scenario.digest()}"
        if key not in self._rows:
            about: Row = {"key": key, "encoder": encoder, "group": scenario.group}
            about |= {"name": scenario.name, "draw": scenario.draw}
            about |= {"n_documents": len(scenario.truth), "n_labels": len(scenario.anchors)}
            self._rows[key] = about | measure(scenario, self._constants)
            if self._path:
                with self._path.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(self._rows[key]) + "\n")
        return self._rows[key]


# --- Tables


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return float(np.mean(values)) if len(values) else float("nan")


def over_draws(rows: list[Row]) -> list[Row]:
    """One row per scenario, the mean over its draws."""
    together: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        together.setdefault((row["encoder"], row["group"], row["name"]), []).append(row)
    return [
        draws[0]
        | {"accuracy": {m: mean([row["accuracy"][m] for row in draws]) for m in COLUMNS}}
        | {name: mean([row[name] for row in draws]) for name in ("error", "noise", "confidence")}
        for draws in together.values()
    ]


def in_groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by group, then of each encoder, then all."""
    groups: dict[str, list[Row]] = {row["group"]: [] for row in rows}
    groups |= {f"`{row['encoder']}`": [] for row in rows}
    for row in rows:
        groups[row["group"]].append(row)
        groups[f"`{row['encoder']}`"].append(row)
    return {f"{name} ({len(part)})": part for name, part in groups.items()} | {
        f"**all ({len(rows)})**": rows
    }


def dataset_table(rows: list[Row], encoders: list[str]) -> str:
    """Accuracy on each dataset as it is."""
    shown = (NEAREST, PAPER, DEFAULT, WORDS)
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["group"] in (AS_IS, MANY):
            figures = " / ".join(f"{row['accuracy'][method]:.1f}" for method in shown)
            name = f"{row['name']} ({row['n_labels']} labels)"
            cells.setdefault(name, {})[row["encoder"]] = figures
    table = [[name, *(each.get(e, "") for e in encoders)] for name, each in cells.items()]
    return markdown(["", *(f"`{encoder}`" for encoder in encoders)], table)


def group_table(rows: list[Row]) -> str:
    """Mean accuracy of each method by group."""
    table = [
        [name, *(f"{mean([row['accuracy'][m] for row in part]):.1f}" for m in COLUMNS)]
        for name, part in in_groups(rows).items()
    ]
    return markdown(["", *COLUMNS], table)


def safety_table(rows: list[Row]) -> str:
    """How far each variant of the default is below the simple methods, with the names."""
    parts = []
    for method in (DEFAULT, WORDS):
        gaps = [
            (
                row["accuracy"][method] - max(row["accuracy"][NEAREST], row["accuracy"][PAPER]),
                row["accuracy"][method] - row["accuracy"][PAPER],
                f"{row['group']}, {row['name']}, `{row['encoder']}`",
            )
            for row in rows
        ]
        worst = min(gaps)
        below = sorted(gap for gap in gaps if gap[0] < -3.0 or gap[1] < -1.0)
        lines = [
            f"**{method}**: {len(gaps)} scenarios; worst {worst[0]:+.1f} against the better of "
            f"nearest label and paper's ({worst[2]}); more than 3 below it: "
            f"{sum(gap[0] < -3.0 for gap in gaps)}; more than 1 below the paper's: "
            f"{sum(gap[1] < -1.0 for gap in gaps)}."
        ]
        if below:
            table = [[name, f"{best:+.1f}", f"{paper:+.1f}"] for best, paper, name in below]
            head = ["scenario", "to the better of both", "to the paper's"]
            lines.append(markdown(head, table))
        parts += lines
    return "\n\n".join(parts)


def calibration_table(rows: list[Row]) -> str:
    """Expected calibration error of the default with words, by group and on each dataset."""
    datasets = {
        f"{row['name']}, `{row['encoder']}`": [row] for row in rows if row["group"] == AS_IS
    }
    table = [
        [
            name,
            f"{mean([row['accuracy'][WORDS] for row in part]):.1f}",
            f"{mean([row['confidence'] for row in part]):.1f}",
            f"{mean([row['error'] for row in part]):.1f}",
            f"{mean([row['noise'] for row in part]):.1f}",
        ]
        for name, part in (in_groups(rows) | datasets).items()
    ]
    return markdown(["", "accuracy", "mean confidence", "calibration error", "by chance"], table)


def diagnosis_table(rows: list[Row]) -> str:
    """Warnings against the truth, per draw."""

    def is_bad(row: Row) -> bool:
        accuracy = row["accuracy"][WORDS]
        return bool(accuracy < 50.0 or accuracy < row["accuracy"][NEAREST] - 2.0)

    table = []
    alarms = {
        "not trusted": [not row["trusted"] for row in rows],
        "any warning": [bool(row["warnings"]) for row in rows],
    }
    for name, given in alarms.items():
        found = Counter(zip(map(is_bad, rows), given, strict=True))
        counts = [found[True, True], found[True, False], found[False, True], found[False, False]]
        table.append([name, *map(str, counts)])
    results = markdown(["", "hits", "misses", "false alarms", "rightly silent"], table)
    sums = {
        name: np.sum([row["overturned"][name] for row in rows], axis=0).tolist()
        for name in (OVERTURNED, OTHERS)
    }
    table = [
        [name, f"{n:,}", f"{poor:,}", f"{100 * poor / max(n, 1):.0f} %"]
        for name, (n, poor) in sums.items()
    ]
    return f"{results}\n\n{markdown(['labels', 'in all', 'F1 below 50 %', ''], table)}"


def further_table(rows: list[Row], encoder: str) -> str:
    """Accuracy, confidence and warnings on further datasets with one encoder."""
    shown = [row for row in rows if row["encoder"] == encoder]
    methods = (NEAREST, PAPER, DEFAULT, WORDS)
    table = [
        [
            f"{row['name'].replace('_', ' ')} ({row['n_labels']})",
            *(f"{row['accuracy'][method]:.1f}" for method in methods),
            f"{row['confidence']:.1f}",
            f"{row['error']:.1f}",
            "" if row["trusted"] else "not trusted",
        ]
        for row in shown
    ]
    means = [mean([row["accuracy"][method] for row in shown]) for method in methods]
    means += [mean([row[name] for row in shown]) for name in ("confidence", "error")]
    warned = sum(not row["trusted"] for row in shown)
    table.append([f"**mean ({len(shown)})**", *(f"{each:.1f}" for each in means), str(warned)])
    return markdown([f"`{encoder}`", *methods, "confidence", "calibration error", ""], table)


def order_table(rows: list[Row]) -> str:
    """Documents whose label depends on the order of the documents."""
    ordered = [row for row in rows if row["order"]]
    table = [
        [
            f"{row['name']} ({row['n_documents']:,}), `{row['encoder']}`",
            *map(str, row["order"].values()),
        ]
        for row in ordered
    ]
    return markdown(["", *ordered[0]["order"]], table)


def report(draws: list[Row], encoders: list[str], quick: bool) -> str:
    """All tables."""
    every = over_draws(draws)
    others = (FURTHER, HELD_OUT)
    rows = [row for row in every if row["group"] not in others]
    draws = [row for row in draws if row["group"] not in others]
    limit = f" Quick: at most {QUICK:,} documents and one draw." if quick else ""
    parts = {
        "Datasets": "Accuracy in percent: nearest label / paper's / default on vectors alone / "
        f"default with words.{limit}\n\n{dataset_table(rows, encoders)}",
        "Scenarios": f"Mean accuracy; in brackets the number of scenarios.\n\n{group_table(rows)}",
        "Safety": safety_table(rows),
        "Calibration": "Default with words; expected calibration error in 10 bins, in points. The "
        "last column is what perfect confidences would have with as many documents.\n\n"
        f"{calibration_table(rows)}",
        "Diagnosis": "A result is bad if it is more than 2 points below the nearest label or its "
        "accuracy is below 50 %. Default with words, counted per draw. Notes about texts and names "
        "are not included. The second table has the labels that the diagnosis calls overturned and the "
        f"others, of ten documents or more.\n\n{diagnosis_table(draws)}",
        "Order of the documents": "Documents that get another label when sorted by class or when "
        f"classes are interleaved.\n\n{order_table(rows)}",
    }
    for group in others:
        further = [row for row in every if row["group"] == group]
        if not further:
            continue
        tables = "\n\n".join(further_table(further, encoder) for encoder in encoders)
        parts[group.capitalize()] = (
            f"At most {FURTHER_DOCUMENTS:,} documents of each; the number of labels in brackets."
            f"{limit}\n\n{safety_table(further)}\n\n{tables}\n\n{diagnosis_table(further)}"
        )
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


# --- Sensitivity


def variants() -> Iterator[tuple[str, Constants]]:
    """Each constant halved and doubled; of shares of 0.7 and more, the distance from 1."""
    yield "as it is", Constants()
    for field in fields(Constants):
        value = getattr(Constants(), field.name)
        for factor in (0.5, 2.0):
            near_one = isinstance(value, float) and 0.7 <= value < 1.0
            other = 1.0 - (1.0 - value) * factor if near_one else type(value)(value * factor)
            changed: dict[str, Any] = {field.name: round(other, 6)}
            yield f"{field.name} = {other:g}", replace(Constants(), **changed)


def sensitivity(scenarios: list[Scenario]) -> str:
    """Accuracy of the default with words, with each constant changed."""
    small = [scenario.at_most(QUICK) for scenario in scenarios]
    simple = [
        [percent(RIVALS[m](s.documents, s.anchors) == s.truth) for m in (NEAREST, PAPER)]
        for s in small
    ]
    rows = []
    for name, constants in variants():
        found = [percent(refine_default(s, constants).predictions == s.truth) for s in small]
        as_is = [a for a, s in zip(found, small, strict=True) if s.group == AS_IS]
        gaps = [a - max(both) for a, both in zip(found, simple, strict=True)]
        to_paper = [a - both[1] for a, both in zip(found, simple, strict=True)]
        figures = [f"{mean(found):.2f}", f"{mean(as_is):.2f}", f"{min(gaps):+.1f}"]
        rows.append([name, *figures, str(sum(gap < -1.0 for gap in to_paper))])
        print(rows[-1], file=sys.stderr, flush=True)
    head = ["", "mean", "datasets as they are", "worst, to the better of nearest and paper's"]
    intro = f"{len(small)} scenarios of at most {QUICK:,} documents, default with words."
    return f"{intro}\n\n{markdown([*head, 'more than 1 below the paper’s'], rows)}"


def reduced(scenarios: Iterator[Scenario]) -> list[Scenario]:
    """The first draw of some of the scenarios."""
    return [
        each
        for each in scenarios
        if each.draw == 0
        and each.group not in (MANY, "one misleading name", "300 documents", "1,000 documents")
        and not each.group.startswith("100 documents over")
        and (each.group != "other phrasings" or each.name.endswith("set 1"))
    ]


# --- Command line


def write_part(page: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- name:begin -->`` and ``<!-- name:end -->``."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{page} must contain {begin} and {end}.")
    with atomic_file(page) as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}".encode())


def with_changes(changes: Sequence[str]) -> Constants:
    """The constants with some values replaced, given as NAME=VALUE."""
    changed: dict[str, Any] = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in {field.name for field in fields(Constants)}:
            raise SystemExit(f"{name!r} is not a constant of the default method.")
        changed[name] = type(getattr(Constants(), name))(value)
    return replace(Constants(), **changed)


def cached_encoder(name: str, cache: str | None) -> Encoder:
    """An encoder by name, with a cache for each of its parts."""
    encoder = load_encoder(name)
    if not isinstance(encoder, Encoder):
        raise SystemExit(f"{name} does not encode single texts; choose another encoder.")
    if cache is None:
        return encoder
    if isinstance(encoder, JoinedEncoder):
        return encoder.cached(cache)
    return CachedEncoder(encoder, cache)


def main() -> None:
    """Measure all scenarios and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--further", type=Path, help="folder of further datasets")
    parser.add_argument("--held-out", type=Path, help="folder of datasets nothing was chosen on")
    parser.add_argument("--cache", help="folder for the vectors")
    parser.add_argument("--results", type=Path, help="JSON Lines file of measurements")
    parser.add_argument("--quick", action="store_true", help="few documents, one draw")
    parser.add_argument("--constants", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sensitivity", action="store_true", help="change each constant")
    parser.add_argument("--write", type=Path, help="Markdown page whose tables are replaced")
    options = parser.parse_args()
    encoders, part, rows = options.encoder or ["static"], "scenarios", []
    results = Results(options.results, with_changes(options.constants))
    chosen: list[Scenario] = []
    with threadpool_limits(1):  # sums then do not depend on the number of cores
        for name in encoders:
            encoder = cached_encoder(name, options.cache)
            scenarios = all_scenarios(options.data, encoder, options.quick)
            if options.sensitivity:
                chosen += reduced(scenarios)
                continue
            for folder, group in ((options.further, FURTHER), (options.held_out, HELD_OUT)):
                if folder:
                    scenarios = chain(scenarios, further_datasets(folder, encoder, group))
            for scenario in scenarios:
                used = scenario.at_most(QUICK) if options.quick else scenario
                rows.append(results.get(name, used))
                print(f"{name}: {scenario.group}, {scenario.name}", file=sys.stderr, flush=True)
        if options.sensitivity:
            part, text = "sensitivity", sensitivity(chosen)
        else:
            text = report(rows, encoders, options.quick)
    print(text)
    if options.write:
        write_part(options.write, part, text)


if __name__ == "__main__":
    main()
