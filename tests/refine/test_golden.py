"""The refinement against what the paper authors' own scripts print for the same inputs."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from ulr.refine import refine

pytestmark = pytest.mark.usefixtures("either_loops")

# The paper's method is what these tests are about.
refine = partial(refine, method="ulr")

HERE = Path(__file__).parent / "golden"
# Three of the seven cases are large; a folder with all of them can be named from outside.
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
        return refine(points, distance="jensen-shannon", **settings)
    return refine(arrays["documents"], arrays["labels"], distance=kind, **settings)


@pytest.mark.parametrize("case", CASES)
def test_every_iteration_agrees_with_the_original(case):
    arrays, outcome = load(case)
    for iteration, accuracy in enumerate(outcome["iteration_accuracy"]):
        result = run(case, arrays, max_iterations=iteration + 1, keep="last")
        assert (result.predictions == arrays["truth"]).mean() == accuracy


@pytest.mark.parametrize("case", CASES)
def test_the_run_and_its_answer_agree_with_the_original(case):
    arrays, outcome = load(case)
    result = run(case, arrays)
    single = case.startswith("single")
    assert result.changed[0 if single else 1 :].tolist() == outcome["changed_predictions"]
    assert result.converged
    assert (result.unrefined == arrays["truth"]).mean() == outcome["iteration_accuracy"][0]
    best = outcome["iteration_accuracy"][-1] if single else outcome["best_accuracy"]
    assert (result.predictions == arrays["truth"]).mean() == best
    if not single:
        sign = -1 if case.startswith("dot") else 1
        assert result.objective[result.kept] * sign == pytest.approx(
            outcome["best_mean_score"], rel=1e-6
        )


def test_true_cosine_keeps_the_refinement_that_raw_dot_throws_away():
    arrays, outcome = load("dot_agnews_wordllama_unit")
    result = refine(arrays["documents"], arrays["labels"], distance="cosine")
    assert result.kept > 0
    assert (result.predictions == arrays["truth"]).mean() > outcome["best_accuracy"] + 0.05
