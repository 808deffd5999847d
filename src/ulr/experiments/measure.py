"""The measurements behind the paper's tables: a place in, accuracies out.

Every one of them is the paper's refinement (`method="ulr"`) but for ``mixture``. Truth is used to
report; only the one-to-one accuracy of random starts, which the paper prints too, looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ExperimentError
from ulr.experiments.documents import Documents
from ulr.experiments.materials import Materials, Vectors
from ulr.experiments.paper import PROTOCOL
from ulr.experiments.plan import FINE_TUNED, MAIN, Place
from ulr.experiments.wordings import (
    AUGMENTED_CATEGORIES,
    ENSEMBLE_NAMES,
    MAIN_NAMES,
    TABLE_1_NAMES,
    Names,
    all_wordings,
)
from ulr.metrics import accuracy, one_to_one_accuracy
from ulr.refine import Refinement, refine, refine_ensemble, refine_many
from ulr.train.fewshot import draw_by_class

_SETS_AT_A_TIME = 256
_ULR: dict[str, Any] = {"method": "ulr", "max_iterations": PROTOCOL.max_iterations}


@dataclass(frozen=True)
class Outcome:
    """The figures of a measurement; see `results.Cell`."""

    values: Mapping[str, float]
    improved: tuple[int, int] | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Measure:
    """A way to measure.

    Attributes
    ----------
    run
        Makes the figures of a place.
    settings
        What decides them beside the place, the test documents, the encoder and the seed.
    version
        To be raised whenever the figures come out otherwise than before.
    """

    run: Callable[[Materials, Place], Outcome]
    settings: Callable[[Materials, Place], dict[str, Any]] = field(
        default=lambda materials, place: {}
    )
    version: int = 1


def names_of(place: Place) -> Names:
    """What the labels go by."""
    if place.names == MAIN:
        return MAIN_NAMES[place.dataset]
    return TABLE_1_NAMES[int(place.names.removeprefix("set ")) - 1]


def labelled_examples(documents: Documents, per_label: int, seed: int) -> NDArray[np.intp]:
    """Places of so many documents of every label: those that `ulr train few-shot` draws.

    Raises
    ------
    ExperimentError
        When a label has fewer.
    """
    names = documents.labels
    rows = (
        (row, names[label])
        for row, (text, label) in enumerate(zip(documents.texts, documents.truth, strict=True))
        if text.strip()
    )
    drawn = draw_by_class(rows, names, per_label, seed)
    for name, own in drawn.items():
        if len(own) < per_label:
            raise ExperimentError(
                f"{documents.source} has {len(own)} documents of {name!r}; {per_label} are needed."
            )
    return np.array([row for own in drawn.values() for row in own])


def _percent(share: float) -> float:
    return round(100 * share, 4)


def _before_and_after(truth: NDArray[np.intp], result: Refinement) -> Outcome:
    n = len(truth)
    return Outcome(
        {
            "baseline": _percent(accuracy(truth, result.unrefined[:n])),
            "ulr": _percent(accuracy(truth, result.predictions[:n])),
        }
    )


def _test(materials: Materials, place: Place) -> tuple[Documents, Vectors]:
    documents = materials.tested(place.dataset, place.role)
    return documents, materials.vectors(place.encoder, documents.texts, documents.fingerprint)


def _anchors(materials: Materials, place: Place) -> Vectors:
    names = names_of(place)
    return materials.phrases(place.encoder, names).of(names)


def _by_names(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    anchors = _anchors(materials, place)
    result = refine(vectors, anchors, distance=place.distance, **_ULR)
    return _before_and_after(documents.truth, result)


def _by_mixture(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    anchors = _anchors(materials, place)
    result = refine(vectors, anchors, distance=place.distance, method="mixture")
    return Outcome({"mixture": _percent(accuracy(documents.truth, result.predictions))})


def _by_pairs(materials: Materials, place: Place) -> Outcome:
    documents = materials.tested(place.dataset, place.role)
    points = materials.probabilities(place.encoder, names_of(place), documents.texts)
    result = refine(points, distance="jensen-shannon", **_ULR)
    return _before_and_after(documents.truth, result)


def _by_ensemble(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    sets = ENSEMBLE_NAMES[place.dataset]
    phrases = materials.phrases(place.encoder, _distinct(sets))
    anchors = [phrases.of(names) for names in sets]
    result = refine_ensemble(vectors, anchors, distance=place.distance, **_ULR)
    return _before_and_after(documents.truth, result)


def _sweep(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    sets = all_wordings(place.dataset)
    phrases = materials.phrases(place.encoder, _distinct(sets))
    before, after = [], []
    for start in range(0, len(sets), _SETS_AT_A_TIME):
        anchors = [phrases.of(names) for names in sets[start : start + _SETS_AT_A_TIME]]
        for result in refine_many(vectors, anchors, distance=place.distance, **_ULR):
            before.append(int((result.unrefined == documents.truth).sum()))
            after.append(int((result.predictions == documents.truth).sum()))
            materials.on_part(len(before), len(sets))
    best = {"best": _percent(max(before) / documents.rows)}
    return _over_cases(np.array(before), np.array(after), documents.rows, best)


def _from_random_starts(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    draw = np.random.default_rng(materials.setting.seed)
    seeds = draw.integers(2**31, size=PROTOCOL.random_starts).tolist()
    before: list[int] = []
    after: list[int] = []
    for seed in seeds:
        result = refine(
            vectors,
            len(documents.labels),
            distance=place.distance,
            start="random",
            seed=seed,
            **_ULR,
        )
        for clusters, right in ((result.unrefined, before), (result.predictions, after)):
            share = one_to_one_accuracy(documents.truth, clusters)
            right.append(round(share * documents.rows))
        materials.on_part(len(before), len(seeds))
    return _over_cases(np.array(before), np.array(after), documents.rows)


def _over_cases(
    before: NDArray[np.intp],
    after: NDArray[np.intp],
    rows: int,
    more: Mapping[str, float] | None = None,
) -> Outcome:
    """Means over cases, of which each is a number of documents that are right."""
    return Outcome(
        {
            "baseline": _percent(float(before.mean()) / rows),
            "ulr": _percent(float(after.mean()) / rows),
            **(more or {}),
        },
        (int((after > before).sum()), len(before)),
        tuple(before.tolist()),
        tuple(after.tolist()),
    )


def _with_examples(materials: Materials, place: Place) -> Outcome:
    """Algorithm 3: some documents of the training set stay with their label."""
    documents, vectors = _test(materials, place)
    training = materials.documents(place.dataset, "train")
    drawn = labelled_examples(training, PROTOCOL.labelled_examples, materials.setting.seed)
    texts = [training.texts[index] for index in drawn]
    key = f"{materials.setting.seed} of {training.fingerprint}"
    examples = materials.vectors(place.encoder, texts, key)
    unknown = np.full(documents.rows, -1, dtype=np.intp)
    result = refine(
        np.concatenate([vectors, examples]),
        _anchors(materials, place),
        distance=place.distance,
        known=np.concatenate([unknown, training.truth[drawn]]),
        **_ULR,
    )
    return _before_and_after(documents.truth, result)


def _with_categories(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    extra = [name for name in AUGMENTED_CATEGORIES if name not in names_of(place)]
    result = refine(
        vectors,
        _anchors(materials, place),
        distance=place.distance,
        extra_labels=materials.phrases(place.encoder, extra).of(extra),
        **_ULR,
    )
    return _before_and_after(documents.truth, result)


def _with_texts(materials: Materials, place: Place) -> Outcome:
    documents, vectors = _test(materials, place)
    extra = _unlabelled(materials, place)
    result = refine(
        vectors,
        _anchors(materials, place),
        distance=place.distance,
        extra_documents=materials.vectors(place.encoder, extra.texts, extra.fingerprint),
        **_ULR,
    )
    return _before_and_after(documents.truth, result)


def _unlabelled(materials: Materials, place: Place) -> Documents:
    most = min(PROTOCOL.augmented_texts, materials.setting.extra_texts)
    return materials.documents(place.dataset, "unlabelled", most)


def _distinct(sets: Sequence[Names]) -> list[str]:
    return list(dict.fromkeys(name for names in sets for name in names))


def _examples_settings(materials: Materials, place: Place) -> dict[str, Any]:
    training = materials.documents(place.dataset, "train")
    return {"examples": PROTOCOL.labelled_examples, "training": training.fingerprint}


def _texts_settings(materials: Materials, place: Place) -> dict[str, Any]:
    extra = _unlabelled(materials, place)
    return {"extra_texts": extra.rows, "extra": extra.fingerprint}


MEASURES: dict[str, Measure] = {
    "names": Measure(_by_names),
    "mixture": Measure(_by_mixture),
    "pairs": Measure(_by_pairs),
    "ensemble": Measure(_by_ensemble),
    "sweep": Measure(_sweep),
    "random starts": Measure(_from_random_starts, lambda *_: {"trials": PROTOCOL.random_starts}),
    "pinned examples": Measure(_with_examples, _examples_settings, version=2),
    FINE_TUNED: Measure(_with_examples, _examples_settings, version=2),
    "augmented categories": Measure(_with_categories),
    "augmented text": Measure(_with_texts, _texts_settings),
}
