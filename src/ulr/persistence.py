"""Fitted models on disk: a folder with JSON and safetensors, verified by hash when read.

A model folder may come from anybody: reading it opens nothing but its two files and installed
encoders, and every value is validated.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import ENCODERS, AnyEncoder, Encoder, fingerprint, load_encoder
from ulr.errors import ArrayError, EncoderError, ModelError
from ulr.files import atomic_folder, refuse_existing, sha256
from ulr.inputs import cached_text_encoder
from ulr.labels import Label, LabelSet, one_text
from ulr.labels import extra_labels as as_extra_labels
from ulr.model import Model, NoneLabel
from ulr.phrasings import MOST_WHOLE, as_phrasings
from ulr.refinement import METHODS, Rule, rule_from_arrays
from ulr.refinement.distances import DISTANCES
from ulr.word_counts import N_COLUMNS

_FORMAT = 6
_SETTINGS, _ARRAYS = "model.json", "arrays.safetensors"
_MOST_JSON_BYTES = 64 << 20
_LARGEST = 1e30  # in arrays and settings; products of larger numbers overflow
_INTEGER_ARRAYS = ("normalize", "subtract_square", "words.columns")
_SETTING_TYPES: dict[str, tuple[type, ...]] = {
    "template": (str, NoneType),
    "sample": (int, NoneType),
    "fit_sample": (int, str, NoneType),
    "random_state": (int,),
    "max_iter": (int,),
    "none_share": (float, NoneType),
    "none_label": (str,),
    "method": (str,),
    "distance": (str,),
    "prior": (str, list),
    "phrasings": (str, list),
    "extra_labels": (list, NoneType),
    "n_iter": (int,),
    "integers": (bool,),
    "largest_label": (int,),
}
Arrays = dict[str, NDArray[Any]]


def save_model(model: Model, path: str | Path, overwrite: bool, settings: dict[str, Any]) -> None:
    """Write a model to a folder, complete or not at all.

    Parameters
    ----------
    model
        The fitted model.
    path
        The folder.
    overwrite
        Whether to replace a model that is already there.
    settings
        Further settings, as plain values.
    """
    from safetensors.numpy import save_file

    folder = Path(path)
    refuse_to_save(folder, overwrite)
    none = model.none
    content = {
        "format": _FORMAT,
        "labels": [{"name": each.name, "phrases": each.phrases} for each in model.label_set],
        "encoder": getattr(model.encoder, "spec", None),
        "encoder_fingerprint": fingerprint(model.encoder),
        "temperature": model.temperature,
        "none": None if none is None else [none.name, none.threshold, none.scale],
        "settings": settings,
    }
    with atomic_folder(folder) as partial:
        save_file(_arrays(model), str(partial / _ARRAYS))
        content["arrays_sha256"] = sha256(partial / _ARRAYS)
        content = json.loads(json.dumps(content, default=_python_value))
        content["sha256"] = _hash(content)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (partial / _SETTINGS).write_text(text, encoding="utf-8")


def _arrays(model: Model) -> Arrays:
    arrays = {f"rule.{name}": array for name, array in model.rule.arrays().items()}
    arrays |= {f"initial.{name}": array for name, array in model.initial_rule.arrays().items()}
    if model.anchors is not None:
        arrays["anchors"] = model.anchors
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _python_value(value: Any) -> Any:
    """A NumPy number as a Python one; parameter searches set such numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be saved")


