"""The measurements behind the paper's tables.

All of them use the paper's refinement (``method="ulr"``), except for ``discriminant``. The truth is
used to report; only the one-to-one accuracy of random starts uses it to name clusters, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ExperimentError
from ulr.experiments.documents import Documents
from ulr.experiments.paper import FINE_TUNED, PROTOCOL
from ulr.experiments.phrasings import (
    AUGMENTED_CATEGORIES,
    ENSEMBLE_NAMES,
    MAIN_NAMES,
    TABLE_1_NAMES,
    Names,
    all_phrasings,
)
from ulr.experiments.plan import MAIN, CellKey
from ulr.experiments.resources import Embeddings, Resources
from ulr.metrics import accuracy, one_to_one_accuracy
from ulr.refinement import METHODS, Refinement, refine, refine_ensemble, refine_many
from ulr.train.examples import draw_by_label
from ulr.word_counts import count_words

_ULR: dict[str, Any] = {"method": "ulr", "max_iter": PROTOCOL.max_iter}


@dataclass(frozen=True)
class Measured:
    """Figures of a measurement; see `results.Cell`."""

    values: dict[str, float]
    improved: tuple[int, int] | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Measure:
    """A way to measure.

    Attributes
    ----------
    run
        Measures a cell.
    settings
        What determines the figures besides the key of the cell, the test documents, the encoder
        and the seed.
    method
        The refinement method, whose version is part of the identity of a result.
    version
        Increased whenever the figures change for another reason.
    """

    run: Callable[[Resources, CellKey], Measured]
    settings: Callable[[Resources, CellKey], dict[str, Any]] = lambda resources, key: {}
    method: str = "ulr"
    version: int = 1

    def identity(self, resources: Resources, key: CellKey) -> dict[str, Any]:
        """Everything that determines the figures, besides the key of the cell."""
        return {
            "encoder": resources.fingerprint(key.encoder),
            "documents": resources.test_documents(key.dataset, key.role).fingerprint,
            "random_state": resources.settings.random_state,
            "version": self.version,
            "method": self.method,
            "method_version": METHODS[self.method].version,
            **self.settings(resources, key),
        }


def names_of(key: CellKey) -> Names:
    """The label names of a cell."""
    if key.names == MAIN:
        return MAIN_NAMES[key.dataset]
    return TABLE_1_NAMES[int(key.names.removeprefix("set ")) - 1]


def labelled_examples(documents: Documents, per_label: int, random_state: int) -> NDArray[np.intp]:
    """Rows of the examples that `ulr train --objective few-shot` draws.

    Raises
    ------
    ExperimentError
        When a label has fewer examples.
    """
    names = documents.labels
    rows = (
        (row, names[label])
        for row, (text, label) in enumerate(zip(documents.texts, documents.truth, strict=True))
        if text.strip()
    )
    drawn = draw_by_label(rows, names, per_label, random_state)
    for name, own in drawn.items():
        if len(own) < per_label:
            raise ExperimentError(
                f"{documents.source} has {len(own)} documents of {name!r}; {per_label} are needed."
            )
    return np.array([row for own in drawn.values() for row in own])


def _percent(share: float) -> float:
    return round(100 * share, 4)


def _before_and_after(truth: NDArray[np.intp], result: Refinement) -> Measured:
    """Accuracies of the documents whose truth is given, which come first."""
    n = len(truth)
    return Measured(
        {
            "baseline": _percent(accuracy(truth, result.unrefined[:n])),
            "ulr": _percent(accuracy(truth, result.predictions[:n])),
        }
    )


def _test_vectors(resources: Resources, key: CellKey) -> tuple[Documents, Embeddings]:
    documents = resources.test_documents(key.dataset, key.role)
    return documents, resources.vectors(key.encoder, documents.texts, documents.fingerprint)


def _anchors(resources: Resources, key: CellKey) -> Embeddings:
    names = names_of(key)
    return resources.phrases(key.encoder, names).of(names)


def _paper(resources: Resources, key: CellKey, **more: Any) -> Measured:
    """The paper's refinement, with further arguments of `refine`."""
    documents, vectors = _test_vectors(resources, key)
    anchors = _anchors(resources, key)
    result = refine(vectors, anchors, distance=key.distance, **_ULR, **more)
    return _before_and_after(documents.truth, result)


def _default(resources: Resources, key: CellKey) -> Measured:
    documents, vectors = _test_vectors(resources, key)
    result = refine(
        vectors,
        _anchors(resources, key),
        distance=key.distance,
        method="discriminant",
        word_counts=count_words(documents.texts),
    )
    return Measured({"discriminant": _percent(accuracy(documents.truth, result.predictions))})


def _pairs(resources: Resources, key: CellKey) -> Measured:
    documents = resources.test_documents(key.dataset, key.role)
    points = resources.probabilities(key.encoder, names_of(key), documents.texts)
    return _before_and_after(documents.truth, refine(points, distance="jensen-shannon", **_ULR))


