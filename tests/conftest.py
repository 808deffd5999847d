"""The command line, as a process and within this one; it never shows a traceback."""

import csv
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

EXAMPLES = Path(__file__).parent.parent / "examples"


FITTING = {"classify", "evaluate", "report", "audit", "suggest"}


def with_encoder(arguments):
    """Arguments with the encoder that loads fastest, unless they name one or fit nothing."""
    arguments = list(map(str, arguments))
    if not FITTING.intersection(arguments[:1]) or {"--encoder", "--help"}.intersection(arguments):
        return arguments
    return [*arguments, "--encoder", "static"]


@pytest.fixture(scope="session")
def ulr():
    """Run `ulr` as a process."""

    def run(*arguments, stdin=b"", **environment):
        result = subprocess.run(
            [sys.executable, "-m", "ulr", *with_encoder(arguments)],
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
def command():
    """Run `ulr` within this process, which saves its start."""
    from ulr.cli import app

    def run(*arguments, stdin=None):
        result = CliRunner().invoke(app, with_encoder(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(
            code=result.exit_code,
            bytes=result.stdout_bytes,
            out=result.stdout,
            err=result.stderr,
        )

    return run


@pytest.fixture(scope="session")
def word_vectors(tmp_path_factory):
    """Name of an encoder that loads fast: words of some topics, near others of their topic."""
    topics = {
        "sports": "sport football tennis athletes goal match striker coach team penalty",
        "business": "money banks trade shops bank profit shares loan market investor",
        "weather": "rain storm sunshine fog snow wind cloud forecast heavy cold",
        "food": "cooking recipes kitchen meals soup bread salad cheese dinner oven",
        "travel": "math art physics trip hotel the of on and scored fell twice",
    }
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("words") / "words.txt"
    with path.open("w") as file:
        for name, words in topics.items():
            topic = [draw.gauss(0, 1) for _ in range(12)]
            for word in (name, *words.split()):
                print(word, *(f"{x + draw.gauss(0, 1.2):.4f}" for x in topic), file=file)
    return f"glove:{path}"


@pytest.fixture(scope="session")
def read_csv():
    def read(path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture(scope="session")
def classified(command, tmp_path_factory):
    """The example of customer messages, classified once, with its model."""
    folder = tmp_path_factory.mktemp("classified")
    source = EXAMPLES / "support_messages.csv"
    task = ["--labels", EXAMPLES / "support_labels.yaml", "-t", "message"]
    output, model = folder / "labelled.csv", folder / "model"
    result = command("classify", source, *task, "-o", output, "--save-model", model)
    assert result.code == 0, result.err
    return SimpleNamespace(source=source, task=task, output=output, model=model, result=result)


@pytest.fixture(scope="module")  # Playwright's event loop must not run beside other modules
def browser():
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    options = (
        "--headless --no-sandbox --disable-gpu --disable-background-networking "
        "--disable-component-update --disable-sync"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=options.split())
        yield browser
        browser.close()


def pytest_make_parametrize_id(val):
    """Content of files is no name of a test: archives contain the time at which they were made."""
    return "bytes" if isinstance(val, bytes) else None
