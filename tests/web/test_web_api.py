"""The API: results are those of the classifier, choices can be changed and undone, data is bounded."""

import asyncio
import gzip
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tiny_task import LABELS, NEW, CosineScorer, CountingEncoder, HashingEncoder, static
from ulr import ZeroShotClassifier
from ulr.classifier import suggest
from ulr.errors import EncoderError
from ulr.labels import read_labels
from ulr.tables import open_table

EXAMPLES = Path(__file__).parents[2] / "examples"


def fitted(documents, y=None, labels=LABELS):
    return ZeroShotClassifier(labels, encoder=static()).fit(documents.texts, y)


def test_the_result_is_that_of_the_classifier(person, documents):
    phrases = {"sports": ["football", "tennis match"], "other": ["banks and money", "physics"]}
    view = person.classify([{"name": name, "phrases": own} for name, own in phrases.items()])
    expected = fitted(documents, labels=phrases)
    refinement = expected.refinement_
    assert [label["name"] for label in view["labels"]] == list(phrases)
    assert view["documents"]["row"] == list(range(1, len(documents.texts) + 1))
    assert view["documents"]["label"] == refinement.predictions.tolist()
    assert view["documents"]["unrefined"] == refinement.unrefined.tolist()
    moved = refinement.predictions != refinement.unrefined
    assert view["result"]["moved"] == moved.sum() > 0
    sizes = np.bincount(refinement.predictions, minlength=2)
    assert [label["after"] for label in view["result"]["labels"]] == sizes.tolist()
    assert sum(n for _, _, n in view["result"]["flows"]) == len(documents.texts)
    lead = np.subtract(view["documents"]["confidence"], view["documents"]["second_confidence"])
    asked, others = view["next"][:16], view["next"][16:]
    assert asked == expected.ask(16).tolist()
    assert lead[others].tolist() == sorted(lead[others])


def test_corrected_documents_are_known_examples(person, documents):
    view = person.classify()
    rows = view["next"][:4]
    wrong = [LABELS[(view["documents"]["label"][i] + 1) % 3] for i in rows]
    for i, label in zip(rows, wrong, strict=True):
        info = person.post("/corrections", {"rows": [i + 1], "label": label})
    assert info["outdated"]
    y = [None] * len(documents.texts)
    for i, label in zip(rows, wrong, strict=True):
        y[i] = label
    again = person.classify(info["labels"])
    expected = fitted(documents, y).refinement_.predictions
    assert again["documents"]["label"] == expected.tolist()
    assert dict(again["corrections"]) == {i + 1: y[i] for i in rows}
    assert set(again["next"]).isdisjoint(rows)
    assert not person.get()["outdated"]


def test_changes_are_the_documents_with_another_label_than_before_but_not_renamed_ones(person):
    before = person.classify()
    labels = person.get()["labels"]
    labels[1] = {"name": "research", "phrases": ["laboratory", "physics"]}
    after = person.classify(labels)
    names = [[label["name"] for label in view["labels"]] for view in (before, after)]
    pairs = [
        (names[0][one], names[1][other])
        for one, other in zip(
            before["documents"]["label"], after["documents"]["label"], strict=True
        )
    ]
    moved = [one if one != other else None for one, other in pairs]
    assert after["previous"] == moved
    assert {(one, other): n for one, other, n in after["changes"]} == {
        pair: pairs.count(pair) for pair in pairs if pair[0] != pair[1]
    }
    person.post("/corrections", {"rows": [1], "label": "sports"})
    view = person.classify(person.get()["labels"])
    labels = person.get()["labels"]
    labels[0]["name"] = "athletics"  # its phrase and its correction stay
    again = person.classify(labels)
    assert person.get()["corrections"] == [{"row": 1, "label": "athletics"}]
    assert again["documents"]["label"] == view["documents"]["label"]
    assert again["changes"] == []


