"""`--method`, `--prior`, `--none` and encoders that read files."""

import json
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
NEWS = [EXAMPLES / "news_blurbs.csv", "-t", "headline", "-t", "summary"]
LABELS = ["-l", EXAMPLES / "news_labels.txt"]


def accuracy(command, *options):
    result = command("evaluate", *NEWS, *LABELS, "--truth", "section", "--json", *options)
    assert result.code == 0, result.err
    return json.loads(result.out)["comparison"]["after"]["accuracy"]


def test_refinement_is_better_than_names_on_the_example(command):
    none, paper = accuracy(command, "--method", "none"), accuracy(command, "--method", "ulr")
    assert none < paper
    assert none < accuracy(command)
    assert accuracy(command, "--prior", "1, 1, 1, 1, 1") > 0.8


def test_a_share_of_the_documents_gets_no_label(command, read_csv, tmp_path):
    output, model = tmp_path / "out.csv", tmp_path / "model"
    options = ["--none", "0.1", "--none-label", "other", "--save-model", model]
    result = command("classify", *NEWS, *LABELS, *options, "-o", output)
    assert result.code == 0, result.err
    labels = [row["ulr_label"] for row in read_csv(output)]
    assert round(0.1 * len(labels)) - 1 <= labels.count("other") <= round(0.1 * len(labels)) + 1
    assert f"similar to none of the labels: {labels.count('other')}." in result.out
    assert command("predict", model, *NEWS, "-o", tmp_path / "again.csv").code == 0
    assert [row["ulr_label"] for row in read_csv(tmp_path / "again.csv")] == labels


def test_malformed_lines_of_word_vectors_are_counted(command, tmp_path):
    words = ["goal", "team", "bank", "money", "politics", "sports", "science", "culture"] * 20
    numbers = [" ".join(str((i * j) % 7 - 3) for j in range(1, 9)) for i in range(len(words))]
    lines = [f"{word} {row}" for word, row in zip(words, numbers, strict=True)]
    file = tmp_path / "words.txt"
    file.write_text("\n".join([*lines, "broken 1 2"]) + "\n")
    result = command("classify", *NEWS, "-l", "politics, sports", "--encoder", f"glove:{file}")
    assert result.code == 0, result.err
    shown = " ".join(result.out.split())
    assert "1 malformed lines" in shown
    assert "without a word that the encoder knows" in shown
    assert (tmp_path / "words.txt.ulr").is_dir()


def test_errors_name_the_option_that_was_given(command):
    for options, message in (
        (["--none", "2"], "--none must be between 0 and 1"),
        (["--strong-share", "x"], "--strong-share must be 'auto', 'budget' or between"),
        (["--method", "x"], "--method must be one of auto, discriminant, ulr, none; got 'x'"),
        (["--fit-sample", "0"], "--fit-sample must be 'auto', 'all' or a positive number"),
    ):
        result = command("classify", *NEWS, *LABELS, *options)
        assert (result.code, result.err.startswith(f"ulr: {message}")) == (1, True), result.err
