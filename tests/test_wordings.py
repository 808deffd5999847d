"""Wordings: which sets there are and which are drawn, whole sets from files, and every refusal."""

import itertools
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.errors import LabelError
from ulr.labels import as_label_set
from ulr.wordings import (
    MOST_WHOLE,
    SAMPLE,
    Wordings,
    as_wordings,
    combinations,
    read_wordings,
    wordings_from_argument,
)

LABELS = as_label_set({"world": ["world", "politics"], "sports": "sport", "money": ["m", "b", "f"]})
SETS = (("globe", "ball", "coins"), ("earth", "ball", "cash"))


def labels_of(counts):
    return as_label_set({f"l{i}": [f"{i}.{j}" for j in range(n)] for i, n in enumerate(counts)})


def places(wordings):
    """The sets as numbers of phrases."""
    return [tuple(int(phrase.split(".")[1]) for phrase in each) for each in wordings]


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
    found = combinations(labels_of(counts), sample=sample, seed=seed)
    n_possible = math.prod(counts)
    assert found.n_possible == n_possible
    assert len(found) == len(set(found)) == min(sample, n_possible)
    drawn = places(found)
    assert drawn == sorted(drawn)
    assert set(drawn) <= set(itertools.product(*map(range, counts)))
    assert found.is_sample == (sample < n_possible)
    assert combinations(labels_of(counts), sample=sample, seed=seed) == found


@pytest.mark.parametrize("counts", [[10] * 5, [9] * 30, [200] * 40, [1] * 299 + [7, 30]])
def test_more_than_can_be_gone_through_are_drawn(counts):
    labels = labels_of(counts)
    found = combinations(labels, sample=50, seed=4)
    drawn = places(found)
    assert found.n_possible == math.prod(counts)
    assert len(set(drawn)) == 50
    assert drawn == sorted(drawn)
    assert all(0 <= place < n for each in drawn for place, n in zip(each, counts, strict=True))
    assert combinations(labels, sample=50, seed=4) == found
    assert combinations(labels, sample=50, seed=5) != found


def test_draws_reach_every_phrase():
    drawn = places(combinations(labels_of([9] * 9), sample=400))
    assert [set(column) for column in zip(*drawn, strict=True)] == [set(range(9))] * 9


def test_without_a_number_all_of_a_few_thousand_and_some_of_more():
    assert len(combinations(labels_of([8] * 4))) == MOST_WHOLE == 4096
    more = combinations(labels_of([8, 8, 8, 9]))
    assert (len(more), more.n_possible, more.is_sample) == (SAMPLE, 4608, True)
    assert len(combinations(labels_of([8, 8, 8, 9]), sample=4608)) == 4608


def test_many_labels_may_have_few_wordings():
    labels = as_label_set({"first": ["a", "b"], **{f"label {i}": None for i in range(300)}})
    assert [each[0] for each in combinations(labels)] == ["a", "b"]


@pytest.mark.parametrize("sample", [0, -3, 1.5, "9"])
def test_a_sample_that_cannot_be_is_refused(sample):
    with pytest.raises(LabelError, match=r"sample must be a positive whole number; got "):
        combinations(LABELS, sample=sample)


def test_phrases_are_those_of_the_sets_each_once_in_their_order():
    labels = Wordings(SETS, 2).phrases(LABELS)
    assert labels.names == LABELS.names
    assert [label.phrases for label in labels] == [
        ("globe", "earth"),
        ("ball",),
        ("coins", "cash"),
    ]
    assert combinations(LABELS).phrases(LABELS) == LABELS


# From whatever a user has


def test_average_is_no_wordings_and_combinations_are_drawn_as_asked():
    assert as_wordings("average", LABELS) is None
    found = as_wordings("combinations", LABELS, sample=4, seed=3)
    assert found == combinations(LABELS, sample=4, seed=3)
    assert len(found) == 4


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda sets: [list(each) for each in sets]])
def test_any_list_of_sets_is_taken(kind):
    assert as_wordings(kind(SETS), LABELS) == Wordings(SETS, 2)


def test_wordings_are_taken_as_they_are():
    drawn = combinations(LABELS, sample=2)
    assert as_wordings(drawn, LABELS) == drawn
    assert drawn.is_sample


