"""Output appears whole or not at all, with and without files that have no name."""

import os
import stat

import pytest

from ulr.errors import ModelError, TableError
from ulr.files import refuse_existing, scratch_file, sha256, whole_file, whole_folder


@pytest.fixture(params=["unnamed", "named"])
def system(request, monkeypatch):
    """This system, and one that has no files without a name."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("system")
def test_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "out.csv"
    with whole_file(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.usefixtures("system")
def test_error_leaves_the_older_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"older")
    with pytest.raises(TypeError, match="bytes-like"), whole_file(path) as file:
        file.writelines([b"half", "no bytes"])
    assert path.read_bytes() == b"older"
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.usefixtures("system")
def test_older_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"older")
    with whole_file(path) as file, path.open("rb") as reader:
        file.write(b"newer")
        assert reader.read() == b"older"
    assert path.read_bytes() == b"newer"


@pytest.mark.usefixtures("system")
def test_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.touch()
    with whole_file(whole):
        pass
    assert stat.S_IMODE(whole.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_file_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with whole_file(tmp_path.relative_to(tmp_path) / "out.csv") as file:
        file.write(b"here")
    assert (tmp_path / "out.csv").read_bytes() == b"here"


def test_folder_replaces_the_older_one_whole(tmp_path):
    path = tmp_path / "model"
    for content in ("first", "second"):
        with whole_folder(path) as partial:
            (partial / content).touch()
        assert names(path) == [content]
    assert names(tmp_path) == ["model"]


def test_error_leaves_the_older_folder_and_nothing_else(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "older").touch()
    with pytest.raises(FileNotFoundError, match="no-folder"), whole_folder(path) as partial:
        [(partial / name).touch() for name in ("half", "no-folder/rest")]
    assert names(path) == ["older"]
    assert names(tmp_path) == ["model"]


def test_scratch_file_is_read_by_its_path_and_gone_afterwards(tmp_path, system, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_file() as (file, path):
        file.write(b"kept")
        file.flush()
        assert [path.read_bytes(), path.read_bytes()] == [b"kept", b"kept"]
        assert len(names(tmp_path)) == (system == "named")
    assert names(tmp_path) == []


def test_hash_is_that_of_the_content(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc").startswith("ba7816bf8f01cfea")


def test_existing_path_is_refused_unless_forced(tmp_path):
    path = tmp_path / "out.csv"
    path.touch()
    refuse_existing(path, True, TableError, "--force")
    with pytest.raises(TableError, match=r"out\.csv already exists; .* replace it with --force\.$"):
        refuse_existing(path, False, TableError, "--force")


def test_missing_folder_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"there is no folder .*missing to write model into\.$"):
        refuse_existing(tmp_path / "missing" / "model", True, ModelError, "--force")
