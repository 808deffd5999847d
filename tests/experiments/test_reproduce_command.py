"""`ulr reproduce` on tiny datasets."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from ulr.classifier import DatalessClassifier
from ulr.cli import app
from ulr.errors import EncoderError, ExperimentError
from ulr.experiments import read_documents
from ulr.experiments.measure import MEASURES, labelled_examples, names_of
from ulr.experiments.phrasings import label_set
from ulr.experiments.plan import CellKey
from ulr.experiments.resources import Resources, RunSettings
from ulr.experiments.results import Results
from ulr.experiments.run import choose_encoders, find_experiments, run
from ulr.train import draw_examples

WORDS = {
    "World": "minister border treaty election president war embassy talks refugees parliament",
    "Sports": "goal match striker season coach tournament medal league injury final",
    "Business": "shares profit bank merger investors oil quarter prices dollar earnings",
    "Sci/Tech": "software internet rocket researchers chip computer planet virus web telescope",
}


def sentence(label, draw):
    others = " ".join(WORDS.values()).split()
    return " ".join(draw.choices(WORDS[label].split(), k=4) + draw.choices(others, k=3))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """AG News alone: 60 test documents, 31 a label to train with, and 40 without labels."""
    folder, draw = tmp_path_factory.mktemp("data"), random.Random(5)
    own = folder / "agnews"
    own.mkdir()
    with (own / "test.csv").open("w", newline="") as file:
        for number in range(60):
            label = number % 4
            text = sentence(list(WORDS)[label], draw)
            csv.writer(file).writerow([label + 1, *text.split(" ", 1)])
    for name, count in (("train_124", 124), ("unlabelled_40", 40)):
        with (own / f"{name}.jsonl").open("w") as file:
            for number in range(count):
                label = list(WORDS)[number % 4]
                file.write(json.dumps({"label": label, "text": sentence(label, draw)}) + "\n")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


def reproduce(*arguments, **environment):
    """`ulr reproduce` in this process."""
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env=environment)
    return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)


def run_all(data, cache, out):
    result = reproduce("all", "--data", data, "--cache", cache, "--out", out)
    assert result.code == 0, result.err
    return result


def start(*arguments):
    """`ulr reproduce` in another process, which can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "ulr", "reproduce", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.fixture(scope="module")