def test_undo_takes_back_one_change_at_a_time(person):
    person.classify()
    first = person.get()
    person.post("/corrections", {"rows": [3], "label": "business"})
    person.post("/corrections", {"rows": [3], "label": None})
    person.classify([*first["labels"][:2], {"name": "weather"}])
    assert [label["name"] for label in person.post("/undo")["labels"]] == LABELS
    assert person.post("/undo")["corrections"] == [{"row": 3, "label": "business"}]
    last = person.post("/undo")
    assert last["corrections"] == []
    assert not last["can_undo"]
    assert last["labels"] == first["labels"]
    assert last["outdated"]  # the latest result has other labels
    assert "nothing to undo" in person.post("/undo", status=409)["error"]


def test_texts_are_encoded_and_their_words_counted_once(new_client, new_person, table, documents):
    encoder = CountingEncoder()
    person = new_person(new_client(encoder=encoder), table)
    person.classify()
    assert encoder.n_encoded == len(documents.texts) + 2 * 3  # each phrase in two templates
    session = person.client.app.state.server.sessions.get(person.info["id"])
    encoded = session.corpus.documents
    assert encoded.word_counts is not None
    labels = person.get()["labels"]
    labels[0]["phrases"] = ["football", "tennis"]
    person.classify(labels)
    assert session.corpus.documents is encoded
    assert encoder.n_encoded == len(documents.texts) + 2 * (3 + 4)
    person.classify(labels, ["id", "note"])
    assert encoder.n_encoded == 2 * len(documents.texts) + 2 * (3 + 4 + 4)


def test_another_encoder_encodes_again_and_is_loaded_once(new_client, new_person, table):
    encoder = CountingEncoder()
    client = new_client(encoder=encoder)
    status = client.get("/api/status").json()
    names = [each["name"] for each in status["encoders"]]
    assert names[0] == status["encoder"] == "CountingEncoder"
    assert {"static", "auto"} < set(names)
    people = [new_person(client, table) for _ in range(2)]
    before = people[0].classify()
    n_encoded = encoder.n_encoded
    for person in people:
        person.start(LABELS, encoder="static")
        person.finish()
        assert person.get()["encoder"] == person.get("/view")["result"]["encoder"] == "static"
    assert encoder.n_encoded == n_encoded
    assert people[0].get("/view")["documents"]["label"] != before["documents"]["label"]
    sessions = [client.app.state.server.sessions.get(each.info["id"]) for each in people]
    assert len({id(session.run.fitted.settings.encoder) for session in sessions}) == 1
    assert "encoder must be one of" in person.start(LABELS, status=400, encoder="x")["error"]


def test_a_share_of_none_of_these_gets_no_label_and_can_be_corrected(person, documents):
    labels = [{"name": each} for each in LABELS]
    person.start(labels, none_share=0.25)
    person.finish()
    view = person.get("/view")
    assert person.get()["none_share"] == 0.25
    assert [each["id"] for each in view["labels"]] == [0, 1, 2, None]
    expected = ZeroShotClassifier(LABELS, encoder=static(), none_share=0.25)
    assert (
        view["documents"]["label"]
        == expected.fit(documents.texts).fitted_.predictions.labels.tolist()
    )
    row = view["documents"]["row"][view["documents"]["label"].index(3)]
    person.post("/corrections", {"rows": [row], "label": "sports"})
    rows = person.get("/download/table").decode().splitlines()
    assert rows[row].split(",")[-3] == "sports"
    person.start(person.get()["labels"], none_share=0.25)
    person.finish()
    assert person.get("/view")["documents"]["label"][row - 1] == 0


