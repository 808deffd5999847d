from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby

import pytest

from ulr.experiments.datasets import DATASETS
from ulr.experiments.paper import AVERAGE, EXPERIMENTS, PROTOCOL
from ulr.experiments.phrasings import TABLE_1_NAMES, all_phrasings

FIGURES = [figure for experiment in EXPERIMENTS.values() for figure in experiment.figures]
ROWS = [
    pytest.param(name, list(row), id=f"{name} {distance} {step}")
    for (name, distance, step), row in groupby(
        FIGURES, key=lambda figure: (figure.experiment, figure.distance, figure.step)
    )
]
COUNTED = [figure for figure in FIGURES if figure.count]


def rounded(value):
    return Decimal(value).quantize(Decimal("0.1"), ROUND_HALF_UP)


def exact(value):
    return Decimal(str(value))


def printed(experiment, distance, step):
    figures = EXPERIMENTS[experiment].figures
    return [each.value for each in figures if (each.distance, each.step) == (distance, step)]


def test_tables_are_numbered_without_a_gap():
    assert [name for name in EXPERIMENTS if name.startswith("table-")] == [
        f"table-{number}" for number in range(1, 10)
    ]
    assert all(name == each.id for name, each in EXPERIMENTS.items())


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_row_has_a_percentage_for_each_column(name, row):
    assert [figure.column for figure in row] == list(EXPERIMENTS[name].columns)
    assert all(0 < figure.value <= 100 for figure in row)
    assert all((figure.count is not None) == (figure.step == "improved") for figure in row)


@pytest.mark.parametrize(
    ("name", "row"), [each for each in ROWS if AVERAGE in EXPERIMENTS[each.values[0]].columns]
)
def test_every_average_is_the_mean_of_its_row(name, row):
    *values, average = (exact(figure.value) for figure in row)
    assert EXPERIMENTS[name].columns == (*DATASETS, AVERAGE)
    assert rounded(sum(values) / len(values)) == average


@pytest.mark.parametrize("figure", COUNTED)
def test_every_share_is_its_count_in_percent(figure):
    improved, tried = figure.count
    assert rounded(Decimal(100 * improved) / tried) == exact(figure.value)


@pytest.mark.parametrize("figure", [each for each in COUNTED if each.experiment == "table-6"])
def test_no_more_sets_were_tried_than_the_names_combine_to(figure):
    assert figure.count[1] <= len(all_phrasings(figure.column))


def test_random_starts_are_as_many_as_table_7_counts():
    tried = {each.count[1] for each in COUNTED if each.experiment == "table-7"}
    assert tried == {PROTOCOL.random_starts}


def test_columns_are_datasets_and_averages_but_for_the_sets_of_table_1():
    known = {*DATASETS, AVERAGE}
    for experiment in EXPERIMENTS.values():
        if experiment.id == "table-1":
            assert len(experiment.columns) == len(TABLE_1_NAMES)
        else:
            assert set(experiment.columns) <= known


def test_the_first_set_of_table_1_is_l2_in_table_3():
    for step in ("baseline", "ulr"):
        assert printed("table-1", "l2", step)[0] == printed("table-3", "l2", step)[0]


def test_tables_that_repeat_table_3_print_the_same_but_for_one_row():
    assert printed("table-8", "cosine", "baseline") == printed("table-3", "cosine", "baseline")
    repeated = [(d, s) for d in ("cosine", "l2") for s in ("baseline", "ulr")]
    assert [
        each for each in repeated if printed("table-9", *each) != printed("table-3", *each)
    ] == [("cosine", "baseline")]


def test_the_best_names_are_no_worse_than_the_mean_of_all():
    for distance in ("cosine", "l2"):
        best, mean = printed("oracle", distance, "best"), printed("table-6", distance, "baseline")
        assert all(b > m for b, m in zip(best, mean, strict=True))


def test_a_figure_is_found_by_distance_step_and_column():
    figure = EXPERIMENTS["table-3"].figure("cosine", "ulr", "dbpedia14")
    assert (figure.value, figure.count) == (93.3, None)
    assert EXPERIMENTS["table-6"].figure("l2", "improved", "yahoo").count == (947, 947)


def test_what_the_paper_does_not_print_is_none():
    assert EXPERIMENTS["table-5"].figure("cosine", "ulr", "20newsgroups") is None
    assert list(EXPERIMENTS["figure-2"].figures) == []
