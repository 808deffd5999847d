"""The paper's method against what its authors' scripts print."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from ulr.refinement import refine

HERE = Path(__file__).parent / "golden"
# The large cases are not in the repository; ULR_GOLDEN names a folder with all of them.
FOLDER = Path(os.environ.get("ULR_GOLDEN", HERE))
CASES = sorted(path.stem for path in FOLDER.glob("*.json"))


def load(case):
    outcome = json.loads((FOLDER / f"{case}.json").read_text())
    arrays = FOLDER / f"{case}.npz"
    with np.load(arrays if arrays.exists() else FOLDER / f"{case.partition('_')[2]}.npz") as data:
        return dict(data), outcome


def run(case, arrays, **settings):
    kind = case.partition("_")[0]
    if kind == "single":
        points = softmax(arrays["scores"].astype(np.float64), axis=1)
        return refine(points, distance="jensen-shannon", method="ulr", **settings)
    return refine(arrays["documents"], arrays["labels"], distance=kind, method="ulr", **settings)


@pytest.mark.parametrize("case", CASES)
def test_every_iteration_agrees_with_the_original(case):
    arrays, outcome = load(case)
    for iteration, accuracy in enumerate(outcome["iteration_accuracy"]):
        result = run(case, arrays, max_iter=iteration + 1, keep="last")
        assert (result.predictions == arrays["truth"]).mean() == accuracy


@pytest.mark.parametrize("case", CASES)
def test_changes_convergence_and_selection_agree_with_the_original(case):
    arrays, outcome = load(case)
    result = run(case, arrays)
    single = case.startswith("single")
    changed = [done.changed for done in result.trace]
    assert changed[0 if single else 1 :] == outcome["changed_predictions"]
    assert result.converged
    assert (result.unrefined == arrays["truth"]).mean() == outcome["iteration_accuracy"][0]
    best = outcome["iteration_accuracy"][-1] if single else outcome["best_accuracy"]
    assert (result.predictions == arrays["truth"]).mean() == best
    if not single:
        sign = -1 if case.startswith("dot") else 1
        objective = result.trace[result.best_iteration].objective
        assert objective * sign == pytest.approx(outcome["best_mean_score"], rel=1e-6)


def test_true_cosine_keeps_the_refinement_that_raw_dot_discards():
    arrays, outcome = load("dot_agnews_wordllama_unit")
    result = refine(arrays["documents"], arrays["labels"], distance="cosine", method="ulr")
    assert result.best_iteration > 0
    assert (result.predictions == arrays["truth"]).mean() > outcome["best_accuracy"] + 0.05
