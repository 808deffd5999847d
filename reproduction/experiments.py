"""The experiments of the paper as data: printed figures, and the measurement behind every row.

``table-1`` to ``table-9`` are the paper's tables, and ``figure-2`` is its plot, which prints no
figures. ``esa`` is the footnote of Section 4 on Explicit Semantic Analysis, and ``oracle`` the
paragraph of Section 6 on the best label names. ``definitions`` is not the paper's: it measures the
expansion of label names that Section 2 cites. Accuracies are in percent, as printed; where the paper
contradicts itself, a remark says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reproduction.datasets import DATASETS

AVERAGE = "average"

# Roles of an encoder: of texts, as RoBERTa, GloVe and ESA; of pairs, as RoBERTa.
DUAL, WORDS, CONCEPTS, SINGLE = "dual", "words", "concepts", "single"
FINE_TUNED = "fine-tuned"
DISTANCE_NAMES = {"cosine": "cosine", "l2": "L2", "js": "Jensen–Shannon"}

# Numbers of the protocol: passes of a refinement (Section 3), trials of Table 7, examples per label
# of Table 8, most unlabelled texts of Table 9.
MAX_ITER = 100
RANDOM_STARTS = 240
LABELLED_EXAMPLES = 30
AUGMENTED_TEXTS = 100_000

# Measurements that the paper's tables do not have; they are complete without them.
_OWN_MEASURES = {"discriminant", "known examples"}


class Line(NamedTuple):
    """A row of a table, for every distance and encoder."""

    title: str
    measure: str
    value: str  # which value of the measurement is shown
    step: str = ""  # of the paper that it is compared with; empty where the paper has none
    distances: tuple[str, ...] | None = None  # that it is measured with; None for all of the table


@dataclass(frozen=True)
class PaperFigure:
    """One printed figure."""

    distance: str  # ``cosine``, ``l2`` or, for the single encoder, ``js``
    step: str  # ``baseline``, ``ulr``, ``improved`` (cases in which refinement helped), …
    column: str  # a dataset or `AVERAGE`; ``set 1`` to ``set 6`` in Table 1
    value: float  # in percent
    count: tuple[int, int] | None = None  # of ``improved``: the number of cases, and of how many


@dataclass(frozen=True)
class Experiment:
    """One table, plot or passage of the paper."""

    id: str
    title: str
    role: str  # of its encoders
    columns: tuple[str, ...]
    distances: tuple[str, ...]
    lines: tuple[Line, ...]
    # One row per line: distance, step and a value per column; counts as in ``88.8:213/240``.
    printed: str = ""
    # Where the paper is unclear or wrong, and where the measurement differs from it.
    remarks: tuple[str, ...] = ()

    @property
    def figures(self) -> Iterator[PaperFigure]:
        """All printed figures, row by row."""
        for line in self.printed.strip().splitlines():
            distance, step, *values = line.split()
            for column, text in zip(self.columns, values, strict=True):
                value, _, cases = text.partition(":")
                improved, _, total = cases.partition("/")
                count = (int(improved), int(total)) if cases else None
                yield PaperFigure(distance, step, column, float(value), count)

    def figure(self, distance: str, step: str, column: str) -> PaperFigure | None:
        """The printed figure of a distance, step and column; None if there is none."""
        wanted = distance, step, column
        found = (each for each in self.figures if wanted == (each.distance, each.step, each.column))
        return next(found, None)

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """The columns without the average."""
        return tuple(column for column in self.columns if column != AVERAGE)

    @property
    def measures(self) -> set[str]:
        """The measurements that it is not complete without."""
        return {line.measure for line in self.lines} - _OWN_MEASURES

    def rows(self) -> Iterator[tuple[str, Line]]:
        """Distances and lines, in the order of the report."""
        for distance in self.distances:
            for line in self.lines:
                if line.distances is None or distance in line.distances:
                    yield distance, line


def _before_and_after(measure: str, before: str, after: str) -> tuple[Line, Line]:
    return Line(before, measure, "baseline", "baseline"), Line(after, measure, "ulr", "ulr")


_FOUR = tuple(DATASETS)
_THREE = _FOUR[:3]  # the paper has one set of names for 20 Newsgroups
_FOUR_AND_AVERAGE = (*_FOUR, AVERAGE)
_BOTH = ("cosine", "l2")
_NAMES = _before_and_after("names", "by name", "+ ULR")
_WITH_DEFAULT = (
    *_NAMES,
    Line(
        "discriminant (the default of `ulr`, not the paper's)",
        "discriminant",
        "discriminant",
        distances=("cosine",),
    ),
)


_EXPERIMENTS = (
    Experiment(
        "table-1",
        "AG News under six choices of label names",
        DUAL,
        tuple(f"set {number}" for number in range(1, 7)),
        ("l2", "cosine"),
        _WITH_DEFAULT,
        """
        l2 baseline  69.9 55.9 71.6 49.9 55.0 68.8
        l2 ulr       70.7 78.3 78.4 70.2 70.9 76.1
        """,
        (
            "Section 6 says that the encoder was trained with the dot product, but the figures "
            "of the first set are those of L2 in Table 3.",
            "The paper prints L2 only; cosine is added.",
        ),
    ),
    Experiment(
        "table-2",
        "ULR on averaged GloVe vectors",
        WORDS,
        _FOUR_AND_AVERAGE,
        _BOTH,
        _WITH_DEFAULT,
        """
        cosine baseline  66.1 43.5 29.4 29.8 42.2
        cosine ulr       78.3 46.4 27.9 30.8 45.9
        l2     baseline  40.5 15.7 14.5 19.5 22.6
        l2     ulr       58.7 35.7 23.3 25.9 35.9
        """,
    ),
    Experiment(
        "table-3",
        "ULR on the RoBERTa dual encoder",
        DUAL,
        _FOUR_AND_AVERAGE,
        _BOTH,
        _WITH_DEFAULT,
        """
        cosine baseline  74.0 84.6 52.3 36.4 61.8
        cosine ulr       73.7 93.3 54.3 40.3 65.4
        l2     baseline  69.9 78.8 55.7 37.8 60.6
        l2     ulr       70.7 90.5 61.3 37.4 65.0
        """,
    ),
    Experiment(
        "table-4",
        "ULR on the RoBERTa single encoder",
        SINGLE,
        _FOUR_AND_AVERAGE,
        ("js",),
        _before_and_after("pairs", "by name", "+ ULR"),
        """
        js baseline  72.6 81.8 59.3 36.0 62.4
        js ulr       75.1 88.6 60.0 36.5 65.1
        """,
    ),
    Experiment(
        "table-5",
        "Ensembles of ten sets of label names",
        DUAL,
        _THREE,
        _BOTH,
        _before_and_after("ensemble", "ensemble by name", "ensemble + ULR"),
        """
        cosine baseline  79.1 84.6 54.5
        cosine ulr       81.1 93.3 54.4
        l2     baseline  72.4 79.0 56.5
        l2     ulr       73.4 90.7 61.7
        """,
        (
            "Two of the ten sets for AG News are equal. The text says that every accuracy of "
            "Table 3 improves; both of DBpedia with cosine stay as they were.",
        ),
    ),
    Experiment(
        "table-6",
        "Means over many sets of label names",
        DUAL,
        _THREE,
        _BOTH,
        (
            *_before_and_after("sweep", "mean by name", "mean + ULR"),
            Line("improved", "sweep", "improved", "improved"),
        ),
        """
        cosine baseline  69.6 79.4 43.8
        cosine ulr       77.5 91.6 45.3
        cosine improved  88.8:213/240 100.0:3867/3867 72.1:732/1015
        l2     baseline  62.2 71.7 49.5
        l2     ulr       75.2 85.2 59.3
        l2     improved  98.8:237/240 99.9:2960/2963 100.0:947/947
        """,
        (
            "The names of the appendix combine to 240, 4,096 and 1,024 sets; the paper counts "
            "fewer for DBpedia and Yahoo and does not say which.",
        ),
    ),
    Experiment(
        "table-7",
        "Random centroids on AG News, one-to-one accuracy",
        DUAL,
        ("agnews",),
        _BOTH,
        (
            *_before_and_after("random starts", "mean of random centroids", "mean after k-means"),
            Line("improved", "random starts", "improved", "improved"),
        ),
        """
        cosine baseline  37.3
        cosine ulr       61.4
        cosine improved  99.6:239/240
        l2     baseline  39.9
        l2     ulr       75.8
        l2     improved  100.0:240/240
        """,
        (
            "The text says that all cases improve; with cosine, one of 240 does not.",
            "One-to-one accuracy names the clusters by the truth, as in the paper. Our "
            "centroids start at random documents; the paper does not say where its own start.",
        ),
    ),
    Experiment(
        "table-8",
        "Thirty labelled examples per label",
        DUAL,
        _FOUR_AND_AVERAGE,
        ("cosine",),
        (
            _NAMES[0],
            Line("+ 30 known examples, encoder not fine-tuned", "known examples", "ulr"),
            Line("+ 30 examples, fine-tuned", FINE_TUNED, "baseline", "labelled"),
            Line("+ 30 examples, fine-tuned + ULR", FINE_TUNED, "ulr", "ulr"),
        ),
        """
        cosine baseline  74.0 84.6 52.3 36.4 61.8
        cosine labelled  81.5 97.1 66.0 58.1 75.7
        cosine ulr       85.2 97.4 66.7 58.2 76.9
        """,
        (
            "The paper names no distance; the baseline is that of cosine in Table 3.",
            "The examples are drawn from the training set with the seed. The row of known "
            "examples is Algorithm 3 alone, which the paper does not print.",
        ),
    ),
    Experiment(
        "table-9",
        "Augmented categories and texts",
        DUAL,
        _FOUR_AND_AVERAGE,
        _BOTH,
        (
            *_NAMES,
            Line("+ augmented categories", "augmented categories", "ulr", "augmented_categories"),
            Line("+ augmented text", "augmented text", "ulr", "augmented_text"),
        ),
        """
        cosine baseline              74.0 89.4 53.5 37.0 63.5
        cosine ulr                   73.7 93.3 54.3 40.3 65.4
        cosine augmented_categories  74.9 92.6 57.3 41.6 66.6
        cosine augmented_text        73.8 93.2 54.2 40.3 65.4
        l2     baseline              69.9 78.8 55.7 37.8 60.6
        l2     ulr                   70.7 90.5 61.3 37.4 65.0
        l2     augmented_categories  71.9 90.4 59.4 39.8 65.4
        l2     augmented_text        70.8 90.4 61.3 37.6 65.0
        """,
        (
            "With cosine, the baselines of DBpedia, Yahoo and 20 Newsgroups are not those of "
            "Table 3 (84.6, 52.3, 36.4), and two are above the best that the text reports for "
            "any names.",
        ),
    ),
    Experiment(
        "figure-2",
        "Gain of ULR over the accuracy it starts from, for many sets of label names",
        DUAL,
        _THREE,
        _BOTH,
        (Line("gain", "sweep", "gain"),),
        remarks=(
            "Correlation of the gain with the accuracy by name, over all sets of label names; then "
            "the mean gain over the third of the sets that start worst, and over the third that "
            "start best. The paper's plot is of L2 and prints no figures.",
        ),
    ),
    Experiment(
        "esa",
        "Explicit Semantic Analysis, without refinement",
        CONCEPTS,
        _FOUR,
        ("cosine",),
        _NAMES,
        "cosine baseline  71.2 62.5 29.7 25.1",
        ("The footnote names no distance; Section 2 says that ESA is used with cosine.",),
    ),
    Experiment(
        "oracle",
        "The best of many sets of label names, without refinement",
        DUAL,
        _THREE,
        _BOTH,
        (Line("best names, an oracle", "sweep", "best", "best"),),
        """
        cosine best  81.9 87.5 53.3
        l2     best  81.5 81.1 58.9
        """,
        (
            "An oracle: the truth chooses the names, as in the paper. Apart from the names of "
            "the clusters in Table 7, nothing else in this report is chosen by the truth.",
        ),
    ),
    Experiment(
        "definitions",
        "WordNet's definitions as further phrases of the labels (Yin et al., 2019)",
        DUAL,
        _FOUR,
        ("cosine",),
        (
            *_NAMES,
            Line("with definitions by name", "definitions", "baseline"),
            Line("with definitions + ULR", "definitions", "ulr"),
        ),
        remarks=(
            "Not in the paper's tables. The anchor of a label is the mean of the unit vectors of its "
            "name and of the definition of its first sense, which is often not the one that is "
            "meant: a plant is a factory.",
        ),
    ),
)
EXPERIMENTS: dict[str, Experiment] = {each.id: each for each in _EXPERIMENTS}