def test_a_document_that_is_none_of_these_takes_no_part(person, documents):
    person.classify()
    info = person.post("/corrections", {"rows": [2, 5], "label": "none of these"})
    assert info["corrections"][0] == {"row": 2, "label": "none of these"}
    assert "corrected yet" in person.get("/download/examples", 400)["error"]
    assert person.get("/download/table").decode().splitlines()[2].split(",")[-3] == ""
    view = person.classify(info["labels"])
    texts = [text if i not in (1, 4) else "" for i, text in enumerate(documents.texts)]
    expected = ZeroShotClassifier(LABELS, encoder=static()).fit(texts).fitted_.predictions.labels
    assert view["documents"]["label"] == expected.tolist()
    assert expected[[1, 4]].tolist() == [-1, -1]
    assert ["none of these" in change for change in view["changes"]].count(True) > 0
    assert set(view["next"]).isdisjoint((1, 4))
    for what in ("table", "model", "report"):
        assert person.get(f"/download/{what}")
    person.post("/corrections", {"rows": [2, 5], "label": None})
    assert person.classify(info["labels"])["documents"]["label"][1] >= 0


def test_labels_are_read_from_a_list_or_a_file(client):
    def read(text, name=None, status=200):
        answer = client.post("/api/labels", json={"text": text, "name": name})
        assert answer.status_code == status, answer.text
        return answer.json()

    assert read("a, b: x; y") == {
        "labels": [{"name": "a", "phrases": ["a"]}, {"name": "b", "phrases": ["x", "y"]}]
    }
    assert read("label,phrases\na,x;y\nb,\n", "l.csv")["labels"][0]["phrases"] == ["x", "y"]
    assert "line 1 is not JSON" in read("[", "l.json", 400)["error"]
    assert "no label in this list" in read("", None, 400)["error"]


CSV = b"id,text\n1,a late goal\n2,shares fell\n"
UPLOADS = {"a.csv.gz": gzip.compress(CSV), "a.txt": b"a late goal\nshares fell\n"}


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.csv", "csv"),
        ("pasted", "tsv"),
        ("a.csv.gz", "jsonl"),
        ("a.txt", "json"),
        ("a.csv", "xlsx"),
        ("a.csv", "parquet"),
    ],
)
def test_a_table_can_be_uploaded_and_downloaded_in_every_format(client, new_person, name, format_):
    person = new_person(client, UPLOADS.get(name, CSV), name)
    columns = ["text"] if name == "a.txt" else ["id", "text"]
    assert person.info["columns"] == columns
    assert (person.info["text_columns"], person.info["rows"]) == (["text"], 2)
    person.classify(["sports", "business"], ["text"])
    labelled = person.get(f"/download/table?format={format_}")
    again = new_person(client, labelled, f"labelled.{format_}")
    added = ["ulr_label", "ulr_confidence", "ulr_unrefined"]
    assert again.info["columns"] == [*columns, *added]
    assert [row[-4:-2] for row in again.info["preview"]] == [
        ["a late goal", "sports"],
        ["shares fell", "business"],
    ]
    again.classify(["sports", "business"], ["text"])
    header = again.get("/download/table?format=csv").decode().splitlines()[0]
    assert header == ",".join([*columns, *added, *(f"ulr2_{name[4:]}" for name in added)])


