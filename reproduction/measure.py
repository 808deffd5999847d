"""The measurements behind the paper's tables.

All of them use the paper's refinement (``method="ulr"``), except for ``discriminant``. The truth is
used to report; only the one-to-one accuracy of random starts uses it to name clusters, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.cells import MAIN, Key
from reproduction.datasets import ReproductionError
from reproduction.documents import Documents
from reproduction.experiments import FINE_TUNED, LABELLED_EXAMPLES, MAX_ITER, RANDOM_STARTS
from reproduction.inputs import Inputs, Vectors, anchors, load
from reproduction.names import (
    AUGMENTED_CATEGORIES,
    ENSEMBLE_NAMES,
    MAIN_NAMES,
    TABLE_1_NAMES,
    Names,
    all_phrasings,
)
from reproduction.wordnet import WordNet, with_definitions
from ulr.classifier import Settings, fit
from ulr.encoders import fingerprint
from ulr.metrics import accuracy, one_to_one_accuracy
from ulr.refinement import METHODS, Refinement, refine, refine_many
from ulr.train import draw_examples

_ULR: dict[str, Any] = {"method": "ulr", "max_iter": MAX_ITER}


class Measured(NamedTuple):
    """Figures of a measurement; see `cells.Cell`."""

    values: dict[str, float]
    before: Sequence[int] = ()
    after: Sequence[int] = ()


def identity(inputs: Inputs, key: Key) -> dict[str, Any]:
    """Everything that determines the figures of a cell, besides its key."""
    method = "discriminant" if key.measure == "discriminant" else "ulr"
    found = {
        "encoder": fingerprint(load(key.encoder)),
        "documents": inputs.test_documents(key).fingerprint,
        "random_state": inputs.random_state,
        "method_version": METHODS[method].version,
    }
    if key.measure in ("known examples", FINE_TUNED):
        found["training"] = inputs.documents(key.dataset, "train").fingerprint
    if key.measure == "augmented text":
        found["extra"] = inputs.unlabelled_documents(key).fingerprint
    return found


def names_of(key: Key) -> Names:
    """The label names of a cell."""
    return MAIN_NAMES[key.dataset] if key.names == MAIN else TABLE_1_NAMES[int(key.names[-1]) - 1]


def labelled_examples(
    documents: Documents, per_label: int, random_state: int
) -> tuple[list[str], NDArray[np.intp]]:
    """The examples that `ulr train --objective few-shot` draws, and their labels."""
    names = documents.labels
    given = [names[label] for label in documents.truth]
    drawn = draw_examples(documents.texts, given, names, per_label, random_state)
    for name in names:
        if (found := drawn.labels.count(name)) < per_label:
            raise ReproductionError(
                f"{documents.source} has {found} documents of {name!r}; {per_label} are needed."
            )
    return drawn.texts, np.array([names.index(label) for label in drawn.labels])


def _test_vectors(inputs: Inputs, key: Key) -> tuple[Documents, Vectors]:
    documents = inputs.test_documents(key)
    return documents, inputs.vectors(key.encoder, documents.texts)


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


def _by_names(
    inputs: Inputs, key: Key, labels: NDArray[np.float32] | None = None, **more: Any
) -> Measured:
    """Algorithm 1, with other anchors or further arguments of `refine`."""
    documents, vectors = _test_vectors(inputs, key)
    labels = anchors(key.encoder, names_of(key)) if labels is None else labels
    result = refine(vectors, labels, distance=key.distance, **_ULR, **more)
    return _before_and_after(documents.truth, result)


def _default_method(inputs: Inputs, key: Key) -> Measured:
    documents, vectors = _test_vectors(inputs, key)
    names = names_of(key)
    settings = Settings(list(names), encoder=load(key.encoder), method="discriminant")
    given: Any = {"embeddings": vectors, "label_embeddings": anchors(key.encoder, names)}
    predictions = fit(documents.texts, settings, **given).predictions
    assert predictions is not None
    return Measured({"discriminant": _percent(accuracy(documents.truth, predictions.labels))})


def _pairs(inputs: Inputs, key: Key) -> Measured:
    """Algorithm 2."""
    documents = inputs.test_documents(key)
    points = inputs.probabilities(key.encoder, names_of(key), documents.texts)
    return _before_and_after(documents.truth, refine(points, distance="jensen-shannon", **_ULR))


def _anchor_sets(encoder: str, sets: Sequence[Names]) -> NDArray[np.float32]:
    """(n_sets, n_labels, n_dims)."""
    vectors = anchors(encoder, [name for names in sets for name in names])
    return vectors.reshape(len(sets), -1, vectors.shape[1])


def _ensemble(inputs: Inputs, key: Key) -> Measured:
    """Every set is refined by itself, and the sum of the scores decides."""
    documents, vectors = _test_vectors(inputs, key)
    sets = _anchor_sets(key.encoder, ENSEMBLE_NAMES[key.dataset])

    def accuracy_of_sum(**method: Any) -> float:
        results = refine_many(vectors, sets, distance=key.distance, **method)
        total = sum(result.scores.astype(np.float64) for result in results)
        return _percent(accuracy(documents.truth, np.argmax(total, axis=1)))

    return Measured({"baseline": accuracy_of_sum(method="none"), "ulr": accuracy_of_sum(**_ULR)})


def _sweep(inputs: Inputs, key: Key) -> Measured:
    documents, vectors = _test_vectors(inputs, key)
    sets = _anchor_sets(key.encoder, all_phrasings(key.dataset))
    results = refine_many(vectors, sets, distance=key.distance, **_ULR)
    truth = documents.truth
    measured = _over_cases(
        documents.rows,
        (((r.unrefined == truth).sum(), (r.predictions == truth).sum()) for r in results),
    )
    measured.values["best"] = _percent(max(measured.before) / documents.rows)
    return measured


def _random_starts(inputs: Inputs, key: Key) -> Measured:
    documents, vectors = _test_vectors(inputs, key)
    seeds = np.random.default_rng(inputs.random_state).integers(2**31, size=RANDOM_STARTS)
    options = {"distance": key.distance, "start": "random", **_ULR}
    results = (
        refine(vectors, len(documents.labels), random_state=seed, **options)
        for seed in seeds.tolist()
    )

    def correct(clusters: NDArray[np.intp]) -> int:
        return round(one_to_one_accuracy(documents.truth, clusters) * documents.rows)

    return _over_cases(
        documents.rows, ((correct(r.unrefined), correct(r.predictions)) for r in results)
    )


def _over_cases(rows: int, cases: Iterable[tuple[int, int]]) -> Measured:
    """Means over cases, each of which is a number of correct documents before and after."""
    pairs = [(int(before), int(after)) for before, after in cases]
    before, after = (list(each) for each in zip(*pairs, strict=True))
    values = {
        "baseline": _percent(float(np.mean(before)) / rows),
        "ulr": _percent(float(np.mean(after)) / rows),
    }
    return Measured(values, before, after)


def _known_examples(inputs: Inputs, key: Key) -> Measured:
    """Algorithm 3: documents of the training set with known labels."""
    documents, vectors = _test_vectors(inputs, key)
    training = inputs.documents(key.dataset, "train")
    texts, labels = labelled_examples(training, LABELLED_EXAMPLES, inputs.random_state)
    unknown = np.full(documents.rows, -1, dtype=np.intp)
    result = refine(
        np.concatenate([vectors, inputs.vectors(key.encoder, texts)]),
        anchors(key.encoder, names_of(key)),
        distance=key.distance,
        known=np.concatenate([unknown, labels]),
        **_ULR,
    )
    return _before_and_after(documents.truth, result)


def _augmented_categories(inputs: Inputs, key: Key) -> Measured:
    extra = [name for name in AUGMENTED_CATEGORIES if name not in names_of(key)]
    return _by_names(inputs, key, extra_anchors=anchors(key.encoder, extra))


def _augmented_text(inputs: Inputs, key: Key) -> Measured:
    extra = inputs.unlabelled_documents(key)
    return _by_names(inputs, key, extra_documents=inputs.vectors(key.encoder, extra.texts))


def _definitions(inputs: Inputs, key: Key) -> Measured:
    """The anchor of a label is the mean of the unit vectors of its name and its definition."""
    labels = []
    for phrases in with_definitions(names_of(key), WordNet.find()):
        vectors = anchors(key.encoder, phrases)
        labels.append((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).mean(axis=0))
    return _by_names(inputs, key, np.stack(labels))


MEASURES: dict[str, Callable[[Inputs, Key], Measured]] = {
    "names": _by_names,
    "discriminant": _default_method,
    "pairs": _pairs,
    "ensemble": _ensemble,
    "sweep": _sweep,
    "random starts": _random_starts,
    "known examples": _known_examples,
    FINE_TUNED: _known_examples,
    "augmented categories": _augmented_categories,
    "augmented text": _augmented_text,
    "definitions": _definitions,
}
