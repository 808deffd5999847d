"""A folder computed from a file: built once, complete or absent, rebuilt when out of date."""

import os
import subprocess
import sys

import pytest

from ulr.encoders.derived import derived_folder
from ulr.errors import EncoderError

SETTINGS = {"format": 1}


class Build:
    """Writes the source in capitals, and counts how often it was asked to."""

    def __init__(self, source):
        self.source, self.calls = source, 0

    def __call__(self, folder):
        self.calls += 1
        (folder / "content.txt").write_text(self.source.read_text().upper())
        return {"characters": len(self.source.read_text())}


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "source.txt"
    path.write_text("abc")
    return path


@pytest.fixture
def build(source):
    return Build(source)


def test_folder_is_built_once_next_to_the_source(source, build):
    first = derived_folder(source, SETTINGS, build)
    again = derived_folder(source, SETTINGS, build)
    assert first == again
    assert build.calls == 1
    assert first.folder == source.with_name("source.txt.ulr")
    assert first.facts == {"characters": 3}
    assert (first.folder / "content.txt").read_text() == "ABC"


def test_a_new_modification_time_alone_does_not_rebuild(source, build):
    derived_folder(source, SETTINGS, build)
    os.utime(source, ns=(1, 1))
    derived_folder(source, SETTINGS, build)
    assert build.calls == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda source, folder: source.write_text("xyz"),
        lambda source, folder: (folder / "content.txt").write_text("AB"),
        lambda source, folder: (folder / "content.txt").unlink(),
        lambda source, folder: (folder / "about.json").write_bytes(b"\xff{"),
        lambda source, folder: (folder / "about.json").write_text("[1]"),
    ],
    ids=["source", "file cut", "file missing", "no JSON", "other JSON"],
)
def test_a_changed_source_or_damaged_folder_is_rebuilt(source, build, change):
    folder = derived_folder(source, SETTINGS, build).folder
    change(source, folder)
    os.utime(source, ns=(1, 1))
    rebuilt = derived_folder(source, SETTINGS, build)
    assert build.calls == 2
    assert (rebuilt.folder / "content.txt").read_text() == source.read_text().upper()


def test_other_settings_rebuild(source, build):
    derived_folder(source, SETTINGS, build)
    derived_folder(source, {"format": 2}, build)
    assert build.calls == 2


def test_a_given_cache_is_used_instead(source, build, tmp_path):
    found = derived_folder(source, SETTINGS, build, tmp_path / "mine")
    assert found.folder.parent == tmp_path / "mine"
    assert not source.with_name("source.txt.ulr").exists()


def test_user_cache_is_used_where_the_folder_cannot_be_next_to_the_source(source, tmp_path):
    # With .ulr after it, the name is longer than file systems allow.
    long = source.rename(tmp_path / ("s" * 250 + ".txt"))
    build = Build(long)
    found = derived_folder(long, SETTINGS, build)
    assert found.folder.parent == tmp_path / "cache" / "ulr" / "derived"
    assert derived_folder(long, SETTINGS, build) == found
    assert build.calls == 1


def test_something_else_in_its_place_is_never_replaced(source, build):
    place = source.with_name("source.txt.ulr")
    place.mkdir()
    (place / "letters.txt").write_text("dear")
    with pytest.raises(EncoderError, match="holds something else; move it away"):
        derived_folder(source, SETTINGS, build)
    assert [file.name for file in place.iterdir()] == ["letters.txt"]


def test_source_that_changes_while_it_is_read_is_refused(source):
    def build(folder):
        source.write_text("changed")
        return {}

    with pytest.raises(EncoderError, match="changed while it was read"):
        derived_folder(source, SETTINGS, build)
    assert not source.with_name("source.txt.ulr").exists()


def test_full_disk_leaves_nothing_behind(source, tmp_path):
    code = f"""
import resource
from pathlib import Path
from ulr.encoders.derived import derived_folder
def build(folder):
    (folder / "content").write_bytes(bytes(1000))
    return {{}}
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    derived_folder(Path({str(source)!r}), {{}}, build)
except ValueError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cannot be written to" in result.stdout
    assert "source.txt.ulr" in result.stdout
    assert "cache" in result.stdout
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"source.txt"}
