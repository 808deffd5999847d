import pytest

from ulr.errors import ExperimentError
from ulr.experiments.datasets import DATASETS
from ulr.experiments.phrasings import (
    ALTERNATIVES,
    AUGMENTED_CATEGORIES,
    ENSEMBLE_NAMES,
    MAIN_NAMES,
    TABLE_1_NAMES,
    all_phrasings,
    label_set,
)
from ulr.labels import NAMED_LISTS

THREE = ("agnews", "dbpedia14", "yahoo")
EVERY_SET = [
    *MAIN_NAMES.items(),
    *(("agnews", names) for names in TABLE_1_NAMES),
    *((dataset, names) for dataset, sets in ENSEMBLE_NAMES.items() for names in sets),
]


def test_every_dataset_has_names_for_the_main_experiments():
    assert list(MAIN_NAMES) == list(DATASETS)


def test_ensembles_have_ten_sets():
    assert {name: len(sets) for name, sets in ENSEMBLE_NAMES.items()} == dict.fromkeys(THREE, 10)


def test_the_last_two_ensemble_sets_of_ag_news_are_equal_as_in_the_paper():
    distinct = {name: len(set(sets)) for name, sets in ENSEMBLE_NAMES.items()}
    assert distinct == {"agnews": 9, "dbpedia14": 10, "yahoo": 10}


def test_table_1_has_six_sets_and_begins_with_the_main_names():
    assert len(set(TABLE_1_NAMES)) == 6
    assert TABLE_1_NAMES[0] == MAIN_NAMES["agnews"]


def test_ensembles_begin_with_the_main_names():
    assert all(sets[0] == MAIN_NAMES[name] for name, sets in ENSEMBLE_NAMES.items())


@pytest.mark.parametrize(("dataset", "names"), EVERY_SET)
def test_every_set_has_a_different_phrase_for_each_label(dataset, names):
    assert len(set(names)) == len(names) == len(DATASETS[dataset].labels)
    assert label_set(dataset, names).phrases() == [[name] for name in names]


@pytest.mark.parametrize(("dataset", "n"), [("agnews", 240), ("dbpedia14", 4096), ("yahoo", 1024)])
def test_alternatives_combine_to_different_sets_without_a_phrase_twice(dataset, n):
    phrasings = all_phrasings(dataset)
    assert len(phrasings) == len(set(phrasings)) == n
    assert all(len(set(names)) == len(DATASETS[dataset].labels) for names in phrasings)


def test_sets_of_table_1_and_of_the_ensembles_are_among_the_combinations():
    assert set(TABLE_1_NAMES) <= set(all_phrasings("agnews"))
    for dataset, sets in ENSEMBLE_NAMES.items():
        assert set(sets) <= set(all_phrasings(dataset))


def test_combinations_change_the_last_label_fastest():
    first, second = all_phrasings("agnews")[:2]
    assert first[:3] == second[:3]
    assert (first[3], second[3]) == ALTERNATIVES["agnews"][3][:2]


def test_there_are_no_alternatives_for_20_newsgroups():
    with pytest.raises(ExperimentError, match="agnews, dbpedia14, yahoo; got '20newsgroups'"):
        all_phrasings("20newsgroups")


def test_a_label_set_has_the_official_names_and_the_main_phrases():
    labels = label_set("agnews")
    assert labels.names == ("World", "Sports", "Business", "Sci/Tech")
    assert labels.phrases()[3] == ["science technology"]


def test_a_set_of_names_for_other_labels_is_refused():
    with pytest.raises(ExperimentError, match="agnews has 4 labels; got 2 names"):
        label_set("agnews", ["world", "sports"])


def test_the_augmented_categories_are_thirty_different_names():
    assert len(set(AUGMENTED_CATEGORIES)) == len(AUGMENTED_CATEGORIES) == 30
    assert (AUGMENTED_CATEGORIES[0], AUGMENTED_CATEGORIES[-1]) == ("math", "academia")


@pytest.mark.parametrize("name", NAMED_LISTS)
def test_named_lists_hold_no_name_twice(name):
    assert len(set(NAMED_LISTS[name])) == len(NAMED_LISTS[name]) >= 2
