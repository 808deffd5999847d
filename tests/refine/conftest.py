import pytest

from ulr.refine import loops


@pytest.fixture(scope="module", params=["compiled", "numpy"])
def either_loops(request):
    """The innermost loops, compiled and in NumPy."""
    built = loops.compiled
    if request.param == "compiled" and built is None:
        pytest.skip("the loops are not compiled: there was no compiler at installation")
    if request.param == "numpy":
        loops.compiled = None
    yield
    loops.compiled = built
