import csv
import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ulr.errors import ExperimentError
from ulr.experiments import DATASETS, find_dataset, read_documents

CSV_SETS = {"agnews": "ag_news_csv", "dbpedia14": "dbpedia_csv", "yahoo": "yahoo_answers_csv"}
GROUPS = find_dataset("20newsgroups").labels
POST = "From: someone\nSubject: Re: a {} question\nLines: 1\n\nThe body\nof it.\n"


def csv_bytes(rows):
    """Rows as the official files write them: every field quoted."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def rows_of(name):
    """A row a class, in reverse, with as many fields as the official files have."""
    n_fields = 3 if name == "yahoo" else 2
    return [
        [str(label), *(f'field "{part}", {label}' for part in range(n_fields))]
        for label in range(len(find_dataset(name).labels), 0, -1)
    ]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_json_lines(path, records):
    write(path, "".join(json.dumps(each) + "\n" for each in records).encode())


def posts():
    """Two posts in each of three groups, as files of the archive."""
    return {
        f"20news-bydate-test/{group}/{number}": POST.format(f"{group} {number}").encode()
        for group in (GROUPS[4], GROUPS[0], GROUPS[19])
        for number in (20002, 10001)
    }


@pytest.mark.parametrize("name", CSV_SETS)
def test_an_archive_and_its_folders_give_the_same_documents(tmp_path, name):
    folder, content = CSV_SETS[name], csv_bytes(rows_of(name))
    members = {
        f"{folder}/._test.csv": b"junk",
        f"{folder}/train.csv": b"",
        f"{folder}/test.csv": content,
    }
    (tmp_path / "packed").mkdir()
    write_archive(tmp_path / "packed" / f"{folder}.tar.gz", members)
    write(tmp_path / "unpacked" / folder / "test.csv", content)
    write(tmp_path / "short" / name / "test.csv", content)
    packed, *others = (
        read_documents(name, tmp_path / where) for where in ("packed", "unpacked", "short")
    )
    n_labels = len(find_dataset(name).labels)
    assert packed.truth.tolist() == list(range(n_labels))[::-1]
    assert packed.texts[0].startswith(f'field "0", {n_labels} field "1", {n_labels}')
    assert packed.source == f"{folder}.tar.gz:test.csv"
    assert [each.source for each in others] == [f"{folder}/test.csv", f"{name}/test.csv"]
    assert {each.fingerprint for each in others} == {packed.fingerprint}


def test_20_newsgroups_are_the_same_from_archive_folders_and_json_lines(tmp_path):
    files = posts()
    (tmp_path / "packed").mkdir()
    write_archive(tmp_path / "packed" / "20news-bydate.tar.gz", files)
    for name, content in files.items():
        write(tmp_path / "unpacked" / name, content)
        write(tmp_path / "deeper" / "20news-bydate" / name, content)
    records = [
        {"label": name.split("/")[1], "text": files[name].decode()} for name in sorted(files)
    ]
    write_json_lines(tmp_path / "lines" / "20newsgroups" / "test.jsonl", records)
    read = [
        read_documents("20newsgroups", tmp_path / where)
        for where in ("packed", "unpacked", "deeper", "lines")
    ]
    assert read[0].truth.tolist() == [0, 0, 4, 4, 19, 19]
    assert read[0].texts[0] == "Re: a alt.atheism 10001 question\nThe body\nof it.\n"
    assert len({each.fingerprint for each in read}) == 1
    assert [each.source for each in read] == [
        "20news-bydate.tar.gz:20news-bydate-test",
        "20news-bydate-test",
        "20news-bydate/20news-bydate-test",
        "20newsgroups/test.jsonl",
    ]


def test_bytes_that_are_not_utf_8_are_read_in_posts(tmp_path):
    write(tmp_path / "20news-bydate-test" / GROUPS[0] / "1", b"Subject: caf\xe9\n\nna\xefve\n")
    assert read_documents("20newsgroups", tmp_path).texts == ["café\nnaïve\n"]


def test_a_post_without_a_subject_keeps_its_body_and_a_long_subject_all_its_lines(tmp_path):
    folder = tmp_path / "20news-bydate-test" / GROUPS[0]
    write(folder / "1", b"From: x\n\nSubject: in the body\n")
    write(folder / "2", b"Subject: one\n  two\nFrom: x\n\nbody")
    texts = read_documents("20newsgroups", tmp_path).texts
    assert texts == ["\nSubject: in the body\n", "one\n  two\nbody"]


def test_fields_are_joined_without_the_empty_ones_and_yahoo_gets_its_line_breaks(tmp_path):
    rows = [["1", "a question", "", r"an\nanswer"]]
    write(tmp_path / "yahoo_answers_csv" / "test.csv", csv_bytes(rows))
    assert read_documents("yahoo", tmp_path).texts == ["a question an\nanswer"]
    assert read_documents("yahoo", tmp_path, variant="titles").texts == ["a question"]


def test_a_backslash_in_ag_news_is_kept(tmp_path):
    write(tmp_path / "agnews" / "test.csv", csv_bytes([["4", "a", r"b\nc"]]))
    assert read_documents("agnews", tmp_path).texts == [r"a b\nc"]


def test_official_files_come_before_samples_and_larger_samples_before_smaller(tmp_path):
    for n in (2, 10):
        records = [{"label": "Plant", "text": f"{n}"}] * n
        write_json_lines(tmp_path / "dbpedia14" / f"test_{n}.jsonl", records)
    assert read_documents("dbpedia14", tmp_path).source == "dbpedia14/test_10.jsonl"
    write(tmp_path / "dbpedia_csv" / "test.csv", csv_bytes(rows_of("dbpedia14")))
    assert read_documents("dbpedia14", tmp_path).source == "dbpedia_csv/test.csv"


def test_titles_are_another_file_of_samples(tmp_path):
    write_json_lines(tmp_path / "yahoo" / "test_1.jsonl", [{"label": "Health", "text": "full"}])
    titles = [{"label": "Sports", "text": "title"}]
    write_json_lines(tmp_path / "yahoo" / "test_titles_1.jsonl", titles)
    assert read_documents("yahoo", tmp_path).texts == ["full"]
    read = read_documents("yahoo", tmp_path, variant="titles")
    assert read.texts == ["title"]
    assert read.note == "sample of 1 of 60,000, titles only"


def test_labels_of_samples_may_be_spelt_with_spaces(tmp_path):
    records = [
        {"label": "Mean of Transportation", "text": "a"},
        {"label": "WrittenWork", "text": "b"},
    ]
    write_json_lines(tmp_path / "dbpedia14" / "test_2.jsonl", records)
    assert read_documents("dbpedia14", tmp_path).truth.tolist() == [5, 13]
    write_json_lines(
        tmp_path / "agnews" / "train_2.jsonl",
        [{"label": "Science or Technology", "text": "a"}, {"label": "Sci/Tech", "text": "b"}],
    )
    assert read_documents("agnews", tmp_path, "train").truth.tolist() == [3, 3]


def test_fewer_rows_than_the_official_set_are_called_a_sample(tmp_path):
    write(tmp_path / "agnews" / "test.csv", csv_bytes(rows_of("agnews")))
    read = read_documents("agnews", tmp_path)
    assert (read.rows, read.official_rows) == (4, 7600)
    assert read.is_sample
    assert read.note == "sample of 4 of 7,600"
    assert not read.is_verified


def test_another_file_of_the_official_size_is_not_verified(tmp_path):
    write(tmp_path / "agnews" / "test.csv", csv_bytes(rows_of("agnews") * 1900))
    read = read_documents("agnews", tmp_path)
    assert not read.is_sample
    assert not read.is_verified
    assert read.note == "7,600 documents, but not those of the official test set"


def test_more_rows_than_the_official_set_are_refused(tmp_path):
    write(tmp_path / "agnews" / "test.csv", csv_bytes(rows_of("agnews") * 1901))
    with pytest.raises(ExperimentError, match="has 7,604 rows, but the official set has 7,600"):
        read_documents("agnews", tmp_path)


def test_unlabelled_texts_are_further_ones_else_the_training_set_and_have_no_truth(tmp_path):
    write_json_lines(tmp_path / "agnews" / "train_1.jsonl", [{"label": "World", "text": "train"}])
    read = read_documents("agnews", tmp_path, "unlabelled")
    assert (read.texts, read.truth.tolist()) == (["train"], [-1])
    further = [{"label": "World", "text": "further"}]
    write_json_lines(tmp_path / "agnews" / "unlabelled_1.jsonl", further)
    read = read_documents("agnews", tmp_path, "unlabelled")
    assert (read.texts, read.note) == (["further"], "1 texts without labels")


def test_unlabelled_rows_flagged_as_test_documents_are_left_out(tmp_path):
    rows = [
        {"label": "Film", "text": "both", "in_test": True},
        {"label": "Film", "text": "new", "in_test": False},
    ]
    write_json_lines(tmp_path / "dbpedia14" / "unlabelled_2.jsonl", rows)
    assert read_documents("dbpedia14", tmp_path, "unlabelled").texts == ["new"]


def test_a_sample_is_uniform_and_keeps_the_order_and_the_labels(tmp_path):
    records = [{"label": GROUPS[i % 20], "text": f"Subject: {i}\n\n"} for i in range(500)]
    write_json_lines(tmp_path / "20newsgroups" / "test.jsonl", records)
    draws = [
        read_documents("20newsgroups", tmp_path, at_most=50, random_state=seed)
        for seed in range(40)
    ]
    numbers = np.array([[int(text) for text in each.texts] for each in draws])
    assert numbers.shape == (40, 50)
    assert (np.diff(numbers, axis=1) > 0).all()
    assert all((row % 20 == each.truth).all() for row, each in zip(numbers, draws, strict=True))
    # 2,000 draws of 0 to 499: the mean is within five standard errors of the middle.
    assert abs(numbers.mean() - 249.5) < 5 * 144.3 / 2000**0.5
    again = read_documents("20newsgroups", tmp_path, at_most=50, random_state=7)
    assert again.fingerprint == draws[7].fingerprint
    assert len({each.fingerprint for each in draws}) == 40
    assert read_documents("20newsgroups", tmp_path, at_most=1000).rows == 500


@pytest.mark.parametrize("name", DATASETS)
def test_a_missing_file_is_reported_with_its_origin_and_destination(tmp_path, name):
    dataset = find_dataset(name)
    with pytest.raises(ExperimentError) as caught:
        read_documents(name, tmp_path)
    message = str(caught.value)
    assert f"holds no test set of {dataset.title}" in message
    assert dataset.archive in message
    assert any(author in message for author in ("Xiang Zhang", "Ken Lang"))
    assert message.endswith(f"into {tmp_path}.")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ExperimentError, match=r"there is no folder .*nowhere to read AG News"):
        read_documents("agnews", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'"1","a","b"\n"2","a"\n', "agnews/test.csv line 2 has 2 fields, but 3 were expected"),
        (
            b'"1","a\nb","c"\n"5","a","b"\n',
            "line 3: the class must be a number from 1 to 4; got '5'",
        ),
        (b'"class","a","b"\n', "line 1: the class must be a number from 1 to 4; got 'class'"),
        (b'"1","a","b"\n"2","a","b\n', "agnews/test.csv line 2: a quote is never closed"),
        (b'"1","a","\xff"\n', "agnews/test.csv is not UTF-8"),
        (b"\n\n", "agnews/test.csv has no rows"),
    ],
)
def test_a_malformed_row_is_named_by_its_line(tmp_path, content, message):
    write(tmp_path / "agnews" / "test.csv", content)
    with pytest.raises(ExperimentError, match=message):
        read_documents("agnews", tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"label": "Plant", "text": ', "test_2.jsonl line 2 is not JSON"),
        ('["Plant", "text"]', "line 2 must be a JSON object; got"),
        ('{"label": "Plant", "text": null}', "row 2 must have the texts 'label' and 'text'"),
        (
            '{"label": "Planet", "text": "a"}',
            "row 2: the label must be one of Company, .*'Planet'",
        ),
    ],
)
def test_a_malformed_line_of_a_sample_is_named(tmp_path, line, message):
    good = '{"label": "Plant", "text": "a"}\n'
    write(tmp_path / "dbpedia14" / "test_2.jsonl", (good + line).encode())
    with pytest.raises(ExperimentError, match=message):
        read_documents("dbpedia14", tmp_path)


def test_a_truncated_archive_is_called_damaged(tmp_path):
    path = tmp_path / "ag_news_csv.tar.gz"
    noise = np.random.default_rng(1).integers(97, 123, 50_000, dtype=np.uint8).tobytes().decode()
    write_archive(path, {"ag_news_csv/test.csv": csv_bytes([["1", noise, "b"]])})
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(ExperimentError, match=r"ag_news_csv.tar.gz:test.csv is damaged"):
        read_documents("agnews", tmp_path)


def test_a_file_that_is_no_archive_is_called_damaged(tmp_path):
    (tmp_path / "20news-bydate.tar.gz").write_bytes(b"<html>not found</html>")
    with pytest.raises(ExperimentError, match=r"is damaged: .*get the archive again"):
        read_documents("20newsgroups", tmp_path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    write_archive(tmp_path / "ag_news_csv.tar.gz", {"readme.txt": b""})
    with pytest.raises(ExperimentError, match=r"ag_news_csv.tar.gz holds no test.csv"):
        read_documents("agnews", tmp_path)


def test_a_folder_that_is_no_newsgroup_is_named(tmp_path):
    write(tmp_path / "20news-bydate-test" / "alt.cooking" / "1", b"\n\n")
    with pytest.raises(ExperimentError, match=r"'alt\.cooking' is no newsgroup"):
        read_documents("20newsgroups", tmp_path)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"name": "imdb"}, "one of agnews, dbpedia14, yahoo, 20newsgroups; got 'imdb'"),
        ({"split": "dev"}, "one of test, train, unlabelled; got 'dev'"),
        ({"variant": "answers"}, "of AG News must be one of full, titles; got 'answers'"),
        ({"name": "20newsgroups", "variant": "titles"}, "must be one of full; got 'titles'"),
        ({"at_most": 0}, "at_most must be at least 1; got 0"),
    ],
)
def test_invalid_requests_are_refused_with_the_choices(tmp_path, request_, message):
    with pytest.raises(ExperimentError, match=message):
        read_documents(**{"name": "agnews", "data": tmp_path} | request_)


@pytest.mark.skipif("ULR_DATA" not in os.environ, reason="ULR_DATA names no folder of datasets")
@pytest.mark.parametrize("name", DATASETS)
def test_the_datasets_of_the_data_folder_are_complete_or_called_samples(name):
    read = read_documents(name, Path(os.environ["ULR_DATA"]))
    assert set(read.truth) == set(range(len(read.labels)))
    assert read.is_sample == (read.rows < read.official_rows)
    if not read.is_sample and "test" in read.dataset.fingerprints:
        assert read.is_verified, read.note
