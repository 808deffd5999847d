"""Official files and samples of the datasets, and what is wrong with others."""

import csv
import io
import json
import tarfile

import numpy as np
import pytest

from reproduction.datasets import DATASETS, ReproductionError
from reproduction.documents import read_documents

GROUPS = DATASETS["20newsgroups"].labels
POST = "From: someone\nSubject: Re: a {} question\nLines: 1\n\nThe body\nof it.\n"


def csv_bytes(rows):
    """Rows as the official files write them: every field quoted."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def rows_of(name):
    """One row per class, in reverse, with as many fields as the official files have."""
    return [
        [str(label), *(f'field "{part}", {label}' for part in range(DATASETS[name].n_fields - 1))]
        for label in range(len(DATASETS[name].labels), 0, -1)
    ]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def archived(files):
    """The bytes of an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def write_sample(path, *rows, **more):
    """JSON lines of labels and texts."""
    records = [{"label": label, "text": text} | more for label, text in rows]
    write(path, "".join(json.dumps(each) + "\n" for each in records).encode())


@pytest.mark.parametrize("name", ["agnews", "dbpedia14", "yahoo"])
def test_an_archive_and_its_folders_give_the_same_documents(tmp_path, name):
    folder, content = DATASETS[name].folder, csv_bytes(rows_of(name))
    members = {"._test.csv": b"junk", "train.csv": b"", "test.csv": content}
    packed = archived({f"{folder}/{member}": each for member, each in members.items()})
    write(tmp_path / "packed" / f"{folder}.tar.gz", packed)
    write(tmp_path / "unpacked" / folder / "test.csv", content)
    write(tmp_path / "short" / name / "test.csv", content)
    packed, *others = (
        read_documents(name, tmp_path / where) for where in ("packed", "unpacked", "short")
    )
    n_labels = len(DATASETS[name].labels)
    assert packed.truth.tolist() == list(range(n_labels))[::-1]
    assert packed.texts[0].startswith(f'field "0", {n_labels} field "1", {n_labels}')
    assert packed.source == f"{folder}.tar.gz:test.csv"
    assert [each.source for each in others] == [f"{folder}/test.csv", f"{name}/test.csv"]
    assert {each.fingerprint for each in others} == {packed.fingerprint}


def test_20_newsgroups_are_the_same_from_archive_folders_and_json_lines(tmp_path):
    files = {
        f"20news-bydate-test/{group}/{number}": POST.format(f"{group} {number}").encode()
        for group in (GROUPS[4], GROUPS[0], GROUPS[19])
        for number in (20002, 10001)
    }
    write(tmp_path / "packed" / "20news-bydate.tar.gz", archived(files))
    for name, content in files.items():
        write(tmp_path / "unpacked" / name, content)
        write(tmp_path / "deeper" / "20news-bydate" / name, content)
    rows = [(name.split("/")[1], files[name].decode()) for name in sorted(files)]
    write_sample(tmp_path / "lines" / "20newsgroups" / "test.jsonl", *rows)
    places = ("packed", "unpacked", "deeper", "lines")
    read = [read_documents("20newsgroups", tmp_path / where) for where in places]
    assert read[0].truth.tolist() == [0, 0, 4, 4, 19, 19]
    assert read[0].texts[0] == "Re: a alt.atheism 10001 question\nThe body\nof it.\n"
    assert len({each.fingerprint for each in read}) == 1
    assert [each.source for each in read] == [
        "20news-bydate.tar.gz:20news-bydate-test",
        "20news-bydate-test",
        "20news-bydate/20news-bydate-test",
        "20newsgroups/test.jsonl",
    ]


def test_posts_are_latin_1_and_keep_their_subject_and_body(tmp_path):
    folder = tmp_path / "20news-bydate-test" / GROUPS[0]
    write(folder / "1", b"From: x\n\nSubject: in the body\n")
    write(folder / "2", b"Subject: one\n  two\nFrom: x\n\nbody")
    write(folder / "3", b"Subject: caf\xe9\n\nna\xefve\n")
    texts = read_documents("20newsgroups", tmp_path).texts
    assert texts == ["\nSubject: in the body\n", "one\n  two\nbody", "café\nnaïve\n"]


def test_fields_are_joined_without_the_empty_ones_and_yahoo_gets_its_line_breaks(tmp_path):
    write(tmp_path / "yahoo" / "test.csv", csv_bytes([["1", "a question", "", r"an\nanswer"]]))
    assert read_documents("yahoo", tmp_path).texts == ["a question an\nanswer"]
    assert read_documents("yahoo", tmp_path, variant="titles").texts == ["a question"]
    write(tmp_path / "agnews" / "test.csv", csv_bytes([["4", "a", r"b\nc"]] * 7600))
    read = read_documents("agnews", tmp_path)
    assert read.texts[0] == r"a b\nc"
    assert read.note == "7,600 documents, but not those of the official test set"


