"""`--method`, `--prior` and `--none`, as people use them."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEWS = [EXAMPLES / "news_blurbs.csv", "-t", "headline", "-t", "summary"]
LABELS = ["-l", EXAMPLES / "news_labels.txt"]


def accuracy(ulr, *options):
    result = ulr("evaluate", *NEWS, *LABELS, "--truth", "section", "--json", *options)
    assert result.code == 0, result.err
    return json.loads(result.out)["after"]["accuracy"]


def test_the_default_is_better_than_the_paper_and_the_paper_than_names(ulr):
    none, paper = accuracy(ulr, "--method", "none"), accuracy(ulr, "--method", "ulr")
    assert none < paper < accuracy(ulr) == accuracy(ulr, "--method", "mixture")


def test_sizes_of_labels_may_be_given(ulr):
    assert accuracy(ulr, "--prior", "balanced") > 0.8
    assert accuracy(ulr, "--prior", "1, 1, 1, 1, 1") > 0.8


def test_a_share_of_the_documents_gets_no_label(ulr, read_csv, tmp_path):
    output, model = tmp_path / "out.csv", tmp_path / "model"
    options = ["--none", "0.1", "--none-label", "other", "--save-model", model]
    result = ulr("classify", *NEWS, *LABELS, *options, "-o", output)
    assert result.code == 0, result.err
    labels = [row["ulr_label"] for row in read_csv(output)]
    assert round(0.1 * len(labels)) - 1 <= labels.count("other") <= round(0.1 * len(labels)) + 1
    assert "other" in result.out
    assert ulr("predict", model, *NEWS, "-o", tmp_path / "again.csv").code == 0
    assert [row["ulr_label"] for row in read_csv(tmp_path / "again.csv")] == labels


def test_a_word_file_is_prepared_and_what_is_wrong_with_it_told(ulr, tmp_path):
    words = ["goal", "team", "bank", "money", "politics", "sports", "science", "culture"] * 20
    numbers = [" ".join(str((i * j) % 7 - 3) for j in range(1, 9)) for i in range(len(words))]
    lines = [f"{word} {row}" for word, row in zip(words, numbers, strict=True)]
    file = tmp_path / "words.txt"
    file.write_text("\n".join([*lines, "broken 1 2"]) + "\n")
    result = ulr("classify", *NEWS, "-l", "politics, sports", "--encoder", f"glove:{file}")
    assert result.code == 0, result.err
    told = " ".join(result.out.split())
    assert "1 malformed lines of the word file left out" in told
    assert "without a word that the encoder knows" in told
    assert (tmp_path / "words.txt.ulr").is_dir()


def test_a_corpus_of_articles_is_prepared_once(ulr, tmp_path):
    file = tmp_path / "articles.jsonl"
    with file.open("w") as out:
        for title, word in (("Sport", "goal team match"), ("Money", "bank market profit")) * 3:
            out.write(json.dumps({"title": title, "text": f"{word} {title} " * 20}) + "\n")
    for _ in range(2):
        result = ulr("classify", *NEWS, "-l", "sport, money", "--encoder", f"esa:{file}")
        assert result.code == 0, result.err
    assert (tmp_path / "articles.jsonl.ulr").is_dir()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "best"], "method must be one of auto, ulr, none, mixture; got 'best'."),
        (["--method", "mixture", "--distance", "l2"], "method 'mixture' has no distance 'l2';"),
        (["--prior", "even"], "prior must be one of estimate, balanced; got 'even'."),
        (["--prior", "0.5, 0.5"], "a positive proportion for each of the 5 labels"),
        (["--none", "2"], "none_share must be between 0 and 1; got 2.0."),
    ],
)
def test_what_cannot_be_is_one_sentence(ulr, options, message):
    result = ulr("classify", *NEWS, *LABELS, *options)
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert result.err.count("\n") <= 2
