"""A server within this process, and one that a browser can reach."""

import contextlib
import csv
import io
import threading
import time
from types import SimpleNamespace

import pytest

from browsing import HOSTILE
from tiny_task import LABELS, TEXTS, generated_texts, static
from ulr import ZeroShotClassifier


@pytest.fixture(scope="session")
def documents():
    """Texts with their topics, and with markup in two of them."""
    texts, truth = generated_texts(160)
    return SimpleNamespace(texts=[*texts, *HOSTILE[:2]], truth=truth)


@pytest.fixture(scope="session")
def table(documents):
    """A CSV file with the texts in its second column."""
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["id", "note"])
    writer.writerows([f"D{i}", text] for i, text in enumerate(documents.texts))
    return lines.getvalue().encode()


@pytest.fixture
def new_client():
    """Start servers within this process; they stop at the end of the test."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from ulr.web import ServerSettings, create_app

    with contextlib.ExitStack() as stack:

        def start(**settings):
            app = create_app(ServerSettings(**{"encoder": static(), **settings}))
            return stack.enter_context(TestClient(app, base_url="http://localhost"))

        yield start


@pytest.fixture
def client(new_client):
    return new_client()


class Person:
    """Somebody who uses the API of a server."""

    def __init__(self, client, content, name="notes.csv"):
        self.client = client
        answer = client.post("/api/sessions", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
        self.info = answer.json()
        self.path = f"/api/sessions/{self.info['id']}"

    def get(self, rest="", status=200, **options):
        return self._checked(self.client.get(self.path + rest, **options), status)

    def post(self, rest, json=None, status=200):
        return self._checked(self.client.post(self.path + rest, json=json), status)

    def _checked(self, answer, status):
        assert answer.status_code == status, answer.text
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.json() if is_json else answer.content

    def start(self, labels, columns=("note",), status=202, **options):
        labels = [{"name": each} if isinstance(each, str) else each for each in labels]
        return self.post("/run", {"columns": columns, "labels": labels, **options}, status)

    def finish(self, state="done"):
        limit = time.monotonic() + 20
        while (job := self.get("/job"))["state"] in ("waiting", "running"):
            assert time.monotonic() < limit
            time.sleep(0.01)
        assert job["state"] == state, job
        return job

    def classify(self, labels=LABELS, columns=("note",)):
        self.start(labels, columns)
        self.finish()
        return self.get("/view")


@pytest.fixture
def person(client, table):
    return Person(client, table)


@pytest.fixture
def new_person():
    return Person


@pytest.fixture(scope="session")
def server():
    """A real server on a free port of this computer."""
    uvicorn = pytest.importorskip("uvicorn")
    from ulr.cli.serve import listen
    from ulr.web import ServerSettings, create_app

    model = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS).fitted_
    app = create_app(ServerSettings(encoder=static(), model=model, max_upload=2 << 20))
    with listen("127.0.0.1", 0) as listener:
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        limit = time.monotonic() + 20
        while not running.started:
            assert time.monotonic() < limit
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        running.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