def test_official_files_come_before_samples_and_larger_samples_before_smaller(tmp_path):
    for n in (2, 10):
        write_sample(tmp_path / "dbpedia14" / f"test_{n}.jsonl", *[("Plant", f"{n}")] * n)
    write_sample(tmp_path / "dbpedia14" / "test_titles_1.jsonl", ("WrittenWork", "title"))
    assert read_documents("dbpedia14", tmp_path).source == "dbpedia14/test_10.jsonl"
    titles = read_documents("dbpedia14", tmp_path, variant="titles")
    assert (titles.texts, titles.note) == (["title"], "sample of 1 of 70,000, titles only")
    write(tmp_path / "dbpedia_csv" / "test.csv", csv_bytes(rows_of("dbpedia14")))
    assert read_documents("dbpedia14", tmp_path).source == "dbpedia_csv/test.csv"


def test_unlabelled_texts_are_further_ones_else_the_training_set_and_have_no_truth(tmp_path):
    rows = [("World", "first"), ("Science or Technology", "second"), ("sci tech", "third")]
    write_sample(tmp_path / "agnews" / "train_1.jsonl", *rows)
    assert read_documents("agnews", tmp_path, "train").truth.tolist() == [0, 3, 3]
    read = read_documents("agnews", tmp_path, "unlabelled")
    assert (read.texts, read.truth.tolist()) == (["first", "second", "third"], [-1] * 3)
    path = tmp_path / "agnews" / "unlabelled_2.jsonl"
    write_sample(path, ("World", "in the test set, too"), in_test=True)
    in_test = path.read_bytes()
    write_sample(path, ("World", "further"), in_test=False)
    path.write_bytes(in_test + path.read_bytes())
    assert read_documents("agnews", tmp_path, "unlabelled").texts == ["further"]


def test_a_sample_is_uniform_and_keeps_the_order_and_the_labels(tmp_path):
    rows = [(GROUPS[i % 20], f"Subject: {i}\n\n") for i in range(500)]
    write_sample(tmp_path / "20newsgroups" / "test.jsonl", *rows)
    draws = [
        read_documents("20newsgroups", tmp_path, at_most=50, random_state=seed)
        for seed in [*range(40), 7]
    ]
    numbers = np.array([[int(text) for text in each.texts] for each in draws])
    assert numbers.shape == (41, 50)
    assert (np.diff(numbers, axis=1) > 0).all()
    assert all((row % 20 == each.truth).all() for row, each in zip(numbers, draws, strict=True))
    # 2,050 draws of 0 to 499: the mean is within five standard errors of the middle.
    assert abs(numbers.mean() - 249.5) < 5 * 144.3 / 2050**0.5
    assert draws[-1].fingerprint == draws[7].fingerprint
    assert len({each.fingerprint for each in draws}) == 40
    assert read_documents("20newsgroups", tmp_path, at_most=1000).rows == 500


NOISE = np.random.default_rng(1).integers(97, 123, 50_000, dtype=np.uint8).tobytes()
TRUNCATED = archived({"ag_news_csv/test.csv": b'"1","b","' + NOISE + b'"'})[:20_000]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("agnews/test.csv", b'"1","a","b"\n"2","a"\n', "test.csv line 2: 2 fields, but 3 were"),
        ("agnews/test.csv", b'"1","a\nb","c"\n"5","a","b"\n', "line 3: .* from 1 to 4; got '5'"),
        ("agnews/test.csv", b'"1","a","b"\n"2","a","b\n', "line 2: unexpected end of data"),
        ("agnews/test.csv", b'"1","a","\xff"\n', "agnews/test.csv is not UTF-8"),
        ("agnews/test.csv", b"\n\n", "agnews/test.csv has no rows; get ag_news_csv.tar.gz"),
        ("agnews/test.csv", csv_bytes(rows_of("agnews") * 1901), "7,604 rows, .* has 7,600"),
        ("agnews/test_2.jsonl", b'{"label": "World", "te', "test_2.jsonl line 1 is not JSON"),
        ("agnews/test_2.jsonl", b'{"label": "World"}', "line 1 must have the texts 'label' and"),
        ("agnews/test_2.jsonl", b'{"label": "W", "text": "a"}', "must be one of World, .*'W'"),
        ("ag_news_csv.tar.gz", b"<html>not found</html>", "is damaged: .*get the archive again"),
        ("ag_news_csv.tar.gz", TRUNCATED, r"ag_news_csv.tar.gz:test.csv is damaged"),
        ("ag_news_csv.tar.gz", archived({"a.txt": b""}), r"tar.gz:test.csv has no rows; get"),
        ("other/test.csv", b"", "holds no test set of AG News; get ag_news_csv.tar.gz, .*Zhang"),
    ],
)
def test_files_that_cannot_be_read_are_named_by_their_line(tmp_path, file, content, message):
    write(tmp_path / file, content)
    with pytest.raises(ReproductionError, match=message):
        read_documents("agnews", tmp_path)


def test_unknown_folders_and_datasets_are_named(tmp_path):
    write(tmp_path / "20news-bydate-test" / "alt.cooking" / "1", b"\n\n")
    with pytest.raises(ReproductionError, match=r"'alt\.cooking' is no newsgroup"):
        read_documents("20newsgroups", tmp_path)
    with pytest.raises(ReproductionError, match=r"there is no folder .*nowhere to read AG News"):
        read_documents("agnews", tmp_path / "nowhere")
    with pytest.raises(ReproductionError, match="dbpedia14, yahoo, 20newsgroups; got 'imdb'"):
        read_documents("imdb", tmp_path)
