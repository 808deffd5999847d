"""Weights inside installed packages are found, and anything else is refused."""

from dataclasses import replace

import pytest

from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError
from ulr.files import sha256

MODULE = PackagedFile("yaml", "__init__.py", "")


def test_file_of_a_package_is_found_by_its_hash():
    with pytest.raises(EncoderError, match=r"its sha256 is .*, not ") as refused:
        MODULE.locate()
    found = str(refused.value).split("sha256 is ")[1][:64]
    assert sha256(replace(MODULE, sha256=found).locate()) == found


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (replace(MODULE, sha256="0" * 64), "is not the expected file.* Install the package again"),
        (replace(MODULE, path="no/such.bin"), "'yaml' has no file no/such.bin"),
        (replace(MODULE, package="no_such"), "'no_such' is not installed; install it with: pip"),
    ],
)
def test_other_files_are_refused(file, message):
    with pytest.raises(EncoderError, match=message):
        file.locate()
