"""Fitted classifiers on disk: a folder with JSON and safetensors, verified by hash when read.

A model folder may come from anybody: reading it opens nothing but its two files and installed
encoders, and every value is validated.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.model import CONFIDENCE_LEVELS, Fitted, NoneLabel
from ulr.classifier.multilabel import LabelChances
from ulr.classifier.reference import LEVELS, Reference
from ulr.classifier.settings import Settings
from ulr.classifier.word_counts import N_COLUMNS
from ulr.encoders import ENCODERS, AnyEncoder, Encoder, fingerprint, load_encoder
from ulr.errors import ArrayError, EncoderError, ModelError
from ulr.files import atomic_folder, check_destination, sha256
from ulr.label_files import one_text
from ulr.refinement import DISTANCES, METHODS, Rule, rule_from_arrays

_FORMAT = 10
_SETTINGS, _ARRAYS = "model.json", "arrays.safetensors"
_MOST_READS = 5  # of a model that is replaced while it is read
_MOST_JSON_BYTES = 64 << 20
_LARGEST = 1e30  # in arrays and settings; products of larger numbers overflow
_INTEGER_ARRAYS = ("normalize", "subtract_square", "words.columns")
# Labels and encoder are saved in forms of their own; the others concern this machine.
_NOT_SAVED = ("labels", "encoder", "n_jobs", "cache", "adviser", "adviser_budget")
_REFERENCE_ARRAYS = ("counts", "shares", "centroids", "levels")
Arrays = dict[str, NDArray[Any]]


def save(fitted: Fitted, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted classifier to a folder, as JSON and safetensors; complete or not at all."""
    from safetensors.numpy import save as as_bytes

    folder = Path(path)
    check_model_folder(folder, overwrite)
    settings, student = fitted.settings, fitted.student
    content = {
        "format": _FORMAT,
        "labels": [{"name": each.name, "phrases": each.phrases} for each in settings.labels],
        "encoder": getattr(settings.encoder, "spec", None),
        "encoder_fingerprint": fingerprint(settings.encoder),
        "settings": {
            each.name: getattr(settings, each.name)
            for each in fields(settings)
            if each.name not in _NOT_SAVED
        },
        **_numbers(fitted),
        "integer_classes": fitted.integer_classes,
        "strong_share": fitted.strong_share,
        "student": None,
        "reference": None,
    }
    arrays = _arrays(fitted)
    if (reference := fitted.reference) is not None:
        content["reference"] = {
            each.name: getattr(reference, each.name)
            for each in fields(reference)
            if each.name not in _REFERENCE_ARRAYS
        }
        arrays |= {f"reference.{name}": getattr(reference, name) for name in _REFERENCE_ARRAYS}
    if (chances := fitted.chances) is not None:
        arrays["chances"] = chances.array()
    if student is not None:
        content["student"] = {
            "encoder_fingerprint": fingerprint(student.settings.encoder),
            **_numbers(student),
        }
        arrays["levels"] = np.array(fitted.levels)
        arrays |= {f"student.{name}": array for name, array in _arrays(student).items()}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_folder(folder) as partial:
        # Written by Python, whose error for a full disk is an OSError; that of safetensors is not.
        (partial / _ARRAYS).write_bytes(as_bytes(contiguous))
        content["arrays_sha256"] = sha256(partial / _ARRAYS)
        content = json.loads(json.dumps(content, default=_python_value))
        content["sha256"] = _hash(content)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (partial / _SETTINGS).write_text(text, encoding="utf-8")


def _numbers(fitted: Fitted) -> dict[str, Any]:
    none = fitted.none
    return {
        "temperature": fitted.temperature,
        "none": None if none is None else [none.name, none.threshold, none.scale],
        "n_iter": fitted.n_iter,
    }


def _arrays(fitted: Fitted) -> Arrays:
    arrays = {f"rule.{name}": array for name, array in fitted.rule.arrays().items()}
    arrays |= {f"initial.{name}": array for name, array in fitted.initial_rule.arrays().items()}
    return arrays if fitted.anchors is None else {**arrays, "anchors": fitted.anchors}


def _python_value(value: Any) -> Any:
    """NumPy numbers, which parameter searches set, and arrays of a prior as Python values."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be saved")


def _hash(content: dict[str, Any]) -> str:
    """Hash of all settings but the hash itself."""
    kept = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def load(
    path: str | Path,
    *,
    encoder: str | AnyEncoder | None = None,
    cache: str | Path | None = None,
) -> Fitted:
    """Read a fitted classifier that `save` wrote.

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
    for _ in range(_MOST_READS):
        before = _inode(folder)
        try:
            return _load(folder, encoder, cache)
        except ModelError:
            if before is None or _inode(folder) == before:
                raise
    return _load(folder, encoder, cache)


