"""`ulr train` as people run it, in this process: a plan, a run, an error in one sentence."""

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
    return ["--base", roberta, "--pairs", natcat, "--threads", 1, "--max-tokens", 32]


def test_a_dry_run_shows_the_plan_and_writes_nothing(run, pairs, tmp_path):
    result = run("dual", *pairs, "--instances", 96, "-o", tmp_path / "out", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "96 instances in 3 steps of 32" in result.stdout
    assert "Estimated time:" in result.stdout
    assert "10 categories, negatives: given" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_as_json(run, pairs, tmp_path):
    options = ["--instances", 96, "--negatives", "frequency", "--json", "--dry-run"]
    result = run("single", *pairs, *options, "-o", tmp_path / "out")
    plan = json.loads(result.stdout)
    assert plan["settings"]["objective"] == "single"
    assert plan["sources"][0]["negatives"] == "frequency"
    assert plan["seconds"] > 0


def test_a_run_prints_its_figures_and_where_it_is(run, pairs, tmp_path):
    options = ["--instances", 64, "--validation", 20, "--objective", "l2"]
    result = run("dual", *pairs, *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "64 instances in" in result.stdout
    assert "Ranking accuracy among 8 categories:" in result.stdout
    assert f"--encoder hf:{tmp_path / 'out'}" in result.stdout
    assert "step 2 of 2: ranking accuracy" in result.stderr
    assert (tmp_path / "out" / "README.md").is_file()


def test_malformed_rows_are_named_on_the_way(run, roberta, natcat, tmp_path):
    file = tmp_path / "bad.data"
    file.write_text("half a row\n" + natcat.read_text())
    options = ["--base", roberta, "--pairs", file, "--instances", 32, "--dry-run", "--threads", 1]
    result = run("dual", *options, "-o", tmp_path / "out")
    assert "1 malformed rows left out: bad.data line 1 has 1 tab fields, not 9" in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "cosine"], "objective must be dot or l2; got 'cosine'"),
        (["--rate", "0"], "peak_rate must be above 0"),
        (["--pairs", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--device", "tpu"], "device must be cpu, cuda, cuda:N or mps; got 'tpu'"),
    ],
)
def test_what_cannot_be_is_one_sentence(run, pairs, tmp_path, options, said):
    result = run("dual", *pairs, *options, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert said in result.stderr
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
    options += [
        "--threads",
        1,
        "--refine",
        unlabelled,
        "--save-model",
        tmp_path / "model",
        "--json",
    ]
    dry = run("few-shot", *options, "-o", tmp_path / "out", "--dry-run")
    assert json.loads(dry.stdout)["settings"]["n_instances"] == 30
    assert not (tmp_path / "out").exists()
    result = run("few-shot", *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["n_instances"] == 30
    assert told["refined_on"] == 18
    predicted = CliRunner().invoke(
        app, ["predict", str(tmp_path / "model"), str(unlabelled), "-o", str(tmp_path / "p.csv")]
    )
    assert predicted.exit_code == 0, predicted.output
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 19


def test_refine_and_save_model_go_together(run, tmp_path):
    options = ["--base", "x", "--examples", "x", "-l", "a, b", "-o", "x", "--refine", "x"]
    result = run("few-shot", *options)
    assert result.exit_code == 2
    assert "--refine and --save-model go together" in result.stderr
