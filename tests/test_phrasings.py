"""Phrasings: combinations and samples of them, sets from lists and files, and refusals."""

import itertools
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.errors import LabelError
from ulr.labels import as_label_set
from ulr.phrasings import (
    MOST_WHOLE,
    SAMPLE,
    Phrasings,
    as_phrasings,
    combinations,
    phrasings_from_argument,
    read_phrasings,
)

LABELS = as_label_set({"world": ["world", "politics"], "sports": "sport", "money": ["m", "b", "f"]})
SETS = (("globe", "ball", "coins"), ("earth", "ball", "cash"))


def labels_of(counts):
    return as_label_set({f"l{i}": [f"{i}.{j}" for j in range(n)] for i, n in enumerate(counts)})


def places(phrasings):
    """The sets as numbers of phrases."""
    return [tuple(int(phrase.split(".")[1]) for phrase in each) for each in phrasings]


def test_combinations_are_all_of_them_the_last_label_fastest():
    found = combinations(LABELS)
    assert found.sets == tuple(itertools.product(["world", "politics"], ["sport"], "mbf"))
    assert (len(found), found.n_possible, found.is_sample) == (6, 6, False)
    assert list(found) == list(found.sets)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=6), st.integers(1, 50), st.integers(0, 2**32)
)
def test_samples_are_different_sorted_and_exactly_as_many(counts, sample, seed):
    found = combinations(labels_of(counts), sample=sample, random_state=seed)
    n_possible = math.prod(counts)
    assert found.n_possible == n_possible
    assert len(found) == len(set(found)) == min(sample, n_possible)
    drawn = places(found)
    assert drawn == sorted(drawn)
    assert set(drawn) <= set(itertools.product(*map(range, counts)))
    assert found.is_sample == (sample < n_possible)
    assert combinations(labels_of(counts), sample=sample, random_state=seed) == found


@pytest.mark.parametrize("counts", [[10] * 5, [9] * 30, [200] * 40, [1] * 299 + [7, 30]])
def test_more_than_can_be_gone_through_are_drawn(counts):
    labels = labels_of(counts)
    found = combinations(labels, sample=50, random_state=4)
    drawn = places(found)
    assert found.n_possible == math.prod(counts)
    assert len(set(drawn)) == 50
    assert drawn == sorted(drawn)
    assert all(0 <= place < n for each in drawn for place, n in zip(each, counts, strict=True))
    assert combinations(labels, sample=50, random_state=4) == found
    assert combinations(labels, sample=50, random_state=5) != found


def test_without_a_number_all_of_a_few_thousand_and_some_of_more():
    assert len(combinations(labels_of([8] * 4))) == MOST_WHOLE == 4096
    more = combinations(labels_of([8, 8, 8, 9]))
    assert (len(more), more.n_possible, more.is_sample) == (SAMPLE, 4608, True)
    assert len(combinations(labels_of([8, 8, 8, 9]), sample=4608)) == 4608


@pytest.mark.parametrize("sample", [0, -3, 1.5, "9"])
def test_a_sample_that_cannot_be_is_refused(sample):
    with pytest.raises(LabelError, match=r"sample must be a positive whole number; got "):
        combinations(LABELS, sample=sample)


def test_phrases_are_those_of_the_sets_each_once_in_their_order():
    labels = Phrasings(SETS, 2).phrases(LABELS)
    assert labels.names == LABELS.names
    assert [label.phrases for label in labels] == [
        ("globe", "earth"),
        ("ball",),
        ("coins", "cash"),
    ]
    assert combinations(LABELS).phrases(LABELS) == LABELS


# Every form of phrasings


def test_average_is_no_phrasings_and_combinations_are_drawn_as_asked():
    assert as_phrasings("average", LABELS) is None
    found = as_phrasings("combinations", LABELS, sample=4, random_state=3)
    assert found == combinations(LABELS, sample=4, random_state=3)
    assert len(found) == 4


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda sets: [list(each) for each in sets]])
def test_any_list_of_sets_is_taken(kind):
    assert as_phrasings(kind(SETS), LABELS) == Phrasings(SETS, 2)


def test_sets_may_share_phrases_and_swap_them():
    swapped = [("a", "b", "c"), ("b", "a", "c"), ("a", "b", "c")]
    assert as_phrasings(swapped, LABELS).sets == tuple(swapped)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ("sum", "phrasings must be 'average', 'combinations' or sets of phrases; got 'sum'."),
        (None, "phrasings must be 'average', 'combinations' or sets of phrases; got NoneType."),
        ([], "phrasings must hold at least one set of phrases; got none."),
        (["a; b; c"], "set 1: a set must be a list of phrases; got 'a; b; c'."),
        ([SETS[0], ("a", "b")], "set 2: a set needs a phrase for each of the 3 labels (world, sp"),
        ([("a", "b", " a")], "set 1: phrase 'a' is given for label 'world' and for label 'money'."),
        ([("a", " ", "c")], "set 1: a phrase is empty."),
        (Phrasings((("a", "b"),), 9), "set 1: a set needs a phrase for each of the 3 labels"),
    ],
)
def test_sets_that_cannot_be_used_are_refused_by_number(sets, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        as_phrasings(sets, LABELS)


# From files

FILES = {
    "sets.txt": "\ufeff# two sets\n\nglobe; ball ;coins\r\n  earth;ball;cash\n",
    "sets": "globe; ball; coins\nearth; ball; cash",
    "sets.json": json.dumps(SETS),
    "lines.json": '["globe; ball; coins",\n"earth; ball; cash"]',
    "sets.yaml": "- [globe, ball, coins]\n- - earth\n  - ball\n  - cash\n",
    "lines.YML": "- globe; ball; coins\n- earth; ball; cash\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_sets(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name].encode())
    assert read_phrasings(path, LABELS) == Phrasings(SETS, 2)
    assert as_phrasings(path, LABELS) == Phrasings(SETS, 2)
    assert phrasings_from_argument(str(path)) == path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "a;b;c\n\n# d\na;b", "a.txt line 4: a set needs a phrase for each of the 3"),
        ("a.txt", "a;b;c\na;b;a", "a.txt line 2: phrase 'a' is given for label 'world' and for"),
        ("a.txt", "a;b;c\na;b;", "a.txt line 2: a phrase is empty."),
        ("a.json", '[["a", "b", "c"],\n["a", "b"]]', "a.json entry 2: a set needs a phrase for"),
        ("a.json", '[["a", "b", "c"],\n\n["a", 5, "c"]]', "a.json entry 2: a phrase must be a te"),
        ("a.json", '[{"a": "b"}]', "a.json entry 1: a phrase must be a text; got ('a', 'b')."),
        ("a.json", "[]", "a.json must hold at least one set of phrases; got none."),
        ("a.yaml", "- [a, b, c]\n-\n  - a\n  - a\n  - c", "a.yaml entry 2: phrase 'a' is given"),
        ("a.yaml", "world: [a, b]\nsports: c", "a.yaml must hold a list; it holds a mapping."),
    ],
)
def test_files_that_cannot_be_used_are_refused_by_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(LabelError, match=re.escape(message)):
        read_phrasings(path, LABELS)


def test_an_argument_is_a_word_for_how_or_a_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [phrasings_from_argument(word) for word in ("average", "combinations")] == [
        "average",
        "combinations",
    ]
    with pytest.raises(LabelError, match=r"or a file of sets; there is no file sets\.txt\.$"):
        phrasings_from_argument("sets.txt")