def _hash(content: dict[str, Any]) -> str:
    """Hash of all settings but the hash itself."""
    kept = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def load_model(
    path: str | Path, encoder: str | AnyEncoder | None = None, cache: str | Path | None = None
) -> tuple[Model, dict[str, Any]]:
    """Read a model that `save_model` wrote, and its settings.

    Parameters
    ----------
    path
        The folder.
    encoder
        The encoder, if it is an object or reads files outside the package.
    cache
        A folder for the vectors of texts.

    Raises
    ------
    ModelError
        When the folder is damaged, or needs an encoder that must be named.
    """
    folder = Path(path)
    content = _read_settings(folder)
    try:
        arrays = _read_arrays(folder, content["arrays_sha256"])
        label_set = _label_set(content["labels"])
        rule, initial = (_rule(arrays, kind, len(label_set)) for kind in ("rule.", "initial."))
        if (rule.n_dims, rule.needs_distributions) != (initial.n_dims, initial.needs_distributions):
            raise ArrayError("its two rules disagree")
        anchors = _anchors(arrays, len(label_set), rule)
        settings = _settings(content["settings"], label_set)
        loaded = _encoder(folder, content, encoder)
        suits = rule.n_dims == len(label_set)
        if isinstance(loaded, Encoder):
            suits = not rule.needs_distributions
        if not suits:
            raise ArrayError("its rule does not suit its encoder")
        encoder_of_texts = cached_text_encoder(
            loaded,
            label_set,
            settings["template"],
            cache,
            probabilities=rule.needs_distributions,
        )
        model = Model(
            label_set=label_set,
            encoder=loaded,
            text_encoder=encoder_of_texts,
            rule=rule,
            initial_rule=initial,
            temperature=_positive(content["temperature"]),
            anchors=anchors,
            none=_none_label(content["none"], label_set),
        )
    except (ModelError, EncoderError):
        raise
    except (KeyError, TypeError, IndexError, ValueError, OverflowError, OSError) as error:
        raise ModelError(f"{folder} is not a complete saved model: {_reason(error)}.") from None
    return model, settings


def _reason(error: Exception) -> str:
    """The message of an error in one short line."""
    if isinstance(error, KeyError):
        return f"it has no {str(error)[:80]}"
    return " ".join(str(error).split())[:200].rstrip(".")


def _label_set(given: Any) -> LabelSet:
    # Sets of an ensemble may use one phrase for several labels, so phrases need not be unique.
    labels = tuple(
        Label(
            one_text(each["name"], "labels", "name"),
            tuple(one_text(phrase, "labels", "phrase") for phrase in each["phrases"]),
        )
        for each in given
    )
    if len({each.name for each in labels}) != len(labels) or len(labels) < 2:
        raise ArrayError("its labels must be two different names or more")
    if not all(each.phrases for each in labels):
        raise ArrayError("every label must have a phrase")
    return LabelSet(labels)


def _none_label(given: Any, label_set: LabelSet) -> NoneLabel | None:
    if given is None:
        return None
    name, threshold, scale = given
    if one_text(name, "none", "name") in label_set.names:
        raise ArrayError("its none label is one of the labels")
    return NoneLabel(name, _number(threshold), _positive(scale))


def _rule(arrays: Arrays, prefix: str, n_labels: int) -> Rule:
    own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
    rule = rule_from_arrays(own)
    if rule.n_labels != n_labels:
        raise ArrayError(f"it names {n_labels} labels, but holds {rule.n_labels}")
    if rule.needs_distributions:
        rows = own["distributions"]
        if rule.n_dims != n_labels or (rows < 0).any() or not np.allclose(rows.sum(axis=1), 1.0):
            raise ArrayError("its rule must be probabilities of the labels")
        return rule
    widths = {own[name].shape[1:] for name in own if name.endswith(".weights") and "view" in name}
    if len(widths) != 1 or own["offsets"].shape != (n_labels,):
        raise ArrayError("the arrays of its rule do not fit together")
    columns = own.get("words.columns", np.empty(0))
    if (
        columns.ndim != 1
        or (columns < 0).any()
        or (columns >= N_COLUMNS).any()
        or (columns[1:] <= columns[:-1]).any()
    ):
        raise ArrayError("its words are not ascending columns")
    return rule


def _anchors(arrays: Arrays, n_labels: int, rule: Rule) -> NDArray[np.float64] | None:
    anchors = arrays.get("anchors")
    if (anchors is None) != rule.needs_distributions:
        raise ArrayError("anchors and rule do not fit together")
    if anchors is not None and anchors.shape != (n_labels, rule.n_dims):
        raise ArrayError(f"anchors must have shape {(n_labels, rule.n_dims)}")
    return anchors


