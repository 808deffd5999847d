"""Pairs of texts and categories: reading, drawing, batches."""

import gzip
import json
import random

import numpy as np
import pytest

from ulr.errors import TableError, TrainingError
from ulr.train.categories import Categories, NegativeSampler, category_words
from ulr.train.instances import Batches, Instance, TrainingBatch, open_instances
from ulr.train.sources import MalformedRows, PairSource, parse_source, read_rows


def table(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows_of(source):
    malformed = MalformedRows()
    return list(read_rows(source, malformed)), malformed


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
def test_names_of_categories_are_split_into_words(name, words):
    assert category_words(name) == words


def test_natcat_rows_have_a_true_category_seven_false_ones_and_a_text(natcat):
    rows, malformed = rows_of(PairSource((str(natcat),), kind="natcat"))
    first = natcat.read_text().splitlines()[0].split("\t")
    assert rows[0].paths == [[first[0]]]
    assert rows[0].false == first[1:8]
    assert rows[0].text == first[8]
    assert len(rows) == 400
    assert malformed.count == 0


def test_malformed_natcat_rows_are_counted_and_named(tmp_path):
    good = "\t".join(["a", *"bcdefgh", "a text"])
    lines = [good, "only\tthree\tfields", good, good.replace("a text", " "), ""]
    file = tmp_path / "some.data"
    file.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n" + good.encode())
    rows, malformed = rows_of(PairSource((str(file),), kind="natcat"))
    assert len(rows) == 3
    assert malformed.count == 4
    assert malformed.named == [
        "some.data line 2 has 3 tab fields, not 9",
        "some.data line 4 has an empty field",
        "some.data line 5 has 1 tab fields, not 9",
        "some.data line 6 is not UTF-8",
    ]


def test_malformed_table_rows_are_counted_and_named(tmp_path):
    file = tmp_path / "t.jsonl"
    good = {"text": "a text", "label": "x"}
    bad = ["{broken", "[1]", json.dumps({"text": 3, "label": "x"}), json.dumps(good | {"text": ""})]
    bad += [json.dumps(good | {"label": None}), json.dumps({"label": "x"})]
    file.write_text("\n".join([json.dumps(good), *bad, json.dumps(good)]))
    rows, malformed = rows_of(PairSource((str(file),)))
    assert len(rows) == 2
    assert malformed.count == 6
    assert malformed.named[0] == "t.jsonl line 2 is not a JSON object"
    assert malformed.named[2] == "t.jsonl line 4 has a text that is not a string"
    assert len(malformed.named) == 5


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
    (tmp_path / "t.csv").write_text('title,body,tags\nA,"b, c",x\n')
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(b'{"text": "t", "label": "x"}\n'))
    csv = PairSource((str(tmp_path / "t.csv"),), text_columns=("title", "body"))
    assert rows_of(csv)[0][0].text == "A b, c"
    assert rows_of(PairSource((str(tmp_path / "t.jsonl.gz"),)))[0][0].text == "t"


def test_passages_of_an_article_contain_all_of_its_words(tmp_path):
    words = [f"w{i}" for i in range(64)]
    file = table(tmp_path / "w.jsonl", [{"text": " ".join(words), "categories": [["a", "b"]]}])
    rows, _ = rows_of(PairSource((file,), passage_words=20))
    assert [len(row.text.split()) for row in rows] == [20, 20, 24]
    assert " ".join(row.text for row in rows).split() == words
    assert len({row.document for row in rows}) == 1


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("natcat:a*.data@0.5", PairSource(("a*.data",), kind="natcat", share=0.5)),
        ("reddit.train.tsv000.data", PairSource(("reddit.train.tsv000.data",), kind="natcat")),
        ("t.csv@35%", PairSource(("t.csv",), share=0.35)),
        ("stackexchange:q.jsonl", PairSource(("q.jsonl",))),
        (
            "wikipedia:w.jsonl",
            PairSource(("w.jsonl",), category_column="categories", passage_words=100),
        ),
    ],
)
def test_sources_are_parsed(spec, expected):
    assert parse_source(spec) == expected


