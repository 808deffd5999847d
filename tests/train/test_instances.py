"""Pairs of texts and categories: reading, drawing, the order of training."""

import gzip
import io
import json
import random

import numpy as np
import pytest

from ulr.errors import InputError, TableError, TrainingError
from ulr.train import PairSource, TrainingSettings, parse_source
from ulr.train.instances import Instances
from ulr.train.pairs import MalformedRows, read_rows


def table(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def natcat_source(path):
    return PairSource((str(path),), kind="natcat")


def rows_of(source):
    malformed = MalformedRows()
    return list(read_rows(source, malformed)), malformed


def instances(*sources, n_held_out=0, **settings):
    return Instances(sources, io.BytesIO(), TrainingSettings(n_held_out=n_held_out, **settings))


def drawn(found, n_instances):
    return [each for window in found.in_training_order(n_instances) for each in window]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Random_Acts_Of_Amazon", "Random Acts Of Amazon"),
        ("comp.sys.mac", "comp sys mac"),
        ("MensRights", "Mens Rights"),
        ("TwoXChromosomes", "Two X Chromosomes"),
        ("WTF", "WTF"),
        ("iPhone", "iPhone"),
        ("beer, wine and spirits", "beer, wine and spirits"),
        ("Life of McDonald", "Life of McDonald"),
        ("  a  b ", "a b"),
    ],
)
def test_names_of_categories_are_split_into_words(tmp_path, name, words):
    file = table(tmp_path / "t.jsonl", [{"text": each, "label": each} for each in (name, "other")])
    assert dict(drawn(instances(PairSource((file,))), 2))[name.strip()] == [words, "other"]


def test_malformed_natcat_rows_are_counted_and_named(tmp_path):
    good = "\t".join(["a", *"bcdefgh", "a text"])
    lines = [good, "only\tthree\tfields", good, good.replace("a text", " "), ""]
    file = tmp_path / "some.data"
    file.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n" + good.encode())
    rows, malformed = rows_of(natcat_source(file))
    assert rows == [("a text", "a text", [["a"]], [*"bcdefgh"])] * 3
    assert malformed.count == 3  # an empty line is not a row
    assert malformed.named == [
        "some.data line 2 has 3 tab fields, not 9",
        "some.data line 4 has an empty field",
        "some.data line 6 is not UTF-8",
    ]


def test_malformed_table_rows_are_counted_and_the_first_five_are_named(tmp_path):
    file = tmp_path / "t.jsonl"
    good = {"text": "a text", "label": "x"}
    bad = ["{broken", "[1]", json.dumps({"text": 3, "label": "x"}), json.dumps(good | {"text": ""})]
    bad += [json.dumps(good | {"label": None}), '{"text": "\\ud83d", "label": "x"}']
    bad += [json.dumps({"label": "x"})]
    file.write_text("\n".join([json.dumps(good), *bad, json.dumps(good)]))
    rows, malformed = rows_of(PairSource((str(file),)))
    assert (len(rows), malformed.count) == (2, 7)
    assert malformed.named[0].startswith("t.jsonl line 2 is not JSON")
    assert malformed.named[1].startswith("t.jsonl line 3 must be a JSON object")
    assert malformed.named[2:] == [
        "t.jsonl line 4 has a text that is not a string",
        "t.jsonl line 5 has an empty text",
        "t.jsonl line 6 has no category in 'label'",
    ]


@pytest.mark.parametrize(
    ("value", "separators", "paths"),
    [
        ("one", {}, [["one"]]),
        (["one", "two"], {}, [["one"], ["two"]]),
        ([["root", "leaf"], ["other"]], {}, [["root", "leaf"], ["other"]]),
        ("a; b", {"category_separator": ";"}, [["a"], ["b"]]),
        (
            "r > a;r > b",
            {"category_separator": ";", "path_separator": ">"},
            [["r", "a"], ["r", "b"]],
        ),
    ],
)
def test_categories_can_be_names_lists_and_paths(tmp_path, value, separators, paths):
    file = table(tmp_path / "t.jsonl", [{"text": "t", "category": value}])
    assert rows_of(PairSource((file,), **separators))[0][0].paths == paths