def test_downloads_can_be_used_by_the_other_commands_and_leave_nothing(
    person, documents, tmp_path, command
):
    view = person.classify()
    assert "corrected yet" in person.get("/download/examples", 400)["error"]
    other = LABELS[(view["documents"]["label"][6] + 1) % 3]
    person.post("/corrections", {"rows": [7], "label": other})
    rows = person.get("/download/table").decode().splitlines()
    assert rows[7].split(",")[-3] == other  # before the next run
    person.classify(person.get()["labels"])
    for what, name in {
        "table": "table.csv",
        "labels": "labels.yaml",
        "examples": "examples.csv",
        "model": "model.zip",
        "report": "report.html",
    }.items():
        (tmp_path / name).write_bytes(person.get(f"/download/{what}"))
    assert read_labels(tmp_path / "labels.yaml").names == tuple(LABELS)
    zipfile.ZipFile(tmp_path / "model.zip").extractall(tmp_path)
    expected = fitted(documents).correct([6], [other])
    loaded = ZeroShotClassifier.load(tmp_path / "model")
    # A correction keeps the temperature of the first run.
    np.testing.assert_array_equal(loaded.predict(NEW), expected.predict(NEW))
    np.testing.assert_allclose(loaded.predict_proba(NEW), expected.predict_proba(NEW), atol=0.01)
    page = (tmp_path / "report.html").read_text()
    assert "1 labelled examples took part" in page
    assert "notes.csv" in page
    with open_table(str(tmp_path / "table.csv")) as written:
        found = [label for batch in written.batches() for label in batch.column("ulr_label")]
        assert written.columns[:2] == ("id", "note")
    assert found == [LABELS[i] for i in expected.refinement_.predictions]
    result = command(
        *("classify", tmp_path / "table.csv", "-t", "note", "--prefix", "new_"),
        *("--labels", tmp_path / "labels.yaml", "--examples", tmp_path / "examples.csv"),
        *("-o", tmp_path / "again.csv"),
    )
    assert result.code == 0, result.err
    folder = person.client.app.state.server.sessions.folder
    assert [file.name for file in (folder / person.info["id"]).iterdir()] == ["data"]
    assert person.client.delete(person.path).status_code == 204
    assert list(folder.iterdir()) == []
    person.get("", 404)


def test_a_document_has_its_whole_text_and_all_probabilities(client, new_person):
    long = "late goal of the striker " * 100
    person = new_person(client, json.dumps([{"text": long}, {"text": "bank"}]).encode(), "a.json")
    person.classify(["sports", "business"], ["text"])
    found = person.get("/documents/1")
    assert found["text"] == long
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    assert "rows are 1 to 2" in person.get("/documents/3", 404)["error"]


def test_the_words_that_decided_are_those_of_the_classifier(person, documents):
    person.classify()
    found = person.get("/documents/3/why")
    expected = fitted(documents).explain(documents.texts[2:3])[0]
    assert (found["label"], found["runner_up"]) == (expected.label, expected.runner_up)
    assert [each["word"] for each in found["for_label"]] == [
        each.word for each in expected.for_label
    ]
    for each in (*found["for_label"], *found["for_runner_up"]):
        for start, end in each["spans"]:
            assert documents.texts[2][start:end].lower() == each["word"].lower()
    person.post("/corrections", {"rows": [3], "label": "none of these"})
    person.classify(person.get()["labels"])
    assert person.get("/documents/3/why")["label"] == ""
    assert "rows are 1 to" in person.get("/documents/0/why", 404)["error"]


def test_suggestions_are_those_of_the_classifier(person, documents):
    assert "no result yet" in person.post("/suggestions", status=409)["error"]
    person.classify(LABELS[:2])
    assert "no suggestions yet" in person.get("/suggestions", 409)["error"]
    person.post("/suggestions", status=202)
    person.finish()
    found = person.get("/suggestions")
    expected = suggest(fitted(documents, labels=LABELS[:2]).fitted_)
    assert (found["number"], found["examined"]) == (1, expected.examined)
    assert [each["name"] for each in found["missing"]] == [each.name for each in expected.missing]
    assert found["phrases"] == {name: list(own) for name, own in expected.phrases.items()}
    for group in found["missing"]:
        assert group["texts"] == [documents.texts[row - 1] for row in group["rows"]]


def test_half_characters_in_requests_are_refused_with_a_sentence(person):
    headers = {"content-type": "application/json"}
    labels = [{"name": "goal \ud800"}, {"name": "bank"}]
    for path, body in (
        (person.path + "/run", {"columns": ["note"], "labels": labels}),
        ("/api/predict", {"texts": ["goal \ud800"]}),
    ):
        answer = person.client.post(path, content=json.dumps(body).encode(), headers=headers)
        assert answer.status_code == 422
        assert "Input should be a valid string" in answer.json()["error"]
        assert "constrained" not in answer.json()["error"]