def whole(data, cache, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    result = run_all(data, cache, out)
    return SimpleNamespace(out=out, result=result, report=(out / "report.md").read_bytes())


def lines(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_bytes().splitlines()]


def test_a_run_prints_the_tables_and_leaves_results_report_and_picture(whole):
    names = sorted(path.name for path in whole.out.iterdir())
    assert names == ["figure-2.png", "figure-2.svg", "report.md", "results.jsonl"]
    report = whole.report.decode()
    assert report.removeprefix("# The paper, reproduced\n\n").rstrip() in whole.result.out
    assert whole.result.err == ""
    for heading in (*(f"Table {number}" for number in range(1, 10)), "Figure 2", "ESA", "The best"):
        assert f"### {heading}" in report
    assert "| AG News | 60 | sample of 60 of 7,600 |" in report
    assert "AG (sample)" in report


def test_the_report_states_why_a_cell_was_not_run(whole, data):
    report = whole.report.decode()
    assert "Stand-in: `static`." in report
    assert "the data folder holds no test set of DBpedia; get dbpedia_csv.tar.gz" in report
    assert "a single encoder trained on NatCat is missing; add one with --single" in report
    assert "a corpus of concepts is missing; add one with --concepts FILE." in report
    assert "an encoder fine-tuned on the examples is missing" in report
    assert str(data) not in report


def test_nothing_is_measured_twice(data, cache, whole):
    before = (whole.out / "results.jsonl").read_bytes()
    assert run_all(data, cache, whole.out).out == whole.result.out
    assert (whole.out / "results.jsonl").read_bytes() == before
    assert (whole.out / "report.md").read_bytes() == whole.report


def wait_for_lines(out, count):
    results, deadline = out / "results.jsonl", time.monotonic() + 300
    while not results.exists() or results.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_run_continues_to_the_same_report(data, cache, whole, tmp_path):
    process = start("all", "--data", data, "--cache", cache, "--out", tmp_path)
    wait_for_lines(tmp_path, 3)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    results = tmp_path / "results.jsonl"
    kept = results.read_bytes()
    assert 3 <= kept.count(b"\n") < len(lines(whole.out))
    assert not (tmp_path / "report.md").exists()
    results.write_bytes(kept + b'{"measure": "na')
    run_all(data, cache, tmp_path)
    assert results.read_bytes().startswith(kept)
    for name in ("report.md", "figure-2.png", "figure-2.svg"):
        assert (tmp_path / name).read_bytes() == (whole.out / name).read_bytes()
    finished = [line for line in lines(tmp_path) if "not_run" not in line]
    keys = [tuple(line[name] for name in CellKey.__dataclass_fields__) for line in finished]
    assert len(keys) == len(set(keys))


def test_ctrl_c_keeps_finished_cells(data, cache, tmp_path):
    process = start("table-7", "--data", data, "--cache", cache, "--out", tmp_path)
    wait_for_lines(tmp_path, 1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"finished cells are kept in" in err
    assert b"Traceback" not in err
    assert len(lines(tmp_path)) == 1


def test_another_seed_is_another_measurement_and_each_is_kept(data, cache, tmp_path):
    experiments, encoders = find_experiments(["table-8"]), choose_encoders([], data)
    with Results(tmp_path / "results.jsonl") as results:
        for seed in (1, 2, 1):
            cells = run(experiments, encoders, RunSettings(data, cache, seed), results)
            measured = [cell for cell in cells if not cell.not_run]
            assert [cell.identity["random_state"] for cell in measured] == [seed] * 2
            assert [each for each in results.cells if not each.not_run] == measured
    kept = [line for line in lines(tmp_path) if "values" in line]
    assert kept[:2] == kept[4:]
    assert kept[:2] != kept[2:4]


def test_results_of_another_version_of_the_method_are_measured_again(data, cache, tmp_path):
    experiments, encoders = find_experiments(["table-8"]), choose_encoders([], data)
    settings = RunSettings(data, cache)
    with Results(tmp_path / "new.jsonl") as results:
        new = [cell for cell in run(experiments, encoders, settings, results) if cell.values]
    with Results(tmp_path / "old.jsonl") as results:
        for cell in new:
            identity = dict(cell.identity, method_version=cell.identity["method_version"] - 1)
            results.add(replace(cell, identity=identity, values={"baseline": 0.0, "ulr": 0.0}))
        again = [cell for cell in run(experiments, encoders, settings, results) if cell.values]
    assert [cell.values for cell in again] == [cell.values for cell in new]


def test_a_missing_encoder_is_a_row_that_was_not_run(data, cache, tmp_path):
    given = ["--encoder", "static", "--encoder", "onnx:nowhere/at-all", "--encoder", "glove:no"]
    out = ["--cache", cache, "--out", tmp_path]
    result = reproduce("table-2", "table-5", "--data", data, *given, *out)
    assert result.code == 0, result.err
    assert "| `onnx:at-all` | not run | not run | not run |" in result.out
    assert "Not run (ensemble by name, `onnx:at-all`: AG News, DBpedia, Yahoo" in result.out
    assert "| `glove:no` | not run |" in result.out


def test_a_report_replaces_only_its_part_of_a_page(data, cache, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Mine\n<!-- reproduce -->\nof before\n<!-- /reproduce -->\nend\n")
    given = ["--cache", cache, "--out", tmp_path / "out", "--write", page]
    assert reproduce("table-5", *given, ULR_DATA=os.fspath(data)).code == 0
    text = page.read_text()
    assert text.startswith("# Mine\n<!-- reproduce -->\nAccuracy in percent;")
    assert text.endswith("\n<!-- /reproduce -->\nend\n")
    assert "### Table 5" in text
    assert "of before" not in text


def write_articles(path):
    with path.open("w") as file:
        for label, words in WORDS.items():
            for number in range(3):
                text = f"{label} {words} " * 5
                file.write(json.dumps({"title": f"{label} {number}", "text": text}) + "\n")


def test_concepts_default_to_those_of_the_data_folder(data, tmp_path):
    assert not choose_encoders([], data).by_role["concepts"]
    (tmp_path / "concepts").mkdir()
    corpus = tmp_path / "concepts" / "wikipedia_articles.jsonl"
    write_articles(corpus)
    (chosen,) = choose_encoders([], tmp_path).by_role["concepts"]
    assert chosen.name == f"esa:{corpus}"
    (given,) = choose_encoders(["esa:other"], tmp_path).by_role["concepts"]
    assert given.name == "esa:other"


class SharedWords:
    """A scorer of pairs: how many words of a text belong to a label."""

    def score(self, texts, labels, /):
        own = [WORDS["Sci/Tech" if "science" in each else each.title()] for each in labels]
        counts = [[sum(word in words for word in text.split()) for words in own] for text in texts]
        return np.array(counts, dtype=np.float32)


def test_a_single_encoder_reads_a_sample(data, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    key = CellKey("pairs", "single", f"cross:{tmp_path}", "agnews", "main", "js")
    setting = RunSettings(data, tmp_path / "vectors", single_sample=20)
    resources = Resources(setting, load=lambda spec: SharedWords())
    documents = resources.test_documents("agnews", "single")
    assert documents.note == "sample of 20 of 7,600"
    outcome = MEASURES["pairs"].run(resources, key)
    points = resources.probabilities(key.encoder, names_of(key), documents.texts)
    assert points.shape == (20, 4)
    by_name = 100 * np.mean(points.argmax(axis=1) == documents.truth)
    assert outcome.values["baseline"] == pytest.approx(by_name)
    assert by_name > 50
    assert resources.is_stand_in(key.encoder, "single")
    assert resources.description(key.encoder).endswith(", training unknown")


def test_a_measurement_equals_the_result_of_the_classifier(data, tmp_path):
    documents = read_documents("agnews", data)
    classifier = DatalessClassifier(label_set("agnews"), method="ulr")
    predicted = classifier.fit_predict(documents.texts)
    right = np.mean(predicted == np.array(documents.labels)[documents.truth])
    key = CellKey("names", "dual", "static", "agnews", "main", "cosine")
    outcome = MEASURES["names"].run(Resources(RunSettings(data, tmp_path)), key)
    assert outcome.values["ulr"] == pytest.approx(100 * right, abs=1e-4)


def test_the_same_seed_draws_the_same_labelled_examples(data):
    training = read_documents("agnews", data, "train")
    drawn = labelled_examples(training, 30, random_state=1)
    assert np.bincount(training.truth[drawn]).tolist() == [30] * 4
    assert len(set(drawn.tolist())) == 120
    assert drawn.tolist() == labelled_examples(training, 30, random_state=1).tolist()
    assert drawn.tolist() != labelled_examples(training, 30, random_state=2).tolist()
    names = training.labels
    few = draw_examples(training.texts, [names[i] for i in training.truth], names, random_state=1)
    assert [training.texts[row] for row in drawn] == few.texts
    with pytest.raises(ExperimentError, match="has 31 documents of 'World'; 32 are needed"):
        labelled_examples(training, 32, random_state=1)


def test_glove_840b_and_a_trained_roberta_count_as_the_papers(data, tmp_path):
    resources = Resources(RunSettings(data, tmp_path))
    model = tmp_path / "natcat"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "roberta"}')
    assert not resources.is_stand_in(f"hf:{model}", "dual")
    assert not resources.is_stand_in("glove:x/glove.840B.300d.zip", "words")
    for spec, role in (("hf:roberta-base", "dual"), ("static", "dual"), ("glove", "words")):
        assert resources.is_stand_in(spec, role)


def test_the_description_of_a_trained_model_names_its_data(data, tmp_path):
    config = {"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384}
    (tmp_path / "config.json").write_text(json.dumps(config))
    plan = {
        "settings": {"n_instances": 20000, "objective": "dot"},
        "sources": [{"files": ["a.tsv", "b.tsv", "c.tsv"]}, {"files": ["d.jsonl"]}],
    }
    (tmp_path / "training.json").write_text(json.dumps({"plan": plan}))
    content = Resources(RunSettings(data, tmp_path)).description(f"hf:{tmp_path}")
    assert content == (
        "bert of 6 layers and 384 dimensions, trained on 20,000 instances of a.tsv … c.tsv, "
        "d.jsonl (objective dot)"
    )


def test_the_list_names_every_experiment():
    names = [line.split()[0] for line in reproduce("--list").out.splitlines()]
    assert names == [experiment.id for experiment in find_experiments(["all"])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table-10"], "experiment must be one of table-1, table-2,"),
        (["--data", "nowhere"], "there is no data folder nowhere; put the datasets into one"),
        ([], "name their folder with --data DIR or ULR_DATA."),
        (["--data", ".", "--fine-tuned", "hf:x"], "--fine-tuned must be DATASET=hf:FOLDER;"),
        (["--data", ".", "--write", "gone.md"], "there is no page gone.md"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(tmp_path, arguments, message):
    out = tmp_path / "out"
    result = reproduce(*arguments, "--out", out, ULR_DATA="")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not out.exists()


def test_an_encoder_for_one_distance_differs_from_a_path_with_an_equals_sign(data):
    chosen = choose_encoders(["l2=hf:a", "hf:b=c"], data).by_role["dual"]
    assert [(each.name, each.distance) for each in chosen] == [("hf:a", "l2"), ("hf:b=c", None)]
    for wrong in ("dot=hf:a", "statik", "2*statik+minilm"):
        with pytest.raises(EncoderError, match="encoder must be one of static,"):
            choose_encoders([wrong], data)
    with pytest.raises(ExperimentError, match="dataset must be one of agnews,"):
        choose_encoders([], data, {"ag": "hf:x"})
