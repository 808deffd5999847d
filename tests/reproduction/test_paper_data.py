"""The paper's figures and label names as data, against what the paper says about them."""

from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby

import pytest

from reproduction.datasets import DATASETS
from reproduction.experiments import AVERAGE, EXPERIMENTS, RANDOM_STARTS
from reproduction.names import (
    AUGMENTED_CATEGORIES,
    ENSEMBLE_NAMES,
    MAIN_NAMES,
    TABLE_1_NAMES,
    all_phrasings,
    label_set,
)

ROWS = [
    pytest.param(experiment, list(row), id=f"{name} {distance} {step}")
    for name, experiment in EXPERIMENTS.items()
    for (distance, step), row in groupby(
        experiment.figures, key=lambda figure: (figure.distance, figure.step)
    )
]
THREE = ("agnews", "dbpedia14", "yahoo")


def rounded(value):
    return Decimal(value).quantize(Decimal("0.1"), ROUND_HALF_UP)


@pytest.mark.parametrize(("experiment", "row"), ROWS)
def test_every_row_is_complete_and_consistent(experiment, row):
    assert [figure.column for figure in row] == list(experiment.columns)
    assert all(0 < figure.value <= 100 for figure in row)
    for figure in row:
        assert (figure.count is not None) == (figure.step == "improved")
        if figure.count:
            assert rounded(Decimal(100 * figure.count[0]) / figure.count[1]) == Decimal(
                str(figure.value)
            )
            if experiment is EXPERIMENTS["table-6"]:
                assert figure.count[1] <= len(all_phrasings(figure.column))
            else:
                assert figure.count[1] == RANDOM_STARTS
        assert experiment.figure(figure.distance, figure.step, figure.column) == figure
    if AVERAGE in experiment.columns:
        assert experiment.columns == (*DATASETS, AVERAGE)
        *values, average = (Decimal(str(figure.value)) for figure in row)
        assert rounded(sum(values) / len(values)) == average


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_printed_figure_has_a_row_that_is_compared_with_it(experiment):
    compared = {(distance, line.step) for distance, line in experiment.rows()}
    assert {(figure.distance, figure.step) for figure in experiment.figures} <= compared


def test_sets_are_as_many_as_in_the_paper_and_begin_with_the_main_names():
    for dataset, names in MAIN_NAMES.items():
        assert len(set(names)) == len(names) == len(DATASETS[dataset].labels)
    assert {name: len(sets) for name, sets in ENSEMBLE_NAMES.items()} == dict.fromkeys(THREE, 10)
    # The last two of AG News are equal in the paper.
    distinct = {name: len(set(sets)) for name, sets in ENSEMBLE_NAMES.items()}
    assert distinct == {"agnews": 9, "dbpedia14": 10, "yahoo": 10}
    assert all(sets[0] == MAIN_NAMES[name] for name, sets in ENSEMBLE_NAMES.items())
    labels = label_set("agnews")
    assert labels.names == ("World", "Sports", "Business", "Sci/Tech")
    assert labels.phrases()[3] == ["science technology"]
    assert len(set(TABLE_1_NAMES)) == len(EXPERIMENTS["table-1"].columns) == 6
    assert TABLE_1_NAMES[0] == MAIN_NAMES["agnews"]
    assert len(set(AUGMENTED_CATEGORIES)) == len(AUGMENTED_CATEGORIES) == 30
    assert (AUGMENTED_CATEGORIES[0], AUGMENTED_CATEGORIES[-1]) == ("math", "academia")


@pytest.mark.parametrize(("dataset", "n"), [("agnews", 240), ("dbpedia14", 4096), ("yahoo", 1024)])
def test_alternatives_combine_to_different_sets_with_all_those_of_the_paper(dataset, n):
    phrasings = all_phrasings(dataset)
    assert len(phrasings) == len(set(phrasings)) == n
    assert all(len(set(names)) == len(DATASETS[dataset].labels) for names in phrasings)
    assert set(ENSEMBLE_NAMES[dataset]) <= set(phrasings)
    assert dataset != "agnews" or set(TABLE_1_NAMES) <= set(phrasings)