def test_the_example_is_the_one_of_the_repository(client):
    info = client.post("/api/example").json()
    folder = client.app.state.server.sessions.get(info["id"]).folder
    assert (folder / "data").read_bytes() == (EXAMPLES / "news_blurbs.csv").read_bytes()
    assert tuple(info["suggested_labels"]) == read_labels(EXAMPLES / "news_labels.txt").names
    assert set(info["text_columns"]) < set(info["columns"])


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"text\n", "a.csv", "a.csv has no rows"),
        (b'{"text": "goal \\ud800"}', "a.jsonl", "surrogate pair"),
        (b"text\n" + b"x\n" * 11, "a.csv", "more than 10 rows"),
        (gzip.compress(b"text\n" + b"x" * 40_000, mtime=0), "a.csv.gz", "when it is decompressed"),
    ],
)
def test_unusable_files_are_refused_with_a_sentence(new_client, content, name, sentence):
    client = new_client(max_rows=10, max_upload=4_000)
    answer = client.post("/api/sessions", params={"name": name}, content=content)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
    assert list(client.app.state.server.sessions.folder.iterdir()) == []


def test_a_cell_that_is_no_document_is_refused_at_upload(new_client):
    content = gzip.compress(b"text,n\na,1\n" + b"x" * 10_000_001 + b",2\n", 1)
    answer = new_client().post("/api/sessions", params={"name": "a.csv.gz"}, content=content)
    assert answer.status_code == 400
    assert "a cell of 10,000,001 letters" in answer.json()["error"]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["sports"], "at least 2 labels"),
        (["a", "b", "c", "d", "e"], "there are 5 labels"),
        ([{"name": "a", "phrases": ["x", "y", "z"]}, {"name": "b"}], "'a' has 3 phrases"),
        ([{"name": "a", "id": 9}, {"name": "b"}], "the id 9"),
    ],
)
def test_unusable_labels_are_refused_with_a_sentence(
    new_client, new_person, table, labels, sentence
):
    person = new_person(new_client(max_labels=4, max_phrases=2), table)
    assert sentence in person.start(labels, status=400)["error"]
    assert person.get()["job"] is None


def test_other_mistakes_are_refused_with_a_sentence(person, client):
    assert "no result yet" in person.get("/view", 409)["error"]
    assert "nothing has been classified" in person.get("/job", 409)["error"]
    correction = {"rows": [1], "label": "sports"}
    assert "no labels yet" in person.post("/corrections", correction, 409)["error"]
    assert "no column 'x'" in person.start(LABELS, ["x"], 400)["error"]
    person.classify()
    for row, label, sentence in (
        (1, "food", "'food' is not a label"),
        (999, "sports", "no row 999"),
    ):
        correction = {"rows": [row], "label": label}
        assert sentence in person.post("/corrections", correction, 400)["error"]
    assert "what" in person.get("/download/passwords", 422)["error"]
    assert client.get("/api/sessions/unknown").status_code == 404
    answer = client.post("/api/predict", json={"texts": "a"})
    assert answer.status_code == 404
    assert "--model" in answer.json()["error"]
    answer = client.post("/api/predict", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}


def test_a_label_that_the_encoder_does_not_know_fails_with_a_sentence(
    new_client, new_person, word_vectors, table
):
    person = new_person(new_client(encoder=word_vectors), table)
    person.start(["qqqq", "sports"])
    assert "knows no word of 'qqqq'" in person.finish("failed")["error"]
    person.classify([*person.get()["labels"][1:], {"name": "food"}])


class SlowEncoder(HashingEncoder):
    """Waits until it is let go on."""

    batch_texts = 10

    def __init__(self):
        super().__init__()
        self.started, self.go = threading.Event(), threading.Event()

    def encode(self, texts):
        self.started.set()
        assert self.go.wait(20)
        return super().encode(texts)


