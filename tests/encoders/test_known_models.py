"""Known models: files known by their hashes, from packages, folders or the hub, whole or not at all."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hub_server import HubServer
from python_process import run_python
from tiny_onnx import hidden_states, save_folder

from ulr import ZeroShotClassifier, load_encoder
from ulr.encoders import ENCODERS, KNOWN_MODELS, download_model, label_encoder
from ulr.encoders.registry import STRONGEST
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError
from ulr.files import sha256

TEXTS = ["rain", "the goal of the team"]
FILES = ("onnx/model.onnx", "tokenizer.json")
DOWNLOAD = ("-m", "ulr", "encoders", "download")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/ulr/models"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The files of a tiny model, which some known models are for a test."""
    (tmp_path / "tiny").mkdir()
    folder = save_folder(tmp_path / "tiny", "onnx/model.onnx")
    hashes = {file: sha256(folder / file) for file in FILES}
    for name in ("bge-small", "e5-small-multilingual", "gte-small"):
        monkeypatch.setitem(KNOWN_MODELS, name, replace(KNOWN_MODELS[name], files=hashes))
    return folder


def unit(rows):
    return np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_folder_serves_whatever_its_files_are_called(tiny, tmp_path, cache):
    other = tmp_path / "stick/copies"
    other.mkdir(parents=True)
    for number, file in enumerate(FILES):
        shutil.copy(tiny / file, other / f"{number}{(tiny / file).suffix}")
    (other / "unrelated.json").write_text("{}")
    folder, source = download_model("bge-small", other.parent)
    assert (folder, source) == (cache / "bge-small", str(other.parent))
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} == {*FILES}
    assert [path.name for path in cache.iterdir()] == ["bge-small"]


def test_a_folder_without_the_files_is_refused_and_older_ones_are_kept(tiny, tmp_path):
    download_model("bge-small", tiny)
    (tiny / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"does not have the files of the encoder 'bge-small'"):
        download_model("bge-small", tiny)
    load_encoder("bge-small")