def test_blanks_in_phrases_are_made_plain():
    assert as_wordings([[" a \n b", "c", "d"]], LABELS).sets == (("a b", "c", "d"),)


def test_sets_may_share_phrases_and_swap_them():
    swapped = [("a", "b", "c"), ("b", "a", "c"), ("a", "b", "c")]
    assert as_wordings(swapped, LABELS).sets == tuple(swapped)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ("sum", "wordings must be 'average', 'combinations' or sets of phrases; got 'sum'."),
        (None, "wordings must be 'average', 'combinations' or sets of phrases; got NoneType."),
        (5, "wordings must be 'average', 'combinations' or sets of phrases; got int."),
        ([], "wordings must hold at least one set of phrases; got none."),
        (["a; b; c"], "set 1: a set must be a list of phrases; got 'a; b; c'."),
        ([SETS[0], 7], "set 2: a set must be a list of phrases; got 7."),
        ([SETS[0], ("a", "b")], "set 2: a set needs a phrase for each of the 3 labels (world, sp"),
        ([("a", "b", "c", "d")], "(world, sports, money); got 4."),
        ([("a", "b", " a")], "set 1: phrase 'a' is given for label 'world' and for label 'money'."),
        ([("a", " ", "c")], "set 1: a phrase is empty."),
        ([("a", 5, "c")], "set 1: a phrase must be a text; got 5."),
        (Wordings((("a", "b"),), 9), "set 1: a set needs a phrase for each of the 3 labels"),
    ],
)
def test_sets_that_cannot_be_used_are_refused_by_number(sets, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        as_wordings(sets, LABELS)


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
    assert read_wordings(path, LABELS) == Wordings(SETS, 2)
    assert as_wordings(path, LABELS) == Wordings(SETS, 2)
    assert wordings_from_argument(str(path)) == path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "a;b;c\n\n# d\na;b", "a.txt line 4: a set needs a phrase for each of the 3"),
        ("a.txt", "a;b;c\na;b;a", "a.txt line 2: phrase 'a' is given for label 'world' and for"),
        ("a.txt", "a;b;c\na;b;", "a.txt line 2: a phrase is empty."),
        ("a.txt", "# a;b;c\n", "a.txt must hold at least one set of phrases; got none."),
        ("a.txt", b"caf\xe9; b; c\n", "a.txt cannot be read as UTF-8 text: "),
        ("a.json", '[["a", "b", "c"],\n["a", "b"]]', "a.json line 2: a set needs a phrase for"),
        ("a.json", '[["a", "b", "c"],\n\n["a", 5, "c"]]', "a.json line 3: a phrase must be a te"),
        ("a.json", '[["a", "b", "c"],\n5]', "a.json line 2: a set must be a list of phrases; go"),
        ("a.json", '[{"a": "b"}]', "a.json line 1: a phrase must be a text; got ('a', 'b')."),
        ("a.json", '{"world": ["a", "b"]}', "a.json must hold a list; it holds a mapping."),
        ("a.json", "[]", "a.json must hold at least one set of phrases; got none."),
        ("a.json", '[["a",\n', "a.json line 2 is not JSON: "),
        ("a.yaml", "- [a, b, c]\n- [a, b]", "a.yaml line 2: a set needs a phrase for each of th"),
        ("a.yaml", "- [a, b, c]\n-\n  - a\n  - a\n  - c", "a.yaml line 3: phrase 'a' is given"),
        ("a.yaml", "world: [a, b]\nsports: c", "a.yaml must hold a list; it holds a mapping."),
        ("a.yaml", "- [a, b", "is not YAML: "),
    ],
)
def test_files_that_cannot_be_used_are_refused_by_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(LabelError, match=re.escape(message)):
        read_wordings(path, LABELS)


def test_an_argument_is_a_word_for_how_or_a_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [wordings_from_argument(word) for word in ("average", "combinations")] == [
        "average",
        "combinations",
    ]
    with pytest.raises(LabelError, match=r"or a file of sets; there is no file sets\.txt\.$"):
        wordings_from_argument("sets.txt")
