"""Jobs run where Linux's own functions are missing, and under the rules of Windows for open files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("other systems are what they are", allow_module_level=True)

EXAMPLES = Path(__file__).parent.parent / "examples"

# Every process of a job imports this first.
OTHER_SYSTEM = """
import ctypes, fcntl, os, sys

access = fcntl.fcntl
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("O_TMPFILE", "fork", "getuid", "geteuid"):
    delattr(os, name)


class Library(ctypes.CDLL):
    def __init__(self, name, *arguments, **options):
        if name is None:
            raise TypeError("a library has a name")
        super().__init__(name, *arguments, **options)


ctypes.CDLL = Library


def is_open(path):
    places = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    if os.path.realpath(path) in map(os.path.realpath, places):
        return True
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith(f" {os.path.realpath(path)}") for line in maps)


def closed_only(function):
    def call(*paths, **options):
        if options.get("dir_fd") is None:
            for path in paths:
                if isinstance(path, (str, os.PathLike)) and is_open(path):
                    raise PermissionError(13, "the file is used by another process", str(path))
        return function(*paths, **options)

    return call


for name in ("rename", "replace", "unlink", "remove", "rmdir"):
    setattr(os, name, closed_only(getattr(os, name)))
fsync = os.fsync


def writable_only(descriptor):
    if access(descriptor, 3) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(9, "Bad file descriptor")
    fsync(descriptor)


os.fsync = writable_only
"""

JOBS = """
import os, sys
from ulr.cli import main

assert sys.modules["fcntl"] is None and not hasattr(os, "fork")
for job in sys.stdin.read().splitlines():
    print(job, file=sys.stderr)
    sys.argv = ["ulr", *job.split("|")]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def run_elsewhere(tmp_path, *jobs, **environment):
    """Run jobs, one after the other in one process, on a system that is not Linux."""
    (tmp_path / "sitecustomize.py").write_text(OTHER_SYSTEM)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    lines = "\n".join("|".join(map(str, job)) for job in jobs)
    return subprocess.run(
        [sys.executable, "-c", JOBS],
        input=lines.encode(),
        capture_output=True,
        env=os.environ | {"PYTHONPATH": path, **environment},
        timeout=300,
    )


def test_the_rules_of_the_other_system_hold(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(OTHER_SYSTEM)
    code = """
import os, sys
with open("a", "w") as file:
    for act in (lambda: os.replace("a", "b"), lambda: os.unlink("a")):
        try:
            act()
        except PermissionError:
            print("refused")
with open("a", "rb") as file:
    try:
        os.fsync(file.fileno())
    except OSError:
        print("refused")
os.replace("a", "b")
"""
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout.split()) == (0, ["refused"] * 3), run.stderr


def test_jobs_run_without_the_functions_of_linux(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    lines = (EXAMPLES / "news_blurbs.csv").read_text().splitlines()[:60]
    (folder / "in.csv").write_text("\n".join([*lines, ""]))
    model, cache = folder / "model", folder / "cache"
    task = ["-t", "headline", "--labels", EXAMPLES / "news_labels.txt", "--encoder", "static"]
    keep = ["--save-model", model, "--cache", cache, "--force"]
    again, last = (["-t", "headline", "--prefix", prefix] for prefix in ("again", "last"))
    run = run_elsewhere(
        tmp_path,
        ["classify", folder / "in.csv", *task, *keep, "-o", folder / "out.xlsx"],
        ["classify", folder / "in.csv", *task, *keep, "-o", folder / "out.xlsx"],
        ["predict", model, folder / "out.xlsx", *again, "-o", folder / "again.parquet"],
        ["predict", model, folder / "again.parquet", *last, "-o", folder / "last.jsonl"],
        ["report", folder / "in.csv", *task, "-o", folder / "report.html"],
        ["cache", cache, "--clear"],
        TMPDIR=str(tmp_path),
        PYTHONIOENCODING="cp1252",
    )
    assert run.returncode == 0, run.stderr.decode("cp1252")
    assert len((folder / "last.jsonl").read_text().splitlines()) == 59
    left = {path.name for path in (*tmp_path.iterdir(), *folder.iterdir())}
    outputs = {"out.xlsx", "again.parquet", "last.jsonl", "report.html", "model"}
    assert left - {"cache", "__pycache__"} == {"sitecustomize.py", "a folder", "in.csv", *outputs}