def _settings(given: Any, label_set: LabelSet) -> dict[str, Any]:
    settings = dict(given)
    if settings.keys() != _SETTING_TYPES.keys():
        raise ArrayError("it has other settings than expected")
    for name, value in settings.items():
        # A bool is an int to isinstance.
        if not isinstance(value, types := _SETTING_TYPES[name]) or (
            isinstance(value, bool) and bool not in types
        ):
            raise ArrayError(f"the setting {name!r} must not be {str(value)[:40]!r}")
    if not 0 <= settings["largest_label"] < len(label_set):
        raise ArrayError("its largest label is not one of the labels")
    if settings["phrasings"] == "combinations":
        if math.prod(len(label.phrases) for label in label_set) > MOST_WHOLE:
            raise ArrayError("it has too many combinations of phrases")
    elif settings["phrasings"] != "average":
        settings["phrasings"] = as_phrasings(settings["phrasings"], label_set)
    if settings["extra_labels"] is not None:
        settings["extra_labels"] = as_extra_labels(settings["extra_labels"], label_set)
    if settings["method"] not in METHODS or settings["distance"] not in DISTANCES:
        raise ArrayError("its method or distance is not known")
    if settings["template"] is not None and "{}" not in str(settings["template"]):
        raise ArrayError("its template has no {}")
    return settings


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise ArrayError(f"a number was expected; got {str(value)[:40]!r}")
    return float(value)


def _positive(value: Any) -> float:
    if _number(value) < 1 / _LARGEST:
        raise ArrayError(f"a positive number was expected; got {value!r}")
    return float(value)


def _encoder(folder: Path, content: dict[str, Any], given: str | AnyEncoder | None) -> AnyEncoder:
    spec, expected = content["encoder"], content["encoder_fingerprint"]
    if given is None and not isinstance(spec, str):
        raise ModelError(
            f"{folder} was fitted with an encoder object, {str(expected)[:80]}; give it to "
            "load(path, encoder=…)."
        )
    if given is None and not _is_packaged(spec):
        raise ModelError(
            f"{folder} was fitted with the encoder {str(spec)[:80]!r}, which reads files or the "
            "network; if you trust the model, name it: load(path, encoder=…), or --encoder."
        )
    loaded = load_encoder(spec if given is None else given)
    found = fingerprint(loaded)
    if found != expected:
        raise ModelError(
            f"{folder} needs the encoder {str(expected)[:80]}; this one is {found}. Give the right "
            "one to load(path, encoder=…), or --encoder."
        )
    return loaded


def _is_packaged(spec: str) -> bool:
    """Whether an encoder is loaded from installed packages alone."""
    names = [part.rpartition("*")[2].strip() for part in spec.split("+")]
    return all(name in ENCODERS and ":" not in name for name in names)


def _read_arrays(folder: Path, expected: Any) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = folder / _ARRAYS
    if not file.is_file() or sha256(file) != expected:
        raise ModelError(f"{file} is damaged: its hash is not the saved one.")
    try:
        arrays = dict(load_file(str(file)))
    except SafetensorError as error:
        raise ArrayError(f"{_ARRAYS} cannot be read: {error}") from None
    for name, array in arrays.items():
        kinds = "iu" if name.endswith(_INTEGER_ARRAYS) else "f"
        if array.dtype.kind not in kinds:
            raise ArrayError(f"{name} must not be of type {array.dtype}")
        if kinds == "f":
            arrays[name] = array.astype(np.float64)
            if not (np.abs(arrays[name]) <= _LARGEST).all():
                raise ArrayError(f"{name} must be finite numbers")
    return arrays


def refuse_to_save(path: str | Path, overwrite: bool) -> None:
    """Refuse a folder that a model could not be saved to, before the long part of a job."""
    folder = Path(path)
    refuse_existing(folder, overwrite, ModelError, "overwrite=True (--force)")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ModelError(f"{folder} is a file; name a folder.")
    others = sorted({each.name for each in folder.iterdir()} - {_SETTINGS, _ARRAYS})
    if others or not (folder / _SETTINGS).is_file():
        found = f"it also holds {others[0]!r}" if others else f"it has no {_SETTINGS}"
        raise ModelError(f"{folder} is not only a saved model ({found}), so it is not replaced.")


def _read_settings(folder: Path) -> dict[str, Any]:
    file = folder / _SETTINGS
    if not file.is_file():
        raise ModelError(f"{folder} is not a saved model; it has no {_SETTINGS}.")
    if file.stat().st_size > _MOST_JSON_BYTES:
        raise ModelError(f"{file} is too large for the settings of a model.")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = _hash(content) if isinstance(content, dict) else None
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {_reason(error)}.") from None
    version = content.get("format") if isinstance(content, dict) else None
    if version != _FORMAT:
        raise ModelError(
            f"{folder} has model format {str(version)[:20]}; this version of ulr reads format "
            f"{_FORMAT}. Fit and save it again."
        )
    if content.get("sha256") != found:
        raise ModelError(f"{file} is damaged: its hash is not the saved one.")
    return dict(content)
