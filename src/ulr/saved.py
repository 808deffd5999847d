"""Fitted classifiers on disk: a folder of JSON and safetensors, checked by hash when it is read.

The other half of `DatalessClassifier`, and the only one beside it that fills its learnt attributes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ulr.encoders import AnyEncoder, fingerprint
from ulr.errors import ModelError
from ulr.files import refuse_existing, sha256, whole_folder
from ulr.labels import Label, LabelSet
from ulr.refine import Rule
from ulr.tasks import prepare

if TYPE_CHECKING:
    from ulr.classifier import DatalessClassifier

_FORMAT_VERSION = 3
_SETTINGS, _ARRAYS = "model.json", "centroids.safetensors"
_OF_RULE = ("centre", "slopes", "offsets")
# What was given to the classifier and is plain enough to be written as it is.
_PLAIN = ("method", "distance", "template", "none_share", "none_label", "sample", "seed")


def save_model(model: DatalessClassifier, path: str | Path, overwrite: bool) -> None:
    """Write what `predict` needs to a folder, whole or not at all."""
    folder = Path(path)
    refuse_to_save(folder, overwrite)
    with whole_folder(folder) as partial:
        save_file(_arrays(model), str(partial / _ARRAYS))
        settings = _settings(model) | {"arrays_sha256": sha256(partial / _ARRAYS)}
        (partial / _SETTINGS).write_text(
            json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8"
        )


def _arrays(model: DatalessClassifier) -> dict[str, np.ndarray[Any, Any]]:
    arrays = {"centroids": model.centroids_, "names": model.names_}
    if model.rule_ is not None:
        arrays |= {name: getattr(model.rule_, name) for name in _OF_RULE}
    return {
        name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None
    }


def _settings(model: DatalessClassifier) -> dict[str, Any]:
    prior, wordings = model.prior, model.wordings
    found = model.wordings_
    # A draw cannot be made again: the labels are kept with the phrases that were drawn only.
    if found is not None and (found.is_sample or not isinstance(wordings, str)):
        wordings = found.sets
    return {
        "format": _FORMAT_VERSION,
        "labels": [{"name": each.name, "phrases": each.phrases} for each in model.label_set_],
        "wordings": wordings,
        "extra_labels": model.extra_labels_ or None,
        "encoder": getattr(model.encoder_, "spec", None),
        "encoder_fingerprint": fingerprint(model.encoder_),
        **{name: getattr(model, name) for name in _PLAIN},
        "prior": prior if isinstance(prior, str) else list(map(float, prior)),
        "max_iterations": int(model.max_iterations),
        "n_iter": model.n_iter_,
        "temperature": model.temperature_,
        "none_threshold": model.none_threshold_,
    }


def load_model(
    cls: type[DatalessClassifier],
    path: str | Path,
    encoder: AnyEncoder | None,
    cache: str | Path | None,
) -> DatalessClassifier:
    """Read a model that `save_model` wrote."""
    folder = Path(path)
    settings = _read_settings(folder)
    try:
        labels = LabelSet(tuple(Label(e["name"], tuple(e["phrases"])) for e in settings["labels"]))
        name, expected = settings["encoder"], settings["encoder_fingerprint"]
        if encoder is None and name is None:
            raise ModelError(
                f"{folder} was fitted with an encoder object, {expected}; "
                "give it to load(path, encoder=…)."
            )
        model = cls(
            labels,
            encoder=name if encoder is None else encoder,
            wordings=settings["wordings"],
            extra_labels=settings["extra_labels"],
            prior=settings["prior"],
            max_iterations=settings["max_iterations"],
            cache=cache,
            **{name: settings[name] for name in _PLAIN},
        )
        task = prepare(model)
        found = fingerprint(task.encoder)
        if found != expected:
            raise ModelError(
                f"{folder} needs the encoder {expected}; this one is {found}. "
                "Give the right one to load(path, encoder=…)."
            )
        arrays = _read_arrays(folder, settings, len(labels))
        model._begin(task)
        model.centroids_ = arrays["centroids"]
        model.names_ = arrays.get("names")
        model.rule_ = None
        if "slopes" in arrays:
            model.rule_ = Rule(arrays.get("centre"), arrays["slopes"], arrays["offsets"])
        model.n_iter_ = settings["n_iter"]
        model.temperature_ = settings["temperature"]
        model.none_threshold_ = settings["none_threshold"]
    except (KeyError, TypeError, OSError, SafetensorError) as error:
        raise ModelError(f"{folder} is not a whole saved model: {error!r}.") from error
    return model


def _read_arrays(
    folder: Path, settings: dict[str, Any], n_labels: int
) -> dict[str, np.ndarray[Any, Any]]:
    if sha256(folder / _ARRAYS) != settings["arrays_sha256"]:
        raise ModelError(f"{folder / _ARRAYS} is damaged: its hash is not the saved one.")
    arrays: dict[str, np.ndarray[Any, Any]] = load_file(str(folder / _ARRAYS))
    if len(arrays["centroids"]) != n_labels:
        raise ModelError(
            f"{folder} is damaged: {_SETTINGS} names {n_labels} labels, {_ARRAYS} "
            f"holds {len(arrays['centroids'])}."
        )
    return arrays


def refuse_to_save(path: str | Path, overwrite: bool) -> None:
    """Say so now if a model could not be saved to a folder."""
    folder = Path(path)
    refuse_existing(folder, overwrite, ModelError, "overwrite=True (--force)")
    if folder.exists() and not (folder / _SETTINGS).is_file():
        raise ModelError(f"{folder} is not a saved model, so it is not replaced.")


def _read_settings(folder: Path) -> dict[str, Any]:
    if not (folder / _SETTINGS).is_file():
        raise ModelError(f"{folder} is not a saved model; it has no {_SETTINGS}.")
    try:
        settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelError(f"{folder / _SETTINGS} cannot be read: {error}.") from error
    version = settings.get("format") if isinstance(settings, dict) else None
    if version != _FORMAT_VERSION:
        raise ModelError(
            f"{folder} is of model format {version}; this version of ulr reads format "
            f"{_FORMAT_VERSION}. Save it again, or install the ulr that wrote it."
        )
    return dict(settings)
