"""`ulr ask`: a file of questions that `--examples` reads back; and `--explain`."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

TASK = ["-t", "message", "-l", EXAMPLES / "support_labels.yaml"]
SOURCE = EXAMPLES / "support_messages.csv"


@pytest.fixture
def ask(command, tmp_path):
    def run(*options, file=SOURCE, task=TASK):
        return command("ask", file, *task, *options, "--encoder", "static")

    return run


def test_answers_are_read_back_as_examples(ask, command, tmp_path, read_csv):
    path = tmp_path / "ask.csv"
    result = ask("-o", path, "-n", "8")
    assert (result.code, result.err) == (0, "")
    assert "--examples" in result.out
    rows, source = read_csv(path), {row["id"]: row for row in read_csv(SOURCE)}
    assert len(rows) == 8
    for row in rows:
        assert (row["label"], row["message"]) == ("", source[row["id"]]["message"])
        assert row["ulr_label"]
        assert 0 < float(row["ulr_confidence"]) < 1
    given = path.read_text().splitlines()
    path.write_text("\n".join([given[0], given[1] + "billing", *given[2:]]) + "\n")
    options = ["--encoder", "static", "--examples", path]
    result = command("classify", SOURCE, *TASK, *options, "--json")
    assert result.code == 0
    assert json.loads(result.out)["examples"] == 1
    assert "7 rows without a label skipped" in result.err
    again = ask("-n", "353", "--examples", path, "--json")
    questions = json.loads(again.out)["questions"]
    assert rows[0]["message"][:40] not in [each["text"][:40] for each in questions]


def test_questions_have_the_rows_of_all_files_in_any_format(ask, tmp_path):
    texts = ["parcel late", "invoice wrong", "login broken", "parcel lost", "refund of the invoice"]
    for number in range(2):
        lines = (json.dumps({"text": f"{text} {number}", "n": [number]}) for text in texts)
        (tmp_path / f"{number}.jsonl").write_text("\n".join(lines))
    task = ["-l", "delivery, billing, account"]
    result = ask("-o", tmp_path / "ask.jsonl", "-n", "10", file=tmp_path, task=task)
    assert (result.code, result.err) == (0, "")
    found = [json.loads(line) for line in (tmp_path / "ask.jsonl").read_text().splitlines()]
    assert sorted(each["text"] for each in found) == sorted(
        f"{t} {i}" for t in texts for i in (0, 1)
    )
    assert all(each["n"] == [int(each["text"][-1])] for each in found)


def test_what_cannot_be_written_or_answered_is_refused(ask, command, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("text,label\nparcel late,\n")
    result = ask("-o", tmp_path / "ask.csv", file=source, task=["-l", "delivery, billing"])
    assert (result.code, result.out) == (1, "")
    assert "already has a column 'label'" in result.err
    assert "one file" in ask("-o", f"{tmp_path}/").err
    options = ["-l", "delivery, billing", "--examples", source, "--encoder", "static"]
    result = command("classify", source, "-t", "text", *options)
    assert result.code == 1
    assert "the label of every row is empty" in result.err
    assert not (tmp_path / "ask.csv").exists()


def test_questions_are_printed_without_a_file(ask):
    result = ask("-n", "2")
    assert result.code == 0
    assert "Nothing was written" in result.out


# --explain


def test_a_column_says_why(classified, command, tmp_path, read_csv):
    output = tmp_path / "out.csv"
    options = ["-t", "message", "-o", output, "--explain"]
    assert command("predict", classified.model, classified.source, *options).code == 0
    rows = read_csv(output)
    assert list(rows[0])[-1] == "ulr_why"
    for row in rows[:20]:
        words = row["ulr_why"].split(" ")
        assert len(words) <= 5
        assert all(word in row["message"] for word in words)


def test_one_text_is_explained(classified, command):
    text = "I forgot my password and cannot log in"
    result = command("predict", classified.model, text, "--explain")
    assert "for account access: password" in result.out
    found = json.loads(command("predict", classified.model, text, "--explain", "--json").out)
    assert found["why"]["for_label"][0] == {
        "word": "password",
        "weight": pytest.approx(2, abs=1),
        "spans": [[12, 20]],
    }
