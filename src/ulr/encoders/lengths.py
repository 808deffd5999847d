"""Batches of texts that are alike in length, so that little of a batch is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


def alike_in_length(lengths: Sequence[int], tokens_at_a_time: int) -> Iterator[NDArray[np.intp]]:
    """Places of texts, those of like length together, as many as make up a batch of tokens.

    Parameters
    ----------
    lengths
        (n_texts,) tokens of each text.
    tokens_at_a_time
        Tokens of a batch, padding included; a longer text is a batch of its own.

    Yields
    ------
    (n_texts_of_the_batch,) places in `lengths`, shortest texts first.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and lengths[order[end]] * (end + 1 - start) <= tokens_at_a_time:
            end += 1
        yield order[start:end]
        start = end