def test_csv_and_gzip_files_are_read(tmp_path):
    (tmp_path / "t.csv").write_text('title,body,tags\nA,"b, c",x\n,,x\n')
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(b'{"title": "t", "label": "x"}\n'))
    source = PairSource((str(tmp_path / "t*"),), text_columns=("title", "body"))
    rows, malformed = rows_of(source)
    assert [row.text for row in rows] == ["A b, c", "t"]
    assert malformed.named[0].endswith("t.csv row 2 has an empty text")


def test_passages_of_an_article_contain_all_of_its_words(tmp_path):
    words = [f"w{i}" for i in range(64)]
    file = table(tmp_path / "w.jsonl", [{"text": " ".join(words), "categories": [["a", "b"]]}])
    rows, _ = rows_of(PairSource((file,), passage_words=20))
    assert [len(row.text.split()) for row in rows] == [20, 20, 24]
    assert " ".join(row.text for row in rows).split() == words
    assert len({row.document for row in rows}) == 1


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        ("natcat:a*.data@0.5", {}, PairSource(("a*.data",), kind="natcat", share=0.5)),
        ("reddit.tsv000.data", {}, PairSource(("reddit.tsv000.data",), kind="natcat")),
        ("t.csv@35%", {}, PairSource(("t.csv",), share=0.35)),
        ("stackexchange:q.jsonl", {"passage_words": 60}, PairSource(("q.jsonl",))),
        (
            "wikipedia:w.jsonl",
            {},
            PairSource(("w.jsonl",), category_column="categories", passage_words=100),
        ),
        (
            "wikipedia:w",
            {"passage_words": 60},
            PairSource(("w",), category_column="categories", passage_words=60),
        ),
        # options that do not apply to a kind are ignored
        ("natcat:a", {"category_column": "tags"}, PairSource(("a",), kind="natcat")),
        ("a.csv", {"negatives": "given"}, PairSource(("a.csv",))),
    ],
)
def test_sources_are_parsed(spec, options, expected):
    assert parse_source(spec, **options) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse_source("t.csv@0"), "share must be above 0; got 0.0"),
        (lambda: parse_source("t.csv@-1").files(), "there is no file t.csv@-1"),
        (lambda: PairSource(("t",), kind="other"), "must be natcat or table; got 'other'"),
        (lambda: PairSource(("t",), negatives="given"), "negatives='given' needs kind='natcat'"),
        (lambda: PairSource(("t",), negatives="none"), "given, uniform, frequency; got 'none'"),
        (lambda: PairSource(("t",), passage_words=3), "passage_words must be at least 10; got 3"),
        (lambda: instances(), "at least one source of pairs is needed"),
    ],
)
def test_invalid_sources_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"there is no file nowhere\*.csv"):
        PairSource(("nowhere*.csv",)).files()
    file = tmp_path / "t.data"
    file.write_bytes(gzip.compress(b"text" * 1000)[:30])
    with pytest.raises(TableError, match="cannot be read"):
        rows_of(natcat_source(file))
    file.write_text("a\tb\n")
    with pytest.raises(TrainingError, match=r"no row to train on; the first row: t\.data line 1"):
        instances(natcat_source(file))


def test_a_missing_column_is_named_with_the_existing_ones(tmp_path):
    file = table(tmp_path / "t.jsonl", [{"text": "t", "topic": "x"}])
    with pytest.raises(
        TrainingError, match=r"row: t.jsonl line 1 has no column 'category' or .*has: text, topic"
    ):
        rows_of(PairSource((file,)))
    with pytest.raises(TrainingError, match=r"no column 'body' \(--text-column\); it has: text"):
        rows_of(PairSource((file,), text_columns=("body",), category_column="topic"))


@pytest.mark.parametrize("negatives", ["uniform", "frequency"])
def test_negatives_are_neither_true_categories_nor_their_ancestors(tmp_path, negatives):
    """Rows have one to three paths in a tree; some name a leaf without what is above it."""
    rng, rows, own = random.Random(3), [], {}
    for number in range(300):
        paths, names = [], set()
        for _ in range(rng.randint(1, 3)):
            a, b, c = rng.randrange(4), rng.randrange(3), rng.randrange(3)
            path = [f"root {a}", f"branch {a} {b}", f"Leaf {a} {b} {c}"]
            names |= set(path)
            paths.append(path[2:] if rng.random() < 0.3 else path)
        rows.append({"text": f"text {number}", "categories": paths})
        own[f"text {number}"] = names
    source = PairSource((table(tmp_path / "tree.jsonl", rows),), negatives=negatives)
    found = drawn(instances(source, random_state=5), 900)
    assert len(found) == 900
    for text, (true, *false) in found:
        assert true in own[text]
        assert not own[text] & set(false)
        assert len(set(false)) == 7
    kinds = {categories[0].split()[0] for _, categories in found}
    assert kinds == {"root", "branch", "Leaf"}  # ancestors are true categories, too


