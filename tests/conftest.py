"""The command line as people run it: another process, which never shows a traceback."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="session")
def ulr():
    """Run `ulr` with arguments to its end."""

    def run(*arguments, stdin=b"", **environment):
        result = subprocess.run(
            [sys.executable, "-m", "ulr", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            timeout=60,
            env=os.environ | environment,
        )
        assert b"Traceback" not in result.stderr, result.stderr.decode()
        return SimpleNamespace(
            code=result.returncode,
            bytes=result.stdout,
            out=result.stdout.decode(errors="replace"),
            err=result.stderr.decode(),
        )

    return run


@pytest.fixture(scope="session")
def read_csv():
    def read(path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture(scope="session")
def classified(ulr, tmp_path_factory):
    """The example of customer messages, classified once, its model kept."""
    folder = tmp_path_factory.mktemp("classified")
    source = EXAMPLES / "support_messages.csv"
    task = ["--labels", EXAMPLES / "support_labels.yaml", "-t", "message"]
    output, model = folder / "labelled.csv", folder / "model"
    result = ulr("classify", source, *task, "-o", output, "--save-model", model)
    assert result.code == 0, result.err
    return SimpleNamespace(source=source, task=task, output=output, model=model, result=result)
