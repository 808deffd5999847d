"""A classifier of the example of customer messages, which the tests of every tool share."""

import csv
from pathlib import Path

import pytest

from tiny_task import static
from ulr import ZeroShotClassifier

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="session")
def messages():
    with (EXAMPLES / "support_messages.csv").open(newline="") as file:
        return [row["message"] for row in csv.DictReader(file)]


@pytest.fixture(scope="session")
def clf(messages):
    labels = EXAMPLES / "support_labels.yaml"
    return ZeroShotClassifier(labels, encoder=static()).fit(messages)


@pytest.fixture(scope="session")
def several(messages):
    """A classifier that gives several labels a text."""
    labels = EXAMPLES / "support_labels.yaml"
    return ZeroShotClassifier(labels, encoder=static(), multilabel=1.5).fit(messages)


@pytest.fixture
def model(clf, tmp_path):
    """The folder of the saved classifier."""
    clf.save(tmp_path / "model")
    return tmp_path / "model"
