"""Several jobs at once in one process, and jobs that are cancelled."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from running import DOCUMENTS, run_classify, run_predict, write_rows
from tiny_task import Recorder
from ulr import load_encoder
from ulr.classifier import Settings, fit

LABELS = {"sports": "sports", "business": "business", "weather": ["weather", "rain and sun"]}


def write_texts(path, n):
    rows = [DOCUMENTS[(i * i) % 6] for i in range(n)]
    return write_rows(path, [(i, f"{text} {i}", truth) for i, (text, truth) in enumerate(rows)])


def test_four_jobs_at_once_give_the_results_of_sequential_ones(tmp_path):
    encoder = load_encoder("static")
    source = write_texts(tmp_path / "in.csv", 3000)
    model = fit([text for text, _ in DOCUMENTS] * 20, Settings(LABELS, encoder=encoder))

    def run(name, folder):
        path = folder / f"{name}.csv"
        if name == "predict":
            run_predict(source, model, path)
            return path.read_bytes()
        options = {"encoder": encoder, "method": name.partition(" ")[0]}
        if name == "ulr evaluate":
            compared = run_classify(source, LABELS, truth="truth", **options)[1].comparison
            return compared.after.accuracy, compared.calibration_error
        run_classify(source, LABELS, path, **options)
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


@pytest.mark.parametrize("stage", ["Reading", "Encoding", "Refining", "Calibrating", "Writing"])
def test_progress_can_cancel_a_job_in_every_stage(tmp_path, stage):
    class Cancelling(Recorder):
        def advance(self, count=1):
            if self.stages[-1][0] == stage:
                raise Cancelled(f"in {stage}")

    source = write_texts(tmp_path / "in.csv", 200)
    target = tmp_path / "out.csv"
    with pytest.raises(Cancelled, match=f"in {stage}"):
        run_classify(source, LABELS, target, Cancelling())
    assert not target.exists()