def test_options_that_do_not_apply_to_a_kind_are_ignored():
    content = {"negatives": "given", "category_column": "tags"}
    assert parse_source("natcat:a", **content) == PairSource(
        ("a",), kind="natcat", negatives="given"
    )
    assert parse_source("a.csv", **content) == PairSource(("a.csv",), category_column="tags")
    assert parse_source("wikipedia:a", passage_words=60).passage_words == 60
    assert parse_source("stackexchange:a", passage_words=60).passage_words is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse_source("t.csv@0"), "share must be above 0; got 0.0"),
        (lambda: parse_source("t.csv@1.2.3"), "'1.2.3' is not a share"),
        (lambda: PairSource(("t.csv",), kind="other"), "must be natcat or table; got 'other'"),
        (
            lambda: PairSource(("t.csv",), negatives="given"),
            "negatives='given' needs kind='natcat'",
        ),
        (lambda: PairSource(("t.csv",), negatives="none"), "given, uniform, frequency; got 'none'"),
    ],
)
def test_invalid_sources_are_refused(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


def test_a_pattern_without_files_is_named():
    with pytest.raises(TableError, match=r"there is no file nowhere\*.csv"):
        PairSource(("nowhere*.csv",)).files()


def test_a_missing_column_is_named_with_the_existing_ones(tmp_path):
    file = table(tmp_path / "t.jsonl", [{"text": "t", "topic": "x"}])
    with pytest.raises(TrainingError, match=r"no column 'category' or .*has: text, topic"):
        rows_of(PairSource((file,)))
    with pytest.raises(TrainingError, match=r"no column 'body'; it has: text, topic"):
        rows_of(PairSource((file,), text_columns=("body",), category_column="topic"))


def test_a_damaged_gzip_file_is_refused(tmp_path):
    file = tmp_path / "t.data"
    file.write_bytes(gzip.compress(b"text" * 1000)[:30])
    with pytest.raises(TableError, match="cannot be read"):
        rows_of(PairSource((str(file),), kind="natcat"))


def test_a_file_without_a_usable_row_says_why(tmp_path):
    file = tmp_path / "t.data"
    file.write_text("a\tb\n")
    with (
        pytest.raises(
            TrainingError, match=r"no row to train on; the first row: t\.data line 1 has 2"
        ),
        open_instances([PairSource((str(file),), kind="natcat")]),
    ):
        pass


def tree(tmp_path, n_rows=300):
    """Rows with one to three paths in a tree; some name a leaf without what is above it."""
    rng = random.Random(3)
    rows = []
    for number in range(n_rows):
        paths = []
        for _ in range(rng.randint(1, 3)):
            a, b, c = rng.randrange(4), rng.randrange(3), rng.randrange(3)
            path = [f"root {a}", f"branch {a} {b}", f"Leaf {a} {b} {c}"]
            paths.append(path[2:] if rng.random() < 0.3 else path)
        rows.append({"text": f"text {number}", "categories": paths})
    return rows, table(tmp_path / "tree.jsonl", rows)


@pytest.mark.parametrize("negatives", ["uniform", "frequency"])
def test_negatives_are_neither_true_categories_nor_their_ancestors(tmp_path, negatives):
    rows, file = tree(tmp_path)
    own = {}
    for row in rows:
        names = set()
        for path in row["categories"]:
            digits = path[-1].split()[1:]
            names |= {f"root {digits[0]}", f"branch {digits[0]} {digits[1]}", path[-1]}
        own[row["text"]] = names
    source = PairSource((file,), negatives=negatives)
    with open_instances([source], n_held_out=0, random_state=5) as instances:
        drawn = instances.take(instances.order(900))
    assert len(drawn) == 900
    for each in drawn:
        true, *false = each.categories
        assert true in own[each.text]
        assert not own[each.text] & set(false)
        assert len(set(false)) == 7
    assert len({each.categories[0].split()[0] for each in drawn}) == 3  # ancestors are drawn too


def test_given_negatives_are_kept_except_for_true_categories(tmp_path):
    file = tmp_path / "t.data"
    rows = ["\t".join(["Cats", "cats", *"bcdefg", "one"])]
    rows += ["\t".join([each, *"bcdefgh".replace(each, "z"), "other"]) for each in "bcd"]
    file.write_text("\n".join(rows))
    with open_instances([PairSource((str(file),), kind="natcat")], n_held_out=0) as instances:
        first = next(e for e in instances.take(instances.order(4)) if e.text == "one")
    assert first.categories[:7] == ("Cats", *"bcdefg")
    assert len(set(first.categories)) == 8
    assert "cats" not in first.categories


def test_negatives_by_frequency_follow_the_weights():
    pool = np.arange(50)
    weights = np.where(pool == 7, 50.0, 1.0)
    drawn = [
        NegativeSampler(pool, weights).draw(np.random.default_rng(seed), 1, set())[0]
        for seed in range(2000)
    ]
    assert drawn.count(7) / 2000 == pytest.approx(50 / 99, abs=0.05)


def test_fewer_categories_than_wanted_give_fewer_negatives():
    negatives = NegativeSampler(np.arange(4))
    assert sorted(negatives.draw(np.random.default_rng(1), 7, {2})) == [0, 1, 3]


def test_ancestors_are_known_from_any_row():
    categories = Categories()
    path = categories.path(["Root", "Middle", "Leaf"])
    assert categories.with_ancestors([categories.number("leaf")]) == set(path)
    assert categories.with_ancestors([path[0]]) == {path[0]}


def two_sources(tmp_path, **settings):
    first = table(
        tmp_path / "a.jsonl", [{"text": f"a{i}", "label": f"x{i % 9}"} for i in range(90)]
    )
    second = table(
        tmp_path / "b.jsonl", [{"text": f"b{i}", "label": f"y{i % 9}"} for i in range(30)]
    )
    return [PairSource((first,), share=0.75), PairSource((second,), share=0.25)]


def test_sources_are_mixed_by_share(tmp_path):
    with open_instances(two_sources(tmp_path), n_held_out=0) as instances:
        texts = [each.text for each in instances.take(instances.order(120))]
        assert instances.natural_length == 120
    assert sum(text.startswith("a") for text in texts) == 90
    assert len(set(texts)) == 120
    assert texts[:90] != sorted(texts)[:90]


def test_an_exhausted_source_is_repeated_in_another_order(tmp_path):
    with open_instances(two_sources(tmp_path)[1:], n_held_out=0) as instances:
        texts = [each.text for each in instances.take(instances.order(60))]
    assert sorted(texts[:30]) == sorted(texts[30:])
    assert texts[:30] != texts[30:]


def test_instances_depend_on_the_seed(tmp_path):
    def drawn(seed):
        with open_instances(two_sources(tmp_path), random_state=seed) as instances:
            return instances.take(instances.order(50)), instances.held_out()

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_held_out_documents_are_never_trained_on(tmp_path):
    rows = [
        {"text": " ".join(f"w{number}x{i}" for i in range(40)), "label": f"c{number % 5}"}
        for number in range(60)
    ]
    file = table(tmp_path / "w.jsonl", rows + rows[:20])
    with open_instances([PairSource((file,), passage_words=10)], n_held_out=20) as instances:
        held_out = {each.text.split("x")[0] for each in instances.held_out()}
        trained = instances.take(instances.order(instances.natural_length))
    assert held_out
    assert not held_out & {each.text.split("x")[0] for each in trained}


def test_shares_for_some_sources_only_are_refused(tmp_path):
    first, second = two_sources(tmp_path)
    with (
        pytest.raises(TrainingError, match="got 1 shares for 2 sources"),
        open_instances([first, PairSource(second.paths)]),
    ):
        pass


def test_a_single_category_is_refused(tmp_path):
    file = table(tmp_path / "t.jsonl", [{"text": "t", "label": "x"}])
    with (
        pytest.raises(TrainingError, match="at least two categories; the pairs have 1"),
        open_instances([PairSource((file,))]),
    ):
        pass


def test_batches_hold_every_instance_once_with_similar_lengths_together(tmp_path):
    rows = [{"text": "word " * (1 + i % 17) + str(i), "label": f"x{i % 9}"} for i in range(200)]
    source = PairSource((table(tmp_path / "t.jsonl", rows),))
    with open_instances([source], n_held_out=0) as instances:
        batches = list(Batches(instances, 200, size=8, window=5))
    assert sum(map(len, batches)) == 200
    assert len({each.text for batch in batches for each in batch}) == 200
    spread = [max(len(e.text) for e in b) - min(len(e.text) for e in b) for b in batches]
    assert np.mean(spread) < 20  # of 80
    assert [len(batch[0].text) for batch in batches[:5]] != sorted(
        len(b[0].text) for b in batches[:5]
    )


@pytest.mark.parametrize("step", [0, 3, 5, 24])
def test_batches_from_a_step_equal_those_of_the_whole_run(tmp_path, step):
    rows = [{"text": f"{'word ' * (i % 7)}{i}", "label": f"x{i % 9}"} for i in range(200)]
    source = PairSource((table(tmp_path / "t.jsonl", rows),))
    with open_instances([source], n_held_out=0) as instances:
        batches = Batches(instances, 200, size=8, window=5)
        assert list(batches.from_step(step)) == list(batches)[step:]


def test_a_batch_has_each_category_once():
    batch = TrainingBatch.of([Instance("t", ("a", "b", "c")), Instance("u", ("b", "a"))])
    assert batch.categories == ["a", "b", "c"]
    assert batch.indices.tolist() == [[0, 1, 2], [1, 0, 0]]
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
