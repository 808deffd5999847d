"""Files as people have them on the command line: what is decided is said, and nothing is lost."""

import csv
import os
import random
import subprocess
import sys

import pytest

LABELS = "sports, business, weather"
TEXTS = ["The striker scored twice", "Shares fell after a loan", "Heavy rain and fog", "A penalty"]


@pytest.fixture
def classify(tmp_path, monkeypatch, command, word_vectors):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None, labels=LABELS):
        return command("classify", *arguments, "-l", labels, "--encoder", word_vectors, stdin=stdin)

    return run


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_plain_text_on_standard_input_keeps_its_first_line(classify):
    result = classify("-", "-o", "-", stdin="\n".join(TEXTS).encode())
    assert result.code == 0
    assert result.err.count("\n") == 1
    assert "ulr: standard input is read as text, one document per line" in result.err
    assert result.out.count("\n") == len(TEXTS)


def test_the_column_with_the_longest_prose_is_read_and_named(classify, tmp_path):
    code, address = "Zm9vYmFy" * 30, "https://a.b/" + "long-name-of-a-page/" * 9
    rows = [
        (i, code + str(i), address + str(i), "always the same notice", text)
        for i, text in enumerate(TEXTS)
    ]
    source = write(tmp_path / "in.csv", [("id", "code", "address", "notice", "body"), *rows])
    result = classify(source, "--json")
    assert result.code == 0
    assert (
        "the texts are read from the column 'body'; not from: id, code, address, notice (-t)"
        in result.err
    )
    assert classify(source, "-t", "body", "--json").err == ""
    write(source, [("id", "n"), (1, 2)])
    assert "has no column 'text'; it has: id, n" in classify(source).err


def test_an_input_can_be_replaced_by_its_labelled_copy_which_is_said(classify, tmp_path, read_csv):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    result = classify("in.csv", "-o", "in.csv", "--force")
    assert result.code == 0
    assert "the input in.csv will be replaced by its labelled copy" in result.err
    assert [row["text"] for row in read_csv(source)] == TEXTS
    assert "ulr_label" in read_csv(source)[0]


@pytest.mark.parametrize("cluster", [[], ["--part", "0/1"]], ids=["alone", "part"])
def test_an_output_never_replaces_one_of_several_inputs(classify, tmp_path, cluster):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / "in" / name, [["text"], *[[text] for text in TEXTS]])
    before = (tmp_path / "in" / "a.csv").read_bytes()
    result = classify("in", "-o", "in/", "--force", *cluster)
    assert result.code == 1
    assert "a.csv is an input, which the output would replace" in result.err
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["a.csv", "b.csv"]
    if not cluster:
        result = classify("in/a.csv", "in/b.csv", "-o", "in/b.csv", "--force")
        assert "is one of several inputs" in result.err
    assert (tmp_path / "in" / "a.csv").read_bytes() == before


@pytest.mark.parametrize(
    "command_line",
    [
        "ask {} -o {} --force",
        "suggest {} --labels-out {} --force",
        "classify {} --report {} --force",
    ],
)
def test_only_a_labelled_copy_replaces_an_input(
    command, word_vectors, tmp_path, monkeypatch, command_line
):
    monkeypatch.chdir(tmp_path)
    name = "in.html" if "--report" in command_line else "in.csv"
    source = write(tmp_path / name, [["text"], *[[text] for text in TEXTS]])
    before = source.read_bytes()
    task = command_line.replace("{}", name).split()
    result = command(*task, "--format", "csv", "-l", LABELS, "--encoder", word_vectors)
    assert (result.code, f"{name} is an input, which would be replaced" in result.err) == (1, True)
    assert source.read_bytes() == before


def test_an_output_never_replaces_the_labels(classify, tmp_path):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    labels = write(
        tmp_path / "labels.csv", [["label", "colour"], ["sports", "red"], ["weather", ""]]
    )
    result = classify(source, "-o", "labels.csv", "--force", labels=labels)
    assert (result.code, "labels.csv is read by this job" in result.err) == (1, True)
    result = classify(source, labels=labels)
    assert (result.code, "not used: 'colour'" in result.err) == (0, True)


def test_labels_that_a_spreadsheet_would_calculate_are_warned_of(classify, tmp_path):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    result = classify(source, labels="=cmd|x: sports, -1: rain, business")
    assert result.code == 0
    assert (
        "Warning: A spreadsheet that opens the labels '=cmd|x' in a CSV file"
        in result.out.replace("\n", " ")
    )


def test_other_cells_that_a_spreadsheet_would_calculate(classify, tmp_path):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    result = classify(source, "--none", "0.3", "--none-label", "=1+1")
    assert (result.code, "opens the labels '=1+1' in a CSV file" in result.out) == (0, True)
    result = classify(source, "--prefix", "=", "-o", "out.csv")
    assert (result.code, "--prefix begins like a formula" in result.err) == (1, True)


