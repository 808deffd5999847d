"""Invented predictions, stored as a sweep stores them."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from ulr.audit import Sweep


@pytest.fixture
def as_sweep(tmp_path):
    """A sweep of predictions, (n_sets, n_documents) each, some sets per file."""

    def write(before, after, n_labels, sets_a_file=3, **options):
        before, after = (np.asarray(each, dtype=np.uint8) for each in (before, after))
        files = []
        for start in range(0, len(after), sets_a_file):
            few = slice(start, start + sets_a_file)
            files.append(tmp_path / f"{len(list(tmp_path.iterdir()))}.safetensors")
            save_file({"before": before[few].copy(), "after": after[few].copy()}, files[-1])
        return Sweep(tuple(files), *after.shape, n_labels, 0, **options)

    return write
