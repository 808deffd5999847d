"""`ulr report` and `ulr classify --report`: files, refusals and figures."""

import csv
import json

import pytest

LABELS = "sports, business, weather"
ROWS = [
    ("the striker scored a goal in the match", "sports"),
    ("shares fell after the bank raised a loan", "business"),
    ("heavy rain and cold wind in the forecast", "weather"),
    ("the coach praised the team on penalty", "sports"),
    ("profit and market shares of the investor", "business"),
    ("snow and fog after the storm", ""),
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "topic"), *ROWS])
    return path


@pytest.fixture
def run(command, word_vectors, source):
    def run(name, *options):
        return command(name, source, "-l", LABELS, "--encoder", word_vectors, *options)

    return run


def payload(path):
    page = path.read_text(encoding="utf-8")
    start = page.index('data-part="data">') + len('data-part="data">')
    return json.loads(page[start : page.index("</script>", start)])


def test_a_report_has_the_documents_and_the_comparison(run, tmp_path):
    output = tmp_path / "report.html"
    result = run("report", "-t", "text", "--truth", "topic", "-o", output)
    assert result.code == 0, result.err
    assert f"Written: {output}" in result.out
    data = payload(output)
    assert data["documents"]["text"] == [text for text, _ in ROWS]
    assert data["result"]["comparison"]["documents"] == 5
    names = [label["name"] for label in data["labels"]]
    truth = [names[i] if i >= 0 else "" for i in data["documents"]["truth"]]
    assert truth == [topic for _, topic in ROWS]
    assert data["source"] == "in.csv"


def test_classify_writes_table_and_report_with_the_same_labels(run, tmp_path, read_csv):
    output, page = tmp_path / "out.csv", tmp_path / "report.html"
    result = run("classify", "-t", "text", "-o", output, "--report", page, "--json")
    assert result.code == 0, result.err
    data = payload(page)
    names = [label["name"] for label in data["labels"]]
    labels = [row["ulr_label"] for row in read_csv(output)]
    assert [names[i] for i in data["documents"]["label"]] == labels
    printed = json.loads(result.out)
    assert data["result"] == printed
    assert printed["comparison"] is None


@pytest.mark.parametrize(("name", "option"), [("report", "-o"), ("classify", "--report")])
def test_an_existing_report_is_kept_without_force(run, tmp_path, name, option):
    page = tmp_path / "report.html"
    page.write_text("mine")
    result = run(name, "-t", "text", option, page)
    assert result.code == 1
    assert "already exists" in result.err
    assert page.read_text() == "mine"
    assert run(name, "-t", "text", option, page, "--force").code == 0
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "report.csv"], "must end in .html"),
        (["-o", "missing/report.html"], "no folder"),
        (["-o", "report.html", "--truth", "section"], "no column 'section'"),
    ],
)
def test_what_cannot_be_written_is_refused(run, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    result = run("report", "-t", "text", *options)
    assert result.code == 1
    assert message in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]
