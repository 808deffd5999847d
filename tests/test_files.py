"""Atomic writes, with and without files that have no name."""

import io
import os
import stat
import subprocess
import sys

import pytest

from ulr.errors import InputError, TableError
from ulr.files import (
    FileIdentity,
    atomic_file,
    atomic_folder,
    check_destination,
    file_state,
    sha256,
    temporary_copy,
    temporary_folder,
    user_cache,
)


@pytest.fixture(params=["unnamed", "named"], autouse=True)
def system(request, monkeypatch):
    """This system, and one that has no files without a name."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("older", [None, b"older"])
def test_file_appears_or_is_replaced_when_the_block_ends(tmp_path, older):
    path, plain = tmp_path / "out.csv", tmp_path / "plain"
    plain.touch()
    mode = plain.stat().st_mode
    if older is not None:
        path.write_bytes(older)
        path.chmod(mode := stat.S_IFREG | 0o640)
    with atomic_file(path) as file:
        file.write(b"whole")
        assert (path.read_bytes() if path.exists() else None) == older
    assert path.read_bytes() == b"whole"
    assert path.stat().st_mode == mode  # of any new file, or of the older one
    assert names(tmp_path) == ["out.csv", "plain"]


def test_error_leaves_the_older_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"older")
    with pytest.raises(TypeError, match="bytes-like"), atomic_file(path) as file:
        file.writelines([b"half", "no bytes"])
    assert path.read_bytes() == b"older"
    assert names(tmp_path) == ["out.csv"]


def test_a_symbolic_link_stays_a_link_to_the_written_file(tmp_path):
    target, link = tmp_path / "folder" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    link.symlink_to(target)
    for content in (b"first", b"second"):
        with atomic_file(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert names(tmp_path) == ["folder", "link.csv"]


@pytest.mark.parametrize("older", [None, b"older"])
def test_a_file_written_by_another_process_meanwhile_is_kept(tmp_path, older):
    path = tmp_path / "out.csv"
    if older is not None:
        path.write_bytes(older)
    with (
        pytest.raises(InputError, match="was written by another process meanwhile"),
        atomic_file(path),
    ):
        path.write_bytes(b"of another process")
    assert path.read_bytes() == b"of another process"
    assert names(tmp_path) == ["out.csv"]


def test_folder_replaces_the_older_one_whole_or_not_at_all(tmp_path):
    path = tmp_path / "model"
    for content in ("first", "second"):
        with atomic_folder(path) as partial:
            (partial / content).touch()
        assert names(path) == [content]
    with pytest.raises(FileNotFoundError, match="no-folder"), atomic_folder(path) as partial:
        [(partial / name).touch() for name in ("half", "no-folder/rest")]
    assert names(path) == ["second"]
    assert names(tmp_path) == ["model"]


def test_temporary_copy_is_read_by_its_path_and_deleted_afterwards(tmp_path, system, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_copy(io.BytesIO(b"kept")) as path:
        assert [path.read_bytes(), path.read_bytes()] == [b"kept", b"kept"]
        assert len(names(tmp_path)) == (system == "named")
    assert names(tmp_path) == []


def test_hash_is_that_of_the_content(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc").startswith("ba7816bf8f01cfea")


def test_existing_path_is_refused_unless_forced(tmp_path):
    path = tmp_path / "out.csv"
    path.touch()
    check_destination(path, True, TableError, "--force")
    with pytest.raises(TableError, match=r"out\.csv already exists; .* replace it with --force\.$"):
        check_destination(path, False, TableError, "--force")


def test_a_file_is_recognised_by_size_time_and_content(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"content")
    identity = FileIdentity.of(path)
    assert identity.matches(path)
    os.utime(path, (1, 1))
    assert identity.matches(path)
    path.write_bytes(b"c0ntent")
    os.utime(path, (2, 2))
    assert not identity.matches(path)
    path.write_bytes(b"longer content")
    assert not identity.matches(path)


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache("vectors") == tmp_path / "ulr" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache("vectors") == tmp_path / ".cache" / "ulr" / "vectors"
    assert names(tmp_path) == []


KILLED = """
import os, sys
from pathlib import Path
from ulr import files
kind, folder = sys.argv[1:]
if hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
blocks = {
    "file": lambda: files.atomic_file(Path(folder, "out.csv")),
    "folder": lambda: files.atomic_folder(Path(folder, "model")),
    "temporary": files.temporary_folder,
}
with blocks[kind]():
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for")
def test_the_next_run_removes_what_a_killed_one_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    others = [".out.csv.notes.partial", ".other.csv.0123ab.1-ffffff.partial", "ulr-notes"]
    for name in others:
        (tmp_path / name).touch()
    for kind in ("file", "folder", "temporary"):
        command = [sys.executable, "-c", KILLED, kind, str(tmp_path)]
        subprocess.run(command, env=os.environ | {"TMPDIR": str(tmp_path)}, check=False)
    assert len(names(tmp_path)) == len(others) + 3
    with atomic_folder(tmp_path / "model"), temporary_folder(), atomic_file(tmp_path / "out.csv"):
        pass
    assert names(tmp_path) == sorted([*others, "model", "out.csv"])


def test_state_of_a_file_or_folder_differs_after_it_was_written(tmp_path):
    path, folder = tmp_path / "out.csv", tmp_path / "out"
    assert file_state(path) is file_state(folder) is None
    states = []
    for content in (b"one", b"two"):
        folder.mkdir(exist_ok=True)
        for name in (path, folder / "out.csv"):
            with atomic_file(name) as file:
                file.write(content)
        states += [file_state(path), file_state(folder)]
    assert states[0] != states[2]
    assert states[1] != states[3]
    assert states[2:] == [file_state(path), file_state(folder)]
