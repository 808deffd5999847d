"""The public names of `ulr`, and what importing it does not load."""

import json
import subprocess
import sys

import pytest

import ulr

HEAVY = "dask matplotlib pandas polars pyarrow scipy sklearn tokenizers torch".split()


def test_public_names_are_sorted_and_there():
    assert sorted(ulr.__all__) == ulr.__all__
    for name in ulr.__all__:
        assert getattr(ulr, name).__name__ == name


def test_refine_is_the_function_even_after_its_modules_are_imported():
    from ulr import refine
    from ulr.refinement import distances

    assert distances.__name__ == "ulr.refinement.distances"
    assert refine.__module__.startswith("ulr.refinement")
    assert refine([[1, 0], [0, 1]], [[2, 1], [1, 2]]).predictions.tolist() == [0, 1]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'ulr' has no attribute 'nothing'"):
        _ = ulr.nothing


def test_errors_are_one_tree_of_value_errors():
    from ulr import errors

    own = [
        error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, Exception) and error is not ulr.UlrWarning
    ]
    assert all(issubclass(error, ulr.UlrError) for error in own)
    assert all(issubclass(error, ValueError) for error in own if error is not ulr.UlrError)


def test_import_loads_nothing_heavy():
    code = "import json, sys, ulr; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(run.stdout)).isdisjoint(HEAVY)
