"""The rule of a classifier as an ONNX file: vectors of texts in, probabilities of labels out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr import __version__
from ulr.classifier import Fitted, as_texts, count_words, empty_texts
from ulr.encoders import encode_texts, fingerprint
from ulr.errors import ModelError
from ulr.files import atomic_file, check_destination
from ulr.integrations.labelled import fitted_of
from ulr.integrations.onnx_rule import graph_of
from ulr.markup import readable_texts
from ulr.refinement import LinearRule

if TYPE_CHECKING:
    from ulr import ZeroShotClassifier


def to_onnx(clf: ZeroShotClassifier | Fitted, path: str | Path, *, overwrite: bool = False) -> None:
    """Write what a classifier does after its encoder as an ONNX file.

    Its inputs are ``embeddings``, (n, n_dims), and for a rule that weighs words ``words`` and
    ``counts``, (n, n_words): the columns of the words of each text and how often it has them, padded
    with counts of 0 (`onnx_inputs`). Its outputs are ``probabilities``, (n, n_labels), with the none
    label last if there is one, and ``label``, (n,), the index, -1 for a text without one. The names
    of the labels are in the metadata ``labels``.

    Parameters
    ----------
    clf
        A fitted or loaded classifier of one label a text, whose encoder gives vectors.
    path
        The file; it appears complete or not at all.
    overwrite
        Whether to replace a file that is already there.
    """
    fitted = fitted_of(clf)
    rule = fitted.rule
    if not isinstance(rule, LinearRule) or fitted.settings.scores_pairs:
        raise ModelError("only rules on vectors of texts can be exported; this one scores pairs.")
    if fitted.chances is not None:
        raise ModelError("only rules of one label a text can be exported; this one gives several.")
    check_destination(Path(path), overwrite, ModelError, "overwrite=True (--force)")
    metadata = {
        "labels": json.dumps(fitted.names[:-1].tolist(), ensure_ascii=False),
        "encoder": fitted.encoder_name,
        "encoder_fingerprint": fingerprint(fitted.settings.encoder),
        "ulr_version": __version__,
    }
    content = graph_of(fitted, rule).model("ulr", metadata)
    with atomic_file(path) as file:
        file.write(content)


def onnx_inputs(
    clf: ZeroShotClassifier | Fitted, texts: Any, embeddings: ArrayLike | None = None
) -> dict[str, NDArray[Any]]:
    """The inputs of a file of `to_onnx` for some texts; a text without words is a vector of zeros.

    They are encoded, unless their `embeddings` are given.
    """
    fitted, documents = fitted_of(clf), as_texts(texts)
    read = readable_texts(documents)
    given = encode_texts(fitted.text_encoder, read) if embeddings is None else embeddings
    vectors = np.array(given, dtype=np.float32)
    vectors[empty_texts(documents)] = 0.0
    if getattr(fitted.rule, "words", None) is None:
        return {"embeddings": vectors}
    found = count_words(read)
    sizes = np.diff(found.indptr)
    places = np.arange(max(1, sizes.max())) < sizes[:, None]
    words, counts = np.zeros(places.shape, np.int64), np.zeros(places.shape, np.float32)
    words[places], counts[places] = found.indices, found.data
    return {"embeddings": vectors, "words": words, "counts": counts}
