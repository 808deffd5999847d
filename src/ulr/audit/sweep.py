"""Every phrasing refined over the same documents, what each predicts kept on disk.

A few sets at a time are refined and written, whole or not at all. A sweep that was killed goes on
with the first set that is not there, and no more than a few sets are ever in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ulr.errors import LabelError
from ulr.files import atomic_file
from ulr.inputs import Inputs
from ulr.phrasings import Phrasings
from ulr.refinement import METHODS, refine_many

_VERSION = 1  # of what is kept
_MOST_SETS = 64
_FILE_BYTES = 32 << 20
_BLOCK_CELLS = 1 << 23  # predictions that are looked at at a time

Labels = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Sweep:
    """The predictions of every set for every document, before refinement and after.

    Attributes
    ----------
    files
        Where they are, some sets in each, in order.
    n_sets, n_documents, n_labels
        How many there are of each.
    n_resumed
        Sets that were there already.
    block_cells
        Most predictions that are in memory at a time.
    """

    files: tuple[Path, ...]
    n_sets: int
    n_documents: int
    n_labels: int
    n_resumed: int
    block_cells: int = _BLOCK_CELLS

    def blocks(self, phase: str) -> Iterator[tuple[slice, Labels]]:
        """Some documents at a time: their rows, and (n_sets, n) what each set predicts for them.

        Parameters
        ----------
        phase
            ``before`` refinement or ``after`` it.
        """
        size = max(1, self.block_cells // self.n_sets)
        for start in range(0, self.n_documents, size):
            rows = slice(start, min(start + size, self.n_documents))
            yield rows, np.concatenate([_read(file, phase, rows) for file in self.files])


def run_sweep(
    given: Inputs,
    settings: dict[str, Any],
    phrasings: Phrasings,
    folder: Path,
    on_set: Callable[[int], None] | None = None,
    n_documents: int | None = None,
    sets_per_file: int = _MOST_SETS,
) -> Sweep:
    """Refine every phrasing that has not been refined before.

    Parameters
    ----------
    given
        Documents and the anchors of the phrasings.
    settings
        Further arguments of `refine_many`.
    phrasings
        What they are worded.
    folder
        Where to keep what is done. A sweep of something else has a folder of its own in it.
    on_set
        Called after every set with the number of all, those done before included.
    n_documents
        How many documents count, from the first; behind them there may be examples.
    sets_per_file
        Most sets that are refined before they are written.
    """
    if given.anchor_sets is None or len(given.anchor_sets) < 2:
        raise LabelError(
            "an audit compares phrasings, and there is only one; give some labels several phrases "
            "('name: phrase; phrase'), or a file of whole sets."
        )
    n_documents = n_documents or len(given.documents)
    n_labels, n_sets = len(given.anchor_sets[0]), len(given.anchor_sets)
    dtype = np.uint8 if n_labels <= 256 else np.uint16
    size = max(1, min(sets_per_file, _FILE_BYTES // (2 * n_documents * np.dtype(dtype).itemsize)))
    place = folder / _key(given, settings, phrasings)
    place.mkdir(parents=True, exist_ok=True)
    starts = range(0, n_sets, size)
    files = [place / f"sets-{start:06d}.safetensors" for start in starts]
    counts = [min(start + size, n_sets) - start for start in starts]
    done = [_is_whole(file, (n, n_documents)) for file, n in zip(files, counts, strict=True)]
    n_resumed = sum(n for n, is_done in zip(counts, done, strict=True) if is_done)
    for _ in range(n_resumed if on_set else 0):
        on_set(n_sets)  # type: ignore[misc]
    for start, n, file, is_done in zip(starts, counts, files, done, strict=True):
        if is_done:
            continue
        results = refine_many(
            given.documents, given.anchor_sets[start : start + n], **given.others, **settings
        )
        predicted = {phase: np.empty((n, n_documents), dtype=dtype) for phase in _PHASES}
        for i, result in enumerate(results):
            predicted["before"][i] = result.unrefined[:n_documents]
            predicted["after"][i] = result.predictions[:n_documents]
            if on_set is not None:
                on_set(n_sets)
        with atomic_file(file) as out:
            out.write(save(predicted, {"sha256": _sha256(predicted)}))
    return Sweep(tuple(files), n_sets, n_documents, n_labels, n_resumed)


_PHASES = ("before", "after")


def _key(given: Inputs, settings: dict[str, Any], phrasings: Phrasings) -> str:
    """A name for everything that the predictions depend on."""
    decisive = {name: value for name, value in settings.items() if name != "n_jobs"}
    version = METHODS[settings["method"]].version
    asked = json.dumps(
        [_VERSION, version, phrasings.sets, decisive], default=_plain, sort_keys=True
    )
    total = hashlib.sha256(asked.encode())
    arrays = {
        "documents": given.documents,
        "set": None if given.anchor_sets is None else given.anchor_sets[0],
        **given.others,
    }
    for name, array in arrays.items():
        if array is not None:
            total.update(f"{name} {array.shape}".encode())
            total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()[:32]


def _plain(value: Any) -> Any:
    """A number or an array of NumPy's as JSON has them."""
    return np.asarray(value).tolist()


def _is_whole(file: Path, shape: tuple[int, int]) -> bool:
    """Whether a file is there and holds what was written to it."""
    if not file.is_file():
        return False
    try:
        with safe_open(file, "numpy") as stored:
            expected = (stored.metadata() or {}).get("sha256")
            predicted = {phase: stored.get_tensor(phase) for phase in _PHASES}
    except SafetensorError:
        return False
    return expected == _sha256(predicted) and all(
        each.shape == shape for each in predicted.values()
    )


def _sha256(predicted: dict[str, Labels]) -> str:
    total = hashlib.sha256()
    for phase in _PHASES:
        total.update(np.ascontiguousarray(predicted[phase]).data)
    return total.hexdigest()


def _read(file: Path, phase: str, rows: slice) -> Labels:
    with safe_open(file, "numpy") as stored:
        part: Labels = stored.get_slice(phase)[:, rows.start : rows.stop]
        return part
