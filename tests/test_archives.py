"""What `make dist` has built is complete, and works in an empty environment outside this folder."""

import csv
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.archives

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PACKAGE = ROOT / "src" / "ulr"
SUFFIXES = {"wheel": "*.whl", "source archive": "*.tar.gz"}


def built(kind):
    (archive,) = (ROOT / "dist").glob(SUFFIXES[kind])
    return archive


def files_of(folder):
    """Paths in a folder of the repository, but for what Python has compiled."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_wheel_has_the_package_and_nothing_else():
    with zipfile.ZipFile(built("wheel")) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert {name.removeprefix("ulr/") for name in names} == files_of(PACKAGE)


def test_the_source_archive_has_what_the_tests_and_the_documentation_need():
    with tarfile.open(built("source archive")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("src/ulr", "tests", "examples", "docs", "tools", "benchmarks", "reproduction")
    for folder in folders:
        assert {f"{folder}/{name}" for name in files_of(ROOT / folder)} <= names
    assert {"Makefile", "Dockerfile", "LICENSE", "CITATION.cff", "SECURITY.md"} <= names


@pytest.fixture(scope="module", params=SUFFIXES)
def installed(request, tmp_path_factory):
    """Runs a command of an environment that has one of the archives and nothing of this folder."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(program, *arguments):
        command = [programs / program, *map(str, arguments)]
        result = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    install = ["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    run("python", *install, f"{built(request.param)}[strong,web]")
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder, run


def test_the_demo_runs_where_an_archive_is_installed(installed):
    folder, run = installed
    assert str(folder) in run("python", "-c", "import ulr; print(ulr.__file__)")
    run("python", "-m", "pip", "check")
    source, labels = (
        folder / "examples/support_messages.csv",
        folder / "examples/support_labels.yaml",
    )
    output = folder / "labelled.csv"
    run("ulr", "classify", source, "--text-column", "message", "--labels", labels, "-o", output)
    with source.open(newline="") as given, output.open(newline="") as labelled:
        messages, rows = list(csv.DictReader(given)), list(csv.DictReader(labelled))
    assert [row["message"] for row in rows] == [row["message"] for row in messages]
    assert len({row["ulr_label"] for row in rows}) > 3
    blurbs, names = folder / "examples/news_blurbs.csv", folder / "examples/news_labels.txt"
    task = [blurbs, "-t", "headline", "-t", "summary", "--labels", names]
    assert "accuracy" in run("ulr", "evaluate", *task, "--truth", "section")
    run("ulr", "report", *task, "-o", folder / "report.html")
    assert (folder / "report.html").stat().st_size > 100_000
    code = "from ulr.web import ServerSettings, create_app; create_app(ServerSettings())"
    run("python", "-c", code)
