"""A report to look at, and a browser without a network to look with."""

from types import SimpleNamespace

import pytest

from browsing import HOSTILE
from tiny_task import LABELS, StaticVectors, generated_texts
from ulr import ZeroShotClassifier


@pytest.fixture(scope="session")
def hostile():
    """Texts with markup in them, on one line."""
    return [" ".join(text.split()) for text in HOSTILE]


@pytest.fixture(scope="session")
def task():
    """A fitted classifier, its texts and true labels."""
    texts, truth = generated_texts(240)
    texts, truth = [*texts, *HOSTILE, ""], [*truth, None, None, None, None, None]
    classifier = ZeroShotClassifier(LABELS, encoder=StaticVectors()).fit(texts)
    return SimpleNamespace(classifier=classifier, texts=texts, truth=truth)


@pytest.fixture(scope="session")
def report(task):
    return task.classifier.report(task.texts, truth=task.truth, title="A <title> & more")


@pytest.fixture(scope="session")
def report_path(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(path)
    return path


@pytest.fixture
def open_page(browser):
    """Open a file in a browser without a network; it must neither request nor complain."""
    contexts, opened, requests, complaints = [], set(), set(), []

    def open_page(path, **context):
        contexts.append(browser.new_context(offline=True, **context))
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.add(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        opened.add(path.as_uri())
        page.goto(path.as_uri())
        page.wait_for_function("window.ulrReport !== undefined")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert requests == opened