def test_texts_do_not_control_the_terminal(classify, tmp_path):
    texts = ["goal \x1b[31mstriker\x07", "bank \x1b]0;x\x07 profit", "rain \u202e fog"]
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in texts]])
    result = classify(source)
    assert result.code == 0
    assert "goal \ufffd[31mstriker" in result.out
    assert set(result.out).isdisjoint("\x1b\x07\u202e")
    result = classify(source, labels="sports, bus\x1b[31miness")
    assert (result.code, "holds a control character" in result.err) == (1, True)


def test_stopped_after_a_file_was_written_says_so(tmp_path):
    script = """
import os, signal, sys
from ulr.cli.console import plain_errors
from ulr.files import atomic_file
with plain_errors() as outputs:
    outputs.watch("-", None, *sys.argv[1:])
    with atomic_file(sys.argv[1]) as file:
        file.write(b"new")
    signal.raise_signal(signal.SIGINT)
"""
    (tmp_path / "out.csv").write_bytes(b"old")
    names = [str(tmp_path / name) for name in ("out.csv", "report.html")]
    run = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, check=False)
    assert run.stderr.decode().splitlines()[0] == f"ulr: stopped after {names[0]} was written."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n-jobs", "-1"), "--n-jobs must be an integer of at least 1; got -1"),
        (("--max-iter", "0"), "--max-iter must be an integer of at least 1; got 0"),
        (("--none", "nan"), "--none must be between 0 and 1; got nan"),
        (("--multi", "1e309"), "--multi must be the least chance of a label"),
        (("--multi", "2", "--none", "0.1"), "--multi and --none do not go together"),
        (("--strong-share", "inf"), "--strong-share must be 'auto', 'budget' or between 0 and 1"),
        (("--prior", "1e309,1,1"), "--prior must be 'estimate', 'balanced' or a positive"),
        (("--cache", ""), "a cache is the name of a folder; got ''"),
    ],
)
def test_values_that_cannot_be_used_are_named_as_they_were_typed(
    classify, tmp_path, options, message
):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    result = classify(source, *options)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert message in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_an_output_is_not_written_where_another_one_cannot_be(classify, tmp_path):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    result = classify(source, "-o", "out.csv", "--save-model", "/proc/model")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "the folder /proc cannot be written to" in result.err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names of letters only")
def test_names_of_files_may_be_any_bytes(classify, tmp_path, read_csv):
    (tmp_path / "texts").mkdir()
    for name, text in zip((b"a\xff.txt", b"b.txt"), TEXTS, strict=False):
        with open(os.path.join(os.fsencode(tmp_path / "texts"), name), "w") as file:
            file.write(text)
    assert classify("texts", "-o", "out.csv").code == 0
    assert [row["file"] for row in read_csv(tmp_path / "out.csv")] == ["a\ufffd.txt", "b.txt"]


def test_links_that_lead_to_themselves_are_refused(classify, tmp_path):
    source = write(tmp_path / "in.csv", [["text"], *[[text] for text in TEXTS]])
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for option in ("-o", "--save-model"):
        result = classify(source, option, "loop.csv")
        assert (result.code, result.err.count("\n")) == (1, 1)
        assert "loop.csv is a symbolic link that leads to itself" in result.err
    assert "there is no file loop.csv" in classify("loop.csv").err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_help_on_a_full_disk_is_one_sentence():
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "ulr", "--help"], stdout=full, stderr=subprocess.PIPE
        )
    assert (run.returncode, run.stderr) == (1, b"ulr: No space left on device.\n")


FULL = """
import resource, sys
from typer.testing import CliRunner
from ulr.cli import app
CliRunner().invoke(app, [*sys.argv[2:], "few.csv"])  # converts the word vectors
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for options in sys.argv[1].split(";"):
    result = CliRunner().invoke(app, [*sys.argv[2:], *options.split()])
    print(options, result.exit_code, repr(result.exception), repr(result.stderr))
"""


@pytest.mark.skipif(os.name == "nt", reason="the size of files cannot be limited")
def test_a_full_disk_is_one_sentence_for_every_output(word_vectors, tmp_path):
    draw = random.Random(0)
    rows = [[draw.choice(TEXTS) + f" {draw.random()}"] for _ in range(400)]
    write(tmp_path / "in.csv", [["text"], *rows])
    write(tmp_path / "few.csv", [["text"], *rows[:3]])  # a workbook that is too large at its end
    outputs = [f"in.csv -o out.{each}" for each in ("csv", "jsonl.gz", "json", "parquet", "xlsx")]
    outputs += ["few.csv -o out.xlsx", "in.csv --save-model saved", "in.csv --report report.html"]
    task = ["classify", "-l", LABELS, "--encoder", word_vectors]
    command = [sys.executable, "-c", FULL, ";".join(outputs), *task]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert (len(lines), run.stderr) == (len(outputs), "")
    for options, line in zip(outputs, lines, strict=True):
        assert line.startswith(f"{options} 1 SystemExit(1) 'ulr: "), line
        assert line.endswith("File too large.\\n'"), line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.csv", "in.csv"]