def test_a_slow_job_blocks_neither_the_page_nor_others_and_can_be_cancelled(
    new_client, new_person, table
):
    encoder = SlowEncoder()
    client = new_client(encoder=encoder, workers=1)
    slow, other = new_person(client, table), new_person(client, table)
    slow.start(LABELS)
    assert encoder.started.wait(20)
    other.start(LABELS)
    assert slow.get("/job")["stage"] == "Encoding"
    assert other.get("/job")["state"] == "waiting"
    assert client.get("/").status_code == 200
    assert "being classified" in slow.start(LABELS, status=409)["error"]
    assert client.delete(slow.path + "/job").status_code == 202
    encoder.go.set()
    slow.finish("cancelled")
    assert "no result yet" in slow.get("/view", 409)["error"]
    other.finish("done")
    slow.classify(slow.get()["labels"])


def test_a_stopping_server_cancels_jobs_and_deletes_what_was_uploaded(
    new_client, new_person, table
):
    encoder = SlowEncoder()
    client = new_client(encoder=encoder)
    person = new_person(client, table)
    folder = client.app.state.server.sessions.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [file.name for file in (folder / person.info["id"]).iterdir()] == ["data"]
    person.start(LABELS)
    assert encoder.started.wait(20)
    threading.Timer(0.2, encoder.go.set).start()
    client.__exit__()  # as when the server stops
    assert not folder.exists()


@pytest.mark.parametrize("limits", [{"max_sessions": 2}, {"max_total_rows": 5}], ids=str)
def test_the_least_recently_used_session_is_dropped(new_client, new_person, limits):
    client = new_client(**limits)
    first, second = new_person(client, b"text\na\nb\n"), new_person(client, b"text\na\nb\n")
    first.get()
    third = new_person(client, b"text\na\nb\n")
    assert "has ended" in second.get("", 404)["error"]
    first.get()
    third.get()
    folder = client.app.state.server.sessions.folder
    assert {each.name for each in folder.iterdir()} == {first.info["id"], third.info["id"]}


def test_a_client_that_disconnects_during_an_upload_leaves_nothing(client):
    messages = [
        {"type": "http.request", "body": b"text\nhalf a fi", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/sessions",
        "query_string": b"name=a.csv",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(client.app(scope, receive, send))
    assert list(client.app.state.server.sessions.folder.iterdir()) == []
    assert client.get("/api/status").status_code == 200


@pytest.fixture(scope="module")
def saved_model():
    texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    return ZeroShotClassifier(["sports", "business"], encoder=static()).fit(texts).fitted_


def test_predictions_are_those_of_the_model(new_client, saved_model):
    client = new_client(model=saved_model, max_texts=5)
    found = saved_model.predict([*NEW, ""])
    answer = client.post("/api/predict", json={"texts": [*NEW, ""]}).json()["predictions"]
    assert [each["label"] or "" for each in answer] == saved_model.names[found.labels].tolist()
    assert [each["confidence"] for each in answer] == found.confidence.tolist()
    assert answer[-1] == {"label": None, "confidence": 0.0, "unrefined": None}
    single = client.post("/api/predict", json={"texts": NEW[0]}).json()["predictions"]
    assert single == answer[:1]
    assert client.post("/api/predict", json={"texts": []}).json() == {"predictions": []}
    assert client.get("/api/status").json()["labels"] == ["sports", "business"]
    answer = client.post("/api/predict", json={"texts": ["a"] * 6})
    assert (answer.status_code, "at most 5 texts" in answer.json()["error"]) == (413, True)


def test_an_encoder_that_scores_pairs_is_refused(new_client):
    with pytest.raises(EncoderError, match="scores pairs"):
        new_client(encoder=CosineScorer())


KILLED = """
import os
from starlette.testclient import TestClient
from ulr.web import ServerSettings, create_app
with TestClient(create_app(ServerSettings(encoder="static")), base_url="http://localhost") as client:
    client.post("/api/sessions", content=b"text\\nsecret\\n")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for")
def test_uploads_to_a_killed_server_are_removed_by_the_next_one(new_client, tmp_path, monkeypatch):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client = new_client()
    assert not left.exists()
    assert [client.app.state.server.sessions.folder] == list(tmp_path.iterdir())
