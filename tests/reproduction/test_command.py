"""``python -m reproduction`` on tiny datasets, and its measurements."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reproduction.__main__ import main
from reproduction.cells import Cell, EncoderChoice, Key, Results
from reproduction.datasets import ReproductionError
from reproduction.documents import read_documents
from reproduction.experiments import EXPERIMENTS
from reproduction.inputs import Inputs, description, is_stand_in
from reproduction.measure import MEASURES, labelled_examples, names_of
from reproduction.names import ENSEMBLE_NAMES, label_set
from reproduction.run import choose_encoders, run
from ulr import ZeroShotClassifier, load_encoder, refine

WORDS = {
    "World": "minister border treaty election president war embassy talks refugees parliament",
    "Sports": "goal match striker season coach tournament medal league injury final",
    "Business": "shares profit bank merger investors oil quarter prices dollar earnings",
    "Sci/Tech": "software internet rocket researchers chip computer planet virus web telescope",
}
ROOT = Path(__file__).parents[2]


def sentence(label, draw):
    others = " ".join(WORDS.values()).split()
    return " ".join(draw.choices(WORDS[label].split(), k=4) + draw.choices(others, k=3))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """AG News alone: 60 test documents, 31 per label to train with, and 40 without labels."""
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


@pytest.fixture
def reproduce(capsys):
    """Run the command within this process."""

    def command(*arguments):
        code = main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return command


def test_a_stopped_run_continues_and_leaves_every_table_and_the_picture(data, tmp_path, reproduce):
    results, deadline = tmp_path / "results.jsonl", time.monotonic() + 300
    command = [sys.executable, "-m", "reproduction", "--data", data, "--out", tmp_path]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not results.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"finished cells are kept in" in err
    assert b"Traceback" not in err
    kept = results.read_bytes()
    results.write_bytes(kept + b'{"measure": "na')  # as of a run that was killed
    result = reproduce("--data", data, "--out", tmp_path)
    assert result.code == 0
    written = results.read_bytes()
    assert written.startswith(kept)
    assert len(written.splitlines()) == result.err.count("\n")  # every cell once
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"figure-2.png", "figure-2.svg", "report.md", "results.jsonl", "vectors"}
    report = (tmp_path / "report.md").read_text()
    assert report.removeprefix("# The paper, reproduced\n\n").rstrip() in result.out
    names = [line.split()[0] for line in reproduce("--list").out.splitlines()]
    assert names == list(EXPERIMENTS)
    for name in names:
        assert f"### {name.replace('-', ' ')}: ".lower() in report.lower()
    assert "| AG News | 60 | sample of 60 of 7,600 |" in report
    for reason in (
        "the data folder holds no test set of DBpedia; get dbpedia_csv.tar.gz",
        "a single encoder trained on NatCat is missing; add one with --single",
        "a corpus of concepts is missing; add one with --concepts FILE.",
        "an encoder fine-tuned on the examples is missing",
    ):
        assert reason in report
    assert str(data) not in report
    picture = (tmp_path / "figure-2.svg").read_bytes()
    assert reproduce("--data", data, "--out", tmp_path).out == result.out
    assert results.read_bytes() == written
    assert (tmp_path / "figure-2.svg").read_bytes() == picture


def test_results_are_read_again_and_reasons_do_not_replace_figures(tmp_path):
    path = tmp_path / "results.jsonl"
    key = Key("sweep", "dual", "static", "agnews", "main", "cosine")
    reason, cell = Cell(key, not_run="no data."), Cell(key, {"seed": 1}, {}, {"ulr": 1.0}, [1], [3])
    for each in (reason, reason, cell, reason, cell):
        Results(path).add(each)
    assert len(path.read_bytes().splitlines()) == 2
    assert Results(path).latest == {key: cell}
    path.write_bytes(path.read_bytes() + b'{"measure": "names"}\n')
    with pytest.raises(ReproductionError, match=r"results\.jsonl line 3 is not a result of"):
        Results(path)


def test_what_determines_a_figure_is_measured_again_when_it_changes(data, tmp_path):
    results = Results(tmp_path / "results.jsonl")

    def measured(seed):
        inputs = Inputs(data, tmp_path, seed)
        cells = run([EXPERIMENTS["table-8"]], choose_encoders([], data), inputs, results)
        return [cell for cell in cells if not cell.not_run]

    first, second = measured(1), measured(2)
    assert [cell.identity["random_state"] for cell in first + second] == [1, 1, 2, 2]
    assert measured(2) == second
    stale = {"method_version": second[0].identity["method_version"] - 1}
    results.add(Cell(second[0].key, second[0].identity | stale, second[0].about, {"ulr": 0.0}))
    assert measured(2)[0].values == second[0].values


def test_a_missing_encoder_is_a_row_and_a_report_replaces_its_part_of_a_page(
    data, tmp_path, reproduce
):
    page = tmp_path / "page.md"
    page.write_text("# Mine\n<!-- reproduce -->\nof before\n<!-- /reproduce -->\nend\n")
    given = ["--encoder", "static", "--encoder", "onnx:nowhere/at-all", "--encoder", "glove:no"]
    options = ["--data", data, "--out", tmp_path / "out", "--write", page]
    result = reproduce("table-2", "table-5", *given, *options)
    assert "| `onnx:at-all` | not run | not run | not run |" in result.out
    assert "Not run (ensemble by name, `onnx:at-all`: AG News, DBpedia, Yahoo" in result.out
    assert "| `glove:no` | not run |" in result.out
    text = page.read_text()
    assert text.startswith("# Mine\n<!-- reproduce -->\nAccuracy in percent;")
    assert text.endswith("\n<!-- /reproduce -->\nend\n")
    assert "of before" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "name it with --data DIR or ULR_DATA; got 'nowhere'."),
        (["--data", ".", "--fine-tuned", "hf:x"], "--fine-tuned must be DATASET=hf:FOLDER;"),
        (["--data", ".", "--fine-tuned", "ag=hf:x"], "dataset must be one of agnews,"),
        (["--data", ".", "--write", "gone.md"], "there is no page gone.md"),
        (["--data", ".", "--encoder", "2*statik+minilm"], "encoder must be one of static,"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(tmp_path, reproduce, arguments, message):
    result = reproduce(*arguments, "--out", tmp_path / "out")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_encoders_are_chosen_by_their_kind(tmp_path):
    defaults = [EncoderChoice("dual", "static"), EncoderChoice("words", "glove")]
    assert choose_encoders([], tmp_path) == defaults
    corpus = tmp_path / "concepts" / "wikipedia_articles.jsonl"
    corpus.parent.mkdir()
    corpus.touch()
    chosen = choose_encoders(["l2=hf:a", "hf:b=c", "cross:d"], tmp_path, ["yahoo=hf:e"])
    assert chosen == [
        EncoderChoice("dual", "hf:a", "l2"),
        EncoderChoice("dual", "hf:b=c"),
        EncoderChoice("single", "cross:d"),
        EncoderChoice("words", "glove"),
        EncoderChoice("concepts", f"esa:{corpus}"),
        EncoderChoice("fine-tuned", "hf:e", dataset="yahoo"),
    ]


class SharedWords:
    """A scorer of pairs: how many words of a text belong to a label."""

    def score(self, texts, labels, /):
        own = [WORDS["Sci/Tech" if "science" in each else each.title()] for each in labels]
        counts = [[sum(word in words for word in text.split()) for words in own] for text in texts]
        return np.array(counts, dtype=np.float32)


def test_a_single_encoder_reads_a_sample(data, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.inputs.load", lambda name: SharedWords())
    key = Key("pairs", "single", "cross:x", "agnews", "main", "js")
    inputs = Inputs(data, tmp_path / "vectors", single_sample=20)
    documents = inputs.test_documents(key)
    assert documents.note == "sample of 20 of 7,600"
    points = inputs.probabilities(key.encoder, names_of(key), documents.texts)
    np.testing.assert_allclose(points.sum(axis=1), np.ones(20), rtol=1e-5)
    by_name = 100 * np.mean(points.argmax(axis=1) == documents.truth)
    assert MEASURES["pairs"](inputs, key).values["baseline"] == pytest.approx(by_name)
    assert by_name > 50


def test_measurements_equal_the_results_of_the_library(data, tmp_path):
    documents, inputs = read_documents("agnews", data), Inputs(data, tmp_path)
    key = Key("names", "dual", "static", "agnews", "main", "cosine")
    truth = np.array(documents.labels)[documents.truth]
    for measure, method in (("names", "ulr"), ("discriminant", "discriminant")):
        predicted = ZeroShotClassifier(
            label_set("agnews"), method=method, encoder="static"
        ).fit_predict(documents.texts)
        found = MEASURES[measure](inputs, key).values[method]
        assert found == pytest.approx(100 * np.mean(predicted == truth), abs=1e-4)
    encode = load_encoder("static").encode
    vectors = encode(documents.texts)
    sets = [encode(list(names)) for names in ENSEMBLE_NAMES["agnews"]]
    for distance in ("cosine", "l2"):
        results = [refine(vectors, each, method="ulr", distance=distance) for each in sets]
        predicted = np.sum([result.scores for result in results], axis=0).argmax(axis=1)
        found = MEASURES["ensemble"](inputs, key._replace(distance=distance)).values["ulr"]
        assert found == pytest.approx(100 * np.mean(predicted == documents.truth), abs=1e-4)


def test_the_same_seed_draws_the_same_labelled_examples(data):
    training = read_documents("agnews", data, "train")
    texts, labels = labelled_examples(training, 30, random_state=1)
    assert np.bincount(labels).tolist() == [30] * 4
    truth = dict(zip(training.texts, training.truth, strict=True))
    assert [truth[text] for text in texts] == labels.tolist()
    assert labelled_examples(training, 30, random_state=2)[0] != texts
    with pytest.raises(ReproductionError, match="has 31 documents of 'World'; 32 are needed"):
        labelled_examples(training, 32, random_state=1)


def test_glove_840b_and_a_roberta_of_a_folder_count_as_the_papers(tmp_path):
    config = {"model_type": "roberta", "num_hidden_layers": 6, "hidden_size": 384}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert description(f"hf:{tmp_path}") == "roberta of 6 layers and 384 dimensions"
    assert not is_stand_in(f"hf:{tmp_path}", "dual")
    assert not is_stand_in("glove:x/glove.840B.300d.zip", "words")
    for name, role in (("hf:roberta-base", "dual"), ("static", "dual"), ("glove", "words")):
        assert is_stand_in(name, role)
