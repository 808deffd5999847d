"""`ulr classify`: what it writes, prints and returns, and how it is stopped."""

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
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in.csv"
    path.write_text(table(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A file that takes some seconds to classify and to compress."""
    path = tmp_path_factory.mktemp("long") / "in.csv"
    path.write_text(table([f"{text} {i * 7919}" for i in range(1500) for text in TEXTS]))
    return path


@pytest.fixture
def classify(source, command, word_vectors):
    """Classify the file with word vectors, within this process."""

    def run(*options, file="in.csv", labels=LABELS, stdin=None):
        given = ["classify", file, "-l", labels, "--encoder", word_vectors]
        return command(*given, *options, stdin=stdin)

    return run


def start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=None, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, arguments), "--encoder", "static"],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=os.environ | environment,
    )


# Output


def test_summary_shows_counts_moves_and_output(classified, read_csv):
    rows = read_csv(classified.output)
    moved = sum(row["ulr_label"] != row["ulr_unrefined"] for row in rows)
    assert classified.result.err == ""
    out = classified.result.out
    assert f"{len(rows)} documents, 6 labels" in out
    assert f"moved {moved} (" in out
    for title in ("by name", "refined", "Moved by refinement", "Least certain"):
        assert title in out
    for label in {row["ulr_label"] for row in rows}:
        assert f"\n{label} " in out
    assert f"Written: {classified.output}" in out.replace("\n", "")
    assert "\x1b" not in out


def test_parquet_through_pipes(classify):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"n": [3, 1, 2, 0], "text": TEXTS}), file)
    result = classify("-o", "-", file="-", stdin=file.getvalue())
    assert (result.code, result.err) == (0, "")
    written = pq.read_table(io.BytesIO(result.bytes))
    assert written["n"].to_pylist() == [3, 1, 2, 0]
    assert written.column_names[2:] == ["ulr_label", "ulr_confidence", "ulr_unrefined"]


def test_encoding_delimiter_and_header_can_be_named(classify):
    lines = "".join(f"{i};{text}\n" for i, text in enumerate(TEXTS)).encode("latin-1")
    how = ["--encoding", "latin-1", "--delimiter", ";", "--no-header", "-t", "c2"]
    result = classify("-o", "-", *how, file="-", stdin=lines)
    assert (result.code, result.err) == (0, "")
    assert [line.split(";")[:2] for line in result.out.splitlines()] == [
        [str(i), text] for i, text in enumerate(TEXTS)
    ]


def test_repeated_labels_add_up(classify, source):
    (source.parent / "more.txt").write_text("food: cooking; recipes\n")
    result = classify("-l", "weather", "-l", "more.txt", "--json", labels="sports, business")
    assert (result.code, result.err) == (0, "")
    names = [each["label"] for each in json.loads(result.out)["labels"]]
    assert names == ["sports", "business", "weather", "food"]
    twice = classify("-l", "sports")
    assert (twice.code, twice.out) == (1, "")
    assert "label 'sports' is already given" in twice.err


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["--none-label", "other"], "--none-label"),
        (["--prefix", "x_"], "--prefix"),
        (["--force"], "--force"),
        (["--method", "none", "--max-iter", "7"], "--max-iter"),
    ],
)
def test_options_without_effect_say_so(classify, options, option):
    result = classify(*options)
    assert result.code == 0
    assert f"{option} has no effect" in result.err


def test_options_that_do_not_apply_to_a_format_say_so(classify, source):
    (source.parent / "in.json").write_text(json.dumps([{"text": text} for text in TEXTS]))
    result = classify("--delimiter", ";", "--no-header", file="in.json")
    assert result.code == 0
    assert "--delimiter has no effect on json files" in result.err
    assert "--no-header has no effect on json files" in result.err


def test_model_is_replaced_with_force(classify):
    assert classify("--save-model", "model").code == 0
    assert "already exists" in classify("--save-model", "model").err
    assert classify("--save-model", "model", "--force").code == 0


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "in.csv"], "in.csv already exists"),
        (["-t", "body"], "in.csv has no column 'body'; it has: id, text"),
        (["-o", "x" * 300 + ".csv"], "File name too long"),
        (["-o", ""], "name of the output is empty"),
        (["--prior", "1,1"], "each of the 3 labels"),
        (["--fit-sample", "0"], "--fit-sample must be"),
        (["--method", "best"], "method must be one of"),
        (["--n-jobs", "0"], "--n-jobs must be"),
        (["--json", "-o", "-"], "both write to standard output"),
    ],
)
def test_bad_argument_is_one_line_and_exit_code_1(classify, source, arguments, message):
    before = source.read_bytes()
    result = classify(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("ulr: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert source.read_bytes() == before
    assert os.listdir() == ["in.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "in.csv"],
        ["classify", "in.csv", "-l", LABELS, "--colour"],
        ["classify", "in.csv", "-l", LABELS, "--seed", "-1"],
        ["evaluate", "in.csv", "-l", LABELS],
        ["clasify"],
    ],
    ids=["no labels", "unknown option", "negative seed", "no truth", "unknown command"],
)
def test_usage_error_is_exit_code_2(command, arguments):
    result = command(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "Usage: " in result.err


def test_version_is_that_of_the_package(ulr):
    import ulr as package

    result = ulr("--version")
    assert (result.code, result.out) == (0, f"ulr {package.__version__}\n")


# Processes


def test_closed_pipe_is_no_error(source):
    reading, writing = os.pipe()
    os.close(reading)
    with start("classify", source, "-l", LABELS, "-o", "-", stdout=writing) as process:
        os.close(writing)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_one_line(source):
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
    texts = [f"{text} {number}" for number in range(10) for text in ("a goal", "a bank", "a vote")]
    source.write_text("\n".join(["text", *texts]))  # enough texts to be calibrated
    ours, theirs = pty.openpty()
    arguments = ["classify", source, "-l", LABELS, "-o", source.with_name("out.csv")]
    with start(*arguments, stderr=theirs, TERM="xterm") as process, open(ours, "rb", 0) as terminal:
        os.close(theirs)
        shown = b"".join(iter(lambda: read_terminal(terminal), b"")).decode()
        process.communicate(timeout=60)
    assert process.returncode == 0
    for stage in ("Reading", "Encoding", "Refining", "Calibrating", "Writing"):
        assert stage in shown


def read_terminal(terminal):
    """What is shown next; Linux raises an error when the other end is closed."""
    try:
        return terminal.read(65536)
    except OSError:
        return b""


def wait_for_file_in(folder, process):
    """Wait until the process has a file open in the folder, even one without a name."""
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
    # Python's own trial whether the folder can be written to may be there at that moment.
    assert not any(b"not all there is" in path.read_bytes() for path in tmp_path.iterdir())