def test_given_negatives_are_kept_except_for_true_categories(tmp_path):
    file = tmp_path / "t.data"
    rows = ["\t".join(["Cats", "cats", *"bcdefg", "one"])]
    rows += ["\t".join([each, *"bcdefgh".replace(each, "z"), "other"]) for each in "bcd"]
    file.write_text("\n".join(rows))
    found = dict(drawn(instances(natcat_source(file)), 4))["one"]
    assert found[:7] == ["Cats", *"bcdefg"]
    assert len(set(found)) == 8
    assert "cats" not in found


def test_negatives_by_frequency_follow_the_frequencies(tmp_path):
    labels = ["common"] * 50 + [f"rare {i}" for i in range(50)]
    rows = [{"text": f"text {i}", "label": label} for i, label in enumerate(labels)]
    source = PairSource((table(tmp_path / "t.jsonl", rows),))
    found = [each.categories for each in drawn(instances(source, n_negatives=1), 2000)]
    negatives = [false for true, false in found if true != "common"]
    assert negatives.count("common") / len(negatives) == pytest.approx(50 / 99, abs=0.05)


@pytest.fixture
def two_sources(tmp_path):
    def source(name, n_rows, share):
        rows = [{"text": f"{name}{i}", "label": f"{name}{i % 9}"} for i in range(n_rows)]
        return PairSource((table(tmp_path / name, rows),), share=share)

    return [source("a.jsonl", 90, 0.75), source("b.jsonl", 30, 0.25)]


def test_sources_are_mixed_by_share(two_sources):
    found = instances(*two_sources)
    texts = [each.text for each in drawn(found, 120)]
    assert found.natural_length == 120
    assert sum(text.startswith("a") for text in texts) == 90
    assert len(set(texts)) == 120
    assert texts[:90] != sorted(texts)[:90]


def test_an_exhausted_source_is_repeated_with_other_negatives(two_sources):
    found = drawn(instances(*two_sources, n_negatives=3), 240)
    assert len({each.text for each in found}) == 120
    assert len({(each.text, *sorted(each.categories)) for each in found}) > 200


def test_instances_depend_on_the_seed(two_sources):
    def found(seed):
        made = instances(*two_sources, random_state=seed, n_held_out=20)
        return drawn(made, 50), made.held_out()

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_held_out_documents_are_never_trained_on(tmp_path):
    rows = [
        {"text": " ".join(f"w{number}x{i}" for i in range(40)), "label": f"c{number % 5}"}
        for number in range(60)
    ]
    file = table(tmp_path / "w.jsonl", rows + rows[:20])
    made = instances(PairSource((file,), passage_words=10), n_held_out=20)
    held_out = {each.text.split("x")[0] for each in made.held_out()}
    assert held_out
    assert not held_out & {each.text.split("x")[0] for each in drawn(made, made.natural_length)}


def test_shares_for_some_sources_only_and_a_single_category_are_refused(two_sources, tmp_path):
    with pytest.raises(TrainingError, match="got 1 shares for 2 sources"):
        instances(two_sources[0], PairSource(two_sources[1].paths))
    with pytest.raises(TrainingError, match="at least two categories; the pairs have 1"):
        instances(PairSource((table(tmp_path / "t.jsonl", [{"text": "t", "label": "x"}]),)))


def test_batches_hold_every_instance_once_with_similar_lengths_together(tmp_path):
    rows = [{"text": "word " * (1 + i % 17) + str(i), "label": f"x{i % 9}"} for i in range(1004)]
    source = PairSource((table(tmp_path / "t.jsonl", rows),))
    found = drawn(instances(source, batch_size=8), 1004)
    assert len({each.text for each in found}) == 1004
    lengths = [[len(each.text) for each in found[i : i + 8]] for i in range(0, 1004, 8)]
    assert np.mean([max(batch) - min(batch) for batch in lengths]) < 5  # of 80
    assert lengths[:50] != sorted(lengths[:50])
    assert len(lengths[-1]) == 4  # only the last batch is smaller
