"""Options of ensembles, examples, extra labels and extra texts."""

import csv
import json

import pytest

from ulr.classifier import DatalessClassifier

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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the files that the options name."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "in.csv", ["message", "section"], TEXTS)
    write_rows(tmp_path / "few.csv", ["note", "label"], [("Snow for the champions", "weather")])
    write_rows(tmp_path / "more.csv", ["text"], [[text] for text in FURTHER])
    (tmp_path / "sets.txt").write_text(SETS)
    (tmp_path / "extra.yaml").write_text("- cooking\n- travel\n")
    return tmp_path


@pytest.fixture
def run(command, word_vectors):
    """Run a command on the documents with word vectors."""

    def run(name, *options, labels=LABELS):
        task = [name, "in.csv", "-t", "message", "-l", labels, "--encoder", word_vectors]
        return command(*task, *options)

    return run


def test_saved_ensemble_predicts_what_classify_wrote(folder, run, word_vectors, command, read_csv):
    options = ["--phrasings", "combinations", "--sample", 5, "--seed", 3, "--method", "ulr"]
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
    result = run("classify", *options)
    assert (result.code, result.err) == (0, "")
    summary = json.loads(result.out)
    assert (summary["documents"], summary["phrasings"], summary["possible_phrasings"]) == (8, 5, 6)
    assert (summary["examples"], summary["extra_texts"], summary["extra_labels"]) == (1, 3, 2)
    written = read_csv("out.csv")
    assert [row["message"] for row in written] == [text for text, _ in TEXTS]
    task = ["predict", "model", "in.csv", "-t", "message", "--encoder", word_vectors]
    result = command(*task, "-o", "again.csv")
    assert (result.code, result.err) == (0, "")
    for column in ("ulr_label", "ulr_confidence"):
        assert [row[column] for row in read_csv("again.csv")] == [row[column] for row in written]
    labels = {"sports": ["sports", "football"], "business": ["business", "money", "banks"]}
    expected = DatalessClassifier(
        labels | {"weather": None},
        encoder=word_vectors,
        method="ulr",
        phrasings="combinations",
        sample=5,
        random_state=3,
        extra_labels=["cooking", "art"],
    )
    texts = [text for text, _ in TEXTS]
    y = [*[None] * len(texts), "weather"]
    expected.fit([*texts, "Snow for the champions"], y, extra_texts=FURTHER)
    names = expected.model_.names[expected.refinement_.predictions[:-1]]
    assert [row["ulr_label"] for row in written] == names.tolist()


def test_summary_shows_what_took_part(folder, run):
    result = run(
        "classify", "--phrasings", "combinations", "--sample", 2, "--examples", "few.csv",
        "--extra-texts", "more.csv", "--extra-labels", "math, art,",
    )  # fmt: skip
    assert result.code == 0, result.err
    shown = " ".join(result.out.split())
    assert "an ensemble of 2 phrasings, drawn from 6; " in shown
    assert "1 labelled examples; 3 extra texts; 2 extra labels; " in shown


def test_file_of_sets_is_an_ensemble_of_them(folder, run, word_vectors, read_csv):
    result = run("classify", "--phrasings", "sets.txt", "-o", "out.csv", "--json")
    assert json.loads(result.out)["phrasings"] == 2
    expected = DatalessClassifier(
        ["sports", "business", "weather"],
        encoder=word_vectors,
        phrasings=[line.split(";") for line in SETS.splitlines()],
    ).fit_predict([text for text, _ in TEXTS])
    assert [row["ulr_label"] for row in read_csv("out.csv")] == expected.tolist()


def test_evaluate_has_the_same_options(folder, run):
    options = ["--phrasings", "combinations", "--sample", 3, "--seed", 1, "--examples", "few.csv"]
    options += ["--extra-texts", "more.csv", "--extra-labels", "extra.yaml", "--json"]
    result = run("evaluate", "--truth", "section", *options)
    assert result.code == 0, result.err
    figures = json.loads(result.out)
    assert sum(map(sum, figures["after"]["confusion"])) == len(TEXTS)
    job = figures["classification"]
    assert (job["phrasings"], job["examples"], job["extra_texts"], job["extra_labels"]) == (
        3,
        1,
        3,
        2,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--phrasings", "some"], "or a file of sets; there is no file some."),
        (
            ["--phrasings", "bad.txt"],
            "bad.txt line 2: a set needs a phrase for each of the 3 label",
        ),
        (
            ["--phrasings", "sets.txt", "--expand", "wordnet"],
            "--expand adds phrases to the labels",
        ),
        (
            ["--phrasings", "combinations", "--sample", "0"],
            "sample must be a positive whole number",
        ),
        (["--extra-labels", "art, Money"], "extra label 2: extra label 'Money' equals a name or "),
        (["--extra-labels", "art,,math"], "extra label 2: a name is empty."),
        (["--extra-labels", "none.txt"], "there is no label file none.txt."),
        (["--extra-labels", "bad.yaml"], "bad.yaml entry 2: extra label 'Weather' equals"),
        (["--examples", "none.csv"], "none.csv"),
        (["--examples", "unknown.csv"], "unknown.csv row 2: the label 'rain' is not a label"),
        (["--examples", "in.csv"], "in.csv has no column 'label'; it has: message, section."),
        (["--examples", "unlabelled.csv"], "unlabelled.csv row 1: the label is empty"),
        (["--examples", "empty.csv"], "empty.csv has no rows."),
        (["--extra-texts", "empty.csv"], "empty.csv has no rows."),
        (["--extra-texts", "broken.csv"], "line 3 has 1 fields, but 2 were expected"),
    ],
)
def test_bad_file_or_option_is_one_line_and_nothing_is_written(folder, run, options, message):
    (folder / "bad.txt").write_text(SETS.replace("; wind", ""))
    (folder / "bad.yaml").write_text("- art\n- Weather\n")
    write_rows(folder / "unknown.csv", ["text", "label"], [("a", "weather"), ("b", "rain")])
    write_rows(folder / "unlabelled.csv", ["text", "label"], [("a", "")])
    write_rows(folder / "empty.csv", ["text", "label"], [])
    (folder / "broken.csv").write_text("id,text\n1,a\n2\n")
    result = run("classify", "-o", "out.csv", "--save-model", "model", *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("ulr: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (folder / "out.csv").exists()
    assert not (folder / "model").exists()
