"""`--wordings`, `--sample`, `--seed`, `--extra-labels`, `--extra-texts` and `--examples` in use."""

import csv
import json
import random
import re

import pytest
from typer.testing import CliRunner

from ulr.classifier import DatalessClassifier
from ulr.cli import app
from ulr.cli.options import further_labels
from ulr.named_labels import named_list

LABELS = "sports: sports; football, business: business; money; banks, weather"
TEXTS = [
    ("The striker scored twice before half time", "sports"),
    ("Shares fell after the bank raised interest rates", "business"),
    ("Heavy rain and storms are expected on Sunday", "weather"),
    ("The goalkeeper saved a late penalty", "sports"),
    ("The retailer closed forty shops and cut its profit forecast", "business"),
    ("Fog will clear by noon, with sunshine on the coast", "weather"),
    ("Our team lost the final in the rain", "sports"),
    ("Investors bet on a cold winter and higher gas prices", "business"),
]
SETS = "sport; trade; rain\nfootball; money; wind\n"
FURTHER = ["The coach bought a bank", "A windy match", "Snow is bad for sales"]


def write_rows(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The name of an encoder that is soon loaded: a vector at random for every word in use."""
    texts = [text for text, _ in TEXTS] + [LABELS, SETS, "cooking travel art math", *FURTHER]
    texts += ["Snow for the champions", *named_list("stackexchange")]
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("words") / "words.txt"
    with path.open("w") as file:
        for word in sorted(set(re.findall("[a-z]+", " ".join(texts).lower()))):
            print(word, *(f"{draw.gauss(0, 1):.4f}" for _ in range(12)), file=file)
    return f"glove:{path}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of all that the options name, to work in."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "in.csv", ["message", "section"], TEXTS)
    write_rows(tmp_path / "few.csv", ["note", "label"], [("Snow for the champions", "weather")])
    write_rows(tmp_path / "more.csv", ["text"], [[text] for text in FURTHER])
    (tmp_path / "sets.txt").write_text(SETS)
    (tmp_path / "extra.yaml").write_text("- cooking\n- travel\n")
    return tmp_path


@pytest.fixture
def command(encoder):
    """Run a command in this process, which spares the start of another one."""

    def run(*arguments):
        result = CliRunner().invoke(app, [*map(str, arguments), "--encoder", encoder])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


def classify(command, *options, labels=LABELS):
    return command("classify", "in.csv", "-t", "message", "-l", labels, *options)


def test_a_saved_ensemble_predicts_what_classify_wrote(folder, command, encoder, ulr, read_csv):
    options = ["--wordings", "combinations", "--sample", 5, "--seed", 3, "--method", "ulr"]
    options += ["--examples", "few.csv", "--extra-texts", "more.csv"]
    options += [
        "--extra-labels",
        "cooking, art",
        "-o",
        "out.csv",
        "--save-model",
        "model",
        "--json",
    ]
    result = classify(command, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    summary = json.loads(result.stdout)
    assert (summary["documents"], summary["wordings"], summary["possible_wordings"]) == (8, 5, 6)
    assert (summary["examples"], summary["extra_texts"], summary["extra_labels"]) == (1, 3, 2)
    written = read_csv("out.csv")
    assert [row["message"] for row in written] == [text for text, _ in TEXTS]
    result = ulr("predict", "model", "in.csv", "-t", "message", "-o", "again.csv")
    assert (result.code, result.err) == (0, "")
    for column in ("ulr_label", "ulr_confidence"):
        assert [row[column] for row in read_csv("again.csv")] == [row[column] for row in written]
    labels = {"sports": ["sports", "football"], "business": ["business", "money", "banks"]}
    expected = DatalessClassifier(
        labels | {"weather": None},
        encoder=encoder,
        method="ulr",
        wordings="combinations",
        sample=5,
        seed=3,
        extra_labels=["cooking", "art"],
    )
    texts = [text for text, _ in TEXTS]
    y = [*[None] * len(texts), "weather"]
    expected.fit([*texts, "Snow for the champions"], y, extra_texts=FURTHER)
    names = expected.classes_[expected.refinement_.predictions[:-1]]
    assert [row["ulr_label"] for row in written] == names.tolist()


def test_without_the_options_nothing_is_told_of_them(folder, command):
    summary = json.loads(classify(command, "--json").stdout)
    assert [summary[name] for name in ("wordings", "possible_wordings")] == [None, None]
    assert [summary[name] for name in ("examples", "extra_texts", "extra_labels")] == [0, 0, 0]
    out = classify(command).stdout
    assert "sets of names" not in out
    assert "extra" not in out


def test_the_summary_tells_people_what_took_part(folder, command):
    result = classify(
        command, "--wordings", "combinations", "--sample", 2, "--examples", "few.csv",
        "--extra-texts", "more.csv", "--extra-labels", "stackexchange",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert (
        "2 sets of names decide together, drawn from 6; 1 labelled examples; 3 extra texts; "
        "30 extra labels; "
    ) in told


def test_a_file_of_whole_sets_is_an_ensemble_of_them(folder, command, encoder, read_csv):
    result = classify(command, "--wordings", "sets.txt", "-o", "out.csv", "--json")
    assert json.loads(result.stdout)["wordings"] == 2
    expected = DatalessClassifier(
        ["sports", "business", "weather"],
        encoder=encoder,
        wordings=[line.split(";") for line in SETS.splitlines()],
    ).fit_predict([text for text, _ in TEXTS])
    assert [row["ulr_label"] for row in read_csv("out.csv")] == expected.tolist()


def test_evaluate_has_the_same_options(folder, command):
    options = ["--wordings", "combinations", "--sample", 3, "--seed", 1, "--examples", "few.csv"]
    options += ["--extra-texts", "more.csv", "--extra-labels", "extra.yaml", "--json"]
    task = ["in.csv", "-t", "message", "-l", LABELS, "--truth", "section"]
    result = command("evaluate", *task, *options)
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert sum(map(sum, figures["after"]["confusion"])) == len(TEXTS)
    job = figures["classification"]
    assert (job["wordings"], job["examples"], job["extra_texts"], job["extra_labels"]) == (
        3,
        1,
        3,
        2,
    )


def test_extra_labels_are_a_named_list_a_file_or_a_line(folder):
    assert further_labels(None) is None
    assert further_labels("stackexchange") == list(named_list("stackexchange"))
    assert further_labels("extra.yaml").name == "extra.yaml"
    assert [name.strip() for name in further_labels("math, physics")] == ["math", "physics"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--wordings", "some"], "or a file of sets; there is no file some."),
        (["--wordings", "bad.txt"], "bad.txt line 2: a set needs a phrase for each of the 3 label"),
        (
            ["--wordings", "sets.txt", "--expand", "wordnet"],
            "--expand adds a phrase to every label, and a file of whole sets has its own phrases; ",
        ),
        (["--wordings", "combinations", "--sample", "0"], "sample must be a positive whole number"),
        (["--extra-labels", "art, Money"], "extra label 2: extra label 'Money' equals a name or "),
        (["--extra-labels", "art,,math"], "extra label 2: a name is empty."),
        (["--extra-labels", "none.txt"], "there is no label file none.txt."),
        (["--extra-labels", "bad.yaml"], "bad.yaml line 2: extra label 'Weather' equals a name or"),
        (["--extra-labels", "art", "--prior", "1, 1, 1"], "proportions do not go with extra_label"),
        (["--examples", "none.csv"], "none.csv"),
        (["--examples", "unknown.csv"], "unknown.csv row 2: the example's label 'rain' is none of"),
        (["--examples", "in.csv"], "in.csv has no column 'label'; it has: message, section."),
        (["--examples", "unlabelled.csv"], "unlabelled.csv row 1: an example needs a label; this"),
        (["--examples", "empty.csv"], "empty.csv has no rows."),
        (["--extra-texts", "empty.csv"], "empty.csv has no rows."),
        (["--extra-texts", "broken.csv"], "line 3 has 1 fields, but 2 were expected"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_nothing_is_written(folder, command, options, message):
    (folder / "bad.txt").write_text(SETS.replace("; wind", ""))
    (folder / "bad.yaml").write_text("- art\n- Weather\n")
    write_rows(folder / "unknown.csv", ["text", "label"], [("a", "weather"), ("b", "rain")])
    write_rows(folder / "unlabelled.csv", ["text", "label"], [("a", "")])
    write_rows(folder / "empty.csv", ["text", "label"], [])
    (folder / "broken.csv").write_text("id,text\n1,a\n2\n")
    result = classify(command, "-o", "out.csv", "--save-model", "model", *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("ulr: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "out.csv").exists()
    assert not (folder / "model").exists()
