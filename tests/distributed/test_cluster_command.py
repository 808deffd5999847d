"""`ulr classify --cluster`: what it prints and returns, and a driver that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from partitioned import LABELS, N_SAMPLED, content, read_rows, run_single, write_partitions

SIZES = [40, 90, 20]


@pytest.fixture
def job(tmp_path, word_vectors, command, request):
    source = write_partitions(tmp_path / "in", getattr(request, "param", SIZES))
    output = tmp_path / "out"
    arguments = ["classify", source, "-l", ", ".join(LABELS), "--encoder", word_vectors]
    arguments += ["--fit-sample", N_SAMPLED, "-o", output]

    def run(*options):
        return command(*arguments, *options)

    def expected():
        run_single(source, word_vectors, tmp_path / "single")
        return content(tmp_path / "single")

    return SimpleNamespace(
        source=source, output=output, run=run, arguments=arguments, expected=expected
    )


def test_parts_write_the_files_and_the_last_one_the_summary(job, tmp_path, command, word_vectors):
    assert "run it first with --part 0/N" in job.run("--part", "1/2").err
    model = tmp_path / "model"
    results = [job.run("--part", part) for part in ("0/2", "2/2")]
    assert not (job.output / "_SUCCESS.json").exists()
    results += [job.run("--part", "1/2", "--save-model", model)]
    assert [result.code for result in results] == [0, 0, 0]
    assert "Other parts are not done yet.\n0 of 3 files were labelled" in results[0].out
    assert "Other parts are not done yet.\n1 of 3 files were labelled" in results[1].out
    assert "150 documents, 3 labels" in results[2].out
    assert "2 of 3 files were labelled" in results[2].out
    assert content(job.output) == job.expected()
    predicted = command("predict", model, "rain and snow", "--encoder", word_vectors)
    assert predicted.out.splitlines()[0].endswith("weather")


def test_skipped_files_are_listed_and_the_exit_code_says_so(job):
    (job.source / "part-001.jsonl").write_text('{"id": 1, "text": "rain"}\n{"text": \n')
    assert job.run("--part", "0/1", "--skip-broken").code == 1
    result = job.run("--part", "1/1", "--skip-broken", "--json")
    assert result.code == 1
    assert "skipped: " in result.err
    report = json.loads(result.out)
    assert report["job"]["documents"] == 60
    assert len(report["broken"]) == 1


def page_data(path):
    page = path.read_text()
    start = page.index('data-part="data">') + len('data-part="data">')
    return json.loads(page[start : page.index("</script>", start)])


def test_a_report_on_a_sample_shows_its_rows_and_a_second_run_writes_it_too(job, tmp_path):
    pages = tmp_path / "first.html", tmp_path / "second.html"
    options = "--fit-sample", "60"
    for part, page in (("0/1", pages[0]), ("1/1", pages[0]), ("1/1", pages[1])):
        assert job.run("--part", part, *options, "--report", page).code == 0
        assert page.exists() == (part == "1/1")
    first, second = map(page_data, pages)
    assert first["documents"] == second["documents"]
    texts = [row["text"] for path in sorted(job.source.iterdir()) for row in read_rows(path)]
    shown = first["documents"]
    assert [texts[row - 1] for row in shown["row"]] == shown["text"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--part", "3/2"], "--part must be a share such as 2/8"),
        (["--part", "1/2", "--cluster", "local"], "leave --cluster and --workers out"),
        (["--cluster", "local", "-o", "out.csv"], "several workers write a folder"),
        (["--cluster", "local", "--report", "page.txt"], "a report is an HTML file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(job, options, message):
    result = job.run(*options)
    assert result.code == 1
    assert message in result.err


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.cluster
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize("job", [[3000] * 10], indirect=True)
def test_a_killed_driver_leaves_no_process_and_a_second_run_goes_on(job):
    options = ["--cluster", "local", "--workers", "2"]
    driver = subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, job.arguments), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while len(list(job.output.glob("_ulr/done/[!.]*.json"))) < 2:
            assert time.monotonic() < deadline
            assert driver.poll() is None
            time.sleep(0.01)
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert len(children) >= 2
    while any(map(is_running, children)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not (job.output / "_SUCCESS.json").exists()
    report = json.loads(job.run(*options, "--json").out)
    assert report["resumed"] >= 2
    assert report["labelled"] == 10 - report["resumed"] > 0
    assert content(job.output) == job.expected()
