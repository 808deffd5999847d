"""The typed file of a user runs; `make check` checks its types."""

import numpy as np

import typed_use

TEXTS = ["apple pie", "apple juice", "cherry cake", "cherry jam"]


def test_the_typed_file_of_a_user_runs(tmp_path):
    assert typed_use.classified(TEXTS, tmp_path / "model") == ["apple", "apple", "cherry", "cherry"]
    vectors = typed_use.Letters().encode(TEXTS)
    assert typed_use.refined(vectors).predictions.shape == (4,)
    assert list(typed_use.fitted(TEXTS).predict(TEXTS).labels) == [0, 0, 1, 1]
    assert typed_use.loaded("static").spec == "static"
    assert np.isfinite(vectors).all()
