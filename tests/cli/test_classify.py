"""`ulr classify` as a process: what it writes, prints and returns, and how it is stopped."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

LABELS = "sports, business, weather"
TEXTS = [
    "The striker scored twice before half time",
    "Shares fell after the bank raised interest rates",
    "Heavy rain and storms are expected on Sunday",
    "The caf\u00e9 owner fears for her income",
]


def table(texts=TEXTS):
    file = io.StringIO()
    csv.writer(file).writerows([("id", "text"), *enumerate(texts, 1)])
    return file.getvalue()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(table(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A file that takes some seconds to classify and to pack."""
    path = tmp_path_factory.mktemp("long") / "in.csv"
    path.write_text(table([f"{text} {i * 7919}" for i in range(3000) for text in TEXTS]))
    return path


def start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=None, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, arguments)],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=os.environ | environment,
    )


def test_every_row_is_written_with_its_category(classified, read_csv):
    before, after = read_csv(classified.source), read_csv(classified.output)
    added = ["ulr_label", "ulr_confidence", "ulr_unrefined"]
    assert list(after[0]) == [*before[0], *added]
    assert [{name: row[name] for name in before[0]} for row in after] == before


def test_summary_tells_how_it_went_and_is_quiet_beside(classified, read_csv):
    rows = read_csv(classified.output)
    moved = sum(row["ulr_label"] != row["ulr_unrefined"] for row in rows)
    assert classified.result.err == ""
    out = classified.result.out
    assert f"{len(rows)} documents, 6 labels; refinement moved {moved} (" in out
    for title in ("by name", "refined", "Moved by refinement", "Least certain"):
        assert title in out
    for label in {row["ulr_label"] for row in rows}:
        assert f"\n{label} " in out
    assert f"Written: {classified.output}" in out.replace("\n", "")
    assert "\x1b" not in out


def test_json_summary_counts_what_is_written(source, tmp_path, ulr, read_csv):
    result = ulr("classify", source, "-l", LABELS, "-o", tmp_path / "out.csv", "--json")
    assert (result.code, result.err) == (0, "")
    summary, rows = json.loads(result.out), read_csv(tmp_path / "out.csv")
    assert summary["documents"] == len(rows) == 4
    labels = [row["ulr_label"] for row in rows]
    assert {each["label"]: each["after"] for each in summary["labels"]} == {
        name: labels.count(name) for name in LABELS.split(", ")
    }
    assert summary["output"] == str(tmp_path / "out.csv")


def test_parquet_through_pipes(ulr):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"n": [3, 1, 2, 0], "text": TEXTS}), file)
    result = ulr("classify", "-", "-l", LABELS, "-o", "-", stdin=file.getvalue())
    assert (result.code, result.err) == (0, "")
    written = pq.read_table(io.BytesIO(result.bytes))
    assert written["n"].to_pylist() == [3, 1, 2, 0]
    assert written.column_names[2:] == ["ulr_label", "ulr_confidence", "ulr_unrefined"]


def test_encoding_delimiter_and_header_can_be_told(ulr):
    lines = "".join(f"{i};{text}\n" for i, text in enumerate(TEXTS)).encode("latin-1")
    how = ["--encoding", "latin-1", "--delimiter", ";", "--no-header", "-t", "c2"]
    result = ulr("classify", "-", "-l", LABELS, "-o", "-", *how, stdin=lines)
    assert (result.code, result.err) == (0, "")
    assert [line.split(",")[:2] for line in result.out.splitlines()] == [
        [str(i), text] for i, text in enumerate(TEXTS)
    ]