def _anchor_sets(resources: Resources, key: CellKey, sets: Sequence[Names]) -> list[Embeddings]:
    distinct = list(dict.fromkeys(name for names in sets for name in names))
    phrases = resources.phrases(key.encoder, distinct)
    return [phrases.of(names) for names in sets]


def _ensemble(resources: Resources, key: CellKey) -> Measured:
    documents, vectors = _test_vectors(resources, key)
    anchors = _anchor_sets(resources, key, ENSEMBLE_NAMES[key.dataset])
    result = refine_ensemble(vectors, anchors, distance=key.distance, **_ULR)
    return _before_and_after(documents.truth, result)


def _sweep(resources: Resources, key: CellKey) -> Measured:
    documents, vectors = _test_vectors(resources, key)
    sets = _anchor_sets(resources, key, all_phrasings(key.dataset))
    before, after = [], []
    for result in refine_many(vectors, sets, distance=key.distance, **_ULR):
        before.append(int((result.unrefined == documents.truth).sum()))
        after.append(int((result.predictions == documents.truth).sum()))
        resources.on_part(len(before), len(sets))
    best = {"best": _percent(max(before) / documents.rows)}
    return _over_cases(before, after, documents.rows, best)


def _random_starts(resources: Resources, key: CellKey) -> Measured:
    documents, vectors = _test_vectors(resources, key)
    rng = np.random.default_rng(resources.settings.random_state)
    seeds = rng.integers(2**31, size=PROTOCOL.random_starts).tolist()
    before: list[int] = []
    after: list[int] = []
    for seed in seeds:
        result = refine(
            vectors,
            len(documents.labels),
            distance=key.distance,
            start="random",
            random_state=seed,
            **_ULR,
        )
        for clusters, correct in ((result.unrefined, before), (result.predictions, after)):
            share = one_to_one_accuracy(documents.truth, clusters)
            correct.append(round(share * documents.rows))
        resources.on_part(len(before), len(seeds))
    return _over_cases(before, after, documents.rows, {})


def _over_cases(before: list[int], after: list[int], rows: int, more: dict[str, float]) -> Measured:
    """Means over cases, each of which is a number of correct documents."""
    return Measured(
        {
            "baseline": _percent(float(np.mean(before)) / rows),
            "ulr": _percent(float(np.mean(after)) / rows),
            **more,
        },
        (sum(a > b for a, b in zip(after, before, strict=True)), len(before)),
        tuple(before),
        tuple(after),
    )


def _known_examples(resources: Resources, key: CellKey) -> Measured:
    """Algorithm 3: documents of the training set with known labels."""
    documents, vectors = _test_vectors(resources, key)
    training, seed = resources.documents(key.dataset, "train"), resources.settings.random_state
    drawn = labelled_examples(training, PROTOCOL.labelled_examples, seed)
    texts = [training.texts[row] for row in drawn]
    examples = resources.vectors(key.encoder, texts, f"{seed} of {training.fingerprint}")
    unknown = np.full(documents.rows, -1, dtype=np.intp)
    result = refine(
        np.concatenate([vectors, examples]),
        _anchors(resources, key),
        distance=key.distance,
        known=np.concatenate([unknown, training.truth[drawn]]),
        **_ULR,
    )
    return _before_and_after(documents.truth, result)


def _augmented_categories(resources: Resources, key: CellKey) -> Measured:
    extra = [name for name in AUGMENTED_CATEGORIES if name not in names_of(key)]
    anchors = resources.phrases(key.encoder, extra).of(extra)
    return _paper(resources, key, extra_anchors=anchors)


def _augmented_text(resources: Resources, key: CellKey) -> Measured:
    extra = _unlabelled(resources, key)
    vectors = resources.vectors(key.encoder, extra.texts, extra.fingerprint)
    return _paper(resources, key, extra_documents=vectors)


def _unlabelled(resources: Resources, key: CellKey) -> Documents:
    most = min(PROTOCOL.augmented_texts, resources.settings.extra_texts)
    return resources.documents(key.dataset, "unlabelled", most)


def _examples_settings(resources: Resources, key: CellKey) -> dict[str, Any]:
    training = resources.documents(key.dataset, "train")
    return {"examples": PROTOCOL.labelled_examples, "training": training.fingerprint}


def _texts_settings(resources: Resources, key: CellKey) -> dict[str, Any]:
    extra = _unlabelled(resources, key)
    return {"extra_texts": extra.rows, "extra": extra.fingerprint}


MEASURES: dict[str, Measure] = {
    "names": Measure(_paper),
    "discriminant": Measure(_default, method="discriminant"),
    "pairs": Measure(_pairs),
    "ensemble": Measure(_ensemble),
    "sweep": Measure(_sweep),
    "random starts": Measure(_random_starts, lambda *_: {"trials": PROTOCOL.random_starts}),
    "known examples": Measure(_known_examples, _examples_settings),
    FINE_TUNED: Measure(_known_examples, _examples_settings),
    "augmented categories": Measure(_augmented_categories),
    "augmented text": Measure(_augmented_text, _texts_settings),
}