def _inode(folder: Path) -> int | None:
    """Identifies a folder, which is another one after the model was replaced."""
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _load(folder: Path, encoder: str | AnyEncoder | None, cache: str | Path | None) -> Fitted:
    content = _read_settings(folder)
    try:
        arrays = _read_arrays(folder, content["arrays_sha256"])
        settings = _settings(content, _encoder(folder, content, encoder), cache)
        own = {name: array for name, array in arrays.items() if not name.startswith("student.")}
        levels = own.pop("levels", np.empty(0))
        fitted = _fitted(settings, own, content)
        fitted = replace(
            fitted,
            integer_classes=content["integer_classes"] is True,
            strong_share=_number(content["strong_share"]),
            reference=_reference(content["reference"], own, fitted.rule),
            chances=LabelChances.of_array(own.get("chances"), len(settings.labels)),
        )
        if (fitted.chances is None) == bool(settings.multilabel):
            raise ArrayError("its chances of labels do not suit its settings")
        if (student := content["student"]) is None:
            return fitted
        if levels.shape != (CONFIDENCE_LEVELS,):
            raise ArrayError(f"it must have {CONFIDENCE_LEVELS} levels of confidence")
        fast = settings.fast
        if student["encoder_fingerprint"] != fingerprint(fast.encoder):
            raise ModelError(f"{folder} was saved with another version of the fast encoder.")
        arrays = {n.removeprefix("student."): arrays[n] for n in arrays.keys() - own.keys()}
        arrays.pop("levels", None)
        return replace(
            fitted, student=_fitted(fast, arrays, student), levels=tuple(levels.tolist())
        )
    except (ModelError, EncoderError):
        raise
    except (KeyError, TypeError, IndexError, ValueError, OverflowError, OSError) as error:
        raise ModelError(f"{folder} is not a complete saved model: {_reason(error)}.") from None


def _fitted(settings: Settings, arrays: Arrays, content: dict[str, Any]) -> Fitted:
    """A classifier, of which a student has the same settings but for the encoder."""
    n_labels = len(settings.labels)
    rule, initial = (_rule(arrays, kind, n_labels) for kind in ("rule.", "initial."))
    _check_rules(settings, rule, initial)
    return Fitted(
        settings=settings,
        rule=rule,
        initial_rule=initial,
        temperature=_positive(content["temperature"]),
        anchors=_anchors(arrays, n_labels, rule),
        n_iter=int(_number(content["n_iter"])),
        none=_none_label(content["none"], settings),
    )


def _reason(error: Exception) -> str:
    """The message of an error in one short line."""
    if isinstance(error, KeyError):
        return f"it has no {str(error)[:80]}"
    return " ".join(str(error).split())[:200].rstrip(".")


def _settings(content: dict[str, Any], encoder: AnyEncoder, cache: str | Path | None) -> Settings:
    given = dict(content["settings"])
    names = {each.name for each in fields(Settings)} - set(_NOT_SAVED)
    if given.keys() != names:
        raise ArrayError("it has other settings than expected")
    if given["method"] not in METHODS or given["distance"] not in DISTANCES:
        raise ArrayError("its method or distance is not known")
    for name in ("random_state", "max_iter"):
        if isinstance(given[name], bool) or not isinstance(given[name], int):
            raise ArrayError(f"the setting {name!r} must not be {str(given[name])[:40]!r}")
    labels = {
        one_text(each["name"], "labels", "name"): each["phrases"] for each in content["labels"]
    }
    if len(labels) != len(content["labels"]):
        raise ArrayError("its labels must be different names")
    return Settings(labels, encoder=encoder, cache=cache, **given)


def _none_label(given: Any, settings: Settings) -> NoneLabel | None:
    if given is None:
        return None
    name, threshold, scale = given
    if one_text(name, "none", "name") in settings.label_set.names:
        raise ArrayError("its none label is one of the labels")
    return NoneLabel(name, _number(threshold), _positive(scale))


def _reference(given: Any, arrays: Arrays, rule: Rule) -> Reference | None:
    if given is None:
        return None
    n_labels, found = rule.n_labels, {n: arrays[f"reference.{n}"] for n in _REFERENCE_ARRAYS}
    shapes = [(n_labels + 1,), (n_labels,), (n_labels, rule.n_dims), (LEVELS,)]
    if [array.shape for array in found.values()] != shapes or (found["counts"] < 0).any():
        raise ArrayError("its reference does not fit its rule")
    known_words = given["known_words"]
    return Reference(
        **found,
        n_compared=int(_number(given["n_compared"])),
        confidence=_number(given["confidence"]),
        known_words=None if known_words is None else _number(known_words),
    )


def _check_rules(settings: Settings, rule: Rule, initial: Rule) -> None:
    if (rule.n_dims, rule.needs_distributions) != (initial.n_dims, initial.needs_distributions):
        raise ArrayError("its two rules disagree")
    suits = rule.n_dims == len(settings.labels)
    if isinstance(settings.encoder, Encoder):
        suits = not rule.needs_distributions
    if not suits or rule.needs_distributions == DISTANCES[settings.distance].linear:
        raise ArrayError("its rule does not suit its encoder")


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


def check_model_folder(path: str | Path, overwrite: bool) -> None:
    """Raise if a model could not be saved to a folder; called before the long part of a job."""
    folder = Path(path)
    check_destination(folder, overwrite, ModelError, "overwrite=True (--force)")
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
