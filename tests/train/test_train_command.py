"""`ulr train` in this process."""

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


def test_a_dry_run_shows_the_plan_and_writes_nothing(run, pairs, tmp_path):
    result = run(*pairs, "--instances", 96, "-o", tmp_path / "out", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "96 instances in 3 steps of 32" in result.stdout
    assert "Estimated time:" in result.stdout
    assert "10 categories, negatives: given" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_as_json(run, pairs, tmp_path):
    options = ["--instances", 96, "--negatives", "frequency", "--json", "--dry-run"]
    result = run("--objective", "single", *pairs, *options, "-o", tmp_path / "out")
    plan = json.loads(result.stdout)
    assert plan["settings"]["objective"] == "single"
    assert plan["sources"][0]["negatives"] == "frequency"
    assert plan["seconds"] > 0


def test_a_run_prints_its_result_and_how_to_use_it(run, pairs, tmp_path):
    options = ["--instances", 64, "--validation", 20, "--score", "l2"]
    result = run(*pairs, *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "64 instances in" in result.stdout
    assert "Ranking accuracy among 8 categories:" in result.stdout
    assert f"--encoder hf:{tmp_path / 'out'}" in result.stdout
    assert "step 2 of 2: ranking accuracy" in result.stderr
    assert (tmp_path / "out" / "README.md").is_file()


def test_the_plan_names_malformed_rows(run, roberta, natcat, tmp_path):
    file = tmp_path / "bad.data"
    file.write_text("half a row\n" + natcat.read_text())
    options = ["--base", roberta, "--pairs", file, "--instances", 32, "--dry-run", "--n-jobs", 1]
    result = run(*options, "-o", tmp_path / "out")
    assert "1 malformed rows ignored: bad.data line 1 has 1 tab fields, not 9" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective", "triplet"], "must be one of dual, single, few-shot; got 'triplet'"),
        (["--score", "cosine"], "objective must be one of dot, l2, single; got 'cosine'"),
        (["--epochs", "2"], "--epochs has no effect with --objective dual"),
        (["--objective", "single", "--margin", "1"], "--margin has no effect with --objective"),
        (["--objective", "few-shot"], "--pairs has no effect with --objective few-shot"),
        (["--learning-rate", "0"], "learning_rate must be above 0"),
        (["--pairs", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--device", "tpu"], "device must be cpu, cuda, cuda:N or mps; got 'tpu'"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(run, pairs, tmp_path, options, message):
    result = run(*pairs, *options, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out.training").exists()


def test_few_shot_trains_refines_and_keeps_the_classifier(run, roberta, words, tmp_path):
    rows = [
        {"text": words.sentence(kind, i), "label": kind}
        for kind in ("chess", "knitting")
        for i in range(9)
    ]
    examples, unlabelled = tmp_path / "examples.jsonl", tmp_path / "texts.csv"
    examples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    unlabelled.write_text("text\n" + "".join(f"{row['text']}\n" for row in rows))
    options = ["--base", roberta, "--examples", examples, "-l", "chess, knitting", "-n", 5]
    options += ["--n-jobs", 1, "--refine", unlabelled, "--save-model", tmp_path / "model", "--json"]
    dry = run("--objective", "few-shot", *options, "-o", tmp_path / "out", "--dry-run")
    assert json.loads(dry.stdout)["settings"]["n_instances"] == 30
    assert not (tmp_path / "out").exists()
    result = run("--objective", "few-shot", *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["n_instances"] == 30
    assert content["refined_on"] == 18
    options = [tmp_path / "model", unlabelled, "--encoder", f"hf:{tmp_path / 'out'}"]
    predicted = CliRunner().invoke(app, ["predict", *map(str, options), "-o", f"{tmp_path}/p.csv"])
    assert predicted.exit_code == 0, predicted.output
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 19


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--refine", "x"], "--refine and --save-model need each other"),
        (["--per-label", "0"], "per_label must be at least 1; got 0"),
    ],
)
def test_options_of_few_shot_are_checked_before_the_work(run, tmp_path, options, message):
    examples = tmp_path / "examples.csv"
    examples.write_text("text,label\none,A \ntwo,b\nthree,\n")
    given = ["--base", "x", "--examples", examples, "-l", "a, b", "-o", tmp_path / "out"]
    result = run("--objective", "few-shot", *given, *options)
    assert result.exit_code == 1
    assert message in result.stderr


def test_pairs_or_examples_are_needed(run):
    assert "--objective dual needs --pairs" in run("--base", "x", "-o", "y").stderr
    few = run("--objective", "few-shot", "--base", "x", "-o", "y", "-l", "a, b")
    assert "--objective few-shot needs --examples" in few.stderr
