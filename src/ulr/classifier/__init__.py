"""The classifier: texts and label names in, labels out.

`Settings` lists its parameters, `fit` fits it, `Fitted` classifies new texts, and
`ZeroShotClassifier` is its form for scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.classifier.advice import Advice, advise
    from ulr.classifier.description import LabelDescription, describe
    from ulr.classifier.encoding import (
        EncodedTexts,
        encode,
        encode_documents,
        encode_extra_labels,
        encode_labels,
        share_to_read,
        text_encoder,
        words_to_read,
    )
    from ulr.classifier.estimator import ZeroShotClassifier
    from ulr.classifier.explanation import (
        MOST_LEFT_OUT,
        Explanation,
        WordEvidence,
        explain,
    )
    from ulr.classifier.fitting import fit, refit, teach
    from ulr.classifier.known import known_labels
    from ulr.classifier.model import Fitted, Predictions
    from ulr.classifier.multilabel import LabelChances
    from ulr.classifier.persistence import check_model_folder, load, save
    from ulr.classifier.placement import Placement, place
    from ulr.classifier.questions import ask, correct
    from ulr.classifier.settings import Settings, resolve
    from ulr.classifier.suggestions import Merge, MissingLabel, Split, Suggestions, suggest
    from ulr.classifier.texts import as_texts, empty_texts, is_formula, is_missing, label_notes
    from ulr.classifier.updating import Drift, LabelShare, update
    from ulr.classifier.word_counts import count_words

__all__ = [
    "MOST_LEFT_OUT",
    "Advice",
    "Drift",
    "EncodedTexts",
    "Explanation",
    "Fitted",
    "LabelChances",
    "LabelDescription",
    "LabelShare",
    "Merge",
    "MissingLabel",
    "Placement",
    "Predictions",
    "Settings",
    "Split",
    "Suggestions",
    "WordEvidence",
    "ZeroShotClassifier",
    "advise",
    "as_texts",
    "ask",
    "check_model_folder",
    "correct",
    "count_words",
    "describe",
    "empty_texts",
    "encode",
    "encode_documents",
    "encode_extra_labels",
    "encode_labels",
    "explain",
    "fit",
    "is_formula",
    "is_missing",
    "known_labels",
    "label_notes",
    "load",
    "place",
    "refit",
    "resolve",
    "save",
    "share_to_read",
    "suggest",
    "teach",
    "text_encoder",
    "update",
    "words_to_read",
]

__getattr__ = lazy_names(
    __name__,
    advice="Advice advise",
    description="LabelDescription describe",
    encoding=(
        "EncodedTexts encode encode_documents encode_extra_labels encode_labels share_to_read "
        "text_encoder words_to_read"
    ),
    explanation="MOST_LEFT_OUT Explanation WordEvidence explain",
    estimator="ZeroShotClassifier",
    fitting="fit refit teach",
    known="known_labels",
    model="Fitted Predictions",
    multilabel="LabelChances",
    persistence="check_model_folder load save",
    placement="Placement place",
    questions="ask correct",
    settings="Settings resolve",
    suggestions="Merge MissingLabel Split Suggestions suggest",
    texts="as_texts empty_texts is_formula is_missing label_notes",
    updating="Drift LabelShare update",
    word_counts="count_words",
)