def test_the_table_states_the_pooling_and_the_prefixes(tiny):
    download_model("bge-small", tiny)
    assert ENCODERS["bge-small"].installed
    encoder = load_encoder("bge-small")
    digest = sha256(tiny / "onnx/model.onnx")[:16]
    assert (encoder.spec, encoder.fingerprint) == ("bge-small", f"bge-small {digest}, 256 tokens")
    expected = unit([hidden_states(text)[0] for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert label_encoder(encoder) is encoder
    download_model("e5-small-multilingual", tiny)
    encoder = load_encoder("e5-small-multilingual")
    for prefix, part in (("passage: ", encoder), ("query: ", label_encoder(encoder))):
        expected = unit([hidden_states(prefix + text).mean(axis=0) for text in TEXTS])
        np.testing.assert_allclose(part.encode(TEXTS), expected, atol=1e-5)
    assert "de" in encoder.languages


def test_changed_files_are_refused(tiny):
    folder, _ = download_model("bge-small", tiny)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"damaged \(tokenizer\.json\).*download bge-small"):
        load_encoder("bge-small")


@pytest.mark.parametrize("name", ["bge-small", "gte-small", "potion", "cross-minilm"])
def test_models_that_are_not_here_say_how_to_get_them(name):
    if ENCODERS[name].installed:
        pytest.skip(f"the files of {name} are installed")
    with pytest.raises(EncoderError, match=f"ulr encoders download {name}$"):
        load_encoder(name)
    assert ENCODERS[name].install == f"ulr encoders download {name}"


def test_best_is_the_first_combination_that_is_available(tiny, tmp_path):
    def first():
        return next(names for names in STRONGEST if all(ENCODERS[name].installed for name in names))

    before = first()
    texts = ["rain and sun", "the goal of the team", "sun", "a goal"]
    classifier = ZeroShotClassifier(["rain", "goal"], encoder="auto").fit(texts)
    classifier.save(tmp_path / "saved")
    assert load_encoder("auto").spec == "+".join(before)
    assert STRONGEST[-1] == ("static",)
    if "bge-small" not in before:
        download_model("bge-small", tiny)
        assert load_encoder("auto").spec == "+".join(first()) != "+".join(before)
    again = ZeroShotClassifier.load(tmp_path / "saved")  # with the encoders that best was
    np.testing.assert_array_equal(again.predict(texts), classifier.predict(texts))


def test_the_table_of_models_is_complete():
    for name, model in KNOWN_MODELS.items():
        assert ENCODERS[name].languages == model.languages != ()
        assert len(bytes.fromhex(model.revision)) == 20
        for files in model.versions:
            assert "tokenizer.json" in files
            assert all(each is None or len(bytes.fromhex(each)) == 32 for each in files.values())


def test_the_hub_is_asked_for_the_files_of_the_pinned_commit(tiny, tmp_path, cache):
    model = KNOWN_MODELS["bge-small"]
    (tiny / "unneeded.bin").write_bytes(b"never downloaded")
    code = f"""
from dataclasses import replace
from ulr.encoders import KNOWN_MODELS, download_model

class Seen(list):
    def stage(self, name, total=None, unit="documents"):
        self.append((name, total, unit))
    def advance(self, count=1):
        assert count >= 0

seen, model = Seen(), KNOWN_MODELS["bge-small"]
KNOWN_MODELS["bge-small"] = replace(model, files={model.files!r})
print(*download_model("bge-small", progress=seen), seen)
"""
    with HubServer(tiny, model.hub, model.revision) as hub:
        address = f"http://127.0.0.1:{hub.server_port}"
        given = {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}
        result = run_python("-c", code, **given)
        other = run_python(*DOWNLOAD, "bge-small", **given)
        (tiny / "onnx/model.onnx").unlink()
        lacking = run_python("-c", code, **given)
        hub.stop()
    target = cache / "bge-small"
    stage = ("Downloading", 134_000_000, "bytes")
    said = f"{target} {model.hub} on the Hugging Face hub [{stage}]\n"
    assert (result.stdout, result.stderr) == (said, "")
    assert {path.relative_to(target).as_posix() for path in target.rglob("*.*")} == {*FILES}
    assert (other.returncode, other.stdout) == (1, "")
    assert "is not the expected file: its sha256 is" in other.stderr
    assert "hub has no onnx/model.onnx" in lacking.stderr
    assert [path.name for path in cache.iterdir()] == ["bge-small"]
    assert load_encoder("bge-small").n_dims == 8  # the older files were kept


def test_the_command_takes_a_folder_and_says_so_without_a_connection(tmp_path, cache):
    result = run_python(*DOWNLOAD, "bge-small", HF_HUB_OFFLINE="1")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "BAAI/bge-small-en-v1.5 on the Hugging Face hub cannot be reached" in result.stderr
    assert "ulr encoders download bge-small --from FOLDER" in result.stderr
    result = run_python(*DOWNLOAD, "potion", "--from", tmp_path)
    assert "does not have the files of the encoder 'potion'" in result.stderr
    result = run_python(*DOWNLOAD, "bert")
    assert "the models that can be downloaded are minilm, bge-small" in result.stderr
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_download_leaves_nothing(tmp_path, cache, stop):
    with socket.create_server(("127.0.0.1", 0)) as server:  # it never answers
        server.settimeout(60)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        given = {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}
        process = subprocess.Popen(
            [sys.executable, *DOWNLOAD, "potion"],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | given,
        )
        connection, _ = server.accept()
        with connection:
            assert list(cache.iterdir())
            process.send_signal(stop)
            _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "ulr: stopped; nothing was downloaded.\n")
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("package", "path", "extra", "message"),
    [
        ("yaml", "__init__.py", None, r"its sha256 is .*, not 0{64}\. Install the package again"),
        ("yaml", "no/such.bin", None, "'yaml' has no file no/such.bin"),
        ("no_such", "a", None, "'no_such' is not installed; install it with: pip install no_such"),
        ("no_such", "a", "minilm", r"with: pip install .*\[minilm\]'"),
    ],
)
def test_files_of_packages_are_known_by_their_hash(package, path, extra, message):
    file = PackagedFile(package, path, "0" * 64, extra)
    assert file.installed() == (path == "__init__.py")
    with pytest.raises(EncoderError, match=message):
        file.locate()
