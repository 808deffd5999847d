"""Columns of Hugging Face datasets as texts, and predictions as columns."""

import pytest

from tiny_task import static
from ulr import ZeroShotClassifier
from ulr.errors import TableError
from ulr.integrations import LabelledTexts, label_dataset

datasets = pytest.importorskip("datasets", reason="install it with: pip install 'ulr[datasets]'")


@pytest.fixture
def dataset(messages):
    return datasets.Dataset.from_dict({"id": list(range(50)), "message": messages[:50]})


def test_a_column_and_a_dataset_of_one_column_are_texts(dataset, messages):
    clf = ZeroShotClassifier(["delivery", "billing"], encoder=static())
    labels = clf.fit(messages[:50]).predict(messages[:50]).tolist()
    assert clf.fit(dataset["message"]).predict(dataset["message"]).tolist() == labels
    texts = dataset.select_columns("message")
    assert clf.fit(texts).predict(texts).tolist() == labels


def test_predictions_are_columns(clf, dataset, messages):
    found = label_dataset(clf, dataset, "message")
    assert found.column_names == ["id", "message", "ulr_label", "ulr_confidence"]
    assert list(found["ulr_label"]) == clf.predict(messages[:50]).tolist()
    expected = LabelledTexts.of(clf, messages[:50]).confidence
    assert list(found["ulr_confidence"]) == pytest.approx(expected)
    assert dataset.column_names == ["id", "message"]


def test_parts_and_streams_stay_what_they_are(clf, dataset, messages, monkeypatch):
    monkeypatch.setattr(datasets.config, "TORCH_AVAILABLE", False)  # a stream would import it
    both = datasets.DatasetDict(train=dataset, test=dataset.select(range(5)))
    found = label_dataset(clf, both, "message", prefix="")
    assert isinstance(found, datasets.DatasetDict)
    assert list(found["test"]["label"]) == clf.predict(messages[:5]).tolist()
    stream = label_dataset(clf, dataset.to_iterable_dataset(), "message")
    assert isinstance(stream, datasets.IterableDataset)
    assert [row["ulr_label"] for row in stream] == clf.predict(messages[:50]).tolist()


def test_several_labels_are_a_list(several, dataset, messages):
    found = label_dataset(several, dataset, "message")
    expected = LabelledTexts.of(several, messages[:50]).labels
    assert [tuple(labels) for labels in found["ulr_labels"]] == expected


def test_a_missing_column_is_named(clf, dataset):
    with pytest.raises(TableError, match=r"no column 'text'; it has: id, message"):
        label_dataset(clf, dataset)
    with pytest.raises(TableError, match=r"already has a column 'ulr_label'"):
        label_dataset(clf, label_dataset(clf, dataset, "message"), "message")
