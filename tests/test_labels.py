"""Labels from every source, in the order given; errors name the line or the entry."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.errors import LabelError
from ulr.labels import (
    NAMED_LISTS,
    Label,
    as_label_set,
    check_extra_labels,
    is_label_file,
    labels_from_arguments,
    read_labels,
)

PHRASES = {"world": "world news", "sports": ["sport", "football"], "business": None}
AS_LABELS = (
    Label("world", ("world news",)),
    Label("sports", ("sport", "football")),
    Label("business", ("business",)),
)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1),
        min_size=2,
        unique=True,
    )
)
def test_order_is_kept_by_every_source(names):
    expected = as_label_set(names)
    assert (expected.phrases(), len(expected)) == ([[name] for name in names], len(names))
    assert as_label_set(dict.fromkeys(names)) == expected
    assert labels_from_arguments([", ".join(names)]) == expected
    assert expected.names == tuple(names)


TEXT_FILE = """\ufeff# what the news desk calls them

world: world news
  sports : sport ; football
#
business
"""
FILES = {
    "labels.txt": TEXT_FILE,
    "windows.txt": TEXT_FILE.replace("\n", "\r\n"),
    "labels": TEXT_FILE,
    "labels.json": '{"world": "world news", "sports": ["sport", "football"], "business": null}',
    "tabs.json": '{\n\t"world":\t"world news",\n\t"sports": ["sport",\t"football"],'
    '\n\t"business":\t"business"\n}',
    "labels.YAML": "world: world news\nsports: [sport, football]\nbusiness: business\n",
    "labels.yml": "# desk\nworld:\n- world news\nsports:\n  - sport\n  - football\n"
    "business: business\n",
    "labels.csv": "label,phrases\nworld,world news\nsports,sport; football\nbusiness,\n",
    "semicolons.csv": 'Name;Phrases\nworld;world news\nsports;"sport; football"\nbusiness;\n',
    "tabs.csv": "id\tphrases\tlabel\n1\tworld news\tworld\n2\tsport;football\tsports\n3\t\tbusiness",
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_labels(tmp_path, name):
    path = write(tmp_path, name, FILES[name])
    assert read_labels(path).labels == labels_from_arguments([str(path)]).labels == AS_LABELS


def test_a_mapping_and_a_line_of_labels_may_hold_phrases():
    assert as_label_set(PHRASES).labels == AS_LABELS
    line = "world: world news, sports:sport;football,business"
    assert labels_from_arguments([line]).labels == AS_LABELS


def test_yaml_words_and_numbers_stay_the_text_they_are_written_as(tmp_path):
    words = ("no", "yes", "null", "1", "1.50", "2020-01-01", "0x1F")
    as_list = write(tmp_path, "list.yaml", "".join(f"- {word}\n" for word in words))
    as_mapping = write(tmp_path, "map.yaml", "".join(f"{word}: on {word}\n" for word in words))
    assert read_labels(as_list).names == words
    assert read_labels(as_mapping).names == words
    assert read_labels(as_mapping).labels[0].phrases == ("on no",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("world, sports", "labels must be a list of names or a mapping; got the text 'world, spor"),
        (5, "labels must be a list of names or a mapping; got int."),
        (["a", "b", "a"], "label 3: label 'a' is already given at label 1."),
        (["a", " "], "label 2: a name is empty."),
        (["a", "half \ud83d"], "label 2: a name holds half a character, 'half \\ud83d'"),
        ({"a": "x", "b": ["y", "x"]}, "labels entry 2: phrase 'x' of label 'b' is already given"),
        ({"a": "x", "b": ["y", ""]}, "labels entry 2: a phrase of 'b' is empty."),
        ({"a": "x", "b": ["y", 5]}, "labels entry 2: a phrase of 'b' must be a text; got 5."),
        ({"a": "x", "b": []}, "labels entry 2: label 'b' has no phrases."),
        ({"a": 5, "b": "y"}, "labels entry 1: the phrases of label 'a' must be a text or a list"),
        (["a"], "at least 2 labels are needed; there is only one, 'a' (label 1)."),
    ],
)
def test_labels_that_cannot_be_used_are_refused_by_place(given, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        as_label_set(given)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "a\n\n# c\na", "a.txt line 4: label 'a' is already given at a.txt line 1."),
        ("a.txt", "a\n: x", "a.txt line 2: a name is empty."),
        ("a.txt", "\na\n", "at least 2 labels are needed; a.txt has only one, 'a' (a.txt line 2)."),
        ("a.txt", "# a\n", "at least 2 labels are needed; a.txt has none."),
        ("a.txt", "caf\xe9\n".encode("latin-1"), "a.txt cannot be read as UTF-8 text: "),
        ("a.json", '{"a": "x",\n"a": "y"}', "a.json entry 2: label 'a' is already given at a.json"),
        ("a.json", '{"a": "x", "b": "x"}', "a.json entry 2: phrase 'x' of label 'b' is already"),
        ("a.json", '{"a": [{"b": "c"}]}', "a.json entry 1: a phrase of 'a' must be a text"),
        ("a.json", '["a",\n"b"', "a.json line 2 is not JSON: "),
        ("a.json", '"a"', "a.json must hold a list of names or a mapping of names to phrases."),
        ("a.yaml", "a: x\na: y", "a.yaml entry 2: label 'a' is already given at a.yaml entry 1."),
        ("a.yaml", "- a\n- b\n\t- c", "a.yaml line 3 is not YAML: "),
        ("a.yaml", "- a\n- &b [*b]", "a label file cannot use YAML aliases"),
        ("a.yaml", "[" * 50_000, "nested more than 50 deep"),
        ("a.yaml", "- " * 50_000, "nested more than 50 deep"),
        ("a.yaml", "", "a.yaml must hold a list of names or a mapping of names to phrases."),
    ],
)
def test_files_that_cannot_be_used_are_refused_by_line(tmp_path, name, content, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        read_labels(write(tmp_path, name, content))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[" * 100_000),
        ("a.json", '{"a":' * 100_000),
        *[("a.json", "[" * depth + "]" * depth) for depth in (100, 500, 900, 980)],
        ("a.json", "[1" + "0" * 5000 + ", 2]"),
        ("a.yaml", "[" * 400 + "]" * 400),
        ("a.yaml", "a: " + "{b: " * 400),
        ("a.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"),
        ("a.txt", ("x" * 10**6 + "\n") * 2),
        ("a.csv", "label,phrases\na,b,c\n"),
        ("a.csv", "text\nsome words\n"),
        ("a.csv", 'label\n"a\n'),
        ("a.csv", ""),
    ],
    ids=lambda value: value[:12],
)
def test_hostile_files_are_refused_in_one_short_sentence(tmp_path, name, content):
    with pytest.raises(LabelError, match=r"a\.(json|yaml|txt|csv)") as refused:
        read_labels(write(tmp_path, name, content))
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_missing_file_and_folder_are_named(tmp_path):
    with pytest.raises(LabelError, match=r"there is no label file .*none\.txt\."):
        read_labels(tmp_path / "none.txt")
    with pytest.raises(LabelError, match=r"cannot be read as UTF-8 text: .*directory"):
        read_labels(tmp_path)


def test_template_wraps_every_phrase():
    labels = as_label_set({"a": ["x", "{y}"], "b": "z"})
    assert labels.phrases("About {}, {}.") == [
        ["About x, x.", "About {y}, {y}."],
        ["About z, z."],
    ]


def test_argument_that_is_no_file_holds_the_labels():
    assert labels_from_arguments(["world, sports"]).names == ("world", "sports")
    assert labels_from_arguments(["world", "sports,"]).names == ("world", "sports")
    with pytest.raises(LabelError, match=r"label 2: a name is empty\."):
        labels_from_arguments(["world,,sports"])


# Extra labels, lists of them, and lists in files

OWN = as_label_set({"world": ["World", "foreign affairs"], "Sports": "football"})


def test_extra_labels_are_names_in_their_order(tmp_path):
    expected = ("math", "real estate", "Math")
    assert check_extra_labels(["math", " real  estate", "Math"], OWN) == expected
    assert check_extra_labels(iter(expected), OWN) == expected
    for name, content in (
        ("a.txt", "# more\nmath\n\nreal  estate\nMath\n"),
        ("a.json", '["math", "real estate", "Math"]'),
        ("a.yaml", "- math\n- real estate\n- Math\n"),
    ):
        assert check_extra_labels(write(tmp_path, name, content), OWN) == expected


@pytest.mark.parametrize(
    ("given", "owner"),
    [("world", "world"), ("WORLD", "world"), ("Foreign  Affairs", "world"), ("sPORTS", "Sports")],
)
def test_an_extra_label_that_is_a_label_or_its_phrase_is_refused(tmp_path, given, owner):
    clean = " ".join(given.split())
    message = f"extra label {clean!r} equals a name or phrase of the label {owner!r}; leave it out."
    with pytest.raises(LabelError, match=re.escape(f"extra label 2: {message}")):
        check_extra_labels(["math", given], OWN)
    with pytest.raises(LabelError, match=re.escape(f"a.txt line 3: {message}")):
        check_extra_labels(write(tmp_path, "a.txt", f"math\n\n{given}\n"), OWN)
    with pytest.raises(LabelError, match=re.escape(f"a.json entry 2: {message}")):
        check_extra_labels(write(tmp_path, "a.json", f'["math",\n"{given}"]'), OWN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["math", "b", " math"], "extra label 3: extra label 'math' is also given at extra lab"),
        (["math", " "], "extra label 2: a name is empty."),
        ([], "there are no extra labels; name at least one."),
        ("math, physics", "extra labels must be a list of names; got 'math, physics'."),
        (Path("none.txt"), "there is no label file none.txt."),
        (Path("a.txt"), "a.txt line 3: extra label 'two' cannot have phrases."),
        (Path("a.json"), "a.json entry 2: a name must be a text; got ['two']."),
    ],
)
def test_extra_labels_that_cannot_be_used_are_refused_by_place(
    tmp_path, monkeypatch, given, message
):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one\n\ntwo: three")
    Path("a.json").write_text('["one",\n["two"]]')
    with pytest.raises(LabelError, match=re.escape(message)):
        check_extra_labels(given, OWN)


def test_an_argument_is_a_file_by_ending_or_existence(tmp_path):
    path = write(tmp_path, "desk", "b\na\n")
    assert is_label_file(str(path))
    assert is_label_file("not there.YAML")
    assert not is_label_file("world, sports")
    assert not is_label_file(str(tmp_path))
    assert not is_label_file(", ".join(f"category number {i}" for i in range(500)))


def test_the_named_list_is_the_30_sites_in_the_order_of_the_paper():
    sites = NAMED_LISTS["stackexchange"]
    assert (len(sites), len(set(sites))) == (30, 30)
    assert (sites[0], sites[-1]) == ("math", "academia")
    assert check_extra_labels(sites, OWN) == sites


# Label files and arguments as people have them


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("world; sports; business", ["world", "sports", "business"]),
        ("world\nsports\r\nbusiness\n", ["world", "sports", "business"]),
        ("world,\nsports,\nbusiness", ["world", "sports", "business"]),
        ("world;sports;", ["world", "sports"]),
        ("a: one; b: two", ["a", "b"]),
        ("a: one; two, b", ["a", "b"]),
        ("a: one; two\nb: three", ["a", "b"]),
    ],
)
def test_commas_semicolons_and_line_ends_separate_labels(value, names):
    assert list(labels_from_arguments([value]).names) == names


def test_semicolons_after_a_colon_separate_phrases():
    label_set = labels_from_arguments(["a: one; two", "b: three; four, c"])
    assert label_set.phrases() == [["one", "two"], ["three", "four"], ["c"]]


@pytest.mark.parametrize(
    "column", "phrases phrase description definition keywords synonyms examples".split()
)
def test_usual_columns_of_label_files_are_phrases(tmp_path, column):
    path = tmp_path / "labels.csv"
    path.write_text(f"Name,{column.title()}\nsport,goals; matches\nmoney,\n")
    label_set = read_labels(path)
    assert label_set.phrases() == [["goals", "matches"], ["money"]]
    assert label_set.notes == ()


def test_several_columns_add_up_and_commas_separate_words_of_lists(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        'label,description,keywords\nsport,"Games, teams","goal, match"\nmoney,Banks,"bank, Banks"\n'
    )
    assert read_labels(path).phrases() == [["Games, teams", "goal", "match"], ["Banks", "bank"]]


@pytest.mark.parametrize("ending", ["csv", "json", "yaml"])
def test_columns_that_are_not_used_are_named(tmp_path, ending):
    rows = [
        {"id": "1", "name": "sport", "colour": "red"},
        {"id": "2", "name": "money", "colour": ""},
    ]
    path = tmp_path / f"labels.{ending}"
    if ending == "csv":
        path.write_text("id,name,colour\n" + "".join(f"{','.join(r.values())}\n" for r in rows))
    else:
        path.write_text(json.dumps(rows))
    for label_set in (read_labels(path), labels_from_arguments([str(path)])):
        assert label_set.names == ("sport", "money")
        assert "not used: 'id', 'colour'; columns that describe a label are" in label_set.notes[0]


def test_an_entry_without_a_name_is_refused(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text('[{"name": "sport"}, {"title": "money"}]')
    with pytest.raises(LabelError, match="entry 2 needs a 'label'"):
        read_labels(path)


def test_names_phrases_and_templates_have_a_limit():
    long = "a" * 2_001
    with pytest.raises(LabelError, match="label 2: a name has 2,001 letters; at most 2,000"):
        as_label_set(["b", long])
    with pytest.raises(LabelError, match="a phrase of 'c' has 2,001 letters"):
        as_label_set({"b": "b", "c": ["d", long]})
    with pytest.raises(LabelError, match="a template can have at most 2,000"):
        as_label_set(["b", "c"]).phrases(long + "{}")
