"""A classifier as a repository of the Hugging Face hub: folder, model card, upload and download."""

import base64
import json

import pytest
from hub_server import Hub, HubServer

from ulr.errors import EncoderError, ModelError
from ulr.integrations import HubClassifier

FILES = ["README.md", "arrays.safetensors", "config.json", "model.json"]


class WritableHub(Hub):
    """A hub that takes commits of small files."""

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        lines = [json.loads(line) for line in self.rfile.read(length).splitlines() if line]
        if self.path.endswith("/repos/create"):
            self.answer({"url": f"http://{self.headers['Host']}/{self.server.model}"})
        elif "/preupload/" in self.path:
            files = [{"path": each["path"]} for each in lines[0]["files"]]
            regular = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            self.answer({"files": [file | regular for file in files]})
        elif "/commit/" in self.path:
            for line in lines:
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    (self.server.folder / line["value"]["path"]).write_bytes(content)
            url = f"http://127.0.0.1/{self.server.model}/commit/{self.server.commit}"
            self.answer({"success": True, "commitOid": self.server.commit, "commitUrl": url})
        else:
            self.answer({"errors": [], "warnings": []})


@pytest.fixture
def hub(model):
    return HubClassifier.load(model)


def test_a_folder_gives_the_same_classifier(hub, clf, messages, tmp_path):
    hub.save_pretrained(tmp_path / "repository")
    assert sorted(path.name for path in (tmp_path / "repository").iterdir()) == FILES
    loaded = HubClassifier.from_pretrained(tmp_path / "repository")
    assert loaded.predict(messages).tolist() == clf.predict(messages).tolist()
    config = json.loads((tmp_path / "repository/config.json").read_text())
    assert sorted(config["id2label"].values()) == clf.classes_.tolist()
    hub.save_pretrained(tmp_path / "repository")  # over itself


def test_model_card_says_what_it_is_and_how_to_load_it(hub, tmp_path):
    from huggingface_hub import ModelCard

    card = ModelCard(
        hub.generate_model_card(name="me/support", description="Measured: 81 %.").content
    )
    assert card.data.library_name == "ulr"
    assert card.data.pipeline_tag == "text-classification"
    assert "zero-shot-classification" in card.data.tags
    text = card.text
    assert 'HubClassifier.from_pretrained("me/support")' in text
    for label in hub.label_set_:
        assert f"| {label.name} | {'; '.join(label.phrases)} |" in text
    assert "`static`" in text
    assert "Measured: 81 %." in text
    hub.save_pretrained(tmp_path / "repository")
    assert "was not measured" in (tmp_path / "repository/README.md").read_text()


def test_what_a_stranger_writes_into_the_configuration_is_not_read(hub, clf, messages, tmp_path):
    folder = tmp_path / "repository"
    hub.save_pretrained(folder)
    config = {"encoder": "hf:evil/model", "labels": ["a", "b"], "cache": "/"}
    (folder / "config.json").write_text(json.dumps(config))
    loaded = HubClassifier.from_pretrained(folder)
    assert loaded.predict(messages[:9]).tolist() == clf.predict(messages[:9]).tolist()


def test_a_damaged_repository_is_refused(hub, tmp_path):
    folder = tmp_path / "repository"
    hub.save_pretrained(folder)
    (folder / "arrays.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match="damaged"):
        HubClassifier.from_pretrained(folder)
    with pytest.raises(EncoderError, match="neither a folder"):
        HubClassifier.from_pretrained("not/a/name")


def test_upload_and_download(hub, clf, messages, tmp_path, monkeypatch):
    (tmp_path / "hub").mkdir()
    server = HubServer(tmp_path / "hub", model="org/support")
    server.RequestHandlerClass = WritableHub
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        with monkeypatch.context() as patch:  # as the variable HF_ENDPOINT does in a new process
            patch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
            hub.push_to_hub("org/support", token="t", model_card_kwargs={"title": "Support"})
        options = {"endpoint": endpoint, "cache_dir": tmp_path / "cache", "revision": "main"}
        loaded = HubClassifier.from_pretrained("org/support", **options)
    finally:
        server.stop()
    assert sorted(path.name for path in (tmp_path / "hub").glob("[!.]*")) == FILES
    assert loaded.predict(messages).tolist() == clf.predict(messages).tolist()
    fetched = {path.name for path in tmp_path.glob("cache/**/snapshots/*/*")}
    assert fetched == {"arrays.safetensors", "model.json"}
    card = (tmp_path / "hub/README.md").read_text()
    assert "# Support" in card
    assert 'from_pretrained("org/support")' in card
