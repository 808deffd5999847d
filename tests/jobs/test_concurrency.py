"""Several jobs at once in one process, and jobs that are cancelled."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ulr import DatalessClassifier, load_encoder
from ulr.jobs import Output, classify_file, evaluate_file, predict_file
from ulr.tables import open_table

LABELS = {"sports": "sports", "business": "business", "weather": ["weather", "rain and sun"]}
SENTENCES = [
    ("The striker scored twice before half time", "sports"),
    ("Shares fell after the bank raised interest rates", "business"),
    ("Heavy rain and storms are expected on Sunday", "weather"),
    ("The goalkeeper saved a late penalty", "sports"),
    ("The retailer closed forty shops and cut its forecast", "business"),
    ("Fog will clear by noon with sunshine on the coast", "weather"),
]


def write_texts(path, n):
    rows = [SENTENCES[(i * i) % len(SENTENCES)] for i in range(n)]
    path.write_text(
        "".join(
            json.dumps({"text": f"{t} {i}", "truth": y}) + "\n" for i, (t, y) in enumerate(rows)
        )
    )
    return path


def test_four_jobs_at_once_give_the_results_of_sequential_ones(tmp_path):
    encoder = load_encoder("static")
    source = write_texts(tmp_path / "in.jsonl", 3000)
    model = DatalessClassifier(LABELS, encoder=encoder).fit([t for t, _ in SENTENCES] * 20).model_

    def run(name, folder):
        path = folder / f"{name}.csv"
        classifier = DatalessClassifier(LABELS, encoder=encoder, method=name.partition(" ")[0])
        with open_table(str(source)) as table:
            if name == "predict":
                predict_file(table, ["text"], model, Output(str(path)))
            elif name == "ulr evaluate":
                report = evaluate_file(table, ["text"], "truth", classifier)
                path.write_text(f"{report.after.accuracy} {report.calibration_error}")
            else:
                classify_file(table, ["text"], classifier, Output(str(path)))
        return path.read_bytes()

    names = ["discriminant", "ulr", "predict", "ulr evaluate"]
    folders = [tmp_path / "one", tmp_path / "all"]
    for folder in folders:
        folder.mkdir()
    sequential = [run(name, folders[0]) for name in names]
    with ThreadPoolExecutor(len(names)) as pool:
        concurrent = list(pool.map(run, names, [folders[1]] * len(names)))
    assert concurrent == sequential


class Cancelled(Exception):
    pass


class CancelIn:
    """A listener that ends the job in a stage."""

    def __init__(self, stage):
        self._stage = stage

    def stage(self, name, total, unit="documents"):
        if name == self._stage:
            raise Cancelled

    def advance(self, count):
        pass

    def passed(self, done):
        if self._stage == "Refining" and done.iteration == 3:
            raise Cancelled


@pytest.mark.parametrize("stage", ["Reading", "Encoding", "Refining", "Calibrating", "Writing"])
def test_a_listener_can_cancel_a_job_in_every_stage(tmp_path, stage):
    source = write_texts(tmp_path / "in.jsonl", 200)
    classifier = DatalessClassifier(LABELS)
    target = tmp_path / "out.csv"
    with open_table(str(source)) as table, pytest.raises(Cancelled):
        classify_file(table, ["text"], classifier, Output(str(target)), CancelIn(stage))
    assert not target.exists()
