"""`ulr train` in this process: exit codes, streams and files."""

import json

import pytest
from typer.testing import CliRunner

from ulr.cli import app


@pytest.fixture
def run():
    def run(*arguments):
        return CliRunner().invoke(app, ["train", *map(str, arguments)])

    return run


@pytest.fixture
def pairs(roberta, natcat):
    return ["--base", roberta, "--pairs", natcat, "--n-jobs", 1, "--max-tokens", 32]


def test_a_dry_run_shows_the_plan_and_names_malformed_rows(run, roberta, natcat, tmp_path):
    (tmp_path / "bad.data").write_text("half a row\n" + natcat.read_text())
    options = ["--base", roberta, "--pairs", tmp_path / "bad.data", "--instances", 96]
    result = run(*options, "--dry-run", "--n-jobs", 1, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "96 instances in 3 steps of 32" in result.stdout
    assert "360 texts (each used 0.27 times)" in result.stdout
    assert "40 texts for validation" in result.stdout
    assert "10 categories, negatives: given" in result.stdout
    assert "1 malformed rows ignored: bad.data line 1 has 1 tab fields, not 9" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["bad.data"]


def test_a_run_prints_its_result_and_how_to_use_it(run, pairs, tmp_path):
    options = ["--instances", 64, "--validation", 20, "--objective", "l2"]
    result = run(*pairs, *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "64 instances in" in result.stdout
    assert "Ranking accuracy among 8 categories:" in result.stdout
    assert f"--encoder hf:{tmp_path / 'out'}" in result.stdout
    assert "step 2 of 2: ranking accuracy" in result.stderr
    assert "Loading weights" not in result.stderr
    assert (tmp_path / "out" / "README.md").is_file()
    again = run(*pairs, "-o", tmp_path / "out")
    assert again.exit_code == 1
    assert "already exists; choose another name, or replace it with --force" in again.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective", "triplet"], "objective must be one of dot, l2, single; got 'triplet'"),
        (["--learning-rate", "0"], "learning_rate must be above 0; got 0.0"),
        (["--examples", "examples.csv"], "either --pairs or --examples; got both"),
        ([], "there is no file pairs.csv"),
        (None, "either --pairs or --examples; got neither"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(
    run, tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    given = [] if options is None else ["--pairs", "pairs.csv", *options]
    result = run("--base", "no/such/base", "-o", "out", *given)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--examples needs --labels"),
        (["-l", "a, b", "-n", "0"], "per_label must be at least 1"),
    ],
)
def test_examples_are_checked_before_the_work(run, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples.csv").write_text("text,label\none,A \ntwo,b\nthree,\n")
    result = run("--base", "x", "-o", "out", "--examples", "examples.csv", *options)
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_dry_run_as_json_names_options_without_effect(run, pairs, tmp_path):
    options = ["--epochs", 2, "--instances", 96, "--negatives", "frequency", "--json", "--dry-run"]
    result = run("--objective", "single", *pairs, *options, "-o", tmp_path / "out")
    plan = json.loads(result.stdout)
    assert (plan["settings"]["objective"], plan["n_steps"]) == ("single", 3)
    assert plan["sources"][0]["negatives"] == "frequency"
    assert "--epochs has no effect without --examples" in result.stderr


def test_few_labelled_examples_are_drawn_and_trained_on(run, roberta, words, tmp_path):
    rows = [
        {"text": words.sentence(kind, i), "label": kind}
        for kind in ("chess", "knitting")
        for i in range(9)
    ]
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--base", roberta, "--examples", examples, "-l", "chess, knitting", "-n", 5]
    options += ["--n-jobs", 1, "--json", "-o", tmp_path / "out"]
    result = run(*options)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert (content["plan"]["n_instances"], content["accuracy"]) == (30, None)
    assert (tmp_path / "out" / "model.safetensors").is_file()