def test_forced_output_may_be_the_input(source, ulr):
    result = ulr("classify", source, "-l", LABELS, "-o", source, "--force")
    assert (result.code, result.err) == (0, "")
    assert source.read_text().startswith("id,text,ulr_label,ulr_confidence,ulr_unrefined\n1,The ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-o", "in.csv"],
            "in.csv already exists; choose another name, or replace it with --force",
        ),
        (["-t", "body"], "in.csv has no column 'body'; it has: id, text. Choose one with"),
        (["-o", "x" * 300 + ".csv"], ".csv: File name too long"),
    ],
)
def test_error_of_the_input_is_one_sentence_and_1(source, ulr, monkeypatch, arguments, message):
    monkeypatch.chdir(source.parent)
    before = source.read_bytes()
    result = ulr("classify", "in.csv", "-l", LABELS, *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("ulr: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "in.csv"],
        ["classify", "in.csv", "-l", LABELS, "--colour"],
        ["classify", "in.csv", "-l", LABELS, "--json", "-o", "-"],
        ["clasify"],
    ],
    ids=["no labels", "unknown option", "two for standard output", "unknown command"],
)
def test_error_of_usage_is_2(ulr, arguments):
    result = ulr(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "Usage: " in result.err


def test_version_is_that_of_the_package(ulr):
    import ulr as package

    result = ulr("--version")
    assert (result.code, result.out) == (0, f"ulr {package.__version__}\n")


@pytest.mark.parametrize("output", [["-o", "-"], []], ids=["rows", "summary"])
def test_reader_that_has_enough_is_no_error(source, output):
    reading, writing = os.pipe()
    os.close(reading)
    with start("classify", source, "-l", LABELS, *output, stdout=writing) as process:
        os.close(writing)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_told(source):
    with (
        open("/dev/full", "wb") as full,
        start("classify", source, "-l", LABELS, "-o", "-", stdout=full) as process,
    ):
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, b"ulr: No space left on device.\n")


def test_summary_fits_any_locale(source, ulr):
    result = ulr("classify", source, "-l", LABELS, PYTHONIOENCODING="ascii")
    assert (result.code, result.err) == (0, "")
    assert "Least certain:" in result.out


def test_terminal_shows_every_stage(source):
    ours, theirs = pty.openpty()
    arguments = ["classify", source, "-l", LABELS, "-o", source.with_name("out.csv")]
    with start(*arguments, stderr=theirs, TERM="xterm") as process, open(ours, "rb", 0) as terminal:
        os.close(theirs)
        shown = b"".join(iter(lambda: read_terminal(terminal), b"")).decode()
        process.communicate(timeout=60)
    assert process.returncode == 0
    for stage in ("Reading", "Encoding", "Refining", "Writing"):
        assert stage in shown
    assert "passes, 0 changed, " in shown


def read_terminal(terminal):
    """What is shown next; Linux has an error where nobody will show anything any more."""
    try:
        return terminal.read(65536)
    except OSError:
        return b""


def wait_for_file_in(folder, process):
    """Until the process has a file open in the folder, even one without a name."""
    descriptors = f"/proc/{process.pid}/fd"
    for _ in range(6000):
        assert process.poll() is None, "it ended before it could be stopped"
        for name in os.listdir(descriptors):
            try:
                if os.readlink(f"{descriptors}/{name}").startswith(str(folder)):
                    return
            except FileNotFoundError:
                continue
        time.sleep(0.005)
    raise TimeoutError(f"no file was opened in {folder}")


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, b"ulr: stopped; no file was written.\n"),
        (signal.SIGTERM, 130, b"ulr: stopped; no file was written.\n"),
        (signal.SIGKILL, -signal.SIGKILL, b""),
    ],
)
def test_stopped_while_writing_leaves_nothing_behind(long, tmp_path, number, code, message):
    output = tmp_path / "out.csv.gz"
    with start("classify", long, "-l", LABELS, "-o", output) as process:
        try:
            wait_for_file_in(tmp_path, process)
            process.send_signal(number)
            out, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, errors) == (code, b"", message)
    assert os.listdir(tmp_path) == []


@needs_proc
def test_killed_while_reading_leaves_no_copy_of_standard_input(tmp_path):
    arguments = ["classify", "-", "-l", LABELS]
    with start(*arguments, stdin=subprocess.PIPE, TMPDIR=str(tmp_path)) as process:
        try:
            process.stdin.write(b"text\nnot all there is\n")
            process.stdin.flush()
            wait_for_file_in(tmp_path, process)
        finally:
            process.kill()
        process.communicate(timeout=30)
    assert os.listdir(tmp_path) == []
