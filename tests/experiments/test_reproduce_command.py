"""`ulr reproduce` as people run it, on tiny datasets in the shared layout."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ulr.classifier import DatalessClassifier
from ulr.errors import EncoderError, ExperimentError
from ulr.experiments import read_documents
from ulr.experiments.materials import Materials, Setting
from ulr.experiments.measure import MEASURES, labelled_examples, names_of
from ulr.experiments.plan import Place
from ulr.experiments.results import Results
from ulr.experiments.run import choose_encoders, find_studies, run
from ulr.experiments.wordings import label_set
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


def run_all(data, cache, out):
    """Every experiment, run to its end, which may take a while on a busy machine."""
    command = ["reproduce", "all", "--data", data, "--cache", cache, "--out", out]
    result = subprocess.run(
        [sys.executable, "-m", "ulr", *map(str, command)], capture_output=True, timeout=600
    )
    assert result.returncode == 0, result.stderr.decode()
    return SimpleNamespace(out=result.stdout.decode(), err=result.stderr.decode())


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


def test_what_cannot_run_says_why(whole, data):
    report = whole.report.decode()
    assert "Stand-in: `static`." in report
    assert "the data folder holds no test set of DBpedia; get dbpedia_csv.tar.gz" in report
    assert "a single encoder trained on NatCat is not here; give one with --single" in report
    assert "a corpus of concepts is not here; give one with --concepts FILE." in report
    assert "an encoder fine-tuned on the examples is not here" in report
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


def test_a_killed_run_goes_on_where_it_was_and_ends_in_the_same_report(
    data, cache, whole, tmp_path
):
    command = ["reproduce", "all", "--data", data, "--cache", cache, "--out", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for_lines(tmp_path, 3)
    process.kill()
    assert process.wait() == -signal.SIGKILL
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
    places = [tuple(line[key] for key in Place.__dataclass_fields__) for line in finished]
    assert len(places) == len(set(places))


def test_ctrl_c_keeps_finished_cells(data, cache, tmp_path):
    command = ["reproduce", "table-7", "--data", data, "--cache", cache, "--out", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, command)], stderr=subprocess.PIPE
    )
    wait_for_lines(tmp_path, 1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"finished cells are kept in" in err
    assert b"Traceback" not in err
    assert len(lines(tmp_path)) == 1


def test_another_seed_is_another_measurement_and_each_is_kept(data, cache, tmp_path):
    studies, encoders = find_studies(["table-8"]), choose_encoders([], data)
    with Results(tmp_path / "results.jsonl") as results:
        for seed in (1, 2, 1):
            cells = run(studies, encoders, Setting(data, cache, seed), results)
            measured = [cell for cell in cells if not cell.not_run]
            assert [cell.identity["seed"] for cell in measured] == [seed] * 2
            assert [each for each in results.cells if not each.not_run] == measured
    kept = [line for line in lines(tmp_path) if "values" in line]
    assert kept[:2] == kept[4:]
    assert kept[:2] != kept[2:4]


def test_an_encoder_that_is_not_there_is_a_row_that_was_not_run(ulr, data, cache, tmp_path):
    given = ["--encoder", "static", "--encoder", "minilm:nowhere/at-all", "--encoder", "glove:no"]
    out = ["--cache", cache, "--out", tmp_path]
    result = ulr("reproduce", "table-2", "table-5", "--data", data, *given, *out)
    assert result.code == 0, result.err
    assert "| `minilm:at-all` | not run | not run | not run |" in result.out
    assert "Not run (ensemble by name, `minilm:at-all`: AG News, DBpedia, Yahoo" in result.out
    assert "| `glove:no` | not run |" in result.out


def test_a_report_goes_into_a_page_and_leaves_the_rest_of_it(ulr, data, cache, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Mine\n<!-- reproduce -->\nof before\n<!-- /reproduce -->\nend\n")
    given = ["--cache", cache, "--out", tmp_path / "out", "--write", page]
    assert ulr("reproduce", "table-5", *given, ULR_DATA=os.fspath(data)).code == 0
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


def test_concepts_are_taken_from_the_data_folder_or_where_they_are_said_to_be(data, tmp_path):
    assert not choose_encoders([], data).by_role["concepts"]
    (tmp_path / "concepts").mkdir()
    corpus = tmp_path / "concepts" / "wikipedia_articles.jsonl"
    write_articles(corpus)
    (chosen,) = choose_encoders([], tmp_path).by_role["concepts"]
    assert chosen.spec == f"esa:{corpus}"
    (given,) = choose_encoders(["esa:other"], tmp_path).by_role["concepts"]
    assert given.spec == "esa:other"


class SharedWords:
    """A scorer of pairs: how many words of a text belong to a label."""

    def score(self, texts, labels, /):
        own = [WORDS["Sci/Tech" if "science" in each else each.title()] for each in labels]
        counts = [[sum(word in words for word in text.split()) for words in own] for text in texts]
        return np.array(counts, dtype=np.float32)


def test_a_single_encoder_reads_a_sample(data, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    place = Place("pairs", "single", f"cross:{tmp_path}", "agnews", "main", "js")
    setting = Setting(data, tmp_path / "vectors", single_sample=20)
    materials = Materials(setting, load=lambda spec: SharedWords())
    documents = materials.tested("agnews", "single")
    assert documents.note == "sample of 20 of 7,600"
    outcome = MEASURES["pairs"].run(materials, place)
    points = materials.probabilities(place.encoder, names_of(place), documents.texts)
    assert points.shape == (20, 4)
    by_name = 100 * np.mean(points.argmax(axis=1) == documents.truth)
    assert outcome.values["baseline"] == pytest.approx(by_name)
    assert by_name > 50
    assert materials.stands_in(place.encoder, "single")
    assert materials.description(place.encoder).endswith(", training unknown")


def test_a_measurement_is_what_the_classifier_does(data, tmp_path):
    documents = read_documents("agnews", data)
    classifier = DatalessClassifier(label_set("agnews"), method="ulr")
    predicted = classifier.fit_predict(documents.texts)
    right = np.mean(predicted == np.array(documents.labels)[documents.truth])
    place = Place("names", "dual", "static", "agnews", "main", "cosine")
    outcome = MEASURES["names"].run(Materials(Setting(data, tmp_path)), place)
    assert outcome.values["ulr"] == pytest.approx(100 * right, abs=1e-4)


def test_examples_are_drawn_by_the_seed_equally_many_a_label(data):
    training = read_documents("agnews", data, "train")
    drawn = labelled_examples(training, 30, seed=1)
    assert np.bincount(training.truth[drawn]).tolist() == [30] * 4
    assert len(set(drawn.tolist())) == 120
    assert drawn.tolist() == labelled_examples(training, 30, seed=1).tolist()
    assert drawn.tolist() != labelled_examples(training, 30, seed=2).tolist()
    names = training.labels
    few = draw_examples(training.texts, [names[i] for i in training.truth], names, seed=1)
    assert [training.texts[row] for row in drawn] == few.texts
    with pytest.raises(ExperimentError, match="has 31 documents of 'World'; 32 are needed"):
        labelled_examples(training, 32, seed=1)


def test_glove_840b_and_a_roberta_of_ones_own_are_the_papers(data, tmp_path):
    materials = Materials(Setting(data, tmp_path))
    model = tmp_path / "natcat"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "roberta"}')
    assert not materials.stands_in(f"hf:{model}", "dual")
    assert not materials.stands_in("glove:x/glove.840B.300d.zip", "words")
    for spec, role in (("hf:roberta-base", "dual"), ("static", "dual"), ("glove", "words")):
        assert materials.stands_in(spec, role)


def test_a_trained_model_says_what_it_was_trained_on(data, tmp_path):
    config = {"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384}
    (tmp_path / "config.json").write_text(json.dumps(config))
    plan = {
        "settings": {"n_instances": 20000, "objective": "dot"},
        "sources": [{"files": ["a.tsv", "b.tsv", "c.tsv"]}, {"files": ["d.jsonl"]}],
    }
    (tmp_path / "training.json").write_text(json.dumps({"plan": plan}))
    told = Materials(Setting(data, tmp_path)).description(f"hf:{tmp_path}")
    assert told == (
        "bert of 6 layers and 384 dimensions, trained on 20,000 instances of a.tsv … c.tsv, "
        "d.jsonl (objective dot)"
    )


def test_the_list_names_every_experiment(ulr):
    names = [line.split()[0] for line in ulr("reproduce", "--list").out.splitlines()]
    assert names == [study.id for study in find_studies(["all"])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table-10"], "an experiment must be one of table-1, table-2,"),
        (["--data", "nowhere"], "there is no data folder nowhere; put the datasets into one"),
        ([], "name their folder with --data DIR or ULR_DATA."),
        (["--data", ".", "--fine-tuned", "hf:x"], "--fine-tuned must be DATASET=hf:FOLDER;"),
        (["--data", ".", "--write", "gone.md"], "there is no page gone.md"),
    ],
)
def test_what_cannot_be_is_one_sentence(ulr, tmp_path, arguments, message):
    out = tmp_path / "out"
    result = ulr("reproduce", *arguments, "--out", out, ULR_DATA="")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not out.exists()


def test_an_encoder_for_a_distance_is_told_from_a_path_with_an_equals_sign(data):
    chosen = choose_encoders(["l2=hf:a", "hf:b=c"], data).by_role["dual"]
    assert [(each.spec, each.distance) for each in chosen] == [("hf:a", "l2"), ("hf:b=c", None)]
    for wrong in ("dot=hf:a", "statik", "2*statik+minilm"):
        with pytest.raises(EncoderError, match="encoder must be one of static,"):
            choose_encoders([wrong], data)
    with pytest.raises(ExperimentError, match="a dataset must be one of agnews,"):
        choose_encoders([], data, {"ag": "hf:x"})
